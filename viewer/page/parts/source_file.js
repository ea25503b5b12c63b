// One file as the source view shows it: its lines in order with their numbers, of one recording or of two. Of two,
// lines are paired by their text, and lines that are no more stand where they were.

import { spotsByLine } from "./spots.js";

/**
 * @typedef {{hits: number, total: number, self: number, samples: number, func: number}} LineNumbers
 * @typedef {'same' | 'changed' | 'moved' | 'new' | 'gone'} LineKind
 * @typedef {{line: number, before: number, kind: LineKind, now: LineNumbers | null, old: LineNumbers | null}} SourceRow
 * `line` and `before` are line numbers, 0 for none
 * @typedef {import('../session.js').Session} Session @typedef {import('../state.js').PageState} PageState
 */

export class SourceFile {
  /** @param {Session} session @param {PageState} s @param {string} file */
  constructor(session, s, file) {
    this.file = file;
    this.diff = session.isDiff(s);
    const now = session.source(s, file);
    const old = this.diff ? session.source(s, file, true) : null;
    this.state = now.state;
    this.text = now.lines;
    this.oldText = old?.lines ?? [];
    this.functionLines = firstLines(now);
    const oldLines = old ? firstLines(old) : new Map();
    // Lines can only be compared with lines: where one recording has none, both show functions.
    this.ofLines = now.length > 0 || (!!old && old.length > 0);
    this.mixed = !!old && this.ofLines && lacksLines(now) !== lacksLines(old);
    if (this.mixed) this.ofLines = false;
    const table = session.table(s);
    const metric = session.metric(s);
    /** What lines have of memory, whatever is shown. @type {Map<string, Map<number, LineNumbers>>} */
    this.memory = new Map();
    for (const m of Object.values(session.memoryMetrics(s)))
      if (["peak", "leaked", "allocated", metric.key].includes(m.key))
        this.memory.set(m.key, memoryNumbers(session, s, m, file, ""));
    /** @type {import('../session.js').Metric | null} */
    this.ofMemory = metric.memory ? metric : null;
    if (this.ofMemory) [this.ofLines, this.mixed] = [true, false];
    this.numbers =
      (this.ofMemory && this.memory.get(metric.key)) ??
      (this.ofLines ? lineNumbers(now) : functionNumbers(this.functionLines, table, ""));
    this.oldNumbers = !old
      ? new Map()
      : this.ofMemory
        ? memoryNumbers(session, s, metric, file, "base")
        : this.ofLines
          ? lineNumbers(old)
          : functionNumbers(oldLines, table, "base");
    this.spots = spotsByLine(now.spots, now.lines);
    const alignment = this.diff ? session.alignment(s, file) : null;
    this.byNumber =
      this.diff && (alignment?.byNumber ?? true) && this.text.length > 0 && this.oldText.length > 0;
    this.rows = alignment && !alignment.byNumber ? alignedRows(alignment) : numberedRows(this);
    for (const row of this.rows) {
      row.now = this.numbers.get(row.line) ?? null;
      row.old = this.oldNumbers.get(row.before) ?? null;
    }
    const all = [...this.numbers.values(), ...this.oldNumbers.values()];
    // line_profiler's files know no time without callees.
    this.bySelf = all.some((n) => n.self > 0);
    this.hits = all.some((n) => n.hits > 0);
    this.samples = all.some((n) => n.samples > 0);
    this.hottest = all.reduce((most, n) => Math.max(most, this.heat(n)), 1);
    this.mostChanged = this.rows.reduce(
      (most, r) => Math.max(most, Math.abs(this.heat(r.now) - this.heat(r.old))),
      1,
    );
  }

  /** @param {LineNumbers | null | undefined} n */
  heat(n) {
    return n ? (this.bySelf ? n.self : n.total) : 0;
  }

  /** The row that matters most. */
  hottestRow() {
    let best = 0;
    let most = -1;
    this.rows.forEach((r, i) => {
      const weight = this.diff ? Math.abs(this.heat(r.now) - this.heat(r.old)) : this.heat(r.now);
      if (weight > most) [best, most] = [i, weight];
    });
    return best;
  }

  /** The function that a line belongs to, or -1. @param {number} line */
  functionAt(line) {
    let func = this.numbers.get(line)?.func ?? -1;
    /** @type {Map<number, number>} */
    const starts = new Map([...this.functionLines].reverse().map(([f, l]) => [l, f]));
    for (let up = line; func < 0 && up > 0; up--) func = starts.get(up) ?? -1;
    return func;
  }

