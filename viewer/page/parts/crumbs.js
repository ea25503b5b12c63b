// The way from the outermost caller to the zoomed context, each step a button.

import { el, fill } from "./dom.js";
import { formatShare } from "./numbers.js";

/** More steps than this are drawn together in the middle. */
const MOST_CRUMBS = 9;

/**
 * @param {HTMLElement} bar @param {import('../app.js').App} app
 * @param {{node: number, func: number}[]} above callers of the zoomed context
 * @param {any} layout whose first box it is @param {{value: number}} whole
 */
export function crumbBar(bar, app, above, layout, whole) {
  const func = layout.length ? layout.func[0] : -1;
  const value = layout.length ? layout.value[0] : 0;
  const before = layout.base && layout.length ? `, before ${app.value(layout.base[0])}` : "";
  const name = (/** @type {number} */ f) => (f === 0 ? app.scopeTitle() : app.session.label(f));
  /** @type {any[]} */
  const steps = [];
  above.forEach((step, i) => {
    if (above.length > MOST_CRUMBS && i === 2)
      steps.push(el("span", null, `… ${above.length - MOST_CRUMBS + 1} more …`), el("span.sep", null, "›"));
    if (above.length > MOST_CRUMBS && i >= 2 && i < above.length - MOST_CRUMBS + 3) return;
    steps.push(
      el(
        "button.name",
        {
          type: "button",
          title: name(step.func).slice(0, 300),
          onclick: () => app.zoomTo(step.node, step.func),
        },
        name(step.func).slice(0, 200),
      ),
      el("span.sep", null, "›"),
    );
  });
  const { s } = app;
  const part = s.x1 - s.x0 < 0.999 ? ` · ${formatShare(s.x1 - s.x0, 1)} of it in sight` : "";
  fill(
    bar,
    ...steps,
    func >= 0 ? el("b.name", null, name(func).slice(0, 400)) : null,
    el(
      "span.num",
      null,
      app.value(value),
      before || !above.length ? before : ` · ${formatShare(value, whole.value)}`,
      part,
    ),
  );
}
