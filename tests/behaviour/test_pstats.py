"""pstats files of every Python: read, shown as pstats shows them, written back.

The answers come from the interpreters' own pstats and marshal modules.
"""

from __future__ import annotations

import marshal
import random

from pathlib import Path

import pytest

from pstats_tools import (INTERPRETERS, answers, fails, fathom, job, our_answer, python, read,
                          report, same_numbers, table, write)

PROGRAM = '''import json, re
def fib(n): return n if n < 2 else fib(n - 1) + fib(n - 2)
class Gruß:
    def méthode(self, n): return sorted(self.helper(i) for i in range(n))
    def helper(self, i): return json.dumps({"a": i})
def gen(n):
    for i in range(n): yield i
def a(n): return b(n - 1) if n else 0
def b(n): return a(n - 1) if n else 0
def 名前(): return [(lambda: i)() for i in range(10)]
fib(12); Gruß().méthode(50); sum(gen(100)); a(9); 名前()
re.compile("a(b|c)*d").search("abcbcd")
'''

SORTS = [(), ("calls",), ("ncalls",), ("cumtime",), ("cumulative",), ("filename",), ("line",),
         ("module",), ("name",), ("nfl",), ("pcalls",), ("stdname",), ("time",), ("tottime",),
         ("ca",), ("cumu",), ("f",), ("l",), ("m",), ("na",), ("nc",), ("nf",), ("p",), ("s",),
         ("ti",), ("to",), ("time", "name"), ("calls", "stdname"), ("name", "line", "time"),
         ("module", "cumulative", "nfl")]
AMOUNTS = [(), (5,), (0,), (100000,), (0.1,), (0.5,), (0.999,), ("json",), ("fib",), ("^{",),
           (r"\\.py:\\d+\\(\\w+\\)$",), ("méth|名",), ("it's",), (".*", 0.3, 4), (0.5, "e", 3),
           ("built-in", 0.25), ("no such function",)]


def everything(files, kinds=("stats", "callers", "callees"), strip=False) -> list[dict]:
    jobs = [job(files, kind, sort, (), strip) for kind in kinds for sort in SORTS]
    jobs += [job(files, kind, sort, amount, strip)
             for kind in kinds for sort in ((), ("time",), ("nfl",)) for amount in AMOUNTS]
    jobs += [job(files, "stats", sort, (7,), strip, reverse=True)
             for sort in ((), ("calls",), ("time",), ("name",))]
    return jobs


NEWEST = list(INTERPRETERS)[-1:]


def agree(version, jobs, cwd) -> None:
    if version not in NEWEST:  # the layout is the same everywhere: each looks at its own share
        share = len(INTERPRETERS)
        jobs = jobs[list(INTERPRETERS).index(version)::share]
    for one, expected in zip(jobs, answers(version, jobs, cwd)):
        assert our_answer(one, cwd) == expected, one


@pytest.fixture(scope="module")
def profiles(tmp_path_factory):
    """A profile by each Python's cProfile, made on first use."""
    folder = tmp_path_factory.mktemp("profiles")
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")

    def make(version, module="cProfile"):
        path = folder / f"{module}-{version}.prof"
        if not path.exists():
            python(version, "import runpy, sys; sys.argv[0:1] = []; name = sys.argv[0]; "
                            "runpy.run_module(name, run_name='__main__')",
                   module, "-o", path, folder / "program.py")
        return path
    return make


def test_there_are_interpreters():
    assert INTERPRETERS, "no CPython was found"


@pytest.mark.parametrize("version", INTERPRETERS)
def test_prints_what_pstats_prints(version, profiles):
    path = profiles(version)
    agree(version, everything([path.name]), path.parent)


@pytest.mark.parametrize("version", INTERPRETERS)
def test_prints_stripped_what_pstats_prints(version, tmp_path):
    # Names of which no two are alike without their folders, so pstats merges nothing either.
    write(tmp_path / "a.prof", made_up(3, files=[f"/x/{i}/file{i}.py" for i in range(6)]))
    agree(version, everything(["a.prof"], strip=True), tmp_path)


@pytest.mark.parametrize("version", INTERPRETERS)
def test_adds_files_as_pstats_does(version, tmp_path):
    for name, seed in (("one.prof", 1), ("two.prof", 2), ("three.prof", 3)):
        write(tmp_path / name, made_up(seed))
    agree(version, everything(["one.prof", "two.prof", "three.prof"]), tmp_path)