  /** What a row shows. @param {SourceRow} row */
  textOf(row) {
    return (row.line ? this.text[row.line - 1] : this.oldText[row.before - 1]) ?? "";
  }
}

/** A file that ran, but whose lines nobody counted. @param {{length: number, functions: ArrayLike<number>}} got */
function lacksLines(got) {
  return got.length === 0 && got.functions.length > 0;
}

/** @param {import('../../engine/engine.js').SourceLines} got @returns {Map<number, number>} line by function */
function firstLines(got) {
  return new Map(Array.from(got.functions, (func, i) => [func, got.functionLines[i]]));
}

/** @param {Map<number, LineNumbers>} map @param {number} line @param {LineNumbers} more */
function add(map, line, more) {
  const n = map.get(line) ?? { hits: 0, total: 0, self: 0, samples: 0, func: more.func };
  map.set(line, {
    hits: n.hits + more.hits,
    total: n.total + more.total,
    self: n.self + more.self,
    samples: n.samples + more.samples,
    func: n.func,
  });
}

/** @param {import('../../engine/engine.js').SourceLines} got */
function lineNumbers(got) {
  /** @type {Map<number, LineNumbers>} */
  const map = new Map();
  for (let i = 0; i < got.length; i++)
    add(map, got.line[i], {
      hits: got.hits[i],
      total: got.total[i],
      self: got.self[i],
      samples: got.samples ? got.samples[i] : 0,
      func: got.func[i],
    });
  return map;
}

/** What the lines of a file have of a metric of memory. @param {Session} session @param {PageState} s
 * @param {import('../session.js').Metric} metric @param {string} file @param {"" | "base"} side */
function memoryNumbers(session, s, metric, file, side) {
  /** @type {Map<number, LineNumbers>} */
  const map = new Map();
  const table = session.lineTable(s, metric);
  const self = side ? table.baseSelf : table.self;
  const total = side ? table.baseTotal : table.total;
  for (let i = 0; i < table.length; i++) {
    const info = session.functions[table.func[i]];
    if (info.at && info.file === file && total?.[i])
      add(map, info.at, { hits: 0, total: total[i], self: self[i], samples: 0, func: info.of });
  }
  return map;
}

/** @param {Map<number, number>} lines @param {any} table @param {"" | "base"} side */
function functionNumbers(lines, table, side) {
  /** @type {Map<number, LineNumbers>} */
  const map = new Map();
  const column = (/** @type {string} */ name) =>
    table[side ? `base${name[0].toUpperCase()}${name.slice(1)}` : name] ?? [];
  const [calls, total, self, samples] = ["calls", "total", "self", "samples"].map(column);
  for (const [func, line] of lines) {
    const row = table.rowOf.get(func);
    if (row === undefined || !line) continue;
    add(map, line, {
      hits: calls[row],
      total: total[row],
      self: self[row],
      samples: samples[row] ?? 0,
      func,
    });
  }
  return map;
}

/** @param {number} line @param {number} before @param {LineKind} kind @returns {SourceRow} */
const rowAt = (line, before, kind) => ({ line, before, kind, now: null, old: null });

/** Lines of the new text in order; those that are no more before the line that follows them.
 * @param {import('./align.js').Alignment} alignment @returns {SourceRow[]} */
function alignedRows(alignment) {
  /** @type {SourceRow[]} */
  const rows = [];
  const { before, after, how } = alignment;
  let old = 0;
  const gone = (/** @type {number} */ until) => {
    for (; old < until; old++) if (after[old] < 0) rows.push(rowAt(0, old + 1, "gone"));
  };
  for (let j = 0; j < before.length; j++) {
    if (before[j] >= 0 && how[j] !== "moved") gone(before[j]);
    rows.push(rowAt(j + 1, before[j] + 1, before[j] < 0 ? "new" : (how[j] ?? "same")));
  }
  gone(after.length);
  return rows;
}

/** Line by line; without a text only those with numbers. @param {SourceFile} of @returns {SourceRow[]} */
function numberedRows(of) {
  const lines = of.text.length
    ? of.text.map((_, i) => i + 1)
    : [...new Set([...of.numbers.keys(), ...of.oldNumbers.keys()])].sort((a, b) => a - b);
  return lines.map((line) => rowAt(line, of.diff ? line : 0, "same"));
}
