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


def ask(*words: str) -> str:
    return subprocess.run([sys.executable, str(TOOL), *words], check=True, stdout=subprocess.PIPE,
                          text=True).stdout


VERSIONS = ask("versions").split()
SAMPLED_VERSIONS = ask("versions", "--all").split()  # with those that are only watched from outside


@functools.lru_cache(maxsize=None)
def found(*options: str) -> tuple[tuple[str, str], ...]:
    return tuple(tuple(line.split(" ", 1)) for line in ask("list", *options).splitlines())


def interpreters() -> dict[str, str]:
    """{"3.13": "/path/to/python3.13", ...}, the versions in order."""
    return dict(found())


def sampled() -> dict[str, str]:
    """The same with the older versions, which Fathom only watches from outside."""
    return dict(found("--all"))


def missing() -> list[str]:
    """The required versions which are not here."""
    return [version for version in REQUIRED if version not in sampled()]
