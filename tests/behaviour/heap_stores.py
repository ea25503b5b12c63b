"""Heap stores (src/record/capture/live_heap.h) as the tests see them: programs run under the collector
itself, without the launcher, and what it wrote is read here, by a reader of its own."""

from __future__ import annotations

import os
import re
import struct
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from launch import FATHOM, REPO, TIMEOUT

LIVE_HEAP_H = (REPO / "src/record/capture/live_heap.h").read_text()
LIBRARIES = Path(FATHOM).resolve().parent / "python" / "fathom"
NODES, ACCOUNTS, DEFS, THREADS = range(4)
PYTHON, C = range(2)
KINDS = [name.lower() for name in re.findall(r"^    X\((\w+), \"[\w ]+\"\)", LIVE_HEAP_H, re.M)][:7]
SIZES, LIVES = (int(re.search(rf"#define FM_HEAP_{what}_BUCKETS (\d+)", LIVE_HEAP_H)[1])
                for what in ("SIZE", "LIFE"))


def environment(folder, mode="all", libraries=LIBRARIES, **more):
    fields = {"folder": folder, "agents": libraries, "preload": libraries / "libfathom_preload.so",
              "calls": 0, "memory": mode, "heap": libraries / "libfathom_heap.so"}
    return {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", **more,
            "FATHOM_RUN": "\x1f".join(f"{key}={value}" for key, value in fields.items()),
            "LD_PRELOAD": f"{libraries}/libfathom_heap.so:{libraries}/libfathom_preload.so"}


def record(folder, python, *words, status=0, mode="all", libraries=LIBRARIES, **more):
    """Run a program; what it printed, and its stores, in the order in which they began."""
    folder = Path(folder)
    folder.mkdir(exist_ok=True)
    done = subprocess.run([python, *map(str, words)], env=environment(folder, mode, libraries, **more),
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=TIMEOUT)
    assert done.returncode == status, (done.returncode, done.stdout, done.stderr[-2000:])
    return done.stdout, sorted(map(Store, folder.glob("*.heap")), key=lambda store: store.start)


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at


def line_table(first, table):
    """[(first unit of code, units, line)] of a PEP 657 table (Objects/locations.md of CPython)."""
    out, line, unit, at = [], first, 0, 0

    def number(at):
        value, shift = table[at] & 63, 0
        while table[at] & 64:
            at += 1
            shift += 6
            value |= (table[at] & 63) << shift
        return value, at + 1

    while at < len(table):
        kind, units = table[at] >> 3 & 15, (table[at] & 7) + 1
        at += 1
        if kind in (13, 14):
            delta, at = number(at)
            line += -(delta >> 1) if delta & 1 else delta >> 1
            for _ in range(3 if kind == 14 else 0):
                _, at = number(at)
        elif 10 <= kind < 13:
            line += kind - 10
            at += 2
        elif kind < 10:
            at += 1
        out.append((unit, units, line))
        unit += units
    return out


class Row(NamedTuple):
    """What one context has allocated in one world."""
    stack: tuple  # of (file, function, line), oldest first
    thread: int
    world: int
    allocated: int
    blocks: int
    peak: int
    peak_blocks: int
    live: int
    live_blocks: int
    temporary: int
    temporary_blocks: int


class Store:
    def __init__(self, path):
        data = Path(path).read_bytes()
        (magic, version, self.flags, self.pid, self.parent, self.inherited, count, self.start, _,
         self.end) = struct.unpack_from("<8s6I3Q", data)
        assert magic == b"FATHOMHP" and version == 3
        self.used = struct.unpack_from("<7Q", data, 56)
        self.lost = struct.unpack_from("<4Q", data, 112)
        self.own, = struct.unpack_from("<Q", data, 144)
        self.peak, _, self.epoch, self.rising = struct.unpack_from("<qqII", data, 176)
        counters = f"<qqQ{SIZES}Q{LIVES}Q{len(KINDS)}Q{len(KINDS)}Q"
        self.live = self.live_blocks = 0
        self.kinds = {name: (0, 0) for name in KINDS}
        self.sizes = [0] * SIZES
        for world in range(2):
            numbers = struct.unpack_from(counters, data, 320 + world * struct.calcsize(counters))
            self.live += numbers[0]
            self.live_blocks += numbers[1]
            self.sizes = [a + b for a, b in zip(self.sizes, numbers[3:])]
            kinds = numbers[3 + SIZES + LIVES:]
            self.kinds = {name: (self.kinds[name][0] + kinds[i],
                                 self.kinds[name][1] + kinds[i + len(KINDS)])
                          for i, name in enumerate(KINDS)}
        pieces = (320 + 2 * struct.calcsize(counters) + 63) // 64 * 64
        self.arrays = [bytearray() for _ in range(7)]
        for i in range(count):
            array, _, at, offset, size = struct.unpack_from("<IIQQQ", data, pieces + 32 * i)
            self.arrays[array] += bytes(max(0, offset + size - len(self.arrays[array])))
            self.arrays[array][offset:offset + size] = data[at:at + size]
        self.codes = self._codes()
        self.threads = [struct.unpack_from("<4I", self.arrays[THREADS], 64 * i)
                        for i in range(self.used[THREADS])]
        self.rows = self._rows()

    def _codes(self):
        codes, data, at = {}, self.arrays[DEFS], 0
        while at < self.used[DEFS]:
            size, at = varint(data, at)
            end, fields, texts = at + size, [], []
            for _ in range(4):
                value, at = varint(data, at)
                fields.append(value)
            for _ in range(4):
                size, at = varint(data, at)
                texts.append(bytes(data[at:at + size]))
                at += size
            codes[fields[1]] = (texts[2].decode(), texts[1].decode(), fields[3],
                                line_table(fields[3], texts[3]))
            at = end
        return codes

    def _stack(self, node):
        stack = []
        while node:
            parent, code, offset = struct.unpack_from("<3I", self.arrays[NODES], 32 * node)
            if code:
                file, name, first, table = self.codes[code]
                unit = (offset & 0xffffffff) // 2
                stack.append((file, name, next((line for at, units, line in table
                                                if at <= unit < at + units), first)))
            node = parent
        return tuple(reversed(stack))

    def _rows(self):
        rows, worlds = [], {}
        for node in range(1, self.used[NODES]):
            for world, account in enumerate(struct.unpack_from("<2I", self.arrays[NODES],
                                                               32 * node + 12)):
                worlds[account] = world
        for number in range(self.inherited + 1, self.used[ACCOUNTS]):
            (allocated, blocks, at, live, at_blocks, live_blocks, epoch, node, temporary,
             temporary_blocks, thread) = struct.unpack_from("<QQqqiiIIQII", self.arrays[ACCOUNTS],
                                                            64 * number)
            if not node:
                continue
            at_peak = epoch != self.epoch or self.rising
            rows.append(Row(self._stack(node), thread, worlds[number], allocated, blocks,
                            live if at_peak else at,
                            live_blocks if at_peak else at_blocks,
                            live, live_blocks, temporary, temporary_blocks))
        return rows

    def at_lines(self, file, world=None):
        """{line: the sum of all contexts whose newest frame is there}, of one file."""
        found = defaultdict(lambda: [0] * 8)
        for row in self.rows:
            if row.stack and os.path.basename(row.stack[-1][0]) == file and world in (None, row.world):
                for i, value in enumerate(row[3:]):
                    found[row.stack[-1][2]][i] += value
        return {line: Row((), 0, 0, *values) for line, values in found.items()}
