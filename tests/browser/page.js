// What the tests share: recordings made by the command under test, its own report of them, and a browser that opens the
// one-file report from disk, so that nothing can come from a network.

import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { after } from "node:test";
import assert from "node:assert/strict";
import { chromium } from "playwright-core";

export const here = dirname(fileURLToPath(import.meta.url));
export const root = resolve(here, "../..");
export const fathom = resolve(process.env.FATHOM ?? join(root, "build/fathom"));
export const folder = mkdtempSync(join(tmpdir(), "fathom-browser-"));

/** Screenshots go here if it is set. */
const shots = process.env.FATHOM_SHOTS;

let browser;

after(async () => {
  await browser?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** Runs the command; its output. */
export function run(...args) {
  return execFileSync(fathom, args, {
    encoding: "utf8",
    maxBuffer: 1 << 28,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, PYTHONPATH: join(dirname(fathom), "python") }, // for programs that name regions
  });
}

/** A recording, made once per name. */
export function record(name, ...args) {
  const file = join(folder, `${name}.fathom`);
  if (!existsSync(file)) run("run", "-o", file, ...args);
  return file;
}

/** A Python that tells of everything that a trace can have: 3.12 or later. */
export function newPython() {
  return execFileSync(join(root, "tools/pythons"), ["which", "3.13"], { encoding: "utf8" }).trim();
}

export const orbits = () => record("orbits", "--calls", join(root, "tests/programs/orbits.py"));
export const orbitLines = () => record("lines", "--calls", "--lines", join(root, "tests/programs/orbits.py"));
export const waits = () => record("waits", "--sample", join(here, "programs/waits.py"));
export const hostile = () => record("hostile", "--calls", join(here, "programs/hostile.py"));
export const shop = (name, ...args) => record(name, "--calls", join(here, "programs/shop.py"), ...args);

export const spots = () => record("spots", "--sample", join(here, "programs/spots.py"));

/** A program that was edited between two recordings: the same file with this text. */
export function edited(program, ...options) {
  const copy = join(folder, "edited.py");
  copyFileSync(join(here, "programs", `${program}.py`), copy);
  return record([program, ...options].join(""), ...options, copy);
}

/** What `fathom report --json` says. */
export function report(file, ...options) {
  return JSON.parse(run("report", "--json", ...options, file));
}

/** Every context: path of names from the outermost function to it, added up over threads; with calls and times. */
export function contexts(file, ...options) {
  const byNode = new Map();
  const byPath = new Map();
  for (const row of report(file, "--tree", "--min", "0", ...options).tree) {
    const path =
      row.parent === null ? "" : `${byNode.get(row.parent)}\n${row.qualname} ${row.file}:${row.line}`;
    byNode.set(row.node, path);
    const sum = byPath.get(path) ?? { total: 0, self: 0, calls: 0, name: row.qualname };
    sum.total += row.total_ns;
    sum.self += row.self_ns;
    sum.calls += row.calls + row.resumes;
    byPath.set(path, sum);
  }
  return byPath;
}

/** The one-file report of these recordings. */
export function reportFile(...files) {
  const out = join(folder, `${files.map((f) => f.split("/").pop()).join("+")}.html`);
  if (!existsSync(out)) run("view", ...files, "-o", out);
  return out;
}

/** Opens a page; any error in it, and any request that leaves it, fails the test. */
export async function open(
  t,
  files,
  { hash = "", width = 1280, height = 720, theme = "light", url, init } = {},
) {
  browser ??= await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox"],
  });
  const phone = width < 500;
  const context = await browser.newContext({
    viewport: { width, height },
    colorScheme: theme,
    isMobile: phone,
    hasTouch: phone,
    acceptDownloads: true,
  });
  context.setDefaultTimeout(120_000); // for who hangs; no test is judged by its speed
  const page = await context.newPage();
  const troubles = [];
  page.on("pageerror", (error) => troubles.push(String(error.stack)));
  page.on("console", (message) => message.type() === "error" && troubles.push(message.text()));
  page.on("request", (request) => {
    if (!/^(file|data|blob):/.test(request.url()) && !(url && request.url().startsWith(new URL(url).origin)))
      troubles.push(`asked for ${request.url()}`);
  });
  t.after(() => context.close());
  if (init) await page.addInitScript(init);
  page.troubles = troubles;
  await page.goto((url ?? pathToFileURL(reportFile(...[files].flat())).href) + (hash ? `#${hash}` : ""));
  await page.waitForFunction(() => "fathomTest" in window || document.querySelector("#opening h1"));
  await settle(page);
  assert.deepEqual(troubles, []);
  return page;
}

/** Two pictures later everything asked for is drawn. */
export function settle(page) {
  return page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
}

/** What the view says it draws. */
export async function drawn(page) {
  await settle(page);
  return page.evaluate(() => window.fathomTest.drawn());
}

export const state = (page) => page.evaluate(() => window.fathomTest.state());

/** A picture for people, if asked for. */
export async function shot(page, name) {
  await settle(page);
  if (shots) await page.screenshot({ path: join(shots, `${name}.png`) });
}

/** Chooses in the control with this label. */
export async function choose(page, label, value) {
  await page.getByLabel(label, { exact: true }).selectOption(value);
  await settle(page);
}

/** In the middle of a box as drawn() gives it. */
export async function clickBox(page, box) {
  await page.mouse.click(box.x + Math.max(1, Math.min(box.w, 1200) / 2), box.y + box.h / 2);
  await settle(page);
}

/** The paths of boxes as drawn, as in contexts(). */
export async function boxPaths(page, result) {
  const functions = await page.evaluate(() => window.fathomTest.functions());
  const inner = result.boxes.filter((box) => box.i >= 0);
  const paths = [];
  for (const box of inner) {
    const f = functions[box.func];
    paths[box.i] = box.parent < 0 ? "" : `${paths[box.parent]}\n${f.qualname} ${f.file}:${f.line}`;
  }
  return inner.map((box) => ({ path: paths[box.i], box }));
}
