// @ts-check
import { Comparison, mostSpeakers, setVolume } from "./comparison.js";
import { longestPreview } from "./preview.js";
import { Reels } from "./reels.js";
import { isAbort } from "./service.js";
import { Signal } from "./signal.js";

/** @typedef {import("./comparison.js").Voice} Voice */
/** @typedef {import("./view.js").Span} Span */

/**
 * Plays the open recording: alone it is streamed, together with results all are played in step, and a preview plays from
 * memory. Voices switch without a gap.
 */
export class Player {
  /**
   * Playback started or stopped, the voice changed, or loading began or ended.
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
  /** Whether something needs the clock of the audio output, which streams don't have. */
  isExact = false;
  /**
   * The stretch that plays, in seconds; null: to the end.
   * @type {Span | null}
   */
  range = null;

  /**
   * What a preview has cleaned last, and how.
   * @type {{ id: string, window: Span, settings: import("./session.js").Settings } | null}
   */
  computed = null;

  /** @type {AudioContext | null} */
  #context = null;
  #contextRate = 0;
  /** Whether a preview plays even though the whole result exists. */
  #isPreview = false;
  /**
   * Settings that leave only the sound of one box, while it is heard alone, and the voice to return to.
   * @type {{ settings: import("./session.js").Settings, voice: Voice } | null}
   */
  #alone = null;
  /** @type {Comparison | null} */
  #comparison = null;
  #key = "";
  #control = new AbortController();

