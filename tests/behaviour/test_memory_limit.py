"""`fathom run --memory --limit`: who passes it is ended, and the recording says what was alive then; and groups that are
close to theirs."""

import re
import textwrap
import time

import groups
import launch
import pytest
import recordings

MB = 1_000_000
LIMIT = 60 * 2**20

# Keeps a million bytes each time, up to a billion.
GROW = """
import os, signal, sys, threading, time
def grow():
    keep = []
    for _ in range(1000):
        keep.append(bytearray(1_000_000))
"""
HANDLER = """
def end(number, frame):
    print("in order", flush=True)
    sys.exit(3)
signal.signal(signal.SIGTERM, end)
"""
IGNORE = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
THREAD = """
thread = threading.Thread(target=grow)
thread.start()
thread.join()
"""
CHILD = """
import subprocess
child = subprocess.run([sys.executable, sys.argv[0], "child"]) if len(sys.argv) < 2 else grow()
time.sleep(60)
print("went on")
"""


def ended(tmp_path, python, code, *words):
    """(the end of the run, its report)"""
    script, output = tmp_path / "app.py", tmp_path / "out.fathom"
    script.write_text(code)
    done = launch.run(*words, script, python=python, output=output, collectors=("--memory",))
    return done, recordings.report(output, "--memory")


def bytes_of(report, name):
    return sum(row["together_bytes" if report["at"] == "together" else "peak_bytes"] for row in report["functions"]
               if row["name"] == name)


@pytest.mark.parametrize("code, said", [(GROW + "grow()", ""), (GROW + HANDLER + "grow()", "in order\n"),
                                        (GROW + THREAD, ""), (GROW + CHILD, "")],
                         ids=["plain", "handler", "thread", "child"])
def test_it_is_ended_when_it_passes_the_limit(python, tmp_path, code, said):
    done, report = ended(tmp_path, python, code, "--limit", "60M")
    assert (done.returncode, done.stdout) == (21, said), done.stderr
    assert "more than its limit of 60.0 MiB" in done.stderr and "grow (app.py:6)" in done.stderr
    # As many blocks of a million bytes as fit, and the one that passed it; the handler's one more.
    before = report["memory"]["peak_bytes"]
    assert LIMIT < before + 16384 and bytes_of(report, "grow") <= LIMIT + 2 * MB
    assert bytes_of(report, "grow") > LIMIT - 25 * MB  # there is the interpreter, too
    note, = [note for note in report["notes"] if note["kind"] == "limit"]
    assert "limit of 60.0 MiB" in note["text"]


def test_who_goes_on_all_the_same_is_killed_soon(python, tmp_path):
    """A quarter more than the limit, and 32 MiB, are for last words."""
    done, report = ended(tmp_path, python, GROW + IGNORE + "grow()", "--limit", "60M")
    assert done.returncode == 21, done.stderr
    assert LIMIT + 31 * 2**20 < report["memory"]["peak_bytes"] < LIMIT + 34 * 2**20


def test_who_only_waits_is_killed_later(tmp_path):
    begun = time.monotonic()
    done, _ = ended(tmp_path, launch.sys.executable, GROW + IGNORE + "x = bytearray(70_000_000); time.sleep(60)",
                    "--limit", "60M")
    assert done.returncode == 21 and 4 < time.monotonic() - begun < 40


def test_all_processes_together(python, tmp_path):
    """None of them has much."""
    code = textwrap.dedent("""
        import multiprocessing, time
        def work():
            held = bytearray(20_000_000)
            time.sleep(60)
        if __name__ == "__main__":
            children = [multiprocessing.get_context("fork").Process(target=work) for _ in range(8)]
            for child in children:
                child.start()
            for child in children:
                child.join()
    """)
    done, report = ended(tmp_path, python, code, "--limit", "60M")
    assert done.returncode == 21, done.stderr
    assert "work (app.py:4)" in done.stderr
    assert report["memory"]["together_bytes"] > LIMIT - 9 * 16384
    assert launch.plain("pgrep", "-f", str(tmp_path / "app.py")).stdout == ""  # nobody is left


