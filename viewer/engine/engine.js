/**
 * The engine as the page sees it: recordings, views, results as typed arrays. viewer/ENGINE.md is its manual.
 *
 * Owns the WebAssembly instance and everything about its memory; nothing outside this file knows an address.
 * Results are copied out of the engine's memory, so they stay valid whatever is called next.
 */

/** A sentence for the user about what could not be done. */
export class EngineError extends Error {}

const noId = 0xffffffff;
const engineOrders = ["heavy", "name", "recorded"];
const engineWidths = ["value", "base", "both"];
const heapTables = ["sizes", "lives", "kinds"];
const sourceStates = ["file", "generated", "changed", "none"];

/**
 * @typedef {{ id: number, name: string, qualname: string, file: string, line: number, twin: number, kind: string,
 *   flags: number, module: string, library: boolean, at: number, of: number }} FunctionInfo
 * @typedef {{ id: number, key: string, title: string, unit: string, exact: boolean, hasTotal: boolean,
 *   memory: boolean, colors: [string, string]|null }} MetricInfo
 * @typedef {{ recording: number, base?: number, process?: number, thread?: number,
 *   threads?: "apart"|"together", fold?: (string|number)[], foldLibraries?: boolean,
 *   keep?: (string|number)[], root?: (string|number)[], group?: "function"|"module"|"line",
 *   reversed?: boolean, callersOf?: number }} ViewOptions
 * @typedef {{ length: number, scalars: number[], columns: (Uint32Array|Float64Array)[] }} RawResult
 * @typedef {{ length: number, node: Uint32Array, func: Uint32Array, depth: Uint32Array,
 *   parent: Uint32Array, start: Float64Array, width: Float64Array, value: Float64Array,
 *   self: Float64Array, base: Float64Array|null, baseSelf: Float64Array|null,
 *   omitted: number, deeper: number, truncated: boolean }} Boxes
 * @typedef {{ length: number, node: Uint32Array, func: Uint32Array, children: Uint32Array,
 *   value: Float64Array, self: Float64Array, calls: Float64Array, base: Float64Array|null,
 *   baseSelf: Float64Array|null, baseCalls: Float64Array|null, omitted: number }} TreeRows
 * @typedef {{ node: number, func: number, parent: number, children: number, value: number,
 *   self: number, calls: number, base: number, baseSelf: number, baseCalls: number }} NodeInfo
 * @typedef {{ length: number, func: Uint32Array, nodes: Uint32Array, calls: Float64Array,
 *   primitive: Float64Array, self: Float64Array, total: Float64Array, min: Float64Array,
 *   max: Float64Array, suspended: Float64Array, samples: Float64Array, states: Float64Array|null,
 *   statesOf: (row: number) => Float64Array, further: (row: number, k: number) => number,
 *   baseCalls: Float64Array|null, baseSelf: Float64Array|null, baseTotal: Float64Array|null,
 *   selfError: Float64Array|null, totalError: Float64Array|null, sum: number, baseSum: number }} FunctionTable
 * @typedef {{ length: number, func: Uint32Array, calls: Float64Array, self: Float64Array,
 *   total: Float64Array, baseCalls: Float64Array|null, baseTotal: Float64Array|null }} Neighbours
 * @typedef {{ nodes: { length: number, func: Uint32Array, layer: Uint32Array, x: Float64Array,
 *     y: Float64Array, total: Float64Array, self: Float64Array, calls: Float64Array,
 *     baseTotal: Float64Array|null, baseSelf: Float64Array|null },
 *   edges: { length: number, from: Uint32Array, to: Uint32Array, pointsStart: Uint32Array,
 *     pointsCount: Uint32Array, total: Float64Array, calls: Float64Array,
 *     baseTotal: Float64Array|null },
 *   points: { length: number, x: Float64Array, y: Float64Array }, width: number, height: number,
 *   omittedNodes: number, omittedEdges: number, sum: number, baseSum: number }} CallGraph
 * @typedef {{ file: string, state: string, text: string|null, length: number, line: Uint32Array,
 *   func: Uint32Array, hits: Float64Array, total: Float64Array, self: Float64Array,
 *   min: Float64Array, max: Float64Array, samples: Float64Array, states: Float64Array|null,
 *   functions: Uint32Array, functionLines: Uint32Array,
 *   spots: { func: number, line: number, endLine: number, column: number, endColumn: number,
 *     samples: number, ns: number }[] }} SourceLines
 * @typedef {{ length: number, process: Uint32Array, ns: Float64Array, heap: Float64Array, rss: Float64Array,
 *   pss: Float64Array, swap: Float64Array, limit: Float64Array }} MemoryPoints
 * @typedef {{ process: number, table: string, bucket: number, from: number, to: number, blocks: number,
 *   bytes: number }} HeapCount
 * @typedef {{ process: number, name: string, level: number, thread: number, begin: number, end: number,
 *   beginBytes: number, endBytes: number }} RegionVisit
 * @typedef {{ process: number, around: number, name: string, entered: number, open: number, ns: number,
 *   memory: boolean, allocated: number, freed: number, aboveMost: number }} RegionInfo
 * @typedef {{ process: number, highest: boolean, ns: number, rss: number, untouched: number,
 *   bytes: number[] }} ResidentAccount
 * @typedef {{ points: MemoryPoints, counts: HeapCount[], visits: RegionVisit[], regions: RegionInfo[],
 *   parts: string[], residents: ResidentAccount[] }} MemoryFacts
 * @typedef {{ sampled: boolean, process: number, thread: number, begin: number, end: number, events: number,
 *   lost: number, depth: number }} Lane
 * @typedef {{ startNs: number, lengthNs: number, lanesInAll: number, runs: number, uncertainNs: number,
 *   lanes: Lane[] }} TimelineFacts
 * @typedef {{ length: number, begin: Float64Array, end: Float64Array, func: Uint32Array, depth: Uint32Array,
 *   longest: Float64Array, spans: Float64Array, covered: Uint32Array, flags: Uint32Array, state: Uint32Array,
 *   truncated: boolean }} Cells
 * @typedef {{ begin: number, end: number, kind: string, lane: number, name: string, func: number, count: number,
 *   value: number, lowest: number, highest: number, other: number }} TimelineMark
 * @typedef {{ process: number, lane: number, number: number, name: string, creator: number, created: number,
 *   done: number }} TimelineTask
 * @typedef {{ fromLane: number, toLane: number, from: number, to: number }} TimelineFlow
 * @typedef {{ lane: number, other: number, depth: number, idle: number, taken: number, after: number, before: number }} TimelineTurn
 * @typedef {{ known: boolean, turns: number, waits: number, least: number, most: number, longest: number, longestAt: number }} GilWaits
 * @typedef {{ trace: number, block: number, at: number, bytes: number }} WantedBlock
 * @typedef {{ begin: number, end: number, func: number, depth: number, flags: number, lane: number }} TimeSpan
 * @typedef {{ func: number, self: number, usualSelf: number, times: number, usualTimes: number }} CallDifference
 * @typedef {{ calls: number, sum: number, half: number, spans: number, slowest: TimeSpan, differs: CallDifference[],
 *   unlike: CallDifference[] }} CallGroup
 * @typedef {{ groups: CallGroup[], count: number, calls: number }} CallGroups
 * @typedef {{ calls: number, sum: number, min: number, max: number, longest: TimeSpan[],
 *   buckets: { from: number, to: number, calls: number }[] }} Durations
 */

