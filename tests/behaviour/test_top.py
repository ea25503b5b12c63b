"""`fathom top` as a user sees it: inside tmux, driven by keys, judged by what stands on the screen."""

from __future__ import annotations

import itertools
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import textwrap
import time

import pytest

from launch import FATHOM, fathom, start

pytestmark = pytest.mark.skipif(not shutil.which("tmux"), reason="tmux is not installed")

PATIENCE_S = 180  # a loaded machine is no failure; nothing here is judged by its speed
SOCKETS = (f"fathom-top-{os.getpid()}-{i}" for i in itertools.count())

COLOUR = r"\x1b\[([\d;]*;)?3[0-7][;m]"
WRITTEN = r"^[\d,]+ samples written to "

BUSY = """
import threading, time
def inner():
    for i in range(3000): i * i
def outer_one():
    return inner()
def outer_two():
    return inner()
def spin():
    while True:
        outer_one()
        outer_two()
def napper():
    while True:
        time.sleep(0.01)
threading.Thread(target=napper, daemon=True).start()
print("ready", flush=True)
spin()
"""


class Terminal:
    """A program in a terminal of its own; keys go in, the screen comes out."""

    def __init__(self, command, columns=80, rows=24, **env):
        self.socket = next(SOCKETS)
        words = " ".join(shlex.quote(str(word)) for word in command)
        before, after = "trap : INT; ", "; echo EXIT $?"
        state = env.pop("state", None)  # where the settings of the terminal are put, before and after
        if state:
            before += f"stty -g > {state}.before; "
            after = f"; status=$?; stty -g > {state}.after; echo EXIT $status"
        settings = {"LC_ALL": "C.UTF-8", "TERM": "screen-256color", **env}
        setting = " ".join(f"{key}={shlex.quote(value)}" for key, value in settings.items())
        line = f"exec env {setting} sh -c {shlex.quote(before + words + after + '; sleep 600')}"
        self.tmux("new-session", "-d", "-x", str(columns), "-y", str(rows), line)

    def tmux(self, *words):
        return subprocess.run(["tmux", "-u", "-L", self.socket, "-f", "/dev/null", *words],
                              stdout=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=True,
                              stdin=subprocess.DEVNULL).stdout

    def keys(self, *keys):
        for key in keys:
            self.tmux("send-keys", key)

    def type(self, text):
        self.tmux("send-keys", "-l", text)

    def screen(self, *options):
        return self.tmux("capture-pane", "-p", *options)

    def wait(self, pattern):
        """The screen as soon as the pattern is on it, and the same twice: a single look may show half a picture."""
        end = time.monotonic() + PATIENCE_S
        screen = None
        while time.monotonic() < end:
            before, screen = screen, self.screen()
            if screen == before and re.search(pattern, screen, re.M):
                return screen
            time.sleep(0.05)
        pytest.fail(f"{pattern!r} never came; the screen is\n{screen}")

    def close(self):
        subprocess.run(["tmux", "-L", self.socket, "kill-server"], check=False,
                       stderr=subprocess.DEVNULL)


@pytest.fixture
def terminal():
    opened = []

    def open_one(*command, **options):
        opened.append(Terminal(command, **options))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


@pytest.fixture
def program(tmp_path):
    """Start a program that prints a line when it is ready; it is ended with the test."""
    running = []

    def run(code=BUSY, python=sys.executable):
        script = tmp_path / "watched.py"
        script.write_text(code)
        process = start(python, script)
        running.append(process)
        assert process.stdout.readline() == "ready\n"
        return process

    yield run
    for process in running:
        process.kill()
        process.communicate()


def top(process, *options):
    return [FATHOM, "top", *options, str(process.pid)]


def rows(screen):
    """The table below its titles, without the line at the bottom."""
    lines = screen.splitlines()
    first = next(i for i, line in enumerate(lines) if re.search(r"self%.*total%", line)) + 1
    return [line for line in lines[first:-1] if line.strip()]


