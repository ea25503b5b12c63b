// Which ink can be read on a colour.

/** @type {Map<string, string>} */
const inks = new Map();

/** @param {string} color #rrggbb or hsl(h s% l%) @param {boolean} dark */
export function readableOn(color, dark) {
  let ink = inks.get(color + dark);
  if (!ink) {
    const lightness = lightnessOf(color, dark ? 0.3 : 0.8);
    // On a dark page white letters stay as long as they can be read well.
    ink = lightness > (dark ? 0.5 : 0.45) ? "#14181d" : "#f4f6f8";
    if (inks.size > 5000) inks.clear();
    inks.set(color + dark, ink);
  }
  return ink;
}

/** About how light it looks, 0 to 1. @param {string} color @param {number} unknown */
function lightnessOf(color, unknown) {
  const hex = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/i.exec(color);
  if (hex) {
    const [r, g, b] = hex.slice(1).map((h) => (parseInt(h, 16) / 255) ** 2.2);
    return (0.2126 * r + 0.7152 * g + 0.0722 * b) ** (1 / 2.2);
  }
  const parts = /^hsl\(([\d.]+) ([\d.]+)% ([\d.]+)%\)$/.exec(color);
  if (!parts) return unknown;
  const [h, s, l] = [Number(parts[1]), Number(parts[2]) / 100, Number(parts[3]) / 100];
  const a = s * Math.min(l, 1 - l);
  const channel = (/** @type {number} */ n) => {
    const k = (n + h / 30) % 12;
    return (l - a * Math.max(-1, Math.min(k - 3, 9 - k, 1))) ** 2.2;
  };
  return (0.2126 * channel(0) + 0.7152 * channel(8) + 0.0722 * channel(4)) ** (1 / 2.2);
}
