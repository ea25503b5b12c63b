"""The pytest plugin: limits, leaks, the summary, under `fathom run --memory` and in a pytest that was started as usual, and what
it says where nothing can be recorded. The pytest is the one that runs these tests, lent to the other Pythons: it is Python
code alone."""

import functools
import importlib.util
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import recordings
from conftest import PACKAGE
from launch import FATHOM, own_run_folders  # noqa: F401 (a fixture)

HEAD = """
import threading
import pytest
MB = 1 << 20
kept = []
def load(size):
    return bytes(size)
"""


def runner(python, tmp_path):
    """A function that runs tests which are given as text; (exit status, output)."""
    lent = tmp_path / "lent"
    lent.mkdir()
    for name in ("pytest", "_pytest", "pluggy", "iniconfig", "packaging", "pygments", "py"):
        found = importlib.util.find_spec(name)
        if found:
            origin = Path(found.origin)
            origin = origin.parent if origin.name == "__init__.py" else origin
            (lent / origin.name).symlink_to(origin)

    def call(code, *options, recorded=True, cache=False, **settings):
        (tmp_path / "test_it.py").write_text(HEAD + textwrap.dedent(code))
        call.output = tmp_path / "out.fathom"
        words = ["-m", "pytest", "-q", *([] if cache else ["-p", "no:cacheprovider"]), *options, "test_it.py"]
        run = [FATHOM, "run", "-q", "-f", "-o", call.output, "--python", python, "--memory"] if recorded else [python]
        done = subprocess.run([*run, *words], cwd=tmp_path, capture_output=True, text=True, timeout=300,
                              env=dict(os.environ, PYTHONPATH=f"{PACKAGE}:{lent}", PYTEST_ADDOPTS="", **settings))
        return done.returncode, done.stdout

    return call


@pytest.fixture
def tests(tmp_path):
    return runner(sys.executable, tmp_path)


@pytest.fixture(params=["run", "plain"])
def both(request, tests):
    """The same under `fathom run --memory`, and without."""
    return functools.partial(tests, recorded=request.param == "run")


def counts(output):
    return {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|skipped|error)", output.splitlines()[-1])}


def test_limit_memory(both):
    status, output = both("""
        @pytest.mark.limit_memory("20 MB")
        def test_below():
            load(19 * MB)
            load(19 * MB)
        @pytest.mark.limit_memory("20 MB")
        def test_above():
            a = load(15 * MB)
            b = load(5 * MB)
        @pytest.mark.limit_memory("20 MiB")
        def test_fixture_is_not_in_it(large):
            large.clear()
            load(10 * MB)
        @pytest.fixture
        def large():
            return [load(40 * MB)]
        """)
    assert status == 1 and counts(output) == {"passed": 2, "failed": 1}
    # A few hundred bytes more: as many digits as it takes to see that.
    assert re.search(r"the test is limited to 20 MiB of memory, and had 20\.00\d+ MiB at its peak", output), output
    lines = output.splitlines()
    first = next(i for i, line in enumerate(lines) if "15 MiB  load" in line)
    assert lines[first].endswith("test_it.py:7") and "test_above" in lines[first + 1] and lines[first + 1].endswith(":15")
    assert "5 MiB  load" in lines[first + 2] and "pytest_plugin.py" not in output


EVERY = """
        def test_large():
            load(50 * MB)
        @pytest.mark.limit_memory("5 MB")
        def test_small():
            load(7 * MB)
        @pytest.mark.limit_memory("5 MB")
        def test_below():
            load(4 * MB)
        @pytest.mark.limit_leaks("1 MB")
        def test_leaks():
            kept.append(load(3 * MB))
        """


def test_on_every_python(python, tmp_path):
    tests = runner(python, tmp_path)
    status, output = tests(EVERY, "--fathom-memory")
    assert status == 1 and counts(output) == {"passed": 2, "failed": 2}
    assert "had 7 MiB at its peak" in output and re.search(r"3 MiB  load  .*:7\n +test_leaks  .*:19", output)
    assert recordings.report(tests.output, "--memory")["functions"][0]["peak_bytes"] == (50 << 20) + 33


def test_an_earlier_peak_hides_nothing(tests):
    """Each test has its own peak; the process has the highest of all, with its line."""
    status, output = tests("""
        def test_large():
            load(50 * MB)
        @pytest.mark.limit_memory("5 MB")
        def test_small():
            load(7 * MB)
        """, "--fathom-memory")
    assert counts(output) == {"passed": 1, "failed": 1} and "had 7 MiB at its peak" in output
    assert re.search(r"50 MiB  test_it.py::test_large\n +7 MiB  test_it.py::test_small", output)
    rows = recordings.report(tests.output, "--memory")["functions"]
    assert rows[0]["name"] == "load" and rows[0]["peak_bytes"] == (50 << 20) + 33
    regions = {row["name"]: row for row in recordings.report(tests.output, "--regions")["regions"]}
    assert regions["test_it.py::test_large"]["peak_bytes"] == pytest.approx(50 << 20, abs=20_000)
    assert regions["test_it.py::test_small"]["peak_bytes"] == pytest.approx(7 << 20, abs=20_000)


