"""Prints, as JSON, everything about its process that a launcher could change by mistake."""
import json
import os
import signal
import sys


def descriptors():
    """{number: what it is}; the one that lists the folder itself is left out."""
    found = {}
    for number in os.listdir("/proc/self/fd"):
        try:
            target = os.readlink(f"/proc/self/fd/{number}")
        except OSError:
            continue
        found[number] = target.split(":")[0]
    return found


def main():
    import __main__
    handlers = {}
    for number in sorted(signal.valid_signals()):
        handlers[int(number)] = str(signal.getsignal(number))
    status = dict(line.rstrip("\n").split(":\t", 1) for line in open("/proc/self/status")
                  if ":\t" in line)
    json.dump({
        "argv": sys.argv,
        "orig_argv": getattr(sys, "orig_argv", None),
        "path": sys.path,
        "flags": repr(sys.flags),
        "executable": sys.executable,
        "modules": sorted(sys.modules),
        "environ": list(os.environ.items()),
        "main": sorted(vars(__main__)),
        "main_name": __main__.__name__,
        "main_spec": [str(getattr(__main__.__spec__, name, None)) for name in ("name", "origin")],
        "file": globals().get("__file__"),
        "cwd": os.getcwd(),
        "umask": status["Umask"],
        "descriptors": descriptors(),
        "handlers": handlers,
        "blocked": status["SigBlk"],
        "ignored": status["SigIgn"],
        "caught": status["SigCgt"],
        "pending": status["ShdPnd"],
        "group_is_parents": os.getpgrp() == os.getpgid(os.getppid()),
        "session_is_parents": os.getsid(0) == os.getsid(os.getppid()),
        "hooks": [sys.getprofile() is None, sys.gettrace() is None],
        "recursion": sys.getrecursionlimit(),
        "threads": len(os.listdir("/proc/self/task")),
        "limits": open("/proc/self/limits").read(),
        "nice": os.nice(0),
    }, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
