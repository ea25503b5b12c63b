"""The group viewer: `fathom view` in a headless browser, beside speedscope and snakeviz.

All show the same recording: of a million contexts as Fathom's one-file report, as speedscope's JSON
and as pstats, both by `fathom convert`. (pstats has no contexts: snakeviz has a table of 5,000
functions to show, and guesses a tree from it.) tests/browser/measure.js opens each in a browser of
its own, in turn. Peers come from the package indexes into the cache, once; what is served is served
on the loopback device.
"""

from __future__ import annotations

import contextlib
import functools
import http.server
import json
import os
import shutil
import socket
import subprocess
import threading
import time
import urllib.parse
from pathlib import Path

import peers
import tables

BROWSER = peers.ROOT / "tests" / "browser"
CONTEXTS = 1_000_000
MANY_CONTEXTS = 10_000_000
PATIENCE_S = 120  # for one picture
MB = 1_000_000

TARGET_OPEN_S = 1.5
TARGET_ANSWER_MS = 100
TARGET_MEMORY = 500 * MB

ANSWERS = {  # those with a target; of re-rooting there are two, and the slower one counts
    "zoom": ("zoom",), "search": ("search", "search_more"),
    "re-root": ("re_root", "re_root_top"), "another metric": ("metric",)}
OTHER_ANSWERS = {"keep": "only paths through a function", "fold": "fold a function",
                 "my_code": "only my code", "by_module": "by module", "view_bottomup": "bottom-up",
                 "compare": "compare with another recording", "view_table": "table of functions",
                 "view_callers": "callers and callees", "view_graph": "call graph",
                 "view_sunburst": "sunburst"}


def target_bytes(recording: int) -> float:
    return 1.2 * recording + 700_000


# ---------------------------------------------------------------- what is needed

def chromium() -> str:
    names = ("chromium", "chromium-browser", "google-chrome")
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if not found:
        raise peers.Failure("chromium is not installed")
    return found


def browser_modules() -> None:
    """What measure.js needs to drive the browser, as the tests of the viewer have it."""
    for tool in ("node", "npm"):
        if not shutil.which(tool):
            raise peers.Failure(f"{tool} is not installed")
    if not (BROWSER / "node_modules").is_dir():
        peers.run("npm", "ci", "--no-audit", "--no-fund", "--prefix", BROWSER)


def measured_page(tool: str, address: str, *options: str) -> dict:
    environment = {**os.environ, "CHROMIUM": chromium(), "FATHOM_BENCH_PATIENCE_S": str(PATIENCE_S)}
    done = subprocess.run(["node", str(BROWSER / "measure.js"), tool, address, *options],
                          env=environment, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if "Error" in line]
        raise peers.Failure(f"{tool} in the browser: {(lines or ['no output'])[0].strip()}")
    return json.loads(done.stdout)


# ---------------------------------------------------------------- servers on the loopback device

