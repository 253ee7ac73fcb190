// @ts-check
import { Signal } from "./signal.js";
import { texts } from "./texts.js";

/** An answer that refuses, in the service's own words. */
export class Refusal extends Error {
  /**
   * @param {string} message
   * @param {number} status
   * @param {string} code
   */
  constructor(message, status, code) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

/** @param {unknown} error */
export const isAbort = error => error instanceof DOMException && error.name === "AbortError";

/**
 * The path of a recording. Like every path in these modules it is relative to the page, which a proxy may serve below a
 * path of its own.
 * @param {string} id
 */
export const recordingPath = id => `v1/recordings/${encodeURIComponent(id)}`;

/**
 * The HTTP API. Reads wait for a service that is away and are then repeated, so that whoever reads need not care;
 * changes fail, because only a person can say whether they should be tried again.
 */
export class Service {
  /**
   * True when the service answers again, false when it has gone away.
   * @type {Signal<boolean>}
   */
  reachable = new Signal();
  /** @type {Promise<void> | null} */
  #away = null;

  /**
   * A JSON document.
   * @param {string} path
   * @param {{ method?: string, body?: unknown, signal?: AbortSignal, keepalive?: boolean }} options
   * @returns {Promise<any>} null where the answer has no content
   */
  async json(path, options = {}) {
    const answer = await this.fetch(path, options);
    return answer.status === 204 ? null : answer.json();
  }

  /**
   * The answer, where it is one of success.
   * @param {string} path
   * @param {{ method?: string, body?: unknown, signal?: AbortSignal, keepalive?: boolean }} options
   * @returns {Promise<Response>}
   */
  async fetch(path, { method = "GET", body, signal, keepalive } = {}) {
    const headers = body === undefined ? undefined : { "Content-Type": "application/json" };
    const content = body === undefined ? undefined : JSON.stringify(body);
    for (;;) {
      /** @type {Response} */
      let answer;
      try {
        answer = await fetch(path, { method, headers, body: content, signal, keepalive });
      } catch (error) {
        if (isAbort(error)) throw error;
        const back = this.untilBack();
        if (method !== "GET") throw new Refusal(texts.unreachable, 0, "unreachable");
        await back;
        signal?.throwIfAborted();
        continue;
      }
      if (answer.ok) return answer;
      const busy = answer.status === 429 || answer.status === 503;
      const delay = retrySeconds(answer.headers.get("Retry-After"));
      if (busy && method === "GET" && delay > 0) {
        await pause(delay * 1000, signal);
        continue;
      }
      const problem = await answer.json().catch(() => ({}));
      throw new Refusal(
        problem.detail || problem.title || texts.refused(answer.status), answer.status, problem.code ?? "");
    }
  }

  /** Resolves when the service answers; at once where nobody has missed it. */
  untilBack() {
    this.#away ??= this.#watch().finally(() => { this.#away = null; });
    return this.#away;
  }

  async #watch() {
    this.reachable.emit(false);
    for (let delay = 500; ; delay = Math.min(5000, delay * 1.5)) {
      await pause(delay);
      try {
        if ((await fetch("healthz", { cache: "no-store" })).ok) break;
      } catch { /* still away */ }
    }
    this.reachable.emit(true);
  }
}

/**
 * The seconds that `Retry-After` asks for, which is a number or a date (RFC 9110 §10.2.3); 0 where it asks for none, at
 * most an hour.
 * @param {string | null} text
 */
export function retrySeconds(text) {
  const seconds = text === null ? 0 : /^\d+$/.test(text) ? Number(text) : (Date.parse(text) - Date.now()) / 1000;
  return Math.min(Math.max(seconds || 0, 0), 3600);
}

/**
 * @param {number} milliseconds
 * @param {AbortSignal} [signal]
 * @returns {Promise<void>}
 */
export function pause(milliseconds, signal) {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal?.addEventListener("abort", () => {
      clearTimeout(timer);
      reject(signal.reason);
    }, { once: true });
  });
}
