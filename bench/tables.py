"""Results as ratios, and the ratios as Markdown.

A time is the minimum over the rounds. What a profiler adds is its time minus that of the program
alone; the ratio is what Fathom adds over what the peer adds. An added time below 1 % of the
program's own is noise: it counts as 1 % and the ratio is marked "~", so that one lucky zero cannot
rule a mean.
"""

from __future__ import annotations

import math

NOISE = 0.01

# (with C calls, Python functions only), by Python; the largest ratio that counts as reached.
TARGETS = {"3.11": (0.90, 0.40)}
TARGETS_LATER = (0.60, 0.40)
TARGET_REPORT = 20.0
# Lines: of line_profiler's added time, and of pprofile's.
TARGETS_LINES = {"3.11": 0.50}
TARGET_LINES_LATER = 0.20
TARGET_LINES_ALL = 0.02


def added(times: dict, variant: str, clock: str = "cpu") -> tuple[float, bool] | None:
    """Seconds that the variant adds, and whether that is only the floor of the noise."""
    series = times.get(clock, {})
    if variant not in series:
        return None
    base = min(series["baseline"])
    seconds = min(series[variant]) - base
    return max(seconds, NOISE * base), seconds < NOISE * base


def ratio(times: dict, ours: str, theirs: str, clock: str = "cpu") -> tuple[float, bool] | None:
    a, b = added(times, ours, clock), added(times, theirs, clock)
    if a is None or b is None:
        return None
    return a[0] / b[0], a[1] or b[1]


def geometric_mean(ratios: list[tuple[float, bool] | None]) -> tuple[float, bool] | None:
    values = [value for value in ratios if value is not None]
    if not values:
        return None
    mean = math.exp(sum(math.log(value[0]) for value in values) / len(values))
    return mean, False


def shown(value: tuple[float, bool] | None, digits: int = 2) -> str:
    """The ratio; "~" in front says that it is one of noise."""
    return "–" if value is None else f"{'~' if value[1] else ''}{value[0]:.{digits}f}"


def percent(value: tuple[float, bool] | None, base: float) -> str:
    if value is None:
        return "–"
    return "<1 %" if value[1] else f"{100 * value[0] / base:.0f} %"


def table(head: list[str], rows: list[list[str]]) -> str:
    """A Markdown table that is also readable as it is."""
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]

    def line(cells: list[str]) -> str:
        first = cells[0].ljust(widths[0])
        rest = [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:])]
        return "| " + " | ".join([first, *rest]) + " |"

    dashes = ["-" * (widths[0] + 2), *("-" * (width + 1) + ":" for width in widths[1:])]
    rule = "|" + "|".join(dashes) + "|"
    return "\n".join([line(head), rule, *map(line, rows)]) + "\n"


# ---------------------------------------------------------------- the group "calls"

GROUPS = (("loops", "small loops"), ("pyperformance", "pyperformance"), ("", "all programs"))


def mean_of(programs: dict, prefix: str, ours: str, theirs: str, clock: str = "cpu"):
    return geometric_mean([ratio(times, ours, theirs, clock) for name, times in programs.items()
                           if name.startswith(prefix) and not is_idle(times, theirs)])


def is_idle(times: dict, variant: str) -> bool:
    """There was next to nothing to record: C calls left out of a program that makes no others. Then
    Fathom adds nothing at all, which would pull a mean down beyond all meaning, so it is not in it.
    """
    calls = times.get("calls", {})
    return "cprofile" in calls and variant in calls and calls[variant] < 0.01 * calls["cprofile"]


def verdict(value: tuple[float, bool] | None, target: float) -> str:
    if value is None:
        return "–"
    return f"{'reached' if value[0] <= target else 'NOT reached'} (≤ {target:.2f})"


def calls_summary(calls: dict) -> str:
    rows = []
    for version, programs in calls.items():
        targets = TARGETS.get(version, TARGETS_LATER)
        for with_c, suffix, target in ((True, "", targets[0]), (False, "-python", targets[1])):
            means = [mean_of(programs, prefix, "fathom" + suffix, "cprofile" + suffix)
                     for prefix, _ in GROUPS]
            yappi = mean_of(programs, "", "fathom" + suffix, "yappi" + suffix)
            rows.append([f"{version}, {'with C calls' if with_c else 'Python functions only'}",
                         *map(shown, means), verdict(means[-1], target), shown(yappi)])
    return table(["Python", *(title for _, title in GROUPS), "target", "against yappi"], rows)


