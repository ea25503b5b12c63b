// The overlay with the keys.

import { el } from "./dom.js";

/** @type {[string, string][]} */
const KEYS = [
  ["1 … 9", "go to a view"],
  ["/", "search (a regular expression)"],
  ["Esc", "one step out; leave the search"],
  ["Alt ← →", "back and forward"],
  ["m", "next metric"],
  ["t", "next thread"],
  ["o", "only my code"],
  ["g", "group by module"],
  ["l", "memory by line"],
  ["s", "source of the selected function"],
  ["c", "its callers and callees"],
  ["r", "show only what it does (re-root)"],
  ["h", "hide it: its time goes to its callers"],
  ["x", "show everything again"],
  ["y", "copy the stack"],
  ["i", "flame or icicle"],
  ["+ −", "zoom; also Ctrl and the wheel, or a pinch"],
  ["0", "show the whole"],
  ["← ↑ → ↓", "move in a drawing, table or tree; with Shift move the call graph"],
  ["Enter", "zoom in; open"],
  ["w s a d", "timeline: zoom in, out, move left, right"],
  ["n, Shift n", "timeline: the next, the previous span of what is searched for or selected"],
  ["Shift drag", "timeline: measure; Enter then shows only that time in all views"],
  ["d", "dark or light"],
  ["p", "details of the function on or off"],
  ["?", "this help"],
];

export function showHelp() {
  if (document.querySelector("dialog[open]")) return;
  const dialog = el(
    "dialog",
    {
      "aria-label": "Keys",
      onclose: () => dialog.remove(),
      onclick: (/** @type {Event} */ e) => {
        if (e.target === dialog) dialog.close();
      },
    },
    el("h1", null, "Keys"),
    el(
      "div.keys",
      null,
      ...KEYS.map(([key, text]) =>
        el("div", null, el("span", null, el("kbd", null, key)), el("span", null, text)),
      ),
    ),
    el(
      "p.soft",
      null,
      "Click a box to zoom into it; its callers stay as rows above. Right-click or press long for more. Whatever you select is selected in every view, and the address of the page leads back to what you see.",
    ),
    el("form", { method: "dialog" }, el("div.row", null, el("button.button", { type: "submit" }, "Close"))),
  );
  document.body.append(dialog);
  dialog.showModal();
}
