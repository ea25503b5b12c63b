#!/usr/bin/env python3
"""The oracle: how far can a sampling profiler be believed?

  tests/oracle/judge.py                          Fathom, every program, every Python, 1 kHz and max
  tests/oracle/judge.py --profilers all --pythons 3.12,3.15 --rates 1000,max
  tests/oracle/judge.py --programs short,threads --seconds 20 --json out.json

Runs programs whose truth is known (tests/oracle/programs), attaches the profiler, and compares: is
every known share inside its 99 % interval, can every stack exist and does it begin where the
program does, is its newest function there, what was lost? truth.py says how the interval is made.
Of many right shares one in a hundred falls outside by chance: --again judges those that did a
second time, as a real bias would show again.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import json
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

import packages
import profilers
import truth

LOST_MOST = 0.005  # of Fathom's samples
TOPS_MOST = 0.001  # of its newest functions missing


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, prog="judge.py",
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profilers", default="fathom", metavar="NAMES",
                        help=f"all, peers, or of {', '.join(profilers.ALL)}")
    parser.add_argument("--programs", default="all", metavar="NAMES",
                        help=f"of {', '.join(truth.names())}")
    parser.add_argument("--pythons", default="all", metavar="3.12,3.15")
    parser.add_argument("--rates", default="1000,max", metavar="HZ", help="1000,max")
    parser.add_argument("--seconds", type=float, default=5, metavar="S", help="of each profile (5)")
    parser.add_argument("--again", action="store_true", help="see above")
    parser.add_argument("--json", metavar="FILE", help="every number, too")
    parser.add_argument("--from", dest="source", action="append", metavar="FILE",
                        help="measure nothing, show the tables of earlier runs")
    chosen = parser.parse_args()
    chosen.rates = [0.0 if rate == "max" else float(rate) for rate in chosen.rates.split(",")]
    chosen.programs = truth.names() if chosen.programs == "all" else chosen.programs.split(",")
    if chosen.profilers in ("all", "peers"):
        chosen.profilers = [name for name in profilers.ALL
                            if chosen.profilers == "all" or name != "fathom"]
    else:
        chosen.profilers = chosen.profilers.split(",")
    for name in chosen.profilers:
        if name not in profilers.ALL:
            parser.error(f"{name}: the profilers are {', '.join(profilers.ALL)}")
    for name in chosen.programs:
        if name not in truth.names():
            parser.error(f"{name}: the programs are {', '.join(truth.names())}")
    return chosen


def interpreters(wanted: str) -> dict[str, str]:
    found = truth.interpreters()
    if wanted == "all":
        return found
    missing = [version for version in wanted.split(",") if version not in found]
    if missing:
        sys.exit(f"judge.py: no Python {', '.join(missing)} here; see tools/pythons list")
    return {version: found[version] for version in wanted.split(",")}


def one(profiler: profilers.Profiler, name: str, python: str, rate: float, seconds: float,
        scratch: Path) -> dict:
    """One profile of one program, judged; plain data."""
    with truth.Program(name, python) as program:
        start = truth.now_ns()
        profile = profiler.profile(program.pid, rate, seconds, scratch / "profile",
                                   program.says.get("mode", "wall"))
        end = truth.now_ns()
        program.finish()
        # Every profiler alike: none is asked when it sampled, and how much it did not see.
        alike = dataclasses.replace(profile, window=None, unseen=1.0)
        verdict = truth.judge(program, alike, start, end)
    return {"samples": verdict.samples, "empty": verdict.empty, "partial": profile.partial,
            "cut": verdict.cut, "missing_tops": verdict.missing_tops,
            "missing_by_chance": verdict.missing_by_chance,
            "tops": [{"name": top.name, "true": top.true, "seen": top.seen, "samples": top.samples,
                      "due": top.due, "missing": top.missing, "instead": top.instead}
                     for top in verdict.tops],
            "impossible": verdict.impossible,
            "examples": dict(sorted(verdict.examples.items(), key=lambda each: -each[1])[:8]),
            "errors": profile.errors, "attempts": profile.attempts,
            "seconds": (end - start) / 1e9,
            "shares": [{"group": share.group, "label": share.label, "true": share.true,
                        "seen": share.seen, "samples": share.samples,
                        "effective": share.effective, "half_width": share.half_width(),
                        "inside": share.inside()} for share in verdict.shares]}


def measure(chosen: argparse.Namespace) -> list[dict]:
    """A row for each profile; interrupted, those so far."""
    rows: list[dict] = []
    with contextlib.suppress(KeyboardInterrupt), \
            tempfile.TemporaryDirectory(prefix="fathom-oracle-") as scratch:
        for version, python in interpreters(chosen.pythons).items():
            for name in chosen.programs:
                for rate in chosen.rates:
                    for title in chosen.profilers:
                        profiler = profilers.ALL[title]
                        if not profiler.can(version):
                            continue
                        row = {"profiler": title, "python": version, "program": name, "rate": rate}
                        row.update(attempt(chosen, profiler, name, version, python, rate,
                                           Path(scratch)))
                        rows.append(row)
                        print(line_of(row), file=sys.stderr, flush=True)
                        if chosen.json:
                            Path(chosen.json).write_text(json.dumps(rows))
    return rows


def attempt(chosen, profiler, name, version, python, rate, scratch) -> dict:
    """The row of one profile, or why there is none."""
    try:
        interpreter = packages.provide(version, python, truth.needs(truth.PROGRAMS / f"{name}.py"))
    except profilers.Failed as failure:
        return {"skipped": str(failure)}
    try:
        return judged(chosen, profiler, name, interpreter, rate, scratch)
    except truth.Unable as reason:
        return {"skipped": str(reason)}
    except (profilers.Failed, RuntimeError, OSError, ValueError) as failure:
        return {"failed": str(failure)}


def judged(chosen, profiler, name, python, rate, scratch) -> dict:
    row = one(profiler, name, python, rate, chosen.seconds, scratch)
    if chosen.again and not all(share["inside"] for share in row["shares"]):
        second = one(profiler, name, python, rate, chosen.seconds, scratch)
        second["first"] = row
        for key in ("samples", "empty", "cut", "partial", "impossible", "errors", "attempts"):
            second[key] += row[key]
        second["examples"] = {**row["examples"], **second["examples"]}
        return second
    return row


def percent(part: float | None) -> str:
    return "–" if part is None else f"{100 * part:.2f} %"


def rate_name(rate: float) -> str:
    return f"{rate:.0f} Hz" if rate else "max"


def line_of(row: dict) -> str:
    head = f"{row['profiler']:20} {row['python']:5} {row['program']:15} {rate_name(row['rate']):8}"
    for word in ("failed", "skipped"):
        if word in row:
            return f"{head} {word}: {row[word]}"
    wrong = [f"{share['label']} {100 * share['true']:.1f} → {100 * share['seen']:.1f} %"
             f" (± {100 * share['half_width']:.1f})"
             for share in row["shares"] if not share["inside"]]
    return (f"{head} {row['samples']:8} samples, {row['impossible']} impossible, "
            f"{row['cut']} cut, {row['errors']} errors, {row['partial']} partial; "
            + (f"{percent(row['missing_tops'])} missing tops; " if row["tops"] else "")
            + ("outside: " + ", ".join(wrong) if wrong else "shares right")
            + (f"; {row['examples']}" if row["examples"] else ""))


# ---------------------------------------------------------------- tables

def table(head: list[str], rows: list[list[str]]) -> str:
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]

    def line(cells: list[str]) -> str:
        rest = [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:])]
        return "| " + " | ".join([cells[0].ljust(widths[0]), *rest]) + " |"

    rule = ["-" * (widths[0] + 2), *("-" * (width + 1) + ":" for width in widths[1:])]
    return "\n".join([line(head), "|" + "|".join(rule) + "|", *map(line, rows)]) + "\n"


def summary(rows: list[dict]) -> str:
    """A row per profiler, Python and rate, over all programs."""
    groups: dict[tuple, list[dict]] = {}
    for row in rows:
        groups.setdefault((row["profiler"], row["rate"], row["python"]), []).append(row)
    lines = []
    for (profiler, rate, python), members in sorted(groups.items(), key=order):
        members = [row for row in members if "skipped" not in row]
        good = [row for row in members if "failed" not in row]
        shares = [share for row in good for share in row["shares"]]
        samples = sum(row["samples"] for row in good)
        impossible = sum(row["impossible"] for row in good)
        errors = sum(row["errors"] for row in good)
        attempts = sum(row["attempts"] or row["samples"] for row in good)
        partial = sum(row["partial"] for row in good)
        tops = [top for row in good for top in row.get("tops", ())]
        due, missing = (sum(top[key] for top in tops) for key in ("due", "missing"))
        worst = max(shares, key=lambda share: abs(share["seen"] - share["true"]), default=None)
        lines.append([f"{profiler}, {rate_name(rate)}", python, f"{len(good)}/{len(members)}",
                      f"{samples:,}", f"{impossible:,}", per_million(impossible, samples),
                      per_million(sum(row.get("cut", 0) for row in good), samples),
                      percent(max(0.0, missing / due) if due else None),
                      f"{100 * errors / attempts:.2f} %" if attempts else "–",
                      f"{100 * partial / samples:.2f} %" if samples and profiler == "fathom" else "–",
                      f"{sum(share['inside'] for share in shares)}/{len(shares)}",
                      f"{100 * (worst['seen'] - worst['true']):+.1f} points" if worst else "–"])
    return table(["profiler", "Python", "programs", "samples", "impossible", "per million",
                  "cut, per million", "missing tops", "lost", "partial", "shares inside",
                  "largest error"], lines)


def order(item) -> tuple:
    profiler, rate, python = item[0]
    return (list(profilers.ALL).index(profiler), rate == 0.0, rate,
            [int(part) for part in python.split(".")])


def per_million(part: int, whole: int) -> str:
    return f"{1e6 * part / whole:,.0f}" if whole else "–"


def details(rows: list[dict]) -> str:
    """What was outside, impossible stacks, and where the newest function was not seen."""
    lines = []
    for row in rows:
        head = f"{row['profiler']}, {row['python']}, {row['program']}, {rate_name(row['rate'])}"
        if "failed" in row or "skipped" in row:
            lines.append(f"- {head}: " + (f"failed: {row['failed']}" if "failed" in row
                                          else f"skipped: {row['skipped']}"))
            continue
        for share in row["shares"]:
            if not share["inside"]:
                lines.append(f"- {head}: {share['label']} ({share['group']}) is "
                             f"{100 * share['true']:.2f} %, seen "
                             f"{100 * share['seen']:.2f} % (± {100 * share['half_width']:.2f})")
        for top in row.get("tops", ()):
            if is_missing(top):
                lines.append(f"- {head}: {top['name']} has its callee in {percent(top['seen'])} of "
                             f"{top['samples']:,} samples, truth {percent(top['true'])}; else "
                             f"mostly {top['instead'] or 'nothing'}")
        for stack, count in row["examples"].items():
            lines.append(f"- {head}: impossible {count} × {stack}")
    return "\n".join(lines)


def is_missing(top: dict) -> bool:
    """More than chance explains, at 99 %."""
    share = truth.Share("", top["name"], top["true"], top["seen"], top["samples"], top["samples"])
    return share.error < -share.half_width()


def main() -> int:
    chosen = options()
    if chosen.source:
        rows = [row for name in chosen.source for row in json.loads(Path(name).read_text())]
    else:
        rows = measure(chosen)
    print(summary(rows))
    text = details(rows)
    if text:
        print(text)
    ours = [row for row in rows if row["profiler"] == "fathom"]
    ours = [row for row in ours if "skipped" not in row]
    wrong = [row for row in ours if "failed" in row or row["impossible"] or row.get("cut")
             or (row.get("missing_tops") or 0) > TOPS_MOST + row.get("missing_by_chance", 0)
             or row["errors"] >= LOST_MOST * max(1, row["attempts"])
             or not all(share["inside"] for share in row["shares"])]
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
