"""``memory``: the memory of a block of code, in a program that was not started by ``fathom run``.

Python's allocators are hooked when the block begins; what was allocated before is not known. The
hooks stay when it ends, and pass every call on from then on.
"""

import contextlib
import os
import shutil
import tempfile

from fathom._memory_snapshot import memory_snapshot

try:
    from fathom import _agent
except ImportError:  # no agent for this Python
    _agent = None

_IN_MEMORY = "/dev/shm"
_FREE_BYTES = 64 << 20  # as the command has it


def _make_folder():
    """Where a run would have its stores, by the name that `fathom merge` and `doctor` know."""
    asked = os.environ.get("FATHOM_TMPDIR", "").partition(":")[0]
    parent = asked or tempfile.gettempdir()
    if not asked:
        try:
            free = os.statvfs(_IN_MEMORY)
            if free.f_bavail * free.f_frsize >= _FREE_BYTES:
                parent = _IN_MEMORY
        except OSError:
            pass
    return tempfile.mkdtemp(prefix="fathom-", dir=os.path.realpath(parent))


def _remove_folder(folder):
    for _ in range(3):  # a child that was forked meanwhile may have put a store there
        shutil.rmtree(folder, ignore_errors=True)
        if not os.path.lexists(folder):
            break


def begin():
    """Record from now on; the folder with the stores, for ``end``. None: it is recorded already."""
    if _agent is None:
        raise RuntimeError("fathom: memory is recorded in CPython 3.11 to 3.15 alone")
    folder, begun = _make_folder(), False
    try:
        begun = _agent.memory_begin(folder)
    finally:
        if not begun:
            _remove_folder(folder)
    return folder if begun else None


def end(folder, output=None, overwrite=False):
    """Record no longer; write what was recorded."""
    _agent.memory_over()
    try:
        if output is not None:
            _agent.memory_save(folder, output, overwrite)
    finally:
        _remove_folder(folder)


class memory(contextlib.ContextDecorator):
    """Record the memory of a block, or of a function: ``with fathom.memory("out.fathom"): …``.

    ``output`` is the recording that is written when the block ends, also by an exception; with None
    nothing is written. An existing file is a FileExistsError before the block runs, unless
    ``overwrite``. ``snapshot`` is what was alive at the end of the block of what was allocated in it, as
    ``fathom.memory_snapshot()`` says it, which also works inside.

    Under ``fathom run --memory`` all memory is recorded anyway, and the block records nothing of its
    own. Two at a time are a RuntimeError.
    """

    _running = None  # the process that has one

    def __init__(self, output=None, *, overwrite=False):
        self._output, self._overwrite = output, overwrite
        self._folder = None
        self.snapshot = None

    def _recreate_cm(self):
        return type(self)(self._output, overwrite=self._overwrite)

    def __enter__(self):
        if memory._running == os.getpid():
            raise RuntimeError("fathom: memory is recorded already, by fathom.memory()")
        if self._output is not None and not self._overwrite and os.path.lexists(self._output):
            raise FileExistsError(f"fathom: {os.fspath(self._output)} exists and is not overwritten")
        self._folder, self._process = begin(), os.getpid()
        if self._folder:
            memory._running = self._process
        return self

    def __exit__(self, *exc_info):
        if self._folder and self._process != os.getpid():
            return  # a child that was forked inside: it goes on as its parent's
        self.snapshot = memory_snapshot()
        if not self._folder:
            return
        folder, self._folder = self._folder, None
        memory._running = None
        end(folder, self._output, self._overwrite)
