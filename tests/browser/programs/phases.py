"""Three phases of about 0.4 s each, with known bytes: 24 MiB are loaded, 16 of them freed while 6 MiB are
indexed, and in the end 40 MiB are there for a while."""

import time

import fathom

MIB = 1 << 20


def load():
    with fathom.region("load"):
        rows = bytearray(16 * MIB)
        table = bytearray(8 * MIB)
        time.sleep(0.4)
    return rows, table


def index(table):
    with fathom.region("index"):
        keys = bytearray(6 * MIB)
        time.sleep(0.4)
    return keys


def main():
    rows, table = load()
    del rows
    keys = index(table)
    with fathom.region("answer"):
        with fathom.region("sort"):
            copy = bytearray(40 * MIB)
            time.sleep(0.3)
        del copy
        time.sleep(0.1)
    return keys


kept = main()
time.sleep(0.1)
