// @ts-check
import { breathe } from "./page.js";
import { recordingPath } from "./service.js";
import { parseHeader } from "./wav.js";

// Short stretches that the service cleans immediately, for listening and for small pictures.

/** @typedef {import("./session.js").Settings} Settings */
/** @typedef {import("./view.js").Span} Span */
/** @typedef {{ bytes: Promise<ArrayBuffer>, control: AbortController, size: number, waiting: number }} Take */

/** The longest stretch of a preview, in seconds. */
export const longestPreview = 30;
/** Samples that are read at a time: thirty seconds of them at once would take some 40 ms. */
const mostSamples = 200_000;
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
   * Returns the bytes of a WAV file with a cleaned stretch. If all callers have given up, the fetch is canceled.
   * @param {string} id
   * @param {Span} window
   * @param {Settings} settings
   * @param {AbortSignal} signal
   * @returns {Promise<ArrayBuffer>} for reading only
   */
  async fetch(id, window, { noise, method, reduction, sensitivity, output }, signal) {
    signal.throwIfAborted();
    const body = { noise, method, reduction, sensitivity, output, window }, key = id + JSON.stringify(body);
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
   * @param {string} key
   * @param {string} id
   * @param {unknown} body
   * @returns {Take}
   */
  #begin(key, id, body) {
    const control = new AbortController();
    const bytes = this.service.fetch(`${recordingPath(id)}/denoise/preview`, { method: "POST", body, signal: control.signal })
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

/**
 * Returns the points of the mean of a WAV file's channels.
 * @param {ArrayBuffer} bytes
 * @param {number} points at the most
 * @returns {Promise<import("./drawing.js").Points>}
 */
export async function picture(bytes, points) {
  const header = parseHeader(bytes), view = new DataView(bytes);
  if (!header) return { count: 1, channels: 1, peaks: new Int16Array(2), rms: new Int16Array(1) };
  const { read, channels, width, dataAt } = header;
  const frames = Math.floor(Math.min(header.bytes, bytes.byteLength - dataAt) / width / channels);
  const count = Math.max(1, Math.min(points, frames)), peaks = new Int16Array(2 * count), rms = new Int16Array(count);
  let nextPause = mostSamples;
  for (let k = 0; k < count; k++) {
    if (k * frames / count * channels > nextPause) {
      nextPause += mostSamples;
      await breathe();
    }
    const from = Math.floor(k * frames / count), to = Math.min(frames, Math.max(from + 1, Math.floor((k + 1) * frames / count)));
    let least = 32767, most = -32768, sum = 0;
    for (let frame = from; frame < to; frame++) {
      let value = 0;
      for (let channel = 0; channel < channels; channel++) value += read(view, dataAt + (frame * channels + channel) * width);
      value = Math.max(-32768, Math.min(32767, value * 32768 / channels));
      if (value < least) least = value;
      if (value > most) most = value;
      sum += value * value;
    }
    [peaks[2 * k], peaks[2 * k + 1], rms[k]] = [least, most, Math.sqrt(sum / Math.max(1, to - from))];
  }
  return { count, channels: 1, peaks, rms };
}
