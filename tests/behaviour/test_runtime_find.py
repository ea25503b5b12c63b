"""Finding the interpreter inside a process, whatever its file has been through. What is expected comes
from the process itself: ctypes says where its _PyRuntime is, sys says which version it is."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from glob import glob
from pathlib import Path

import pytest

import launch
import pythons

TOOL = str(Path(launch.FATHOM).resolve().parent / "tests" / "unit" / "tool_runtime")
INTERPRETERS = dict(pythons.interpreters())
for older in ("3.9", "3.10"):  # can be read, but have no agent: not in the matrix
    for place in glob(os.path.expanduser(f"~/.pyenv/versions/{older}.*/bin/python{older}")):
        INTERPRETERS.setdefault(older, place)
ROOT = os.geteuid() == 0
NEEDS_ROOT = pytest.mark.skipif(not ROOT, reason="only root may do this")
PLACE = """
import ctypes, json, os, sys
def place():
    return {"version": "%d.%d.%d" % sys.version_info[:3], "pid": os.getpid(),
            "at": ctypes.addressof(ctypes.c_char.in_dll(ctypes.pythonapi, "_PyRuntime"))}
def report(facts):
    print(json.dumps(facts), flush=True)
    sys.stdin.read()
"""

pytestmark = pytest.mark.skipif(not os.path.exists(TOOL), reason="the C tests were not built")


@pytest.fixture(params=sorted(INTERPRETERS, key=lambda v: int(v.split(".")[1])))
def python(request):
    return INTERPRETERS[request.param]


class Target:
    """A Python that has said where its runtime is, and waits."""

    def __init__(self, *command, **options):
        self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, **options)
        line = self.process.stdout.readline()
        assert line, "the program ended early"
        self.facts = json.loads(line)
        self.pid = self.facts["pid"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        try:
            self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def running(python, code="report(place())", **options):
    return Target(python, "-c", PLACE + textwrap.dedent(code), **options)


def find(pid, **options):
    return launch.plain(TOOL, str(pid), **options)


def assert_found(target, path=None):
    done = find(target.pid)
    assert done.returncode == 0, done.stderr
    version, at, _, found_path = done.stdout.rstrip("\n").split(" ", 3)
    assert version == target.facts["version"]
    assert int(at, 16) == target.facts["at"]
    if path:
        assert found_path == str(path)


def static_python():
    """A Python whose interpreter is in the executable itself, or a skip."""
    for path in ["/usr/bin/python3", *INTERPRETERS.values()]:
        if not os.path.exists(path):
            continue
        linked = launch.plain("ldd", path).stdout
        if "libpython" not in linked:
            return os.path.realpath(path)
    pytest.skip("no statically linked Python here")


def shared_python():
    """(interpreter, its libpython)"""
    for path in INTERPRETERS.values():
        for line in launch.plain("ldd", path).stdout.splitlines():
            if "libpython" in line and "=>" in line:
                return path, line.split("=>")[1].split("(")[0].strip()
    pytest.skip("no Python with a libpython here")


def home_of(path):
    return launch.plain(path, "-c", "import sys; print(sys.base_prefix)").stdout.strip()


# ---- ordinary ----

def test_every_version(python):
    with running(python) as target:
        assert_found(target)


def test_with_threads_that_come_and_go(python):
    code = """
    import threading
    def churn():
        while True:
            t = threading.Thread(target=lambda: None); t.start(); t.join()
    threading.Thread(target=churn, daemon=True).start()
    print(json.dumps(place()), flush=True)
    sys.stdin.read(); os._exit(0)
    """
    with running(python, code) as target:
        for _ in range(50):
            assert_found(target)


def test_virtual_environment(python, tmp_path):
    launch.plain(python, "-m", "venv", "--without-pip", tmp_path / "env")
    inner = tmp_path / "env" / "bin" / "python"
    if not inner.exists():
        pytest.skip("this Python makes no virtual environments")
    with running(inner) as target:
        assert_found(target)


# ---- files that are gone, elsewhere, or stripped ----

def test_deleted_executable(tmp_path):
    original = static_python()
    copy = shutil.copy(original, tmp_path / "mypython")
    with running(copy, env=dict(os.environ, PYTHONHOME=home_of(original))) as target:
        os.unlink(copy)
        assert_found(target, copy)


def test_replaced_executable(tmp_path):
    """An upgrade puts another file in the place of the one that runs."""
    original = static_python()
    copy = shutil.copy(original, tmp_path / "mypython")
    with running(copy, env=dict(os.environ, PYTHONHOME=home_of(original))) as target:
        shutil.copy("/bin/sh", tmp_path / "other")
        os.replace(tmp_path / "other", copy)
        assert_found(target, copy)


def test_deleted_library(tmp_path):
    python, library = shared_python()
    copy = shutil.copy(library, tmp_path / os.path.basename(library))
    with running(python, env=dict(os.environ, LD_PRELOAD=copy)) as target:
        os.unlink(copy)
        assert_found(target, copy)


@pytest.mark.skipif(not shutil.which("strip"), reason="no strip here")
def test_stripped_executable(tmp_path):
    original = static_python()
    copy = shutil.copy(original, tmp_path / "mypython")
    subprocess.run(["strip", "-s", copy], check=True)
    with running(copy, env=dict(os.environ, PYTHONHOME=home_of(original))) as target:
        assert_found(target, copy)


DAMAGE = """
libc = ctypes.CDLL(None, use_errno=True)
def damage(address, old, new):
    page = os.sysconf("SC_PAGESIZE")
    start = address // page * page
    assert libc.mprotect(ctypes.c_void_p(start), ctypes.c_size_t(2 * page), 3) == 0
    assert ctypes.string_at(address, len(old)) == old
    ctypes.memmove(address, new, len(new))
