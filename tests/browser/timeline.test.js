import test from "node:test";
import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { open, drawn, settle, shot, state, fathom, folder, orbits, record, here, newPython } from "./page.js";

/** The recording that a tool of tests/unit draws; tool_timeline.c says what is in it. */
function made(tool, name, ...args) {
  const file = join(folder, `${name}.fathom`);
  if (!existsSync(file)) execFileSync(join(dirname(fathom), `tests/unit/${tool}`), [file, ...args]);
  return file;
}
const nine = () => made("tool_timeline", "nine");
const large = () => made("tool_trace", "large", "400000", "2", "3");

const service = () => record("service", "--trace", newPython(), join(here, "programs/service.py"));

const US = 1e3;
const MS = 1e6;
/** When the k-th request begins, and how long it takes. */
const request = (k) => [k * MS + 100 * US, k === 5 ? 900 * US : 500 * US];

const named = (boxes, name, lane = 0) => boxes.filter((b) => b.lane === lane && b.name === name);
const times = (boxes) => boxes.map((b) => [b.begin, b.end - b.begin]);

test("a trace opens at its timeline, with every span that the program had", async (t) => {
  const page = await open(t, nine());
  assert.equal(await page.evaluate(() => window.fathomTest.view()), "timeline");
  const { boxes, tracks, lanes, length } = await drawn(page);
  await shot(page, "timeline-light");
  assert.equal(length, 10 * MS);
  assert.deepEqual(tracks.filter((x) => x.kind === "lane").map((x) => x.title), ["MainThread 1000", "worker-1 1001"]);
  assert.deepEqual(lanes.map((lane) => [lane.begin, lane.depth]), [[0, 4], [500 * US, 1 + 300]]);
  assert.deepEqual(times(named(boxes, "f1")), [[0, 10 * MS]]);
  assert.deepEqual(times(named(boxes, "f2")), [0, 1, 2, 3, 4, 5, 6, 7, 8].map(request));
  assert.deepEqual(
    named(boxes, "f2").map((b) => b.depth),
    Array(9).fill(1),
  );
  // Where it is drawn is when it was.
  const [f1] = named(boxes, "f1");
  for (const b of named(boxes, "f2")) assert.ok(Math.abs((b.x - f1.x) / f1.w - b.begin / (10 * MS)) < 1e-3);
});

test("zooming shows what was too small, with its exact times", async (t) => {
  const page = await open(t, nine(), { hash: "view=timeline&see=0.0031..0.0033" });
  const { boxes, see } = await drawn(page);
  assert.deepEqual([see.from, see.to], [3.1 * MS, 3.3 * MS]);
  assert.deepEqual(times(named(boxes, "f3")), [[3.11 * MS, 100 * US]]);
  assert.deepEqual(times(named(boxes, "f4")), [[3.12 * MS, 50 * US]]);
  await page.keyboard.press("0");
  assert.equal((await state(page)).see, "");
  const area = await page.locator(".canvas").boundingBox();
  await page.mouse.move(area.x + area.width / 2, area.y + 60);
  for (let i = 0; i < 60; i++) await page.mouse.wheel(0, -400);
  await settle(page);
  const deep = await drawn(page);
  // Down to single nanoseconds, around the middle.
  assert.ok(deep.see.to - deep.see.from <= 25, JSON.stringify(deep.see));
  assert.ok(Math.abs(deep.see.from - 5 * MS) < 0.1 * MS, JSON.stringify(deep.see));
  for (const key of ["s", "w", "a", "d", "ArrowLeft", "ArrowRight"]) await page.keyboard.press(key);
  assert.deepEqual(page.troubles, []);
});