  /**
   * @param {import("./preview.js").Previews} previews
   * @param {import("./session.js").Session} session
   * @param {import("./view.js").View} view
   * @param {() => import("./session.js").Settings} settings
   * @param {import("./media.js").Media} media
   */
  constructor(previews, session, view, settings, media) {
    this.previews = previews;
    this.session = session;
    this.view = view;
    this.settings = settings;
    this.media = media;
    media.ended.subscribe(() => { if (media.isPlaying) this.#reachedEnd(); });
    media.failed.subscribe(error => this.#fail(error));
    this.reels = new Reels(previews.service, rate => this.#contextFor(rate));
    this.reels.ended.subscribe(() => this.#reachedEnd());
    this.reels.failed.subscribe(error => this.#fail(error));
    session.opened.subscribe(() => this.#forget());
    session.changed.subscribe(() => this.#load());
    session.ended.subscribe(({ layer, state }) => {
      if (layer.role === "cleaned" && state === "succeeded" && !this.isPlaying) this.hear(layer);
    });
  }

  /** Returns a context at the rate of a recording, so that nothing is resampled before the loudspeaker. */
  #contextFor(/** @type {number} */ rate) {
    if (this.#context && this.#contextRate === rate) return this.#context;
    void this.#context?.close();
    this.#contextRate = rate;
    try {
      this.#context = new AudioContext({ latencyHint: "interactive", sampleRate: rate });
    } catch {
      this.#context = new AudioContext({ latencyHint: "interactive" });
    }
    return this.#context;
  }

  /**
   * Whether a voice can be streamed from end to end.
   * @param {Voice} voice
   */
  #streamed(voice) {
    const layer = voice === "residue" ? null : this.session[voice];
    return layer && layer.recording.sha256 !== null ? layer : null;
  }

  toggle() { return this.isPlaying || this.isLoading ? this.pause() : this.play(); }

  /** Plays a stretch: by default the selection, or from the playhead on if nothing is selected. */
  async play(range = this.view.selection) {
    if (!this.session.original) return;
    const { playhead, duration } = this.view;
    this.range = range;
    let from = playhead;
    if (range && (from < range.start || from >= range.end - 0.01)) from = range.start;
    else if (!range && from >= duration - 0.02) from = 0;
    this.view.movePlayhead(from);
    await this.#start();
  }

  /**
   * Plays a stretch of the original from its start, or stops that.
   * @param {Span} range
   */
  async playOriginal(range) {
    const { isPlaying } = this, { original } = this.session;
    this.pause();
    if (!original || isPlaying && this.range === range) return;
    this.hear(original);
    this.view.movePlayhead(range.start);
    await this.play(range);
  }

  /**
   * What a preview would play: the visible part of the selection, or what is visible, or thirty seconds of either around
   * the playhead.
   * @returns {Span & { kind: "selection" | "view" | "around" }}
   */
  get previewed() {
    const { target, playhead, selection } = this.view;
    const range = selection && selection.end > target.start && selection.start < target.end ? selection : null;
    const { start, end } = range ?? target;
    if (end - start <= longestPreview) return { start, end, kind: range ? "selection" : "view" };
    const from = Math.max(start, Math.min(end, playhead) - longestPreview / 2), to = Math.min(end, from + longestPreview);
    return { start: to - longestPreview, end: to, kind: "around" };
  }

  /** Starts or stops a preview with the current settings. */
  async preview() {
    if (this.#isPreview && (this.isPlaying || this.isLoading)) return this.pause();
    const { start, end } = this.previewed, { playhead } = this.view;
    this.range = { start, end };
    if (playhead < start || playhead >= end) this.view.movePlayhead(start);
    this.#isPreview = true;
    if (this.voice === "original") {
      this.voice = "cleaned";
      this.changed.emit();
    }
    await this.#start();
  }

  /** Plays only the sound in a box, from its start, or stops it. */
  async hearBox(/** @type {import("./view.js").Box} */ box) {
    const wasHeard = this.isHearingBox, { start } = box, end = Math.min(box.end, start + longestPreview);
    this.pause();
    if (wasHeard) return;
    this.#alone = { settings: { ...this.settings(), method: "none", edit: { boxes: [{ ...box, gain_db: -60 }] } }, voice: this.voice };
    this.voice = "residue";
    this.#isPreview = true;
    this.range = { start, end };
    this.view.movePlayhead(start);
    await this.#start();
  }

  get isHearingBox() { return this.#alone !== null; }

  pause() {
    if (this.#alone) this.voice = this.#alone.voice;
    this.#alone = null;
    this.#control.abort();
    this.media.pause();
    this.reels.stop();
    this.#comparison?.stop();
    this.isPlaying = this.isLoading = this.#isPreview = false;
    this.changed.emit();
  }

  /** @param {number} seconds */
  seek(seconds) {
    this.view.movePlayhead(seconds);
    this.range = null;
    if (this.isPlaying) void this.#start();
  }

  setLoop(/** @type {boolean} */ isLooping) {
    this.isLooping = isLooping;
    this.reels.setLoop(isLooping);
    this.changed.emit();
  }

  /** @param {number} factor 0 … 1 */
  setVolume(factor) {
    this.media.setVolume(factor);
    setVolume(factor, this.#context);
  }

  /**
   * Plays finished recordings faster or slower, with their pitch.
   * @param {number} speed
   */
  setSpeed(speed) {
    this.media.speed = speed;
    if (this.isPlaying && !this.#comparison?.isHeard) void this.#start();
  }

  /**
   * Switches to another voice at the same position.
   * @param {Voice} voice
   */
  setVoice(voice) {
    if (voice === this.voice) return;
    this.voice = voice;
    this.changed.emit();
    const layer = this.#streamed(voice);
    if (this.#comparison?.isHeard) this.#comparison.hear(voice);
    else if (this.reels.isPlaying) this.reels.hear(voice, this.#streamed("cleaned"));
    else if (this.media.isPlaying && layer) this.media.hear(layer);
    else if (this.isPlaying) void this.#start();
  }

  /**
   * Switches to a layer at the same position, and ends a preview.
   * @param {import("./session.js").Layer} layer
   */
  hear(layer) {
    if (layer.role === "cleaned") this.session.take(layer);
    if (!this.#isPreview && !this.#comparison?.isHeard) return this.setVoice(layer.role);
    const { isPlaying, position } = this;
    this.pause();
    this.voice = layer.role;
    if (position !== null) this.view.movePlayhead(position);
    if (isPlaying) void this.#start();
    else this.changed.emit();
  }

  /** Switches to the cleaned voice, or to the next cleaned one if it is audible already. */
  hearCleaned() {
    const results = this.session.results.filter(layer => layer.recording.sha256 !== null), { cleaned } = this.session;
    if (this.voice !== "cleaned" || this.#comparison?.isHeard || results.length < 2 || !cleaned) return this.setVoice("cleaned");
    this.hear(results[(results.indexOf(cleaned) + 1) % results.length]);
  }

  /** Renews an audible preview after the settings have changed; the new one takes over at the same position. */
  async refresh() {
    if (this.#comparison?.isHeard) await this.#start();
  }

  /** The position of the sound, in seconds; null while nothing plays. */
  get position() {
    if (!this.isPlaying) return null;
    return this.#comparison?.isHeard ? this.#comparison.position : this.reels.isPlaying ? this.reels.position : this.media.position;
  }

  /**
   * Follows the sound, once a frame.
   * @returns {boolean} whether it goes on
   */
  follow() {
    const { position } = this;
    this.media.follow(position ?? this.view.playhead, position !== null);
    if (position === null) return false;
    if (this.media.isPlaying && position >= (this.range?.end ?? Infinity)) {
      this.#reachedEnd();
      return this.isPlaying;
    }
    this.view.movePlayhead(position);
    return true;
  }

  async #start() {
    this.#control.abort();
    const { signal } = this.#control = new AbortController();
    try {
      const { voice } = this, isPreview = this.#isPreview || this.#comparison?.isHeard;
      const layer = this.#streamed(voice), canRoll = !isPreview && this.#streamed(voice === "residue" ? "cleaned" : voice);
      if (canRoll && canRoll.recording.format.channels > mostSpeakers) {
        this.isLoading = true;
        this.changed.emit();
      }
      if (canRoll && (this.media.speed === 1 || !layer) && await this.reels.prepare(this.session, this.isExact)) {
        signal.throwIfAborted();
        this.#roll();
      } else if (layer && !isPreview) await this.#stream(layer);
      else await this.#compare(signal);
    } catch (error) {
      if (!isAbort(error)) this.#fail(error);
    }
  }

  #fail(/** @type {unknown} */ error) {
    this.pause();
    this.failed.emit(error instanceof Error ? error : new Error(String(error)));
  }

  #tellPlaying() {
    this.isLoading = false;
    this.isPlaying = true;
    this.changed.emit();
    this.view.moved.emit();
  }

  #roll() {
    this.media.pause();
    this.#comparison?.stop();
    this.reels.play(this.voice, this.#streamed("cleaned"), this.view.playhead, this.range, this.isLooping);
    this.#tellPlaying();
  }

  async #stream(/** @type {import("./session.js").Layer} */ layer) {
    this.reels.stop();
    const begun = this.media.play(layer, this.view.playhead);
    this.#tellPlaying();
    await begun;
  }

  /**
   * The stretch to clean: the one that is loaded, the one that plays or the visible one, if it is short enough; otherwise
   * one that begins just before the playhead.
   */
  get #stretch() {
    const { target, playhead, duration } = this.view, { range } = this, held = this.#comparison;
    const start = Math.max(0, Math.min(playhead - 0.5, duration - longestPreview));
    const fits = (/** @type {Span | null} */ window) => window && window.end - window.start <= longestPreview + 1e-6
      && playhead >= window.start && playhead < window.end && (!range || window.start <= range.start && window.end >= range.end);
    return [held?.isHeard ? held.window : null, range, target].find(fits) ?? { start, end: Math.min(duration, start + longestPreview) };
  }

  async #compare(/** @type {AbortSignal} */ signal) {
    const { original } = this.session;
    if (!original) return;
    const context = this.#contextFor(original.waveform.sampleRate), resumed = context.resume();
    const window = this.#stretch, settings = this.#alone?.settings ?? this.settings(), { id } = original.recording;
    const key = JSON.stringify([id, window, settings]);
    let next = this.#comparison;
    if (!next?.isComplete || key !== this.#key) {
      this.isLoading = true;
      this.changed.emit();
      next = new Comparison(context, window);
      const { others } = await next.load(output => this.previews.fetch(id, window, { ...settings, output }, signal));
      if (this.voice === "cleaned") others.catch(error => { if (!isAbort(error)) this.#fail(error); });
      else await others;
    }
    await resumed;
    signal.throwIfAborted();
    const position = this.position ?? this.view.playhead;
    this.media.pause();
    this.reels.stop();
    this.#comparison?.stop();
    [this.#comparison, this.#key] = [next, key];
    if (!this.#alone) this.computed = { id, window, settings };
    next.start(this.voice, position, this.range);
    this.#tellPlaying();
  }

  #reachedEnd() {
    const { start, end } = this.range ?? { start: 0 };
    if (this.isLooping) {
      this.view.movePlayhead(start);
      void this.#start();
    } else {
      this.pause();
      if (end !== undefined) this.view.movePlayhead(end);
    }
  }

  #load() {
    this.media.load(this.session);
    const layer = this.#streamed(this.voice);
    if (this.media.isPlaying && layer) this.media.hear(layer);
    if (this.reels.isPlaying) {
      void this.reels.prepare(this.session).then(() => { if (this.reels.isPlaying) this.reels.hear(this.voice, this.#streamed("cleaned")); });
    }
    if (this.session.cleaned === null && this.voice === "cleaned" && !this.#comparison?.isHeard && !this.isLoading) {
      this.voice = "original";
      this.changed.emit();
    }
  }

  #forget() {
    this.pause();
    this.media.close();
    this.reels.close();
    this.#comparison = this.computed = null;
    this.voice = this.#streamed("cleaned") ? "cleaned" : "original";
    this.range = null;
    this.changed.emit();
  }
}
