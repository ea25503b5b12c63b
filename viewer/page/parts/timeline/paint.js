// How the timeline is drawn: boxes of lanes, marks, curves and the ruler. It is told what is where; it asks nobody.

import { fitText } from "../paint.js";
import { readableOn } from "../ink.js";
import { modulePalette } from "../colors.js";
import { formatCount, formatValue } from "../numbers.js";
import { shorten, visible } from "../text.js";
import { CELL } from "../../../engine/engine.js";
import { HEAD, STRIP, hasRow, rowTop, rowWords, rowsTop } from "./lanes.js";
import { axisWords, timeSteps } from "./range.js";

/**
 * @typedef {import('../paint.js').Painter} Painter
 * @typedef {import('./lanes.js').Track} Track
 * @typedef {import('./range.js').Range} Range
 * @typedef {import('../../../engine/engine.js').Cells} Cells
 * @typedef {import('../../../engine/engine.js').TimelineMark} TimelineMark
 * @typedef {{p: Painter, width: number, height: number, see: Range, x: (t: number) => number, offset: number,
 *   palette: import('../colors.js').Palette}} Paper  `offset` is what of the tracks is above the upper edge
 */

export const RULER = 24;
const FONT = { size: 11 };
const BOLD = { size: 11, weight: 600 };
/** From this height on a row has a label. */
const LABEL_ROW = 12;

/** @type {Map<string, string>} */
const faded = new Map();

/** A colour that lets the paper through. @param {string} color hsl(…) or #rrggbb @param {number} covered 0 to 255 */
function fade(color, covered) {
  const step = Math.round((covered / 255) * 8);
  if (step >= 8) return color;
  const key = `${color}${step}`;
  let made = faded.get(key);
  if (!made) {
    const alpha = 0.3 + 0.7 * (step / 8);
    made = color.startsWith("hsl(") ? color.replace(")", ` / ${alpha.toFixed(2)})`)
      : `${color}${Math.round(alpha * 255).toString(16).padStart(2, "0")}`;
    if (faded.size > 20000) faded.clear();
    faded.set(key, made);
  }
  return made;
}

/**
 * The boxes of a lane; how many were drawn.
 * @param {Paper} paper @param {Track} track @param {Cells} cells
 * @param {{color: (i: number) => string, label: (func: number) => string, has: Uint8Array | null, selected: number}} look
 */
export function paintCells(paper, track, cells, { color, label, has, selected }) {
  const { p, width, height, x, offset, palette } = paper;
  const c = palette.colors;
  const veil = palette.dark ? "rgba(20, 23, 27, 0.62)" : "rgba(255, 255, 255, 0.66)";
  const gap = track.row > 6 ? 1 : 0;
  let drawn = 0;
  /** @type {[number, number, number][]} */
  const framed = [];
  for (let i = 0; i < cells.length; i++) {
    const depth = cells.depth[i];
    const y = rowTop(track, depth) - offset;
    if (!hasRow(track, depth) || y > height || y + track.row < RULER) continue;
    const left = Math.max(0, x(cells.begin[i]));
    const right = Math.min(width, x(cells.end[i]));
    if (right < 0 || left > width) continue;
    const w = Math.max(0.6, right - left - (right - left > 3 ? 0.7 : 0));
    const exact = cells.flags[i] & CELL.EXACT;
    const full = color(i);
    const fill = exact ? full : fade(full, cells.covered[i]);
    p.rect(left, y, w, track.row - gap, fill);
    const hit = has ? has[cells.func[i]] : 0;
    if (has && !hit) p.rect(left, y, w, track.row - gap, veil);
    if (hit) p.rect(left, y + track.row - 3 - gap, w, Math.min(3, track.row), c.mark);
    if (cells.flags[i] & CELL.ERROR) p.rect(left, y, Math.min(3, w), track.row - gap, c.error);
    if (track.row >= LABEL_ROW && w > 24 && (exact || cells.covered[i] > 127)) {
      const text = fitText(label(cells.func[i]), w - 7, FONT);
      const ink = has && !hit ? c["ink-soft"] : readableOn(full, palette.dark);
      if (text) p.text(text, left + 4, y + track.row / 2 - 0.5, ink, FONT);
    }
    if (cells.func[i] === selected) framed.push([left, y, w]);
    drawn++;
  }
  for (const [left, y, w] of framed)
    if (w > 2) p.frame(left + 0.75, y + 0.5, Math.max(0.5, w - 1.5), track.row - gap - 1, c.select, 1.5);
  return drawn;
}

