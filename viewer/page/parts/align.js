// Which line of one text is which line of another: a plain line diff, so that numbers of a line are compared with its own
// even where lines were added above it. Lines that occur once in both texts are anchors, in the order in which most of
// them stand; between anchors the same again, and where there are none, the longest common subsequence. What is left is
// looked at twice more: blocks that moved, and lines that were edited. The work is bounded; what would take longer stays apart.

/** Longer texts are compared by line number. */
const MOST_LINES = 20_000;
/** Lines looked at in all. */
const MOST_WORK = 3_000_000;
/** Cells of a table of common subsequences, or pairs of edited lines. */
const MOST_CELLS = 250_000;
/** An edited line has at least so much of its text in common with the line it was, at its beginning and end. */
const ALIKE = 0.5;

/** @typedef {'same' | 'changed' | 'moved'} Match */
/** @typedef {{before: Int32Array, after: Int32Array, how: (Match | undefined)[], byNumber: boolean}} Alignment
 * `before[i]` is the line (from 0) that line i of the new text was, or -1; `after` the other way round */

/** @param {string[]} old @param {string[]} now @returns {Alignment} */
export function alignLines(old, now) {
  const byNumber = old.length > MOST_LINES || now.length > MOST_LINES;
  const result = {
    before: new Int32Array(now.length).fill(-1),
    after: new Int32Array(old.length).fill(-1),
    how: /** @type {(Match | undefined)[]} */ ([]),
    byNumber,
  };
  if (byNumber) {
    for (let i = 0; i < Math.min(old.length, now.length); i++) pair(result, i, i, "same");
    return result;
  }
  new Aligner(old, now, result).run();
  return result;
}

/** @param {Alignment} result @param {number} i @param {number} j @param {Match} how */
function pair(result, i, j, how) {
  result.after[i] = j;
  result.before[j] = i;
  result.how[j] = how;
}

class Aligner {
  /** @param {string[]} old @param {string[]} now @param {Alignment} result */
  constructor(old, now, result) {
    this.old = old;
    this.now = now;
    this.result = result;
    this.work = MOST_WORK;
  }

  run() {
    /** Ranges still to be compared: [from, to) of the old text, then of the new. @type {number[][]} */
    const open = [[0, this.old.length, 0, this.now.length]];
    for (let range = open.pop(); range; range = open.pop()) {
      const [a, b, c, d] = this.trim(range);
      this.work -= b - a + (d - c);
      if (a === b || c === d || this.work < 0) continue;
      const anchors = increasing(uniqueInBoth(this.old, a, b, this.now, c, d));
      if (!anchors.length) {
        this.common(a, b, c, d);
        continue;
      }
      let [i, j] = [a, c];
      for (const [x, y] of anchors) {
        pair(this.result, x, y, "same");
        open.push([i, x, j, y]);
        [i, j] = [x + 1, y + 1];
      }
      open.push([i, b, j, d]);
    }
    this.findMoved();
    this.findEdited();
  }

  /** Equal lines at both ends. @param {number[]} range */
  trim([a, b, c, d]) {
    while (a < b && c < d && this.old[a] === this.now[c]) pair(this.result, a++, c++, "same");
    while (a < b && c < d && this.old[b - 1] === this.now[d - 1]) pair(this.result, --b, --d, "same");
    return [a, b, c, d];
  }

  /** The longest common subsequence, where the table for it is small. @param {number} a @param {number} b
   * @param {number} c @param {number} d */
  common(a, b, c, d) {
    const width = d - c + 1;
    if ((b - a + 1) * width > MOST_CELLS) return;
    this.work -= (b - a) * width;
    const length = new Uint32Array((b - a + 1) * width);
    for (let i = b - a - 1; i >= 0; i--)
      for (let j = d - c - 1; j >= 0; j--)
        length[i * width + j] =
          this.old[a + i] === this.now[c + j]
            ? length[(i + 1) * width + j + 1] + 1
            : Math.max(length[(i + 1) * width + j], length[i * width + j + 1]);
    for (let i = 0, j = 0; i < b - a && j < d - c;) {
      if (this.old[a + i] === this.now[c + j]) pair(this.result, a + i++, c + j++, "same");
      else if (length[(i + 1) * width + j] >= length[i * width + j + 1]) i++;
      else j++;
    }
  }

