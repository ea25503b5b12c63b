import test from "node:test";
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { open, orbits, waits, drawn, settle, shot, state, fathom, folder, reportFile } from "./page.js";

for (const [name, size] of Object.entries({
  phone: { width: 390, height: 844 },
  small: { width: 1280, height: 720 },
})) {
  for (const theme of ["light", "dark"]) {
    test(`every view fits: ${name}, ${theme}`, async (t) => {
      const page = await open(t, waits(), { ...size, theme });
      const views = await page
        .locator("#tabs button")
        .evaluateAll((tabs) => tabs.map((tab) => tab.dataset.view));
      assert.ok(views.length >= 10);
      for (const view of views) {
        await page.locator(`#tabs [data-view="${view}"]`).click();
        await settle(page);
        await shot(page, `${view}-${name}-${theme}`);
        assert.ok(
          (await page.evaluate(() => document.documentElement.scrollWidth - innerWidth)) <= 0,
          `${view} is wider than the screen`,
        );
        const box = await page.locator("#view").boundingBox();
        assert.ok(box.height > size.height * 0.4, `${view} has room`);
      }
      const paper = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      assert.equal(paper === "rgb(255, 255, 255)", theme === "light");
    });
  }
}

test("dark and light by key, help, tap on a phone", async (t) => {
  const page = await open(t, orbits(), { width: 390, height: 844 });
  await page.keyboard.press("d");
  assert.equal(await page.evaluate(() => document.documentElement.dataset.theme), "dark");
  await page.keyboard.press("?");
  assert.ok(await page.locator("dialog[open]").isVisible());
  await page.keyboard.press("Escape");
  const box = (await drawn(page)).boxes.find((b) => b.name === "simulate");
  await page.touchscreen.tap(box.x + box.w / 2, box.y + box.h / 2);
  assert.equal((await drawn(page)).total, box.value);
  assert.ok((await state(page)).n > 0);
});

test("without WebAssembly the page says so", async (t) => {
  const page = await open(t, orbits(), { init: "delete window.WebAssembly" });
  assert.match(await page.locator("#opening").innerText(), /no WebAssembly/);
});

test("a damaged recording is refused in words", async (t) => {
  const text = readFileSync(reportFile(orbits()), "latin1");
  const at = text.lastIndexOf('data-kind="recording"');
  const start = text.indexOf(">", at) + 1;
  writeFileSync(
    join(folder, "broken.html"),
    text.slice(0, start + 40) + text.slice(text.indexOf("</script>", start)),
    "latin1",
  );
  const page = await open(t, [], { url: `file://${join(folder, "broken.html")}` });
  const shown = await page.locator("#opening").innerText();
  assert.match(shown, /cannot be opened/);
  assert.match(shown, /damaged/);
});

test("the served page shows the same", async (t) => {
  const server = spawn(fathom, ["view", "--no-browser", orbits()], { stdio: ["ignore", "pipe", "pipe"] });
  t.after(() => server.kill("SIGINT"));
  const url = await new Promise((done, fail) => {
    let said = "";
    const hear = (data) => {
      said += data;
      const found = /http:\/\/127\.0\.0\.1:\d+\/\S*/.exec(said);
      if (found) done(found[0]);
    };
    server.stdout.on("data", hear);
    server.stderr.on("data", hear);
    server.on("exit", () => fail(new Error(`fathom view ended: ${said}`)));
  });
  const page = await open(t, [], { url });
  const served = await drawn(page);
  const offline = await drawn(await open(t, orbits()));
  assert.equal(served.total, offline.total);
  assert.equal(served.boxes.length, offline.boxes.length);
});
