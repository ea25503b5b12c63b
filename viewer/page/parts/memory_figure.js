// The curve of memory over time: drawn, pointed at, and where instants of the run are chosen. A click means what was
// alive then, dragging what changed between two instants; regions of the program are strips above it.

import { el, oncePerFrame } from "./dom.js";
import { canvasPainter } from "./paint.js";
import { axisSteps, curvesOf } from "./curves.js";
import { LANE, layRegions, paintRegions, regionTip } from "./regions.js";
import { writeMoment } from "./moment.js";
import { formatShare, formatTime, formatValue } from "./numbers.js";

/**
 * @typedef {import('../app.js').App} App
 * @typedef {import('./paint.js').Painter} Painter
 * @typedef {import('./moment.js').Moment} Moment
 */

const FONT = { size: 11 };
const BOLD = { size: 11, weight: 600 };
/** Around the drawing: for the numbers of the axes. */
const MARGIN = { left: 64, right: 12, top: 18, bottom: 24 };
/** A pointer that moved less has clicked. */
const CLICK = 4;

export class MemoryFigure {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.curves = curvesOf(/** @type {any} */ ({ length: 0, process: [], ns: new Float64Array() }), -1);
    this.regions = layRegions([], -1, 0);
    /** How long what was alive was looked at, 0: never. */
    this.historyNs = 0;
    /** The look that is pointed at, or -1. */
    this.at = -1;
    /** Where the button went down, and the range that is being dragged. @type {{x: number, t: number} | null} */
    this.down = null;
    /** Where keys began to choose a range, or -1. */
    this.anchor = -1;
    /** @type {Moment | null} */
    this.dragged = null;
    this.redraw = oncePerFrame(() => this.draw());
    /** @type {HTMLCanvasElement} */
    this.canvas = el("canvas");
    this.node = this.makeNode();
    new ResizeObserver(this.redraw).observe(this.node);
  }

  /** Show the curves of a process, or of all (-1). @param {import('../../engine/engine.js').MemoryFacts} facts
   * @param {number} process @param {{beginNs: number, durationNs: number} | null} history */
  set(facts, process, history) {
    this.curves = curvesOf(facts.points, process, history?.beginNs);
    this.regions = layRegions(facts.visits, process, this.curves.first);
    this.historyNs = history?.durationNs ?? 0;
    this.at = Math.min(this.at, this.curves.ns.length - 1);
    this.node.setAttribute(
      "aria-description",
      history
        ? "Arrow keys move along it. Enter shows what was alive then, with Shift and arrows what changed; Escape takes that away."
        : "Arrow keys move along it.",
    );
    this.describe();
    this.redraw();
  }

  /** Can it be drawn? */
  get isThere() {
    return this.curves.ns.length > 1;
  }

  makeNode() {
    return el(
      "div.curve",
      {
        role: "slider",
        tabindex: 0,
        "aria-label": "Memory over time",
        "aria-valuemin": 0,
        onpointermove: (/** @type {PointerEvent} */ event) => this.onMove(event),
        onpointerdown: (/** @type {PointerEvent} */ event) => this.onDown(event),
        onpointerup: (/** @type {PointerEvent} */ event) => this.onUp(event),
        onpointercancel: () => this.release(),
        onpointerleave: () => this.leave(),
        onblur: () => this.leave(),
        onkeydown: (/** @type {KeyboardEvent} */ event) => this.onKey(event),
      },
      this.canvas,
    );
  }

  /** @param {string} key */
  color(key) {
    const { palette, session, s } = this.app;
    const peak = session.heldMetric(s)?.colors?.[palette.dark ? 1 : 0] ?? palette.colors.mark;
    return (
      { heap: peak, rss: palette.colors.accent, pss: palette.colors["ink-soft"] }[key] ??
      palette.colors["ink-faint"]
    );
  }

  legend() {
    const item = (/** @type {string} */ color, /** @type {string} */ text) =>
      el("span", null, el("i", { style: { background: color } }), text);
    const { curves, limit } = this.curves;
    return el(
      "div.legend",
      null,
      ...curves.map((c) => item(this.color(c.key), c.title)),
      limit ? item(this.app.palette.colors.mark, "limit") : null,
    );
  }

  /** Where the curves begin, below the regions. */
  get top() {
    return MARGIN.top + this.regions.lanes * LANE;
  }

  get size() {
    return { width: this.node.clientWidth || 640, height: this.node.clientHeight || 240 };
  }

  scales() {
    const { width, height } = this.size;
    const { ns, curves, limit } = this.curves;
    const most = curves.reduce((a, c) => c.values.reduce((b, v) => (v > b ? v : b), a), 1);
    // A limit far above everything would press the curves flat.
    const top = (limit && limit < most * 4 ? Math.max(most, limit) : most) * 1.08;
    const end = ns[ns.length - 1] || 1;
    const inner = { w: width - MARGIN.left - MARGIN.right, h: height - this.top - MARGIN.bottom };
    return {
      top,
      end,
      t: (/** @type {number} */ px) => Math.max(0, Math.min(end, ((px - MARGIN.left) / inner.w) * end)),
      step: end / Math.max(1, inner.w),
      x: (/** @type {number} */ t) => MARGIN.left + (t / end) * inner.w,
      y: (/** @type {number} */ v) => this.top + inner.h - (v / top) * inner.h,
    };
  }

  draw() {
    if (!this.node.isConnected || !this.isThere) return;
    const { width, height } = this.size;
    const p = canvasPainter(this.canvas, width, height);
    p.rect(0, 0, width, height, this.app.palette.colors.paper);
    this.paint(p);
    if (this.at >= 0) this.paintCross(p);
  }

  /** @param {Painter} p */
  paint(p) {
    const { width, height } = this.size;
    const { colors } = this.app.palette;
    const { top, end, x, y } = this.scales();
    for (const v of axisSteps(top, Math.max(2, Math.floor(height / 60)), true)) {
      p.path(
        [
          ["M", MARGIN.left, y(v)],
          ["L", width - MARGIN.right, y(v)],
        ],
        null,
        colors["line-strong"],
        0.5,
      );
      p.text(formatValue(v, "bytes"), MARGIN.left - 6, y(v), colors["ink-soft"], FONT, "right");
    }
    for (const t of axisSteps(end, Math.max(2, Math.floor(width / 140)), false))
      p.text(
        formatTime(t).replace(/(\.\d*?)\.?0+(?= )/, "$1").replace(/\.(?= )/, ""),
        Math.min(x(t), width - MARGIN.right),
        height - MARGIN.bottom / 2,
        colors["ink-soft"],
        FONT,
        t ? (t > end * 0.95 ? "right" : "center") : "left",
      );
    this.paintMoment(p, x);
    paintRegions(p, this.regions.visits, x, 2, this.app.palette);
    for (const curve of [...this.curves.curves].reverse()) this.paintCurve(p, curve, x, y);
    const { limit } = this.curves;
    if (limit && limit <= top) {
      p.path(
        [
          ["M", MARGIN.left, y(limit)],
          ["L", width - MARGIN.right, y(limit)],
        ],
        null,
        colors.mark,
        1.5,
        true,
      );
      p.text(
        `limit ${formatValue(limit, "bytes")}`,
        width - MARGIN.right - 4,
        y(limit) - 8,
        colors.mark,
        FONT,
        "right",
      );
    }
    this.paintPeak(p, x, y);
  }

  /** The instant that is shown, or what lies between two. @param {Painter} p @param {(t: number) => number} x */
  paintMoment(p, x) {
    const { session, s, palette } = this.app;
    const moment = this.dragged ?? session.moment(s);
    if (!moment) return;
    const color = session.summary(s).memory.history.metrics[0].colors[palette.dark ? 1 : 0];
    const [top, bottom] = [this.top - 4, this.size.height - MARGIN.bottom];
    if (moment.from >= 0) p.rect(x(moment.from), top, x(moment.to) - x(moment.from), bottom - top, `${color}30`);
    for (const t of [moment.from, moment.to]) {
      if (t < 0) continue;
      p.rect(x(t) - 1, top, 2, bottom - top, color);
      p.rect(x(t) - 4, bottom - 4, 8, 8, color, 4);
    }
  }

  /** Where nothing is known there is no line. @param {Painter} p @param {import('../parts/curves.js').Curve} curve
   * @param {(t: number) => number} x @param {(v: number) => number} y */
  paintCurve(p, curve, x, y) {
    /** @type {import('../parts/paint.js').PathStep[]} */
    const path = [];
    let open = false;
    curve.values.forEach((value, i) => {
      if (Number.isNaN(value)) {
        open = false;
        return;
      }
      const at = x(this.curves.ns[i]);
      path.push([open ? "L" : "M", at, y(value)]);
      open = true;
    });
    p.path(path, null, this.color(curve.key), curve.key === "heap" ? 2 : 1.5, curve.key === "swap");
  }

  /** @param {Painter} p @param {(t: number) => number} x @param {(v: number) => number} y */
  paintPeak(p, x, y) {
    const { ns, peak, peakCurve } = this.curves;
    if (!peakCurve || peak < 0) return;
    const value = peakCurve.values[peak];
    const [px, py] = [x(ns[peak]), y(value)];
    const color = this.color(peakCurve.key);
    p.rect(px - 3.5, py - 3.5, 7, 7, color, 3.5);
    const text = `peak ${formatValue(value, "bytes")}`;
    const left = px + p.measure(text, BOLD) + 12 < this.size.width;
    p.text(
      text,
      px + (left ? 7 : -7),
      Math.max(this.top - 9, py - 9),
      this.app.palette.colors.ink,
      BOLD,
      left ? "left" : "right",
    );
  }

  /** @param {Painter} p */
  paintCross(p) {
    const { x, y } = this.scales();
    const at = x(this.curves.ns[this.at]);
    const { colors } = this.app.palette;
    p.path(
      [
        ["M", at, this.top],
        ["L", at, this.size.height - MARGIN.bottom],
      ],
      null,
      colors["ink-soft"],
      1,
      true,
    );
    for (const curve of this.curves.curves)
      if (!Number.isNaN(curve.values[this.at]))
        p.rect(at - 2.5, y(curve.values[this.at]) - 2.5, 5, 5, this.color(curve.key), 2.5);
  }

  // ---- pointing and choosing ----

  /** The look that is nearest to a time. @param {number} t */
  nearest(t) {
    let best = 0;
    this.curves.ns.forEach((value, i) => {
      if (Math.abs(value - t) < Math.abs(this.curves.ns[best] - t)) best = i;
    });
    return best;
  }

  /** Where in the drawing, and when, the pointer is. @param {PointerEvent} event */
  place(event) {
    const box = this.node.getBoundingClientRect();
    const x = event.clientX - box.left;
    return { x, y: event.clientY - box.top, t: this.scales().t(x) };
  }

  /** The region at a place. @param {{y: number, t: number}} place */
  regionAt({ y, t }) {
    const lane = Math.floor((y - 2) / LANE);
    const near = this.scales().step * 2;
    return this.regions.visits.find((v) => v.lane === lane && v.begin <= t + near && v.end >= t - near);
  }

  /** @param {PointerEvent} event */
  onDown(event) {
    const place = this.place(event);
    if (event.button !== 0) return;
    this.anchor = -1;
    this.down = place;
    if (this.historyNs) this.node.setPointerCapture(event.pointerId);
    this.hover(place, event);
  }

  /** @param {PointerEvent} event */
  onMove(event) {
    const place = this.place(event);
    if (this.down && this.historyNs && Math.abs(place.x - this.down.x) > CLICK) {
      const [from, to] = [this.down.t, place.t].sort((a, b) => a - b);
      this.dragged = { from, to };
      this.at = -1;
      this.redraw();
      this.app.tip.show(
        { title: `${formatTime(from)} → ${formatTime(to)}`, facts: [["length", formatTime(to - from)]] },
        event.clientX,
        event.clientY,
      );
    } else if (!this.dragged) this.hover(place, event);
  }

  /** @param {PointerEvent} event */
  onUp(event) {
    const [down, dragged, place] = [this.down, this.dragged, this.place(event)];
    this.release();
    if (!down || !this.historyNs) return;
    const region = this.regionAt(place);
    if (dragged) this.app.tip.hide();
    if (dragged) this.choose(dragged);
    else if (region) this.choose({ from: Math.max(0, region.begin), to: region.end }, false, true);
    else this.choose({ from: -1, to: place.t });
  }

  release() {
    this.down = this.dragged = null;
    this.redraw();
  }

  /** @param {Moment} moment @param {boolean} [quiet] @param {boolean} [exact] not as exact as a pixel, but as it is */
  choose(moment, quiet = false, exact = false) {
    this.app.showMoment(writeMoment(moment, exact ? 1 : this.scales().step), quiet);
  }

  /** @param {{y: number, t: number}} place @param {PointerEvent} event */
  hover(place, event) {
    const region = this.regionAt(place);
    this.at = this.nearest(place.t);
    this.describe();
    this.redraw();
    this.app.tip.show(
      region ? regionTip(region, this.curves) : this.tipAt(this.at),
      event.clientX,
      event.clientY,
    );
  }

  /** @param {number} at */
  tipAt(at) {
    return { title: formatTime(this.curves.ns[at]), facts: this.facts(at) };
  }

  /** @param {number} at */
  moveTo(at) {
    this.at = at;
    this.describe();
    this.redraw();
    const box = this.node.getBoundingClientRect();
    this.app.tip.show(this.tipAt(at), box.left + this.scales().x(this.curves.ns[at]), box.top + this.top);
  }

  /** @param {number} at @returns {[string, string, string?][]} */
  facts(at) {
    const { curves, limit } = this.curves;
    return curves
      .filter((c) => !Number.isNaN(c.values[at]))
      .map((c) => [
        c.title,
        formatValue(c.values[at], "bytes"),
        limit ? `${formatShare(c.values[at], limit)} of the limit` : "",
      ]);
  }

  leave() {
    this.at = -1;
    this.app.tip.hide();
    this.describe();
    this.redraw();
  }

  /** For those who do not see it. */
  describe() {
    const { ns, peak } = this.curves;
    const at = this.at >= 0 ? this.at : Math.max(0, peak);
    if (!ns.length) return;
    const words = this.facts(at).map(([name, value]) => `${name} ${value}`);
    this.node.setAttribute("aria-valuemax", String(ns.length - 1));
    this.node.setAttribute("aria-valuenow", String(at));
    this.node.setAttribute(
      "aria-valuetext",
      `${this.at < 0 ? "peak, " : ""}${formatTime(ns[at])}: ${words.join(", ")}`,
    );
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { ns, peak } = this.curves;
    const moment = this.app.session.moment(this.app.s);
    const last = ns.length - 1;
    const now = this.at >= 0 ? this.at : moment ? this.nearest(moment.to) : Math.max(0, peak);
    const page = Math.max(1, Math.round(last / 10));
    const to = {
      ArrowRight: now + 1,
      ArrowUp: now + 1,
      ArrowLeft: now - 1,
      ArrowDown: now - 1,
      PageUp: now + page,
      PageDown: now - page,
      Home: 0,
      End: last,
      Enter: now,
      " ": now,
    }[event.key];
    if (event.key === "Escape" && (moment || this.at >= 0)) {
      this.leave();
      this.app.showMoment("");
    } else if (to === undefined) return;
    else {
      const at = Math.max(0, Math.min(last, to));
      this.moveTo(at);
      const chosen = event.key === "Enter" || event.key === " ";
      if (this.historyNs && (moment || chosen || event.shiftKey))
        this.choose(this.reached(ns[at], event.shiftKey, moment, ns[now]), !chosen, true);
    }
    event.preventDefault();
  }

  /** The instant that the keys moved to; with Shift what lies between it and where they began.
   * @param {number} t @param {boolean} range @param {Moment | null} shown @param {number} before @returns {Moment} */
  reached(t, range, shown, before) {
    if (!range) this.anchor = -1;
    else if (this.anchor < 0) this.anchor = !shown ? before : shown.from >= 0 ? shown.from : shown.to;
    if (this.anchor < 0 || this.anchor === t) return { from: -1, to: t };
    return { from: Math.min(this.anchor, t), to: Math.max(this.anchor, t) };
  }

  picture() {
    return { ...this.size, draw: (/** @type {Painter} */ p) => this.paint(p) };
  }

  drawn() {
    const { ns, curves, limit, peak } = this.curves;
    const { x } = this.scales();
    const box = this.node.getBoundingClientRect();
    return {
      ns: [...ns],
      curves: Object.fromEntries(
        curves.map((c) => [c.key, [...c.values].map((v) => (Number.isNaN(v) ? null : v))]),
      ),
      limit,
      peak,
      at: this.at,
      visits: this.regions.visits.map((v) => ({ ...v, x: box.left + x(v.begin), w: x(v.end) - x(v.begin), y: box.top + 2 + v.lane * LANE })),
      left: box.left + x(0),
      perSecond: x(1e9) - x(0),
    };
  }
}
