// The page as a whole: which view is shown, what is selected, and what all views share (colours, tooltip, words for
// numbers). Views know the app; the app knows views only by what they have in common.

import { el, fill, byId } from "./parts/dom.js";
import { Tip } from "./parts/tip.js";
import { readPalette, functionColors } from "./parts/colors.js";
import { formatValue, formatDelta, formatShare, formatCount } from "./parts/numbers.js";
import { menuAt } from "./parts/menu.js";
import { download, pictureSvg, picturePng } from "./parts/export.js";
import { DEFAULTS, SHAPING } from "./state.js";
import { visible, shorten, baseName } from "./parts/text.js";
import { toolbar } from "./parts/toolbar.js";
import { detailsPanel } from "./parts/details.js";
import { useKeys } from "./parts/keys.js";
import { writeRange } from "./parts/timeline/range.js";
import { LEFT_OUT } from "./parts/timeline/ranges.js";

/**
 * @typedef {object} PageView
 * @property {string} id
 * @property {string} title
 * @property {(host: HTMLElement) => void} show
 * @property {(changed: Set<string> | null) => void} update
 * @property {() => void} [hide]
 * @property {() => (Node | null)[]} [tools]
 * @property {(event: KeyboardEvent) => boolean} [key]
 * @property {() => import('./parts/export.js').Picture} [picture]
 * @property {() => any} [drawn]
 * @property {(backwards: boolean) => void} [next]  to the next of what is searched for
 * @property {boolean} [alone]  no panel of details beside it
 * @property {() => boolean} [offered]
 */

/** Deeper stacks are not shown whole above a zoomed context. */
const MOST_ABOVE = 1000;

export class App {
  /** @param {import('./state.js').Store} store @param {import('./session.js').Session} session */
  constructor(store, session) {
    this.store = store;
    this.session = session;
    this.tip = new Tip();
    this.palette = readPalette();
    /** @type {PageView[]} */
    this.views = [];
    /** @type {PageView | null} */
    this.shown = null;
    this.detailsOpen = true;
    /** What was shown before an instant was chosen. */
    this.metricBefore = "";
    this.colorKey = "";
    /** @type {{of: (func: number) => string, legend: [string, string][]}} */
    this.colorTable = { of: () => "#888888", legend: [] };
    /** @type {number[]} functions of the last context pointed at, outermost first */
    this.lastPath = [];
  }

  /** The colour of a state. @param {number} k @returns {string} */
  stateColor(k) {
    return this.session.summary(this.s).stateColors?.[k]?.[this.palette.dark ? 1 : 0] ?? "";
  }

  /** Bars of shares have the colour of the metric, if it has one. */
  showMetricColor() {
    const colors = this.session.metric(this.s).colors;
    document.documentElement.style.setProperty("--metric", colors?.[this.palette.dark ? 1 : 0] ?? "");
  }

  get s() {
    return this.store.now;
  }

  /** @param {PageView[]} views */
  start(views) {
    this.session.blocks.arrived = () => this.blocksArrived();
    const onlyLines = !this.session.hasNumbers(this.s);
    this.views = views.filter(
      (view) =>
        (view.offered ? view.offered() : !onlyLines) || (onlyLines && ["source", "run"].includes(view.id)),
    );
    this.store.listen((changed) => this.changed(changed));
    useKeys(this);
    this.refresh(null);
  }

  /** Single calls came that something waits for. */
  blocksArrived() {
    const { trouble } = this.session.blocks;
    if (trouble) this.toast(trouble);
    this.refresh(null);
  }

  /** @param {Set<string>} changed */
  changed(changed) {
    if ((changed.has("rec") || changed.has("base")) && !this.recordingsReady()) return;
    this.refresh(changed);
  }

  /** Recordings are opened when first asked for. */
  recordingsReady() {
    const wanted = [this.s.rec, this.s.base].filter(
      (i) => i >= 0 && i < this.session.packed.length && !this.session.open[i],
    );
    if (!wanted.length) return true;
    this.toast("Opening the other recording…");
    Promise.all(wanted.map((i) => this.session.openRecording(i))).then(
      () => {
        document.getElementById("toast")?.remove();
        this.refresh(null);
      },
      (error) => {
        this.toast(error.message);
        this.store.set({ base: -1, rec: this.session.open.findIndex(Boolean) });
      },
    );
    return false;
  }

