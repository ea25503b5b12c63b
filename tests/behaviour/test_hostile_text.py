"""Names and source text of others on terminals and in data: nothing in them steers a terminal, hides,
turns the direction of writing or breaks a line; JSON stays JSON, CSV stays a table of text and numbers,
and every foreign format can be read by a reader that Fathom did not bring."""

import csv
import io
import json
import marshal
import os
import pickle
import re
import subprocess
import sys

import pytest

import launch

HIDDEN = "".join(map(chr, [
    *range(1, 0x20), *range(0x7f, 0xa0), 0xad, 0x61c, 0x180e, *range(0x200b, 0x2010),
    *range(0x2028, 0x202f), *range(0x2060, 0x2070), 0xfeff, *range(0xfff9, 0xfffc), 0xfffe,
    0xe0041]))
FORBIDDEN = re.compile("[" + re.escape(HIDDEN.replace("\n", "")) + "]")
COLOURS = re.compile(r"\x1b\[[0-9;]*m")

# As Python's ascii() has it, but that Python escapes backslashes and quotes, too.
EVIL = "evil\x1b]2;OWNED\x07\x9b31m\x7f\u202e\u2066\u200e\u061c\u2028\u2029\r\n\t\udcff名"
SHOWN = (r"evil\x1b]2;OWNED\x07\x9b31m\x7f\u202e\u2066\u200e\u061c\u2028\u2029\r\n\t\udcff" "名")
FILE = "dir\x1b[1m\u202e/f\udcff\x9b,\"=1;.py"  # as os.fsdecode gives it
FILE_SHOWN = "dir\\x1b[1m\\u202e/f\\udcff\\x9b,\"=1;.py"

PROGRAM = """
import sys, threading, time
# a comment: \x1b[31m\x07 \u202e\u2066\u200f \x9b \u2028
class Own: pass
def work():
    plain()
def plain():
    text = "\x1b[2J\u202e\u2067\u061c\x9b\x7f"
    end = time.monotonic() + 0.3
    while time.monotonic() < end:
        sum(len(text) for i in range(100)); "\u202e"
evil = EVIL
def rename(function, name):
    new = {"co_name": name}
    if hasattr(function.__code__, "co_qualname"):
        new["co_qualname"] = name
    function.__code__ = function.__code__.replace(**new)
rename(work, evil)
def formula(): pass
rename(formula, "=HYPERLINK(1)")
formula()
def other(): pass
other.__code__ = other.__code__.replace(co_filename="/no/" + evil)
other()
thread = threading.Thread(target=work, name=evil.replace("\\udcff", ""))
thread.start()
work()
thread.join()
"""


def write_program(folder):
    path = os.path.join(os.fsencode(folder), os.fsencode(FILE))
    os.mkdir(os.path.dirname(path))
    with open(path, "w", encoding="utf-8", newline="\n") as out:
        out.write(PROGRAM.replace("EVIL", ascii(EVIL)))
    return path


def run(*words, cwd=None, **options):
    return subprocess.run([os.fsencode(launch.FATHOM), *map(os.fsencode, words)], cwd=cwd,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=300, **options)


def clean(output):
    """The bytes as text, having seen that nothing in it may steer a terminal."""
    text = output.decode().replace("\r\n", "\n")  # valid UTF-8; CSV's rows end so
    found = FORBIDDEN.findall(text)
    assert not found, (found[:5], text[:2000])
    return text


