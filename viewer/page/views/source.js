// Files with the numbers of each line beside it, as heat and as figures, and the hottest expressions underlined. Where no
// lines were recorded, the numbers of functions stand at their first lines. Against another recording, each line has its
// numbers now, before and the difference.

import { el, fill } from "../parts/dom.js";
import { Rows, sortHead, cell, changeCell, shareBar } from "../parts/rows.js";
import { formatCount, formatPercent, formatShare, formatTime, formatValue } from "../parts/numbers.js";
import { visible, visibleSource, shorten, baseName } from "../parts/text.js";
import { change, diffColor } from "../parts/colors.js";
import { SourceFile } from "../parts/source_file.js";
import { expressionText, markedLine, pieces } from "../parts/spots.js";
import { relativeToggle } from "../parts/toolbar.js";

/** @typedef {import('../app.js').App} App */
/** @typedef {import('../parts/source_file.js').SourceRow} SourceRow */

/** No more of a line is shown; a longer one is not read by people. */
const MOST_COLUMNS = 2000;
/** Files whose lines are added up where nothing else says how heavy they are. */
const MOST_WEIGHED = 200;

/** What the sign before a line of a changed file means. @type {Record<string, [string, string]>} */
const SIGNS = {
  same: ["", ""],
  new: ["+", "new line"],
  gone: ["−", "line of the earlier text"],
  changed: ["~", "edited line"],
  moved: ["↕", "moved line"],
};

