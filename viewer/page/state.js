// What the page shows, as plain data: every part of it can be read from and written to the address, so that a link
// leads to the same picture and the browser's Back goes one step back.

import { FEW_TASK_ROWS } from "./parts/timeline/tasks.js";

/**
 * @typedef {object} PageState
 * @property {string} view    "" for the first: the timeline of a trace, else the flame graph
 * @property {number} rec     recording shown
 * @property {number} base    recording to compare with, or -1
 * @property {string} metric  key, "" for the best there is
 * @property {string} at      instant, or two, of the run: "2.5", "1..2.5" seconds; "" for none
 * @property {string} scope   "all", "p3" a process, "t5" a thread
 * @property {boolean} apart  threads stand side by side instead of as one
 * @property {boolean} mine   only my code
 * @property {boolean} group  by module
 * @property {boolean} lines  by line, where contexts are lines
 * @property {string[]} fold  globs, or "#12" for a function
 * @property {string[]} keep
 * @property {string[]} root
 * @property {string} q       search
 * @property {number} f       selected function, or -1
 * @property {number} n       zoomed node
 * @property {number} x0      visible part of it
 * @property {number} x1
 * @property {string} shape   "down" icicle, "up" flame
 * @property {boolean} rev    reversed: callers as children
 * @property {number} depth   levels, 0: all
 * @property {number} cut     smallest share in percent, 0: what can be seen
 * @property {string} color
 * @property {string} sort    column of the table
 * @property {boolean} asc
 * @property {string} file    in the source view
 * @property {number} line
 * @property {number} nodeCut of the graph, in percent
 * @property {number} edgeCut
 * @property {string} gcolor
 * @property {string} gpart   "all", "root", "leaf"
 * @property {boolean} rel    differences relative
 * @property {boolean} flames callers and callees as flame graphs
 * @property {string} see     what of the timeline is in sight: "0.15..0.2" seconds, "" for all
 * @property {string[]} shut  lanes of it that are closed
 * @property {string[]} tall  … that have all their rows, however many; "*": all of them
 * @property {number} tasks   rows for tasks of a process of it, at most
 * @property {boolean} compact lanes of it in low rows
 */

/** @type {PageState} */
export const DEFAULTS = {
  view: "",
  rec: 0,
  base: -1,
  metric: "",
  at: "",
  scope: "all",
  apart: false,
  mine: false,
  group: false,
  lines: false,
  fold: [],
  keep: [],
  root: [],
  q: "",
  f: -1,
  n: 0,
  x0: 0,
  x1: 1,
  shape: "down",
  rev: false,
  depth: 0,
  cut: 0,
  color: "module",
  sort: "",
  asc: false,
  file: "",
  line: 0,
  nodeCut: 0.5,
  edgeCut: 0.1,
  gcolor: "total",
  gpart: "all",
  rel: false,
  flames: false,
  see: "",
  shut: [],
  tall: [],
  tasks: FEW_TASK_ROWS,
  compact: false,
};

/** What a node's number depends on: when one of these changes, the zoom must be found again. */
export const SHAPING = new Set([
  "rec",
  "base",
  "scope",
  "apart",
  "mine",
  "group",
  "lines",
  "fold",
  "keep",
  "root",
  "rev",
]);

/** @param {string} fragment @returns {PageState} */
function readFragment(fragment) {
  /** @type {Record<string, any>} */
  const state = { ...DEFAULTS };
  for (const [key, text] of new URLSearchParams(fragment.replace(/^#/, ""))) {
    const usual = /** @type {any} */ (DEFAULTS)[key];
    if (usual === undefined) continue;
    if (Array.isArray(usual)) state[key] = text.split("\n").filter(Boolean).slice(0, 100);
    else if (typeof usual === "boolean") state[key] = text === "1";
    else if (typeof usual === "number") state[key] = Number.isFinite(Number(text)) ? Number(text) : usual;
    else state[key] = text.slice(0, 4000);
  }
  // An address can be typed by hand: what cannot be is the usual.
  if (!(state.x0 >= 0 && state.x0 < state.x1 && state.x1 <= 1)) [state.x0, state.x1] = [0, 1];
  for (const key of ["n", "rec", "f", "base", "line", "depth", "tasks"])
    if (!Number.isInteger(state[key])) state[key] = /** @type {any} */ (DEFAULTS)[key];
  if (state.n < 0) state.n = 0;
  if (state.tasks < 1) state.tasks = FEW_TASK_ROWS;
  return /** @type {PageState} */ (state);
}

/** @param {PageState} state */
function writeFragment(state) {
  const params = new URLSearchParams();
  for (const [key, usual] of Object.entries(DEFAULTS)) {
    const value = /** @type {any} */ (state)[key];
    if (Array.isArray(usual)) {
      if (value.length) params.set(key, value.join("\n"));
    } else if (value !== usual) {
      params.set(key, typeof value === "boolean" ? (value ? "1" : "0") : String(value));
    }
  }
  return params.toString();
}

/** The state and those who want to know when it changes. */
export class Store {
  constructor() {
    /** @type {PageState} */
    this.now = readFragment(location.hash);
    /** @type {((changed: Set<string>) => void)[]} */
    this.listeners = [];
    addEventListener("popstate", () => this.adopt(readFragment(location.hash)));
    addEventListener("hashchange", () => this.adopt(readFragment(location.hash)));
  }

  /** @param {(changed: Set<string>) => void} listener */
  listen(listener) {
    this.listeners.push(listener);
  }

  /**
   * Change some of it. A step of its own in the history unless `quiet` (typing, scrolling).
   * @param {Partial<PageState>} patch @param {boolean} [quiet]
   */
  set(patch, quiet = false) {
    const changed = this.differences({ ...this.now, ...patch });
    if (!changed.size) return;
    this.now = { ...this.now, ...patch };
    this.write(quiet);
    for (const listener of this.listeners) listener(changed);
  }

  /** @param {boolean} quiet */
  write(quiet) {
    const text = writeFragment(this.now);
    const address = text ? `#${text}` : location.pathname + location.search;
    try {
      if (quiet) history.replaceState(null, "", address);
      else history.pushState(null, "", address);
    } catch {
      // Browsers refuse hundreds of steps in a few seconds; the page goes on without this one.
    }
  }

  /** @param {PageState} next */
  adopt(next) {
    const changed = this.differences(next);
    if (!changed.size) return;
    this.now = next;
    for (const listener of this.listeners) listener(changed);
  }

  /** @param {PageState} next @returns {Set<string>} */
  differences(next) {
    const changed = new Set();
    for (const key of Object.keys(DEFAULTS)) {
      const a = /** @type {any} */ (this.now)[key];
      const b = /** @type {any} */ (next)[key];
      if (Array.isArray(a) ? a.join("\n") !== b.join("\n") : a !== b) changed.add(key);
    }
    return changed;
  }
}