  /** @param {Set<string> | null} changed */
  refresh(changed) {
    const view = this.views.find((v) => v.id === this.s.view) ?? this.views[0];
    this.showMetricColor();
    try {
      if (view !== this.shown) {
        this.shown?.hide?.();
        this.tip.hide();
        this.shown = view;
        byId("middle").classList.toggle("alone", !!view.alone || !this.detailsOpen);
        view.show(byId("view"));
      } else {
        view.update(changed);
        // Scrolling and zooming by the wheel change nothing around the drawing.
        if (changed && [...changed].every((key) => key === "x0" || key === "x1" || key === "see")) return;
      }
      this.frame();
    } catch (error) {
      this.trouble(/** @type {Error} */ (error));
    }
  }

  /** Everything around the view. */
  frame() {
    toolbar(this);
    this.tabs(); // behind what takes room beside them
    detailsPanel(this);
    this.status();
  }

  tabs() {
    fill(
      byId("tabs"),
      ...this.views.map((view, i) =>
        el(
          "button",
          {
            type: "button",
            "aria-current": view === this.shown ? "page" : undefined,
            title: i < 9 ? `Key ${i + 1}` : undefined,
            "data-view": view.id,
            onclick: () => this.store.set({ view: view.id }),
          },
          view.title,
        ),
      ),
    );
    const current = byId("tabs").querySelector("[aria-current]");
    if (
      current &&
      current.offsetLeft + current.offsetWidth > byId("tabs").scrollLeft + byId("tabs").clientWidth
    )
      byId("tabs").scrollLeft = current.offsetLeft - 40;
  }

  status() {
    const { session, s } = this;
    const summary = session.summary(s);
    const metric = session.metric(s);
    const command = summary.facts.command
      ? visible(shorten(summary.facts.command, 300))
      : visible(shorten(summary.name, 300));
    document.title = `${baseName(visible(shorten(summary.name, 80)))} – Fathom`;
    if (!session.hasNumbers(s)) return fill(byId("status"), el("span.name", null, command));
    const totals = session.view(s).totals(metric.id);
    const words = [`${metric.title} ${formatValue(totals.value, metric.unit)}${this.errorWords(session.view(s), 0)}`];
    if (session.isDiff(s))
      words.push(
        `before ${formatValue(totals.base, metric.unit)} (${formatDelta(totals.value - totals.base, metric.unit)})`,
      );
    words.push(
      `${formatCount(session.table(s).length)} ${session.options(s).group === "line" ? "lines" : "functions"}`,
      `${formatCount(session.view(s).info.nodes - 1)} contexts`,
    );
    if (summary.tree === "estimated") words.push("tree estimated from a table of callers");
    fill(
      byId("status"),
      el("span.name", null, command),
      el("span.grow"),
      ...words.map((text) => el("span", null, text)),
    );
  }

  /** @param {Error} error */
  trouble(error) {
    fill(
      byId("view"),
      el(
        "div.nothing",
        null,
        el("h2", null, "This cannot be shown"),
        el("p", null, error.message),
        el(
          "p",
          null,
          this.session.engine.dead
            ? el("button.button", { type: "button", onclick: () => location.reload() }, "Open it again")
            : el(
                "button.button",
                { type: "button", onclick: () => this.store.set({ ...DEFAULTS }) },
                "Show everything again",
              ),
        ),
      ),
    );
    this.shown = null;
    this.tabs();
    console.error(error);
  }

  colors() {
    const s = this.s;
    const key = JSON.stringify([
      s.color,
      s.rel,
      this.session.metric(s).id,
      s.at,
      this.session.options(s, { reversed: false }),
      this.palette.dark,
    ]);
    if (key !== this.colorKey) {
      this.colorTable = functionColors(this.session, s, this.palette);
      this.colorKey = key;
    }
    return this.colorTable;
  }

  /** What the outermost box stands for. */
  scopeTitle() {
    const { s } = this;
    const summary = this.session.summary(s);
    const number = Number(s.scope.slice(1));
    if (s.scope[0] === "p") return `process ${summary.processes[number]?.pid ?? "?"}`;
    if (s.scope[0] === "t")
      return visible(shorten(summary.threads[number]?.name || `thread ${summary.threads[number]?.tid}`, 200));
    return summary.threads.length > 1 ? "all threads" : "everything";
  }