export class SourceView {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.id = "source";
    /** @type {HTMLElement} */
    this.host = el("div");
    this.title = "Source";
    /** @type {[string, number][]} file and weight */
    this.files = [];
    /** @type {SourceFile | null} */
    this.shown = null;
    this.sum = 0;
  }

  /** @param {HTMLElement} host */
  show(host) {
    this.host = host;
    this.shown = null;
    this.update(null);
  }

  /** @param {Set<string> | null} changed */
  update(changed) {
    const { s, session } = this.app;
    if (this.shown && changed?.size && this.onlyMoved(changed)) return this.move(changed);
    this.weighFiles();
    const file = s.file || session.functions[s.f]?.file || this.usualFile();
    if (!file)
      return fill(
        this.host,
        el(
          "div.nothing",
          null,
          el("h2", null, "No source"),
          el("p", null, "Nothing in this recording is written in Python, or its files are not known."),
        ),
      );
    const shown = (this.shown = new SourceFile(session, s, file));
    const files = this.fileList(file);
    const code = this.codeList(shown);
    fill(this.host, el("div.source", null, files.node, code.node));
    files.rows.reset(this.files.length);
    files.rows.mark(
      this.files.findIndex(([f]) => f === file),
      true,
    );
    this.rows = code.rows;
    code.rows.reset(shown.rows.length);
    const line = (s.file === file ? s.line : 0) || this.firstLine(shown, s.f);
    const row = line ? this.rowOfLine(line) : -1;
    this.jump(row >= 0 ? row : shown.hottestRow());
  }

  /** Is only another line of the same file asked for? @param {Set<string>} changed */
  onlyMoved(changed) {
    const { s, session } = this.app;
    const file = s.file || session.functions[s.f]?.file || this.shown?.file;
    return file === this.shown?.file && [...changed].every((key) => ["f", "line", "file"].includes(key));
  }

  /** @param {Set<string>} changed */
  move(changed) {
    const { s } = this.app;
    const line = changed.has("line") && s.line ? s.line : this.firstLine(this.shown, s.f);
    if (line && this.shown?.rows[this.rows?.selected ?? -1]?.line !== s.line) this.jump(this.rowOfLine(line));
  }

  /** Where a function begins, or which of its lines is meant. @param {SourceFile | null} shown @param {number} func */
  firstLine(shown, func) {
    const info = this.app.session.functions[func];
    return info?.at || (shown?.functionLines.get(func) ?? 0);
  }

  /** What one most likely looks for: the heaviest file with lines, or of one's own code, or of all. */
  usualFile() {
    const { session, s } = this.app;
    const memory = session.metric(s).memory;
    const withLines = new Set(
      session
        .summary(s)
        .files.filter((/** @type {any} */ f) => f.lines && !memory)
        .map((/** @type {any} */ f) => f.file),
    );
    const own = new Set(session.functions.filter((info) => !info.library).map((info) => info.file));
    const best =
      this.files.find(([f]) => withLines.has(f) && own.has(f)) ??
      this.files.find(([f]) => withLines.has(f)) ??
      this.files.find(([f]) => own.has(f)) ??
      this.files[0];
    return best ? best[0] : "";
  }

  /** Files by the time spent in their functions themselves, or by how it changed. */
  weighFiles() {
    const { session, s } = this.app;
    const table = session.table(s);
    /** @type {Map<string, number>} */
    const weight = new Map();
    for (let i = 0; i < table.length; i++) {
      const file = session.functions[table.func[i]]?.file;
      const more = table.self[i] - (table.baseSelf?.[i] ?? 0);
      if (file) weight.set(file, (weight.get(file) ?? 0) + more);
    }
    const lines = session.summary(s).files.filter((/** @type {any} */ f) => f.lines && !weight.has(f.file));
    lines.forEach((/** @type {any} */ f, /** @type {number} */ i) =>
      weight.set(f.file, !table.length && i < MOST_WEIGHED ? this.timeOfLines(f.file) : 0),
    );
    this.sum = table.sum || [...weight.values()].reduce((a, b) => a + b, 0);
    this.files = [...weight].sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]) || (a[0] < b[0] ? -1 : 1));
  }

  /** Where only lines were recorded. @param {string} file */
  timeOfLines(file) {
    const { session, s } = this.app;
    const sum = (/** @type {boolean} */ before) => {
      const got = session.source(s, file, before);
      const times = got.self.some((/** @type {number} */ ns) => ns > 0) ? got.self : got.total;
      return times.reduce((/** @type {number} */ a, /** @type {number} */ b) => a + b, 0);
    };
    return session.isDiff(s) ? sum(false) - sum(true) : sum(false);
  }

  /** @param {string} current */
  fileList(current) {
    const { session, s } = this.app;
    const diff = session.isDiff(s);
    const unit = session.metric(s).unit;
    const template = diff ? "minmax(0, 1fr) 74px" : "minmax(0, 1fr) 46px";
    const rows = new Rows({
      role: "grid",
      label: "Files",
      columns: template,
      head: sortHead(
        [
          { key: "f", title: "file", fixed: true },
          { key: "p", title: diff ? "self ±" : "self %", num: true, fixed: true },
        ],
        template,
        "",
        false,
        () => {},
      ),
      select: (row) => {
        if (this.files[row][0] !== this.shown?.file)
          this.app.store.set({ file: this.files[row][0], line: 0, f: -1 });
      },
      render: (row, node) => {
        const [file, self] = this.files[row];
        const folder =
          file
            .slice(0, file.length - baseName(file).length)
            .split("/")
            .filter(Boolean)
            .pop() ?? "";
        node.title = visible(shorten(file, 500));
        node.append(
          cell(
            "label",
            el("span.name", null, visible(shorten(baseName(file) || file, 120))),
            el("span.place", null, visible(shorten(folder, 60))),
          ),
          diff ? changeCell(self, 0, false, unit) : cell("num.soft", formatPercent(self, this.sum)),
        );
      },
    });
    rows.node.setAttribute("data-file", visible(shorten(current, 200)));
    return { node: el("div.files", null, rows.node), rows };
  }

  /** The columns beside the code. @param {SourceFile} shown
   * @returns {{title: string, width: string, phone?: boolean, show: (row: SourceRow) => Node}[]} */
  columns(shown) {
    const unit = shown.ofMemory?.unit ?? "ns";
    const time = (/** @type {number | undefined} */ n) => (n ? formatValue(n, unit) : "");
    const own = (/** @type {any} */ n) => time(shown.heat(n));
    const counted = shown.samples && !shown.hits ? "samples" : "hits";
    const count = (/** @type {any} */ n) => (n?.[counted] ? formatCount(n[counted]) : "");
    const countTitle = counted === "hits" && !shown.ofLines ? "calls" : counted;
    const line = {
      title: "line",
      width: innerWidth < 640 ? "38px" : "50px",
      phone: true,
      show: (/** @type {SourceRow} */ r) => cell("num.faint", r.line || r.before),
    };
    if (!shown.diff)
      return [
        line,
        { title: "self", width: "64px", phone: true, show: (r) => cell("num", time(r.now?.self)) },
        { title: "total", width: "64px", show: (r) => cell("num.soft", time(r.now?.total)) },
        ...(shown.ofMemory
          ? [memoryBar(shown)]
          : [
              {
                title: countTitle,
                width: "74px",
                show: (/** @type {SourceRow} */ r) => cell("num.soft", count(r.now)),
              },
            ]),
        ...memoryColumns(shown),
      ];
    return [
      line,
      { title: shown.bySelf ? "self" : "total", width: "64px", show: (r) => cell("num", own(r.now)) },
      { title: "before", width: "64px", show: (r) => cell("num.soft", own(r.old)) },
      {
        title: "±",
        width: "76px",
        phone: true,
        show: (r) => changeCell(shown.heat(r.now), shown.heat(r.old), this.app.s.rel, unit),
      },
      ...(shown.ofMemory
        ? []
        : [
            {
              title: countTitle,
              width: "66px",
              show: (/** @type {SourceRow} */ r) => cell("num.soft", count(r.now)),
            },
          ]),
      { title: "", width: "10px", phone: true, show: (r) => signCell(r, shown.textOf(r)) },
    ];
  }

  /** @param {SourceFile} shown */
  codeList(shown) {
    const phone = innerWidth < 640;
    const columns = this.columns(shown).filter((c) => c.phone || !phone);
    const template = `${columns.map((c) => c.width).join(" ")} minmax(0, max-content)`;
    const heads = columns.map((c, i) => ({ key: String(i), title: c.title, num: true, fixed: true }));
    const title = visible(shorten(phone ? baseName(shown.file) : shown.file, 300));
    const rows = new Rows({
      role: "grid",
      label: "Lines",
      columns: template,
      head: sortHead(
        [...heads, { key: "code", title, num: false, fixed: true }],
        template,
        "",
        false,
        () => {},
      ),
      select: (row) => this.selectRow(shown.rows[row]),
      render: (row, node) => this.renderRow(shown, shown.rows[row], node, columns),
    });
    rows.space.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => this.point(event));
    rows.space.addEventListener("pointerleave", () => this.app.tip.hide());
    rows.node.addEventListener("scroll", () => this.app.tip.hide(), { passive: true });
    return { rows, node: el("div.code", null, this.notice(shown), rows.node) };
  }

  /** @param {SourceFile} shown */
  notice(shown) {
    const { session, s } = this.app;
    /** @type {string[]} */
    const words = [];
    if (!shown.text.length)
      words.push("The source text is not in the recording; only lines with numbers are shown.");
    if (shown.state === "changed")
      words.push("The file was changed while the program ran: lines may have moved.");
    if (shown.mixed)
      words.push("Lines were recorded in only one of the two: functions are compared, at their first lines.");
    else if (!shown.ofLines)
      words.push(
        session.summary(s).hasLines
          ? "Lines of this file were not recorded: numbers stand at the first line of each function."
          : "Lines were not recorded: numbers stand at the first line of each function. fathom run --lines records them.",
      );
    if (shown.diff && shown.text.length && !shown.oldText.length && shown.oldNumbers.size)
      words.push("The earlier source text is not in its recording: lines are compared by their numbers.");
    if (shown.byNumber)
      words.push("The file is too long for a comparison of its text: lines are compared by their numbers.");
    if (shown.ofLines && !shown.ofMemory && s.scope[0] === "t")
      words.push("Lines are counted for the whole process, not by thread.");
    return words.length ? el("div.notice", null, ...words.map((text) => el("p", null, text))) : null;
  }

  /** @param {SourceRow} row */
  selectRow(row) {
    const shown = /** @type {SourceFile} */ (this.shown);
    const func = row.line ? shown.functionAt(row.line) : (row.old?.func ?? -1);
    for (const node of this.rows?.shown.values() ?? []) node.classList.remove("target");
    this.app.store.set({ file: shown.file, line: row.line, f: func }, true);
  }

  /** @param {SourceFile} shown @param {SourceRow} row @param {HTMLElement} node
   * @param {{show: (row: SourceRow) => Node}[]} columns */
  renderRow(shown, row, node, columns) {
    const color = this.background(shown, row);
    if (color) node.style.setProperty("background-image", `linear-gradient(${color}, ${color})`);
    for (const column of columns) node.append(column.show(row));
    const short = shortened(shown.textOf(row));
    const spots = shown.diff || shown.ofMemory ? [] : (shown.spots.byLine.get(row.line) ?? []);
    const marked = spots.length
      ? markedLine(el, pieces(short, row.line, spots), shown.spots.hottest)
      : row.kind === "gone"
        ? [
            short.slice(0, short.length - short.trimStart().length),
            el("s", null, visibleSource(short.trimStart())),
          ]
        : [visibleSource(short)];
    node.append(el("pre", { role: "gridcell" }, ...marked));
    if (shown.diff) node.title = this.rowTitle(shown, row);
    else if (
      row.now &&
      !spots.length &&
      (shown.ofMemory || this.app.session.metric(this.app.s).unit === "ns")
    )
      node.title = `self ${this.app.value(row.now.self)} (${formatShare(row.now.self, this.sum)})`;
    if (row.kind === "gone") node.classList.add("gone");
    if (row.line && row.line === this.app.s.line) node.classList.add("target");
  }

  /** @param {SourceFile} shown @param {SourceRow} row */
  rowTitle(shown, row) {
    const words = [SIGNS[row.kind][1]];
    if (row.kind === "changed")
      words.push(`before: ${visible(shorten((shown.oldText[row.before - 1] ?? "").trim(), 200))}`);
    if (row.line && row.before && row.line !== row.before) words.push(`was line ${formatCount(row.before)}`);
    return words.filter(Boolean).join("; ");
  }

  /** @param {SourceFile} shown @param {SourceRow} row */
  background(shown, row) {
    if (!shown.diff)
      return row.now
        ? `rgba(var(--heat), ${((shown.heat(row.now) / shown.hottest) ** 0.7 * 0.42).toFixed(3)})`
        : "";
    const [now, old] = [shown.heat(row.now), shown.heat(row.old)];
    if (now === old) return "";
    const { palette, s } = this.app;
    return diffColor(change(now, old, s.rel, shown.mostChanged), palette.dark).replace(
      ")",
      ` / ${palette.dark ? 0.36 : 0.34})`,
    );
  }

  /** The numbers of the expression under the pointer. @param {PointerEvent} event */
  point(event) {
    const mark = event.target instanceof Element ? event.target.closest(".spot") : null;
    const row = mark && this.rows ? this.shown?.rows[this.rows.rowOf(mark)] : null;
    if (!mark || !row || !this.shown) return this.app.tip.hide();
    const spots = this.shown.spots.byLine.get(row.line) ?? [];
    const piece = pieces(shortened(this.shown.textOf(row)), row.line, spots)[
      Number(mark.getAttribute("data-piece"))
    ];
    if (!piece?.spot) return this.app.tip.hide();
    const lines = this.shown.text;
    this.app.tip.show(
      {
        title: expressionText(lines, piece.spot),
        place: `${formatCount(piece.spot.samples)} ${piece.spot.samples === 1 ? "sample" : "samples"} while it was executing`,
        facts: piece.all
          .slice(0, 8)
          .map((spot, i) => [
            i ? expressionText(lines, spot, 36) : "self",
            formatTime(spot.ns),
            formatShare(spot.ns, this.sum),
          ]),
      },
      event.clientX,
      event.clientY,
    );
  }

  /** @param {number} line */
  rowOfLine(line) {
    return this.shown?.rows.findIndex((row) => row.line === line) ?? -1;
  }

  /** @param {number} row */
  jump(row) {
    if (row < 0 || !this.rows || row >= this.rows.count) return;
    this.rows.mark(row);
    this.rows.reveal(row, true);
  }

  hide() {
    this.app.tip.hide();
  }

  tools() {
    return this.app.session.isDiff(this.app.s) ? [relativeToggle(this.app)] : [];
  }

  drawn() {
    const shown = this.shown;
    if (!shown) return {};
    return {
      file: shown.file,
      lines: [...shown.numbers].map(([line, n]) => ({ line, ...n })),
      memory: Object.fromEntries(
        [...shown.memory].map(([key, of]) => [key, [...of].map(([line, n]) => ({ line, ...n }))]),
      ),
      rows: shown.rows.slice(0, 2000).map((r) => ({
        line: r.line,
        before: r.before,
        kind: r.kind,
        now: r.now,
        old: r.old,
        text: shown.textOf(r),
      })),
      text: shown.text.slice(0, 2000),
      selected: this.rows ? (shown.rows[this.rows.selected]?.line ?? 0) : 0,
      elements: this.rows?.shown.size,
    };
  }
}

