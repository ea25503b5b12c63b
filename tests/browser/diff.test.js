import test from "node:test";
import assert from "node:assert/strict";
import { open, run, shop, report, contexts, drawn, boxPaths, choose, shot, settle } from "./page.js";

const before = () => shop("before", "400");
const after = () => shop("after", "400", "slow");

test("two recordings are compared in every view", async (t) => {
  const page = await open(t, [after(), before()]);
  await choose(page, "Against", "1");
  await page.waitForFunction(() => window.fathomTest.drawn().boxes.some((b) => b.base > 0));
  await shot(page, "diff-flame");
  const [now, then] = [contexts(after()), contexts(before())];
  for (const { path, box } of await boxPaths(page, await drawn(page))) {
    assert.equal(box.value, now.get(path)?.total ?? 0, path);
    assert.equal(box.base, then.get(path)?.total ?? 0, path);
  }
  const tree = JSON.parse(run("diff", "--tree", "--json", "--min", "0", before(), after())).tree;
  const paths = [];
  for (const step of tree) {
    paths[step.depth] = step.depth ? `${paths[step.depth - 1]}\n${step.qualname} ${step.file}:${step.line}` : "";
    const path = paths[step.depth];
    assert.equal(step.now_total_ns, now.get(path)?.total ?? 0, `fathom diff: ${path}`);
    assert.equal(step.before_total_ns, then.get(path)?.total ?? 0, `fathom diff: ${path}`);
  }
  assert.ok(tree.length > 5);
  await page.keyboard.press("2");
  await shot(page, "diff-functions");
  const rows = (await drawn(page)).rows;
  const self = (file) => new Map(report(file, "-n", "all").functions.map((f) => [f.qualname, f.self_ns]));
  const [old, fresh] = [self(before()), self(after())];
  const change = (name) => (fresh.get(name) ?? 0) - (old.get(name) ?? 0);
  // On an idle machine that is `price`; on a busy one sleep may be longer by more.
  const most = [...fresh.keys()].reduce((a, b) => (change(b) > change(a) ? b : a));
  assert.equal(rows[0].name, most, "what grew most comes first");
  assert.ok(change("price") > 0 && rows.some((row) => row.name === "price"));
  assert.equal(await page.locator(".rows .row").first().locator(".more").count(), 2);
  await page.getByRole("button", { name: "Relative" }).click();
  assert.match(await page.locator(".rows .row").first().innerText(), /%|new/);
  for (const view of ["callers", "tree", "bottomup", "graph", "sunburst"]) {
    await page.locator(`#tabs [data-view="${view}"]`).click();
    await settle(page);
    await shot(page, `diff-${view}`);
    assert.ok(await drawn(page));
  }
  assert.deepEqual(page.troubles, []);
});
