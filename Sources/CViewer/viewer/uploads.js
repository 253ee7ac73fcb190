// @ts-check
import { pause } from "./service.js";
import { Signal } from "./signal.js";
import { texts } from "./texts.js";

// Uploads. Where the service speaks tus 1.0.0 (https://tus.io/protocols/resumable-upload) a file is sent in pieces and
// goes on where it was, after a pause, a lost connection or a reload; else it is sent whole. XMLHttpRequest, because
// fetch does not tell how much has been sent.

const pieceBytes = 16 * 1024 * 1024;
const tus = { "Tus-Resumable": "1.0.0" };

/** One file on its way. */
export class Upload {
  /** @type {"waiting" | "sending" | "paused" | "done" | "failed" | "cancelled"} */
  state = "waiting";
  sent = 0;
  /** Bytes a second, smoothed. */
  rate = 0;
  error = "";
  isResumable = true;
  /** The new recording's id. */
  recording = "";
  /** @type {Signal<void>} */
  changed = new Signal();

  #location = "";
  /** @type {XMLHttpRequest | null} */
  #request = null;
  #mark = { time: 0, sent: 0 };

  /**
   * @param {File} file
   * @param {import("./service.js").Service} service
   */
  constructor(file, service) {
    this.file = file;
    this.service = service;
    this.#key = `stillwave upload ${file.name} ${file.size} ${file.lastModified}`;
  }
  #key;

  get secondsLeft() { return this.rate > 0 ? (this.file.size - this.sent) / this.rate : NaN; }

  pause() {
    if (this.state !== "sending" || !this.isResumable) return;
    this.#set("paused");
    this.#request?.abort();
  }

  cancel() {
    this.#set("cancelled");
    this.#request?.abort();
    this.#remember("");
    if (this.#location) void fetch(this.#location, { method: "DELETE", headers: tus }).catch(() => { });
  }

  /** Sends what is missing; resolves when the upload has ended or pauses. */
  async run() {
    this.#set("sending");
    while (this.state === "sending") {
      try {
        if (this.isResumable) await this.#sendPieces();
        else await this.#sendWhole();
      } catch (error) {
        if (this.state !== "sending") return;
        if (error instanceof Lost && this.isResumable) {
          await this.service.untilBack();
          await pause(300);
          continue;
        }
        this.error = error instanceof Error ? error.message : String(error);
        this.#set("failed");
      }
    }
  }

  async #sendPieces() {
    if (!await this.#begin()) return;
    while (this.state === "sending") {
      const piece = this.file.slice(this.sent, this.sent + pieceBytes), before = this.sent;
      const answer = await this.#send("PATCH", this.#location, piece, {
        ...tus, "Upload-Offset": String(this.sent), "Content-Type": "application/offset+octet-stream",
      }, before);
      if (answer.status === 409) {
        await this.#askOffset();
        continue;
      }
      if (answer.status !== 204) throw refusal(answer);
      this.sent = Number(answer.getResponseHeader("Upload-Offset"));
      const recording = answer.getResponseHeader("Stillwave-Recording");
      if (recording) return this.#finish(recording);
      if (this.sent >= this.file.size) throw new Error(texts.uploadLost);
    }
  }

  /**
   * Finds the upload that was begun before, or begins one.
   * @returns {Promise<boolean>} whether pieces can be sent
   */
  async #begin() {
    this.#location ||= recall(this.#key);
    if (this.#location && await this.#askOffset()) return this.state === "sending" && !this.recording;
    const name = btoa(String.fromCharCode(...new TextEncoder().encode(this.file.name)));
    const answer = await this.#send("POST", "/v1/uploads", null, {
      ...tus, "Upload-Length": String(this.file.size), "Upload-Metadata": `filename ${name}`,
    }, 0);
    if (answer.status === 404 || answer.status === 405) {
      this.isResumable = false;
      return false;
    }
    if (answer.status !== 201) throw refusal(answer);
    this.#location = new URL(answer.getResponseHeader("Location") ?? "", location.href).pathname;
    this.#remember(this.#location);
    this.sent = 0;
    return true;
  }

  /** @returns {Promise<boolean>} whether the upload is still known */
  async #askOffset() {
    const answer = await this.#send("HEAD", this.#location, null, tus, this.sent);
    const recording = answer.getResponseHeader("Stillwave-Recording");
    if (recording) {
      this.#finish(recording);
      return true;
    }
    if (answer.status >= 300) {
      this.#location = "";
      this.#remember("");
      return false;
    }
    this.sent = Number(answer.getResponseHeader("Upload-Offset"));
    return true;
  }

  async #sendWhole() {
    const path = `/v1/recordings?name=${encodeURIComponent(this.file.name)}`;
    const answer = await this.#send("POST", path, this.file, { "Content-Type": "application/octet-stream" }, 0);
    if (answer.status !== 201) throw refusal(answer);
    this.#finish(JSON.parse(answer.responseText).id);
  }

  /** @param {string} recording */
  #finish(recording) {
    this.recording = recording;
    this.sent = this.file.size;
    this.#remember("");
    this.#set("done");
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {Blob | null} body
   * @param {Record<string, string>} fields
   * @param {number} before bytes that were sent earlier
   * @returns {Promise<XMLHttpRequest>}
   */
  #send(method, path, body, fields, before) {
    return new Promise((resolve, reject) => {
      const request = this.#request = new XMLHttpRequest();
      request.open(method, path);
      for (const [name, value] of Object.entries(fields)) request.setRequestHeader(name, value);
      if (body) request.upload.onprogress = event => this.#progress(before + event.loaded);
      request.onload = () => resolve(request);
      request.onerror = () => reject(new Lost(texts.uploadLost));
      request.onabort = () => reject(new DOMException("", "AbortError"));
      request.send(body);
    });
  }

  #progress(/** @type {number} */ sent) {
    const now = performance.now(), passed = (now - this.#mark.time) / 1000;
    this.sent = Math.min(sent, this.file.size);
    if (passed > 0.25) {
      const rate = Math.max(0, sent - this.#mark.sent) / passed;
      this.rate = this.rate && passed < 5 ? this.rate * 0.7 + rate * 0.3 : rate;
      this.#mark = { time: now, sent };
    }
    this.changed.emit();
  }

  #set(/** @type {Upload["state"]} */ state) {
    this.state = state;
    this.#mark = { time: performance.now(), sent: this.sent };
    this.changed.emit();
  }

  #remember(/** @type {string} */ path) {
    try {
      if (path) localStorage.setItem(this.#key, path);
      else localStorage.removeItem(this.#key);
    } catch { /* Without a store the upload can't go on after a reload; that is all. */ }
  }
}

class Lost extends Error { }

/** @param {string} key */
function recall(key) {
  try {
    return localStorage.getItem(key) ?? "";
  } catch {
    return "";
  }
}

/**
 * What a refused upload's answer says.
 * @param {XMLHttpRequest} answer
 */
function refusal(answer) {
  try {
    const problem = JSON.parse(answer.responseText);
    return new Error(problem.detail || problem.title);
  } catch {
    return new Error(texts.refused(answer.status));
  }
}
