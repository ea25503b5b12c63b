import test from "node:test";
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import {
  open,
  drawn,
  settle,
  shot,
  state,
  choose,
  boxPaths,
  fathom,
  folder,
  here,
  record,
  report,
  run,
} from "./page.js";

/** The recording that tests/unit/tool_heap.c draws; its numbers stand there. */
function heap(samples = 0) {
  const file = join(folder, `heap${samples || ""}.fathom`);
  const tool = join(dirname(fathom), "tests/unit/tool_heap");
  if (!existsSync(file)) execFileSync(tool, [file, ...(samples ? [String(samples)] : [])]);
  return file;
}

const MIB = 2 ** 20;

/** What `fathom convert` says of a metric: by path of "name:line", in the unit of the metric. */
function collapsed(file, metric) {
  const sums = new Map();
  for (const line of run("convert", file, "--metric", metric, "--to", "collapsed", "-o", "-")
    .trim()
    .split("\n")) {
    const [, stack, value] = /^(.*) (\d+)$/.exec(line);
    const path = stack
      .split(";")
      .filter((frame) => !/^(process|thread) /.test(frame))
      .map((frame) => frame.replace(/ \(.*:(\d+)\)$/, ":$1"))
      .join(" ");
    sums.set(path, (sums.get(path) ?? 0) + Number(value));
  }
  return sums;
}

test("a recording of memory opens by the peak; one with time by time", async (t) => {
  for (const [samples, metric] of [
    [0, "peak"],
    [50, "peak"],
    [2000, ""],
  ]) {
    const page = await open(t, heap(samples));
    const shown = await drawn(page);
    assert.equal(shown.total, metric ? 27 * MIB : samples * 1e6, `${samples} samples`);
    const groups = await page
      .getByLabel("Metric", { exact: true })
      .evaluate((select) =>
        [...select.querySelectorAll("optgroup")].map((g) => [g.label, [...g.children].map((o) => o.value)]),
      );
    assert.deepEqual(groups, [
      [
        "Memory",
        [
          "peak",
          "peak_blocks",
          "leaked",
          "leaked_blocks",
          "allocated",
          "blocks",
          "temporary",
          "temporary_blocks",
        ],
      ],
    ]);
    await page.context().close();
  }
});

test("boxes by every metric of memory, functions and lines, as fathom convert has them", async (t) => {
  const page = await open(t, heap(50));
  await shot(page, "memory-flame-functions");
  await page.getByRole("button", { name: "By line" }).click();
  await shot(page, "memory-flame-lines");
  const sums = { peak: 27 * MIB, leaked: 16.5 * MIB, allocated: 35 * MIB, blocks: 2076, temporary: 8 * MIB };
  for (const [metric, sum] of Object.entries(sums)) {
    await choose(page, "Metric", metric);
    const result = await drawn(page);
    assert.equal(result.total, sum, metric);
    if (metric === "blocks") continue; // one block of two thousand is too narrow to be drawn
    const truth = collapsed(heap(50), metric);
    const functions = await page.evaluate(() => window.fathomTest.functions());
    const own = new Map();
    for (const { box, path } of await boxPaths(page, result)) {
      assert.ok(path !== undefined);
      if (box.self) own.set(box, functions[box.func]);
    }
    // By line a box is a line: its own number is that of the stack that ends there.
    const byLeaf = new Map();
    for (const [path, value] of truth) {
      const leaf = path.split(" ").pop() === "program>" ? "<before the program>" : path.split(" ").pop();
      byLeaf.set(leaf, (byLeaf.get(leaf) ?? 0) + value);
    }
    const mine = new Map();
    for (const [box, f] of own) {
      const leaf =
        f.kind === "root" ? "frame>" : f.at ? `${f.qualname}:${f.at}` : f.qualname.split(" ").pop();
      const key = f.qualname === "<before the program>" ? f.qualname : leaf;
      mine.set(key, (mine.get(key) ?? 0) + box.self);
    }
    assert.deepEqual([...mine].sort(), [...byLeaf].sort(), metric);
  }
  await choose(page, "Metric", "peak");
  await page.getByRole("button", { name: "By line" }).click();
  const boxes = (await drawn(page)).boxes.filter((b) => b.i >= 0);
  const value = (name) => boxes.filter((b) => b.name === name).reduce((a, b) => a + b.value, 0);
  assert.equal(value("rows"), 19 * MIB);
  assert.equal(value("<before the program>"), 2 * MIB);
  assert.equal(value("<inherited by fork>"), 5 * MIB);
});

