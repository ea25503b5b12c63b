"""A checker of Firefox Profiler's "processed profile" format, version 60, made from the descriptions of its types
(src/types/profile.ts and docs-developer/CHANGELOG-formats.md of the profiler): what the tables must fulfil so that
the page can open them, and sums by function and by category."""

from __future__ import annotations

from collections import Counter

COLUMNS = {
    "stackTable": ["frame", "prefix"],
    "frameTable": ["address", "inlineDepth", "category", "subcategory", "func", "nativeSymbol",
                   "innerWindowID", "line", "column"],
    "funcTable": ["name", "isJS", "relevantForJS", "resource", "source", "lineNumber", "columnNumber"],
    "resourceTable": ["lib", "name", "host", "type"],
    "nativeSymbols": ["libIndex", "address", "name", "functionSize"],
    "sources": ["uuid", "filename"],
}
COLORS = {"transparent", "purple", "green", "orange", "yellow", "lightblue", "blue", "brown", "magenta",
          "red", "lightred", "darkgrey", "grey"}


def whole(table: dict, columns: list[str]) -> int:
    assert set(table) == {*columns, "length"}, table.keys()
    assert all(len(table[name]) == table["length"] for name in columns)
    return table["length"]


def indices(values: list, length: int, null: bool = False) -> None:
    assert all((null and value is None) or (type(value) is int and 0 <= value < length)
               for value in values), values


def check(profile: dict) -> None:
    meta, shared = profile["meta"], profile["shared"]
    assert (meta["version"], meta["preprocessedProfileVersion"]) == (29, 60)
    assert meta["interval"] > 0 and meta["startTime"] >= 0 and meta["product"]
    assert any(category["color"] == "grey" for category in meta["categories"])
    for category in meta["categories"]:
        assert category["color"] in COLORS and category["subcategories"][0] == "Other"
    size = {name: whole(shared[name], columns) for name, columns in COLUMNS.items()}
    strings = len(shared["stringArray"])
    assert all(isinstance(text, str) for text in shared["stringArray"])
    stacks, frames, functions = shared["stackTable"], shared["frameTable"], shared["funcTable"]
    indices(stacks["frame"], size["frameTable"])
    assert all(prefix is None or 0 <= prefix < i for i, prefix in enumerate(stacks["prefix"]))
    indices(frames["func"], size["funcTable"])
    indices(frames["category"], len(meta["categories"]), null=True)
    assert all((a is None) == (b is None) for a, b in zip(frames["category"], frames["subcategory"]))
    indices(functions["name"], strings)
    indices(functions["source"], size["sources"], null=True)
    indices(shared["sources"]["filename"], strings)
    # Two rows that say the same would be two functions in every table of the page.
    assert len(set(zip(stacks["frame"], stacks["prefix"]))) == size["stackTable"]
    assert profile["threads"]
    for thread in profile["threads"]:
        check_thread(thread, size["stackTable"])


def check_thread(thread: dict, stacks: int) -> None:
    assert isinstance(thread["pid"], str) and isinstance(thread["name"], str) and thread["name"]
    samples = thread["samples"]
    columns = {name: samples[name] for name in ("stack", "time", "weight")}
    assert all(len(column) == samples["length"] for column in columns.values())
    assert samples["weightType"] in ("samples", "tracing-ms", "bytes")
    indices(samples["stack"], stacks, null=True)
    # What has no stack is a gap.
    assert all(weight == 0 for stack, weight in zip(samples["stack"], samples["weight"]) if stack is None)
    assert all(weight >= 0 for weight in samples["weight"])
    assert samples["time"] == sorted(samples["time"]) and samples["time"][0] >= 0
    whole(thread["markers"], ["data", "name", "startTime", "endTime", "phase", "category"])


def path(profile: dict, stack: int | None) -> list[int]:
    """Functions from the newest to the oldest."""
    shared, found = profile["shared"], []
    while stack is not None:
        found.append(shared["frameTable"]["func"][shared["stackTable"]["frame"][stack]])
        stack = shared["stackTable"]["prefix"][stack]
    return found


def sums(profile: dict) -> tuple[Counter, Counter, Counter]:
    """Weights: own ones by function, totals by function, and by category of the newest frame."""
    shared = profile["shared"]
    name = [shared["stringArray"][i] for i in shared["funcTable"]["name"]]
    own, total, category = Counter(), Counter(), Counter()
    for thread in profile["threads"]:
        for stack, weight in zip(thread["samples"]["stack"], thread["samples"]["weight"]):
            if stack is None:
                continue
            functions = path(profile, stack)
            own[name[functions[0]]] += weight
            for function in {name[i] for i in functions}:
                total[function] += weight
            state = shared["frameTable"]["category"][shared["stackTable"]["frame"][stack]]
            category[profile["meta"]["categories"][state or 0]["name"]] += weight
    return own, total, category
