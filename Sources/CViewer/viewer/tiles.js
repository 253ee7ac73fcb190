// @ts-check
import { isAbort, pause, recordingPath, Refusal } from "./service.js";
import { Signal } from "./signal.js";

// The waveform in tiles. A tile is 1024 points of one scale; scales are powers of two, 2^exponent frames a point, from
// single samples (0) to 2^24. Tile k of a scale begins at frame k · 1024 · 2^exponent, so tiles of one scale join without
// a seam and a tile of the next coarser scale covers exactly two. Served values never change: a tile is partial while the
// recording grows, and is only ever replaced by one with more points.

export const tileLength = 1024;
/** Below 256 frames per point, the service reads the samples, once the recording is complete. */
export const leastGrowingExponent = 8;
const mostExponent = 24;

/** Points of one scale. */
export class Tile {
  /**
   * @param {number} exponent
   * @param {number} index
   * @param {ArrayBuffer} points a body of `waveform.points` with peak and RMS in 16 bits
   */
  constructor(exponent, index, points) {
    const head = new DataView(points), headBytes = 32;
    this.exponent = exponent;
    this.index = index;
    this.count = head.getUint32(16, true);
    this.channels = head.getUint16(20, true);
    const values = this.count * this.channels;
    /** Minimum and maximum of each point and channel, −32768 … 32767. */
    this.peaks = new Int16Array(points, headBytes, 2 * values);
    this.rms = new Uint16Array(points, headBytes + 4 * values, values);
    /** The greatest amplitude, 0 … 1. */
    this.loudest = this.peaks.reduce((most, value) => Math.max(most, Math.abs(value)), 0) / 32768;
  }

  get scale() { return 2 ** this.exponent; }
  get startFrame() { return this.index * tileLength * this.scale; }
}

/** What is known about a recording's waveform, and its loaded tiles. */
export class Waveform {
  /** @type {Map<number, Tile>} */
  tiles = new Map();

  /**
   * @param {any} recording
   * @param {"mix" | "split"} channels
   */
  constructor(recording, channels) {
    this.id = recording.id;
    this.channels = channels;
    /** Tells its tiles from other sources' tiles. */
    this.name = `${recording.id} ${channels}`;
    this.lanes = channels === "split" ? recording.format.channels : 1;
    this.sampleRate = recording.format.sample_rate;
    this.availableFrames = 0;
    this.totalFrames = 0;
    this.complete = false;
    /** Whether it is no longer shown. */
    this.isForgotten = false;
    /** Whether the service refuses its points for good. */
    this.isRefused = false;
    this.learn(recording);
  }

  /** @param {any} recording */
  learn({ format, waveform }) {
    this.totalFrames = format.frames ?? Math.max(this.totalFrames, Math.round((format.duration ?? 0) * this.sampleRate));
    this.complete = waveform.state === "ready";
    this.availableFrames = this.complete ? this.totalFrames
      : Math.max(this.availableFrames, Math.floor((waveform.available ?? 0) * this.sampleRate));
  }

  /**
   * @param {number} exponent
   * @param {number} index
   */
  tile(exponent, index) { return this.tiles.get(key(exponent, index)); }

  /**
   * Asks the service for a tile.
   * @param {import("./service.js").Service} service
   * @param {Wish} wish
   * @param {AbortSignal} signal
   * @returns {Promise<{ tile: Tile, headers: Headers }>}
   */
  async fetch(service, { exponent, index }, signal) {
    const answer = await service.fetch(
      `${recordingPath(this.id)}/waveform.points?measures=peak,rms&channels=${this.channels}&${this.place(exponent, index)}`, { signal });
    return { tile: new Tile(exponent, index, await answer.arrayBuffer()), headers: answer.headers };
  }

  /**
   * The parameters of a request for a tile that say where it is.
   * @param {number} exponent
   * @param {number} index
   */
  place(exponent, index) {
    const seconds = tileLength * 2 ** exponent / this.sampleRate;
    return `scale=${2 ** exponent}&start=${index * seconds}&end=${(index + 1) * seconds}`;
  }

  /**
   * The finest scale that is available now.
   * @returns {number}
   */
  get leastExponent() { return this.complete ? 0 : leastGrowingExponent; }

  /** The scale at which the whole recording is a single tile, which is drawn until finer tiles are loaded. */
  get wholeExponent() {
    return Math.max(this.leastExponent, clampExponent(Math.ceil(Math.log2(Math.max(1, this.totalFrames) / tileLength))));
  }

  /**
   * The tile of the whole recording.
   * @returns {Wish}
   */
  get whole() { return { waveform: this, exponent: this.wholeExponent, index: 0 }; }

  /** The greatest amplitude of the whole, as far as it is known, 0 … 1. */
  get loudest() {
    let most = 0;
    for (const tile of this.tiles.values()) if (tile.loudest > most) most = tile.loudest;
    return most;
  }

  /**
   * Returns the scale for a number of frames per pixel: one or two points per pixel, of which a twentieth may be missing.
   * @param {number} framesPerPixel
   */
  exponentFor(framesPerPixel) {
    return Math.max(this.leastExponent, clampExponent(Math.floor(Math.log2(1.05 * framesPerPixel))));
  }

  /**
   * Whether the service has more of a tile than the page.
   * @param {number} exponent
   * @param {number} index
   */
  isStale(exponent, index) {
    const scale = 2 ** exponent, start = index * tileLength * scale;
    const there = Math.min(this.availableFrames - start, tileLength * scale);
    if (there <= 0 || this.isForgotten) return false;
    const points = this.complete ? Math.ceil(there / scale) : Math.floor(there / scale);
    const tile = this.tile(exponent, index);
    return points > (tile ? tile.count : 0);
  }
}

