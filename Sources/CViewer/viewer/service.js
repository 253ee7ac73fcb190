// @ts-check
import { Credentials } from "./credentials.js";
import { explain } from "./problems.js";
import { Signal } from "./signal.js";
import { texts } from "./texts.js";

/** A response that refuses the request, in words for a person. */
export class Refusal extends Error {
  /**
   * @param {string} message
   * @param {number} status
   * @param {string} code
   * @param {number} seconds how long the service asks to wait; 0: it doesn't say
   */
  constructor(message, status, code, seconds = 0) {
    super(message);
    this.status = status;
    this.code = code;
    this.seconds = seconds;
  }
}

/** The first and the longest pause before another attempt, in milliseconds. */
const firstPause = 500, longestPause = 30_000;
/** How many attempts in a row may be turned away without a time for the next one. */
const mostSetbacks = 4;

/**
 * Returns how long to wait before another attempt, in milliseconds: twice as long each time, and never the same for clients
 * that were turned away together.
 * @param {number} setbacks how many attempts in a row have failed before this one
 * @param {number} [least] in seconds
 */
export const growingPause = (setbacks, least = 0) => (
  Math.max(Math.min(longestPause, firstPause * 2 ** setbacks) * (0.75 + Math.random() / 2), least * 1000));

/** @param {unknown} error */
export const isAbort = error => error instanceof DOMException && error.name === "AbortError";

/**
 * Returns the path of a recording. Like every path in these modules, it is relative to the page, which a proxy may serve
 * below another path.
 * @param {string} id
 */
export const recordingPath = id => `v1/recordings/${encodeURIComponent(id)}`;

/**
 * The HTTP API. If the service is unreachable, reads wait and are repeated, so that callers need not care; changes fail,
 * because only a person can decide whether to try again.
 */
export class Service {
  /**
   * True when the service responds again, false when it has become unreachable.
   * @type {Signal<boolean>}
   */
  reachable = new Signal();
  /** @type {Promise<void> | null} */
  #away = null;

  /** @param {Credentials} credentials */
  constructor(credentials = new Credentials()) { this.credentials = credentials; }

  /**
   * A JSON document.
   * @param {string} path
   * @param {{ method?: string, body?: unknown, content?: Blob | string, signal?: AbortSignal, keepalive?: boolean, key?: string, match?: string }} options
   * @returns {Promise<any>} null where the answer has no content
   */
  async json(path, options = {}) {
    const answer = await this.fetch(path, options);
    return answer.status === 204 ? null : answer.json();
  }

  /**
   * Returns the response if it is a success.
   * @param {string} path
   * @param {{ method?: string, body?: unknown, content?: Blob | string, signal?: AbortSignal, repeatable?: boolean, keepalive?: boolean, accept?: string, range?: string, key?: string, match?: string }} options
   *   `body` is sent as JSON, `content` as it is; `accept`, `range` and `match` (If-Match) as in RFC 9110; `key` is an Idempotency-Key;
   *   a repeatable request is sent again when the service is back, or has time; if the service doesn't say when, a few times
   * @returns {Promise<Response>}
   */
  async fetch(path, { method = "GET", repeatable = ["GET", "HEAD"].includes(method), body, content, signal, keepalive, accept, range, key, match } = {}) {
    if (this.credentials.forbids(method, path)) throw new Refusal(texts.notShared, 403, "not_shared");
    const headers = new Headers();
    if (body !== undefined) headers.set("Content-Type", "application/json");
    if (accept) headers.set("Accept", accept);
    if (range) headers.set("Range", range);
    if (content !== undefined) headers.set("Content-Type", "application/octet-stream");
    if (key) headers.set("Idempotency-Key", key);
    if (match) headers.set("If-Match", match);
    const sent = body === undefined ? content : JSON.stringify(body);
    for (let setbacks = 0, refusals = 0; ;) {
      const used = this.credentials.authorize(headers);
      /** @type {Response} */
      let answer;
      try {
        answer = await fetch(path, { method, headers, body: sent, signal, keepalive });
      } catch (error) {
        if (isAbort(error)) throw error;
        const back = this.untilBack();
        if (!repeatable) throw new Refusal(texts.unreachable, 0, "unreachable");
        await back;
        signal?.throwIfAborted();
        continue;
      }
      if (answer.ok) return answer;
      if (answer.status === 401) {
        if (!await this.credentials.replace(used)) throw new Refusal(texts.shareEnded, 401, "share_ended");
        signal?.throwIfAborted();
        continue;
      }
      // A proxy answers for a service that is away; a service that is only busy says itself that it is well.
      const isInDoubt = answer.status === 502 || answer.status === 504 || answer.status === 503 && refusals++ > 0;
      if (repeatable && isInDoubt && !await isWell()) {
        await this.untilBack();
        signal?.throwIfAborted();
        continue;
      }
      const busy = answer.status === 429 || answer.status === 503;
      const delay = retrySeconds(answer.headers.get("Retry-After"));
      if (busy && repeatable && (delay > 0 || setbacks < mostSetbacks)) {
        await pause(delay > 0 ? delay * 1000 : growingPause(setbacks++), signal);
        continue;
      }
      const problem = await answer.json().catch(() => ({}));
      throw new Refusal(explain(problem, texts.refused(answer.status)), answer.status, problem.code ?? "", delay);
    }
  }

  /**
   * Prepares `credentials.address` for a recording: elements and downloads need a token if the page has a key.
   * @param {string} recording
   */
  admit(recording) { return this.credentials.admit(recording, body => this.fetch("v1/tokens", { method: "POST", repeatable: true, body })); }

  /** Resolves when the service is reachable; at once if it is. */
  untilBack() {
    this.#away ??= this.#watch().finally(() => { this.#away = null; });
    return this.#away;
  }

  async #watch() {
    this.reachable.emit(false);
    for (let delay = 500; ; delay = Math.min(5000, delay * 1.5)) {
      await pause(delay);
      if (await isWell()) break;
    }
    this.reachable.emit(true);
  }
}

/** Whether the service answers. */
const isWell = () => fetch("healthz", { cache: "no-store" }).then(answer => answer.ok, () => false);

/**
 * Returns the seconds of `Retry-After`, which is a number or a date (RFC 9110 §10.2.3); 0 if it is missing, at most an
 * hour.
 * @param {string | null} text
 */
export function retrySeconds(text) {
  const seconds = text === null ? 0 : /^\d+$/.test(text) ? Number(text) : (Date.parse(text) - Date.now()) / 1000;
  return Math.min(Math.max(seconds || 0, 0), 3600);
}

/**
 * Rejects with the signal's reason if it is aborted, also before.
 * @param {number} milliseconds
 * @param {AbortSignal} [signal]
 * @returns {Promise<void>}
 */
export async function pause(milliseconds, signal) {
  signal?.throwIfAborted();
  await new Promise((resolve, reject) => {
    const abort = () => {
      clearTimeout(timer);
      reject(signal?.reason);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", abort);
      resolve(undefined);
    }, milliseconds);
    signal?.addEventListener("abort", abort, { once: true });
  });
}
