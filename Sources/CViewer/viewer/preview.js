// @ts-check
import { recordingPath } from "./service.js";

// Short stretches that the service cleans immediately, for listening and for small pictures.

/** @typedef {import("./session.js").Settings} Settings */
/** @typedef {import("./view.js").Span} Span */
/** @typedef {{ bytes: Promise<ArrayBuffer>, control: AbortController, size: number, waiting: number }} Take */

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
 * Returns a function that reads a sample, -32768 … 32767, of a WAV format with this tag and number of bits.
 * @type {Record<string, (view: DataView, at: number) => number>}
 */
const readers = {
  "1 8": (view, at) => (view.getUint8(at) - 128) * 256,
  "1 16": (view, at) => view.getInt16(at, true),
  "1 24": (view, at) => view.getInt16(at + 1, true),
  "1 32": (view, at) => view.getInt16(at + 2, true),
  "3 32": (view, at) => view.getFloat32(at, true) * 32768,
  "3 64": (view, at) => view.getFloat64(at, true) * 32768,
};

/**
 * Returns the points of the mean of a WAV file's channels.
 * @param {ArrayBuffer} bytes
 * @param {number} points at the most
 * @returns {import("./drawing.js").Points}
 */
export function picture(bytes, points) {
  const view = new DataView(bytes);
  let offset = 12, channels = 1, bits = 16, kind = 1, dataAt = 44, length = 0;
  while (offset + 8 <= bytes.byteLength) {
    const id = view.getUint32(offset), size = view.getUint32(offset + 4, true);
    if (id === 0x666d7420) {
      [kind, channels, bits] = [8, 10, 22].map(at => view.getUint16(offset + at, true));
      // WAVE_FORMAT_EXTENSIBLE has the actual format further on.
      if (kind === 0xfffe) kind = view.getUint16(offset + 32, true);
    }
    if (id === 0x64617461) {
      [dataAt, length] = [offset + 8, Math.min(size, bytes.byteLength - offset - 8)];
      break;
    }
    offset += 8 + size + size % 2;
  }
  const read = readers[`${kind} ${bits}`] ?? (() => 0), width = bits / 8, frames = Math.floor(length / width / channels);
  const count = Math.max(1, Math.min(points, frames)), peaks = new Int16Array(2 * count), rms = new Int16Array(count);
  for (let k = 0; k < count; k++) {
    const from = Math.floor(k * frames / count), to = Math.min(frames, Math.max(from + 1, Math.floor((k + 1) * frames / count)));
    let least = 32767, most = -32768, sum = 0;
    for (let frame = from; frame < to; frame++) {
      let value = 0;
      for (let channel = 0; channel < channels; channel++) value += read(view, dataAt + (frame * channels + channel) * width);
      value = Math.max(-32768, Math.min(32767, value / channels));
      if (value < least) least = value;
      if (value > most) most = value;
      sum += value * value;
    }
    [peaks[2 * k], peaks[2 * k + 1], rms[k]] = [least, most, Math.sqrt(sum / Math.max(1, to - from))];
  }
  return { count, channels: 1, peaks, rms };
}
