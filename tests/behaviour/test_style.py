"""What CONTRIBUTING.md says of the C sources and a program can check: their layout, and functions that are not to
be called."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
# The layout depends a little on the version; this is the one of Debian 12, by which the tree is laid out.
CLANG_FORMAT = 14

NO_SIZE = "does not know the size of what it writes to; snprintf does, or memcpy of a length that was compared"
UNTERMINATED = "leaves out the end of a text that does not fit; snprintf does not"
NO_ERRORS = "tells no error from 0, and overflow is undefined; strtol and strtod"
STATIC = "answers from memory that all threads share; the form with _r does not"
RACE = "names a file that somebody else may make first; mkstemp and mkdtemp open it as well"
BANNED = {
    "strcpy": NO_SIZE, "stpcpy": NO_SIZE, "strcat": NO_SIZE, "sprintf": NO_SIZE, "vsprintf": NO_SIZE, "gets": NO_SIZE,
    "strncpy": UNTERMINATED, "stpncpy": UNTERMINATED,
    "strncat": "its size is what is left, not what is there, and is given wrongly; snprintf",
    "strtok": "keeps its place in memory that all threads share; strtok_r, strcspn",
    "atoi": NO_ERRORS, "atol": NO_ERRORS, "atoll": NO_ERRORS, "atof": NO_ERRORS,
    "alloca": "overruns the stack without a word; the heap, or an array of a fixed size",
    "strdupa": "is alloca", "strndupa": "is alloca",
    "tmpnam": RACE, "tempnam": RACE, "mktemp": RACE,
    "rand": "has one state for all threads, and a program may rely on its own; a generator with its state beside it",
    "srand": "as rand", "random": "as rand", "srandom": "as rand",
    "ctime": STATIC, "asctime": STATIC, "gmtime": STATIC, "localtime": STATIC,
    "ttyname": STATIC, "inet_ntoa": STATIC,
    "setjmp": "leaves whatever is between unreleased; statuses go up through returns", "longjmp": "as setjmp",
    "sigsetjmp": "as setjmp", "siglongjmp": "as setjmp",
    "vfork": "the child writes into the parent's stack; posix_spawn, or fork",
}
ALLOWED = {
    # Between fork and exec nothing may be allocated from a heap that another thread may have locked.
    ("src/target/preload/preload.h", "alloca"),
    # Exhausted memory inside a program: what was allocated since is known and freed (guard.h).
    ("src/target/library/guard.c", "setjmp"), ("src/target/library/guard.c", "longjmp"),
}


def sources():
    return [p for folder in ("src", "viewer/engine") for p in sorted((REPO / folder).rglob("*.[ch]"))]


def without_comments_and_texts(source):
    return re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"', " ", source, flags=re.S)


def banned_in(source):
    words = "|".join(BANNED)
    return sorted(set(re.findall(rf"(?<![\w.>])({words})\s*\(", without_comments_and_texts(source))))


def test_the_layout_is_that_of_clang_format():
    program = shutil.which("clang-format")
    if not program:
        pytest.skip("no clang-format on this machine (tools/setup test)")
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    if f"version {CLANG_FORMAT}." not in version:
        pytest.skip(f"the tree is laid out by clang-format {CLANG_FORMAT}; this is {version.strip()}")
    done = subprocess.run([REPO / "tools" / "format", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:5000]


def test_what_is_banned_is_recognised():
    source = """
        /* strcpy(a, b) in a comment */
        strtol(x); fm_rand(); t->random(); localtime_r(&a, &b); puts("sprintf(a)");
        sprintf (a, "x");
        return atoi(x);
    """
    assert banned_in(source) == ["atoi", "sprintf"]


def test_no_banned_function_is_called():
    called = [f"{name}: {word}: {BANNED[word]}"
              for path in sources() for name in [path.relative_to(REPO).as_posix()]
              for word in banned_in(path.read_text()) if (name, word) not in ALLOWED]
    assert called == []


def test_every_exception_is_needed():
    needless = [(name, word) for name, word in sorted(ALLOWED) if word not in banned_in((REPO / name).read_text())]
    assert needless == []
