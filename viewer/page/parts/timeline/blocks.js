// Single calls that a served page has not yet: they are fetched from the recording when something needs them, in pieces
// of the file. Whoever asked goes on with what there is, and asks again when they have come.

/**
 * @typedef {import('../../session.js').Session} Session
 * @typedef {import('../../session.js').OpenRecording} OpenRecording
 * @typedef {import('../../../engine/engine.js').WantedBlock} WantedBlock
 */

/** Blocks that lie so close to one another come together, up to so much at once. */
const GAP = 1 << 17;
const MOST = 4 << 20;
const AT_ONCE = 4;

/** Which blocks are fetched together, by their places. @param {WantedBlock[]} blocks @returns {WantedBlock[][]} */
function pieces(blocks) {
  /** @type {WantedBlock[][]} */
  const made = [];
  for (const block of [...blocks].sort((a, b) => a.at - b.at)) {
    const last = made.at(-1);
    const end = last ? last[last.length - 1].at + last[last.length - 1].bytes : 0;
    if (last && block.at - end <= GAP && block.at + block.bytes - last[0].at <= MOST) last.push(block);
    else made.push([block]);
  }
  return made;
}

export class Blocks {
  /** @param {Session} session */
  constructor(session) {
    this.session = session;
    /** On their way, by recording, trace and block. @type {Set<string>} */
    this.flying = new Set();
    /** How often something came. */
    this.version = 0;
    /** Bytes that are on their way, and that ever came. */
    this.bytes = 0;
    this.fetched = 0;
    /** Why some could not be had. */
    this.trouble = "";
    /** Called when something came. */
    this.arrived = () => {};
    /** @type {Promise<void>} */
    this.done = Promise.resolve();
  }

  /** Did what was asked of the engine just now need what is not here? Then that is on its way. @param {OpenRecording} recording */
  missing(recording) {
    const { piece, id } = recording;
    if (!piece) return false;
    const { blocks } = this.session.engine.wanted(id);
    const wanted = blocks.filter((b) => !this.flying.has(`${id} ${b.trace} ${b.block}`));
    if (wanted.length && !this.trouble) this.done = this.fetch(id, piece, wanted);
    return blocks.length > 0;
  }

  /** @param {number} id @param {(at: number, bytes: number) => Promise<Uint8Array>} piece @param {WantedBlock[]} wanted */
  async fetch(id, piece, wanted) {
    const { engine } = this.session;
    const queue = pieces(wanted);
    for (const b of wanted) {
      this.flying.add(`${id} ${b.trace} ${b.block}`);
      this.bytes += b.bytes;
    }
    const take = async () => {
      for (let blocks = queue.shift(); blocks; blocks = queue.shift()) {
        const [from, last] = [blocks[0].at, blocks[blocks.length - 1]];
        const bytes = await piece(from, last.at + last.bytes - from);
        for (const b of blocks) {
          engine.giveBlock(id, b, bytes.subarray(b.at - from, b.at - from + b.bytes));
          this.bytes -= b.bytes;
          this.flying.delete(`${id} ${b.trace} ${b.block}`);
        }
        this.fetched += bytes.length;
      }
    };
    try {
      await Promise.all(Array.from({ length: AT_ONCE }, take));
    } catch (error) {
      this.trouble = /** @type {Error} */ (error).message;
    }
    this.version++;
    this.arrived();
  }
}
