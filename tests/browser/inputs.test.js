import test from "node:test";
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import {
  open,
  orbits,
  orbitLines,
  record,
  run,
  report,
  drawn,
  state,
  settle,
  shot,
  folder,
  root,
} from "./page.js";

/** A file made of another by the command. */
function converted(from, name) {
  const out = join(folder, name);
  if (!existsSync(out)) run("convert", from, "-o", out);
  return out;
}

test("the tooltip has the numbers of the box under the pointer", async (t) => {
  const page = await open(t, orbits());
  const box = (await drawn(page)).boxes.find((b) => b.name === "accelerate");
  await page.mouse.move(box.x + box.w / 2, box.y + box.h / 2);
  await settle(page);
  await shot(page, "flame-tooltip");
  const text = await page.locator("#tip").innerText();
  assert.match(text, /^accelerate\n.*orbits\.py:37/);
  const milliseconds = (ns) => (ns / 1e6).toFixed(ns < 99.95e6 ? 1 : 0);
  assert.ok(text.includes(milliseconds(box.value)), text);
  assert.ok(text.includes(milliseconds(box.self)), text);
  await page.mouse.click(box.x + box.w / 2, box.y + box.h / 2, { button: "right" });
  await shot(page, "flame-menu");
  await page.getByRole("menuitem", { name: "Source" }).click();
  assert.equal((await state(page)).view, "source");
  const result = await drawn(page);
  assert.match(result.text[result.selected], /def accelerate/);
});

test("a link leads to the same state", async (t) => {
  const page = await open(t, orbits());
  const box = (await drawn(page)).boxes.find((b) => b.name === "simulate");
  await page.mouse.click(box.x + box.w / 2, box.y + box.h / 2);
  await page.getByRole("button", { name: "My code" }).click();
  await page.keyboard.press("i");
  const [before, picture] = [await state(page), await drawn(page)];
  const again = await open(t, orbits(), { hash: new URL(page.url()).hash.slice(1) });
  assert.deepEqual(await state(again), before);
  assert.deepEqual(
    (await drawn(again)).boxes.map((b) => [b.name, b.value]),
    picture.boxes.map((b) => [b.name, b.value]),
  );
});

test("threads apart, each with its own tree", async (t) => {
  const page = await open(t, orbits());
  await page.getByRole("button", { name: "Threads apart" }).click();
  const top = (await drawn(page)).boxes.filter((b) => b.row === 1);
  const tree = report(orbits(), "--tree", "--min", "0").tree.filter((row) => row.parent === null);
  assert.deepEqual(top.map((b) => b.value).sort(), tree.map((row) => row.total_ns).sort());
});

test("an address that means nothing is answered in words", async (t) => {
  const page = await open(t, orbits(), { hash: "root=no_such_function_at_all" });
  assert.ok(await drawn(page));
  await page.evaluate(() => {
    location.hash = "scope=t999&n=123456789&view=nothing&f=99999999&x0=7";
  });
  await settle(page);
  await page.locator("#tabs button").first().click();
  await settle(page);
  const again = page.getByRole("button", { name: "Show everything again" });
  if (await again.count()) await again.click();
  await page.keyboard.press("0");
  await page.evaluate(() => {
    location.hash = "";
  });
  assert.ok((await drawn(page)).total > 0);
});

test("fifty thousand functions: only rows in sight exist", async (t) => {
  const pstats = join(folder, "large.prof");
  execFileSync("python3", [join(root, "bench/large_pstats.py"), "50000", pstats]);
  const page = await open(t, pstats, { hash: "view=table" });
  let result = await drawn(page);
  assert.equal(result.count, 50000);
  assert.ok(result.elements < 100, `${result.elements} rows`);
  await page.getByRole("grid", { name: "Functions" }).focus();
  await page.keyboard.press("End");
  result = await drawn(page);
  assert.ok(result.elements < 100);
  assert.equal(await page.locator('.row[aria-selected="true"]').getAttribute("aria-rowindex"), "50000");
  assert.match(await page.locator("#status").innerText(), /estimated/);
});

test("a profile of lines alone shows its lines", async (t) => {
  const page = await open(t, converted(orbitLines(), "lines.lprof"));
  await shot(page, "lprof");
  const result = await drawn(page);
  const truth = new Map();
  for (const f of report(orbitLines(), "--lines", "-n", "all").functions)
    if (f.file === result.file)
      for (const line of f.lines) truth.set(line.line, (truth.get(line.line) ?? 0) + line.hits);
  assert.ok(result.lines.length > 10);
  for (const line of result.lines) assert.equal(line.hits, truth.get(line.line), `line ${line.line}`);
});

test("an empty recording is called empty", async (t) => {
  const page = await open(t, record("empty", "--calls", "--", "true"));
  assert.match(await page.locator("#opening").innerText(), /empty/);
});