def test_functions_with_header(terminal, program, python):
    process = program(python=python)
    screen = terminal(*top(process)).wait(r"^ +\d.*\binner\b")
    lines = screen.splitlines()
    assert re.match(rf"fathom top {process.pid}  Python 3\.\d+\.\d+  .*watching 0:0\d:\d\d$", lines[0])
    assert re.search(r"[\d.]+ of 1000 Hz wall  [\d,]+ samples ±[\d.]+%  lost .*partial .*own cpu", lines[1])
    assert re.search(r"2 threads: [\d.]+ running, [\d.]+ wait for the GIL +last [\d.]+ s", lines[2])
    assert re.search(r"(py|C) <?\d+%", lines[3])
    assert max(map(len, lines)) <= 80
    assert re.search(r"watched\.py:\d+", screen)


def test_sorting_lines_and_span(terminal, program):
    t = terminal(*top(program()))
    t.wait(r"\binner\b")
    t.keys("t")
    t.wait(r"total%v")
    t.keys("r")
    t.wait(r"total%\^")
    t.keys("r", "l")
    screen = t.wait(r"states +line\b")
    assert any(re.search(r"watched\.py:1[12]  spin", row) for row in rows(screen))
    t.keys("f", "a")
    names = [re.search(r"(\S+)  \S+:\d+$", row).group(1)
             for row in rows(t.wait(r"function by name v"))]
    assert names == sorted(names)
    t.keys("s", "c")
    t.wait(r"all time$")


def test_callers(terminal, program):
    t = terminal(*top(program()))
    t.wait(r"\binner\b")
    t.keys("Space")
    t.wait("PAUSED")
    t.keys("/")
    t.type("inner")
    t.wait(r"^search: inner")
    t.keys("Enter", "Enter")
    screen = t.wait(r"← ")
    assert re.search(r"- inner .*\n.*← outer_(one|two).*\n", screen)
    t.keys("Left")
    t.wait(r"PAUSED(?s:(?!←).)*\Z")


def test_waits_of_a_line(terminal, program):
    code = "import os\nr, w = os.pipe()\nprint('ready', flush=True)\nos.read(r, 1)\n"
    t = terminal(*top(program(code)))
    t.wait(r"<module>")
    t.keys("l")
    t.wait(r"watched\.py:4  <module>")
    t.keys("Enter")
    t.wait(r"pipe:")


def test_filters(terminal, program):
    t = terminal(*top(program()))
    t.wait(r"\bnapper\b")
    t.keys("S")
    t.wait(r"waiting for the GIL")
    t.keys("Down", "Enter")
    t.wait(r"running, last")
    t.keys("S")
    for _ in range(7):
        t.keys("Down")
    t.keys("Enter")
    screen = t.wait(r"sleeping, last(?s:.)*napper")
    assert not any("inner" in row for row in rows(screen))
    t.keys("S", "Home", "Enter", "T")
    t.wait(r"all threads")
    t.keys("End", "Enter")
    t.wait(r"\(\d+\), last")


def test_pause_holds_the_screen_while_sampling_goes_on(terminal, program):
    def samples(screen):
        return int(re.search(r"([\d,]+) samples", screen).group(1).replace(",", ""))

    t = terminal(*top(program(), "--delay", "0.2"))
    t.wait(r"\binner\b")
    t.keys("Space")
    before = t.wait("PAUSED")
    time.sleep(1)  # five pictures, if it did not hold
    assert t.screen() == before
    t.keys("Space")
    after = t.wait(r"^(?!.*PAUSED).*wait for the GIL.*last ")
    assert samples(after) > samples(before)


def test_help_comes_from_the_keys(terminal, program):
    t = terminal(*top(program()))
    t.wait(r"^h help")
    t.keys("h")
    screen = t.wait("keys of fathom top")
    assert re.search(r"^  s +sort by self time", screen, re.M)
    assert "more" in screen.splitlines()[-1]
    t.keys("NPage")
    t.wait(r"Ctrl-L +draw everything anew")
    t.keys("q")
    t.wait(r"^h help  q quit")


