// From one span to the next by the keyboard: along a row, in to what it called, out to what called it; past the edge of a
// lane lies the next one.

import { firstOf } from "./scene.js";

/**
 * @typedef {import('./scene.js').Scene} Scene
 * @typedef {import('../../views/timeline.js').Cursor} Cursor
 */

/** @param {Scene} scene @param {number} lane @param {number} i @returns {Cursor} */
function cursorAt(scene, lane, i) {
  const cells = /** @type {import('../../../engine/engine.js').Cells} */ (scene.cellsOf(lane));
  return { lane, depth: cells.depth[i], begin: cells.begin[i], end: cells.end[i], func: cells.func[i] };
}

/** The first cell of a lane in sight at a depth, touching an instant if there is one. @param {Scene} scene @param {number} lane
 * @param {number} depth @param {number} from @returns {Cursor | null} */
function enter(scene, lane, depth, from) {
  const cells = scene.cellsOf(lane);
  if (!cells) return null;
  const i = firstOf(cells, depth, from);
  return i < cells.length && cells.depth[i] === depth ? cursorAt(scene, lane, i) : null;
}

/** @param {Scene} scene @param {Cursor | null} at @param {string} way "left", "right", "in", "out" @returns {Cursor | null} */
export function stepCell(scene, at, way) {
  const lanes = scene.tracks.filter((track) => track.lane >= 0 && scene.cellsOf(track.lane));
  if (!at) {
    for (const track of lanes) {
      const found = enter(scene, track.lane, track.outer.length, scene.see.from);
      if (found) return found;
    }
    return null;
  }
  const cells = scene.cellsOf(at.lane);
  if (!cells) return null;
  const here = lanes.findIndex((track) => track.lane === at.lane);
  if (way === "left" || way === "right") {
    const i = firstOf(cells, at.depth, at.begin) + (way === "left" ? -1 : 1);
    return i >= 0 && i < cells.length && cells.depth[i] === at.depth ? cursorAt(scene, at.lane, i) : null;
  }
  if (way === "out") {
    if (at.depth) return enter(scene, at.lane, at.depth - 1, at.begin);
    return here > 0 ? enter(scene, lanes[here - 1].lane, lanes[here - 1].outer.length, at.begin) : null;
  }
  const inner = enter(scene, at.lane, at.depth + 1, at.begin);
  if (inner && inner.begin < at.end && !lanes[here].shut) return inner;
  return here + 1 < lanes.length ? enter(scene, lanes[here + 1].lane, lanes[here + 1].outer.length, scene.see.from) : null;
}