test("tables, callers and call graph by memory", async (t) => {
  const page = await open(t, heap(), { hash: "view=table" });
  await shot(page, "memory-table");
  const rows = Object.fromEntries(
    (await drawn(page)).rows.map((r) => [r.name, [r.self / MIB, r.total / MIB]]),
  );
  assert.deepEqual(rows, {
    rows: [14, 19],
    parse: [5, 5],
    main: [0, 19],
    "<module>": [0, 19],
    "<before the program>": [2, 2],
    "<inherited by fork>": [5, 5],
  });
  await choose(page, "Metric", "blocks");
  const blocks = Object.fromEntries((await drawn(page)).rows.map((r) => [r.name, [r.self, r.total]]));
  assert.deepEqual(blocks["parse"], [1070, 1070]);
  assert.deepEqual(blocks["main"], [0, 1073]);
  assert.equal(blocks["<inherited by fork>"], undefined);
  await choose(page, "Metric", "peak");
  await page.keyboard.press("l");
  const lines = (await drawn(page)).rows;
  const functions = await page.evaluate(() => window.fathomTest.functions());
  assert.ok(functions.some((f) => f.name === "rows" && f.at === 2));
  // Recursion counts once: parse:10 has 3 MiB of its own and 1 MiB below itself.
  const ten = lines.find((r) => r.name === "parse" && r.self === 4 * MIB);
  assert.equal(ten.total, 4 * MIB);
  assert.equal(lines.length, 9);
  await shot(page, "memory-table-lines");
  await page.locator('#tabs [data-view="callers"]').click();
  await page.locator('#tabs [data-view="graph"]').click();
  await settle(page);
  await shot(page, "memory-graph");
  assert.ok((await drawn(page)).nodes.some((n) => n.name === "rows" && n.self === 14 * MIB));
});

test("lines of a file by memory", async (t) => {
  const page = await open(t, heap(50), { hash: "view=source" });
  await shot(page, "memory-source");
  const { lines, memory } = await drawn(page);
  const of = (list) => Object.fromEntries(list.map((n) => [n.line, [n.self / MIB, n.total / MIB]]));
  assert.deepEqual(of(lines), {
    2: [14, 14],
    5: [0, 5],
    9: [1, 1],
    10: [4, 4],
    13: [0, 11],
    14: [0, 8],
    16: [0, 19],
  });
  assert.deepEqual(of(memory.leaked)[2], [8, 8]);
  assert.deepEqual(of(memory.allocated)[9], [10, 10]);
  await choose(page, "Metric", "allocated");
  assert.deepEqual(of((await drawn(page)).lines)[5], [0, 17]);
  await page.setViewportSize({ width: 390, height: 844 });
  await shot(page, "memory-source-phone");
});

