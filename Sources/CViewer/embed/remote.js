// @ts-check
// What the drawing modules of the viewer import from modules that the element leaves out, and the service as the element
// calls it: by GET alone, with a token in the address, so that no page needs a preflight.

/** The mark between seconds and their decimals. */
export const decimalMark = (1.5).toLocaleString(globalThis.document?.documentElement.lang || undefined).charAt(1);
/** The overlay has the first color of cleaned waveforms. */
export const mostColors = 1;

/** @param {unknown} error */
export const isAbort = error => error instanceof DOMException && error.name === "AbortError";

/** @param {string} id */
export const recordingPath = id => `v1/recordings/${encodeURIComponent(id)}`;

/**
 * Rejects with the signal's reason if it is aborted, also before.
 * @param {number} milliseconds
 * @param {AbortSignal} signal
 */
export async function pause(milliseconds, signal) {
  signal.throwIfAborted();
  await new Promise((resolve, reject) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => { clearTimeout(timer); reject(signal.reason); }, { once: true });
  });
}

/** Why something can't be shown: `code` as in the service's problems, or "unreachable" or "unplayable". */
export class StillwaveError extends Error {
  /**
   * @param {string} message
   * @param {string} code
   * @param {number} status of the response, or 0 if the request got no response
   */
  constructor(message, code, status) {
    super(message);
    this.name = "StillwaveError";
    this.code = code;
    this.status = status;
  }
}

/** What the viewer's modules call it. */
export const Refusal = StillwaveError;

/**
 * Where a recording is: the service's address, the recording's id, and a token or "".
 * @typedef {{ base: string, id: string, token: string }} Place
 */

/**
 * Parses an id, `id?token=…`, or the address of a recording or of something below it.
 * @param {string} text
 * @param {string} base the service's address
 * @param {string} token
 * @returns {Place | null}
 */
export function parsePlace(text, base, token) {
  const match = /^(?:(.*\/)v1\/recordings\/)?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:[/?#].*)?$/.exec(text.trim());
  if (!match) return null;
  const query = new URLSearchParams(text.split("#")[0].split("?")[1] ?? "");
  const own = match[1] === undefined ? base : new URL(match[1], globalThis.document?.baseURI).href;
  return { base: own, id: match[2], token: query.get("token") ?? token };
}

/** Before anything was answered, a page that may not ask is likelier than a service that is away. */
const mostTries = 6, firstTries = 3;

/** The service at one or several addresses, each recording with its own token. */
export class Remote {
  /** @type {Map<string, Place>} */
  #places = new Map();
  #control = new AbortController();
  #isKnown = false;

  /** @param {(error: StillwaveError) => void} onError called for each response that is neither a success nor worth another try */
  constructor(onError) { this.onError = onError; }

  /** Aborted when all requests end. */
  get ending() { return this.#control.signal; }
  /** Ends all requests. */
  close() { this.#control.abort(); }

  /** @param {Place} place */
  add(place) { this.#places.set(place.id, place); }

  /**
   * Returns the whole address of a path below `v1/recordings/<id>`.
   * @param {string} path
   */
  address(path) {
    const place = this.#places.get(path.split(/[/?]/)[2]), url = new URL(path, place?.base);
    if (place?.token) url.searchParams.set("token", place.token);
    return url.href;
  }

  /**
   * @param {string} path
   * @param {{ signal?: AbortSignal }} options
   */
  async fetch(path, { signal } = {}) {
    const own = this.#control.signal, control = new AbortController();
    const abort = () => control.abort();
    for (const source of [own, signal]) {
      if (source?.aborted) abort();
      source?.addEventListener("abort", abort, { once: true });
    }
    try {
      return await this.#answer(path, control.signal);
    } catch (error) {
      if (!isAbort(error)) this.onError(/** @type {StillwaveError} */ (error));
      throw error;
    } finally {
      for (const source of [own, signal]) source?.removeEventListener("abort", abort);
    }
  }

  /**
   * @param {string} path
   * @param {AbortSignal} signal
   */
  async #answer(path, signal) {
    for (let tries = 1; ; tries++) {
      let answer = null;
      try { answer = await fetch(this.address(path), { signal, referrerPolicy: "strict-origin-when-cross-origin" }); }
      catch (error) { if (isAbort(error)) throw error; }
      this.#isKnown ||= !!answer;
      if (answer?.ok) return answer;
      if (tries >= (this.#isKnown ? mostTries : firstTries) || answer && ![429, 502, 503, 504].includes(answer.status)) throw await refusal(answer);
      const seconds = Number(answer?.headers.get("Retry-After")) || 0.25 * 2 ** tries;
      await pause(Math.min(seconds, 60) * 1000, signal);
    }
  }
}

/** @param {Response | null} answer */
async function refusal(answer) {
  if (!answer) return new StillwaveError("The service can't be reached, or doesn't allow this page to use it.", "unreachable", 0);
  const problem = await answer.json().catch(() => ({}));
  return new StillwaveError(problem.title ?? `The service answered ${answer.status}.`, problem.code ?? "", answer.status);
}