  /** A number of the metric in words. @param {number} value */
  value(value) {
    return formatValue(value, this.session.metric(this.s).unit);
  }

  /** How far the number of a context may be off: " ± 12.0 KiB", or "" if it is exact. @param {any} view @param {number} node
   * @param {"total" | "self"} [part] */
  errorWords(view, node, part = "total") {
    const metric = this.session.metric(this.s);
    const error = metric.memory ? view.error(node, metric.id)[part] : 0;
    return error ? ` ± ${this.value(error)}` : "";
  }

  /** Select a function in all views. @param {number} func @param {boolean} [quiet] */
  select(func, quiet = false) {
    // The stack to be copied is that of the context last pointed at, as long as it has to do with the selection.
    if (!this.lastPath.includes(func)) this.lastPath = [];
    this.store.set({ f: func }, quiet);
  }

  /** @param {number} node @param {number} func */
  zoomTo(node, func) {
    this.lastPath = [...this.session.view(this.s).path(node)];
    this.store.set({ n: node, x0: 0, x1: 1, f: func || this.s.f });
  }

  /**
   * The contexts that a context was called from, outermost first.
   * @param {any} view @param {number} node @returns {{node: number, func: number}[]}
   */
  callersAbove(view, node) {
    const metric = this.session.metric(this.s).id;
    const above = [];
    while (node > 0 && above.length < MOST_ABOVE) {
      node = view.node(node, metric).parent;
      if (node >= 0) above.unshift({ node, func: view.node(node, metric).func });
    }
    return above;
  }

  /** Show another metric, or another instant. Two instants have a tree of their own, where the zoomed context is found again.
   * @param {Partial<import('./state.js').PageState>} patch @param {boolean} [quiet] */
  measure(patch, quiet = false) {
    const { session, s } = this;
    if (session.isDiff(s) === session.isDiff({ ...s, ...patch })) this.store.set(patch, quiet);
    else this.reshape(patch, true);
  }

  /** What was alive at an instant is shown, or what changed between two. @param {string} at @param {boolean} [quiet] */
  showMoment(at, quiet = false) {
    const { session, s } = this;
    if (at && !session.ofMoment(s)) this.metricBefore = s.metric;
    const metric = at ? (session.ofMoment(s) ? s.metric : "then") : session.ofMoment(s) ? this.metricBefore : s.metric;
    this.measure({ at, metric }, quiet);
  }

  /** All views show only what happened in a stretch of time; null: in the whole run.
   * @param {import('./parts/timeline/range.js').Range | null} range */
  showRange(range) {
    const { session, s } = this;
    const metric = session.ofMoment(s) ? this.metricBefore : s.metric;
    if (range && !session.has(s, range)) return this.toast(LEFT_OUT);
    this.reshape({ at: range ? writeRange(range, (range.to - range.from) / 1e4) : "", metric }, true);
  }

  /** Go to one call on the timeline. @param {import('../engine/engine.js').TimeSpan} span */
  showSpan(span) {
    const timeline = this.views.find((view) => view.id === "timeline");
    if (this.shown !== timeline) this.store.set({ view: "timeline" });
    /** @type {any} */ (timeline)?.goTo(span);
  }

  /** Change the shape; the zoomed context is found again in the new one. @param {Partial<import('./state.js').PageState>} patch
   * @param {boolean} [other] the tree is another one whatever is changed */
  reshape(patch, other = false) {
    const before = this.s;
    let path = null;
    if (before.n && (other || Object.keys(patch).some((key) => SHAPING.has(key))))
      path = this.session.view(before).path(before.n);
    const after = { ...before, ...patch };
    let n = 0;
    try {
      if (path && !("rev" in patch)) n = this.session.view(after).find(path);
    } catch {
      n = 0;
    }
    this.store.set({ ...patch, n, x0: 0, x1: 1 });
  }

  /** @param {'fold' | 'keep' | 'root'} what @param {number} func */
  addShape(what, func) {
    if (func > 0) this.reshape({ [what]: [...new Set([...this.s[what], `#${func}`])] });
  }

  /** @param {number} func */
  toSource(func) {
    const info = this.session.functions[func];
    if (!info?.file) return this.toast("This function has no source: it is not written in Python.");
    // The view knows on which line it begins in this recording.
    this.store.set({ view: "source", f: func, file: info.file, line: info.at });
  }

