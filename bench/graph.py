"""The group graph: `fathom graph` beside gprof2dot, from one large pstats file to the same .dot.

gprof2dot comes from the package index into a virtual environment of its own. What both wrote is
read afterwards: it must hold the same functions and arrows with the same shares.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import measure
import peers

FUNCTIONS = 50_000
TARGET = 20.0
# Everything; and what a person would look at of this file, whose largest function has 0.2 %.
VARIANTS = {"everything (-n 0 -e 0)": ["-n", "0", "-e", "0"],
            "what is above a threshold (-n 0.1 -e 0.01)": ["-n", "0.1", "-e", "0.01"]}


def gprof2dot() -> Path:
    folder = peers.cache_folder() / "venv-gprof2dot"
    program = folder / "bin" / "gprof2dot"
    if not program.exists():
        shutil.rmtree(folder, ignore_errors=True)
        peers.run(sys.executable, "-m", "venv", folder)
        peers.run(folder / "bin" / "python", "-m", "pip", "install", "--quiet", "gprof2dot")
    return program


def version(program: Path) -> str:
    return peers.module_version(program.parent / "python", "gprof2dot")


def content(path: Path) -> tuple[dict, dict]:
    """Labels of the functions, and of the arrows between them, by name."""
    names, nodes, edges = {}, {}, []
    for line in path.open(encoding="utf-8"):
        head, _, rest = line.partition(" [")
        label = re.search(r'label="((?:[^"\\]|\\.)*)"', rest)
        if not label or not head[1:2].isdigit():
            continue
        lines = label[1].split("\\n")
        if " -> " in head:
            edges.append((head.strip().split(" -> "), lines))
        else:
            names[head.strip()] = lines[0]
            nodes[lines[0]] = lines[1:]
    return nodes, {(names[a], names[b]): lines for (a, b), lines in edges}


def measured(build: Path, scratch: Path, rounds: int) -> dict:
    program, source = gprof2dot(), scratch / "graph.prof"
    subprocess.run([sys.executable, str(peers.HERE / "large_pstats.py"), str(FUNCTIONS),
                    str(source)], check=True)
    environment = {name: value for name, value in os.environ.items()
                   if not name.startswith(("PYTHON", "FATHOM"))}
    result: dict = {"gprof2dot": version(program), "variants": {}}
    # All are timed before any is read: what this process has ever held would be counted into the
    # peak memory of those that it starts.
    for number, (title, options) in enumerate(VARIANTS.items()):
        times: dict = {"fathom": [], "gprof2dot": []}
        ours, theirs = scratch / f"ours{number}.dot", scratch / f"theirs{number}.dot"
        for _ in range(rounds):
            for name, command in (
                    ("fathom", [build / "fathom", "graph", source, *options, "-f", "-o", ours]),
                    ("gprof2dot", [program, "-f", "pstats", *options, source, "-o", theirs])):
                run = measure.timed(command, environment)
                times[name].append([run["wall"], run["cpu"], run["peak_bytes"]])
        result["variants"][title] = times
    for number, times in enumerate(result["variants"].values()):
        drawn = content(scratch / f"ours{number}.dot")
        if drawn != content(scratch / f"theirs{number}.dot"):
            raise peers.Failure("fathom graph and gprof2dot write different graphs")
        times["functions"], times["arrows"] = len(drawn[0]), len(drawn[1])
    return result


def best(times: dict, name: str) -> list[float]:
    return [min(column) for column in zip(*times[name])]


def ratio(times: dict) -> float:
    return best(times, "gprof2dot")[0] / best(times, "fathom")[0]


def markdown(data: dict) -> str:
    if not data:
        return ""
    rows = ["| of 50,000 functions | shown | fathom | gprof2dot | ratio | CPU | memory |",
            "|---|---|---|---|---|---|---|"]
    for title, times in data["variants"].items():
        ours, theirs = best(times, "fathom"), best(times, "gprof2dot")
        rows.append(f"| {title} | {times['functions']:,} functions, {times['arrows']:,} arrows | "
                    f"{ours[0]:.3f} s | {theirs[0]:.2f} s | {theirs[0] / ours[0]:.0f}× | "
                    f"{theirs[1] / ours[1]:.0f}× | {ours[2] / 2**20:.0f} / {theirs[2] / 2**20:.0f} MB |")
    reached = all(ratio(times) >= TARGET for times in data["variants"].values())
    return (f"### Call graph: pstats to .dot, beside gprof2dot {data['gprof2dot']}\n\n"
            + "\n".join(rows)
            + f"\n\nTarget {TARGET:.0f}× {'reached' if reached else 'NOT reached'}.\n")
