// @ts-check
import { mostSpeakers } from "./comparison.js";
import { seeksInexactly } from "./reels.js";
import { isAbort, recordingPath } from "./service.js";
import { Signal } from "./signal.js";

// Streaming playback: the sounds of the layers in parallel, all but one muted, and a video's picture, which follows the
// audible sound, whether that is a stream or a preview from memory.

/** How far a follower may be off before its speed changes, and before it jumps, in seconds. */
const mostDrift = 0.012, jump = 0.3;
/** Audio codecs that browsers play in videos. With others they show the picture without sound and report no error. */
const known = /^(aac|mp3|opus|vorbis|flac|pcm_.*)$/;

/** @typedef {import("./session.js").Layer} Layer */
/**
 * The sound of one layer.
 * @typedef {object} Track
 * @property {HTMLMediaElement} element
 * @property {string} path
 * @property {boolean} isUnreadable whether the browser can't read it, until it is converted
 * @property {number | null} lost where it goes on when a lost connection is back, in seconds
 */

export class Media {
  /**
   * The audible sound has reached its end.
   * @type {Signal<void>}
   */
  ended = new Signal();
  /** @type {Signal<Error>} */
  failed = new Signal();
  isPlaying = false;
  /** How fast sounds are played; their pitch is kept. */
  speed = 1;
  #volume = 1;
  /** @type {Map<Layer, Track>} */
  #tracks = new Map();
  /** @type {Layer | null} */
  #heard = null;
  /**
   * The sound that becomes audible as soon as it is in step.
   * @type {Layer | null}
   */
  #next = null;
  /** @type {Layer | null} */
  #front = null;
  /** @type {Layer | null} */
  #formerFront = null;
  #control = new AbortController();

