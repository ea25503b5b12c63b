// How long calls of a function take: the distribution as bars, and the slowest of them to go to. In the panel beside every
// view, where every call was recorded.

import { el } from "../dom.js";
import { formatCount, formatTime } from "../numbers.js";
import { groupsOf } from "./groups.js";
import { formatInstant, rangeTitle } from "./range.js";
import { spanWords, valuesOf } from "./tips.js";

/**
 * @typedef {import('../../app.js').App} App
 * @typedef {import('../../../engine/engine.js').Durations} Durations
 */

const FEW = 8;
const MANY = 100;
/** Up to so many events all of them are read without being asked for. */
const AT_ONCE = 3e6;

/** Of which function the distribution was asked for although it takes a while, and the long list. */
const asked = { func: -1, many: -1 };

/** @param {App} app @returns {Node | null} */
export function durationsOf(app) {
  const { session, s } = app;
  const traced = session.timeline(s)?.lanes.filter((lane) => !lane.sampled) ?? [];
  const range = session.known(s);
  if (!traced.length || s.f <= 0 || session.isCompared(s) || !range) return null;
  const events = traced.reduce((a, lane) => a + lane.events, 0);
  const counted = events <= AT_ONCE || asked.func === s.f;
  const many = asked.many === s.f;
  // The slowest are found by what blocks tell of themselves; to count all of them all must be read.
  const found = session.durations(s, s.f, many ? MANY : FEW, !counted);
  if (!found) return el("section.durations", null, el("p.soft", null, "Reading its calls…"));
  if (!found.longest.length) return null;
  const part = session.range(s) ? ", in this range" : session.whole(s).leftOut ? `, in ${rangeTitle(range)}` : "";
  const ask = (/** @type {string} */ text, /** @type {"func" | "many"} */ what) =>
    el("button.button", { type: "button", onclick: () => { asked[what] = s.f; app.frame(); } }, text);
  return el(
    "section.durations",
    null,
    el("h3", null, `How long its calls take${part}`),
    ...(counted ? [bars(found), el("p.soft", null, summaryWords(found))] : [ask("Count all of them", "func")]),
    el("h3", null, "Slowest calls"),
    slowest(app, found),
    !many && found.longest.length >= FEW ? ask("Show more", "many") : null,
    ...(counted && found.calls > 1 ? groupsOf(app) : []),
  );
}

/** @param {Durations} found */
function summaryWords(found) {
  const half = middle(found);
  return `${formatCount(found.calls)} calls, ${formatTime(found.min)} to ${formatTime(found.max)}, half of them below ${formatTime(half)}, ${formatTime(found.sum / found.calls)} on average`;
}

/** Where half of the calls were shorter, as exactly as the counts tell. @param {Durations} found */
function middle({ buckets, calls, max }) {
  let below = 0;
  for (const bucket of buckets) {
    below += bucket.calls;
    if (below * 2 >= calls) return Math.min(bucket.to, max);
  }
  return max;
}

/** @param {Durations} found */
function bars({ buckets }) {
  const most = buckets.reduce((a, b) => Math.max(a, b.calls), 1);
  return el(
    "div.histogram",
    { role: "img", "aria-label": `Between ${formatTime(buckets[0]?.from ?? 0)} and ${formatTime(buckets.at(-1)?.to ?? 0)}` },
    ...buckets.map((b) =>
      el(
        "span",
        { title: `${formatTime(b.from)} to ${formatTime(b.to)}: ${formatCount(b.calls)} calls` },
        // One call among a million can be seen, too.
        el("i", { style: { height: b.calls ? `${Math.max(4, Math.sqrt(b.calls / most) * 100)}%` : "0" } }),
      ),
    ),
  );
}

/** @param {App} app @param {Durations} found */
function slowest(app, { longest }) {
  const { session, s } = app;
  const { summary, timeline } = session.whole(s);
  const several = (timeline?.lanes.length ?? 0) > 1;
  return el(
    "div.minilist",
    null,
    ...longest.flatMap((span) => {
      const thread = summary.threads[timeline?.lanes[span.lane]?.thread ?? -1];
      const values = valuesOf(app, span).map(([name, text]) => `${name}=${text}`);
      const words = [...values, `at ${formatInstant(span.begin, 1e3)}`, several ? (thread?.name ?? "") : "", ...spanWords(span.flags)];
      return [
        el(
          "button.name",
          { type: "button", onclick: () => app.showSpan(span), title: words.filter(Boolean).join(", ").slice(0, 300) },
          words.filter(Boolean).join(", ").slice(0, 120),
        ),
        el("span.num", null, formatTime(span.end - span.begin)),
      ];
    }),
  );
}