def module_of(address):
    "The mappings of the file that holds an address; bss lies behind them."
    found, path = [], None
    for line in open("/proc/self/maps"):
        words = line.split(None, 5)
        low, high = (int(w, 16) for w in words[0].split("-"))
        name = words[5].strip() if len(words) > 5 else ""
        if name.startswith("/") and name != path:
            found, path = [], name
        if name == path:
            found.append((low, high, words[1], int(words[2], 16)))
        if low <= address < high:
            return found
def damage_names(facts):
    for low, high, prot, offset in module_of(facts["at"]):
        if prot != "r--p" and prot != "r-xp":
            continue
        text = ctypes.string_at(low, high - low)
        for name in (b"_PyRuntime", b"Py_Version"):
            at = text.find(b"\\0" + name + b"\\0")
            if at >= 0:
                damage(low + at + 1, name, b"damaged")
def damage_header(facts):
    low = [low for low, high, prot, offset in module_of(facts["at"]) if offset == 0][0]
    damage(low + 0x28, ctypes.string_at(low + 0x28, 8), b"\\xff" * 8)  # e_shoff
"""


def test_names_gone_from_memory_are_in_the_file(python):
    code = DAMAGE + """
facts = place(); damage_names(facts); report(facts)
"""
    with Target(python, "-c", PLACE + code) as target:
        assert_found(target)


def test_without_any_symbol_the_memory_is_searched(python):
    """Neither names in memory nor a file that is the same: only the marks of the runtime are left."""
    code = DAMAGE + """
facts = place(); damage_names(facts); damage_header(facts); report(facts)
"""
    with Target(python, "-c", PLACE + code) as target:
        assert_found(target)


def test_search_with_subinterpreters(python):
    code = DAMAGE + """
try:
    import _interpreters as inter
    keep = [inter.create("legacy") for i in range(3)]
except ImportError:
    import _xxsubinterpreters as inter
    keep = [inter.create() for i in range(3)]
facts = place(); damage_names(facts); damage_header(facts)
print(json.dumps(facts), flush=True); sys.stdin.read(); os._exit(0)
"""
    with Target(python, "-c", PLACE + code) as target:
        assert_found(target)


@NEEDS_ROOT
def test_other_mount_namespace_and_root(python, tmp_path):
    inner = tmp_path / "root"
    inner.mkdir()
    script = tmp_path / "script.py"
    script.write_text(PLACE + "report(place())\n")
    command = f"mount --rbind / {inner} && exec chroot {inner} {python} {script}"
    if launch.plain("unshare", "-m", "true").returncode:
        pytest.skip("no mount namespaces here")
    with Target("unshare", "-m", "sh", "-c", command) as target:
        assert_found(target)


@pytest.mark.skipif(not shutil.which("cc"), reason="no compiler here")
def test_embedded_python(tmp_path):
    """A program that loads libpython itself, as application servers do."""
    python, library = shared_python()
    source = tmp_path / "server.c"
    source.write_text("""
        #include <dlfcn.h>
        int main(int argc, char **argv) {
            void *lib = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
            if (!lib || argc < 3) return 1;
            ((void (*)(void))dlsym(lib, "Py_Initialize"))();
            return ((int (*)(const char *))dlsym(lib, "PyRun_SimpleString"))(argv[2]);
        }""")
    subprocess.run(["cc", "-o", tmp_path / "server", source, "-ldl"], check=True)
    with Target(tmp_path / "server", library, PLACE + "report(place())",
                env=dict(os.environ, PYTHONHOME=home_of(python))) as target:
        assert_found(target, os.path.realpath(library))


def test_idle_second_library_does_not_confuse():
    """A static Python that also loads somebody's libpython has two runtimes, one of them empty."""
    _, library = shared_python()
    code = f"""
    facts = place()
    try:
        lib = ctypes.CDLL({library!r}, mode=os.RTLD_LOCAL | os.RTLD_LAZY)
    except OSError as e:
        facts["failed"] = str(e)
    report(facts)
    """
    python = static_python()
    with running(python, code) as target:
        if "failed" in target.facts:
            pytest.skip(target.facts["failed"])
        assert_found(target, python)


