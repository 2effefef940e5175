// Serves the page from `web/` as it is on disk, and asks a server that runs for everything else: so the page is worked on
// without a build. `node proxy.mjs URL` prints the URL to open.

import { readFile } from "node:fs/promises";
import { createServer, request } from "node:http";
import { extname, join, normalize } from "node:path";
import { fileURLToPath } from "node:url";

const WEB = fileURLToPath(new URL("../../web/", import.meta.url));
const TYPES = { ".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml" };
const POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/** The URL of a page whose files are those on disk, and what closes it. @param {string} url that `sigmund view` printed */
export async function proxied(url) {
  const server = new URL(url);
  const own = createServer(async (asked, answer) => {
    const { pathname } = new URL(asked.url ?? "/", "http://localhost");
    if (pathname.startsWith("/api/")) { forward(server, asked, answer); return; }
    const path = join(WEB, normalize(pathname === "/" ? "/index.html" : pathname));
    const bytes = await readFile(path).catch(() => null);
    if (bytes === null) { answer.writeHead(404).end(); return; }
    answer.writeHead(200, { "content-type": TYPES[extname(path)] ?? "text/plain", "cache-control": "no-store", "content-security-policy": POLICY }).end(bytes);
  });
  await new Promise((listening) => own.listen(0, "127.0.0.1", () => listening(undefined)));
  const page = new URL(url);
  page.port = String(/** @type {any} */ (own.address()).port);
  return { url: page.href, close: () => { own.close(); own.closeAllConnections(); } };
}

/** @param {URL} server @param {import("node:http").IncomingMessage} asked @param {import("node:http").ServerResponse} answer */
function forward(server, asked, answer) {
  const headers = { ...asked.headers, host: server.host };
  if (headers.origin) headers.origin = server.origin;
  const question = request({ host: server.hostname, port: server.port, path: asked.url, method: asked.method, headers }, (reply) => {
    answer.writeHead(reply.statusCode ?? 502, reply.headers);
    reply.pipe(answer);
  });
  question.on("error", () => answer.destroy());
  answer.on("close", () => question.destroy());
  asked.pipe(question);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) console.log((await proxied(process.argv[2])).url);
