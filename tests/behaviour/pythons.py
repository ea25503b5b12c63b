"""The interpreters which the behaviour tests run under, as `tools/pythons list` finds them.

A version that is not here makes its tests skip, unless FATHOM_REQUIRE_PYTHONS ("3.13 3.14")
names it: then its absence is a failure, so that a matrix run cannot pass by skipping.
"""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "pythons"
REQUIRED = os.environ.get("FATHOM_REQUIRE_PYTHONS", "").split()


@functools.lru_cache(maxsize=None)
def found() -> tuple[tuple[str, str], ...]:
    listing = subprocess.run([sys.executable, str(TOOL), "list"], check=True,
                             stdout=subprocess.PIPE, text=True).stdout
    return tuple(tuple(line.split(" ", 1)) for line in listing.splitlines())


def interpreters() -> dict[str, str]:
    """{"3.13": "/path/to/python3.13", ...}, the versions in order."""
    return dict(found())


@functools.lru_cache(maxsize=None)
def found_any() -> tuple[tuple[str, str], ...]:
    listing = subprocess.run([sys.executable, str(TOOL), "list", "--all"], check=True,
                             stdout=subprocess.PIPE, text=True).stdout
    return tuple(tuple(line.split(" ", 1)) for line in listing.splitlines())


def sampled() -> dict[str, str]:
    """The same with the older versions, which Fathom only watches from outside."""
    return dict(found_any())


def missing() -> list[str]:
    """The required versions which are not here."""
    return [version for version in REQUIRED if version not in sampled()]
