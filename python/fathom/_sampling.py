"""Sampling this very program: ``start``, ``stop``, ``snapshot``, ``sample``.

The samples are taken from outside, by ``fathom attach``: a process of its own that only reads the
memory of this one. What is here starts it, tells it over a socket when to write, and tells it when
to end. While it runs nothing of Fathom happens in this process.

The sampler is no child of the program: a shell starts it and ends at once, so that ``os.wait()``,
handlers of SIGCHLD and the like never meet it. Its end of the socket sees when the program is gone,
however that came about; it then writes what it has.
"""

import atexit
import ctypes
import functools
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time

_MODES = {"wall": [], "cpu": ["--cpu"], "gil": ["--gil"]}
_ATTACH_SECONDS = 60
_PR_SET_PTRACER = 0x59616D61  # <linux/prctl.h>


class SamplingError(RuntimeError):
    """Sampling cannot be started, was not started, or has failed."""


def command():
    """Where the ``fathom`` command is: named by FATHOM, or beside this package, or on PATH."""
    named = os.environ.get("FATHOM")
    if named:
        if not _is_command(named):
            raise SamplingError(f"FATHOM names {named}, which is not a program")
        return named
    package = os.path.dirname(os.path.abspath(__file__))
    candidates = [
        os.path.join(package, "../../fathom"),  # a build: build/python/fathom and build/fathom
        os.path.join(package, "../../../../bin/fathom"),  # lib/python3.x/site-packages/fathom
        os.path.join(sysconfig.get_path("scripts") or "", "fathom"),
    ]
    found = next(filter(_is_command, candidates), None) or shutil.which("fathom")
    if not found:
        raise SamplingError("the fathom command is neither beside the package nor on PATH; "
                            "set FATHOM to where it is")
    return os.path.normpath(found)


def _is_command(path):
    return os.path.isfile(path) and os.access(path, os.X_OK)


def _default_path():
    """As ``fathom run`` does: app.fathom after app.py, or app-2.fathom if that exists, …"""
    script = os.path.basename(sys.argv[0]) if sys.argv else ""
    stem = os.path.splitext(script)[0].lstrip("-") or "python"
    path, n = f"{stem}.fathom", 1
    while os.path.lexists(path):
        n += 1
        path = f"{stem}-{n}.fathom"
    return path.replace("%", "%%")


