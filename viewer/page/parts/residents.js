// What the resident memory of a process was made of, as a bar of its parts: when it had most, and at the last look.

import { el } from "./dom.js";
import { modulePalette } from "./colors.js";
import { plainTable } from "./grid.js";
import { formatShare, formatTime, formatValue } from "./numbers.js";

/** @typedef {import('../../engine/engine.js').ResidentAccount} ResidentAccount */

const SHOWN_PROCESSES = 5;

/** @param {import('../app.js').App} app @param {import('../../engine/engine.js').MemoryFacts} facts
 * @param {number} process -1: those that had most @param {number} first nanoseconds when the run began */
export function residentAccounts(app, facts, process, first) {
  const wanted = facts.residents
    .filter((a) => a.highest && (process < 0 || a.process === process))
    .sort((a, b) => b.rss - a.rss)
    .slice(0, SHOWN_PROCESSES);
  if (!wanted.length) return [];
  const processes = app.session.summary(app.s).processes;
  const several = new Set(facts.residents.map((a) => a.process)).size > 1;
  // More parts than modules have colours; what is not explained is grey.
  const { dark, colors: own } = app.palette;
  const colors = [...modulePalette(dark).slice(0, -1), own.mark, own["ink-soft"], own["line-strong"]];
  return [
    el("h2", null, "What resident memory was made of"),
    ...wanted.flatMap((highest) => {
      const last = facts.residents.find((a) => !a.highest && a.process === highest.process);
      const looks = last && last.ns !== highest.ns ? [highest, last] : [highest];
      const most = highest.rss || 1;
      return [
        several ? el("h3", null, `process ${processes[highest.process]?.pid ?? "?"}`) : null,
        ...looks.flatMap((a) => bar(a, most, first, colors)),
        table(facts.parts, looks, colors),
      ];
    }),
  ];
}

/** @param {ResidentAccount} a @param {number} most @param {number} first @param {string[]} colors */
function bar(a, most, first, colors) {
  const words = `${formatValue(a.rss, "bytes")} resident ${a.highest ? "at most" : "at the last look"}, at ${formatTime(Math.max(0, a.ns - first))}`;
  const rest = a.untouched > 0 ? `; ${formatValue(a.untouched, "bytes")} more were never touched, or swapped out` : "";
  return [
    el("p.soft.account", null, words + rest),
    el(
      "div.split",
      { "aria-hidden": "true" },
      ...a.bytes.map((bytes, k) =>
        bytes > 0
          ? el("i", { style: { width: `${(bytes / most) * 100}%`, background: colors[k % colors.length] } })
          : null,
      ),
    ),
  ];
}

/** @param {string[]} parts @param {ResidentAccount[]} looks @param {string[]} colors */
function table(parts, looks, colors) {
  const rows = parts.map((_, k) => k).filter((k) => looks.some((a) => a.bytes[k]));
  return plainTable(
    "Resident memory",
    ["part", ...looks.flatMap((a) => [a.highest ? ".num highest" : ".num last", ".num %"])],
    rows.map((k) => [
      el("td.name", null, el("i.swatch", { style: { background: colors[k % colors.length] }, "aria-hidden": "true" }), ` ${parts[k]}`),
      ...looks.flatMap((a) => [formatValue(a.bytes[k], "bytes"), formatShare(a.bytes[k], a.rss)]),
    ]),
  );
}
