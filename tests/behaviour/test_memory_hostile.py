"""Programs that are hard on malloc, plain and under `fathom run --memory`: they print the same and end the same, the recording can be
read, and a line whose blocks are known has them, to the byte."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import time

import pytest

import launch
import pythons
import recordings
from launch import no_core_files, own_run_folders  # noqa: F401 (fixtures)

PROGRAM = launch.program("memory_hostile.py")
KNOWN_LINE, CLONE_LINE = (next(number for number, line in enumerate(open(PROGRAM), 1) if line.endswith(f"# {mark}\n"))
                          for mark in ("known", "clone"))
KNOWN_BYTES, KNOWN_BLOCKS = 40 * (50_000 + 33), 40
WAYS = ["nothing", "vfork", "spawn", "clone", "static", "deepbind", "forks_among_threads", "python_forks_among_threads",
        "thread_ends", "signals", "python_signals", "at_exit", "other_allocator", "tracemalloc", "limits",
        "double_free", "wrong_free"]
ALLOCATORS = {"jemalloc": "libjemalloc.so.2", "mimalloc": "libmimalloc.so.2.0", "tcmalloc": "libtcmalloc_minimal.so.4"}


@pytest.fixture(scope="session")
def compiled(tmp_path_factory):
    """The library, and the program that is linked statically."""
    folder, source = tmp_path_factory.mktemp("hostile"), launch.program("hostile.c")
    subprocess.run(["cc", "-O1", "-w", "-shared", "-fPIC", source, "-o", folder / "hostile.so", "-lpthread", "-ldl"],
                   check=True)
    subprocess.run(["cc", "-O1", "-w", "-static", "-DPROGRAM", source, "-o", folder / "static", "-lpthread"],
                   check=True, stderr=subprocess.DEVNULL)
    return str(folder / "hostile.so"), str(folder / "static")


def at_line(output, line):
    """What a line has: bytes and blocks that were allocated, and the bytes at the peak."""
    rows = [row for row in recordings.report(output, "--memory", "--at", "all")["functions"]
            if (row["file"], row["line"]) == (PROGRAM, line)]
    return [sum(row[key] for row in rows) for key in ("allocated_bytes", "blocks", "peak_bytes")]


def known(output):
    return at_line(output, KNOWN_LINE)


def warnings_gone(text):
    """A Python says so when a process with threads forks; with another address each time what glibc says of a block."""
    return re.sub(r"\S+: DeprecationWarning: .*fork.*\n.*\n", "", text)


def compare(python, tmp_path, words, mode="--memory", **options):
    output = tmp_path / "out.fathom"
    plain = launch.plain(python, PROGRAM, *words, **options)
    under = launch.run(PROGRAM, *words, python=python, output=output, collectors=(mode,), **options)
    assert (under.returncode, under.stdout) == (plain.returncode, plain.stdout), under.stderr
    assert warnings_gone(under.stderr) == warnings_gone(plain.stderr)
    return output, plain


@pytest.mark.parametrize("way", WAYS)
def test_it_runs_as_it_does_alone(python, way, compiled, tmp_path):
    output, plain = compare(python, tmp_path, [way, *compiled])
    assert plain.returncode == (-signal.SIGABRT if way.endswith("_free") else 6)
    allocated, blocks, peak = known(output)
    assert (allocated, blocks) == (KNOWN_BYTES, KNOWN_BLOCKS)
    assert peak == KNOWN_BYTES or way == "tracemalloc"
    if way == "clone":  # the child, of which nobody heard, counts nothing in its parent's store
        assert at_line(output, CLONE_LINE)[1] < 500


def test_more_contexts_than_were_reserved(python, compiled, tmp_path):
    output, plain = compare(python, tmp_path, ["contexts", *compiled])
    report = recordings.report(output, "--memory", "--at", "all")
    blocks = sum(row["blocks"] for row in report["functions"] if row["file"] == "<string>")
    calls = 2 ** 18 - 1 + 2 ** 4 - 1  # and those of the child
    assert plain.stdout.startswith(f"{2 ** 18 - 1}\n")
    assert calls <= blocks < calls + 1000 and not report["notes"]  # the list grows
    assert known(output)[:2] == [KNOWN_BYTES, KNOWN_BLOCKS]


@pytest.mark.parametrize("way", ["forks_among_threads", "signals", "thread_ends", "deepbind", "clone"])
def test_it_runs_as_it_does_alone_with_malloc_only(python, way, compiled, tmp_path):
    output, _ = compare(python, tmp_path, [way, *compiled], "--memory=malloc")
    assert known(output)[:2] == [KNOWN_BYTES, KNOWN_BLOCKS]


@pytest.mark.parametrize("allocator", ALLOCATORS)
@pytest.mark.parametrize("way", ["nothing", "forks_among_threads", "at_exit"])
def test_with_another_malloc(python, allocator, way, compiled, tmp_path):
    folder = "/usr/lib/x86_64-linux-gnu"
    library = os.path.join(folder, ALLOCATORS[allocator])
    if not os.path.exists(library):
        pytest.skip(f"{library} is not here (tools/setup test)")
    output, _ = compare(python, tmp_path, [way, *compiled], env={**os.environ, "LD_PRELOAD": library})
    assert known(output)[:2] == [KNOWN_BYTES, KNOWN_BLOCKS]


@pytest.mark.parametrize("way", ["debug", "malloc", "malloc_debug", "pymalloc", "pymalloc_debug", "mimalloc"])
def test_with_another_allocator_of_python(python, way, compiled, tmp_path):
    env = {**os.environ, "PYTHONMALLOC": way}
    if launch.plain(python, "-c", "", env=env).returncode:
        pytest.skip(f"this Python has no {way}")
    output, _ = compare(python, tmp_path, ["at_exit", *compiled], env=env)
    assert known(output)[:2] == [KNOWN_BYTES, KNOWN_BLOCKS]


def test_a_full_disk(python, compiled, tmp_path):
    """Of the run's folder: what is lost is counted, and nobody hears of it."""
    small = tmp_path / "small"
    small.mkdir()
    for size in ("100k", "300k", "500k"):
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", small], capture_output=True)
        if mounted.returncode:
            pytest.skip("cannot mount a small file system here")
        try:
            env = {**os.environ, "FATHOM_TMPDIR": str(small)}
            plain = launch.plain(python, PROGRAM, "thread_ends", *compiled)
            under = launch.run(PROGRAM, "thread_ends", *compiled, python=python, output=tmp_path / "out.fathom",
                               collectors=("--memory", "--force"), env=env)
            assert (under.returncode, under.stdout) == (plain.returncode, plain.stdout), (size, under.stderr)
        finally:
            subprocess.run(["umount", small], check=True)


