"""Which programs a run with --memory had: each once, by the command that it ran."""

from __future__ import annotations

import os
import signal
import time

import pytest

import launch
import recordings


def processes(folder, python, *words, memory="--memory"):
    """[(process, arguments of its command, peak in bytes)]; and what the report says in words."""
    output = folder / "out.fathom"
    done = launch.run(*words, python=python, output=output, collectors=(memory,))
    assert (done.returncode, launch.said(done)) == (0, ""), done
    rows = recordings.report(output, "--memory=processes")["processes"]
    return [(row["process"], row["command"].split()[1:], row["peak_bytes"]) for row in rows], output


@pytest.mark.parametrize("memory", ["--memory", "--memory=malloc"])
def test_each_program_that_a_process_executes_is_there_once(python, memory, tmp_path):
    first, second, third = (tmp_path / name for name in ("first.py", "second.py", "third.py"))
    for path, then, count in ((first, second, 1), (second, third, 2)):
        path.write_text(f"import os, sys; held = bytearray({count}_000_000)\n"
                        f"os.execv(sys.executable, [sys.executable, {str(then)!r}])\n")
    third.write_text("held = bytearray(3_000_000)\n")
    found, output = processes(tmp_path, python, first, memory=memory)
    assert [command for _, command, _ in found] == [[str(first)], [str(second)], [str(third)]]
    assert len({pid for pid, _, _ in found}) == 1
    assert [peak // 1_000_000 >= count for count, (_, _, peak) in enumerate(found, 1)] == [True] * 3
    assert " · 3 processes · 3 threads\n" in launch.fathom("report", "--memory", str(output)).stdout


def test_a_child_of_fork_is_what_its_parent_was_then(python, tmp_path):
    """Not what the parent executed later."""
    first, second = tmp_path / "first.py", tmp_path / "second.py"
    first.write_text("import os, sys, time; held = bytearray(40_000_000); time.sleep(.3)\n"
                     "for count in (1, 2):\n"
                     "    if os.fork() == 0:\n"
                     "        more = bytearray(count * 1_000_000); os._exit(0)\n"
                     "    os.wait()\n"
                     f"os.execv(sys.executable, [sys.executable, {str(second)!r}])\n")
    second.write_text("import time; held = bytearray(3_000_000); time.sleep(.2)\n")
    found, output = processes(tmp_path, python, first)
    parent = found[0][0]
    assert sorted(command for pid, command, _ in found if pid == parent) == [[str(first)], [str(second)]]
    assert [command for pid, command, _ in found if pid != parent] == [[str(first)]] * 2
    said = launch.fathom("report", "--memory=resident", str(output)).stdout
    assert "resident, " in said and "resident, 0 after its start" not in said, said


def test_a_child_of_fork_has_what_fathom_had_in_its_parent(python, tmp_path):
    """Tables of 200,000 blocks, 24 bytes for each, in room for twice as many at least; the second child needs room for 600,000."""
    path = tmp_path / "app.py"
    path.write_text("import os; held = [bytearray(600) for _ in range(200_000)]\n"
                    "for more in (1, 400_000):\n"
                    "    if os.fork() == 0:\n"
                    "        held += [bytearray(600) for _ in range(more)]; os._exit(0)\n"
                    "    os.wait()\n")
    _, output = processes(tmp_path, python, path)
    rows = recordings.report(output, "--memory=processes")["processes"]
    everybody = {row["process"] for row in rows}
    [parent] = (row["fathom_bytes"] for row in rows if row["parent"] not in everybody)
    equal, larger = sorted(row["fathom_bytes"] for row in rows if row["parent"] in everybody)
    assert 200_000 * 24 < parent < 200_000 * 24 * 8
    assert abs(equal - parent) < 1 << 20
    assert parent + 400_000 * 24 < larger < parent * 4 + (1 << 20)


def test_a_run_that_was_killed_took_as_long_as_it_was_seen(python, tmp_path):
    """Neither the launcher nor the program could say when it ended."""
    path, output, merged = tmp_path / "app.py", tmp_path / "out.fathom", tmp_path / "all.fathom"
    path.write_text("import os, time; kept = []; print(os.getpid(), flush=True)\n"
                    "while True: kept.append(bytearray(100_000)); time.sleep(.01)\n")
    launcher = launch.start(launch.FATHOM, "run", "-q", "--memory", "-o", str(output), "--python", python, str(path))
    program = int(launcher.stdout.readline())
    began = time.monotonic()
    time.sleep(2)
    launcher.kill()
    os.kill(program, signal.SIGKILL)
    launcher.wait()
    ran = time.monotonic() - began
    done = launch.fathom("merge", str(output), "-o", str(merged))
    assert done.returncode == 0, done
    [row] = launch.fathom("report", "--csv", "--processes", str(merged)).stdout.splitlines()[1:]
    # It was looked at until then, a hundred times a second; its start was before it said so.
    assert ran - 1 < float(row.rsplit(",", 1)[1]) < ran + 2, row
