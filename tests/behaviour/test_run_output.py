"""Where the recording goes, what is never overwritten, and what the user reads at the end."""

from __future__ import annotations

import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys

import pytest

import launch
import pythons
import recordings
from launch import own_run_folders  # noqa: F401 (a fixture)

INTERPRETERS = pythons.interpreters()
PYTHON = list(INTERPRETERS.values())[0] if INTERPRETERS else sys.executable
MAGIC = b"\x89FTHM\r\n\x1a"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "app.py").write_text("def work():\n    return 1\nwork()\nprint('ran')\n")
    return tmp_path


def run(folder, *words, status=0, **options):
    done = launch.fathom("run", "--calls", "-q", "--python", PYTHON, *words, cwd=folder, **options)
    assert done.returncode == status, done.stderr
    return done


def recordings_of(folder):
    return sorted(name for name in os.listdir(folder) if name != "app.py")


def test_default_names_count_up(folder):
    for _ in range(3):
        run(folder, "app.py")
    assert recordings_of(folder) == ["app-2.fathom", "app-3.fathom", "app.fathom"]
    for name in recordings_of(folder):
        assert (folder / name).read_bytes().startswith(MAGIC)


@pytest.mark.parametrize("words, name", [
    (["-c", "pass"], "command.fathom"),
    (["-m", "this"], "this.fathom"),
    (["-mthis"], "this.fathom"),
    (["-m", "json.tool", "/dev/null"], "json.tool.fathom"),
    (["-"], "stdin.fathom"),
    (["sh", "-c", "true"], "sh.fathom"),
    ([PYTHON, "-X", "utf8", "app.py"], "app.fathom"),
    ([PYTHON, "-m", "this"], "this.fathom"),
])
def test_default_name(folder, words, name):
    launch.fathom("run", "--calls", "-q", "--python", PYTHON, *words, cwd=folder)
    assert recordings_of(folder) == [name]


def test_default_name_with_rank(folder):
    run(folder, "app.py", env={**os.environ, "OMPI_COMM_WORLD_RANK": "3"})
    assert recordings_of(folder) == ["app-r3.fathom"]


def test_template(folder):
    (folder / "app.py").write_text("import os; print(os.getpid())")
    done = run(folder, "-o", "%s-%p-%h-r%r-%n-%t-%%.fathom", "app.py",
               env={**os.environ, "PMI_RANK": "5"})
    pattern = rf"app-{done.stdout.strip()}-{re.escape(socket.gethostname())}-r5-1-\d{{8}}-\d{{6}}-%"
    [name] = recordings_of(folder)
    assert re.fullmatch(pattern + r"\.fathom", name)


def test_sequence_number(folder):
    for _ in range(2):
        run(folder, "-o", "x%n.fathom", "app.py")
    assert recordings_of(folder) == ["x1.fathom", "x2.fathom"]


@pytest.mark.parametrize("name", ["out.fathom", "out.prof"])
def test_existing_output_is_refused_before_the_program_runs(folder, name):
    (folder / name).write_text("precious")
    done = run(folder, "-o", name, "app.py", status=7)
    assert done.stdout == "", "the program must not have run"
    assert name in done.stderr and "--force" in done.stderr
    assert (folder / name).read_text() == "precious"
    assert recordings_of(folder) == [name]


@pytest.mark.parametrize("force", ["--force", "-f"])
def test_force_replaces(folder, force):
    (folder / "out.fathom").write_text("old")
    run(folder, force, "-o", "out.fathom", "app.py")
    assert (folder / "out.fathom").read_bytes().startswith(MAGIC)
    assert recordings_of(folder) == ["out.fathom"]


