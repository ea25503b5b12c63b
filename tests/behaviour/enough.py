"""Tests that judge by samples mean the same on a busy machine: with enough of them a test judges strictly, with too few
it says nothing. So it measures again, longer, and if the machine does not give the samples it is skipped with that
reason. Only a machine without a processor to spare excuses a test: on any other too few samples are a failure.

    def measure(seconds):
        recording = …
        enough.want(recording.sampling["samples"], 100, "samples")
        return recording

    recording = enough.measured(measure, 0.5)
    assert …
"""

from __future__ import annotations

import pytest

TRIES = 3
LONGER = 3       # times as long as the try before
SPARE = 0.25     # of all processors, idle: then the machine was not busy


class TooFew(Exception):
    """What was measured is not enough to judge by."""


def want(found: float, least: float, what: str) -> None:
    if found < least:
        raise TooFew(f"{found:.4g} {what} where {least:.4g} are needed")


def processor_times() -> tuple[int, int]:
    """(idle, all) ticks of all processors since boot."""
    with open("/proc/stat") as file:
        ticks = [int(word) for word in file.readline().split()[1:9]]
    return ticks[3] + ticks[4], sum(ticks)


def measured(measure, seconds: float):
    """What measure(seconds) returns, once it is enough."""
    why = []
    for _ in range(TRIES):
        idle, total = processor_times()
        try:
            return measure(seconds)
        except TooFew as few:
            idle_now, total_now = processor_times()
            spare = (idle_now - idle) / max(1, total_now - total)
            why.append(f"{few} in {seconds:g} s")
        seconds *= LONGER
    if spare > SPARE:
        pytest.fail(f"{'; '.join(why)}, though {spare:.0%} of the processors were idle")
    pytest.skip(f"inconclusive, the machine is busy: {'; '.join(why)}")
