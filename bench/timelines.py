"""The parts of the group trace about whole recordings: many (a hundred million events) and sampled (the order of samples).

many: richards under `fathom run --trace` until there are so many events. The memory of the launcher and of the program
together is looked at from outside all the time (proportional set size: what both have mapped counts once). Then
`fathom view` shows the recording in headless Chromium: first picture, then zooming and moving. The same of a recording
that tests/unit/tool_trace.c makes: two processes with three threads each, calls down to 60 deep.

sampled: eight threads that are always busy, for a minute, sampled at the default rate, with and without --no-timeline.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from pathlib import Path

import peers
import tables
import viewer

MANY, QUICK = 100_000_000, 5_000_000
PROGRAM = "pyperformance/richards"
TARGET_MEMORY, TARGET_OPEN_S, TARGET_FRAME_MS = 300_000_000, 2.0, 50
MINUTE_S, QUICK_S = 60, 10
TARGET_ORDER, TARGET_ORDER_HOUR = 0.05, 1_000_000
MB = 1_000_000
VERSION = "3.13"  # one will do: what is measured here is the launcher and the viewer


def some(found: dict[str, str]) -> tuple[str, str]:
    version = VERSION if VERSION in found else next(iter(found))
    return version, found[version]


# ---------------------------------------------------------------- many

class Memory(threading.Thread):
    """Looks at the memory of a process and its children until told to stop: the most that all had at once."""

    def __init__(self, pid: int):
        super().__init__(daemon=True)
        self.pid, self.most, self.alone, self.stop = pid, 0, 0, threading.Event()

    def run(self) -> None:
        while not self.stop.wait(0.05):
            own, children = pss(self.pid), sum(map(pss, children_of(self.pid)))
            self.most, self.alone = max(self.most, own + children), max(self.alone, own)


def pss(pid: int) -> int:
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    except OSError:
        pass
    return 0


def children_of(pid: int) -> list[int]:
    try:
        return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))
    except OSError:
        return []


def recorded(build: Path, python: str, programs: Path, scratch: Path, events: int) -> tuple[dict, Path]:
    """The recording, and what making it took. A short run tells how many loops there have to be."""
    import tracing

    def run(loops, *command):
        env = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "FATHOM"))}
        words = [*command, python, peers.HERE / "traced.py", PROGRAM, loops, programs, scratch / "answer.json"]
        process = subprocess.Popen(list(map(str, words)), env=env, stdin=subprocess.DEVNULL, cwd=scratch,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        memory, start = Memory(process.pid), time.perf_counter()
        memory.start()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        memory.stop.set()
        memory.join()
        if process.returncode:
            raise peers.Failure(f"{PROGRAM}: status {process.returncode}")
        return {"wall": time.perf_counter() - start, "cpu": usage.ru_utime + usage.ru_stime, "memory": memory.most,
                "launcher": memory.alone}

    def traced(loops):
        return run(loops, build / "fathom", "run", "-q", "--trace", "-f", "-o", out, "--python")

    out = scratch / "many.fathom"
    traced(1)
    few = tracing.counted(str(build / "fathom"), out)[0]
    traced(3)
    each = (tracing.counted(str(build / "fathom"), out)[0] - few) / 2
    loops = max(1, round(events / each))
    plain = run(loops)
    result = {"plain": plain, **traced(loops), "bytes": out.stat().st_size}
    result["events"], result["lost"] = tracing.counted(str(build / "fathom"), out)
    return result, out


def shown(build: Path, recording: Path) -> dict:
    command = [str(build / "fathom"), "view", "--no-browser", str(recording)]
    with viewer.ended(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                       stderr=subprocess.DEVNULL, text=True)) as server:
        address = server.stdout.readline().strip()
        if not address.startswith("http://127.0.0.1:"):
            raise peers.Failure("fathom view does not say its address")
        result = viewer.measured_page("fathom", address, "--timeline")
        return {**result, "file": recording.stat().st_size, "server": pss(server.pid)}


def many(build: Path, scratch: Path, found: dict[str, str], quick: bool, say) -> dict:
    events = QUICK if quick else MANY
    version, python = some(found)
    interpreter, _ = peers.environment(version, python, ("sqlglot", "viztracer"), "venv-trace")
    programs, _ = peers.pyperformance(interpreter)
    result, recording = recorded(build, interpreter, programs, scratch, events)
    result["version"] = version
    say(f"trace/many: {result['events'] / 1e6:.1f} M events, {result['memory'] / MB:.0f} MB, "
        f"{result['bytes'] / result['events']:.2f} B/event")
    made = scratch / "made.fathom"
    peers.run(build / "tests" / "unit" / "tool_trace", made, events, 2, 3)
    viewer.chromium()
    viewer.browser_modules()
    result["shown"] = {}
    for title, path in (("richards", recording), ("made up", made)):
        # The best of two: a page that is opened for the first time is also the file's first reading from disk.
        runs = [shown(build, path) for _ in range(2)]
        result["shown"][title] = best(runs)
        say(f"trace/many: {title}: " + page_line(result["shown"][title]))
    return result


def best(runs: list[dict]) -> dict:
    """Of several pages the least of each number."""
    good = [run for run in runs if "answers" in run]
    if not good:
        return runs[0]
    least = dict(min(good, key=lambda run: run["open"]))
    for kind in ("answers", "cpu"):
        least[kind] = {name: min(run[kind][name] for run in good) for name in good[0][kind]}
    return least


def page_line(run: dict) -> str:
    if "open" not in run:
        return run.get("failure", "not measured")
    return (f"first picture after {run['open'] / 1000:.2f} s, {len(run['answers'])} zooms and moves, the slowest "
            f"{max(run['answers'].values()):.0f} ms (CPU {max(run['cpu'].values()):.0f})")


def many_markdown(result: dict) -> str:
    rows = [[f"recording: launcher and program together ({result['plain']['memory'] / MB:.0f} MB is the program's)",
             f"{result['memory'] / MB:.0f} MB",
             viewer.verdict(result["memory"], TARGET_MEMORY, f"≤ {TARGET_MEMORY / MB:.0f} MB")],
            ["file", f"{result['bytes'] / MB:.1f} MB, {result['bytes'] / result['events']:.2f} B/event", "–"],
            ["lost", f"{result['lost']}", "–"]]
    for title, run in result["shown"].items():
        if "answers" not in run:
            rows.append([f"{title}: {run.get('failure', '')}", "–", "NOT reached"])
            continue
        slowest = max(run["answers"], key=run["answers"].get)
        rows += [[f"{title} ({run['file'] / MB:.0f} MB): first picture", f"{run['open'] / 1000:.2f} s",
                  viewer.verdict(run["open"] / 1000, TARGET_OPEN_S, f"≤ {TARGET_OPEN_S:.0f} s")],
                 [f"{title}: slowest of {len(run['answers'])} zooms and moves ({slowest})",
                  f"{run['answers'][slowest]:.0f} ms (CPU {max(run['cpu'].values()):.0f})",
                  viewer.verdict(run["answers"][slowest], TARGET_FRAME_MS, f"< {TARGET_FRAME_MS} ms")],
                 [f"{title}: memory of the tab then, and of the server",
                  f"{run['memory_after'] / MB:.0f} MB, {run['server'] / MB:.0f} MB", "–"]]
    return tables.table([f"{result['events'] / 1e6:.0f} M events, Python {result['version']}", "", "target"], rows)


# ---------------------------------------------------------------- sampled

def sampled(build: Path, scratch: Path, found: dict[str, str], quick: bool, say) -> dict:
    version, python = some(found)
    seconds = QUICK_S if quick else MINUTE_S
    result: dict = {"version": version, "seconds": seconds}
    for name, options in (("with", []), ("without", ["--no-timeline"])):
        out = scratch / f"{name}.fathom"
        peers.run(build / "fathom", "run", "-q", *options, "-f", "-o", out, "--python", python,
                  peers.HERE / "programs" / "sampling" / "eight.py", seconds)
        result[name] = out.stat().st_size
    say(f"trace/sampled: {result['without']} bytes without the order, {result['with']} with it")
    return result


def sampled_markdown(result: dict) -> str:
    more = result["with"] - result["without"]
    hourly = more * 3600 / result["seconds"]
    good = more <= TARGET_ORDER * result["without"] or hourly < TARGET_ORDER_HOUR
    return (f"The order of samples, eight busy threads for {result['seconds']} s on {result['version']}: "
            f"{result['without'] / 1000:.0f} KB without it, {result['with'] / 1000:.0f} KB with it "
            f"({100 * more / result['without']:+.1f} %; {hourly / MB:.2f} MB an hour at that pace): "
            f"{'reached' if good else 'NOT reached'} (≤ {100 * TARGET_ORDER:.0f} %, or < 1 MB an hour)\n")


PARTS = {"many": many, "sampled": sampled}


def markdown(data: dict) -> str:
    out = []
    if data.get("many"):
        out.append(many_markdown(data["many"]))
    if data.get("sampled"):
        out.append(sampled_markdown(data["sampled"]))
    return "\n".join(["### Large traces, and the order of samples\n", *out]) if out else ""