/** What a line allocated itself, and what it called did. @param {SourceFile} shown */
function memoryBar(shown) {
  let most = 1;
  for (const n of shown.numbers.values()) most = Math.max(most, n.total);
  return {
    title: "",
    width: "64px",
    show: (/** @type {SourceRow} */ r) =>
      cell("", r.now ? shareBar(r.now.total / most, r.now.self / most) : null),
  };
}

/** Beside what is shown, what a line itself has of each kind of memory. @param {SourceFile} shown */
function memoryColumns(shown) {
  const titles = { peak: "peak", leaked: "at end", allocated: "allocated" };
  const wanted = Object.entries(titles).filter(
    ([key]) => shown.memory.has(key) && shown.ofMemory?.key !== key,
  );
  return wanted.slice(0, shown.ofMemory ? 3 : 1).map(([key, title]) => ({
    title,
    width: "66px",
    show: (/** @type {SourceRow} */ r) => {
      const own = shown.memory.get(key)?.get(r.line)?.self;
      return cell("num.soft", own ? formatValue(own, "bytes") : "");
    },
  }));
}

/** @param {string} text */
function shortened(text) {
  return text.length > MOST_COLUMNS ? `${text.slice(0, MOST_COLUMNS)}…` : text;
}

/** @param {SourceRow} row @param {string} text */
function signCell(row, text) {
  const [sign, words] = SIGNS[text.trim() ? row.kind : "same"];
  return cell("sign", el("span", { "aria-hidden": "true" }, sign), words ? el("span.sr", null, words) : null);
}
