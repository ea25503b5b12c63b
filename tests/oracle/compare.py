#!/usr/bin/env python3
"""Exact against sampled, in one run of any program.

  tests/oracle/compare.py                                   the real programs (tests/oracle/real)
  tests/oracle/compare.py app.py                            any program: its functions, listed
  tests/oracle/compare.py --programs mistune_html,pyperformance/richards --pythons 3.13 --rates 100,1000
  tests/oracle/compare.py --busy 2 --json out.json          beside two busy loops
  tests/oracle/compare.py --from out.json                   the tables again

`fathom run --calls --sample` records every call and samples, so each function has an exact share of
the time and a sampled one. Two results: functions whose shares differ by more than they may; and
one number, the *distance beyond chance*: half the sum of |sampled − exact| over all functions (0:
the same, 1: nothing in common), less what chance makes of as many samples (the mean absolute
deviation of a binomial, function by function; it may come out a little below zero). ± is two
standard deviations of that by chance.

What is compared. Self time by wall clock, per thread, waiting included, over all threads. Samples
have no frames of C, so the time of C functions is their Python caller's in both. Of the programs in
tests/oracle/real only what is below `real_work` counts: start-up is not seen alike by all; of any
other program, all functions that were called while calls were recorded. Calls are recorded without
C calls (--no-c-calls), which disturbs least; on 3.11 with them, as the other way would be another
way of calling.

What the collector costs. It reads the clock last on entry and first on exit, so of what it does
itself nearly all is charged to the caller, but meanwhile the callee's frame is the newest, where
samples find it. A loop of calls is timed here with and without it, on each Python; the difference
is the price of a call, of which the part MOVED is spent like that. So from a function's exact time,
price × MOVED × the calls it makes is taken, and as much for each call of it is added. Caches make
the price differ between programs (in real ones it is mostly larger than in a loop): the factor
between 2/3 and 5/3 is taken that fits best, one for all functions of a run, for each profiler
alike. A function may differ by its 99 % interval plus a third of what was so moved into and out of
it.

The peer is py-spy, which stops the program for each sample. It samples the same program, also while
its calls are recorded, and is compared with the exact numbers of its own run, right after Fathom's:
it is attached to a real program before the work begins (where imports come first it falls behind,
and makes up for it by samples that follow on each other, which would not be fair), and starts any
other (`fathom run --calls py-spy record … python PROGRAM`). That it slows the program down is not
held against it: time that the program stands still counts for the function in which it was stopped,
on both sides.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
sys.dont_write_bytecode = True

import packages
import profilers
import truth
from judge import interpreters, percent, table

REAL = Path(__file__).resolve().parent / "real"
ROOT = "real_work"
TIMEOUT = 300  # seconds
PYPERFORMANCE = ("generators", "richards", "deltablue", "go", "chaos", "raytrace", "nqueens",
                 "async_tree")

# Which part of a call's price is spent while the callee's frame is the newest and charged to the
# caller: fitted to py-spy at 500 Hz over functions of 15 to 250 ns, where it left a distance of 0.02
# to 0.04 (from 0.25 to 0.34). On 3.11 the profile function slows the instructions around a call as well.
MOVED = {"3.11": 0.5}
MOVED_OTHERS = 0.9
FACTORS = [2 / 3 + step / 30 for step in range(31)]

Key = tuple  # (name, file, first line) of a function


# ---------------------------------------------------------------- the numbers

@dataclass
class Exact:
    """The exact side of a run, functions of C counted with their callers."""

    self_ns: dict[Key, float] = field(default_factory=dict)
    entries: dict[Key, int] = field(default_factory=dict)  # calls of it, and resumes
    made: dict[Key, int] = field(default_factory=dict)     # calls and resumes of others by it

    @property
    def total_ns(self) -> float:
        return sum(self.self_ns.values()) or 1.0

    def moved_ns(self, key: Key) -> int:
        """× the price: what samples show with the callee and the collector with its caller."""
        return self.entries.get(key, 0) - self.made.get(key, 0)

    def share(self, key: Key, price_ns: float) -> float:
        return max(0.0, self.self_ns.get(key, 0) + price_ns * self.moved_ns(key)) / self.total_ns

    def doubt(self, key: Key, price_ns: float) -> float:
        """How far that may be off."""
        entries = self.entries.get(key, 0) + self.made.get(key, 0)
        return price_ns * entries / 3 / self.total_ns


def key_of(row: dict) -> Key:
    return row["name"].rsplit(".", 1)[-1], row["file"], row["line"]


def exact_of(tree: list[dict], root: str | None) -> Exact:
    """From the rows of `report --tree --json`, in which callers come before callees."""
    exact = Exact()
    owners: dict[int, Key | None] = {}  # the Python function that a node, or its C function, belongs to
    for row in tree:
        above = owners.get(row["parent"])
        is_python = bool(row["file"])
        if not is_python:
            owners[row["node"]] = above
        elif above or root is None or row["name"] == root:
            owners[row["node"]] = key_of(row)
        owner = owners.get(row["node"])
        if not owner:
            continue
        exact.self_ns[owner] = exact.self_ns.get(owner, 0) + row["self_ns"]
        if is_python and above:
            entries = row["calls"] + row["resumes"]
            exact.entries[owner] = exact.entries.get(owner, 0) + entries
            exact.made[above] = exact.made.get(above, 0) + entries
    return exact


@dataclass
class Sampled:
    weights: dict[Key, float] = field(default_factory=dict)  # samples, or their time
    samples: int = 0

    def add(self, key: Key, weight: float, samples: int) -> None:
        self.weights[key] = self.weights.get(key, 0) + weight
        self.samples += samples

    def share(self, key: Key) -> float:
        return self.weights.get(key, 0) / (sum(self.weights.values()) or 1.0)


def sampled_by_fathom(functions: list[dict], exact: Exact, root: str | None) -> Sampled:
    """From the rows of `report --states --json`: shares by time, as in its reports."""
    sampled = Sampled()
    for row in functions:
        if row.get("samples") and (root or key_of(row) in exact.self_ns):
            sampled.add(key_of(row), sum(row["states_ns"].values()), row["samples"])
    return sampled


def sampled_in_stacks(stacks: list, exact: Exact, root: str | None) -> Sampled:
    """From stacks whose frames have the line that ran, not the function's first: it is the last function
    of that name that begins before it."""
    known: dict[tuple, list[int]] = {}
    for name, file, line in exact.self_ns:
        known.setdefault((name, file), []).append(line)
    sampled = Sampled()
    for stack, samples in stacks:
        if stack and stack[-1][:2] == truth.SHIM:
            stack = stack[:-1]
        if not stack or (root and root not in (name for name, _file, _line in stack)):
            continue
        name, file, line = stack[-1]
        name = name.rsplit(".", 1)[-1]
        if not root and (name, file) not in known:
            continue
        begun = [first for first in known.get((name, file), ()) if first <= line]
        sampled.add((name, file, max(begun, default=0)), samples, samples)
    return sampled


def deviation_by_chance(p: float, n: int) -> float:
    """The mean of |k/n − p| for k of n: de Moivre's formula, exact for any p and n."""
    if p <= 0 or p >= 1 or n <= 0:
        return 0.0
    k = math.floor(n * p) + 1
    logarithm = (math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
                 + k * math.log(p) + (n - k + 1) * math.log1p(-p)) if k <= n else -math.inf
    return 2 * k * math.exp(logarithm) / n


