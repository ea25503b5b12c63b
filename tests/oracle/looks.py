#!/usr/bin/env python3
"""Every look of the sampler beside the program's own clock: what was it doing then, and what was seen?

  tests/oracle/looks.py PROGRAM [--python 3.13] [--rate 1000] [--seconds 2]
  tests/oracle/looks.py deep --keep FOLDER        log and truth stay there
  tests/oracle/looks.py --log FILE --truth FILE   of an earlier run

Runs a program of tests/oracle/programs, attaches Fathom with FATHOM_LOOK_LOG=FILE, and reads what
it wrote, one line for each look at each thread:

    ns pid tid proof state frame;frame;frame

monotonic nanoseconds when the stack was read; by what it is known to be of one instant (blocked,
gil, displaced, stopped; plain: by nothing; lost: not read); the thread's state; functions by
qualified name, oldest first.

For each look the clock names the label whose work was being done at that nanosecond, the stack the
label it shows. The table counts both: a row is what was, a column what was seen. "between" is no
label: the program was outside of what it measures, or the stack shows none. Beside it, how many
looks of each proof were wrong. A look some hundred nanoseconds from a label's edge may be right
about the next one: the examples are those that were the furthest inside, hence the most surely
wrong.
"""

from __future__ import annotations

import argparse
import bisect
import json
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

import packages
import profilers
import truth
from judge import percent, table

BETWEEN = "between"
PROOFS = ("blocked", "gil", "displaced", "stopped", "plain", "lost")


@dataclass
class Look:
    ns: int
    tid: int
    proof: str
    state: str
    frames: tuple[str, ...]


def read(text: str, pid: int | None = None) -> list[Look]:
    """The lines of a log, of one process if it is named; a last line that is cut off is left out."""
    looks = []
    for line in text.splitlines():
        words = line.split(" ", 5)
        if len(words) < 5 or not all(word.isdigit() for word in words[:3]):
            continue
        frames = tuple(words[5].split(";")) if len(words) > 5 and words[5] else ()
        if pid is None or int(words[1]) == pid:
            looks.append(Look(int(words[0]), int(words[2]), words[3], words[4], frames))
    return looks


class Clock:
    """What one log of the program says: a label for each stretch of time."""

    def __init__(self, log: dict):
        self.labels = set(log["labels"])
        self.starts: list[int] = []
        self.ends: list[int] = []
        self.names: list[str] = []
        step = len(log["labels"]) + 1
        stamps = log["stamps"]
        for at in range(0, len(stamps) - step + 1, step):
            for number, label in enumerate(log["labels"]):
                self.starts.append(stamps[at + number])
                self.ends.append(stamps[at + number + 1])
                self.names.append(label)

    def at(self, ns: int) -> tuple[str, int]:
        """The label, and how far the instant is from the edge of its stretch. Outside of all: between,
        and 0 before the first and after the last, when nothing is known."""
        number = bisect.bisect_right(self.starts, ns) - 1
        if number < 0:
            return BETWEEN, 0
        if ns < self.ends[number]:
            return self.names[number], min(ns - self.starts[number], self.ends[number] - ns)
        if number + 1 == len(self.starts):
            return BETWEEN, 0
        return BETWEEN, min(ns - self.ends[number], self.starts[number + 1] - ns)

    def covers(self, ns: int) -> bool:
        return bool(self.starts) and self.starts[0] <= ns < self.ends[-1]


class Threads:
    """Whose clock a thread has: programs log by thread, but do not say which. Series of one thread are one
    clock, and a thread's own is the one whose labels its looks show most often."""

    def __init__(self, says: dict, logs: list[dict], looks: list[Look]):
        self.label = Labels(says)
        clocks = combined([Clock(log) for log in logs])
        counts: dict[int, dict[int, int]] = {}
        for look in looks:
            seen = self.label(look.frames)
            for number, clock in enumerate(clocks):
                if seen in clock.labels:
                    of_thread = counts.setdefault(look.tid, {})
                    of_thread[number] = of_thread.get(number, 0) + 1
        self.clocks = {tid: clocks[max(of_thread, key=of_thread.get)]
                       for tid, of_thread in counts.items()}
        if len(clocks) == 1:  # a thread of which nothing was seen, and there is no doubt which it is
            self.clocks = {look.tid: clocks[0] for look in looks}


