// What functions were doing while they were sampled: running Python or C, waiting for the GIL, a lock, the disk, …
// One bar per function, as long as its own time, split by state.

import { el, fill } from "../parts/dom.js";
import { Rows, sortHead, cell } from "../parts/rows.js";
import { formatPercent, formatShare, formatTime } from "../parts/numbers.js";
import { stateBar } from "../parts/details.js";

/** @typedef {import('../app.js').App} App */

export class StatesView {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.id = "states";
    /** @type {HTMLElement} */
    this.host = el("div");
    this.title = "States";
    /** @type {number[]} */
    this.order = [];
    this.by = -1;
    this.own = new Float64Array();
    this.whole = 0;
    this.sum = 0;
    this.table = /** @type {any} */ (null);
    /** @type {number[]} */
    this.sums = [];
  }

  offered() {
    return !!this.app.session.summary(this.app.s)?.states;
  }

  /** @param {HTMLElement} host */
  show(host) {
    this.host = host;
    this.update(null);
  }

  /** @param {Set<string> | null} changed */
  update(changed) {
    const { s, session } = this.app;
    const table = session.table(s);
    if (!table.states)
      return fill(
        this.host,
        el(
          "div.nothing",
          null,
          el("h2", null, "No states"),
          el("p", null, "States are known where the program was sampled."),
        ),
      );
    if (changed && changed.size === 1 && changed.has("f"))
      return this.rows?.mark(this.order.indexOf(table.rowOf.get(s.f) ?? -1), true);
    this.table = table;
    this.own = new Float64Array(table.length);
    this.sums = session.summary(s).states.map(() => 0);
    for (let i = 0; i < table.length; i++) {
      for (const [k, value] of table.statesOf(i).entries()) {
        this.own[i] += value;
        this.sums[k] += value;
      }
    }
    this.whole = this.sums.reduce((a, b) => a + b, 0);
    // Of everything, as in the other views; threads outside any function have no states.
    this.sum = session.metric(s).key === "total" ? table.sum : this.whole;
    const found = session.matches(s);
    const weight = (/** @type {number} */ i) => (this.by < 0 ? this.own[i] : table.statesOf(i)[this.by]);
    this.order = Array.from({ length: table.length }, (_, i) => i)
      .filter((i) => weight(i) > 0 && (!found.pattern || found.has[table.func[i]]))
      .sort((a, b) => weight(b) - weight(a));
    const phone = innerWidth < 640;
    const template = phone
      ? "66px minmax(80px, 1fr) minmax(120px, 1fr)"
      : "78px 48px minmax(200px, 2fr) minmax(220px, 1.2fr)";
    const columns = [
      { key: "s", title: this.by < 0 ? "self" : session.summary(s).states[this.by], num: true, fixed: true },
      ...(phone ? [] : [{ key: "p", title: "%", num: true, fixed: true }]),
      { key: "b", title: "states", fixed: true },
      { key: "f", title: "function", fixed: true },
    ];
    this.rows = new Rows({
      role: "grid",
      label: "States of functions",
      columns: template,
      head: sortHead(columns, template, "", false, () => {}),
      select: (row) => this.app.select(table.func[this.order[row]]),
      activate: (row) => this.app.toCallers(table.func[this.order[row]]),
      render: (row, node) => this.render(row, node, weight, phone),
    });
    fill(this.host, this.head(), this.rows.node);
    this.rows.selected = this.order.indexOf(table.rowOf.get(s.f) ?? -1);
    this.rows.reset(this.order.length);
  }

  /** All of it, and a button per state to sort by. */
  head() {
    const { app } = this;
    const { states, stateTitles } = app.session.summary(app.s);
    const titles = innerWidth < 640 ? states : stateTitles;
    const button = (/** @type {number} */ k) =>
      el(
        "button.toggle",
        {
          type: "button",
          "aria-pressed": this.by === k ? "true" : "false",
          "data-state": app.session.summary(app.s).states[k],
          onclick: () => {
            this.by = this.by === k ? -1 : k;
            this.update(null);
          },
        },
        el("i.swatch", { style: { background: app.stateColor(k), "margin-right": "6px" } }),
        `${titles[k]} ${formatShare(this.sums[k], this.whole)}`,
      );
    return el(
      "div",
      { style: { padding: "10px 12px", display: "grid", gap: "8px" } },
      stateBar(app, this.sums),
      el("div.figures", { style: { gap: "6px" } }, ...this.sums.map((sum, k) => (sum ? button(k) : null))),
    );
  }

  /** @param {number} row @param {HTMLElement} node @param {(i: number) => number} weight @param {boolean} phone */
  render(row, node, weight, phone) {
    const { app } = this;
    const i = this.order[row];
    const values = this.table.statesOf(i);
    const most = weight(this.order[0]) || 1;
    const titles = app.session.summary(app.s).stateTitles;
    node.append(cell("num", formatTime(weight(i))));
    if (!phone) node.append(cell("num.soft", formatPercent(weight(i), this.sum)));
    const bar = stateBar(app, values);
    bar.style.setProperty(
      "width",
      `${Math.max(0.5, (this.own[i] / Math.max(most, this.by < 0 ? 0 : this.own[this.order[0]])) * 100)}%`,
    );
    bar.style.setProperty("max-width", "100%");
    const words = Array.from(values)
      .map((v, k) => (v > 0 ? `${titles[k]} ${formatShare(/** @type {number} */ (v), this.own[i])}` : ""))
      .filter(Boolean)
      .join(", ");
    const holder = cell("", bar, el("span.sr", null, words));
    holder.title = words;
    node.append(
      holder,
      cell(
        "label",
        el("span.name", null, app.session.label(this.table.func[i]).slice(0, 300)),
        el("span.place", null, app.session.place(this.table.func[i]).slice(0, 120)),
      ),
    );
  }

  drawn() {
    return {
      sums: this.sums,
      rows: this.order.slice(0, 200).map((i) => ({
        name: this.app.session.functions[this.table.func[i]].qualname,
        own: this.own?.[i],
        states: [...this.table.statesOf(i)],
      })),
    };
  }
}
