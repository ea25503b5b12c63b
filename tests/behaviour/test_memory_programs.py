"""Which programs a run with --memory had: each once, by the command that it ran."""

from __future__ import annotations

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
