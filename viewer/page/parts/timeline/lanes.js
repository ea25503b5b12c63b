// Where things stand on the timeline, from top to bottom: processes, the lanes of their threads with a row for each
// depth, strips for what does not nest, and curves below. Knows no time and draws nothing.

import { formatCount } from "../numbers.js";
import { shorten, visible } from "../text.js";
import { FEW_TASK_ROWS } from "./tasks.js";

/**
 * @typedef {import('../../../engine/engine.js').Lane} Lane
 * @typedef {import('../../../engine/engine.js').TimelineMark} TimelineMark
 * @typedef {{kind: "process" | "lane" | "tasks" | "counter" | "memory", lane: number, title: string, note: string, top: number, height: number,
 *   rows: number, row: number, strips: number, shut: boolean, name: string, process: number, outer: number[], fold: number, deeper: number, omitted: number,
 *   open: boolean, noteFrom: number, noteTo: number}} Track
 *   `row` is the height of one, `rows` begin below the head, `strips` and `fold`; `lane` is -1 where there is none;
 *   `outer`: functions of the outermost rows that are one row together, as high as `fold`; `deeper`: rows below that find no
 *   room, `omitted`: tasks that find no room, `open`: it was asked for all of them, `noteFrom` and `noteTo`: where that is said
 */

export const HEAD = 19;
export const STRIP = 15;
const ROW = 17;
/** … where there is little room: as low as names can be read. */
const LOW_ROW = 13;
/** A lane is no higher than this if its rows can be made smaller, but never smaller than MIN_ROW. */
const MOST_LANE = 800;
const MIN_ROW = 3;
const CURVE = 52;
const GAP = 6;
/** That a lane has however little room there is. */
const FEW_ROWS = 9;
/** So few outer rows are not worth a row that stands for them. */
const FOLD_LEAST = 2;
const MOST_COUNTERS = 100;
/** Kinds of marks that are as long as something and do not nest with calls. */
export const STRIPS = new Set(["region"]);
const MOST_STRIPS = 4;

/** In which strip each mark of a lane goes, so that no two overlap: its number by begin, and how many there are.
 * @param {TimelineMark[]} marks @returns {{of: Map<TimelineMark, number>, count: number}} */
export function layStrips(marks) {
  /** @type {number[]} */
  const busy = [];
  const of = new Map();
  for (const mark of marks) {
    let strip = busy.findIndex((end) => end <= mark.begin);
    if (strip < 0) strip = busy.length;
    if (strip >= MOST_STRIPS) continue;
    busy[strip] = Math.max(mark.end, mark.begin + 1);
    of.set(mark, strip);
  }
  return { of, count: busy.length };
}

/** The threads of a recording, processes by when they began, each with its main thread first.
 * @param {Lane[]} lanes @param {any} summary @returns {number[]} */
function orderLanes(lanes, summary) {
  const began = summary.processes.map((/** @type {any} */ p) => p.startNs);
  const isMain = (/** @type {Lane} */ l) =>
    summary.threads[l.thread]?.tid === summary.processes[l.process]?.pid ? 0 : 1;
  return lanes
    .map((_, i) => i)
    .sort((a, b) => {
      const [x, y] = [lanes[a], lanes[b]];
      return (
        (began[x.process] ?? 0) - (began[y.process] ?? 0) ||
        x.process - y.process ||
        isMain(x) - isMain(y) ||
        x.begin - y.begin ||
        a - b
      );
    });
}

/** @param {any} summary @param {Lane} lane */
export function laneTitle(summary, lane) {
  const thread = summary.threads[lane.thread];
  const name = visible(shorten(thread?.name || "thread", 200));
  return thread?.tid ? `${name} ${thread.tid}` : name;
}

/** @param {any} summary @param {number} process */
function processTitle(summary, process) {
  const of = summary.processes[process];
  return of ? `process ${of.pid}  ${visible(shorten(of.command || of.exe || "", 300))}` : "process";
}

/**
 * @typedef {{lanes: Lane[], summary: any, marks: TimelineMark[], memory: boolean, shut: Set<string>, tall: Set<string>,
 *   tasks: Map<number, import('./tasks.js').TaskRows>, inScope: (lane: Lane) => boolean, rowsOf: (lane: number) => import('./rows.js').Rows, compact: boolean, room: number}} Wanted
 *   `rowsOf`: of a lane, in the time in sight; `room`: how high all of it may be if rows can be left out for that
 */

