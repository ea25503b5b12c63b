// What the panel beside the pointer says of spans, marks and curves.

import { CELL, SPAN } from "../../../engine/engine.js";
import { formatCount, formatTime } from "../numbers.js";
import { shorten, visible } from "../text.js";
import { formatInstant } from "./range.js";

/**
 * @typedef {import('../../app.js').App} App
 * @typedef {import('../tip.js').TipText} TipText
 * @typedef {import('./scene.js').FoundCell} FoundCell
 * @typedef {import('../../../engine/engine.js').TimelineMark} TimelineMark
 */

/** Rows that are named where a row stands for them. */
const MOST_OUTER = 20;

/** @param {App} app @param {FoundCell} found @param {number} pixel @returns {TipText} */
export function cellTip(app, { track, cells, i }, pixel) {
  const { session } = app;
  /** @type {[string, string, string?][]} */
  const facts = [];
  if (cells.flags[i] & CELL.EXACT) {
    facts.push(["time", formatTime(cells.end[i] - cells.begin[i])], ["from", formatInstant(cells.begin[i], pixel)]);
  } else {
    facts.push(
      ["longest", formatTime(cells.longest[i])],
      ["here", `${formatCount(cells.spans[i])} ${cells.spans[i] === 1 ? "span begins" : "spans begin"}`],
      ["filled", `${Math.round((cells.covered[i] / 255) * 100)} %`],
      ["from", formatInstant(cells.begin[i], pixel)],
    );
  }
  const titles = session.whole(app.s).summary.stateTitles;
  if (track.note === "sampled" && titles?.[cells.state[i]]) facts.push(["state", titles[cells.state[i]]]);
  facts.push(["thread", track.title.slice(0, 60)], ["depth", String(cells.depth[i] + 1)]);
  if (cells.flags[i] & CELL.EXACT) facts.push(...valuesOf(app, { lane: track.lane, begin: cells.begin[i], end: cells.end[i], depth: cells.depth[i] }));
  if (cells.flags[i] & CELL.ERROR) facts.push(["", "left by an exception"]);
  if (cells.flags[i] & CELL.LOST) facts.push(["", "events were lost here"]);
  return { title: session.label(cells.func[i]), place: session.place(cells.func[i], true), facts };
}

/** How long code waited for the interpreter. @param {import('./turns.js').Turn} turn @param {string} other title of the thread that had it
 * @returns {[string, string][]} */
export function turnFacts({ idle, taken, after, before }, other) {
  const [least, most] = [formatTime(after - taken), formatTime(before - idle)];
  return [
    ["waited", `${after > taken && least !== most ? `about ${least} to ${most}` : `up to ${most}`} for the GIL`],
    ["had it last", other.slice(0, 60)],
    ["", "as events tell: or it waited for what is no call, as in with lock:"],
  ];
}

/** Of a row that stands for outer ones. @param {App} app @param {import('./lanes.js').Track} track @returns {TipText} */
export function foldTip({ session }, { outer, title }) {
  /** @type {[string, string][]} */
  const names = outer.map((func, i) => [String(i + 1), shorten(session.label(func), 80)]);
  const shown = names.length > MOST_OUTER ? [...names.slice(0, 3), /** @type {[string, string]} */ (["…", ""]), ...names.slice(3 - MOST_OUTER)] : names;
  return {
    title: `${outer.length} outer rows`,
    place: "the same calls for all of the time in sight, but for what is too short to be seen at its ends; a click shows them",
    facts: [...shown, ["thread", title.slice(0, 60)]],
  };
}

/** What a span was called with and what it returned, if that was asked for.
 * @param {App} app @param {{ lane: number, begin: number, end: number, depth: number }} span @returns {[string, string][]} */
export function valuesOf({ session, s }, { lane, begin, end, depth }) {
  const values = session.engine.values(session.whole(s).id, lane, begin, end, depth);
  return values.map(([name, text]) => [
    visible(shorten(name === "return" ? "returned" : name === "yield" ? "yielded" : name, 40)),
    visible(shorten(text, 200)),
  ]);
}

/** What a span says of itself, in words. @param {number} flags */
export function spanWords(flags) {
  return [
    flags & SPAN.BEGAN_BEFORE ? "began before" : "",
    flags & SPAN.OPEN ? "had not ended" : "",
    flags & SPAN.UNWOUND ? "left by an exception" : "",
    flags & SPAN.RESUMED ? "went on" : "",
    flags & SPAN.YIELDED ? "gave up control" : "",
  ].filter(Boolean);
}

/** @type {Record<string, string>} */
const KINDS = {
  exception: "exception",
  collection: "garbage collection",
  instant: "instant",
  counter: "counter",
  region: "region",
  lost: "events lost",
  task: "task",
  fork: "fork",
  waited: "stood still for room to record",
  clock: "the clock jumped",
  await: "begins to wait",
  value: "value",
  variable: "variable",
};

/** @param {App} app @param {TimelineMark} mark @param {number} pixel @returns {TipText} */
export function markTip(app, mark, pixel) {
  /** @type {[string, string, string?][]} */
  const facts = [["at", formatInstant(mark.begin, pixel)]];
  if (mark.end > mark.begin) facts.push(["time", formatTime(mark.end - mark.begin)]);
  if (mark.count > 1) facts.push(["here", `${formatCount(mark.count)} of them`]);
  if (mark.kind === "collection")
    facts.push(["generation", String(mark.value)], ["collected", formatCount(mark.other)]);
  if (mark.kind === "task") facts.push(["task", `number ${mark.value}`]);
  if (mark.kind === "lost") facts.push(["lost", `${formatCount(mark.value)} events`]);
  if (mark.kind === "variable") {
    const { engine } = app.session;
    for (const [name, text] of engine.values(app.session.whole(app.s).id, mark.lane, mark.begin, mark.end).slice(0, 5))
      facts.push([mark.name ? "value" : visible(shorten(name, 40)), visible(shorten(text, 200))]);
  }
  if (mark.count === 1 && (mark.kind === "instant" || mark.kind === "region"))
    for (const [name, text] of app.session.engine.markValues(app.session.whole(app.s).id, mark))
      facts.push([visible(shorten(name, 40)), visible(shorten(text, 200))]);
  if (mark.kind === "fork") facts.push(["child", `pid ${mark.value}`]);
  const kind = KINDS[mark.kind] ?? mark.kind;
  const name = visible(shorten(mark.name, 300));
  return {
    title: name ? `${kind}: ${name}` : kind,
    place: mark.func > 0 ? `in ${app.session.label(mark.func)}  ${app.session.place(mark.func)}` : "",
    facts,
  };
}
