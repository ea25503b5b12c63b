// Tasks of asyncio on the timeline: which row each has for all of its life, and what leads from one to another.

/**
 * @typedef {import('../../../engine/engine.js').TimelineTask} TimelineTask
 * @typedef {{rows: number, omitted: number, of: Map<number, {row: number, task: TimelineTask}>, brief: boolean}} TaskRows
 *   of one process, by number of a task; `brief`: the first row is for those that are too short to be seen
 */

const MOST_ROWS = 20;

/** A row for each task, so that no two overlap; of each process. @param {TimelineTask[]} tasks
 * @returns {Map<number, TaskRows>} */
export function layTasks(tasks) {
  /** @type {Map<number, TaskRows & {busy: number[]}>} */
  const laid = new Map();
  for (const task of [...tasks].sort((a, b) => a.created - b.created || a.number - b.number)) {
    const into = laid.get(task.process) ?? { rows: 0, omitted: 0, of: new Map(), brief: false, busy: [] };
    laid.set(task.process, into);
    let row = into.busy.findIndex((end) => end <= task.created);
    if (row < 0) row = into.busy.length;
    if (row >= MOST_ROWS) into.omitted++;
    else {
      into.busy[row] = task.done;
      into.of.set(task.number, { row, task });
      into.rows = into.busy.length;
    }
  }
  return laid;
}