def combined(clocks: list[Clock]) -> list[Clock]:
    """Logs whose stretches never overlap are of one thread: they take turns."""
    found: list[Clock] = []
    for clock in clocks:
        for other in found:
            if not overlap(clock, other):
                merge(other, clock)
                break
        else:
            found.append(clock)
    return found


def overlap(one: Clock, two: Clock) -> bool:
    stretches = sorted([*zip(one.starts, one.ends), *zip(two.starts, two.ends)])
    return any(before[1] > after[0] for before, after in zip(stretches, stretches[1:]))


def merge(into: Clock, other: Clock) -> None:
    rows = sorted([*zip(into.starts, into.ends, into.names), *zip(other.starts, other.ends, other.names)])
    into.starts, into.ends, into.names = (list(column) for column in zip(*rows))
    into.labels |= other.labels


class Labels:
    """The label that a stack shows: that of a function which a share is about, or of a known callee."""

    def __init__(self, says: dict):
        self.names = {label for labels in says["shares"].values() for label in labels}
        self.tops = {name: (last_parts(top["path"]), top["leaf"], top["rest"])
                     for name, top in says.get("tops", {}).items()}
        # Where the callee is the function itself, no stack can tell them apart.
        self.same = {rest: leaf for name, (path, leaf, rest) in self.tops.items() if path[-1] == name}

    def __call__(self, frames: tuple[str, ...]) -> str:
        short = last_parts(frames)
        for name in reversed(short):
            if name in self.tops:
                path, leaf, rest = self.tops[name]
                return leaf if len(short) >= len(path) and short[-1] == path[-1] else rest
            if name in self.names:
                return name
        return BETWEEN


def last_parts(frames) -> tuple[str, ...]:
    """`f` of `Class.f` and of `f@file.py`; "~" is any number of functions, and left out."""
    return tuple(frame.split("@")[0].rsplit(".", 1)[-1] for frame in frames if frame != truth.OUTSIDE)


# ---------------------------------------------------------------- judging

@dataclass
class Judged:
    look: Look
    was: str
    seen: str
    inside_ns: int  # from the edge of what was

    @property
    def right(self) -> bool:
        return self.was == self.seen


def judge(says: dict, logs: list[dict], looks: list[Look]) -> list[Judged]:
    """The looks at threads that have a clock, while it ran."""
    threads = Threads(says, logs, looks)
    judged = []
    for look in looks:
        clock = threads.clocks.get(look.tid)
        if clock and clock.covers(look.ns) and look.proof != "lost":
            was, inside = clock.at(look.ns)
            was = threads.label.same.get(was, was)
            judged.append(Judged(look, was, threads.label(look.frames), inside))
    return judged


def confusion(judged: list[Judged]) -> str:
    labels = sorted({each.was for each in judged} | {each.seen for each in judged})
    counts: dict[tuple[str, str], int] = {}
    for each in judged:
        counts[each.was, each.seen] = counts.get((each.was, each.seen), 0) + 1
    columns = [label for label in labels if any((was, label) in counts for was in labels)]
    lines = []
    for was in labels:
        row = [counts.get((was, seen), 0) for seen in columns]
        if sum(row):
            lines.append([was, *(f"{count:,}" if count else "" for count in row),
                          percent(1 - counts.get((was, was), 0) / sum(row))])
    return table(["was, by its clock", *columns, "wrong"], lines)


def narrow(judged: list[Judged]) -> str:
    """In place of a square with very many labels: a row for each, with what was seen instead."""
    rows: dict[str, list[Judged]] = {}
    for each in judged:
        rows.setdefault(each.was, []).append(each)
    lines = []
    for was, members in sorted(rows.items()):
        wrong: dict[str, int] = {}
        for each in members:
            if not each.right:
                wrong[each.seen] = wrong.get(each.seen, 0) + 1
        instead = ", ".join(f"{seen} × {count}" for seen, count in
                            sorted(wrong.items(), key=lambda item: -item[1])[:3])
        lines.append([was, f"{len(members):,}", percent(sum(wrong.values()) / len(members)), instead])
    return table(["was, by its clock", "looks", "wrong", "seen instead"], lines)


def by_proof(judged: list[Judged], looks: list[Look]) -> str:
    lines = []
    for proof in [*PROOFS, *sorted({look.proof for look in looks} - set(PROOFS))]:
        number = sum(look.proof == proof for look in looks)
        members = [each for each in judged if each.look.proof == proof]
        wrong = sum(not each.right for each in members)
        if number:
            lines.append([proof, f"{number:,}", f"{len(members):,}", f"{wrong:,}",
                          percent(wrong / len(members)) if members else "–"])
    return table(["proof", "looks", "judged", "wrong", "of them"], lines)