test("the curve, sizes, lifetimes, allocators and the lines at the peak", async (t) => {
  const page = await open(t, heap(), { hash: "view=memory" });
  await shot(page, "memory-light");
  const all = await drawn(page);
  assert.deepEqual(
    all.ns.map((t) => t / 1e9),
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
  );
  assert.deepEqual(
    all.curves.heap.map((v) => v / MIB),
    [2, 6, 10, 21, 25, 25, 27, 23, 20, 12, 11],
  );
  assert.deepEqual(
    all.curves.rss.map((v) => v / MIB),
    [12, 16, 20, 36, 40, 40, 42, 38, 35, 22, 21],
  );
  assert.equal(all.limit, 64 * MIB);
  assert.equal(all.peak, 6);
  assert.deepEqual(
    all.sizes.map((c) => [c.from, c.blocks]),
    [
      [1024, 1700],
      [1536, 373],
      [2 * MIB, 1],
      [4 * MIB, 1],
      [8 * MIB, 1],
    ],
  );
  assert.deepEqual(
    all.lives.map((c) => [c.from, c.to, c.blocks]),
    [
      [1, 2, 800],
      [4, 8, 1],
      [128, 256, 1100],
    ],
  );
  assert.deepEqual(
    all.kinds.map((c) => [c.bucket, c.blocks, c.bytes / MIB]),
    [
      [0, 2000, 18],
      [2, 76, 17],
    ],
  );
  assert.deepEqual(all.lines.slice(0, 2), [
    { name: "rows load.py:2", self: 14 * MIB, total: 14 * MIB },
    { name: "<inherited by fork>", self: 5 * MIB, total: 5 * MIB },
  ]);
  assert.match(all.text, /27\.0 MiB\s+at the peak of each process, added up, 306 blocks/);
  const figure = page.getByRole("slider", { name: "Memory over time" });
  assert.match(
    await figure.getAttribute("aria-valuetext"),
    /^peak, 6\.000 s: heap 27\.0 MiB, resident 42\.0 MiB$/,
  );
  const box = await figure.boundingBox();
  await page.mouse.move(box.x + box.width - 12, box.y + 40);
  assert.equal((await drawn(page)).at, 10);
  assert.match(await page.locator("#tip").innerText(), /heap\s+11\.0 MiB\s+17\.2 % of the limit/);
  await shot(page, "memory-hover");
  await page.mouse.move(5, 5);
  await figure.focus();
  await page.keyboard.press("ArrowLeft");
  assert.match(await figure.getAttribute("aria-valuetext"), /^5\.000 s: heap 25\.0 MiB/);
  await page.keyboard.press("Home");
  assert.match(await figure.getAttribute("aria-valuetext"), /^0: heap 2\.00 MiB/);
  await choose(page, "Scope", "p1");
  const child = await drawn(page);
  assert.deepEqual(
    child.curves.heap.map((v) => v / MIB),
    [7, 7, 7, 7, 7, 7],
  );
  assert.deepEqual([child.ns[0] / 1e9, child.kinds.length], [3, 1]);
});

test("from a line at the peak to its source, by memory also where time is the metric", async (t) => {
  const page = await open(t, heap(2000), { hash: "view=memory" });
  await page.getByRole("link", { name: "rows load.py:2" }).click();
  await settle(page);
  assert.deepEqual([(await state(page)).view, (await state(page)).metric], ["source", "peak"]);
  const { selected, lines } = await drawn(page);
  assert.equal(selected, 2);
  assert.equal(lines.find((n) => n.line === 2).self, 14 * MIB);
  await page.locator('#tabs [data-view="run"]').click();
  assert.match((await drawn(page)).text, /2,000 samples.*memory|memory; 2,000 samples/);
  assert.match((await drawn(page)).text, /1\.00 MiB of memory/);
});

for (const [name, width, height, theme] of [
  ["1024", 1024, 768, "light"],
  ["phone", 390, 844, "light"],
  ["phone", 390, 844, "dark"],
  ["wide", 1600, 900, "dark"],
])
  test(`memory fits: ${name}, ${theme}`, async (t) => {
    const page = await open(t, heap(50), { width, height, theme, hash: "view=memory" });
    const views = await page
      .locator("#tabs button")
      .evaluateAll((tabs) => tabs.map((tab) => tab.dataset.view));
    assert.ok(views.includes("memory"));
    await shot(page, `memory-${name}-${theme}`);
    for (const view of views) {
      await page.locator(`#tabs [data-view="${view}"]`).click();
      await settle(page);
      const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      assert.ok(over <= 0, `${view} is wider than the screen`);
    }
  });

