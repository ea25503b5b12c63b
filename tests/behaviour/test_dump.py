"""`fathom dump`: stacks, states, locks, variables and tasks of real programs on every Python, against what
the programs say of themselves; of a core file, against what the living process showed."""

import ast
import json
import os
import platform
import random
import shutil
import signal
import subprocess
import textwrap
import time
from pathlib import Path

import pytest

import core_writer
import embedded
import launch
import pythons

FATHOM = launch.FATHOM
VERSIONS = pythons.SAMPLED_VERSIONS
LIMIT = 120  # seconds until a test gives up


def older(version):
    """A version below those that agents are built for; only its command is needed here."""
    found = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python{version}"))
    return str(found[-1]) if found else shutil.which(f"python{version}")


@pytest.fixture(params=VERSIONS)
def interpreter(request):
    path = pythons.interpreters().get(request.param) or older(request.param)
    if not path:
        pytest.skip(f"no CPython {request.param} on this machine (tools/pythons provide)")
    return path


@pytest.fixture
def core_file(tmp_path):
    """Where to write one; it is large and does not stay."""
    yield tmp_path / "core"
    (tmp_path / "core").unlink()


@pytest.fixture
def newest():
    return list(pythons.interpreters().values())[-1]


def minor(interpreter):
    return int(interpreter.rsplit("python3.", 1)[1])