@dataclass
class Comparison:
    samples: int
    raw: float        # half the sum of differences
    by_chance: float
    spread: float     # two standard deviations
    factor: float     # of the price that fits best
    off: list[dict]   # the functions that differ by more than they may

    @property
    def distance(self) -> float:
        return self.raw - self.by_chance


def compare(exact: Exact, sampled: Sampled, price_ns: float) -> Comparison:
    keys = sorted(exact.self_ns.keys() | sampled.weights.keys())
    seen = {key: sampled.share(key) for key in keys}

    def raw(factor: float) -> float:
        return sum(abs(seen[key] - exact.share(key, factor * price_ns)) for key in keys) / 2

    factor = min(FACTORS, key=raw)
    true = {key: exact.share(key, factor * price_ns) for key in keys}
    n = sampled.samples
    chance = sum(deviation_by_chance(p, n) for p in true.values()) / 2
    variance = sum(p * (1 - p) / n for p in true.values()) * (1 - 2 / math.pi) if n else 1.0
    return Comparison(n, raw(factor), chance, math.sqrt(variance), factor,
                      [row for row in (differs(key, true[key], seen[key], n,
                                               exact.doubt(key, factor * price_ns))
                                       for key in keys) if row])


def differs(key: Key, true: float, seen: float, n: int, doubt: float) -> dict | None:
    """None if it does not, by more than it may."""
    share = truth.Share("", key[0], true, seen, n, n, doubt)
    if share.inside():
        return None
    return {"function": key[0], "file": key[1], "line": key[2], "exact": true, "sampled": seen,
            "allowed": share.half_width()}