  /** @param {number} func */
  toCallers(func) {
    if (func > 0) this.store.set({ view: "callers", f: func });
  }

  /** The numbers of a context for the tooltip. @param {any} view @param {any} node */
  nodeTip(view, node) {
    const { session, s } = this;
    const metric = session.metric(s);
    const whole = view.totals(metric.id);
    /** @type {[string, string, string?][]} */
    const facts = [
      [
        metric.unit === "ns" ? "total" : metric.title,
        this.value(node.value) + this.errorWords(view, node.node),
        formatShare(node.value, whole.value),
      ],
      ["self", this.value(node.self) + this.errorWords(view, node.node, "self"), formatShare(node.self, whole.value)],
    ];
    if (node.calls) facts.push(["calls", formatCount(node.calls)]);
    if (session.isDiff(s))
      facts.push(
        ["before", this.value(node.base), formatShare(node.base, whole.base)],
        [
          "change",
          formatDelta(node.value - node.base, metric.unit),
          node.base ? `${((node.value / node.base - 1) * 100).toFixed(1)} %` : "new",
        ],
      );
    return {
      title: node.func ? session.label(node.func) : this.scopeTitle(),
      place: session.place(node.func, true),
      facts,
    };
  }

  /** @param {number} x @param {number} y @param {number} func @param {ArrayLike<number>} path
   * @param {[string, () => void][]} [more] */
  frameMenu(x, y, func, path, more = []) {
    this.lastPath = [...Array.from(path)];
    menuAt(x, y, [
      ...more,
      ["Source", () => this.toSource(func)],
      ["Callers and callees", () => this.toCallers(func)],
      null,
      ["Only what it does (re-root)", () => this.addShape("root", func)],
      ["Only paths through it", () => this.addShape("keep", func)],
      ["Hide it (time to its callers)", () => this.addShape("fold", func)],
      null,
      ["Copy this stack", () => this.copyStack()],
      ["Copy the name", () => this.copy(this.session.functions[func].qualname)],
    ]);
  }

  copyStack() {
    const path = this.lastPath.length ? this.lastPath : this.s.f > 0 ? [this.s.f] : [];
    const lines = path
      .filter((func) => this.session.functions[func]?.kind !== "thread")
      .map((func) => `${this.session.label(func)}  ${this.session.place(func, true)}`);
    this.copy(lines.join("\n"));
  }

  /** @param {string} text */
  copy(text) {
    const done = () => this.toast(text ? "Copied." : "Nothing is selected.");
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, () => this.copyByHand(text));
    else this.copyByHand(text);
  }

  /** Pages opened from a file may not use the clipboard directly. @param {string} text */
  copyByHand(text) {
    const area = el("textarea", { "aria-hidden": "true", class: "sr" });
    area.value = text;
    document.body.append(area);
    area.select();
    const worked = document.execCommand("copy");
    area.remove();
    this.toast(worked ? "Copied." : "This browser does not let the page copy.");
  }

  /** @param {string} text */
  toast(text) {
    document.getElementById("toast")?.remove();
    const node = el("div", { id: "toast", role: "status" }, text);
    document.body.append(node);
    setTimeout(() => node.remove(), 2500);
  }

  /** @param {'svg' | 'png'} kind */
  async savePicture(kind) {
    const picture = this.shown?.picture?.();
    if (!picture) return this.toast("This view is no picture. The flame graph, sunburst and call graph are.");
    const name = `${baseName(this.session.summary(this.s).name).replace(/\.[^.]*$/, "")}-${this.shown?.id}.${kind}`;
    try {
      const paper = this.palette.colors.paper;
      const blob =
        kind === "svg"
          ? new Blob([pictureSvg(picture, paper)], { type: "image/svg+xml" })
          : await picturePng(picture, paper);
      download(blob, name);
    } catch (error) {
      this.toast(/** @type {Error} */ (error).message);
    }
  }

  /** @param {'dark' | 'light'} theme @param {boolean} remember */
  setTheme(theme, remember) {
    document.documentElement.dataset.theme = theme;
    if (remember) {
      try {
        localStorage.setItem("fathom-theme", theme);
      } catch {
        // A page opened from a file may have no storage: then it is for this time only.
      }
    }
    this.palette = readPalette();
    if (this.shown) this.refresh(new Set(["theme"]));
  }
}
