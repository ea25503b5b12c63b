"""fathom.start, stop, snapshot and sample: the program samples itself.

What can go wrong with the sampler is tested with programs that stand in for it (FATHOM names them);
everything else with the real one.
"""

import json
import os
import subprocess
import sys
import textwrap

import pytest

import recordings
from conftest import PACKAGE
from launch import TIMEOUT

WORK = """
import os, time
def spin(seconds):  # … and, where the machine is busy, until a third of that was spent on a processor
    end, used = time.perf_counter() + seconds, time.process_time() + seconds / 3
    while time.perf_counter() < end or time.process_time() < used: pass
def busy(seconds=0.5): spin(seconds)
def other(seconds=0.5): spin(seconds)
"""


def names(path):
    return {row["qualname"] for row in recordings.report(path)["functions"]}


def test_start_and_stop(inside, tmp_path):
    result = inside(WORK + """
other()
fathom.start("out.fathom")
busy()
result = fathom.stop()
other()
""")
    assert result == str(tmp_path / "out.fathom")
    assert "busy" in names(result) and "other" not in names(result)


def test_snapshot_while_it_goes_on(inside, tmp_path):
    result = inside(WORK + """
fathom.start("all.fathom", rate=500)
busy()
paths = [fathom.snapshot("first.fathom")]
other()
paths += [fathom.snapshot("second.fathom"), fathom.snapshot("first.fathom", overwrite=True)]
paths.append(fathom.stop())
result = paths
""")
    assert result == [str(tmp_path / name) for name in
                      ("first.fathom", "second.fathom", "first.fathom", "all.fathom")]
    for path in result:
        assert {"busy", "other"} <= names(path)  # the first was written again later


def test_a_snapshot_has_what_was_until_then(inside, tmp_path):
    inside(WORK + """
fathom.start("all.fathom")
busy()
fathom.snapshot("part.fathom")
other()
result = fathom.stop()
""")
    assert "busy" in names(tmp_path / "part.fathom")
    assert "other" not in names(tmp_path / "part.fathom")
    assert {"busy", "other"} <= names(tmp_path / "all.fathom")


def test_block_and_function(inside, tmp_path):
    result = inside(WORK + """
with fathom.sample("block.fathom"): busy()
@fathom.sample("function.fathom", rate=200, mode="cpu")
def main(): busy(); return 7
result = main()
try:
    with fathom.sample("raised.fathom"): busy(); raise KeyError
except KeyError: pass
with fathom.sample(None): other()
assert fathom.sample("")(main) is main
""")
    assert result == 7
    for name in ("block", "function", "raised"):
        assert "busy" in names(tmp_path / f"{name}.fathom")


def test_again_and_again(inside, tmp_path):
    """One after the other, and nothing is left open."""
    result = inside(WORK + """
def state(): return sorted(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))
fathom.start("0.fathom"); fathom.stop()
before = state()
for i in range(1, 6):
    with fathom.sample(f"{i}.fathom"): busy(0.1)
result = [before, state()]
""")
    assert result[0] == result[1]
    assert all((tmp_path / f"{i}.fathom").exists() for i in range(6))


def test_the_default_name(inside, tmp_path):
    result = inside("""
fathom.start(); first = fathom.stop()
fathom.start(); result = [first, fathom.stop()]
""")
    assert result == [str(tmp_path / "inside.fathom"), str(tmp_path / "inside-2.fathom")]


def test_the_end_of_the_program_is_enough(inside, tmp_path):
    inside(WORK + 'fathom.start("out.fathom"); busy(); result = 0')
    assert "busy" in names(tmp_path / "out.fathom")


@pytest.mark.parametrize("end", ["os._exit(0)", "os.kill(os.getpid(), 9)"])
def test_a_sudden_end_is_enough_too(python, tmp_path, end):
    script = tmp_path / "sudden.py"
    script.write_text(WORK + 'import fathom\nfathom.start("out.fathom"); busy()\n'
                      f"print('done', flush=True)\n{end}\n")
    subprocess.run([python, str(script)], env=dict(os.environ, PYTHONPATH=PACKAGE), cwd=tmp_path,
                   stdout=subprocess.PIPE, timeout=TIMEOUT, check=False)
    # The sampler is nobody's child: it is done when its file is.
    wait_for(lambda: (tmp_path / "out.fathom").exists() and "busy" in names_or_none(tmp_path))


