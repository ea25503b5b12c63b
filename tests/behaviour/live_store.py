"""Writes live stores (src/record/capture/live.h) by hand: recordings whose numbers are known.

A tick is a nanosecond here: the stores begin at a tick that this machine has not reached, so no
rate can be measured against its clock.
"""

from __future__ import annotations

import re
import struct
from pathlib import Path

LIVE_H = Path(__file__).resolve().parents[2] / "src" / "record" / "capture" / "live.h"

PAGE = 4096
START_TICKS = 1 << 62
START_NS = 5_000_000_000
NODES, DEFS, THREADS, STACK, RESUMED = 1, 2, 3, 4, 5
C, GENERATOR = 1, 2


def header_layout() -> list[tuple[str, str]]:
    """(field, struct code) of fm_live_header, from the header file itself."""
    body = re.search(r"struct fm_live_header \{(.*?)\n\};", LIVE_H.read_text(), re.S).group(1)
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    codes = {"char": "s", "uint32_t": "I", "uint64_t": "Q"}
    layout = []
    for kind, names in re.findall(r"(char|uint32_t|uint64_t)\s+([^;]+);", body):
        for name, count in re.findall(r"(\w+)(?:\[(\d+)\])?", names):
            layout.append((name, count + codes[kind]))
    return layout


def varint(n: int) -> bytes:
    out = bytearray()
    while n >= 0x80:
        out.append(n & 0x7f | 0x80)
        n >>= 7
    return bytes(out) + bytes([n])


def text(s: str) -> bytes:
    raw = s.encode()
    return varint(len(raw)) + raw


class Store:
    """One process. Add functions, threads and nodes; `write` puts PID.N.live into a folder."""

    def __init__(self, pid: int, parent: int = 1, wall_ns: int = 1_000_000, command: str = "app.py",
                 version: str = "3.13.0", costs=(0, 0, 0), own_ns: int = 0, lost=(),
                 slow_permille: int = 0):
        self.pid, self.parent, self.wall_ns, self.costs, self.lost = pid, parent, wall_ns, costs, lost
        self.own_ns, self.slow_permille = own_ns, slow_permille
        self.defs = b""
        self.functions: list[tuple] = []
        self.nodes: list[bytes] = []
        self.threads: list[bytes] = []
        self.resumed: list[bytes] = []
        for key, value in (("command", command), ("version", version), ("exe", "/usr/bin/python")):
            self.define(varint(2) + text(key) + text(value))

    def define(self, body: bytes) -> None:
        self.defs += varint(len(body)) + body

    def function(self, name, line=0, file="", qualname="", flags=0) -> int:
        self.functions.append((name, line, file))
        number = len(self.functions)
        self.define(varint(1) + varint(number) + varint(flags) + varint(line) + text(name)
                    + text(qualname) + text(file))
        return number

    def thread(self, tid: int, name: str = "", cpu_ns: int = 0) -> int:
        """Gives the root node."""
        root = self._node(None, 0, 0, 0, 0, 0)
        self.threads.append(struct.pack(
            "<IIIIQQQQ64s16x", root, tid, 0, 0, START_TICKS, START_TICKS + self.wall_ns, cpu_ns, 0,
            name.encode()))
        return root

    def node(self, parent, function, calls, total_ns, min_ns=0, max_ns=0, resumes=0,
             suspended_ns=0) -> int:
        number = self._node(parent, function, calls, total_ns, min_ns, max_ns)
        if resumes or suspended_ns:
            self.resumed.append(struct.pack("<IIQQQ", number, 0, resumes, suspended_ns, 0))
        return number

    def _node(self, parent, function, calls, total_ns, min_ns, max_ns) -> int:
        number = len(self.nodes)
        self.nodes.append(struct.pack(
            "<QQIIQQQQII", 0, 0, number if parent is None else parent, function, calls, total_ns,
            min_ns or (1 << 64) - 1, max_ns, number, 0))
        return number

    def bytes(self) -> bytes:
        fields = {"magic": b"FATHOMLV", "version": 1, "flags": 1 | 4, "pid": self.pid,
                  "parent_pid": self.parent, "python_hex": 0x030d00f0, "start_ticks": START_TICKS,
                  "start_ns": START_NS, "start_real_ns": 1_700_000_000_000_000_000,
                  "end_ticks": START_TICKS + self.wall_ns, "own_ticks": self.own_ns,
                  "slow_permille": self.slow_permille}
        for name, ns in zip(("cost_python_call", "cost_c_call", "cost_resume"), self.costs):
            fields[name] = 256 * ns
        head = b""
        for name, code in header_layout():
            if name == "lost":
                head += struct.pack("<" + code, *self.lost, *[0] * (int(code[:-1]) - len(self.lost)))
            else:
                head += struct.pack("<" + code, fields.pop(name, 0))
        assert not fields, f"fm_live_header has no {', '.join(fields)}"
        out = head.ljust(PAGE, b"\0")
        for kind, payload in ((DEFS, self.defs), (THREADS, b"".join(self.threads)),
                              (NODES, b"".join(self.nodes)), (RESUMED, b"".join(self.resumed))):
            if payload:
                whole = -(-(64 + len(payload)) // PAGE) * PAGE
                chunk = struct.pack("<IIIIIIQ32x", 0x4b4e4843, kind, whole, len(payload), 0, 0,
                                    0x7f0000000000 + len(out))
                out += (chunk + payload).ljust(whole, b"\0")
        return out

    def write(self, folder: Path, number: int = 0) -> Path:
        folder.mkdir(exist_ok=True)
        path = folder / f"{self.pid}.{number}.live"
        path.write_bytes(self.bytes())
        return path