NOT_SEEN = "what extensions take from malloc by themselves is not in these numbers"


def test_plain_pytest_on_every_python(python, tmp_path):
    """A recording begins when the tests are collected, and nothing of it stays."""
    stores = tmp_path / "stores"
    stores.mkdir()
    status, output = runner(python, tmp_path)(EVERY + """
        def test_in_a_folder():
            import os
            assert len(os.listdir(os.environ["FATHOM_TMPDIR"])) == 1
        @pytest.mark.limit_memory("20 MB", current_thread_only=True)
        def test_own_is_the_lower():
            thread = threading.Thread(target=load, args=(30 * MB,))
            thread.start()
            thread.join()
            load(19 * MB)
        @pytest.mark.limit_memory("18 MB", current_thread_only=True)
        def test_own_is_too_high():
            load(19 * MB)
        """, "--fathom-memory", "--fathom-most", "7", recorded=False, FATHOM_TMPDIR=str(stores))
    assert status == 1 and counts(output) == {"passed": 4, "failed": 3}, output
    assert "limited to 5 MiB of memory, and had 7 MiB at its peak" in output
    assert "limited to 18 MiB of memory, and had 19 MiB at its peak" in output
    assert re.search(r"7 MiB  load  .*:7\n +test_small  .*:13\n", output)
    assert re.search(r"3 MiB  load  .*:7\n +test_leaks  .*:19", output)
    listed = re.findall(r"^ +(\d+ MiB)  test_it.py::(\w+)$", output, re.M)
    assert listed == [("50 MiB", "test_large"), ("30 MiB", "test_own_is_the_lower"), ("19 MiB", "test_own_is_too_high"),
                      ("7 MiB", "test_small"), ("4 MiB", "test_below"), ("3 MiB", "test_leaks")]
    assert output.count(NOT_SEEN) == 1 and os.listdir(stores) == []


def test_plain_pytest_is_exact(python, tmp_path):
    """To the byte, with what calling the test needs, which is less than a page and the same each time."""
    sizes = [5_000_000, 1_000_000, 1_000_001, 3_000_000, 2_000_000]
    (tmp_path / "conftest.py").write_text("def pytest_runtest_logreport(report):\n    if report.when == 'call':\n"
                                          "        print('\\npeak', report.fathom_peak)\n")
    status, output = runner(python, tmp_path)(f"""
        @pytest.mark.parametrize("size", {sizes})
        @pytest.mark.limit_memory("10 MB")
        def test_it(size):
            load(size)
        """, "-s", recorded=False)
    peaks = [int(peak) for peak in re.findall(r"^peak (\d+)$", output, re.M)]
    more = [peak - 33 - size for peak, size in zip(peaks, sizes)]
    assert status == 0 and len(more) == len(sizes) and all(0 <= size < 4096 for size in more), more
    assert len(set(more[1:])) == 1, more


def test_without_need_nothing_is_recorded(tests, tmp_path):
    code = """
        def test_it():
            import fathom, os
            assert not fathom.memory_snapshot() and os.listdir(os.environ["FATHOM_TMPDIR"]) == []
        """
    stores = tmp_path / "stores"
    stores.mkdir()
    status, output = tests(code, recorded=False, FATHOM_TMPDIR=str(stores))
    assert status == 0 and counts(output) == {"passed": 1} and NOT_SEEN not in output, output
    status, output = tests("""
        @pytest.mark.limit_memory("1 MB")
        def test_deselected():
            load(5 * MB)
        """ + code, "-k", "not deselected", recorded=False, FATHOM_TMPDIR=str(stores))
    assert status == 0 and "1 passed" in output, output


def test_forks_and_blocks_in_plain_tests(tests, tmp_path):
    """A child that is alive at the end, and a test that records by itself, as under `fathom run`."""
    stores = tmp_path / "stores"
    stores.mkdir()
    status, output = tests("""
        import fathom, os, time
        @pytest.mark.limit_memory("5 MB")
        def test_forks():
            child = os.fork()
            if not child:
                load(30 * MB)
                os._exit(3)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 3
            if not os.fork():
                os.close(1), os.close(2)
                for _ in range(20):
                    time.sleep(.1)
                    load(1000)
                os._exit(0)
        @pytest.mark.limit_memory("5 MB")
        def test_block():
            with fathom.memory() as m:
                load(7 * MB)
            assert m.snapshot
        """, recorded=False, FATHOM_TMPDIR=str(stores))
    assert counts(output) == {"passed": 1, "failed": 1} and "had 7 MiB at its peak" in output
    assert os.listdir(stores) == []


