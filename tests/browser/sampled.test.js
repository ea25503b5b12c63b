import test from "node:test";
import assert from "node:assert/strict";
import { open, waits, report, drawn, shot, choose } from "./page.js";

test("states and waits of a sampled program", async (t) => {
  const page = await open(t, waits(), { hash: "view=states" });
  await shot(page, "states-light");
  const result = await drawn(page);
  const truth = report(waits(), "--states", "-n", "all");
  const names = await page.evaluate(() => window.fathomTest.summary().states);
  const rows = truth.functions;
  for (const f of rows) {
    const mine = result.rows.find((r) => r.name === f.qualname && Math.abs(r.own - f.self_ns) < 1);
    if (!f.self_ns) continue;
    assert.ok(mine, f.qualname);
    names.forEach((name, k) => assert.equal(mine.states[k], f.states_ns[name], `${f.qualname} ${name}`));
  }
  await page.keyboard.press("1");
  await choose(page, "Colour", "state");
  await shot(page, "flame-states");
  // One denominator: the picture's width is the time that shares of the report are of.
  assert.equal((await drawn(page)).total, truth.self_ns);
  await page.locator('#tabs [data-view="waits"]').click();
  await shot(page, "waits-light");
  const { waits: listed, places } = await drawn(page);
  const named = report(waits(), "--waits", "-n", "all").waits;
  assert.equal(listed.length, named.length);
  // One row for each place and state, with the sum of what it waited for.
  const sums = new Map();
  for (const wait of named) {
    const key = `${wait.function.qualname} ${wait.at_line} ${wait.state}`;
    sums.set(key, (sums.get(key) ?? 0) + wait.ns);
  }
  assert.deepEqual(
    places.map((place) => place.ns),
    [...sums.values()].sort((a, b) => b - a),
  );
  assert.equal(await page.getByRole("table", { name: "Waits" }).locator("tbody tr").count(), places.length);
  await page.locator('#tabs [data-view="run"]').click();
  assert.match((await drawn(page)).text, /samples/);
});
