// Flame graph and icicle: a box per calling context, as wide as its share. Only boxes in sight are asked of the engine
// and drawn, onto one canvas; no element exists per box. Callers of the zoomed context stay as full-width rows.

import { el, fill, oncePerFrame } from "../parts/dom.js";
import { canvasPainter, fitText } from "../parts/paint.js";
import { usePointer } from "../parts/pointer.js";
import { readableOn } from "../parts/ink.js";
import { change, diffColor } from "../parts/colors.js";
import { formatShare, formatCount } from "../parts/numbers.js";
import { flameTools } from "../parts/flame_tools.js";
import { stepInLayout } from "../parts/steps.js";
import { crumbBar } from "../parts/crumbs.js";

const ROW = 20;
/** @type {import('../parts/paint.js').Font} */
const LABEL = { size: 12 };
const NO_ROW = 0xffffffff;

/** @typedef {import('../app.js').App} App */
/** @typedef {{node: number, func: number, row: number, x0: number, x1: number, value: number, self: number, base: number, i: number}} Box
 *    x in shares of the zoomed context, row counted from the outermost caller; i: index in the layout, -1 for callers above */

export class FlameView {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.id = "flame";
    this.title = "Flame";
    this.scrollTop = 0;
    this.width = 800;
    this.height = 400;
    this.total = 0;
    this.levels = 0;
    this.shownBoxes = 0;
    /** @type {{node: number, func: number}[]} callers of the zoomed context, outermost first */
    this.above = [];
    this.colors = app.colorTable;
    this.view = /** @type {any} */ (null);
    this.layout = /** @type {any} */ (null);
    /** @type {Box | null} */
    this.hovered = null;
    this.cursor = -1;
    this.redraw = oncePerFrame(() => this.draw());
    this.canvas = el("canvas", { "aria-hidden": "true" });
    this.live = el("div.sr", { "aria-live": "polite" });
    /** @type {HTMLElement} */
    this.area = el(
      "div.canvas",
      {
        tabindex: 0,
        role: "application",
        "aria-label":
          "Flame graph. Arrow keys move between boxes, Enter zooms in, Escape zooms out. The table has the same numbers.",
        onkeydown: (/** @type {KeyboardEvent} */ event) => this.onKey(event),
      },
      this.canvas,
      this.live,
    );
    this.crumbs = el("div.crumbs", { "aria-label": "Where you are" });
    this.legend = el("div.legend");
    usePointer(this.area, {
      hover: (x, y, event) => this.hover(this.boxAt(x, y), event),
      leave: () => this.hover(null, null),
      click: (x, y) => this.click(this.boxAt(x, y)),
      pan: (dx, dy) => this.pan(dx, dy),
      scroll: (dx, dy) => this.scroll(dx, dy),
      zoom: (factor, x) => this.zoomRange(factor, x / this.width),
    });
    this.area.addEventListener("contextmenu", (event) => this.menu(event));
    new ResizeObserver(() => {
      if (!this.area.isConnected) return;
      this.load();
      this.draw();
    }).observe(this.area);
  }

  /** @param {HTMLElement} host */
  show(host) {
    fill(host, this.crumbs, this.area, this.legend);
    this.update(null);
  }

  hide() {
    this.app.tip.hide();
  }

  tools() {
    return flameTools(this.app);
  }

  /** @param {Set<string> | null} changed */
  update(changed) {
    const drawingOnly = ["q", "f", "color", "shape", "rel", "theme", "sort", "asc"];
    if (!changed || ![...changed].every((key) => drawingOnly.includes(key))) {
      if (!changed || changed.has("n") || changed.has("shape")) this.scrollTop = 0;
      this.load();
    }
    this.colors = this.app.colors();
    fill(
      this.legend,
      ...this.colors.legend.map(([color, text]) =>
        el("span", null, el("i", { style: { background: color } }), text),
      ),
    );
    this.redraw();
  }

  /** Ask the engine for the boxes of what is in sight. */
  load() {
    const { session, s } = this.app;
    const diff = session.isDiff(s);
    this.width = this.area.clientWidth || 800;
    this.height = this.area.clientHeight || 400;
    this.view = session.view(s);
    const nodes = this.view.info.nodes;
    const node = s.n < nodes ? s.n : 0;
    const span = Math.max(1e-9, s.x1 - s.x0);
    const seen = 0.5 / Math.max(200, this.width);
    const cut = Math.max(seen, s.cut / 100);
    this.layout = this.view.layout({
      metric: session.metric(s).id,
      root: node,
      cut: cut * span,
      depth: s.depth || 256,
      by: diff ? "both" : "value",
      from: s.x0,
      to: s.x1,
    });
    this.total = this.layout.length ? this.layout.width[0] : 0;
    this.above = this.app.callersAbove(this.view, node);
    this.levels = 0;
    for (let i = 0; i < this.layout.length; i++)
      this.levels = Math.max(this.levels, this.layout.depth[i] + 1);
    this.levels += this.above.length;
    this.cursor = -1;
    // With many callers above, begin where the zoomed context is, three callers in sight.
    const most = Math.max(0, this.levels * ROW - this.height + 8);
    const lead = Math.max(0, this.above.length - 3) * ROW;
    if (this.scrollTop === 0 && lead > 0) this.scrollTop = Math.min(lead, most);
    this.scrollTop = Math.max(0, Math.min(this.scrollTop, most));
    crumbBar(this.crumbs, this.app, this.above, this.layout, this.view.totals(session.metric(s).id));
  }

  /** Every box that would be drawn in an area this large. @param {(box: Box) => void} each */
  boxes(each) {
    const { layout, total } = this;
    for (let k = 0; k < this.above.length; k++)
      each({
        node: this.above[k].node,
        func: this.above[k].func,
        row: k,
        x0: 0,
        x1: 1,
        value: 0,
        self: 0,
        base: 0,
        i: -1,
      });
    for (let i = 0; i < layout.length; i++) {
      each({
        node: layout.node[i],
        func: layout.func[i],
        row: this.above.length + layout.depth[i],
        x0: layout.start[i] / total,
        x1: (layout.start[i] + layout.width[i]) / total,
        value: layout.value[i],
        self: layout.self[i],
        base: layout.base ? layout.base[i] : 0,
        i,
      });
    }
  }

  /** @param {number} row @param {number} height of everything */
  rowTop(row, height) {
    return this.app.s.shape === "up" ? height - (row + 1) * ROW : row * ROW;
  }

  get contentHeight() {
    return this.levels * ROW;
  }

  /** The distance from the top of the drawing to the top of the area. */
  get offset() {
    if (this.app.s.shape !== "up") return this.scrollTop;
    const spare = this.contentHeight - this.height + 4;
    return spare - this.scrollTop;
  }

  draw() {
    if (!this.area.isConnected || !this.layout) return;
    const p = canvasPainter(this.canvas, this.width, this.height);
    p.rect(0, 0, this.width, this.height, this.app.palette.colors.paper);
    this.shownBoxes = this.paint(p, this.width, this.contentHeight, this.offset, this.height);
  }

  /**
   * @param {import('../parts/paint.js').Painter} p @param {number} width @param {number} content @param {number} offset @param {number} height
   */
  paint(p, width, content, offset, height) {
    const { s, session, palette } = this.app;
    const c = palette.colors;
    if (!this.total)
      p.text(
        "Nothing of this metric in this part of the recording",
        width / 2,
        Math.max(60, height / 3),
        c["ink-soft"],
        { size: 14 },
        "center",
      );
    if (!this.total) return 0;
    const found = session.matches(s);
    const searching = found.funcs.length > 0;
    const span = s.x1 - s.x0;
    const most = this.mostChange();
    const fade = palette.dark ? "rgba(20, 23, 27, 0.62)" : "rgba(255, 255, 255, 0.66)";
    let drawn = 0;
    /** @type {[number, number, number][]} */
    const framed = [];
    this.boxes((box) => {
      const x = ((box.x0 - s.x0) / span) * width;
      const w = ((box.x1 - box.x0) / span) * width;
      const y = this.rowTop(box.row, content) - offset;
      if (x > width || x + w < 0 || w < 0.3 || y > height || y + ROW < 0) return;
      const left = Math.max(0, x);
      const inner = Math.min(width, x + w) - left;
      const fill =
        most && box.i >= 0
          ? diffColor(change(box.value, box.base, s.rel, most), palette.dark)
          : this.colors.of(box.func);
      p.rect(left, y, Math.max(0.6, inner - (inner > 2.5 ? 0.7 : 0)), ROW - 1, fill);
      const hit = searching && found.has[box.func];
      if ((searching && !hit) || box.i < 0) p.rect(left, y, Math.max(0.6, inner), ROW - 1, fade);
      if (hit) p.rect(left, y + ROW - 4, Math.max(0.6, inner - 0.7), 3, c.mark);
      drawn++;
      if (inner > 26) {
        const text = fitText(this.boxLabel(box), inner - 8, LABEL);
        const ink = (searching && !hit) || box.i < 0 ? c["ink-soft"] : readableOn(fill, palette.dark);
        if (text) p.text(text, left + 4, y + ROW / 2 - 0.5, ink, LABEL);
      }
      if (box.func === s.f && box.func) framed.push([left, y, inner]);
    });
    for (const [x, y, w] of framed) p.frame(x + 0.75, y + 0.25, Math.max(1, w - 2), ROW - 2, c.select, 1.5);
    for (const box of [this.hovered, this.boxOf(this.cursor)]) {
      if (!box) continue;
      const x = Math.max(0, ((box.x0 - s.x0) / span) * width);
      const w = Math.min(width, ((box.x1 - s.x0) / span) * width) - x;
      p.frame(
        x + 0.5,
        this.rowTop(box.row, content) - offset,
        Math.max(1, w - 1.5),
        ROW - 1.5,
        box === this.hovered ? c["ink-soft"] : c.accent,
        box === this.hovered ? 1 : 2,
      );
    }
    return drawn;
  }

  /** @param {Box} box */
  boxLabel(box) {
    return box.func === 0 ? this.app.scopeTitle() : this.app.session.label(box.func);
  }

  /** The most that any box differs, or 0 if nothing is compared. */
  mostChange() {
    const { layout } = this;
    if (!layout.base) return 0;
    let most = 1;
    for (let i = 0; i < layout.length; i++) most = Math.max(most, Math.abs(layout.value[i] - layout.base[i]));
    return most;
  }

  /** @param {number} i @returns {Box | null} */
  boxOf(i) {
    /** @type {Box | null} */
    let result = null;
    if (i >= 0)
      this.boxes((box) => {
        if (box.i === i) result = box;
      });
    return result;
  }

  /** @param {number} x @param {number} y @returns {Box | null} */
  boxAt(x, y) {
    const { s } = this.app;
    if (!this.layout) return null;
    const at = s.x0 + (x / this.width) * (s.x1 - s.x0);
    const pixel = (s.x1 - s.x0) / this.width;
    const down = y + this.offset;
    const row = Math.floor((s.shape === "up" ? this.contentHeight - down : down) / ROW);
    /** @type {Box | null} */
    let best = null;
    this.boxes((box) => {
      if (box.row === row && at >= box.x0 - pixel * 0.5 && at < Math.max(box.x1, box.x0 + pixel)) best = box;
    });
    return best;
  }

  /** @param {Box | null} box @param {PointerEvent | null} event */
  hover(box, event) {
    if (box?.node !== this.hovered?.node) this.redraw();
    this.hovered = box;
    this.area.style.setProperty("cursor", box ? "pointer" : "default");
    if (!box || !event) return this.app.tip.hide();
    const metric = this.app.session.metric(this.app.s);
    this.app.tip.show(
      this.app.nodeTip(this.view, this.view.node(box.node, metric.id)),
      event.clientX,
      event.clientY,
    );
  }

  /** @param {Box | null} box */
  click(box) {
    if (!box) return;
    this.app.tip.hide();
    this.app.zoomTo(box.node, box.func);
    this.area.focus({ preventScroll: true });
  }

  /** @param {MouseEvent} event */
  menu(event) {
    const area = this.area.getBoundingClientRect();
    const box = this.boxAt(event.clientX - area.left, event.clientY - area.top);
    if (!box || !box.func) return;
    event.preventDefault();
    this.app.tip.hide();
    this.app.select(box.func);
    this.app.frameMenu(event.clientX, event.clientY, box.func, this.view.path(box.node));
  }

  /** @param {number} dx @param {number} dy */
  pan(dx, dy) {
    const { s, store } = this.app;
    const span = s.x1 - s.x0;
    const x0 = Math.max(0, Math.min(1 - span, s.x0 - (dx / this.width) * span));
    this.scrollBy(s.shape === "up" ? dy : -dy);
    if (x0 !== s.x0) store.set({ x0, x1: x0 + span }, true);
    else this.redraw();
  }

  /** @param {number} by */
  scrollBy(by) {
    this.scrollTop = Math.max(
      0,
      Math.min(this.scrollTop + by, Math.max(0, this.contentHeight - this.height + 8)),
    );
  }

  /** @param {number} dx @param {number} dy */
  scroll(dx, dy) {
    const fits = this.contentHeight <= this.height;
    if (fits && !dx) return false;
    this.hover(null, null);
    this.pan(-dx, fits ? 0 : -dy);
    return true;
  }

  /** @param {number} factor @param {number} at share of the width */
  zoomRange(factor, at) {
    const { s, store } = this.app;
    const span = Math.min(1, Math.max(1e-7, (s.x1 - s.x0) / factor));
    const x0 = Math.max(0, Math.min(1 - span, s.x0 + at * (s.x1 - s.x0 - span)));
    this.hover(null, null);
    store.set({ x0, x1: x0 + span }, true);
  }

  /** Keys for the whole page while this view is shown. @param {KeyboardEvent} event */
  key(event) {
    const { s, store } = this.app;
    if (event.key === "+" || event.key === "=") this.zoomRange(1.5, 0.5);
    else if (event.key === "-") this.zoomRange(1 / 1.5, 0.5);
    else if (event.key === "0") store.set({ n: 0, x0: 0, x1: 1 });
    else if (event.key === "i") store.set({ shape: s.shape === "up" ? "down" : "up" });
    else if (event.key === "Escape" || event.key === "Backspace") return this.out();
    else return false;
    return true;
  }

  /** One step out: the visible part first, then the caller. */
  out() {
    const { s, store } = this.app;
    if (s.x0 > 0 || s.x1 < 1) store.set({ x0: 0, x1: 1 });
    else if (this.above.length) store.set({ n: this.above[this.above.length - 1].node });
    else return false;
    return true;
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const { layout } = this;
    const up = this.app.s.shape === "up";
    /** @type {Record<string, 'left' | 'right' | 'in' | 'out'>} */
    const ways = {
      ArrowLeft: "left",
      ArrowRight: "right",
      ArrowUp: up ? "in" : "out",
      ArrowDown: up ? "out" : "in",
    };
    if (event.key === "Enter" && this.cursor >= 0)
      return this.app.zoomTo(layout.node[this.cursor], layout.func[this.cursor]);
    if (!ways[event.key]) return;
    const next = stepInLayout(layout, this.cursor, ways[event.key]);
    event.preventDefault();
    event.stopPropagation();
    this.moveCursor(next);
  }

  /** @param {number} i */
  moveCursor(i) {
    if (i < 0 || i >= this.layout.length) return;
    this.cursor = i;
    this.app.lastPath = [...this.view.path(this.layout.node[i])];
    const top = (this.above.length + this.layout.depth[i]) * ROW;
    if (top < this.scrollTop) this.scrollTop = top;
    if (top + ROW > this.scrollTop + this.height) this.scrollTop = top + ROW - this.height;
    const { session, s } = this.app;
    const value = this.layout.value[i];
    this.live.textContent = `${session.label(this.layout.func[i])}, ${this.app.value(value)}, ${formatShare(value, this.total)} of what is shown, level ${formatCount(this.layout.depth[i] + 1)}`;
    if (this.layout.func[i]) this.app.select(this.layout.func[i], true);
    else if (s.f >= 0) this.redraw();
    this.redraw();
  }

  /** The whole of it, for a file. */
  picture() {
    const height = this.contentHeight;
    return {
      width: this.width,
      height,
      draw: (/** @type {any} */ p) => this.paint(p, this.width, height, 0, height),
    };
  }

  /** For tests: what is on the screen. */
  drawn() {
    const { s, session } = this.app;
    /** @type {any[]} */
    const list = [];
    const area = this.area.getBoundingClientRect();
    this.boxes((box) => {
      const x = ((box.x0 - s.x0) / (s.x1 - s.x0)) * this.width;
      const w = ((box.x1 - box.x0) / (s.x1 - s.x0)) * this.width;
      const y = this.rowTop(box.row, this.contentHeight) - this.offset;
      if (list.length < 5000)
        list.push({
          ...box,
          parent: box.i < 0 || this.layout.parent[box.i] === NO_ROW ? -1 : this.layout.parent[box.i],
          name: session.functions[box.func]?.qualname,
          label: this.boxLabel(box),
          x: area.left + x,
          y: area.top + y,
          w,
          h: ROW,
        });
    });
    return { boxes: list, total: this.total, count: this.shownBoxes, omitted: this.layout.omitted };
  }
}
