// How long a page takes to show a profile, what it needs, and how quickly it answers; bench/viewer.py runs it.
//
//     measure.js TOOL ADDRESS [--answers [--compare] | --timeline]
//
// TOOL is fathom, speedscope or snakeviz. Prints one JSON object: `open`, milliseconds from asking for the page to
// its first picture; `memory`, bytes of the tab's process (its proportional set size, read from /proc) then, and
// `peak`, the most it ever had resident; with --answers (fathom only) `answers`, milliseconds from the beginning of an
// action to the end of the picture that shows it, `cpu`, how long the tab's main thread had a processor for that,
// which a busy machine does not change as much, and `memory_after`. Or `failure`, what went wrong, in words.
// --compare, with a page of two recordings, compares them as the last action. --timeline zooms from the whole timeline
// down to a microsecond and moves on by a tenth of the screen, several times at each zoom: those are the answers.
//
// The browser and its profile are new each time. Names are not resolved: nothing comes from elsewhere.

import { chromium } from "playwright-core";
import { readFileSync } from "node:fs";

const PATIENCE_MS = Number(process.env.FATHOM_BENCH_PATIENCE_S ?? 120) * 1000;
const REST_MS = 1500; // between opening and the first action, as a person looks first

/** What is on the screen: "" nothing yet, "picture", or the sentence of a failure. Runs in the page. */
const shows = {
  fathom: () => {
    if ("fathomTest" in window) return "picture";
    return document.querySelector("#opening h1")?.textContent ?? "";
  },
  speedscope: () => {
    const text = document.body?.innerText ?? "";
    const failure = /Something went wrong|Failed to load|Unrecognized format|error/i.exec(text);
    if (failure) return text.trim().slice(0, 200);
    return text.includes("Time Order") && document.querySelector("canvas") ? "picture" : "";
  },
  snakeviz: () => {
    const trouble = document.querySelector("#sv-error-div");
    if (trouble && getComputedStyle(trouble).display !== "none")
      return trouble.innerText.trim().replace(/\s+/g, " ").slice(0, 200);
    return document.querySelector("#chart svg path, #chart svg rect, #sv-svg path, #sv-svg rect")
      ? "picture"
      : "";
  },
};

/** Looks at every picture until there is something to see; the picture after that has it on the screen. */
function watch(look) {
  const shown = new Function(`return (${look})()`);
  const step = () => {
    const what = shown();
    if (!what) requestAnimationFrame(step);
    else requestAnimationFrame(() => setTimeout(() => (window.shown = { what, ms: performance.now() })));
  };
  requestAnimationFrame(step);
}

/** The largest process that draws pages, and its bytes. */
async function tab(browser) {
  const session = await browser.newBrowserCDPSession();
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  const kilobytes = (pid, file, name) =>
    Number(
      new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(readFileSync(`/proc/${pid}/${file}`, "utf8"))?.[1] ?? 0,
    );
  const found = { pid: 0, memory: 0, peak: 0 };
  for (const { type, id } of processInfo.filter((p) => p.type === "renderer")) {
    const pss = kilobytes(id, "smaps_rollup", "Pss") * 1024;
    if (pss > found.memory)
      Object.assign(found, { pid: id, memory: pss, peak: kilobytes(id, "status", "VmHWM") * 1024 });
  }
  return found;
}

async function memory(browser) {
  const { memory, peak } = await tab(browser);
  return { memory, peak };
}

/** Milliseconds that a process's main thread has had a processor. */
const onProcessor = (pid) => Number(readFileSync(`/proc/${pid}/schedstat`, "utf8").split(" ")[0]) / 1e6;

/** Changes the state by the address, as a link does. */
function act(page, change) {
  return page.evaluate(async (patch) => {
    const state = Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
    const began = performance.now();
    const heard = new Promise((done) => addEventListener("hashchange", done, { once: true }));
    location.hash = new URLSearchParams({ ...state, ...patch }).toString();
    await heard;
    await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
    return performance.now() - began;
  }, change);
}

