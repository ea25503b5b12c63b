"""`fathom view`: what the server answers to whom, and what is in a one-file report."""

import base64
import cProfile
import gzip
import hashlib
import html
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import time
from urllib.parse import urlsplit

import pytest

from launch import FATHOM, TIMEOUT, fathom

MAGIC = b"\x89FTHM\r\n\x1a"


def work():
    return sum(len(str(i)) for i in range(100))


@pytest.fixture(scope="module")
def profile(tmp_path_factory):
    """A pstats file: any format that Fathom reads can be looked at."""
    path = tmp_path_factory.mktemp("view") / "work.prof"
    recorder = cProfile.Profile()
    recorder.runcall(work)
    recorder.dump_stats(path)
    return path


class Server:
    def __init__(self, *words, env=None):
        environment = {key: value for key, value in os.environ.items()
                       if key not in ("DISPLAY", "WAYLAND_DISPLAY")}
        self.process = subprocess.Popen([FATHOM, "view", *map(str, words)], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True,
                                        env={**environment, **(env or {})})
        self.said = []
        while not self.said or "Ctrl-C" not in self.said[-1]:
            self.said.append(self.process.stdout.readline())
            assert self.said[-1], self.process.communicate()
        self.address = self.said[0].strip()
        parts = urlsplit(self.address)
        self.port, self.path = parts.port, parts.path

    def ask(self, path=None, method="GET", host=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT)
        connection.putrequest(method, self.path if path is None else path, skip_host=True)
        if host != "":
            connection.putheader("Host", host or f"127.0.0.1:{self.port}")
        for key, value in (headers or {}).items():
            connection.putheader(key, value)
        connection.endheaders()
        answer = connection.getresponse()
        answer.body = answer.read()
        connection.close()
        return answer

    def end(self, by=signal.SIGINT):
        self.process.send_signal(by)
        more, err = self.process.communicate(timeout=TIMEOUT)
        return self.process.returncode, "".join(self.said[1:]) + more, err


@pytest.fixture(scope="module")
def server(profile):
    running = Server(profile, profile, "--no-browser")
    yield running
    assert running.end() == (0, "Ctrl-C ends it.\n", "")


