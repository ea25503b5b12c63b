// Keys for the whole page. A view gets them first; text fields keep theirs.

import { byId } from "./dom.js";
import { showHelp } from "./help.js";

/** @param {import('../app.js').App} app */
export function useKeys(app) {
  addEventListener("keydown", (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (
      event.defaultPrevented ||
      event.ctrlKey ||
      event.metaKey ||
      event.altKey ||
      document.querySelector("dialog[open], .popup")
    )
      return;
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName)) return;
    if (app.shown?.key?.(event) || pageKey(app, event)) event.preventDefault();
  });
}

/** The one after this in a list. @template T @param {T[]} list @param {(item: T) => boolean} isThis @returns {T} */
function nextOf(list, isThis) {
  return list[(list.findIndex(isThis) + 1) % list.length];
}

/** @param {import('../app.js').App} app @param {KeyboardEvent} event */
function pageKey(app, event) {
  const { s, store, session } = app;
  const summary = session.summary(s);
  const view = /^[1-9]$/.test(event.key) ? app.views[Number(event.key) - 1] : undefined;
  if (view) store.set({ view: view.id });
  else if (event.key === "/") byId("search").focus();
  else if (event.key === "?") showHelp();
  else if (event.key === "d") app.setTheme(app.palette.dark ? "light" : "dark", true);
  else if (event.key === "m")
    app.measure({ metric: nextOf(session.metrics(s), (m) => m.key === session.metric(s).key).key });
  else if (event.key === "t")
    app.reshape({
      scope: nextOf(
        ["all", ...summary.threads.map((/** @type {any} */ _, /** @type {number} */ i) => `t${i}`)],
        (x) => x === s.scope,
      ),
    });
  else if (event.key === "o") app.reshape({ mine: !s.mine });
  else if (event.key === "g") app.reshape({ group: !s.group });
  else if (event.key === "l" && summary.memory.lined && session.metric(s).memory)
    app.reshape({ lines: !s.lines || s.group, group: false });
  else if (event.key === "s" && s.f > 0) app.toSource(s.f);
  else if (event.key === "c") app.toCallers(s.f);
  else if (event.key === "r") app.addShape("root", s.f);
  else if (event.key === "h") app.addShape("fold", s.f);
  else if (event.key === "x")
    app.reshape({ fold: [], keep: [], root: [], mine: false, group: false, lines: false, scope: "all" });
  else if (event.key === "y") app.copyStack();
  else if (event.key === "p") {
    app.detailsOpen = !app.detailsOpen;
    byId("middle").classList.toggle("alone", !app.detailsOpen || !!app.shown?.alone);
  } else return false;
  return true;
}
