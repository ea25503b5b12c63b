"""What a program of the oracle says of itself, and how a profile stands against it.

A profile is a list of (stack, samples), a stack a tuple of frames (function, file, line), outermost
first. Four questions are asked of it: can each stack exist, does it begin where the program does,
is its newest function there, and is each known share right?

The newest function. A stack that was cut short looks like one of its callers', so it can exist. A
program may say of some of its functions (`tops`) which call takes nearly all of their time,
measured by that callee's own clock; where samples of the function show the callee less often than
its clock says, the difference are missing tops. They are added up over the functions, each with as
many samples as are due to it by the clock: so a function that was not seen at all counts as well.

The interval of a share. The truth p is the share of the very window that was sampled, by the
program's own clock, so chance enters in two ways only:
  1. n samples at instants that have nothing to do with the program vary by p(1 − p)/n. That the
     program dwells in a function for many samples does not matter here: what is estimated is the
     window as it was, not the program in general. (A regular sampler varies less, unless it
     falls in step with the program; that is a fault, and the program `rhythm` looks for it.)
  2. What the sampler did not see of the window, as it was starting up or not given a processor. At
     worst its samples are those of another window of the same program, whose share varies by
     p(1 − p)/m, where m is the number of visits to functions, (Σd)²/Σd² for visits of duration d:
     here it does matter that high rates see the same visit again and again.
So the effective number of samples is 1/(1/n + u/m), where u is the part of the window that was not
seen, and 1 unless the profiler says when it sampled and how many of its looks it missed.
"""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).resolve().parent / "programs"
Z99 = 2.5758

OUTSIDE = "~"  # any functions of other files
SHIM = ("__init__", "__init__")  # the interpreter's own, between a class that is called and its __init__
BOOTSTRAP = ("_bootstrap", "threading.py")  # the oldest function of a thread


def names() -> list[str]:
    """The programs; files with a leading underscore, and oracle.py, are parts of them."""
    return sorted(path.stem for path in PROGRAMS.glob("[!_]*.py") if path.stem != "oracle")


# Those about whole stacks. They have no shares, or are about where a profiler finds the frames.
WHOLE = ("tops", "tops_short", "tops_async", "greenlets", "subinterpreter", "embedded")


def needs(script: Path) -> list[str]:
    """The packages that the line `# needs:` of a program names."""
    found = re.search(r"^# needs: (.*)$", script.read_text(), re.MULTILINE)
    return found[1].split() if found else []


def ask_pythons(*words: str) -> str:
    return subprocess.run([sys.executable, str(ROOT / "tools" / "pythons"), *words],
                          check=True, stdout=subprocess.PIPE, text=True).stdout


def interpreters() -> dict[str, str]:
    """{"3.13": path}, the versions in order, with those that are only watched from outside."""
    return dict(line.split(" ", 1) for line in ask_pythons("list", "--all").splitlines())


class Unable(Exception):
    """One sentence: why this program cannot run here."""


