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
    # With lines, of which there are none here: a run that samples has the text of what was sampled, too.
    done = launch.run(script, python=python, output=output, collectors=("--memory", "--lines=nothing_is_called_so"))
    assert (done.returncode, done.stdout) == (0, "9\n"), done.stderr
    script.unlink()  # what is shown now is from the recording
    shown = launch.fathom("report", "--memory=lines", output)
    assert "# text of the program" in shown.stdout, shown.stderr
    # With the text of all that was imported it has more than 160,000.
    assert output.stat().st_size < 50_000


def test_imports_say_how_to_see_whose_they_are(python, tmp_path):
    """The import system holds most of what imports take; folded, it is the importing lines', and nothing needs to be said."""
    script, output = tmp_path / "app.py", tmp_path / "out.fathom"
    script.write_text("import asyncio, decimal, http.client\n")
    assert launch.run(script, python=python, output=output, collectors=("--memory",)).returncode == 0
    said = "of what is shown came by imports: --fold '<frozen importlib*' shows whose"
    assert said in launch.fathom("report", "--memory", output).stdout
    folded = launch.fathom("report", "--memory", "--fold", "<frozen importlib*", output).stdout
    assert "peak" in folded and "came by imports" not in folded
