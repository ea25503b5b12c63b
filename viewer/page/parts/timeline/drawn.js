// For tests: what of the timeline is on the screen.

import { CELL } from "../../../engine/engine.js";
import { RULER } from "./paint.js";
import { hasRow, rowTop } from "./lanes.js";

const MOST_BOXES = 20000;

/** @param {import('../../views/timeline.js').TimelineView} view */
export function drawnTimeline(view) {
  const { scene, app } = view;
  const area = view.area.getBoundingClientRect();
  /** @type {any[]} */
  const boxes = [];
  for (const track of scene.tracks) {
    const cells = track.lane >= 0 ? scene.cellsOf(track.lane) : null;
    for (let i = 0; cells && i < cells.length && boxes.length < MOST_BOXES; i++) {
      const y = rowTop(track, cells.depth[i]) - view.scrollTop + RULER;
      if (!hasRow(track, cells.depth[i])) continue;
      const [left, right] = [Math.max(0, scene.x(cells.begin[i])), Math.min(scene.width, scene.x(cells.end[i]))];
      boxes.push({
        lane: track.lane, depth: cells.depth[i], begin: cells.begin[i], end: cells.end[i], func: cells.func[i],
        name: app.session.functions[cells.func[i]]?.qualname, exact: !!(cells.flags[i] & CELL.EXACT),
        lost: !!(cells.flags[i] & CELL.LOST), error: !!(cells.flags[i] & CELL.ERROR), spans: cells.spans[i],
        covered: cells.covered[i], state: cells.state[i],
        x: area.left + left, y: area.top + y, w: right - left, h: track.row,
      });
    }
  }
  return {
    boxes, marks: scene.marks, turns: scene.turns, moving: view.moving, see: scene.see, length: scene.length, measured: view.measured, cursor: view.cursor,
    tracks: scene.tracks.map((t) => ({ kind: t.kind, lane: t.lane, title: t.title, top: area.top + t.top - view.scrollTop + RULER, height: t.height, strips: t.strips, shut: t.shut, rows: t.rows, deeper: t.deeper, omitted: t.omitted, outer: t.outer.map((f) => app.session.functions[f]?.qualname), fold: t.fold, words: scene.foldWords(t), noteFrom: area.left + t.noteFrom, noteTo: area.left + t.noteTo })),
    flows: scene.flows(), tasks: [...scene.taskRows.values()].map((of) => ({ rows: of.rows, omitted: of.omitted, brief: of.brief, tasks: of.of.size })),
    lanes: scene.facts.lanes, frameMs: view.frameMs, count: scene.boxes, bar: view.bar.innerText,
    fetched: app.session.blocks.fetched, waiting: app.session.blocks.flying.size, legend: view.legend.innerText, said: view.live.textContent,
    curves: scene.tracks.filter((t) => t.kind === "counter" || t.kind === "memory").map((t) => ({ name: t.title, curves: scene.curves(t) })),
  };
}