/** What a cell says of itself. */
export const CELL = { EXACT: 1, LOST: 2, ERROR: 4 };
/** What a span says of itself. */
export const SPAN = { BEGAN_BEFORE: 1, OPEN: 2, UNWOUND: 4, RESUMED: 8, YIELDED: 16, REGION: 32, COLLECTION: 64 };
const markKinds = ["exception", "collection", "instant", "counter", "region", "lost", "task", "fork", "waited", "clock",
  "await", "value", "result", "variable"];

export class Engine {
  /** @param {WebAssembly.Instance} instance */
  constructor(instance) {
    /** @type {any} */
    this.wasm = instance.exports;
    this.dead = false;
    this.decoder = new TextDecoder();
    this.encoder = new TextEncoder();
  }

  /** @param {BufferSource} bytes @returns {Promise<Engine>} */
  static async load(bytes) {
    if (typeof WebAssembly !== "object")
      throw new EngineError("This browser has no WebAssembly, which the viewer needs.");
    let made;
    try {
      made = await WebAssembly.instantiate(bytes, {});
    } catch (error) {
      throw new EngineError(`The viewer's engine cannot be started in this browser: ${error}.`);
    }
    if (made.instance.exports._initialize)
      /** @type {any} */ (made.instance.exports)._initialize();
    return new Engine(made.instance);
  }

