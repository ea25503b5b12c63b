// Between the engine and the views: the open recordings, the view of the model that the state asks for, and tables
// of it, each computed once. Views never call the engine with options of their own making.

import { Engine } from "../engine/engine.js";
import { visible, shorten, baseName, searchPattern } from "./parts/text.js";
import { alignLines } from "./parts/align.js";
import { formatValue } from "./parts/numbers.js";
import { momentTitle, readMoment } from "./parts/moment.js";
import { readRange } from "./parts/timeline/range.js";
import { Blocks } from "./parts/timeline/blocks.js";
import { Ranges } from "./parts/timeline/ranges.js";

/**
 * @typedef {import('./state.js').PageState} PageState
 * @typedef {{id: number, name: string, summary: any,
 *   timeline: import('../engine/engine.js').TimelineFacts | null, leftOut: number, kept: import('./parts/timeline/range.js').Range | null,
 *   piece: ((at: number, bytes: number) => Promise<Uint8Array>) | null}} OpenRecording
 *   `leftOut`: bytes of single calls that are not in the page, but for those of the time `kept`; `piece` fetches them
 * @typedef {{id: number, key: string, title: string, unit: string, exact: boolean, hasTotal: boolean,
 *   memory: boolean, colors: [string, string] | null}} Metric
 * @typedef {{text: string, pattern: RegExp | null, funcs: Uint32Array, has: Uint8Array}} Matches
 */

/** What is not allocated by any function, in words. @type {Record<string, string>} */
const REGIONS = {
  "<before the program>": "allocated before the first Python code",
  "<inherited by fork>": "allocated by the parent before the fork",
};

const KEPT_VIEWS = 6;
const KEPT_RESULTS = 60;
/** What the source view has of lines where nothing is known of them. */
const NO_LINES = {
  length: 0, line: new Uint32Array(), func: new Uint32Array(), hits: new Float64Array(), total: new Float64Array(),
  self: new Float64Array(), min: new Float64Array(), max: new Float64Array(), samples: new Float64Array(), states: null,
  spots: [],
};
/** How far is looked for a span at first. */
const FIND_NS = 1e6;

