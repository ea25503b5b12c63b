"""The oracle, in short: every program whose truth is known, on every Python that the sampler reads.

Half a second each at 1,000 looks a second, longer on a machine that is so busy that this is not enough (enough.py): there is no stack that cannot
exist, and none that is cut. Shares get six standard deviations (by chance one of 500 million fails) and, on top, SLACK for what a loaded machine
does to programs that give their processor up: where all processors are taken, a sampler runs when the program does not.
At --rate max, which is best effort and says so, one stack in TORN may be a mix of two instants.
tests/oracle/judge.py is the long and strict version, with the peers.
"""

import sys

import pytest

import enough
import pythons
from launch import REPO, own_run_folders  # noqa: F401 (a fixture)

sys.path.insert(0, str(REPO / "tests" / "oracle"))

import profilers  # noqa: E402
import recordings  # noqa: E402
import truth  # noqa: E402

VERSIONS = pythons.SAMPLED_VERSIONS
SECONDS = 0.5
SIGMAS = 6
SLACK = 0.05
LEAST_SAMPLES = 30
LEAST_SEEN = 0.7  # of the looks that were asked for: with fewer, single samples have the time of many
LEAST_EFFECTIVE = 40  # samples of a share, by which six standard deviations are at most 0.5
TORN = 8


@pytest.fixture(scope="module")
def interpreters():
    return truth.interpreters()


def judged(name, python, rate, seconds, tmp_path):
    """A profile of the program, and what there is to say about it."""
    with truth.Program(name, python) as program:
        start = truth.now_ns()
        profile = profilers.ALL["fathom"].profile(program.pid, rate, seconds, tmp_path / "profile",
                                                  program.says.get("mode", "wall"))
        end = truth.now_ns()
        program.finish()
        return profile, truth.judge(program, profile, start, end)


@pytest.fixture
def python(version, interpreters):
    if version not in interpreters:
        pytest.skip(f"no CPython {version} on this machine (tools/pythons provide, or pyenv)")
    return interpreters[version]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", [name for name in truth.names() if name not in truth.WHOLE])
def test_stacks_can_exist_and_shares_are_right(name, python, tmp_path):
    def measure(seconds):
        profile, verdict = judged(name, python, 1000, seconds, tmp_path)
        assert (verdict.impossible, verdict.cut) == (0, 0), verdict.examples
        enough.want(verdict.samples, LEAST_SAMPLES, "samples")
        enough.want(1 - profile.unseen, LEAST_SEEN, "of the looks asked for")
        for share in verdict.shares:
            enough.want(share.effective, LEAST_EFFECTIVE, f"independent samples of {share.group}")
        return verdict

    verdict = enough.measured(measure, SECONDS)
    for share in verdict.shares:
        assert abs(share.error) <= share.half_width(SIGMAS) + SLACK, share


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", ["short", "generators", "threads"])
def test_the_highest_rate_is_best_effort(name, python, tmp_path):
    def measure(seconds):
        _, verdict = judged(name, python, profilers.MAX, seconds, tmp_path)
        enough.want(verdict.samples, 100, "samples")
        return verdict

    verdict = enough.measured(measure, SECONDS)
    assert verdict.impossible <= verdict.samples / TORN, verdict.examples
    [note] = recordings.report(tmp_path / "profile.fathom")["notes"]
    assert note["kind"] == "sampling" and note["text"].startswith("best effort: above 2,000 looks a second")


def test_the_oracle_itself_sees_what_is_wrong():
    """Stacks made by hand: possible, torn, without a root; and a share that is off."""
    says = {"paths": [["<module>", "main", "a", "b"], ["<module>", "main", "~", "c"]],
            "modules": [], "shares": {"all": ["a", "c"]}, "pid": 1}
    program = object.__new__(truth.Program)
    program.name, program.says = "made", says
    program.logs = [{"labels": ["a", "c"],
                     "stamps": [n for k in range(1000) for n in (10 * k, 10 * k + 7, 10 * k + 10)]}]

    def stack(*functions):
        return tuple((name, "lib.py" if name.startswith("lib") else "made.py", 1)
                     for name in functions)

    right = [(stack("<module>", "main", "a", "b"), 700), (stack("<module>", "main", "lib_1",
                                                                "lib_2", "c"), 300)]
    verdict = truth.judge(program, profilers.Profile(right), 0, 10_000)
    assert (verdict.samples, verdict.impossible) == (1000, 0)
    assert [(round(share.true, 6), share.seen, share.inside()) for share in verdict.shares] == [
        (0.7, 0.7, True), (0.3, 0.3, True)]
    torn = right + [(stack("<module>", "main", "b"), 2), (stack("main", "a"), 3),
                    (stack("<module>", "main", "c"), 4), (stack("<module>", "main"), 5)]
    verdict = truth.judge(program, profilers.Profile(torn), 0, 10_000)
    assert verdict.impossible == 9
    assert verdict.examples == {"<module>;main;b": 2, "main;a": 3, "<module>;main;c": 4}
    # n = 1000 and m = 2000 · (…) visits: σ is about 2 points, so 8 points are too many.
    off = [(stack("<module>", "main", "a"), 780), (stack("<module>", "main", "lib_1", "c"), 220)]
    assert not any(share.inside() for share in truth.judge(
        program, profilers.Profile(off), 0, 10_000).shares)


def test_austins_format_is_read():
    """Bytes put together by hand: two strings, one frame, two stacks."""
    data = (b"MOJ\x03" b"\x01mode\0wall\0"
            b"\x0b\x05app.py\0" b"\x0b\x06work\0" b"\x03\x07\x05\x06\x82\x01\x82\x01\x00\x00"
            b"\x02\x10\x00abc\0\x05\x07\x09\x0a" b"\x02\x10\x00abc\0\x05\x07\x05\x07\x09\x0a")
    one = ("work", "app.py", 2 + (1 << 6))
    assert sorted(profilers.Mojo(data).stacks(), key=lambda each: len(each[0])) == [
        ((one,), 1), ((one, one), 1)]


def test_collapsed_stacks_are_read_in_every_style(tmp_path):
    path = tmp_path / "x.collapsed"
    path.write_text("thread (7): x;main (/a b/app.py:3);work (app.py:9) 17\n"
                    "tid:5;app.py:<module>:80;app.py:f:2 4\n")
    assert profilers.collapsed(path) == [
        ((("main", "/a b/app.py", 3), ("work", "app.py", 9)), 17),
        ((("<module>", "app.py", 80), ("f", "app.py", 2)), 4)]