class Program:
    """A running program of the oracle."""

    def __init__(self, name: str, python: str):
        self.name = name
        self.process = subprocess.Popen([python, "-B", "-E", str(PROGRAMS / f"{name}.py")],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            raise RuntimeError(f"{name} did not start under {python}")
        self.says = json.loads(line)
        if "unable" in self.says:
            self.__exit__()
            raise Unable(self.says["unable"])
        self.pid = self.says["pid"]
        self.logs: list[dict] = []

    def __enter__(self) -> Program:
        return self

    def __exit__(self, *_exception) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def finish(self) -> None:
        """Let it end, and take its logs."""
        out, _ = self.process.communicate(timeout=60)
        self.logs = json.loads(out)["logs"]

    def times(self, start_ns: int, end_ns: int) -> dict[str, list[int]]:
        """{label: nanoseconds of each of its visits}, as far as they lie in the window."""
        found: dict[str, list[int]] = {}
        for log in self.logs:
            labels, stamps = log["labels"], log["stamps"]
            step = len(labels) + 1
            for at in range(0, len(stamps) - step + 1, step):
                for number, label in enumerate(labels):
                    inside = min(stamps[at + number + 1], end_ns) - max(stamps[at + number], start_ns)
                    if inside > 0:
                        found.setdefault(label, []).append(inside)
        return found


# ---------------------------------------------------------------- can it be?

class Possible:
    """The stacks that a program can have."""

    def __init__(self, name: str, says: dict):
        self.file, self.modules = f"{name}.py", set(says["modules"])
        self.functions = {symbol for path in says["paths"] for symbol in path
                          if not symbol.startswith(("<", OUTSIDE))}
        self.prefixes = {()}
        for path in says["paths"]:
            self.prefixes.update(tuple(path[:length + 1]) for length in range(len(path)))
        self.cache: dict[tuple, tuple | None] = {}
        self.roots = set(says.get("roots", ["<module>"]))

    def begins(self, stack: tuple, symbols: tuple) -> bool:
        """Is its oldest function one that the program, or a thread, begins with?"""
        if not stack:
            return "" in self.roots
        function, file, _line = stack[0]
        return (symbols[0] in self.roots
                or (function.rsplit(".", 1)[-1], file.rsplit("/", 1)[-1]) == BOOTSTRAP)

    def symbol(self, function: str, file: str) -> str:
        base = file.rsplit("/", 1)[-1]
        short = function.rsplit(".", 1)[-1]
        if short in self.functions and not short.startswith("__"):
            return short
        if base == self.file:
            return short
        if base in self.modules:
            return f"{short}@{base}"
        return OUTSIDE

    def symbols(self, stack: tuple) -> tuple:
        """The stack in the terms of the paths."""
        key = tuple((function, file) for function, file, _line in stack)
        if key not in self.cache:
            found: list[str] = []
            for function, file in key:
                if (function, file) == SHIM:
                    continue
                symbol = self.symbol(function, file)
                if symbol != OUTSIDE or not found or found[-1] != OUTSIDE:
                    found.append(symbol)
            self.cache[key] = tuple(found)
        return self.cache[key]

    def __call__(self, symbols: tuple) -> bool:
        return symbols in self.prefixes


# ---------------------------------------------------------------- is it right?

@dataclass
class Share:
    group: str
    label: str
    true: float
    seen: float
    samples: int      # of the whole group
    effective: float  # see above
    slack: float = 0.0

    def half_width(self, z: float = Z99) -> float:
        if not self.effective:
            return 1.0
        spread = max(self.true * (1 - self.true), 1 / self.effective / 4)
        return z * math.sqrt(spread / self.effective) + self.slack

    @property
    def error(self) -> float:
        return self.seen - self.true

    def inside(self, z: float = Z99) -> bool:
        return self.samples > 0 and abs(self.error) <= self.half_width(z)


@dataclass
class Top:
    """How often the newest function was there, of the samples inside the one that calls it."""

    name: str
    true: float      # share of the callee, by its own clock
    least: bool      # … which is the least it can be
    seen: float      # share of the samples that have it as their newest
    samples: int     # inside the function
    due: float       # as many as its time by the clock makes
    instead: str = ""  # what most of the others showed

    @property
    def missing(self) -> float:
        """Samples without their newest function, beyond what is true. Negative by chance."""
        part = self.true - self.seen
        return self.due * (max(0.0, part) if self.least else part)


@dataclass
class Verdict:
    samples: int = 0      # stacks that were kept
    empty: int = 0        # … without any function
    cut: int = 0          # … that do not begin where the program or a thread does; empty ones, too
    impossible: int = 0
    examples: dict = field(default_factory=dict)  # {"main;a;e": samples}
    shares: list[Share] = field(default_factory=list)
    tops: list[Top] = field(default_factory=list)

    @property
    def missing_tops(self) -> float | None:
        """Of the samples due to functions whose callee is known; None if there is none."""
        due = sum(top.due for top in self.tops)
        return max(0.0, sum(top.missing for top in self.tops) / due) if due else None

    @property
    def missing_by_chance(self) -> float:
        """What that may be by chance, at 99 %."""
        due = sum(top.due for top in self.tops)
        variance = sum(top.due ** 2 * top.true * (1 - top.true) / top.samples
                       for top in self.tops if top.samples)
        return Z99 * math.sqrt(variance) / due if due else 0.0


def is_saying(stack: tuple) -> bool:
    """Does the program still say what it is? A quick profiler, or one of a busy machine, sees that."""
    return any((function, file.rsplit("/", 1)[-1]) == ("ready", "oracle.py") for function, file, _line in stack)


def judge(program: Program, profile, start_ns: int, end_ns: int) -> Verdict:
    """`profile` has `stacks` and, if its samples have weights, `times`, by which shares are judged
    then, as in its reports: rounds that take longer are fewer, but count for more. If it says when
    it sampled (`window`), the truth is that of this very time; else that from start_ns to end_ns."""
    start_ns, end_ns = profile.window or (start_ns, end_ns)
    possible, verdict = Possible(program.name, program.says), Verdict()
    for stack, samples in profile.stacks:
        verdict.samples += samples
        symbols = possible.symbols(stack)
        if not possible.begins(stack, symbols):
            verdict.cut += samples
        if not stack:
            verdict.empty += samples
        elif not possible(symbols) and not is_saying(stack):
            verdict.impossible += samples
            text = shown(symbols)
            verdict.examples[text] = verdict.examples.get(text, 0) + samples
    groups = program.says["shares"]
    truths, slack = program.times(start_ns, end_ns), program.says.get("slack", 0.0)
    verdict.tops = tops_of(program.says.get("tops", {}), possible, profile.stacks, truths)
    samples = counts_of(groups, possible, profile.stacks)
    weights = counts_of(groups, possible, profile.times) if profile.times else samples
    for group, members in groups.items():
        number = sum(samples.get((group, label), 0) for label in members)
        verdict.shares += shares_of(group, members, weights, number, truths, slack, profile.unseen)
    return verdict


def tops_of(wanted: dict, possible: Possible, stacks: list, truths: dict) -> list[Top]:
    """By samples and not by their time: what is asked is how many stacks were cut."""
    inside: dict[str, dict[tuple, int]] = {name: {} for name in wanted}
    for stack, samples in stacks:
        symbols = possible.symbols(stack)
        for name in inside.keys() & set(symbols):
            inside[name][symbols] = inside[name].get(symbols, 0) + samples
    times = {name: (sum(truths.get(top["leaf"], ())), sum(truths.get(top["rest"], ())))
             for name, top in wanted.items()}
    whole = sum(sum(pair) for pair in times.values())
    total = (sum(sum(counts.values()) for counts in inside.values())
             or sum(samples for _stack, samples in stacks))
    return [top_of(name, wanted[name], counts, times[name], total * sum(times[name]) / whole)
            for name, counts in inside.items() if sum(times[name])]


def top_of(name: str, wanted: dict, counts: dict, times: tuple, due: float) -> Top:
    path = tuple(wanted["path"])
    samples, found = sum(counts.values()), counts.get(path, 0)
    others = sorted((count, shown(symbols)) for symbols, count in counts.items() if symbols != path)
    return Top(name, times[0] / sum(times), wanted.get("least", False),
               found / samples if samples else 0.0, samples, due,
               others[-1][1] if others else "")


def counts_of(groups: dict, possible: Possible, stacks: list) -> dict:
    """{(group, label): samples or time}."""
    owner: dict[str, list] = {}
    counts: dict[tuple, float] = {}
    for group, labels in groups.items():
        for label in labels:
            owner.setdefault(label, []).append((group, label))
    for stack, weight in stacks:
        for key in {key for symbol in possible.symbols(stack) for key in owner.get(symbol, ())}:
            counts[key] = counts.get(key, 0) + weight
    return counts


def shares_of(group: str, labels: list, counts: dict, samples: int, truths: dict,
              slack: float, unseen: float) -> list[Share]:
    visits = [duration for label in labels for duration in truths.get(label, ())]
    total, squares = sum(visits), sum(duration * duration for duration in visits)
    whole = sum(counts.get((group, label), 0) for label in labels)
    if not total:
        return []
    effective = 1 / (1 / samples + unseen * squares / (total * total)) if samples else 0.0
    return [Share(group, label, sum(truths.get(label, ())) / total,
                  counts.get((group, label), 0) / whole if whole else 0.0, samples, effective,
                  slack) for label in labels]


def shown(symbols: tuple) -> str:
    """The stack on one line; a function that repeats is shown once, with its number."""
    parts: list[list] = []
    for symbol in symbols:
        if parts and parts[-1][0] == symbol:
            parts[-1][1] += 1
        else:
            parts.append([symbol, 1])
    return ";".join(name if count == 1 else f"{name}×{count}" for name, count in parts)


def now_ns() -> int:
    return time.monotonic_ns()
