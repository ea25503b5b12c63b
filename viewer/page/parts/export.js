// The picture in sight as a file. The same drawing calls go to an SVG text or to a canvas of twice the size.

import { svgPainter, canvasPainter } from "./paint.js";

/** @typedef {{width: number, height: number, draw: (p: import('./paint.js').Painter) => void}} Picture */

/** Larger canvases are refused by browsers. */
const MOST_CANVAS = 16000;

/** @param {Picture} picture @param {string} paper */
export function pictureSvg(picture, paper) {
  const p = svgPainter(picture.width, picture.height);
  p.rect(0, 0, picture.width, picture.height, paper);
  picture.draw(p);
  return p.finish();
}

/** @param {Picture} picture @param {string} paper @returns {Promise<Blob>} */
export async function picturePng(picture, paper) {
  const canvas = document.createElement("canvas");
  const scale =
    Math.min(2, MOST_CANVAS / picture.width, MOST_CANVAS / picture.height) / (devicePixelRatio || 1);
  const p = canvasPainter(canvas, picture.width * scale, picture.height * scale);
  p.rect(0, 0, picture.width * scale, picture.height * scale, paper);
  p.placed(0, 0, scale, () => picture.draw(p));
  return new Promise((resolve, reject) =>
    canvas.toBlob(
      (blob) => (blob ? resolve(blob) : reject(new Error("The picture is too large for this browser."))),
      "image/png",
    ),
  );
}

/** @param {Blob} blob @param {string} name */
export function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name.replace(/[^\w.-]+/g, "_").slice(-120);
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}
