// Controls that flame graph and sunburst share.

import { choice, segments, toggle } from "./dom.js";
import { relativeToggle } from "./toolbar.js";

/** @param {import('../app.js').App} app @param {boolean} [round] */
export function flameTools(app, round = false) {
  const { s, store, session } = app;
  const states = session.summary(s).states;
  /** @type {[string, string][]} */
  const colors = [
    ["module", "module"],
    ["self", "self time"],
  ];
  if (states) colors.push(["state", "state"]);
  return [
    round
      ? null
      : segments(
          "Direction",
          [
            ["down", "Icicle"],
            ["up", "Flame"],
          ],
          s.shape,
          (shape) => store.set({ shape }),
        ),
    toggle(
      "Inverted",
      s.rev,
      (rev) => store.set({ rev, n: 0, x0: 0, x1: 1 }),
      "Turn the stacks round: who leads to the time that was spent",
    ),
    choice(
      "Depth",
      [
        ["0", round ? "auto" : "all"],
        ...["3", "5", "8", "10", "15", "20", "30", "50"].map((d) => /** @type {[string, string]} */ ([d, d])),
      ],
      String(s.depth),
      (depth) => store.set({ depth: Number(depth) }),
    ),
    choice(
      "Cut-off",
      [
        ["0", "auto"],
        ["0.1", "0.1 %"],
        ["0.5", "0.5 %"],
        ["1", "1 %"],
        ["2", "2 %"],
        ["5", "5 %"],
      ],
      String(s.cut),
      (cut) => store.set({ cut: Number(cut) }),
    ),
    session.isDiff(s)
      ? relativeToggle(app)
      : choice("Colour", colors, s.color, (color) => store.set({ color })),
  ];
}