def test_write_never_overwrites_unasked(terminal, program, tmp_path):
    path = tmp_path / "so far.fathom"
    t = terminal(*top(program()))
    t.wait(r"\binner\b")

    def ask():
        t.keys("w")
        t.wait(r"^write to .*top-\d+\.fathom")
        t.keys("C-u")
        t.type(str(path))
        t.keys("Enter")

    ask()
    t.wait(WRITTEN)
    first = path.read_bytes()
    assert "inner" in fathom("report", path).stdout
    ask()
    t.wait(r"exists\. Overwrite it\? y n")
    t.keys("n")
    t.wait("nothing was written")
    assert path.read_bytes() == first
    ask()
    t.wait(r"exists\. Overwrite it\? y n")
    t.keys("y")
    t.wait(WRITTEN)
    assert path.read_bytes() != first
    assert sorted(os.listdir(tmp_path)) == ["so far.fathom", "watched.py"]
    t.keys("w", "C-u")
    t.type("/nowhere/x.fathom")
    t.keys("Enter")
    t.wait(r"^not written: ")
    t.keys("w", "Escape")
    t.wait("nothing was written")


@pytest.mark.parametrize("how", ["q", "C-c", "TERM", "HUP"])
def test_output_and_terminal_after_the_end(terminal, program, tmp_path, how):
    state = tmp_path / "stty"
    output = tmp_path / "top-%p.fathom"
    process = program()
    t = terminal(*top(process, "-o", output), state=str(state))
    t.wait(r"\binner\b")
    if how in ("q", "C-c"):
        t.keys(how)
    else:
        found = subprocess.run(["pgrep", "-x", "-f", re.escape(" ".join(top(process, "-o", str(output))))],
                               stdout=subprocess.PIPE, text=True, check=True).stdout
        os.kill(int(found), getattr(signal, f"SIG{how}"))
    screen = t.wait(r"^EXIT 0$")
    assert f"wrote {tmp_path}/top-{process.pid}.fathom" in screen.replace("\n", "")
    assert "self%" not in screen
    assert (tmp_path / "stty.before").read_text() == (tmp_path / "stty.after").read_text()
    assert "inner" in fathom("report", tmp_path / f"top-{process.pid}.fathom").stdout
    assert process.poll() is None


def test_a_crash_gives_the_terminal_back(terminal, program, tmp_path):
    state = tmp_path / "stty"
    process = program()
    t = terminal(*top(process), state=str(state))
    t.wait(r"\binner\b")
    found = subprocess.run(["pgrep", "-x", "-f", re.escape(" ".join(top(process)))],
                           stdout=subprocess.PIPE, text=True, check=True).stdout
    os.kill(int(found), signal.SIGSEGV)
    screen = t.wait(r"^EXIT 139$")
    assert "self%" not in screen
    assert (tmp_path / "stty.before").read_text() == (tmp_path / "stty.after").read_text()


def test_existing_output_is_refused_before_anything(terminal, program, tmp_path):
    output = tmp_path / "old.fathom"
    output.write_text("precious")
    t = terminal(*top(program(), "-o", output))
    screen = t.wait(r"^EXIT 7$")
    assert "--force" in screen.replace("\n", "")  # lines are as long as the terminal is wide
    assert output.read_text() == "precious"


def test_the_last_picture_stays_when_the_process_ends(terminal, program, tmp_path):
    process = program()
    t = terminal(*top(process))
    t.wait(r"\binner\b")
    process.kill()
    screen = t.wait(r"^the process has ended; w writes the recording, q quits")
    assert "ended after" in screen
    assert any("inner" in row for row in rows(screen))
    t.keys("w", "C-u")
    t.type(str(tmp_path / "last.fathom"))
    t.keys("Enter")
    t.wait(WRITTEN)
    t.keys("q")
    t.wait(r"^EXIT 0$")
    assert "inner" in fathom("report", tmp_path / "last.fathom").stdout