  /**
   * Call an exported function. A trap ends the engine: its memory may be in any state.
   * @param {string} name @param {...number} args @returns {number}
   */
  invoke(name, ...args) {
    if (this.dead)
      throw new EngineError("The viewer's engine has stopped. Reload the page to go on.");
    try {
      return this.wasm[name](...args);
    } catch (error) {
      this.dead = true;
      const full = this.wasm.memory.buffer.byteLength > 3e9;
      throw new EngineError(full ? "The viewer is out of memory: the recording is too large for it."
        : `The viewer's engine has stopped (${error}). Reload the page to go on.`);
    }
  }

  /** As invoke, and a negative answer is an error. @param {string} name @param {...number} args */
  run(name, ...args) {
    const answer = this.invoke(name, ...args);
    if (answer < 0) {
      this.invoke("engine_error");
      throw new EngineError(this.text());
    }
    return answer;
  }

  /** The text that the last call left. @returns {string} */
  text() {
    const at = this.invoke("engine_text"), length = this.invoke("engine_text_length");
    return this.decoder.decode(new Uint8Array(this.wasm.memory.buffer, at >>> 0, length >>> 0));
  }

  /** Bytes into the engine's memory, which it will free. @param {Uint8Array} bytes */
  give(bytes) {
    const at = this.invoke("engine_alloc", bytes.length) >>> 0;
    if (at === 0)
      throw new EngineError("The viewer is out of memory: the recording is too large for it.");
    new Uint8Array(this.wasm.memory.buffer, at, bytes.length).set(bytes);
    return at;
  }

  /** @param {ArrayLike<number>} numbers */
  giveNumbers(numbers) {
    return this.give(new Uint8Array(Uint32Array.from(numbers).buffer));
  }

  /** A result, copied. Knows struct fm_result of engine.h. @param {number} which @returns {RawResult} */
  result(which) {
    const at = this.invoke("engine_results", which) >>> 0;
    const memory = this.wasm.memory.buffer, look = new DataView(memory);
    const length = look.getUint32(at, true), count = look.getUint32(at + 4, true);
    const scalars = [], columns = [];
    for (let i = 0; i < 8; i++)
      scalars.push(look.getFloat64(at + 8 + 8 * i, true));
    for (let i = 0; i < count; i++) {
      const data = look.getUint32(at + 72 + 12 * i, true);
      const type = look.getUint32(at + 76 + 12 * i, true);
      const values = look.getUint32(at + 80 + 12 * i, true);
      columns.push(type === 0 ? new Uint32Array(memory, data, values).slice()
        : new Float64Array(memory, data, values).slice());
    }
    return { length, scalars, columns };
  }

  /** @param {Uint8Array} bytes a plain .fathom file @param {string} name @returns {number} */
  open(bytes, name) {
    const data = this.give(bytes), label = this.encoder.encode(name);
    return this.run("engine_open", data, bytes.length, this.give(label), label.length);
  }

  /** @param {number} recording */
  close(recording) {
    this.invoke("engine_close", recording);
  }

  /** @param {number} recording @returns {any} see ENGINE.md */
  summary(recording) {
    this.run("engine_summary", recording);
    return JSON.parse(this.text());
  }

  /** @param {number} [from] @returns {FunctionInfo[]} */
  functions(from = 0) {
    this.run("engine_functions", from);
    return JSON.parse(this.text());
  }

