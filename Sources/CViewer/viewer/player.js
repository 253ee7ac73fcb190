// @ts-check
import { compare, longestPreview, voices } from "./preview.js";
import { isAbort, recordingPath } from "./service.js";
import { Signal } from "./signal.js";

/** @typedef {import("./preview.js").Voice} Voice */
/** @typedef {import("./view.js").Span} Span */

/** How long one voice fades into another, in seconds. */
const fade = 0.012;
/** Media elements that run beside each other may drift apart by this, in seconds. */
const mostDrift = 0.03;

/**
 * Plays what is open. The whole is streamed by media elements, the original's and the cleaned one's side by side, one of
 * them muted; a stretch that was cleaned for a preview is played from memory, three voices in step. Either way one
 * voice gives way to another without a gap.
 */
export class Player {
  /**
   * Playing or not, another voice, loading or not.
   * @type {Signal<void>}
   */
  changed = new Signal();
  /** @type {Signal<Error>} */
  failed = new Signal();

  /** @type {Voice} */
  voice = "original";
  isPlaying = false;
  isLoading = false;
  isLooping = false;
  isFollowing = true;
  /**
   * What is played, in seconds; null: to the end.
   * @type {Span | null}
   */
  range = null;

  /** @type {AudioContext | null} */
  #context = null;
  /** @type {{ comparison: import("./preview.js").Comparison, key: string } | null} */
  #memory = null;
  /** @type {{ sources: AudioBufferSourceNode[], gains: Record<Voice, GainNode>, begun: number, offset: number } | null} */
  #voices = null;
  #control = new AbortController();