@pytest.mark.parametrize("name", ["out.fathom", "out.prof"])
def test_a_link_stays_a_link(folder, name):
    """Whether there is something behind it or not."""
    (folder / "deep").mkdir()
    (folder / name).symlink_to(f"deep/{name}")
    assert f"{name} exists" in run(folder, "-o", name, "app.py", status=7).stderr
    assert os.listdir(folder / "deep") == []
    for _ in range(2):
        run(folder, "--force", "-o", name, "app.py")
        assert os.readlink(folder / name) == f"deep/{name}"
        assert (folder / "deep" / name).stat().st_size > 0
        assert os.listdir(folder / "deep") == [name]
    assert recordings_of(folder) == ["deep", name]


def test_a_link_that_leads_nowhere(folder):
    (folder / "out.fathom").symlink_to("no/out.fathom")
    done = run(folder, "--force", "-o", "out.fathom", "app.py", status=8)
    assert done.stdout == "", "the program must not have run"
    assert done.stderr == ("fathom run: writing out.fathom, which is a link to no/out.fathom: "
                           "that folder does not exist\n")


def test_force_keeps_the_old_one_if_nothing_ran(folder):
    (folder / "out.fathom").write_text("old")
    (folder / "tool").write_text("#!/no/such/interpreter\n")
    (folder / "tool").chmod(0o755)
    run(folder, "--force", "-o", "out.fathom", "./tool", status=127)
    assert (folder / "out.fathom").read_text() == "old"


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files to others")
def test_recording_under_sudo_is_the_users(folder):
    """From the start on: it is there before the program runs."""
    (folder / "app.py").write_text("import os; print(os.stat('out.fathom').st_uid)")
    env = {**os.environ, "SUDO_UID": "12345", "SUDO_GID": "12346"}
    assert run(folder, "-o", "out.fathom", "app.py", env=env).stdout == "12345\n"
    st = (folder / "out.fathom").stat()
    assert (st.st_uid, st.st_gid, st.st_mode & 0o777) == (12345, 12346, 0o600)


def test_force_keeps_the_old_one_while_the_program_runs(folder):
    (folder / "app.py").write_text("print(open('out.fathom').read())")
    (folder / "out.fathom").write_text("old")
    assert run(folder, "--force", "-o", "out.fathom", "app.py").stdout == "old\n"
    assert (folder / "out.fathom").read_bytes().startswith(MAGIC)


def test_force_keeps_the_old_one_if_the_launcher_is_killed(folder):
    """What the killed run recorded is still in its folder, with what is known about the run."""
    (folder / "app.py").write_text("def work():\n    print('ready', flush=True)\n    input()\nwork()\n")
    (folder / "out.fathom").write_text("old")
    process = launch.start(launch.FATHOM, "run", "--calls", "--python", PYTHON, "--force", "-o",
                           "out.fathom", "app.py", cwd=folder, stdin=subprocess.PIPE)
    assert process.stdout.readline() == "ready\n"
    assert launch.outlived(process, "\n") == ""
    assert (folder / "out.fathom").read_text() == "old"
    [left] = launch.run_folders()
    assert launch.fathom("merge", left, "-o", folder / "found.fathom").returncode == 0
    report = recordings.report(folder / "found.fathom")
    assert report["command"] == f"{PYTHON} app.py"
    assert [f["calls"] for f in report["functions"] if f["name"] == "work"] == [1]
    assert launch.run_folders() == []


@pytest.mark.parametrize("out", ["out.fathom", "out.prof"])
def test_force_keeps_the_old_one_if_the_new_one_cannot_be_written(folder, out):
    """A limit on the size of files, which the program sets for the launcher."""
    (folder / out).write_text("old")
    (folder / "app.py").write_text(
        "import os, resource\n"
        "resource.prlimit(os.getppid(), resource.RLIMIT_FSIZE, (1000, 1000))\n")
    done = run(folder, "--force", "-o", out, "app.py", status=8)
    assert "File too large" in done.stderr
    assert (folder / out).read_text() == "old"
    [left] = launch.run_folders()
    assert f"fathom merge {left} -o" in done.stderr
    shutil.rmtree(left)