  /**
   * @param {number} recording @param {string} file @param {number} [process]
   * @returns {SourceLines}
   */
  source(recording, file, process = -1) {
    const path = this.encoder.encode(file);
    this.run("engine_source", recording, this.give(path), path.length, process);
    const rows = this.result(0), found = this.result(2);
    const [functions, functionLines] = /** @type {any} */ (this.result(1).columns);
    const names = ["func", "line", "endLine", "column", "endColumn", "samples", "ns"];
    const spots = Array.from({ length: found.length }, (_, i) =>
      /** @type {any} */ (Object.fromEntries(names.map((name, k) => [name, found.columns[k][i]]))));
    const [line, func, hits, total, self, min, max, samples, states] = /** @type {any} */ (rows.columns);
    const [state, hasText, hasStates] = rows.scalars;
    return { file, state: sourceStates[state], text: hasText ? this.text() : null,
      length: rows.length, line, func, hits, total, self, min, max, samples,
      states: hasStates ? states : null, functions, functionLines, spots };
  }

  /** @param {number} recording @returns {MemoryFacts} */
  memory(recording) {
    this.run("engine_memory", recording);
    const curve = this.result(0), found = this.result(1);
    const [process, ns, heap, rss, pss, swap, limit] = /** @type {any} */ (curve.columns);
    const [of, table, bucket, from, to, blocks, bytes] = found.columns;
    const counts = Array.from({ length: found.length }, (_, i) => ({ process: of[i], table: heapTables[table[i]] ?? "",
      bucket: bucket[i], from: from[i], to: to[i], blocks: blocks[i], bytes: bytes[i] }));
    const { names, regions, parts, residents } = JSON.parse(this.text()), marks = this.result(2);
    const [who, name, level, thread, begin, end, beginBytes, endBytes] = marks.columns;
    const visits = Array.from({ length: marks.length }, (_, i) => ({ process: who[i], name: names[name[i]],
      level: level[i], thread: thread[i], begin: begin[i], end: end[i], beginBytes: beginBytes[i], endBytes: endBytes[i] }));
    return { points: { length: curve.length, process, ns, heap, rss, pss, swap, limit }, counts, visits, regions,
      parts, residents };
  }

  /**
   * Let the metrics of an instant be those of `to`, in ns since the run began; of `from` before. Negative: none.
   * @param {number} recording @param {number} from @param {number} to
   */
  moment(recording, from, to) {
    this.run("engine_moment", recording, from, to);
    const [shownFrom, fromProcesses, shownTo, toProcesses] = this.result(0).scalars;
    return { from: shownFrom, fromProcesses, to: shownTo, toProcesses };
  }

  /** What happened when, if that was recorded. @param {number} recording @returns {TimelineFacts | null} */
  timeline(recording) {
    this.run("engine_timeline", recording);
    return JSON.parse(this.text());
  }

  /**
   * What a lane shows between two instants, in pieces not shorter than `cell` but for whole spans.
   * @param {number} recording @param {number} lane @param {number} from @param {number} to @param {number} cell ns
   * @returns {Cells}
   */
  cells(recording, lane, from, to, cell) {
    this.run("engine_timeline_cells", recording, lane, from, to, cell);
    const { length, scalars, columns } = this.result(0);
    const [begin, end, func, depth, longest, spans, covered, flags, state] = /** @type {any} */ (columns);
    return { length, begin, end, func, depth, longest, spans, covered, flags, state, truncated: !!scalars[0] };
  }

  /**
   * @param {number} recording @param {number} from @param {number} to @param {number} cell ns: marks of one kind that
   *   begin within one are put together
   * @returns {{ marks: TimelineMark[], truncated: boolean }}
   */
  marks(recording, from, to, cell) {
    this.run("engine_timeline_marks", recording, from, to, cell);
    const names = JSON.parse(this.text()), { length, scalars, columns } = this.result(0);
    const [begin, end, kind, lane, name, func, count, value, lowest, highest, other] = columns;
    const marks = Array.from({ length }, (_, i) => ({ begin: begin[i], end: end[i], kind: markKinds[kind[i]] ?? "",
      lane: lane[i] === noId ? -1 : lane[i], name: names[name[i]], func: func[i] === noId ? -1 : func[i], count: count[i], value: value[i],
      lowest: lowest[i], highest: highest[i], other: other[i] }));
    return { marks, truncated: !!scalars[0] };
  }

