"""Two processes whose peaks are at other times: the parent has 20 MiB, and frees them before its child has 12 MiB while
it has 6 MiB itself. So all together had 20 MiB at most, and peaks added up would be 32."""

import os

MIB = 1 << 20


def first():
    return len(bytearray(20 * MIB))


def second():
    return bytearray(6 * MIB)


def child():
    return len(bytearray(12 * MIB))


first()
kept = second()
pid = os.fork()
if not pid:
    child()
    os._exit(0)
os.waitpid(pid, 0)
