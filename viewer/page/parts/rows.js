// A list of very many rows of which only those in sight exist as elements. Fifty thousand functions or a file of
// a hundred thousand lines scroll as if they were ten. Rows are told to screen readers by number ("row 12 of 5,000").

import { el, oncePerFrame } from "./dom.js";
import { formatChange } from "./numbers.js";

/**
 * @typedef {object} RowsUse
 * @property {string} role       "grid", "treegrid", "list"
 * @property {string} label
 * @property {string} columns    CSS grid-template-columns
 * @property {(row: number, node: HTMLElement) => void} render  fill an empty row
 * @property {(row: number) => void} [select]
 * @property {(row: number) => void} [activate]
 * @property {(event: KeyboardEvent, row: number) => boolean} [key]
 * @property {HTMLElement} [head]
 */

/** A page's scroll bar cannot be longer than this in any browser. */
const MOST_PIXELS = 15_000_000;

let listNumber = 0;

export class Rows {
  /** @param {RowsUse} use */
  constructor(use) {
    this.use = use;
    this.count = 0;
    /** @type {number | undefined} of one row, in pixels */
    this.rowHeight = undefined;
    this.selected = -1;
    this.id = `rows${listNumber++}`;
    this.space = el("div.space", { role: "rowgroup" });
    /** @type {HTMLElement} */
    this.node = el(
      "div.rows",
      { role: use.role, "aria-label": use.label, tabindex: 0 },
      use.head,
      this.space,
    );
    /** @type {Map<number, HTMLElement>} */
    this.shown = new Map();
    this.draw = oncePerFrame(() => this.drawNow());
    this.node.addEventListener("scroll", this.draw, { passive: true });
    this.node.addEventListener("keydown", (event) => this.onKey(event));
    this.space.addEventListener("click", (/** @type {MouseEvent} */ event) => {
      const row = this.rowOf(event.target);
      if (row >= 0) this.choose(row);
    });
    this.space.addEventListener("dblclick", (/** @type {MouseEvent} */ event) => {
      const row = this.rowOf(event.target);
      if (row >= 0) use.activate?.(row);
    });
    new ResizeObserver(this.draw).observe(this.node);
  }

  /** @param {any} target */
  rowOf(target) {
    const node = target instanceof Element ? target.closest(".row") : null;
    return node ? Number(node.getAttribute("data-row")) : -1;
  }

  get height() {
    const natural = (this.rowHeight ??= this.measureRow());
    return Math.min(natural, this.count ? MOST_PIXELS / this.count : natural);
  }

  /** What the style sheet says; it differs with the size of the screen. */
  measureRow() {
    const probe = el("div.row");
    this.space.append(probe);
    const height = probe.getBoundingClientRect().height || 24;
    probe.remove();
    return height;
  }

  get headHeight() {
    return this.use.head?.offsetHeight ?? 0;
  }

  /** There are `count` rows now, and all may have changed. @param {number} count */
  reset(count) {
    this.count = count;
    this.rowHeight = undefined;
    this.node.setAttribute("aria-rowcount", String(count));
    this.space.style.setProperty("height", `${Math.ceil(count * this.height)}px`);
    for (const node of this.shown.values()) node.remove();
    this.shown.clear();
    this.drawNow();
  }

  drawNow() {
    if (!this.node.isConnected) return;
    const height = this.height;
    const top = Math.max(0, this.node.scrollTop - this.headHeight);
    const first = Math.max(0, Math.floor(top / height) - 4);
    const last = Math.min(this.count, Math.ceil((top + this.node.clientHeight) / height) + 4);
    for (const [row, node] of this.shown) {
      if (row >= first && row < last) continue;
      node.remove();
      this.shown.delete(row);
    }
    for (let row = first; row < last; row++) if (!this.shown.has(row)) this.addRow(row);
  }

  /** @param {number} row */
  addRow(row) {
    const node = el("div.row", {
      role: this.use.role === "list" ? "listitem" : "row",
      id: `${this.id}-${row}`,
      "data-row": row,
      "aria-rowindex": row + 1,
    });
    node.style.setProperty("top", `${row * this.height}px`);
    node.style.setProperty("grid-template-columns", this.use.columns);
    if (row === this.selected) node.setAttribute("aria-selected", "true");
    this.use.render(row, node);
    this.space.append(node);
    this.shown.set(row, node);
  }