  /**
   * What is known of a span, arguments first ("return" and "yield" are its results); without a depth: of variables that lie
   * between two instants of the lane.
   * @param {number} recording @param {number} lane @param {number} begin @param {number} end @param {number} [depth]
   * @returns {[string, string][]}
   */
  values(recording, lane, begin, end, depth = -1) {
    this.run("engine_timeline_values", recording, lane, begin, end, depth);
    return this.namedTexts();
  }

  /** What an instant, or a region that need not nest, was given. @param {number} recording @param {TimelineMark} mark
   * @returns {[string, string][]} */
  markValues(recording, { lane, kind, begin, value }) {
    this.run("engine_timeline_mark_values", recording, lane, markKinds.indexOf(kind), begin, value);
    return this.namedTexts();
  }

  /** @returns {[string, string][]} */
  namedTexts() {
    const list = JSON.parse(this.text());
    return Array.from({ length: list.length / 2 }, (_, i) => [list[2 * i], list[2 * i + 1]]);
  }

  /** Tasks of asyncio, and which process made which.
   * @param {number} recording @returns {{ tasks: TimelineTask[], more: boolean, flows: TimelineFlow[] }} */
  tasks(recording) {
    this.run("engine_timeline_tasks", recording);
    const names = JSON.parse(this.text()), { length, scalars, columns } = this.result(0), made = this.result(1);
    const [process, lane, number, name, creator, created, done] = columns;
    const tasks = Array.from({ length }, (_, i) => ({ process: process[i], lane: lane[i] === noId ? -1 : lane[i],
      number: number[i], name: names[name[i]], creator: creator[i], created: created[i], done: done[i] }));
    const [fromLane, toLane, from, to] = made.columns;
    const flows = Array.from({ length: made.length }, (_, i) => ({ fromLane: fromLane[i], toLane: toLane[i], from: from[i],
      to: to[i] }));
    return { tasks, more: !!scalars[0], flows };
  }

  /** When Python code of a process stood still while another thread had the interpreter: of `lane` the last event before and the
   * next one, of others the first and the last in between, the last by `other`.
   * @param {number} recording @param {number} process @param {number} from @param {number} to @param {number} least ns
   * @returns {TimelineTurn[]} */
  turns(recording, process, from, to, least) {
    this.run("engine_timeline_turns", recording, process, from, to, least);
    const { length, columns } = this.result(0), [lane, other, depth, idle, taken, after, before] = columns;
    return Array.from({ length }, (_, i) => ({ lane: lane[i], other: other[i], depth: depth[i], idle: idle[i],
      taken: taken[i], after: after[i], before: before[i] }));
  }

  /** How often and how long each traced lane waited for the interpreter between two instants, in all.
   * @param {number} recording @param {number} from @param {number} to @returns {GilWaits[]} by lane */
  waits(recording, from, to) {
    this.run("engine_timeline_waits", recording, from, to);
    const { length, columns } = this.result(0), [known, turns, waits, least, most, longest, at] = columns;
    return Array.from({ length }, (_, i) => ({ known: !!known[i], turns: turns[i], waits: waits[i], least: least[i],
      most: most[i], longest: longest[i], longestAt: at[i] }));
  }

  /**
   * Blocks of single calls that were needed since this was last asked, and are not here; `nowhere`: others were needed
   * that cannot be had.
   * @param {number} recording @returns {{ blocks: WantedBlock[], nowhere: boolean }}
   */
  wanted(recording) {
    this.run("engine_timeline_wanted", recording);
    const { length, scalars, columns } = this.result(0), [trace, block, at, bytes] = columns;
    return { blocks: Array.from({ length }, (_, i) => ({ trace: trace[i], block: block[i], at: at[i], bytes: bytes[i] })),
      nowhere: !!scalars[0] };
  }