def test_sizes(terminal, program):
    t = terminal(*top(program()))
    t.wait(r"\binner\b")
    t.tmux("resize-window", "-x", "39", "-y", "8")
    t.wait("too small")
    t.tmux("resize-window", "-x", "40", "-y", "8")
    t.wait(r"self%v  total%(?s:.)*inner")
    t.tmux("resize-window", "-x", "200", "-y", "50")
    screen = t.wait(r"samples states +function")
    assert len(screen.splitlines()[-1]) > 0  # the keys stand in the last row
    t.tmux("resize-window", "-x", "80", "-y", "24")
    t.wait(r"^h help.*w write$")


@pytest.mark.parametrize("env", [{"NO_COLOR": "1"}, {"TERM": "vt100"}], ids=["NO_COLOR", "vt100"])
def test_without_colours(terminal, program, env):
    t = terminal(*top(program()), **env)
    t.wait(r"\binner\b")
    assert not re.search(COLOUR, t.screen("-e"))


def test_with_colours(terminal, program):
    t = terminal(*top(program()))
    t.wait(r"\binner\b")
    assert re.search(COLOUR, t.screen("-e"))


def test_plain_ascii_where_the_locale_has_no_more(terminal, program):
    t = terminal(*top(program()), LC_ALL="C")
    screen = t.wait(r"\binner\b")
    assert "+-" in screen
    assert screen.isascii()


HOSTILE = r"""
def spin():
    while True:
        sum(range(100))
code = spin.__code__
new = {"co_name": "e\x1b]2;OWN\x07\u202e名", "co_filename": "/x/\x1b\n.py"}
if hasattr(code, "co_qualname"):
    new["co_qualname"] = new["co_name"]
spin.__code__ = code.replace(**new)
print("ready", flush=True)
spin()
"""


def test_names_cannot_control_the_terminal(terminal, program):
    t = terminal(*top(program(HOSTILE)))
    screen = t.wait(r"e\\x1b\]2;OWN\\x07\\u202e名")
    assert "\x1b" not in screen
    assert t.tmux("display-message", "-p", "#{pane_title}").strip() != "OWN"
    assert screen.splitlines()[0].startswith("fathom top")


def test_children_are_shown(terminal, program):
    code = """
        import subprocess, sys
        child = subprocess.Popen([sys.executable, "-c",
            "import time\\ndef in_child():\\n    while True: time.sleep(0.01)\\nin_child()"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        print("ready", flush=True)
        try:
            child.wait()
        finally:
            child.kill()
    """
    process = program(textwrap.dedent(code))
    try:
        t = terminal(*top(process))
        t.wait(r"of 2 processes(?s:.)*in_child")
    finally:
        process.send_signal(signal.SIGINT)  # lets it end its child
        process.wait(PATIENCE_S)


@pytest.mark.parametrize("env, words", [({"TERM": "dumb"}, "cannot move its cursor"),
                                        ({"TERM": "no-such-terminal"}, "nothing is known")])
def test_terminals_that_cannot(terminal, program, env, words):
    screen = terminal(*top(program()), **env).wait(r"^EXIT 2$").replace("\n", "")
    assert words in screen and "fathom dump" in screen and "fathom attach" in screen


def test_no_terminal():
    done = fathom("top", str(os.getpid()))
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "fathom dump" in done.stderr and "fathom attach" in done.stderr
    assert done.stdout == ""


@pytest.mark.parametrize("words", [[], ["x"], ["0"], ["-5"], ["1", "2"], ["--delay", "0", "1"],
                                   ["--delay"], ["--rate", "0", "1"], ["-o"], ["--nonsense", "1"]])
def test_bad_words(words):
    done = fathom("top", *words)
    assert done.returncode == 2
    assert done.stderr.startswith("fathom top: ") and done.stderr.count("\n") == 1


def test_no_such_process(terminal):
    t = terminal(FATHOM, "top", str(2**22 + 1))
    t.wait(r"^EXIT 3$")


def test_a_process_that_is_no_python(terminal):
    sleeper = start("sleep", "600")
    try:
        t = terminal(FATHOM, "top", str(sleeper.pid))
        t.wait(r"^EXIT 13$")
    finally:
        sleeper.kill()
        sleeper.communicate()
