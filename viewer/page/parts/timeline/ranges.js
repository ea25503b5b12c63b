// Stretches of time as recordings of their own: what all views but the timeline show when a range is chosen. The engine
// makes them; the last few are kept.

/**
 * @typedef {import('../../session.js').Session} Session
 * @typedef {import('../../state.js').PageState} PageState
 */

export const LEFT_OUT =
  "Single calls of that time are not in this page, so they cannot be counted or searched here. `fathom view` of the recording has them.";

const KEPT = 3;
/** What a stretch of time has of its own; everything else is that of the whole recording. */
const OWN = [
  "metrics", "columns", "states", "stateTitles", "stateColors", "sampling", "processes", "threads", "counts", "tree",
  "hasMinMax",
];

export class Ranges {
  /** @param {Session} session */
  constructor(session) {
    this.session = session;
    /** By recording and range, the one used last at the end. @type {Map<string, {id: number, summary: any}>} */
    this.made = new Map();
    /** Which range could not be made, and why. */
    this.trouble = { key: "", text: "" };
    /** Which range is made when single calls have come. */
    this.waits = { key: "", version: -1 };
  }

  /** The stretch that is chosen, as a recording; null: all of it is shown. @param {PageState} s
   * @returns {{id: number, summary: any} | null} */
  shown(s) {
    const { session } = this;
    const range = s.at && !session.asksMoment(s) ? session.range(s) : null;
    if (!range) return null;
    const whole = session.whole(s);
    const key = `${whole.id} ${range.from} ${range.to}`;
    if (this.trouble.key === key || (this.waits.key === key && this.waits.version === session.blocks.version)) return null;
    try {
      const known = this.made.get(key) ?? this.make(whole, range, key);
      if (!known) return null;
      this.made.delete(key);
      this.made.set(key, known);
      return known;
    } catch (error) {
      if (session.engine.dead) throw error;
      this.trouble = { key, text: /** @type {Error} */ (error).message };
      return null;
    }
  }

  /** @param {import('../../session.js').OpenRecording} whole @param {import('./range.js').Range} range @param {string} name */
  make(whole, range, name) {
    const { engine, blocks } = this.session;
    for (const [key, { id }] of this.made) {
      if (this.made.size < KEPT) break;
      this.made.delete(key);
      this.session.forget(id);
      engine.close(id);
    }
    const id = engine.range(whole.id, range.from, range.to);
    if (blocks.missing(whole)) {
      engine.close(id);
      this.waits = { key: name, version: blocks.version };
      return null;
    }
    const own = engine.summary(id);
    const summary = { ...whole.summary, ...Object.fromEntries(OWN.map((name) => [name, own[name]])), scopeOptions: undefined };
    this.session.learnFunctions();
    return { id, summary };
  }
}