def calls_ratios(calls: dict, suffix: str) -> str:
    """A row per program, a column per Python."""
    names = list(dict.fromkeys(name for programs in calls.values() for name in programs))
    rows = [[name, *(shown(ratio(programs[name], "fathom" + suffix, "cprofile" + suffix)
                           if name in programs else None) for programs in calls.values())]
            for name in names]
    for prefix, title in GROUPS:
        rows.append([f"mean, {title}",
                     *(shown(mean_of(programs, prefix, "fathom" + suffix, "cprofile" + suffix))
                       for programs in calls.values())])
    return table(["program", *calls], rows)


def calls_detail(programs: dict) -> str:
    """What every profiler adds to each program on one Python, in percent of the program's time."""
    variants = ("cprofile", "yappi", "fathom", "cprofile-python", "yappi-python", "fathom-python")
    rows = []
    for name, times in programs.items():
        base = min(times["cpu"]["baseline"])
        calls = times["calls"].get("cprofile", 0)
        rows.append([name, f"{base:.2f} s", f"{calls / 1e6:.2f} M",
                     *(percent(added(times, variant), base) for variant in variants),
                     count_note(times)])
    head = ["program", "alone", "calls", "cProfile", "yappi", "Fathom",
            "cProfile, no C", "yappi, no C", "Fathom, no C", "calls seen"]
    return table(head, rows)


def count_note(times: dict) -> str:
    """Whether Fathom counted what cProfile counted (each also sees its own last call or two)."""
    notes = []
    for suffix in ("", "-python"):
        ours = times["calls"].get("fathom" + suffix)
        theirs = times["calls"].get("cprofile" + suffix)
        if ours is not None and theirs and abs(ours - theirs) > 5 + theirs * 1e-4:
            notes.append(f"{100 * (ours - theirs) / theirs:+.1f} %{' no C' if suffix else ''}")
    return ", ".join(notes) or "equal"


# ---------------------------------------------------------------- the group "lines"

def lines_summary(lines: dict) -> str:
    rows = []
    for version, programs in lines.items():
        chosen = mean_of(programs, "", "fathom-lines", "line_profiler")
        every = mean_of(programs, "", "fathom-all", "pprofile")
        notes = {hits_note(times) for times in programs.values()}
        rows.append([version, shown(chosen),
                     verdict(chosen, TARGETS_LINES.get(version, TARGET_LINES_LATER)),
                     shown(every, 4), verdict(every, TARGET_LINES_ALL),
                     notes.pop() if len(notes) == 1 else "differ, see below"])
    return table(["Python", "÷ line_profiler", "target", "all ÷ pprofile", "target", "hits"], rows)


def lines_ratios(lines: dict, ours: str, theirs: str, digits: int = 2) -> str:
    names = list(dict.fromkeys(name for programs in lines.values() for name in programs))
    rows = [[name, *(shown(ratio(programs[name], ours, theirs), digits) if name in programs else "–"
                     for programs in lines.values())] for name in names]
    rows.append(["mean", *(shown(mean_of(programs, "", ours, theirs), digits)
                           for programs in lines.values())])
    return table(["program", *lines], rows)


LINE_VARIANTS = {"line_profiler": "line_profiler", "fathom-lines": "Fathom", "pprofile": "pprofile",
                 "fathom-all": "Fathom, all", "empty-lines": "empty callback",
                 "clock-lines": "callback + clock"}


def lines_detail(programs: dict) -> str:
    """What every profiler adds to each program on one Python, in nanoseconds per line run."""
    variants = [variant for variant in LINE_VARIANTS
                if any(variant in times["cpu"] for times in programs.values())]
    rows = []
    for name, times in programs.items():
        base = min(times["cpu"]["baseline"])
        hits = max(1, sum(times["calls"].get("line_profiler", {}).values()))
        cells = [added(times, variant) for variant in variants]
        rows.append([name, f"{base:.2f} s", f"{hits / 1e6:.2f} M", f"{1e9 * base / hits:.0f}",
                     *("–" if cell is None else f"{1e9 * cell[0] / hits:.0f}" for cell in cells),
                     hits_note(times)])
    titles = [LINE_VARIANTS[variant] for variant in variants]
    return table(["program", "alone", "lines run", "alone, ns", *titles, "hits"], rows)


def hits_note(times: dict) -> str:
    """Whether every line was hit as often under Fathom as under line_profiler."""
    theirs = times["calls"].get("line_profiler")
    ours = [times["calls"].get(variant) for variant in ("fathom-lines", "fathom-all")]
    if not theirs or None in ours:
        return "–"
    different = [line for line in theirs if any(each.get(line) != theirs[line] for each in ours)]
    different += [line for each in ours for line in each if line not in theirs]
    return f"differ on line {', '.join(sorted(set(different)))}" if different else "equal"


# ---------------------------------------------------------------- the other groups