/** What is done, in this order. Each shape of the tree is new to the page: nothing is there already. */
function actions(boxes, compares) {
  const widest = (row) => boxes.filter((b) => b.row === row).sort((a, b) => b.value - a.value)[0];
  const top = widest(2) ?? boxes[0];
  const box = widest(3) ?? top;
  return [
    ["zoom", { n: String(box.node), f: String(box.func) }],
    ["zoom_out", { n: "0" }],
    ["scroll_in", { x0: "0.3", x1: "0.301" }],
    ["scroll_out", { x0: "0", x1: "1" }],
    ["search", { q: "1" }],
    ["search_more", { q: "12" }],
    ["search_off", { q: "" }],
    ["metric", { metric: "calls" }],
    ["metric_back", { metric: "total" }],
    ["re_root", { root: `#${box.func}` }],
    ["re_root_off", { root: "" }],
    ["re_root_top", { root: `#${top.func}` }],
    ["re_root_top_off", { root: "" }],
    ["keep", { keep: `#${box.func}` }],
    ["keep_off", { keep: "" }],
    ["fold", { fold: `#${box.func}` }],
    ["fold_off", { fold: "" }],
    ...["table", "callers", "tree", "bottomup", "graph", "sunburst", "flame"].map((view) => [
      `view_${view}`,
      { view },
    ]),
    ["my_code", { mine: "1" }],
    ["my_code_off", { mine: "" }],
    ["by_module", { group: "1" }],
    ["by_module_off", { group: "" }],
    // The other recording is open by now, and that first comparison forgotten: the page keeps six views.
    ...(compares ? [["compare", { base: "1" }]] : []),
  ];
}

/** Opens the second recording, if there is one, by comparing with it once. */
async function openSecond(page) {
  await act(page, { base: "1" });
  const opened = await page.evaluate(() => window.fathomTest.state().base === 1);
  await page.waitForFunction(() => !document.getElementById("toast"), null, { timeout: PATIENCE_MS });
  await act(page, { base: "-1" });
  return opened;
}

const rounded = (ms) => Math.round(10 * ms) / 10;

async function answers(page, pid) {
  const answers = {};
  const cpu = {};
  await page.waitForTimeout(REST_MS);
  const { boxes } = await page.evaluate(() => window.fathomTest.drawn());
  const compares = process.argv.includes("--compare") && (await openSecond(page));
  for (const [name, change] of actions(boxes, compares)) {
    const before = onProcessor(pid);
    answers[name] = rounded(await act(page, change));
    cpu[name] = rounded(onProcessor(pid) - before);
    await page.waitForTimeout(100);
  }
  return { answers, cpu };
}

/** Looks at the timeline, each time at a fifth of what was seen, and moves on there. */
async function frames(page, pid) {
  const { length } = await page.evaluate(() => window.fathomTest.drawn());
  const answers = {};
  const cpu = {};
  const look = async (name, from, width) => {
    const before = onProcessor(pid);
    answers[name] = rounded(await act(page, { see: `${from / 1e9}..${(from + width) / 1e9}` }));
    cpu[name] = rounded(onProcessor(pid) - before);
    await page.waitForTimeout(30);
  };
  await page.waitForTimeout(REST_MS);
  for (let width = length / 5, step = 1; width > 1000; width /= 5, step++) {
    const from = length * 0.37;
    await look(`zoom ${step}`, from, width);
    for (let pan = 1; pan <= 4; pan++) await look(`pan ${step}.${pan}`, from + (pan * width) / 10, width);
  }
  return { answers, cpu };
}

async function measure(browser, tool, address) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 720 } });
  const crashed = new Promise((done) => page.on("crash", () => done({ what: "the tab crashed" })));
  const said = [];
  page.on("pageerror", (error) => said.push(String(error.message)));
  await page.addInitScript(`(${watch})(${JSON.stringify(String(shows[tool]))})`);
  await page.goto(address, { waitUntil: "commit" });
  const patience = { timeout: PATIENCE_MS };
  const shown = page.waitForFunction(() => window.shown, null, patience).then((handle) => handle.jsonValue());
  const first = await Promise.race([shown, crashed]).catch(() => ({
    what: `no picture after ${PATIENCE_MS / 1000} s`,
  }));
  shown.catch(() => {});
  if (first.what !== "picture")
    return { failure: [first.what, ...said.slice(0, 1)].join(": "), ...(await memory(browser)) };
  const result = { open: Math.round(first.ms), ...(await memory(browser)) };
  const wants = process.argv.includes("--timeline") ? frames : answers;
  if (wants === answers && !process.argv.includes("--answers")) return result;
  Object.assign(result, await wants(page, (await tab(browser)).pid));
  const after = await memory(browser);
  return { ...result, memory_after: after.memory, peak: after.peak };
}

const [tool, address] = process.argv.slice(2);
if (!(tool in shows) || !address) {
  console.error("usage: measure.js fathom|speedscope|snakeviz ADDRESS [--answers [--compare] | --timeline]");
  process.exit(2);
}
const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"],
});
try {
  console.log(JSON.stringify(await measure(browser, tool, address)));
} finally {
  await browser.close();
}
