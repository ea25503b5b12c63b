"""Source text in recordings of memory: that of the program and of what matters, not of every library that was imported."""

from __future__ import annotations

import textwrap

import launch
from launch import own_run_folders  # noqa: F401 (a fixture)

PROGRAM = """
    import enum, json, threading
    one = b"1"
    kept = [one * 1_000_000 for _ in range(20)]  # text of the program
    print(len(json.dumps([1, 2, 3])))
"""


def test_the_program_has_its_text_and_libraries_have_none(python, tmp_path):
    script, output = tmp_path / "app.py", tmp_path / "out.fathom"
    script.write_text(textwrap.dedent(PROGRAM))
    done = launch.run(script, python=python, output=output, collectors=("--memory",))
    assert (done.returncode, done.stdout) == (0, "9\n"), done.stderr
    script.unlink()  # what is shown now is from the recording
    shown = launch.fathom("report", "--memory=lines", output)
    assert "# text of the program" in shown.stdout, shown.stderr
    # With the text of all that was imported it has more than 160,000. What was sampled on a busy machine has its text, too.
    assert output.stat().st_size < 130_000
