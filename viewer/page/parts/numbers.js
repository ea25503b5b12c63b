// Numbers for people: the same spelling as `fathom report`, so that page and terminal can be compared.

/** Below one of these, that many digits behind the point, in that unit: 3 to 4 digits in all.
 * @type {[number, number, number, string][]} */
const STEPS = [
  [999.5, 1, 0, "ns"],
  [9.995e3, 1e3, 2, "µs"],
  [99.95e3, 1e3, 1, "µs"],
  [999.5e3, 1e3, 0, "µs"],
  [9.995e6, 1e6, 2, "ms"],
  [99.95e6, 1e6, 1, "ms"],
  [999.5e6, 1e6, 0, "ms"],
  [9.9995e9, 1e9, 3, "s"],
  [99.995e9, 1e9, 2, "s"],
  [600e9, 1e9, 1, "s"],
];

/** @param {number} ns */
export function formatTime(ns) {
  const size = Math.abs(ns);
  if (!ns) return "0";
  for (const [below, unit, digits, name] of STEPS)
    if (size < below) return `${(ns / unit).toFixed(digits)} ${name}`;
  const seconds = Math.round(size / 1e9);
  const sign = ns < 0 ? "-" : "";
  if (seconds < 3600) return `${sign}${Math.floor(seconds / 60)} min ${two(seconds % 60)} s`;
  return `${sign}${Math.floor(seconds / 3600)} h ${two(Math.floor(seconds / 60) % 60)} min`;
}

/** @param {number} n */
const two = (n) => String(n).padStart(2, "0");

/** @param {number} count */
export function formatCount(count) {
  return Math.round(count)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ",");
}

/** @param {number} bytes */
function formatBytes(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  if (!bytes) return "0";
  let i = 0;
  for (; Math.abs(bytes) >= 999.5 && i < units.length - 1; i++) bytes /= 1024;
  const size = Math.abs(bytes);
  return `${bytes.toFixed(!i || size >= 99.95 ? 0 : size >= 9.995 ? 1 : 2)} ${units[i]}`;
}

/** A number of a metric with this unit. @param {number} value @param {string} unit */
export function formatValue(value, unit) {
  if (unit === "ns") return formatTime(value);
  if (unit === "bytes") return formatBytes(value);
  if (unit === "ppm") return `${(value / 1e4).toFixed(1)} %`;
  return formatCount(value);
}

/** With its sign, for differences. @param {number} value @param {string} unit */
export function formatDelta(value, unit) {
  if (!value) return "0";
  return (value > 0 ? "+" : "−") + formatValue(Math.abs(value), unit);
}

/** How a number changed: by how much, or by what share of what it was. @param {number} now @param {number} old
 * @param {boolean} relative @param {string} unit */
export function formatChange(now, old, relative, unit) {
  const d = now - old;
  if (!relative || !d) return formatDelta(d, unit);
  return old ? `${d > 0 ? "+" : "−"}${Math.abs((d / old) * 100).toFixed(1)} %` : "new";
}

/** A share in percent without the sign, "" for none. @param {number} part @param {number} whole */
export function formatPercent(part, whole) {
  const percent = whole > 0 ? (part / whole) * 100 : 0;
  if (percent > 0 && percent < 0.05) return "<0.1";
  return percent ? percent.toFixed(1) : "";
}

/** A share in percent, "0 %" for none. @param {number} part @param {number} whole */
export function formatShare(part, whole) {
  return `${formatPercent(part, whole) || "0"} %`;
}
