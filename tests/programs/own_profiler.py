"""Profile functions of a program's own, set in several ways; prints every event that they are told of."""
import functools
import sys
import threading


def heard(frame, event, arg):
    name = arg.__name__ if event.startswith("c_") else ""
    seen.append(f"{threading.current_thread().name} {frame.f_code.co_name} {event} {name}")


def other(frame, event, arg):
    seen.append("other")
    heard(frame, event, arg)


def work(n):
    if n:
        work(n - 1)
    return len(str(n))


def fails():
    try:
        [].index(1)
    except ValueError:
        pass


def loop():
    for _ in range(3):
        sys.setprofile(heard)
        work(1)
        fails()
        sys.setprofile(None)
        work(1)


def replaced():
    sys.setprofile(heard)
    sys.setprofile(other)
    sys.setprofile(other)
    work(0)
    sys.setprofile(None)
    sys.setprofile(None)


def set_inside(n):
    if n:
        sys.setprofile(heard)
        abs(n)
    return n


def inside_c_calls():
    """C calls that began before the profile function was there end while it is."""
    sorted([0, 1], key=set_inside)
    sum(map(len, "ab"))
    sys.setprofile(None)
    exec("sorted([1], key=set_inside); max(1, 2)", globals())
    sys.setprofile(None)
    functools.partial(sys.setprofile, heard)()
    [].sort(key=abs)
    sys.setprofile(None)
    functools.reduce(lambda n, m: set_inside(n) + m, [1, 2, 3])
    sys.setprofile(*[None])


def generates():
    sys.setprofile(heard)
    yield abs(1)
    sys.setprofile(None)
    yield 2


def refuse(frame, event, arg):
    seen.append(event)
    if event == event_refused:
        raise KeyError


def refused(event):
    global event_refused
    event_refused = event
    try:
        sys.setprofile(refuse)
        work(0)
    except KeyError:
        seen.append("KeyError")
    finally:
        sys.setprofile(None)
    seen.append(str(sys.getprofile()))
    work(0)


def threads():
    threading.setprofile(heard)
    for n in range(3):
        thread = threading.Thread(target=work, args=(1,), name=f"t{n}")
        thread.start()
        thread.join()
    threading.setprofile(None)


def all_threads():
    """A thread waits in a C call when it is given a profile function."""
    if not hasattr(threading, "setprofile_all_threads"):
        return
    ready, go, gone = threading.Lock(), threading.Lock(), threading.Lock()
    for lock in ready, go, gone:
        lock.acquire()

    def wait():
        ready.release()
        go.acquire()
        work(0)
        gone.release()
        go.acquire()

    thread = threading.Thread(target=wait, name="waits")
    thread.start()
    ready.acquire()
    threading.setprofile_all_threads(heard)
    go.release()
    gone.acquire()
    threading.setprofile_all_threads(None)
    go.release()
    thread.join()


seen = []
for scenario in (loop, replaced, inside_c_calls, lambda: list(generates()), threads, all_threads):
    scenario()
for event in "call", "return", "c_call", "c_return":
    refused(event)
print(*seen, sep="\n")