  /** @param {number} recording @param {WantedBlock} wanted @param {Uint8Array} bytes */
  giveBlock(recording, { trace, block }, bytes) {
    this.run("engine_timeline_give", recording, trace, block, this.give(bytes), bytes.length);
  }

  /** Rows of single spans. @returns {TimeSpan[]} */
  spanRows() {
    const { length, columns } = this.result(0);
    const [begin, end, func, depth, flags, lane] = columns;
    return Array.from({ length }, (_, i) => ({ begin: begin[i], end: end[i], func: func[i], depth: depth[i],
      flags: flags[i], lane: lane[i] }));
  }

  /**
   * How long calls of a function take, and its longest.
   * @param {number} recording @param {number} func -1: of any @param {number} from @param {number} to
   * @param {number} longest how many @param {boolean} [only] these alone, which is fast @returns {Durations}
   */
  durations(recording, func, from, to, longest, only = false) {
    this.run("engine_timeline_durations", recording, func, from, to, longest, only ? 1 : 0);
    const [calls, sum, min, max] = this.result(0).scalars, counts = this.result(1);
    const buckets = Array.from({ length: counts.length }, (_, i) => ({ from: counts.columns[0][i],
      to: counts.columns[1][i], calls: counts.columns[2][i] }));
    return { calls, sum, min, max, longest: this.spanRows(), buckets };
  }

  /**
   * Calls of a function by what they did, the largest groups first, and where their slowest differ from the usual.
   * @param {number} recording @param {number} func @param {number} from @param {number} to @returns {CallGroups}
   */
  groups(recording, func, from, to) {
    this.run("engine_timeline_groups", recording, func, from, to);
    const { length, scalars, columns } = this.result(0), differ = this.result(1);
    const [calls, sum, half, spans, begin, end, depth, flags, lane] = columns;
    const [group, kind, of, self, usualSelf, times, usualTimes] = differ.columns;
    const differences = Array.from({ length: differ.length }, (_, i) => ({ group: group[i], shape: kind[i] === 1,
      func: of[i], self: self[i], usualSelf: usualSelf[i], times: times[i], usualTimes: usualTimes[i] }));
    const groups = Array.from({ length }, (_, i) => ({ calls: calls[i], sum: sum[i], half: half[i], spans: spans[i],
      slowest: { begin: begin[i], end: end[i], func, depth: depth[i], flags: flags[i], lane: lane[i] },
      differs: differences.filter((d) => d.group === i && !d.shape), unlike: differences.filter((d) => d.group === i && d.shape) }));
    return { groups, count: scalars[0], calls: scalars[1] + scalars[2] };
  }

  /**
   * The first span of these functions that begins after `from`, up to `to`; or, if `to` is before, the last before it.
   * @param {number} recording @param {ArrayLike<number>} funcs @param {number} from @param {number} to
   * @returns {TimeSpan | null}
   */
  findSpan(recording, funcs, from, to) {
    this.run("engine_timeline_find", recording, this.giveNumbers(funcs), funcs.length, from, to, to < from ? 1 : 0);
    return this.spanRows()[0] ?? null;
  }

  /** A stretch of time as a recording of its own. @param {number} recording @param {number} from @param {number} to
   * @returns {number} */
  range(recording, from, to) {
    return this.run("engine_timeline_range", recording, from, to);
  }

  /** @param {ViewOptions} options @returns {View} */
  view(options) {
    /** @type {string[]} */
    const words = [];
    const put = (/** @type {string} */ key, /** @type {any} */ value) =>
      words.push(key, String(value).replaceAll("\0", "?"));
    const yes = (/** @type {any} */ value) => (value ? "1" : "0");
    put("recording", options.recording);
    if (options.base !== undefined && options.base !== null && options.base >= 0)
      put("base", options.base);
    put("process", options.process ?? -1);
    put("thread", options.thread ?? -1);
    put("together", yes(options.threads === "together"));
    put("foldLibraries", yes(options.foldLibraries));
    put("byModule", yes(options.group === "module"));
    put("byLine", yes(options.group === "line"));
    put("reversed", yes(options.reversed));
    put("callersOf", options.callersOf ?? -1);
    for (const key of /** @type {const} */ (["fold", "keep", "root"]))
      for (const pattern of options[key] ?? [])
        put(key, typeof pattern === "number" ? `id:${pattern}` : `glob:${pattern}`);
    const bytes = this.encoder.encode(words.map((word) => word + "\0").join(""));
    return new View(this, this.run("view_new", this.give(bytes), bytes.length));
  }

