// Top-down and bottom-up trees. Children are asked of the engine when a branch is opened; rows exist only in sight.

import { el, fill } from "../parts/dom.js";
import { Rows, sortHead, cell, changeCell, shareBar } from "../parts/rows.js";
import { formatCount, formatPercent } from "../parts/numbers.js";
import { relativeToggle } from "../parts/toolbar.js";

/** @typedef {import('../app.js').App} App */
/** @typedef {{node: number, func: number, value: number, self: number, calls: number, base: number, children: number, level: number, open: boolean}} Branch */

const MOST_CHILDREN = 1000;

export class TreeView {
  /** @param {App} app @param {boolean} bottomUp */
  constructor(app, bottomUp) {
    this.app = app;
    this.bottomUp = bottomUp;
    this.id = bottomUp ? "bottomup" : "tree";
    /** @type {HTMLElement} */
    this.host = el("div");
    this.title = bottomUp ? "Bottom-up" : "Top-down";
    /** @type {Branch[]} */
    this.list = [];
    this.key0 = "";
    this.view = /** @type {any} */ (null);
    this.metric = /** @type {any} */ (null);
    this.totals = { value: 0, base: 0 };
    /** @type {Rows | null} */
    this.rows = null;
  }

  /** @param {HTMLElement} host */
  show(host) {
    this.host = host;
    this.update(null);
  }

  /** @param {Set<string> | null} changed */
  update(changed) {
    const { s, session } = this.app;
    const options = { reversed: this.bottomUp, ...(this.bottomUp ? { threads: "together" } : {}) };
    this.view = session.view(s, options);
    this.metric = session.metric(s);
    this.totals = this.view.totals(this.metric.id);
    const key = JSON.stringify([session.options(s, options), this.metric.id]);
    if (key !== this.key0) {
      this.key0 = key;
      this.list = this.childrenOf(0, 0);
      this.openHotPath(0);
    }
    if (changed && this.rows && this.rows.node.isConnected && changed.size === 1 && changed.has("f")) {
      // Selected elsewhere: the first branch in sight that shows it.
      const row =
        this.rows.selected >= 0 && this.list[this.rows.selected]?.func === s.f
          ? this.rows.selected
          : this.list.findIndex((b) => b.func === s.f);
      return this.rows.mark(row, true);
    }
    const diff = session.isDiff(s);
    const phone = innerWidth < 640;
    const template = phone
      ? "70px 44px minmax(200px, 1fr)"
      : `72px 44px ${this.bottomUp ? "" : "72px 44px"} ${diff ? "80px" : "80px minmax(50px, 80px)"} minmax(220px, 1fr)`;
    /** @type {{key: string, title: string, num?: boolean, fixed: boolean}[]} */
    const columns = [
      // What is at the bottom is time of a function itself, and above it the part of that which a caller led to.
      ["total", this.metric.unit !== "ns" ? this.metric.title : this.bottomUp ? "self" : "total"],
      ["totalp", "%"],
      ...(phone
        ? []
        : [
            ...(this.bottomUp
              ? []
              : [
                  ["self", "self"],
                  ["selfp", "%"],
                ]),
            ["calls", diff ? "change" : "calls"],
          ]),
    ].map(([k, title]) => ({ key: k, title, num: true, fixed: true }));
    if (!phone && !diff) columns.push({ key: "bar", title: "", fixed: true });
    columns.push({
      key: "name",
      title: this.bottomUp ? "function, and below it its callers" : "function, and below it what it called",
      fixed: true,
    });
    this.rows = new Rows({
      role: "treegrid",
      label: this.title,
      columns: template,
      head: sortHead(columns, template, "", false, () => {}),
      render: (row, node) => this.render(row, node, diff, phone),
      select: (row) => this.select(row),
      activate: (row) => this.toggle(row),
      key: (event, row) => this.treeKey(event, row),
    });
    fill(
      this.host,
      this.list.length
        ? this.rows.node
        : el(
            "div.nothing",
            null,
            el("h2", null, "No calling contexts"),
            el("p", null, "This recording, or this part of it, has no tree."),
          ),
    );
    this.rows.selected = this.list.findIndex((b) => b.func === s.f);
    this.rows.reset(this.list.length);
  }

  /** @param {number} node @param {number} level @returns {Branch[]} */
  childrenOf(node, level) {
    const got = this.view.children(node, { metric: this.metric.id, limit: MOST_CHILDREN });
    return Array.from({ length: got.length }, (_, i) => ({
      node: got.node[i],
      func: got.func[i],
      value: got.value[i],
      self: got.self[i],
      calls: got.calls[i],
      base: got.base ? got.base[i] : 0,
      children: got.children[i],
      level,
      open: false,
    }));
  }

