import test from "node:test";
import assert from "node:assert/strict";
import { dirname, join } from "node:path";
import { open, drawn, settle, shot, state, choose, record, report, here, fathom } from "./page.js";

const MIB = 2 ** 20;
/** A bytearray is an object and a block one byte larger than it is long. */
const OBJECT = 200;

process.env.PYTHONPATH = join(dirname(fathom), "python");

/** See programs/phases.py for the bytes of each phase. */
const phases = () => record("phases", "--memory", join(here, "programs/phases.py"));
const sampled = () => record("phases-sampled", "--memory=sampled", join(here, "programs/phases.py"));

function near(value, mib, what) {
  assert.ok(value >= mib * MIB && value < mib * MIB + OBJECT, `${what}: ${value} is not ${mib} MiB`);
}

/** With what entering a region for the first time takes. */
function about(value, mib, what) {
  assert.ok(value >= mib * MIB && value < (mib + 0.5) * MIB, `${what}: ${value} is not about ${mib} MiB`);
}

/** The middle of each region, in seconds since the run began. */
async function middles(page) {
  const { visits } = await drawn(page);
  return Object.fromEntries(visits.map((v) => [v.name, (v.begin + v.end) / 2e9]));
}

/** Where on the curve an instant is. */
async function pointOf(page, seconds) {
  const { left, perSecond } = await drawn(page);
  const box = await page.getByRole("slider").boundingBox();
  return [left + seconds * perSecond, box.y + box.height / 2];
}

const lineOf = (lines, name) => lines.find((l) => l.name.startsWith(name));

test("a click on the curve shows what was alive then, in every view", async (t) => {
  const page = await open(t, phases(), { hash: "view=memory" });
  assert.match((await drawn(page)).says, /Click the curve/);
  const { index } = await middles(page);
  await page.mouse.click(...(await pointOf(page, index)));
  const shown = await drawn(page);
  near(lineOf(shown.lines, "load phases.py:14").self, 8, "table");
  near(lineOf(shown.lines, "index phases.py:21").self, 6, "keys");
  assert.equal(lineOf(shown.lines, "load phases.py:13"), undefined, "rows are freed");
  assert.match(shown.says, /alive at .*: [\d.]+ MiB in [\d,]+ blocks/);
  await shot(page, "moment-light");
  const { at, metric } = await state(page);
  assert.equal(metric, "then");
  assert.ok(Math.abs(Number(at) - index) < 0.01, `${at} is not ${index}`);
  // The same numbers as the terminal's.
  const truth = report(phases(), "--memory", "--at", `${at}s`, "-n", "all");
  for (const line of shown.lines.filter((l) => /^\w+ phases\.py:/.test(l.name))) {
    const [name, at] = line.name.split(" phases.py:");
    const row = truth.functions.find((f) => f.qualname === name && f.line === Number(at));
    assert.deepEqual([row.then_bytes, row.total_then_bytes], [line.self, line.total], line.name);
  }
  // What is less than 100 µs is not said.
  const [, before, unit] = /as looked at ([\d.]+) (s|ms|µs) before/.exec(shown.says) ?? [0, "0.0", "ms"];
  const late = (truth.time.asked_ns - truth.time.shown_ns) / { s: 1e9, ms: 1e6, µs: 1e3 }[unit];
  // Three digits are three digits, wherever the point is: right to one of the last.
  const last = 10 ** -(before.split(".")[1] ?? "").length;
  assert.ok(Math.abs(late - Number(before)) < last, `${late} is not ${before}`);
  await page.getByRole("button", { name: "Flame graph" }).click();
  const flame = await drawn(page);
  await shot(page, "moment-flame");
  const boxes = flame.boxes.filter((b) => b.i >= 0);
  about(boxes.find((b) => b.name === "load").value, 8, "flame");
  about(boxes.find((b) => b.name === "index").value, 6, "flame");
  const total = flame.total;
  await page.locator('#tabs [data-view="table"]').click();
  const rows = Object.fromEntries((await drawn(page)).rows.map((r) => [r.name, r]));
  about(rows.load.self, 8, "functions");
  about(rows.index.total, 6, "functions");
  await page.locator('#tabs [data-view="source"]').click();
  const { lines } = await drawn(page);
  near(lines.find((n) => n.line === 14).self, 8, "source");
  await shot(page, "moment-source");
  await page.locator('#tabs [data-view="callers"]').click();
  await settle(page);
  await shot(page, "moment-callers");
  // A link leads to the same.
  const again = await open(t, phases(), { hash: `metric=then&at=${at}` });
  assert.equal((await drawn(again)).total, total);
  assert.match(await again.locator("#status").innerText(), /alive at/);
});