BUSY = """
import os, threading, sys
one = b"1"
def work(n):
    kept = [one * n for _ in range(50)]
    return {i: (i, [i]) for i in range(n % 100)}, kept
threads = [threading.Thread(target=lambda: [work(i) for i in range(10**9)], daemon=True) for _ in range(2)]
for thread in threads: thread.start()
while True:
    pid = os.fork()
    if pid == 0:
        work(500)
        os._exit(0)
    os.waitpid(pid, 0)
    exec("def made(): return bytearray(600)")
    made()
"""


@pytest.mark.parametrize("number", range(4))
def test_killed_at_any_moment(number, tmp_path):
    """Whatever the instant was, the recording can be read, and what it says adds up."""
    chance = random.Random(number)
    versions = list(pythons.interpreters().values())
    script = tmp_path / "busy.py"
    script.write_text(BUSY)
    for attempt in range(4):
        output = tmp_path / f"{attempt}.fathom"
        python = versions[(number * 4 + attempt) % len(versions)]
        with launch.start(launch.FATHOM, "run", "--memory", "--python", python, "-q", "-o", output, script,
                          start_new_session=True) as process:
            time.sleep(chance.uniform(0.02, 0.6))
            killed = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True).stdout.split()
            for pid in killed:
                os.kill(int(pid), signal.SIGKILL)
            process.communicate(timeout=launch.TIMEOUT)
            if killed:
                assert process.returncode == -signal.SIGKILL or process.returncode == 137
        report = recordings.report(output, "--memory", "--at", "peak")
        had = sum(row["peak_bytes"] for row in report["functions"]) + report["memory"]["outside"]["peak_bytes"]
        assert had == pytest.approx(report["memory"]["peak_bytes"], abs=4096)