def names_or_none(folder):
    try:
        return names(folder / "out.fathom")
    except (AssertionError, ValueError):
        return set()


def wait_for(condition):
    import time

    for _ in range(600):
        if condition():
            return
        time.sleep(0.1)
    pytest.fail("never happened")


def test_a_forked_child_has_nothing_to_stop(inside, tmp_path):
    result = inside(WORK + """
fathom.start("out.fathom")
child = os.fork()
if child == 0:
    try: fathom.stop()
    except fathom.SamplingError as error: os._exit(40 if "not started" in str(error) else 41)
    os._exit(42)
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
busy()
result = [status, fathom.stop()]
""")
    assert result == [40, str(tmp_path / "out.fathom")]
    assert "busy" in names(tmp_path / "out.fathom")


def test_a_forked_child_may_sample_itself(inside, tmp_path):
    inside(WORK + """
fathom.start("parent.fathom")
child = os.fork()
if child == 0:
    with fathom.sample("child.fathom"): other()
    os._exit(0)
os.waitpid(child, 0)
busy()
result = fathom.stop()
""")
    assert "other" in names(tmp_path / "child.fathom")
    assert "busy" in names(tmp_path / "parent.fathom")


def test_the_program_does_not_get_a_child(inside):
    """os.wait() and handlers of SIGCHLD belong to the program."""
    result = inside(WORK + """
fathom.start("out.fathom")
try: os.waitpid(-1, os.WNOHANG); result = "a child"
except ChildProcessError: result = "none"
fathom.stop()
""")
    assert result == "none"


def test_ctrl_c_is_the_programs_own(inside, tmp_path):
    """The sampler is in another session than the program's terminal."""
    result = inside(WORK + """
import signal
fathom.start("out.fathom")
try:
    os.killpg(0, signal.SIGINT)
    busy(5)
    result = "not interrupted"
except KeyboardInterrupt:
    busy()
    result = fathom.stop()
""", start_new_session=True)
    assert result == str(tmp_path / "out.fathom")


def test_misuse_is_said(inside):
    result = inside("""
def message(call, *args, **kwargs):
    try: call(*args, **kwargs)
    except Exception as error: return [type(error).__name__, str(error)]
result = [message(fathom.stop), message(fathom.snapshot, "x")]
open("there.fathom", "w").close()
result += [message(fathom.start, "there.fathom"), message(fathom.start, mode="space"),
           message(fathom.start, rate=0), message(fathom.start, "two\\nlines")]
fathom.start("x.fathom")
result.append(message(fathom.start, "y.fathom"))
result.append(message(fathom.snapshot, "there.fathom"))
result.append(message(fathom.snapshot, "/nonexistent/folder/x.fathom"))
fathom.stop()
result.append(message(fathom.stop))
""")
    kinds = [kind for kind, _ in result]
    texts = [text for _, text in result]
    assert kinds == ["SamplingError", "SamplingError", "FileExistsError", "ValueError",
                     "ValueError", "ValueError", "SamplingError", "FileExistsError",
                     "SamplingError", "SamplingError"]
    for text, words in zip(texts, ["not started", "not started", "there.fathom", "space", "rate",
                                   "line break", "already", "there.fathom", "/nonexistent/folder",
                                   "not started"]):
        assert words in text


def test_overwriting_is_asked_for(inside, tmp_path):
    (tmp_path / "old.fathom").write_text("old")
    inside(WORK + 'fathom.start("old.fathom", overwrite=True); busy(); result = fathom.stop()')
    assert "busy" in names(tmp_path / "old.fathom")


def test_a_place_that_cannot_be_written_to(inside):
    result = inside("""
try: fathom.start("/nonexistent/folder/x.fathom"); result = "started"
except fathom.SamplingError as error: result = str(error)
""")
    assert "/nonexistent/folder" in result


# ---- samplers that fail

