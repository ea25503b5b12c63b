// Stretches of time: as the address has them ("0.15..0.2" seconds), as words, and as the steps of an axis.

import { formatTime } from "../numbers.js";

/** Nanoseconds since the timeline began. @typedef {{from: number, to: number}} Range */

/** What the address means, within the timeline; null: nothing that makes sense. @param {string} text
 * @param {number} length @returns {Range | null} */
export function readRange(text, length) {
  const found = /^(\d{1,9}(?:\.\d{1,12})?)\.\.(\d{1,9}(?:\.\d{1,12})?)$/.exec(text);
  if (!found) return null;
  const [from, to] = found.slice(1).map((t) => Math.min(Math.round(Number(t) * 1e9), length));
  return from < to ? { from, to } : null;
}

/** @param {Range} range @param {number} [step] of no more digits than so many nanoseconds are worth */
export function writeRange(range, step = 1) {
  const digits = Math.max(0, Math.min(9, Math.ceil(9 - Math.log10(Math.max(1, step)))));
  const seconds = (/** @type {number} */ ns) => String(Number((ns / 1e9).toFixed(digits)));
  return `${seconds(range.from)}..${seconds(range.to)}`;
}

/** @param {Range} range */
export function rangeTitle(range) {
  const step = (range.to - range.from) / 100;
  return `${formatInstant(range.from, step)} → ${formatInstant(range.to, step)}`;
}

/** @type {[number, string][]} */
const UNITS = [
  [1, "ns"],
  [1e3, "µs"],
  [1e6, "ms"],
  [1e9, "s"],
];

/** An instant, as exactly as `step` nanoseconds can be told apart. @param {number} ns @param {number} step */
export function formatInstant(ns, step) {
  if (ns >= 600e9 && step >= 1e9) return formatTime(ns);
  const [unit, name] = UNITS.findLast(([size]) => Math.abs(ns) >= size) ?? UNITS[0];
  const digits = Math.max(0, Math.min(9, Math.ceil(Math.log10(unit / Math.max(1, step)))));
  return ns ? `${(ns / unit).toFixed(digits)} ${name}` : "0";
}

/** The places of an axis: every `step`, a round number, about `count` of them. @param {Range} range @param {number} count
 * @returns {{step: number, ticks: number[]}} */
export function timeSteps(range, count) {
  const rough = Math.max(1, (range.to - range.from) / Math.max(1, count));
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough * 0.999) ?? rough;
  const ticks = [];
  for (let t = Math.ceil(range.from / step) * step; t <= range.to; t += step) ticks.push(t);
  return { step, ticks };
}

/** The ruler's words: whole instants, or where that is too long to be read, what is added to a round one.
 * @param {Range} range @param {number} step @returns {{base: number, label: (t: number) => string}} */
export function axisWords(range, step) {
  if (range.to / step < 1e4) return { base: 0, label: (t) => formatInstant(t, step) };
  const round = 10 ** Math.ceil(Math.log10(range.to - range.from));
  const base = Math.floor(range.from / round) * round;
  return { base, label: (t) => `+${formatInstant(t - base, step)}` };
}

/** A stretch of at least `least`, moved into the timeline. @param {number} from @param {number} to @param {number} length
 * @param {number} [least] @returns {Range} */
export function fitRange(from, to, length, least = 20) {
  const span = Math.min(length, Math.max(least, to - from));
  const begin = Math.max(0, Math.min(length - span, (from + to - span) / 2));
  return { from: begin, to: begin + span };
}
