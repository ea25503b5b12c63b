"""Write a core file of a running process from what /proc shows, without a debugger: the threads with
their registers as far as /proc tells them, the files that are mapped, and memory. As kernels do, memory
that is as in its file is left out, but for the first page of each file. The process is not stopped, so
it should be at rest. For x86-64."""

import os
import re
import struct

EHDR = "<16sHHIQQQIHHHHHH"
PHDR = "<IIQQQQQQ"
PAGE, PIECE = 4096, 1 << 18


def note(kind, body):
    pad = -len(body) % 4
    return struct.pack("<III", 5, len(body), kind) + b"CORE\0\0\0\0" + body + b"\0" * pad


def prstatus(pid, tid, signal):
    line = open(f"/proc/{pid}/task/{tid}/syscall").read().split()
    regs = dict.fromkeys(("r15 r14 r13 r12 rbp rbx r11 r10 r9 r8 rax rcx rdx rsi rdi orig_rax rip cs "
                          "eflags rsp ss fs gs ds es x y").split(), 0)
    regs["orig_rax"] = 2 ** 64 - 1
    if line[0] != "running":
        regs["orig_rax"] = int(line[0]) % 2 ** 64
        regs["rax"] = 2 ** 64 - 512  # to be restarted: that is how a signal finds a blocked call
        for name, value in zip(("rdi", "rsi", "rdx", "r10", "r8", "r9", "rsp", "rip"), line[1:]):
            regs[name] = int(value, 16)
    body = bytearray(336)
    struct.pack_into("<H", body, 12, signal)
    struct.pack_into("<I", body, 32, tid)
    struct.pack_into("<27Q", body, 112, *regs.values())
    return note(1, bytes(body))


def prpsinfo(pid):
    args = open(f"/proc/{pid}/cmdline", "rb").read().replace(b"\0", b" ")[:79]
    body = bytearray(136)
    struct.pack_into("<I", body, 24, pid)
    body[56:56 + len(args)] = args
    return note(3, bytes(body))


def mapped_files(maps):
    files = [m for m in maps if m["path"].startswith("/")]
    body = struct.pack("<QQ", len(files), 4096)
    for m in files:
        body += struct.pack("<QQQ", m["start"], m["end"], m["offset"] // 4096)
    return note(0x46494C45, body + b"".join(m["path"].encode() + b"\0" for m in files))


def read_maps(pid):
    maps = []
    for line in open(f"/proc/{pid}/maps"):
        match = re.match(r"(\w+)-(\w+) (....) (\w+) \S+ \d+ *(.*)", line)
        start, end, perms, offset, path = match.groups()
        if path in ("[vvar]", "[vvar_vclock]", "[vsyscall]"):
            continue
        maps.append({"start": int(start, 16), "end": int(end, 16), "perms": perms,
                     "offset": int(offset, 16), "path": path})
    return maps


def memory_of(mem, m):
    """What the core holds of a mapping."""
    if "r" not in m["perms"]:
        return b""
    left_out = m["path"].startswith("/") and "w" not in m["perms"]
    length = 4096 if left_out and m["offset"] == 0 else 0 if left_out else m["end"] - m["start"]
    if left_out and b"RELRO" in m.get("marks", b""):
        length = m["end"] - m["start"]
    return b"".join(read_piece(mem, m["start"] + at, min(PIECE, length - at))
                    for at in range(0, length, PIECE))


def read_piece(mem, start, length):
    """Pages that cannot be read (guards of stacks) are zeros."""
    data = b""
    while len(data) < length:
        mem.seek(start + len(data))
        try:
            data += mem.read(length - len(data))
        except OSError:
            data += bytes(PAGE - (start + len(data)) % PAGE)
    return data


def is_dirty(pid, m):
    """Memory of a file that was written before it became read-only (relocations) is not as in the
    file: kernels keep it."""
    current = None
    for line in open(f"/proc/{pid}/smaps"):
        head = re.match(r"(\w+)-(\w+) ", line)
        if head:
            current = int(head.group(1), 16)
        elif current == m["start"] and line.startswith("Private_Dirty:"):
            return int(line.split()[1]) > 0
    return False


def write_core(pid, path, signal=6):
    maps = read_maps(pid)
    for m in maps:
        if m["path"].startswith("/") and m["perms"][:2] == "r-" and is_dirty(pid, m):
            m["marks"] = b"RELRO"
    tids = sorted(map(int, os.listdir(f"/proc/{pid}/task")))
    tids.remove(pid)
    notes = b"".join([prstatus(pid, pid, signal), prpsinfo(pid),
                      note(6, open(f"/proc/{pid}/auxv", "rb").read()), mapped_files(maps),
                      *(prstatus(pid, tid, 0) for tid in tids)])
    with open(f"/proc/{pid}/mem", "rb", buffering=0) as mem:
        memory = [memory_of(mem, m) for m in maps]
    headers = 64 + 56 * (len(maps) + 1)
    offset = (headers + len(notes) + 4095) // 4096 * 4096
    ident = b"\x7fELF\x02\x01\x01" + b"\0" * 9
    out = struct.pack(EHDR, ident, 4, 62, 1, 0, 64, 0, 0, 64, 56, len(maps) + 1, 0, 0, 0)
    out += struct.pack(PHDR, 4, 0, headers, 0, 0, len(notes), 0, 4)
    for m, data in zip(maps, memory):
        flags = 4 * ("r" in m["perms"]) + 2 * ("w" in m["perms"]) + ("x" in m["perms"])
        out += struct.pack(PHDR, 1, flags, offset, m["start"], 0, len(data), m["end"] - m["start"], 4096)
        offset += len(data)
    with open(path, "wb") as core:
        core.write(out + notes)
        core.write(b"\0" * (-(headers + len(notes)) % 4096))
        for data in memory:
            for at in range(0, len(data), PIECE):
                piece = data[at:at + PIECE]
                if any(piece):
                    core.write(piece)
                else:
                    core.seek(len(piece), os.SEEK_CUR)  # takes no space on the disk
        core.truncate()
