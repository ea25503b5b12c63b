// What is in sight of the timeline: which tracks there are, the cells and marks of those that can be seen, what is at a
// place of the drawing, and the drawing itself. It knows nothing of pointers and keys.

import { curvesOf } from "../curves.js";
import { HEAD, STRIP, STRIPS, depthAt, layStrips, layTracks, onFold } from "./lanes.js";
import { surveyRows } from "./rows.js";
import { layTasks } from "./tasks.js";
import { readRange } from "./range.js";
import { findTurns } from "./turns.js";
import {
  RULER, paintCells, paintCurves, paintGrid, paintHead, paintLostCells, paintMarks, paintRuler,
  paintFlows, paintFold, paintTasks, paintTurns,
} from "./paint.js";

/**
 * @typedef {import('../../app.js').App} App
 * @typedef {import('./lanes.js').Track} Track
 * @typedef {import('./range.js').Range} Range
 * @typedef {import('../../../engine/engine.js').Cells} Cells
 * @typedef {import('../../../engine/engine.js').TimelineMark} TimelineMark
 * @typedef {{track: Track, cells: Cells, i: number}} FoundCell
 */

/** For the whole run, to know which strips and curves there are. */
const OVERVIEW_CELLS = 2000;
/** Arrows to tasks that others made; more hide what is below them. */
const MOST_MADE = 80;
/** Of more lanes than that the rows of the whole run are laid out, not those of the time in sight. */
const MOST_SURVEYED = 200;

