"""Programs in a control group of their own, which may have only so much memory. Needs root."""

import os
import time
from pathlib import Path

import launch
import pytest


def make(limit):
    for parent, file in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        group = Path(parent) / f"fathom-test-{os.getpid()}"
        try:
            group.mkdir()
            (group / file).write_text(str(limit))
            return group
        except OSError:
            if group.exists():
                group.rmdir()
    pytest.skip("no control group can be made here")


def run(limit, *command, **options):
    """Run a command in a group that may have `limit` bytes."""
    group = make(limit)
    try:
        return launch.plain("sh", "-c", 'echo $$ > "$0/cgroup.procs"; exec "$@"', group, *command, **options)
    finally:
        for _ in range(100):
            try:
                group.rmdir()
                break
            except OSError:
                time.sleep(0.05)
