// Colours of functions. Chosen so that they differ in lightness too, and no meaning hangs on red against green:
// differences go from blue to red, states and metrics have the colours that the engine says.

/** @typedef {import('../session.js').Session} Session @typedef {import('../state.js').PageState} PageState */

/** Hue, saturation and lightness in percent. Searched for so that any two, the grey of built-ins among them, are far apart (CIE 76)
 * not only for normal but also for protan and deutan sight: at least 11, those of states at least 16. On a dark page all
 * are dark enough for white letters. */
const MODULES_LIGHT = [
  [224, 70, 72],
  [30, 74, 71],
  [168, 46, 60],
  [52, 68, 82],
  [354, 68, 74],
  [200, 68, 80],
  [73, 42, 52],
  [272, 38, 70],
];
const MODULES_DARK = [
  [224, 45, 31],
  [30, 46, 29],
  [178, 25, 37],
  [60, 44, 31],
  [354, 46, 25],
  [208, 36, 45],
  [73, 20, 38],
  [252, 38, 47],
];

/** @param {string} variable */
function cssColor(variable) {
  return getComputedStyle(document.documentElement).getPropertyValue(variable).trim();
}

/** What drawings need of the style sheet, read once per theme. */
export function readPalette() {
  const dark = document.documentElement.dataset.theme === "dark";
  /** @type {Record<string, string>} */
  const colors = {};
  for (const name of [
    "paper",
    "panel",
    "line-strong",
    "ink",
    "ink-soft",
    "ink-faint",
    "accent",
    "mark",
    "select",
    "error",
    "collection",
  ])
    colors[name] = cssColor(`--${name}`);
  return { dark, colors };
}

/** @typedef {ReturnType<typeof readPalette>} Palette */

/** @param {number} h @param {number} s @param {number} l */
const hsl = (h, s, l) => `hsl(${h.toFixed(0)} ${s.toFixed(0)}% ${l.toFixed(1)}%)`;

/** A small number that depends on the id alone, to tell neighbours of one module apart. @param {number} id */
function jitter(id) {
  return (Math.imul(id + 1, 2654435761) >>> 24) / 255 - 0.5;
}

/** @param {number} slot of MODULES_LIGHT, or -1 for grey @param {boolean} dark @param {number} shift */
function moduleColor(slot, dark, shift) {
  if (slot < 0) return dark ? hsl(215, 8, 29 + shift * 4) : hsl(215, 12, 89 + shift * 4);
  const [h, s, l] = (dark ? MODULES_DARK : MODULES_LIGHT)[slot];
  return hsl(h, s, l + shift * 5);
}

/** The colours of modules, the last that of everything without one. @param {boolean} dark */
export function modulePalette(dark) {
  return [...MODULES_LIGHT.keys(), -1].map((slot) => moduleColor(slot, dark, 0));
}

/** From blue over neutral to red; t from -1 to 1. @param {number} t @param {boolean} dark */
export function diffColor(t, dark) {
  const strength = Math.min(1, Math.abs(t)) ** 0.6;
  if (Math.abs(t) < 1e-4) return dark ? hsl(215, 6, 30) : hsl(215, 12, 92);
  const hue = t > 0 ? 6 : 212;
  return dark
    ? hsl(hue, 12 + 58 * strength, 30 + 14 * strength)
    : hsl(hue, 20 + 58 * strength, 92 - 32 * strength);
}

/** From nothing to much; t from 0 to 1. @param {number} t @param {boolean} dark */
export function heatColor(t, dark) {
  const s = Math.min(1, Math.max(0, t)) ** 0.5;
  return dark ? hsl(42 - 20 * s, 12 + 60 * s, 24 + 22 * s) : hsl(48 - 26 * s, 52 + 36 * s, 94 - 33 * s);
}

/**
 * Gives every function its colour in the chosen way.
 * @param {Session} session @param {PageState} s @param {Palette} palette
 * @returns {{of: (func: number) => string, legend: [string, string][]}}
 */
export function functionColors(session, s, palette) {
  if (session.isDiff(s)) return diffColors(session, s, palette);
  if (s.color === "self") return selfColors(session, s, palette);
  if (s.color === "state" && session.summary(s).states) return stateColors(session, s, palette);
  return moduleColors(session, s, palette);
}

/** A cache in front of `make`. @param {(func: number) => string} make */
function remembered(make) {
  /** @type {string[]} */
  const cache = [];
  return (/** @type {number} */ func) => (cache[func] ??= make(func));
}

