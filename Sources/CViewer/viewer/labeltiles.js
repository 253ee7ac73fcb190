// @ts-check
import { isAbort } from "./service.js";
import { Signal } from "./signal.js";
import { isSame } from "./words.js";

// The labels of one track in tiles: stretches of time with about 256 labels each, of which those in use are kept.

/**
 * @typedef {import("./words.js").Label} Label
 * @typedef {import("./view.js").Span} Span
 * @typedef {{ before: Label | null, after: Label | null }} Change null: there is no label before (added) or after (removed)
 */

/** The number of labels that a tile should have, of the tiles that are kept, and the most tiles of a recording. */
const tileLabels = 256, keptTiles = 64, mostTiles = 4096;
/** The most tiles of one request; a longer stretch has too many labels to be shown one by one. */
const mostWanted = 16;

export class LabelTiles {
  /**
   * Labels have arrived or changed.
   * @type {Signal<void>}
   */
  arrived = new Signal();
  /** @type {Signal<unknown>} */
  failed = new Signal();
  /** The version that is shown; empty if it isn't known yet. */
  etag = "";
  /** Seconds of a tile, and the number of tiles. */
  seconds = 0;
  count = 0;
  /**
   * Changes of this track that the service doesn't have yet.
   * @type {Change[]}
   */
  pending = [];
  /** The path of the track; empty: there is none. */
  path = "";

  /** @type {Map<number, Label[]>} */
  #tiles = new Map();
  /**
   * Tiles of an older version, which are shown until they are read again.
   * @type {Set<number>}
   */
  #stale = new Set();
  /**
   * The stretches that are in use, by their users.
   * @type {Map<string, Span>}
   */
  #wanted = new Map();
  #isLoading = false;
  /** Whether the service doesn't have the track yet. */
  #isBegun = false;
  #control = new AbortController();

  /** @param {import("./service.js").Service} service */
  constructor(service) { this.service = service; }

