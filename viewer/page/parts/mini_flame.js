// A small flame graph of any view of the model, without zoom: used above and below a function to show all that leads to
// it and all that it leads to.

import { el, oncePerFrame } from "./dom.js";
import { canvasPainter, fitText } from "./paint.js";
import { usePointer } from "./pointer.js";
import { readableOn } from "./ink.js";

const MINI_ROW = 19;
/** @type {import('./paint.js').Font} */
const MINI_LABEL = { size: 12 };

export class MiniFlame {
  /**
   * @param {import('../app.js').App} app @param {any} view @param {'up' | 'down'} direction @param {string} label
   */
  constructor(app, view, direction, label) {
    this.app = app;
    this.view = view;
    this.direction = direction;
    this.hovered = -1;
    this.scrolled = 0;
    this.canvas = el("canvas", { "aria-hidden": "true" });
    /** @type {HTMLElement} */
    this.node = el("div.canvas", { role: "img", "aria-label": label }, this.canvas);
    this.redraw = oncePerFrame(() => this.draw());
    // The first level stands for everything and is left out: the function itself comes first.
    this.layout = view.layout({
      metric: app.session.metric(app.s).id,
      cut: 1 / 2000,
      by: app.session.isDiff(app.s) ? "both" : "value",
    });
    this.total = this.layout.length ? this.layout.width[0] : 0;
    this.levels = 0;
    for (let i = 0; i < this.layout.length; i++) this.levels = Math.max(this.levels, this.layout.depth[i]);
    usePointer(this.node, {
      hover: (x, y, event) => this.hover(this.boxAt(x, y), event),
      leave: () => this.hover(-1, null),
      click: (x, y) => {
        const i = this.boxAt(x, y);
        if (i > 0) app.select(this.layout.func[i]);
      },
      pan: (_dx, dy) => this.scrollBy(direction === "up" ? dy : -dy),
      scroll: (_dx, dy) => this.scrollBy(direction === "up" ? -dy : dy),
    });
    new ResizeObserver(this.redraw).observe(this.node);
  }

  /** @param {number} by */
  scrollBy(by) {
    this.scrolled = Math.max(
      0,
      Math.min(this.scrolled + by, this.levels * MINI_ROW - this.node.clientHeight),
    );
    this.redraw();
    return true;
  }

  /** @param {number} depth @param {number} height */
  top(depth, height) {
    return this.direction === "up"
      ? height - depth * MINI_ROW + this.scrolled
      : (depth - 1) * MINI_ROW - this.scrolled;
  }

  draw() {
    if (!this.node.isConnected) return;
    const [width, height] = [this.node.clientWidth, this.node.clientHeight];
    const { palette, session, s } = this.app;
    const p = canvasPainter(this.canvas, width, height);
    p.rect(0, 0, width, height, palette.colors.paper);
    const colors = this.app.colors();
    for (let i = 1; i < this.layout.length && this.total; i++) {
      const x = (this.layout.start[i] / this.total) * width;
      const w = (this.layout.width[i] / this.total) * width;
      const y = this.top(this.layout.depth[i], height);
      if (y > height || y + MINI_ROW < 0) continue;
      const color = colors.of(this.layout.func[i]);
      p.rect(x, y, Math.max(0.6, w - (w > 2.5 ? 0.7 : 0)), MINI_ROW - 1, color);
      const text = w > 26 ? fitText(session.label(this.layout.func[i]), w - 8, MINI_LABEL) : "";
      if (text) p.text(text, x + 4, y + MINI_ROW / 2 - 0.5, readableOn(color, palette.dark), MINI_LABEL);
      if (i === this.hovered || this.layout.func[i] === s.f)
        p.frame(
          x + 0.5,
          y,
          Math.max(1, w - 1.5),
          MINI_ROW - 1.5,
          i === this.hovered ? palette.colors["ink-soft"] : palette.colors.select,
          1.5,
        );
    }
  }

  /** @param {number} x @param {number} y */
  boxAt(x, y) {
    const height = this.node.clientHeight;
    const at = (x / this.node.clientWidth) * this.total;
    for (let i = 1; i < this.layout.length; i++) {
      const top = this.top(this.layout.depth[i], height);
      if (
        y >= top &&
        y < top + MINI_ROW &&
        at >= this.layout.start[i] &&
        at < this.layout.start[i] + this.layout.width[i]
      )
        return i;
    }
    return -1;
  }

  /** @param {number} i @param {PointerEvent | null} event */
  hover(i, event) {
    if (i !== this.hovered) this.redraw();
    this.hovered = i;
    this.node.style.setProperty("cursor", i > 0 ? "pointer" : "default");
    if (i < 1 || !event) return this.app.tip.hide();
    const node = this.view.node(this.layout.node[i], this.app.session.metric(this.app.s).id);
    this.app.tip.show(this.app.nodeTip(this.view, node), event.clientX, event.clientY);
  }

  /** For tests. */
  boxes() {
    return Array.from({ length: this.layout.length }, (_, i) => ({
      name: this.app.session.functions[this.layout.func[i]]?.qualname,
      depth: this.layout.depth[i],
      value: this.layout.value[i],
    }));
  }
}
