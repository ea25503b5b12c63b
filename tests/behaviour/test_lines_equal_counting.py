"""Hits of every line of real code equal those of a counting tracer written in Python."""

import json
import os

import pytest

import recordings
from conftest import PACKAGE
from launch import PROGRAMS, plain, program

MODULES = ["argparse", "difflib", "fractions", "html.parser", "json.decoder", "json.encoder",
           "json.scanner", "pprint", "statistics", "string", "textwrap"]


def counted(python, tmp_path, environment):
    """{(file, line): hits} by the tracer."""
    out = tmp_path / "counted.json"
    done = plain(python, program("lines_count.py"), out, ",".join(MODULES), env=environment)
    assert done.returncode == 0, done.stderr
    return {(file, line): hits for file, line, hits in json.loads(out.read_text())}


RECORD = """
import sys
from fathom import _agent
import lines_workload
collector = _agent.Collector(None, 0.0, True, {calls}, sys.argv[2])
collector.enable()
lines_workload.main()
collector.disable()
_agent.save(collector.snapshots(), sys.argv[1])
"""


def recorded(python, tmp_path, environment, files, calls):
    """{(file, line): hits} by Fathom."""
    out = tmp_path / f"recorded-{calls}.fathom"
    environment = dict(environment, PYTHONPATH=f"{PACKAGE}:{PROGRAMS}")
    done = plain(python, "-c", RECORD.format(calls=calls), out, ",".join(sorted(files)),
                 env=environment)
    assert done.returncode == 0, done.stderr
    table = {}
    for function in recordings.report(out, "--lines")["functions"]:
        for row in function["lines"]:
            key = (function["file"], row["line"])
            table[key] = table.get(key, 0) + row["hits"]
    return table


@pytest.mark.parametrize("calls", [False, True], ids=["lines", "lines-and-calls"])
def test_hits_of_every_line_of_many_modules(python, tmp_path, calls):
    environment = dict(os.environ, PYTHONHASHSEED="0")
    wanted = counted(python, tmp_path, environment)
    found = recorded(python, tmp_path, environment, {file for file, _ in wanted}, calls)
    assert len(wanted) > 1000
    assert {key: (wanted.get(key, 0), found.get(key, 0)) for key in wanted.keys() | found.keys()
            if wanted.get(key, 0) != found.get(key, 0)} == {}
