// @ts-check
import { recordingPath } from "./service.js";
import { requestOf } from "./session.js";

// Short stretches that the service cleans immediately: their sound, for listening, and their points, for pictures.

/** @typedef {import("./session.js").Settings} Settings */
/** @typedef {import("./view.js").Span} Span */
/** @typedef {{ bytes: Promise<ArrayBuffer>, control: AbortController, size: number, waiting: number }} Take */
/** @typedef {{ window: Span, points: import("./drawing.js").Points }} Drawing */

/** The longest stretch of a preview, in seconds. */
export const longestPreview = 30;
/** How many bytes of stretches are cached: five of thirty seconds in stereo. */
const mostBytes = 32e6;

/** A cache of cleaned stretches, so that a stretch that was drawn can be played at once. */
export class Previews {
  /**
   * Finished and running fetches, the most recently used last.
   * @type {Map<string, Take>}
   */
  #takes = new Map();

  /** @param {import("./service.js").Service} service */
  constructor(service) { this.service = service; }

  /**
   * Returns a cleaned stretch: the bytes of a sound file, or what `form` says. If all callers have given up, the fetch is
   * canceled.
   * @param {string} id
   * @param {Span} window
   * @param {Settings} settings
   * @param {AbortSignal} signal
   * @param {Record<string, unknown>} [form] the request's member `as`, and those that belong to it
   * @returns {Promise<ArrayBuffer>} for reading only
   */
  async fetch(id, window, { loudness, ...settings }, signal, form) {
    signal.throwIfAborted();
    const body = { ...requestOf(settings), window, ...form }, key = id + JSON.stringify(body);
    const take = this.#takes.get(key) ?? this.#begin(key, id, body);
    this.#takes.delete(key);
    this.#takes.set(key, take);
    take.waiting++;
    try {
      return await Promise.race([take.bytes, new Promise((_, reject) => {
        signal.addEventListener("abort", () => reject(signal.reason), { once: true });
      })]);
    } finally {
      take.waiting--;
      if (!take.waiting && !take.size) {
        take.control.abort();
        this.#takes.delete(key);
      }
    }
  }

  /**
   * Returns the points of the mean of a cleaned stretch's channels.
   * @param {string} id
   * @param {Span} window
   * @param {Settings} settings
   * @param {number} width the most points of the picture
   * @param {AbortSignal} signal
   * @returns {Promise<Drawing>}
   */
  async draw(id, window, settings, width, signal) {
    const bytes = await this.fetch(id, window, settings, signal, { as: "points", width, measures: "peak,rms" }), head = new DataView(bytes);
    const [rate, scale, count] = [8, 12, 16].map(at => head.getUint32(at, true)), start = Number(head.getBigInt64(24, true)) / rate;
    const points = { count, channels: 1, peaks: new Int16Array(bytes, 32, 2 * count), rms: new Uint16Array(bytes, 32 + 4 * count, count) };
    return { window: { start, end: start + count * scale / rate }, points };
  }

  /**
   * @param {string} key
   * @param {string} id
   * @param {unknown} body
   * @returns {Take}
   */
  #begin(key, id, body) {
    const control = new AbortController();
    const bytes = this.service.fetch(`${recordingPath(id)}/denoise/preview`, {
      method: "POST", body, signal: control.signal, accept: "audio/flac, */*;q=0.5",
    })
      .then(answer => answer.arrayBuffer());
    const take = { bytes, control, size: 0, waiting: 0 };
    bytes.then(({ byteLength }) => {
      take.size = byteLength;
      this.#makeRoom();
    }, () => this.#takes.delete(key));
    return take;
  }

  #makeRoom() {
    let sum = 0;
    for (const { size } of this.#takes.values()) sum += size;
    for (const [key, { size }] of this.#takes) {
      if (sum <= mostBytes) return;
      sum -= size;
      if (size) this.#takes.delete(key);
    }
  }
}
