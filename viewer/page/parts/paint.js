// One set of drawing calls for two media: the canvas on the screen, and an SVG file for export. A view draws
// itself once, in these words, and so looks the same in both.

/**
 * @typedef {object} Painter
 * @property {(x: number, y: number, w: number, h: number, color: string, radius?: number) => void} rect
 * @property {(x: number, y: number, w: number, h: number, color: string, width?: number, radius?: number) => void} frame
 * @property {(text: string, x: number, y: number, color: string, font: Font, align?: CanvasTextAlign) => void} text
 * @property {(d: PathStep[], fill: string | null, stroke: string | null, width?: number, dash?: boolean) => void} path
 * @property {(angle: number, x: number, y: number, draw: () => void) => void} turned
 * @property {(x: number, y: number, scale: number, draw: () => void) => void} placed
 * @property {(text: string, font: Font) => number} measure
 *
 * @typedef {{size: number, weight?: number, mono?: boolean}} Font
 * @typedef {['M' | 'L', number, number] | ['C', number, number, number, number, number, number]
 *   | ['A', number, number, number, number, number, boolean] | ['Z']} PathStep
 *   A: centre x, y, radius, from angle, to angle, counter-clockwise
 */

const SANS = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';
const MONO = 'ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace';

/** @param {Font} font */
const cssFont = (font) => `${font.weight ?? 400} ${font.size}px ${font.mono ? MONO : SANS}`;

/** Widths of characters, so that fitting thousands of labels need not measure each. */
/** @type {Map<string, number>} */
const widths = new Map();
/** @type {CanvasRenderingContext2D | null} */
let ruler = null;

/** @param {string} text @param {Font} font */
function measureText(text, font) {
  const css = cssFont(font);
  const key = css + text;
  let width = widths.get(key);
  if (width === undefined) {
    ruler ??= document.createElement("canvas").getContext("2d");
    if (!ruler) return text.length * font.size * 0.6;
    ruler.font = css;
    width = ruler.measureText(text).width;
    if (widths.size > 20000) widths.clear();
    widths.set(key, width);
  }
  return width;
}

/** The text, or what fits of it, or "". @param {string} text @param {number} width @param {Font} font */
export function fitText(text, width, font) {
  const narrow = font.size * 0.3;
  if (width < font.size * 1.5) return "";
  // A name of ten thousand characters: no more than could fit are ever measured.
  let shown = text.length * narrow > width * 2 ? text.slice(0, Math.ceil((width * 2) / narrow)) : text;
  const whole = measureText(shown, font);
  if (shown === text && whole <= width) return text;
  const guess = Math.floor((shown.length * (width - font.size * 0.8)) / whole);
  shown = text.slice(0, Math.max(0, guess));
  while (shown && measureText(`${shown}…`, font) > width) shown = shown.slice(0, -1);
  return shown ? `${shown}…` : "";
}

/**
 * A canvas, sized in CSS pixels and sharp on any screen.
 * @param {HTMLCanvasElement} canvas @param {number} width @param {number} height
 * @returns {Painter}
 */
export function canvasPainter(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const w = Math.max(1, Math.round(width * ratio));
  const h = Math.max(1, Math.round(height * ratio));
  if (canvas.width !== w) canvas.width = w;
  if (canvas.height !== h) canvas.height = h;
  canvas.style.setProperty("width", `${width}px`);
  canvas.style.setProperty("height", `${height}px`);
  const g = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { alpha: false }));
  g.setTransform(ratio, 0, 0, ratio, 0, 0);
  g.textBaseline = "middle";
  g.direction = "ltr";
  return contextPainter(g);
}

/** @param {CanvasRenderingContext2D} g @returns {Painter} */
function contextPainter(g) {
  /** @param {number} x @param {number} y @param {number} w @param {number} h @param {number} r */
  const outline = (x, y, w, h, r) => {
    g.beginPath();
    g.roundRect(x, y, w, h, Math.min(r, w / 2, h / 2));
  };
  return {
    rect(x, y, w, h, color, radius) {
      g.fillStyle = color;
      if (!radius) return g.fillRect(x, y, w, h);
      outline(x, y, w, h, radius);
      g.fill();
    },
    frame(x, y, w, h, color, width = 1, radius = 0) {
      g.strokeStyle = color;
      g.lineWidth = width;
      outline(x, y, w, h, radius);
      g.stroke();
    },
    text(text, x, y, color, font, align = "left") {
      g.fillStyle = color;
      g.font = cssFont(font);
      g.textAlign = align;
      g.fillText(text, x, y);
    },
    path(d, fill, stroke, width = 1, dash = false) {
      g.beginPath();
      for (const s of d) {
        if (s[0] === "M") g.moveTo(s[1], s[2]);
        else if (s[0] === "L") g.lineTo(s[1], s[2]);
        else if (s[0] === "C") g.bezierCurveTo(s[1], s[2], s[3], s[4], s[5], s[6]);
        else if (s[0] === "A") g.arc(s[1], s[2], s[3], s[4], s[5], s[6]);
        else g.closePath();
      }
      if (fill) {
        g.fillStyle = fill;
        g.fill();
      }
      if (stroke) {
        g.strokeStyle = stroke;
        g.lineWidth = width;
        g.setLineDash(dash ? [4, 3] : []);
        g.stroke();
        g.setLineDash([]);
      }
    },
    turned(angle, x, y, draw) {
      g.save();
      g.translate(x, y);
      g.rotate(angle);
      draw();
      g.restore();
    },
    placed(x, y, scale, draw) {
      g.save();
      g.translate(x, y);
      g.scale(scale, scale);
      draw();
      g.restore();
    },
    measure: measureText,
  };
}

