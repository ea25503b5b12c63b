"""The group trace: what `fathom run --trace` adds, beside viztracer and trace0; recordings of a hundred million events;
what the order of samples adds to a sampled recording.

Whole processes from start to end, the file written, interleaved: CPU time of the command and all its children, and wall
time. Like is paired with like: `--trace` with viztracer's default, `--trace --no-c-calls` with `--ignore_c_function` and
with trace0, which has no C calls. viztracer gets as many entries as there are calls, for it forgets the oldest
otherwise. What each recorded is counted: trace0 drops events when its writer is late, and says so in its file alone.
The program times its own work as well, by the CPU clock of its thread: what tracing costs there is compared with the
same events delivered to a C function that only reads the clock (floor.c).
"""

from __future__ import annotations

import json
import os
import re
import struct
import subprocess
import time
from pathlib import Path

import peers
import suite
import tables

PROGRAMS = ("loops/fib", "loops/methods", "loops/c_calls", "loops/generators", "loops/deep",
            *(f"pyperformance/{name}" for name in ("deltablue", "logging", "raytrace", "richards")),
            *(f"real/{name}" for name in suite.REAL))
PAIRS = (("fathom", "viztracer", "reads"), ("fathom-python", "viztracer-python", "reads-python"))
TARGET_VIZTRACER, TARGET_TRACE0, TARGET_THREAD, TARGET_BYTES = 0.20, 1.0, 1.35, 0.8
SHORT = 10  # programs run so much shorter than in other groups: viztracer keeps everything in memory
SLOW_ROUNDS = 1  # for viztracer: its times are far above the noise


def environments(version: str, python: str) -> dict[str, str]:
    """Interpreters: one for most, and trace0's own, for it puts itself into every start of its Python."""
    result = {}
    for name, wanted in (("trace", ("sqlglot", "viztracer")), ("trace0", ("sqlglot", "trace0"))):
        interpreter, present = peers.environment(version, python, wanted, f"venv-{name}")
        if name == "trace" or "trace0" in present:
            result[name] = interpreter
    return result


