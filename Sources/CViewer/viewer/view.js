// @ts-check
import { Signal } from "./signal.js";

/**
 * @typedef {{ start: number, end: number }} Span in seconds
 * @typedef {Span & { min_hz: number, max_hz: number, gain_db: number }} Box a part that is turned down, in seconds, Hz and dB
 */

/** The time in which the window's distance to its target shrinks to a third, in milliseconds. */
const pace = 55;
/** The time after which a window that doesn't move counts as resting, in milliseconds. */
const restTime = 250;
/** Frames in the smallest window. */
const leastFrames = 24;

/** The state of the view: the window and its target, the selection, the marked noise, the playhead. */
export class View {
  duration = 1;
  sampleRate = 44100;
  /**
   * The current window.
   * @type {Span}
   */
  window = { start: 0, end: 1 };
  /**
   * The window's target.
   * @type {Span}
   */
  target = { start: 0, end: 1 };
  /** @type {Span | null} */
  selection = null;
  /**
   * The stretch to learn the noise from; null: the service finds one.
   * @type {Span | null}
   */
  noise = null;
  /**
   * What a cleaning turns down besides the noise.
   * @type {readonly Box[]}
   */
  boxes = [];
  /** Seconds. */
  playhead = 0;
  /** The factor by which amplitudes are enlarged. */
  gain = 1;
  /** Whether `gain` makes the loudest instant fill the height. */
  isFitted = true;

  /**
   * The window has a new target, or the picture must be redrawn.
   * @type {Signal<void>}
   */
  moved = new Signal();
  /**
   * The window's target has stayed the same for a while.
   * @type {Signal<void>}
   */
  rested = new Signal();
  /** @type {Signal<void>} */
  selected = new Signal();
  /** @type {Signal<void>} */
  noiseMarked = new Signal();
  /** @type {Signal<void>} */
  boxed = new Signal();

  #restTimer = 0;

  /** Whether windows jump instead of gliding. */
  isCalm = matchMedia("(prefers-reduced-motion: reduce)");

  /**
   * Resets the view for another recording.
   * @param {number} duration
   * @param {number} sampleRate
   */
  reset(duration, sampleRate) {
    this.duration = duration;
    this.sampleRate = sampleRate;
    this.window = this.target = { start: 0, end: duration };
    this.selection = this.noise = null;
    this.boxes = [];
    this.playhead = 0;
    this.isFitted = true;
    this.selected.emit();
    this.noiseMarked.emit();
    this.boxed.emit();
    this.#move();
  }

  /** If the whole recording was visible, it stays visible when the recording turns out longer or shorter. */
  setDuration(/** @type {number} */ duration) {
    if (duration === this.duration || !(duration > 0)) return;
    const wasWhole = this.target.start === 0 && this.target.end >= this.duration;
    this.duration = duration;
    if (wasWhole) this.show({ start: 0, end: duration });
    else this.show(this.target);
  }

  get span() { return this.window.end - this.window.start; }
  get leastSpan() { return Math.min(this.duration, leastFrames / this.sampleRate); }

  /**
   * Glides to a window, which is moved and widened to fit the recording.
   * @param {Span} window
   * @param {boolean} [atOnce]
   */
  show(window, atOnce = false) {
    const span = Math.min(this.duration, Math.max(this.leastSpan, window.end - window.start));
    const start = Math.min(Math.max(0, window.start), this.duration - span);
    this.target = { start, end: start + span };
    if (atOnce || this.isCalm.matches) this.window = this.target;
    this.#move();
  }

  #move() {
    clearTimeout(this.#restTimer);
    this.#restTimer = setTimeout(() => this.rested.emit(), restTime);
    this.moved.emit();
  }

  /**
   * Makes the window `factor` times as long, keeping the position of the instant `at`, or else the selection or the playhead
   * in view.
   * @param {number} factor
   * @param {number} [at]
   * @param {boolean} [atOnce]
   */
  zoom(factor, at, atOnce) {
    const { start, end } = this.target, { selection, playhead } = this;
    const kept = at === undefined && selection && selection.start < end && selection.end > start ? selection : null;
    const around = at ?? (kept ? (kept.start + kept.end) / 2 : playhead > start && playhead < end ? playhead : (start + end) / 2);
    const span = Math.min(this.duration, Math.max(this.leastSpan, (end - start) * factor));
    const share = Math.min(1, Math.max(0, (around - start) / (end - start)));
    let from = around - share * span;
    if (kept && kept.end - kept.start <= span) from = Math.min(kept.start, Math.max(kept.end - span, from));
    this.show({ start: from, end: from + span }, atOnce);
  }

  /**
   * @param {number} seconds
   * @param {boolean} [atOnce]
   */
  pan(seconds, atOnce) {
    this.show({ start: this.target.start + seconds, end: this.target.end + seconds }, atOnce);
  }

  showAll() { this.show({ start: 0, end: this.duration }); }

  /**
   * Moves the window toward its target.
   * @param {number} milliseconds since the last time
   * @returns {boolean} whether it is under way still
   */
  advance(milliseconds) {
    const from = this.window, to = this.target;
    if (from === to) return false;
    const share = 1 - Math.exp(-milliseconds / pace);
    const [spanFrom, spanTo] = [from.end - from.start, to.end - to.start];
    const near = spanTo / 4000;
    if (Math.abs(to.start - from.start) < near && Math.abs(to.end - from.end) < near) {
      this.window = to;
      return false;
    }
    const ratio = Math.log(spanTo / spanFrom);
    if (Math.abs(ratio) < 1e-4) {
      const start = from.start + (to.start - from.start) * share;
      this.window = { start, end: start + spanTo };
    } else {
      // The instant at the same position in both windows stays there, and the zoom has an even pace.
      const place = (to.start - from.start) / (spanFrom - spanTo), still = from.start + place * spanFrom;
      const span = spanFrom * Math.exp(ratio * share);
      this.window = { start: still - place * span, end: still + (1 - place) * span };
    }
    return true;
  }

  /** @param {Span | null} selection */
  select(selection) {
    this.selection = selection && this.#within(selection);
    this.selected.emit();
    this.moved.emit();
  }

  /** @param {Span | null} noise */
  markNoise(noise) {
    this.noise = noise && this.#within(noise);
    this.noiseMarked.emit();
    this.moved.emit();
  }

  /** @param {readonly Box[]} boxes */
  setBoxes(boxes) {
    this.boxes = boxes;
    this.boxed.emit();
    this.moved.emit();
  }

  /** @param {number} seconds */
  movePlayhead(seconds) {
    this.playhead = Math.min(this.duration, Math.max(0, seconds));
    this.moved.emit();
  }

  /**
   * Returns the part of a span that is within the recording, at least one frame long; its ends may be in either order.
   * @param {Span} span
   * @returns {Span | null} null if it is outside
   */
  #within(span) {
    const from = Math.max(0, Math.min(span.start, span.end)), to = Math.min(this.duration, Math.max(span.start, span.end));
    if (from > to || from >= this.duration) return null;
    const start = Math.max(0, Math.min(from, this.duration - 1 / this.sampleRate));
    return { start, end: Math.min(this.duration, Math.max(to, start + 1 / this.sampleRate)) };
  }
}