def worst(judged: list[Judged], number: int) -> list[Judged]:
    """Those that are the furthest inside of what was."""
    wrong = [each for each in judged if not each.right]
    return sorted(wrong, key=lambda each: -each.inside_ns)[:number]


def example(each: Judged) -> str:
    return (f"{each.look.ns} {each.look.proof} {each.look.state}: was {each.was}, "
            f"{each.inside_ns / 1000:.1f} µs from its edge; seen {each.seen}: "
            f"{truth.shown(each.look.frames) or 'no function'}")


def shown(says: dict, logs: list[dict], looks: list[Look], examples: int) -> str:
    judged = judge(says, logs, looks)
    labels = {each.was for each in judged} | {each.seen for each in judged}
    parts = [confusion(judged) if len(labels) <= 8 else narrow(judged), by_proof(judged, looks)]
    found = worst(judged, examples)
    if found:
        parts.append("\n".join(["the most surely wrong:", *map(example, found)]) + "\n")
    return "\n".join(parts)


# ---------------------------------------------------------------- running

def record(name: str, python: str, rate: str, seconds: float, folder: Path) -> None:
    """Leaves looks.log and truth.json in the folder."""
    log = folder / "looks.log"
    log.unlink(missing_ok=True)
    with truth.Program(name, python) as program:
        os.environ["FATHOM_LOOK_LOG"] = str(log)
        try:
            profilers.run([profilers.FATHOM, "attach", program.pid, "--rate", rate, "--duration", seconds,
                           "-q", "-o", folder / "looks.fathom"], seconds + profilers.LATE)
        finally:
            del os.environ["FATHOM_LOOK_LOG"]
        program.finish()
    (folder / "truth.json").write_text(json.dumps({"says": program.says, "logs": program.logs}))
    if not log.exists():
        raise profilers.Failed(f"{profilers.FATHOM} wrote no log: it does not know FATHOM_LOOK_LOG")


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, prog="looks.py",
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", metavar="PROGRAM", help=f"of {', '.join(truth.names())}")
    parser.add_argument("--python", default="3.13", metavar="VERSION")
    parser.add_argument("--rate", default="1000", metavar="HZ", help="1000, max")
    parser.add_argument("--seconds", type=float, default=2, metavar="S")
    parser.add_argument("--examples", type=int, default=10, metavar="N", help="the N worst looks (10)")
    parser.add_argument("--keep", metavar="FOLDER", help="where log and truth stay")
    parser.add_argument("--log", metavar="FILE", help="measure nothing, read this log")
    parser.add_argument("--truth", metavar="FILE", help="… and what the program said")
    chosen = parser.parse_args()
    if bool(chosen.log) != bool(chosen.truth) or not (chosen.program or chosen.log):
        parser.error("name a program, or --log and --truth")
    if chosen.program and chosen.program not in truth.names():
        parser.error(f"{chosen.program}: the programs are {', '.join(truth.names())}")
    return chosen


def measured(chosen, folder: Path) -> tuple[Path, Path]:
    found = truth.interpreters()
    if chosen.python not in found:
        raise profilers.Failed(f"no Python {chosen.python} here; see tools/pythons list")
    needs = truth.needs(truth.PROGRAMS / f"{chosen.program}.py")
    python = packages.provide(chosen.python, found[chosen.python], needs)
    record(chosen.program, python, chosen.rate, chosen.seconds, folder)
    return folder / "looks.log", folder / "truth.json"


def main() -> int:
    chosen = options()
    with tempfile.TemporaryDirectory(prefix="fathom-oracle-") as scratch:
        try:
            if chosen.log:
                log, said = Path(chosen.log), Path(chosen.truth)
            else:
                folder = Path(chosen.keep or scratch)
                folder.mkdir(parents=True, exist_ok=True)
                log, said = measured(chosen, folder)
        except (profilers.Failed, truth.Unable) as failure:
            sys.exit(f"looks.py: {failure}")
        data = json.loads(said.read_text())
        looks = read(log.read_text(errors="replace"), data["says"]["pid"])
    print(shown(data["says"], data["logs"], looks, chosen.examples))
    return 0


if __name__ == "__main__":
    sys.exit(main())