def with_stand_in(tmp_path, body, code):
    """Run code with a script in place of the command. READY and CONTROL are its descriptors;
    what the code assigns to `result`."""
    stand_in = tmp_path / "stand-in"
    stand_in.write_text(f"#!{sys.executable}\n" + textwrap.dedent("""\
        import os, socket, sys
        words = sys.argv
        ready = int(words[words.index("--ready-fd") + 1])
        control = socket.socket(fileno=int(words[words.index("--control-fd") + 1]))
        """) + textwrap.dedent(body))
    stand_in.chmod(0o755)
    code = ("import json, fathom\ndef message(call, *args):\n"
            "    try: return call(*args)\n"
            "    except fathom.SamplingError as error: return 'error: ' + str(error)\n"
            + textwrap.dedent(code) + "\nprint(json.dumps(result))\n")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE,
                          timeout=TIMEOUT, check=True,
                          env=dict(os.environ, PYTHONPATH=PACKAGE, FATHOM=str(stand_in)))
    return json.loads(done.stdout)


def test_a_sampler_that_cannot_attach(tmp_path):
    assert with_stand_in(tmp_path, """
        sys.exit("it is forbidden by kernel.yama.ptrace_scope")
        """, """
        result = [message(fathom.start, "x"), message(fathom.start, "x"), message(fathom.stop)]
        """) == ["error: the sampler could not attach: "
                 "it is forbidden by kernel.yama.ptrace_scope"] * 2 + [
                     "error: sampling was not started"]


def test_a_sampler_that_dies(tmp_path):
    assert with_stand_in(tmp_path, """
        os.write(ready, b"attached\\n")
        control.recv(100)
        sys.exit("no memory")
        """, """
        fathom.start("x")
        result = [message(fathom.snapshot, "y"), message(fathom.snapshot, "y"),
                  message(fathom.stop), message(fathom.stop)]
        """) == ["error: the sampler has ended before it was told to: no memory"] * 3 + [
            "error: sampling was not started"]


def test_a_sampler_that_says_no(tmp_path):
    assert with_stand_in(tmp_path, """
        os.write(ready, b"attached\\n")
        control.recv(100); control.send(b"error the disk is full\\n")
        control.recv(100); control.send(b"error it is still full\\n")
        """, """
        fathom.start("x")
        result = [message(fathom.snapshot, "y"), message(fathom.stop)]
        """) == ["error: the disk is full", "error: it is still full"]


def test_what_the_sampler_is_told(tmp_path):
    result = with_stand_in(tmp_path, """
        open("words", "w").write(repr(words[1:]))
        os.write(ready, b"atta"); os.write(ready, b"ched\\n")
        for _ in range(2):
            line = control.recv(1000)
            open("words", "a").write("\\n" + repr(line))
            control.send(b"o"); control.send(b"k\\n")
        """, """
        import os
        fathom.start("x %p", rate=2.5, mode="gil", children=True, tasks=True, max_cpu=10,
                     overwrite=True)
        result = [os.getpid(), fathom.snapshot("y"), fathom.stop()]
        """)
    words, first, second = (tmp_path / "words").read_text().splitlines()
    words = eval(words)
    fds = [words.pop(), words.pop(-2)]
    assert words == ["attach", str(result[0]), "--quiet", "-o", str(tmp_path / "x %p"), "--force",
                     "--gil", "--rate", "2.5", "--max-cpu", "10", "--tasks",
                     "--ready-fd", "--control-fd"]
    assert all(fd.isdigit() for fd in fds)
    assert eval(first) == f"snapshot {tmp_path}/y\n".encode()
    assert eval(second) == b"stop\n"
    assert result[1:] == [str(tmp_path / "y"), str(tmp_path / "x %p")]


def test_no_command(tmp_path):
    code = "import fathom\ntry: fathom.start('x')\nexcept fathom.SamplingError as e: print(e)"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, stdout=subprocess.PIPE,
                          text=True, check=True,
                          env=dict(os.environ, PYTHONPATH=PACKAGE, FATHOM="/nonexistent/fathom"))
    assert done.stdout == "FATHOM names /nonexistent/fathom, which is not a program\n"
