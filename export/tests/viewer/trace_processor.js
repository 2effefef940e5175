// Runs Perfetto's trace processor as built for Perfetto's user interface (WebAssembly, for a worker of a browser):
// `node trace_processor.js FOLDER < requests > replies`.
//
// FOLDER holds engine_bundle.js and trace_processor*.wasm. Requests and replies are TraceProcessorRpcStream messages.
// The bundle expects a browser's worker; the parts that it needs are defined here.

const fs = require('fs'), path = require('path'), vm = require('vm');

const folder = process.argv[2];

function writeAll(bytes) {
  for (let from = 0; from < bytes.length;) {
    try {
      from += fs.writeSync(1, bytes, from);
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
    }
  }
}

globalThis.self = globalThis;
globalThis.location = {href: 'file:///engine_bundle.js'};
globalThis.WorkerGlobalScope = function() {};
globalThis.XMLHttpRequest = class {
  open(_method, url) { this.file = path.join(folder, path.basename(url)); }
  send() {
    const bytes = fs.readFileSync(this.file);
    this.response = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length);
  }
};
console.log = console.warn = () => {};

const port = {postMessage: writeAll};
const bundle = fs.readFileSync(path.join(folder, 'engine_bundle.js'), 'utf8');
// `process` and `require` are hidden from it: it refuses to run where it finds node.
vm.runInThisContext(`(function (process, require) {${bundle}\n})`)();
globalThis.onmessage({data: port});
// The module was compiled synchronously; it says that it is ready by a promise that is fulfilled before this runs.
setTimeout(() => port.onmessage({data: new Uint8Array(fs.readFileSync(0))}), 0);