/** @param {Session} session @param {PageState} s @param {Palette} palette */
function moduleColors(session, s, palette) {
  const table = session.table(s);
  /** @type {Map<string, number>} */
  const weight = new Map();
  for (let i = 0; i < table.length; i++) {
    const info = session.functions[table.func[i]];
    if (!info || info.kind === "c") continue;
    const top = topModule(info);
    // As wide as its widest function; one's own code first, for it is what one looks for.
    weight.set(top, Math.max(weight.get(top) ?? 0, table.total[i] * (info.library ? 1 : 1000)));
  }
  // A module that nobody can see need not be explained.
  const least = table.sum / 1000;
  const ranked = [...weight]
    .filter(([, w]) => w >= least)
    .sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))
    .slice(0, MODULES_LIGHT.length)
    .map(([name]) => name);
  const slots = new Map(ranked.map((name, i) => [name, i]));
  const of = remembered((func) => {
    const info = session.functions[func];
    const plain = !info || info.kind === "c" || info.kind === "thread" || info.kind === "root";
    return moduleColor(plain ? -1 : (slots.get(topModule(info)) ?? -1), palette.dark, jitter(func));
  });
  /** @type {[string, string][]} */
  const legend = ranked.map((name, i) => [modulePalette(palette.dark)[i], name]);
  legend.push([moduleColor(-1, palette.dark, 0), "built-in and other"]);
  return { of, legend };
}

/** "json" of "json.decoder": what belongs together gets one colour. @param {any} info */
function topModule(info) {
  const module = info.kind === "module" ? info.name : info.module;
  return (module || "?").split(".")[0];
}

/** @param {Session} session @param {PageState} s @param {Palette} palette */
function selfColors(session, s, palette) {
  const table = session.table(s);
  let most = 0;
  for (let i = 0; i < table.length; i++) most = Math.max(most, table.self[i]);
  const of = remembered((func) => {
    const row = table.rowOf.get(func);
    return heatColor(row === undefined || !most ? 0 : table.self[row] / most, palette.dark);
  });
  return {
    of,
    legend: /** @type {[string, string][]} */ ([
      [heatColor(0, palette.dark), "no self time"],
      [heatColor(0.25, palette.dark), ""],
      [heatColor(1, palette.dark), "most self time of a function"],
    ]),
  };
}

/** The state in which most of a function's own time went. @param {Session} session @param {PageState} s @param {Palette} palette */
function stateColors(session, s, palette) {
  const table = session.table(s);
  const { stateTitles: titles, stateColors: both } = session.summary(s);
  const states = both.map((/** @type {string[]} */ pair) => pair[palette.dark ? 1 : 0]);
  // Shares of time, whatever the metric is.
  const time = session.metric(s).unit === "ns" ? table.total : new Float64Array(table.length);
  const used = new Set();
  /** @param {number} func */
  const main = (func) => {
    const row = table.rowOf.get(func);
    if (row === undefined || !table.states) return -1;
    let best = -1;
    let own = 0;
    const values = table.statesOf(row);
    for (const value of values) own += value;
    // What only calls others has no state worth a colour.
    if (own < time[row] * 0.03) return -1;
    for (let k = 0, most = 0; k < values.length; k++) {
      if (values[k] <= most) continue;
      most = values[k];
      best = k;
    }
    return best;
  };
  for (let i = 0; i < table.length; i++) used.add(main(table.func[i]));
  const none = moduleColor(-1, palette.dark, 0);
  const of = remembered((func) => states[main(func)] ?? none);
  /** @type {[string, string][]} */
  const legend = titles
    .map((/** @type {string} */ t, /** @type {number} */ k) => [states[k], t])
    .filter((/** @type {any} */ _, /** @type {number} */ k) => used.has(k));
  legend.push([none, "little time of its own"]);
  return { of, legend };
}

/** @param {Session} session @param {PageState} s @param {Palette} palette */
function diffColors(session, s, palette) {
  const table = session.table(s);
  let most = 0;
  for (let i = 0; i < table.length; i++) most = Math.max(most, Math.abs(table.total[i] - table.baseTotal[i]));
  const of = remembered((func) => {
    const row = table.rowOf.get(func);
    return row === undefined
      ? diffColor(0, palette.dark)
      : diffColor(change(table.total[row], table.baseTotal[row], s.rel, most), palette.dark);
  });
  return { of, legend: diffLegend(palette) };
}

/** How much a number changed, -1 to 1: of itself, or of the most that anything changed.
 * @param {number} value @param {number} base @param {boolean} relative @param {number} most */
export function change(value, base, relative, most) {
  if (!relative) return most ? (value - base) / most : 0;
  return value + base ? (value - base) / Math.max(value, base) : 0;
}

/** @param {Palette} palette @returns {[string, string][]} */
export function diffLegend(palette) {
  return [
    [diffColor(-1, palette.dark), "less than before"],
    [diffColor(0, palette.dark), "the same"],
    [diffColor(1, palette.dark), "more than before"],
  ];
}
