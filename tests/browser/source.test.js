import test from "node:test";
import assert from "node:assert/strict";
import { open, spots, edited, report, drawn, shot, state, settle, choose } from "./page.js";
import { alignLines } from "../../viewer/page/parts/align.js";
import { columnIndex, expressionText, pieces, spotsByLine } from "../../viewer/page/parts/spots.js";

/** Python below 3.11 does not know columns. */
function truth(t) {
  const list = report(spots(), "--spots", "-n", "all").spots;
  if (list.some((spot) => spot.column > 0)) return list;
  t.skip("this Python has no columns of expressions");
  return [];
}

/** The text of an expression in one line; columns count bytes from 1. */
const inOneLine = (spot) =>
  Buffer.from(spot.source ?? "")
    .subarray(spot.column - 1, spot.end_column - 1)
    .toString();

test("the hottest expressions are those of the report", async (t) => {
  const list = truth(t);
  if (!list.length) return;
  const page = await open(t, spots(), { hash: "view=spots" });
  await shot(page, "spots-light");
  const { rows } = await drawn(page);
  assert.equal(rows.length, Math.min(200, list.length));
  const key = (name, line, ns, samples) => `${name} ${line} ${ns} ${samples}`;
  const known = new Map(list.map((x) => [key(x.function.qualname, x.at_line, x.ns, x.samples), x]));
  for (const row of rows) {
    const spot = known.get(key(row.name, row.spot.line, row.ns, row.samples));
    assert.ok(spot, `${row.name} ${row.text}`);
    if (spot.source && spot.column && spot.at_line === spot.end_line) assert.equal(row.text, inOneLine(spot));
  }
  const times = rows.map((row) => row.ns);
  assert.deepEqual(
    times,
    [...times].sort((a, b) => b - a),
  );
  // Enter leads to the line.
  await page.getByRole("grid", { name: "Hottest expressions" }).focus();
  await page.keyboard.press("Home");
  await page.keyboard.press("Enter");
  await settle(page);
  const now = await state(page);
  assert.deepEqual([now.view, now.line], ["source", rows[0].spot.line]);
  assert.equal((await drawn(page)).selected, rows[0].spot.line);
});

test("expressions are marked in their line, with their share on hover and in the panel", async (t) => {
  const list = truth(t).filter((spot) => spot.function.file.endsWith("/spots.py") && spot.at_line === 6);
  if (!list.length) return;
  const page = await open(t, spots(), { hash: "view=source" });
  // Of everything that was recorded, in functions or not: what threads were doing, all states added up.
  const whole = report(spots(), "--threads")
    .threads.flatMap((thread) => Object.values(thread.states_ns))
    .reduce((a, b) => a + b, 0);
  const hottest = list[0];
  assert.match(inOneLine(hottest), /^sorted\(numbers, key=str\)$/, "the program is made so");
  const line = page.locator(".code .row").filter({ hasText: '"é" * 3' });
  const mark = line.locator(".spot").filter({ hasText: "sorted(numbers, key=str)" });
  await mark.hover();
  await shot(page, "source-spots");
  const tip = await page.locator("#tip").innerText();
  assert.ok(tip.startsWith("sorted(numbers, key=str)"), tip);
  assert.match(tip, new RegExp(`^${hottest.samples.toLocaleString("en-US")} samples`, "m"));
  const share = Number(/([\d.]+) %/.exec(tip)[1]);
  assert.ok(Math.abs(share - (hottest.ns / whole) * 100) < 0.051, `${share} of ${hottest.ns / whole}`);
  await line.click();
  const section = page.locator("#details .expressions");
  assert.match(await section.locator("h3").innerText(), /line 6/);
  const listed = await section.locator("button").allInnerTexts();
  assert.deepEqual(listed, list.slice(0, 8).map(inOneLine));
});

test("a line is cut where expressions begin and end, and the hottest has the say", () => {
  const spot = (column, endColumn, ns) => ({
    func: 1,
    line: 3,
    endLine: 3,
    column,
    endColumn,
    samples: ns,
    ns,
  });
  const cut = pieces("é = f(a + b)", 3, [spot(6, 14, 5), spot(8, 13, 9)]);
  assert.deepEqual(
    cut.map((p) => [p.text, p.spot?.ns ?? 0, p.all.length]),
    [
      ["é = ", 0, 0],
      ["f(", 5, 1],
      ["a + b", 9, 2],
      [")", 5, 1],
    ],
  );
  assert.deepEqual(
    [columnIndex("é𝄞x", 1), columnIndex("é𝄞x", 3), columnIndex("é𝄞x", 7), columnIndex("é", 99)],
    [0, 1, 3, 1],
  );
  const two = { ...spot(3, 4, 1), endLine: 4 };
  assert.deepEqual(
    [3, 4].map((n) => pieces("  ab + c", n, [two]).find((p) => p.spot)?.text),
    ["ab + c", "a"],
  );
});

