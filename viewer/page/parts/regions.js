// Regions of a program on the curve of memory: a strip for each visit, those inside of others below them.

import { fitText } from "./paint.js";
import { modulePalette } from "./colors.js";
import { readableOn } from "./ink.js";
import { formatDelta, formatTime, formatValue } from "./numbers.js";
import { shorten, visible } from "./text.js";

/**
 * @typedef {import('../../engine/engine.js').RegionVisit} RegionVisit
 * @typedef {RegionVisit & {lane: number, color: number}} LaidVisit  times since the run began
 */

export const LANE = 16;
const MOST_LANES = 4;
const FONT = { size: 11 };

/** The visits of a process, or of all (-1), in lanes where no two overlap. What finds none is left out.
 * @param {RegionVisit[]} visits @param {number} process @param {number} first nanoseconds when the run began
 * @returns {{visits: LaidVisit[], lanes: number, omitted: number}} */
export function layRegions(visits, process, first) {
  /** @type {number[]} when a lane is free again */
  const busy = [];
  /** @type {Map<string, number>} */
  const colors = new Map();
  /** @type {LaidVisit[]} */
  const laid = [];
  const wanted = visits
    .filter((v) => process < 0 || v.process === process)
    .sort((a, b) => a.begin - b.begin || b.end - a.end);
  for (const v of wanted) {
    let lane = Math.min(v.level, MOST_LANES);
    while (lane < MOST_LANES && (busy[lane] ?? 0) > v.begin) lane++;
    if (lane >= MOST_LANES) continue;
    busy[lane] = v.end;
    if (!colors.has(v.name)) colors.set(v.name, colors.size);
    const color = colors.get(v.name) ?? 0;
    laid.push({ ...v, begin: v.begin - first, end: v.end - first, lane, color });
  }
  const lanes = laid.reduce((most, v) => Math.max(most, v.lane + 1), 0);
  return { visits: laid, lanes, omitted: wanted.length - laid.length };
}

/** @param {import('./paint.js').Painter} p @param {LaidVisit[]} visits @param {(t: number) => number} x @param {number} top
 * @param {import('./colors.js').Palette} palette */
export function paintRegions(p, visits, x, top, palette) {
  const colors = modulePalette(palette.dark);
  for (const v of visits) {
    const left = x(v.begin);
    const width = Math.max(2, x(v.end) - left);
    const color = colors[v.color % (colors.length - 1)];
    p.rect(left, top + v.lane * LANE, width - (width > 4 ? 1 : 0), LANE - 2, color, 2);
    const text = fitText(visible(shorten(v.name, 200)), width - 8, FONT);
    if (text) p.text(text, left + 4, top + v.lane * LANE + LANE / 2 - 1, readableOn(color, palette.dark), FONT);
  }
}

/** @param {LaidVisit} v @param {import('./curves.js').Curves} curves @returns {import('./tip.js').TipText} */
export function regionTip(v, curves) {
  /** @type {[string, string, string?][]} */
  const facts = [
    ["from", formatTime(v.begin)],
    ["to", formatTime(v.end)],
    ["time", formatTime(v.end - v.begin)],
  ];
  const heap = curves.curves.find((c) => c.key === "heap") ?? curves.curves[0];
  let most = Math.max(v.beginBytes, v.endBytes);
  if (heap)
    curves.ns.forEach((t, i) => {
      if (t >= v.begin && t <= v.end && heap.values[i] > most) most = heap.values[i];
    });
  if (most >= 0) facts.push(["peak", formatValue(most, "bytes")]);
  if (v.beginBytes >= 0 && v.endBytes >= 0) facts.push(["net", formatDelta(v.endBytes - v.beginBytes, "bytes")]);
  return { title: visible(shorten(v.name, 300)), facts };
}
