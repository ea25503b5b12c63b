"""Every verb that writes a file writes it whole or not at all, replaces nothing unasked, and says
in one sentence why it cannot. The same for all of them."""

import marshal
import os
import resource
import signal
import subprocess

import pytest

from pstats_tools import FATHOM


FUNCTIONS = 3000  # so that any output exceeds the limit on the size of files below
LIMIT_BYTES = 16384

# verb: (name of the output, words that say what to write when the name does not tell)
VERBS = {
    "convert": ("out.prof", ["--to", "pstats"]),
    "view": ("out.html", []),
    "graph": ("out.dot", ["-n", "0", "-e", "0", "--to", "dot"]),
    "merge": ("out.fathom", []),
}


@pytest.fixture
def folder(tmp_path):
    main = ("/app.py", 1, "main")
    stats = {(f"/file{i}.py", i, os.urandom(40).hex()): (1, 1, 0.5, 0.5, {main: (1, 1, 0.5, 0.5)})
             for i in range(FUNCTIONS)}
    stats[main] = (1, 1, 0.5, 0.5 * (FUNCTIONS + 1), {})
    (tmp_path / "in.prof").write_bytes(marshal.dumps(stats))
    return tmp_path


def write(verb, folder, out, *words, **options):
    return subprocess.run([FATHOM, verb, "in.prof", "-o", str(out), *VERBS[verb][1], *words],
                          cwd=folder, capture_output=True, **options)


def refused(done, status, *parts):
    assert done.returncode == status and done.stdout == b"", done
    assert done.stderr.count(b"\n") == 1, done
    for part in parts:
        assert part.encode() in done.stderr, done


@pytest.fixture(params=VERBS)
def verb(request):
    return request.param


def test_a_new_file(verb, folder):
    name = VERBS[verb][0]
    old = os.umask(0o027)
    try:
        assert write(verb, folder, name).returncode == 0
    finally:
        os.umask(old)
    assert (folder / name).stat().st_size > LIMIT_BYTES
    assert (folder / name).stat().st_mode & 0o777 == 0o600, "for its owner alone"
    assert sorted(os.listdir(folder)) == ["in.prof", name]


@pytest.mark.parametrize("force", ["--force", "-f"])
def test_an_existing_file_is_kept_unless_forced(verb, folder, force):
    name = VERBS[verb][0]
    (folder / name).write_text("mine")
    refused(write(verb, folder, name), 7, f"{name} exists and is not overwritten without --force")
    assert (folder / name).read_text() == "mine"
    (folder / name).chmod(0o640)
    assert write(verb, folder, name, force).returncode == 0
    assert (folder / name).stat().st_size > LIMIT_BYTES
    assert (folder / name).stat().st_mode & 0o777 == 0o640, "it keeps its permissions"
    assert sorted(os.listdir(folder)) == ["in.prof", name]


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files to others")
def test_files_of_root_under_sudo(verb, folder):
    """A new file is that of who typed sudo; one that is replaced stays whose it was."""
    name = VERBS[verb][0]
    env = {**os.environ, "SUDO_UID": "12345", "SUDO_GID": "12346"}
    assert write(verb, folder, name, env=env).returncode == 0
    st = (folder / name).stat()
    assert (st.st_uid, st.st_gid, st.st_mode & 0o777) == (12345, 12346, 0o600)
    os.chown(folder / name, 23456, 23457)
    assert write(verb, folder, name, "--force", env=env).returncode == 0
    st = (folder / name).stat()
    assert (st.st_uid, st.st_gid, st.st_mode & 0o777) == (23456, 23457, 0o600)
    for wrong in ("", "x", "-1x", "12345 "):
        (folder / name).unlink()
        assert write(verb, folder, name, env={**env, "SUDO_UID": wrong}).returncode == 0
        assert (folder / name).stat().st_uid == 0


def test_a_link_stays_a_link(verb, folder):
    name = VERBS[verb][0]
    (folder / "deep").mkdir()
    (folder / "deep" / name).write_text("mine")
    (folder / name).symlink_to(f"deep/{name}")
    refused(write(verb, folder, name), 7, name)
    assert write(verb, folder, name, "--force").returncode == 0
    assert os.readlink(folder / name) == f"deep/{name}"
    assert (folder / "deep" / name).stat().st_size > LIMIT_BYTES
    assert os.listdir(folder / "deep") == [name]


