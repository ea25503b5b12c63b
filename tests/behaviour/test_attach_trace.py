"""`fathom attach --trace`: a running Python begins to tell of its calls when asked, and ends it."""

import json
import os
import signal
import subprocess
import time

import pytest

import pythons
import recordings
from launch import FATHOM, TIMEOUT, fathom, plain

WITH_REMOTE = ("3.14", "3.15")

# Programs wait for files to appear, in short sleeps: so they answer.
HEAD = """
import os, sys, threading, time
def await_file(name):
    while not os.path.exists(name):
        time.sleep(0.005)
def before(): pass
def inside(): pass
def after(): pass
open("ready", "w").close()
"""


@pytest.fixture(params=WITH_REMOTE)
def remote_python(request):
    found = pythons.sampled().get(request.param)
    if not found:
        pytest.skip(f"no Python {request.param} here")
    return found


def await_path(path, process=None):
    end = time.monotonic() + TIMEOUT
    while not path.exists():
        assert time.monotonic() < end and (process is None or process.poll() is None), path
        time.sleep(0.005)


class Target:
    """A program, and what is attached to it; all in one folder."""

    def __init__(self, folder, python, code):
        self.folder = folder
        self.stores = folder / "stores"
        self.stores.mkdir()
        (folder / "program.py").write_text(HEAD + code)
        self.program = subprocess.Popen([python, "program.py"], cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        await_path(folder / "ready", self.program)

    def touch(self, name):
        (self.folder / name).touch()

    def attach(self, *words, output="out.fathom"):
        """Attached when it returns."""
        read, write = os.pipe()
        attached = subprocess.Popen([FATHOM, "attach", "--trace", "-q", "-o", output, "--ready-fd", str(write), *words,
                                     str(self.program.pid)], cwd=self.folder, pass_fds=[write], stderr=subprocess.PIPE, text=True,
                                    env={**os.environ, "FATHOM_TMPDIR": str(self.stores)})
        os.close(write)
        with os.fdopen(read) as ready:
            said = ready.read()
        if said != "attached\n":
            raise AssertionError(attached.communicate(timeout=TIMEOUT)[1])
        return attached

    def end(self):
        return self.program.communicate(timeout=TIMEOUT), self.program.returncode


@pytest.fixture
def target(remote_python, tmp_path):
    made = []

    def make(code):
        made.append(Target(tmp_path, remote_python, code))
        return made[-1]

    yield make
    for one in made:
        if one.program.poll() is None:
            one.program.kill()
            one.program.communicate()


def finish(attached):
    attached.send_signal(signal.SIGINT)
    _, err = attached.communicate(timeout=TIMEOUT)
    assert (attached.returncode, err) == (0, "")


def places(path, name):
    """Where each call of that name lay: the names around it."""
    events = path.with_suffix(".chrome.json")
    done = fathom("convert", path, "-f", "-o", events)
    assert done.returncode == 0, done.stderr
    stacks, found = {}, []
    for event in json.loads(events.read_text())["traceEvents"]:
        stack = stacks.setdefault((event["pid"], event["tid"]), [])
        if event["ph"] == "B":
            stack.append(event["name"].split(" ")[0])
            if stack[-1] == name:
                found.append(tuple(stack))
        elif event["ph"] == "E":
            stack.pop()
    assert not any(stacks.values())
    return found


def calls(path):
    return {name: sum(row["calls"] for row in rows) for name, rows in recordings.functions(path).items()}


CODE = """
def outer():
    before()
    await_file("go")
    for _ in range(7): inside()
    open("done", "w").close()
    await_file("over")
    for _ in range(5): after()
    open("over passed", "w").close()
    await_file("again")
    for _ in range(3): inside()
    open("done2", "w").close()
    await_file("end")
outer()
print("ended", sys.monitoring.get_tool(5))
"""


def test_from_then_on_with_what_is_open(target, tmp_path):
    """Twice, and in between the program runs as if nobody had been there."""
    program = target(CODE)
    for output, go, done, count, over in (("a.fathom", "go", "done", 7, "over"), ("b.fathom", "again", "done2", 3, "end")):
        attached = program.attach(output=output)
        program.touch(go)
        await_path(tmp_path / done, program.program)
        finish(attached)
        found = calls(tmp_path / output)
        assert found["inside"] == count and "before" not in found and "after" not in found
        assert places(tmp_path / output, "inside") == [("<module>", "outer", "inside")] * count
        notes = [note for note in recordings.report(tmp_path / output)["notes"] if note["kind"] in ("lost", "damaged", "cut-off")]
        assert notes == []
        assert list(program.stores.iterdir()) == []
        program.touch(over)
        if over == "over":
            await_path(tmp_path / "over passed", program.program)
    assert program.end() == (("ended None\n", ""), 0)


def test_it_ends_with_the_process(target, tmp_path):
    program = target("await_file('go')\nfor _ in range(9): inside()\nsys.exit(3)\n")
    attached = program.attach()
    program.touch("go")
    assert program.end()[1] == 3
    _, err = attached.communicate(timeout=TIMEOUT)
    assert (attached.returncode, err) == (0, "")
    assert calls(tmp_path / "out.fathom")["inside"] == 9
    assert list(program.stores.iterdir()) == []


def test_nothing_of_fathom_is_in_it(target, tmp_path):
    program = target("await_file('go')\ninside()\nopen('done', 'w').close()\nawait_file('end')\n")
    attached = program.attach()
    program.touch("go")
    await_path(tmp_path / "done", program.program)
    finish(attached)
    found = recordings.functions(tmp_path / "out.fathom")
    assert "Fathom added" not in fathom("report", tmp_path / "out.fathom").stdout  # nobody measured that
    assert "run" not in found and "load" not in found and not any("unlink" in name or "posix.write" in name for name in found)
    program.touch("end")
    assert program.end() == (("", ""), 0)


def test_threads(target, tmp_path):
    program = target("""
def work():
    await_file("go")
    for _ in range(4): inside()
threads = [threading.Thread(target=work) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
open("done", "w").close()
await_file("end")
""")
    attached = program.attach("--no-c-calls")
    program.touch("go")
    await_path(tmp_path / "done", program.program)
    finish(attached)
    found = places(tmp_path / "out.fathom", "inside")
    assert len(found) == 12 and {names[-2] for names in found} == {"work"} and all(len(names) > 3 for names in found)
    program.touch("end")
    assert program.end() == (("", ""), 0)


def test_one_at_a_time(target, tmp_path):
    program = target("await_file('end')\n")
    attached = program.attach()
    second = fathom("attach", "--trace", "-o", tmp_path / "second.fathom", program.program.pid)
    assert second.returncode == 8 or "recorded already" in second.stderr, second
    finish(attached)
    program.touch("end")
    assert program.end()[1] == 0


def test_a_fathom_that_is_killed(target, tmp_path):
    """The program goes on; it ends the trace itself when it has no more room, and nobody answers."""
    program = target("await_file('go')\nfor _ in range(20_000): inside()\n")
    attached = program.attach()
    attached.kill()
    attached.communicate()
    program.touch("go")
    assert program.end() == (("", ""), 0)


def test_duration(target, tmp_path):
    program = target("await_file('end')\n")
    done = fathom("attach", "--trace", "-q", "--duration", "0.2", "-o", tmp_path / "out.fathom", program.program.pid)
    assert (done.returncode, done.stderr) == (0, "")
    assert calls(tmp_path / "out.fathom").get("await_file", 0) == 0
    program.touch("end")
    assert program.end() == (("", ""), 0)


def test_an_older_python(tmp_path):
    older = pythons.sampled().get("3.13")
    if not older:
        pytest.skip("no Python 3.13 here")
    program = subprocess.Popen([older, "-c", "import time\nprint(flush=True)\ntime.sleep(600)"], stdout=subprocess.PIPE)
    program.stdout.readline()
    try:
        traced = fathom("attach", "--trace", "-o", tmp_path / "o.fathom", program.pid)
        memory = fathom("attach", "--memory", "-o", tmp_path / "o.fathom", program.pid)
        assert traced.returncode == memory.returncode != 0 and traced.stderr
    finally:
        program.kill()
        program.communicate()


@pytest.mark.parametrize("words", [["--no-c-calls"], ["--window", "1s"], ["--trace", "--memory"], ["--trace", "--keep-on", "exception"],
                                   ["--trace", "--max-depth", "x"]])
def test_bad_options(words, tmp_path):
    done = plain(FATHOM, "attach", *words, str(os.getpid()), cwd=tmp_path)
    assert done.returncode == 2 and done.stderr.count("fathom attach: ") == 1, done.stderr
