// Tasks of asyncio on the timeline: which row each has for all of its life, and what leads from one to another.

/**
 * @typedef {import('../../../engine/engine.js').TimelineTask} TimelineTask
 * @typedef {{rows: number, omitted: number, of: Map<number, {row: number, task: TimelineTask}>, brief: boolean}} TaskRows
 *   of one process, by number of a task; `omitted`: tasks that find no row; `brief`: the first row is for those that are too
 *   short to be seen
 */

/** Rows of a process that nobody asked for more of, and how many times as many there are when one does. */
export const FEW_TASK_ROWS = 20;
export const MORE_TASK_ROWS = 4;

/** A row for each task, so that no two overlap; of each process. @param {TimelineTask[]} tasks
 * @param {number} most rows of a process @returns {Map<number, TaskRows>} */
export function layTasks(tasks, most) {
  /** @type {Map<number, TimelineTask[]>} */
  const processes = new Map();
  for (const task of [...tasks].sort((a, b) => a.created - b.created || a.number - b.number)) {
    const of = processes.get(task.process);
    if (of) of.push(task);
    else processes.set(task.process, [task]);
  }
  return new Map([...processes].map(([process, of]) => [process, layProcess(of, Math.min(most, of.length))]));
}

/** @param {TimelineTask[]} tasks by when they were made @param {number} most @returns {TaskRows} */
function layProcess(tasks, most) {
  /** @type {TaskRows} */
  const laid = { rows: 0, omitted: 0, of: new Map(), brief: false };
  const free = new FreeRows(most);
  for (const task of tasks) {
    const row = free.first(task.created);
    if (row < 0) laid.omitted++;
    else {
      free.take(row, task.done);
      laid.of.set(task.number, { row, task });
      laid.rows = Math.max(laid.rows, row + 1);
    }
  }
  return laid;
}

/** Until when rows are taken, as a tree with the soonest of two below each: thousands of rows for a million tasks are found
 * in some steps each. */
class FreeRows {
  /** @param {number} count */
  constructor(count) {
    this.size = 2 ** Math.ceil(Math.log2(Math.max(1, count)));
    this.soonest = new Float64Array(2 * this.size).fill(-Infinity);
    for (let row = count; row < this.size; row++) this.take(row, Infinity);
  }

  /** The first row that is free at an instant; -1: none. @param {number} t */
  first(t) {
    const { soonest, size } = this;
    let at = 1;
    if (soonest[at] > t) return -1;
    while (at < size) at = 2 * at + (soonest[2 * at] > t ? 1 : 0);
    return at - size;
  }

  /** @param {number} row @param {number} until */
  take(row, until) {
    const { soonest, size } = this;
    soonest[size + row] = until;
    for (let at = (size + row) >> 1; at; at >>= 1) soonest[at] = Math.min(soonest[2 * at], soonest[2 * at + 1]);
  }
}
