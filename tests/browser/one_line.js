// What tests/behaviour/test_one_line.py asks of the page: a metric and a state that were each one line of the model
// are in its menu, tables, flame graph and colours. FATHOM and RECORDING are those of the tree with these lines.

import test from "node:test";
import assert from "node:assert/strict";
import { open, drawn, choose, shot, settle } from "./page.js";

const recording = process.env.RECORDING;
const KIB = 1024;
const OWN = { main: 1, f: 2, g: 7 };
const TOTAL = { main: 10, f: 5, g: 7 };

/** Widths of the boxes by path, as shares of the whole. */
async function shares(page) {
  const functions = await page.evaluate(() => window.fathomTest.functions());
  const { boxes } = await drawn(page);
  const whole = boxes.find((box) => functions[box.func].qualname === "main").w;
  return boxes
    .filter((box) => ["main", "f", "g"].includes(functions[box.func].qualname))
    .map((box) => [functions[box.func].qualname, Math.round((box.w / whole) * 10)])
    .sort();
}

test("the metric is in the menu, the flame graph and the numbers", async (t) => {
  const page = await open(t, recording, { hash: "view=flame" });
  const options = await page.getByLabel("Metric", { exact: true }).locator("option").allTextContents();
  assert.ok(options.includes("ping size"), String(options));
  assert.ok(options.includes("pondering"), String(options));
  await choose(page, "Metric", "pings");
  await shot(page, "one-line-flame");
  assert.deepEqual(await shares(page), [["f", 5], ["g", 3], ["g", 4], ["main", 10]]);
  assert.match(await page.locator("body").innerText(), /ping size 10\.0 KiB/);
  await choose(page, "Metric", "ponder");
  assert.deepEqual(await shares(page), [["f", 5], ["g", 3], ["g", 4], ["main", 10]]);
});

test("the metric has columns in the table, and can be sorted by", async (t) => {
  const page = await open(t, recording, { hash: "view=table" });
  await shot(page, "one-line-table");
  await page.getByRole("columnheader", { name: "total ping size" }).getByRole("button").click();
  const rows = (await drawn(page)).rows;
  assert.deepEqual(
    rows.map((r) => r.name),
    ["main", "g", "f"],
  );
  assert.match(await page.getByRole("grid", { name: "Functions" }).innerText(), /10\.0 KiB/);
  await choose(page, "Metric", "pings");
  for (const row of (await drawn(page)).rows) {
    assert.equal(row.self, OWN[row.name] * KIB);
    assert.equal(row.total, TOTAL[row.name] * KIB);
  }
  const bar = () => page.evaluate(() => getComputedStyle(document.querySelector(".bar i.self")).backgroundColor);
  assert.equal(await bar(), "rgb(17, 34, 51)"); // 0x112233
});

test("the state is in the states, with its title and colour", async (t) => {
  const page = await open(t, recording, { hash: "view=states" });
  await settle(page);
  const button = page.locator('button[data-state="ponder"]');
  assert.match(await button.innerText(), /pondering/);
  const color = await button.locator(".swatch").evaluate((node) => getComputedStyle(node).backgroundColor);
  assert.equal(color, "rgb(18, 52, 86)"); // 0x123456
  const at = await page.evaluate(() => window.fathomTest.summary().states.indexOf("ponder"));
  for (const row of (await drawn(page)).rows) assert.equal(row.states[at], OWN[row.name] * 1e6);
});
