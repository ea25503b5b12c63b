// A window for tests: what is drawn, to be read and not to be changed.

/** @param {import('../app.js').App} app @param {number} began */
export function exposeForTests(app, began) {
  const ready = performance.now();
  Object.defineProperty(window, "fathomTest", {
    value: Object.freeze({
      drawn: () => app.shown?.drawn?.(),
      state: () => ({ ...app.s }),
      view: () => app.shown?.id,
      openedMs: () => ready - began,
      sinceStartMs: () => ready,
      summary: () => app.session.summary(app.s),
      functions: () => app.session.functions,
      svg: () => app.shown?.picture?.(),
    }),
  });
}
