import test from "node:test";
import assert from "node:assert/strict";
import { join } from "node:path";
import {
  open,
  orbits,
  orbitLines,
  contexts,
  folder,
  record,
  report,
  root,
  run,
  drawn,
  state,
  shot,
  settle,
  choose,
} from "./page.js";

/** Names can be equal; numbers then tell rows apart. */
const key = (f) => `${f.qualname ?? f.name} ${f.calls} ${f.self_ns ?? f.self} ${f.total_ns ?? f.total}`;

test("the function table is the report", async (t) => {
  const page = await open(t, orbits(), { hash: "view=table" });
  await shot(page, "functions-light");
  const rows = (await drawn(page)).rows;
  const truth = report(orbits(), "-n", "all").functions;
  assert.deepEqual(rows.map(key).sort(), truth.map(key).sort());
  const selfs = rows.map((r) => r.self);
  assert.deepEqual(
    selfs,
    [...selfs].sort((a, b) => b - a),
  );
});

test("time is divided by calls only where they were counted", async (t) => {
  const all = join(folder, "mixed.fathom");
  run("merge", orbits(), record("orbits-sampled", "--sample", join(root, "tests/programs/orbits.py")), "-o", all);
  // The first process is the one with calls.
  for (const [scope, columns] of [["all", 0], ["p0", 1]]) {
    const page = await open(t, all, { hash: `view=table&scope=${scope}` });
    assert.ok((await drawn(page)).rows.some((r) => r.calls > 0));
    assert.equal(await page.getByRole("columnheader", { name: "per call" }).count(), columns, scope);
  }
});

test("sorting, by mouse and for a screen reader", async (t) => {
  const page = await open(t, orbits(), { hash: "view=table" });
  await page.getByRole("columnheader", { name: "calls" }).getByRole("button").click();
  const calls = (await drawn(page)).rows.map((r) => r.calls);
  assert.deepEqual(
    calls,
    [...calls].sort((a, b) => b - a),
  );
  assert.equal(
    await page.getByRole("columnheader", { name: "calls" }).first().getAttribute("aria-sort"),
    "descending",
  );
  await page.getByRole("columnheader", { name: "calls" }).first().getByRole("button").click();
  assert.equal((await drawn(page)).rows[0].calls, Math.min(...calls));
  assert.equal(
    await page.getByRole("grid", { name: "Functions" }).getAttribute("aria-rowcount"),
    String(calls.length),
  );
});

test("keys in the table, selection in all views", async (t) => {
  const page = await open(t, orbits(), { hash: "view=table" });
  await page.getByRole("grid", { name: "Functions" }).focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowDown");
  const second = (await drawn(page)).rows[1].name;
  const functions = await page.evaluate(() => window.fathomTest.functions());
  assert.equal(functions[(await state(page)).f].qualname, second);
  await page.keyboard.press("Enter");
  assert.equal((await drawn(page)).func, second);
  await page.keyboard.press("1");
  assert.equal((await state(page)).view, "flame");
  assert.equal(functions[(await state(page)).f].qualname, second);
});

test("search narrows the table", async (t) => {
  const page = await open(t, orbits(), { hash: "view=table&q=^Body[.]" });
  const rows = (await drawn(page)).rows;
  assert.deepEqual([...new Set(rows.map((r) => r.name))].sort(), [
    "Body.__init__",
    "Body.distance",
    "Body.move",
  ]);
});

test("callers and callees are those of the report", async (t) => {
  const page = await open(t, orbits(), { hash: "view=table&q=^accelerate$" });
  await page.locator(".rows .row").first().click();
  await page.keyboard.press("c");
  await shot(page, "callers-light");
  const result = await drawn(page);
  assert.equal(result.func, "accelerate");
  const same = (mine, theirs) =>
    assert.deepEqual(
      mine.map((e) => `${e.name} ${e.calls} ${e.total}`).sort(),
      theirs.map((e) => `${e.qualname} ${e.calls} ${e.total_ns}`).sort(),
    );
  same(result.callers, report(orbits(), "--callers=accelerate", "--edges", "all").functions[0].callers);
  same(result.callees, report(orbits(), "--callees=accelerate", "--edges", "all").functions[0].callees);
  await page.locator(".butterfly section").first().locator(".row").first().click();
  assert.equal((await drawn(page)).func, result.callers[0].name);
});

