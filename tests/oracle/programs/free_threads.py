"""Threads that let go of the GIL. One sleeps and hashes a large buffer, one only sleeps, in two
functions, and two wait for a lock that is never free. Only one of them ever needs a processor, so that
the profiler has another: were all taken, it would run when the program does not."""

import hashlib
import os
import threading
import time

import oracle

now, wait, sleep = oracle.now, os.read, time.sleep
sha256, data = hashlib.sha256, b"x" * 100_000
stop, lock = [], threading.Lock()


def pause(seconds):
    sleep(seconds)


def hashing(until):
    while now() < until:
        sha256(data)


def busy(stamps, scales):
    for scale in scales:
        if stop:
            return
        start = now()
        pause(0.00006 * scale)
        middle = now()
        hashing(middle + (middle - start) * 2 // 3)
        stamps.extend((start, middle, now()))


def doze(seconds):
    sleep(seconds)


def snooze(seconds):
    sleep(seconds)


def lazy(stamps, scales):
    for scale in scales:
        if stop:
            return
        start = now()
        doze(0.00003 * scale)
        middle = now()
        snooze(0.00007 * scale)
        stamps.extend((start, middle, now()))


def stuck_one():
    lock.acquire()


def stuck_two():
    lock.acquire()


def main():
    for thread in threads:
        thread.start()
    oracle.ready([["~", "busy", "pause"], ["~", "busy", "hashing"], ["~", "lazy", "doze"],
                  ["~", "lazy", "snooze"], ["~", "stuck_one"], ["~", "stuck_two"],
                  ["<module>", "main", "~"]],
                 {"60/40": ["pause", "hashing"], "30/70": ["doze", "snooze"]},
                 states={"pause": "sleep", "hashing": "c", "doze": "sleep", "stuck_one": "lock"})
    wait(0, 1)
    stop.append(True)
    for thread in threads[:2]:
        thread.join()


lock.acquire()
logs = [oracle.log(), oracle.log()]
threads = [threading.Thread(target=busy, args=(logs[0], oracle.scales())),
           threading.Thread(target=lazy, args=(logs[1], oracle.scales())),
           threading.Thread(target=stuck_one, daemon=True),
           threading.Thread(target=stuck_two, daemon=True)]
main()
oracle.done((["pause", "hashing"], logs[0]), (["doze", "snooze"], logs[1]))
