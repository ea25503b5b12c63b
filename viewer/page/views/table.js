// The table of functions: one row each, sorted and narrowed in the page, only rows in sight as elements.

import { el, fill } from "../parts/dom.js";
import { Rows, sortHead, cell, changeCell, shareBar } from "../parts/rows.js";
import { formatCount, formatPercent, formatTime, formatValue } from "../parts/numbers.js";
import { stateBar } from "../parts/details.js";
import { relativeToggle } from "../parts/toolbar.js";

/** @typedef {import('../app.js').App} App */
/**
 * @typedef {object} Column
 * @property {string} key
 * @property {string} title
 * @property {string} width
 * @property {boolean} [num]
 * @property {string} [hint]
 * @property {boolean} [fixed]  cannot be sorted by
 * @property {(row: number) => number | string} by
 * @property {(row: number) => HTMLElement} show
 */

export class TableView {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.id = "table";
    this.title = "Functions";
    /** @type {number[]} */
    this.order = [];
    this.table = /** @type {any} */ (null);
    /** @type {HTMLElement} */
    this.host = el("div");
    /** @type {Column[]} */
    this.columns = [];
    /** @type {Rows | null} */
    this.rows = null;
  }

  /** @param {HTMLElement} host */
  show(host) {
    this.host = host;
    this.update(null);
  }

  /** @param {Set<string> | null} changed */
  update(changed) {
    const { s, session } = this.app;
    if (changed && changed.size === 1 && changed.has("f"))
      return this.rows?.mark(this.rowOfFunction(s.f), true);
    const scroll =
      changed && !changed.has("sort") && !changed.has("asc") && !changed.has("q")
        ? (this.rows?.node.scrollTop ?? 0)
        : 0;
    const focused = this.rows && this.rows.node.contains(document.activeElement);
    this.table = session.table(s);
    this.columns = this.makeColumns();
    this.sortRows();
    const template = this.columns.map((c) => c.width).join(" ");
    const head = sortHead(this.columns, template, this.sortColumn().key, s.asc, (sort, asc) =>
      this.app.store.set({ sort, asc }),
    );
    this.rows = new Rows({
      role: "grid",
      label: "Functions",
      columns: template,
      head,
      render: (row, node) => this.render(row, node),
      select: (row) => this.app.select(this.table.func[this.order[row]]),
      activate: (row) => this.app.toCallers(this.table.func[this.order[row]]),
    });
    this.rows.node.setAttribute("aria-colcount", String(this.columns.length));
    fill(this.host, this.order.length ? this.rows.node : this.nothing());
    this.rows.selected = this.rowOfFunction(s.f);
    this.rows.reset(this.order.length);
    if (scroll) this.rows.node.scrollTop = scroll;
    else if (!changed && this.rows.selected >= 0) this.rows.reveal(this.rows.selected, true);
    if (focused) this.rows.node.focus({ preventScroll: true });
  }

  nothing() {
    return el(
      "div.nothing",
      null,
      el("h2", null, this.app.s.q ? "No function matches" : "Nothing was recorded"),
      el(
        "p",
        null,
        this.app.s.q
          ? "The search looks at names, files and modules."
          : "There are no functions in this part of the recording.",
      ),
    );
  }

  /** @param {number} func */
  rowOfFunction(func) {
    const row = this.table?.rowOf.get(func);
    return row === undefined ? -1 : this.order.indexOf(row);
  }

  sortColumn() {
    const usual = this.columns.find(
      (c) => c.key === (this.app.session.isDiff(this.app.s) ? "change" : "self"),
    );
    return this.columns.find((c) => c.key === this.app.s.sort && !c.fixed) ?? usual ?? this.columns[0];
  }

  sortRows() {
    const { s, session } = this.app;
    const found = session.matches(s);
    this.order = [];
    // Functions that only time was recorded of are nothing to a table of memory.
    const all = !session.metric(s).memory;
    const { total, baseTotal } = this.table;
    for (let i = 0; i < this.table.length; i++)
      if ((all || total[i] || baseTotal?.[i]) && (!found.pattern || found.has[this.table.func[i]]))
        this.order.push(i);
    const column = this.sortColumn();
    /** @type {any[]} */
    const keys = new Array(this.table.length);
    for (const i of this.order) keys[i] = column.by(i);
    const sign = s.asc ? 1 : -1;
    this.order.sort((a, b) => {
      const x = keys[a];
      const y = keys[b];
      return x < y ? -sign : x > y ? sign : a - b;
    });
  }

  /** @returns {Column[]} */
  makeColumns() {
    const { app, table: t } = this;
    const { session, s } = app;
    const metric = session.metric(s);
    const phone = innerWidth < 640;
    const num = (/** @type {string} */ text) => cell("num", text);
    const percent = (/** @type {number} */ v) => cell("num soft".replace(" ", "."), formatPercent(v, t.sum));
    let most = 1;
    for (let i = 0; i < t.length; i++) most = Math.max(most, t.total[i]);
    /** @type {Column[]} */
    const list = [];
    const calls = t.calls.some((/** @type {number} */ n) => n > 0) && metric.key !== "calls";
    if (calls && !phone)
      list.push({
        key: "calls",
        title: "calls",
        width: "98px",
        num: true,
        hint: "Entries; behind the slash those that were not recursive",
        by: (i) => t.calls[i],
        show: (i) =>
          num(
            t.primitive[i] && t.primitive[i] !== t.calls[i]
              ? `${formatCount(t.calls[i])}/${formatCount(t.primitive[i])}`
              : formatCount(t.calls[i]),
          ),
      });
    list.push({
      key: "self",
      title: "self",
      width: "66px",
      num: true,
      hint: "Without what it called",
      by: (i) => t.self[i],
      show: (i) => num(app.value(t.self[i])),
    });
    list.push({
      key: "selfp",
      title: "%",
      width: "40px",
      num: true,
      fixed: true,
      by: (i) => t.self[i],
      show: (i) => percent(t.self[i]),
    });
    const sampled = t.states && !calls && !phone && !metric.memory;
    if (sampled && !session.isDiff(s)) list.push(this.errorColumn());
    if (t.selfError) list.push(this.estimateColumn());
    list.push({
      key: "total",
      title: "total",
      width: "66px",
      num: true,
      hint: "With what it called",
      by: (i) => t.total[i],
      show: (i) =>
        t.totalError?.[i]
          ? el("div.num", { role: "gridcell", title: `± ${app.value(t.totalError[i])}` }, app.value(t.total[i]))
          : num(app.value(t.total[i])),
    });
    if (!phone && !session.isDiff(s))
      list.push({
        key: "totalp",
        title: "%",
        width: "40px",
        num: true,
        fixed: true,
        by: (i) => t.total[i],
        show: (i) => percent(t.total[i]),
      });
    if (session.isDiff(s)) list.push(...this.diffColumns(metric));
    else if (!phone)
      list.push({
        key: "bar",
        title: "",
        width: "minmax(48px, 80px)",
        fixed: true,
        by: () => 0,
        show: (i) => shareBar(t.total[i] / most, t.self[i] / most),
      });
    if (calls && metric.unit === "ns" && session.isTimeOfCalls(s) && !phone && !session.isDiff(s))
      list.push({
        key: "percall",
        title: "per call",
        width: "66px",
        num: true,
        hint: "Total per call that was not recursive",
        by: (i) => t.total[i] / (t.primitive[i] || t.calls[i] || 1),
        show: (i) => num(t.calls[i] ? formatTime(t.total[i] / (t.primitive[i] || t.calls[i])) : ""),
      });
    if (!phone && !session.isDiff(s)) list.push(...this.furtherColumns());
    if (sampled)
      list.push({
        key: "states",
        title: "states",
        width: "84px",
        fixed: true,
        by: () => 0,
        show: (i) => stateBar(app, t.statesOf(i)),
      });
    list.push({
      key: "name",
      title: "function",
      width: "minmax(150px, 2.6fr)",
      by: (i) => session.label(t.func[i]).toLowerCase(),
      show: (i) => this.nameCell(t.func[i], phone),
    });
    if (!phone)
      list.push({
        key: "place",
        title: "where",
        width: "minmax(84px, 1fr)",
        by: (i) => placeKey(session.functions[t.func[i]]),
        show: (i) => cell("soft.name", session.place(t.func[i]).slice(0, 300)),
      });
    return list;
  }

  /** Metrics that have columns of their own, whatever is drawn. @returns {Column[]} */
  furtherColumns() {
    const { table: t } = this;
    const drawn = this.app.session.metric(this.app.s).key;
    /** @type {Column[]} */
    const list = [];
    const add = (/** @type {any} */ m, /** @type {string} */ key, /** @type {string} */ title, /** @type {number} */ k) =>
      list.push({
        key,
        title,
        width: "84px",
        num: true,
        hint: title,
        by: (i) => t.further(i, k),
        show: (i) => cell("num", t.further(i, k) ? formatValue(t.further(i, k), m.unit) : ""),
      });
    this.app.session.summary(this.app.s).columns.forEach((/** @type {any} */ m, /** @type {number} */ k) => {
      if (m.key === drawn) return; // it is in the columns before
      add(m, m.key, m.title, 2 * k);
      if (m.hasTotal) add(m, `total_${m.key}`, `total ${m.title}`, 2 * k + 1);
    });
    return list;
  }

  /** How far a share of samples may be off, as in the report. @returns {Column} */
  errorColumn() {
    const t = this.table;
    const whole = t.samples.reduce((/** @type {number} */ a, /** @type {number} */ b) => a + b, 0);
    const error = (/** @type {number} */ i) => this.app.session.engine.shareError(t.samples[i], whole) * 100;
    return {
      key: "error",
      title: "±",
      width: "34px",
      num: true,
      fixed: true,
      hint: "The share of self may be off by so many percent of the whole",
      by: () => 0,
      show: (i) => cell("num.faint", t.samples[i] ? error(i).toFixed(1) : ""),
    };
  }

  /** How far an estimate of memory may be off. @returns {Column} */
  estimateColumn() {
    const { selfError } = this.table;
    return {
      key: "error",
      title: "±",
      width: "66px",
      num: true,
      hint: "The truth is within so much of self in 19 of 20 cases",
      by: (i) => selfError[i],
      show: (i) => cell("num.faint", selfError[i] ? this.app.value(selfError[i]) : ""),
    };
  }

  /** @param {import('../session.js').Metric} metric @returns {Column[]} */
  diffColumns(metric) {
    const t = this.table;
    const relative = this.app.s.rel;
    const by = (/** @type {any} */ now, /** @type {any} */ base) => (/** @type {number} */ i) =>
      relative ? (base[i] ? now[i] / base[i] : now[i] ? Infinity : 0) : now[i] - base[i];
    const show = (/** @type {any} */ now, /** @type {any} */ base) => (/** @type {number} */ i) =>
      changeCell(now[i], base[i], relative, metric.unit);
    return [
      {
        key: "change",
        title: "self ±",
        width: "76px",
        num: true,
        hint: "Change of self",
        by: by(t.self, t.baseSelf),
        show: show(t.self, t.baseSelf),
      },
      {
        key: "tchange",
        title: "total ±",
        width: "76px",
        num: true,
        hint: "Change of total",
        by: by(t.total, t.baseTotal),
        show: show(t.total, t.baseTotal),
      },
    ];
  }

  /** @param {number} func @param {boolean} phone */
  nameCell(func, phone) {
    const { session } = this.app;
    return cell(
      "label",
      el("i.swatch", { style: { background: this.app.colors().of(func) }, "aria-hidden": "true" }),
      el("span.name", { title: session.place(func, true).slice(0, 300) }, session.label(func).slice(0, 300)),
      phone ? el("span.place", null, session.place(func).slice(0, 80)) : null,
    );
  }

  /** @param {number} row @param {HTMLElement} node */
  render(row, node) {
    const i = this.order[row];
    if (this.app.session.found.pattern) node.classList.add("hit");
    for (const column of this.columns) node.append(column.show(i));
  }

  tools() {
    return this.app.session.isDiff(this.app.s) ? [relativeToggle(this.app)] : [];
  }

  drawn() {
    return {
      rows: this.order
        .map((i) => ({
          name: this.app.session.functions[this.table.func[i]].qualname,
          self: this.table.self[i],
          total: this.table.total[i],
          calls: this.table.calls[i],
        }))
        .slice(0, 500),
      count: this.order.length,
      elements: this.rows?.shown.size,
    };
  }
}

/** By file, then by line as a number. @param {any} info */
function placeKey(info) {
  return `${info.file} ${String(info.line).padStart(8, "0")}`;
}