@pytest.mark.parametrize("sent", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\nA: b"])
def test_half_open_connections_keep_nobody_out(profile, sent):
    """More of them than the server has places for, none with a whole request."""
    running, guests = Server(profile, "--no-browser"), []
    try:
        for _ in range(400):
            guests.append(socket.create_connection(("127.0.0.1", running.port), timeout=TIMEOUT))
            guests[-1].sendall(sent)
        answer = running.ask()
        assert answer.status == 200 and answer.body
        assert guests[0].recv(1) == b"", "the oldest was shown out"
        assert running.ask("/").status == 404
    finally:
        for guest in guests:
            guest.close()
        assert running.end()[0] == 0


def test_who_was_served_may_ask_again(server):
    """A connection lives on behind an answer, as a browser wants it."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=TIMEOUT)
    connection.connect()
    kept = connection.sock
    for _ in range(3):
        connection.request("GET", server.path + "recordings.json")
        assert connection.getresponse().read()
        assert connection.sock is kept
    connection.close()


def test_the_page_is_served_with_its_policy(server):
    answer = server.ask()
    assert answer.status == 200
    assert answer.getheader("Content-Type") == "text/html; charset=windows-1252"
    policy = answer.getheader("Content-Security-Policy")
    assert "default-src 'none'" in policy and "connect-src 'self'" in policy
    assert "frame-ancestors 'none'" in policy and "unsafe-inline" not in policy
    assert "'unsafe-eval'" not in policy and "http" not in policy
    assert answer.getheader("Access-Control-Allow-Origin") is None
    assert answer.getheader("X-Content-Type-Options") == "nosniff"
    assert answer.getheader("Referrer-Policy") == "no-referrer"
    assert answer.getheader("Cache-Control") == "no-store"
    check_hashes(answer.body.decode("ascii"), policy)


def check_hashes(page, policy):
    """The policy allows exactly the scripts and styles that are in the page."""
    for element in ("script", "style"):
        inline = re.findall(rf"<{element}(?: type=\"module\")?>(.*?)</{element}>", page, re.S)
        assert len(inline) == 1
        digest = base64.b64encode(hashlib.sha256(inline[0].encode()).digest()).decode()
        assert f"{element}-src 'sha256-{digest}'" in policy
    assert not re.search(r"\s(?:src|href)=\"(?!data:|#)", re.sub(r"<script.*?</script>", "", page, flags=re.S))


def test_engine_and_recordings_are_served(server):
    engine = server.ask(server.path + "engine.wasm")
    assert engine.status == 200 and engine.getheader("Content-Type") == "application/wasm"
    assert engine.body.startswith(b"\0asm")
    recordings = server.ask(server.path + "recordings.json")
    assert recordings.getheader("Content-Type") == "application/json"
    listed = json.loads(recordings.body)
    assert [entry["name"] for entry in listed] == ["work.prof", "work.prof"]
    for entry in listed:
        data = server.ask(server.path + entry["address"])
        assert data.status == 200 and data.getheader("Content-Type") == "application/octet-stream"
        assert data.body.startswith(MAGIC) and len(data.body) == entry["bytes"]


def test_a_head_request_has_no_body(server):
    answer = server.ask(server.path + "engine.wasm", method="HEAD")
    assert answer.status == 200 and answer.body == b"" and int(answer.getheader("Content-Length")) > 1000


@pytest.mark.parametrize("path", ["", "/", "/favicon.ico", "/engine.wasm", "/recording/0",
                                  "/00000000000000000000000000000000/", "/../../etc/passwd"])
def test_nothing_is_there_without_the_token(server, path):
    answer = server.ask(path or "/")
    assert answer.status == 404
    assert server.path.strip("/").encode() not in answer.body


def test_a_wrong_token_is_refused_wherever_it_differs(server):
    token = server.path.strip("/")
    for at in (0, 15, 31):
        wrong = token[:at] + ("0" if token[at] != "0" else "1") + token[at + 1:]
        assert server.ask(f"/{wrong}/").status == 404
    assert server.ask(f"/{token}").status == 404
    assert server.ask(f"/{token}x/").status == 404


@pytest.mark.parametrize("rest", ["recording/2", "recording/-1", "recording/", "recording/00", "recording/0x0",
                                  "recording/99999999999999999999", "../", "recording/../engine.wasm",
                                  "work.prof", "recording/0/"])
def test_nothing_else_is_there(server, rest):
    assert server.ask(server.path + rest).status == 404


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "localhost", "127.0.0.1:1", "[::1]:80",
                                  "evil.example:{port}", "127.0.0.1.evil.example:{port}"])
def test_other_hosts_are_refused(server, host):
    assert server.ask(host=host.format(port=server.port)).status == 403


def test_both_names_of_this_machine_are_ours(server):
    assert server.ask(host=f"localhost:{server.port}").status == 200
    assert server.ask(host=f"LOCALHOST:{server.port}").status == 200
    assert server.ask(host="").status in (400, 403)


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS"])
def test_only_reading_is_allowed(server, method):
    answer = server.ask(method=method, headers={"Content-Length": "0"})
    assert answer.status == 405 and answer.getheader("Allow") == "GET, HEAD"


def test_it_listens_on_loopback_only(server):
    """No socket of the server has any other local address than 127.0.0.1."""
    inodes = set()
    folder = f"/proc/{server.process.pid}/fd"
    for name in os.listdir(folder):
        match = re.fullmatch(r"socket:\[(\d+)\]", os.readlink(f"{folder}/{name}"))
        if match:
            inodes.add(match[1])
    listening = []
    for table in ("tcp", "tcp6"):
        with open(f"/proc/{server.process.pid}/net/{table}", encoding="ascii") as lines:
            for words in map(str.split, list(lines)[1:]):
                if words[9] in inodes and words[3] == "0A":
                    listening.append(words[1])
    assert listening == [f"0100007F:{server.port:04X}"]


def test_rubbish_does_not_end_it(server):
    for bytes_ in (b"\0\xff\r\n\r\n", b"GET " + b"/" * 100000 + b" HTTP/1.1\r\n\r\n", b"GET"):
        with socket.create_connection(("127.0.0.1", server.port), timeout=TIMEOUT) as raw:
            try:
                raw.sendall(bytes_)
            except OSError:
                pass  # the server had enough and closed
    assert server.ask().status == 200


def test_tokens_differ(profile, server):
    other = Server(profile, "--no-browser")
    assert other.path != server.path and re.fullmatch(r"/[0-9a-f]{32}/", other.path)
    assert other.end(signal.SIGTERM)[0] == 0


def test_a_port_in_use_is_one_sentence(profile, server):
    done = fathom("view", str(profile), "--port", str(server.port))
    assert done.returncode == 11 and done.stdout == ""
    assert done.stderr == (f"fathom view: port {server.port} is in use; choose another with --port, "
                           "or leave it out for any\n")


def test_a_chosen_port_is_used(profile):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    running = Server(profile, "--port", port, "--no-browser")
    assert running.port == port
    assert running.end()[0] == 0


def test_without_a_display_it_says_how_to_get_there(profile):
    running = Server(profile)
    status, out, _ = running.end()
    assert status == 0
    assert re.search(rf"ssh -C -L {running.port}:127\.0\.0\.1:{running.port} \S+", out)


def test_the_browser_is_opened_where_there_is_one(profile, tmp_path):
    seen = tmp_path / "seen"
    opener = tmp_path / "xdg-open"
    opener.write_text(f"#!/bin/sh\nprintf %s \"$1\" > {seen}.new && mv {seen}.new {seen}\n")
    opener.chmod(0o755)
    running = Server(profile, env={"DISPLAY": ":0", "PATH": f"{tmp_path}:{os.environ['PATH']}"})
    deadline = time.monotonic() + TIMEOUT
    while not seen.exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert seen.read_text() == running.address
    status, out, _ = running.end()
    assert status == 0 and "ssh" not in out


# ---- one file ----

def decode(text):
    """The bytes of an element of a report, by the description in viewer/ENGINE.md."""
    out, escaped = bytearray(), False
    for byte in text:
        if escaped:
            out.append((byte - 64) % 256)
        elif byte == ord("="):
            escaped = True
            continue
        else:
            out.append(byte)
        escaped = False
    return bytes(out)


def elements(report):
    """(kind, name, bytes) of everything in a report."""
    found = []
    for match in re.finditer(rb'<script type="application/x-fathom" data-kind="(\w+)" data-bytes="(\d+)" '
                             rb'data-name="([^"]*)">([^<]*)</script>', report):
        data = gzip.decompress(decode(match[4]))
        assert len(data) == int(match[2])
        found.append((match[1].decode(), html.unescape(match[3].decode("ascii")), data))
    return found


def test_a_report_holds_everything(profile, tmp_path, server):
    out = tmp_path / "report.html"
    done = fathom("view", str(profile), "-o", str(out))
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    report = out.read_bytes()
    (kind, name, engine), (kind2, name2, recording) = elements(report)
    assert (kind, name) == ("engine", "") and engine.startswith(b"\0asm")
    assert (kind2, name2) == ("recording", "work.prof") and recording.startswith(MAGIC)
    assert engine == server.ask(server.path + "engine.wasm").body
    page = re.sub(rb'<script type="application/x-fathom".*?</script>', b"", report, flags=re.S).decode("ascii")
    assert '<meta charset="windows-1252">' in page[:1024]
    policy = re.search(r'<meta http-equiv="Content-Security-Policy" content="([^"]*)">', page)[1]
    assert "connect-src 'none'" in policy
    assert page.index("Content-Security-Policy") < page.index("<script")
    assert '<meta name="fathom-end"' in page
    check_hashes(page, policy)


def test_the_recording_in_a_report_is_the_whole_recording(profile, tmp_path):
    out = tmp_path / "report.html"
    assert fathom("view", str(profile), "-o", str(out)).returncode == 0
    again = tmp_path / "again.fathom"
    again.write_bytes(elements(out.read_bytes())[1][2])
    ours = fathom("report", str(profile), "--json", "-n", "all")
    theirs = fathom("report", str(again), "--json", "-n", "all")
    assert json.loads(ours.stdout)["functions"] == json.loads(theirs.stdout)["functions"]


def test_several_files_in_one_report(profile, tmp_path):
    name = 'a"b<&>é\u202e.prof'
    other = tmp_path / name
    other.write_bytes(profile.read_bytes())
    out = tmp_path / "report.html"
    assert fathom("view", str(profile), str(other), "-o", str(out)).returncode == 0
    assert [found[1] for found in elements(out.read_bytes())] == ["", "work.prof", name]


def test_no_byte_that_a_parser_would_change(profile, tmp_path):
    out = tmp_path / "report.html"
    assert fathom("view", str(profile), "-o", str(out)).returncode == 0
    report = out.read_bytes()
    assert b"\0" not in report and b"\r" not in report


def test_an_existing_report_is_kept(profile, tmp_path):
    out = tmp_path / "report.html"
    out.write_text("mine")
    done = fathom("view", str(profile), "-o", str(out))
    assert done.returncode == 7 and out.read_text() == "mine"
    assert done.stderr == f"fathom view: {out} exists and is not overwritten without --force\n"
    assert fathom("view", str(profile), "-o", str(out), "--force").returncode == 0
    assert out.read_bytes().startswith(b"<!doctype html>")
    assert os.listdir(tmp_path) == ["report.html"]


@pytest.mark.parametrize("words, status", [
    ((), 2), (("--port", "x", "F"), 2), (("--port", "0", "F"), 2), (("--port", "65536", "F"), 2),
    (("--nonsense", "F"), 2), (("/nonexistent.prof",), 3),
])
def test_a_wrong_command_line(words, status):
    done = fathom("view", *words)
    assert done.returncode == status and done.stdout == ""
    assert done.stderr.startswith("fathom view: ") and done.stderr.count("\n") == 1


def test_what_is_no_recording(tmp_path):
    foreign, empty = tmp_path / "foreign", tmp_path / "empty"
    foreign.write_bytes(b"hello world, this is no recording")
    empty.write_bytes(b"")
    for path in (foreign, empty):
        done = fathom("view", str(path), "-o", str(tmp_path / "out.html"))
        assert done.returncode == 4 and done.stderr.count("\n") == 1
    assert not (tmp_path / "out.html").exists()


def test_an_unwritable_output(profile, tmp_path):
    for out in (tmp_path, tmp_path / "missing" / "report.html"):
        done = fathom("view", str(profile), "-o", str(out))
        assert done.returncode == 8 and done.stderr.count("\n") == 1


def test_a_full_disk(profile):
    done = fathom("view", str(profile), "-o", "/dev/full")
    assert done.returncode == 8 and done.stderr.count("\n") == 1
