// How long the viewer takes, for `make bench`: measure.js REPORT.html prints one JSON object of milliseconds, each from
// the beginning of an action to the end of the picture that shows it.

import { chromium } from "playwright-core";
import { pathToFileURL } from "node:url";

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox"],
});
const page = await browser.newPage({ viewport: { width: 1280, height: 720 } });
await page.goto(pathToFileURL(process.argv[2]).href);
await page.waitForFunction(() => "fathomTest" in window, null, { timeout: 120000 });
/** @type {Record<string, number>} */
const result = { open: await page.evaluate(() => window.fathomTest.sinceStartMs()) };

/** Changes the state by the address, as a link does. */
async function measure(name, change) {
  result[name] = await page.evaluate(async (patch) => {
    const state = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
    const began = performance.now();
    const heard = new Promise((done) => addEventListener("hashchange", done, { once: true }));
    location.hash = new URLSearchParams({ ...state, ...patch }).toString();
    await heard;
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    return performance.now() - began;
  }, change);
}

const box = await page.evaluate(
  () =>
    window.fathomTest
      .drawn()
      .boxes.filter((b) => b.row === 3)
      .sort((a, b) => b.value - a.value)[0],
);
await measure("zoom", { n: String(box.node), f: String(box.func) });
await measure("zoom_out", { n: "0" });
await measure("scroll_in", { x0: "0.3", x1: "0.301" });
await measure("scroll_out", { x0: "0", x1: "1" });
await measure("search", { q: "1" });
await measure("search_more", { q: "12" });
await measure("search_off", { q: "" });
await measure("metric", { metric: "calls" });
await measure("metric_back", { metric: "total" });
await measure("re_root", { root: `#${box.func}` });
await measure("re_root_off", { root: "" });
for (const view of ["table", "callers", "tree", "bottomup", "graph", "sunburst", "flame"])
  await measure(`view_${view}`, { view });
await measure("my_code", { mine: "1" });
for (const name of Object.keys(result)) result[name] = Math.round(result[name]);
console.log(JSON.stringify(result, null, 1));
await browser.close();
