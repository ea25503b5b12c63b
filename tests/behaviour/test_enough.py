"""The helper of tests that judge by samples: what it does with too few of them, on machines made by hand."""

import pytest

import enough


@pytest.fixture
def machine(monkeypatch):
    """A machine whose processors are idle for this part of the time."""
    def make(idle):
        ticks = iter(range(0, 10**6, 100))
        monkeypatch.setattr(enough, "processor_times", lambda: (lambda now: (idle * now, now))(next(ticks)))
    return make


def measure(tried, least):
    def one(seconds):
        tried.append(seconds)
        enough.want(100 * seconds, least, "samples")
        return f"{seconds} s"
    return one


@pytest.mark.parametrize("idle", [0.0, 0.9])
def test_enough_at_once(machine, idle):
    machine(idle)
    tried = []
    assert enough.measured(measure(tried, 50), 0.5) == "0.5 s" and tried == [0.5]


@pytest.mark.parametrize("idle", [0.0, 0.9])
def test_enough_when_it_takes_longer(machine, idle):
    machine(idle)
    tried = []
    assert enough.measured(measure(tried, 100), 0.5) == "1.5 s" and tried == [0.5, 1.5]


def test_a_busy_machine_is_an_excuse(machine):
    machine(0.0)
    tried = []
    with pytest.raises(pytest.skip.Exception) as skipped:
        enough.measured(measure(tried, 1000), 0.5)
    assert tried == [0.5, 1.5, 4.5]
    assert str(skipped.value) == ("inconclusive, the machine is busy: 50 samples where 1000 are needed in 0.5 s; "
                                  "150 samples where 1000 are needed in 1.5 s; 450 samples where 1000 are needed in 4.5 s")


def test_a_machine_with_processors_to_spare_is_none(machine):
    machine(0.5)
    with pytest.raises(pytest.fail.Exception, match="though 50% of the processors were idle"):
        enough.measured(measure([], 1000), 0.5)


def test_what_is_wrong_is_wrong_on_any_machine(machine):
    machine(0.0)

    def wrong(_seconds):
        assert "what was seen" == "what was there"

    with pytest.raises(AssertionError):
        enough.measured(wrong, 0.5)


def test_the_ticks_of_this_machine():
    idle, total = enough.processor_times()
    later_idle, later = enough.processor_times()
    assert 0 <= idle <= total <= later and idle <= later_idle <= later
