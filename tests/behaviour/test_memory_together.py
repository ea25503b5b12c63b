"""The peak of all processes of a run together: what each line had at that one instant, to the byte for large blocks."""

from __future__ import annotations

import textwrap

import pytest

import launch
import recordings

MB = 1_000_000
SLACK = 4096  # the heads of objects


def lines(folder, python, program, *words):
    """{line with a mark: what it had when all together had most}, of a program whose lines are marked by a comment."""
    path, output = folder / "app.py", folder / "out.fathom"
    path.write_text(textwrap.dedent(program))
    done = launch.run(path, *words, python=python, output=output, collectors=("--memory",))
    assert (done.returncode, launch.said(done)) == (0, ""), done
    report = recordings.report(output, "--memory")
    had = {row["line"]: row["together_bytes"] for row in report["functions"] if row["file"] == str(path)}
    assert report["at"] == "together"
    marks = {text.split("# ")[1]: number for number, text in enumerate(path.read_text().splitlines(), 1)
             if "# " in text}
    return {mark: had.get(number, 0) for mark, number in marks.items()}, report["memory"]


AT_ONCE = """
    import multiprocessing, sys

    def work(barrier, count):
        held = bytearray(count)  # child
        barrier.wait()
        barrier.wait()

    if __name__ == "__main__":
        how = multiprocessing.get_context(sys.argv[1])
        barrier = how.Barrier(4)
        children = [how.Process(target=work, args=(barrier, 10_000_000 * count)) for count in (1, 2, 3)]
        early = bytearray(50_000_000)  # early
        del early
        for child in children:
            child.start()
        barrier.wait()
        held = bytearray(5_000_000)  # parent
        barrier.wait()
        for child in children:
            child.join()
"""


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_all_at_once(how, python, tmp_path):
    had, memory = lines(tmp_path, python, AT_ONCE, how)
    assert had["child"] == pytest.approx(60 * MB, abs=SLACK)
    assert had["parent"] == pytest.approx(5 * MB, abs=SLACK)
    assert had["early"] == 0
    # Their own peaks: 50 of the parent, and 60 of the children.
    assert memory["peak_bytes"] >= 110 * MB
    assert 65 * MB <= memory["together_bytes"] < 110 * MB


def test_one_after_the_other(python, tmp_path):
    had, _ = lines(tmp_path, python, """
        import os

        for count in (20_000_000, 30_000_000, 25_000_000):
            if os.fork() == 0:
                held = bytearray(count)  # child
                os._exit(0)
            os.wait()
            if count == 30_000_000:
                # What a process had that ended by _exit is gone when the launcher has seen its end.
                [run] = {line.split()[-1] for line in open("/proc/self/maps") if line.endswith("/together\\n")}
                while int.from_bytes(open(run, "rb").read()[136:144], "little") < 50_000_000:
                    pass
        """)
    # The second, with or without the first, whose end may have been seen only then.
    assert had["child"] == pytest.approx(30 * MB, abs=SLACK) or had["child"] == pytest.approx(50 * MB, abs=SLACK)


def test_the_first_alone(python, tmp_path):
    """Before there were others, one of which then has a peak of its own."""
    had, memory = lines(tmp_path, python, """
        import subprocess, sys

        early = bytearray(80_000_000)  # early
        del early
        subprocess.run([sys.executable, "-c", "held = bytearray(10_000_000)"], check=True)
        """)
    assert had["early"] == pytest.approx(80 * MB, abs=SLACK)
    assert memory["peak_bytes"] - memory["together_bytes"] >= 10 * MB