class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@contextlib.contextmanager
def folder_served(folder: Path):
    handler = functools.partial(Quiet, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/"
        finally:
            server.shutdown()


@contextlib.contextmanager
def ended(process: subprocess.Popen):
    try:
        yield process
    finally:
        process.terminate()
        process.wait()
        if process.stdout:
            process.stdout.close()


def wait_for_port(port: int, process: subprocess.Popen) -> None:
    for _ in range(300):
        if process.poll() is not None:
            raise peers.Failure(f"the server ended with status {process.returncode}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.1)
    raise peers.Failure("the server does not answer")


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


# ---------------------------------------------------------------- the viewers

class Files:
    """The recording and what is made of it."""

    def __init__(self, build: Path, scratch: Path):
        self.fathom, self.scratch = str(build / "fathom"), scratch
        self.recording = self.contexts(build, CONTEXTS)
        self.made: dict[str, Path] = {}

    def contexts(self, build: Path, size: int) -> Path:
        path = self.scratch / f"viewer{size}.fathom"
        subprocess.run([str(peers.contexts(build)), str(size), str(path)], check=True)
        return path

    def report(self) -> Path:
        return self.make("report.html", "view", self.recording, "-o")

    def both(self) -> Path:
        return self.make("both.html", "view", self.recording, self.recording, "-o")

    def converted(self, to: str) -> Path:
        return self.make(f"contexts.{to}", "convert", self.recording, "--to", to, "-o")

    def make(self, name: str, *words: object) -> Path:
        if name not in self.made:
            peers.run(self.fathom, *words, self.scratch / name)
            self.made[name] = self.scratch / name
        return self.made[name]


def fathom_page(files: Files) -> dict:
    return {"file": files.report().stat().st_size,
            **measured_page("fathom", files.report().as_uri(), "--answers")}


def compared_page(files: Files) -> dict:
    """The report of two recordings, for the one action that needs them."""
    return measured_page("fathom", files.both().as_uri(), "--answers", "--compare")


def speedscope_page(files: Files) -> dict:
    """Its release folder served, with the profile in it, as its manual has it (#profileURL=)."""
    profile = files.converted("speedscope")
    served = files.scratch / "speedscope"
    if not served.exists():
        shutil.copytree(peers.speedscope(), served)
        os.link(profile, served / "profile.json")
    with folder_served(served) as address:
        fragment = urllib.parse.quote(address + "profile.json", safe="")
        return {"file": profile.stat().st_size,
                **measured_page("speedscope", f"{address}index.html#profileURL={fragment}")}


def snakeviz_page(files: Files) -> dict:
    profile, port = files.converted("pstats"), free_port()
    command = [str(peers.snakeviz()), "--server", "--hostname", "127.0.0.1", "--port", str(port),
               str(profile)]
    with ended(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)) as server:
        wait_for_port(port, server)
        path = urllib.parse.quote(str(profile), safe="")
        return {"file": profile.stat().st_size,
                **measured_page("snakeviz", f"http://127.0.0.1:{port}/snakeviz/{path}")}


def many_page(files: Files, build: Path) -> dict:
    """Ten million contexts, served."""
    recording = files.contexts(build, MANY_CONTEXTS)
    command = [files.fathom, "view", "--no-browser", str(recording)]
    with ended(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.DEVNULL, text=True)) as server:
        address = server.stdout.readline().strip()
        if not address.startswith("http://127.0.0.1:"):
            raise peers.Failure("fathom view does not say its address")
        return {"file": recording.stat().st_size, **measured_page("fathom", address)}


PAGES = {"fathom": fathom_page, "compared": compared_page, "speedscope": speedscope_page,
         "snakeviz": snakeviz_page}


def measured(build: Path, scratch: Path, rounds: int, quick: bool, say) -> dict:
    """Rounds of every viewer in turn. What cannot be measured is told as a sentence."""
    chromium()
    browser_modules()
    files = Files(build, scratch)
    data: dict = {"recording": files.recording.stat().st_size, "rounds": {}, "missing": {},
                  "versions": {"speedscope": "", "snakeviz": ""}}
    for _ in range(rounds):
        for name, page in PAGES.items():
            if name in data["missing"]:
                continue
            try:
                run = page(files)
            except (peers.Failure, OSError, subprocess.SubprocessError) as failure:
                data["missing"][name] = str(failure)
                say(f"viewer {name}: not measured: {failure}")
                continue
            data["rounds"].setdefault(name, []).append(run)
            say(f"viewer {name}: " + (f"{run['open'] / 1000:.2f} s" if "open" in run
                                      else run["failure"]))
    data["versions"] = {"speedscope": peers.speedscope_version(),
                        "snakeviz": peers.snakeviz_version()}
    if not quick:
        try:
            data["many"] = many_page(files, build)
        except (peers.Failure, OSError, subprocess.SubprocessError) as failure:
            data["missing"]["many"] = str(failure)
    return data


# ---------------------------------------------------------------- tables

def best(runs: list[dict], key: str) -> float | None:
    values = [run[key] for run in runs if key in run]
    return min(values) if values else None


def best_answer(runs: list[dict], names: tuple[str, ...], kind: str = "answers") -> float | None:
    """The best of the rounds; of several actions the slowest one."""
    values = [best([run[kind] for run in runs if kind in run], name) for name in names]
    return None if None in values else max(values)