LIMIT_BYTES = 8192


def limit():
    """As in a shell with `ulimit -f`: a file that grows further ends its writer by SIGXFSZ."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT_BYTES, LIMIT_BYTES))


@pytest.mark.parametrize("status", [0, 3])
@pytest.mark.parametrize("collector", ["--sample", "--calls"])
def test_a_limit_on_the_size_of_files(folder, collector, status):
    """The program ends as it would; whoever cannot record says so, and no file says what is not so."""
    (folder / "app.py").write_text(
        "import sys\n" + "".join(f"def f{i}(): pass\nf{i}()\n" for i in range(2000)) +
        f"print('ran')\nsys.exit({status})\n")
    done = launch.fathom("run", collector, "-q", "--python", PYTHON, "-o", "out.fathom", "app.py",
                         cwd=folder, preexec_fn=limit)
    assert done.stdout == "ran\n" and "File too large" in done.stderr
    if collector == "--calls":  # the recording was too large, or the agent had no room for its own
        assert done.returncode == status and "was not profiled" in done.stderr
    else:
        assert done.returncode == (status or 8)
        # The samples alone may have been small enough to be kept, and then the file leads to them.
        kept = launch.run_folders()
        assert recordings_of(folder) == (["out.fathom"] if kept else [])
        assert ("fathom merge" in done.stderr) == bool(kept)


@pytest.mark.parametrize("disposition", ["SIG_DFL", "SIG_IGN"])
def test_the_program_finds_the_signal_as_it_was(folder, disposition):
    """A shell shows it: Python itself ignores the signal."""
    done = run(folder, "sh", "-c", "grep SigIgn /proc/self/status; grep SigCgt /proc/self/status",
               preexec_fn=lambda: signal.signal(signal.SIGXFSZ, getattr(signal, disposition)))
    ignored, caught = (int(line.split()[1], 16) for line in done.stdout.splitlines())
    bit = 1 << (signal.SIGXFSZ - 1)
    assert bool(ignored & bit) == (disposition == "SIG_IGN") and not caught & bit


@pytest.mark.parametrize("words", [["-o", "/dev/null"], ["--force", "-o", "/dev/null"]])
def test_a_device_is_never_replaced(folder, words):
    done = run(folder, *words, "app.py", status=8)
    assert "not a regular file" in done.stderr and done.stdout == ""
    assert not os.path.isfile("/dev/null")


def test_missing_output_folder(folder):
    done = run(folder, "-o", "no/such/out.fathom", "app.py", status=8)
    assert done.stdout == "" and "no/such/out.fathom" in done.stderr
    done = run(folder, "-o", "no/such/out.prof", "app.py", status=8)
    assert done.stdout == "" and "no/such/out.prof" in done.stderr


def test_unwritable_output_folder(folder):
    """A read-only place: /proc refuses new files even to root."""
    done = run(folder, "-o", "/proc/out.fathom", "app.py", status=8)
    assert done.stdout == "" and "/proc/out.fathom" in done.stderr


def test_output_folder_that_vanishes(folder):
    """The program's status stays the program's; what was recorded is kept and named."""
    out = folder / "out"
    for code, expected in (("", 8), ("; import sys; sys.exit(3)", 3)):
        out.mkdir()
        done = launch.fathom("run", "--calls", "-q", "--python", PYTHON, "-o", out / "o.fathom", "-c",
                             f"import shutil; shutil.rmtree({str(out)!r}){code}", cwd=folder)
        assert done.returncode == expected
        [kept] = launch.run_folders()
        assert f"fathom merge {kept} -o" in done.stderr
        assert os.listdir(kept), "what was recorded is in it"
        shutil.rmtree(kept)


def test_recording_is_there_from_the_start(folder):
    """Before the program has done anything the output is a valid recording that names the run."""
    (folder / "app.py").write_text("print(open('out.fathom', 'rb').read(8))")
    assert run(folder, "-o", "out.fathom", "app.py").stdout == f"{MAGIC!r}\n"


def test_pstats_output(folder):
    import pstats
    run(folder, "-o", "out.prof", "app.py")
    stats = pstats.Stats(str(folder / "out.prof")).stats
    if not stats:
        pytest.fail("the table is empty")
    [row] = [value for (_, line, name), value in stats.items() if (line, name) == (1, "work")]
    assert row[:2] == (1, 1)


def test_what_the_user_reads(folder):
    done = launch.fathom("run", "--python", PYTHON, "app.py", cwd=folder)
    assert done.stdout == "ran\n"
    assert done.stderr.endswith("Recorded to app.fathom; next: fathom report app.fathom\n")
    assert "\x1b[" not in done.stderr, "no colours: stderr is not a terminal"


def test_quiet(folder):
    assert run(folder, "app.py").stderr == ""


def test_stderr_that_nobody_reads(folder):
    """A closed pipe costs the table, not the recording nor the exit status."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run([launch.FATHOM, "run", "--python", PYTHON, "app.py"], cwd=folder,
                          stdout=subprocess.DEVNULL, stderr=write_end, timeout=launch.TIMEOUT,
                          check=False)
    os.close(write_end)
    assert done.returncode == 0
    assert (folder / "app.fathom").read_bytes().startswith(MAGIC)