/** Where events are missing. @param {Paper} paper @param {number} left @param {number} right @param {number} top
 * @param {number} bottom @param {string} color */
function hatch({ p, width, height }, left, right, top, bottom, color) {
  const [x0, x1] = [Math.max(0, left), Math.min(width, Math.max(right, left + 3))];
  const [y0, y1] = [Math.max(RULER, top), Math.min(height, bottom)];
  if (x1 <= x0 || y1 <= y0) return;
  p.rect(x0, y0, x1 - x0, y1 - y0, `${color}2e`);
  /** @type {import('../paint.js').PathStep[]} */
  const lines = [];
  const tall = y1 - y0;
  for (let at = Math.floor((x0 - tall) / 7) * 7; at < x1; at += 7) {
    // The part of the slanted line from (at, y1) to (at + tall, y0) that lies inside.
    const [a, b] = [Math.max(at, x0), Math.min(at + tall, x1)];
    if (a < b) lines.push(["M", a, y1 - (a - at)], ["L", b, y1 - (b - at)]);
  }
  p.path(lines, null, color, 1);
}

/** Cells in which something was lost, in whatever level of detail. @param {Paper} paper @param {Track} track @param {Cells} cells */
export function paintLostCells(paper, track, cells) {
  const { x, offset, palette } = paper;
  for (let i = 0; i < cells.length; i++)
    if (cells.flags[i] & CELL.LOST && hasRow(track, cells.depth[i])) {
      const y = rowTop(track, cells.depth[i]) - offset;
      hatch(paper, x(cells.begin[i]), x(cells.end[i]), y, y + track.row, palette.colors.error);
    }
}

/** More lines than that hide what is below them. */
const MOST_HANDED = 150;
/** Below the name of the box that waits. */
const FOOT = 4;

/** Where threads waited for the interpreter, at the foot of a box: shaded while they may have, hatched while another had it, and
 * a line from that one.
 * @param {Paper} paper @param {import('./turns.js').Turn[]} turns @param {(lane: number) => Track | undefined} trackOf */
export function paintTurns(paper, turns, trackOf) {
  const { p, x, width, height, offset, palette } = paper;
  const shade = palette.dark ? "rgba(0, 0, 0, 0.35)" : "rgba(255, 255, 255, 0.5)";
  const color = palette.colors["ink-soft"];
  for (const turn of turns) {
    const [track, other] = [trackOf(turn.lane), trackOf(turn.other)];
    if (!track || !hasRow(track, turn.depth)) continue;
    const y = rowTop(track, turn.depth) - offset;
    const [left, right] = [Math.max(0, x(turn.idle)), Math.min(width, x(turn.before))];
    if (y > height || y + track.row < RULER || right <= left) continue;
    const low = y + Math.max(0, track.row - 1 - FOOT);
    p.rect(left, low, right - left, y + track.row - 1 - low, shade);
    hatch(paper, x(turn.taken), x(turn.after), low, y + track.row - 1, color);
    const at = x(turn.before);
    if (!other || turns.length > MOST_HANDED || at < 0 || at > width) continue;
    const from = other.top < track.top ? other.top + other.height - 6 - offset : rowsTop(other) - offset;
    p.path([["M", x(turn.after), from], ["L", at, low]], null, palette.colors["ink-faint"], 1);
  }
}

/** The row that stands for outer ones. @param {Paper} paper @param {Track} track @param {string[]} words the first that fits is said
 * @param {boolean} hit is one of them searched for? @param {boolean} selected */
export function paintFold({ p, width, height, offset, palette }, track, words, hit, selected) {
  const y = rowsTop(track) - offset;
  const c = palette.colors;
  if (!track.fold || y > height || y + track.fold < RULER) return;
  p.rect(0, y, width, track.fold - 1, c.panel);
  p.rect(0, y + track.fold - 1.5, width, 0.5, c["line-strong"]);
  if (hit) p.rect(0, y + track.fold - 4, width, 3, c.mark);
  if (selected) p.frame(0.75, y + 0.5, width - 1.5, track.fold - 2, c.select, 1.5);
  if (track.fold < LABEL_ROW) return;
  const text = words.find((w) => p.measure(w, FONT) < width - 24) ?? fitText(words[words.length - 1], width - 24, FONT);
  if (text) p.text(`⌄ ${text}`, 6, y + track.fold / 2 - 0.5, c["ink-soft"], FONT);
}