@pytest.fixture(scope="module")
def recording(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    path = write_program(folder)
    done = run("run", "--sample", "--calls", "--lines=all", "--python", sys.executable, "-o",
               folder / "a.fathom", path, b"arg\x1b[31m\xff\xe2\x80\xae")
    assert done.returncode == 0, done.stderr
    clean(done.stderr)
    return folder / "a.fathom"


@pytest.fixture(scope="module")
def sampled(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile")
    path = write_program(folder)
    done = run("run", "--python", sys.executable, "-o", folder / "a.fathom", path)
    assert done.returncode == 0, done.stderr
    clean(done.stderr)
    return folder / "a.fathom"


PARTS = ["", "--callers", "--callees", "--source", "--tree", "--threads", "--processes", "--states",
         "--waits", "--spots", "--lines", "--hot=100", "--annotate", "--summarize"]
STYLES = ["--width=80", "--width=300", "--csv", "--json", "--color=always"]


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("style", STYLES)
def test_every_report(recording, sampled, part, style):
    if (part, style) in (("--source", "--csv"), ("--source", "--json")):
        pytest.skip("the source is plain text only")
    names = 0
    for path in (recording, sampled):
        done = run("report", path, "-n", "all", *filter(None, [part]), style)
        assert done.returncode in (0, 12), done.stderr  # 12: this was not recorded
        text = done.stdout.decode()
        text = clean((COLOURS.sub("", text) if style == "--color=always" else text).encode())
        clean(done.stderr)
        if style == "--json" and done.returncode == 0:
            json.loads(text)
        names += text.count("evil")
    if part in ("", "--threads", "--tree", "--lines", "--source"):
        assert names, "the names were in it"


def test_what_is_shown(recording, tmp_path):
    wide = "--width=2000"
    assert SHOWN in clean(run("report", recording, "-n", "all", wide).stdout)
    assert FILE_SHOWN in clean(run("report", recording, "-n", "all", wide).stdout)
    classic = run("report", recording, "-n", "all", "--pstats").stdout
    assert SHOWN.replace(r"\n\t", "\n") in clean(classic.replace(b"\t", b"")), "lines as pstats has them"
    assert SHOWN.replace(r"\udcff", "") in clean(run("report", recording, "--threads", wide).stdout)
    source = clean(run("report", recording, "-n", "all", "--source").stdout)
    assert r'text = "\x1b[2J\u202e\u2067\u061c\x9b\x7f"' in source
    assert r'"\u202e"' in clean(run("report", recording, "-n", "all", "--spots").stdout)
    assert r"arg\x1b[31m\xff\u202e" in clean(run("report", recording, "--processes", wide).stdout)


def test_pstats_layout_counts_what_is_shown(tmp_path):
    """The column of callers begins where the longest name, as shown, ends."""
    with open(tmp_path / "a.prof", "wb") as out:
        marshal.dump({("a.py", 1, "x\x1b"): (1, 1, 1.0, 1.0, {}),
                      ("a.py", 2, "y"): (1, 1, 1.0, 1.0, {("a.py", 1, "x\x1b"): (1, 1, 1.0, 1.0)})},
                     out)
    lines = clean(run("report", tmp_path / "a.prof", "--pstats", "--callers").stdout).splitlines()
    rows = [line for line in lines if "<-" in line]
    assert {row.index("<-") for row in rows} == {len(r"a.py:1(x\x1b)") + 2}


def test_errors(tmp_path):
    name = b"no\x1b[31m\xe2\x80\xae\xff\n.fathom"
    for words in (("report", name), ("view", name), ("graph", name), ("convert", name, "-o", "x.prof"),
                  ("merge", name, "-o", "x"), ("dump", "--core", name), ("run", name), (name,),
                  ("report", b"--sort=\x1b[31m", name), ("report", b"--\x1b[31m", name),
                  ("top", name), ("doctor", name), ("attach", name), ("dump", name)):
        done = run(*words, cwd=tmp_path)
        assert done.returncode not in (0, 1) or words[0] in ("run", "dump"), words
        text = clean(done.stderr)
        assert text.count("\n") == 1 or text.startswith("Usage"), text


def test_graph(recording, tmp_path):
    listed = clean(run("graph", recording, "--list", "*").stdout)
    assert SHOWN in listed
    for suffix in ("dot", "svg"):
        out = tmp_path / ("a." + suffix)
        assert run("graph", recording, "-n", "0", "-e", "0", "-o", out).returncode == 0
        clean(out.read_bytes().replace(b"\t", b""))


WAITING = """
import sys, threading
def wait(own):
    local = own
    print("ready", flush=True)
    sys.stdin.read()
wait.__code__ = wait.__code__.replace(co_name=EVIL, co_filename="/no/" + EVIL,
    **({"co_qualname": EVIL} if hasattr(wait.__code__, "co_qualname") else {}))
threading.current_thread().name = EVIL
wait(EVIL)
"""


def test_dump_and_doctor(any_python):
    program = subprocess.Popen([any_python, "-c", "import sys; exec(sys.argv[2])",
                                b"\x1b[31m\xff\xe2\x80\xae", WAITING.replace("EVIL", ascii(EVIL))],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert program.stdout.readline() == b"ready\n"
        pid = str(program.pid)
        text = clean(run("dump", pid, "--locals").stdout)
        assert SHOWN in text
        dumped = json.loads(clean(run("dump", pid, "--json").stdout))
        exact = EVIL.replace("\udcff", "\\udcff")
        assert exact in [f["function"] for t in dumped["threads"] for f in t["frames"]]
        assert r"\x1b[31m\xff\u202e" in clean(run("doctor", pid).stdout).replace("\n", " ")
        assert "\x1b[31m\\xff\u202e" in json.loads(
            clean(run("doctor", pid, "--json").stdout))["process"]["command"]
    finally:
        program.communicate()


def write_prof(path, stats):
    """pstats' file with names as bytes that need be no UTF-8: what a damaged file holds."""
    def text(value):
        return b"u" + len(value).to_bytes(4, "little") + value
    out = b"{"
    for (file, line, name) in stats:
        out += b"(" + (3).to_bytes(4, "little") + text(file) + marshal.dumps(line, 2) + text(name)
        out += marshal.dumps((1, 1, 1.0, 1.0, {}), 2)
    path.write_bytes(out + b"0")


def test_json_is_exact_where_it_can_be(tmp_path):
    """Every character of Unicode comes back; what is none is visible, and different names differ."""
    names = [EVIL.replace("\udcff", ""), HIDDEN, "\\", "\\xff", '"', "\U0001f40d\U000e0041", "λ"]
    with open(tmp_path / "a.prof", "wb") as out:
        marshal.dump({("f", i, name): (1, 1, 1.0, 1.0, {}) for i, name in enumerate(names)}
                     | {("f", 99, "\udcff"): (1, 1, 1.0, 1.0, {})}, out)
    text = clean(run("report", tmp_path / "a.prof", "--json", "-n", "all").stdout)
    found = {row["line"]: row["name"] for row in json.loads(text)["functions"]}
    assert [found[i] for i in range(len(names))] == names
    assert found[99] == r"\udcff"
    assert not re.search(r"(?<!\\)(\\\\)*\\ud[89a-f]..(?!\\ud[c-f])", text.replace(r"\ud83d", "")
                         .replace(r"\udb40\udc41", "")), "no half of a pair"


def test_csv_cells(tmp_path):
    formulas = ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", "＝1", "＠x"]
    others = ["plain", "a=b", "a;b", 'say "x"', "a,b", "<lambda>", "'quoted"]
    with open(tmp_path / "a.prof", "wb") as out:
        marshal.dump({(f"f{i}", 7, name): (1, 1, -0.5, 1.0, {})
                      for i, name in enumerate(formulas + others)}, out)
    text = clean(run("report", tmp_path / "a.prof", "--csv", "-n", "all").stdout)
    assert text.count("\n") == 1 + len(formulas + others), "a row is a line"
    rows = list(csv.DictReader(io.StringIO(text)))
    found = {int(row["file"][1:]): row["function"] for row in rows}
    shown = [name.replace("\t", r"\t").replace("\r", r"\r") for name in formulas]
    assert [found[i] for i in range(len(found))] == ["'" + name for name in shown] + others
    assert all(row["line"] == "7" for row in rows)
    assert all(row["self_s"] == "-0.500000000" for row in rows), "numbers stay numbers"


BAD = [b"bad\xff", b"bad\xfe", b"\xed\xb3\xbd", b"\xc3", b"ok\xc3\xa9"]


@pytest.fixture
def damaged(recording, tmp_path):
    """The recording with bytes in its names that are no UTF-8. Names are in compressed blocks, so
    they come in through a format whose reader takes any byte."""
    path = tmp_path / "bad.collapsed"
    path.write_bytes(b"".join(b"%s (%s.py:%d) 7\n" % (name, name, i + 1)
                              for i, name in enumerate(BAD)))
    return path


def read_with(format, path):
    """What a reader of the field makes of the file: all texts in it."""
    data = path.read_bytes()
    if format == "pstats":
        import pstats
        return [part for key in pstats.Stats(str(path)).stats for part in (key[0], key[2])]
    if format == "speedscope":
        return [frame["name"] for frame in json.loads(data)["shared"]["frames"]]
    return data.decode().splitlines()


@pytest.mark.parametrize("format, name", [
    ("pstats", "a.prof"), ("speedscope", "a.speedscope.json"), ("collapsed", "a.collapsed"),
    ("callgrind", "a.callgrind")])
def test_formats_of_names_that_are_no_text(damaged, recording, tmp_path, format, name):
    out = tmp_path / name
    assert run("convert", damaged, "-o", out).returncode == 0
    texts = read_with(format, out)
    assert any("oké" in text for text in texts)
    if format == "pstats":
        assert {text for text in texts if text.startswith("bad") and ".py" not in text} == {
            "bad\udcff", "bad\udcfe"}, "as Python names such files"
    again = tmp_path / ("b." + name)
    assert run("convert", recording, "-o", again).returncode == 0
    assert any("evil" in text for text in read_with(format, again))


def test_lprof_is_loadable(recording, tmp_path):
    out = tmp_path / "a.lprof"
    assert run("convert", recording, "-o", out).returncode == 0

    class Loader(pickle.Unpickler):
        def find_class(self, module, name):
            class Stats:
                def __init__(self, timings=None, unit=None):
                    self.timings, self.unit = timings, unit
            return Stats
    with open(out, "rb") as data:
        stats = Loader(data).load()
    assert any("evil" in key[2] for key in stats.timings), stats.timings.keys()


def test_pprof_is_utf8(damaged, tmp_path):
    """Protobuf's strings must be UTF-8; read by field numbers: string_table is 6."""
    import gzip
    out = tmp_path / "a.pb.gz"
    assert run("convert", damaged, "-o", out).returncode == 0
    data, at, strings = gzip.decompress(out.read_bytes()), 0, []

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        key = varint()
        if key & 7 == 2:
            length = varint()
            if key >> 3 == 6:
                strings.append(data[at:at + length].decode())
            at += length
        else:
            varint()
    assert "oké" in strings and any(s.startswith("bad") for s in strings)
