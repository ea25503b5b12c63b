"""When memory is short, a program that profiles itself gets an exception and goes on."""

import json
import os
import textwrap

import pytest

from conftest import PACKAGE
from launch import FATHOM, plain

CALLS = 2**12 - 1  # a binary tree of calls, 12 levels

# For every limit a child that tries everything, checks that nothing is left behind, and then, with
# memory again, gets the right answer. How each attempt ended is counted.
PROGRAM = textwrap.dedent("""
    import collections, json, os, pstats, resource, sys
    import fathom

    exec("".join(f"def f{i}(d):\\n  if d: f{(i * 7 + 1) % 397}(d - 1); f{(i * 3 + 2) % 397}(d - 1)\\n"
                 for i in range(397)))
    profile = fathom.Profile()
    profile.enable()
    f0(11)
    profile.disable()
    loaded, step, last, folder = sys.argv[1] == "loaded", int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    paths = [os.path.join(folder, name) for name in ("o.prof", "o.fathom", "o.pb.gz")]

    def descriptors():
        return sorted(os.listdir("/proc/self/fd"))

    def attempt():
        for path in paths:
            yield lambda: profile.dump_stats(path)
        yield profile.getstats
        yield profile.create_stats

    def calls():
        return sum(row[1] for key, row in pstats.Stats(paths[0]).stats.items()
                   if key[0] == "<string>" and key[2] != "<module>")

    def child(extra, told):
        before = descriptors()
        size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (size + extra, resource.RLIM_INFINITY))
        endings = []
        for what in attempt():
            try:
                what()
                endings.append("done")
            except (MemoryError, ImportError) as e:
                endings.append(type(e).__name__)
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        assert descriptors() == before
        names = set(os.path.join(folder, name) for name in os.listdir(folder))
        assert names <= set(paths), names
        profile.dump_stats(paths[0])
        os.write(told, json.dumps([calls(), endings]).encode())

    if loaded:
        profile.dump_stats(paths[0])
    results = collections.Counter()
    for extra in range(0, last, step):
        ours, theirs = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                child(extra, theirs)
            except BaseException as e:
                import traceback
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        os.close(theirs)
        status = os.waitpid(pid, 0)[1]
        found, endings = json.loads(os.read(ours, 4096) or b"[0, []]")
        os.close(ours)
        assert (status, found) == (0, CALLS), (extra, status, found)
        results.update(endings)
    print(json.dumps(results))
""").replace("CALLS", str(CALLS))


@pytest.mark.parametrize("library", ["loaded", "not loaded"])
def test_results_at_every_limit(python, library, tmp_path):
    script, folder = tmp_path / "limits.py", tmp_path / "out"
    script.write_text(PROGRAM)
    folder.mkdir()
    done = plain(python, script, library, 32768, 6_000_000, folder,
                 env={**os.environ, "PYTHONPATH": PACKAGE})
    assert done.returncode == 0, done.stderr
    # Some limits were too small, some were not, and some were in between: how many depends on what the C library
    # had left, in which much fits if it is much.
    results = json.loads(done.stdout)
    assert results["done"] > 50 and results["MemoryError"] > 0
    assert results["MemoryError"] + results.get("ImportError", 0) > 5
    assert set(results) <= {"done", "MemoryError", "ImportError"}


def test_the_command_ends_with_a_sentence(tmp_path):
    """In the command there is nothing better to do than to say so."""
    command = f"ulimit -v $0; exec '{FATHOM}' run --calls --force -o {tmp_path}/o.fathom -c pass"
    statuses = set()
    for kilobytes in range(8_000, 60_000, 4_000):
        done = plain("sh", "-c", command, kilobytes)
        assert 0 <= done.returncode < 128, (kilobytes, done.returncode, done.stderr)
        assert done.returncode == 0 or done.stderr
        statuses.add(done.returncode)
    assert 0 in statuses and len(statuses) > 1