def test_a_link_to_nothing_yet(verb, folder):
    """As compilers write through it; but not unasked, since it may be somebody else's."""
    name = VERBS[verb][0]
    (folder / "deep").mkdir()
    (folder / "step").symlink_to(f"deep/{name}")
    (folder / name).symlink_to(folder / "step")
    refused(write(verb, folder, name), 7, f"{name} exists and is not overwritten without --force")
    assert os.listdir(folder / "deep") == []
    assert write(verb, folder, name, "--force").returncode == 0
    assert (os.readlink(folder / name), os.readlink(folder / "step")) == (
        str(folder / "step"), f"deep/{name}")
    assert (folder / "deep" / name).stat().st_size > LIMIT_BYTES
    assert (folder / "deep" / name).stat().st_mode & 0o777 == 0o600
    assert os.listdir(folder / "deep") == [name]


def test_a_link_that_leads_nowhere(verb, folder):
    name = VERBS[verb][0]
    (folder / name).symlink_to(f"no/{name}")
    refused(write(verb, folder, name, "--force"), 8,
            f"writing {name}, which is a link to no/{name}: that folder does not exist")
    (folder / name).unlink()
    (folder / name).symlink_to(name)
    refused(write(verb, folder, name, "--force"), 8, name, "Too many levels of symbolic links")
    assert os.readlink(folder / name) == name


@pytest.mark.parametrize("disposition", [signal.SIG_IGN, signal.SIG_DFL], ids=["ignored", "default"])
def test_a_full_disk_leaves_what_was_there(verb, disposition, folder):
    """A limit on the size of files stands for the full disk: writing fails part of the way. By
    default the system would end the command by SIGXFSZ."""
    name = VERBS[verb][0]
    if verb == "view":  # the page alone is too large; the recording must fit, kept in memory by a file
        (folder / "in.prof").write_bytes(marshal.dumps({("/a.py", 1, "f"): (1, 1, 0.5, 0.5, {})}))

    def limit():
        signal.signal(signal.SIGXFSZ, disposition)
        resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT_BYTES, LIMIT_BYTES))
    refused(write(verb, folder, name, preexec_fn=limit), 8, name, "File too large")
    assert os.listdir(folder) == ["in.prof"]
    (folder / name).write_text("mine")
    refused(write(verb, folder, name, "--force", preexec_fn=limit), 8, name, "File too large")
    assert (folder / name).read_text() == "mine"
    assert sorted(os.listdir(folder)) == ["in.prof", name]


def test_bad_places(verb, folder):
    name = VERBS[verb][0]
    refused(write(verb, folder, f"no/{name}"), 8, f"no/{name}", "the folder no does not exist")
    (folder / name).mkdir()
    refused(write(verb, folder, name), 8, name, "it is a folder")
    refused(write(verb, folder, name, "--force"), 8, name, "it is a folder")
    assert os.listdir(folder / name) == []


def test_an_unwritable_folder(verb, folder):
    refused(write(verb, folder, f"/proc/sys/{VERBS[verb][0]}"), 8, "/proc/sys/")


def test_devices_and_pipes_get_the_same_bytes(verb, folder):
    name = VERBS[verb][0]
    assert write(verb, folder, name).returncode == 0
    expected = (folder / name).read_bytes()
    assert write(verb, folder, "-").stdout == expected
    refused(write(verb, folder, "/dev/full"), 8, "/dev/full", "No space left")
    os.mkfifo(folder / "pipe")
    with open(folder / "received", "wb") as received:
        reader = subprocess.Popen(["cat", "pipe"], cwd=folder, stdout=received)
    try:
        assert write(verb, folder, "pipe", timeout=300).returncode == 0
        reader.wait(timeout=300)
    finally:
        reader.kill()
        reader.wait()
    assert (folder / "received").read_bytes() == expected


PRINTING = [["--help"], ["help", "run"], ["--version"], *([verb, "--help"] for verb in
            "run attach top dump doctor report convert merge graph view".split()),
            ["report", "in.prof"], ["report", "--json", "in.prof"], ["doctor"], ["doctor", "--json"]]


@pytest.mark.parametrize("words", PRINTING, ids=" ".join)
def test_what_cannot_be_printed_is_said(words, folder):
    """A full device, and a file at its limit."""
    with open("/dev/full", "wb") as full:
        done = subprocess.run([FATHOM, *words], cwd=folder, stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 8 and done.stderr.count(b"\n") == 1, done
    with open(folder / "printed", "wb") as printed:
        done = subprocess.run([FATHOM, *words], cwd=folder, stdout=printed, stderr=subprocess.PIPE,
                              preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (5, 5)))
    assert done.returncode == 8 and done.stderr.count(b"\n") == 1, done
