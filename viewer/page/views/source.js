// Files with the numbers of each line beside it, as heat and as figures. Where no lines were recorded, the numbers of
// functions stand at their first lines.

import { el, fill } from "../parts/dom.js";
import { Rows, sortHead, cell } from "../parts/rows.js";
import { formatCount, formatPercent, formatTime, formatShare } from "../parts/numbers.js";
import { visible, visibleSource, shorten, baseName } from "../parts/text.js";

/** @typedef {import('../app.js').App} App */
/** @typedef {{hits: number, total: number, self: number, samples: number, func: number}} LineNumbers */

/** No more of a line is shown; a longer one is not read by people. */
const MOST_COLUMNS = 2000;
/** Files whose lines are added up where nothing else says how heavy they are. */
const MOST_WEIGHED = 200;

export class SourceView {
  /** @param {App} app */
  constructor(app) {
    this.app = app;
    this.id = "source";
    /** @type {HTMLElement} */
    this.host = el("div");
    this.title = "Source";
    /** @type {[string, number][]} */
    this.files = [];
    /** @type {string[]} */
    this.text = [];
    /** @type {Map<number, LineNumbers>} */
    this.numbers = new Map();
    /** @type {number[]} */
    this.lines = [];
    this.fileShown = "";
    this.hottest = 1;
    this.ofLines = false;
    this.bySelf = true;
    this.sum = 0;
  }

  /** @param {HTMLElement} host */
  show(host) {
    this.host = host;
    this.fileShown = "";
    this.update(null);
  }

  /** @param {Set<string> | null} changed */
  update(changed) {
    const { s, session } = this.app;
    if (
      changed &&
      changed.has("f") &&
      !changed.has("file") &&
      session.functions[s.f]?.file === this.fileShown &&
      changed.size === 1
    )
      return this.jump(session.functions[s.f].line);
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
    this.load(file);
    const files = this.fileList(file);
    const code = this.codeList();
    fill(this.host, el("div.source", null, files.node, code.node));
    files.rows.reset(this.files.length);
    files.rows.mark(
      this.files.findIndex(([f]) => f === file),
      true,
    );
    this.rows = code.rows;
    code.rows.reset(this.lines.length);
    const info = session.functions[s.f];
    this.jump((s.file ? s.line : 0) || (info?.file === file ? info.line : 0) || this.hottestLine());
  }

  /** What one most likely looks for: the heaviest file with lines, or of one's own code, or of all. */
  usualFile() {
    const { session, s } = this.app;
    const withLines = new Set(
      session
        .summary(s)
        .files.filter((/** @type {any} */ f) => f.lines)
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

  /** Files by the time spent in their functions themselves. */
  weighFiles() {
    const { session, s } = this.app;
    const table = session.table(s);
    /** @type {Map<string, number>} */
    const weight = new Map();
    for (let i = 0; i < table.length; i++) {
      const file = session.functions[table.func[i]]?.file;
      if (file) weight.set(file, (weight.get(file) ?? 0) + table.self[i]);
    }
    const lines = session.summary(s).files.filter((/** @type {any} */ f) => f.lines && !weight.has(f.file));
    lines.forEach((/** @type {any} */ f, /** @type {number} */ i) =>
      weight.set(f.file, !table.length && i < MOST_WEIGHED ? this.timeOfLines(f.file) : 0),
    );
    this.sum = table.sum || [...weight.values()].reduce((a, b) => a + b, 0);
    this.files = [...weight].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1));
  }

  /** Where only lines were recorded. @param {string} file */
  timeOfLines(file) {
    const got = this.app.session.engine.source(this.app.session.options(this.app.s).recording, file, -1);
    const times = got.self.some((ns) => ns > 0) ? got.self : got.total;
    return times.reduce((a, b) => a + b, 0);
  }

  /** @param {string} file */
  load(file) {
    const { session, s } = this.app;
    const summary = session.summary(s);
    const number = Number(s.scope.slice(1));
    const process =
      s.scope[0] === "p" ? number : s.scope[0] === "t" ? (summary.threads[number]?.process ?? -1) : -1;
    const got = session.engine.source(session.options(s).recording, file, process);
    this.fileShown = file;
    this.state = got.state;
    this.text = got.text === null ? [] : got.text.split(/\r\n|\n|\r/);
    if (this.text.length > 1 && this.text[this.text.length - 1] === "") this.text.pop();
    this.ofLines = got.length > 0;
    this.numbers = new Map();
    this.functionStarts = new Map();
    for (let i = 0; i < got.length; i++)
      this.addNumbers(
        got.line[i],
        got.func[i],
        got.hits[i],
        got.total[i],
        got.self[i],
        got.samples ? got.samples[i] : 0,
      );
    const table = session.table(s);
    for (const func of got.functions) {
      const row = table.rowOf.get(func);
      const line = session.functions[func].line;
      if (!this.functionStarts.has(line)) this.functionStarts.set(line, func);
      if (!this.ofLines && row !== undefined && session.functions[func].line)
        this.addNumbers(line, func, table.calls[row], table.total[row], table.self[row], table.samples[row]);
    }
    this.lines = this.text.length
      ? this.text.map((_, i) => i + 1)
      : [...this.numbers.keys()].sort((a, b) => a - b);
    const all = [...this.numbers.values()];
    // line_profiler's files know no time without callees.
    this.bySelf = all.some((n) => n.self > 0);
    this.hottest = all.reduce((most, n) => Math.max(most, this.heat(n)), 1);
    this.hits = all.some((n) => n.hits > 0);
    this.samples = all.some((n) => n.samples > 0);
  }

