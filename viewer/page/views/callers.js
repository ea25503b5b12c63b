// One function in the middle: who calls it, what it calls, with the numbers of each edge. A click moves on.

import { el, fill, segments } from "../parts/dom.js";
import { MiniFlame } from "../parts/mini_flame.js";
import { Rows, sortHead, cell, changeCell, shareBar } from "../parts/rows.js";
import { formatCount, formatDelta, formatPercent, formatShare, formatTime } from "../parts/numbers.js";
import { relativeToggle } from "../parts/toolbar.js";
import { functionRefs } from "../session.js";

/** @typedef {import('../app.js').App} App */

export class CallersView {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.id = "callers";
    /** @type {HTMLElement} */
    this.host = el("div");
    this.title = "Callers";
    this.alone = true;
    this.lists = { callers: /** @type {any} */ (null), callees: /** @type {any} */ (null) };
    this.func = 0;
    /** @type {MiniFlame[]} */
    this.flames = [];
  }

  /** @param {HTMLElement} host */
  show(host) {
    this.host = host;
    this.update(null);
  }

  /** @param {Set<string> | null} _changed */
  update(_changed) {
    const { app } = this;
    const { s, session } = app;
    const table = session.table(s);
    if (!table.length)
      return fill(this.host, el("div.nothing", null, el("h2", null, "Nothing was recorded")));
    this.func = table.rowOf.has(s.f) ? s.f : heaviest(table);
    const view = session.view(s, { reversed: false });
    const metric = session.metric(s).id;
    this.lists = { callers: view.callers(this.func, metric), callees: view.callees(this.func, metric) };
    const row = table.rowOf.get(this.func);
    this.flames = [];
    if (s.flames) return this.showFlames(table, row);
    const callers = this.list("Callers", "who calls it", this.lists.callers, table.total[row]);
    const callees = this.list("Callees", "what it calls", this.lists.callees, table.total[row]);
    fill(this.host, el("div.butterfly", null, this.focus(table, row), callers.section, callees.section));
    callers.rows.reset(this.lists.callers.length);
    callees.rows.reset(this.lists.callees.length);
  }

  tools() {
    const { s, store, session } = this.app;
    return [
      segments(
        "As",
        [
          ["0", "Tables"],
          ["1", "Flames"],
        ],
        s.flames ? "1" : "0",
        (v) => store.set({ flames: v === "1" }),
      ),
      session.isDiff(s) && !s.flames ? relativeToggle(this.app) : null,
    ];
  }

  /** All paths that lead to the function grow up from it, all that it does grows down. @param {any} table @param {number} row */
  showFlames(table, row) {
    const { session, s } = this.app;
    const up = new MiniFlame(
      this.app,
      session.view(s, { reversed: false, threads: "together", callersOf: this.func }),
      "up",
      "Paths that lead to it",
    );
    const down = new MiniFlame(
      this.app,
      session.view(s, { reversed: false, threads: "together", root: [...functionRefs(s.root), this.func] }),
      "down",
      "What it calls",
    );
    this.flames = [up, down];
    const title = (/** @type {string} */ name, /** @type {string} */ hint) =>
      el("h2", null, name, el("span.faint", { style: { "font-weight": 400 } }, hint));
    fill(
      this.host,
      el(
        "div.butterfly.flames",
        null,
        this.focus(table, row),
        el("section", null, title("Callers", "all paths to it, the nearest below"), up.node),
        el("section", null, title("Callees", "all that it calls"), down.node),
      ),
    );
    up.redraw();
    down.redraw();
  }

  hide() {
    this.app.tip.hide();
  }

  /** @param {any} table @param {number} row */
  focus(table, row) {
    const { app, func } = this;
    const { session } = app;
    /** @type {[string, string][]} */
    const figures = [
      ["self", `${app.value(table.self[row])} · ${formatShare(table.self[row], table.sum)}`],
      ["total", `${app.value(table.total[row])} · ${formatShare(table.total[row], table.sum)}`],
    ];
    if (table.calls[row]) figures.push(["calls", formatCount(table.calls[row])]);
    if (table.calls[row] && session.metric(app.s).unit === "ns" && session.isTimeOfCalls(app.s))
      figures.push(["per call", formatTime(table.total[row] / (table.primitive[row] || table.calls[row]))]);
    if (table.max[row]) figures.push(["longest", formatTime(table.max[row])]);
    if (table.samples[row]) figures.push(["samples", formatCount(table.samples[row])]);
    if (table.baseTotal)
      figures.push([
        "total before",
        `${app.value(table.baseTotal[row])} (${formatDelta(table.total[row] - table.baseTotal[row], session.metric(app.s).unit)})`,
      ]);
    const button = (/** @type {string} */ text, /** @type {() => void} */ act, off = false) =>
      el("button.button", { type: "button", onclick: act, disabled: off }, text);
    return el(
      "div.focus",
      null,
      el("h1.name", null, session.label(func)),
      el("div.soft.name", null, session.place(func, true) || "no place known"),
      el(
        "div.figures",
        null,
        ...figures.map(([name, text]) => el("span", null, el("span", null, name), text)),
      ),
      el(
        "div.figures",
        { style: { gap: "6px" } },
        button("Source", () => app.toSource(func), !session.functions[func].file),
        button("Flame graph of what it does", () => {
          app.addShape("root", func);
          app.store.set({ view: "flame" });
        }),
        button("Flame graph of its callers", () => {
          app.reshape({ keep: [`#${func}`], rev: true });
          app.store.set({ view: "flame" });
        }),
      ),
    );
  }

  /** @param {string} title @param {string} hint @param {any} edges @param {number} whole */
  list(title, hint, edges, whole) {
    const { app } = this;
    const diff = !!edges.baseTotal;
    const phone = innerWidth < 640;
    const template = phone
      ? "66px 42px minmax(120px, 1fr)"
      : diff
        ? "78px 48px 84px minmax(120px, 1fr)"
        : "78px 48px 84px minmax(40px, 90px) minmax(120px, 1fr)";
    /** @type {{key: string, title: string, num?: boolean, fixed: boolean}[]} */
    const columns = [
      { key: "t", title: "total", num: true, fixed: true },
      { key: "p", title: "%", num: true, fixed: true },
    ];
    if (!phone) columns.push({ key: "c", title: diff ? "change" : "calls", num: true, fixed: true });
    if (!diff && !phone) columns.push({ key: "b", title: "", fixed: true });
    columns.push({ key: "f", title: "function", fixed: true });
    const go = (/** @type {number} */ row) => {
      if (edges.func[row]) app.select(edges.func[row]);
    };
    const rows = new Rows({
      role: "grid",
      label: `${title}: ${hint}`,
      columns: template,
      head: sortHead(columns, template, "", false, () => {}),
      select: () => {},
      activate: go,
      render: (row, node) => {
        node.append(
          cell("num", app.value(edges.total[row])),
          cell("num.soft", formatPercent(edges.total[row], whole)),
          phone
            ? ""
            : diff
              ? changeCell(edges.total[row], edges.baseTotal[row], app.s.rel, app.session.metric(app.s).unit)
              : cell("num", edges.calls[row] ? formatCount(edges.calls[row]) : ""),
        );
        if (!diff && !phone) node.append(cell("", shareBar(edges.total[row] / (whole || 1), 0)));
        node.append(
          cell(
            "label",
            el("i.swatch", { style: { background: app.colors().of(edges.func[row]) } }),
            el(
              "span.name",
              null,
              edges.func[row] ? app.session.label(edges.func[row]).slice(0, 300) : "the thread itself",
            ),
            el("span.place", null, app.session.place(edges.func[row]).slice(0, 200)),
          ),
        );
        node.addEventListener("click", () => go(row));
        node.style.setProperty("cursor", "pointer");
      },
    });
    return {
      rows,
      section: el(
        "section",
        null,
        el(
          "h2",
          null,
          title,
          el("span.faint", { style: { "font-weight": 400 } }, `${hint} · ${formatCount(edges.length)}`),
        ),
        edges.length
          ? rows.node
          : el(
              "p.soft.none",
              null,
              title === "Callers"
                ? "Nothing that was recorded calls it."
                : "It calls nothing that was recorded.",
            ),
      ),
    };
  }

  drawn() {
    const { session } = this.app;
    const plain = (/** @type {any} */ edges) =>
      Array.from({ length: edges.length }, (_, i) => ({
        name: session.functions[edges.func[i]]?.qualname,
        total: edges.total[i],
        calls: edges.calls[i],
      }));
    return {
      func: session.functions[this.func]?.qualname,
      callers: plain(this.lists.callers),
      callees: plain(this.lists.callees),
      flames: this.flames.map((f) => f.boxes()),
    };
  }
}

/** @param {any} table */
function heaviest(table) {
  let best = 0;
  for (let i = 1; i < table.length; i++) if (table.self[i] > table.self[best]) best = i;
  return table.func[best];
}
