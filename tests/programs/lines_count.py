"""Counts how often every line of chosen files begins, with the interpreter's own Python-level tools.

    lines_count.py OUT.json MODULE,… : runs lines_workload.main() and writes [[file, line, hits], …]

It shares nothing with Fathom: sys.settrace on 3.11, sys.monitoring later, and tokenize for which lines
are one statement. A statement over several lines counts once, on its first line, however often the
interpreter goes back and forth in it.
"""

import collections
import importlib
import json
import sys
import tokenize

import lines_workload

hits = collections.Counter()
last = {}  # frame: (line of the last event, statement it belongs to)
statements = {}  # file: {line: first line of its statement}


def read_statements(file):
    first, begin = {}, None
    with tokenize.open(file) as f:
        for token in tokenize.generate_tokens(f.readline):
            if token.type in (tokenize.NL, tokenize.COMMENT, tokenize.INDENT, tokenize.DEDENT):
                continue
            if begin is None:
                begin = token.start[0]
            if token.type == tokenize.NEWLINE:
                for line in range(begin, token.end[0] + 1):
                    first[line] = begin
                begin = None
    return first


def line_begins(frame, line):
    code = frame.f_code
    statement = max(statements[code.co_filename].get(line, line), code.co_firstlineno)
    before, open_statement = last.get(frame, (None, None))
    inside = statement == open_statement and (line != statement or before != line)
    last[frame] = (line, statement)
    if not inside:
        hits[code.co_filename, statement] += 1


def trace(frame, event, arg):
    if frame.f_code.co_filename not in statements:
        return None
    if event == "line":
        line_begins(frame, frame.f_lineno)
    return trace


def monitor(code, line):
    if code.co_filename not in statements:
        return sys.monitoring.DISABLE
    line_begins(sys._getframe(1), line)


def count(work):
    if not hasattr(sys, "monitoring"):
        sys.settrace(trace)
        work()
        sys.settrace(None)
        return
    monitoring, tool = sys.monitoring, 2
    monitoring.use_tool_id(tool, "lines_count")
    monitoring.register_callback(tool, monitoring.events.LINE, monitor)
    # PY_START too: without it a body on the line of its def gives no LINE event from 3.13 on.
    monitoring.register_callback(tool, monitoring.events.PY_START, lambda code, offset: None)
    monitoring.set_events(tool, monitoring.events.LINE | monitoring.events.PY_START)
    work()
    monitoring.set_events(tool, 0)


if __name__ == "__main__":
    for name in sys.argv[2].split(","):
        file = importlib.import_module(name).__file__
        statements[file] = read_statements(file)
    count(lines_workload.main)
    with open(sys.argv[1], "w") as f:
        json.dump([[file, line, n] for (file, line), n in sorted(hits.items())], f)
