"""``memory_usage``: the memory of this process, of another one or of a call, over time.

Arguments and results are memory_profiler's. The numbers are read from /proc. While a function is
measured that is done by a process of its own, which this file is the program of, too: nothing of it
runs in the process that is measured. It is no child of that one (a shell starts it and ends at once),
so it is not among the children whose memory is added up, and ``os.wait()`` never meets it.
"""

import os
import select
import shutil
import socket
import struct
import subprocess
import sys
import time
import warnings

_MIB = 1 << 20
_PAGE = os.sysconf("SC_PAGESIZE")
_BACKENDS = ("psutil", "psutil_pss", "psutil_uss", "posix", "tracemalloc")
_ENOUGH = 4  # measurements; with no more of them a call is measured again, ten times as often
_FINEST = 1e-6
_RECORD = struct.Struct("=dd")  # MiB, seconds since the epoch
_START_SECONDS = 60


# ---- looking


def _resident(pid):
    with open(f"/proc/{pid}/statm", "rb") as file:
        return int(file.read().split()[1]) * _PAGE


def _rolled_up(pid, *keys):
    with open(f"/proc/{pid}/smaps_rollup", "rb") as file:
        lines = [line.split() for line in file.read().splitlines()[1:]]
    return sum(int(line[1]) * 1024 for line in lines if line[0].startswith(keys))


_LOOKS = {
    "psutil": _resident,
    "posix": _resident,
    "psutil_pss": lambda pid: _rolled_up(pid, b"Pss:"),
    "psutil_uss": lambda pid: _rolled_up(pid, b"Private_"),
}


def _children(pid):
    """Every process below ``pid``."""
    found, new = [], [pid]
    while new:
        at = new.pop()
        try:
            threads = os.listdir(f"/proc/{at}/task")
        except OSError:
            continue
        for thread in threads:
            try:
                with open(f"/proc/{at}/task/{thread}/children", "rb") as file:
                    below = [int(word) for word in file.read().split()]
            except OSError:
                continue
            found += below
            new += below
    return found


def _children_memory(pid, look):
    for child in _children(pid):
        try:
            yield child, look(child) / _MIB
        except (OSError, ValueError, IndexError):
            pass  # it ended meanwhile, or is another user's


def _measure(pid, look, include_children):
    try:
        memory = look(pid) / _MIB
    except FileNotFoundError:
        raise ProcessLookupError(f"there is no process {pid}") from None
    if include_children:
        memory += sum(of_child for _, of_child in _children_memory(pid, look))
    return memory


# ---- the process that looks at another one while that runs a call


def _watch(fd, pid, interval, backend, include_children, max_usage):
    """Measure until told to stop, and once more; then answer with all of it."""
    connection = socket.socket(fileno=fd)
    look, records, count, stop = _LOOKS[backend], [], 0, False
    connection.sendall(b"!")
    while True:
        try:
            record = _measure(pid, look, include_children), time.time()
        except (OSError, ValueError, IndexError):
            return  # the process is gone
        count += 1
        if max_usage and records:
            records[0] = max(records[0], record)
        else:
            records.append(record)
        if stop:
            break
        stop = bool(select.select([connection], [], [], interval)[0])
        if stop and not connection.recv(1):
            return  # nobody waits for an answer: the call raised
    connection.sendall(struct.pack("=qq", count, len(records)))
    connection.sendall(b"".join(_RECORD.pack(*record) for record in records))


class _Watcher:
    """Starts such a process; ``finish`` ends it and gives what it measured."""

    def __init__(self, interval, backend, include_children, max_usage):
        self._socket, far = socket.socketpair()
        python = sys.executable or shutil.which("python3") or "python3"
        words = [python, "-I", "-S", os.path.abspath(__file__), far.fileno(), os.getpid(),
                 repr(float(interval)), backend, int(include_children), int(max_usage)]
        with far:
            subprocess.run(["/bin/sh", "-c", '"$@" &', "sh", *map(str, words)], check=True,
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           pass_fds=[far.fileno()], start_new_session=True)
        self._socket.settimeout(_START_SECONDS)
        self._receive(1)
        self._socket.settimeout(None)

    def _receive(self, size):
        parts = bytearray()
        while len(parts) < size:
            part = self._socket.recv(size - len(parts))
            if not part:
                raise RuntimeError("the process that measures memory ended unexpectedly")
            parts += part
        return bytes(parts)

    def finish(self):
        """How often it measured, and (MiB, time) of each, or of the highest."""
        self._socket.sendall(b"!")
        count, length = struct.unpack("=qq", self._receive(16))
        return count, list(_RECORD.iter_unpack(self._receive(length * _RECORD.size)))

    def close(self):
        self._socket.close()


