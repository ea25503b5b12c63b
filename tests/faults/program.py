"""A little of everything that the agent and the preload library have to do with."""
import _thread
import asyncio
import os
import sys
import threading

sys.setrecursionlimit(5000)


def leaf(n):
    return n + 1


def deep(n):
    return deep(n - 1) + leaf(n) if n else 0


def numbers(n):
    for i in range(n):
        yield leaf(i)


async def pause(n):
    for _ in range(n):
        await asyncio.sleep(0)
    return n


async def tasks():
    return sum(await asyncio.gather(*(pause(i) for i in range(5))))


class Thing:
    def __getitem__(self, i):
        return leaf(i)

    def __del__(self):
        leaf(0)


def many_functions():
    space = {}
    exec("".join(f"def f{i}(d):\n    return f{(i + 1) % 40}(d - 1) if d else 0\n"
                 for i in range(40)), space)
    return sum(space[f"f{i}"](30) for i in range(40))


def in_threads():
    found = []
    threads = [threading.Thread(target=lambda: found.append(sum(numbers(50)))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def in_child():
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.write(write, b"%d" % deep(10))
        os._exit(7)
    os.close(write)
    found = os.read(read, 100)
    return found, os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def raising():
    try:
        [][leaf(1)]
    except IndexError as e:
        return str(e)


if __name__ == "__main__":
    print(deep(3000), sum(numbers(100)), asyncio.run(tasks()), Thing()[3])
    print(many_functions(), in_threads(), in_child(), raising())
    print(os.system("exit 3"), sorted(k for k in os.environ if k.startswith(("LD_", "FATHOM_RUN"))))
    sys.exit(5)
