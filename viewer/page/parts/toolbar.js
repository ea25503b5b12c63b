// The row of controls: what is counted, of which part of the program, in which shape; then those of the view; search.

import { el, fill, byId, choice, toggle } from "./dom.js";
import { formatShare } from "./numbers.js";
import { menuButton } from "./menu.js";
import { showHelp } from "./help.js";
import { visible, shorten, baseName } from "./text.js";
import { momentTitle } from "./moment.js";
import { rangeTitle } from "./timeline/range.js";

/** @typedef {import('../app.js').App} App */

/** @param {App} app */
export function toolbar(app) {
  const bar = byId("tools");
  // Rebuilding must not take the focus from a control that is being used.
  const focused = bar.contains(document.activeElement)
    ? [...bar.querySelectorAll("select, button")].indexOf(/** @type {any} */ (document.activeElement))
    : -1;
  fill(bar, ...scopeControls(app), ...shapeControls(app), ...(app.shown?.tools?.() ?? []), ...chips(app));
  bar.hidden = !bar.childElementCount;
  if (focused >= 0)
    /** @type {HTMLElement | undefined} */ (bar.querySelectorAll("select, button")[focused])?.focus();
  const box = byId("searchbox");
  if (!box.firstChild) box.append(searchField(app));
  updateSearch(app, box.firstChild);
  fill(byId("topright"), ...pageControls(app));
}

/** Differences as shares of what was. @param {App} app */
export function relativeToggle(app) {
  return toggle("Relative", app.s.rel, (rel) => app.store.set({ rel }), "Changes in percent of what it was");
}

/** @param {App} app */
function scopeControls(app) {
  const { s, store, session } = app;
  const summary = session.summary(s);
  const names = session.packed.map(
    (p, i) => /** @type {[string, string]} */ ([String(i), visible(shorten(baseName(p.name), 40))]),
  );
  const result = [];
  if (names.length > 1) {
    result.push(
      choice("Recording", names, String(s.rec), (rec) =>
        app.reshape({ rec: Number(rec), base: Number(rec) === s.base ? -1 : s.base, scope: "all" }),
      ),
    );
    result.push(
      choice(
        "Against",
        [["-1", "nothing"], ...names.filter(([i]) => i !== String(s.rec))],
        String(s.base),
        (base) => store.set({ base: Number(base), n: 0, x0: 0, x1: 1 }),
      ),
    );
  }
  const page = app.shown?.id ?? "";
  if (page === "run") return result;
  const metrics = metricsOf(session.metrics(s), page);
  if (metrics.length > 1)
    result.push(
      choice(
        "Metric",
        metrics.map((/** @type {any} */ m) => [m.key, m.title, m.memory ? "Memory" : ""]),
        (
          metrics.find((m) => m.key === session.metric(s).key) ??
          metrics.find((m) => !m.memory) ??
          metrics[0]
        ).key,
        (metric) => app.measure({ metric }),
      ),
    );
  if (summary.threads.length > 1)
    result.push(
      choice("Scope", (summary.scopeOptions ??= scopeOptions(summary)), s.scope, (scope) =>
        app.reshape({ scope }),
      ),
    );
  return result;
}

/** What a view can be drawn by, that of memory together. Lines have time, or memory.
 * @param {import('../session.js').Metric[]} metrics @param {string} page */
function metricsOf(metrics, page) {
  if (["waits", "states", "spots", "memory", "timeline"].includes(page)) return [];
  const memory = metrics.filter((m) => m.memory);
  const other = metrics.filter((m) => !m.memory);
  const rest = page === "source" ? other.slice(0, memory.length ? 1 : 0) : other;
  return metrics[0]?.memory ? [...memory, ...rest] : [...rest, ...memory];
}

/** @param {any} summary @returns {[string, string][]} */
function scopeOptions(summary) {
  /** @type {[string, string][]} */
  const list = [["all", "all threads"]];
  summary.processes.forEach((/** @type {any} */ process, /** @type {number} */ p) => {
    const many = summary.processes.length > 1;
    if (many) list.push([`p${p}`, `process ${process.pid}`]);
    summary.threads.forEach((/** @type {any} */ thread, /** @type {number} */ t) => {
      if (thread.process !== p || list.length > 2000) return;
      list.push([
        `t${t}`,
        `${many ? "  " : ""}${visible(shorten(thread.name || "thread", 30))} ${thread.tid}`,
      ]);
    });
  });
  return list;
}