def answered(runs: list[dict], names: tuple[str, ...]) -> str:
    value, cpu = best_answer(runs, names), best_answer(runs, names, "cpu")
    return "–" if value is None or cpu is None else f"{value:.0f} ms (CPU {cpu:.0f})"


def verdict(value: float | None, target: float, text: str) -> str:
    return "–" if value is None else f"{'reached' if value <= target else 'NOT reached'} ({text})"


def cell(data: dict, name: str, key: str, show) -> str:
    if name in data["missing"]:
        return f"not measured: {data['missing'][name]}"
    value = best(data["rounds"].get(name, []), key)
    if value is not None:
        return show(value)
    failures = [run["failure"] for run in data["rounds"].get(name, []) if "failure" in run]
    return failures[0].replace("|", "/").replace("\n", " ") if failures and key == "open" else "–"


def seconds(ms: float) -> str:
    return f"{ms / 1000:.2f} s"


def megabytes(value: float) -> str:
    return f"{value / MB:.1f} MB" if value < 100 * MB else f"{value / MB:.0f} MB"


def beside(data: dict) -> str:
    runs = data["rounds"].get("fathom", [])
    size, limit = best(runs, "file"), target_bytes(data["recording"])
    rows = []
    for title, key, show, target in (
            ("file that is opened", "file", megabytes,
             verdict(size, limit, f"≤ 1.2 × {megabytes(data['recording'])} + 700 KB")),
            ("first picture", "open", seconds,
             verdict(best(runs, "open"), 1000 * TARGET_OPEN_S, f"≤ {TARGET_OPEN_S} s")),
            ("memory then", "memory", megabytes,
             verdict(best(runs, "memory"), TARGET_MEMORY, f"< {megabytes(TARGET_MEMORY)}")),
            ("memory after all actions", "memory_after", megabytes,
             verdict(best(runs, "memory_after"), TARGET_MEMORY, f"< {megabytes(TARGET_MEMORY)}"))):
        rows.append([title, cell(data, "fathom", key, show), target,
                     cell(data, "speedscope", key, show), cell(data, "snakeviz", key, show)])
    for title, names in ANSWERS.items():
        value = best_answer(runs, names)
        rows.append([title, answered(runs, names),
                     verdict(value, TARGET_ANSWER_MS, f"< {TARGET_ANSWER_MS} ms"), "–", "–"])
    return tables.table(["1,000,000 contexts", "fathom view -o", "target",
                         f"speedscope {data['versions']['speedscope']}".strip(),
                         f"snakeviz {data['versions']['snakeviz']}".strip()], rows)


def others(data: dict) -> str:
    """What has no target, as fathom view answers it."""
    rows = []
    for name, title in OTHER_ANSWERS.items():
        runs = data["rounds"].get("compared" if name == "compare" else "fathom", [])
        if best_answer(runs, (name,)) is not None:
            rows.append([title, answered(runs, (name,))])
    return tables.table(["action", "to its picture"], rows) if rows else ""


def many(data: dict) -> str:
    if "many" in data["missing"]:
        return f"10,000,000 contexts, served: not measured: {data['missing']['many']}\n"
    run = data.get("many")
    if not run:
        return ""
    opened = f"first picture after {seconds(run['open'])}" if "open" in run else run["failure"]
    return (f"10,000,000 contexts ({megabytes(run['file'])}), served by `fathom view`: {opened}, "
            f"{megabytes(run['memory'])} in the tab.\n")


def markdown(data: dict) -> str:
    if not data:
        return ""
    parts = ["### Viewer in headless Chromium, beside speedscope and snakeviz", beside(data),
             "Best of the rounds, a new browser each. Time is from asking for the page; the "
             "browser runs already. Memory is the proportional set size (PSS) of the tab's "
             "process. Of an action, CPU is how long the tab's main thread had a processor for "
             "it: what it would take at least on a machine without other work. "
             "snakeviz shows pstats: 5,000 functions, no contexts.\n", others(data), many(data)]
    return "\n\n".join(part.rstrip("\n") for part in parts if part) + "\n"
