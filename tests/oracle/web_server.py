#!/usr/bin/env python3
"""A web server under load is attached to and left again, many times; every request must be served.

  tests/oracle/web_server.py [--cycles 1000] [--rate 1000] [--python PYTHON] [--async]

Needs flask and gunicorn (with --async: starlette and uvicorn) in PYTHON's environment; loads it over
loopback from several connections all the while, checks the body of every answer and that the server
counted as many requests as were answered, and that no process of it was ever seen stopped.
"""
from __future__ import annotations

import argparse
import http.client
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

FATHOM = os.environ.get("FATHOM") or str(Path(__file__).resolve().parents[2] / "build" / "fathom")
PORT = 18473

FLASK = """
import hashlib, threading
from flask import Flask, jsonify, request
app = Flask(__name__)
lock, served = threading.Lock(), 0

@app.route("/")
def index():
    global served
    with lock:
        served += 1
    digest = hashlib.sha256(b"x" * 20000).hexdigest()
    return jsonify(n=request.args["n"], total=sum(range(2000)), digest=digest)

@app.route("/count")
def count():
    return jsonify(served=served)
"""

STARLETTE = """
import asyncio
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
served = 0

async def index(request):
    global served
    served += 1
    await asyncio.sleep(0.001)
    return JSONResponse({"n": request.query_params["n"], "total": sum(range(2000))})

async def count(request):
    return JSONResponse({"served": served})

app = Starlette(routes=[Route("/", index), Route("/count", count)])
"""


def server(python: str, folder: Path, asynchronous: bool) -> subprocess.Popen:
    (folder / "site_under_load.py").write_text(STARLETTE if asynchronous else FLASK)
    if asynchronous:
        command = [python, "-m", "uvicorn", "--port", str(PORT), "--log-level", "warning"]
    else:
        command = [python, "-m", "gunicorn", "--threads", "8", "--bind", f"127.0.0.1:{PORT}",
                   "--log-level", "warning"]
    return subprocess.Popen([*command, "site_under_load:app"], cwd=folder, stdin=subprocess.DEVNULL)


def get(connection: http.client.HTTPConnection, path: str) -> dict:
    connection.request("GET", path)
    answer = connection.getresponse()
    body = answer.read()
    if answer.status != 200:
        raise RuntimeError(f"{path}: status {answer.status}")
    return json.loads(body)


class Load(threading.Thread):
    """One connection after the other asking for pages until told to stop."""

    def __init__(self, number: int):
        super().__init__()
        self.number, self.served, self.wrong, self.stop = number, 0, [], False

    def run(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=30)
        while not self.stop:
            word = f"{self.number}-{self.served}"
            try:
                page = get(connection, f"/?n={word}")
                if page["n"] != word or page["total"] != 1999000:
                    self.wrong.append(f"{word}: {page}")
            except Exception as error:  # whatever it is, a request was not served
                self.wrong.append(f"{word}: {error!r}")
                connection = http.client.HTTPConnection("127.0.0.1", PORT, timeout=30)
            self.served += 1


def wait_for_server() -> None:
    for _ in range(200):
        try:
            get(http.client.HTTPConnection("127.0.0.1", PORT, timeout=5), "/count")
            return
        except OSError:
            time.sleep(0.05)
    sys.exit("the server does not start")


def processes_of(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *(int(child) for child in children)]


def is_stopped(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] in "Tt"
    except OSError:
        return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cycles", type=int, default=1000)
    parser.add_argument("--rate", default="1000")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--connections", type=int, default=4)
    parser.add_argument("--async", dest="asynchronous", action="store_true")
    options = parser.parse_args()
    failed = stopped = samples = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        process = server(os.path.abspath(options.python), folder, options.asynchronous)
        wait_for_server()
        watched = processes_of(process.pid)
        loads = [Load(i) for i in range(options.connections)]
        for load in loads:
            load.start()
        begin = time.monotonic()
        for cycle in range(options.cycles):
            done = subprocess.run(
                [FATHOM, "attach", str(process.pid), "--rate", options.rate, "--duration", "0.05",
                 "-q", "--force", "-o", str(folder / "x.collapsed")], check=False)
            failed += done.returncode != 0
            stopped += any(is_stopped(pid) for pid in watched)
            if done.returncode == 0:
                lines = (folder / "x.collapsed").read_text().splitlines()
                samples += sum(int(line.rsplit(" ", 1)[1]) for line in lines)
            if cycle % 50 == 0:
                print(f"\r{cycle} of {options.cycles}", end="", file=sys.stderr, flush=True)
        seconds = time.monotonic() - begin
        for load in loads:
            load.stop = True
        for load in loads:
            load.join()
        asked = sum(load.served for load in loads)
        wrong = [text for load in loads for text in load.wrong]
        counted = get(http.client.HTTPConnection("127.0.0.1", PORT, timeout=30), "/count")["served"]
        same = processes_of(process.pid) == watched
        process.send_signal(signal.SIGTERM)
        status = process.wait(30)
    print(f"\r{options.cycles} cycles in {seconds:.0f} s, {failed} failed, {samples} samples; "
          f"{asked} requests asked, {counted} served, {len(wrong)} wrong; "
          f"stopped {stopped} times; same processes: {same}; the server's exit status {status}")
    for text in wrong[:5]:
        print(text)
    return int(bool(failed or wrong or stopped or counted != asked or not same))


if __name__ == "__main__":
    sys.exit(main())