/** Functions in the address are "#12", everything else is a glob. @param {string[]} list */
export function functionRefs(list) {
  return list.map((text) => (/^#\d+$/.test(text) ? Number(text.slice(1)) : text));
}

export class Session {
  /** @param {Engine} engine @param {import('../engine/unpack.js').PackedRecording[]} packed */
  constructor(engine, packed) {
    this.engine = engine;
    this.packed = packed;
    /** @type {(OpenRecording | null)[]} */
    this.open = packed.map(() => null);
    /** @type {any[]} */
    this.functions = [];
    /** @type {Map<string, any>} */
    this.views = new Map();
    /** @type {Map<string, any>} */
    this.results = new Map();
    /** Which instants a recording shows, and what of them there is. @type {Map<number, {key: string, shown: any}>} */
    this.moments = new Map();
    this.ranges = new Ranges(this);
    this.blocks = new Blocks(this);
    /** @type {string[]} */
    this.labels = [];
    /** @type {Matches} */
    this.found = { text: "", pattern: null, funcs: new Uint32Array(), has: new Uint8Array() };
  }

  /** @param {number} index of `packed` */
  async openRecording(index) {
    if (this.open[index]) return;
    const packed = this.packed[index];
    const bytes = await packed.load();
    const id = this.engine.open(bytes, packed.name);
    this.open[index] = { id, name: packed.name, summary: this.engine.summary(id), timeline: this.engine.timeline(id),
      leftOut: packed.leftOut, kept: packed.from < packed.to ? { from: packed.from, to: packed.to } : null, piece: packed.piece };
    this.learnFunctions();
  }

  /** Opening and grouping add functions at the end of the one table. */
  learnFunctions() {
    for (const info of this.engine.functions(this.functions.length)) this.functions.push(info);
  }

  /** The recording that is shown, whatever stretch of it. @param {PageState} s @returns {OpenRecording} */
  whole(s) {
    return /** @type {OpenRecording} */ (this.open[s.rec] ?? this.open.find(Boolean));
  }

  /** What it is, of the stretch of time that is chosen. @param {PageState} s @returns {any} */
  summary(s) {
    return this.ranges.shown(s)?.summary ?? this.whole(s).summary;
  }

  /** What happened when; null: that was not recorded. @param {PageState} s */
  timeline(s) {
    return this.whole(s).timeline;
  }

  /** The stretch of time that is chosen for all views. @param {PageState} s
   * @returns {import('./parts/timeline/range.js').Range | null} */
  range(s) {
    const timeline = this.timeline(s);
    const range = timeline ? readRange(s.at, timeline.lengthNs) : null;
    return range && this.has(s, range) ? range : null;
  }

  /** Are single calls of this time in the page, or can they be fetched? @param {PageState} s
   * @param {import('./parts/timeline/range.js').Range} range */
  has(s, range) {
    const { leftOut, kept } = this.whole(s);
    return !leftOut || (!!kept && range.from >= kept.from && range.to <= kept.to);
  }

  /** The time of which single calls can be asked for: what is chosen, or all there is; null: none.
   * @param {PageState} s @returns {import('./parts/timeline/range.js').Range | null} */
  known(s) {
    const { timeline, leftOut, kept } = this.whole(s);
    return this.range(s) ?? (leftOut ? kept : { from: 0, to: timeline?.lengthNs ?? 0 });
  }

  /** What needs single calls, once they are here; null: they are on their way. @param {PageState} s @param {string} key
   * @param {() => any} make @returns {any} */
  onceRead(s, key, make) {
    if (this.results.has(key)) return this.results.get(key);
    const result = make();
    return this.blocks.missing(this.whole(s)) ? null : this.once(key, () => result);
  }

  /** How long calls of a function take in what is shown, and its longest. @param {PageState} s @param {number} func
   * @param {number} longest @param {boolean} [only] the longest alone @returns {import('../engine/engine.js').Durations | null} */
  durations(s, func, longest, only = false) {
    const { id } = this.whole(s);
    const { from, to } = this.known(s) ?? { from: 0, to: 0 };
    return this.onceRead(s, `durations ${id} ${func} ${from} ${to} ${longest} ${only}`, () =>
      this.engine.durations(id, func, from, to, longest, only),
    );
  }

  /** How long threads waited for the interpreter in what is shown. @param {PageState} s
   * @returns {import('../engine/engine.js').GilWaits[] | null} */
  gilWaits(s) {
    const { id } = this.whole(s);
    const { from, to } = this.known(s) ?? { from: 0, to: 0 };
    return this.onceRead(s, `gil ${id} ${from} ${to}`, () => this.engine.waits(id, from, to));
  }

  /** Calls of a function by what they did. @param {PageState} s @param {number} func
   * @returns {import('../engine/engine.js').CallGroups | null} */
  groups(s, func) {
    const { id } = this.whole(s);
    const { from, to } = this.known(s) ?? { from: 0, to: 0 };
    return this.onceRead(s, `groups ${id} ${func} ${from} ${to}`, () => this.engine.groups(id, func, from, to));
  }

  /** The next span of these functions behind an instant, or before it. @param {PageState} s @param {ArrayLike<number>} funcs
   * @param {number} from @param {boolean} backwards @returns {Promise<import('../engine/engine.js').TimeSpan | null>} */
  async findSpan(s, funcs, from, backwards) {
    const whole = this.whole(s);
    const length = whole.timeline?.lengthNs ?? 0;
    // Ever larger pieces: what is near is found without reading all of it.
    for (let piece = FIND_NS, at = from; backwards ? at > 0 : at < length; piece *= 4) {
      const to = backwards ? Math.max(0, at - piece) : Math.min(length, at + piece);
      let found = this.engine.findSpan(whole.id, funcs, at, to);
      while (this.blocks.missing(whole) && !this.blocks.trouble) {
        await this.blocks.done;
        found = this.engine.findSpan(whole.id, funcs, at, to);
      }
      if (found) return found;
      if (!backwards && to >= length) break;
      at = backwards ? to : to - 1; // what begins at the end of a piece is in the next one
    }
    return null;
  }

  /** What is compared with. @param {PageState} s @returns {any} */
  baseSummary(s) {
    return this.open[s.base]?.summary;
  }

  /** The process that the scope means, or -1. @param {PageState} s @returns {number} */
  processOf(s) {
    const number = Number(s.scope.slice(1));
    if (s.scope[0] === "p") return number;
    return s.scope[0] === "t" ? (this.summary(s).threads[number]?.process ?? -1) : -1;
  }

  /** May time be divided by calls? Not where processes that were only sampled add to it. @param {PageState} s
   * @returns {boolean} */
  isTimeOfCalls(s) {
    const process = this.processOf(s);
    return !this.summary(s).processes.some(
      (/** @type {any} */ p, /** @type {number} */ i) => (process < 0 || process === i) && p.sampled && !p.calls,
    );
  }

  /** A file's lines and their numbers, of this recording or the one before. @param {PageState} s @param {string} file
   * @param {boolean} [before] @returns {import('../engine/engine.js').SourceLines & {lines: string[]}} */
  source(s, file, before = false) {
    const options = this.options(s);
    const whole = this.whole(s).id;
    const recording = before && options.base !== options.recording ? (options.base ?? whole) : whole;
    const process = this.processOf(s);
    const inRange = !!this.ranges.shown(s);
    return this.once(`source ${recording} ${process} ${inRange} ${file}`, () => {
      const all = this.engine.source(recording, file, process);
      // Numbers of lines are of the whole run; a stretch of it has those of functions.
      const got = inRange ? { ...all, ...NO_LINES } : all;
      const lines = got.text === null ? [] : got.text.split(/\r\n|\n|\r/);
      if (lines.length > 1 && lines[lines.length - 1] === "") lines.pop();
      return { ...got, lines };
    });
  }

  /** Which line of a file was which line before. @param {PageState} s @param {string} file
   * @returns {import('./parts/align.js').Alignment | null} null where a text is missing: by number, then */
  alignment(s, file) {
    const options = this.options(s);
    return this.once(`alignment ${options.recording} ${options.base} ${file}`, () => {
      const [now, old] = [this.source(s, file).lines, this.source(s, file, true).lines];
      return now.length && old.length ? alignLines(old, now) : null;
    });
  }

  /** The line now of a line before: 0 if it is no more. @param {PageState} s @param {string} file @param {number} line */
  lineNow(s, file, line) {
    const found = this.alignment(s, file);
    return found ? (found.after[line - 1] ?? -1) + 1 : line;
  }

  /** A result computed once, and forgotten when there are many. @param {string} key @param {() => any} make @returns {any} */
  once(key, make) {
    if (!this.results.has(key)) {
      const result = make();
      if (this.results.size > KEPT_RESULTS) this.results.clear();
      this.results.set(key, result);
    }
    return this.results.get(key);
  }

  /** The instant, or the two, that the address asks for. @param {PageState} s
   * @returns {import('./parts/moment.js').Moment | null} */
  moment(s) {
    const history = this.whole(s).summary.memory.history;
    return history ? readMoment(s.at, history.durationNs) : null;
  }

  /** Does the address ask for what was alive at an instant? @param {PageState} s */
  asksMoment(s) {
    const history = this.whole(s).summary.memory.history;
    return !!history && history.metrics.some((/** @type {Metric} */ m) => m.key === s.metric);
  }

  /** A recording is closed: so are the views of it. @param {number} recording */
  forget(recording) {
    for (const [key, view] of this.views) {
      if (JSON.parse(key).recording !== recording) continue;
      this.views.delete(key);
      view.free();
    }
    this.results.clear();
  }

  /** Is what is shown what was alive at an instant? @param {PageState} s */
  ofMoment(s) {
    return this.momentMetrics(s).some((m) => m.key === s.metric);
  }

  /** @param {PageState} s @returns {Metric[]} */
  momentMetrics(s) {
    const moment = this.moment(s);
    if (!moment) return [];
    const title = momentTitle(moment);
    const blocks = moment.from < 0 ? `blocks ${title}` : `blocks, ${title}`;
    return this.whole(s).summary.memory.history.metrics.map((/** @type {Metric} */ m) => ({
      ...m,
      title: (m.unit === "bytes" ? title : blocks) + (m.exact ? "" : ", estimated"),
    }));
  }

  /** What can be shown. Of several processes that is first what they had at once, as in the terminal: each has its peak at
   * another time. @param {PageState} s @returns {Metric[]} */
  metrics(s) {
    const all = [...this.summary(s).metrics, ...this.momentMetrics(s)];
    const at = all.findIndex((m) => m.key === "peak");
    if (at < 0 || this.processOf(s) >= 0) return all;
    const together = (/** @type {Metric} */ m) => m.key.startsWith("together");
    return [
      ...all.slice(0, at),
      ...all.filter(together),
      ...all.slice(at).filter((m) => !together(m)),
    ];
  }

  /** What was held when it was most: by all processes together, if that is known, or by each at its peak.
   * @param {PageState} s @returns {Metric | undefined} */
  heldMetric(s) {
    const metrics = this.memoryMetrics(s);
    return (this.processOf(s) < 0 && metrics.together) || metrics.peak;
  }

  /** When that was really looked at, by the engine; -1: never. @param {PageState} s
   * @returns {{from: number, fromProcesses: number, to: number, toProcesses: number}} */
  shownMoment(s) {
    this.view(s);
    return this.moments.get(this.options(s).recording)?.shown;
  }

  /** Let a recording show the instant that the state asks for. @param {PageState} s @param {number} recording */
  showMoment(s, recording) {
    const moment = this.moment(s);
    const compared = this.isCompared(s);
    const key = moment ? `${compared ? -1 : moment.from} ${moment.to}` : "";
    if ((this.moments.get(recording)?.key ?? "") === key) return;
    const [from, to] = moment ? [compared ? -1 : moment.from, moment.to] : [-1, -1];
    this.moments.set(recording, { key, shown: this.engine.moment(recording, from, to) });
  }

  /** @param {PageState} s @returns {Metric} */
  metric(s) {
    const metrics = this.metrics(s);
    return (
      metrics.find((/** @type {Metric} */ m) => m.key === s.metric) ??
      metrics[0] ?? { id: 0, key: "total", title: "time", unit: "ns", exact: true, hasTotal: true, memory: false, colors: null }
    );
  }

  /** The metrics of memory that a recording has, by key. @param {PageState} s @returns {Record<string, Metric>} */
  memoryMetrics(s) {
    const metrics = this.metrics(s).filter((/** @type {Metric} */ m) => m.memory);
    return Object.fromEntries(metrics.map((/** @type {Metric} */ m) => [m.key, m]));
  }

  /** That numbers of memory are estimates, in words; "" if they are not. @param {PageState} s @returns {string} */
  sampledWords(s) {
    /** @type {number[]} */
    const sizes = this.summary(s)
      .processes.filter((/** @type {any} */ p) => p.memory)
      .map((/** @type {any} */ p) => p.memorySampleBytes);
    const [least, most] = [Math.min(...sizes), Math.max(0, ...sizes)];
    if (!most) return "";
    const size = (/** @type {number} */ n) => formatValue(n, "bytes");
    const every =
      least === most ? `every ${size(most)}` : `every ${least ? `${size(least)} to ` : ""}${size(most)}`;
    return `Blocks were sampled ${every}${least ? "" : ", of some processes"}: these are estimates, right within ± in 19 of 20 cases.`;
  }

  /** The curves of memory, the counts of blocks, and regions. @param {PageState} s
   * @returns {import('../engine/engine.js').MemoryFacts} */
  memory(s) {
    const recording = this.whole(s).id;
    return this.once(`memory ${recording}`, () => this.engine.memory(recording));
  }

  /** One row per line that allocated or called on. @param {PageState} s @param {Metric} metric @returns {any} */
  lineTable(s, metric) {
    // What objects are of a type is the line's, too, that made them.
    const types = this.functions.filter((f) => this.isType(f)).map((f) => f.id);
    const extra = { reversed: false, group: "line", fold: [...functionRefs(s.fold), ...types] };
    return this.once(`lines ${metric.id} ${s.at} ${JSON.stringify(this.options(s, extra))}`, () =>
      this.view(s, extra).table(metric.id),
    );
  }

  /** A type of objects, below the line that made them. @param {import('../engine/engine.js').FunctionInfo} info */
  isType(info) {
    return info.kind === "region" && !(info.name in REGIONS);
  }

  /** @param {PageState} s @param {Record<string, any>} [extra] @returns {import('../engine/engine.js').ViewOptions} */
  options(s, extra) {
    const recording = this.ranges.shown(s) ?? this.whole(s);
    // What changed between two instants: the recording against itself.
    const base = this.isCompared(s) ? this.open[s.base] : this.isDiff(s) ? recording : null;
    const number = Number(s.scope.slice(1));
    return {
      recording: recording?.id ?? 0,
      base: base ? base.id : undefined,
      process: s.scope[0] === "p" ? number : -1,
      thread: s.scope[0] === "t" ? number : -1,
      threads: s.apart && !base ? "apart" : "together",
      fold: functionRefs(s.fold),
      foldLibraries: s.mine,
      keep: functionRefs(s.keep),
      root: functionRefs(s.root),
      group: s.group ? "module" : s.lines && this.summary(s).memory.lined ? "line" : "function",
      reversed: s.rev,
      ...extra,
    };
  }

  /** The model in the shape the state asks for. @param {PageState} s @param {Record<string, any>} [extra] */
  view(s, extra) {
    const options = this.options(s, extra);
    const key = JSON.stringify(options);
    let view = this.views.get(key);
    if (view) {
      this.views.delete(key);
    } else {
      view = this.engine.view(options);
      this.learnFunctions();
    }
    this.views.set(key, view);
    this.showMoment(s, options.recording);
    if (options.base !== undefined && options.base !== options.recording) this.showMoment(s, options.base);
    for (const [old, other] of this.views) {
      if (this.views.size <= KEPT_VIEWS) break;
      this.views.delete(old);
      other.free();
    }
    return view;
  }

  /** Are there functions with numbers? Some recordings have only lines. @param {PageState} s */
  hasNumbers(s) {
    return this.summary(s).metrics.length > 0;
  }

  /** One row per function. Reversing changes no number in it. @param {PageState} s @returns {any} */
  table(s) {
    if (!this.hasNumbers(s))
      return {
        length: 0,
        func: [],
        self: [],
        total: [],
        calls: [],
        samples: [],
        sum: 0,
        states: null,
        rowOf: new Map(),
      };
    const options = this.options(s, { reversed: false });
    const metric = this.metric(s).id;
    return this.once(`table ${metric} ${s.at} ${JSON.stringify(options)}`, () => {
      /** @type {any} */
      const table = this.view(s, { reversed: false }).table(metric);
      table.rowOf = new Map();
      for (let i = 0; i < table.length; i++) table.rowOf.set(table.func[i], i);
      return table;
    });
  }

  /** Are two recordings compared? @param {PageState} s */
  isCompared(s) {
    return s.base >= 0 && s.base !== s.rec && !!this.open[s.base];
  }

  /** Is anything compared: two recordings, or two instants of one? @param {PageState} s */
  isDiff(s) {
    return this.isCompared(s) || (this.ofMoment(s) && (this.moment(s)?.from ?? -1) >= 0);
  }

  /** What a function is called, fit to be shown. @param {number} func @returns {string} */
  label(func) {
    return (this.labels[func] ??= this.makeLabel(func));
  }

  /** @param {number} func */
  makeLabel(func) {
    const info = this.functions[func];
    if (!info) return "?";
    if (info.kind === "root") return "everything";
    let name = info.qualname || info.name;
    // As in the terminal: a builtin by its bare name.
    const builtin = info.kind === "c" && /^<built-in method (.+)>$/.exec(name);
    if (builtin) name = builtin[1];
    const method = info.kind === "c" && /^<method '(.+)' of '(.+)' objects>$/.exec(name);
    if (method) name = `${method[2]}.${method[1]}`;
    if (name === "<module>" && info.module) name = `<module> ${info.module}`;
    const label = visible(shorten(name, 2000)) || "(no name)";
    return info.at ? `${label} ${visible(shorten(baseName(info.file), 200))}:${info.at}` : label;
  }

  /** Where it stands: "file.py:12". @param {number} func @param {boolean} [whole] the whole path */
  place(func, whole = false) {
    const info = this.functions[func];
    if (!info) return "";
    if (!info.file) return info.kind === "c" ? "built-in" : (REGIONS[info.name] ?? (this.isType(info) ? "objects of this type" : ""));
    const file = visible(shorten(whole ? info.file : baseName(info.file), 1000));
    return info.line ? `${file}:${info.line}` : file;
  }

  /** Functions that the search means. @param {PageState} s @returns {Matches} */
  matches(s) {
    if (this.found.text === s.q && this.found.has.length === this.functions.length) return this.found;
    const pattern = s.q ? searchPattern(s.q) : null;
    const has = new Uint8Array(this.functions.length);
    const list = [];
    for (let i = 1; pattern && i < this.functions.length; i++) {
      const info = this.functions[i];
      if (
        pattern.test(info.qualname) ||
        pattern.test(info.name) ||
        (info.file && pattern.test(`${info.file}:${info.line}`)) ||
        pattern.test(info.module)
      ) {
        has[i] = 1;
        list.push(i);
      }
    }
    this.found = { text: s.q, pattern, funcs: Uint32Array.from(list), has };
    return this.found;
  }

  /** How much of everything the search covers. @param {PageState} s */
  matchedShare(s) {
    const { funcs } = this.matches(s);
    if (!funcs.length) return { part: 0, whole: 0, count: 0 };
    const metric = this.metric(s).id;
    return this.once(`share ${metric} ${s.at} ${s.q} ${JSON.stringify(this.options(s, { reversed: false }))}`, () => {
      const view = this.view(s, { reversed: false });
      const got = view.matched(funcs, metric);
      return { part: got.value, whole: view.totals(metric).value, count: funcs.length };
    });
  }
}