  /**
   * @param {import("./service.js").Service} service
   * @param {HTMLVideoElement} picture
   */
  constructor(service, picture) {
    this.service = service;
    this.picture = picture;
    picture.addEventListener("error", () => { picture.hidden = true; });
    picture.addEventListener("loadeddata", () => { picture.hidden = false; });
    service.credentials.renewed.subscribe(() => this.#renew());
  }

  /**
   * Loads the playable sounds of a session: the original, the front cleaned layer and the previous one, so that switching
   * back has no gap. Not more, because a browser opens at most six connections to a service.
   * @param {import("./session.js").Session} session
   */
  load(session) {
    const { original, cleaned, layers } = session, at = this.position;
    if (cleaned !== this.#front) [this.#front, this.#formerFront] = [cleaned, this.#front];
    const wanted = [original, cleaned, this.#formerFront].filter(layer => layer && layers.includes(layer)
      && layer.recording.sha256 !== null && layer.recording.format.channels <= mostSpeakers);
    for (const [layer, { element }] of this.#tracks) {
      if (wanted.includes(layer)) continue;
      this.#tracks.delete(layer);
      this.#set(element, "");
      element.remove();
    }
    for (const layer of wanted) if (layer && this.#admits(layer, session)) void this.#convert(layer, this.#tracks.get(layer) ?? this.#add(layer));
    if (!this.#track) {
      this.#turnTo(cleaned && this.#tracks.has(cleaned) ? cleaned : original);
      for (const [layer, { element }] of this.#tracks) {
        if (layer === this.#heard && Math.abs(element.currentTime - at) > jump) element.currentTime = at;
      }
    }
    const { recording } = original ?? {}, hasPicture = original && recording.video && recording.sha256 && this.#admits(original, session);
    if (this.#set(this.picture, hasPicture ? `${recordingPath(recording.id)}/video` : "")) this.picture.hidden = true;
  }

  /** Whether elements may read a recording; if not yet, loads it when they may. */
  #admits(/** @type {Layer} */ { recording }, /** @type {import("./session.js").Session} */ session) {
    const { service } = this;
    if (service.credentials.isAdmitted(recording.id)) return true;
    service.admit(recording.id).then(() => this.load(session), error => this.failed.emit(error));
    return false;
  }

  /** @param {number} factor 0 … 1 */
  setVolume(factor) {
    this.#volume = factor;
    for (const { element } of this.#tracks.values()) element.volume = factor;
  }

  /**
   * Sets the source of an element.
   * @param {HTMLMediaElement} element
   * @param {string} path empty: nothing
   * @returns {boolean} whether that is something new
   */
  #set(element, path) {
    if ((element.dataset.path ?? "") === path) return false;
    element.dataset.path = path;
    element.pause();
    if (path) element.src = this.service.credentials.address(path);
    else {
      element.removeAttribute("src");
      element.load();
    }
    return true;
  }

  /** Lets elements that don't play use the current tokens; one that plays goes on with its own, which lasts for hours. */
  #renew() {
    const address = (/** @type {HTMLMediaElement} */ { dataset }) => this.service.credentials.address(dataset.path ?? "");
    // Asks for the address of one that plays too, so that its token goes on being renewed.
    const isOld = (/** @type {HTMLMediaElement} */ element) => Boolean(element.dataset.path)
      && element.src !== new URL(address(element), document.baseURI).href && element.paused;
    for (const element of [this.picture, ...[...this.#tracks.values()].map(track => track.element)]) {
      if (!isOld(element)) continue;
      const at = element.currentTime;
      element.src = address(element);
      element.currentTime = at;
    }
  }

  /**
   * @param {Layer} layer
   * @returns {Track}
   */
  #add(layer) {
    const { recording, role } = layer, element = document.createElement("audio");
    /** @type {Track} */
    const track = {
      element, path: `${recordingPath(recording.id)}/audio`,
      isUnreadable: Boolean(recording.video) && !known.test(recording.format.codec), lost: null,
    };
    element.preload = "auto";
    element.muted = true;
    element.volume = this.#volume;
    element.dataset.role = role;
    // After a lost connection, Firefox jumps to the end.
    element.addEventListener("ended", () => { if (layer === this.#heard && !element.error) this.ended.emit(); });
    element.addEventListener("error", () => {
      // Retrying helps after a lost connection, not with a format that can't be played.
      if (element.error?.code === MediaError.MEDIA_ERR_NETWORK) {
        track.lost = element.currentTime;
        return void this.#resume(layer, track);
      }
      track.isUnreadable = true;
      void this.#convert(layer, track);
    });
    if (!track.isUnreadable) this.#set(element, track.path);
    this.#tracks.set(layer, track);
    this.picture.after(element);
    return track;
  }

  /** If the browser doesn't know the format, requests one that it does, once the service has converted it. */
  async #convert(/** @type {Layer} */ layer, /** @type {Track} */ track) {
    const { element, path } = track, converted = `${path}?format=flac`, at = element.currentTime;
    // Only after the service has read the recording.
    if (!track.isUnreadable || element.dataset.path === converted || layer.recording.waveform.state !== "ready") return;
    track.isUnreadable = false;
    try {
      const answer = await this.service.fetch(converted, { signal: this.#control.signal });
      await answer.body?.cancel();
      await this.#goOn(layer, element, converted, at);
    } catch (error) {
      if (!isAbort(error)) this.failed.emit(error instanceof Error ? error : new Error(String(error)));
    }
  }

  async #resume(/** @type {Layer} */ layer, /** @type {Track} */ track) {
    const { element } = track;
    await this.service.untilBack();
    await this.service.admit(layer.recording.id).catch(() => { });
    const at = track.lost ?? element.currentTime;
    track.lost = null;
    await this.#goOn(layer, element, element.dataset.path ?? "", at).catch(() => { });
  }

  async #goOn(/** @type {Layer} */ layer, /** @type {HTMLMediaElement} */ element, /** @type {string} */ path, /** @type {number} */ at) {
    if (!this.#tracks.has(layer)) return;
    element.dataset.path = path;
    element.src = this.service.credentials.address(path);
    element.currentTime = at;
    if (this.isPlaying && layer === this.#heard) await element.play();
  }

  /** Cancels everything in progress. */
  close() {
    this.#control.abort();
    this.#control = new AbortController();
  }

  get #track() { return this.#heard && this.#tracks.get(this.#heard); }
  /** The position of the sound, in seconds. */
  get position() { return this.#track?.lost ?? this.#track?.element.currentTime ?? 0; }

  /**
   * Plays a layer from a position; the others run along muted.
   * @param {Layer} layer
   * @param {number} position in seconds
   */
  async play(layer, position) {
    this.isPlaying = true;
    const heard = this.#tracks.get(layer);
    // Another speed needs an element; in these files, elements only guess where an instant is.
    if (this.speed !== 1 && heard && seeksInexactly(layer.recording)) {
      heard.isUnreadable = true;
      await this.#convert(layer, heard);
    }
    for (const track of this.#tracks.values()) {
      const { element } = track;
      if (track.lost !== null) track.lost = position;
      else if (element.src && Math.abs(element.currentTime - position) > 0.005) element.currentTime = position;
    }
    this.#turnTo(layer);
    const { element } = this.#tracks.get(layer) ?? {};
    await element?.play().catch(error => {
      // A format that the browser can't play starts once it is converted.
      if (error.name !== "NotSupportedError" || element.dataset.path?.includes("?")) throw error;
    });
  }

  pause() {
    this.isPlaying = false;
    for (const { element } of this.#tracks.values()) element.pause();
    this.#renew();
  }

  /**
   * Makes a layer audible instead of the current one, as soon as both are in step.
   * @param {Layer} layer
   */
  hear(layer) {
    this.#next = layer;
    if (!this.isPlaying || this.#isInStep(layer)) this.#turnTo(layer);
  }

  /** @param {Layer | null} layer */
  #isInStep(layer) {
    const { element } = layer && this.#tracks.get(layer) || {};
    return element !== undefined && element.readyState > 2 && !element.paused && !element.seeking;
  }

  #turnTo(/** @type {Layer | null} */ layer) {
    this.#heard = this.#next = layer;
    for (const [other, { element }] of this.#tracks) {
      element.muted = other !== layer;
      if (other !== layer) continue;
      element.playbackRate = this.speed;
      if (this.isPlaying && element.paused) void element.play().catch(() => { });
    }
  }

  /**
   * Keeps the picture and the muted sounds in step with the audible one.
   * @param {number} position of what is heard, in seconds
   * @param {boolean} isRunning
   */
  follow(position, isRunning) {
    if (this.isPlaying) {
      for (const [layer, { element }] of this.#tracks) if (layer !== this.#heard) chase(element, position, isRunning, this.speed);
      if (this.#next !== this.#heard && this.#isInStep(this.#next)) this.#turnTo(this.#next);
    }
    chase(this.picture, position, isRunning, this.isPlaying ? this.speed : 1);
  }
}

/** Jumps if far off; otherwise plays slightly faster or slower, which isn't noticeable in a picture or a muted sound. */
function chase(/** @type {HTMLMediaElement} */ element, /** @type {number} */ position, /** @type {boolean} */ isRunning, /** @type {number} */ speed) {
  if (!element.readyState || element.seeking) return;
  const isOver = position > element.duration - 0.05, lag = position - element.currentTime, distance = Math.abs(lag);
  if (!isOver && distance > (isRunning ? jump : 0.02)) element.currentTime = position;
  const rate = speed * (isRunning && distance > mostDrift && distance <= jump ? 1 + Math.max(-0.3, Math.min(0.3, 3 * lag)) : 1);
  if (Math.abs(element.playbackRate - rate) > 0.02 || rate === speed && element.playbackRate !== speed) element.playbackRate = rate;
  if (isRunning && !isOver && element.paused) void element.play().catch(() => { });
  if (!isRunning && !element.paused) element.pause();
}