class Tracing:
    """The measurements of one Python."""

    def __init__(self, build: Path, scratch: Path, version: str, python: str, say):
        self.build, self.scratch, self.say = build, scratch, say
        self.fathom = str(build / "fathom")
        self.interpreters = environments(version, python)
        self.programs, _ = peers.pyperformance(self.interpreters["trace"])
        self.version = version
        self.floor = peers.floor(version)
        self.versions: dict[str, str] = {"viztracer": peers.module_version(self.interpreters["trace"], "viztracer"),
                         "trace0": peers.module_version(self.interpreters["trace0"], "trace0")
                         if "trace0" in self.interpreters else ""}

        self.ways = list(self.commands(1))

    def commands(self, entries: int) -> dict[str, tuple[list, Path | None]]:
        """Each variant's command in front of the program, and the file it writes."""
        interpreter = self.interpreters["trace"]

        def fathom(name, *options):
            out = self.scratch / f"{name}.fathom"
            return ([self.fathom, "run", "--quiet", "--trace", *options, "-f", "-o", out, "--python", interpreter], out)

        def viztracer(name, *options):
            out = self.scratch / f"{name}.json"
            return ([interpreter, "-m", "viztracer", "--quiet", "--tracer_entries", entries, *options, "-o", out, "--"],
                    out)

        result = {"plain": ([interpreter], None), "fathom": fathom("fathom"),
                  "fathom-python": fathom("fathom-python", "--no-c-calls")}
        if self.versions["viztracer"]:
            result["viztracer"] = viztracer("viztracer")
            result["viztracer-python"] = viztracer("viztracer-python", "--ignore_c_function")
        if self.versions["trace0"]:
            out = self.scratch / "trace0.pftrace"
            result["trace0"] = [Path(self.interpreters["trace0"]).parent / "trace0", "run", "-o", out], out
        return result

    def once(self, command: list, name: str, loops: int, events: str = "") -> dict:
        """Seconds of wall and CPU time from start to end, and what the thread took for its work."""
        answer = self.scratch / "answer.json"
        answer.unlink(missing_ok=True)
        env = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "FATHOM"))}
        words = [*command, peers.HERE / "traced.py", name, loops, self.programs, answer, *([events] if events else [])]
        env = {**env, "PYTHONHASHSEED": "0", "PYTHONPATH": str(self.floor) if events else ""}
        start = time.perf_counter()
        process = subprocess.Popen(list(map(str, words)), env=env, stdin=subprocess.DEVNULL, cwd=self.scratch,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        said = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.perf_counter() - start
        process.returncode = os.waitstatus_to_exitcode(status)
        process.stderr.close()
        if process.returncode or not answer.exists():
            raise peers.Failure((said.strip().splitlines() or [f"status {process.returncode}"])[-1])
        return {"wall": wall, "cpu": usage.ru_utime + usage.ru_stime, "thread": json.loads(answer.read_text())}

    def loops(self, name: str, seconds: float) -> int:
        command, loops = [self.interpreters["trace"]], 1
        while True:
            took = min(self.once(command, name, loops)["thread"] for _ in range(2))
            if took >= seconds / 4:
                return max(1, round(loops * seconds / took))
            loops = max(loops * 2, min(loops * 10, int(loops * seconds / 3 / max(took, 1e-6))))

    def program(self, name: str, rounds: int, seconds: float) -> dict:
        result: dict = {"loops": self.loops(name, seconds), "events": {}, "lost": {}, "bytes": {}, "timeline": {}}
        missing: set[str] = set()
        for number in range(rounds):
            for way in self.ways:
                if way in missing or (way.startswith("viztracer") and number >= SLOW_ROUNDS):
                    continue
                command, out = self.commands(max(100_000, result["events"].get("fathom", 0)))[way]
                try:
                    run = self.once(command, name, result["loops"])
                except peers.Failure as failure:
                    if way.startswith(("plain", "fathom")):
                        raise
                    missing.add(way)
                    self.say(f"trace  {self.version}  {name}: without {way}: {failure}")
                    continue
                keep(result, way, {clock: run[clock] for clock in ("cpu", "wall")})
                if out and number == 0:
                    result["bytes"][way] = out.stat().st_size
                    result["timeline"][way] = timeline_bytes(out)
                    result["events"][way], result["lost"][way] = counted(self.fathom, out)
                elif out and way == "trace0":  # each run drops as many as it has to
                    result["lost"][way] = min(result["lost"][way], dropped(out.read_bytes()))
        for _ in range(rounds):
            self.thread(name, result)
        return result

    def thread(self, name: str, result: dict) -> None:
        """What the thread takes: for longer, so that chunks are used again, as in any run but the shortest."""
        commands = self.commands(1)
        for way in ("plain", "fathom", "fathom-python"):
            keep(result, way, {"thread": self.once(commands[way][0], name, SHORT * result["loops"])["thread"]})
        for events in ("reads", "reads-python"):
            run = self.once(commands["plain"][0], name, SHORT * result["loops"], events)
            keep(result, events, {"thread": run["thread"]})


def keep(result: dict, way: str, run: dict) -> None:
    for clock, seconds in run.items():
        result.setdefault(clock, {}).setdefault(way, []).append(seconds)


# ---------------------------------------------------------------- what was recorded

def counted(fathom: str, path: Path) -> tuple[int, int]:
    """Events (beginnings and ends of calls, goings on and yields of generators) in the file, and how many are not."""
    if path.suffix == ".fathom":
        done = subprocess.run([fathom, "report", "--json", "-n", "1", path], capture_output=True, text=True)
        if done.returncode:
            raise peers.Failure(done.stderr.strip())
        report = json.loads(done.stdout)  # whose calls are those of cProfile, goings on of generators among them
        return 2 * report["calls"], sum(note["count"] for note in report["notes"] if "lost" in str(note))
    if path.suffix == ".json":
        # One line a call, as viztracer writes it: the whole would not fit into memory as Python's objects.
        return 2 * path.read_bytes().count(b'"ph": "X"'), 0
    data = path.read_bytes()
    return slices(data), dropped(data)


def timeline_bytes(path: Path) -> int:
    """Of a recording of Fathom's what the timeline takes: blocks 32 to 40 of docs/format.md. The rest is of any
    recording, whatever its length: source text, the tree of calls."""
    if path.suffix != ".fathom":
        return path.stat().st_size
    total = 0
    with open(path, "rb") as file:
        file.seek(16)
        while len(head := file.read(24)) == 24:
            kind, _, stored = struct.unpack_from("<HHI", head, 4)
            total += 24 + stored if 32 <= kind <= 40 else 0
            file.seek(stored, os.SEEK_CUR)
    return total


def slices(data: bytes) -> int:
    """Begins and ends in a Perfetto file: packets (field 1) whose track event (field 11) has such a type (field 9)."""
    at, count, end = 0, 0, len(data)
    while at < end:
        length, at = varint(data, at + 1)
        body, stop = at, at + length
        while body < stop:
            tag, body = varint(data, body)
            kind = tag & 7
            if kind == 0:
                _, body = varint(data, body)
                continue
            size, body = varint(data, body) if kind == 2 else (8 if kind == 1 else 4, body)
            if tag == 0x5a:
                count += data[body] == 0x48 and data[body + 1] in (1, 2)
            body += size
        at = stop
    return count


def varint(data: bytes, at: int) -> tuple[int, int]:
    value = data[at]
    if value < 128:
        return value, at + 1
    value, shift = value & 127, 7
    while True:
        at += 1
        value |= (data[at] & 127) << shift
        if data[at] < 128:
            return value, at + 1
        shift += 7


def dropped(data: bytes) -> int:
    return sum(map(int, re.findall(rb"trace0: (\d+) events dropped", data)))


# ---------------------------------------------------------------- tables

def added(times: dict, way: str, clock: str) -> float | None:
    series = times.get(clock, {})
    return min(series[way]) - min(series["plain"]) if way in series else None


def ratio(times: dict, ours: str, theirs: str, clock: str) -> tuple[float, bool] | None:
    a, b = added(times, ours, clock), added(times, theirs, clock)
    if a is None or b is None:
        return None
    floor = tables.NOISE * min(times[clock]["plain"])
    return max(a, floor) / max(b, floor), a < floor or b < floor


def per_event(times: dict, way: str, what: str = "timeline") -> float:
    return times[what][way] / times["events"][way]


def row_of(name: str, times: dict, ours: str, theirs: str, reads: str) -> list[str]:
    def ms(way, clock):
        value = added(times, way, clock)
        return "–" if value is None else f"{1000 * value:.0f}"

    events = times["events"][ours]
    row = [name, f"{events / 1e6:.2f} M", *(ms(way, "cpu") for way in (ours, theirs)),
           tables.shown(ratio(times, ours, theirs, "cpu")), tables.shown(ratio(times, ours, theirs, "wall"))]
    if reads == "reads-python":
        row += [ms("trace0", "cpu"), tables.shown(ratio(times, ours, "trace0", "cpu")),
                tables.shown(ratio(times, ours, "trace0", "wall")), lost_note(times)]
    return [*row, tables.shown(ratio(times, ours, reads, "thread")), f"{per_event(times, ours):.2f}",
            f"{per_event(times, ours, 'bytes'):.2f}", seen(times, ours, theirs)]


def summary(times: dict) -> str:
    """One line while measuring."""
    values = [tables.shown(ratio(times, "fathom", "viztracer", "cpu")),
              tables.shown(ratio(times, "fathom-python", "trace0", "cpu")),
              tables.shown(ratio(times, "fathom", "reads", "thread")),
              tables.shown(ratio(times, "fathom-python", "reads-python", "thread"))]
    return (f"{values[0]} of viztracer, {values[1]} of trace0; thread {values[2]}, without C calls {values[3]}; "
            f"{per_event(times, 'fathom'):.2f} B/event")


def lost_note(times: dict) -> str:
    """Of all events that trace0 saw, the least share that a run dropped."""
    if "trace0" not in times["events"]:
        return "–"
    lost = times["lost"]["trace0"]
    return f"{100 * lost / max(1, times['events']['trace0'] + lost):.1f} %" if lost else "none"


def seen(times: dict, ours: str, theirs: str) -> str:
    """Whether all of it is there: what Fathom lost, and how many events viztracer has."""
    if times["lost"][ours]:
        return f"{times['lost'][ours]} lost"
    if theirs not in times["events"]:
        return "all"
    share = times["events"][ours] / max(1, times["events"][theirs]) - 1
    return "equal" if abs(share) < 0.005 else f"{100 * share:+.1f} %"


def busy(programs: dict, ours: str) -> dict:
    """Those that have something to record: not a program of C calls when these are left out."""
    return {name: times for name, times in programs.items() if times["events"][ours] > 0.2 * times["events"]["fathom"]}


def mean(programs: dict, ours: str, theirs: str, clock: str):
    return tables.geometric_mean([ratio(times, ours, theirs, clock) for times in programs.values()])


def worst(programs: dict, ours: str, theirs: str, clock: str):
    found = [ratio(times, ours, theirs, clock) for times in programs.values()]
    return max((value for value in found if value), default=None)


def verdicts(programs: dict) -> str:
    rows, everything = [], programs
    for ours, theirs, reads in PAIRS:
        programs = busy(everything, ours)
        title = "with C calls" if ours == "fathom" else "Python functions only"
        for what, other, clock, target in (("viztracer's added CPU time", theirs, "cpu", TARGET_VIZTRACER),
                                           ("viztracer's added wall time", theirs, "wall", TARGET_VIZTRACER),
                                           ("trace0's added CPU time", "trace0", "cpu", TARGET_TRACE0),
                                           ("trace0's added wall time", "trace0", "wall", TARGET_TRACE0),
                                           ("callback that reads the clock, in the thread", reads, "thread", TARGET_THREAD)):
            value = mean(programs, ours, other, clock)
            if value and not (other == "trace0" and ours == "fathom"):
                rows.append([f"{what}, {title}", tables.shown(value), tables.shown(worst(programs, ours, other, clock)),
                             tables.verdict(value, target)])
        most = max(per_event(times, ours) for times in programs.values())
        rows.append([f"bytes of the timeline per event, {title}", "", f"{most:.2f}", tables.verdict((most, False), TARGET_BYTES)])
    return tables.table(["of", "mean", "worst program", "target"], rows)


def markdown_programs(version: str, result: dict) -> list[str]:
    programs = result["programs"]
    names = ", ".join(f"{name} {number}" for name, number in result["versions"].items() if number)
    out = [f"Python {version}; {names or 'no peer knows it'}\n\n" + verdicts(programs)]
    for ours, theirs, reads in PAIRS:
        head = ["with C calls" if ours == "fathom" else "Python functions only", "events", "added ms", "viztracer",
                "ratio", "wall"]
        if reads == "reads-python":
            head += ["trace0", "ratio", "wall", "it dropped"]
        head += ["thread", "B/event", "whole file", "events seen"]
        out.append(tables.table(head, [row_of(name, times, ours, theirs, reads)
                                       for name, times in busy(programs, ours).items()]))
    return out


def markdown(data: dict) -> str:
    out = []
    for version, result in data.items():
        if result.get("programs"):
            out += markdown_programs(version, result)
    return "\n".join(["## What tracing adds\n", *out]) if out else ""
