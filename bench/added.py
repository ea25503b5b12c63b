#!/usr/bin/env python3
"""What reports say that Fathom added, beside what it added.

    bench/added.py [--pythons 3.11,3.15] [--modes calls,lines] [--programs fib,json] [--runs 12]

Each program runs plain and under Fathom in turns. The truth is the difference of the least CPU times
that the process itself reads at its end (user and system, so that neither the launcher nor others on
the machine count). What was said is from `fathom report --json` of the run that took least. A row is
right if the range holds the truth, give or take a third of what was added, 3 ms and 3 % of the
program's time (the noise).
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "behaviour"))
import pythons  # noqa: E402

FATHOM = os.environ.get("FATHOM", str(ROOT / "build" / "fathom"))
MODES = {"calls": ["--calls", "--no-c-calls"], "c-calls": ["--calls"], "lines": ["--lines=all"],
         "both": ["--calls", "--lines=all"]}

# Programs of the bench by their name and loops; others as code.
OWN = {"fib": ("", 150), "methods": ("", 80), "generators": ("", 900), "c_calls": ("", 900), "mixed": ("", 4000),
       "dense": ("lines", 2000), "nbody": ("lines", 400), "text": ("lines", 400)}
CODE = {
    "json": "import json\ndata = [{'key%d' % i: [i, str(i), None, {'x': i * 1.5}]} for i in range(15000)]\n"
            "json.dumps(data, indent=1)\n",
    "tokenize": "import io, tokenize\ntext = open(tokenize.__file__).read()\n"
                "for _ in range(12):\n    for t in tokenize.generate_tokens(io.StringIO(text).readline): pass\n",
    "difflib": "import difflib\na = open(difflib.__file__).read().splitlines()[:4000]\n"
               "list(difflib.ndiff(a, a[::2] + a[1::3]))\n",
    "sorting": "rows = [(i * 7919 % 20011, i) for i in range(20000)]\n"
               "for _ in range(20):\n    sorted(rows, key=lambda row: row[0])\n"
               "    sum(1 for row in rows if row[1] % 2)\n",
}
SMALL_MS, NOISE = 3, 0.03  # loading the agent; of the program's own time
END = "\nimport os, sys, time\nos.write(int(sys.argv[1]), b'%.6f' % time.process_time())\n"


def program(name, folder):
    if name in CODE:
        text = CODE[name]
    else:
        below, loops = OWN[name]
        text = (ROOT / "bench" / "programs" / below / f"{name}.py").read_text()
        text += f"\nwork({loops})\n"
    path = Path(folder) / f"program_{name}.py"
    path.write_text(text + END)
    return path


def cpu_ms(words):
    read, write = os.pipe()
    done = subprocess.run([*words, str(write)], pass_fds=[write], stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, cwd=tempfile.gettempdir())
    os.close(write)
    text = os.read(read, 100)
    os.close(read)
    assert done.returncode == 0 and text, (words, done.stderr.decode()[-2000:])
    return float(text) * 1000


def said_ms(recording):
    done = subprocess.run([FATHOM, "report", "--json", "-n", "1", recording], capture_output=True, check=True)
    head = json.loads(done.stdout)
    return head["added_ns"] / 1e6, head.get("added_least_ns", head["added_ns"]) / 1e6, head.get(
        "added_most_ns", head["added_ns"]) / 1e6


def measure(python, path, options, runs, folder):
    recording = str(Path(folder) / "a.fathom")
    plain, under, said = [], [], []
    for _ in range(runs):
        plain.append(cpu_ms([python, str(path)]))
        under.append(cpu_ms([FATHOM, "run", "-q", "--force", "-o", recording, *options, "--python", python,
                             str(path)]))
        said.append(said_ms(recording))
    least = under.index(min(under))
    return min(plain), under[least], said[least]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--pythons", default="3.11,3.12,3.13,3.14,3.15")
    parser.add_argument("--modes", default=",".join(MODES))
    parser.add_argument("--programs", default=",".join([*OWN, *CODE]))
    parser.add_argument("--runs", type=int, default=12)
    wanted = parser.parse_args()
    found = pythons.interpreters()
    right = rows = 0
    print("| Python | mode | program | plain ms | added ms | said ms | range | said/added | |")
    print("|---|---|---|---:|---:|---:|---:|---:|---|")
    with tempfile.TemporaryDirectory() as folder:
        for version in wanted.pythons.split(","):
            for mode in wanted.modes.split(","):
                for name in wanted.programs.split(","):
                    path = program(name, folder)
                    plain, under, (mid, least, most) = measure(
                        found[version], path, MODES[mode], wanted.runs, folder)
                    added = under - plain
                    small = SMALL_MS + NOISE * plain
                    ok = least * 3 / 4 - small <= added <= most * 3 / 2 + small
                    right, rows = right + ok, rows + 1
                    print(f"| {version} | {mode} | {name} | {plain:.0f} | {added:.1f} | {mid:.1f} | "
                          f"{least:.0f} to {most:.0f} | {mid / added if added > 0 else 0:.2f} | "
                          f"{'' if ok else 'wrong'} |", flush=True)
    print(f"\n{right} of {rows} right")


if __name__ == "__main__":
    main()