test("of a statement with a block only the head is marked", () => {
  const lines = ["for x in y:  # all", "    f(x)", "g(1,", "  2)"];
  const loop = { func: 1, line: 1, endLine: 2, column: 1, endColumn: 9, samples: 1, ns: 1 };
  const call = { func: 1, line: 3, endLine: 4, column: 1, endColumn: 5, samples: 1, ns: 1 };
  assert.deepEqual([...spotsByLine([loop, call], lines).byLine.keys()], [1, 3, 4]);
  assert.equal(expressionText(lines, loop), "for x in y:  # all");
  assert.equal(expressionText(lines, call), "g(1, 2)");
});

test("lines are paired by their text", () => {
  const lines = (text) => text.split("|");
  const of = (old, now) => {
    const { before, how } = alignLines(lines(old), lines(now));
    return Array.from(before, (i, j) => (i < 0 ? "new" : `${i} ${how[j]}`));
  };
  assert.deepEqual(of("one 1|two 2", "zero 0|one 1|two 2"), ["new", "0 same", "1 same"]);
  assert.deepEqual(of("a a|for i in range(50):|b b", "a a|for i in range(200):|b b"), [
    "0 same",
    "1 changed",
    "2 same",
  ]);
  assert.deepEqual(
    of("def f:|  f1 1|  f2 2|  f3 3|def g:|  g1 1", "def g:|  g1 1|def f:|  f1 1|  f2 2|  f3 3"),
    ["4 moved", "5 moved", "0 same", "1 same", "2 same", "3 same"],
  );
  assert.deepEqual(of("x|x|y|x", "x|y|x"), ["0 same", "2 same", "3 same"]);
  const long = Array.from({ length: 20_001 }, (_, i) => `line ${i}`);
  assert.ok(alignLines(long, ["first", ...long]).byNumber);
});

for (const options of [["--calls", "--lines"], ["--calls"]]) {
  test(`source of two recordings, ${options.join(" ")}: a line is compared with itself`, async (t) => {
    const [before, after] = [edited("prices_before", ...options), edited("prices_after", ...options)];
    const page = await open(t, [after, before], { hash: "view=source" });
    await choose(page, "Against", "1");
    await page.waitForFunction(() => window.fathomTest.drawn().rows?.some((r) => r.old));
    await shot(page, `diff-source${options.join("")}`);
    const result = await drawn(page);
    const row = (text) => result.rows.find((r) => r.text.trim() === text);
    // In these texts a line that is not empty stands once: equal text is the same line.
    assert.equal(row("total += item * i").kind, "same");
    assert.equal(row("rate = math.sqrt(amount + 4)").kind, "moved");
    assert.equal(row("for i in range(200):").kind, "changed");
    assert.equal(row("known = sorted(items)").kind, "new");
    assert.deepEqual([row("discount = max(items)").kind, row("discount = max(items)").line], ["gone", 0]);
    assert.equal(row("rate = math.sqrt(amount + 4)").before, 12);
    const numbers = (file) => (options.includes("--lines") ? ofLines(file) : ofFunctions(file));
    const [now, then] = [numbers(after), numbers(before)];
    for (const r of result.rows) {
      assert.equal(r.now?.self ?? 0, now.get(r.line)?.self ?? 0, `line ${r.line}`);
      assert.equal(r.old?.self ?? 0, then.get(r.before)?.self ?? 0, `line ${r.before} before`);
      assert.equal(r.now?.hits ?? 0, now.get(r.line)?.hits ?? 0, `hits of line ${r.line}`);
    }
    assert.equal(
      result.rows.filter((r) => r.old).length,
      [...then.keys()].length,
      "nothing that was before is left out",
    );
    const hot = page.locator(".code .row").filter({ hasText: options[1] ? "total += item" : "def price" });
    assert.equal(await hot.locator(".more").count(), 1);
    await page.getByRole("button", { name: "Relative" }).click();
    assert.match(await hot.locator(".more").innerText(), /^\+[\d.]+ %$/);
  });
}

/** Self time and hits by line, as the report has them. */
function ofLines(file) {
  const sums = new Map();
  for (const f of report(file, "--lines", "-n", "all").functions.filter((f) => f.file.endsWith("/edited.py")))
    for (const line of f.lines) {
      const sum = sums.get(line.line) ?? { self: 0, hits: 0 };
      sums.set(line.line, { self: sum.self + (line.self_ns ?? 0), hits: sum.hits + (line.hits ?? 0) });
    }
  for (const [line, sum] of sums) if (!sum.hits) sums.delete(line);
  return sums;
}

function ofFunctions(file) {
  const sums = new Map();
  for (const f of report(file, "-n", "all").functions.filter((f) => f.file.endsWith("/edited.py"))) {
    const sum = sums.get(f.line) ?? { self: 0, hits: 0 };
    sums.set(f.line, { self: sum.self + f.self_ns, hits: sum.hits + f.calls });
  }
  return sums;
}