test("two recordings of memory are compared by lines and functions", async (t) => {
  const page = await open(t, [heap(), heap(50)], { hash: "base=1&metric=allocated&view=table" });
  const rows = (await drawn(page)).rows;
  assert.equal(rows.find((r) => r.name === "rows").self, 14 * MIB);
  await page.locator('#tabs [data-view="source"]').click();
  const { rows: lines } = await drawn(page);
  assert.deepEqual([lines[8].now.self, lines[8].old.self], [10 * MIB, 10 * MIB]);
  await shot(page, "memory-diff-source");
});

test("a recording without memory has no view of it", async (t) => {
  const { orbits } = await import("./page.js");
  const page = await open(t, orbits());
  assert.equal(await page.locator('#tabs [data-view="memory"]').count(), 0);
  assert.equal(await page.getByRole("button", { name: "By line" }).count(), 0);
  assert.equal(await page.locator("optgroup").count(), 0);
});

test("sampled blocks: estimates, with their errors", async (t) => {
  const file = join(folder, "estimates.fathom");
  const code = "x = [bytes(1000) for _ in range(20000)]";
  run("run", "-q", "--memory=sampled:16K", "--seed", "1", "-o", file, "-c", code);
  const page = await open(t, file, { hash: "view=memory" });
  await settle(page);
  await shot(page, "memory-sampled");
  assert.match(await page.locator(".notice").first().innerText(), /^Blocks were sampled every 16\.0 KiB: /);
  assert.match(await page.locator(".card b").first().innerText(), /^[\d.]+ MiB ± [\d.]+ MiB$/);
  const heads = await page.getByRole("table", { name: "Lines at the peak" }).locator("th").allInnerTexts();
  assert.equal(heads[1], "±");
  const metrics = await (await open(t, file))
    .getByLabel("Metric", { exact: true })
    .evaluate((select) => [...select.querySelectorAll("option")].map((o) => o.textContent));
  assert.ok(metrics.includes("memory at the peak, estimated") && !metrics.some((m) => /error/.test(m)));
});

test("what several processes had together comes first, as in the terminal", async (t) => {
  const file = record("processes", "--memory", join(here, "programs/processes.py"));
  const { memory } = report(file, "--memory");
  assert.ok(memory.together_bytes > 20 * MIB && memory.together_bytes < 26 * MIB, String(memory.together_bytes));
  assert.ok(memory.peak_bytes > 32 * MIB);
  const page = await open(t, file, { hash: "view=memory" });
  const { text, lines } = await drawn(page);
  assert.match(text, /2\d\.\d MiB\s+all processes together at most, [\d,]+ blocks\s+[\d.]+ MiB\s+at the peak of each process, added up/);
  assert.match(text, /Lines that held the most when all processes had most/);
  const [most] = lines;
  assert.match(most.name, /^first processes\.py:/);
  assert.ok(most.self >= 20 * MIB && most.self < 20 * MIB + 200, String(most.self));
  assert.ok(!lines.some((l) => /^(second|child) /.test(l.name)), "they came later");
  await shot(page, "memory-together");
  await page.locator('#tabs [data-view="flame"]').click();
  const keys = await page.getByLabel("Metric", { exact: true }).locator("optgroup[label=Memory] option");
  assert.equal(await keys.first().getAttribute("value"), "together");
  await choose(page, "Metric", "together");
  assert.equal((await drawn(page)).total, memory.together_bytes);
  // One process has its own peak.
  const child = await open(t, file, { hash: "scope=p1&metric=peak" });
  const { total } = await drawn(child);
  assert.ok(total > 18 * MIB && total < 24 * MIB, String(total));
});
