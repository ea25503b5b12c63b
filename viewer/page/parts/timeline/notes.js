// The words "80 more tasks" behind the name of a track are drawn, and clicked, as all of the timeline is. For the keyboard and for
// screen readers a button that cannot be seen lies over them: what has the focus has a ring.

import { el } from "../dom.js";
import { HEAD, rowWords } from "./lanes.js";
import { RULER } from "./paint.js";

/** @typedef {import('./lanes.js').Track} Track */

export class Notes {
  /** @param {(track: Track) => void} act @param {(track: Track) => void} reveal let it be in sight, for it has the focus
   * @param {() => void} leave there is no button any more where the focus was */
  constructor(act, reveal, leave) {
    this.use = { act, reveal, leave };
    /** By process. @type {Map<number, {button: HTMLElement, track: Track}>} */
    this.of = new Map();
    this.node = el("div.notes");
  }

  /** @param {Track[]} tracks as they were drawn @param {number} scrollTop @param {number} height of what is in sight */
  update(tracks, scrollTop, height) {
    const wanted = tracks.filter((t) => t.kind === "tasks" && rowWords(t));
    const kept = new Set(wanted.map((t) => t.process));
    for (const [process, { button }] of this.of) if (!kept.has(process)) this.drop(process, button);
    for (const track of wanted) {
      const note = this.of.get(track.process) ?? this.add(track);
      note.track = track;
      note.button.setAttribute("aria-label", `${track.title}: ${rowWords(track)}`);
      // Never out of the drawing, which the browser would move to show it.
      const top = Math.max(0, Math.min(height - HEAD, track.top + RULER - scrollTop));
      const [left, width] = [track.noteFrom - 4, track.noteTo - track.noteFrom + 8];
      if (Number.isFinite(left)) Object.assign(note.button.style, { left: `${left}px`, top: `${top + 1}px`, width: `${width}px`, height: `${HEAD - 1}px` });
    }
  }

  /** @param {Track} track */
  add(track) {
    const find = () => /** @type {{track: Track}} */ (this.of.get(track.process)).track;
    const button = el("button", {
      type: "button",
      onclick: () => this.use.act(find()),
      onfocus: () => this.use.reveal(find()),
      // Keys of the drawing are not those of a button in it.
      onkeydown: (/** @type {KeyboardEvent} */ event) => (event.key === "Enter" || event.key === " ") && event.stopPropagation(),
    });
    const note = { button, track };
    this.of.set(track.process, note);
    this.node.append(button);
    return note;
  }

  /** @param {number} process @param {HTMLElement} button */
  drop(process, button) {
    const focused = button.ownerDocument.activeElement === button;
    this.of.delete(process);
    button.remove();
    if (focused) this.use.leave();
  }
}
