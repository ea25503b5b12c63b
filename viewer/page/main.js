// The beginning: get the engine and the recording, then show the page, or say in words why it cannot be shown.

import { Engine } from "../engine/engine.js";
import { loadContents } from "../engine/unpack.js";
import { Store } from "./state.js";
import { Session } from "./session.js";
import { App } from "./app.js";
import { el, fill, byId } from "./parts/dom.js";
import { visible, shorten } from "./parts/text.js";
import { TimelineView } from "./views/timeline.js";
import { FlameView } from "./views/flame.js";
import { SunburstView } from "./views/sunburst.js";
import { TableView } from "./views/table.js";
import { CallersView } from "./views/callers.js";
import { TreeView } from "./views/tree.js";
import { SourceView } from "./views/source.js";
import { GraphView } from "./views/graph.js";
import { MemoryView } from "./views/memory.js";
import { StatesView } from "./views/states.js";
import { SpotsView } from "./views/spots.js";
import { WaitsView } from "./views/waits.js";
import { RunView } from "./views/run.js";
import { exposeForTests } from "./parts/testing.js";

/** @returns {'dark' | 'light'} */
function wantedTheme() {
  try {
    const stored = localStorage.getItem("fathom-theme");
    if (stored === "dark" || stored === "light") return stored;
  } catch {
    // no storage
  }
  return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
}

/** @param {string} title @param {string} text @param {boolean} [report] is there something that a terminal could show? */
function refuse(title, text, report = true) {
  byId("app").hidden = true;
  byId("opening").hidden = false;
  fill(
    byId("opening"),
    el("h1", null, title),
    el("p", null, visible(shorten(text, 1000))),
    report
      ? el(
          "p",
          null,
          "In a terminal, ",
          el("code", null, "fathom report"),
          " shows the same recording as tables.",
        )
      : null,
  );
}

/** @param {App} app */
function watchTheme(app) {
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () =>
    app.setTheme(wantedTheme(), false),
  );
}

async function start() {
  document.documentElement.dataset.theme = wantedTheme();
  if (typeof WebAssembly !== "object")
    return refuse(
      "This browser has no WebAssembly",
      "The page computes its views with it. Please open it in a current Firefox, Chromium, Edge or Safari, or allow WebAssembly for it.",
    );
  const began = performance.now();
  const { wasm, recordings } = await loadContents();
  if (!recordings.length) return refuse("There is no recording in this page", "It was made without one.");
  const engine = await Engine.load(/** @type {any} */ (wasm));
  const session = new Session(engine, recordings);
  const store = new Store();
  const wanted = new Set([store.now.rec < recordings.length ? store.now.rec : 0]);
  if (store.now.base >= 0 && store.now.base < recordings.length) wanted.add(store.now.base);
  for (const index of wanted) await session.openRecording(index);
  const summary = session.summary(store.now);
  if (!summary.metrics.length && !summary.counts.lines)
    return refuse("This recording is empty", emptyReason(summary), false);
  byId("opening").hidden = true;
  byId("app").hidden = false;
  const app = new App(store, session);
  byId("brand").addEventListener("click", (/** @type {Event} */ event) => {
    event.preventDefault();
    store.set({ view: "run" });
  });
  const timeline = new TimelineView(app);
  // What was traced is looked at by time first; of samples the sums say more.
  const traced = session.timeline(store.now)?.lanes.some((lane) => !lane.sampled);
  app.start([
    ...(traced ? [timeline] : []),
    new FlameView(app),
    new TableView(app),
    new CallersView(app),
    new TreeView(app, false),
    new TreeView(app, true),
    new SourceView(app),
    new GraphView(app),
    new SunburstView(app),
    ...(traced ? [] : [timeline]),
    new MemoryView(app),
    new StatesView(app),
    new WaitsView(app),
    new SpotsView(app),
    new RunView(app),
  ]);
  watchTheme(app);
  exposeForTests(app, began);
}

/** @param {any} summary */
function emptyReason(summary) {
  const notes = summary.notes.map((/** @type {any} */ n) => n.text).join(" ");
  return `No function was recorded in ${summary.name}. ${notes || "The program may have ended before anything was seen."}`;
}

start().catch((error) => {
  console.warn(error);
  refuse("The recording cannot be opened", error instanceof Error ? error.message : String(error));
});
