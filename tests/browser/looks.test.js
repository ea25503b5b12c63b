import test from "node:test";
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { modulePalette } from "../../viewer/page/parts/colors.js";
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

test("by keyboard alone: what has the focus is seen, and everything has a name", async (t) => {
  const page = await open(t, waits());
  const views = await page.locator("#tabs button").evaluateAll((tabs) => tabs.map((tab) => tab.dataset.view));
  for (const view of views) {
    await page.locator(`#tabs [data-view="${view}"]`).click();
    await settle(page);
    const nameless = await page.evaluate(() => {
      const named = (/** @type {Element} */ e) =>
        e.getAttribute("aria-label") ||
        e.getAttribute("title") ||
        e.textContent.trim() ||
        e.labels?.[0]?.textContent;
      const all = [
        ...document.querySelectorAll(
          "button, select, input, a, table, [role=grid], [role=treegrid], [role=img]",
        ),
      ];
      return all
        .filter((e) => (e.matches("table, [role]") ? !e.getAttribute("aria-label") : !named(e)))
        .filter(
          (e) =>
            !e.closest("[aria-hidden=true]") && !(e.tagName === "TABLE" && e.querySelector("th[scope=row]")),
        )
        .map((e) => e.outerHTML.slice(0, 120));
    });
    assert.deepEqual(nameless, [], view);
    let stops = 0;
    for (let i = 0; i < 60; i++) {
      await page.keyboard.press("Tab");
      const focus = await page.evaluate(() => {
        const e = document.activeElement;
        if (!e || e === document.body) return null;
        const { outlineStyle, outlineWidth } = getComputedStyle(e);
        return {
          seen: outlineStyle !== "none" && parseFloat(outlineWidth) >= 1,
          what: e.outerHTML.slice(0, 120),
        };
      });
      if (!focus) break;
      stops++;
      assert.ok(focus.seen, `${view}: the focus is not seen on ${focus.what}`);
    }
    assert.ok(stops > 3, view);
  }
});

/** How colours look without one kind of cone (Machado and others, 2009), in linear RGB. */
const SIGHT = {
  normal: [1, 0, 0, 0, 1, 0, 0, 0, 1],
  deutan: [0.367322, 0.860646, -0.227968, 0.280085, 0.672501, 0.047413, -0.01182, 0.04294, 0.968881],
  protan: [0.152286, 1.052583, -0.204868, 0.114503, 0.786281, 0.099216, -0.003882, -0.048116, 1.051998],
};

/** CIE Lab of a colour "r,g,b" as it looks. */
function lab(color, sight) {
  const linear = color
    .split(",")
    .map((c) => Number(c) / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  const m = SIGHT[sight];
  const [r, g, b] = [0, 3, 6].map((k) =>
    Math.min(1, Math.max(0, m[k] * linear[0] + m[k + 1] * linear[1] + m[k + 2] * linear[2])),
  );
  const f = (t) => (t > 0.008856 ? Math.cbrt(t) : 7.787 * t + 16 / 116);
  const x = f((0.4124 * r + 0.3576 * g + 0.1805 * b) / 0.95047);
  const y = f(0.2126 * r + 0.7152 * g + 0.0722 * b);
  const z = f((0.0193 * r + 0.1192 * g + 0.9505 * b) / 1.08883);
  return [116 * y - 16, 500 * (x - y), 200 * (y - z)];
}

for (const theme of ["light", "dark"]) {
  test(`colours that mean something differ for every kind of sight, ${theme}`, async (t) => {
    const page = await open(t, waits(), { theme });
    const colors = await page.evaluate(
      (modules) => {
        const probe = document.createElement("i");
        document.body.append(probe);
        const of = (color) => {
          probe.style.color = color;
          return getComputedStyle(probe).color.match(/\d+/g).slice(0, 3).join(",");
        };
        const dark = document.documentElement.dataset.theme === "dark" ? 1 : 0;
        return {
          states: window.fathomTest.summary().stateColors.map((pair) => of(pair[dark])),
          change: ["more", "less", "ink"].map((name) => of(`var(--${name})`)),
          modules: modules.map(of),
        };
      },
      modulePalette(theme === "dark"),
    );
    assert.equal(new Set(colors.modules).size, 9);
    for (const [what, least] of Object.entries({ states: 15, change: 15, modules: 10 }))
      for (const sight of Object.keys(SIGHT))
        colors[what].forEach((a, i) =>
          colors[what].slice(i + 1).forEach((b) => {
            const [p, q] = [lab(a, sight), lab(b, sight)];
            const distance = Math.hypot(p[0] - q[0], p[1] - q[1], p[2] - q[2]);
            assert.ok(distance >= least, `${what}: ${a} and ${b} for ${sight} sight: ${distance.toFixed(1)}`);
          }),
        );
  });
}

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