test("callers and callees as flame graphs", async (t) => {
  const page = await open(t, orbits(), { hash: "view=table&q=^accelerate$" });
  await page.locator(".rows .row").first().click();
  await page.keyboard.press("c");
  await page.getByRole("button", { name: "Flames" }).click();
  await shot(page, "callers-flames");
  const [up, down] = (await drawn(page)).flames;
  const truth = report(orbits(), "-n", "all").functions.find((f) => f.qualname === "accelerate");
  for (const side of [up, down])
    assert.deepEqual([side[1].name, side[1].value], ["accelerate", truth.total_ns]);
  const wrapper = report(orbits(), "--callers=accelerate").functions[0].callers[0];
  assert.deepEqual([up[2].name, up[2].value], [wrapper.qualname, wrapper.total_ns]);
  const sums = new Map();
  for (const box of down.filter((b) => b.depth === 2)) sums.set(box.name, box.value);
  for (const edge of report(orbits(), "--callees=accelerate", "--edges", "all").functions[0].callees)
    assert.equal(sums.get(edge.qualname), edge.total_ns, edge.qualname);
});

test("the tree opens and has the numbers of contexts", async (t) => {
  const page = await open(t, orbits(), { hash: "view=tree" });
  await shot(page, "tree-light");
  const truth = contexts(orbits());
  const top = [...truth].filter(([path]) => path.split("\n").length === 2);
  const rows = (await drawn(page)).rows;
  const heaviest = top.sort((a, b) => b[1].total - a[1].total)[0][1];
  assert.deepEqual([rows[0].value, rows[0].self], [heaviest.total, heaviest.self]);
  const closed = rows.findIndex((r) => !r.open && r.level === 0);
  await page.getByRole("treegrid").focus();
  await page.keyboard.press("Home");
  for (let i = 0; i < closed; i++) await page.keyboard.press("ArrowDown");
  const before = rows.length;
  await page.keyboard.press("ArrowRight");
  assert.ok((await drawn(page)).rows.length >= before);
});

test("bottom-up begins with self time", async (t) => {
  const page = await open(t, orbits(), { hash: "view=bottomup" });
  const rows = (await drawn(page)).rows.filter((r) => r.level === 0);
  const truth = new Map(report(orbits(), "-n", "all").functions.map((f) => [f.qualname, f.self_ns]));
  for (const row of rows.slice(0, 8)) assert.equal(row.value, truth.get(row.name), row.name);
});

test("lines stand beside their source, and a frame leads to its line", async (t) => {
  const page = await open(t, orbitLines(), { hash: "view=table&q=^simulate$" });
  await page.locator(".rows .row").first().click();
  await page.keyboard.press("s");
  await shot(page, "source-light");
  const result = await drawn(page);
  assert.match(result.file, /orbits\.py$/);
  assert.match(result.text[result.selected - 1], /def simulate/);
  const lines = report(orbitLines(), "--lines", "-n", "all")
    .functions.filter((f) => f.file === result.file)
    .flatMap((f) => f.lines);
  assert.ok(lines.length > 10);
  const truth = new Map();
  for (const line of lines) truth.set(line.line, (truth.get(line.line) ?? 0) + (line.hits ?? 0));
  for (const line of result.lines) assert.equal(line.hits, truth.get(line.line), `hits of line ${line.line}`);
});

test("the call graph has nodes and edges of the table", async (t) => {
  const page = await open(t, orbits(), { hash: "view=graph&nodeCut=0&edgeCut=0" });
  await shot(page, "graph-light");
  const graph = await drawn(page);
  const truth = new Map(
    report(orbits(), "-n", "all").functions.map((f) => [`${f.qualname} ${f.self_ns}`, f]),
  );
  assert.ok(graph.nodes.length > 10);
  for (const node of graph.nodes)
    assert.equal(node.total, truth.get(`${node.name} ${node.self}`)?.total_ns, node.name);
  const edge = graph.edges.find((e) => e.to === "accelerate");
  const caller = report(orbits(), "--callers=accelerate").functions[0].callers[0];
  assert.deepEqual([edge.from, edge.total, edge.calls], [caller.qualname, caller.total_ns, caller.calls]);
  const box = graph.nodes.find((n) => n.name === "accelerate");
  await page.getByRole("button", { name: "Fit" }).click();
  const again = (await drawn(page)).nodes.find((n) => n.name === "accelerate");
  await page.mouse.click(again.x, again.y);
  await settle(page);
  assert.match(await page.locator("#details h2").innerText(), /accelerate/);
  assert.ok(box);
  await choose(page, "Nodes", "10");
  const fewer = await drawn(page);
  const sum = report(orbits()).self_ns;
  assert.ok(fewer.nodes.length < graph.nodes.length && fewer.nodes.every((n) => n.total >= 0.1 * sum));
});

test("the run page says what ran", async (t) => {
  const page = await open(t, orbits(), { hash: "view=run" });
  await shot(page, "run-light");
  const text = (await drawn(page)).text;
  assert.match(text, /orbits\.py/);
  assert.match(text, /second system/);
  for (const { process } of report(orbits(), "--threads").threads)
    assert.match(text, new RegExp(String(process)));
  assert.match(run("--version"), /\d/);
});
