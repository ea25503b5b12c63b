// The small panel beside the pointer: what the box under it is, with its numbers.

import { el, fill } from "./dom.js";

/** @typedef {{title: string, place?: string, facts: [string, string, string?][]}} TipText */

export class Tip {
  constructor() {
    /** @type {HTMLElement} */
    this.node = el("div", { id: "tip", role: "tooltip", hidden: true });
    document.body.append(this.node);
  }

  /** @param {TipText} text @param {number} x @param {number} y of the window */
  show(text, x, y) {
    fill(
      this.node,
      el("b.name", null, text.title.length > 400 ? `${text.title.slice(0, 400)}…` : text.title),
      text.place
        ? el("div.place.name", null, text.place.length > 300 ? `…${text.place.slice(-300)}` : text.place)
        : null,
      el(
        "dl.facts",
        null,
        ...text.facts.flatMap(([name, value, share]) => [
          el("dt", null, name),
          el("dd.num", null, value),
          el("dd.num.soft", null, share ?? ""),
        ]),
      ),
    );
    this.node.hidden = false;
    const box = this.node.getBoundingClientRect();
    const left = x + 16 + box.width > innerWidth ? x - 16 - box.width : x + 16;
    const top = y + 18 + box.height > innerHeight ? y - 12 - box.height : y + 18;
    this.node.style.setProperty("left", `${Math.max(4, left)}px`);
    this.node.style.setProperty("top", `${Math.max(4, top)}px`);
  }

  hide() {
    this.node.hidden = true;
  }
}
