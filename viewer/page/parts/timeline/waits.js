// How often and how long threads waited for the interpreter, in the stretch of time that is shown: a table, each row leading to
// the longest wait. What single hand-overs are is drawn on the timeline (turns.js).

import { el } from "../dom.js";
import { plainTable } from "../grid.js";
import { formatCount, formatTime } from "../numbers.js";
import { laneTitle } from "./lanes.js";
import { formatInstant, writeRange } from "./range.js";
import { turnProcesses } from "./turns.js";

/** @typedef {import('../../app.js').App} App */

/** Up to so many events all of them are read without being asked for. */
const AT_ONCE = 3e6;
const SHOWN_ROWS = 200;
/** What is shown around the longest wait, as a share of it. */
const AROUND = 0.25;

/** For which recording and range it was asked for although it takes a while. */
let asked = "";

/** @param {App} app @returns {Node[]} nothing where there is only one thread, or it cannot be known */
export function gilWaits(app) {
  const { session, s } = app;
  const range = session.known(s);
  const { id, summary } = session.whole(s);
  const lanes = session.timeline(s)?.lanes ?? [];
  if (!range || session.isCompared(s) || !turnProcesses(lanes, summary).length) return [];
  const key = `${id} ${range.from} ${range.to}`;
  const title = el("h2", null, "Waiting for the GIL");
  const all = lanes.reduce((a, lane) => a + lane.events, 0);
  const events = (all * (range.to - range.from)) / Math.max(1, session.timeline(s)?.lengthNs ?? 1);
  const ask = () => {
    asked = key;
    app.frame();
  };
  if (events > AT_ONCE && asked !== key)
    return [title, el("button.button", { type: "button", onclick: ask }, `Count it from about ${formatCount(Math.round(events / 1e6))} million events`)];
  const waits = session.gilWaits(s);
  return waits ? [title, ...table(app, waits)] : [title, el("p.soft", null, "Reading their calls…")];
}

/** @param {App} app @param {import('../../../engine/engine.js').GilWaits[]} waits */
function table(app, waits) {
  const { session, s } = app;
  const { summary } = session.whole(s);
  const lanes = session.timeline(s)?.lanes ?? [];
  const shown = waits
    .map((wait, lane) => ({ ...wait, lane }))
    .filter((wait) => wait.known && wait.turns)
    .sort((a, b) => b.most - a.most || b.turns - a.turns);
  if (!shown.length) return [el("p.soft", null, "No thread got the interpreter from another.")];
  const go = (/** @type {number} */ at, /** @type {number} */ ns) => (/** @type {Event} */ event) => {
    event.preventDefault();
    const see = { from: Math.max(0, at - ns * AROUND), to: at + ns * (1 + AROUND) };
    app.store.set({ view: "timeline", see: writeRange(see, ns / 1e5) });
  };
  const time = (/** @type {number} */ ns, /** @type {number} */ count) => (count ? formatTime(ns) : "");
  return [
    el("p.soft", null, "How often each thread got it from another, and how long its Python code stood still before that, from below and from above as events tell. A call of C may wait for anything, so it does not count."),
    plainTable(
      "Waiting for the GIL",
      ["thread", ".num turns", ".num waits", ".num at least", ".num at most", ".num longest up to", ".num from"],
      shown.slice(0, SHOWN_ROWS).map((wait) => [
        el("td.name", null, laneTitle(summary, lanes[wait.lane])),
        formatCount(wait.turns),
        formatCount(wait.waits),
        time(wait.least, wait.waits),
        time(wait.most, wait.waits),
        time(wait.longest, wait.waits),
        wait.waits ? el("td.num", null, el("a", { href: "#", onclick: go(wait.longestAt, wait.longest) }, formatInstant(wait.longestAt, wait.longest / 100))) : "",
      ]),
    ),
  ];
}
