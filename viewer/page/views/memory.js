// Memory over time, and what is known of blocks beside their contexts: how large they were, how long they lived, who was
// asked for them; and the lines that held the most at the peak.

import { el, fill, oncePerFrame } from "../parts/dom.js";
import { canvasPainter } from "../parts/paint.js";
import { plainTable } from "../parts/grid.js";
import { axisSteps, curvesOf } from "../parts/curves.js";
import { errorBytes, formatCount, formatShare, formatTime, formatValue } from "../parts/numbers.js";

/** @typedef {import('../app.js').App} App */
/** @typedef {import('../parts/paint.js').Painter} Painter */

const SHOWN_LINES = 25;
const FONT = { size: 11 };
const BOLD = { size: 11, weight: 600 };
/** Around the drawing: for the numbers of the axes. */
const MARGIN = { left: 64, right: 12, top: 18, bottom: 24 };
const MOST_LEVELS = 5; // of regions inside of each other
const LEVEL_HEIGHT = 16;

/** " ± 3.7 MiB", or nothing where a number is exact. @param {number} squares */
function plusMinus(squares) {
  return squares ? ` ± ${formatValue(errorBytes(squares), "bytes")}` : "";
}

export class MemoryView {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.id = "memory";
    this.title = "Memory";
    this.alone = true;
    /** @type {HTMLElement} */
    this.host = el("div");
    this.curves = curvesOf(/** @type {any} */ ({ length: 0, process: [], ns: new Float64Array() }), -1);
    /** @type {import('../../engine/engine.js').MemoryMark[]} */
    this.marks = [];
    /** The look that is pointed at, or -1. */
    this.at = -1;
    this.redraw = oncePerFrame(() => this.draw());
    /** @type {HTMLCanvasElement} */
    this.canvas = el("canvas");
    this.figure = this.makeFigure();
    new ResizeObserver(this.redraw).observe(this.figure);
  }

  offered() {
    const { session, s } = this.app;
    const { memory } = session.summary(s);
    return memory.points > 0 || memory.counts > 0 || Object.keys(session.memoryMetrics(s)).length > 0;
  }

  /** @param {HTMLElement} host */
  show(host) {
    this.host = host;
    this.update(null);
  }

  hide() {
    this.app.tip.hide();
  }

  /** @param {Set<string> | null} _changed */
  update(_changed) {
    const { session, s } = this.app;
    const { points, counts, marks } = session.memory(s);
    const process = session.processOf(s);
    this.marks = marks.filter((m) => process < 0 || m.process === process);
    this.counts = counts.filter((c) => process < 0 || c.process === process);
    this.curves = curvesOf(points, process);
    this.at = Math.min(this.at, this.curves.ns.length - 1);
    const drawn = this.curves.ns.length > 1;
    fill(
      this.host,
      el(
        "div.page",
        { tabindex: 0, "aria-label": "Memory", role: "region" },
        el(
          "div.cards",
          null,
          ...this.cards().map(([value, name]) =>
            el("div.card", null, el("b", null, value), el("span", null, name)),
          ),
        ),
        this.estimates(),
        el(
          "div.memory",
          null,
          el(
            "div",
            null,
            drawn ? el("h2", null, "Over time") : null,
            drawn ? this.figure : null,
            drawn ? this.legend() : null,
            ...this.lines(),
          ),
          el("div", null, ...this.sizes(), ...this.lives(), ...this.kinds()),
        ),
      ),
    );
    this.describe();
    this.redraw();
  }

  /** @returns {[string, string][]} */
  cards() {
    const { session, s } = this.app;
    const metrics = session.memoryMetrics(s);
    const sum = (/** @type {string} */ key) =>
      metrics[key] ? session.view(s).totals(metrics[key].id).value : 0;
    const several = session.summary(s).processes.filter((/** @type {any} */ p) => p.memory).length > 1;
    const scope = session.processOf(s) < 0 && several ? " of each process, added up" : "";
    /** @type {[string, string][]} */
    const cards = [];
    const value = (/** @type {string} */ key) =>
      formatValue(sum(key), "bytes") +
      plusMinus(metrics[key].error === null ? 0 : session.view(s).totals(metrics[key].error).value);
    const bytes = (/** @type {string} */ key, /** @type {string} */ name) => {
      if (sum(key)) cards.push([value(key), `${name}, ${formatCount(sum(`${key}_blocks`))} blocks`]);
    };
    bytes("peak", `at the peak${scope}`);
    bytes("leaked", "at the end");
    if (sum("allocated"))
      cards.push([value("allocated"), `allocated, ${formatCount(sum("blocks"))} times`]);
    bytes("temporary", "freed at once");
    for (const curve of this.curves.curves) {
      const most = curve.values.reduce((a, v) => (v > a ? v : a), 0);
      if (curve.key !== "heap") cards.push([formatValue(most, "bytes"), `most ${curve.title}`]);
    }
    if (this.curves.limit) cards.push([formatValue(this.curves.limit, "bytes"), "allowed"]);
    return cards;
  }

  /** Of sampled blocks numbers are right within ±. */
  estimates() {
    const { session, s } = this.app;
    const steps = session.summary(s).processes.map((/** @type {any} */ p) => p.memorySampleBytes);
    const most = Math.max(0, ...steps);
    if (!most) return null;
    return el(
      "p.notice",
      null,
      `Blocks were sampled every ${formatValue(most, "bytes")}: these are estimates, right within ± in 19 of 20 cases.`,
    );
  }

  // ---- the curve ----

  makeFigure() {
    const move = (/** @type {PointerEvent} */ event) => this.point(event);
    return el(
      "div.curve",
      {
        role: "slider",
        tabindex: 0,
        "aria-label": "Memory over time",
        "aria-valuemin": 0,
        onpointermove: move,
        onpointerdown: move,
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
    const peak = session.memoryMetrics(s).peak?.colors?.[palette.dark ? 1 : 0] ?? palette.colors.mark;
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

  get size() {
    return { width: this.figure.clientWidth || 640, height: this.figure.clientHeight || 240 };
  }

  scales() {
    const { width, height } = this.size;
    const { ns, curves, limit } = this.curves;
    const most = curves.reduce((a, c) => c.values.reduce((b, v) => (v > b ? v : b), a), 1);
    // A limit far above everything would press the curves flat.
    const top = (limit && limit < most * 4 ? Math.max(most, limit) : most) * 1.08;
    const end = ns[ns.length - 1] || 1;
    const levels = this.marks.reduce((n, m) => Math.max(n, Math.min(m.level + 1, MOST_LEVELS)), 0);
    const above = MARGIN.top + levels * LEVEL_HEIGHT;
    const inner = { w: width - MARGIN.left - MARGIN.right, h: height - above - MARGIN.bottom };
    return {
      top,
      end,
      x: (/** @type {number} */ t) => MARGIN.left + (t / end) * inner.w,
      y: (/** @type {number} */ v) => above + inner.h - (v / top) * inner.h,
    };
  }

  draw() {
    if (!this.figure.isConnected || this.curves.ns.length < 2) return;
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
    this.paintMarks(p, x);
    this.paintPeak(p, x, y);
  }

  /** Calls and regions of the program: brackets below the upper edge, those inside of others lower, with their name
   * where there is room. @param {Painter} p @param {(t: number) => number} x */
  paintMarks(p, x) {
    const { colors } = this.app.palette;
    const { end } = this.scales();
    const free = /** @type {number[]} */ ([]); // where the next name may begin, by level
    for (const mark of this.marks) {
      const [from, to] = [mark.begin - this.curves.first, mark.end - this.curves.first];
      if (to < 0 || from > end || mark.level >= MOST_LEVELS) continue;
      const [left, right] = [x(Math.max(from, 0)), Math.max(x(Math.min(to, end)), x(Math.max(from, 0)) + 1)];
      const top = 4 + mark.level * LEVEL_HEIGHT;
      p.path([["M", left, top + 5], ["L", left, top], ["L", right, top], ["L", right, top + 5]], null, colors["ink-soft"], 1);
      if (left < (free[mark.level] ?? 0) || right - left < p.measure(mark.name, FONT) + 8) continue;
      p.text(mark.name, left + 4, top + 8, colors["ink-soft"], FONT, "left");
      free[mark.level] = right;
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
      Math.max(9, py - 9),
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
        ["M", at, MARGIN.top],
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

  /** The look that is nearest to the pointer. @param {PointerEvent} event */
  point(event) {
    const box = this.figure.getBoundingClientRect();
    const { ns } = this.curves;
    const { end } = this.scales();
    const inner = box.width - MARGIN.left - MARGIN.right;
    const t = ((event.clientX - box.left - MARGIN.left) / inner) * end;
    let best = 0;
    ns.forEach((value, i) => {
      if (Math.abs(value - t) < Math.abs(ns[best] - t)) best = i;
    });
    this.moveTo(best, event.clientX, event.clientY);
  }

  /** @param {number} at @param {number} x @param {number} y */
  moveTo(at, x, y) {
    this.at = at;
    this.describe();
    this.redraw();
    this.app.tip.show({ title: formatTime(this.curves.ns[at]), facts: this.facts(at) }, x, y);
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
    this.figure.setAttribute("aria-valuemax", String(ns.length - 1));
    this.figure.setAttribute("aria-valuenow", String(at));
    this.figure.setAttribute(
      "aria-valuetext",
      `${this.at < 0 ? "peak, " : ""}${formatTime(ns[at])}: ${words.join(", ")}`,
    );
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const last = this.curves.ns.length - 1;
    const now = this.at >= 0 ? this.at : Math.max(0, this.curves.peak);
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
      Enter: this.curves.peak,
    }[event.key];
    if (event.key === "Escape" && this.at >= 0) this.leave();
    else if (to === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
    else {
      const at = Math.max(0, Math.min(last, to));
      const box = this.figure.getBoundingClientRect();
      this.moveTo(at, box.left + this.scales().x(this.curves.ns[at]), box.top + MARGIN.top);
    }
    event.preventDefault();
  }

  picture() {
    return { ...this.size, draw: (/** @type {Painter} */ p) => this.paint(p) };
  }

  // ---- tables ----

  /** The lines that held the most at the peak. */
  lines() {
    const { app } = this;
    const { session, s } = app;
    const { peak } = session.memoryMetrics(s);
    if (!peak) return [];
    const table = session.lineTable(s, peak);
    const errors = peak.error === null ? null : session.lineTable(s, { id: peak.error });
    this.top = Array.from({ length: table.length }, (_, i) => i)
      .filter((i) => table.self[i] > 0)
      .sort((a, b) => table.self[b] - table.self[a])
      .slice(0, SHOWN_LINES);
    if (!this.top.length) return [];
    const most = table.self[this.top[0]];
    /** @type {Map<number, number>} */
    const squares = new Map();
    for (let i = 0; i < (errors?.length ?? 0); i++) squares.set(errors.func[i], errors.self[i]);
    const name = (/** @type {number} */ func) => {
      const text = session.label(func).slice(0, 200);
      const go = (/** @type {Event} */ event) => {
        event.preventDefault();
        // The source is to show what this table is about.
        if (!session.metric(s).memory) app.store.set({ metric: peak.key }, true);
        app.toSource(func);
      };
      const file = session.functions[func].file;
      return el(
        "td.name",
        { title: session.place(func, true).slice(0, 300) },
        file ? el("a", { href: "#", onclick: go }, text) : text,
      );
    };
    return [
      el("h2", null, "Lines that held the most at the peak"),
      plainTable(
        "Lines at the peak",
        [".num own", ...(errors ? [".num ±"] : []), ".num %", ".num total", "line", ".wide "],
        this.top.map((i) => [
          formatValue(table.self[i], "bytes"),
          ...(errors ? [formatValue(errorBytes(squares.get(table.func[i]) ?? 0), "bytes")] : []),
          formatShare(table.self[i], table.sum),
          formatValue(table.total[i], "bytes"),
          name(table.func[i]),
          bar(table.self[i] / most),
        ]),
      ),
    ];
  }

  /** Counts of one table, those of processes added up. @param {string} table */
  buckets(table) {
    /** @type {Map<number, import('../../engine/engine.js').HeapCount>} */
    const sums = new Map();
    for (const c of this.counts ?? []) {
      if (c.table !== table) continue;
      const known = sums.get(c.bucket);
      sums.set(
        c.bucket,
        known ? { ...known, blocks: known.blocks + c.blocks, bytes: known.bytes + c.bytes } : { ...c },
      );
    }
    return [...sums.values()].sort((a, b) => a.bucket - b.bucket);
  }

  /** @param {string} title @param {string} table @param {string} head
   * @param {(c: import('../../engine/engine.js').HeapCount) => string} name */
  histogram(title, table, head, name) {
    const rows = this.buckets(table);
    if (!rows.length) return [];
    const most = rows.reduce((a, c) => Math.max(a, c.blocks), 1);
    const all = rows.reduce((a, c) => a + c.blocks, 0);
    return [
      el("h2", null, title),
      plainTable(
        title,
        [`.num ${head}`, ".num blocks", ".num %", ".wide "],
        rows.map((c) => [name(c), formatCount(c.blocks), formatShare(c.blocks, all), bar(c.blocks / most)]),
      ),
    ];
  }

  sizes() {
    return this.histogram("Sizes of blocks", "sizes", "from", (c) => formatValue(c.from, "bytes"));
  }

  lives() {
    return this.histogram("How long blocks lived", "lives", "allocations later", (c) =>
      c.to > c.from + 1 ? `${formatCount(c.from)} – ${formatCount(c.to - 1)}` : formatCount(c.from),
    );
  }

  kinds() {
    const { session, s } = this.app;
    const rows = this.buckets("kinds");
    if (!rows.length) return [];
    const titles = session.summary(s).memory.kinds;
    const most = rows.reduce((a, c) => Math.max(a, c.bytes), 1);
    return [
      el("h2", null, "Allocators"),
      plainTable(
        "Allocators",
        ["allocator", ".num allocations", ".num bytes", ".wide "],
        rows.map((c) => [
          titles[c.bucket] ?? `kind ${c.bucket}`,
          formatCount(c.blocks),
          formatValue(c.bytes, "bytes"),
          bar(c.bytes / most),
        ]),
      ),
    ];
  }

  drawn() {
    const { ns, curves, limit, peak } = this.curves;
    const { session, s } = this.app;
    const table = session.memoryMetrics(s).peak ? session.lineTable(s, session.memoryMetrics(s).peak) : null;
    return {
      ns: [...ns],
      curves: Object.fromEntries(
        curves.map((c) => [c.key, [...c.values].map((v) => (Number.isNaN(v) ? null : v))]),
      ),
      limit,
      peak,
      at: this.at,
      sizes: this.buckets("sizes"),
      lives: this.buckets("lives"),
      kinds: this.buckets("kinds"),
      lines: (this.top ?? []).map((i) => ({
        name: session.label(table.func[i]),
        self: table.self[i],
        total: table.total[i],
      })),
      text: this.host.innerText,
    };
  }
}

/** @param {number} share */
function bar(share) {
  return el("div.bar", { "aria-hidden": "true" }, el("i.self", { style: { width: `${share * 100}%` } }));
}