class Program:
    """A running script; `says` is what it printed as JSON when it was ready."""

    def __init__(self, python, folder, code):
        self.path = Path(folder) / "program.py"
        self.source = textwrap.dedent(code)
        self.path.write_text("import json, sys\ndef ready(**says):\n"
                             "    print(json.dumps(says), flush=True)\n" + self.source)
        self.process = subprocess.Popen([python, str(self.path)], stdout=subprocess.PIPE, text=True,
                                        stdin=subprocess.PIPE)
        self.pid = self.process.pid
        self.says = json.loads(self.process.stdout.readline())

    def line(self, mark):
        """The number of the line that ends with `# mark`."""
        lines = self.path.read_text().splitlines()
        return next(i for i, line in enumerate(lines, 1) if line.endswith(f"# {mark}"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


def run(*args):
    return subprocess.run([FATHOM, "dump", *map(str, args)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=300)


def dump(*args):
    done = run("--json", *args)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def dump_until(program, holds, *args):
    """Programs say that they are ready a moment before they are at rest."""
    until = time.monotonic() + LIMIT
    while True:
        found = dump(program.pid, *args)
        if holds(found) or time.monotonic() > until:
            return found


def thread(found, name):
    (one,) = [t for t in found["threads"] if t["name"] == name]
    return one


def functions(frames):
    return [f["function"].split(".")[-1] for f in frames]


WAITING = """
    import os, socket, threading, time
    lock, rlock = threading.Lock(), threading.RLock()
    here, there = socket.socketpair()
    class Box:
        def __init__(self):
            self.mutex = threading.Lock()
    box = Box()
    begun = threading.Event()
    def holds():
        with lock:
            with rlock:
                with box.mutex:
                    begun.set()
                    time.sleep(1000)  # held
    def wants_lock():
        with lock:
            pass
    def wants_rlock():
        rlock.acquire()
    def wants_box(b):
        with b.mutex:
            pass
    def receives():
        here.recv(1)
    def reads_pipe():
        os.read(os.pipe()[0], 1)
    def start(function, *args):
        t = threading.Thread(target=function, args=args, name=function.__name__, daemon=True)
        t.start()
        return t
    threads = [start(holds)]
    begun.wait()
    threads += [start(f) for f in (wants_lock, wants_rlock, receives, reads_pipe)]
    threads.append(start(wants_box, box))
    def outer(n):
        return inner(n + 1)  # outer
    def inner(n):
        ready(tids={t.name: t.native_id for t in threads}, idents={t.name: t.ident for t in threads},
              lock=id(lock), rlock=id(rlock), box=id(box.mutex))
        time.sleep(1000)  # inner
    outer(1)  # module
"""


def at_rest(found):
    states = {t["name"]: t["state"] for t in found["threads"]}
    return states == {"MainThread": "sleep", "holds": "sleep", "wants_lock": "lock",
                      "wants_rlock": "lock", "wants_box": "lock", "receives": "network",
                      "reads_pipe": "other"}


def check_waiting(program, found):
    main = thread(found, "MainThread")
    assert functions(main["frames"]) == ["inner", "outer", "<module>"]
    assert [f["line"] for f in main["frames"]] == [program.line(m)
                                                   for m in ("inner", "outer", "module")]
    assert all(f["file"] == str(program.path) for f in main["frames"])
    assert main["tid"] == program.pid and found["threads"][0] is main
    for name, tid in program.says["tids"].items():
        assert thread(found, name)["tid"] == tid
        assert thread(found, name)["ident"] == program.says["idents"][name]
    assert all(t["steady"] and t["complete"] for t in found["threads"])
    for name, kind, key, called in [("wants_lock", "Lock", "lock", "lock"),
                                    ("wants_rlock", "RLock", "rlock", "rlock"),
                                    ("wants_box", "Lock", "box", "b.mutex")]:
        waiting = thread(found, name)
        assert waiting["lock"] == {"kind": kind, "address": hex(program.says[key]), "name": called}
        holder = waiting["holder"]
        assert holder["name"] == "holds" and holder["tid"] == program.says["tids"]["holds"]
        assert (holder["function"], holder["line"]) == ("holds", program.line("held"))
        assert holder["certain"] == (kind == "RLock")
    for name in ("holds", "receives", "reads_pipe", "MainThread"):
        assert thread(found, name)["lock"] is None and thread(found, name)["holder"] is None


def test_threads_states_locks_and_holders(interpreter, tmp_path):
    with Program(interpreter, tmp_path, WAITING) as program:
        found = dump_until(program, at_rest)
        assert at_rest(found)
        check_waiting(program, found)
        assert found["pid"] == program.pid and found["core"] is None
        assert found["python"].startswith(f"3.{minor(interpreter)}.")
        assert thread(found, "receives")["detail"].startswith("unix")
        assert thread(found, "reads_pipe")["detail"].startswith("pipe:")
        assert found["deadlocks"] == [] and found["tasks"] == []


def test_columns(interpreter, tmp_path):
    if minor(interpreter) < 11:
        pytest.skip("this Python has no columns")
    code = """
        import time
        def f():
            x = [1, time.sleep(1000)]  # here
        ready()
        f()
    """
    with Program(interpreter, tmp_path, code) as program:
        found = dump_until(program, lambda d: d["threads"][0]["state"] == "sleep")
        frame = found["threads"][0]["frames"][0]
        text = program.path.read_text().splitlines()[program.line("here") - 1]
        assert text[frame["column"] - 1:frame["end_column"] - 1] == "time.sleep(1000)"


def test_the_text(newest, tmp_path):
    with Program(newest, tmp_path, WAITING) as program:
        dump_until(program, at_rest)
        text = run(program.pid).stdout
        tids = program.says["tids"]
        assert f'Thread {program.pid} "MainThread": sleeping\n    inner ({program.path}:' in text
        assert (f'Thread {tids["wants_rlock"]} "wants_rlock": waiting for a lock: rlock, RLock at '
                f'{hex(program.says["rlock"])}, held by thread {tids["holds"]} "holds" in holds (') in text
        assert f', probably held by thread {tids["holds"]} "holds" in holds (' in text


def test_the_gil(interpreter, tmp_path):
    code = """
        import threading
        def spin():
            while True:
                pass
        def start(name):
            threading.Thread(target=spin, name=name, daemon=True).start()
        start("a"); start("b")
        ready()
        sys.stdin.read()
    """
    def waits(found):
        """Of the two; the main thread may still be on its way to rest."""
        return [t for t in found["threads"] if t["state"] == "gil" and t["name"] in ("a", "b")
                and t["holder"] and t["holder"]["name"] in ("a", "b")]

    with Program(interpreter, tmp_path, code) as program:
        waiting = waits(dump_until(program, waits))[0]
        assert {waiting["name"], waiting["holder"]["name"]} == {"a", "b"}
        assert waiting["holder"]["function"] == "spin" and waiting["holder"]["certain"]


def test_deadlocks(interpreter, tmp_path):
    code = """
        import threading
        a, b, c, d = threading.RLock(), threading.RLock(), threading.Lock(), threading.Lock()
        gates = {id(a): threading.Barrier(2), id(c): threading.Barrier(2)}
        def take(first, second, gate):
            with first:
                gate.wait()
                with second:
                    pass
        def start(name, *args):
            t = threading.Thread(target=take, args=args, name=name, daemon=True)
            t.start()
            return t.native_id
        ready(sure=[start("1", a, b, gates[id(a)]), start("2", b, a, gates[id(a)])],
              likely=[start("3", c, d, gates[id(c)]), start("4", d, c, gates[id(c)])])
        sys.stdin.read()
    """
    with Program(interpreter, tmp_path, code) as program:
        found = dump_until(program, lambda d: len(d["deadlocks"]) == 2)
        assert [(d["certain"], sorted(d["tids"])) for d in found["deadlocks"]] == [
            (True, sorted(program.says["sure"])), (False, sorted(program.says["likely"]))]


def test_holders_of_conditions_and_of_locks_taken_by_hand(interpreter, tmp_path):
    """Who only was inside `with lock:` before is not named, nor is a guess made about acquire()."""
    code = """
        import queue, threading, time
        lock, full = threading.Lock(), queue.Queue()
        def was_inside():
            with lock:
                pass
            began.wait()
            time.sleep(1000)
        def by_hand():
            lock.acquire()
            began.wait()
            time.sleep(1000)
        def in_condition():
            with full.not_full:
                began.wait()
                time.sleep(1000)
        def wants_lock():
            with lock:
                pass
        def puts():
            full.put(1)
        def start(function):
            threading.Thread(target=function, name=function.__name__, daemon=True).start()
        for function in (was_inside, by_hand, in_condition):
            began = threading.Barrier(2)
            start(function)
            began.wait()
        start(wants_lock); start(puts)
        ready(lock=id(lock), mutex=id(full.mutex))
        sys.stdin.read()
    """
    def both_wait(found):
        return sum(t["lock"] is not None for t in found["threads"]) == 2

    with Program(interpreter, tmp_path, code) as program:
        found = dump_until(program, both_wait)
        by_hand, condition = thread(found, "wants_lock"), thread(found, "puts")
        assert by_hand["lock"]["address"] == hex(program.says["lock"]) and by_hand["holder"] is None
        assert condition["lock"]["address"] == hex(program.says["mutex"])
        assert condition["holder"]["name"] == "in_condition" and not condition["holder"]["certain"]


LOCALS = """
    import collections, time
    class Plain:
        pass
    class Text(str):
        pass
    def variables(argument, *rest, word=1, **words):
        zero = 0; minus = -1; digit = 2 ** 30; wide = -(2 ** 62) - 1; wider = 10 ** 60
        tenth = 0.1; large = 1e300; whole = 5.0; infinite = float("inf"); small = -0.0
        empty = ""; latin = "ünï"; wide_text = "日本"; emoji = "😀"; quoted = "it's \\\\ a\\ttab\\n"
        data = b"ab\\x00\\xff"; nothing = b""
        items = [1, "two", [3.0, None]]; single = (1,); none_at_all = (); true = True; false = False
        table = {"a": 1, 2: ("b",)}; removed = {"x": 1, "y": 2}
        del removed["x"]
        members = {7}; frozen = frozenset([8]); no_members = set(); dots = ...
        expected = {k: repr(v) for k, v in locals().items()}
        captured = 1
        plain = Plain(); text = Text("sub"); kind = Plain; function = variables; module = time
        endless = []; endless.append(endless); ring = {}; ring["ring"] = ring
        long_text = "x" * 100000; long_list = list(range(100000)); huge = 1 << 100000
        deep = [[[[[[1]]]]]]
        escape = "\\x1b[31m\\x9b"
        unbound: int
        del argument
        def closure():
            return captured
        ready(expected=expected, plain=id(plain), function=id(function))
        time.sleep(1000)
    variables(5, 6, 7, other=8)
"""


def as_repr(shown, expected):
    """Quotes may be chosen otherwise than repr() does: then the values are compared."""
    return shown == expected or ast.literal_eval(shown) == ast.literal_eval(expected)


def test_locals(interpreter, tmp_path):
    with Program(interpreter, tmp_path, LOCALS) as program:
        found = dump_until(program, lambda d: d["threads"][0]["state"] == "sleep", "--locals")
        frame = found["threads"][0]["frames"][0]
        shown = {v["name"]: v["value"] for v in frame["locals"]}
        expected = program.says["expected"]
        del expected["argument"]
        assert len(expected) > 30 and frame["locals_complete"]
        assert not [k for k, v in expected.items() if not as_repr(shown[k], v)
                    and k not in ("infinite", "frozen", "no_members", "dots")]
        for name in ("infinite", "frozen", "no_members", "dots"):
            assert shown[name] == expected[name]
        assert "argument" not in shown and "unbound" not in shown
        assert shown["captured"] == "1"
        assert shown["plain"] == f"<__main__.Plain at {hex(program.says['plain'])}>"
        assert shown["text"] == "__main__.Text('sub')" and shown["kind"] == "<class '__main__.Plain'>"
        assert shown["function"] == f"<function variables at {hex(program.says['function'])}>"
        assert shown["module"] == "<module 'time'>"
        assert shown["endless"] == "[[…]]" and shown["ring"] == "{'ring': {…}}"
        assert shown["huge"].startswith("<int of about 1000") and shown["deep"].startswith("[[[")
        assert all(len(v) <= 121 for v in shown.values())
        assert shown["escape"] == "'\\x1b[31m\\x9b'"


TASKS = """
    import asyncio, time
    async def leaf():
        await asyncio.sleep(1000)  # leaf
    async def middle():
        await leaf()  # middle
    async def numbers():
        while True:
            await asyncio.sleep(1000)  # numbers
            yield 1
    async def consumes():
        async for _ in numbers():  # consumes
            pass
    async def parent():
        await asyncio.create_task(middle(), name="child")  # parent
    async def gathers():
        await asyncio.gather(asyncio.create_task(leaf(), name="left"),
                             asyncio.create_task(leaf(), name="right"))
    async def works():
        await asyncio.sleep(0.1)
        runs()  # works
    def runs():
        ready()
        time.sleep(1000)  # runs
    async def main():
        tasks = [asyncio.create_task(f(), name=f.__name__) for f in (parent, gathers, consumes, works)]
        await tasks[3]
    asyncio.run(main())
"""


def check_tasks(program, found):
    tasks = {t["name"]: t for t in found["tasks"]}
    marks = {name: [(f["function"].split(".")[-1], f["line"]) for f in t["frames"]
                    if f["file"] == str(program.path)] for name, t in tasks.items()}
    line = program.line
    assert marks["child"] == [("leaf", line("leaf")), ("middle", line("middle"))]
    assert marks["consumes"] == [("numbers", line("numbers")), ("consumes", line("consumes"))]
    assert marks["parent"] == [("parent", line("parent"))]
    assert marks["left"] == marks["right"] == [("leaf", line("leaf"))]
    assert marks["works"] == [("runs", line("runs")), ("works", line("works"))]
    assert functions(tasks["child"]["frames"]) == ["sleep", "leaf", "middle"]
    (root,) = set(tasks) - {"parent", "child", "gathers", "left", "right", "consumes", "works"}
    assert root.startswith("Task-") and functions(tasks[root]["frames"]) == ["main"]
    assert {n: t["awaited_by"] for n, t in tasks.items()} == {
        root: None, "parent": None, "child": "parent", "gathers": None, "left": "gathers",
        "right": "gathers", "consumes": None, "works": root}
    assert [n for n, t in tasks.items() if t["running"]] == ["works"]
    assert {t["tid"] for t in tasks.values()} == {program.pid}


def test_tasks(interpreter, tmp_path):
    with Program(interpreter, tmp_path, TASKS) as program:
        found = dump_until(program, lambda d: d["threads"][0]["state"] == "sleep")
        check_tasks(program, found)
        assert dump(program.pid, "--no-tasks")["tasks"] == []


def test_tasks_of_several_loops(interpreter, tmp_path):
    code = """
        import asyncio, threading, time
        async def waits():
            await asyncio.sleep(1000)
        async def main(name):
            task = asyncio.create_task(waits(), name=name)
            await asyncio.sleep(0)
            started.wait()
            await task
        started = threading.Barrier(3)
        def loop(name):
            asyncio.run(main(name))
        threads = [threading.Thread(target=loop, args=(n,), daemon=True) for n in ("one", "two")]
        for t in threads:
            t.start()
        started.wait()
        ready(tids=[t.native_id for t in threads])
        sys.stdin.read()
    """
    with Program(interpreter, tmp_path, code) as program:
        found = dump(program.pid)
        owners = {t["name"]: t["tid"] for t in found["tasks"] if t["name"] in ("one", "two")}
        assert owners == dict(zip(("one", "two"), program.says["tids"]))


def test_subinterpreters(interpreter, tmp_path):
    code = """
        import threading, time
        try:
            import _interpreters as i
        except ImportError:
            import _xxsubinterpreters as i
        def runs():
            number = i.create()
            execute = getattr(i, "run_string", None) or i.exec
            execute(number, "import time\\ndef below():\\n    print('{}', flush=True)\\n"
                            "    time.sleep(1000)\\nbelow()\\n")
        threading.Thread(target=runs, daemon=True).start()
        time.sleep(1000)
    """
    with Program(interpreter, tmp_path, code) as program:
        found = dump_until(program, lambda d: len({t["interpreter"] for t in d["threads"]}) == 2)
        (below,) = [t for t in found["threads"] if t["interpreter"] != 0]
        assert functions(below["frames"]) == ["below", "<module>"]
        assert "\nInterpreter 0\n" in run(program.pid).stdout


def test_a_busy_program_is_not_disturbed(interpreter, tmp_path):
    """Only even() calls odd() and the other way round; the program ends as if nobody had looked."""
    code = """
        def even(n):
            return True if n == 0 else odd(n - 1)
        def odd(n):
            return False if n == 0 else even(n - 1)
        ready()
        n = 0
        import select
        while not select.select([sys.stdin], [], [], 0)[0]:
            n += even(100)
        print(n > 0)
        sys.exit(7)
    """
    with Program(interpreter, tmp_path, code) as program:
        for _ in range(40):
            (main,) = dump(program.pid, "--locals")["threads"]
            if not (main["steady"] and main["complete"]):
                continue
            names = [n for n in functions(main["frames"]) if n in ("even", "odd")]
            assert functions(main["frames"])[-1] == "<module>"
            assert all(a != b for a, b in zip(names, names[1:])), names
        out, _ = program.process.communicate("x")
        assert out == "True\n" and program.process.returncode == 7
        program.process.stdin = program.process.stdout = open(os.devnull)


x86_64 = pytest.mark.skipif(platform.machine() != "x86_64", reason="writes cores of x86-64 only")


@x86_64
def test_a_core_shows_what_the_process_did(interpreter, tmp_path, core_file):
    with Program(interpreter, tmp_path, WAITING) as program:
        alive = dump_until(program, at_rest, "--locals")
        core_writer.write_core(program.pid, core_file)
    dead = dump("--locals", core_file)
    check_waiting(program, dead)
    assert dead["core"] == str(core_file) and dead["pid"] == program.pid
    assert thread(dead, "MainThread")["signal"] == signal.SIGABRT
    for key in ("python", "library", "other_threads", "deadlocks", "complete"):
        assert dead[key] == alive[key]
    for one, other in zip(dead["threads"], alive["threads"]):
        different = {k for k in one if one[k] != other[k]}
        assert different <= {"detail", "signal"}  # descriptors are gone with the process


@x86_64
def test_tasks_of_a_core(interpreter, tmp_path, core_file):
    with Program(interpreter, tmp_path, TASKS) as program:
        dump_until(program, lambda d: d["threads"][0]["state"] == "sleep")
        core_writer.write_core(program.pid, core_file)
    check_tasks(program, dump(core_file))


@x86_64
def test_the_executable_of_a_core(newest, tmp_path, core_file):
    with Program(newest, tmp_path, "ready()\nsys.stdin.read()\n") as program:
        core_writer.write_core(program.pid, core_file)
        exe = os.readlink(f"/proc/{program.pid}/exe")
    shutil.copy(exe, tmp_path / "moved")
    found = dump("--python", tmp_path / "moved", core_file)
    assert functions(found["threads"][0]["frames"])[-1] == "<module>"
    refused = run("--python", "/bin/sh", core_file)
    assert refused.returncode == 10 and "is not the program of this core file" in refused.stderr


@x86_64
def test_a_cut_off_or_damaged_core(newest, tmp_path, core_file):
    """Whatever is wrong with it: an answer or one sentence, never a crash."""
    with Program(newest, tmp_path, LOCALS) as program:
        core_writer.write_core(program.pid, core_file)
    core = (core_file).read_bytes()
    chance = random.Random(1)
    broken = [core[:int(len(core) * part)] for part in (0.0005, 0.001, 0.01, 0.1, 0.5, 0.9, 0.999)]
    for _ in range(12):
        copy = bytearray(core)
        for _ in range(200):
            copy[chance.randrange(len(copy))] = chance.randrange(256)
        for _ in range(3):
            copy[chance.randrange(8192)] = chance.randrange(256)
        broken.append(copy)
    for data in broken:
        core_file.write_bytes(data)
        done = run("--json", "--locals", core_file)
        assert 0 <= done.returncode < 20, done.stderr
        if done.returncode:
            assert done.stdout == "" and done.stderr.count("\n") == 1
        else:
            json.loads(done.stdout)


@x86_64
def test_a_core_without_python(core_file):
    sleeping = subprocess.Popen(["sleep", "1000"])
    try:
        while "nanosleep" not in (Path(f"/proc/{sleeping.pid}/wchan").read_text() or "nanosleep"):
            time.sleep(0.01)
        core_writer.write_core(sleeping.pid, core_file)
        alive = run(sleeping.pid)
    finally:
        sleeping.kill()
        sleeping.wait()
    for done in (alive, run(core_file)):
        assert done.returncode == 13 and "there is no Python in it" in done.stderr
        assert done.stdout == ""


@pytest.mark.parametrize("args, status, sentence", [
    ([], 2, "name one process id or core file"),
    (["1", "2"], 2, "name one process id or core file"),
    (["--bad", "1"], 2, "there is no option --bad"),
    (["--python", "x", "1"], 2, "--python goes with a core file"),
    (["4194305"], 3, "there is no process 4194305"),
    (["99999999999999999999"], 3, "there is no process"),
    (["/no/such/core"], 3, "/no/such/core: No such file"),
    (["/etc/passwd"], 4, "this is not a core file"),
    (["/bin/sh"], 4, "this is a program, not a core file"),
    (["/tmp"], 4, "this is not a file"),
])
def test_bad_input(args, status, sentence):
    done = run(*args)
    assert done.returncode == status and sentence in done.stderr
    assert done.stdout == "" and done.stderr.count("\n") == 1


def test_worker_of_an_embedding_server(interpreter, tmp_path):
    """Forked by C, without a word to Python: its state has the parent's number, the C library has the right one."""
    code = "def naps():\n    while True: time.sleep(1000)\nnaps()\n"
    with embedded.worker(interpreter, code, tmp_path) as pid:
        until = time.monotonic() + LIMIT
        found = dump(pid)
        while [f["function"] for f in found["threads"][0]["frames"]] != ["naps", "<module>"]:
            assert time.monotonic() < until, found
            found = dump(pid)
        (one,) = found["threads"]
        assert (one["tid"], one["state"]) == (pid, "sleep")
        assert f"Thread {pid}" in run(pid).stdout