/** @param {number} exponent */
const clampExponent = exponent => Math.max(0, Math.min(mostExponent, exponent));
/**
 * @param {number} exponent
 * @param {number} index
 */
const key = (exponent, index) => index * 32 + exponent;

/**
 * @typedef {{ waveform: Waveform, exponent: number, index: number, tries?: number }} Wish a tile that is wanted
 * @typedef {{ wish: Wish, control: AbortController, isResting: boolean }} Errand one that rests asks again after a pause
 */

/** Loads tiles, the most urgent first and a few at a time, and aborts requests that are no longer wanted. */
export class TileStore {
  /**
   * A tile was loaded; true if it is coarse enough for the overview.
   * @type {Signal<boolean>}
   */
  arrived = new Signal();
  /** @type {Map<string, Errand>} */
  #errands = new Map();
  /** @type {Wish[]} */
  #wishes = [];
  /**
   * The order in which tiles were used, oldest first.
   * @type {Map<Tile, Waveform>}
   */
  #used = new Map();

  /**
   * @param {import("./service.js").Service} service
   * @param {number} [mostTiles] that are kept
   */
  constructor(service, mostTiles = 320) {
    this.service = service;
    this.mostTiles = mostTiles;
  }

  static mostErrands = 4;
  /** The pause after an answer without more points, in milliseconds; twice as long each time, up to 32 times. */
  static restTime = 250;

  /**
   * Sets the wanted tiles, most urgent first, and aborts all other requests.
   * @param {Wish[]} wishes
   */
  want(wishes) {
    this.#wishes = wishes.filter(wish => wish.waveform.isStale(wish.exponent, wish.index));
    const wanted = new Set(this.#wishes.map(name));
    for (const [name, errand] of this.#errands) if (errand.isResting || !wanted.has(name)) errand.control.abort();
    this.#send();
  }

  /**
   * Records that a tile was drawn, so that it is dropped last.
   * @param {Waveform} waveform
   * @param {Tile} tile
   */
  touch(waveform, tile) {
    this.#used.delete(tile);
    this.#used.set(tile, waveform);
  }

  #send() {
    for (const wish of this.#wishes) {
      if (this.#errands.size >= TileStore.mostErrands) return;
      if (!this.#errands.has(name(wish)) && wish.waveform.isStale(wish.exponent, wish.index)) void this.#run(wish);
    }
  }

  /** @param {Wish} wish */
  async #run(wish) {
    const { waveform, exponent, index } = wish, control = new AbortController();
    const errand = { wish, control, isResting: false }, own = name(wish);
    this.#errands.set(own, errand);
    try {
      const { tile, headers } = await waveform.fetch(this.service, wish, control.signal);
      if (tile.count > (waveform.tile(exponent, index)?.count ?? 0)) this.#keep(waveform, tile, headers);
      // A job that begins again has less for a while, and another node may not have heard of the rest.
      else await rest(errand);
    } catch (error) {
      if (error instanceof Refusal && error.status >= 400 && error.status < 500 && error.status !== 429) {
        // The list and the messages say why.
        waveform.isRefused = true;
        this.#wishes = this.#wishes.filter(other => name(other) !== own);
      } else if (!isAbort(error)) await rest(errand).catch(() => { });
    }
    if (this.#errands.get(own) === errand) this.#errands.delete(own);
    this.#send();
  }

  /**
   * @param {Waveform} waveform
   * @param {Tile} tile
   * @param {Headers} fields
   */
  #keep(waveform, tile, fields) {
    const place = key(tile.exponent, tile.index), old = waveform.tiles.get(place);
    const frames = (/** @type {string} */ name) => Number(fields.get(`Stillwave-${name}-Frames`));
    waveform.availableFrames = Math.max(waveform.availableFrames, frames("Available"));
    // Of some files, the length is estimated until they have been read.
    waveform.totalFrames = frames("Total") || Math.max(waveform.availableFrames, frames("Estimated") || waveform.totalFrames);
    if (old) this.#used.delete(old);
    waveform.tiles.set(place, tile);
    this.touch(waveform, tile);
    for (const [oldest, owner] of this.#used) {
      if (this.#used.size <= this.mostTiles) break;
      if (oldest.exponent >= owner.wholeExponent) {
        this.touch(owner, oldest);
        continue;
      }
      this.#used.delete(oldest);
      owner.tiles.delete(key(oldest.exponent, oldest.index));
    }
    this.arrived.emit(tile.exponent >= waveform.wholeExponent - 3);
  }

  /**
   * Drops the tiles of a waveform and stops loading them.
   * @param {Waveform} waveform
   */
  forget(waveform) {
    waveform.isForgotten = true;
    for (const { wish, control } of this.#errands.values()) if (wish.waveform === waveform) control.abort();
    for (const tile of waveform.tiles.values()) this.#used.delete(tile);
    waveform.tiles.clear();
  }
}

/**
 * Waits before a wish is asked for again, longer each time.
 * @param {Errand} errand
 */
function rest(errand) {
  const { wish, control } = errand;
  errand.isResting = true;
  wish.tries = (wish.tries ?? 0) + 1;
  return pause(TileStore.restTime * 2 ** Math.min(5, wish.tries - 1), control.signal);
}

/** @param {Wish} wish */
const name = ({ waveform, exponent, index }) => `${waveform.name} ${exponent} ${index}`;
