// Which rows of a lane are worth their room in a stretch of time: how deep it is there, and which of its outermost rows are
// one and the same span all along.

import { CELL } from "../../../engine/engine.js";

/**
 * @typedef {import('../../../engine/engine.js').Lane} Lane
 * @typedef {import('../../../engine/engine.js').Cells} Cells
 * @typedef {import('./range.js').Range} Range
 * @typedef {{depth: number, outer: number[]}} Rows  `outer`: functions of the outermost rows that are one span each
 */

/** What lies in so small a share of the time, at its ends, is not seen. */
const EDGE = 1 / 400;

/** @param {Cells} cells by depth, then by time @param {Lane} lane @param {Range} see @returns {Rows} */
export function surveyRows(cells, lane, see) {
  const depth = cells.length ? cells.depth[cells.length - 1] + 1 : 0;
  const edge = (see.to - see.from) * EDGE;
  const [from, to] = [Math.max(see.from, lane.begin) + edge, Math.min(see.to, lane.end) - edge];
  /** @type {number[]} */
  const outer = [];
  let found = NOTHING;
  for (let i = 0; i < cells.length; ) {
    found = NOTHING;
    for (; i < cells.length && cells.depth[i] === outer.length; i++)
      if (cells.end[i] > from && cells.begin[i] < to) found = found === NOTHING && isAllAlong(cells, i, from, to) ? i : SEVERAL;
    if (found < 0) break;
    outer.push(cells.func[found]);
  }
  // The innermost of them is what the thread does, if nothing happens below it.
  if (found !== SEVERAL) outer.pop();
  return { depth, outer };
}

const NOTHING = -1;
const SEVERAL = -2;

/** @param {Cells} cells @param {number} i @param {number} from @param {number} to */
function isAllAlong(cells, i, from, to) {
  return !!(cells.flags[i] & CELL.EXACT) && cells.begin[i] <= from && cells.end[i] >= to;
}
