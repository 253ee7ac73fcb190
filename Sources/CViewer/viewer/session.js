// @ts-check
import { isAbort, recordingPath, Refusal } from "./service.js";
import { Signal } from "./signal.js";
import { Waveform } from "./tiles.js";

/**
 * One recording in the picture.
 * @typedef {object} Layer
 * @property {"original" | "cleaned"} role
 * @property {any} recording as the service describes it
 * @property {Waveform} waveform
 * @property {boolean} isVisible
 * @property {boolean} isSolo
 * @property {number} revealed frames that are shown; runs after those that are there
 * @property {any} job what makes it, while it is made
 */

/**
 * @typedef {object} Settings how to clean
 * @property {{ start: number, end: number } | "auto"} noise
 * @property {string} method
 * @property {number} reduction dB
 * @property {number} sensitivity
 * @property {"denoised" | "residue"} output
 */

/** What is open: a recording, what was made of it, and the jobs that still make something. */
export class Session {
  /**
   * Layers came or went, or one of them changed.
   * @type {Signal<void>}
   */
  changed = new Signal();
  /**
   * Something went wrong that a person should read.
   * @type {Signal<Error>}
   */
  failed = new Signal();
  /**
   * A job has ended: succeeded, failed or cancelled.
   * @type {Signal<{ layer: Layer, state: string }>}
   */
  ended = new Signal();
  /**
   * Another recording was opened, or none is.
   * @type {Signal<void>}
   */
  opened = new Signal();

  /** @type {Layer[]} */
  layers = [];
  /**
   * Where a noise profile is best taken.
   * @type {{ start: number, end: number, score: number, level: number }[]}
   */
  regions = [];
  /** @type {"mix" | "split"} */
  channels = "mix";
  #control = new AbortController();

  /**
   * @param {import("./service.js").Service} service
   * @param {import("./tiles.js").TileStore} tiles
   */
  constructor(service, tiles) {
    this.service = service;
    this.tiles = tiles;
  }

  get original() { return this.layers.find(layer => layer.role === "original") ?? null; }
  get cleaned() { return this.layers.find(layer => layer.role === "cleaned") ?? null; }
  /** The layers that are to be drawn. */
  get shown() {
    const solo = this.layers.filter(layer => layer.isSolo);
    return solo.length ? solo : this.layers.filter(layer => layer.isVisible);
  }
  /** Seconds. */
  get duration() {
    const { waveform, recording } = this.layers[0] ?? {};
    return (waveform && waveform.totalFrames ? waveform.totalFrames / waveform.sampleRate : recording?.format.duration) || 1;
  }
  /**
   * Whether a recording is in the picture.
   * @param {string} id
   */
  has(id) { return this.layers.some(layer => layer.recording.id === id); }

