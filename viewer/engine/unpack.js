/**
 * Where the engine and the recordings come from: from the elements of a one-file report, or from the server
 * that served the page. viewer/ENGINE.md, "One file", describes the encoding.
 */

/** What windows-1252 has in place of bytes 0x80 to 0x9f; the five that it leaves out stay what they are. */
const highCharacters = [
  0x20ac, 0x81, 0x201a, 0x192, 0x201e, 0x2026, 0x2020, 0x2021, 0x2c6, 0x2030, 0x160, 0x2039, 0x152, 0x8d,
  0x17d, 0x8f, 0x90, 0x2018, 0x2019, 0x201c, 0x201d, 0x2022, 0x2013, 0x2014, 0x2dc, 0x2122, 0x161, 0x203a,
  0x153, 0x9d, 0x17e, 0x178,
];
const escapeCharacter = 0x3d;

/**
 * Text of a page in windows-1252 back to the bytes it was.
 * @param {string} text @returns {Uint8Array}
 */
export function decodeBytes(text) {
  const bytes = new Uint8Array(text.length), byteOf = new Uint8Array(0x2200);
  for (let i = 0; i < 256; i++)
    byteOf[i] = i;
  for (let i = 0; i < highCharacters.length; i++)
    byteOf[highCharacters[i]] = 0x80 + i;
  let length = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    bytes[length++] = code === escapeCharacter ? byteOf[text.charCodeAt(++i)] - 64 : byteOf[code];
  }
  return bytes.subarray(0, length);
}

/**
 * @param {Uint8Array} packed a gzip stream @param {number} size of what is in it
 * @returns {Promise<Uint8Array>}
 */
async function unpackBytes(packed, size) {
  if (typeof DecompressionStream === "undefined")
    throw new Error("This browser is too old for the report: it cannot unpack gzip. "
      + "A current Firefox, Chromium, Edge or Safari can.");
  const bytes = new Uint8Array(size);
  let length = 0;
  try {
    const stream = new Blob([/** @type {any} */ (packed)]).stream()
      .pipeThrough(new DecompressionStream("gzip"));
    const reader = stream.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done)
        break;
      bytes.set(value, length);
      length += value.length;
    }
  } catch {
    length = -1;
  }
  if (length !== size)
    throw new Error("This report is damaged: a part of it cannot be unpacked. "
      + "It may have been changed by what sent or saved it.");
  return bytes;
}

/**
 * `leftOut`: bytes of single calls that the recording has and the page has not, but for those from `from` to `to` ns.
 * `piece`: of the file that was recorded, if single calls are to be fetched from it.
 * @typedef {{ name: string, bytes: number, leftOut: number, from: number, to: number, load: () => Promise<Uint8Array>,
 *   piece: ((at: number, bytes: number) => Promise<Uint8Array>) | null }} PackedRecording
 */

/** @param {HTMLElement} element @returns {PackedRecording} */
function packedElement(element) {
  const bytes = Number(element.dataset.bytes);
  return { name: element.dataset.name ?? "", bytes, leftOut: Number(element.dataset.leftOut ?? 0),
    from: Number(element.dataset.from ?? 0), to: Number(element.dataset.to ?? 0), piece: null,
    load: () => unpackBytes(decodeBytes(element.textContent ?? ""), bytes) };
}

/** @param {string} address @param {string} what @returns {Promise<Response>} */
async function fetchPart(address, what) {
  let answer;
  try {
    answer = await fetch(address, { cache: "no-store" });
  } catch {
    throw new Error(`${what} cannot be fetched: \`fathom view\` has ended. Start it again.`);
  }
  if (!answer.ok)
    throw new Error(`${what} cannot be fetched: the server answers ${answer.status}. `
      + "Use the whole address that `fathom view` printed.");
  return answer;
}

/** @param {string} address @param {string} what @returns {Promise<Uint8Array>} */
async function fetchBytes(address, what) {
  return new Uint8Array(await (await fetchPart(address, what)).arrayBuffer());
}

/**
 * What was given to `fathom view`.
 * @returns {Promise<{ wasm: Uint8Array, recordings: PackedRecording[] }>}
 */
export async function loadContents() {
  /** @type {HTMLElement[]} */
  const elements = [...document.querySelectorAll("script[type='application/x-fathom']")]
    .map((element) => /** @type {HTMLElement} */ (element));
  if (elements.length) {
    const packed = elements.map(packedElement);
    const isEngine = (/** @type {number} */ i) => elements[i].dataset.kind === "engine";
    const engine = packed.find((_, i) => isEngine(i));
    if (!engine || !isComplete())
      throw new Error("This report is cut off: its end is missing.");
    return { wasm: await engine.load(), recordings: packed.filter((_, i) => !isEngine(i)) };
  }
  if (location.protocol === "file:")
    throw new Error("This report is cut off: there is no recording in it.");
  const wasm = await fetchBytes("engine.wasm", "The viewer's engine");
  /** @type {{ name: string, bytes: number, address: string, pieces: boolean }[]} */
  const list = await (await fetchPart("recordings.json", "The list of recordings")).json();
  return { wasm, recordings: list.map(({ name, bytes, address, pieces }) =>
    ({ name, bytes, leftOut: 0, from: 0, to: 0, load: () => fetchBytes(address, "The recording"),
      piece: pieces ? (at, count) => fetchBytes(`${address}/${at}/${count}`, "A part of the recording") : null })) };
}

/** The last element of a report says that everything before it is there. */
function isComplete() {
  return document.querySelector("meta[name='fathom-end']") !== null;
}
