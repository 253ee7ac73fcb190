// @ts-check
import { explain } from "./problems.js";
import { growingPause, pause, retrySeconds } from "./service.js";
import { Signal } from "./signal.js";
import { texts } from "./texts.js";

// Uploads by tus 1.0.0 (https://tus.io/protocols/resumable-upload): a file is sent in pieces and continues after
// a pause, a lost connection or a reload. Uses XMLHttpRequest, because fetch doesn't report how much has been sent.
//
//   no address        POST, unless one is remembered from before
//   offset not known  HEAD
//   otherwise         PATCH with the next piece
//
// What a response means:
//
//   404, 410                            the upload is gone: forget it and start again. Nothing else makes the page forget
//   409, 423, 429, 5xx, no connection   ask for the offset after a pause, twice as long each time until bytes arrive, at
//                                       least as long as Retry-After says
//   2xx without the fields of tus       not from the service: the same
//   anything else                       a refusal; the address is kept, so the same file continues from there

const pieceBytes = 16 * 1024 * 1024;
const tus = { "Tus-Resumable": "1.0.0" };

/** The upload of one file. */
export class Upload {
  /** @type {"waiting" | "sending" | "paused" | "done" | "failed" | "cancelled"} */
  state = "waiting";
  sent = 0;
  /** Bytes per second, smoothed. */
  rate = 0;
  error = "";
  /** Whether another attempt with this file is pointless. */
  isRefused = false;
  /** Why it waits before the next attempt; empty while it makes progress. */
  setback = "";
  /** The new recording's id. */
  recording = "";
  /** @type {Signal<void>} */
  changed = new Signal();

  /** The upload's id; empty until it has one. */
  #id = "";
  /**
   * The offset on the service; null if it must be requested.
   * @type {number | null}
   */
  #offset = null;
  /** Setbacks since the last byte arrived, and the offset it arrived at. */
  #setbacks = 0;
  #reached = 0;
  /** @type {XMLHttpRequest | null} */
  #request = null;
  #control = new AbortController();
  #mark = { time: 0, sent: 0 };

  /**
   * @param {File} file
   * @param {import("./service.js").Service} service
   */
  constructor(file, service) {
    this.file = file;
    this.service = service;
    // Services below different paths of one server share the store.
    const { pathname } = new URL(".", document.baseURI);
    this.#key = `stillwave upload ${pathname} ${file.name} ${file.size} ${file.lastModified}`;
    this.#id = recall(this.#key);
  }
  #key;

  get secondsLeft() { return this.rate > 0 ? (this.file.size - this.sent) / this.rate : NaN; }
  get #path() { return `v1/uploads/${this.#id}`; }

  pause() {
    if (this.state === "sending") this.#stop("paused");
  }

  cancel() {
    this.#stop("cancelled");
    remember(this.#key, "");
    const headers = new Headers(tus);
    this.service.credentials.authorize(headers);
    if (this.#id) void fetch(this.#path, { method: "DELETE", headers }).catch(() => { });
  }

  #stop(/** @type {Upload["state"]} */ state) {
    this.#set(state);
    this.#control.abort();
    this.#request?.abort();
  }

  /** Sends the missing bytes. Resolves when the upload has ended or is paused. */
  async run() {
    this.#control = new AbortController();
    this.#offset = null;
    if (!this.file.size) {
      [this.error, this.isRefused] = [texts.emptyFile, true];
      return this.#set("failed");
    }
    this.#set("sending");
    while (this.state === "sending") {
      try {
        await this.#step();
      } catch (error) {
        if (this.state !== "sending") return;
        try {
          if (!(error instanceof Setback)) throw error;
          await this.#waitOut(error);
        } catch (reason) {
          // The pause may have been cut short.
          if (this.state !== "sending") return;
          this.error = reason instanceof Error ? reason.message : String(reason);
          this.isRefused = reason instanceof Unreadable;
          this.#set("failed");
        }
      }
    }
  }

  async #step() {
    if (!this.#id) await this.#begin();
    else if (this.#offset === null) await this.#ask();
    else await this.#sendPiece(this.#offset);
  }

  async #begin() {
    const name = btoa(String.fromCharCode(...new TextEncoder().encode(this.file.name)));
    const answer = await this.#send("POST", "v1/uploads", null, {
      ...tus, "Upload-Length": String(this.file.size), "Upload-Metadata": `filename ${name}`,
    });
    // Only its id counts: a proxy may use another path for it than the service.
    const id = /([\w-]+)\/?$/.exec(answer.getResponseHeader("Location") ?? "")?.[1];
    if (answer.status !== 201 || !id) throw judgement(answer);
    this.#id = id;
    remember(this.#key, id);
    this.#arrived(0);
  }

  async #ask() {
    const answer = await this.#send("HEAD", this.#path, null, tus);
    const { status } = answer, length = number(answer, "Upload-Length");
    if (isGone(status) || length !== null && length !== this.file.size) return this.#forget();
    // The file was refused. HEAD can't say why; an empty PATCH gets the same response with its detail.
    if (status === 415 || status === 422) return void (this.#offset = this.file.size);
    this.#take(answer);
  }

