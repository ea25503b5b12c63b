// The run: what was recorded, where, at what cost, and what a reader has to know about it.

import { el, fill } from "../parts/dom.js";
import { formatCount, formatTime, formatShare, formatValue } from "../parts/numbers.js";
import { visible, shorten } from "../parts/text.js";
import { plainTable } from "../parts/grid.js";
import { gilWaits } from "../parts/timeline/waits.js";

/** @typedef {import('../app.js').App} App */

const SHOWN_ROWS = 200;

export class RunView {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.id = "run";
    /** @type {HTMLElement} */
    this.host = el("div");
    this.title = "Run";
    this.alone = true;
  }

  /** @param {HTMLElement} host */
  show(host) {
    this.host = host;
    this.update(null);
  }

  /** @param {Set<string> | null} _changed */
  update(_changed) {
    const { session, s } = this.app;
    const r = session.summary(s);
    const text = (/** @type {any} */ t) => visible(shorten(String(t ?? ""), 1500));
    fill(
      this.host,
      el(
        "div.page",
        { tabindex: 0 },
        el("h1.name", null, text(r.facts.command || r.name)),
        el("div.soft", null, text([r.facts.host, r.facts.os, when(r)].filter(Boolean).join(" · "))),
        el(
          "div.cards",
          null,
          ...this.cards(r).map(([value, name]) =>
            el("div.card", null, el("b", null, value), el("span", null, name)),
          ),
        ),
        ...r.notes.map((/** @type {any} */ n) => el("div.notice", null, el("p", null, text(n.text)))),
        r.tree === "estimated"
          ? el(
              "div.notice",
              null,
              el(
                "p",
                null,
                "This profile has a table of callers but no calling contexts. Flame graph, sunburst and trees are estimated from it: time is given to callers in proportion.",
              ),
            )
          : null,
        el("h2", null, "Processes"),
        this.processes(r),
        el("h2", null, "Threads"),
        this.threads(r),
        ...gilWaits(this.app),
        el("h2", null, "Facts"),
        el(
          "table.grid",
          null,
          ...Object.entries({
            recording: r.name,
            ...r.facts,
            functions: formatCount(r.counts.functions),
            contexts: formatCount(r.counts.nodes),
            "lines with numbers": formatCount(r.counts.lines),
          }).map(([key, value]) =>
            el(
              "tr",
              null,
              el("th", { scope: "row", style: { width: "160px" } }, text(key)),
              el("td", null, text(key === "start" ? startText(value) : value)),
            ),
          ),
        ),
      ),
    );
  }

  /** @param {any} r @returns {[string, string][]} */
  cards(r) {
    const longest = r.processes.reduce(
      (/** @type {number} */ a, /** @type {any} */ p) => Math.max(a, p.durationNs || 0),
      0,
    );
    /** @type {[string, string][]} */
    const cards = [];
    if (longest) cards.push([formatTime(longest), "from start to end"]);
    if (r.processes.length)
      cards.push([formatCount(r.processes.length), r.processes.length === 1 ? "process" : "processes"]);
    if (r.threads.length)
      cards.push([formatCount(r.threads.length), r.threads.length === 1 ? "thread" : "threads"]);
    cards.push(
      [formatCount(r.counts.functions), "functions"],
      [formatCount(r.counts.nodes), "calling contexts"],
    );
    if (r.sampling)
      cards.push(
        [formatCount(r.sampling.samples), "samples"],
        [
          `± ${(r.sampling.error * 100).toFixed(1)} %`,
          r.sampling.whole < r.sampling.samples
            ? `sampling error of a share of the ${formatCount(r.sampling.whole)} samples seen whole`
            : "sampling error of a share",
        ],
      );
    if (r.sampling?.partialShare)
      cards.push([formatShare(r.sampling.partialShare, 1), "of the samples seen in part"]);
    const lost = r.processes.reduce(
      (/** @type {number} */ a, /** @type {any} */ p) => a + (p.sampled?.lost ?? 0),
      0,
    );
    if (lost)
      cards.push([
        formatCount(lost),
        `${lost === 1 ? "sample" : "samples"} lost (${formatShare(r.sampling?.lostShare ?? 0, 1)})`,
      ]);
    const watched = r.processes.reduce(
      (/** @type {number} */ a, /** @type {any} */ p) => a + (p.sampled?.cpuNs ?? 0),
      0,
    );
    if (watched) cards.push([formatTime(watched), "processor time of watching"]);
    return cards;
  }

  /** @param {any} r */
  processes(r) {
    return plainTable(
      "Processes",
      [".num pid", "Python", ".num time", ".num exit", "recorded", "cost", "command"],
      r.processes
        .slice(0, SHOWN_ROWS)
        .map((/** @type {any} */ p) => [
          p.pid,
          visible(p.version || ""),
          p.durationNs ? formatTime(p.durationNs) : "",
          p.exitStatus ?? "",
          collected(p),
          cost(p),
          el("td.name", null, visible(shorten(p.command || p.exe || "", 300))),
        ]),
    );
  }

  /** @param {any} r */
  threads(r) {
    const most = r.threads.reduce((/** @type {number} */ a, /** @type {any} */ t) => Math.max(a, t.value), 1);
    const order = r.threads
      .map((/** @type {any} */ _, /** @type {number} */ i) => i)
      .sort((/** @type {number} */ a, /** @type {number} */ b) => r.threads[b].value - r.threads[a].value)
      .slice(0, SHOWN_ROWS);
    const go = (/** @type {number} */ i) => (/** @type {Event} */ event) => {
      event.preventDefault();
      this.app.reshape({ scope: `t${i}` });
      this.app.store.set({ view: "flame" });
    };
    return plainTable(
      "Threads",
      ["thread", ".num process", ".num id", ".num recorded", ".num CPU", ".num samples", ".wide "],
      order.map((/** @type {number} */ i) => {
        const t = r.threads[i];
        const name = visible(shorten(t.name || "thread", 80));
        return [
          el("td.name", null, el("a", { href: "#", onclick: go(i) }, name)),
          r.processes[t.process]?.pid ?? "",
          t.tid || "",
          formatTime(t.value),
          t.cpuNs ? formatTime(t.cpuNs) : "",
          t.samples ? formatCount(t.samples) : "",
          el(
            "div.bar",
            { "aria-hidden": "true" },
            el("i.total", { style: { width: `${(t.value / most) * 100}%` } }),
          ),
        ];
      }),
    );
  }

  drawn() {
    return { text: this.host?.innerText };
  }
}

