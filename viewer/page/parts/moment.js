// Instants of a run: which one is meant by the address ("2.5" seconds, or "1..2.5" for what changed), and how it is
// called. The engine knows what was alive then.

import { formatTime } from "./numbers.js";

/** Nanoseconds since the run began; `from` is -1 where one instant is meant.
 * @typedef {{from: number, to: number}} Moment */

/** @param {string} text @param {number} durationNs @returns {Moment | null} */
export function readMoment(text, durationNs) {
  const found = /^(\d+(?:\.\d+)?)(?:\.\.(\d+(?:\.\d+)?))?$/.exec(text);
  if (!found) return null;
  const times = found
    .slice(1)
    .filter((t) => t !== undefined)
    .map((t) => Math.min(Number(t) * 1e9, durationNs))
    .sort((a, b) => a - b);
  return times.length > 1 && times[0] < times[1]
    ? { from: times[0], to: times[1] }
    : { from: -1, to: times[0] };
}

/** As the address has it, with no more digits than `step` nanoseconds are worth.
 * @param {Moment} moment @param {number} step */
export function writeMoment(moment, step) {
  const digits = Math.max(0, Math.min(6, Math.ceil(9 - Math.log10(Math.max(1, step)))));
  const seconds = (/** @type {number} */ ns) => String(Number((ns / 1e9).toFixed(digits)));
  return moment.from < 0 ? seconds(moment.to) : `${seconds(moment.from)}..${seconds(moment.to)}`;
}

/** @param {Moment} moment */
export function momentTitle(moment) {
  return moment.from < 0
    ? `alive at ${formatTime(moment.to)}`
    : `${formatTime(moment.from)} → ${formatTime(moment.to)}`;
}

/** How long before what is asked for somebody really looked. @param {Moment} moment
 * @param {{from: number, to: number, toProcesses: number}} shown */
export function lookTitle(moment, shown) {
  if (!shown.toProcesses) return "no process was looked at then";
  const before = Math.max(moment.to - shown.to, moment.from < 0 ? 0 : moment.from - shown.from);
  return before < 1e5 ? "" : `as looked at ${moment.from < 0 ? "" : "at most "}${formatTime(before)} before`;
}
