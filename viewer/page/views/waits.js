// What threads waited for: a table of the whole run.

import { el, fill } from "../parts/dom.js";
import { formatCount, formatPercent, formatTime } from "../parts/numbers.js";
import { visible, shorten } from "../parts/text.js";
import { plainTable } from "../parts/grid.js";
import { wholeTime } from "../parts/spots.js";

/** @typedef {import('../app.js').App} App */

const SHOWN_PLACES = 300;
const SHOWN_DETAILS = 50;

/** @typedef {{func: number, line: number, state: number, samples: number, ns: number, waits: any[]}} Place */

/** A place waits for many things with names of their own, such as connections: one row for all of them.
 * @param {any[]} waits @returns {Place[]} */
function byPlace(waits) {
  /** @type {Map<string, Place>} */
  const places = new Map();
  for (const wait of waits) {
    const { func, line, state } = wait;
    const key = `${func} ${line} ${state}`;
    /** @type {Place} */
    const place = places.get(key) ?? { func, line, state, samples: 0, ns: 0, waits: [] };
    place.samples += wait.samples;
    place.ns += wait.ns;
    place.waits.push(wait);
    places.set(key, place);
  }
  return [...places.values()].sort((a, b) => b.ns - a.ns);
}

export class WaitsView {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.id = "waits";
    /** @type {any[]} */
    this.waits = [];
    /** @type {HTMLElement} */
    this.host = el("div");
    this.title = "Waits";
    this.alone = true;
  }

  /** Where something was waited for. */
  offered() {
    return this.app.session.summary(this.app.s)?.waits?.length > 0;
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
    const process = session.processOf(s);
    const found = session.matches(s);
    this.waits = summary.waits.filter(
      (/** @type {any} */ w) =>
        (process < 0 || w.process === process) &&
        (!found.pattern || found.has[w.func] || found.pattern.test(w.detail ?? "")),
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
        this.waits.length ? this.table(summary) : el("p.soft", null, "Nothing with a name."),
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

  /** @param {any} summary */
  table(summary) {
    const whole = wholeTime(this.app.session, this.app.s);
    const phone = innerWidth < 640;
    const state = (/** @type {number} */ k) => [
      el("i.swatch", { style: { background: this.app.stateColor(k) } }),
      ` ${summary.states[k] ?? ""}`,
    ];
    return plainTable(
      "Waits",
      phone
        ? [".num time", ".num %", "where, and for what"]
        : [".num time", ".num %", ".num samples", "state", "where", "for what"],
      byPlace(this.waits)
        .slice(0, SHOWN_PLACES)
        .map((w) => {
          const numbers = [formatTime(w.ns), formatPercent(w.ns, whole)];
          const place = this.place(w);
          const details = el(phone ? "div.name" : "td.name", null, ...this.details(w));
          if (!phone)
            return [
              ...numbers,
              formatCount(w.samples),
              el("td.state", null, ...state(w.state)),
              place,
              details,
            ];
          place.append(el("div", null, ...state(w.state)), details);
          return [...numbers, place];
        }),
    );
  }

  /** @param {Place} place */
  details({ waits }) {
    const text = (/** @type {any} */ w) => visible(shorten(w.detail, 300));
    if (waits.length === 1) return [text(waits[0])];
    const rest = waits.length - SHOWN_DETAILS;
    return [
      el(
        "details",
        null,
        el(
          "summary",
          null,
          text(waits[0]),
          el("span.faint", null, ` and ${formatCount(waits.length - 1)} more`),
        ),
        el(
          "ul.plainlist",
          null,
          ...waits
            .slice(0, SHOWN_DETAILS)
            .map((w) => el("li", null, el("span.num.soft", null, formatTime(w.ns)), text(w))),
          rest > 0 ? el("li.faint", null, `${formatCount(rest)} more, each shorter`) : null,
        ),
      ),
    ];
  }

  drawn() {
    return { waits: this.waits, places: byPlace(this.waits) };
  }
}
