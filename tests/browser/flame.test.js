import test from "node:test";
import assert from "node:assert/strict";
import {
  open,
  orbits,
  contexts,
  report,
  drawn,
  boxPaths,
  clickBox,
  choose,
  state,
  shot,
  settle,
} from "./page.js";

test("every box has the numbers of its context", async (t) => {
  const page = await open(t, orbits());
  await shot(page, "flame-light");
  const result = await drawn(page);
  const truth = contexts(orbits());
  const boxes = await boxPaths(page, result);
  assert.ok(boxes.length > 10);
  for (const { path, box } of boxes) {
    assert.ok(truth.has(path), `no context ${path}`);
    assert.equal(box.value, truth.get(path).total, path);
    assert.equal(box.self, truth.get(path).self, path);
  }
  const sum = truth.get("").total;
  assert.equal(result.total, sum);
  // Every context that is at least a pixel wide is there.
  const shown = new Set(boxes.map(({ path }) => path));
  for (const [path, { total }] of truth)
    if (total / sum > 1 / 900) assert.ok(shown.has(path), `missing ${path}`);
});

test("a click zooms, crumbs and history lead back", async (t) => {
  const page = await open(t, orbits());
  const before = await drawn(page);
  const box = before.boxes.find((b) => b.name === "simulate");
  await clickBox(page, box);
  const after = await drawn(page);
  const zoomed = after.boxes.find((b) => b.i === 0);
  assert.equal(zoomed.name, "simulate");
  assert.ok(Math.abs(zoomed.w - before.boxes[0].w) < 2, "it is as wide as everything was");
  assert.equal(after.total, box.value);
  assert.match(await page.locator(".crumbs").innerText(), /main/);
  assert.match(await page.locator("#details h2").innerText(), /simulate/);
  await shot(page, "flame-zoomed");
  await page.goBack();
  assert.equal((await drawn(page)).total, before.total);
  await page.goForward();
  assert.equal((await drawn(page)).total, box.value);
  await page.locator(".crumbs button").first().click();
  assert.equal((await drawn(page)).total, before.total);
});

test("the wheel zooms around the pointer, keys move and zoom", async (t) => {
  const page = await open(t, orbits());
  const before = await drawn(page);
  await page.mouse.move(300, 250);
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, -400);
  await page.keyboard.up("Control");
  await settle(page);
  const { x0, x1 } = await state(page);
  assert.ok(x1 - x0 < 0.9 && x0 > 0);
  await page.keyboard.press("Escape");
  assert.deepEqual([(await state(page)).x0, (await state(page)).x1], [0, 1]);
  await page.locator(".canvas").focus();
  for (const key of ["ArrowDown", "ArrowDown", "Enter"]) await page.keyboard.press(key);
  const after = await drawn(page);
  const deepest = before.boxes.filter((b) => b.row === 1).sort((a, b) => b.value - a.value)[0];
  assert.equal(after.total, deepest.value);
  await page.keyboard.press("Escape");
  assert.equal((await drawn(page)).total, before.total);
});

test("depth and cut-off", async (t) => {
  const page = await open(t, orbits());
  await choose(page, "Depth", "3");
  let result = await drawn(page);
  assert.equal(Math.max(...result.boxes.map((b) => b.row)), 3);
  await choose(page, "Depth", "0");
  await choose(page, "Cut-off", "5");
  result = await drawn(page);
  assert.ok(result.boxes.every((b) => b.value >= 0.05 * result.total));
});

test("search marks and says the share", async (t) => {
  const page = await open(t, orbits());
  await page.keyboard.press("/");
  await page.keyboard.type("^(distance|.*[.]move)$");
  await settle(page);
  let part = 0;
  for (const [path, { name, total }] of contexts(orbits())) {
    const hit = (line) => /^(Body\.distance|Body\.move) /.test(line);
    if (path.split("\n").slice(0, -1).some(hit)) continue;
    if (name === "Body.distance" || name === "Body.move") part += total;
  }
  const whole = contexts(orbits()).get("").total;
  const shown = await page.locator(".search output").innerText();
  assert.ok(
    Math.abs(parseFloat(shown) - (part / whole) * 100) < 0.06,
    `${shown} is not ${(part / whole) * 100}`,
  );
  await shot(page, "flame-search");
  await page.locator("#search").fill("(");
  assert.equal(await page.locator(".search output").innerText(), "not a regex");
  await page.locator("#search").press("Escape");
  assert.equal((await state(page)).q, "");
});