test("exceptions, collections, instants, counters and losses are marks", async (t) => {
  const page = await open(t, nine(), { hash: "view=timeline" });
  const { marks, boxes, curves, bar, legend } = await drawn(page);
  const of = (kind) => marks.filter((m) => m.kind === kind).map((m) => [m.begin, m.lane, m.name]);
  assert.deepEqual(of("exception"), [[3.21 * MS, 0, "n1"]]);
  assert.deepEqual(of("instant"), [[9.5 * MS, 0, "n3"]]);
  assert.deepEqual(of("collection").map(([begin, lane]) => [begin, lane]), [[9.2 * MS, 0]]);
  const [lost] = marks.filter((m) => m.kind === "lost");
  assert.deepEqual([lost.begin, lost.end, lost.lane, lost.value], [4 * MS, 5 * MS, 1, 77]);
  assert.match(bar, /77 events were lost/);
  assert.match(legend, /exception/);
  assert.deepEqual(Array.from(Object.values(curves[0].curves[0].values)), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
  assert.ok(boxes.length > 20);
});

test("pointing says what it is; a click selects it everywhere", async (t) => {
  const page = await open(t, nine());
  const box = named((await drawn(page)).boxes, "f2")[5];
  await page.mouse.move(box.x + box.w / 2, box.y + box.h / 2);
  await settle(page);
  const tip = await page.locator("#tip").innerText();
  assert.match(tip, /^f2/);
  assert.match(tip, /900 µs/);
  await page.mouse.click(box.x + box.w / 2, box.y + box.h / 2);
  await settle(page);
  const functions = await page.evaluate(() => window.fathomTest.functions());
  assert.equal(functions[(await state(page)).f].name, "f2");
  assert.match((await drawn(page)).said, /f2, 900 µs from 5\.1\d* ms, MainThread 1000, depth 2/);
});

test("the slowest call of a function, and how long its calls take", async (t) => {
  const page = await open(t, nine());
  const box = named((await drawn(page)).boxes, "f2")[0];
  await page.mouse.click(box.x + box.w / 2, box.y + box.h / 2);
  const panel = page.locator(".durations");
  assert.match(await panel.innerText(), /9 calls, 500 µs to 900 µs/);
  // Bars by powers of the root of two: 8 calls of 500 µs (393 to 524 µs), one of 900 (786 to 1049).
  assert.deepEqual(
    await panel.locator(".histogram span").evaluateAll((bars) => bars.map((bar) => /: (\d+) calls/.exec(bar.title)[1])),
    ["8", "0", "1"],
  );
  await panel.locator(".minilist button").first().click();
  const { cursor, see } = await drawn(page);
  assert.deepEqual([cursor.begin, cursor.end], [5.1 * MS, 6 * MS]);
  assert.ok(see.from < 5.1 * MS && see.to > 6 * MS && see.to - see.from < 2 * MS, JSON.stringify(see));
});

test("search marks spans in sight, and goes to those beyond", async (t) => {
  const page = await open(t, nine(), { hash: "view=timeline&see=0.0001..0.0002" });
  await page.locator("#search").fill("^f4$");
  const seen = [];
  for (let i = 0; i < 3; i++) {
    await page.locator("#search").press("Enter");
    seen.push((await drawn(page)).cursor.begin);
  }
  const f4 = (k) => request(k)[0] + 20 * US;
  assert.deepEqual(seen, [f4(0), f4(1), f4(2)]);
  await page.locator("#search").press("Shift+Enter");
  assert.equal((await drawn(page)).cursor.begin, f4(1));
});

/** Measure the second fifth of nine(): from 2 ms to 4 ms. */
async function measure(page) {
  const [f1] = named((await drawn(page)).boxes, "f1");
  await page.keyboard.down("Shift");
  await page.mouse.move(f1.x + f1.w * 0.2, f1.y + 60);
  await page.mouse.down();
  await page.mouse.move(f1.x + f1.w * 0.4, f1.y + 60, { steps: 4 });
  await page.mouse.up();
  await page.keyboard.up("Shift");
}

test("Enter shows only the time that was measured", async (t) => {
  const page = await open(t, nine(), { hash: "view=timeline&see=0..0.01" });
  await measure(page);
  await page.keyboard.press("Enter");
  assert.match((await state(page)).at, /^0\.00[12]\d*\.\.0\.00[34]\d*$/);
});

test("measuring between two marks, and showing only that time in all views", async (t) => {
  const page = await open(t, nine(), { hash: "view=timeline&see=0..0.01" });
  await measure(page);
  const { measured, bar } = await drawn(page);
  assert.ok(Math.abs(measured.from - 2 * MS) < 20 * US && Math.abs(measured.to - 4 * MS) < 20 * US);
  assert.match(bar, /2\.0\d ms|1\.9\d ms/);
  await shot(page, "timeline-measured");
  await page.getByRole("button", { name: "Only this in all views" }).click();
  assert.match((await state(page)).at, /^0\.00[12]\d*\.\.0\.00[34]\d*$/);
  await page.locator('#tabs [data-view="table"]').click();
  assert.match(await page.locator(".chip").innerText(), /only [12].* ms → [34].* ms/);
  const rows = Object.fromEntries((await drawn(page)).rows.map((r) => [r.name, r]));
  assert.equal(rows.f2.calls, 2);
  await page.locator(".chip button").click();
  assert.equal((await state(page)).at, "");
  assert.equal((await drawn(page)).rows.find((r) => r.name === "f2").calls, 9);
});

test("numbers of a range: calls count where they begin, what reaches over its ends is cut there", async (t) => {
  const page = await open(t, nine(), { hash: "view=table&at=0.002..0.0033" });
  const rows = Object.fromEntries((await drawn(page)).rows.map((r) => [r.name, [r.calls, r.total]]));
  assert.deepEqual(rows.f1, [0, 1.3 * MS]);
  assert.deepEqual(rows.f2, [2, 500 * US + 200 * US]);
  assert.deepEqual(rows.f3, [2, 200 * US]);
  assert.deepEqual(rows.f4, [2, 100 * US]);
  assert.equal(rows.f6, undefined);
  for (const view of ["flame", "callers", "tree", "bottomup", "source", "graph", "sunburst", "run", "timeline"]) {
    await page.locator(`#tabs [data-view="${view}"]`).click();
    await settle(page);
    assert.deepEqual(page.troubles, [], view);
  }
});

test("deep stacks have all their rows, and hostile names are text", async (t) => {
  const page = await open(t, nine(), { hash: "view=timeline" });
  // There is no room for all of them until they are asked for.
  const [main, worker] = (await drawn(page)).tracks;
  assert.equal(main.deeper, 0);
  assert.equal(worker.rows + worker.deeper, 301);
  assert.ok(worker.top + worker.height < 720, "all lanes are in sight");
  await page.mouse.click((worker.noteFrom + worker.noteTo) / 2, worker.top + 9);
  const { boxes, tracks } = await drawn(page);
  const deep = named(boxes, "f6", 1);
  assert.equal(new Set(deep.map((b) => b.depth)).size, 300);
  assert.ok(tracks[1].height < 1200);
  const hostile = boxes.find((b) => b.name.startsWith("<img"));
  assert.deepEqual([hostile.begin, hostile.end], [8 * MS, 9 * MS]);
  await page.mouse.move(hostile.x + hostile.w / 2, hostile.y + hostile.h / 2);
  await settle(page);
  const tip = await page.locator("#tip").innerText();
  assert.ok(tip.includes('<img src=x onerror=alert(1)>\\u202e\\n"quoted"'), tip);
  assert.equal(await page.locator("img").count(), 0);
});

test("a lane is as high as the time in sight is deep", async (t) => {
  // f5 alone; with the hostile f7 in it; with f6 in it, which has called itself 150 times and does so once more at 6.151 ms.
  for (const [see, tall, rows, main] of [
    ["0.001..0.002", "", 1, 4],
    ["0.0085..0.0086", "*", 2, 2],
    ["0.0061502..0.0061518", "*", 1 + 151 + 1, 4],
  ]) {
    const page = await open(t, nine(), { hash: `view=timeline&see=${see}&tall=${tall}` });
    const [first, worker] = (await drawn(page)).tracks;
    assert.deepEqual([worker.rows, worker.deeper, worker.outer.length], [rows, 0, 0], see);
    assert.equal(first.rows, main, see);
    await page.context().close();
  }
});

test("outer rows that are the same all along are one row, which opens and closes", async (t) => {
  const page = await open(t, nine(), { hash: "view=timeline&see=0.0061502..0.0061518" });
  const worker = async () => (await drawn(page)).tracks[1];
  const folded = await worker();
  await shot(page, "timeline-folded");
  assert.deepEqual(folded.outer, ["f5", ...Array(151).fill("f6")]);
  assert.deepEqual([folded.rows, folded.deeper], [1, 0]);
  assert.equal(folded.words.at(-1), "152 outer rows: … › f6");
  // What happens has its row: the call that begins at 6.151 ms.
  const inner = (await drawn(page)).boxes.filter((b) => b.lane === 1);
  assert.deepEqual(inner.map((b) => [b.depth, b.begin]), [[152, 6.151 * MS]]);
  const area = await page.locator(".canvas").boundingBox();
  const y = folded.top + 19 + folded.fold / 2;
  await page.mouse.move(area.x + 200, y);
  await settle(page);
  assert.match(await page.locator("#tip").innerText(), /^152 outer rows/);
  await page.mouse.click(area.x + 200, y);
  const opened = await worker();
  assert.deepEqual([opened.outer.length, opened.rows], [0, 153]);
  await page.mouse.click((opened.noteFrom + opened.noteTo) / 2, opened.top + 9);
  assert.equal((await worker()).outer.length, 152);
  // Where nothing happens below them the innermost keeps its row.
  await page.evaluate(() => (location.hash = "view=timeline&see=0.0061502..0.0061508"));
  const still = await worker();
  assert.deepEqual([still.outer.length, still.rows, still.deeper], [151, 1, 0]);
});

test("keys and jumps reach rows that are folded", async (t) => {
  const page = await open(t, nine(), { hash: "view=timeline&see=0.0061502..0.0061518&shut=0" });
  const said = async () => (await drawn(page)).said;
  await page.locator(".canvas").focus();
  await page.keyboard.press("Enter"); // f1, in the closed lane
  await page.keyboard.press("ArrowDown");
  assert.match(await said(), /^f6, .*worker-1 1001, depth 153$/);
  assert.deepEqual((await state(page)).tall, []);
  await page.keyboard.press("ArrowUp");
  assert.match(await said(), /^f6, .*depth 152$/);
  const { tracks, boxes, cursor } = await drawn(page);
  assert.equal(tracks[1].outer.length, 0);
  const [row] = boxes.filter((b) => b.lane === 1 && b.depth === cursor.depth);
  assert.ok(row.y > 0 && row.y < 720, "in sight");
  // A search goes to the only f5, which was the outermost of those.
  await page.evaluate(() => (location.hash = "view=timeline&see=0.0061502..0.0061518&q=^f5$"));
  await page.locator(".canvas").focus();
  await page.keyboard.press("Shift+N");
  const found = (await drawn(page)).cursor;
  assert.deepEqual([found.begin, found.depth, found.lane], [500 * US, 0, 1]);
  assert.ok((await drawn(page)).boxes.some((b) => b.lane === 1 && b.name === "f5"));
});

test("code that stands still while another thread has the interpreter waits for it", async (t) => {
  // f2 has no event from 6.21 to 6.6 ms; the other thread has one each microsecond, the last at 6.599.
  const page = await open(t, nine(), { hash: "view=timeline&see=0.0062..0.0067" });
  const { turns, boxes } = await drawn(page);
  await shot(page, "timeline-turns");
  const [wait] = turns.filter((turn) => turn.lane === 0 && turn.idle > 6.2 * MS);
  assert.deepEqual(
    [wait.idle, wait.taken, wait.after, wait.before, wait.other, wait.depth],
    [6.21 * MS, 6.21 * MS, 6.599 * MS, 6.6 * MS, 1, 1],
  );
  const [box] = named(boxes, "f2");
  await page.mouse.move(box.x + box.w / 2, box.y + box.h / 2);
  await settle(page);
  assert.match(await page.locator("#tip").innerText(), /waited\s+about 389 µs to 390 µs for the GIL\s+had it last\s+worker-1 1001/);
  // From 7.6 to 8.1 ms f1 has none, the other thread a single one, at 8 ms: nothing is known to be the least.
  await page.evaluate(() => (location.hash = "view=timeline&see=0.0075..0.0082"));
  const [once] = (await drawn(page)).turns.filter((turn) => turn.lane === 0 && turn.idle >= 7.6 * MS);
  assert.deepEqual([once.idle, once.taken, once.after, once.before, once.depth], [7.6 * MS, 8 * MS, 8 * MS, 8.1 * MS, 0]);
});

test("what threads waited for the interpreter, in the range that is chosen", async (t) => {
  // That of the test above, f2 from 6.21 to 6.6 ms with events of the other until 6.599, and before it f3, which has no event from
  // 6.2, where the range begins, to 6.21: the other has some from 6.2 to 6.209.
  const page = await open(t, nine(), { hash: "view=run&at=0.0062..0.0066005" });
  const row = page.locator('table[aria-label="Waiting for the GIL"] tbody tr').first();
  assert.match(await row.innerText(), /^MainThread 1000\s+2\s+2\s+398 µs\s+400 µs\s+390 µs\s+6\.21\d* ms$/);
  await row.locator("a").click();
  const { see } = await drawn(page);
  assert.ok(see.from < 6.21 * MS && see.to > 6.6 * MS && see.to - see.from < MS, JSON.stringify(see));
});

test("who waits in a call of C does not wait for the interpreter", async (t) => {
  const file = record("turns", "--trace", newPython(), join(here, "programs/turns.py"));
  const page = await open(t, file, { hash: "view=timeline" });
  const functions = await page.evaluate(() => window.fathomTest.functions());
  const acquire = functions.findIndex((f) => f.qualname.includes("'acquire'"));
  // A thread stands in acquire() while the other calls something all the time: there it is not said to wait for its turn.
  await page.evaluate((f) => (location.hash = `view=timeline&f=${f}`), acquire);
  await page.locator(".durations .minilist button").first().click();
  const { turns, boxes, cursor } = await drawn(page);
  const waits = boxes.filter((b) => b.exact && b.func === acquire);
  assert.ok(waits.some((b) => b.lane === cursor.lane && b.begin === cursor.begin));
  for (const turn of turns) {
    assert.ok(waits.every((b) => turn.lane !== b.lane || turn.before <= b.begin || turn.idle >= b.end), JSON.stringify(turn));
    const box = boxes.find((b) => b.lane === turn.lane && b.depth === turn.depth && b.begin <= turn.idle && b.end >= turn.before);
    assert.equal(functions[box.func].kind, "python");
  }
});

test("rows stay as they are while one moves", async (t) => {
  // f6 has returned for good at 6.6 ms; a little earlier it was deep.
  const page = await open(t, nine(), { hash: "view=timeline&see=0.0067..0.0071" });
  const worker = async () => (await drawn(page)).tracks[1];
  const area = await page.locator(".canvas").boundingBox();
  assert.equal((await worker()).rows, 1);
  await page.mouse.move(area.x + 100, area.y + 300);
  await page.mouse.down();
  await page.mouse.move(area.x + 100 + area.width / 2, area.y + 300, { steps: 5 });
  const held = await drawn(page);
  assert.ok(held.see.from < 6.55 * MS && held.moving);
  assert.deepEqual([held.tracks[1].rows, held.tracks[1].deeper], [1, 0]);
  await page.mouse.up();
  const { rows, outer, deeper } = await worker();
  assert.ok(rows + outer.length + deeper > 50, JSON.stringify([rows, outer.length, deeper]));
  // By a key: it has ended a little later.
  await page.keyboard.press("d");
  await page.waitForFunction(() => !window.fathomTest.drawn().moving);
  assert.ok((await worker()).deeper < deeper);
});

test("everything by keyboard", async (t) => {
  const page = await open(t, nine(), { hash: "view=timeline&shut=1" });
  const said = async () => (await drawn(page)).said;
  await page.locator(".canvas").focus();
  await page.keyboard.press("Enter");
  assert.match(await said(), /^f1, 10\.0 ms from 0/);
  await page.keyboard.press("ArrowDown");
  assert.match(await said(), /^f2, 500 µs from 100/);
  await page.keyboard.press("ArrowRight");
  assert.match(await said(), /^f2, 500 µs from 1\.1/);
  await page.keyboard.press("Enter");
  const { see } = await drawn(page);
  assert.ok(see.from > MS && see.to < 2 * MS, JSON.stringify(see));
  await page.keyboard.press("Escape"); // the cursor
  await page.keyboard.press("Escape"); // the zoom
  assert.equal((await state(page)).see, "");
});

test("lanes close and open", async (t) => {
  const page = await open(t, nine(), { hash: "view=timeline" });
  const { tracks } = await drawn(page);
  const area = await page.locator(".canvas").boundingBox();
  await page.mouse.click(area.x + 40, tracks[1].top + 9);
  const shut = (await drawn(page)).tracks[1];
  assert.deepEqual([(await state(page)).shut, shut.shut], [["1"], true]);
  assert.ok(shut.height < 60);
});

test("addresses that make no sense show the whole run", async (t) => {
  for (const see of ["x", "2..1", "-1..3", "..", "1e9..2e9", "99..100"]) {
    const page = await open(t, nine(), { hash: `view=timeline&see=${see}&at=${see}` });
    const got = await drawn(page);
    assert.deepEqual([got.see.from, got.see.to], [0, 10 * MS], see);
    await page.context().close();
  }
});

test("a recording without a timeline has no such view", async (t) => {
  const page = await open(t, orbits(), { hash: "view=timeline" });
  assert.equal(await page.locator('#tabs [data-view="timeline"]').count(), 0);
});

test("marks are all there from however far one looks", async (t) => {
  const page = await open(t, service(), { hash: "view=timeline" });
  const { marks, length, curves } = await drawn(page);
  const refused = marks.filter((m) => m.kind === "instant");
  assert.equal(refused.reduce((a, m) => a + m.count, 0), 30_000);
  assert.ok(refused.length < 3000 && refused.every((m) => m.name === "refused"), String(refused.length));
  // What is told is when they were: the counter of the last hundred is not behind the last of them.
  const last = Math.max(...refused.map((m) => m.end));
  const values = curves[0].curves[0];
  assert.equal(Math.max(...Object.values(values.values)), 29_900);
  assert.ok(Math.max(...Object.values(values.ns)) <= last && last < length);
});

test("calls by what they did, and where the slow one differs", async (t) => {
  const page = await open(t, service(), { hash: "view=timeline" });
  const functions = await page.evaluate(() => window.fathomTest.functions());
  const answer = functions.findIndex((f) => f.qualname === "answer");
  await page.evaluate((f) => (location.hash = `view=timeline&f=${f}`), answer);
  const groups = page.locator(".callgroup");
  await groups.first().waitFor();
  // 60 calls: six look up twice, one sleeps, the other 53 do the same.
  const words = (await groups.allInnerTexts()).map((text) => text.replace(/\s+/g, " "));
  assert.deepEqual(words.map((text) => /^\d+/.exec(text)[0]), ["53", "6", "1"]);
  assert.match(words[1], /look_up ×2 instead of ×1/);
  assert.match(words[2], /time\.sleep ×1 instead of ×0/);
  await shot(page, "timeline-groups");
  await groups.nth(2).locator("button").click();
  const { cursor } = await drawn(page);
  assert.equal(cursor.func, answer);
  assert.ok(cursor.end - cursor.begin >= 50 * MS, "it slept for 50 ms");
});

test("tasks have a row for all of their life, and arrows from those that made them", async (t) => {
  const page = await open(t, service(), { hash: "view=timeline" });
  const { tasks, tracks, length } = await drawn(page);
  await shot(page, "timeline-tasks");
  // main, four clients, 60 requests of which four live at once, and two with which asyncio.run() ends.
  assert.equal(tasks.length, 1);
  assert.equal(tasks[0].tasks + tasks[0].omitted, 1 + 4 + 60 + 2);
  assert.ok(tasks[0].rows >= 9 && tasks[0].rows <= 13, String(tasks[0].rows));
  assert.equal(tracks.filter((x) => x.kind === "tasks").length, 1);
  const made = (await drawn(page)).flows.filter((f) => f.made);
  assert.ok(made.length >= 20 && made.every((f) => f.t < length && f.from !== f.to), String(made.length));
});

test("tasks that find no room get rows when one asks for them, by pointer or by key", async (t) => {
  const crowd = record("crowd", "--trace", newPython(), join(here, "programs/crowd.py"));
  const page = await open(t, crowd, { hash: "view=timeline" });
  const look = async () => {
    const { tasks, tracks, marks } = await drawn(page);
    const track = tracks.find((x) => x.kind === "tasks");
    return { ...tasks[0], track, stepped: new Set(marks.filter((m) => m.kind === "task" && m.value).map((m) => m.value)) };
  };
  // 300 guests and main live at once; those of asyncio.run() come later, when all rows are free again.
  const all = 1 + 300;
  const first = await look();
  await shot(page, "timeline-crowd");
  assert.equal(first.rows, 20);
  assert.equal(first.omitted, all - 20);
  assert.equal(first.track.omitted, all - 20);
  await page.mouse.click((first.track.noteFrom + first.track.noteTo) / 2, first.track.top + 9);
  const second = await look();
  await shot(page, "timeline-crowd-more");
  assert.deepEqual([second.rows, second.omitted, (await state(page)).tasks], [80, all - 80, 80]);
  // By keys: the button is behind the drawing in the order of Tab.
  await page.locator(".canvas").focus();
  await page.keyboard.press("Tab");
  const button = page.getByRole("button", { name: `asyncio tasks: ${all - 80} more tasks` });
  assert.ok(await button.evaluate((b) => b === document.activeElement));
  await shot(page, "timeline-crowd-focus");
  await page.keyboard.press("Enter");
  const third = await look();
  assert.deepEqual([third.rows, third.omitted], [all, 0]);
  // Nothing else limits them: what is in sight, here all of the run, has a step of every task that has a row.
  assert.ok(third.stepped.size >= all, String(third.stepped.size));
  assert.ok(third.track.height > all * 15);
  // The button stays where it is, and leads back.
  await shot(page, "timeline-crowd-all");
  await page.keyboard.press("Space");
  assert.deepEqual([(await look()).rows, (await state(page)).tasks], [20, 20]);
  await page.goBack();
  assert.equal((await look()).rows, all);
});

test("hundreds of thousands of spans: cells stand for those that cannot be seen", async (t) => {
  const page = await open(t, large());
  const { boxes, tracks, lanes } = await drawn(page);
  await shot(page, "timeline-large");
  assert.equal(lanes.length, 6);
  assert.equal(tracks.filter((x) => x.kind === "process").length, 2);
  const first = boxes.filter((b) => b.lane === tracks[1].lane);
  assert.ok(first.some((b) => !b.exact && b.spans > 1), "cells of several");
  assert.ok(boxes.length < 20000);
});

/** A page of `fathom view` without -o, and what it asked the server for. */
async function served(t, file, hash) {
  const server = spawn(fathom, ["view", "--no-browser", file], { stdio: ["ignore", "pipe", "inherit"] });
  t.after(() => server.kill());
  const url = await new Promise((done) => server.stdout.once("data", (text) => done(String(text).split("\n")[0])));
  const page = await open(t, file, { url, hash });
  return { page, url };
}

/** Until nothing is on its way any more. */
async function arrived(page) {
  await page.waitForFunction(() => window.fathomTest.drawn().fetched > 0 && !window.fathomTest.drawn().waiting);
  await settle(page);
}

const many = () => made("tool_trace", "many", "5000000", "1", "2");
const place = (b) => [b.lane, b.depth, b.name, b.begin, b.end, b.exact];

test("a served page reads single calls when they come into sight, and only those", async (t) => {
  const hash = "view=timeline&see=1.2..1.2004";
  const whole = await drawn(await open(t, many(), { hash }));
  const { page, url } = await served(t, many(), hash);
  await arrived(page);
  const seen = await drawn(page);
  assert.ok(whole.boxes.filter((b) => b.exact).length > 20);
  assert.deepEqual(seen.boxes.map(place), whole.boxes.map(place));
  const size = statSync(many()).size;
  assert.ok(seen.fetched < size / 10, `${seen.fetched} of ${size}`);
  const first = await (await fetch(`${url}recording/0`)).arrayBuffer();
  assert.ok(first.byteLength < size / 2, `${first.byteLength} of ${size}`);
  // The slowest calls of a function need some blocks more; a range needs those of its time.
  const functions = await page.evaluate(() => window.fathomTest.functions());
  const numbers = async (p) => (await p.locator(".durations .minilist").innerText()).split("\n");
  const of = `${hash}&f=${functions.findIndex((f) => f.name === "f7")}`;
  await page.evaluate((h) => (location.hash = h), of);
  await page.locator(".durations .minilist").waitFor();
  const plain = await open(t, many(), { hash: of });
  assert.deepEqual(await numbers(page), await numbers(plain));
  const rows = async (p) => (await drawn(p)).rows.map((r) => [r.name, r.calls, r.total, r.self]);
  for (const p of [page, plain]) await p.evaluate(() => (location.hash = "view=table&at=1.2..1.3"));
  await page.waitForFunction(() => !!window.fathomTest.summary() && !document.hidden);
  await settle(plain);
  const expected = await rows(plain);
  await page.waitForFunction((n) => window.fathomTest.drawn().rows?.reduce((a, r) => a + r.calls, 0) === n,
    expected.reduce((a, [, calls]) => a + calls, 0));
  assert.deepEqual(await rows(page), expected);
});

test("a served page says who waited when all events of that time have come", async (t) => {
  const hash = "view=timeline&see=0.0062..0.0067";
  const { turns } = await drawn(await open(t, nine(), { hash }));
  const { page } = await served(t, nine(), hash);
  await page.waitForFunction(() => window.fathomTest.drawn().turns.length && !window.fathomTest.drawn().waiting);
  assert.ok(turns.length > 0);
  assert.deepEqual((await drawn(page)).turns, turns);
});

test("pieces of a recording: nothing but numbers, nothing behind its end", async (t) => {
  const { url } = await served(t, many(), "view=timeline");
  const size = statSync(many()).size;
  const status = async (what) => (await fetch(`${url}recording/${what}`)).status;
  assert.equal(await status("0/24/100"), 200);
  for (const what of ["0/24", "0/24/", "0//5", "0/-1/5", "0/24/0", "0/024/5", "1/24/5", `0/${size - 4}/5`, "0/24/99999999999", "0/24/5/6", "0/18446744073709551615/5"])
    assert.equal(await status(what), 404, what);
});

test("a report of a chosen time has single calls of that time, an overview of the rest, and says so", async (t) => {
  const out = join(folder, "part.html");
  const said = spawnSync(fathom, ["view", many(), "-o", out, "--from", "1.2s", "--to", "1.3s"], { encoding: "utf8" });
  assert.equal(said.status, 0, said.stderr);
  assert.match(said.stderr, /single calls of the time that was asked for: the others would add \d+\.\d MB/);
  assert.ok(statSync(out).size < statSync(many()).size);
  const url = pathToFileURL(out).href;
  const hash = "view=timeline&see=1.22..1.2204";
  const inside = await drawn(await open(t, many(), { url, hash }));
  const whole = await drawn(await open(t, many(), { hash }));
  assert.ok(whole.boxes.filter((b) => b.exact).length > 20);
  assert.deepEqual(inside.boxes.map(place), whole.boxes.map(place));
  assert.deepEqual(inside.turns, whole.turns);
  assert.match(inside.bar, /single calls are those of 1\.20\d* s → 1\.30\d* s/);
  const page = await open(t, many(), { url, hash: "view=timeline&see=0.5..0.52" });
  const outside = await drawn(page);
  assert.ok(outside.boxes.some((b) => !b.exact && b.spans > 1), "the overview");
  assert.deepEqual(outside.turns, []); // who has no events here is not silent
  await page.evaluate(() => (location.hash = "view=table&at=0.5..0.6"));
  await settle(page);
  assert.equal(await page.locator(".chip").count(), 0); // what is not here is not counted
  for (const [from, to] of [["2", "1s"], ["1s", "1s"], ["x", "1s"]])
    assert.equal(spawnSync(fathom, ["view", many(), "-o", out, "-f", "--from", from, "--to", to]).status, 2);
  assert.equal(spawnSync(fathom, ["view", many(), "--from", "1s"]).status, 2);
});

for (const [name, width, height, theme] of [
  ["phone", 400, 844, "light"],
  ["phone", 400, 844, "dark"],
  ["wide", 1400, 900, "dark"],
])
  test(`the timeline fits: ${name}, ${theme}`, async (t) => {
    const page = await open(t, large(), { width, height, theme });
    await shot(page, `timeline-${name}-${theme}`);
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    assert.ok(over <= 0, "wider than the screen");
  });

test("arguments, results and variables stand where they belong", async (t) => {
  const program = join(here, "programs/values.py");
  const page = await open(t, record("values", "--trace", "--args", "handle", "--returns", "handle",
    "--watch", "values.py:8:total", "--watch", "values.py:11:name", newPython(), program));
  const { boxes, marks, curves } = await drawn(page);
  const calls = named(boxes, "handle");
  assert.equal(calls.length, 4);
  await page.mouse.move(calls[2].x + calls[2].w / 2, calls[2].y + calls[2].h / 2);
  await settle(page);
  const tip = await page.locator("#tip").innerText();
  assert.match(tip, /path\s+'\/page\/3'\s+size\s+3\s+rest\s+\(None\)\s+returned\s+dict of 1/);
  // Numbers are a curve: total before each turn of the loops, 1 + 2 + 3 + 4 of them.
  const curve = curves.find((c) => /^total \(values\.py:8\)/.test(c.title ?? c.name ?? ""));
  assert.ok(curve, JSON.stringify(curves.map((c) => Object.keys(c))));
  assert.deepEqual(Array.from(Object.values(curve.curves[0].values)), [0, 0, 0, 0, 0, 1, 0, 0, 1, 3]);
  const variables = marks.filter((m) => m.kind === "variable");
  assert.deepEqual(variables.map((m) => m.name), Array(4).fill("name (values.py:11)"));
  await page.mouse.click(calls[3].x + calls[3].w / 2, calls[3].y + calls[3].h / 2);
  const panel = page.locator(".durations");
  assert.match(await panel.locator(".minilist button").first().innerText(), /^path='\/page\/(\d)', size=\1, rest=\(None\), returned=dict of 1, at /);
  assert.deepEqual(page.troubles, []);
});

test("instants and regions that overlap have what they were given", async (t) => {
  const page = await open(t, record("jobs", "--trace", newPython(), join(here, "programs/jobs.py")), { hash: "view=timeline" });
  const { boxes, marks, tracks } = await drawn(page);
  const [main] = named(boxes, "main");
  const lane = tracks.find((track) => track.kind === "lane");
  const at = (ns) => main.x + ((ns - main.begin) / (main.end - main.begin)) * main.w;
  const tip = async (mark, down) => {
    await page.mouse.move(at(mark.begin) + 2, lane.top + down);
    await settle(page);
    return page.locator("#tip").innerText();
  };
  const [changed] = marks.filter((m) => m.kind === "instant");
  assert.match(await tip(changed, 10), /^instant: changed[^]*why\s+asked for\s+times\s+3/);
  const jobs = marks.filter((m) => m.kind === "region");
  assert.deepEqual(jobs.map((m) => m.name), ["job", "job"]);
  const [first, second] = jobs.sort((a, b) => a.begin - b.begin);
  assert.match(await tip(first, 19 + 7), /^region: job[^]*number\s+1\s+of\s+<b>both<\/b>$/);
  assert.match(await tip(second, 19 + 15 + 7), /^region: job[^]*number\s+2$/);
  assert.deepEqual(page.troubles, []);
});
