// Where a thread waited for the interpreter: it stood in Python code without an event while another thread of its process had
// some. An estimate from both sides: it may have waited since its own last event until its next one, and did not have the
// interpreter from the first to the last event of others in between, if they kept it between theirs.

/**
 * @typedef {import('./scene.js').Scene} Scene
 * @typedef {import('../../../engine/engine.js').TimelineTurn} Turn
 */

/** Shorter ones cannot be seen, pixels. */
const LEAST = 3;
/** More events than that are too far away to look at each; they are counted in so many cells of each lane. */
const MOST_EVENTS = 300000;
const COUNT_CELLS = 50;

/** Processes with several traced threads, of which C calls are known: what waits elsewhere is in one.
 * @param {import('../../../engine/engine.js').Lane[]} lanes @param {any} summary @returns {number[]} */
export function turnProcesses(lanes, { processes }) {
  const traced = lanes.filter((lane) => !lane.sampled).map((lane) => lane.process);
  return [...new Set(traced)].filter((p) => traced.indexOf(p) !== traced.lastIndexOf(p) && processes[p]?.cCalls);
}

/** What is in sight of them; nothing from far away, nor where single calls are not all here. @param {Scene} scene @returns {Turn[]} */
export function findTurns(scene) {
  const { session, s } = scene.app;
  const recording = session.whole(s);
  const range = around(scene, recording.leftOut ? recording.kept : { from: 0, to: scene.length });
  /** @type {Turn[]} */
  const found = [];
  if (!range) return found;
  for (const process of turnProcesses(scene.facts.lanes, recording.summary)) {
    if (!isNear(scene, process, range)) continue;
    for (const turn of session.engine.turns(recording.id, process, range.from, range.to, scene.pixel * LEAST))
      if (turn.before >= scene.see.from && turn.idle <= scene.see.to) found.push(turn);
  }
  // Without the events of a thread it would seem to be silent.
  return session.blocks.missing(recording) ? [] : found;
}

/** What is in sight and as much on either side, of what there is; null: not all in sight is there.
 * @param {Scene} scene @param {import('./range.js').Range | null} kept */
function around({ see }, kept) {
  if (!kept || see.from < kept.from || see.to > kept.to) return null;
  const wide = see.to - see.from;
  return { from: Math.max(kept.from, see.from - wide), to: Math.min(kept.to, see.to + wide) };
}

/** Are there few enough events to look at each? @param {Scene} scene @param {number} process @param {import('./range.js').Range} range */
function isNear({ app, facts }, process, { from, to }) {
  const { session, s } = app;
  let events = 0;
  for (let i = 0; i < facts.lanes.length && events <= MOST_EVENTS; i++) {
    if (facts.lanes[i].process !== process) continue;
    const { spans } = session.engine.cells(session.whole(s).id, i, from, to, Math.max(1, (to - from) / COUNT_CELLS));
    for (const begun of spans) events += 2 * begun;
  }
  return events <= MOST_EVENTS;
}
