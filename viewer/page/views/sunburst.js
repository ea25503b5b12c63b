// The tree as rings: the zoomed context in the middle, what it called around it. The same boxes as the flame graph.

import { el, fill, oncePerFrame } from "../parts/dom.js";
import { canvasPainter, fitText } from "../parts/paint.js";
import { usePointer } from "../parts/pointer.js";
import { readableOn } from "../parts/ink.js";
import { change, diffColor } from "../parts/colors.js";
import { formatShare } from "../parts/numbers.js";
import { flameTools } from "../parts/flame_tools.js";
import { stepInLayout } from "../parts/steps.js";
import { crumbBar } from "../parts/crumbs.js";

/** @typedef {import('../app.js').App} App */

const TURN = Math.PI * 2;
const MOST_RINGS = 24;
/** A thinner ring has no room for a name. */
const RING_PIXELS = 16;

export class SunburstView {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.id = "sunburst";
    this.title = "Sunburst";
    this.hovered = -1;
    this.size = 300;
    /** @type {number[]} radii, of the largest */
    this.edges = [0, 1];
    this.rings = 0;
    this.most = 1;
    this.total = 0;
    this.width = 0;
    this.height = 0;
    /** @type {{node: number, func: number}[]} */
    this.above = [];
    this.view = /** @type {any} */ (null);
    this.layout = /** @type {any} */ (null);
    this.redraw = oncePerFrame(() => this.draw());
    this.canvas = el("canvas", { "aria-hidden": "true" });
    /** @type {HTMLElement} */
    this.area = el(
      "div.canvas",
      {
        tabindex: 0,
        role: "img",
        "aria-label": "Sunburst of calling contexts; the trees have the same numbers as rows.",
      },
      this.canvas,
    );
    this.live = el("div.sr", { "aria-live": "polite" });
    this.crumbs = el("div.crumbs");
    this.legend = el("div.legend");
    usePointer(this.area, {
      hover: (x, y, event) => this.hover(this.boxAt(x, y), event),
      leave: () => this.hover(-1, null),
      click: (x, y) => this.click(this.boxAt(x, y)),
    });
    this.area.addEventListener("contextmenu", (event) => {
      const box = this.area.getBoundingClientRect();
      const i = this.boxAt(event.clientX - box.left, event.clientY - box.top);
      if (i < 0 || !this.layout.func[i]) return;
      event.preventDefault();
      this.app.frameMenu(
        event.clientX,
        event.clientY,
        this.layout.func[i],
        this.view.path(this.layout.node[i]),
      );
    });
    new ResizeObserver(this.redraw).observe(this.area);
  }

  /** @param {HTMLElement} host */
  show(host) {
    fill(host, this.crumbs, this.area, this.legend, this.live);
    this.update(null);
  }

  tools() {
    return flameTools(this.app, true);
  }

  /** @param {Set<string> | null} _changed */
  update(_changed) {
    const { s, session } = this.app;
    this.view = session.view(s);
    const metric = session.metric(s).id;
    const node = s.n < this.view.info.nodes ? s.n : 0;
    this.layout = this.view.layout({
      metric,
      root: node,
      cut: Math.max(1 / 1500, s.cut / 100),
      depth: (this.rings = this.ringsWanted()),
      by: session.isDiff(s) ? "both" : "value",
    });
    this.total = this.layout.length ? this.layout.width[0] : 0;
    this.most = 1;
    /** @type {number[]} */
    const filled = [];
    for (let i = 0; i < this.layout.length; i++) {
      const depth = this.layout.depth[i];
      filled[depth] = (filled[depth] ?? 0) + this.layout.width[i] / (this.total || 1);
      if (this.layout.base)
        this.most = Math.max(this.most, Math.abs(this.layout.value[i] - this.layout.base[i]));
    }
    this.placeRings(filled);
    if (this.hovered >= this.layout.length) this.hovered = -1;
    this.above = this.app.callersAbove(this.view, node);
    crumbBar(this.crumbs, this.app, this.above, this.layout, this.view.totals(metric));
    const colors = this.app.colors();
    fill(
      this.legend,
      ...colors.legend.map(([color, text]) =>
        el("span", null, el("i", { style: { background: color } }), text),
      ),
      this.layout.deeper && innerWidth >= 640
        ? el("span", null, "Stacks go on outside: click a ring to see more of them")
        : null,
    );
    this.redraw();
  }

  /** As many as asked for, or as many as can be read. */
  ringsWanted() {
    const { depth } = this.app.s;
    const radius = Math.min(this.area.clientWidth || 800, this.area.clientHeight || 500) / 2;
    return Math.min(MOST_RINGS, depth || Math.max(8, Math.floor((radius * 0.8) / RING_PIXELS)));
  }

  /** A ring is the thicker the more of it is filled: one deep and narrow stack must not make all rings thin.
   * @param {number[]} filled share of each ring */
  placeRings(filled) {
    const thickness = filled.slice(1).map((share) => 0.2 + 0.8 * Math.sqrt(Math.min(1, share)));
    const sum = thickness.reduce((a, b) => a + b, 0) || 1;
    const inner = Math.max(0.2, 1 / (filled.length + 1));
    this.edges = [0, inner];
    for (const t of thickness) this.edges.push(this.edges[this.edges.length - 1] + (t / sum) * (1 - inner));
  }

  /** Where the ring of this depth begins. @param {number} depth */
  radius(depth) {
    return this.size * (this.edges[Math.min(depth, this.edges.length - 1)] ?? 1);
  }

  draw() {
    if (!this.area.isConnected || !this.layout) return;
    if (this.rings !== this.ringsWanted()) return this.update(null);
    this.width = this.area.clientWidth;
    this.height = this.area.clientHeight;
    const p = canvasPainter(this.canvas, this.width, this.height);
    p.rect(0, 0, this.width, this.height, this.app.palette.colors.paper);
    this.paint(p, this.width, this.height);
  }

  /** @param {import('../parts/paint.js').Painter} p @param {number} width @param {number} height */
  paint(p, width, height) {
    const { s, session, palette } = this.app;
    const { layout } = this;
    const c = palette.colors;
    if (!this.total)
      p.text(
        "Nothing of this metric in this part of the recording",
        width / 2,
        height / 2,
        c["ink-soft"],
        { size: 14 },
        "center",
      );
    if (!this.total) return;
    this.size = Math.max(40, Math.min(width, height) / 2 - 10);
    const cx = width / 2;
    const cy = height / 2;
    const colors = this.app.colors();
    const found = session.matches(s);
    const searching = found.funcs.length > 0;
    for (let i = layout.length - 1; i >= 0; i--) {
      const d = layout.depth[i];
      const func = layout.func[i];
      const { from, to } = this.angles(i);
      const r0 = this.radius(d);
      const r1 = this.radius(d + 1) - 0.5;
      const color = layout.base
        ? diffColor(change(layout.value[i], layout.base[i], s.rel, this.most), palette.dark)
        : colors.of(func);
      const hit = !searching || found.has[func];
      const fillColor = hit ? color : c.panel;
      const edge =
        i === this.hovered
          ? c.ink
          : func === s.f && func
            ? c.select
            : searching && hit && d
              ? c.mark
              : c.paper;
      const line = i === this.hovered || (func === s.f && func) || (searching && hit && d) ? 1.5 : 0.6;
      if (d === 0)
        p.path([["M", cx + r1, cy], ["A", cx, cy, r1, 0, TURN, false], ["Z"]], fillColor, edge, line);
      else {
        p.path(
          [
            ["M", cx + r0 * Math.cos(from), cy + r0 * Math.sin(from)],
            ["A", cx, cy, r0, from, to, false],
            ["L", cx + r1 * Math.cos(to), cy + r1 * Math.sin(to)],
            ["A", cx, cy, r1, to, from, true],
            ["Z"],
          ],
          fillColor,
          edge,
          line,
        );
        this.label(p, cx, cy, i, from, to, r0, r1, hit ? readableOn(color, palette.dark) : c["ink-faint"]);
      }
    }
    if (layout.length) this.centre(p, cx, cy);
  }

  /** @param {number} i */
  angles(i) {
    const from = (this.layout.start[i] / this.total) * TURN - Math.PI / 2;
    return { from, to: from + (this.layout.width[i] / this.total) * TURN };
  }

  /**
   * Bent with the ring where the arc is long, outwards where it is short; whichever shows more of the name.
   * @param {import('../parts/paint.js').Painter} p @param {number} cx @param {number} cy @param {number} i
   * @param {number} from @param {number} to @param {number} r0 @param {number} r1 @param {string} ink
   */
  label(p, cx, cy, i, from, to, r0, r1, ink) {
    const font = { size: 11 };
    const middle = (from + to) / 2;
    const thick = r1 - r0;
    const r = (r0 + r1) / 2;
    const name = this.app.session.label(this.layout.func[i]);
    const outwards = r * (to - from) < 13 ? "" : fitText(name, thick - 6, font);
    const bent = thick < 12 ? "" : fitText(name, Math.min(r * (to - from) - 8, r * 2.4), font);
    const text = bent.length >= outwards.length ? bent : outwards;
    if (!text || (text.endsWith("…") && text.length < 5)) return;
    if (text === bent) return this.bentText(p, text, cx, cy, r, middle, ink, font);
    const turn = Math.cos(middle) < 0 ? middle + Math.PI : middle;
    p.turned(turn, cx + r * Math.cos(middle), cy + r * Math.sin(middle), () =>
      p.text(text, 0, 0, ink, font, "center"),
    );
  }

  /**
   * Letter by letter along the circle; in the lower half the other way round, so that nothing stands on its head.
   * @param {import('../parts/paint.js').Painter} p @param {string} text @param {number} cx @param {number} cy
   * @param {number} r @param {number} middle angle @param {string} ink @param {import('../parts/paint.js').Font} font
   */
  bentText(p, text, cx, cy, r, middle, ink, font) {
    const way = Math.sin(middle) > 0 ? -1 : 1;
    let at = -p.measure(text, font) / 2;
    for (const letter of text) {
      const width = p.measure(letter, font);
      const angle = middle + (way * (at + width / 2)) / r;
      p.turned(angle + (way * Math.PI) / 2, cx + r * Math.cos(angle), cy + r * Math.sin(angle), () =>
        p.text(letter, 0, 0, ink, font, "center"),
      );
      at += width;
    }
  }

  /** @param {import('../parts/paint.js').Painter} p @param {number} cx @param {number} cy */
  centre(p, cx, cy) {
    const { app } = this;
    const func = this.layout.func[0];
    const room = this.radius(1) * 1.7;
    const ink = readableOn(
      this.layout.base ? app.palette.colors.panel : app.colors().of(func),
      app.palette.dark,
    );
    const name = { size: 13, weight: 600 };
    p.text(
      fitText(func ? app.session.label(func) : app.scopeTitle(), room, name),
      cx,
      cy - 9,
      ink,
      name,
      "center",
    );
    p.text(
      fitText(app.value(this.layout.value[0]), room, { size: 12 }),
      cx,
      cy + 9,
      ink,
      { size: 12 },
      "center",
    );
  }

  /** @param {number} x @param {number} y */
  boxAt(x, y) {
    const dx = x - this.width / 2;
    const dy = y - this.height / 2;
    const r = Math.hypot(dx, dy);
    const angle = (Math.atan2(dy, dx) + Math.PI / 2 + TURN) % TURN;
    for (let i = 0; i < (this.layout?.length ?? 0); i++) {
      const d = this.layout.depth[i];
      if (r < this.radius(d) || r >= this.radius(d + 1)) continue;
      const from = (this.layout.start[i] / this.total) * TURN;
      if (angle >= from && angle < from + (this.layout.width[i] / this.total) * TURN) return i;
    }
    return -1;
  }

  /** @param {number} i @param {PointerEvent | null} event */
  hover(i, event) {
    if (i !== this.hovered) this.redraw();
    this.hovered = i;
    this.area.style.setProperty("cursor", i >= 0 ? "pointer" : "default");
    if (i < 0 || !event) return this.app.tip.hide();
    const node = this.view.node(this.layout.node[i], this.app.session.metric(this.app.s).id);
    this.app.tip.show(this.app.nodeTip(this.view, node), event.clientX, event.clientY);
  }

  /** The middle leads out, everything else in. @param {number} i */
  click(i) {
    if (i < 0) return;
    this.app.tip.hide();
    this.hovered = -1;
    if (i === 0) this.out();
    else this.app.zoomTo(this.layout.node[i], this.layout.func[i]);
  }

  out() {
    const last = this.above[this.above.length - 1];
    if (!last) return false;
    this.app.store.set({ n: last.node });
    return true;
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.key === "Escape" || event.key === "Backspace") return this.out();
    /** @type {Record<string, 'left' | 'right' | 'in' | 'out'>} */
    const ways = { ArrowLeft: "left", ArrowRight: "right", ArrowUp: "in", ArrowDown: "out" };
    if (event.key === "0") this.app.store.set({ n: 0 });
    else if (event.key === "Enter" && this.hovered >= 0) this.click(this.hovered);
    else if (ways[event.key]) this.step(stepInLayout(this.layout, this.hovered, ways[event.key]));
    else return false;
    return true;
  }

  /** To another ring by keyboard: up is outwards, as at the top of the picture. @param {number} i */
  step(i) {
    const { app, layout } = this;
    this.hovered = i;
    app.lastPath = [...this.view.path(layout.node[i])];
    const name = layout.func[i] ? app.session.label(layout.func[i]) : app.scopeTitle();
    this.live.textContent = `${name}, ${app.value(layout.value[i])}, ${formatShare(layout.value[i], this.total)} of what is shown`;
    if (layout.func[i]) app.select(layout.func[i], true);
    this.redraw();
  }

  picture() {
    const side = Math.max(600, Math.min(this.width, this.height));
    return {
      width: side,
      height: side,
      draw: (/** @type {any} */ p) => {
        this.paint(p, side, side);
        this.redraw();
      },
    };
  }

  drawn() {
    const area = this.area.getBoundingClientRect();
    const boxes = [];
    for (let i = 0; i < Math.min(2000, this.layout.length); i++) {
      const { from, to } = this.angles(i);
      const r = (this.radius(this.layout.depth[i]) + this.radius(this.layout.depth[i] + 1)) / 2;
      boxes.push({
        name: this.app.session.functions[this.layout.func[i]]?.qualname,
        value: this.layout.value[i],
        depth: this.layout.depth[i],
        share: (to - from) / TURN,
        x: area.left + area.width / 2 + r * Math.cos((from + to) / 2),
        y: area.top + area.height / 2 + r * Math.sin((from + to) / 2),
      });
    }
    return { boxes, total: this.total, share: formatShare(this.total, this.total) };
  }
}