  /** @param {number} line @param {number} func @param {number} hits @param {number} total @param {number} self @param {number} samples */
  addNumbers(line, func, hits, total, self, samples) {
    const n = this.numbers.get(line) ?? { hits: 0, total: 0, self: 0, samples: 0, func };
    this.numbers.set(line, {
      hits: n.hits + hits,
      total: n.total + total,
      self: n.self + self,
      samples: n.samples + samples,
      func: n.func,
    });
  }

  /** @param {LineNumbers} n */
  heat(n) {
    return this.bySelf ? n.self : n.total;
  }

  hottestLine() {
    let best = 1;
    let most = -1;
    for (const [line, n] of this.numbers) if (this.heat(n) > most) [best, most] = [line, this.heat(n)];
    return best;
  }

  /** @param {string} current */
  fileList(current) {
    const template = "minmax(0, 1fr) 46px";
    const rows = new Rows({
      role: "grid",
      label: "Files",
      columns: template,
      head: sortHead(
        [
          { key: "f", title: "file", fixed: true },
          { key: "p", title: "self %", num: true, fixed: true },
        ],
        template,
        "",
        false,
        () => {},
      ),
      select: (row) => {
        if (this.files[row][0] !== this.fileShown)
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
          cell("num.soft", formatPercent(self, this.sum)),
        );
      },
    });
    rows.node.setAttribute("data-file", visible(shorten(current, 200)));
    return { node: el("div.files", null, rows.node), rows };
  }

  codeList() {
    const phone = innerWidth < 640;
    const counted = this.samples && !this.hits ? "samples" : this.ofLines ? "hits" : "calls";
    /** @type {{key: string, title: string, num?: boolean, fixed: boolean}[]} */
    const columns = [
      { key: "line", title: "line", num: true, fixed: true },
      { key: "self", title: "self", num: true, fixed: true },
    ];
    if (!phone)
      columns.push(
        { key: "total", title: "total", num: true, fixed: true },
        { key: "hits", title: counted, num: true, fixed: true },
      );
    columns.push({ key: "code", title: visible(shorten(this.fileShown, 300)), fixed: true });
    const template = phone
      ? "38px 58px minmax(0, max-content)"
      : "50px 72px 72px 74px minmax(0, max-content)";
    const rows = new Rows({
      role: "grid",
      label: "Lines",
      columns: template,
      head: sortHead(columns, template, "", false, () => {}),
      select: (row) => this.selectLine(this.lines[row]),
      render: (row, node) => this.renderLine(this.lines[row], node, phone, counted),
    });
    return { rows, node: el("div.code", null, this.notice(), rows.node) };
  }

  notice() {
    /** @type {string[]} */
    const words = [];
    if (!this.text.length)
      words.push("The source text is not in the recording; only lines with numbers are shown.");
    if (this.state === "changed")
      words.push("The file was changed while the program ran: lines may have moved.");
    if (!this.ofLines)
      words.push(
        this.app.session.summary(this.app.s).hasLines
          ? "Lines of this file were not recorded: numbers stand at the first line of each function."
          : "Lines were not recorded: numbers stand at the first line of each function. fathom run --lines records them.",
      );
    if (this.ofLines && this.app.s.scope[0] === "t")
      words.push("Lines are counted for the whole process, not by thread.");
    return words.length ? el("div.notice", null, ...words.map((text) => el("p", null, text))) : null;
  }

  /** @param {number} line */
  selectLine(line) {
    let func = this.numbers.get(line)?.func ?? -1;
    for (let up = line; func < 0 && up > 0; up--) func = this.functionStarts?.get(up) ?? -1;
    this.app.store.set({ file: this.fileShown, line, f: func }, true);
  }

  /** @param {number} line @param {HTMLElement} node @param {boolean} phone @param {string} counted */
  renderLine(line, node, phone, counted) {
    const n = this.numbers.get(line);
    const strength = n ? (this.heat(n) / this.hottest) ** 0.7 : 0;
    if (n)
      node.style.setProperty(
        "background-image",
        `linear-gradient(rgba(var(--heat), ${(strength * 0.42).toFixed(3)}), rgba(var(--heat), ${(strength * 0.42).toFixed(3)}))`,
      );
    const count = n ? (counted === "samples" ? n.samples : n.hits) : 0;
    const time = (/** @type {number} */ ns) => (n && ns ? formatTime(ns) : "");
    node.append(cell("num.faint", line), cell("num", time(n?.self ?? 0)));
    if (!phone)
      node.append(cell("num.soft", time(n?.total ?? 0)), cell("num.soft", count ? formatCount(count) : ""));
    const text = this.text[line - 1] ?? "";
    node.append(
      el(
        "pre",
        { role: "gridcell" },
        visibleSource(text.length > MOST_COLUMNS ? `${text.slice(0, MOST_COLUMNS)}…` : text),
      ),
    );
    if (n && this.app.session.metric(this.app.s).unit === "ns")
      node.title = `self ${formatTime(n.self)} (${formatShare(n.self, this.sum)})`;
    if (line === this.app.s.line) node.classList.add("target");
  }

  /** @param {number} line */
  jump(line) {
    const row = this.text.length ? line - 1 : this.lines.indexOf(line);
    if (row < 0 || row >= this.lines.length || !this.rows) return;
    this.rows.mark(row);
    this.rows.reveal(row, true);
  }

  drawn() {
    return {
      file: this.fileShown,
      lines: [...this.numbers].map(([line, n]) => ({
        line,
        hits: n.hits,
        total: n.total,
        self: n.self,
        samples: n.samples,
      })),
      text: this.text.slice(0, 2000),
      selected: this.rows ? this.lines[this.rows.selected] : 0,
      elements: this.rows?.shown.size,
    };
  }
}
