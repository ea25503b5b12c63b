// What happened when: threads as lanes of nested spans, with marks, strips and curves. Only what is in sight is asked of
// the engine, in pieces as small as can be seen, and drawn onto one canvas. Here is how one moves in it and chooses;
// parts/timeline has what is where and how it is drawn.

import { el, fill, oncePerFrame } from "../parts/dom.js";
import { canvasPainter } from "../parts/paint.js";
import { usePointer } from "../parts/pointer.js";
import { formatTime } from "../parts/numbers.js";
import { HEAD, hasRow, laneTitle, onNote, rowHeight, rowTop } from "../parts/timeline/lanes.js";
import { fitRange, formatInstant, writeRange } from "../parts/timeline/range.js";
import { RULER, paintOutside, paintRange } from "../parts/timeline/paint.js";
import { Notes } from "../parts/timeline/notes.js";
import { Scene } from "../parts/timeline/scene.js";
import { cellTip, foldTip, markTip, turnFacts } from "../parts/timeline/tips.js";
import { sightBar, timelineTools, timelineLegend } from "../parts/timeline/bars.js";
import { drawnTimeline } from "../parts/timeline/drawn.js";
import { stepCell } from "../parts/timeline/steps.js";
import { FEW_TASK_ROWS, MORE_TASK_ROWS } from "../parts/timeline/tasks.js";
import { LEFT_OUT } from "../parts/timeline/ranges.js";

/**
 * @typedef {import('../app.js').App} App
 * @typedef {import('../parts/timeline/range.js').Range} Range
 * @typedef {{lane: number, depth: number, begin: number, end: number, func: number}} Cursor
 */

/** How far one looks beyond a span that is zoomed to, as a share of it. */
const AROUND = 0.15;
/** The shortest stretch in sight, ns. */
const SHORTEST = 20;
/** So long after the last movement it has ended, ms; nothing is laid out anew before. */
const REST = 250;

