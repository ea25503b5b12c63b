"""The table of memory_profiler, of what a ``LineProfiler`` recorded: for ``%mprun``.

The numbers are of the heap, exact and by visit, where memory_profiler looks at resident memory once per line; so there is a column
more: what a line needed for a while.
"""

import inspect
import json
import linecache
import os
import subprocess
import tempfile

_HEAD = "Line #    Mem usage    Increment  Occurrences   Transient   Line Contents"
_ROW = "{:>6} {:>12} {:>12}  {:>11} {:>11}   {}"


def is_recorded():
    """Is the memory of this process recorded?"""
    from fathom._memory_snapshot import memory_snapshot

    return bool(memory_snapshot())


def memory_table(profiler):
    """The table as text; a function after the other."""
    from fathom._sampling import command

    with tempfile.TemporaryDirectory(prefix="fathom-") as folder:
        path = os.path.join(folder, "lines.fathom")
        profiler.dump_stats(path)
        done = subprocess.run([command(), "report", "--lines", "--json", "-n", "all", path], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return "\n\n".join(_of_function(function) for function in json.loads(done.stdout)["functions"])


def _of_function(function):
    rows = {row["line"]: row for row in function["lines"] if "heap_bytes" in row}
    text = [f"Filename: {function['file']}", "", _HEAD, "=" * len(_HEAD)]
    lines = linecache.getlines(function["file"])
    first = function["line"]
    body = inspect.getblock(lines[first - 1:]) if lines[first - 1:] else []
    last = max([first + len(body) - 1, *rows])
    for number in range(first, last + 1):
        source = lines[number - 1].rstrip("\n") if number <= len(lines) else ""
        row = rows.get(number)
        cells = ("", "", "", "")
        if row:
            cells = (_mib(row["heap_bytes"]), _mib(row["allocated_bytes"] - row["freed_bytes"]), row["hits"],
                     _mib(row["transient_bytes"]))
        text.append(_ROW.format(number, *cells, source).rstrip())
    return "\n".join(text)


def _mib(size):
    return f"{size / 2 ** 20:.1f} MiB"
