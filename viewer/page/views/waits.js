// What threads waited for, and the hottest expressions: tables of the whole run.

import { el, fill } from "../parts/dom.js";
import { formatCount, formatPercent, formatTime } from "../parts/numbers.js";
import { visible, shorten } from "../parts/text.js";

/** @typedef {import('../app.js').App} App */

const SHOWN_WAITS = 300;

export class WaitsView {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.id = "waits";
    /** @type {any[]} */
    this.waits = [];
    /** @type {any[]} */
    this.spots = [];
    /** @type {Map<string, string[]>} */
    this.sources = new Map();
    /** @type {HTMLElement} */
    this.host = el("div");
    this.title = "Waits";
    this.alone = true;
  }

  /** Where something was waited for. */
  offered() {
    const summary = this.app.session.summary(this.app.s);
    return (
      !!summary && (summary.waits?.length > 0 || (Array.isArray(summary.spots) && summary.spots.length > 0))
    );
  }

  /** @param {HTMLElement} host */
  show(host) {
    this.host = host;
    this.update(null);
  }

  /** @param {Set<string> | null} _changed */
  update(_changed) {
    const { s, session } = this.app;
    const summary = session.summary(s);
    const number = Number(s.scope.slice(1));
    const process = s.scope[0] === "p" ? number : s.scope[0] === "t" ? summary.threads[number]?.process : -1;
    const found = session.matches(s);
    const fits = (/** @type {any} */ w) =>
      (process < 0 || w.process === process) &&
      (!found.pattern || found.has[w.func] || found.pattern.test(w.detail ?? ""));
    this.waits = summary.waits.filter(fits);
    this.spots = Array.isArray(summary.spots) ? summary.spots.filter(fits) : [];
    const whole = summary.threads.reduce(
      (/** @type {number} */ a, /** @type {any} */ t) =>
        a + (process < 0 || t.process === process ? t.value : 0),
      0,
    );
    fill(
      this.host,
      el(
        "div.page",
        { tabindex: 0 },
        el("h1", null, "What threads waited for"),
        el(
          "div.soft",
          null,
          "Each place with what it waited for, the longest first. Shares are of all recorded time.",
        ),
        this.waits.length ? this.waitTable(summary, whole) : el("p.soft", null, "Nothing with a name."),
        this.spots.length ? el("h1", { style: { "margin-top": "28px" } }, "Hottest expressions") : null,
        this.spots.length ? this.spotTable(whole) : null,
      ),
    );
  }

  /** @param {any} row */
  place(row) {
    const { app } = this;
    const info = app.session.functions[row.func];
    const go = (/** @type {Event} */ event) => {
      event.preventDefault();
      app.store.set({ view: "source", f: row.func, file: info.file, line: row.line });
    };
    return el(
      "td",
      null,
      el("a.name", { href: "#", onclick: go }, app.session.label(row.func).slice(0, 120)),
      el(
        "div.faint.name",
        null,
        `${app.session.place(row.func).replace(/:\d+$/, "").slice(0, 120)}:${row.line}`,
      ),
    );
  }

  /** @param {any} summary @param {number} whole */
  waitTable(summary, whole) {
    return el(
      "div.scroll",
      null,
      el(
        "table.grid",
        null,
        el(
          "tr",
          null,
          el("th.num", null, "time"),
          el("th.num", null, "%"),
          el("th.num", null, "samples"),
          el("th", null, "state"),
          el("th", null, "where"),
          el("th", null, "for what"),
        ),
        ...this.waits.slice(0, SHOWN_WAITS).map((/** @type {any} */ w) => {
          const k = typeof w.state === "number" ? w.state : summary.states.indexOf(w.state);
          return el(
            "tr",
            null,
            el("td.num", null, formatTime(w.ns)),
            el("td.num", null, formatPercent(w.ns, whole)),
            el("td.num", null, formatCount(w.samples)),
            el(
              "td",
              { style: { "white-space": "nowrap" } },
              el("i.swatch", { style: { background: this.app.palette.states[k] } }),
              ` ${summary.states[k] ?? ""}`,
            ),
            this.place(w),
            el("td.name", null, visible(shorten(w.detail, 300))),
          );
        }),
      ),
    );
  }

  /** @param {number} whole */
  spotTable(whole) {
    return el(
      "div.scroll",
      null,
      el(
        "table.grid",
        null,
        el(
          "tr",
          null,
          el("th.num", null, "time"),
          el("th.num", null, "%"),
          el("th.num", null, "samples"),
          el("th", null, "where"),
          el("th", null, "expression"),
        ),
        ...this.spots
          .slice(0, SHOWN_WAITS)
          .map((/** @type {any} */ w) =>
            el(
              "tr",
              null,
              el("td.num", null, formatTime(w.ns)),
              el("td.num", null, formatPercent(w.ns, whole)),
              el("td.num", null, formatCount(w.samples)),
              this.place(w),
              el("td", null, el("code", null, this.expression(w))),
            ),
          ),
      ),
    );
  }

  /** The text of it, if the source is in the recording. @param {any} spot */
  expression(spot) {
    const { session, s } = this.app;
    const info = session.functions[spot.func];
    if (!this.sources.has(info.file))
      this.sources.set(
        info.file,
        info.file
          ? (session.engine.source(session.options(s).recording, info.file).text ?? "").split("\n")
          : [],
      );
    const line = this.sources.get(info.file)?.[spot.line - 1] ?? "";
    if (!spot.column || !spot.endColumn || spot.endLine !== spot.line)
      return visible(shorten(line.trim(), 160));
    // Columns count bytes of UTF-8.
    const bytes = new TextEncoder().encode(line);
    return visible(
      shorten(new TextDecoder().decode(bytes.subarray(spot.column - 1, spot.endColumn - 1)), 160),
    );
  }

  drawn() {
    return { waits: this.waits, spots: this.spots.length };
  }
}
