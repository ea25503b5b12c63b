"""Does what is hard to watch, and proves that it came out right: sampled_target.py KIND

Prints "{}" when it has begun, and at the end, which is when its standard input ends, one line: the
kind, and which results were wrong.
"""
import json
import os
import select
import subprocess
import sys
import threading

wrong = []


def goes_on():
    return not select.select([0], [], [], 0)[0]


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def generated(n):
    return sum(x * x for x in range(n))


def compute():
    if fibonacci(10) != 55 or generated(100) != 328350:
        wrong.append("compute")


def threads(rounds):
    """Four threads that are always busy."""
    if rounds == 0:
        def spin():
            while True:
                compute()
        for _ in range(4):
            threading.Thread(target=spin, daemon=True).start()
    compute()


def forks(rounds):
    child = os.fork()
    if child == 0:
        compute()
        os._exit(9 if wrong else 5)
    if os.WEXITSTATUS(os.waitpid(child, 0)[1]) != 5:
        wrong.append("fork")


def starts(rounds):
    """Children that execute another program, one of them a Python."""
    if subprocess.run(["sh", "-c", "exit 3"]).returncode != 3:
        wrong.append("sh")
    if rounds % 10 == 0 and subprocess.run([sys.executable, "-S", "-c", "raise SystemExit(4)"]).returncode != 4:
        wrong.append("python")


def executes(rounds):
    """The process itself executes itself again and again."""
    for _ in range(300):
        compute()
    if not wrong and goes_on():
        os.execv(sys.executable, [sys.executable, "-B", "-S", __file__, "executes", str(rounds + 1)])


def lives():
    for _ in range(30):
        compute()


def births(rounds):
    """Threads that live for a moment."""
    workers = [threading.Thread(target=lives) for _ in range(10)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()


def main():
    kind = sys.argv[1]
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    if rounds == 0:
        print("{}", flush=True)
    while True:
        globals()[kind](rounds)
        rounds += 1
        if not goes_on():
            break
    print(json.dumps([kind, wrong]), flush=True)
    os._exit(17)


if __name__ == "__main__":
    main()
