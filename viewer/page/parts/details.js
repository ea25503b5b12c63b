// The panel beside every view: the selected function with its numbers, and what one can do with it.

import { el, fill, byId } from "./dom.js";
import { formatCount, formatDelta, formatShare, formatTime, formatValue } from "./numbers.js";
import { durationsOf } from "./timeline/durations.js";
import { expressionText, combineSpots, wholeTime } from "./spots.js";

/** @typedef {import('../app.js').App} App */

/** @param {App} app */
export function detailsPanel(app) {
  const panel = byId("details");
  const { s, session } = app;
  if (app.shown?.alone || !app.detailsOpen) return;
  if (s.f <= 0 || !session.functions[s.f] || !session.hasNumbers(s)) {
    fill(panel, el("p.faint", null, "Select a function to see its numbers here."), hottest(app));
    return;
  }
  const table = session.table(s);
  const row = table.rowOf.get(s.f);
  fill(
    panel,
    el("h2.name", null, session.label(s.f)),
    el("span.place.soft.name", null, session.place(s.f, true)),
    row === undefined ? el("p.soft", null, "Not in what is shown.") : numbers(app, table, row),
    el("div.actions", null, ...actions(app)),
    expressions(app),
    row === undefined ? null : statesOf(app, table, row),
    durationsOf(app),
    ...neighbours(app),
  );
}

/** @param {App} app @param {any} table @param {number} row */
function numbers(app, table, row) {
  const { session, s } = app;
  const metric = session.metric(s);
  const error = (/** @type {Float64Array | null} */ of) => (of?.[row] ? ` ± ${app.value(of[row])}` : "");
  /** @type {[string, string, string][]} */
  const facts = [
    ["self", app.value(table.self[row]) + error(table.selfError), formatShare(table.self[row], table.sum)],
    ["total", app.value(table.total[row]) + error(table.totalError), formatShare(table.total[row], table.sum)],
  ];
  if (session.isDiff(s)) {
    facts.push([
      "self before",
      app.value(table.baseSelf[row]),
      formatDelta(table.self[row] - table.baseSelf[row], metric.unit),
    ]);
    facts.push([
      "total before",
      app.value(table.baseTotal[row]),
      formatDelta(table.total[row] - table.baseTotal[row], metric.unit),
    ]);
  }
  if (table.calls[row] && metric.key !== "calls") {
    const primitive = table.primitive[row];
    facts.push([
      "calls",
      formatCount(table.calls[row]),
      primitive && primitive !== table.calls[row] ? `${formatCount(primitive)} not recursive` : "",
    ]);
    if (metric.unit === "ns" && session.isTimeOfCalls(s))
      facts.push(["per call", formatTime(table.total[row] / (primitive || table.calls[row])), ""]);
  }
  if (table.max[row])
    facts.push(["shortest", formatTime(table.min[row]), ""], ["longest", formatTime(table.max[row]), ""]);
  if (table.suspended[row]) facts.push(["suspended", formatTime(table.suspended[row]), ""]);
  if (table.samples[row])
    facts.push(["samples", formatCount(table.samples[row]), sampleError(app, table, row)]);
  session.summary(s).columns.forEach((/** @type {any} */ m, /** @type {number} */ k) => {
    const own = table.further(row, 2 * k);
    const total = m.hasTotal ? table.further(row, 2 * k + 1) : 0;
    if (own || total)
      facts.push([m.title, formatValue(own, m.unit), total ? `total ${formatValue(total, m.unit)}` : ""]);
  });
  facts.push(["contexts", formatCount(table.nodes[row]), ""]);
  return el(
    "dl.facts",
    null,
    ...facts.flatMap(([name, value, share]) => [
      el("dt", null, name),
      el("dd.num", null, value),
      el("dd.num.soft", null, share),
    ]),
  );
}

/** @param {App} app @param {any} table @param {number} row */
function sampleError(app, table, row) {
  const sampling = app.session.summary(app.s).sampling;
  if (!sampling) return "";
  // Samples seen in part are no evidence; a function has as large a share of them as the whole.
  const seen = sampling.whole / sampling.samples;
  const error = app.session.engine.shareError(Math.round(table.samples[row] * seen), sampling.whole);
  return `± ${(error * 100).toFixed(1)} %`;
}

/** @param {App} app */
function actions(app) {
  const f = app.s.f;
  const info = app.session.functions[f];
  /** @param {string} text @param {string} title @param {() => void} act @param {boolean} [off] */
  const button = (text, title, act, off) =>
    el("button.button", { type: "button", title, onclick: act, disabled: off }, text);
  return [
    button("Source", "Go to its lines (s)", () => app.toSource(f), !info.file),
    button("Callers", "Who calls it, what it calls (c)", () => app.toCallers(f)),
    button("Re-root", "Only what it does (r)", () => app.addShape("root", f)),
    button("Through", "Only paths through it", () => app.addShape("keep", f)),
    button("Hide", "Take it out; its time goes to its callers (h)", () => app.addShape("fold", f)),
    button("Copy stack", "The context last pointed at (y)", () => app.copyStack()),
  ];
}