export class TimelineView {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.id = "timeline";
    this.title = "Timeline";
    this.scene = new Scene(app);
    this.scrollTop = 0;
    /** What is measured between two marks. @type {Range | null} */
    this.measured = null;
    /** Where the keyboard is. @type {Cursor | null} */
    this.cursor = null;
    /** @type {import('../parts/timeline/scene.js').FoundCell | null} */
    this.hovered = null;
    /** While one moves, rows stay where they are. */
    this.moving = false;
    /** @type {number | undefined} */
    this.restTimer = undefined;
    /** Where the pointer is; -1: elsewhere. */
    this.pointerY = -1;
    /** How long the last picture took. */
    this.frameMs = 0;
    this.redraw = oncePerFrame(() => this.draw());
    this.canvas = el("canvas", { "aria-hidden": "true" });
    this.notes = new Notes(
      (track) => this.showTasks(track),
      (track) => (this.reveal(track.top + HEAD, 0), this.redraw()),
      () => this.area.focus({ preventScroll: true }),
    );
    this.live = el("div.sr", { "aria-live": "polite" });
    /** @type {HTMLElement} */
    this.area = el(
      "div.canvas",
      {
        tabindex: 0,
        role: "application",
        "aria-label":
          "Timeline. W and S zoom, A and D move, Enter goes to a span and then zooms to it, arrows move between spans, Escape goes out. The other views have the numbers.",
        onkeydown: (/** @type {KeyboardEvent} */ event) => this.onKey(event),
        ondblclick: (/** @type {MouseEvent} */ event) => this.zoomToBox(event),
      },
      this.canvas,
      this.notes.node,
      this.live,
    );
    /** @type {HTMLElement} */
    this.bar = el("div.crumbs", { role: "status" });
    this.legend = el("div.legend");
    this.listen();
  }

  listen() {
    usePointer(this.area, {
      hover: (x, y, event) => this.hover(x, y, event),
      leave: () => this.hover(-1, -1, null),
      click: (x, y) => this.click(x, y),
      pan: (dx, dy) => this.pan(dx, dy),
      scroll: (dx, dy) => this.wheel(dx, dy),
      zoom: (factor, x) => this.zoom(factor, x / this.scene.width),
      grab: (x, y, event) => (event.shiftKey || y < RULER ? this.measureFrom(x) : null),
    });
    this.area.addEventListener("pointerup", () => this.rest());
    this.area.addEventListener("contextmenu", (event) => this.menu(event));
    new ResizeObserver(() => {
      if (this.area.isConnected) this.draw();
    }).observe(this.area);
  }

  offered() {
    return !!this.app.session.timeline(this.app.s);
  }

  /** @param {HTMLElement} host */
  show(host) {
    fill(host, this.bar, this.area, this.legend);
    this.update(null);
  }

  hide() {
    this.app.tip.hide();
  }

  tools() {
    return timelineTools(this.app, this);
  }

  /** @param {Set<string> | null} changed */
  update(changed) {
    if (changed?.has("rec")) this.measured = this.cursor = null;
    if (!changed || [...changed].some((key) => key !== "see")) fill(this.legend, ...timelineLegend(this.app, this.scene));
    this.redraw();
  }

  draw() {
    if (!this.area.isConnected) return;
    const began = performance.now();
    const { scene, app } = this;
    scene.resize(this.area.clientWidth, this.area.clientHeight);
    try {
      this.arrange();
      scene.load(this.scrollTop);
    } catch (error) {
      return app.trouble(/** @type {Error} */ (error));
    }
    const p = canvasPainter(this.canvas, scene.width, scene.height);
    p.rect(0, 0, scene.width, scene.height, app.palette.colors.paper);
    const paper = scene.paint(p, scene.height, this.scrollTop);
    this.paintChoices(paper);
    this.notes.update(scene.tracks, this.scrollTop, scene.height);
    sightBar(this.bar, app, this);
    this.frameMs = performance.now() - began;
  }

  /** Lay out what has to be; what is below the pointer, or uppermost in sight, stays where it is. */
  arrange() {
    const { scene } = this;
    const at = scene.trackAt(Math.max(RULER, this.pointerY), this.scrollTop);
    scene.arrange(this.moving);
    const now = at && scene.tracks.find((t) => t.kind === at.kind && t.lane === at.lane && t.process === at.process && t.name === at.name);
    if (now && this.scrollTop) this.scrollTop += now.top - at.top;
    this.scrollTop = Math.max(0, Math.min(this.scrollTop, scene.contentHeight - scene.height));
  }

  /** One moves: rows wait. */
  move() {
    this.moving = true;
    clearTimeout(this.restTimer);
    this.restTimer = setTimeout(() => (this.area.classList.contains("pan") ? this.move() : this.rest()), REST);
  }

  rest() {
    if (!this.moving) return;
    clearTimeout(this.restTimer);
    this.moving = false;
    this.redraw();
  }

  /** @param {import('../parts/timeline/paint.js').Paper} paper */
  paintChoices(paper) {
    const { app, scene } = this;
    const { colors } = app.palette;
    const range = app.session.range(app.s);
    if (range) paintOutside(paper, range);
    if (this.measured)
      paintRange(paper, this.measured, colors.accent, formatTime(this.measured.to - this.measured.from));
    for (const [place, color, width] of /** @type {[Cursor | null, string, number][]} */ ([
      [this.hovered && cursorOf(this.hovered), colors["ink-soft"], 1],
      [this.cursor, colors.accent, 2],
    ])) {
      const track = place && scene.tracks.find((t) => t.lane === place.lane);
      if (!place || !track || !hasRow(track, place.depth)) continue;
      const left = Math.max(-2, scene.x(place.begin));
      const right = Math.min(scene.width + 2, scene.x(place.end));
      const y = rowTop(track, place.depth) - paper.offset;
      if (right > left && y > RULER - track.row)
        paper.p.frame(left + 0.5, y, Math.max(1, right - left - 1.5), track.row - 1, color, width);
    }
  }

  // ---- moving ----

  /** @param {number} from @param {number} to @param {boolean} [quiet] */
  lookAt(from, to, quiet = true) {
    const { app, scene } = this;
    const see = fitRange(from, to, scene.length, SHORTEST);
    const whole = see.from <= 0 && see.to >= scene.length;
    app.store.set({ see: whole ? "" : writeRange(see, (see.to - see.from) / 1e5) }, quiet);
  }

  /** @param {number} factor @param {number} at share of the width */
  zoom(factor, at) {
    const { from, to } = this.scene.see;
    const span = Math.max(SHORTEST, Math.min(this.scene.length, (to - from) / factor));
    const begin = Math.max(0, Math.min(this.scene.length - span, from + at * (to - from - span)));
    this.hover(-1, -1, null);
    this.move();
    this.lookAt(begin, begin + span);
  }

  /** @param {number} dx @param {number} dy pixels */
  pan(dx, dy) {
    const { scene } = this;
    const { from, to } = scene.see;
    const by = Math.max(-from, Math.min(scene.length - to, -dx * scene.pixel));
    this.scrollTop = Math.max(0, Math.min(this.scrollTop - dy, scene.contentHeight - scene.height));
    if (by) {
      this.move();
      this.lookAt(from + by, to + by);
    } else this.redraw();
  }

  /** A wheel: sideways moves, up and down zooms, with Shift it scrolls. @param {number} dx @param {number} dy */
  wheel(dx, dy) {
    if (!dx || Math.abs(dx) < Math.abs(dy)) return false;
    this.hover(-1, -1, null);
    this.pan(-dx, 0);
    return true;
  }

  /** Show a span with a little around it. @param {{begin: number, end: number}} span @param {boolean} [quiet] */
  zoomTo(span, quiet = false) {
    const around = Math.max(SHORTEST / 2, (span.end - span.begin) * AROUND);
    this.lookAt(span.begin - around, span.end + around, quiet);
  }

  /** Go to one call: the cursor is on it. @param {import('../../engine/engine.js').TimeSpan} span @param {boolean} [keep] as near as it is, if the span can be seen then */
  goTo(span, keep = false) {
    const { scene, app } = this;
    const shut = app.s.shut.filter((lane) => lane !== String(span.lane));
    this.cursor = { lane: span.lane, depth: span.depth, begin: span.begin, end: span.end, func: span.func };
    const now = scene.see.to - scene.see.from;
    const wide = span.end - span.begin > scene.pixel * 3 && span.end - span.begin < now;
    app.store.set({ f: span.func, shut, view: "timeline" }, true);
    if (keep && wide) {
      const middle = (span.begin + span.end) / 2;
      const inside = span.begin >= scene.see.from && span.end <= scene.see.to;
      if (!inside) this.lookAt(middle - now / 2, middle + now / 2, false);
    } else this.zoomTo(span);
    this.uncover(span);
    this.say();
    this.redraw();
  }

  /** Let the row of a span be there, in sight. @param {{lane: number, depth: number}} span */
  uncover({ lane, depth }) {
    const { scene } = this;
    const find = () => scene.tracks.find((t) => t.lane === lane);
    this.rest();
    scene.arrange();
    const before = find();
    if (before && !before.shut && !hasRow(before, depth)) this.showRows(lane);
    scene.arrange();
    const track = find();
    if (track) this.reveal(rowTop(track, depth), rowHeight(track, depth));
  }

  /** Scroll so that a row can be seen. @param {number} top @param {number} row */
  reveal(top, row) {
    const inner = this.scene.height - RULER;
    if (top - HEAD < this.scrollTop) this.scrollTop = Math.max(0, top - HEAD);
    if (top + row > this.scrollTop + inner) this.scrollTop = top + row - inner + 4;
  }

  // ---- pointing ----

  /** @param {number} x @param {number} y @param {PointerEvent | null} event */
  hover(x, y, event) {
    const { scene, app } = this;
    const before = this.hovered;
    this.pointerY = event ? y : -1;
    const mark = event ? scene.markAt(x, y, this.scrollTop) : null;
    this.hovered = event && !mark ? scene.cellAt(x, y, this.scrollTop) : null;
    if (before || this.hovered) this.redraw();
    const fold = event && !mark ? scene.foldAt(y, this.scrollTop) : null;
    const head = event ? scene.trackAt(y, this.scrollTop) : null;
    const onHead = !!head && (head.lane >= 0 || onNote(head, x)) && y + this.scrollTop - RULER < head.top + HEAD;
    this.area.style.setProperty("cursor", this.hovered || fold || onHead ? "pointer" : y >= 0 && y < RULER ? "col-resize" : "default");
    if (event && mark) app.tip.show(markTip(app, mark, scene.pixel), event.clientX, event.clientY);
    else if (event && this.hovered) app.tip.show(this.tipOf(this.hovered, x), event.clientX, event.clientY);
    else if (event && fold) app.tip.show(foldTip(app, fold), event.clientX, event.clientY);
    else app.tip.hide();
  }

  /** @param {import('../parts/timeline/scene.js').FoundCell} found @param {number} x */
  tipOf(found, x) {
    const { scene, app } = this;
    const tip = cellTip(app, found, scene.pixel);
    const turn = scene.turnAt(found, x);
    if (turn) tip.facts.push(...turnFacts(turn, laneTitle(app.session.whole(app.s).summary, scene.facts.lanes[turn.other])));
    return tip;
  }

  /** @param {number} x @param {number} y */
  click(x, y) {
    const { scene, app } = this;
    const found = scene.cellAt(x, y, this.scrollTop);
    const track = scene.trackAt(y, this.scrollTop);
    this.area.focus({ preventScroll: true });
    if (found) {
      this.cursor = cursorOf(found);
      this.say();
      app.lastPath = this.stackAt(this.cursor);
      app.select(found.cells.func[found.i]);
    } else if (scene.foldAt(y, this.scrollTop)) {
      if (track) this.showRows(track.lane);
    } else if (track && y + this.scrollTop - RULER < track.top + HEAD) {
      if (track.kind === "tasks" && onNote(track, x)) this.showTasks(track);
      else if (onNote(track, x)) this.showRows(track.lane, !track.open);
      else if (track.lane >= 0) this.toggleLane(track.lane);
    }
    if (!found && y >= RULER) this.measured = this.cursor = null;
    this.redraw();
  }

  /** Let a lane have all its rows, or as many as there is room for. @param {number} lane @param {boolean} [all] */
  showRows(lane, all = true) {
    const key = String(lane);
    const others = this.app.s.tall.filter((k) => k !== key);
    this.app.store.set({ tall: all ? [...others, key] : others }, true);
  }

  /** Let there be rows for more tasks, or as few as at first. @param {import('../parts/timeline/lanes.js').Track} track */
  showTasks({ open }) {
    this.app.store.set({ tasks: open ? FEW_TASK_ROWS : this.app.s.tasks * MORE_TASK_ROWS });
  }

  /** @param {number} lane */
  toggleLane(lane) {
    const { shut } = this.app.s;
    const key = String(lane);
    this.app.store.set({ shut: shut.includes(key) ? shut.filter((k) => k !== key) : [...shut, key] }, true);
  }

  /** The functions that were open around a span, outermost first. @param {Cursor} at @returns {number[]} */
  stackAt({ lane, depth, begin, func }) {
    const cells = this.scene.cellsOf(lane);
    const path = [];
    for (let d = 0; cells && d < depth; d++) {
      const i = this.scene.cellIn(cells, d, begin);
      if (i >= 0) path.push(cells.func[i]);
    }
    return [...path, func];
  }

  /** @param {MouseEvent} event */
  zoomToBox(event) {
    const box = this.area.getBoundingClientRect();
    const found = this.scene.cellAt(event.clientX - box.left, event.clientY - box.top, this.scrollTop);
    if (found) this.zoomTo({ begin: found.cells.begin[found.i], end: found.cells.end[found.i] });
  }

  /** @param {MouseEvent} event */
  menu(event) {
    const box = this.area.getBoundingClientRect();
    const found = this.scene.cellAt(event.clientX - box.left, event.clientY - box.top, this.scrollTop);
    if (!found) return;
    event.preventDefault();
    const at = cursorOf(found);
    this.app.tip.hide();
    this.app.select(at.func);
    this.app.frameMenu(event.clientX, event.clientY, at.func, this.stackAt(at), [
      ["Zoom to it", () => this.zoomTo(at)],
      ["Only this stretch of time", () => this.app.showRange({ from: at.begin, to: at.end })],
    ]);
  }

  /** @param {number} x @returns {import('../parts/pointer.js').Grip} */
  measureFrom(x) {
    const begin = this.scene.t(x);
    return {
      move: (to) => {
        const end = Math.max(0, Math.min(this.scene.length, this.scene.t(to)));
        this.measured = { from: Math.min(begin, end), to: Math.max(begin, end) };
        this.redraw();
      },
      drop: (moved) => {
        if (!moved) this.measured = null;
        this.redraw();
      },
    };
  }

  // ---- keys ----

  /** For those who do not see it. */
  say() {
    const { cursor: at, app, scene } = this;
    if (!at) return;
    const track = scene.tracks.find((t) => t.lane === at.lane);
    this.live.textContent = `${app.session.label(at.func)}, ${formatTime(at.end - at.begin)} from ${formatInstant(at.begin, scene.pixel)}, ${track?.title ?? ""}, depth ${at.depth + 1}`;
  }

  /** Keys of the drawing itself. @param {KeyboardEvent} event */
  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { scene } = this;
    const ways = { ArrowLeft: "left", ArrowRight: "right", ArrowUp: "out", ArrowDown: "in" };
    const way = /** @type {Record<string, string>} */ (ways)[event.key];
    if (event.key === "Enter") {
      if (this.measured) this.app.showRange(this.measured);
      else if (this.cursor) this.zoomTo(this.cursor);
      else this.setCursor(stepCell(scene, null, "in"));
    } else if (way && this.cursor && !event.shiftKey) this.setCursor(stepCell(scene, this.cursor, way));
    else if (way) this.pan({ left: 80, right: -80, in: 0, out: 0 }[way] ?? 0, { in: -60, out: 60 }[way] ?? 0);
    else if (event.key === "PageDown" || event.key === "PageUp")
      this.pan(0, (event.key === "PageUp" ? 1 : -1) * scene.height * 0.8);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {Cursor | null} cursor */
  setCursor(cursor) {
    const { scene, app } = this;
    if (!cursor) return;
    this.cursor = cursor;
    app.lastPath = this.stackAt(cursor);
    app.select(cursor.func, true);
    if (cursor.end < scene.see.from || cursor.begin > scene.see.to) {
      const half = (scene.see.to - scene.see.from) / 2;
      this.lookAt(cursor.begin - half, cursor.begin + half);
    }
    this.uncover(cursor);
    this.say();
    this.redraw();
  }

  /** Keys for the whole page while this view is shown. @param {KeyboardEvent} event */
  key(event) {
    const step = this.scene.width * 0.2;
    const key = event.key.toLowerCase();
    if (key === "w" || key === "+" || key === "=") this.zoom(1.5, 0.5);
    else if (key === "s" || key === "-") this.zoom(1 / 1.5, 0.5);
    else if (key === "a") this.pan(step, 0);
    else if (key === "d") this.pan(-step, 0);
    else if (key === "arrowleft" || key === "arrowright") this.pan(key === "arrowleft" ? step : -step, 0);
    else if (key === "arrowup" || key === "arrowdown") this.pan(0, key === "arrowup" ? 60 : -60);
    else if (key === "0") this.lookAt(0, this.scene.length, false);
    else if (key === "f" && this.cursor) this.zoomTo(this.cursor);
    else if (key === "n") this.next(event.shiftKey);
    else if (key === "enter" && this.measured) this.app.showRange(this.measured);
    else if (key === "escape") return this.out();
    else return false;
    return true;
  }

  /** One step out: what is measured, the cursor, the zoom, the range. */
  out() {
    const { app } = this;
    if (this.measured) this.measured = null;
    else if (this.cursor) this.cursor = null;
    else if (app.s.see) this.lookAt(0, this.scene.length, false);
    else if (app.session.range(app.s)) app.showRange(null);
    else return false;
    this.redraw();
    return true;
  }

  /** The next span of what is searched for, or of the selected function. @param {boolean} [backwards] */
  async next(backwards = false) {
    const { app, scene } = this;
    const { session, s } = app;
    const found = session.matches(s).funcs;
    const funcs = found.length ? found : s.f > 0 ? [s.f] : [];
    if (session.whole(s).leftOut && !session.whole(s).kept) return app.toast(LEFT_OUT);
    if (!funcs.length) return app.toast("Search for a function, or select one, to go to its next span.");
    const middle = (scene.see.from + scene.see.to) / 2;
    const from = this.cursor ? this.cursor.begin : backwards ? middle : scene.see.from;
    const span = await session.findSpan(s, funcs, from, backwards);
    if (span) this.goTo(span, true);
    else app.toast(backwards ? "There is none before." : "There is none behind.");
  }

  // ---- for others ----

  picture() {
    const height = Math.max(this.scene.height, this.scene.contentHeight);
    return {
      width: this.scene.width,
      height,
      draw: (/** @type {any} */ p) => {
        const was = this.scene.height;
        this.scene.height = height;
        this.scene.arrange();
        this.scene.load(0);
        this.scene.paint(p, height, 0);
        this.scene.height = was;
      },
    };
  }

  drawn() {
    return drawnTimeline(this);
  }
}

/** @param {import('../parts/timeline/scene.js').FoundCell} found @returns {Cursor} */
function cursorOf({ track, cells, i }) {
  return { lane: track.lane, depth: cells.depth[i], begin: cells.begin[i], end: cells.end[i], func: cells.func[i] };
}