def test_no_folder_is_left(folder):
    run(folder, "app.py")
    assert launch.run_folders() == []


def test_folder_of_the_run(folder, monkeypatch):
    """In memory by default, with a second one on disk; both private, both gone afterwards."""
    monkeypatch.delenv("FATHOM_TMPDIR")
    monkeypatch.setenv("TMPDIR", str(folder))
    command = ("f=$(echo \"$FATHOM_RUN\" | tr '\\037' '\\n' | sed -n 's/^folder=//p');"
               "echo $f; stat -c %a $f; readlink $f/more")
    path, mode, *more = run(folder, "-o", "o.fathom", "sh", "-c", command).stdout.split()
    room = os.statvfs("/dev/shm") if os.path.isdir("/dev/shm") else None
    if room and room.f_bavail * room.f_frsize >= 64 << 20:
        assert os.path.dirname(path) == "/dev/shm" and os.path.dirname(more[0]) == str(folder)
    else:
        assert os.path.dirname(path) == str(folder) and not more
    assert mode == "700"
    assert not any(os.path.exists(name) for name in [path, *more])


def test_folder_of_the_run_where_asked(folder, monkeypatch):
    monkeypatch.setenv("FATHOM_TMPDIR", str(folder / "missing"))
    done = run(folder, "app.py", status=125)
    assert "FATHOM_TMPDIR" in done.stderr and done.stdout == ""


def test_help(folder):
    done = run(folder, "--help")
    assert done.stdout.startswith("usage: fathom run") and done.stderr == ""


@pytest.mark.parametrize("how", ["os.replace('t', 'o.fathom')", "shutil.copy('t', 'o.fathom')"])
def test_a_file_that_the_program_made_meanwhile_stays(how, tmp_path):
    """It may have the name that was reserved for the recording, which is then kept in the run's folder."""
    (tmp_path / "app.py").write_text(f"import os, shutil\nopen('t', 'w').write('precious')\n{how}\n")
    done = launch.fathom("run", "-q", "--calls", "-o", "o.fathom", "app.py", cwd=tmp_path)
    assert done.returncode == 8 and "written by somebody else" in done.stderr
    assert (tmp_path / "o.fathom").read_text() == "precious"
    folder = re.search(r"kept in (\S+);", done.stderr).group(1)
    assert launch.fathom("merge", folder, "-o", "all.fathom", cwd=tmp_path).returncode == 0
    assert recordings.report(tmp_path / "all.fathom")["functions"]
