// The hottest expressions of the run: what was executing when samples were taken, down to a part of a line. A row leads
// to its line.

import { el, fill } from "../parts/dom.js";
import { Rows, sortHead, cell, changeCell, shareBar } from "../parts/rows.js";
import { formatCount, formatPercent, formatTime } from "../parts/numbers.js";
import { hottestSpots, rowText, wholeTime } from "../parts/spots.js";
import { relativeToggle } from "../parts/toolbar.js";

/** @typedef {import('../app.js').App} App */
/** @typedef {import('../parts/spots.js').SpotRow} SpotRow */

export class SpotsView {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.id = "spots";
    this.title = "Expressions";
    /** @type {HTMLElement} */
    this.host = el("div");
    /** @type {SpotRow[]} */
    this.list = [];
    /** @type {Rows | null} */
    this.rows = null;
    this.whole = 0;
  }

  offered() {
    return this.app.session.summary(this.app.s)?.spots?.length > 0;
  }

  /** @param {HTMLElement} host */
  show(host) {
    this.host = host;
    this.update(null);
  }

  /** @param {Set<string> | null} changed */
  update(changed) {
    const { s, session } = this.app;
    if (changed?.size && [...changed].every((key) => ["f", "file", "line"].includes(key))) return;
    this.whole = wholeTime(session, s);
    const found = session.matches(s);
    this.list = hottestSpots(session, s).filter(
      (row) =>
        !found.pattern || found.has[row.spot.func] || found.pattern.test(rowText(session, s, row, 2000)),
    );
    if (!this.list.length)
      return fill(
        this.host,
        el(
          "div.nothing",
          null,
          el("h2", null, s.q ? "No expression matches" : "No expressions"),
          el("p", null, "The search looks at functions and at the text of expressions."),
        ),
      );
    const columns = this.columns();
    const template = columns.map((c) => c.width).join(" ");
    this.rows = new Rows({
      role: "grid",
      label: "Hottest expressions",
      columns: template,
      head: sortHead(
        columns.map((c, i) => ({ key: String(i), title: c.title, num: c.num, fixed: true })),
        template,
        "",
        false,
        () => {},
      ),
      select: (row) => this.choose(this.list[row].spot, {}),
      activate: (row) => this.choose(this.list[row].spot, { view: "source" }),
      render: (row, node) => columns.forEach((c) => node.append(c.show(this.list[row]))),
    });
    fill(this.host, this.rows.node);
    this.rows.selected = this.list.findIndex((r) => r.spot.func === s.f && r.spot.line === s.line);
    this.rows.reset(this.list.length);
    if (this.rows.selected >= 0) this.rows.reveal(this.rows.selected, true);
  }

  /** @param {import('../parts/spots.js').Spot} spot @param {any} more */
  choose(spot, more) {
    const file = this.app.session.functions[spot.func]?.file ?? "";
    this.app.store.set({ f: spot.func, file, line: spot.line, ...more }, !more.view);
  }

  /** @returns {{title: string, width: string, num?: boolean, show: (row: SpotRow) => Node}[]} */
  columns() {
    const { s, session } = this.app;
    const phone = innerWidth < 640;
    const diff = session.isDiff(s);
    const time = (/** @type {number} */ ns) => (ns ? formatTime(ns) : "");
    const most = this.list.reduce((a, row) => Math.max(a, row.ns), 1);
    /** @type {{title: string, width: string, num?: boolean, phone?: boolean, diff?: boolean, show: (row: SpotRow) => Node}[]} */
    const all = [
      { title: "self", width: "64px", num: true, phone: !diff, show: (r) => cell("num", time(r.ns)) },
      {
        title: "%",
        width: "40px",
        num: true,
        phone: true,
        diff: false,
        show: (r) => cell("num.soft", formatPercent(r.ns, this.whole)),
      },
      { title: "", width: "70px", diff: false, show: (r) => shareBar(0, r.ns / most) },
      { title: "before", width: "64px", num: true, diff: true, show: (r) => cell("num.soft", time(r.base)) },
      {
        title: "±",
        width: "76px",
        num: true,
        diff: true,
        phone: true,
        show: (r) => changeCell(r.ns, r.base, s.rel, "ns"),
      },
      {
        title: "samples",
        width: "60px",
        num: true,
        show: (r) => cell("num.soft", r.samples ? formatCount(r.samples) : ""),
      },
      { title: "expression", width: "minmax(160px, 1.6fr)", phone: true, show: (r) => this.expression(r) },
      { title: "where", width: "minmax(110px, 1fr)", show: (r) => this.where(r) },
    ];
    return all.filter((c) => (c.phone || !phone) && (c.diff === undefined || c.diff === diff));
  }

  /** @param {SpotRow} row */
  expression(row) {
    const text = rowText(this.app.session, this.app.s, row, 400);
    const { func, line } = row.spot;
    const place =
      innerWidth < 640
        ? el("span.place", null, `${this.app.session.label(func).slice(0, 60)}:${line}`)
        : null;
    return cell(
      "label.mono",
      text ? el("span.name", { title: text }, text) : el("span.name.faint", null, "(no source)"),
      place,
    );
  }

  /** @param {SpotRow} row */
  where(row) {
    const { session } = this.app;
    const { func, line } = row.spot;
    return cell(
      "label",
      el("span.name", null, session.label(func).slice(0, 200)),
      el("span.place", null, `${session.place(func).replace(/:\d+$/, "").slice(0, 120)}:${line}`),
    );
  }

  tools() {
    return this.app.session.isDiff(this.app.s) ? [relativeToggle(this.app)] : [];
  }

  drawn() {
    const { session, s } = this.app;
    return {
      rows: this.list.slice(0, 200).map((row) => ({
        ...row,
        name: session.functions[row.spot.func].qualname,
        file: session.functions[row.spot.func].file,
        text: rowText(session, s, row, 1000),
      })),
    };
  }
}
