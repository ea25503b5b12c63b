// Expressions that were executing when samples were taken: where they stand in a line, and lists of the hottest.
// A sample is counted for one expression only, the one that was executing, so nested expressions add up.

import { visible, visibleSource, shorten } from "./text.js";

/**
 * @typedef {{func: number, line: number, endLine: number, column: number, endColumn: number, samples: number, ns: number}} Spot
 * @typedef {{text: string, spot: Spot | null, all: Spot[]}} Piece  of a line; `spot` is the hottest of `all` that cover it
 * @typedef {{spot: Spot, before: boolean, ns: number, samples: number, base: number, baseSamples: number}} SpotRow
 * @typedef {import('../session.js').Session} Session @typedef {import('../state.js').PageState} PageState
 */

/** So many are compared with those of another recording: it needs the text of each. */
const MOST_COMPARED = 300;
/** The hottest of a line; more cannot be told apart. */
const MOST_IN_LINE = 100;
/** Below this share of the hottest of a file an expression is not marked. */
const FAINTEST = 0.02;

/** Columns count bytes of UTF-8 from 1: the index in the text. @param {string} line @param {number} column */
export function columnIndex(line, column) {
  let bytes = column - 1;
  let i = 0;
  while (bytes > 0 && i < line.length) {
    const code = /** @type {number} */ (line.codePointAt(i));
    bytes -= code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    i += code < 0x10000 ? 1 : 2;
  }
  return i;
}

/** The part of a line that an expression covers: whole without columns, without indentation where it began above.
 * @param {string} line @param {number} number of the line @param {Spot} spot @returns {[number, number]} */
function extent(line, number, spot) {
  const indented = line.length - line.trimStart().length;
  const known = spot.column > 0 && spot.endColumn > 0;
  const from = known && number === spot.line ? columnIndex(line, spot.column) : indented;
  const to =
    known && number === (spot.endLine || spot.line) ? columnIndex(line, spot.endColumn) : line.length;
  return [from, Math.max(from, to)];
}

/** A line cut where expressions begin and end. @param {string} line @param {number} number @param {Spot[]} spots of it
 * @returns {Piece[]} */
export function pieces(line, number, spots) {
  const parts = spots
    .map((spot) => ({ spot, at: extent(line, number, spot) }))
    .filter(({ at }) => at[0] < at[1]);
  const cuts = [...new Set([0, line.length, ...parts.flatMap(({ at }) => at)])].sort((a, b) => a - b);
  /** @type {Piece[]} */
  const result = [];
  for (let k = 0; k + 1 < cuts.length; k++) {
    const all = parts
      .filter(({ at }) => at[0] <= cuts[k] && at[1] >= cuts[k + 1])
      .map(({ spot }) => spot)
      .sort((a, b) => b.ns - a.ns);
    const text = line.slice(cuts[k], cuts[k + 1]);
    const last = result[result.length - 1];
    if (last && last.spot === (all[0] ?? null) && last.all.length === all.length) last.text += text;
    else result.push({ text, spot: all[0] ?? null, all });
  }
  return result;
}

/** The last line that is shown as part of it. The expression of a loop, a `with` or a class may be all of the statement:
 * then its head stands for it. @param {string[]} lines @param {Spot} spot */
