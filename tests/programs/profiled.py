"""Prints one line: whether an agent of Fathom is loaded in this process, and its arguments."""
import sys


def answer():
    with open("/proc/self/maps") as maps:
        return "profiled" if "/_agent." in maps.read() else "plain"


if __name__ == "__main__":
    print(answer(), *sys.argv[1:], flush=True)