test("metric and thread", async (t) => {
  const page = await open(t, orbits());
  await choose(page, "Metric", "calls");
  const calls = await drawn(page);
  assert.equal(calls.total, report(orbits()).calls);
  await choose(page, "Metric", "total");
  const thread = report(orbits(), "--threads").threads.findIndex((x) => x.name === "second system");
  await choose(page, "Scope", `t${thread}`);
  const tid = String(report(orbits(), "--threads").threads[thread].thread);
  assert.equal((await drawn(page)).total, contexts(orbits(), "--thread", tid).get("").total);
});

test("re-root and hide give what report gives", async (t) => {
  const page = await open(t, orbits());
  await clickBox(
    page,
    (await drawn(page)).boxes.find((b) => b.name === "accelerate"),
  );
  await page.keyboard.press("0");
  await page.keyboard.press("r");
  const rooted = contexts(orbits(), "--root", "accelerate");
  assert.equal((await drawn(page)).total, rooted.get("").total);
  assert.match(await page.locator("#tools").innerText(), /root: accelerate/);
  await page.keyboard.press("x");
  await page.keyboard.press("h");
  const folded = contexts(orbits(), "--fold", "accelerate");
  for (const { path, box } of await boxPaths(page, await drawn(page))) {
    assert.equal(box.value, folded.get(path)?.total, path);
    assert.equal(box.self, folded.get(path)?.self, path);
  }
});

test("only my code leaves no library", async (t) => {
  const page = await open(t, orbits());
  const whole = (await drawn(page)).total;
  await page.getByRole("button", { name: "My code" }).click();
  const result = await drawn(page);
  const functions = await page.evaluate(() => window.fathomTest.functions());
  assert.equal(result.total, whole);
  for (const box of result.boxes) assert.ok(!functions[box.func].library, box.name);
  await page.getByRole("button", { name: "By module" }).click();
  assert.ok((await drawn(page)).boxes.length > 0);
});

test("flame and sunburst draw the same shares", async (t) => {
  const page = await open(t, orbits(), { hash: "view=sunburst" });
  const round = await drawn(page);
  await shot(page, "sunburst-light");
  const truth = contexts(orbits());
  const whole = truth.get("").total;
  assert.equal(round.total, whole);
  for (const box of round.boxes) assert.ok(Math.abs(box.share - box.value / whole) < 1e-9);
  const target = round.boxes.find((b) => b.name === "simulate");
  await page.mouse.click(target.x, target.y);
  assert.equal((await drawn(page)).total, target.value);
  await page.keyboard.press("Escape");
  assert.notEqual((await drawn(page)).total, target.value);
});

test("sunburst and call graph by keyboard", async (t) => {
  const page = await open(t, orbits(), { hash: "view=sunburst" });
  const { boxes } = await drawn(page);
  const functions = await page.evaluate(() => window.fathomTest.functions());
  const selected = async () => functions[(await state(page)).f]?.qualname;
  await page.keyboard.press("ArrowUp");
  await page.keyboard.press("ArrowUp");
  assert.equal(await selected(), boxes.find((b) => b.depth === 1).name);
  await page.keyboard.press("ArrowUp");
  assert.equal(await selected(), boxes.find((b) => b.depth === 2).name);
  await page.keyboard.press("Enter");
  const zoomed = await drawn(page);
  assert.equal(zoomed.boxes[0].name, boxes.find((b) => b.depth === 2).name);
  assert.equal(zoomed.total, boxes.find((b) => b.depth === 2).value);
  await page.goto(page.url().replace(/#.*/, "#view=graph"));
  await settle(page);
  const { nodes, edges } = await drawn(page);
  const heaviest = Math.max(...nodes.map((n) => n.total));
  await page.keyboard.press("ArrowDown");
  const first = await selected();
  assert.ok(nodes.some((n) => n.name === first && n.total === heaviest));
  await page.keyboard.press("ArrowDown");
  const below = nodes.find((n) => n.name === first);
  const next = await selected();
  assert.ok(
    nodes.some((n) => n.name === next && n.y > below.y),
    `${next} is below ${first}`,
  );
  await page.keyboard.press("Shift+ArrowLeft");
  assert.equal(await selected(), next, "Shift moves the picture only");
  assert.ok(edges.length > 0);
});