class _Session:
    """A sampler that watches this process, and the socket to it."""

    def __init__(self, path, options, overwrite):
        self.path = path
        self._partial = b""  # of an answer
        self._unanswered = 0
        self._errors = tempfile.TemporaryFile()
        self._socket, far = socket.socketpair()
        self._socket.setblocking(True)
        self._ready, ready = os.pipe()
        try:
            self._pid = self._launch(
                [command(), "attach", str(os.getpid()), "--quiet", "-o", path,
                 *(["--force"] if overwrite else []), *options,
                 "--ready-fd", str(ready), "--control-fd", str(far.fileno())],
                (ready, far.fileno()))
        except BaseException:
            self.close()
            raise
        finally:
            os.close(ready)
            far.close()
        try:
            self._await_ready()
        except BaseException:
            self.close()
            raise

    # ---- starting

    def _launch(self, words, fds):
        """Start it through a shell, which tells its process id and ends; it waits for a line before
        it becomes `fathom`, so that it may be allowed to read us first."""
        gate = next(digit for digit in range(3, 10) if digit not in fds)
        script = (f'exec {gate}<&0; {{ read -r go <&{gate} && exec "$@" {gate}<&-; }} '
                  "</dev/null >/dev/null & echo $!")
        try:
            shell = subprocess.Popen(
                ["/bin/sh", "-c", script, "sh", *words], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=self._errors, pass_fds=fds, start_new_session=True)
        except OSError as error:
            raise SamplingError(f"the sampler cannot be started: {error}") from error
        with shell:
            line = shell.stdout.readline()
            if not line.strip().isdigit():
                raise SamplingError(self._reason("the sampler cannot be started"))
            pid = int(line)
            _allow_reading_by(pid)
            try:
                shell.stdin.write(b"go\n")
                shell.stdin.flush()
            except BrokenPipeError:
                pass  # it has ended already, which is noticed next
        return pid

    def _await_ready(self):
        """Until it says that it has attached."""
        said = b""
        end = time.monotonic() + _ATTACH_SECONDS
        poll = select.poll()
        poll.register(self._ready, select.POLLIN)
        while not said.endswith(b"\n"):
            left = end - time.monotonic()
            if left <= 0 or not poll.poll(left * 1000):
                os.kill(self._pid, signal.SIGKILL)
                raise SamplingError(f"the sampler did not attach within {_ATTACH_SECONDS} seconds")
            piece = os.read(self._ready, 100)
            if not piece:
                self._await_end()
                raise SamplingError(self._reason("the sampler could not attach"))
            said += piece
        os.close(self._ready)
        self._ready = -1

    # ---- talking

    def _read_answer(self):
        """A line without its end; None if the sampler is gone."""
        while b"\n" not in self._partial:
            try:
                piece = self._socket.recv(4096)
            except ConnectionError:
                piece = b""
            if not piece:
                return None
            self._partial += piece
        line, self._partial = self._partial.split(b"\n", 1)
        return os.fsdecode(line)

    def ask(self, line):
        """Send a line; what follows "ok" in the answer. Raises if it is not ok."""
        # An exception (Ctrl-C) may have kept us from reading an earlier answer: it comes first.
        self._unanswered += 1
        try:
            self._socket.sendall(os.fsencode(line) + b"\n", socket.MSG_NOSIGNAL)
        except ConnectionError:
            pass  # no answer will come, either
        answer = ""
        while self._unanswered and answer is not None:
            answer = self._read_answer()
            self._unanswered -= 1
        if answer is None:
            raise SamplingError(self._reason("the sampler has ended before it was told to"))
        word, _, rest = answer.partition(" ")
        if word != "ok":
            raise SamplingError(rest or answer)
        return rest

    def _reason(self, what):
        """What went wrong, with what the sampler itself said about it."""
        self._errors.seek(0)
        said = self._errors.read(10000).decode(errors="replace").strip()
        return f"{what}: {said}" if said else what

    # ---- ending

    def _await_end(self):
        """Until all descriptors of the sampler are closed."""
        while self._read_answer() is not None:
            pass
        try:
            # Orphans come to process 1, which in a container may be this program.
            os.waitpid(self._pid, 0)
        except ChildProcessError:
            pass

    def stop(self):
        try:
            written = self.ask("stop")
            self._await_end()
        finally:
            self.close()
        return written or self.path

    def close(self):
        """Without a word. A sampler that still runs takes it as the end of the program."""
        self._socket.close()
        self._errors.close()
        if self._ready >= 0:
            os.close(self._ready)
            self._ready = -1


def _allow_reading_by(pid):
    """Where Yama lets only ancestors read a process, name the sampler as one that may."""
    try:
        with open("/proc/sys/kernel/yama/ptrace_scope") as file:
            if file.read().strip() != "1":
                return
        prctl = ctypes.CDLL(None).prctl
        prctl.argtypes = [ctypes.c_int] + [ctypes.c_ulong] * 4
        prctl(_PR_SET_PTRACER, pid, 0, 0, 0)
    except (OSError, AttributeError):
        pass  # no Yama, or no such thing: the sampler says what forbids it


_session = None
_lock = threading.Lock()


def _forget_in_child():
    """After a fork the sampler goes on watching the parent. The child must not keep its socket
    open: the parent's end would never be noticed."""
    global _session, _lock
    _lock = threading.Lock()
    if _session:
        _session.close()
    _session = None


def _stop_at_exit():
    with _lock:
        session = _take()
    if session:
        try:
            session.stop()
        except (SamplingError, OSError):
            pass  # the program ends; nobody asked, so nobody is told