  /** @param {number} part @param {number} whole @returns {number} */
  shareError(part, whole) {
    return this.invoke("engine_share_error", part, whole);
  }
}

/** A recording, or two, shaped for showing. Nodes are numbers; 0 is the root. */
export class View {
  /** @param {Engine} engine @param {number} id */
  constructor(engine, id) {
    this.engine = engine;
    this.id = id;
    engine.run("view_info", id);
    const [nodes, depth, diff, estimated] = engine.result(0).scalars;
    this.info = { nodes, depth, diff: diff !== 0, tree: estimated ? "estimated" : "recorded" };
  }

  free() {
    if (this.id >= 0 && !this.engine.dead)
      this.engine.invoke("view_free", this.id);
    this.id = -1;
  }

  /** @param {number} [metric] */
  totals(metric = 0) {
    this.engine.run("view_totals", this.id, metric);
    const [value, base] = this.engine.result(0).scalars;
    return { value, base };
  }

  /**
   * @param {{ metric?: number, root?: number, cut?: number, depth?: number, limit?: number,
   *   order?: string, by?: string }} [query]
   * @returns {Boxes}
   */
  layout({ metric = 0, root = 0, cut = 1 / 2000, depth = 256, limit = 50000, order = "heavy",
    by = "value" } = {}) {
    this.engine.run("view_layout", this.id, metric, root, cut, depth,
      Math.max(0, engineOrders.indexOf(order)), Math.max(0, engineWidths.indexOf(by)), limit);
    const { length, scalars, columns } = this.engine.result(0);
    const [node, func, level, parent, start, width, value, self, base = null, baseSelf = null] =
      /** @type {any} */ (columns);
    return { length, node, func, depth: level, parent, start, width, value, self, base, baseSelf,
      omitted: scalars[0], deeper: scalars[1], truncated: scalars[2] !== 0 };
  }

  /**
   * @param {number} node @param {{ metric?: number, limit?: number }} [query]
   * @returns {TreeRows}
   */
  children(node, { metric = 0, limit = 1000 } = {}) {
    return this.rows(node, metric, limit, false);
  }

  /**
   * @param {number} at @param {number} metric @param {number} limit @param {boolean} only
   * @returns {TreeRows}
   */
  rows(at, metric, limit, only) {
    this.engine.run("view_children", this.id, at, metric, limit, only ? 1 : 0);
    const { length, scalars, columns } = this.engine.result(0);
    const [node, func, children, value, self, calls, base = null, baseSelf = null,
      baseCalls = null] = /** @type {any} */ (columns);
    return { length, node, func, children, value, self, calls, base, baseSelf, baseCalls,
      omitted: scalars[0] };
  }

  /** @param {number} node @param {number} [metric] @returns {NodeInfo} */
  node(node, metric = 0) {
    const row = this.rows(node, metric, 1, true);
    const parent = this.engine.invoke("view_parent", this.id, node) >>> 0;
    return { node, func: row.func[0], parent: parent === noId ? -1 : parent,
      children: row.children[0], value: row.value[0], self: row.self[0], calls: row.calls[0],
      base: row.base ? row.base[0] : 0, baseSelf: row.baseSelf ? row.baseSelf[0] : 0,
      baseCalls: row.baseCalls ? row.baseCalls[0] : 0 };
  }

  /** How far the numbers of a node may be off; 0: not. @param {number} node @param {number} [metric] */
  error(node, metric = 0) {
    this.engine.run("view_error", this.id, node, metric);
    const [total, self] = this.engine.result(0).scalars;
    return { total, self };
  }

