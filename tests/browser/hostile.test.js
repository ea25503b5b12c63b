import test from "node:test";
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { open, hostile, drawn, settle, shot, report } from "./page.js";

test("hostile names are text in every view", async (t) => {
  const page = await open(t, hostile());
  const names = report(hostile(), "-n", "all").functions.map((f) => f.qualname);
  assert.ok(names.some((n) => n.startsWith("<script>")) && names.some((n) => n.length >= 10_000));
  const views = await page.locator("#tabs button").evaluateAll((tabs) => tabs.map((tab) => tab.dataset.view));
  for (const view of views) {
    await page.locator(`#tabs [data-view="${view}"]`).click();
    await settle(page);
    await shot(page, `hostile-${view}`);
    assert.ok(await drawn(page), view);
    assert.equal(await page.locator("img, iframe, object, #app script").count(), 0, view);
    const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(wide <= 0, `${view} is wider than the window`);
  }
  await page.locator('#tabs [data-view="table"]').click();
  for (let i = 0; i < 8; i++) {
    await page.locator(".rows .row").nth(i).click();
    await settle(page);
  }
  await page.locator('#tabs [data-view="table"]').click();
  const text = await page.locator(".rows").innerText();
  assert.ok(text.includes("<script>window.stolen = 1</script>"));
  assert.ok(!text.includes("\u202e") && text.includes("\\u202e"), "marks that turn text round are spelled");
  assert.equal(await page.evaluate(() => window.stolen), undefined);
  assert.deepEqual(page.troubles, []);
});

test("the exported picture is well-formed and inert", async (t) => {
  const page = await open(t, hostile());
  for (const view of ["flame", "sunburst", "graph"]) {
    await page.locator(`#tabs [data-view="${view}"]`).click();
    await settle(page);
    await page.getByRole("button", { name: "Save or copy" }).click();
    const [file] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("menuitem", { name: "Picture as SVG" }).click(),
    ]);
    const svg = readFileSync(await file.path(), "utf8");
    const parsed = await page.evaluate((text) => {
      const doc = new DOMParser().parseFromString(text, "image/svg+xml");
      return {
        wrong: doc.querySelectorAll("parsererror, script, foreignObject, image").length,
        texts: doc.querySelectorAll("text").length,
        on: [...doc.querySelectorAll("*")].some((e) =>
          [...e.attributes].some((a) => a.name.startsWith("on")),
        ),
      };
    }, svg);
    assert.deepEqual([parsed.wrong, parsed.on], [0, false], view);
    assert.ok(parsed.texts > 0, view);
  }
  await page.getByRole("button", { name: "Save or copy" }).click();
  const [png] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("menuitem", { name: "Picture as PNG" }).click(),
  ]);
  assert.equal(
    readFileSync(await png.path())
      .subarray(1, 4)
      .toString(),
    "PNG",
  );
});