/** The head of a track, over whatever scrolled below it. @param {Paper} paper @param {Track} track */
export function paintHead({ p, width, height, offset, palette }, track) {
  const y = track.top - offset;
  const c = palette.colors;
  if (y > height || y + HEAD < RULER) return;
  if (track.kind === "process") {
    p.rect(0, y, width, HEAD + 1, c.panel);
    p.rect(0, y, width, 1, c["line-strong"]);
  }
  const words = track.kind === "lane" ? `${track.shut ? "▸" : "▾"} ${track.title}` : track.title;
  const text = fitText(words, width - 16, BOLD);
  const note = [track.note, rowWords(track)].filter(Boolean).join(" · ");
  const wide = p.measure(text, BOLD) + (note ? p.measure(note, FONT) + 8 : 0);
  // Marks go on behind the name.
  if (track.kind !== "process") p.rect(2, y + 2, wide + 9, HEAD - 3, palette.dark ? "rgba(20, 23, 27, 0.82)" : "rgba(255, 255, 255, 0.85)", 4);
  p.text(text, 6, y + HEAD / 2 + 1, c.ink, BOLD);
  if (note) p.text(note, 14 + p.measure(text, BOLD), y + HEAD / 2 + 1, c["ink-soft"], FONT);
  track.noteFrom = rowWords(track) ? 14 + p.measure(text, BOLD) : Infinity;
  track.noteTo = 9 + wide;
}

/** Marks of a lane: in its head, or over all of it. @param {Paper} paper @param {Track} track @param {TimelineMark[]} marks
 * @param {Map<TimelineMark, number>} strips */
export function paintMarks(paper, track, marks, strips) {
  const { p, x, width, offset, palette } = paper;
  const c = palette.colors;
  const head = track.top - offset;
  const colors = modulePalette(palette.dark);
  let last = -Infinity;
  for (const mark of marks) {
    const [left, right] = [x(mark.begin), x(mark.end)];
    if (right < -6 || left > width + 6) continue;
    const y = head + HEAD;
    if (mark.kind === "lost") hatch(paper, left, right, y, head + track.height - 4, c.error);
    else if (mark.kind === "waited") hatch(paper, left, right, y, head + track.height - 4, c["ink-faint"]);
    else if (mark.kind === "collection")
      p.rect(Math.max(0, left), y - 5, Math.max(1.5, Math.min(width, right) - Math.max(0, left)), 4, c.collection);
    else if (mark.kind === "exception") {
      // Where they stand side by side each is a line.
      if (left - last < 5) p.rect(left - 0.75, y - 7, 1.5, 6, c.error);
      else triangle(p, left, y - 1, c.error);
      last = left;
    }
    else if (mark.kind === "instant" || mark.kind === "variable") diamond(p, left, y - 5, c.accent);
    else if (mark.kind === "fork") diamond(p, left, y - 5, c.ink);
    else if (strips.has(mark)) {
      const strip = /** @type {number} */ (strips.get(mark));
      const [a, b] = [Math.max(0, left), Math.min(width, Math.max(right, left + 2))];
      const color = colors[hash(mark.name) % (colors.length - 1)];
      p.rect(a, y + strip * STRIP, b - a - (b - a > 3 ? 0.7 : 0), STRIP - 2, color, 3);
      const text = fitText(visible(shorten(mark.name, 200)), b - a - 7, FONT);
      if (text) p.text(text, a + 4, y + strip * STRIP + STRIP / 2 - 1, readableOn(color, palette.dark), FONT);
    }
  }
}

/** Tasks: boxes are their steps, a line is the time between them. @param {Paper} paper @param {Track} track
 * @param {TimelineMark[]} steps @param {(step: TimelineMark) => number} rowOf -1: it has none
 * @param {{row: number, begin: number, end: number, name: string}[]} lives of tasks that can be told apart */