# ---- refused, with the reason ----

def refusal(pid, **options):
    done = find(pid, **options)
    assert done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    return done.returncode, done.stderr


def test_not_started_yet(python):
    """Stopped by its own wish at the moment of exec: not a single instruction has run."""
    libc = ctypes.CDLL(None)
    process = subprocess.Popen([python, "-c", ""], preexec_fn=lambda: libc.ptrace(0, 0, 0, 0))
    try:
        os.waitpid(process.pid, os.WUNTRACED)
        status, text = refusal(process.pid)
        assert status == 14, text
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()


def test_no_such_process():
    with open("/proc/sys/kernel/pid_max") as file:
        beyond = int(file.read()) + 1
    status, text = refusal(beyond)
    assert (status, text) == (3, f"there is no process {beyond}\n")


def test_zombie():
    process = subprocess.Popen(["true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    try:
        status, text = refusal(process.pid)
        assert status == 3 and "zombie" in text
    finally:
        process.wait()


def test_not_a_python():
    process = subprocess.Popen(["sleep", "60"])
    try:
        status, text = refusal(process.pid)
        assert status == 13 and "no Python" in text and "sleep" in text
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("version", ["2.7", "3.6", "3.8"])
def test_older_pythons_are_named(version):
    places = glob(os.path.expanduser(f"~/.pyenv/versions/{version}.*/bin/python{version}"))
    if not places:
        pytest.skip(f"no Python {version} here")
    code = "import sys; sys.stdout.write('ready\\n'); sys.stdout.flush(); sys.stdin.read()"
    process = subprocess.Popen([places[0], "-c", code], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE)
    process.stdout.readline()
    status, text = refusal(process.pid)
    process.communicate(b"")
    assert status == 12 and f"Python {version}" in text and "3.9 to " in text


def as_nobody():
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)


@pytest.fixture
def open_tool(tmp_path_factory):
    """The tool where every user may run it."""
    folder = Path("/tmp") / f"fathom-test-{os.getpid()}"
    folder.mkdir(mode=0o755)
    copy = shutil.copy(TOOL, folder / "tool")
    os.chmod(copy, 0o755)
    yield str(copy)
    shutil.rmtree(folder)


@NEEDS_ROOT
def test_other_users_process(open_tool):
    with running(sys.executable) as target:
        done = launch.plain(open_tool, str(target.pid), preexec_fn=as_nobody)
        assert done.returncode == 15
        assert "belongs to user root" in done.stderr and "sudo" in done.stderr


@NEEDS_ROOT
def test_process_that_hides(open_tool):
    code = "ctypes.CDLL(None).prctl(4, 0, 0, 0, 0); report(place())"
    with running("/usr/bin/python3", code, preexec_fn=as_nobody) as target:
        done = launch.plain(open_tool, str(target.pid), preexec_fn=as_nobody)
        assert done.returncode == 15 and "unreadable" in done.stderr, done.stderr


@NEEDS_ROOT
def test_own_process_without_root(open_tool):
    with running("/usr/bin/python3", preexec_fn=as_nobody) as target:
        done = launch.plain(open_tool, str(target.pid), preexec_fn=as_nobody)
        scope = Path("/proc/sys/kernel/yama/ptrace_scope")
        if scope.exists() and scope.read_text().strip() != "0":
            assert done.returncode == 15 and "ptrace_scope" in done.stderr
        else:
            assert done.returncode == 0, done.stderr


def refuse_process_vm_readv():
    """A seccomp filter as a container's: process_vm_readv (310 on x86-64) gives EPERM."""
    libc = ctypes.CDLL(None, use_errno=True)

    class Step(ctypes.Structure):
        _fields_ = [("code", ctypes.c_ushort), ("jt", ctypes.c_ubyte), ("jf", ctypes.c_ubyte),
                    ("k", ctypes.c_uint)]

    class Program(ctypes.Structure):
        _fields_ = [("len", ctypes.c_ushort), ("filter", ctypes.POINTER(Step))]

    steps = (Step * 4)(Step(0x20, 0, 0, 0), Step(0x15, 0, 1, 310), Step(0x06, 0, 0, 0x00050001),
                       Step(0x06, 0, 0, 0x7FFF0000))
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    assert libc.prctl(22, 2, ctypes.byref(Program(4, steps)), 0, 0) == 0


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="system call numbers of x86-64")
def test_filter_of_system_calls():
    with running(sys.executable) as target:
        status, text = refusal(target.pid, preexec_fn=refuse_process_vm_readv)
        assert status == 15 and "seccomp" in text
