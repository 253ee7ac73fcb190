// @ts-check
import { leftToRight, number } from "./language.js";
import { recordingPath } from "./service.js";
import { Tile, tileLength, Waveform } from "./tiles.js";

// The spectrogram in tiles, which are loaded as the waveform's are. The frequencies are divided, too: at level k into
// 2^k bands of equal height on the chosen scale, with `rows` rows each, so that bands of one level join without a seam and
// each of level k covers exactly two of level k + 1. A tile has a byte for each row and column.

/** The rows of a tile; the quietest and the loudest level of a byte, in dB; the highest level of bands. */
export const rows = 256, quietest = -120, loudest = 0, mostLevel = 4;
/** The service has no columns of fewer frames. */
const leastExponent = 6;
/** The length of a transform, in seconds, to which the service's nearest one is chosen; the shortest and the longest one. */
const transform = 0.04, shortest = 256, longest = 16384;

/**
 * Scales of frequencies: functions to a coordinate along which rows are spaced evenly, and back. Mel is Slaney's: linear up
 * to 1000 Hz, logarithmic above.
 * @type {Record<string, { lowest: number, to: (hertz: number) => number, from: (place: number) => number }>}
 */
const scales = {
  mel: {
    lowest: 0, to: hertz => hertz < 1000 ? hertz * 3 / 200 : 15 + Math.log(hertz / 1000) * 27 / Math.log(6.4),
    from: place => place < 15 ? place * 200 / 3 : 1000 * Math.exp((place - 15) * Math.log(6.4) / 27),
  },
  log: { lowest: 20, to: hertz => Math.log(Math.max(1, hertz)), from: Math.exp },
  linear: { lowest: 0, to: hertz => hertz, from: place => place },
};
/** Their names, as the service gives them. */
export const scaleNames = /** @type {const} */ (["mel", "log", "linear"]);

/**
 * Writes a frequency, with three digits at least.
 * @param {number} value Hz
 */
export const hertz = value => leftToRight(value < 1000 ? `${number(value)} Hz` : `${number(value / 1000, 2)} kHz`);

/** The frequencies of a recording on a scale: each has a place between 0, the lowest one, and 1, half the sample rate. */
export class Frequencies {
  /**
   * @param {number} sampleRate
   * @param {string} name of the scale
   */
  constructor(sampleRate, name) {
    this.highest = sampleRate / 2;
    this.name = name;
    this.scale = scales[name];
    this.lowest = this.highest > 2 * this.scale.lowest ? this.scale.lowest : 0;
    this.from = this.scale.to(this.lowest);
    this.span = this.scale.to(this.highest) - this.from;
  }

  /** @param {number} hertz */
  place(hertz) { return Math.min(1, Math.max(0, (this.scale.to(hertz) - this.from) / this.span)); }

  /** @param {number} place */
  hertz(place) {
    if (place >= 1) return this.highest;
    return place <= 0 ? this.lowest : this.scale.from(this.from + place * this.span);
  }
}

/** A tile of a band. */
export class SpectrogramTile extends Tile {
  /**
   * @param {number} exponent
   * @param {number} index
   * @param {ArrayBuffer} bytes row by row, the highest frequency first
   */
  constructor(exponent, index, bytes) {
    super(exponent, index, new ArrayBuffer(32));
    this.count = bytes.byteLength / rows;
    this.bytes = new Uint8Array(bytes);
  }
}

/** A band of a recording's spectrogram, with its loaded tiles. */
export class Band extends Waveform {
  /**
   * @param {any} recording
   * @param {Frequencies} frequencies
   * @param {number} level
   * @param {number} number 0 is the lowest band
   */
  constructor(recording, frequencies, level, number) {
    super(recording, "mix");
    this.low = number / 2 ** level;
    this.high = (number + 1) / 2 ** level;
    const length = 2 ** (Math.round(Math.log2(transform * this.sampleRate)) + Math.max(0, level - 1));
    /** Samples per transform. */
    this.transform = Math.min(longest, Math.max(shortest, length));
    this.query = `frequency_scale=${frequencies.name}&min_hz=${frequencies.hertz(this.low)}&max_hz=${frequencies.hertz(this.high)}`
      + `&height=${rows}&window=${this.transform}`;
    this.name = `${recording.id} ${this.query}`;
  }

  get leastExponent() { return leastExponent; }

  /** @returns {Promise<{ tile: Tile, headers: Headers }>} */
  async fetch(/** @type {import("./service.js").Service} */ service, /** @type {import("./tiles.js").Wish} */ { exponent, index }, /** @type {AbortSignal} */ signal) {
    const answer = await service.fetch(`${recordingPath(this.id)}/spectrogram?${this.query}&${this.place(exponent, index)}`, { signal });
    return { tile: new SpectrogramTile(exponent, index, await answer.arrayBuffer()), headers: answer.headers };
  }

  /**
   * Returns the level at an instant and a place on the scale, from the finest tile that is there, in dB; NaN without one.
   * @param {number} frame
   * @param {number} place
   */
  level(frame, place) {
    for (let exponent = leastExponent; exponent <= this.wholeExponent; exponent++) {
      const column = Math.floor(frame / 2 ** exponent), tile = /** @type {SpectrogramTile | undefined} */ (this.tile(exponent, Math.floor(column / tileLength)));
      if (!tile || column % tileLength >= tile.count) continue;
      const row = Math.min(rows - 1, Math.max(0, Math.floor((this.high - place) / (this.high - this.low) * rows)));
      return quietest + tile.bytes[row * tile.count + column % tileLength] / 255 * (loudest - quietest);
    }
    return NaN;
  }
}