@pytest.mark.parametrize("version", INTERPRETERS)
def test_the_profile_module(version, profiles):
    """Its callers are plain numbers of calls."""
    path = profiles(version).with_name(f"pure-{version}.prof")
    python(version, "import profile, sys; text = open('program.py', encoding='utf-8').read();"
                    "profile.Profile().run(text).dump_stats(sys.argv[1])", path, cwd=path.parent)
    # Its times are sums of floats; dust below a nanosecond would decide the order of equal rows.
    stats = {key: (cc, nc, round(tt * 1e9) * 1e-9, round(ct * 1e9) * 1e-9, callers)
             for key, (cc, nc, tt, ct, callers) in read(path).items()}
    assert any(isinstance(c, int) for v in stats.values() for c in v[4].values())
    write(path, stats)
    agree(version, everything([path.name]), path.parent)
    done = fathom("convert", path, "-o", path.with_suffix(".back.prof"))
    assert done.returncode == 0, done.stderr
    same_numbers(read(path.with_suffix(".back.prof")), stats)


@pytest.mark.parametrize("version", INTERPRETERS)
def test_profile_as_a_module(version, profiles):
    """python -m profile puts the code object it ran into a key."""
    path = profiles(version, "profile")
    names = "import marshal, sys; stats = marshal.load(open(sys.argv[1], 'rb')); " \
            "print(sum(not isinstance(k[2], str) for k in stats), len(stats), " \
            "sum(v[1] for v in stats.values()))"
    codes, functions, calls = map(int, python(version, names, path).split())
    data = table(path)
    assert codes == 1
    assert (len(data["functions"]), data["calls"]) == (functions, calls)
    ran = [r["name"] for r in data["functions"] if r["name"].startswith("<code object")]
    assert ran == [f'<code object <module>, file "{path.parent / "program.py"}", line 1>']


@pytest.mark.parametrize("version", INTERPRETERS)
def test_there_and_back(version, profiles, tmp_path):
    """pstats to .fathom to pstats: counts equal, times to the nanosecond; every Python loads it."""
    path = profiles(version)
    for source, target in ((path, "a.fathom"), ("a.fathom", "b.prof")):
        done = fathom("convert", source, "-o", target, cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    same_numbers(read(tmp_path / "b.prof"), read(path))
    jobs = [job(["b.prof"], kind, ("time", "stdname")) for kind in ("stats", "callers", "callees")]
    agree(version, jobs, tmp_path)


def made_up(seed: int, files=("/src/a.py", "/src/b.py", "/other/a.py", "ü.py", "<string>")) -> dict:
    """A consistent table with equal times, zero counts and recursion, from a fixed seed."""
    rng = random.Random(seed)
    keys = [("~", 0, f"<built-in method m{i}>") for i in range(4)] + [("~", 0, "bare")]
    keys += [(rng.choice(files), rng.randrange(1, 40), rng.choice("fghäλ") + str(i))
             for i in range(30)]
    rng.shuffle(keys)
    stats = {}
    for key in keys:
        nc = rng.choice([0, 1, 2, 10, 10, 12345678])
        # Whole nanoseconds times 1e-9, as cProfile computes its seconds.
        callers = {caller: (rng.randrange(1, 9), 1, rng.randrange(10**9) * 1e-9,
                            rng.randrange(10**10) * 1e-9)
                   for caller in rng.sample(keys, rng.randrange(0, 5))}
        stats[key] = (nc if rng.random() < .7 else nc // 2, nc, rng.choice([0.0, 250000000 * 1e-9,
                                                                      1313757 * 1e-9]),
                      rng.randrange(10**12) * 1e-9, callers)
    return stats


@pytest.mark.parametrize("marshal_version", [0, 1, 2, 3, 4])
def test_every_marshal_version(marshal_version, tmp_path):
    stats = made_up(5)
    write(tmp_path / "a.prof", stats, marshal_version)
    assert fathom("convert", "a.prof", "-o", "b.prof", cwd=tmp_path).returncode == 0
    same_numbers(read(tmp_path / "b.prof"), stats)


@pytest.mark.parametrize("order", ["calls", "time,name", "stdname"])
def test_a_limit_shows_the_beginning(order, tmp_path):
    """The first rows are the same whether or not the others are asked for, equal ones included."""
    write(tmp_path / "a.prof", made_up(6))
    rows = table("-s", order, "-n", "all", "a.prof", cwd=tmp_path)["functions"]
    for limit in (0, 1, 5, 34, 35, 36):
        assert table("-s", order, "-n", limit, "a.prof", cwd=tmp_path)["functions"] == rows[:limit]