export function paintTasks(paper, track, steps, rowOf, lives) {
  const { p, x, width, height, offset, palette } = paper;
  const colors = modulePalette(palette.dark);
  const top = track.top - offset + HEAD;
  const inSight = (/** @type {number} */ row) => top + row * STRIP < height && top + (row + 1) * STRIP > RULER;
  const colorOf = (/** @type {string} */ name) => colors[hash(name) % (colors.length - 1)];
  for (const { row, begin, end, name } of lives) {
    const [a, b] = [Math.max(0, x(begin)), Math.min(width, x(end))];
    if (b > a && inSight(row)) p.rect(a, top + row * STRIP + STRIP / 2 - 1.5, b - a, 1.5, colorOf(name));
  }
  for (const step of steps) {
    const row = rowOf(step);
    if (row < 0 || !inSight(row)) continue;
    const y = top + row * STRIP;
    const [a, b] = [Math.max(0, x(step.begin)), Math.min(width, x(step.end))];
    const color = step.value ? colorOf(step.name) : palette.colors["ink-faint"];
    p.rect(a, y, Math.max(1.2, b - a - (b - a > 3 ? 0.7 : 0)), STRIP - 2, color, b - a > 6 ? 3 : 0);
    const text = fitText(visible(shorten(step.name, 200)), b - a - 7, FONT);
    if (text) p.text(text, a + 4, y + STRIP / 2 - 1, readableOn(color, palette.dark), FONT);
  }
}

const MOST_FLOWS = 300;

/** Curves from one track to another. @param {Paper} paper @param {{t: number, from: number, to: number, until: number, made: boolean}[]} flows */
export function paintFlows({ p, x, width, offset, palette }, flows) {
  if (flows.length > MOST_FLOWS) return; // more than that hide what is below them
  for (const flow of flows) {
    const [a, b] = [x(flow.t), x(flow.until)];
    const [y0, y1] = [flow.from - offset, flow.to - offset];
    if (Math.max(a, b) < 0 || Math.min(a, b) > width) continue;
    const bend = Math.min(24, Math.abs(y1 - y0) / 2);
    const color = palette.colors[flow.made ? "accent" : "ink-soft"];
    p.path([["M", a, y0], ["C", a + bend, y0, b - bend, y1, b, y1]], null, color, 1);
    const up = y1 > y0 ? -1 : 1;
    p.path([["M", b, y1], ["L", b - 4, y1 + 3 * up], ["L", b - 1, y1 + 5 * up], ["Z"]], color, null);
  }
}

/** @param {string} text */
export function hash(text) {
  let h = 7;
  for (let i = 0; i < text.length && i < 200; i++) h = (Math.imul(h, 31) + text.charCodeAt(i)) >>> 0;
  return h;
}

/** @param {Painter} p @param {number} x @param {number} y @param {string} color */
function triangle(p, x, y, color) {
  p.path([["M", x - 4, y - 7], ["L", x + 4, y - 7], ["L", x, y], ["Z"]], color, null);
}

/** @param {Painter} p @param {number} x @param {number} y @param {string} color */
function diamond(p, x, y, color) {
  p.path([["M", x, y - 4.5], ["L", x + 4, y], ["L", x, y + 4.5], ["L", x - 4, y], ["Z"]], color, null);
}

/** What a curve shows: points in the order of time, of each the lowest and the highest around it.
 * @typedef {{ns: ArrayLike<number>, values: ArrayLike<number>, lows: ArrayLike<number>, highs: ArrayLike<number>, color: string, unit: string}} CurveData */