  async #sendPiece(/** @type {number} */ offset) {
    const piece = this.file.slice(offset, offset + pieceBytes);
    const answer = await this.#send("PATCH", this.#path, piece, {
      ...tus, "Upload-Offset": String(offset), "Content-Type": "application/offset+octet-stream",
    });
    if (isGone(answer.status)) {
      this.#forget();
      // An upload that disappears as soon as it is created must not be created again and again.
      throw new Setback(texts.uploadLost);
    }
    this.#take(answer);
    if (this.#offset === this.file.size) throw new Setback(texts.uploadLost);
  }

  /** Applies a response to the upload's state. Throws if it is a refusal or lacks the fields. */
  #take(/** @type {XMLHttpRequest} */ answer) {
    const offset = number(answer, "Upload-Offset");
    if (answer.status >= 300 || offset === null || offset > this.file.size) throw judgement(answer);
    const recording = answer.getResponseHeader("Stillwave-Recording");
    if (recording) return this.#finish(recording);
    this.#arrived(offset);
  }

  #arrived(/** @type {number} */ offset) {
    this.#offset = this.sent = offset;
    if (offset > this.#reached) [this.#reached, this.#setbacks] = [offset, 0];
  }

  #forget() {
    this.#id = "";
    this.#offset = null;
    this.#reached = this.sent = 0;
    remember(this.#key, "");
  }

  /** Returns when it is time for another attempt. Throws if there is no point, or after `pause` or `cancel`. */
  async #waitOut(/** @type {Setback} */ setback) {
    this.#offset = null;
    if (setback.isLost) {
      // The file itself could not be read.
      await this.file.slice(0, 1).arrayBuffer();
      await this.service.untilBack();
    }
    this.setback = setback.message;
    this.changed.emit();
    await pause(growingPause(this.#setbacks++, setback.seconds), this.#control.signal);
  }

  /** @param {string} recording */
  #finish(recording) {
    this.recording = recording;
    this.sent = this.file.size;
    remember(this.#key, "");
    this.#set("done");
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {Blob | null} body
   * @param {Record<string, string>} fields
   * @returns {Promise<XMLHttpRequest>}
   */
  async #send(method, path, body, fields) {
    const { credentials } = this.service, { signal } = this.#control;
    for (;;) {
      const headers = new Headers(fields), used = credentials.authorize(headers), answer = await this.#sendOnce(method, path, body, headers);
      if (answer.status !== 401 || !await credentials.replace(used)) return answer;
      signal.throwIfAborted();
    }
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {Blob | null} body
   * @param {Headers} headers
   * @returns {Promise<XMLHttpRequest>}
   */
  #sendOnce(method, path, body, headers) {
    const before = this.#offset ?? 0;
    return new Promise((resolve, reject) => {
      const request = this.#request = new XMLHttpRequest();
      request.open(method, path);
      for (const [name, value] of headers) request.setRequestHeader(name, value);
      if (body) request.upload.onprogress = event => this.#progress(before + event.loaded);
      request.onload = () => resolve(request);
      request.onerror = () => reject(new Setback(texts.uploadLost, 0, true));
      request.onabort = () => reject(new DOMException("", "AbortError"));
      request.send(body);
    });
  }

  #progress(/** @type {number} */ sent) {
    const now = performance.now(), passed = (now - this.#mark.time) / 1000;
    this.sent = Math.min(sent, this.file.size);
    this.setback = "";
    if (passed > 0.25) {
      const rate = Math.max(0, sent - this.#mark.sent) / passed;
      this.rate = this.rate && passed < 5 ? this.rate * 0.7 + rate * 0.3 : rate;
      this.#mark = { time: now, sent };
    }
    this.changed.emit();
  }

  #set(/** @type {Upload["state"]} */ state) {
    this.state = state;
    this.setback = "";
    this.#mark = { time: performance.now(), sent: this.sent };
    this.changed.emit();
  }
}

/** An error that another attempt may overcome. */
class Setback extends Error {
  /**
   * @param {string} message
   * @param {number} seconds that the service asks to wait
   * @param {boolean} isLost whether there was no answer at all
   */
  constructor(message, seconds = 0, isLost = false) {
    super(message);
    this.seconds = seconds;
    this.isLost = isLost;
  }
}

/** A file that isn't a recording. */
class Unreadable extends Error { }

const isGone = (/** @type {number} */ status) => status === 404 || status === 410;

/**
 * Classifies a response that doesn't advance the upload.
 * @param {XMLHttpRequest} answer
 */
function judgement(answer) {
  const { status } = answer;
  const message = explain(problemOf(answer), texts.refused(status));
  // The rest of the service's words lists the files that can be read, which is a link beside the message.
  if (status === 415) return new Unreadable(message);
  const isPassing = status < 400 || status >= 500 || [409, 423, 429].includes(status);
  return isPassing ? new Setback(message, retrySeconds(answer.getResponseHeader("Retry-After"))) : new Error(message);
}

/** Returns how a refusal is described, if the response is from the service. */
function problemOf(/** @type {XMLHttpRequest} */ answer) {
  try {
    return /** @type {{ code?: string, detail?: string, title?: string }} */ (JSON.parse(answer.responseText));
  } catch {
    return undefined;
  }
}

/** Returns a field that is a number of bytes; null if it isn't one. */
function number(/** @type {XMLHttpRequest} */ answer, /** @type {string} */ name) {
  const text = answer.getResponseHeader(name);
  return text !== null && /^\d{1,15}$/.test(text) ? Number(text) : null;
}

// Without a store, uploads work but can't continue after a reload.

/** @param {string} key */
function recall(key) {
  try {
    return /^[\w-]+$/.exec(localStorage.getItem(key) ?? "")?.[0] ?? "";
  } catch {
    return "";
  }
}

/**
 * @param {string} key
 * @param {string} id
 */
function remember(key, id) {
  try {
    if (id) localStorage.setItem(key, id);
    else localStorage.removeItem(key);
  } catch { /* see above */ }
}
