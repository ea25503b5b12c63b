// Memory over time, and what is known of blocks beside their contexts: how large they were, how long they lived, who was
// asked for them; and the lines that held the most at the peak.

import { el, fill } from "../parts/dom.js";
import { plainTable } from "../parts/grid.js";
import { MemoryFigure } from "../parts/memory_figure.js";
import { lookTitle, momentTitle } from "../parts/moment.js";
import { formatCount, formatDelta, formatShare, formatTime, formatValue } from "../parts/numbers.js";
import { residentAccounts } from "../parts/residents.js";
import { shorten, visible } from "../parts/text.js";

/** @typedef {import('../app.js').App} App */

const SHOWN_LINES = 25;
const SHOWN_REGIONS = 100;

export class MemoryView {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.id = "memory";
    this.title = "Memory";
    this.alone = true;
    /** @type {HTMLElement} */
    this.host = el("div");
    this.figure = new MemoryFigure(app);
    /** What changes with the instant that is chosen. @type {HTMLElement} */
    this.says = el("div.says", { role: "status" });
    /** @type {HTMLElement} */
    this.below = el("div");
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

  /** @param {Set<string> | null} changed */
  update(changed) {
    const { session, s } = this.app;
    const facts = session.memory(s);
    const process = session.processOf(s);
    const onlyMoment = !!changed && [...changed].every((key) => key === "at" || key === "metric");
    this.counts = facts.counts.filter((c) => process < 0 || c.process === process);
    this.rows = facts.regions.filter((r) => r.process === process);
    this.figure.set(facts, process, session.summary(s).memory.history);
    fill(this.says, ...this.sayMoment());
    fill(this.below, ...this.lines());
    if (onlyMoment) return; // the figure keeps the focus and the pointer
    const drawn = this.figure.isThere;
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
        session.sampledWords(s) ? el("div.notice", null, el("p", null, session.sampledWords(s))) : null,
        el(
          "div.memory",
          null,
          el(
            "div",
            null,
            drawn ? el("h2", null, "Over time") : null,
            drawn ? this.figure.node : null,
            drawn ? this.figure.legend() : null,
            drawn ? this.says : null,
            this.below,
          ),
          el(
            "div",
            null,
            ...this.regions(),
            ...residentAccounts(this.app, facts, process, this.figure.curves.first),
            ...this.sizes(),
            ...this.lives(),
            ...this.kinds(),
          ),
        ),
      ),
    );
    this.figure.redraw();
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.key !== "Escape" || !this.app.session.moment(this.app.s)) return false;
    this.app.showMoment("");
    return true;
  }

  picture() {
    return this.figure.picture();
  }

  /** @returns {[string, string][]} */
  cards() {
    const { session, s } = this.app;
    const metrics = session.memoryMetrics(s);
    const sum = (/** @type {string} */ key) =>
      metrics[key] ? session.view(s).totals(metrics[key].id).value : 0;
    const several = session.summary(s).processes.filter((/** @type {any} */ p) => p.memory).length > 1;
    const scope = session.processOf(s) < 0 && several ? " of each process, added up" : "";
    const amount = (/** @type {string} */ key) => {
      const error = session.view(s).error(0, metrics[key].id).total;
      return `${formatValue(sum(key), "bytes")}${error ? ` ± ${formatValue(error, "bytes")}` : ""}`;
    };
    /** @type {[string, string][]} */
    const cards = [];
    const bytes = (/** @type {string} */ key, /** @type {string} */ name) => {
      if (sum(key))
        cards.push([amount(key), `${name}, ${formatCount(sum(`${key}_blocks`))} blocks`]);
    };
    if (session.heldMetric(s)?.key === "together") bytes("together", "all processes together at most");
    bytes("peak", `at the peak${scope}`);
    bytes("leaked", "at the end");
    if (sum("allocated"))
      cards.push([amount("allocated"), `allocated, ${formatCount(sum("blocks"))} times`]);
    bytes("temporary", "freed at once");
    for (const curve of this.figure.curves.curves) {
      const most = curve.values.reduce((a, v) => (v > a ? v : a), 0);
      if (curve.key !== "heap") cards.push([formatValue(most, "bytes"), `most ${curve.title}`]);
    }
    const { limit } = this.figure.curves;
    if (limit) cards.push([formatValue(limit, "bytes"), "allowed"]);
    return cards;
  }

  // ---- tables ----

  /** As the address says, but by what was alive. */
  get momentState() {
    return { ...this.app.s, metric: "then" };
  }

  /** Which instant is shown, what was alive then, and when it was really looked at. */
  sayMoment() {
    const { session, s } = this.app;
    const moment = session.moment(s);
    if (!session.summary(s).memory.history) return [];
    if (!moment)
      return [el("span", null, "Click the curve to see what was alive then, drag over it to see what changed.")];
    const state = this.momentState;
    const [bytes, blocks] = session.momentMetrics(s).map((m) => session.view(state).totals(m.id));
    const looked = lookTitle(moment, session.shownMoment(state));
    const words =
      moment.from < 0 || session.isCompared(s)
        ? [el("b", null, formatValue(bytes.value, "bytes")), ` in ${formatCount(blocks.value)} blocks`]
        : [
            el("b", null, formatDelta(bytes.value - bytes.base, "bytes")),
            `: from ${formatValue(bytes.base, "bytes")} in ${formatCount(blocks.base)} blocks`,
            ` to ${formatValue(bytes.value, "bytes")} in ${formatCount(blocks.value)}`,
          ];
    const go = (/** @type {string} */ view, /** @type {string} */ text) =>
      el(
        "button.button",
        { type: "button", onclick: () => this.app.measure({ view, metric: session.ofMoment(s) ? s.metric : "then" }) },
        text,
      );
    return [
      el(
        "span",
        null,
        `${momentTitle(moment)}: `,
        ...words,
        looked ? `, ${looked}` : null,
      ),
      go("flame", "Flame graph"),
      go("table", "Functions"),
      go("source", "Source"),
      el("button.button", { type: "button", title: "Escape", onclick: () => this.app.showMoment("") }, "Whole run"),
    ];
  }

  /** The lines that held the most at the peak, or at the instant that is chosen; or that changed the most. */
  lines() {
    const { session, s } = this.app;
    const moment = session.moment(s);
    const state = moment ? this.momentState : s;
    const metric = moment ? session.memoryMetrics(state).then : session.heldMetric(state);
    if (!metric) return [];
    const table = session.lineTable(state, metric);
    const diff = !!table.baseSelf && session.isDiff(state);
    const weight = (/** @type {number} */ i) =>
      moment && diff ? Math.abs(table.self[i] - table.baseSelf[i]) : table.self[i];
    this.top = Array.from({ length: table.length }, (_, i) => i)
      .filter((i) => weight(i) > 0)
      .sort((a, b) => weight(b) - weight(a))
      .slice(0, SHOWN_LINES);
    this.topTable = table;
    const when = metric.key === "together" ? "when all processes had most" : "at the peak";
    const title = !moment
      ? `Lines that held the most ${when}`
      : diff
        ? `Lines that changed the most, ${momentTitle(moment)}`
        : `Lines that held the most, ${momentTitle(moment)}`;
    if (!this.top.length) return moment ? [el("h2", null, title), el("p.soft", null, "None.")] : [];
    const most = weight(this.top[0]);
    const bytes = (/** @type {number} */ n) => formatValue(n, "bytes");
    const kind = (/** @type {number} */ i) => (table.self[i] > table.baseSelf[i] ? "more" : "less");
    const changed = (/** @type {number} */ i) =>
      el(`td.num.${kind(i)}`, null, formatDelta(table.self[i] - table.baseSelf[i], "bytes"));
    return [
      el("h2", null, title),
      moment && diff
        ? plainTable(
            "Lines that changed",
            [".num own ±", ".num before", ".num after", "line", ".wide "],
            this.top.map((i) => [
              changed(i),
              bytes(table.baseSelf[i]),
              bytes(table.self[i]),
              this.lineName(table.func[i], metric.key),
              bar(weight(i) / most, kind(i)),
            ]),
          )
        : plainTable(
            moment ? "Lines then" : `Lines ${when}`,
            [".num own", ".num ±", ".num %", ".num total", "line", ".wide "],
            this.top.map((i) => [
              bytes(table.self[i]),
              table.selfError?.[i] ? bytes(table.selfError[i]) : "",
              formatShare(table.self[i], table.sum),
              bytes(table.total[i]),
              this.lineName(table.func[i], metric.key),
              bar(table.self[i] / most),
            ]),
          ),
    ];
  }

  /** A line, with a way to its source by what the table is about. @param {number} func @param {string} metric */
  lineName(func, metric) {
    const { app } = this;
    const { session, s } = app;
    const text = session.label(func).slice(0, 200);
    const go = (/** @type {Event} */ event) => {
      event.preventDefault();
      if (!session.metric(s).memory || metric === "then") app.measure({ metric }, true);
      app.toSource(func);
    };
    return el(
      "td.name",
      { title: session.place(func, true).slice(0, 300) },
      session.functions[func].file ? el("a", { href: "#", onclick: go }, text) : text,
    );
  }

  /** Named phases of the program, those inside of others indented. */
  regions() {
    const rows = (this.rows ?? []).slice(0, SHOWN_REGIONS);
    if (!rows.length) return [];
    /** @type {number[]} */
    const depth = [];
    rows.forEach((r, i) => (depth[i] = r.around >= 0 ? (depth[r.around] ?? 0) + 1 : 0));
    const bytes = (/** @type {any} */ r, /** @type {string} */ text) => (r.memory ? text : "");
    return [
      el("h2", null, "Regions"),
      plainTable(
        "Regions",
        ["region", ".num times", ".num time", ".num net", ".num own peak"],
        rows.map((r, i) => [
          el("td.name", { style: { "padding-left": `${depth[i] * 14}px` } }, visible(shorten(r.name, 200))),
          formatCount(r.entered),
          formatTime(r.ns),
          bytes(r, formatDelta(r.allocated - r.freed, "bytes")),
          bytes(r, formatValue(r.aboveMost, "bytes")),
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
    const table = this.topTable;
    return {
      ...this.figure.drawn(),
      sizes: this.buckets("sizes"),
      lives: this.buckets("lives"),
      kinds: this.buckets("kinds"),
      regions: this.rows,
      residents: this.app.session.memory(this.app.s).residents,
      lines: (this.top ?? []).map((i) => ({
        name: this.app.session.label(table.func[i]),
        self: table.self[i],
        total: table.total[i],
        ...(table.baseSelf ? { baseSelf: table.baseSelf[i] } : {}),
      })),
      says: this.says.innerText,
      text: this.host.innerText,
    };
  }
}

/** @param {number} share @param {string} [kind] */
function bar(share, kind = "self") {
  return el("div.bar", { "aria-hidden": "true" }, el(`i.${kind}`, { style: { width: `${share * 100}%` } }));
}