def _take():
    global _session
    session, _session = _session, None
    return session


@functools.lru_cache(maxsize=None)
def _register():
    os.register_at_fork(after_in_child=_forget_in_child)
    atexit.register(_stop_at_exit)


def _options(rate, mode, children, tasks, max_cpu):
    if mode not in _MODES:
        raise ValueError(f"mode is 'wall', 'cpu' or 'gil', not {mode!r}")
    words = list(_MODES[mode])
    if rate == "max":
        words += ["--rate", "max"]
    elif rate is not None:
        words += ["--rate", _number("rate", rate)]
    if max_cpu is not None:
        words += ["--max-cpu", _number("max_cpu", max_cpu)]
    return words + ["--no-children"] * (not children) + ["--tasks"] * bool(tasks)


def _number(name, value):
    if not float(value) > 0:
        raise ValueError(f"{name} is a positive number, not {value!r}")
    return format(float(value), ".15g")


def _check_path(path):
    path = os.path.abspath(os.fsdecode(path))
    if "\n" in path:
        raise ValueError("the name of a recording cannot have a line break in it")
    return path


def start(path=None, *, rate=None, mode="wall", children=False, tasks=False, max_cpu=None,
          overwrite=False):
    """Sample this program from now on, until ``stop()`` or its end.

    ``path`` is where the recording goes, as ``-o`` of the command: it may hold %p and the like, and
    its ending chooses the format; without it, app.fathom after app.py. ``rate`` is in samples per
    second, or "max"; ``mode`` "wall" counts all time, "cpu" only running threads, "gil" only those
    that hold the GIL; ``children`` follows processes that the program starts; ``tasks`` records the
    await stacks of asyncio tasks; ``max_cpu`` limits what the sampler may use, in percent of a
    processor.

    Returns when the sampler has attached. An existing file is a FileExistsError, unless
    ``overwrite``; everything else that goes wrong is a SamplingError.
    """
    global _session
    path = _check_path(path if path is not None else _default_path())
    words = _options(rate, mode, children, tasks, max_cpu)
    with _lock:
        if _session:
            raise SamplingError(f"sampling was started already, into {_session.path}")
        if "%" not in path and os.path.lexists(path) and not overwrite:
            raise FileExistsError(f"fathom: {path} exists and is not overwritten")
        _register()
        _session = _Session(path, words, overwrite)


def stop():
    """End sampling and write the recording; its path."""
    with _lock:
        session = _take()
        if not session:
            raise SamplingError("sampling was not started")
        return session.stop()


def snapshot(path, *, overwrite=False):
    """Write what was sampled so far to ``path``; sampling goes on. The path.

    An existing file is a FileExistsError, unless ``overwrite``: then it is replaced in one step."""
    path = _check_path(path)
    with _lock:
        if not _session:
            raise SamplingError("sampling was not started")
        if not os.path.lexists(path):
            _session.ask(f"snapshot {path}")
            return path
        if not overwrite:
            raise FileExistsError(f"fathom: {path} exists and is not overwritten")
        folder, name = os.path.split(path)
        beside = os.path.join(folder, f".{os.getpid()}-{name}")  # its ending chooses the format
        _session.ask(f"snapshot {beside}")
        os.replace(beside, path)
        return path


class sample:
    """Sample a block or a function into a file: ``with fathom.sample("out.fathom"): …``.

    Takes what ``start`` takes. With an empty ``path`` (None or ""), nothing is done at all.
    """

    def __init__(self, path=None, **options):
        self._path = path or None
        self._options = options

    def __enter__(self):
        if self._path:
            start(self._path, **self._options)
        return self

    def __exit__(self, *exc_info):
        # In a child that was forked inside the block there is nothing to stop.
        if self._path and _session:
            stop()

    def __call__(self, func):
        if not self._path:
            return func

        @functools.wraps(func)
        def wrapper(*args, **kwargs):
            with self:
                return func(*args, **kwargs)

        return wrapper