/** @param {App} app */
function shapeControls(app) {
  const { s, session } = app;
  const page = app.shown?.id ?? "";
  if (["run", "waits", "source", "spots", "memory", "timeline"].includes(page)) return [];
  const several =
    session.summary(s).threads.length > 1 &&
    s.scope[0] !== "t" &&
    ["flame", "sunburst", "tree"].includes(page) &&
    !session.isDiff(s);
  return [
    several
      ? toggle(
          "Threads apart",
          s.apart,
          (apart) => app.reshape({ apart }),
          "Each thread as a tree of its own",
        )
      : null,
    toggle(
      "My code",
      s.mine,
      (mine) => app.reshape({ mine }),
      "Fold the standard library, installed packages and builtins: their time goes to your code (o)",
    ),
    toggle(
      "By module",
      s.group,
      (group) => app.reshape({ group, lines: false }),
      "A box is a stay in a module (g)",
    ),
    session.summary(s).memory.lined && session.metric(s).memory
      ? toggle(
          "By line",
          s.lines && !s.group,
          (lines) => app.reshape({ lines, group: false }),
          "Each line that allocates or calls is a box of its own (l)",
        )
      : null,
  ];
}

/** What was folded, kept or made the root, each with a button to undo it. @param {App} app */
function chips(app) {
  /** @type {[('fold' | 'keep' | 'root'), string][]} */
  const kinds = [
    ["fold", "hidden"],
    ["keep", "through"],
    ["root", "root"],
  ];
  // The view of memory has it below its curve.
  const range = app.session.asksMoment(app.s) ? null : app.session.range(app.s);
  const moment = app.shown?.id === "memory" ? null : app.session.moment(app.s);
  const at = range
    ? [chip(rangeWords(app, range), "", "the whole run again", () => app.showRange(null))]
    : moment
    ? [chip(momentTitle(moment), "", `no more ${momentTitle(moment)}`, () => app.showMoment(""))]
    : [];
  const shapes = kinds.flatMap(([kind, word]) =>
    app.s[kind].map((text) => {
      const name = /^#\d+$/.test(text) ? app.session.label(Number(text.slice(1))) : visible(text);
      return chip(`${word}: ${name.slice(0, 120)}`, name, `undo ${word} ${name.slice(0, 60)}`, () =>
        app.reshape({ [kind]: app.s[kind].filter((t) => t !== text) }),
      );
    }),
  );
  return [...at, ...shapes];
}

/** @param {App} app @param {import('./timeline/range.js').Range} range */
function rangeWords(app, range) {
  const { ranges } = app.session;
  return ranges.shown(app.s) ? `only ${rangeTitle(range)}` : `the whole run: ${ranges.trouble.text}`.slice(0, 120);
}

/** @param {string} text @param {string} whole @param {string} undo what its button is called @param {() => void} act */
function chip(text, whole, undo, act) {
  return el(
    "span.chip",
    null,
    el("span.name", { title: whole.slice(0, 300) || undefined }, text),
    el("button", { type: "button", "aria-label": undo, onclick: act }, "×"),
  );
}

/** @param {App} app */
function searchField(app) {
  const input = el("input", {
    id: "search",
    type: "search",
    placeholder: "Search  /",
    "aria-label": "Search functions by regular expression",
    autocomplete: "off",
    spellcheck: "false",
    oninput: () => app.store.set({ q: input.value }, true),
    onkeydown: (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Escape") {
        app.store.set({ q: "" }, true);
        input.blur();
      } else if (event.key === "Enter") app.shown?.next?.(event.shiftKey);
    },
  });
  return el("span.search", null, input, el("output", { "aria-live": "polite" }));
}

/** @param {App} app @param {HTMLElement} field */
function updateSearch(app, field) {
  const { s, session } = app;
  const input = /** @type {HTMLInputElement} */ (field.querySelector("input"));
  const output = /** @type {HTMLElement} */ (field.querySelector("output"));
  if (input.value !== s.q) input.value = s.q;
  const wrong = !!s.q && !session.matches(s).pattern;
  input.classList.toggle("wrong", wrong);
  const share = s.q && !wrong && session.hasNumbers(s) ? session.matchedShare(s) : null;
  output.textContent = wrong
    ? "not a regex"
    : share
      ? share.count
        ? formatShare(share.part, share.whole)
        : "none"
      : "";
  output.title = share?.count ? `${share.count} functions match` : "";
}

/** @param {App} app */
function pageControls(app) {
  return [
    menuButton("⤓", "Save or copy", () => [
      ["Picture as SVG", () => void app.savePicture("svg")],
      ["Picture as PNG", () => void app.savePicture("png")],
      null,
      ["Copy the stack", () => app.copyStack()],
      ["Copy a link to this state", () => app.copy(location.href)],
    ]),
    el(
      "button.icon",
      {
        type: "button",
        title: "Dark or light (d)",
        "aria-label": "Dark or light",
        onclick: () => app.setTheme(app.palette.dark ? "light" : "dark", true),
      },
      app.palette.dark ? "☀" : "☾",
    ),
    el("button.icon", { type: "button", title: "Keys (?)", "aria-label": "Help", onclick: showHelp }, "?"),
  ];
}
