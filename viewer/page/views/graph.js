// The call graph: a box per function, a line per caller and callee, laid out in layers by the engine. Panned and zoomed
// like a map. Small functions and edges are left out by the thresholds, as in gprof2dot.

import { el, fill, oncePerFrame, choice, segments } from "../parts/dom.js";
import { canvasPainter, fitText } from "../parts/paint.js";
import { usePointer } from "../parts/pointer.js";
import { readableOn } from "../parts/ink.js";
import { change, diffColor, diffLegend, heatColor } from "../parts/colors.js";
import { formatCount, formatDelta, formatShare } from "../parts/numbers.js";
import { nearestPoint } from "../parts/steps.js";
import { relativeToggle } from "../parts/toolbar.js";

/** @typedef {import('../app.js').App} App */

const BOX_WIDTH = 168;
const BOX_HEIGHT = 46;
/** Below this scale the small print cannot be read. */
const READABLE = 0.72;

/** @type {Record<string, [number, number]>} */
const ARROWS = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };

export class GraphView {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.id = "graph";
    this.title = "Graph";
    this.scale = 1;
    this.x = 0;
    this.y = 0;
    this.hovered = -1;
    this.key0 = "";
    this.width = 0;
    this.height = 0;
    this.fittedWidth = 0;
    this.graph = /** @type {any} */ (null);
    this.redraw = oncePerFrame(() => this.draw());
    this.canvas = el("canvas", { "aria-hidden": "true" });
    /** @type {HTMLElement} */
    this.area = el(
      "div.canvas",
      {
        tabindex: 0,
        role: "img",
        "aria-label": "Call graph; the view Callers has the same numbers as rows.",
      },
      this.canvas,
    );
    this.live = el("div.sr", { "aria-live": "polite" });
    this.legend = el("div.legend");
    usePointer(this.area, {
      hover: (x, y, event) => this.hover(this.nodeAt(x, y), event),
      leave: () => this.hover(-1, null),
      click: (x, y) => this.click(this.nodeAt(x, y)),
      pan: (dx, dy) => this.pan(dx, dy),
      zoom: (factor, x, y) => this.zoom(factor, x, y),
    });
    this.area.addEventListener("contextmenu", (event) => {
      const box = this.area.getBoundingClientRect();
      const i = this.nodeAt(event.clientX - box.left, event.clientY - box.top);
      if (i < 0) return;
      event.preventDefault();
      this.app.frameMenu(event.clientX, event.clientY, this.graph.nodes.func[i], [this.graph.nodes.func[i]]);
    });
    new ResizeObserver(() => {
      if (this.graph && this.area.isConnected && this.area.clientWidth !== this.fittedWidth) this.fit();
      this.redraw();
    }).observe(this.area);
  }

  /** @param {HTMLElement} host */
  show(host) {
    fill(host, this.area, this.legend, this.live);
    this.key0 = "";
    this.update(null);
  }

  tools() {
    const { s, store, session } = this.app;
    /** @type {[string, string][]} */
    const cuts = ["0", "0.05", "0.1", "0.5", "1", "2", "5", "10"].map((v) => [v, `${v} %`]);
    return [
      choice("Nodes", cuts, String(s.nodeCut), (v) => store.set({ nodeCut: Number(v) })),
      choice("Edges", cuts, String(s.edgeCut), (v) => store.set({ edgeCut: Number(v) })),
      choice(
        "Part",
        [
          ["all", "all"],
          ["root", "from selected"],
          ["leaf", "to selected"],
        ],
        s.gpart,
        (gpart) => store.set({ gpart }),
      ),
      session.isDiff(s)
        ? relativeToggle(this.app)
        : segments(
            "Colour",
            [
              ["total", "Total"],
              ["self", "Self"],
            ],
            s.gcolor,
            (gcolor) => store.set({ gcolor }),
          ),
      el(
        "button.button",
        {
          type: "button",
          onclick: () => {
            this.fit();
            this.redraw();
          },
        },
        "Fit",
      ),
    ];
  }

  /** @param {Set<string> | null} _changed */
  update(_changed) {
    const { s, session } = this.app;
    const metric = session.metric(s).id;
    const part = s.gpart !== "all" && s.f > 0 ? { [s.gpart]: s.f } : {};
    const key = JSON.stringify([session.options(s, { reversed: false }), metric, s.nodeCut, s.edgeCut, part]);
    if (key !== this.key0) {
      this.key0 = key;
      this.graph = session
        .view(s, { reversed: false })
        .graph({ metric, nodeCut: s.nodeCut / 100, edgeCut: s.edgeCut / 100, limit: 300, ...part });
      this.hovered = -1;
      this.fit();
    }
    const { palette } = this.app;
    const words = `${formatCount(this.graph.nodes.length)} functions, ${formatCount(this.graph.edges.length)} edges`;
    const omitted = this.graph.omittedNodes
      ? `; ${formatCount(this.graph.omittedNodes)} smaller functions are not shown`
      : "";
    const swatch = (/** @type {string} */ color) => el("i", { style: { background: color } });
    const legend = session.isDiff(s)
      ? diffLegend(palette).map(([color, text]) => el("span", null, swatch(color), text))
      : [
          el(
            "span",
            null,
            "little",
            el(
              "span.ramp",
              null,
              ...[0.01, 0.06, 0.2, 0.5, 1].map((t) => swatch(heatColor(t, palette.dark))),
            ),
            `much ${s.gcolor === "self" ? "self" : "total"} ${session.metric(s).title}`,
          ),
        ];
    fill(this.legend, ...legend, el("span", null, words + omitted));
    this.redraw();
  }

  /** In pixels at scale 1. @param {number} x @param {number} y @returns {[number, number]} */
  at(x, y) {
    return [x * BOX_WIDTH, y * BOX_HEIGHT];
  }

  fit() {
    this.width = this.area.clientWidth || 800;
    this.height = this.area.clientHeight || 500;
    this.fittedWidth = this.width;
    const [w, h] = this.at(Math.max(1, this.graph.width), Math.max(1, this.graph.height));
    const whole = Math.min((this.width - 40) / w, (this.height - 40) / h);
    // Rather a readable part than an unreadable whole: the top in the middle, the rest by dragging.
    this.scale = Math.max(Math.min(1.2, whole), READABLE);
    this.x = (this.width - w * this.scale) / 2;
    this.y = Math.max(20, (this.height - h * this.scale) / 2);
    if (this.scale > whole) this.centreHeaviest(w);
  }

  /** @param {number} w width of the picture at scale 1 */
  centreHeaviest(w) {
    const { nodes } = this.graph;
    let best = 0;
    for (let i = 1; i < nodes.length; i++)
      if (nodes.layer[i] <= nodes.layer[best] && nodes.total[i] > nodes.total[best]) best = i;
    if (nodes.length && w * this.scale > this.width)
      this.x = this.width / 2 - this.at(nodes.x[best], 0)[0] * this.scale;
    this.y = 20;
  }

  draw() {
    if (!this.area.isConnected || !this.graph) return;
    this.width = this.area.clientWidth;
    this.height = this.area.clientHeight;
    const p = canvasPainter(this.canvas, this.width, this.height);
    p.rect(0, 0, this.width, this.height, this.app.palette.colors.paper);
    p.placed(this.x, this.y, this.scale, () => this.paint(p, this.scale));
  }

  /** @param {import('../parts/paint.js').Painter} p @param {number} scale */
  paint(p, scale) {
    const { edges, nodes } = this.graph;
    const focus = this.hovered >= 0 ? this.hovered : this.selectedNode();
    for (let e = 0; e < edges.length; e++)
      if (edges.from[e] !== focus && edges.to[e] !== focus) this.edge(p, e, false, scale);
    for (let e = 0; e < edges.length; e++)
      if (edges.from[e] === focus || edges.to[e] === focus) this.edge(p, e, true, scale);
    for (let i = 0; i < nodes.length; i++) this.box(p, i, scale);
  }

  selectedNode() {
    return this.graph.nodes.func.indexOf(this.app.s.f);
  }

  /** @param {import('../parts/paint.js').Painter} p @param {number} e @param {boolean} strong @param {number} scale */
  edge(p, e, strong, scale) {
    const { edges, points, sum } = this.graph;
    const { palette } = this.app;
    const share = sum ? edges.total[e] / sum : 0;
    const first = edges.pointsStart[e];
    const count = edges.pointsCount[e];
    if (count < 2) return;
    const color = strong
      ? palette.colors.accent
      : share > 0.02
        ? palette.colors["ink-faint"]
        : palette.colors["line-strong"];
    /** @type {import('../parts/paint.js').PathStep[]} */
    const path = [["M", ...this.at(points.x[first], points.y[first])]];
    for (let i = 1; i < count; i++) {
      const [x0, y0] = this.at(points.x[first + i - 1], points.y[first + i - 1]);
      const [x1, y1] = this.at(points.x[first + i], points.y[first + i]);
      const bend = (y1 - y0) * 0.5;
      path.push(["C", x0, y0 + bend, x1, y1 - bend, x1, y1]);
    }
    p.path(path, null, color, Math.min(7, 0.8 + share * 7) + (strong ? 0.6 : 0));
    const [tx, ty] = this.at(points.x[first + count - 1], points.y[first + count - 1]);
    const up = points.y[first + count - 1] < points.y[first + count - 2] ? 1 : -1;
    p.path([["M", tx, ty], ["L", tx - 4.5, ty + up * 8], ["L", tx + 4.5, ty + up * 8], ["Z"]], color, null);
    if (scale < 0.5 || (share < 0.01 && !strong)) return;
    const [mx, my] = this.at(
      (points.x[first] + points.x[first + 1]) / 2,
      (points.y[first] + points.y[first + 1]) / 2,
    );
    const font = { size: 10 };
    const text = edges.calls[e]
      ? `${formatShare(edges.total[e], sum)} · ${formatCount(edges.calls[e])}×`
      : formatShare(edges.total[e], sum);
    const w = p.measure(text, font);
    p.rect(mx - w / 2 - 3, my - 7, w + 6, 14, palette.colors.paper, 3);
    p.text(text, mx, my, strong ? palette.colors.accent : palette.colors["ink-soft"], font, "center");
  }

  /** @param {import('../parts/paint.js').Painter} p @param {number} i @param {number} scale */
  box(p, i, scale) {
    const { nodes, sum } = this.graph;
    const { palette, session, s } = this.app;
    const [cx, cy] = this.at(nodes.x[i], nodes.y[i]);
    const x = cx - BOX_WIDTH / 2;
    const y = cy - BOX_HEIGHT / 2;
    const share = sum ? (s.gcolor === "self" ? nodes.self[i] : nodes.total[i]) / sum : 0;
    const color = nodes.baseTotal
      ? diffColor(change(nodes.total[i], nodes.baseTotal[i], s.rel, this.mostChange()), palette.dark)
      : heatColor(share, palette.dark);
    const found = session.matches(s);
    const hit = found.funcs.length && found.has[nodes.func[i]];
    p.rect(x, y, BOX_WIDTH, BOX_HEIGHT, color, 5);
    const selected = nodes.func[i] === s.f;
    p.frame(
      x,
      y,
      BOX_WIDTH,
      BOX_HEIGHT,
      hit
        ? palette.colors.mark
        : selected
          ? palette.colors.select
          : i === this.hovered
            ? palette.colors.accent
            : palette.colors["line-strong"],
      hit || selected ? 2.5 : 1,
      5,
    );
    if (scale < 0.22) return;
    const ink = readableOn(color, palette.dark);
    const name = { size: 12, weight: 600 };
    const small = { size: 11 };
    p.text(fitText(session.label(nodes.func[i]), BOX_WIDTH - 12, name), cx, cy - 9, ink, name, "center");
    const numbers = nodes.baseTotal
      ? `${formatShare(nodes.total[i], sum)} (${formatDelta(nodes.total[i] - nodes.baseTotal[i], session.metric(s).unit)})`
      : `${formatShare(nodes.total[i], sum)} (self ${formatShare(nodes.self[i], sum)})`;
    p.text(fitText(numbers, BOX_WIDTH - 8, small), cx, cy + 9, ink, small, "center");
  }

  mostChange() {
    const { nodes } = this.graph;
    let most = 1;
    for (let i = 0; nodes.baseTotal && i < nodes.length; i++)
      most = Math.max(most, Math.abs(nodes.total[i] - nodes.baseTotal[i]));
    return most;
  }

  /** @param {number} px @param {number} py */
  nodeAt(px, py) {
    const x = (px - this.x) / this.scale / BOX_WIDTH;
    const y = (py - this.y) / this.scale / BOX_HEIGHT;
    const { nodes } = this.graph ?? { nodes: { length: 0 } };
    for (let i = 0; i < nodes.length; i++)
      if (Math.abs(nodes.x[i] - x) <= 0.5 && Math.abs(nodes.y[i] - y) <= 0.5) return i;
    return -1;
  }

  /** @param {number} i @param {PointerEvent | null} event */
  hover(i, event) {
    if (i !== this.hovered) this.redraw();
    this.hovered = i;
    this.area.style.setProperty("cursor", i >= 0 ? "pointer" : "grab");
    if (i < 0 || !event) return this.app.tip.hide();
    const { app } = this;
    const { nodes, sum } = this.graph;
    /** @type {[string, string, string?][]} */
    const facts = [
      ["total", app.value(nodes.total[i]), formatShare(nodes.total[i], sum)],
      ["self", app.value(nodes.self[i]), formatShare(nodes.self[i], sum)],
    ];
    if (nodes.calls[i]) facts.push(["calls", formatCount(nodes.calls[i])]);
    if (nodes.baseTotal) facts.push(["before", app.value(nodes.baseTotal[i])]);
    app.tip.show(
      { title: app.session.label(nodes.func[i]), place: app.session.place(nodes.func[i], true), facts },
      event.clientX,
      event.clientY,
    );
  }

  /** @param {number} i */
  click(i) {
    this.app.select(i < 0 ? -1 : this.graph.nodes.func[i]);
  }

  /** @param {number} dx @param {number} dy */
  pan(dx, dy) {
    this.x += dx;
    this.y += dy;
    this.redraw();
  }

  /** @param {number} factor @param {number} x @param {number} y */
  zoom(factor, x, y) {
    const scale = Math.max(0.03, Math.min(4, this.scale * factor));
    this.x = x - ((x - this.x) * scale) / this.scale;
    this.y = y - ((y - this.y) * scale) / this.scale;
    this.scale = scale;
    this.redraw();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const middle = [this.width / 2, this.height / 2];
    if (event.key === "+" || event.key === "=") this.zoom(1.25, middle[0], middle[1]);
    else if (event.key === "-") this.zoom(0.8, middle[0], middle[1]);
    else if (event.key === "0") this.fit();
    else if (ARROWS[event.key] && event.shiftKey)
      this.pan(ARROWS[event.key][0] * -60, ARROWS[event.key][1] * -60);
    else if (ARROWS[event.key]) this.step(ARROWS[event.key][0], ARROWS[event.key][1]);
    else if (event.key === "Enter" && this.selectedNode() >= 0) this.app.toCallers(this.app.s.f);
    else return false;
    this.redraw();
    return true;
  }

  /** To the nearest box in a direction, first to the heaviest. @param {number} dx @param {number} dy */
  step(dx, dy) {
    const { app } = this;
    const { nodes, sum } = this.graph;
    if (!nodes.length) return;
    const from = this.selectedNode();
    const i =
      from < 0 ? nodes.total.indexOf(Math.max(...nodes.total)) : nearestPoint(nodes.x, nodes.y, from, dx, dy);
    const [x, y] = this.at(nodes.x[i], nodes.y[i]).map((v, k) => v * this.scale + (k ? this.y : this.x));
    // Into sight, with some room round it.
    this.x += Math.max(0, 80 - x) - Math.max(0, x - this.width + 80);
    this.y += Math.max(0, 40 - y) - Math.max(0, y - this.height + 40);
    this.live.textContent = `${app.session.label(nodes.func[i])}, ${app.value(nodes.total[i])}, ${formatShare(nodes.total[i], sum)}`;
    app.select(nodes.func[i], true);
  }

  picture() {
    const [w, h] = this.at(this.graph.width, this.graph.height);
    return {
      width: w + 40,
      height: h + 40,
      draw: (/** @type {import('../parts/paint.js').Painter} */ p) =>
        p.placed(20, 20, 1, () => this.paint(p, 1)),
    };
  }

  drawn() {
    const { nodes, edges } = this.graph;
    const { functions } = this.app.session;
    const area = this.area.getBoundingClientRect();
    const name = (/** @type {number} */ i) => functions[nodes.func[i]].qualname;
    return {
      nodes: Array.from({ length: nodes.length }, (_, i) => ({
        name: name(i),
        total: nodes.total[i],
        self: nodes.self[i],
        calls: nodes.calls[i],
        x: area.left + this.x + this.at(nodes.x[i], 0)[0] * this.scale,
        y: area.top + this.y + this.at(0, nodes.y[i])[1] * this.scale,
      })),
      edges: Array.from({ length: edges.length }, (_, e) => ({
        from: name(edges.from[e]),
        to: name(edges.to[e]),
        total: edges.total[e],
        calls: edges.calls[e],
      })),
    };
  }
}