  /**
   * Opens a recording; a derived one over what it was made of, if that is still there.
   * @param {any | string} recordingOrID
   */
  async open(recordingOrID) {
    this.close();
    const { signal } = this.#control;
    try {
      const recording = typeof recordingOrID === "string"
        ? await this.service.json(recordingPath(recordingOrID), { signal }) : recordingOrID;
      const source = recording.derived_from && await this.service
        .json(recordingPath(recording.derived_from.recording), { signal })
        .catch(error => { if (!(error instanceof Refusal)) throw error; });
      signal.throwIfAborted();
      this.layers = [this.#layer("original", source || recording)];
      if (source) this.layers.push(this.#layer("cleaned", recording));
      this.opened.emit();
      this.changed.emit();
      for (const layer of this.layers) void this.#follow(layer, signal);
      void this.#findRegions(signal);
    } catch (error) {
      this.#complain(error);
    }
  }

  close() {
    this.#control.abort();
    this.#control = new AbortController();
    for (const layer of this.layers) this.tiles.forget(layer.waveform);
    this.layers = [];
    this.regions = [];
    this.opened.emit();
    this.changed.emit();
  }

  /**
   * Shows each channel in a lane of its own, or their mean.
   * @param {"mix" | "split"} channels
   */
  setChannels(channels) {
    this.channels = channels;
    for (const layer of this.layers) {
      this.tiles.forget(layer.waveform);
      layer.waveform = new Waveform(layer.recording, channels);
    }
    this.changed.emit();
  }

  /**
   * Cleans the whole recording; the result is drawn over it as it grows.
   * @param {Settings} settings
   */
  async clean(settings) {
    const original = this.original, { signal } = this.#control;
    if (!original) return;
    try {
      const job = await this.service.json(`${recordingPath(original.recording.id)}/denoise`, { method: "POST", body: settings });
      const result = await this.service.json(recordingPath(job.result.recording), { signal });
      this.#drop(this.cleaned);
      const layer = this.#layer("cleaned", result);
      layer.job = job;
      this.layers.push(layer);
      this.changed.emit();
      void this.#follow(layer, signal);
    } catch (error) {
      this.#complain(error);
    }
  }

  /**
   * Gives up what is being made.
   * @param {Layer} layer
   */
  async cancel(layer) {
    const id = layer.job?.id ?? layer.recording.waveform.job;
    try {
      await this.service.json(`/v1/jobs/${id}`, { method: "DELETE" });
    } catch (error) {
      // It has ended in the meantime.
      if (!(error instanceof Refusal && error.status === 409)) this.#complain(error);
    }
  }

  /** Reads the recording again, whose reading was given up. */
  async readAgain() {
    const { original } = this;
    if (!original) return;
    try {
      await this.service.json(`${recordingPath(original.recording.id)}/waveform`, { method: "POST" });
      await this.open(original.recording.id);
    } catch (error) {
      this.#complain(error);
    }
  }

  /**
   * Takes a layer out of the picture; the recording stays.
   * @param {Layer} layer
   */
  remove(layer) {
    this.#drop(layer);
    this.changed.emit();
  }

  /** @param {Layer | null} layer */
  #drop(layer) {
    if (!layer) return;
    this.tiles.forget(layer.waveform);
    this.layers = this.layers.filter(other => other !== layer);
  }

  /**
   * @param {"original" | "cleaned"} role
   * @param {any} recording
   * @returns {Layer}
   */
  #layer(role, recording) {
    const waveform = new Waveform(recording, this.channels);
    return {
      role, recording, waveform, isVisible: true, isSolo: false, job: null,
      revealed: waveform.complete ? Infinity : 0,
    };
  }

  /**
   * Waits for what is still being read or made, and tells of each step.
   * @param {Layer} layer
   * @param {AbortSignal} signal
   */
  async #follow(layer, signal) {
    const isGrowing = () => ["queued", "building"].includes(layer.recording.waveform.state)
      || layer.recording.sha256 === null;
    try {
      while (isGrowing() && this.layers.includes(layer)) {
        const { job } = layer.recording.waveform;
        if (job) layer.job = await this.service.json(`/v1/jobs/${job}?wait=20`, { signal });
        if (!this.layers.includes(layer)) return;
        if (layer.job && ["cancelled", "failed"].includes(layer.job.state)) return this.#lose(layer);
        layer.recording = await this.service.json(recordingPath(layer.recording.id), { signal });
        layer.waveform.learn(layer.recording);
        this.changed.emit();
      }
      const hadJob = layer.job !== null;
      layer.job = null;
      if (hadJob) this.ended.emit({ layer, state: "succeeded" });
      this.changed.emit();
    } catch (error) {
      if (error instanceof Refusal && error.status === 404 && layer.role === "cleaned") this.#lose(layer);
      else this.#complain(error);
    }
  }

  /** @param {Layer} layer */
  #lose(layer) {
    const { state, error } = layer.job ?? { state: "cancelled" };
    if (layer.role === "cleaned") this.#drop(layer);
    layer.job = null;
    this.changed.emit();
    if (state === "failed") this.failed.emit(new Error(error?.detail ?? error?.title ?? state));
    this.ended.emit({ layer, state });
  }

  /** @param {AbortSignal} signal */
  async #findRegions(signal) {
    const id = this.original?.recording.id;
    try {
      for (;;) {
        const answer = await this.service.json(`${recordingPath(id)}/noise-regions?limit=5`, { signal });
        this.regions = answer.regions;
        this.changed.emit();
        if (answer.complete !== false) return;
        const { job, state } = this.original?.recording.waveform ?? {};
        if (state === "failed") return;
        if (job) await this.service.json(`/v1/jobs/${job}?wait=5`, { signal });
      }
    } catch (error) {
      // Suggestions are a help, not a need.
      if (!isAbort(error)) this.regions = [];
    }
  }

  /** @param {unknown} error */
  #complain(error) {
    if (!isAbort(error)) this.failed.emit(error instanceof Error ? error : new Error(String(error)));
  }
}
