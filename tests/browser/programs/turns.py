"""The main thread waits for a lock in a C call, while another thread calls a function all the time and then lets it go."""

import threading


def leaf():
    return 1


def work():
    for _ in range(20000):
        leaf()
    lock.release()


lock = threading.Lock()
lock.acquire()
other = threading.Thread(target=work, name="busy")
other.start()
lock.acquire()
other.join()