export class Scene {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.width = 800;
    this.height = 400;
    /** @type {Track[]} */
    this.tracks = [];
    this.contentHeight = 0;
    /** By process. @type {Map<number, import('./tasks.js').TaskRows>} */
    this.taskRows = new Map();
    /** @type {Range} */
    this.see = { from: 0, to: 1 };
    /** By lane: what was asked, and the answer; `since`: with more to come since then. @type {Map<number, {key: string, since: number, cells: Cells}>} */
    this.lanes = new Map();
    /** @type {TimelineMark[]} */
    this.marks = [];
    this.marksKey = "";
    /** Where threads waited for the interpreter. @type {import('./turns.js').Turn[]} */
    this.turns = [];
    this.turnsKey = "";
    this.truncated = false;
    this.layoutKey = "";
    /** The time in sight that rows are laid out for: a new number for each; with more to come since then (or -1: nothing). */
    this.laidFor = { id: -1, see: "", turn: 0, since: -1 };
    /** By lane, what was found there. @type {Map<number, import('./rows.js').Rows>} */
    this.rows = new Map();
    this.boxes = 0;
  }

  /** @returns {import('../../../engine/engine.js').TimelineFacts} */
  get facts() {
    const { session, s } = this.app;
    return session.timeline(s) ?? { startNs: 0, lengthNs: 0, lanesInAll: 0, runs: 1, uncertainNs: 0, lanes: [] };
  }

  get length() {
    return Math.max(1, this.facts.lengthNs);
  }

  /** Arrange the tracks as the state asks for. @param {boolean} [moving] rows stay as they are for now, whatever comes into sight */
  arrange(moving = false) {
    const { session, s } = this.app;
    const { id, summary } = session.whole(s);
    const { laidFor } = this;
    if (laidFor.id !== id) this.lanes.clear();
    if (laidFor.id !== id || (!moving && (laidFor.see !== s.see || (laidFor.since >= 0 && laidFor.since !== session.blocks.version)))) {
      this.laidFor = { id, see: s.see, turn: laidFor.turn + 1, since: -1 };
      this.rows = this.survey(id);
    }
    const key = JSON.stringify([s.scope, s.shut, s.tall, s.tasks, s.compact, this.height, this.laidFor.turn]);
    if (key === this.layoutKey) return;
    this.layoutKey = key;
    const overview = session.once(`overview ${id}`, () =>
      session.engine.marks(id, 0, this.length, this.length / OVERVIEW_CELLS),
    );
    this.truncated = overview.truncated;
    this.taskRows = session.once(`tasks ${id} ${s.tasks}`, () => this.layTasks(overview.marks));
    const [kind, number] = [s.scope[0], Number(s.scope.slice(1))];
    const laid = layTracks({
      lanes: this.facts.lanes,
      summary,
      marks: overview.marks,
      tasks: this.taskRows,
      memory: summary.memory.points > 1,
      shut: new Set(s.shut),
      tall: new Set(s.tall),
      inScope: (lane) => (kind === "p" ? lane.process === number : kind === "t" ? lane.thread === number : true),
      rowsOf: (lane) => this.rows.get(lane) ?? { depth: this.facts.lanes[lane].depth, outer: [] },
      compact: s.compact,
      room: this.height - RULER,
    });
    this.tracks = laid.tracks;
    this.contentHeight = laid.height + RULER;
  }

  /** The rows of lanes in the time in sight. @param {number} id @returns {Map<number, import('./rows.js').Rows>} */
  survey(id) {
    const { session } = this.app;
    const { lanes } = this.facts;
    const see = this.inSight;
    const rows = new Map();
    if (lanes.length > MOST_SURVEYED) return rows;
    const cell = Math.max(1, (see.to - see.from) / this.width); // as they are drawn
    lanes.forEach((lane, i) => rows.set(i, surveyRows(session.engine.cells(id, i, see.from, see.to, cell), lane, see)));
    // Nothing is fetched for this: what is drawn is, and then it is looked at again.
    if (session.engine.wanted(id).blocks.length) this.laidFor.since = session.blocks.version;
    return rows;
  }

  /** @returns {Range} */
  get inSight() {
    return readRange(this.app.s.see, this.length) ?? { from: 0, to: this.length };
  }

  /** Tasks of asyncio and processes that others made. */
  get made() {
    const { session, s } = this.app;
    const { id } = session.whole(s);
    return session.once(`made ${id}`, () => session.engine.tasks(id));
  }

  /** @param {TimelineMark[]} marks of the whole run */
  layTasks(marks) {
    const laid = layTasks(this.made.tasks, this.app.s.tasks);
    for (const mark of marks)
      if (mark.kind === "task" && !mark.value) {
        const of = laid.get(this.facts.lanes[mark.lane].process);
        if (of) of.brief = true;
      }
    return laid;
  }

  /** @param {number} width @param {number} height */
  resize(width, height) {
    this.width = width || 800;
    this.height = height || 400;
  }

  /** What one pixel is worth. */
  get pixel() {
    return (this.see.to - this.see.from) / this.width;
  }

  /** @param {number} t */
  x(t) {
    return ((t - this.see.from) / (this.see.to - this.see.from)) * this.width;
  }

  /** @param {number} x */
  t(x) {
    return this.see.from + (x / this.width) * (this.see.to - this.see.from);
  }

  /** Ask for what is in sight. @param {number} scrollTop */
  load(scrollTop) {
    const { session, s } = this.app;
    const { id } = session.whole(s);
    this.see = this.inSight;
    const { from, to } = this.see;
    const cell = Math.max(1, this.pixel);
    const key = `${id} ${from} ${to} ${this.width}`;
    for (const track of this.tracks) {
      const known = track.lane < 0 ? null : this.lanes.get(track.lane);
      if (track.lane < 0 || (known?.key === key && (known.since < 0 || known.since === session.blocks.version))) continue;
      if (track.top + RULER > scrollTop + this.height || track.top + track.height + RULER < scrollTop) continue;
      const cells = session.engine.cells(id, track.lane, from, to, cell);
      const since = session.blocks.missing(session.whole(s)) ? session.blocks.version : -1;
      this.lanes.set(track.lane, { key, since, cells });
    }
    if (this.marksKey !== key) {
      this.marksKey = key;
      this.marks = session.engine.marks(id, from, to, cell).marks;
    }
    const turnsKey = `${key} ${session.blocks.version} ${[...this.lanes.keys()]}`;
    if (this.turnsKey !== turnsKey) {
      this.turnsKey = turnsKey;
      this.turns = findTurns(this);
    }
  }

  /** @param {number} lane @returns {Cells | null} */
  cellsOf(lane) {
    return this.lanes.get(lane)?.cells ?? null;
  }

  /** @param {Track} track */
  marksOf(track) {
    return this.marks.filter((m) => m.lane === track.lane);
  }

  // ---- drawing ----

  /** @param {import('../paint.js').Painter} p @param {number} height @param {number} scrollTop */
  paint(p, height, scrollTop) {
    const { app } = this;
    const { session, s, palette } = app;
    const paper = {
      p, width: this.width, height, see: this.see, x: (/** @type {number} */ t) => this.x(t),
      offset: scrollTop - RULER, palette,
    };
    const colors = app.colors();
    const found = session.matches(s);
    const byState = s.color === "state";
    this.boxes = 0;
    paintGrid(paper);
    for (const track of this.tracks) {
      const y = track.top - paper.offset;
      if (y > height || y + track.height < 0) continue;
      if (track.kind === "lane") {
        const cells = this.cellsOf(track.lane);
        const marks = this.marksOf(track);
        const sampled = this.facts.lanes[track.lane].sampled;
        if (cells) {
          this.boxes += paintCells(paper, track, cells, {
            color: (i) => (byState && sampled ? app.stateColor(cells.state[i]) : "") || colors.of(cells.func[i]),
            label: (func) => session.label(func),
            has: found.funcs.length ? found.has : null,
            selected: s.f,
          });
          paintLostCells(paper, track, cells);
          paintFold(paper, track, this.foldWords(track), found.funcs.length > 0 && track.outer.some((f) => found.has[f]), track.outer.includes(s.f));
        }
        paintMarks(paper, track, marks, this.stripsOf(track, marks));
      } else if (track.kind === "tasks") paintTasks(paper, track, this.tasks(track), (mark) => this.taskRow(mark), this.lives(track));
      else if (track.kind !== "process") paintCurves(paper, track, this.curves(track));
      paintHead(paper, track);
    }
    paintTurns(paper, this.turns, (lane) => this.tracks.find((t) => t.lane === lane));
    paintFlows(paper, this.flows());
    paintRuler(paper, this.length);
    return paper;
  }

  /** What the row that stands for outer ones says, longest first. @param {Track} track */
  foldWords({ outer }) {
    const names = outer.map((func) => this.app.session.label(func));
    const of = (/** @type {string[]} */ shown) => `${outer.length} outer rows: ${shown.join(" › ")}`;
    return [names, [...names.slice(0, 2), "…", ...names.slice(-2)], [...names.slice(0, 1), "…", ...names.slice(-1)], ["…", ...names.slice(-1)]].map(of);
  }

  /** Steps of tasks of a process in sight. @param {Track} track */
  tasks({ process }) {
    return this.marks.filter((m) => m.kind === "task" && this.facts.lanes[m.lane].process === process);
  }

  /** The row of a step; -1: there is no room for its task. @param {TimelineMark} mark */
  taskRow(mark) {
    const rows = this.taskRows.get(this.facts.lanes[mark.lane].process);
    if (!rows) return -1;
    if (!mark.value) return 0;
    const at = rows.of.get(mark.value)?.row;
    return at === undefined ? -1 : at + (rows.brief ? 1 : 0);
  }

  /** Tasks of a process in sight that are long enough to be seen. @param {Track} track */
  lives({ process }) {
    const rows = this.taskRows.get(process);
    const { from, to } = this.see;
    const lives = [];
    for (const { row, task } of rows?.of.values() ?? [])
      if (task.created < to && task.done > from && task.done - task.created >= this.pixel)
        lives.push({ row: row + (rows?.brief ? 1 : 0), begin: task.created, end: task.done, name: task.name });
    return lives;
  }

  /** Where a task is drawn; -1: nowhere. @param {number} process @param {number} task */
  taskY(process, task) {
    const track = this.tracks.find((t) => t.kind === "tasks" && t.process === process);
    const rows = this.taskRows.get(process);
    const found = rows?.of.get(task);
    return track && rows && found ? track.top + HEAD + (found.row + (rows.brief ? 1 : 0) + 0.5) * STRIP : -1;
  }

  /** What leads from one track to another: a task that waits for another or made it, a process that made one. */
  flows() {
    const flows = [];
    for (const mark of this.marks) {
      if (mark.kind !== "await" || !mark.other) continue;
      const { process } = this.facts.lanes[mark.lane];
      flows.push({ t: mark.begin, from: this.taskY(process, mark.value), to: this.taskY(process, mark.other), until: mark.begin, made: false });
    }
    for (const task of this.madeInSight())
      flows.push({ t: task.created, from: this.taskY(task.process, task.creator), to: this.taskY(task.process, task.number), until: task.created, made: true });
    for (const flow of this.made.flows) {
      const parent = this.tracks.find((t) => t.lane === flow.fromLane);
      const child = this.tracks.find((t) => t.lane === flow.toLane);
      if (parent && child && parent !== child)
        flows.push({ t: flow.from, from: parent.top + HEAD - 4, to: child.top + HEAD, until: flow.to, made: true });
    }
    return flows.filter((flow) => flow.from >= 0 && flow.to >= 0);
  }

  /** Tasks in sight that another one made, if they can be told apart. */
  madeInSight() {
    const { from, to } = this.see;
    const found = [];
    for (const task of this.made.tasks) {
      if (!task.creator || task.created < from || task.created > to || task.done - task.created < this.pixel) continue;
      if (found.push(task) > MOST_MADE) return [];
    }
    return found;
  }

  /** @param {Track} track @param {TimelineMark[]} marks */
  stripsOf(track, marks) {
    return track.strips ? layStrips(marks.filter((m) => STRIPS.has(m.kind))).of : new Map();
  }

  /** The curves of a track. @param {Track} track @returns {import('./paint.js').CurveData[]} */
  curves(track) {
    const { app } = this;
    const { colors } = app.palette;
    if (track.kind === "counter") {
      const points = this.marks.filter((m) => m.kind === "counter" && m.name === track.name);
      return points.length
        ? [{
            ns: points.map((m) => m.begin), values: points.map((m) => m.value), lows: points.map((m) => m.lowest),
            highs: points.map((m) => m.highest), color: colors.accent, unit: "",
          }]
        : [];
    }
    const found = this.memoryCurves();
    return found.curves.map((/** @type {{values: Float64Array}} */ { values }, /** @type {number} */ k) => ({
      ns: found.ns, values, lows: values, highs: values, unit: "bytes",
      color: [colors.mark, colors.accent, colors["ink-soft"], colors["ink-faint"]][k] ?? colors.ink,
    }));
  }

  /** Of all processes together, or that of the scope, at the timeline's times; where nothing is known nothing is drawn. */
  memoryCurves() {
    const { session, s } = this.app;
    const { id } = session.whole(s);
    const process = session.processOf(s);
    return session.once(`timeline memory ${id} ${process}`, () => {
      const found = curvesOf(session.engine.memory(id).points, process);
      const shift = found.first - this.facts.startNs;
      const curves = found.curves
        .filter((c) => c.key === "heap" || c.key === "rss")
        .map((c) => ({ ...c, values: c.values.map((v) => (Number.isNaN(v) ? 0 : v)) }));
      return { ns: found.ns.map((t) => t + shift), curves };
    });
  }

  // ---- what is where ----

  /** @param {number} y of the drawing @param {number} scrollTop @returns {Track | null} */
  trackAt(y, scrollTop) {
    const at = y + scrollTop - RULER;
    if (y < RULER) return null;
    return this.tracks.find((track) => at >= track.top && at < track.top + track.height) ?? null;
  }

  /** @param {number} x @param {number} y @param {number} scrollTop @returns {FoundCell | null} */
  cellAt(x, y, scrollTop) {
    const track = this.trackAt(y, scrollTop);
    const cells = track && track.lane >= 0 ? this.cellsOf(track.lane) : null;
    if (!track || !cells) return null;
    const depth = depthAt(track, y + scrollTop - RULER);
    if (depth < 0) return null;
    const i = this.cellIn(cells, depth, this.t(x));
    return i < 0 ? null : { track, cells, i };
  }

  /** What the code of a cell waited for at an instant. @param {FoundCell} found @param {number} x */
  turnAt({ track, cells, i }, x) {
    const [from, to] = [this.t(x - 1), this.t(x + 1)];
    return this.turns.find((turn) => turn.lane === track.lane && turn.depth === cells.depth[i] && turn.idle <= to && turn.before >= from) ?? null;
  }

  /** The lane whose row for outer ones is there. @param {number} y @param {number} scrollTop @returns {Track | null} */
  foldAt(y, scrollTop) {
    const track = this.trackAt(y, scrollTop);
    return track && onFold(track, y + scrollTop - RULER) ? track : null;
  }

  /** The cell of a depth at an instant, or within a pixel of it; -1: none. @param {Cells} cells @param {number} depth @param {number} t */
  cellIn(cells, depth, t) {
    let best = -1;
    for (let i = firstOf(cells, depth, t - this.pixel); i < cells.length && cells.depth[i] === depth; i++) {
      if (cells.begin[i] > t + this.pixel * 0.5) break;
      if (cells.end[i] > t || best < 0) best = i;
    }
    return best;
  }

  /** A mark in a lane's head or strips. @param {number} x @param {number} y @param {number} scrollTop
   * @returns {TimelineMark | null} */
  markAt(x, y, scrollTop) {
    const track = this.trackAt(y, scrollTop);
    if (track?.kind === "tasks") {
      const row = Math.floor((y + scrollTop - RULER - track.top - HEAD) / STRIP);
      const t = this.t(x);
      return this.tasks(track).findLast((m) => this.taskRow(m) === row && m.begin <= t + this.pixel && m.end >= t - this.pixel * 2) ?? null;
    }
    if (!track || track.lane < 0) return null;
    const marks = this.marksOf(track);
    const down = y + scrollTop - RULER - track.top;
    const strips = this.stripsOf(track, marks);
    /** @type {TimelineMark | null} */
    let best = null;
    for (const mark of marks) {
      const [left, right] = [this.x(mark.begin), this.x(mark.end)];
      const strip = strips.get(mark);
      if (strip !== undefined ? Math.floor((down - HEAD) / STRIP) !== strip : down >= HEAD && !isBand(mark)) continue;
      if (x >= left - 5 && x <= Math.max(right, left) + 5 && !STRIPS.has(mark.kind)) best = mark;
      if (strip !== undefined && x >= left && x <= Math.max(right, left + 2)) best = mark;
    }
    return best;
  }
}

/** @param {TimelineMark} mark */
const isBand = (mark) => mark.kind === "lost" || mark.kind === "waited";

/** The first cell of a depth that ends after an instant; cells are sorted by depth, then by time, and do not overlap.
 * @param {Cells} cells @param {number} depth @param {number} t */
export function firstOf(cells, depth, t) {
  let [low, high] = [0, cells.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (cells.depth[middle] < depth || (cells.depth[middle] === depth && cells.end[middle] <= t)) low = middle + 1;
    else high = middle;
  }
  return low;
}
