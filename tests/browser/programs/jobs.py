"""Two jobs that overlap, and something that happens in between; what they are given is known."""
import time

import fathom


def main():
    first = fathom.region_begin("job", number=1, of="<b>both</b>")
    time.sleep(0.01)
    second = fathom.region_begin("job", number=2)
    time.sleep(0.01)
    fathom.instant("changed", why="asked for", times=3)
    time.sleep(0.01)
    fathom.region_end(first)
    time.sleep(0.01)
    fathom.region_end(second)


main()
