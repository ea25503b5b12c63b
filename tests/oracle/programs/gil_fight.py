"""Two threads that fight for the GIL: who held it, and for how long. Nobody is made to give it up (the
switch interval is beyond the run), so each holds it from the end of one sleep to the start of the
next, which it can measure. For profilers that show only the thread with the GIL."""

import os
import sys
import threading
import time

import oracle

now, wait, sleep = oracle.now, os.read, time.sleep
stop = []


def greedy_part(count):
    x = 0
    for i in range(count):
        x += i & 3
    return x


def greedy(stamps, scales):
    for scale in scales:
        if stop:
            return
        start = now()
        greedy_part(700 * scale)
        stamps.extend((start, now()))
        sleep(0)


def modest_part(count):
    x = 0
    for i in range(count):
        x += i & 3
    return x


def modest(stamps, scales):
    for scale in scales:
        if stop:
            return
        start = now()
        modest_part(300 * scale)
        stamps.extend((start, now()))
        sleep(0)


def main():
    for thread in threads:
        thread.start()
    oracle.ready([["~", "greedy", "greedy_part"], ["~", "modest", "modest_part"],
                  ["<module>", "main", "~"]],
                 {"held the GIL": ["greedy", "modest"]}, mode="gil")
    wait(0, 1)
    stop.append(True)
    for thread in threads:
        thread.join()


sys.setswitchinterval(1000)
logs = [oracle.log(), oracle.log()]
threads = [threading.Thread(target=target, args=(log, oracle.scales(20, 60)))
           for target, log in ((greedy, logs[0]), (modest, logs[1]))]
main()
oracle.done((["greedy"], logs[0]), (["modest"], logs[1]))