/** @param {Paper} paper @param {Track} track @param {CurveData[]} curves @returns {boolean} was there anything? */
export function paintCurves(paper, track, curves) {
  const { p, x, width, height, offset, palette } = paper;
  const top = track.top - offset + HEAD;
  const tall = track.height - HEAD - 6;
  if (top > height || top + tall < RULER) return false;
  let [low, high] = [0, 0];
  for (const curve of curves)
    for (let i = 0; i < curve.values.length; i++) {
      low = Math.min(low, curve.lows[i]);
      high = Math.max(high, curve.highs[i]);
    }
  const y = (/** @type {number} */ v) => top + tall - ((v - low) / (high - low || 1)) * tall;
  for (const curve of curves) {
    /** @type {import('../paint.js').PathStep[]} */
    const path = [];
    for (let i = 0; i < curve.values.length; i++) {
      const at = Math.max(-4, Math.min(width + 4, x(curve.ns[i])));
      // A value stays until the next one; what happened within a pixel is a line up and down.
      if (i) path.push(["L", at, y(curve.values[i - 1])]);
      else path.push(["M", at, y(curve.values[i])]);
      if (curve.highs[i] > curve.lows[i]) path.push(["L", at, y(curve.highs[i])], ["L", at, y(curve.lows[i])]);
      path.push(["L", at, y(curve.values[i])]);
    }
    if (path.length === 2) path.push(["L", width + 4, y(curve.values[0])]);
    p.path(path, null, curve.color, 1.5);
  }
  p.rect(0, top + tall, width, 0.5, palette.colors["line-strong"]);
  const unit = curves[0]?.unit ?? "";
  const number = (/** @type {number} */ v) =>
    unit ? formatValue(v, unit) : Math.abs(v) < 1e3 ? String(Number(v.toPrecision(4))) : formatCount(v);
  if (curves.length)
    p.text(`${number(low)} … ${number(high)}`, width - 6, top - HEAD / 2, palette.colors["ink-soft"], FONT, "right");
  return curves.length > 0;
}

/** Lines behind everything, every step of the ruler. @param {Paper} paper */
export function paintGrid({ p, width, height, see, x, palette }) {
  const { ticks } = timeSteps(see, Math.max(2, width / 130));
  for (const t of ticks) p.rect(Math.round(x(t)), RULER, 0.5, height - RULER, palette.colors["line-strong"]);
}

/** @param {Paper} paper @param {number} length of the timeline */
export function paintRuler({ p, width, see, x, palette }, length) {
  const c = palette.colors;
  const { step, ticks } = timeSteps(see, Math.max(2, width / 130));
  const words = axisWords(see, step);
  p.rect(0, 0, width, RULER, c.panel);
  p.rect(0, RULER - 1, width, 1, c["line-strong"]);
  for (const t of ticks) {
    const at = Math.round(x(t));
    p.rect(at, RULER - 7, 1, 6, c["ink-faint"]);
    const text = words.label(t);
    if (at + 5 + p.measure(text, FONT) < width) p.text(text, at + 4, RULER / 2 + 1, c["ink-soft"], FONT);
  }
  // Where in the whole run that is.
  if (see.to - see.from < length)
    p.rect((see.from / length) * width, 0, Math.max(3, ((see.to - see.from) / length) * width), 3, c.accent, 1.5);
}

/** A stretch of time that is chosen or measured. @param {Paper} paper @param {Range} range @param {string} color
 * @param {string} text */
export function paintRange({ p, x, width, height, palette }, range, color, text) {
  const [left, right] = [x(range.from), x(range.to)];
  if (right < 0 || left > width) return;
  const [a, b] = [Math.max(0, left), Math.min(width, right)];
  p.rect(a, RULER, b - a, height - RULER, `${color}1c`);
  for (const at of [left, right]) if (at >= 0 && at <= width) p.rect(at - 0.75, 0, 1.5, height, color);
  if (!text) return;
  const wide = p.measure(text, BOLD) + 12;
  const at = Math.max(4, Math.min(width - wide - 4, (a + b - wide) / 2));
  p.rect(at, 3, wide, 17, color, 4);
  p.text(text, at + 6, 12, readableOn(color, palette.dark), BOLD);
}

/** What lies outside of what all views show. @param {Paper} paper @param {Range} range */
export function paintOutside({ p, x, width, height, palette }, range) {
  const veil = palette.dark ? "rgba(20, 23, 27, 0.5)" : "rgba(246, 247, 249, 0.66)";
  const [left, right] = [x(range.from), x(range.to)];
  if (left > 0) p.rect(0, RULER, Math.min(width, left), height - RULER, veil);
  if (right < width) p.rect(Math.max(0, right), RULER, width - Math.max(0, right), height - RULER, veil);
  for (const at of [left, right])
    if (at >= 0 && at <= width) p.rect(at - 0.75, 0, 1.5, height, palette.colors.accent);
}
