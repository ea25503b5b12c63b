// Names out of a recording, made fit to be shown: what cannot be seen is shown by a sign for it, and
// what would turn the direction of the text around it loses that power. Nothing here makes markup.

const UNSEEN =
  /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

/** @param {string} c */
function sign(c) {
  const code = c.charCodeAt(0);
  // As Python spells them. Signs such as U+240A are missing in many fonts.
  if (c === "\n") return "\\n";
  if (c === "\t") return "\\t";
  if (c === "\r") return "\\r";
  return code < 0x100
    ? `\\x${code.toString(16).padStart(2, "0")}`
    : `\\u${code.toString(16).padStart(4, "0")}`;
}

/** Text in one line in which every character can be seen. @param {string} text */
export function visible(text) {
  return text.replace(UNSEEN, sign);
}

/** A line of source: tabs stay what they are. @param {string} text */
export function visibleSource(text) {
  return text.replace(UNSEEN, (c) => (c === "\t" ? "    " : sign(c)));
}

/** At most `max` characters, cut in the middle. @param {string} text @param {number} max */
export function shorten(text, max) {
  if (text.length <= max) return text;
  const head = Math.ceil((max - 1) * 0.6);
  return `${text.slice(0, head)}…${text.slice(text.length - (max - 1 - head))}`;
}

/** The last component of a path. @param {string} path */
export function baseName(path) {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** A regular expression of what somebody typed, or null if it is none. In lower case only: case does not
 * count. @param {string} text @returns {RegExp | null} */
export function searchPattern(text) {
  try {
    return new RegExp(text, /[A-Z]/.test(text) ? "u" : "iu");
  } catch {
    return null;
  }
}