  /** Mark a row, without telling anybody. @param {number} row @param {boolean} [reveal] */
  mark(row, reveal = false) {
    this.shown.get(this.selected)?.removeAttribute("aria-selected");
    this.selected = row;
    this.shown.get(row)?.setAttribute("aria-selected", "true");
    if (row >= 0) this.node.setAttribute("aria-activedescendant", `${this.id}-${row}`);
    else this.node.removeAttribute("aria-activedescendant");
    if (reveal && row >= 0) this.reveal(row);
  }

  /** @param {number} row @param {boolean} [middle] */
  reveal(row, middle = false) {
    const height = this.height;
    const top = row * height;
    const inner = this.node.clientHeight - this.headHeight;
    const at = this.node.scrollTop;
    if (middle) this.node.scrollTop = top - inner / 3;
    else if (top < at) this.node.scrollTop = top;
    else if (top + height > at + inner) this.node.scrollTop = top + height - inner;
    this.drawNow();
  }

  /** @param {number} row */
  choose(row) {
    this.mark(row, true);
    this.use.select?.(row);
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    if (event.target !== this.node || event.ctrlKey || event.metaKey || event.altKey) return;
    const page = Math.max(1, Math.floor(this.node.clientHeight / this.height) - 2);
    /** @type {Record<string, number>} */
    const steps = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -Infinity,
      End: Infinity,
    };
    if (this.use.key?.(event, this.selected)) {
      event.preventDefault();
    } else if (steps[event.key] !== undefined && this.count) {
      event.preventDefault();
      const from = this.selected < 0 && steps[event.key] > 0 ? -1 : this.selected;
      this.choose(Math.max(0, Math.min(this.count - 1, from + steps[event.key])));
    } else if (event.key === "Enter" && this.selected >= 0) {
      event.preventDefault();
      this.use.activate?.(this.selected);
    }
  }
}

/**
 * A heading of columns that can be sorted.
 * @param {{key: string, title: string, num?: boolean, hint?: string, fixed?: boolean}[]} columns
 * @param {string} template @param {string} sort @param {boolean} ascending
 * @param {(key: string, ascending: boolean) => void} change
 */
export function sortHead(columns, template, sort, ascending, change) {
  const cells = columns.map((c) => {
    const on = c.key === sort;
    const inner = c.fixed
      ? c.title
      : el(
          "button",
          {
            type: "button",
            title: c.hint,
            tabindex: 0,
            onclick: () => change(c.key, on ? !ascending : !c.num),
          },
          c.title,
        );
    return el(
      c.num ? "div.num" : "div",
      {
        role: "columnheader",
        "aria-sort": on ? (ascending ? "ascending" : "descending") : c.fixed ? undefined : "none",
      },
      inner,
    );
  });
  return el("div.head", { role: "row", style: { "grid-template-columns": template } }, ...cells);
}

/** A cell. @param {string} kind classes @param {...import('./dom.js').Child} children */
export function cell(kind, ...children) {
  return el(kind ? `div.${kind}` : "div", { role: "gridcell" }, ...children);
}

/** How a number changed, red or blue. @param {number} now @param {number} old @param {boolean} relative @param {string} unit */
export function changeCell(now, old, relative, unit) {
  const kind = now > old ? "num.more" : now < old ? "num.less" : "num.faint";
  return cell(kind, now === old ? (now ? "0" : "") : formatChange(now, old, relative, unit));
}

/** A bar of one or two shares over each other. @param {number} total 0 to 1 @param {number} self 0 to 1 */
export function shareBar(total, self) {
  const width = (/** @type {number} */ part) => ({ width: `${Math.max(0, Math.min(1, part || 0)) * 100}%` });
  return el(
    "div.bar",
    { "aria-hidden": "true" },
    el("i.total", { style: width(total) }),
    el("i.self", { style: width(self) }),
  );
}