def test_threads(both):
    status, output = both("""
        def in_another():
            thread = threading.Thread(target=load, args=(30 * MB,))
            thread.start()
            thread.join()
        @pytest.mark.limit_memory("20 MB")
        def test_all():
            in_another()
        @pytest.mark.limit_memory("20 MB", current_thread_only=True)
        def test_own():
            in_another()
        """)
    assert counts(output) == {"passed": 1, "failed": 1} and "had 30 MiB at its peak" in output


def test_limit_leaks(both):
    status, output = both("""
        @pytest.mark.limit_leaks("1 MB")
        def test_leaks():
            kept.append(load(3 * MB))
        @pytest.mark.limit_leaks("1 MB")
        def test_each_place_has_less():
            kept.append(load(MB - 100))
            kept.append(load(MB - 100))
        @pytest.mark.limit_leaks("1 MB", filter_fn=lambda stack: stack.frames[0].function != "load")
        def test_filtered():
            kept.append(load(3 * MB))
        @pytest.mark.limit_leaks("1 MB")
        @pytest.mark.limit_memory("4 MB")
        def test_needs_but_frees():
            load(3 * MB)
            cycle = [load(2 * MB)]
            cycle.append(cycle)
        """)
    assert counts(output) == {"passed": 3, "failed": 1}
    assert "may leave 1 MiB behind in one place, and left more in 1" in output
    assert re.search(r"3 MiB  load  .*:7\n +test_leaks  .*:11", output)


def test_a_test_that_fails_by_itself_fails_for_that(both):
    status, output = both("""
        @pytest.mark.limit_memory("1 MB")
        def test_fails():
            a = load(5 * MB)
            assert a == 3, "on its own"
        """)
    assert counts(output) == {"failed": 1} and "on its own" in output and "is limited" not in output


@pytest.mark.parametrize("marker", ['limit_memory("much")', "limit_memory()", 'limit_memory("1 MB", thread=1)', "limit_leaks(3)"])
def test_wrong_markers(tests, marker):
    status, output = tests(f"""
        @pytest.mark.{marker}
        def test_it():
            pass
        """)
    assert status == 1 and counts(output) == {"error": 1}
    assert "is no size" in output or "takes a size" in output


def test_nothing_passes_unmeasured(tests, tmp_path):
    """Where no recording can begin."""
    nowhere = dict(recorded=False, FATHOM_TMPDIR=str(tmp_path / "absent"))
    code = """
        @pytest.mark.limit_memory("1 MB")
        def test_limited():
            load(5 * MB)
        def test_other():
            pass
        """
    status, output = tests(code, "-rs", **nowhere)
    assert counts(output) == {"passed": 1, "skipped": 1}
    assert "fathom run --memory -m pytest" in output and "No such file or directory" in output
    status, output = tests(code, "--fathom-unmeasured=fail", **nowhere)
    assert status == 1 and counts(output) == {"passed": 1, "error": 1}
    status, output = tests(code, "--fathom-unmeasured=run", "--fathom-memory", **nowhere)
    assert status == 0 and "the memory of 1 tests with limits was not measured" in output
    assert "no memory was measured" in output


def test_fail_on_increase(both):
    code = """
        def test_grows():
            load({} * MB)
        """
    for megabytes, expected in ((5, "passed"), (5, "passed"), (6, "failed"), (6, "failed"), (4, "passed"), (5, "failed")):
        status, output = both(code.format(megabytes), "--fathom-fail-on-increase", cache=True)
        assert counts(output) == {expected: 1}, output
    assert "had 5 MiB at its peak, and 4 MiB the last time" in output


@pytest.mark.skipif(not importlib.util.find_spec("xdist"), reason="pytest-xdist is not installed")
def test_xdist(both):
    status, output = both("""
        @pytest.mark.parametrize("n", range(4))
        @pytest.mark.limit_memory("8 MB")
        def test_it(n):
            load((5 + n) * MB)
        """, "-n", "2", "--fathom-memory")
    assert counts(output) == {"passed": 3, "failed": 1} and re.search(r"limited to 8 MiB of memory, and had 8\.00\d+ MiB at its peak", output)
    assert re.search(r"8 MiB  .*\[3\]\n +7 MiB  .*\[2\]\n +6 MiB  .*\[1\]\n +5 MiB  .*\[0\]", output)


def test_markers_are_known(tests):
    status, output = tests("def test_it(): pass", "--markers", recorded=False)
    assert "limit_memory(size, current_thread_only=False)" in output and "limit_leaks(size, filter_fn=None)" in output