# ---- what a program calls


def _choose_backend(backend):
    if backend is None:
        return "psutil"
    if backend == "tracemalloc":
        raise RuntimeError("There is no access to source file of the profiled function")
    if backend not in _BACKENDS:
        warnings.warn(f"{backend} can not be used, psutil used instead", stacklevel=3)
        return "psutil"
    return backend


def _as_call(proc):
    """(function, arguments, keywords) if it is one; otherwise None."""
    if callable(proc):
        return proc, (), {}
    if not isinstance(proc, (list, tuple)):
        return None
    if not 1 <= len(proc) <= 3:
        raise ValueError("a call is a function, its arguments and its keywords")
    return (*proc, *((), {})[len(proc) - 1:])


def memory_usage(proc=-1, interval=.1, timeout=None, timestamps=False, include_children=False,
                 multiprocess=False, max_usage=False, retval=False, stream=None, backend=None,
                 max_iterations=None):
    """The memory of a process or of a call, in MiB, measured every ``interval`` seconds.

    ``proc`` is the number of a process (-1: this one), a ``subprocess.Popen``, a function, or a tuple
    ``(function, args, kwargs)``. Of a call, the first value is from before it and the last from after
    it; one too short for five measurements is made again with a tenth of the interval, as
    memory_profiler does (``max_iterations=1`` prevents that).

    timeout          stop after so many seconds; of a number of a process one value without it
    timestamps       each value is ``(MiB, seconds since the epoch)``
    include_children processes below are added
    multiprocess     each value is a list: the process, then each one below it
    max_usage        only the highest value
    retval           of a call: ``(values, what it returned)``
    stream           write ``MEM`` (and ``CHLD``) lines of an mprofile_*.dat there; the result is None
    backend          "psutil" (the default: resident memory), "psutil_pss", "psutil_uss"
    """
    backend = _choose_backend(backend)
    timestamps = timestamps or stream is not None
    call = _as_call(proc)
    if isinstance(proc, str):
        proc = int(proc)
    limit = float("inf")
    if timeout is not None:
        limit = int(round(timeout / interval))
    elif isinstance(proc, int):
        limit = 1
    elif max_iterations is not None:
        limit = max_iterations
    if call:
        result = _of_call(call, interval, limit, timestamps, include_children, max_usage, backend,
                          stream)
        result = result if retval else result[0]
    else:
        result = _of_process(proc, interval, limit, timestamps, include_children, multiprocess,
                             max_usage, backend, stream)
    return None if stream is not None else result


def _of_call(call, interval, limit, timestamps, include_children, max_usage, backend, stream):
    function, args, keywords = call
    rounds = 0
    while True:
        rounds += 1
        first = _measure(os.getpid(), _LOOKS[backend], include_children), time.time()
        watcher = _Watcher(interval, backend, include_children, max_usage)
        try:
            returned = function(*args, **keywords)
            count, records = watcher.finish()
        finally:
            watcher.close()
        if count + 1 > _ENOUGH or rounds == limit or interval < _FINEST:
            break
        interval /= 10.
    records.insert(0, first)
    if stream is not None:
        stream.writelines(f"MEM {memory:.6f} {at:.4f}\n" for memory, at in records)
    values = records if timestamps else [memory for memory, _ in records]
    return max(values) if max_usage else values, returned


def _of_process(proc, interval, limit, timestamps, include_children, multiprocess, max_usage,
                backend, stream):
    started = isinstance(proc, subprocess.Popen)
    pid = proc.pid if started else os.getpid() if proc == -1 else proc
    look, values, highest, count = _LOOKS[backend], [], -1, 0
    while True:
        count += 1
        memory = _measure(pid, look, include_children)
        if max_usage:
            highest = max(highest, memory)
        elif stream is not None:
            stream.write(f"MEM {memory:.6f} {time.time():.4f}\n")
            if multiprocess:
                for child, of_child in _children_memory(pid, look):
                    stream.write(f"CHLD {child} {of_child:.6f} {time.time():.4f}\n")
        else:
            value = (memory, time.time()) if timestamps else memory
            values.append([value, *(m for _, m in _children_memory(pid, look))] if multiprocess
                          else value)
        if count >= limit:
            break
        time.sleep(interval)
        if stream is not None and count % 50 == 0:
            stream.flush()
        if started and proc.poll() is not None:
            break
    return highest if max_usage else values


if __name__ == "__main__":
    _watch(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4],
           sys.argv[5] == "1", sys.argv[6] == "1")