  /** What was taken out here and put in there: lines that are left once in both, and equal ones beside them. */
  findMoved() {
    const { before, after } = this.result;
    const left = (/** @type {string[]} */ text, /** @type {Int32Array} */ other) => {
      /** @type {Map<string, number>} */
      const lines = new Map();
      // A line of punctuation is the same everywhere.
      for (let i = 0; i < text.length; i++)
        if (other[i] < 0 && /\w\W*\w/.test(text[i])) lines.set(text[i], lines.has(text[i]) ? -1 : i);
      return lines;
    };
    const now = left(this.now, before);
    for (const [text, i] of left(this.old, after)) {
      const j = now.get(text) ?? -1;
      if (i < 0 || j < 0 || after[i] >= 0 || before[j] >= 0) continue;
      pair(this.result, i, j, "moved");
      for (const step of [-1, 1])
        for (let k = step; this.free(i + k, j + k); k += step) pair(this.result, i + k, j + k, "moved");
    }
  }

  /** @param {number} i @param {number} j */
  free(i, j) {
    return (
      this.result.after[i] === -1 && this.result.before[j] === -1 && this.old[i] === this.now[j] && i >= 0
    );
  }

  /** Between two lines that stayed: what is nearly the same. */
  findEdited() {
    const { before, after } = this.result;
    for (let i = 0, j = 0; i < this.old.length && j < this.now.length;) {
      if (after[i] >= 0) [i, j] = [i + 1, this.result.how[after[i]] === "same" ? after[i] + 1 : j];
      else if (before[j] >= 0 && this.result.how[j] === "moved") j++;
      else if (before[j] >= 0) i++;
      else {
        const [b, d] = [this.end(after, i), this.end(before, j)];
        if ((b - i) * (d - j) <= MOST_CELLS) this.pairEdited(i, b, j, d);
        [i, j] = [b, d];
      }
    }
  }

  /** Where a run of lines without counterpart ends. @param {Int32Array} other @param {number} i */
  end(other, i) {
    while (i < other.length && other[i] < 0) i++;
    return i;
  }

  /** @param {number} a @param {number} b @param {number} c @param {number} d */
  pairEdited(a, b, c, d) {
    for (let i = a, from = c; i < b && from < d; i++) {
      let best = -1;
      let most = ALIKE;
      for (let j = from; j < d; j++) {
        const likeness = alike(this.old[i], this.now[j]);
        if (likeness > most) [best, most] = [j, likeness];
      }
      if (best < 0) continue;
      pair(this.result, i, best, "changed");
      from = best + 1;
    }
  }
}

/** The share of the longer line that both have in common at their ends, indentation aside. @param {string} x @param {string} y */
function alike(x, y) {
  const a = x.trim();
  const b = y.trim();
  const least = Math.min(a.length, b.length, 2000);
  let head = 0;
  while (head < least && a[head] === b[head]) head++;
  let tail = 0;
  while (tail < least - head && a[a.length - 1 - tail] === b[b.length - 1 - tail]) tail++;
  return least ? (head + tail) / Math.max(a.length, b.length) : 0;
}

/** Lines that occur once in both ranges, in the order of the old text. @param {string[]} old @param {number} a
 * @param {number} b @param {string[]} now @param {number} c @param {number} d @returns {[number, number][]} */
function uniqueInBoth(old, a, b, now, c, d) {
  /** @type {Map<string, {i: number, j: number}>} */
  const seen = new Map();
  for (let i = a; i < b; i++) seen.set(old[i], { i: seen.has(old[i]) ? -1 : i, j: -1 });
  for (let j = c; j < d; j++) {
    const place = seen.get(now[j]);
    if (place) place.j = place.j === -1 ? j : -2;
  }
  return [...seen.values()].filter(({ i, j }) => i >= 0 && j >= 0).map(({ i, j }) => [i, j]);
}

/** The most pairs whose second numbers grow, too. @param {[number, number][]} pairs @returns {[number, number][]} */
function increasing(pairs) {
  /** Of each length, the row with the smallest end. @type {number[]} */
  const ends = [];
  const previous = new Int32Array(pairs.length).fill(-1);
  pairs.forEach(([, y], row) => {
    let [low, high] = [0, ends.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (pairs[ends[middle]][1] < y) low = middle + 1;
      else high = middle;
    }
    if (low) previous[row] = ends[low - 1];
    ends[low] = row;
  });
  /** @type {[number, number][]} */
  const chosen = [];
  for (let row = ends.length ? ends[ends.length - 1] : -1; row >= 0; row = previous[row])
    chosen.push(pairs[row]);
  return chosen.reverse();
}