function lastLine(lines, spot) {
  const head = /:\s*(#.*)?$/.test(lines[spot.line - 1] ?? "");
  return head ? spot.line : Math.max(spot.line, spot.endLine || spot.line);
}

/** What stands there, in one line of text. @param {string[]} lines @param {Spot} spot @param {number} [most] */
export function expressionText(lines, spot, most = 200) {
  const end = Math.min(lastLine(lines, spot), spot.line + 20);
  const words = [];
  for (let n = spot.line; n <= end; n++) {
    const line = lines[n - 1] ?? "";
    words.push(line.slice(...extent(line, n, spot)).trim());
  }
  return visible(shorten(words.filter(Boolean).join(" "), most));
}

/** Equal ones of several processes as one, the hottest first. @param {Spot[]} spots @returns {Spot[]} */
export function combineSpots(spots) {
  /** @type {Map<string, Spot>} */
  const byPlace = new Map();
  for (const { func, line, endLine, column, endColumn, samples, ns } of spots) {
    const key = [func, line, endLine, column, endColumn].join(" ");
    const known = byPlace.get(key);
    if (known) {
      known.samples += samples;
      known.ns += ns;
    } else byPlace.set(key, { func, line, endLine, column, endColumn, samples, ns });
  }
  return [...byPlace.values()].sort((a, b) => b.ns - a.ns);
}

/** Of each line its expressions, without those too faint to be marked. @param {Spot[]} spots of one file
 * @param {string[]} lines */
export function spotsByLine(spots, lines) {
  /** @type {Map<number, Spot[]>} */
  const byLine = new Map();
  const combined = combineSpots(spots);
  const least = (combined[0]?.ns ?? 0) * FAINTEST;
  for (const spot of combined) {
    if (spot.ns < least || !spot.ns) continue;
    for (let n = spot.line; n <= Math.min(lastLine(lines, spot), spot.line + 200); n++) {
      const list = byLine.get(n) ?? [];
      if (list.length < MOST_IN_LINE) list.push(spot);
      byLine.set(n, list);
    }
  }
  return { byLine, hottest: combined[0]?.ns ?? 1 };
}

/** The hottest of the whole run; against another recording with what they were before: the same text in the same line of
 * the same function. @param {Session} session @param {PageState} s @returns {SpotRow[]} */
export function hottestSpots(session, s) {
  const process = session.processOf(s);
  const diff = session.isDiff(s);
  const ofRun = (/** @type {any} */ summary) => {
    const all = combineSpots(
      summary.spots.filter((/** @type {any} */ w) => process < 0 || w.process === process),
    );
    return diff ? all.slice(0, MOST_COMPARED) : all;
  };
  /** @type {Map<string, SpotRow>} */
  const rows = new Map();
  const add = (/** @type {Spot} */ spot, /** @type {boolean} */ before) => {
    const key = diff ? comparedKey(session, s, spot, before) : String(rows.size);
    const row = rows.get(key) ?? { spot, before, ns: 0, samples: 0, base: 0, baseSamples: 0 };
    row[before ? "base" : "ns"] += spot.ns;
    row[before ? "baseSamples" : "samples"] += spot.samples;
    rows.set(key, row);
  };
  for (const spot of ofRun(session.summary(s))) add(spot, false);
  if (diff) for (const spot of ofRun(session.baseSummary(s))) add(spot, true);
  const weight = (/** @type {SpotRow} */ r) => (diff ? Math.abs(r.ns - r.base) : r.ns);
  return [...rows.values()].sort((a, b) => weight(b) - weight(a));
}

/** @param {Session} session @param {PageState} s @param {Spot} spot @param {boolean} before */
function comparedKey(session, s, spot, before) {
  const file = session.functions[spot.func]?.file ?? "";
  const text = expressionText(session.source(s, file, before).lines, spot, 2000);
  const now = before ? session.lineNow(s, file, spot.line) : spot.line;
  // A line that is no more is compared with nothing.
  return `${spot.func} ${now || `before ${spot.line}`} ${text || [spot.column, spot.endLine - spot.line, spot.endColumn]}`;
}

/** The text of one of these rows. @param {Session} session @param {PageState} s @param {SpotRow} row @param {number} [most] */
export function rowText(session, s, row, most) {
  const file = session.functions[row.spot.func]?.file;
  return file ? expressionText(session.source(s, file, row.before).lines, row.spot, most) : "";
}

/** What shares are of: all recorded time of the process, or of all. @param {Session} session @param {PageState} s */
export function wholeTime(session, s) {
  const process = session.processOf(s);
  return session
    .summary(s)
    .threads.reduce(
      (/** @type {number} */ sum, /** @type {any} */ t) =>
        sum + (process < 0 || t.process === process ? t.value : 0),
      0,
    );
}

/** A line of source with its expressions marked. @param {(what: string, props: any, ...children: any[]) => any} el
 * @param {Piece[]} parts @param {number} hottest */
export function markedLine(el, parts, hottest) {
  return parts.map((piece, i) =>
    piece.spot
      ? el(
          "span.spot",
          { "data-piece": i, style: { "--strength": ((piece.spot.ns / hottest) ** 0.5).toFixed(3) } },
          visibleSource(piece.text),
        )
      : visibleSource(piece.text),
  );
}