def test_a_large_file(tmp_path):
    """Several megabytes, with references from its end to its beginning, come back as they were."""
    keys = [(f"/src/{i % 700}.py", i, f"function_{i % 9000}") for i in range(12000)]
    stats = {key: (i, i, i * 1e-6, i * 1e-3,
                   {keys[i * k % 12000]: (k, k, 0.25, 0.5) for k in (1, 7, 1201)})
             for i, key in enumerate(keys)}
    write(tmp_path / "a.prof", stats)
    assert fathom("convert", "a.prof", "-o", "b.prof", cwd=tmp_path).returncode == 0
    same_numbers(read(tmp_path / "b.prof"), stats)


def test_every_kind_of_text(tmp_path):
    names = ["", "a", "x" * 255, "x" * 256, "x" * 70000, "é", "ÿ" * 300, "λ", "\U0001f40d",
             "lone \udc80 surrogate", "line\nbreak", "{}", "<x>", "100%"]
    stats = {(name, i, name): (1, 1, 0.5, 0.5, {}) for i, name in enumerate(names)}
    for version in range(5):
        write(tmp_path / "a.prof", stats, version)
        assert fathom("convert", "a.prof", "-o", "b.prof", "--force",
                      cwd=tmp_path).returncode == 0
        assert read(tmp_path / "b.prof") == stats


def test_big_numbers(tmp_path):
    stats = {("f", 1, "f"): (2**31, 2**40, 3, 2**33 / 8, {("f", 1, "f"): (2**62, 2**15, 0, 0)})}
    write(tmp_path / "a.prof", stats)
    assert fathom("convert", "a.prof", "-o", "b.prof", cwd=tmp_path).returncode == 0
    assert read(tmp_path / "b.prof") == stats


def test_python2_strings(tmp_path):
    """Python 2.7 wrote interned bytes ('t') and references to them ('R'), by hand here."""
    def interned(text):
        return b"t" + len(text).to_bytes(4, "little") + text

    def number(n):
        return b"i" + n.to_bytes(4, "little")
    real = b"g" + bytes.fromhex("000000000000e03f")  # 0.5
    key = b"(\3\0\0\0" + interned(b"a.py") + number(7) + interned(b"\xe9t\xe9")
    again = b"(\3\0\0\0" + b"R\0\0\0\0" + number(9) + b"R\1\0\0\0"
    value = b"(\5\0\0\0" + number(1) + number(1) + real + real + b"{0"
    (tmp_path / "old.prof").write_bytes(b"{" + key + value + again + value + b"0")
    rows = table("old.prof", cwd=tmp_path)["functions"]
    assert [(r["file"], r["line"], r["name"], r["self_ns"]) for r in rows] == [
        ("a.py", 7, "été", 500000000), ("a.py", 9, "été", 500000000)]


def test_floats_as_text(tmp_path):
    """marshal versions 0 and 1 write floats as text."""
    write(tmp_path / "a.prof", {("a", 1, "f"): (1, 1, 1.25, 2.5e-7, {})}, 0)
    row, = table("a.prof", cwd=tmp_path)["functions"]
    assert (row["self_ns"], row["total_ns"]) == (1250000000, 250)


def test_counts_are_the_right_way_round(tmp_path):
    """(cc, nc) outside, (nc, cc) among the callers."""
    write(tmp_path / "a.prof", {("a", 1, "f"): (2, 5, 0.5, 1.0, {("a", 9, "g"): (5, 2, 0.5, 1.0)}),
                                ("a", 9, "g"): (1, 1, 0.1, 1.1, {})})
    f, g = table("--callers", "-s", "name", "a.prof", cwd=tmp_path)["functions"]
    assert (f["calls"], f["primitive_calls"]) == (5, 2)
    caller, = f["callers"]
    assert (caller["name"], caller["calls"], caller["primitive_calls"]) == ("g", 5, 2)
    assert g["callers"] == []


