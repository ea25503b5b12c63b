// Memory over time: from looks at each process to the curves of one of them or of all together, and how they are drawn.

/**
 * @typedef {import('../../engine/engine.js').MemoryPoints} MemoryPoints
 * @typedef {{key: string, title: string, values: Float64Array}} Curve  NaN where nothing is known
 * @typedef {{first: number, ns: Float64Array, curves: Curve[], limit: number, peak: number, peakCurve: Curve | null}} Curves
 *   `first` is when the run began, `ns` since then, `limit` 0 for none, `peak` the place of the highest heap, or resident memory, or -1
 */

const RUN = 0xffffffff;
const KINDS = /** @type {const} */ ([
  ["heap", "heap"],
  ["rss", "resident"],
  ["pss", "proportional"],
  ["swap", "swapped out"],
]);

/** The processes that were looked at. @param {MemoryPoints} points @returns {number[]} */
export function processesOf(points) {
  return [...new Set(points.process)].filter((p) => p !== RUN).sort((a, b) => a - b);
}

/** Where the looks of each process lie. @param {MemoryPoints} points @returns {Map<number, number[]>} */
function byProcess(points) {
  /** @type {Map<number, number[]>} */
  const rows = new Map();
  for (let i = 0; i < points.length; i++) {
    const list = rows.get(points.process[i]);
    if (list) list.push(i);
    else rows.set(points.process[i], [i]);
  }
  for (const list of rows.values()) list.sort((a, b) => points.ns[a] - points.ns[b]);
  return rows;
}

/** What was known last, at these times, from the first look of a list to its last. Elsewhere NaN.
 * @param {Float64Array} ns @param {MemoryPoints} points @param {number[]} rows @param {Float64Array} values */
function stepped(ns, points, rows, values) {
  const out = new Float64Array(ns.length).fill(NaN);
  if (!rows.length) return out;
  const last = points.ns[rows[rows.length - 1]];
  let k = 0;
  for (let i = 0; i < ns.length; i++) {
    while (k + 1 < rows.length && points.ns[rows[k + 1]] <= ns[i]) k++;
    if (points.ns[rows[k]] > ns[i] || ns[i] > last) continue;
    if (values[rows[k]] >= 0) out[i] = values[rows[k]];
  }
  return out;
}

/** @param {Float64Array[]} lists @param {number} length */
function summed(lists, length) {
  const out = new Float64Array(length).fill(NaN);
  for (const list of lists)
    for (let i = 0; i < length; i++)
      if (!Number.isNaN(list[i])) out[i] = (Number.isNaN(out[i]) ? 0 : out[i]) + list[i];
  return out;
}

/** The curves of one process, or of all (-1): as the run was looked at, else the sum of its processes.
 * @param {MemoryPoints} points @param {number} process @param {number} [begin] of the run, if that is known
 * @returns {Curves} */
export function curvesOf(points, process, begin = Infinity) {
  const rows = byProcess(points);
  const run = rows.get(RUN) ?? [];
  const parts =
    process < 0 ? [...rows].filter(([p]) => p !== RUN).map(([, list]) => list) : [rows.get(process) ?? []];
  const seen = new Set([...parts.flat(), ...(process < 0 ? run : [])].map((i) => points.ns[i]));
  const ns = Float64Array.from(seen).sort();
  /** @type {Curve[]} */
  const curves = [];
  for (const [key, title] of KINDS) {
    const whole = process < 0 ? stepped(ns, points, run, points[key]) : new Float64Array();
    const values = whole.some((v) => !Number.isNaN(v))
      ? whole
      : summed(
          parts.map((list) => stepped(ns, points, list, points[key])),
          ns.length,
        );
    if (values.some((v) => !Number.isNaN(v))) curves.push({ key, title, values });
  }
  const limit = run.reduce((most, i) => Math.max(most, points.limit[i]), 0);
  const first = points.length ? points.ns.reduce((a, b) => Math.min(a, b), begin) : 0;
  const peakCurve = curves[0] ?? null;
  return {
    first,
    ns: ns.map((t) => t - first),
    curves,
    limit,
    peak: peakCurve ? highest(peakCurve.values) : -1,
    peakCurve,
  };
}

/** @param {Float64Array} values */
function highest(values) {
  let best = -1;
  for (let i = 0; i < values.length; i++)
    if (!Number.isNaN(values[i]) && (best < 0 || values[i] > values[best])) best = i;
  return best;
}

/** Round steps of an axis up to `most`: 1, 2 or 5 times a power of ten, or of two for bytes.
 * @param {number} most @param {number} count @param {boolean} binary */
export function axisSteps(most, count, binary) {
  const rough = Math.max(most, 1) / count;
  const base = binary ? 2 ** (10 * Math.floor(Math.log2(rough) / 10)) : 1;
  const power = 10 ** Math.floor(Math.log10(rough / base));
  const step = [1, 2, 5, 10].map((n) => n * power * base).find((n) => n >= rough) ?? rough;
  const steps = [];
  for (let v = 0; v <= most * 1.0001; v += step) steps.push(v);
  return steps;
}
