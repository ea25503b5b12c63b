// Calls of a function by what they did: ten thousand requests that took the same way are one row, with the slowest of them
// to go to and where it differs from the usual one.

import { el } from "../dom.js";
import { formatCount, formatTime } from "../numbers.js";

/**
 * @typedef {import('../../app.js').App} App
 * @typedef {import('../../../engine/engine.js').CallGroup} CallGroup
 * @typedef {import('../../../engine/engine.js').CallDifference} CallDifference
 */

/** Rows at first, differences in a row, and how small a share of a call is none. */
const FEW = 5;
const NAMED = 3;
const WORTH = 0.05;

/** @param {App} app @returns {Node[]} nothing while it is read, or if there are no such calls */
export function groupsOf(app) {
  const { session, s } = app;
  const found = session.groups(s, s.f);
  if (!found?.groups.length) return [];
  const words = found.count === 1 ? "All of them did the same." : `${formatCount(found.calls)} calls, ${formatCount(found.count)} groups that did the same each.`;
  const most = found.groups.slice(0, FEW);
  return [
    el("h3", null, "Calls by what they did"),
    el("p.soft", null, words),
    ...most.map((group, i) => groupRow(app, group, i)),
    found.count > FEW ? el("p.soft", null, `${formatCount(found.count - FEW)} groups more; fathom report --alike lists them.`) : null,
  ].filter((node) => node !== null);
}

/** @param {App} app @param {CallGroup} group @param {number} i */
function groupRow(app, group, i) {
  const { slowest, calls } = group;
  const took = slowest.end - slowest.begin;
  const name = (/** @type {CallDifference} */ d) => app.session.label(d.func);
  const unlike = group.unlike.slice(0, NAMED).map((d) => `${name(d)} ×${formatCount(d.times)} instead of ×${formatCount(d.usualTimes)}`);
  const slow = group.differs
    .filter((d) => calls > 1 && Math.abs(d.self - d.usualSelf) >= took * WORTH)
    .slice(0, NAMED)
    .map((d) => `${name(d)} ${d.self < d.usualSelf ? "−" : "+"}${formatTime(Math.abs(d.self - d.usualSelf))}`);
  return el(
    "div.callgroup",
    null,
    el("b", null, `${formatCount(calls)} ${calls === 1 ? "call" : "calls"}`),
    el("span.soft", null, calls === 1 ? `, ${formatCount(group.spans)} calls in it` : `, half up to ${formatTime(group.half)}, ${formatCount(group.spans)} calls in each`),
    i && unlike.length ? el("p", null, `unlike the first: ${unlike.join(", ")}`) : null,
    el(
      "div.minilist",
      null,
      el("button.name", { type: "button", onclick: () => app.showSpan(slowest), title: "Go to it" }, calls === 1 ? "it took" : "the slowest of them"),
      el("span.num", null, formatTime(took)),
    ),
    slow.length ? el("p", null, `more than usual: ${slow.join(", ")}`) : null,
  );
}