/** @param {App} app @param {any} table @param {number} row */
function statesOf(app, table, row) {
  const titles = app.session.summary(app.s).stateTitles;
  if (!table.states || !titles) return null;
  /** @type {number[]} */
  const values = Array.from(table.statesOf(row));
  const sum = values.reduce((a, b) => a + b, 0);
  if (!sum) return null;
  return el(
    "section.extra",
    null,
    el("h3", null, "What it was doing itself"),
    stateBar(app, values),
    el(
      "dl.facts",
      { style: { "margin-top": "6px", "grid-template-columns": "10px 1fr auto auto" } },
      ...values.flatMap((value, k) =>
        value
          ? [
              el("i.swatch", { style: { background: app.stateColor(k), "align-self": "center" } }),
              el("dt", null, titles[k]),
              el("dd.num", null, formatTime(value)),
              el("dd.num.soft", null, formatShare(value, sum)),
            ]
          : [],
      ),
    ),
  );
}

/** The hottest expressions of the selected line, or of the function. @param {App} app */
function expressions(app) {
  const { session, s } = app;
  const file = session.functions[s.f].file;
  if (!file || !session.summary(s).spots?.length) return null;
  const got = session.source(s, file);
  const all = combineSpots(got.spots.filter((spot) => spot.func === s.f));
  const inLine = ["source", "spots"].includes(app.shown?.id ?? "")
    ? combineSpots(got.spots.filter((spot) => spot.line === s.line))
    : [];
  const list = inLine.length ? inLine : all;
  if (!list.length) return null;
  const whole = wholeTime(session, s);
  return el(
    "section.expressions",
    null,
    el("h3", null, inLine.length ? `Expressions in line ${s.line}` : "Hottest expressions"),
    el(
      "div.minilist",
      null,
      ...list.slice(0, 8).flatMap((spot) => {
        const text = expressionText(got.lines, spot) || `line ${spot.line}`;
        const go = () => app.store.set({ view: "source", f: spot.func, file, line: spot.line });
        return [
          el(
            "button.mono",
            { type: "button", onclick: go, title: `${text}\n${formatTime(spot.ns)}, line ${spot.line}` },
            text,
          ),
          el("span.num", null, formatShare(spot.ns, whole)),
        ];
      }),
    ),
  );
}

/** A bar of the states. @param {App} app @param {ArrayLike<number>} values @param {number} [whole] */
export function stateBar(app, values, whole) {
  const sum = whole ?? Array.from(values).reduce((a, b) => a + b, 0);
  if (!(sum > 0)) return el("div", null);
  return el(
    "div.split",
    { "aria-hidden": "true" },
    ...Array.from(values).map((value, k) =>
      value > 0
        ? el("i", { style: { width: `${(value / sum) * 100}%`, background: app.stateColor(k) } })
        : null,
    ),
  );
}

/** @param {App} app */
function neighbours(app) {
  const { session, s } = app;
  const view = session.view(s, { reversed: false });
  const metric = session.metric(s).id;
  return [
    ["Called by", view.callers(s.f, metric)],
    ["Calls", view.callees(s.f, metric)],
  ].map(([title, rows]) => {
    const count = Math.min(6, rows.length);
    if (!count) return null;
    return el(
      "section.extra",
      null,
      el("h3", null, /** @type {string} */ (title)),
      el(
        "div.minilist",
        null,
        ...Array.from({ length: count }, (_, i) => [
          rows.func[i]
            ? el(
                "button.name",
                {
                  type: "button",
                  onclick: () => app.select(rows.func[i]),
                  title: session.label(rows.func[i]).slice(0, 300),
                },
                session.label(rows.func[i]).slice(0, 200),
              )
            : el("span.faint", null, "the thread"),
          el("span.num", null, app.value(rows.total[i])),
        ]).flat(),
      ),
    );
  });
}

/** Before anything is selected: where the time is. @param {App} app */
function hottest(app) {
  const { session, s } = app;
  const table = session.table(s);
  const diff = session.isDiff(s);
  const weight = (/** @type {number} */ i) =>
    diff ? Math.abs(table.self[i] - table.baseSelf[i]) : table.self[i];
  /** @type {number[]} */
  const order = (table.hottest ??= Array.from({ length: table.length }, (_, i) => i)
    .sort((a, b) => weight(b) - weight(a))
    .slice(0, 12)
    .filter((i) => weight(i) > 0));
  if (!order.length) return null;
  const unit = session.metric(s).unit;
  const change = (/** @type {number} */ i) => table.self[i] - table.baseSelf[i];
  return el(
    "section.extra",
    null,
    el("h3", null, diff ? "Self changed most" : "Highest self"),
    el(
      "div.minilist",
      null,
      ...order.flatMap((i) => [
        el(
          "button.name",
          {
            type: "button",
            onclick: () => app.select(table.func[i]),
            title: session.label(table.func[i]).slice(0, 300),
          },
          session.label(table.func[i]).slice(0, 200),
        ),
        diff
          ? el(change(i) > 0 ? "span.num.more" : "span.num.less", null, formatDelta(change(i), unit))
          : el("span.num", null, formatShare(table.self[i], table.sum)),
      ]),
    ),
  );
}
