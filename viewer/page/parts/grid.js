// A plain table of at most a few hundred rows, wider than the page if it must be.

import { el } from "./dom.js";

/**
 * @param {string} label what a screen reader calls it
 * @param {string[]} heads with ".num" or ".wide" in front of the title where a column is one: ".num time"
 * @param {any[][]} rows cells as elements `td`, or what they contain, in the way of their heads
 */
export function plainTable(label, heads, rows) {
  // A column without anything in it says nothing.
  const used = heads.map((_, i) => !rows.length || rows.some((cells) => cells[i] !== ""));
  heads = heads.filter((_, i) => used[i]);
  rows = rows.map((cells) => cells.filter((_, i) => used[i]));
  const kinds = heads.map((head) => /^(?:(\.\w+) )?(.*)$/s.exec(head) ?? ["", "", head]);
  return el(
    "div.scroll",
    null,
    el(
      "table.grid",
      { "aria-label": label },
      el(
        "thead",
        null,
        el(
          "tr",
          null,
          ...kinds.map(([, kind, title]) =>
            title ? el(`th${kind ?? ""}`, { scope: "col" }, title) : el(`td${kind ?? ""}`),
          ),
        ),
      ),
      el(
        "tbody",
        null,
        ...rows.map((cells) =>
          el(
            "tr",
            null,
            ...cells.map((cell, i) =>
              cell instanceof HTMLTableCellElement
                ? cell
                : el(kinds[i][1] === ".num" ? "td.num" : "td", null, cell),
            ),
          ),
        ),
      ),
    ),
  );
}