def test_executing_another_program(python, tmp_path):
    """What a process had before is gone with its program; but not where there is no such program."""
    had, _ = lines(tmp_path, python, """
        import os, subprocess, sys

        if len(sys.argv) == 1:
            if os.fork() == 0:
                before = bytearray(40_000_000)  # before
                os.execv(sys.executable, [sys.executable, __file__, "child"])
            os.wait()
        elif sys.argv[1] == "child":
            try:
                os.execv("/nowhere", ["nowhere"])
            except FileNotFoundError:
                pass
            held = bytearray(30_000_000)  # held
            subprocess.run([sys.executable, __file__, "grandchild"], check=True)
        else:
            last = bytearray(35_000_000)  # last
        """)
    assert had["before"] == 0
    assert had["held"] == pytest.approx(30 * MB, abs=SLACK)
    assert had["last"] == pytest.approx(35 * MB, abs=SLACK)


def test_killed(python, tmp_path):
    had, _ = lines(tmp_path, python, """
        import os, signal

        pid = os.fork()
        if pid == 0:
            held = bytearray(40_000_000)  # killed
            os.kill(os.getpid(), signal.SIGKILL)
        os.waitpid(pid, 0)
        [run] = {line.split()[-1] for line in open("/proc/self/maps") if line.endswith("/together\\n")}
        while int.from_bytes(open(run, "rb").read()[136:144], "little") < 40_000_000:
            pass
        after = bytearray(45_000_000)  # after
        """)
    assert had["killed"] == 0
    assert had["after"] == pytest.approx(45 * MB, abs=SLACK)


def test_one_process_has_no_such_instant(tmp_path):
    path, output = tmp_path / "app.py", tmp_path / "out.fathom"
    path.write_text("held = bytearray(1_000_000)\n")
    assert launch.run(path, output=output, collectors=("--memory",)).returncode == 0
    report = recordings.report(output, "--memory")
    assert report["at"] == "peak" and "together_blocks" not in report["memory"]
    text = launch.fathom("report", "--memory", output).stdout
    assert "together" not in text


def test_parts_are_of_the_instant_asked_for(python, tmp_path):
    """The child frees 20 MB before the parent makes 10 MB: all had most while the child had its own."""
    path, output = tmp_path / "app.py", tmp_path / "out.fathom"
    path.write_text(textwrap.dedent("""
        import os
        def child():
            kept = bytes(20_000_000)
        if os.fork() == 0:
            child()
            os._exit(0)
        os.wait()
        kept = bytes(10_000_000)
        """))
    done = launch.run(path, python=python, output=output, collectors=("--memory",))
    assert (done.returncode, launch.said(done)) == (0, ""), done
    for part in ("threads", "processes"):
        text = launch.fathom("report", f"--memory={part}", "--at", "together", str(output)).stdout
        head, parent, born = (line.split() for line in text.split("\n\n", 1)[1].splitlines())
        assert "peak" not in head and head.count("together") == 1
        share = [float(line[line.index("MiB") + 1]) if "MiB" in line else 0.0 for line in (parent, born)]
        assert share[0] < 30 and share[1] > 70 and sum(share) == pytest.approx(100, abs=0.11)


def test_converted(python, tmp_path):
    """What is weighed by, if nobody says, is of one instant: not the peaks of all, added up."""
    _, memory = lines(tmp_path, python, AT_ONCE, "fork")
    assert memory["peak_bytes"] > memory["together_bytes"]
    for words in (("--to", "memray"), ("--metric", "together", "--to", "pprof")):
        done = launch.fathom("convert", tmp_path / "out.fathom", *words, "-o", tmp_path / words[-1])
        assert done.returncode == 0, done.stderr
        back = recordings.report(tmp_path / words[-1], "--memory")["memory"]
        assert back["peak_bytes"] == memory["together_bytes"], words
        assert back["peak_blocks"] == memory["together_blocks"], words
    done = launch.fathom("convert", tmp_path / "out.fathom", "--metric", "peak", "--to", "memray", "-o", tmp_path / "peaks.csv")
    assert done.returncode == 0, done.stderr
    assert recordings.report(tmp_path / "peaks.csv", "--memory")["memory"]["peak_bytes"] == memory["peak_bytes"]