/** @param {any} p */
function memoryOf(p) {
  if (p.memorySampleBytes) return `memory, sampled every ${formatValue(p.memorySampleBytes, "bytes")}`;
  return p.memoryPython ? "memory" : "memory of the C library";
}

/** @param {any} p */
function collected(p) {
  if (!p.profiled && !p.sampled && !p.memory) return "nothing: no agent for this Python";
  const words = [];
  if (p.calls) words.push(p.cCalls ? "every call, C calls too" : "every call");
  if (p.lines) words.push("lines");
  if (p.memory) words.push(memoryOf(p));
  if (p.sampled)
    words.push(
      `${formatCount(p.sampled.samples)} samples (${p.sampled.mode}${p.sampled.intervalNs ? `, every ${formatTime(p.sampled.intervalNs)}` : ""})`,
    );
  return words.join("; ");
}

/** @param {any} p */
function cost(p) {
  const words = [];
  if (p.cost?.callPs) words.push(`${Math.round(p.cost.callPs / 1000)} ns per call`);
  if (p.cost?.linePs) words.push(`${Math.round(p.cost.linePs / 1000)} ns per line`);
  if (p.cost?.ownNs) words.push(`${formatTime(p.cost.ownNs)} besides`);
  if (p.memoryOwnBytes) words.push(`${formatValue(p.memoryOwnBytes, "bytes")} of memory`);
  if (p.sampled)
    words.push(`${formatTime(p.sampled.cpuNs)} outside it (${formatShare(p.sampled.cpuNs, p.durationNs)})`);
  if (p.sampled?.lost)
    words.push(`${formatCount(p.sampled.lost)} ${p.sampled.lost === 1 ? "sample" : "samples"} lost`);
  if (p.sampled?.partial) words.push(`${formatCount(p.sampled.partial)} partial`);
  return words.join("; ");
}

/** @param {any} r */
function when(r) {
  const ns = r.processes[0]?.startRealNs;
  return ns ? new Date(ns / 1e6).toLocaleString("en-GB") : "";
}

/** @param {any} value */
function startText(value) {
  return String(value);
}
