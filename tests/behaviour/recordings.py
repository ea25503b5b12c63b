"""Reading recordings in tests, through `fathom report --json`."""

import json
import subprocess

from launch import FATHOM, TIMEOUT


def report(path, *options):
    """The parsed JSON of a report over the whole recording."""
    done = subprocess.run([FATHOM, "report", str(path), "--json", "-n", "all", *options],
                          capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def functions(path, *options):
    """{qualname: row}; rows that share a qualname are a list under it in order of the report."""
    table = {}
    for row in report(path, *options)["functions"]:
        table.setdefault(row["qualname"], []).append(row)
    return table


def one(path, qualname, *options):
    """The only row of that name."""
    rows = functions(path, *options)[qualname]
    assert len(rows) == 1, rows
    return rows[0]