  /**
   * @param {import("./service.js").Service} service
   * @param {import("./session.js").Session} session
   * @param {import("./view.js").View} view
   * @param {() => import("./session.js").Settings} settings
   * @param {{ original: HTMLMediaElement, cleaned: HTMLMediaElement }} elements
   */
  constructor(service, session, view, settings, elements) {
    this.service = service;
    this.session = session;
    this.view = view;
    this.settings = settings;
    this.elements = elements;
    for (const element of Object.values(elements)) {
      element.addEventListener("ended", () => this.#reachedEnd());
      element.addEventListener("error", () => this.#convert(element));
    }
    session.opened.subscribe(() => this.#forget());
    session.changed.subscribe(() => this.#load());
    session.ended.subscribe(({ layer, state }) => {
      if (layer.role === "cleaned" && state === "succeeded" && !this.isPlaying) this.setVoice("cleaned");
    });
  }

  /**
   * Whether a voice can be streamed from end to end.
   * @param {Voice} voice
   */
  #canStream(voice) {
    if (voice === "residue") return false;
    const layer = voice === "original" ? this.session.original : this.session.cleaned;
    return layer !== null && layer.recording.sha256 !== null;
  }

  toggle() { return this.isPlaying || this.isLoading ? this.pause() : this.play(); }

  /** Plays the selection, or from the playhead on. */
  async play() {
    if (!this.session.original) return;
    const { selection, playhead, duration } = this.view;
    this.range = selection;
    let from = playhead;
    if (selection && (from < selection.start || from >= selection.end - 0.01)) from = selection.start;
    else if (!selection && from >= duration - 0.02) from = 0;
    this.view.movePlayhead(from);
    await this.#start();
  }

  pause() {
    this.#control.abort();
    for (const element of Object.values(this.elements)) element.pause();
    this.#silence();
    this.isPlaying = this.isLoading = false;
    this.changed.emit();
  }

  /** @param {number} seconds */
  seek(seconds) {
    this.view.movePlayhead(seconds);
    this.range = null;
    for (const element of Object.values(this.elements)) if (element.readyState) element.currentTime = seconds;
    if (this.isPlaying) void this.#start();
  }

  setLoop(/** @type {boolean} */ isLooping) {
    this.isLooping = isLooping;
    this.changed.emit();
  }

  /**
   * Lets another voice be heard, from the same instant on.
   * @param {Voice} voice
   */
  setVoice(voice) {
    if (voice === this.voice) return;
    this.voice = voice;
    this.changed.emit();
    if (this.#voices && this.#context) {
      for (const name of voices) {
        const { gain } = this.#voices.gains[name], now = this.#context.currentTime;
        gain.cancelScheduledValues(now);
        gain.setTargetAtTime(name === voice ? this.#gain(name) : 0, now, fade / 3);
      }
    } else if (this.isPlaying) {
      if (this.#canStream(voice)) this.#unmute();
      else void this.#start();
    }
  }

  /** The settings have changed: a preview that is heard is made anew and takes over where the old one is. */
  async refresh() {
    if (!this.#voices) return;
    await this.#start();
  }

  /** Where the sound is, in seconds; null while there is none. */
  get position() {
    if (!this.isPlaying) return null;
    if (this.#voices && this.#context && this.#memory) {
      const { window, buffers } = this.#memory.comparison, length = buffers.original.duration;
      const passed = this.#context.currentTime - this.#voices.begun + this.#voices.offset;
      return window.start + (passed % length + length) % length;
    }
    return this.#audible.currentTime;
  }

  /**
   * Follows the sound, once a frame.
   * @returns {boolean} whether it goes on
   */
  follow() {
    const position = this.position;
    if (position === null) return false;
    const end = this.range?.end ?? Infinity;
    if (!this.#voices && position >= end) {
      this.#reachedEnd();
      return this.isPlaying;
    }
    this.view.movePlayhead(position);
    return true;
  }

  get #audible() {
    return this.voice === "cleaned" && this.#canStream("cleaned") ? this.elements.cleaned : this.elements.original;
  }

  async #start() {
    this.#control.abort();
    const { signal } = this.#control = new AbortController();
    try {
      if (this.#canStream(this.voice) && !(this.#voices && this.voice === "original")) await this.#stream();
      else await this.#preview(signal);
    } catch (error) {
      if (isAbort(error)) return;
      this.pause();
      this.failed.emit(error instanceof Error ? error : new Error(String(error)));
    }
  }

  async #stream() {
    this.#silence();
    this.isLoading = false;
    const { original, cleaned } = this.elements;
    for (const element of [original, cleaned]) {
      if (element.src && Math.abs(element.currentTime - this.view.playhead) > 0.005) element.currentTime = this.view.playhead;
    }
    this.#unmute();
    this.isPlaying = true;
    this.changed.emit();
    this.view.moved.emit();
    await this.#audible.play();
    if (cleaned.src) await this.#other.play().catch(() => { });
  }

  get #other() { return this.#audible === this.elements.original ? this.elements.cleaned : this.elements.original; }

  #unmute() {
    const audible = this.#audible, other = this.#other;
    if (other.src && Math.abs(audible.currentTime - other.currentTime) > mostDrift) audible.currentTime = other.currentTime;
    audible.muted = false;
    other.muted = true;
    if (this.isPlaying && audible.paused) void audible.play().catch(() => { });
  }

  /** The stretch that is in view, as far as it can be had at once; the playhead is in it. */
  get previewWindow() {
    const { window, playhead, duration, selection } = this.view;
    const wanted = selection && this.range === selection ? selection : window;
    if (wanted.end - wanted.start <= longestPreview && playhead >= wanted.start && playhead < wanted.end) return wanted;
    const start = Math.max(0, Math.min(playhead - 0.5, duration - longestPreview));
    return { start, end: Math.min(duration, start + longestPreview) };
  }

  async #preview(/** @type {AbortSignal} */ signal) {
    const original = this.session.original;
    if (!original) return;
    const context = this.#context ??= new AudioContext({ latencyHint: "interactive" });
    void context.resume();
    const settings = this.settings(), id = original.recording.id;
    const playhead = this.view.playhead;
    let window = this.previewWindow;
    const held = this.#memory?.comparison.window;
    if (held && this.#voices && playhead >= held.start && playhead < held.end) window = held;
    const key = JSON.stringify([id, window, settings]);
    if (this.#memory?.key !== key) {
      this.isLoading = true;
      this.changed.emit();
      const comparison = await compare(context, this.service, id, window, settings, signal);
      signal.throwIfAborted();
      this.#memory = { comparison, key };
    }
    const position = this.position ?? this.view.playhead;
    for (const element of Object.values(this.elements)) element.pause();
    this.#silence();
    this.#sound(context, position);
    this.isLoading = false;
    this.isPlaying = true;
    this.changed.emit();
    this.view.moved.emit();
  }

  /** Starts all voices at one instant; they go round the window. */
  #sound(/** @type {AudioContext} */ context, /** @type {number} */ position) {
    if (!this.#memory) return;
    const { window, buffers } = this.#memory.comparison;
    const begun = context.currentTime + 0.01, offset = Math.max(0, (position - window.start) % buffers.original.duration);
    const gains = /** @type {Record<Voice, GainNode>} */ ({});
    const sources = voices.map(voice => {
      const gain = gains[voice] = new GainNode(context, { gain: 0 });
      gain.gain.setTargetAtTime(voice === this.voice ? this.#gain(voice) : 0, begun, fade / 3);
      const source = new AudioBufferSourceNode(context, { buffer: buffers[voice], loop: true });
      source.connect(gain).connect(context.destination);
      source.start(begun, offset);
      return source;
    });
    this.#voices = { sources, gains, begun, offset };
  }

  #gain(/** @type {Voice} */ voice) { return this.#memory?.comparison.gains[voice] ?? 1; }

  #silence() {
    if (!this.#voices || !this.#context) return;
    const now = this.#context.currentTime;
    for (const gain of Object.values(this.#voices.gains)) gain.gain.setTargetAtTime(0, now, fade / 3);
    for (const source of this.#voices.sources) source.stop(now + 2 * fade);
    this.#voices = null;
  }

  #reachedEnd() {
    const start = this.range?.start ?? 0;
    if (this.isLooping) {
      for (const element of Object.values(this.elements)) if (element.src) element.currentTime = start;
      if (this.#audible.paused) void this.#audible.play().catch(() => { });
      this.view.movePlayhead(start);
    } else {
      const end = this.range?.end;
      this.pause();
      if (end !== undefined) this.view.movePlayhead(end);
    }
  }

  #load() {
    for (const [role, layer] of /** @type {const} */ ([["original", this.session.original], ["cleaned", this.session.cleaned]])) {
      const element = this.elements[role], { recording } = layer ?? {};
      const path = recording && recording.sha256 !== null
        ? `${recordingPath(recording.id)}/${role === "original" && recording.video ? "video" : "audio"}` : "";
      if ((element.dataset.path ?? "") === path) continue;
      element.dataset.path = path;
      element.pause();
      if (path) element.src = path;
      else element.removeAttribute("src");
    }
    if (this.session.cleaned === null && this.voice === "cleaned" && !this.#voices) {
      this.voice = "original";
      this.changed.emit();
    }
  }

  /** Formats that the browser does not know are asked for as one that it does. */
  #convert(/** @type {HTMLMediaElement} */ element) {
    const path = element.dataset.path;
    if (!path || element.src.includes("format=") || !element.getAttribute("src")) return;
    element.src = `${path}?format=flac`;
    if (this.isPlaying && element === this.#audible) void element.play().catch(error => this.failed.emit(error));
  }

  #forget() {
    this.pause();
    this.#memory = null;
    this.voice = "original";
    this.range = null;
  }
}
