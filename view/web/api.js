// @ts-check
// Questions to the server, with the token.

const KEY = "sigmund-token";
let token = "";

/** Takes the token of the URL's fragment, or the one of this tab. @param {string | undefined} given */
export function useToken(given) {
  if (given) sessionStorage.setItem(KEY, given);
  token = given ?? sessionStorage.getItem(KEY) ?? "";
}

/** @param {string} path @param {RequestInit} [options] */
async function request(path, options = {}) {
  const response = await fetch(`api/${path}`, {
    ...options, cache: "no-store", headers: { Authorization: `Bearer ${token}` },
  });
  if (!response.ok) {
    const reason = await response.json().catch(() => ({ error: response.statusText }));
    throw new Error(reason.error ?? response.statusText);
  }
  return response;
}

/** @param {Record<string, string | number | undefined | null>} parameters */
function query(parameters) {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return new URLSearchParams(given.map(([name, value]) => [name, String(value)])).toString();
}

/** @param {string} question @param {Record<string, string | number | undefined | null>} [parameters] @param {AbortSignal} [signal]
 * @returns {Promise<any>} */
export async function ask(question, parameters = {}, signal) {
  return (await request(`${question}?${query(parameters)}`, { signal })).json();
}

/** Freezes the program that is looked at: from here on there is a trace. */
export async function freeze() {
  await request("freeze", { method: "POST", body: "{}" });
}

/** A super-trace that is asked: the first one, or with the prefix `b/` the one that it is compared with. */
export class Source {
  /** @param {string} [prefix] */
  constructor(prefix = "") {
    this.prefix = prefix;
  }

  /** @param {string} question @param {Record<string, string | number | undefined | null>} [parameters] @param {AbortSignal} [signal] @returns {Promise<any>} */
  ask(question, parameters, signal) {
    return ask(`${this.prefix}${question}`, parameters, signal);
  }

  /** @param {string} question @param {Record<string, string | number | undefined>} parameters @param {AbortSignal} [signal] */
  async floats(question, parameters, signal) {
    const bytes = await (await request(`${this.prefix}${question}?${query(parameters)}`, { signal })).arrayBuffer();
    return new Float32Array(bytes);
  }

  /** @param {string} text @param {AbortSignal} [signal] @returns {Promise<any>} */
  async sql(text, signal) {
    return (await request(`${this.prefix}sql`, { method: "POST", body: JSON.stringify({ query: text }), signal })).json();
  }

  /** @param {object} body @param {AbortSignal} [signal] */
  async tiles(body, signal) {
    return (await request(`${this.prefix}tiles`, { method: "POST", body: JSON.stringify(body), signal })).arrayBuffer();
  }
}

/** Whether an error is that of a question that nobody waits for any more. @param {unknown} error */
export function isAbort(error) {
  return error instanceof DOMException && error.name === "AbortError";
}
