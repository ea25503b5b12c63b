// Moving through a drawing with the arrow keys.

const NO_ROW = 0xffffffff;

/**
 * From one box of a layout to the next: "left" and "right" on the same level, "in" to what it called, "out" to its caller.
 * @param {{length: number, depth: ArrayLike<number>, parent: ArrayLike<number>}} layout
 * @param {number} from row, or -1 @param {'left' | 'right' | 'in' | 'out'} way @returns {number}
 */
export function stepInLayout(layout, from, way) {
  if (from < 0 || from >= layout.length) return 0;
  if (way === "out") return layout.parent[from] === NO_ROW ? from : layout.parent[from];
  const step = way === "left" ? -1 : 1;
  for (let i = from + step; i >= 0 && i < layout.length; i += step)
    if (way === "in" ? layout.parent[i] === from : layout.depth[i] === layout.depth[from]) return i;
  return from;
}

/** The nearest point in a direction; what lies aside counts as twice as far. @param {ArrayLike<number>} xs
 * @param {ArrayLike<number>} ys @param {number} from @param {number} dx @param {number} dy @returns {number} */
export function nearestPoint(xs, ys, from, dx, dy) {
  let best = from;
  let least = Infinity;
  for (let i = 0; i < xs.length; i++) {
    const [x, y] = [xs[i] - xs[from], ys[i] - ys[from]];
    const ahead = x * dx + y * dy;
    const far = ahead + 2 * Math.abs(x * dy - y * dx);
    if (ahead > 0.01 && far < least) [best, least] = [i, far];
  }
  return best;
}
