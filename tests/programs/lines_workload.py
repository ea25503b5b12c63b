"""Real code to count lines in: pure-Python modules of the standard library, the same work every time."""

import argparse
import collections
import difflib
import fractions
import html.parser
import io
import json.decoder
import json.encoder
import json.scanner
import pprint
import statistics
import string
import textwrap

TEXT = "\n".join(
    " ".join(f"word{(i * j) % 17}{',' if j % 5 == 0 else ''}" for j in range(i % 23))
    for i in range(60)
)


class Tags(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.seen = collections.Counter()

    def handle_starttag(self, tag, attrs):
        self.seen[tag, len(attrs)] += 1

    def handle_data(self, data):
        self.seen["text"] += len(data)


def documents():
    tree = {"numbers": list(range(40)), "nested": [{"a": [i, None, True]} for i in range(15)],
            "text": 'quote " and \\ and \u00e9', "float": [0.5, 1e300, -2.25]}
    make = json.encoder._make_iterencode(
        {}, json.encoder.JSONEncoder().default, json.encoder.py_encode_basestring_ascii, "  ",
        repr, ": ", ", ", True, False, False)
    text = "".join(make(tree, 0))
    decoder = json.decoder.JSONDecoder()
    decoder.parse_object = json.decoder.JSONObject
    decoder.parse_string = json.decoder.py_scanstring
    decoder.scan_once = json.scanner.py_make_scanner(decoder)
    assert decoder.decode(text) == tree
    pprint.pprint(tree, stream=io.StringIO(), width=40)


def texts():
    textwrap.fill(TEXT, width=31, initial_indent="* ", subsequent_indent="  ")
    textwrap.dedent(textwrap.indent(TEXT, "    "))
    string.Template("$a ${b} $$ $c").safe_substitute(a=1, b=2)
    lines = TEXT.splitlines()
    list(difflib.unified_diff(lines, lines[5:30] + lines[:20]))
    difflib.get_close_matches("word7", lines[7].split())
    parser = Tags()
    parser.feed("<p class='x'>one<br/>two &amp; <b>three</b><!-- no --></p>" * 10)
    parser.close()


def numbers():
    data = [fractions.Fraction(i, i % 7 + 1) for i in range(60)]
    statistics.stdev(data), statistics.median(data), statistics.quantiles(data, n=4)
    sum(data) / 3 * fractions.Fraction("7/5") ** 3
    parser = argparse.ArgumentParser(prog="p")
    parser.add_argument("-v", "--verbose", action="count", default=0)
    parser.add_argument("--size", type=int, choices=range(5), help="how large, for instance")
    parser.add_argument("files", nargs="*")
    parser.parse_args(["-vv", "--size", "3", "a", "b"])
    parser.format_help()


def main():
    documents()
    texts()
    numbers()


if __name__ == "__main__":
    main()