test("dragging shows what changed between two instants, more is warm and less is cold", async (t) => {
  const page = await open(t, phases(), { hash: "view=memory" });
  const { load, index } = await middles(page);
  await page.mouse.move(...(await pointOf(page, index)));
  await page.mouse.down();
  await page.mouse.move(...(await pointOf(page, (load + index) / 2)), { steps: 3 });
  await page.mouse.move(...(await pointOf(page, load)), { steps: 3 });
  await shot(page, "moment-dragging");
  await page.mouse.up();
  const shown = await drawn(page);
  const [from, to] = (await state(page)).at.split("..").map(Number);
  assert.ok(Math.abs(from - load) < 0.01 && Math.abs(to - index) < 0.01, `${from} to ${to}`);
  const rows = lineOf(shown.lines, "load phases.py:13");
  near(rows.baseSelf, 16, "before");
  assert.equal(rows.self, 0);
  near(lineOf(shown.lines, "index phases.py:21").self, 6, "after");
  assert.equal(lineOf(shown.lines, "index phases.py:21").baseSelf, 0);
  assert.equal(lineOf(shown.lines, "load phases.py:14"), undefined, "it has not changed");
  assert.match(shown.says, /→ .*: −10\.0 MiB: from 2[\d.]+ MiB .* to 1[\d.]+ MiB/s);
  await shot(page, "range-light");
  await page.getByRole("button", { name: "Functions", exact: true }).last().click();
  await settle(page);
  await page.getByRole("columnheader", { name: "self ±" }).getByRole("button").click(); // what became less first
  const cells = await page
    .locator(".row", { has: page.locator("span.name", { hasText: /^load$/ }) })
    .innerText();
  assert.match(cells, /−16\.0 MiB/);
  assert.ok((await page.locator(".row .less").count()) > 0);
  await shot(page, "range-functions");
  await page.locator('#tabs [data-view="flame"]').click();
  await settle(page);
  await shot(page, "range-flame");
  await page.locator('#tabs [data-view="source"]').click();
  const line = (await drawn(page)).rows.find((r) => r.line === 13);
  near(line.old.self, 16, "source");
  assert.equal(line.now?.self ?? 0, 0);
  await shot(page, "range-source");
  // Another metric is that of the whole run again; its control is still there.
  await choose(page, "Metric", "peak");
  assert.ok(!(await drawn(page)).rows.some((r) => r.old));
  await choose(page, "Metric", "then");
  await page.getByRole("button", { name: /^no more/ }).click();
  assert.deepEqual([(await state(page)).at, await page.locator(".chip").count()], ["", 0]);
});

test("zooming stays where it was when a range is chosen and taken away", async (t) => {
  const page = await open(t, phases(), { hash: "metric=then&at=0.7" });
  const box = (await drawn(page)).boxes.find((b) => b.name === "main" && b.i >= 0);
  await page.mouse.click(box.x + 5, box.y + box.h / 2);
  const zoomed = async () => {
    const functions = await page.evaluate(() => window.fathomTest.functions());
    return functions[(await drawn(page)).boxes.find((b) => b.i === 0).func].name;
  };
  assert.equal(await zoomed(), "main");
  await page.evaluate(() => {
    location.hash = location.hash.replace("at=0.7", "at=0.3..0.7");
  });
  await settle(page);
  assert.equal(await zoomed(), "main");
  await choose(page, "Metric", "peak");
  assert.equal(await zoomed(), "main");
});

test("keys move the instant and the range; Escape takes them away", async (t) => {
  const page = await open(t, phases(), { hash: "view=memory" });
  const figure = page.getByRole("slider", { name: "Memory over time" });
  const at = async () => (await state(page)).at;
  await figure.focus();
  await page.keyboard.press("ArrowRight");
  assert.equal(await at(), "", "pointing alone chooses nothing");
  await page.keyboard.press("Enter");
  const first = Number(await at());
  assert.ok(first > 0);
  await page.keyboard.press("ArrowRight");
  const second = Number(await at());
  assert.ok(second > first, `${second} is not behind ${first}`);
  await page.keyboard.press("Shift+ArrowLeft");
  await page.keyboard.press("Shift+ArrowLeft");
  const [from, to] = (await at()).split("..").map(Number);
  assert.deepEqual([to, from < first], [second, true]);
  await page.keyboard.press("Shift+ArrowRight");
  await page.keyboard.press("Shift+ArrowRight");
  await page.keyboard.press("Shift+ArrowRight");
  assert.equal(Number((await at()).split("..")[0]), second, "the other end is where it began");
  await page.keyboard.press("Escape");
  assert.deepEqual([await at(), (await state(page)).metric], ["", ""]);
  await page.keyboard.press("Enter");
  assert.notEqual(await at(), "");
  await page.locator(".page").focus();
  await page.keyboard.press("Escape");
  assert.equal(await at(), "");
});

