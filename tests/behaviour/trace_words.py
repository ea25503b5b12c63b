"""Reads what a traced process left in its run's folder: words of src/record/capture/live_trace.h and the definitions
beside them. Written from the headers alone, and for tests: slow, and asserts what must hold."""

from __future__ import annotations

import mmap
import os
import re
import struct
import subprocess
import textwrap
import threading
from dataclasses import dataclass, field
from pathlib import Path

from launch import TIMEOUT, preload_library

CAPTURE = Path(__file__).resolve().parents[2] / "src" / "record" / "capture"
PAGE, CHUNKS, CHUNK_BYTES = 4096, 256, 65536
DESCRIPTORS_AT = 4096
CHUNKS_AT = DESCRIPTORS_AT + CHUNKS * 64
FREE, FILLING, FULL = 0, 1, 2
RETURN, CALL, YIELD, ESCAPE = 0, 1, 2, 3
OF_TOKEN, OF_INSTANT = 3, 4  # what a value is of
HANDED, FREED = 64, 128  # offsets in the header


def escapes() -> dict[int, str]:
    text = (CAPTURE / "live_trace.h").read_text()
    body = re.search(r"enum fm_trace_escape \{(.*?)\n\};", text, re.S).group(1)
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    return {int(number): name.lower() for name, number in re.findall(r"FM_TRACE_(\w+)\s*=\s*(\d+)", body)}


KINDS = escapes()


@dataclass
class Event:
    ticks: int
    kind: str  # call, resume, return, yield, or an escape's name
    numbers: tuple[int, ...] = ()  # of 32 bits each; a call's function; a value's name, what it is of, and of a token that
    text: str = ""  # of a value


def decode(words: bytes, ticks: int, shift: int) -> list[Event]:
    """What one chunk holds."""
    events, at, last = [], 0, ticks
    values = struct.unpack(f"<{len(words) // 2}H", words)
    while at < len(values) and values[at]:
        word = values[at]
        operation, units = word & 3, (word >> 2) - 1
        assert units >= 0, "no valid word says that"
        last += units << shift
        if operation == RETURN or operation == YIELD:
            events.append(Event(last, "return" if operation == RETURN else "yield"))
            at += 1
        elif operation == CALL:
            function, resume = values[at + 1] & 0x7fff, values[at + 1] >> 15
            at += 2
            if function == 0x7fff:
                function = values[at] | values[at + 1] << 16
                at += 2
            assert function, "functions count from 1"
            events.append(Event(last, "resume" if resume else "call", (function,)))
        else:
            kind, count = KINDS[values[at + 1] & 0xff], values[at + 1] >> 8
            payload = values[at + 2:at + 2 + count]
            numbers = payload if count == 1 else tuple(
                payload[i] | payload[i + 1] << 16 for i in range(0, count - 1, 2))
            at += 2 + count
            if kind == "value":
                token = (payload[3] | payload[4] << 16,) if payload[2] & 15 == OF_TOKEN else ()
                head = 3 + 2 * len(token)
                text = struct.pack(f"<{count}H", *payload)[2 * head:2 * head + (payload[2] >> 4)]
                assert len(text) <= 200 and count == head + (len(text) + 1) // 2
                events.append(Event(last, kind, (numbers[0], payload[2] & 15, *token), text.decode()))
                continue
            if kind == "time":
                assert units == 0
                last = numbers[0] | numbers[1] << 32
            events.append(Event(last, kind, tuple(numbers)))
    assert not any(values[at:]), "nothing stands behind the end"
    return events


def varints(data: bytes):
    value = shift = 0
    for i, byte in enumerate(data):
        value |= (byte & 0x7f) << shift
        shift += 7
        if byte < 0x80:
            yield value, i + 1
            value = shift = 0


def varint(data: bytes) -> tuple[int, bytes]:
    value, length = next(varints(data))
    return value, data[length:]


def text_of(data: bytes) -> tuple[str, bytes]:
    length, data = varint(data)
    return data[:length].decode("utf-8", "surrogatepass"), data[length:]