def floor_summary(calls: dict) -> str:
    rows = []
    for version, programs in calls.items():
        measured = {name: times for name, times in programs.items() if "empty" in times["cpu"]}
        for with_c, suffix in ((True, ""), (False, "-python")):
            means = [mean_of(measured, "", ours + suffix, "cprofile" + suffix)
                     for ours in ("empty", "clock", "fathom")]
            if means[0] is None:
                continue
            share = f"{100 * means[0][0] / means[2][0]:.0f} %" if means[2] else "–"
            rows.append([f"{version}, {'with C calls' if with_c else 'Python functions only'}",
                         *map(shown, means), share])
    return table(["Python", "empty callback", "callback + clock", "Fathom",
                  "share of the empty callback in Fathom"], rows) if rows else ""


def floor_ratios(calls: dict, suffix: str) -> str:
    """Fathom over the callback that only reads the clock: what is ours to improve."""
    names = list(dict.fromkeys(name for programs in calls.values() for name in programs))
    rows = [[name, *(shown(ratio(programs[name], "fathom" + suffix, "clock" + suffix)
                           if name in programs else None) for programs in calls.values())]
            for name in names]
    return table(["program", *calls], rows)


def whole_summary(whole: dict) -> str:
    names = list(dict.fromkeys(name for programs in whole.values() for name in programs))
    rows = [[name, *(shown(ratio(programs[name], "fathom", "cprofile", "wall")
                           if name in programs else None) for programs in whole.values())]
            for name in names]
    for prefix, title in GROUPS:
        rows.append([f"mean, {title}", *(shown(mean_of(programs, prefix, "fathom", "cprofile",
                                                       "wall")) for programs in whole.values())])
    return table(["program", *whole], rows)


def report_summary(reports: dict) -> str:
    rows = []
    for version, times in reports.items():
        ours, theirs = min(times["fathom"]), min(times["pstats"])
        times_faster = theirs / ours
        rows.append([version, f"{1000 * theirs:.0f} ms", f"{1000 * ours:.1f} ms",
                     f"{times_faster:.0f}×", "reached (≥ 20×)" if times_faster >= TARGET_REPORT
                     else "NOT reached (≥ 20×)"])
    return table(["Python", "python -m pstats", "fathom report", "faster", "target"], rows)


def opening_summary(rows: list[dict]) -> str:
    return table(["what", "file", "time", "peak memory"],
                 [[row["what"], f"{row['file_bytes'] / 1e6:.1f} MB", f"{row['wall']:.3f} s",
                   f"{row['peak_bytes'] / 1e6:.0f} MB"] for row in rows])


def markdown(data: dict) -> str:
    """All tables of a run."""
    parts = []

    def part(title: str, text: str) -> None:
        if text:
            parts.append(f"### {title}\n\n{text}")

    calls = data.get("calls") or {}
    if calls:
        part("Time added, Fathom ÷ cProfile (geometric means)", calls_summary(calls))
        part("Time added, Fathom ÷ cProfile, with C calls", calls_ratios(calls, ""))
        part("Time added, Fathom ÷ cProfile, Python functions only", calls_ratios(calls, "-python"))
        for version, programs in calls.items():
            part(f"Python {version}: time added, in percent of the program's own",
                 calls_detail(programs))
        floor = floor_summary(calls)
        part("Floor: time added ÷ what cProfile adds (geometric means)", floor)
        if floor:
            part("Fathom ÷ callback that reads the clock, with C calls", floor_ratios(calls, ""))
            part("Fathom ÷ callback that reads the clock, Python functions only",
                 floor_ratios(calls, "-python"))
    lines = data.get("lines") or {}
    if lines:
        part("Line times: time added, Fathom ÷ line_profiler and ÷ pprofile (geometric means)",
             lines_summary(lines))
        part("Line times: time added, Fathom ÷ line_profiler",
             lines_ratios(lines, "fathom-lines", "line_profiler"))
        if any("pprofile" in times["cpu"] for programs in lines.values()
               for times in programs.values()):
            part("Line times of everything: time added, Fathom ÷ pprofile",
                 lines_ratios(lines, "fathom-all", "pprofile", 4))
        for version, programs in lines.items():
            part(f"Python {version}: line times, nanoseconds added per line run",
                 lines_detail(programs))
    if data.get("whole"):
        part("Whole processes: time added by `fathom run --calls -o` ÷ by `python -m cProfile -o`",
             whole_summary(data["whole"]))
    if data.get("report"):
        part("Report of 50,000 functions", report_summary(data["report"]))
    if data.get("opening"):
        part("Large files", opening_summary(data["opening"]))
    return "\n".join(parts)
