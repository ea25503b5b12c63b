// Where things stand on the timeline, from top to bottom: processes, the lanes of their threads with a row for each
// depth, strips for what does not nest, and curves below. Knows no time and draws nothing.

import { shorten, visible } from "../text.js";

/**
 * @typedef {import('../../../engine/engine.js').Lane} Lane
 * @typedef {import('../../../engine/engine.js').TimelineMark} TimelineMark
 * @typedef {{kind: "process" | "lane" | "tasks" | "counter" | "memory", lane: number, title: string, note: string, top: number, height: number,
 *   rows: number, row: number, strips: number, shut: boolean, name: string, process: number}} Track
 *   `row` is the height of one, `rows` begin below the head and `strips`; `lane` is -1 where there is none
 */

export const HEAD = 19;
export const STRIP = 15;
const ROW = 17;
/** A lane is no higher than this if its rows can be made smaller, but never smaller than MIN_ROW. */
const MOST_LANE = 800;
const MIN_ROW = 3;
const CURVE = 52;
const GAP = 6;
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
 * @param {{lanes: Lane[], summary: any, marks: TimelineMark[], memory: boolean, shut: Set<string>,
 *   inScope: (lane: Lane) => boolean, compact: boolean}} of
 * @returns {{tracks: Track[], height: number, taskRows: Map<number, number>}}
 */
export function layTracks({ lanes, summary, marks, memory, shut, inScope, compact }) {
  /** @type {Track[]} */
  const tracks = [];
  let top = 0;
  let process = -1;
  const order = orderLanes(lanes, summary).filter((i) => inScope(lanes[i]));
  const several = new Set(order.map((i) => lanes[i].process)).size > 1;
  /** @param {Partial<Track>} track */
  const add = (track) => {
    const whole = {
      kind: "lane", lane: -1, title: "", note: "", rows: 0, row: 0, strips: 0, shut: false, name: "", process: -1,
      ...track, top, height: track.height ?? 0,
    };
    tracks.push(/** @type {Track} */ (whole));
    top += whole.height;
  };
  for (const i of order) {
    const lane = lanes[i];
    if (several && lane.process !== process)
      add({ kind: "process", title: processTitle(summary, lane.process), height: HEAD + 3, process: lane.process });
    process = lane.process;
    add(laneTrack(i, lane, summary, marks, shut.has(String(i)), compact));
  }
  const tasks = layTasks(marks);
  if (tasks.rows)
    add({ kind: "tasks", title: "asyncio tasks", note: tasks.omitted ? `${tasks.omitted} more find no room` : "", rows: tasks.rows, row: STRIP, height: HEAD + tasks.rows * STRIP + GAP });
  const counters = new Set(marks.filter((m) => m.kind === "counter").map((m) => m.name));
  for (const name of counters)
    add({ kind: "counter", name, title: visible(shorten(name, 200)), height: CURVE });
  if (memory) add({ kind: "memory", title: "memory", height: CURVE });
  return { tracks, height: top, taskRows: tasks.of };
}

const MOST_TASK_ROWS = 40;

/** A row for each task as long as it lives, so that no two overlap. Tasks by number. @param {TimelineMark[]} marks
 * @returns {{of: Map<number, number>, rows: number, omitted: number}} */
export function layTasks(marks) {
  /** @type {Map<number, {begin: number, end: number}>} */
  const lives = new Map();
  for (const mark of marks) {
    if (mark.kind !== "task") continue;
    const life = lives.get(mark.value) ?? { begin: mark.begin, end: mark.end };
    lives.set(mark.value, { begin: Math.min(life.begin, mark.begin), end: Math.max(life.end, mark.end) });
  }
  /** @type {number[]} */
  const busy = [];
  const of = new Map();
  for (const [task, life] of [...lives].sort((a, b) => a[1].begin - b[1].begin)) {
    let row = busy.findIndex((end) => end <= life.begin);
    if (row < 0) row = busy.length;
    if (row >= MOST_TASK_ROWS) continue;
    busy[row] = life.end;
    of.set(task, row);
  }
  return { of, rows: busy.length, omitted: lives.size - of.size };
}

/** @param {number} i @param {Lane} lane @param {any} summary @param {TimelineMark[]} marks @param {boolean} shut
 * @param {boolean} compact @returns {Partial<Track>} */
function laneTrack(i, lane, summary, marks, shut, compact) {
  const strips = layStrips(marks.filter((m) => m.lane === i && STRIPS.has(m.kind))).count;
  const row = compact ? MIN_ROW + 1 : Math.max(MIN_ROW, Math.min(ROW, Math.floor(MOST_LANE / Math.max(1, lane.depth))));
  const rows = shut ? Math.min(1, lane.depth) : lane.depth;
  const title = laneTitle(summary, lane);
  return {
    lane: i, title, strips: shut ? 0 : strips, shut, row, rows, process: lane.process,
    note: lane.sampled ? "sampled" : "",
    height: HEAD + (shut ? 0 : strips * STRIP) + rows * row + GAP,
  };
}

/** Where the first row of a lane begins. @param {Track} track */
export function rowsTop(track) {
  return track.top + HEAD + track.strips * STRIP;
}