/** @param {string} text */
const escape = (text) =>
  text
    .replace(/[&<>"']/g, (c) => `&#${c.charCodeAt(0)};`)
    // Half a surrogate pair, or what XML forbids altogether, would make the file unreadable.
    .replace(
      /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]|[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g,
      "\ufffd",
    );

/** @param {number} n */
const short = (n) => String(Math.round(n * 100) / 100);

/**
 * Collects an SVG picture; `finish` gives its text.
 * @param {number} width @param {number} height
 * @returns {Painter & {finish: () => string}}
 */
export function svgPainter(width, height) {
  /** @type {string[]} */
  const out = [];
  /** @param {number} x @param {number} y @param {number} w @param {number} h */
  const box = (x, y, w, h) =>
    `x="${short(x)}" y="${short(y)}" width="${short(Math.max(0, w))}" height="${short(Math.max(0, h))}"`;
  /** @param {string} attributes @param {() => void} draw */
  const group = (attributes, draw) => {
    out.push(`<g transform="${attributes}">`);
    draw();
    out.push("</g>");
  };
  return {
    rect(x, y, w, h, color, radius = 0) {
      out.push(`<rect ${box(x, y, w, h)} fill="${color}"${radius ? ` rx="${short(radius)}"` : ""}/>`);
    },
    frame(x, y, w, h, color, lineWidth = 1, radius = 0) {
      out.push(
        `<rect ${box(x, y, w, h)} fill="none" stroke="${color}" stroke-width="${lineWidth}"${radius ? ` rx="${short(radius)}"` : ""}/>`,
      );
    },
    text(text, x, y, color, font, align = "left") {
      const anchor = align === "center" ? "middle" : align === "right" ? "end" : "start";
      out.push(
        `<text x="${short(x)}" y="${short(y)}" fill="${color}" font-size="${font.size}" font-weight="${font.weight ?? 400}"` +
          ` font-family="${escape(font.mono ? MONO : SANS)}" text-anchor="${anchor}" dominant-baseline="central" xml:space="preserve">${escape(text)}</text>`,
      );
    },
    path(d, fill, stroke, lineWidth = 1, dash = false) {
      out.push(
        `<path d="${d.map(svgStep).join("")}" fill="${fill ?? "none"}"` +
          (stroke
            ? ` stroke="${stroke}" stroke-width="${short(lineWidth)}"${dash ? ' stroke-dasharray="4 3"' : ""}`
            : "") +
          "/>",
      );
    },
    turned(angle, x, y, draw) {
      group(`translate(${short(x)} ${short(y)}) rotate(${short((angle * 180) / Math.PI)})`, draw);
    },
    placed(x, y, scale, draw) {
      group(`translate(${short(x)} ${short(y)}) scale(${scale})`, draw);
    },
    measure: measureText,
    finish: () =>
      `<svg xmlns="http://www.w3.org/2000/svg" width="${short(width)}" height="${short(height)}" ` +
      `viewBox="0 0 ${short(width)} ${short(height)}">\n${out.join("\n")}\n</svg>\n`,
  };
}

/** @param {PathStep} s */
function svgStep(s) {
  if (s[0] === "Z") return "Z";
  if (s[0] !== "A")
    return (
      s[0] +
      s
        .slice(1)
        .map((n) => short(Number(n)))
        .join(" ")
    );
  const [, x, y, r, from, to, counter] = s;
  // SVG cannot draw a whole turn as one arc: it goes in two halves.
  const middle = (from + to) / 2;
  /** @param {number} a */
  const at = (a) => `${short(x + r * Math.cos(a))} ${short(y + r * Math.sin(a))}`;
  const sweep = counter ? 0 : 1;
  return `L${at(from)}A${short(r)} ${short(r)} 0 0 ${sweep} ${at(middle)}A${short(r)} ${short(r)} 0 0 ${sweep} ${at(to)}`;
}