SAID = re.compile(r"it had ([\d.]+) MiB allocated, more than its limit of ([\d.]+) MiB, when process (\d+) asked for more; "
                  r"(?:it went on to ([\d.]+) MiB, )?most of it by\n")


def test_who_goes_on_has_a_later_peak(python, tmp_path):
    """What is listed adds up to what is told, and each of three alike is named."""
    code = textwrap.dedent("""
        import os, signal, time
        signal.signal(signal.SIGTERM, lambda number, frame: None)
        def go():
            keep = []
            for _ in range(40):
                keep.append(bytearray(1_000_000))
                time.sleep(0.003)
            time.sleep(1)
        for _ in range(3):
            if not os.fork():
                go()
                os._exit(0)
        try:
            while True: os.wait()
        except ChildProcessError: pass
    """)
    done, report = ended(tmp_path, python, code, "--limit", "60M")
    assert done.returncode == 21, done.stderr
    had, limit, _, peak = map(float, SAID.search(done.stderr).groups())
    assert 60 == limit < had < 65 < peak and abs(peak - report["memory"]["together_bytes"] / 2**20) < 0.6
    listed = re.findall(r"([\d.]+) MiB  process (\d+): go \(app.py:7\)", done.stderr)
    assert len({pid for _, pid in listed}) == 3, done.stderr
    assert had < sum(float(size) for size, _ in listed) <= peak + 0.6


def test_what_ends_at_once_has_one_figure(python, tmp_path):
    """And it is told apart from the limit, which it is just above."""
    code = "keep = []\nwhile True:\n    keep.append(bytearray(100_000))"
    done, _ = ended(tmp_path, python, code, "--limit", "100M")
    had, limit, _, peak = SAID.search(done.stderr).groups()
    assert peak is None and "process" not in done.stderr.split("most of it by")[1]
    assert float(limit) == 100 < float(had) < 100.2


def test_below_it_nothing_happens(python, tmp_path):
    done, report = ended(tmp_path, python, "x = bytearray(40_000_000)\nraise SystemExit(5)", "--limit", "60M")
    assert (done.returncode, done.stderr) == (5, "")
    assert report["notes"] == []


@pytest.mark.parametrize("words, said", [(["--limit", "much", "--memory"], "--limit: \"much\" is no size"),
                                         (["--limit", "60M"], "--limit goes with --memory")])
def test_what_it_takes(tmp_path, words, said):
    done = launch.fathom("run", *words, "-o", tmp_path / "o.fathom", "-c", "pass")
    assert done.returncode == 2 and said in done.stderr


def test_the_limit_is_in_the_picture(tmp_path):
    output = tmp_path / "out.fathom"
    code = "import time; held = bytearray(50 << 20); time.sleep(0.1)"
    done = launch.run("--limit", "90M", "-c", code, output=output, collectors=("--memory",))
    assert done.returncode == 0, done.stderr
    picture = launch.fathom("plot", str(output)).stdout
    assert re.search(r"^\S+\s+limit: 90.0 MiB$", picture, re.M), picture


@pytest.mark.parametrize("megabytes, near", [(240, True), (100, False)])
def test_a_group_that_is_close_to_its_limit(tmp_path, megabytes, near):
    """256 MiB; the store is on disk, and what is cached of files does not count."""
    output = tmp_path / "out.fathom"
    code = f"""
import os, time
with open({str(tmp_path / 'cached')!r}, "wb") as file:  # fills the group, and can be given up
    for _ in range(300):
        file.write(bytes(1 << 20))
x = bytearray({megabytes} << 20)
for at in range(0, len(x), 4096):
    x[at] = 1
time.sleep(0.3)
"""
    script = tmp_path / "app.py"
    script.write_text(code)
    done = groups.run(256 << 20, launch.FATHOM, "run", "--memory", "-q", "-o", output, script)
    if done.returncode == 137:
        pytest.skip("the kernel was faster")
    assert done.returncode == 0, done.stderr
    notes = [note for note in recordings.report(output, "--memory")["notes"] if note["kind"] == "near-limit"]
    assert len(notes) == near
    assert not near or "of the 256.0 MiB that it may have" in notes[0]["text"]