  /**
   * Drops everything, for another track.
   * @param {string} path of the track
   * @param {Change[]} pending changes of it that the service doesn't have yet
   * @param {boolean} [isBegun] whether the service doesn't have the track either
   */
  open(path, pending, isBegun = false) {
    this.#control.abort();
    this.#control = new AbortController();
    this.#tiles.clear();
    this.#stale.clear();
    this.path = path;
    this.#isLoading = false;
    [this.pending, this.etag, this.seconds, this.#isBegun] = [pending, "", 0, isBegun];
  }

  /** Notes that the service has a track that was begun here. */
  rename(/** @type {string} */ former, /** @type {string} */ path) {
    if (this.path === former) [this.path, this.#isBegun] = [path, false];
  }

  /**
   * Sets the length of the tiles, which stays until another track is opened, and their number.
   * @param {{ start: number | null, end: number | null, count: number }} track
   * @param {number} duration of the recording, in seconds
   */
  divide({ start, end, count }, duration) {
    const whole = Math.max(duration, end ?? 0, 1), length = count > tileLabels ? (end ?? 0) - (start ?? 0) : whole;
    this.seconds ||= 2 ** Math.ceil(Math.log2(Math.max(tileLabels * length / Math.max(tileLabels, count), whole / mostTiles)));
    this.count = Math.ceil(whole / this.seconds + 1e-9);
    this.arrived.emit();
    void this.#fetch();
  }

  #range(/** @type {Span} */ { start, end }) {
    return [Math.max(0, Math.floor(start / this.seconds)), Math.min(this.count, Math.ceil(end / this.seconds + 1e-9))];
  }

  /** Whether a stretch has more labels than can be shown one by one. */
  isCrowded(/** @type {Span} */ span) {
    const [first, end] = this.#range(span);
    return end - first > mostWanted;
  }

  /**
   * Notes which stretch a user shows, and reads what is missing.
   * @param {string} user
   * @param {Span | null} span
   */
  want(user, span) {
    const before = this.#wanted.get(user);
    if (!span) return void this.#wanted.delete(user);
    if (before && String(this.#range(before)) === String(this.#range(span))) return;
    this.#wanted.set(user, span);
    void this.#fetch();
  }

  /**
   * Returns the labels of a stretch that have been read, by their start.
   * @param {Span} span
   * @returns {Label[]}
   */
  within(span) {
    const [first, end] = this.#range(span), found = [];
    for (let index = first; index < end; index++) {
      for (const label of this.#tiles.get(index) ?? []) {
        // One that began earlier is in the tile before, too.
        const isRepeated = index > first && label.start < index * this.seconds && this.#tiles.has(index - 1);
        if (!isRepeated && label.start < span.end && (label.end > span.start || label.start >= span.start)) found.push(label);
      }
    }
    return found;
  }

  /** Whether a stretch has been read. */
  has(/** @type {Span} */ span) {
    const [first, end] = this.#range(span);
    for (let index = first; index < end; index++) if (!this.#tiles.has(index)) return false;
    return true;
  }

  /** Reads the tiles that are missing, a run of them at a time. */
  async #fetch() {
    if (this.#isLoading || !this.path) return;
    this.#isLoading = true;
    const { signal } = this.#control;
    try {
      for (let run; (run = this.#missing()) && !signal.aborted;) {
        const [first, end] = run, { seconds } = this;
        /** @type {Label[]} */
        let labels = [];
        if (!this.#isBegun) {
          const answer = await this.service.fetch(`${this.path}?start=${first * seconds}&end=${end * seconds}`, { signal });
          ({ labels } = await answer.json());
          signal.throwIfAborted();
          if (!this.#isCurrent(answer)) continue;
        }
        for (let index = first; index < end; index++) this.#keep(index, labels);
        for (const change of this.pending) this.apply(change);
        this.arrived.emit();
      }
    } catch (error) {
      if (isAbort(error)) return;
      this.failed.emit(error);
    }
    if (!signal.aborted) this.#isLoading = false;
  }

  /** The first run of missing tiles that somebody wants. */
  #missing() {
    for (const span of this.#wanted.values()) {
      let [first, end] = this.#range(span);
      if (end - first > mostWanted) continue;
      const isMissing = (/** @type {number} */ index) => !this.#tiles.has(index) || this.#stale.has(index);
      while (first < end && !isMissing(first)) first++;
      let last = first;
      while (last < end && isMissing(last)) last++;
      if (last > first) return [first, last];
    }
    return null;
  }

  #keep(/** @type {number} */ index, /** @type {Label[]} */ labels) {
    const start = index * this.seconds, end = start + this.seconds;
    this.#tiles.delete(index);
    this.#stale.delete(index);
    this.#tiles.set(index, labels.filter(label => overlaps(label, start, end)));
    const inUse = [...this.#wanted.values()].map(span => this.#range(span));
    for (const oldest of this.#tiles.keys()) {
      if (this.#tiles.size <= keptTiles) break;
      if (!inUse.some(([first, last]) => oldest >= first && oldest < last)) this.#tiles.delete(oldest);
    }
  }

  /** Whether an answer is of the version that is shown; otherwise everything is read again. */
  #isCurrent(/** @type {Response} */ answer) {
    const etag = answer.headers.get("ETag") ?? "", isCurrent = !this.etag || etag === this.etag;
    if (!isCurrent) this.#age();
    this.etag = etag;
    return isCurrent;
  }

  #age() { for (const index of this.#tiles.keys()) this.#stale.add(index); }

  /**
   * Notes that the labels have another version.
   * @param {string} etag
   * @param {boolean} isOther whether others have changed them, so that they must be read again
   */
  turnTo(etag, isOther) {
    this.etag = etag;
    if (isOther) this.#age();
    this.arrived.emit();
    void this.#fetch();
  }

  /**
   * Finds labels with a text, in one stretch after the other until there are enough.
   * @param {string} text
   * @param {number} from in seconds
   * @param {number} enough
   * @param {AbortSignal} signal
   * @returns {Promise<{ found: Label[], next: number | null }>} `next`: where to go on; null at the end
   */
  async search(text, from, enough, signal) {
    const found = [], step = this.seconds * mostWanted, last = this.count * this.seconds;
    let at = from;
    while (at < last && found.length < enough) {
      const path = `${this.path}?q=${encodeURIComponent(text)}&start=${at}&end=${at + step}`, start = at;
      const { labels } = await this.service.json(path, { signal });
      found.push(...labels.filter((/** @type {Label} */ label) => label.start >= start || !start));
      at += step;
    }
    return { found, next: at < last ? at : null };
  }

  /** Shows a change. */
  apply(/** @type {Change} */ { before, after }) {
    for (const [index, labels] of this.#tiles) {
      const start = index * this.seconds, rest = before ? labels.filter(label => !isSame(label, before)) : labels;
      const isIn = after && overlaps(after, start, start + this.seconds) && !rest.some(label => isSame(label, after));
      if (isIn || rest.length !== labels.length) this.#tiles.set(index, isIn ? [...rest, after].sort(byStart) : rest);
    }
  }
}

export const byStart = (/** @type {Label} */ a, /** @type {Label} */ b) => a.start - b.start;
/** As the service has it: a point belongs to the window that it begins. */
const overlaps = (/** @type {Label} */ { start, end }, /** @type {number} */ from, /** @type {number} */ to) => (
  start < to && (end > from || start === end && start >= from));