test("regions are on the curve, and a click on one shows what changed in it", async (t) => {
  const page = await open(t, phases(), { hash: "view=memory" });
  const { visits, regions } = await drawn(page);
  assert.deepEqual(
    visits.map((v) => [v.name, v.lane]),
    [
      ["load", 0],
      ["index", 0],
      ["answer", 0],
      ["sort", 1],
    ],
  );
  assert.deepEqual(
    regions.map((r) => r.name),
    ["load", "index", "answer", "sort"],
  );
  const sort = visits.find((v) => v.name === "sort");
  await page.mouse.move(sort.x + sort.w / 2, sort.y + 5);
  const tip = await page.locator("#tip").innerText();
  assert.match(tip, /sort[\s\S]*peak\s+5\d\.\d MiB[\s\S]*net\s+\+40\.0 MiB/);
  const [from, to, time] = ["from", "to", "time"].map((name) => {
    const [, number, unit] = tip.match(`${name}\\s+([\\d.]+) (m?s)`);
    return Number(number) * (unit === "s" ? 1000 : 1);
  });
  assert.ok(time >= 300 && Math.abs(to - from - time) <= 10, tip); // each has three or four digits
  await shot(page, "region-hover");
  await page.mouse.click(sort.x + sort.w / 2, sort.y + 5);
  const shown = await drawn(page);
  near(lineOf(shown.lines, "main phases.py:32").self, 40, "what sort has");
});

test("what resident memory was made of, as the terminal says", async (t) => {
  const page = await open(t, phases(), { hash: "view=memory" });
  const { residents, text } = await drawn(page);
  const highest = residents.find((a) => a.highest);
  assert.equal(highest.bytes.reduce((a, b) => a + b, 0), highest.rss);
  // 40, 8 and 6 MiB are alive then, and touched as they are zeroed.
  assert.ok(highest.bytes[0] > 54 * MIB && highest.bytes[0] < 62 * MIB, String(highest.bytes[0]));
  const truth = report(phases(), "--memory=resident").residents;
  assert.ok(JSON.stringify(truth).includes(String(highest.rss)));
  assert.match(text, /What resident memory was made of\s+[\d.]+ MiB resident at most, at [\d.]+ m?s/);
  await page.getByText("What resident memory was made of").scrollIntoViewIfNeeded();
  await shot(page, "resident");
});

test("bad instants are none", async (t) => {
  for (const at of ["x", "-1", "1..", "1e3", "..2", "NaN"]) {
    const page = await open(t, phases(), { hash: `view=memory&metric=then&at=${at}` });
    assert.match((await drawn(page)).says, /Click the curve/, at);
    await page.context().close();
  }
  const page = await open(t, phases(), { hash: "view=memory&metric=then&at=2..1e" });
  assert.equal(page.troubles.length, 0);
  // Behind the end is the end.
  const end = await open(t, phases(), { hash: "view=memory&metric=then&at=999" });
  assert.match((await drawn(end)).says, /alive at \d\.\d+ s/);
});

test("what was sampled is said, with errors", async (t) => {
  const page = await open(t, sampled(), { hash: "view=memory&metric=peak" });
  await shot(page, "sampled-memory");
  const { text } = await drawn(page);
  assert.match(text, /Blocks were sampled every [\d.]+ KiB: these are estimates, right within ± in 19 of 20/);
  assert.match(text, /[\d.]+ MiB ± [\d.]+ [KM]iB\s+at the peak/);
  const metrics = await page.evaluate(() => window.fathomTest.summary().metrics.map((m) => m.key));
  assert.ok(!metrics.some((key) => key.endsWith("_error")), metrics.join());
  await page.locator('#tabs [data-view="table"]').click();
  await settle(page);
  assert.equal(await page.getByRole("columnheader", { name: "±" }).count(), 1);
  await shot(page, "sampled-functions");
  assert.match(await page.locator("#status").innerText(), /±/);
});

for (const [name, width, height, theme] of [
  ["phone", 390, 844, "light"],
  ["phone", 390, 844, "dark"],
  ["wide", 1600, 900, "dark"],
])
  test(`instants fit: ${name}, ${theme}`, async (t) => {
    const page = await open(t, phases(), { width, height, theme, hash: "view=memory&metric=then&at=0.3..0.7" });
    await shot(page, `range-${name}-${theme}`);
    for (const view of ["memory", "flame", "table", "source", "callers"]) {
      await page.locator(`#tabs [data-view="${view}"]`).click();
      await settle(page);
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(over <= 0, `${view} is wider than the screen`);
      await shot(page, `range-${view}-${name}-${theme}`);
    }
  });
