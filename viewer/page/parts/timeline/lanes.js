// Where things stand on the timeline, from top to bottom: processes, the lanes of their threads with a row for each
// depth, strips for what does not nest, and curves below. Knows no time and draws nothing.

import { shorten, visible } from "../text.js";

/**
 * @typedef {import('../../../engine/engine.js').Lane} Lane
 * @typedef {import('../../../engine/engine.js').TimelineMark} TimelineMark
 * @typedef {{kind: "process" | "lane" | "tasks" | "counter" | "memory", lane: number, title: string, note: string, top: number, height: number,
 *   rows: number, row: number, strips: number, shut: boolean, name: string, process: number, deeper: number, noteFrom: number, noteTo: number}} Track
 *   `row` is the height of one, `rows` begin below the head and `strips`; `lane` is -1 where there is none;
 *   `deeper`: rows that find no room, `noteFrom` and `noteTo`: where that is said
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
 *   tasks: Map<number, import('./tasks.js').TaskRows>, inScope: (lane: Lane) => boolean, compact: boolean, room: number}} Wanted
 *   `room`: how high all of it may be if rows can be left out for that
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
      deeper: 0, noteFrom: Infinity, noteTo: 0, top: 0, height: 0, ...track,
    });
  const addTasks = () => {
    const laid = tasks.get(process);
    if (!laid) return;
    const rows = laid.rows + (laid.brief ? 1 : 0);
    const note = laid.omitted ? `${laid.omitted} more find no room` : "";
    add({ kind: "tasks", title: "asyncio tasks", note, rows, row: STRIP, height: HEAD + rows * STRIP + GAP, process });
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
    if (track.kind === "lane") track.height = HEAD + track.strips * STRIP + track.rows * track.row + GAP;
    track.top = top;
    top += track.height;
  }
  return { tracks, height: top };
}

/** Leave deep rows out until all lanes can be seen at once, but never the first few: one thread that was once deep must
 * not hide the others. @param {Track[]} tracks @param {Wanted} wanted */
function fitRows(tracks, { tall, room }) {
  const cut = tracks.filter((t) => t.kind === "lane" && !t.shut && !tall.has("*") && !tall.has(String(t.lane)));
  const height = (/** @type {number} */ limit) =>
    tracks.reduce((sum, t) => {
      const rows = cut.includes(t) ? Math.min(t.rows, limit) : t.rows;
      return sum + (t.kind === "lane" ? HEAD + t.strips * STRIP + rows * t.row + GAP : t.height);
    }, 0);
  if (height(Infinity) > room) for (const track of cut) track.row = Math.min(track.row, LOW_ROW);
  let limit = Math.max(FEW_ROWS, ...cut.map((t) => t.rows));
  while (limit > FEW_ROWS && height(limit) > room) limit--;
  for (const track of cut) {
    track.deeper = Math.max(0, track.rows - limit);
    track.rows -= track.deeper;
  }
}

/** @param {number} i @param {Lane} lane @param {Wanted} wanted @returns {Partial<Track>} */
function laneTrack(i, lane, { summary, marks, shut: closed, compact, tall }) {
  const shut = closed.has(String(i));
  const strips = shut ? 0 : layStrips(marks.filter((m) => m.lane === i && STRIPS.has(m.kind))).count;
  const all = tall.has("*") || tall.has(String(i));
  const high = all ? Math.max(MIN_ROW, Math.min(ROW, Math.floor(MOST_LANE / Math.max(1, lane.depth)))) : ROW;
  return {
    lane: i, title: laneTitle(summary, lane), strips, shut, row: compact ? MIN_ROW + 1 : high,
    rows: shut ? Math.min(1, lane.depth) : lane.depth, process: lane.process, note: lane.sampled ? "sampled" : "",
  };
}

/** Where the first row of a lane begins. @param {Track} track */
export function rowsTop(track) {
  return track.top + HEAD + track.strips * STRIP;
}
