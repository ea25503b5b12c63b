// Mouse, touch pad and fingers on a drawing, told apart once for all drawings: pointing, clicking, dragging, scrolling,
// pinching. Positions are in CSS pixels of the element.

/**
 * @typedef {object} PointerUse
 * @property {(x: number, y: number, event: PointerEvent) => void} [hover]
 * @property {() => void} [leave]
 * @property {(x: number, y: number, event: PointerEvent) => void} [click]
 * @property {(dx: number, dy: number) => void} [pan]
 * @property {(factor: number, x: number, y: number) => void} [zoom]
 * @property {(dx: number, dy: number) => boolean} [scroll]  a wheel without keys; false: it shall zoom
 * @property {(x: number, y: number, event: PointerEvent) => Grip | null} [grab]  what a press holds that is no panning
 *
 * @typedef {{move: (x: number, y: number, event: PointerEvent) => void, drop: (moved: boolean) => void}} Grip
 */

/** Further than this a press is a drag, not a click. */
const CLICK_PIXELS = 4;

/** @param {HTMLElement} node @param {PointerUse} use */
export function usePointer(node, use) {
  /** @type {Map<number, {x: number, y: number}>} */
  const down = new Map();
  let moved = 0;
  let wasPinch = false;
  /** @type {Grip | null} */
  let grip = null;

  /** @param {MouseEvent} event */
  const at = (event) => {
    const box = node.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  };

  node.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    if (!down.size) {
      moved = 0;
      wasPinch = false;
      grip = use.grab?.(at(event).x, at(event).y, event) ?? null;
    }
    down.set(event.pointerId, at(event));
    if (down.size === 2) wasPinch = true;
    node.setPointerCapture(event.pointerId);
  });

  node.addEventListener("pointermove", (event) => {
    const here = at(event);
    const before = down.get(event.pointerId);
    if (!before) {
      if (event.pointerType !== "touch") use.hover?.(here.x, here.y, event);
      return;
    }
    if (down.size === 2) pinch(event.pointerId, before, here);
    else if (grip) {
      moved += Math.abs(here.x - before.x) + Math.abs(here.y - before.y);
      if (moved > CLICK_PIXELS) grip.move(here.x, here.y, event);
    } else if ((moved += Math.abs(here.x - before.x) + Math.abs(here.y - before.y)) > CLICK_PIXELS) {
      node.classList.add("pan");
      use.leave?.();
      use.pan?.(here.x - before.x, here.y - before.y);
    }
    down.set(event.pointerId, here);
  });

  /** @param {number} id @param {{x: number, y: number}} before @param {{x: number, y: number}} here */
  function pinch(id, before, here) {
    const other = [...down].find(([key]) => key !== id)?.[1];
    if (!other) return;
    const was = Math.hypot(before.x - other.x, before.y - other.y);
    const is = Math.hypot(here.x - other.x, here.y - other.y);
    if (was > 10 && is > 10) use.zoom?.(is / was, (here.x + other.x) / 2, (here.y + other.y) / 2);
    use.pan?.((here.x - before.x) / 2, (here.y - before.y) / 2);
  }

  node.addEventListener("pointerup", (event) => {
    if (!down.delete(event.pointerId)) return;
    node.classList.remove("pan");
    const here = at(event);
    grip?.drop(moved > CLICK_PIXELS);
    grip = null;
    if (!wasPinch && moved <= CLICK_PIXELS) use.click?.(here.x, here.y, event);
  });
  node.addEventListener("pointercancel", (event) => {
    down.delete(event.pointerId);
    grip = null;
    node.classList.remove("pan");
  });
  node.addEventListener("pointerleave", () => use.leave?.());

  node.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      const { x, y } = at(event);
      const unit = event.deltaMode === 1 ? 16 : event.deltaMode === 2 ? 400 : 1;
      const dx = (event.shiftKey && !event.deltaX ? event.deltaY : event.deltaX) * unit;
      const dy = (event.shiftKey && !event.deltaX ? 0 : event.deltaY) * unit;
      const keys = event.ctrlKey || event.metaKey || event.altKey;
      if (!keys && use.scroll?.(dx, dy)) return;
      // A touch pad's pinch comes as a wheel with Ctrl, in small steps.
      use.zoom?.(Math.exp(-dy * (event.ctrlKey && Math.abs(dy) < 30 ? 0.01 : 0.002)), x, y);
    },
    { passive: false },
  );
}