/** @param {Wanted} wanted @returns {{tracks: Track[], height: number}} */
export function layTracks(wanted) {
  const { lanes, summary, marks, memory, tasks, inScope } = wanted;
  /** @type {Track[]} */
  const tracks = [];
  let process = -1;
  const order = orderLanes(lanes, summary).filter((i) => inScope(lanes[i]));
  const several = new Set(order.map((i) => lanes[i].process)).size > 1;
  /** @param {Partial<Track>} track */
  const add = (track) =>
    tracks.push({
      kind: "lane", lane: -1, title: "", note: "", rows: 0, row: 0, strips: 0, shut: false, name: "", process: -1,
      outer: [], fold: 0, deeper: 0, omitted: 0, open: false, noteFrom: Infinity, noteTo: 0, top: 0, height: 0, ...track,
    });
  const addTasks = () => {
    const laid = tasks.get(process);
    if (!laid) return;
    const rows = laid.rows + (laid.brief ? 1 : 0);
    const { omitted } = laid;
    add({ kind: "tasks", title: "asyncio tasks", omitted, open: !omitted && laid.rows > FEW_TASK_ROWS, rows, row: STRIP, height: HEAD + rows * STRIP + GAP, process });
  };
  for (const i of order) {
    const lane = lanes[i];
    if (lane.process !== process) {
      addTasks();
      process = lane.process;
      if (several) add({ kind: "process", title: processTitle(summary, process), height: HEAD + 3, process });
    }
    add(laneTrack(i, lane, wanted));
  }
  addTasks();
  for (const name of [...new Set(marks.filter((m) => m.kind === "counter").map((m) => m.name))].slice(0, MOST_COUNTERS))
    add({ kind: "counter", name, title: visible(shorten(name, 200)), height: CURVE });
  if (memory) add({ kind: "memory", title: "memory", height: CURVE });
  fitRows(tracks, wanted);
  let top = 0;
  for (const track of tracks) {
    if (track.kind === "lane") track.height = HEAD + track.strips * STRIP + track.fold + track.rows * track.row + GAP;
    track.top = top;
    top += track.height;
  }
  return { tracks, height: top };
}

/** Leave rows out until all lanes can be seen at once, but never the first few: one thread that was once deep must not hide
 * the others. The outermost rows go first, where they are the same all along, then deep ones.
 * @param {Track[]} tracks @param {Wanted} wanted */
function fitRows(tracks, { tall, room, compact, rowsOf }) {
  const cut = new Set(tracks.filter((t) => t.kind === "lane" && !t.shut && !tall.has("*") && !tall.has(String(t.lane))));
  const height = (/** @type {number} */ limit) =>
    tracks.reduce((sum, t) => {
      if (t.kind !== "lane") return sum + t.height;
      return sum + HEAD + t.strips * STRIP + (cut.has(t) ? Math.min(t.rows, limit) : t.rows) * t.row + GAP;
    }, 0);
  if (height(Infinity) > room) for (const track of cut) track.row = Math.min(track.row, LOW_ROW);
  let limit = Math.max(FEW_ROWS, ...[...cut].map((t) => t.rows));
  while (limit > FEW_ROWS && height(limit) > room) limit--;
  for (const track of cut) {
    if (track.rows <= limit) continue;
    const { outer } = rowsOf(track.lane);
    if (outer.length >= FOLD_LEAST) {
      track.outer = outer;
      track.fold = compact ? track.row : LOW_ROW;
    }
    const inner = track.rows - track.outer.length;
    track.rows = Math.min(inner, limit - (track.fold ? 1 : 0));
    track.deeper = inner - track.rows;
  }
}

/** @param {number} i @param {Lane} lane @param {Wanted} wanted @returns {Partial<Track>} */
function laneTrack(i, lane, { summary, marks, shut: closed, compact, tall, rowsOf }) {
  const shut = closed.has(String(i));
  const strips = shut ? 0 : layStrips(marks.filter((m) => m.lane === i && STRIPS.has(m.kind))).count;
  const { depth } = rowsOf(i);
  const all = tall.has("*") || tall.has(String(i));
  const high = all ? Math.max(MIN_ROW, Math.min(ROW, Math.floor(MOST_LANE / Math.max(1, depth)))) : ROW;
  return {
    lane: i, title: laneTitle(summary, lane), strips, shut, row: compact ? MIN_ROW + 1 : high,
    rows: shut ? Math.min(1, depth) : depth, process: lane.process, note: lane.sampled ? "sampled" : "",
    open: !shut && tall.has(String(i)),
  };
}

/** Where the rows of a lane begin, with the one that stands for outer ones. @param {Track} track */
export function rowsTop(track) {
  return track.top + HEAD + track.strips * STRIP;
}

/** Where a depth is drawn. @param {Track} track @param {number} depth */
export function rowTop(track, depth) {
  return rowsTop(track) + (depth < track.outer.length ? 0 : track.fold + (depth - track.outer.length) * track.row);
}

/** How high a depth is drawn. @param {Track} track @param {number} depth */
export function rowHeight(track, depth) {
  return depth < track.outer.length ? track.fold : track.row;
}

/** Has a depth a row of its own? @param {Track} track @param {number} depth */
export function hasRow(track, depth) {
  return depth >= track.outer.length && depth < track.outer.length + track.rows;
}

/** The depth whose own row is at a height; -1: none. @param {Track} track @param {number} y */
export function depthAt(track, y) {
  const row = Math.floor((y - rowsTop(track) - track.fold) / track.row);
  return row >= 0 && row < track.rows ? track.outer.length + row : -1;
}

/** Is the row that stands for outer ones at a height? @param {Track} track @param {number} y */
export function onFold(track, y) {
  return y >= rowsTop(track) && y < rowsTop(track) + track.fold;
}

/** What a click on the words behind the name of a track does, in words; "": there are none. @param {Track} track */
export function rowWords({ deeper, omitted, open }) {
  if (open) return "fewer rows ⌃";
  if (omitted) return `${formatCount(omitted)} more ${omitted === 1 ? "task" : "tasks"} ⌄`;
  return deeper ? `${formatCount(deeper)} deeper ${deeper === 1 ? "row" : "rows"} ⌄` : "";
}

/** Is it among those words? @param {Track} track @param {number} x */
export function onNote(track, x) {
  return x >= track.noteFrom && x <= track.noteTo;
}