  /** @param {number} node @returns {Uint32Array} */
  path(node) {
    this.engine.run("view_path", this.id, node);
    return /** @type {Uint32Array} */ (this.engine.result(0).columns[0]);
  }

  /** @param {ArrayLike<number>} path @returns {number} */
  find(path) {
    return this.engine.invoke("view_find", this.id, this.engine.giveNumbers(path), path.length) >>> 0;
  }

  /** @param {number} [metric] @returns {FunctionTable} */
  table(metric = 0) {
    this.engine.run("view_table", this.id, metric);
    const { length, scalars, columns } = this.engine.result(0);
    const [func, nodes, calls, primitive, self, total, min, max, suspended, samples, ...rest] =
      /** @type {any} */ (columns);
    const states = scalars[2] ? rest.shift() : null;
    const further = scalars[3] ? rest.shift() : null;
    const [selfError, totalError] = scalars[4] ? rest.splice(-2) : [null, null];
    const [baseCalls = null, baseSelf = null, baseTotal = null] = rest;
    /** @param {any} wide @param {number} row */
    const part = (wide, row) => wide.subarray((row * wide.length) / length, ((row + 1) * wide.length) / length);
    return { length, func, nodes, calls, primitive, self, total, min, max, suspended, samples,
      states, statesOf: (row) => part(states, row), further: (row, k) => part(further, row)[k], baseCalls, baseSelf, baseTotal,
      selfError, totalError, sum: scalars[0], baseSum: scalars[1] };
  }

  /** @param {number} func @param {number} [metric] @returns {Neighbours} */
  callers(func, metric = 0) {
    return this.neighbours(func, metric, true);
  }

  /** @param {number} func @param {number} [metric] @returns {Neighbours} */
  callees(func, metric = 0) {
    return this.neighbours(func, metric, false);
  }

  /** @param {number} of @param {number} metric @param {boolean} callers @returns {Neighbours} */
  neighbours(of, metric, callers) {
    this.engine.run("view_neighbours", this.id, of, metric, callers ? 1 : 0);
    const { length, columns } = this.engine.result(0);
    const [func, calls, self, total, baseCalls = null, baseTotal = null] =
      /** @type {any} */ (columns);
    return { length, func, calls, self, total, baseCalls, baseTotal };
  }

  /** @param {ArrayLike<number>} funcs @param {number} [metric] */
  matched(funcs, metric = 0) {
    this.engine.run("view_matched", this.id, this.engine.giveNumbers(funcs), funcs.length, metric);
    const [value, base, nodes] = this.engine.result(0).scalars;
    return { value, base, nodes };
  }

  /**
   * @param {{ metric?: number, nodeCut?: number, edgeCut?: number, limit?: number,
   *   root?: number, leaf?: number }} [query]
   * @returns {CallGraph}
   */
  graph({ metric = 0, nodeCut = 0.005, edgeCut = 0.001, limit = 200, root = -1, leaf = -1 } = {}) {
    this.engine.run("view_graph", this.id, metric, nodeCut, edgeCut, limit, root, leaf);
    const boxes = this.engine.result(0), lines = this.engine.result(1), bends = this.engine.result(2);
    const [func, layer, x, y, total, self, calls, baseTotal = null, baseSelf = null] =
      /** @type {any} */ (boxes.columns);
    const [from, to, pointsStart, pointsCount, edgeTotal, edgeCalls, edgeBase = null] =
      /** @type {any} */ (lines.columns);
    const [width, height, omittedNodes, omittedEdges, sum, baseSum] = boxes.scalars;
    return {
      nodes: { length: boxes.length, func, layer, x, y, total, self, calls, baseTotal, baseSelf },
      edges: { length: lines.length, from, to, pointsStart, pointsCount, total: edgeTotal,
        calls: edgeCalls, baseTotal: edgeBase },
      points: { length: bends.length, x: /** @type {Float64Array} */ (bends.columns[0]),
        y: /** @type {Float64Array} */ (bends.columns[1]) },
      width, height, omittedNodes, omittedEdges, sum, baseSum,
    };
  }
}
