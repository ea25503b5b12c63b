"""Memory over time, from outside: `fathom run --rss`, `--memory`, `attach --rss`, seen through the lines of
an mprofile_*.dat and of `fathom plot`."""

from __future__ import annotations

import os
import re
import signal
import statistics
import sys
import textwrap
import time
from pathlib import Path

import pytest

from launch import FATHOM, fathom, outlived, plain, start

MIB = 1 << 20

HOLD = """
import time
time.sleep(.3)
held = b"x" * (50 << 20)
time.sleep(1)
del held
time.sleep(1)
"""


def write(folder: Path, code: str) -> str:
    path = folder / "app.py"
    path.write_text(textwrap.dedent(code))
    return str(path)


def record(folder: Path, *words: str, **options) -> Path:
    output = folder / "out.fathom"
    done = fathom("run", "-q", "-o", str(output), *words, **options)
    assert done.returncode == 0, done
    return output


def curves(recording: Path) -> dict[int, list[float]]:
    """MiB of each process in order of time; 0 is the program."""
    dat = recording.with_suffix(".dat")
    assert fathom("convert", "-f", str(recording), "-o", str(dat)).returncode == 0
    found: dict[int, list[float]] = {}
    for line in dat.read_text().splitlines():
        words = line.split()
        if words[0] == "MEM":
            found.setdefault(0, []).append(float(words[1]))
        elif words[0] == "CHLD":
            found.setdefault(int(words[1]), []).append(float(words[2]))
    return found


def legend(recording: Path, *words: str) -> dict[str, float]:
    """The highest MiB of each line of a plot."""
    done = fathom("plot", *words, str(recording))
    assert done.returncode == 0, done
    units = {"KiB": 1 / 1024, "MiB": 1, "GiB": 1024}
    return {name: float(number) * units[unit] for name, number, unit in
            re.findall(r"^⠤⠤ (.*), peak ([\d.]+) (\wiB) at ", done.stdout.replace("⠄⠄", "⠤⠤"), re.M)}


def test_the_curve_shows_the_step(any_python, tmp_path):
    """50 MiB are held for a second: the curve rises by that, and falls again."""
    out = record(tmp_path, "--rss", any_python, write(tmp_path, HOLD))
    program = curves(out)[0]
    assert len(program) > 20
    high = [value > max(program) - 1 for value in program]
    first, last = high.index(True), len(high) - 1 - high[::-1].index(True)
    assert all(high[first:last + 1]) and 0 < first < last < len(high) - 1
    after = statistics.median(program[last + 1:])  # the last look may be at an interpreter that ends
    assert 50 <= max(program) - after < 53


def test_what_is_allocated(python, tmp_path):
    """The same, of the heap: 50 MiB and what the interpreter itself has."""
    out = record(tmp_path, "--memory", python, write(tmp_path, HOLD))
    found = legend(out)
    assert set(found) == {"resident", "allocated"}
    assert 50 < found["allocated"] < 65
    assert 50 < found["resident"] < 110


def test_children_and_their_sum(tmp_path):
    code = """
    import os, sys, time
    pid = os.fork()
    held = b"x" * ((30 if pid else 70) << 20)
    time.sleep(1)
    if pid:
        os.waitpid(pid, 0)
        print(pid)
    """
    output = tmp_path / "out.fathom"
    done = fathom("run", "-q", "--memory", "-o", str(output), sys.executable, write(tmp_path, code))
    child = int(done.stdout)
    found = curves(output)
    assert set(found) == {0, child}
    assert 30 < max(found[0]) < 60 and 70 < max(found[child]) < 100
    lines = legend(output)
    assert lines["resident, all processes"] > 100 and lines["allocated, all processes"] > 100
    assert lines["resident, all processes"] <= max(found[0]) + max(found[child]) + 1  # of three digits
    alone = legend(output, "--children", "none")
    assert set(alone) == {"resident", "allocated"} and 30 < alone["resident"] < 60


def test_a_program_that_executes_another(tmp_path):
    """One process, two programs: one curve."""
    code = f"""
    import os, sys, time
    if len(sys.argv) == 1:
        held = b"x" * (40 << 20)
        time.sleep(.5)
        os.execv({sys.executable!r}, [{sys.executable!r}, __file__, "again"])
    held = b"x" * (80 << 20)
    time.sleep(.5)
    """
    found = curves(record(tmp_path, "--memory", sys.executable, write(tmp_path, code)))
    assert set(found) == {0}
    assert max(found[0]) > 80


def test_no_python_at_all(tmp_path):
    """30 MB without a newline: tail keeps all of it."""
    output = tmp_path / "out.fathom"
    done = fathom("run", "--rss", "-o", str(output), "sh", "-c",
                  "(head -c 30000000 /dev/zero; sleep 1) | tail | wc -c")
    assert (done.returncode, done.stdout.strip()) == (0, "30000000")
    assert done.stderr.splitlines()[-1] == f"Recorded to {output}; next: fathom plot {output}"
    assert "no Python" not in done.stderr
    found = legend(output)
    assert 30e6 / MIB < found["resident, all processes"] < 60
    assert [name for name, highest in found.items() if "tail" in name and 30e6 / MIB < highest < 40]