  /** Down the branches that hold more than half of what is above them. @param {number} row */
  openHotPath(row) {
    for (let i = 0; i < 60 && this.list[row]?.children; i++) {
      const branch = this.list[row];
      this.openBranch(row);
      const first = this.list[row + 1];
      if (!first || first.level !== branch.level + 1 || first.value < branch.value / 2) break;
      row++;
    }
  }

  /** @param {number} row */
  openBranch(row) {
    const branch = this.list[row];
    if (branch.open || !branch.children) return;
    branch.open = true;
    this.list.splice(row + 1, 0, ...this.childrenOf(branch.node, branch.level + 1));
  }

  /** @param {number} row */
  closeBranch(row) {
    const branch = this.list[row];
    let end = row + 1;
    while (end < this.list.length && this.list[end].level > branch.level) end++;
    this.list.splice(row + 1, end - row - 1);
    branch.open = false;
  }

  /** @param {number} row */
  toggle(row) {
    if (this.list[row].open) this.closeBranch(row);
    else this.openBranch(row);
    this.rows?.reset(this.list.length);
  }

  /** @param {number} row */
  select(row) {
    this.app.lastPath = [...this.view.path(this.list[row].node)];
    if (this.bottomUp) this.app.lastPath.reverse();
    this.app.select(this.list[row].func);
  }

  /** @param {KeyboardEvent} event @param {number} row */
  treeKey(event, row) {
    const branch = this.list[row];
    if (!branch || !this.rows) return false;
    if (event.key === "ArrowRight" && branch.children && !branch.open) this.toggle(row);
    else if (event.key === "ArrowRight" && branch.open) this.rows.choose(row + 1);
    else if (event.key === "ArrowLeft" && branch.open) this.toggle(row);
    else if (event.key === "ArrowLeft") {
      let up = row - 1;
      while (up >= 0 && this.list[up].level >= branch.level) up--;
      if (up >= 0) this.rows.choose(up);
    } else if (event.key === "*") {
      this.openHotPath(row);
      this.rows.reset(this.list.length);
    } else return false;
    return true;
  }

  /** @param {number} row @param {HTMLElement} node @param {boolean} diff @param {boolean} phone */
  render(row, node, diff, phone) {
    const { app } = this;
    const branch = this.list[row];
    const whole = this.totals.value;
    node.setAttribute("aria-level", String(branch.level + 1));
    if (branch.children) node.setAttribute("aria-expanded", String(branch.open));
    if (app.session.matches(app.s).has[branch.func]) node.classList.add("hit");
    node.append(cell("num", app.value(branch.value)), cell("num.soft", formatPercent(branch.value, whole)));
    if (!phone) {
      if (!this.bottomUp)
        node.append(cell("num", app.value(branch.self)), cell("num.soft", formatPercent(branch.self, whole)));
      node.append(
        diff
          ? changeCell(branch.value, branch.base, app.s.rel, this.metric.unit)
          : cell("num", branch.calls ? formatCount(branch.calls) : ""),
      );
      const self = this.bottomUp ? branch.value : branch.self;
      if (!diff) node.append(cell("", shareBar(branch.value / (whole || 1), self / (whole || 1))));
    }
    const twist = el(
      "button.twist",
      {
        type: "button",
        tabindex: -1,
        "aria-hidden": "true",
        onclick: (/** @type {Event} */ e) => {
          e.stopPropagation();
          this.toggle(row);
        },
      },
      branch.children ? (branch.open ? "▼" : "▶") : "",
    );
    node.append(
      cell(
        "label",
        el("span", { style: { width: `${Math.min(branch.level, 60) * (phone ? 8 : 14)}px`, flex: "none" } }),
        twist,
        el("i.swatch", { style: { background: app.colors().of(branch.func) } }),
        el(
          "span.name",
          { title: app.session.label(branch.func).slice(0, 300) },
          app.session.label(branch.func).slice(0, 300),
        ),
        el("span.place", null, app.session.place(branch.func).slice(0, 120)),
      ),
    );
  }

  tools() {
    return this.app.session.isDiff(this.app.s) ? [relativeToggle(this.app)] : [];
  }

  drawn() {
    return {
      rows: this.list.slice(0, 500).map((b) => ({
        name: this.app.session.functions[b.func].qualname,
        value: b.value,
        self: b.self,
        calls: b.calls,
        level: b.level,
        open: b.open,
      })),
      elements: this.rows?.shown.size,
    };
  }
}