def test_yappi_is_corrected(tmp_path):
    """yappi puts all calls before primitive calls: nothing has more primitive calls than calls."""
    write(tmp_path / "y.prof", {("a", 1, "fib"): (1973, 1, 0.5, 0.5, {("a", 1, "fib"): (1972, 1, 0, 0)}),
                                ("a", 9, "main"): (3, 3, 0.1, 0.6, {})})
    data = table("y.prof", "-s", "name", cwd=tmp_path)
    assert [(r["calls"], r["primitive_calls"]) for r in data["functions"]] == [(1973, 1), (3, 3)]
    assert "yappi" in data["notes"][0]["text"]
    assert "1,973/1" in report("y.prof", cwd=tmp_path)


def test_yappi_itself():
    """A file that yappi 1.7 wrote of one call fib(10): 177 calls, one of them from outside."""
    golden = Path(__file__).resolve().parents[1] / "golden" / "yappi-fib10.pstats"
    row = [r for r in table(golden)["functions"] if "fib" in r["name"]][0]
    assert (row["calls"], row["primitive_calls"]) == (177, 1)


SAMPLED = {("/a.py", 3, "inner"): (70, 70, 0.07, 0.07, {("/a.py", 9, "outer"): 70}),
           ("/a.py", 9, "outer"): (30, 100, 0.03, 0.1, {}),
           ("__sampled__",): True}


def test_sampled(tmp_path):
    write(tmp_path / "s.prof", SAMPLED)
    data = table("s.prof", cwd=tmp_path)
    assert data["sampled"] is True
    assert [(r["name"], r["calls"], r["primitive_calls"], r["self_ns"])
            for r in data["functions"]] == [("inner", 70, 70, 70000000), ("outer", 100, 30, 30000000)]
    assert fathom("convert", "s.prof", "-o", "s.fathom", cwd=tmp_path).returncode == 0
    assert fathom("convert", "s.fathom", "-o", "t.prof", cwd=tmp_path).returncode == 0
    # Without the mark, which only 3.15 reads, both counts are of samples with it on the stack.
    same_numbers(read(tmp_path / "t.prof"), {
        ("/a.py", 3, "inner"): (70, 70, 0.07, 0.07, {("/a.py", 9, "outer"): 70}),
        ("/a.py", 9, "outer"): (100, 100, 0.03, 0.1, {})})


def test_sampled_prints_what_pstats_prints(tmp_path):
    if "3.15" not in INTERPRETERS:
        pytest.skip("only 3.15 reads sampled profiles")
    write(tmp_path / "s.prof", SAMPLED)
    agree("3.15", [job(["s.prof"], kind, sort) for kind in ("stats", "callers", "callees")
                   for sort in ((), ("time",), ("cumulative",), ("name",))], tmp_path)


def test_sampler_itself(tmp_path):
    if "3.15" not in INTERPRETERS:
        pytest.skip("only 3.15 has profiling.sampling")
    code = '''
from profiling.sampling.pstats_collector import PstatsCollector
from collections import namedtuple
Frame = namedtuple("Frame", "filename location funcname opcode")
collector = PstatsCollector(1000)
stack = [Frame("/a.py", 3, "inner", None), Frame("/a.py", 9, "outer", None)]
for _ in range(70):
    collector._process_frames(stack)
for _ in range(30):
    collector._process_frames(stack[1:])
collector.export("real.prof")
'''
    python("3.15", code, cwd=tmp_path)
    rows = table("real.prof", cwd=tmp_path)["functions"]
    assert [(r["name"], r["calls"], r["primitive_calls"], r["self_ns"], r["total_ns"])
            for r in rows] == [("inner", 70, 70, 70000000, 70000000),
                               ("outer", 100, 30, 30000000, 100000000)]


# ---- bad input ----

def test_cut_off_anywhere(tmp_path):
    """Every shorter beginning is refused in one sentence, whatever it ends in."""
    stats = {("a.py", 1, "f"): (1, 2, 0.5, 1.0, {("~", 0, "<b>"): (1, 1, 0.25, 0.5)}),
             ("~", 0, "<b>"): (10**12, 10**12, 0, 0.0, {("a.py", 1, "f"): 3})}
    for version in (2, 4):
        whole = marshal.dumps(stats, version)
        for end in range(len(whole)):
            (tmp_path / "cut.prof").write_bytes(whole[:end])
            done = fathom("report", "cut.prof", cwd=tmp_path)
            assert done.returncode in (4, 5), (end, done)
            assert done.stdout == b"" and done.stderr.count(b"\n") == 1
            assert done.stderr.startswith(b"fathom report: ") and b"cut.prof" in done.stderr
            done = fathom("convert", "cut.prof", "-o", "out.fathom", cwd=tmp_path)
            assert done.returncode in (4, 5)
            assert not (tmp_path / "out.fathom").exists()