def test_shares_of_shared_memory(tmp_path):
    """Two processes with the same 40 MiB: resident twice, its shares once."""
    code = """
    import os, time
    held = b"x" * (40 << 20)
    pid = os.fork()
    time.sleep(2)
    if pid:
        os.waitpid(pid, 0)
    """
    found = legend(record(tmp_path, "--pss", sys.executable, write(tmp_path, code)))
    assert found["resident, all processes"] > 80
    assert 40 < found["resident, shared memory once"] < 75


def test_attach(any_python, tmp_path):
    with start(any_python, "-c", "held = b'x' * (50 << 20); print(flush=True); input()",
               stdin=-1) as program:
        program.stdout.readline()
        out = tmp_path / "out.fathom"
        done = fathom("attach", "--rss", "-q", "--duration", "0.5", "-o", str(out), str(program.pid))
        program.communicate("\n")
    assert done.returncode == 0, done
    assert 50 < min(curves(out)[0])


def test_attach_to_what_is_no_python(tmp_path):
    with start("cat", stdin=-1) as program:
        out = tmp_path / "out.fathom"
        refused = fathom("attach", "--duration", "0.2", "-o", str(out), str(program.pid))
        done = fathom("attach", "--rss", "--duration", "0.2", "-o", str(out), str(program.pid))
        program.communicate("")
    assert refused.returncode == 13
    assert done.returncode == 0, done
    assert 0 < max(curves(out)[0]) < 20


def test_a_killed_launcher(tmp_path):
    """What was looked at before is in the folder of the run."""
    runs = tmp_path / "runs"
    runs.mkdir()
    launcher = start(FATHOM, "run", "--memory", "-q", "-o", str(tmp_path / "never.fathom"), sys.executable, "-c",
                     "held = b'x' * (50 << 20); print('held', flush=True); input()", stdin=-1,
                     env=dict(os.environ, FATHOM_TMPDIR=str(runs)))
    assert launcher.stdout.readline() == "held\n"
    saved = set()  # the second time all of it is of after that
    while len(saved) < 3:
        assert launcher.poll() is None
        saved |= {path.stat().st_mtime_ns for path in runs.glob("*/samples.fathom")} or {0}
        time.sleep(.05)
    outlived(launcher, "\n")
    out = tmp_path / "out.fathom"
    folder = next(runs.iterdir())
    assert fathom("merge", str(folder), "-o", str(out)).returncode == 0
    assert 50 < max(curves(out)[0]) < 110


@pytest.fixture
def small_group():
    """A control group that may have 100 MiB; its folder."""
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        number, controllers, path = line.split(":", 2)
        first = "memory" in controllers.split(",")
        if not first and (number != "0" or controllers):
            continue
        root = Path("/sys/fs/cgroup/memory" if first else "/sys/fs/cgroup")
        folder = Path(f"{root}{path}") / f"fathom-test-{os.getpid()}"
        try:
            folder.mkdir()
        except OSError:
            continue
        try:
            (folder / ("memory.limit_in_bytes" if first else "memory.max")).write_text(str(100 * MIB))
            yield folder
            return
        except OSError:
            pass
        finally:
            for _ in range(100):
                try:
                    folder.rmdir()
                    break
                except OSError:  # its last process is still going
                    time.sleep(.05)
    pytest.skip("no control group of our own can be made here")


def test_the_kernel_ends_it(small_group, tmp_path):
    """A program that takes more than its group may have; the recording says who ended it, and the
    limit is in the picture."""
    code = """
    import time
    held = []
    while True:
        held.append(b"x" * (5 << 20))
        time.sleep(.02)
    """
    out = tmp_path / "out.fathom"
    done = plain("sh", "-c", 'echo $$ > "$1/cgroup.procs" || exit 77; shift; exec "$@"', "sh", str(small_group),
                 FATHOM, "run", "--rss", "-o", str(out), sys.executable, write(tmp_path, code))
    if done.returncode == 77:
        pytest.skip("processes cannot be put into a control group here")
    assert done.returncode in (137, -signal.SIGKILL), done
    assert "ended by the kernel: the memory that its control group may have, 100.0 MiB, was used up" \
        in done.stderr
    assert re.search(r"^\S+\s+limit: 100 MiB$", fathom("plot", str(out)).stdout, re.M)


def test_any_other_kill_is_not_named(tmp_path):
    output = tmp_path / "out.fathom"
    done = fathom("run", "--rss", "-o", str(output), sys.executable, "-c",
                  "import os; os.kill(os.getpid(), 9)")
    assert done.returncode in (137, -signal.SIGKILL)
    assert "ended by the kernel" not in done.stderr