# ---------------------------------------------------------------- running

class Run:
    """One program under one Python, at one rate."""

    def __init__(self, version: str, python: str, words: list[str], root: str | None, scratch: Path):
        self.version, self.python, self.words, self.root = version, python, words, root
        self.recording, self.stacks = scratch / "run.fathom", scratch / "run.raw"

    def command(self, *words: object) -> list[str]:
        self.recording.unlink(missing_ok=True)
        return [profilers.FATHOM, "run", *collectors(self.version), "-q", "-o", str(self.recording),
                *map(str, words)]

    def run(self, *words: object) -> None:
        """A program may say what it likes, and end as it likes."""
        done = subprocess.run(self.command(*words), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True, errors="replace",
                              timeout=TIMEOUT)
        if not self.recording.exists():
            raise profilers.Failed((done.stdout.strip().splitlines() or ["no recording"])[-1])

    def report(self, *words: str) -> dict:
        return json.loads(profilers.run([profilers.FATHOM, "report", self.recording, "--json", "-n",
                                         "all", *words], 120))

    def exact(self) -> Exact:
        return exact_of(self.report("--tree", "--min", "0")["tree"], self.root)

    def fathom(self, rate: float) -> tuple[Exact, Sampled]:
        self.run("--sample", "--rate", rate if rate else "max", "--python", self.python, *self.words)
        rooted = ["--root", self.root] if self.root else []
        exact = self.exact()
        return exact, sampled_by_fathom(self.report("--states", *rooted)["functions"], exact, self.root)

    def py_spy(self, rate: float) -> tuple[Exact, Sampled]:
        self.stacks.unlink(missing_ok=True)
        words = [profilers.provide() / "py-spy", "record", "-r", int(rate or profilers.PySpy.fastest),
                 "-f", "raw", "--full-filenames", "--idle", "-o", self.stacks]
        if self.root:
            self.attached(words)
        else:
            self.run(*words, "--", self.python, *self.words)
        if not self.stacks.exists():
            raise profilers.Failed("py-spy wrote nothing")
        exact = self.exact()
        return exact, sampled_in_stacks(profilers.collapsed(self.stacks), exact, self.root)

    def attached(self, words: list) -> None:
        """The program waits until the profiler says that it samples, and ends both."""
        with subprocess.Popen(self.command("--python", self.python, *self.words),
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                              env={**os.environ, "REAL_WAIT": "1"}) as program:
            pid = program.stdout.readline().strip()
            if not pid:
                raise profilers.Failed("the program did not begin")
            with subprocess.Popen([*map(str, words), "-p", pid], stdin=subprocess.DEVNULL, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as profiler:
                said = profiler.stdout.readline()
                program.communicate("\n", timeout=TIMEOUT)
                said += profiler.communicate(timeout=TIMEOUT)[0]
        if profiler.returncode:
            raise profilers.Failed((said.strip().splitlines() or ["no word"])[-1])


def collectors(version: str) -> list[str]:
    return ["--calls"] if version == "3.11" else ["--calls", "--no-c-calls"]


@functools.lru_cache(maxsize=None)
def price_of_call(version: str, python: str) -> float:
    """Nanoseconds that the collector adds to a call and that are counted with the caller: the median of
    five, each the shortest of many loops, with it and without."""
    script = str(REAL / "_price.py")
    added = []
    with tempfile.TemporaryDirectory(prefix="fathom-oracle-") as scratch:
        for _ in range(5):
            with_it = profilers.run([profilers.FATHOM, "run", *collectors(version), "-q", "--force",
                                     "-o", f"{scratch}/price.fathom", "--python", python, script], 60)
            without = profilers.run([python, script], 60)
            added.append(float(with_it) - float(without))
    return max(0.0, statistics.median(added)) * MOVED.get(version, MOVED_OTHERS)


@contextlib.contextmanager
def busy(number: int):
    """So many loops beside, for as long as it lasts."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(number)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


# ---------------------------------------------------------------- programs

def real_names() -> list[str]:
    own = sorted(path.stem for path in REAL.glob("[!_]*.py") if path.stem != "pyperformance")
    return own + [f"pyperformance/{name}" for name in PYPERFORMANCE]


def prepared(name: str, version: str, python: str, seconds: float) -> tuple[str, list[str], str | None]:
    """Interpreter, words and root of a real program, or of a script with its arguments."""
    if name not in real_names():
        return python, name.split(), None
    group, _, short = name.partition("/")
    script = REAL / f"{group}.py"
    interpreter = packages.provide(version, python, truth.needs(script))
    words = [str(script), f"{seconds:.1f}"]
    if short:
        words += [short, str(pyperformance(interpreter))]
    return interpreter, words, ROOT


def pyperformance(interpreter: str) -> Path:
    sys.path.insert(0, str(truth.ROOT / "bench"))
    import peers
    try:
        return peers.pyperformance(interpreter)[0]
    except peers.Failure as failure:
        raise profilers.Failed(str(failure)) from None


def measure_one(name: str, version: str, python: str, rate: float, chosen) -> dict:
    """A row: each profiler's comparison, or why there is none."""
    row = {"python": version, "program": name, "rate": rate, "busy": chosen.busy}
    seconds = min(chosen.most_seconds, max(2.0, chosen.samples / (rate or 10_000)))
    try:
        interpreter, words, root = prepared(name, version, python, seconds)
        row["price_ns"] = price = price_of_call(version, python)
    except profilers.Failed as failure:
        return {**row, "skipped": str(failure)}
    with tempfile.TemporaryDirectory(prefix="fathom-oracle-") as scratch, busy(chosen.busy):
        run = Run(version, interpreter, words, root, Path(scratch))
        for profiler in chosen.profilers:
            try:
                exact, sampled = getattr(run, profiler)(rate)
                if not sampled.samples:
                    raise profilers.Failed("no samples")
                row[profiler] = plain(compare(exact, sampled, price))
            except (profilers.Failed, ValueError, OSError, subprocess.TimeoutExpired) as failure:
                row[profiler] = {"failed": str(failure)}
    return row


def plain(comparison: Comparison) -> dict:
    return {"samples": comparison.samples, "raw": comparison.raw, "by_chance": comparison.by_chance,
            "spread": comparison.spread, "distance": comparison.distance,
            "factor": comparison.factor, "off": comparison.off}


def measure(chosen) -> list[dict]:
    """Interrupted, the rows so far."""
    rows: list[dict] = []
    with contextlib.suppress(KeyboardInterrupt):
        for version, python in interpreters(chosen.pythons).items():
            if version not in truth.ask_pythons("versions").split():
                continue  # no agent, hence nothing exact
            for name in chosen.programs:
                for rate in chosen.rates:
                    rows.append(measure_one(name, version, python, rate, chosen))
                    print(line_of(rows[-1]), file=sys.stderr, flush=True)
                    if chosen.json:
                        Path(chosen.json).write_text(json.dumps(rows))
    return rows


# ---------------------------------------------------------------- tables

NAMES = {"fathom": "Fathom", "py_spy": "py-spy"}


def rate_name(rate: float) -> str:
    return f"{rate:.0f} Hz" if rate else "max"


def shown(result: dict | None) -> str:
    if not result or "failed" in result:
        return "failed" if result else "–"
    return f"{result['distance']:+.3f} ± {result['spread']:.3f}"


def line_of(row: dict) -> str:
    head = f"{row['python']:5} {row['program']:26} {rate_name(row['rate']):8}"
    if "skipped" in row:
        return f"{head} skipped: {row['skipped']}"
    parts = []
    for profiler, name in NAMES.items():
        result = row.get(profiler)
        if result and "failed" in result:
            parts.append(f"{name} failed: {result['failed']}")
        elif result:
            parts.append(f"{name} {shown(result)} of {result['samples']} samples")
    return f"{head} {'; '.join(parts)}"


def programs_table(rows: list[dict]) -> str:
    """A row per program and rate, a column per Python and profiler."""
    versions = sorted({row["python"] for row in rows}, key=lambda text: int(text.split(".")[1]))
    used = [profiler for profiler in NAMES if any(profiler in row for row in rows)]
    cells = {(row["program"], row["rate"], row["python"]): row for row in rows}
    lines = [[program, rate_name(rate),
              *(shown(cells.get((program, rate, version), {}).get(profiler))
                for version in versions for profiler in used)]
             for program, rate in dict.fromkeys((row["program"], row["rate"]) for row in rows)]
    return table(["program", "rate", *(f"{version} {NAMES[profiler]}" for version in versions
                                       for profiler in used)], lines)


def summary(rows: list[dict]) -> str:
    """A row per Python and rate: mean and largest of the programs that all profilers managed."""
    groups: dict[tuple, list[dict]] = {}
    for row in rows:
        groups.setdefault((row["python"], row["rate"], row["busy"]), []).append(row)
    lines = []
    for (python, rate, beside), members in groups.items():
        for profiler, name in NAMES.items():
            good = [(row[profiler]["distance"], row["program"]) for row in members
                    if "distance" in row.get(profiler, {})]
            if good:
                worst = max(good)
                failed = sum("failed" in row.get(profiler, {}) for row in members)
                lines.append([f"{name}, {rate_name(rate)}", python, str(beside), str(len(good)),
                              str(failed), f"{statistics.mean(value for value, _ in good):+.3f}",
                              f"{worst[0]:+.3f}", worst[1]])
    return table(["profiler", "Python", "busy beside", "programs", "failed", "mean distance",
                  "largest", "of"], lines)


def listing(rows: list[dict], most: int) -> str:
    """The functions that differ by more than they may, the largest differences first."""
    lines = []
    for row in rows:
        for profiler, name in NAMES.items():
            off = sorted(row.get(profiler, {}).get("off", ()),
                         key=lambda each: -abs(each["sampled"] - each["exact"]))
            if not off:
                continue
            lines.append(f"{row['program']}, {row['python']}, {rate_name(row['rate'])}, {name}: "
                         f"{len(off)} functions are off")
            lines += [f"    exact {percent(each['exact']):>8}  sampled {percent(each['sampled']):>8}  "
                      f"may be off {percent(each['allowed']):>7}  {each['function']}  "
                      f"{Path(each['file']).name}:{each['line']}" for each in off[:most]]
    return "\n".join(lines)


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, prog="compare.py",
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="*", metavar="PROGRAM",
                        help="scripts; one with arguments as one word: 'app.py --size 3'")
    parser.add_argument("--programs", metavar="NAMES", help=f"all, or of {', '.join(real_names())}")
    parser.add_argument("--pythons", default="all", metavar="3.12,3.15")
    parser.add_argument("--rates", default="1000", metavar="HZ", help="100,1000")
    parser.add_argument("--profilers", default="fathom,py-spy", metavar="NAMES")
    parser.add_argument("--samples", type=int, default=3000, metavar="N",
                        help="how many to aim at, of the real programs (3000)")
    parser.add_argument("--most-seconds", type=float, default=30, metavar="S",
                        help="of one run of them, whatever the rate (30)")
    parser.add_argument("--busy", type=int, default=0, metavar="N", help="busy loops beside (0)")
    parser.add_argument("--functions", type=int, default=8, metavar="N",
                        help="listed for each run (8)")
    parser.add_argument("--json", metavar="FILE", help="every number, too")
    parser.add_argument("--from", dest="source", action="append", metavar="FILE",
                        help="measure nothing, show the tables of earlier runs")
    chosen = parser.parse_args()
    chosen.rates = [0.0 if rate == "max" else float(rate) for rate in chosen.rates.split(",")]
    chosen.profilers = [name.replace("-", "_") for name in chosen.profilers.split(",")]
    wanted = chosen.programs.split(",") if chosen.programs else []
    if chosen.programs == "all" or not (chosen.program or wanted):
        wanted = real_names()
    for name in wanted:
        if name not in real_names():
            parser.error(f"{name}: the programs are {', '.join(real_names())}")
    if any(name not in NAMES for name in chosen.profilers):
        parser.error("the profilers are fathom and py-spy")
    chosen.programs = [*chosen.program, *wanted]
    return chosen


def main() -> int:
    chosen = options()
    if chosen.source:
        rows = [row for name in chosen.source for row in json.loads(Path(name).read_text())]
    else:
        rows = measure(chosen)
    text = listing(rows, chosen.functions)
    if text:
        print(text + "\n")
    print(programs_table(rows))
    print(summary(rows))
    return 1 if any("failed" in row.get("fathom", {}) or row.get("fathom", {}).get("off")
                    for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
