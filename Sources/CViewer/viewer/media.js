// @ts-check
import { isAbort, recordingPath } from "./service.js";
import { Signal } from "./signal.js";

// What is streamed from end to end: the original's sound and the cleaned one's, side by side, one of them muted; and a
// video's picture, which runs after whatever is heard, be it a stream or a preview from memory.

/** What runs after something else may be late or early by this, in seconds; a jump is for what is further off. */
const mostDrift = 0.012, jump = 0.3;
/** The sound of videos that browsers play. Of others they show the picture without sound, and do not complain. */
const known = /^(aac|mp3|opus|vorbis|flac|pcm_.*)$/;

/** @typedef {"original" | "cleaned"} Role */

export class Media {
  /**
   * What is heard has come to its end.
   * @type {Signal<void>}
   */
  ended = new Signal();
  /** @type {Signal<Error>} */
  failed = new Signal();
  isPlaying = false;
  /** @type {Role} */
  #heard = "original";
  /**
   * What the browser can't read, until it is converted.
   * @type {Set<Role>}
   */
  #unreadable = new Set();
  #canConvert = { original: false, cleaned: false };
  #control = new AbortController();

  /**
   * @param {import("./service.js").Service} service
   * @param {{ original: HTMLMediaElement, cleaned: HTMLMediaElement, picture: HTMLVideoElement }} elements
   */
  constructor(service, { original, cleaned, picture }) {
    this.service = service;
    this.sounds = { original, cleaned };
    this.picture = picture;
    for (const role of /** @type {const} */ (["original", "cleaned"])) {
      const element = this.sounds[role];
      element.addEventListener("ended", () => { if (role === this.#heard) this.ended.emit(); });
      element.addEventListener("error", () => {
        // A connection that was lost comes back, what can't be read does not.
        if (element.error?.code === MediaError.MEDIA_ERR_NETWORK) return void this.#resume(element);
        this.#unreadable.add(role);
        void this.#convert(role);
      });
    }
    picture.addEventListener("error", () => { picture.hidden = true; });
    picture.addEventListener("loadeddata", () => { picture.hidden = false; });
  }

  /**
   * Loads what can be played of a session.
   * @param {import("./session.js").Session} session
   */
  load(session) {
    for (const role of /** @type {const} */ (["original", "cleaned"])) {
      const { recording } = session[role] ?? {}, isThere = recording && recording.sha256 !== null;
      const isUnknown = Boolean(recording?.video) && !known.test(recording.format.codec);
      if (this.#set(this.sounds[role], isThere ? `${recordingPath(recording.id)}/audio` : "", !isUnknown)) {
        this.#unreadable.delete(role);
        if (isUnknown) this.#unreadable.add(role);
      }
      // Not before the service has read it itself.
      this.#canConvert[role] = recording?.waveform.state === "ready";
      void this.#convert(role);
    }
    const { recording } = session.original ?? {};
    if (this.#set(this.picture, recording?.video && recording.sha256 ? `${recordingPath(recording.id)}/video` : "")) {
      this.picture.hidden = true;
    }
  }

  #set(/** @type {HTMLMediaElement} */ element, /** @type {string} */ path, isReadable = true) {
    if ((element.dataset.path ?? "") === path) return false;
    element.dataset.path = path;
    element.pause();
    if (path && isReadable) element.src = path;
    else {
      element.removeAttribute("src");
      element.load();
    }
    return true;
  }

  /** A kind of file that the browser does not know is asked for as one that it does, once the service has made it. */
  async #convert(/** @type {Role} */ role) {
    const element = this.sounds[role], { path } = element.dataset, converted = `${path}?format=flac`, at = element.currentTime;
    if (!path || element.src.endsWith(converted) || !this.#canConvert[role] || !this.#unreadable.delete(role)) return;
    try {
      const answer = await this.service.fetch(converted, { signal: this.#control.signal });
      await answer.body?.cancel();
      if (element.dataset.path === path) await this.#goOn(element, converted, at);
    } catch (error) {
      if (!isAbort(error)) this.failed.emit(error instanceof Error ? error : new Error(String(error)));
    }
  }

  async #resume(/** @type {HTMLMediaElement} */ element) {
    const { path } = element.dataset, at = element.currentTime;
    await this.service.untilBack();
    if (path && element.dataset.path === path) await this.#goOn(element, element.src, at).catch(() => { });
  }

  async #goOn(/** @type {HTMLMediaElement} */ element, /** @type {string} */ source, /** @type {number} */ at) {
    element.src = source;
    element.currentTime = at;
    if (this.isPlaying && element === this.#audible) await element.play();
  }

  /** Gives up what is under way. */
  close() {
    this.#control.abort();
    this.#control = new AbortController();
  }

  get #audible() { return this.sounds[this.#heard]; }
  get #other() { return this.sounds[this.#heard === "original" ? "cleaned" : "original"]; }
  /** Where the sound is, in seconds. */
  get position() { return this.#audible.currentTime; }

  /**
   * Plays a voice from a place on; the other one runs along.
   * @param {Role} role
   * @param {number} position in seconds
   */
  async play(role, position) {
    this.isPlaying = true;
    this.seek(position);
    this.hear(role);
    const element = this.#audible;
    await element.play().catch(error => {
      // What the browser can't read plays when it is converted.
      if (error.name !== "NotSupportedError" || element.src.includes("?")) throw error;
    });
  }

  pause() {
    this.isPlaying = false;
    for (const element of Object.values(this.sounds)) element.pause();
  }

  /** @param {number} position in seconds */
  seek(position) {
    for (const element of Object.values(this.sounds)) {
      if (element.src && Math.abs(element.currentTime - position) > 0.005) element.currentTime = position;
    }
  }

  /**
   * Lets a voice be heard instead of the other.
   * @param {Role} role
   */
  hear(role) {
    this.#heard = role;
    const audible = this.#audible, other = this.#other;
    audible.playbackRate = 1;
    audible.muted = false;
    other.muted = true;
    if (this.isPlaying && audible.paused) void audible.play().catch(() => { });
  }

  /**
   * Lets the picture, and the sound that is not heard, run after what is heard.
   * @param {number} position of what is heard, in seconds
   * @param {boolean} isRunning
   */
  follow(position, isRunning) {
    if (this.isPlaying) chase(this.#other, position, isRunning);
    chase(this.picture, position, isRunning);
  }
}

/** What is far off jumps; what is near goes a little faster or slower, which nobody sees, and a muted one nobody hears. */
function chase(/** @type {HTMLMediaElement} */ element, /** @type {number} */ position, /** @type {boolean} */ isRunning) {
  if (!element.readyState || element.seeking) return;
  const isOver = position > element.duration - 0.05, lag = position - element.currentTime, distance = Math.abs(lag);
  if (!isOver && distance > (isRunning ? jump : 0.02)) element.currentTime = position;
  const rate = isRunning && distance > mostDrift && distance <= jump ? 1 + Math.max(-0.3, Math.min(0.3, 3 * lag)) : 1;
  if (Math.abs(element.playbackRate - rate) > 0.02 || rate === 1 && element.playbackRate !== 1) element.playbackRate = rate;
  if (isRunning && !isOver && element.paused) void element.play().catch(() => { });
  if (!isRunning && !element.paused) element.pause();
}
