// Around the drawing of the timeline: what is in sight and what is measured, the controls, and what colours and signs mean.

import { choice, el, fill, toggle } from "../dom.js";
import { formatCount, formatTime, formatValue } from "../numbers.js";
import { rangeTitle } from "./range.js";
import { turnProcesses } from "./turns.js";

/**
 * @typedef {import('../../app.js').App} App
 * @typedef {import('../../views/timeline.js').TimelineView} TimelineView
 * @typedef {import('./scene.js').Scene} Scene
 */

/** @param {string} text @param {string} title @param {() => void} act */
const button = (text, title, act) => el("button", { type: "button", title, onclick: act }, text);

/** @param {HTMLElement} bar @param {App} app @param {TimelineView} view */
export function sightBar(bar, app, view) {
  const { scene, measured } = view;
  const { lanes, lanesInAll, runs, uncertainNs } = scene.facts;
  const sum = (/** @type {"events" | "lost"} */ key) => lanes.reduce((a, lane) => a + lane[key], 0);
  const lost = sum("lost");
  const key = JSON.stringify([scene.see, measured, lost, app.session.range(app.s), app.session.blocks.bytes]);
  if (bar.dataset.key === key) return;
  bar.dataset.key = key;
  if (measured)
    return fill(
      bar,
      el("b", null, formatTime(measured.to - measured.from)),
      el("span", null, rangeTitle(measured)),
      button("Only this in all views", "Enter", () => app.showRange(measured)),
      button("Zoom to it", "", () => view.lookAt(measured.from, measured.to, false)),
      button("Forget", "Escape", () => view.out()),
    );
  const whole = scene.see.to - scene.see.from >= scene.length;
  const words = [
    `${formatTime(scene.length)} · ${formatCount(lanesInAll)} ${lanesInAll === 1 ? "thread" : "threads"} · ${formatCount(sum("events"))} events`,
    runs > 1 ? `${formatCount(runs)} runs side by side by the time of day, to within ${formatTime(uncertainNs)} if their machines' clocks agreed` : "",
    lanesInAll > lanes.length ? `${formatCount(lanes.length)} of the threads are drawn` : "",
  ];
  fill(
    bar,
    whole ? null : button("Whole run", "0", () => view.lookAt(0, scene.length, false)),
    el("span", null, words.filter(Boolean).join(" · ")),
    lost ? el("span.warn", null, ` · ${formatCount(lost)} events were lost: hatched`) : null,
    leftOut(app) ? el("span.warn", null, ` · ${leftOut(app)}`) : null,
    app.session.blocks.bytes ? el("span", null, ` · reading ${formatValue(app.session.blocks.bytes, "bytes")}…`) : null,
    el("span.num", null, whole ? "" : `${rangeTitle(scene.see)} · ${formatTime(scene.see.to - scene.see.from)} in sight`),
  );
}

/** What is not in the page, in words. @param {App} app */
function leftOut(app) {
  const { leftOut, kept } = app.session.whole(app.s);
  if (!leftOut) return "";
  const rest = `${formatValue(leftOut, "bytes")} of single calls are not in this page, only an overview of them: open the recording with fathom view`;
  return kept ? `single calls are those of ${rangeTitle(kept)}; ${rest}` : rest;
}

/** @param {App} app @param {TimelineView} view */
export function timelineTools(app, view) {
  const { s, store, session } = app;
  const { summary } = session.whole(s);
  /** @type {[string, string][]} */
  const colors = [
    ["module", "module"],
    ["self", "self time"],
  ];
  if (summary.states) colors.push(["state", "state"]);
  return [
    toggle("Compact", s.compact, (compact) => store.set({ compact }), "Low rows without names: more threads at once"),
    toggle("All rows", s.tall.includes("*"), (all) => store.set({ tall: all ? ["*"] : [] }), "Deep calls, too, where they find no room"),
    choice("Colour", colors, s.color, (color) => store.set({ color })),
    el("button.button", { type: "button", title: "The span before, of what is searched for or selected (Shift n)", onclick: () => view.next(true) }, "‹ Previous"),
    el("button.button", { type: "button", title: "The next span of what is searched for or selected (n)", onclick: () => view.next() }, "Next ›"),
    session.isCompared(s)
      ? el("span.soft", null, "The timeline is that of the recording, not of what it is compared with.")
      : null,
  ];
}

/** @param {App} app @param {Scene} scene @returns {Node[]} */
export function timelineLegend(app, scene) {
  const { session, s, palette } = app;
  const c = palette.colors;
  const { id } = session.whole(s);
  scene.arrange();
  const overview = session.once(`overview ${id}`, () => ({ marks: [] }));
  const kinds = new Set(overview.marks.map((/** @type {any} */ m) => m.kind));
  /** @type {[string, string, string][]} */
  const signs = [
    ["exception", c.error, "▼ exception"],
    ["collection", c.collection, "garbage collection"],
    ["instant", c.accent, "◆ instant"],
    ["fork", c.ink, "◆ fork"],
    ["lost", c.error, "hatched: events lost"],
    ["waited", c["ink-faint"], "hatched: stood still for room"],
  ];
  const states = s.color === "state" ? (session.whole(s).summary.stateTitles ?? []) : [];
  const stateLegend = states.map((/** @type {string} */ text, /** @type {number} */ k) => [app.stateColor(k), text]);
  const item = (/** @type {string} */ color, /** @type {string} */ text) =>
    el("span", null, el("i", { style: { background: color } }), text);
  return [
    ...(stateLegend.length ? stateLegend : app.colors().legend).map((/** @type {[string, string]} */ [color, text]) => item(color, text)),
    ...signs.filter(([kind]) => kinds.has(kind)).map(([, color, text]) => item(color, text)),
    ...(turnProcesses(scene.facts.lanes, session.whole(s).summary).length ? [item(c["ink-soft"], "hatched foot of a box: waits for the GIL, if near enough")] : []),
  ];
}