def test_one_byte_wrong(tmp_path):
    """Any byte may be anything: the command answers or refuses, and never breaks."""
    whole = marshal.dumps(made_up(7), 4)
    rng = random.Random(1)
    for _ in range(300):
        bad = bytearray(whole)
        for _ in range(rng.choice([1, 1, 3])):
            bad[rng.randrange(len(bad))] = rng.randrange(256)
        (tmp_path / "bad.prof").write_bytes(bad)
        done = fathom("report", "bad.prof", cwd=tmp_path)
        assert done.returncode in (0, 4, 5), done
        assert done.stderr.count(b"\n") == (done.returncode != 0)


@pytest.mark.parametrize("stats, why", [
    ({("a", 1, "f"): (1, 1, 0.5)}, "entry 1: a value is not"),
    ({("a", 1): (1, 1, 0.5, 0.5, {})}, "entry 1: a key is not"),
    ({("a", 1, "f"): (1, 1, 0.5, 0.5, {}), ("a", "1", "f"): ()}, "entry 2: a key is not"),
    ({("a", -1, "f"): (1, 1, 0.5, 0.5, {})}, "entry 1: line -1"),
    ({("a", 1, "f"): (-1, 1, 0.5, 0.5, {})}, "entry 1: a number of calls"),
    ({("a", 1, "f"): (2**70, 1, 0.5, 0.5, {})}, "entry 1: a number of calls"),
    ({("a", 1, "f"): (1, 1, float("nan"), 0.5, {})}, "entry 1: a time"),
    ({("a", 1, "f"): (1, 1, float("inf"), 0.5, {})}, "entry 1: a time"),
    ({("a", 1, "f"): (1, 1, "0.5", 0.5, {})}, "entry 1: a time"),
    ({("a", 1, "f"): (1, 1, 0.5, 0.5, [])}, "entry 1: a value is not"),
    ({("a", 1, "f"): (1, 1, 0.5, 0.5, {("a", 1, "f"): None})}, "entry 1: caller 1: a caller is"),
    ({("a", 1, "f"): (1, 1, 0.5, 0.5, {5: 5})}, "entry 1: caller 1: a key is not"),
    ({("a", 1, "f"): {1, 2}}, "entry 1: a value is not"),
    ({("a", 1, "f"): 1j}, "entry 1: a value is not"),
    ({("a", 1, None): (1, 1, 0.5, 0.5, {})}, "entry 1: a key is not"),
])
def test_marshal_that_is_no_profile(stats, why, tmp_path):
    write(tmp_path / "a.prof", stats)
    assert why in fails(5, "report", "a.prof", cwd=tmp_path)


def test_a_value_inside_itself(tmp_path):
    # FLAG_REF | '{', then a key, whose value is a reference to the dict that is being read.
    (tmp_path / "a.prof").write_bytes(b"\xfb)\x01z\x01ar\x00\x00\x00\x000")
    assert "contains itself" in fails(5, "report", "a.prof", cwd=tmp_path)


def test_nested_deeply(tmp_path):
    (tmp_path / "a.prof").write_bytes(b"{" + b")\x01" * 100000)
    assert "nested too deeply" in fails(5, "report", "a.prof", cwd=tmp_path)


def test_shared_callers_do_not_explode(tmp_path):
    """One dict of callers, referred to by every function, would be a billion edges."""
    callers = {("a", i, "g"): 1 for i in range(2000)}
    stats = {("b", i, "f"): (1, 1, 0.0, 0.0, callers) for i in range(2000)}
    path = write(tmp_path / "a.prof", stats, 4)
    assert path.stat().st_size < 400000
    assert "more callers than the file can hold" in fails(5, "report", "a.prof", cwd=tmp_path)


@pytest.mark.parametrize("content", [b"", b"x", b"{", b"{}", b'{"json": 1}\n', b"\0" * 100,
                                     b"#!/bin/sh\n", b"\x80\x04}q\x00."])
def test_other_files(content, tmp_path):
    (tmp_path / "x").write_bytes(content)
    assert "in no format that Fathom reads" in fails(4, "report", "x", cwd=tmp_path)


def test_empty_dict(tmp_path):
    write(tmp_path / "empty.prof", {})
    assert table("empty.prof", cwd=tmp_path)["functions"] == []
    assert "0 calls" in report("empty.prof", cwd=tmp_path)