@dataclass
class Definitions:
    functions: dict[int, str] = field(default_factory=dict)
    files: dict[int, str] = field(default_factory=dict)
    names: dict[int, str] = field(default_factory=dict)
    threads: dict[int, str] = field(default_factory=dict)  # number of the thread: its name
    nodes: int = 0
    flags: int = 0
    parent: int = 0


def read_definition(into: Definitions, record: bytes) -> None:
    kind, rest = varint(record)
    if kind == 1:
        number, rest = varint(rest)
        _, rest = varint(rest)
        _, rest = varint(rest)
        name, rest = text_of(rest)
        qualname, rest = text_of(rest)
        into.functions[number] = qualname or name
        into.files[number] = text_of(rest)[0]
    elif kind == 7:
        number, rest = varint(rest)
        into.names[number] = text_of(rest)[0]


def read_live(path: Path) -> Definitions:
    data, into, at = path.read_bytes(), Definitions(), PAGE
    into.flags, _, into.parent = struct.unpack_from("<III", data, 12)
    while at + 64 <= len(data):
        magic, kind, whole, used, first = struct.unpack_from("<IIIII", data, at)
        if magic != 0x4b4e4843:
            break
        payload = data[at + 64:at + 64 + used]
        if kind == 2:
            while payload:
                length, payload = varint(payload)
                read_definition(into, payload[:length])
                payload = payload[length:]
        elif kind == 3:
            for i in range(0, len(payload), 128):
                name = payload[i + 48:i + 112]
                into.threads[first + i // 128 + 1] = name[:name.index(0)].decode("utf-8", "replace")
        elif kind == 1:
            for i in range(0, len(payload), 64):
                into.nodes += struct.unpack_from("<I", payload, i + 20)[0] != 0
        at += whole
    return into


@dataclass
class Chunk:
    thread: int
    sequence: int
    last: int
    state: int
    ticks: int
    ns: int
    words: bytes


class Trace:
    """The trace of one process: its chunks, those drained earlier and those that are there now."""

    def __init__(self, path: Path, drained: list[Chunk] = ()):
        self.path = path
        self.pid = int(path.name.split(".")[0])
        data = path.read_bytes()
        assert data[:8] == b"FATHOMTR"
        self.version, self.shift, self.chunk_count, chunk_bytes, self.drops = struct.unpack_from("<5I", data, 8)
        assert (self.version, chunk_bytes) == (1, CHUNK_BYTES)
        self.closed = struct.unpack_from("<I", data, FREED + 8)[0]
        self.lost_events, self.waited_ticks = struct.unpack_from("<QQ", data, 192)
        self.defs = read_live(path.with_suffix(".live"))
        self.chunks = list(drained) + [chunk for i in range(self.chunk_count) if (chunk := chunk_at(data, i))]

    def thread_numbers(self) -> list[int]:
        return sorted({chunk.thread for chunk in self.chunks})

    def chunks_of(self, thread: int) -> list[Chunk]:
        mine = sorted((c for c in self.chunks if c.thread == thread), key=lambda c: c.sequence)
        assert [c.sequence for c in mine] == list(range(len(mine))), "no chunk is missing"
        return mine

    def events(self, thread: int) -> list[Event]:
        events: list[Event] = []
        for chunk in self.chunks_of(thread):
            events += decode(chunk.words, chunk.ticks, self.shift)
        assert events[0].kind == "time"
        assert all(a.ticks <= b.ticks for a, b in zip(events, events[1:])), "time goes forward"
        return events

    def main(self) -> list[Event]:
        return self.events(self.thread_numbers()[0])

    def told(self, thread: int | None = None, file: str = "program.py", c: bool = True,
             raises: bool = False) -> list[str]:
        """What happened to functions of a file, and C functions called by these, as words; checks that all ends
        match their begins. A call's end has its name. `raises`: exceptions, too, wherever they are raised."""
        stack: list[tuple[str, bool]] = []
        out: list[str] = []

        def begin(event, word):
            number = event.numbers[0]
            name, path = self.defs.functions[number], self.defs.files[number]
            shown = path.endswith(file) or (c and not path and bool(stack) and stack[-1][1])
            is_python = path.endswith(file)
            stack.append((name if shown else "", is_python))
            if shown:
                out.append(f"{word} {name}")

        def end(word):
            assert stack, "an end without a begin"
            name, _ = stack.pop()
            if name:
                out.append(f"{word} {name}")

        for event in self.main() if thread is None else self.events(thread):
            if event.kind in ("call", "resume", "throw", "open"):
                begin(event, event.kind)
            elif event.kind in ("return", "yield", "unwind"):
                end(event.kind)
            elif event.kind == "close":
                for _ in range(event.numbers[0]):
                    end("close")
            elif event.kind == "lost":
                stack.clear()
                out.append("lost")
            elif event.kind == "raise" and raises:
                out.append(f"raise {self.defs.names[event.numbers[0]]}")
        self.open = [name for name, _ in stack]
        return out

    def calls(self, thread: int | None = None) -> dict[str, int]:
        counts: dict[str, int] = {}
        for event in self.main() if thread is None else self.events(thread):
            if event.kind == "call":
                name = self.defs.functions[event.numbers[0]]
                counts[name] = counts.get(name, 0) + 1
        return counts


def chunk_at(data, index: int) -> Chunk | None:
    state, thread, _, last, sequence, ticks, ns = struct.unpack_from("<IIIIQQQ", data, DESCRIPTORS_AT + index * 64)
    if state == FREE:
        return None
    begin = CHUNKS_AT + index * CHUNK_BYTES
    return Chunk(thread, sequence, last, state, ticks, ns, bytes(data[begin:begin + CHUNK_BYTES]))


class Drain(threading.Thread):
    """Empties the chunks of all traces of a folder, as the launcher does."""

    def __init__(self, folder: Path):
        super().__init__(daemon=True)
        self.folder, self.ended = folder, threading.Event()
        self.drained: dict[str, list[Chunk]] = {}

    def run(self):
        while not self.ended.wait(0.002):
            for path in self.folder.glob("*.trace"):
                if path.stat().st_size > CHUNKS_AT:
                    self.empty(path)

    def empty(self, path: Path) -> None:
        with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as data:
            for i in range(struct.unpack_from("<I", data, 16)[0]):
                at = DESCRIPTORS_AT + i * 64
                if struct.unpack_from("<I", data, at)[0] != FULL:
                    continue
                self.drained.setdefault(path.name, []).append(chunk_at(data, i))
                begin = CHUNKS_AT + i * CHUNK_BYTES
                data[begin:begin + CHUNK_BYTES] = bytes(CHUNK_BYTES)
                struct.pack_into("<I", data, at, FREE)
                struct.pack_into("<I", data, FREED, struct.unpack_from("<I", data, FREED)[0] + 1)


def environment(folder: Path, options: dict[str, object]) -> dict[str, str]:
    library = preload_library()
    pairs = {"folder": folder, "agents": Path(library).parent, "preload": library, "c_calls": 1, "calls": 1,
             "trace": "block", **options}
    return {**os.environ, "LD_PRELOAD": library, "PYTHONDONTWRITEBYTECODE": "1",
            "FATHOM_RUN": "\x1f".join(f"{key}={value}" for key, value in pairs.items())}


def traces(folder: Path, drained: dict[str, list[Chunk]] | None = None) -> list[Trace]:
    """Of all processes, the oldest first."""
    found = [Trace(path, (drained or {}).get(path.name, ())) for path in folder.glob("*.trace")]
    return sorted(found, key=lambda trace: min((c.ns for c in trace.chunks), default=0))


def trace(python: str, folder: Path, code: str, *arguments: str, drain: bool = False, status: int | None = 0,
          limit=None, **options) -> list[Trace]:
    """Run the code as program.py in the folder, traced; nobody but `drain` empties chunks."""
    program, store = folder / "program.py", folder / f"run{len(list(folder.iterdir()))}"
    store.mkdir()
    program.write_text(textwrap.dedent(code))
    drainer = Drain(store)
    if drain:
        drainer.start()
    done = subprocess.run([python, str(program), *arguments], env=environment(store, options), text=True,
                          stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT, check=False,
                          preexec_fn=limit)
    if drain:
        drainer.ended.set()
        drainer.join()
    assert status is None or done.returncode == status, done.stderr
    found = traces(store, drainer.drained)
    found[0].done = done
    return found
