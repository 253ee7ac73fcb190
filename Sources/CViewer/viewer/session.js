// @ts-check
import { recall, remember } from "./memory.js";
import { afterFrame } from "./page.js";
import { explain } from "./problems.js";
import { isAbort, pause, recordingPath, Refusal } from "./service.js";
import { Signal } from "./signal.js";
import { texts, translated } from "./texts.js";
import { Waveform } from "./tiles.js";

/**
 * One recording that is shown.
 * @typedef {object} Layer
 * @property {"original" | "cleaned"} role
 * @property {any} recording as the service describes it
 * @property {Waveform} waveform
 * @property {number} color which of the colors of cleaned waveforms it has
 * @property {boolean} isVisible
 * @property {boolean} isSolo
 * @property {number} revealed frames that are shown; runs after those that are there
 * @property {any} job what makes it, while it is made
 * @property {string} failure why it could not be read; empty if that has not failed
 * @property {boolean} isCanceled whether that job is being canceled, which deletes the recording of a result
 * @property {Promise<any>} asked the last request for the recording
 */

/**
 * @typedef {object} Settings how to clean
 * @property {{ start: number, end: number } | { profile: string } | "auto"} noise
 * @property {string} method
 * @property {number} reduction dB
 * @property {number} sensitivity
 * @property {"denoised" | "residue"} output
 * @property {number} [loudness] of the result, in LUFS; that of the source if it is missing
 * @property {{ boxes: import("./view.js").Box[] }} [edit] sounds that are turned down besides
 */

/**
 * Returns the members of a request that say how to clean: those that the method has.
 * @param {Settings} settings
 */
export const requestOf = ({ noise, method, reduction, sensitivity, ...rest }) => (
  method === "none" ? { method, ...rest } : { noise, method, reduction, ...(method === "voice" ? {} : { sensitivity }), ...rest });

/** The number of colors for cleaned waveforms, and the maximum number of them in a link. */
export const mostColors = 4;
/** The number of results whose settings are remembered. */
const mostRemembered = 50;

/**
 * Returns why a recording could not be read.
 * @param {import("./service.js").Service} service
 * @param {any} recording whose waveform has failed
 * @param {AbortSignal} [signal]
 * @returns {Promise<string>}
 */
export async function failureOf(service, { waveform }, signal) {
  // Jobs are forgotten after a while.
  const job = await service.json(`v1/jobs/${waveform.job}`, { signal }).catch(error => { if (isAbort(error)) throw error; });
  return job?.state === "cancelled" ? texts.readingCanceled : explain(job?.error, texts.unknownFailure);
}

/**
 * The name of a layer: for a result, the part of its recording's name in parentheses.
 * @param {Layer} layer
 */
export const layerName = ({ role, recording }) => role === "original" ? texts.original : labelOf(recording.name) ?? recording.name;

/**
 * The label of a result, in parentheses at the end of its recording's name. Those that the service gives are translated.
 * @param {string} name
 */
export const labelOf = name => {
  const label = /\(([^()]+)\)[^()]*$/.exec(name)?.[1];
  return label === "denoised" ? texts.cleaned : label && translated(label);
};

/**
 * Returns the recording that one was cleaned from; undefined for others, also for a part of a recording.
 * @param {any} recording
 * @returns {string | undefined}
 */
const cleanedFrom = recording => recording?.derived_from?.operation === "denoise" ? recording.derived_from.recording : undefined;

/**
 * Forgets the settings of a result that no longer exists.
 * @param {string} id
 */
export const forgetMade = id => remember("results", (recall("results") ?? []).filter((/** @type {any} */ entry) => entry.result !== id));

/** The open recording, its results, and the jobs in progress. */
export class Session {
  /**
   * Layers were added, removed or changed.
   * @type {Signal<void>}
   */
  changed = new Signal();
  /**
   * An error for a person to read.
   * @type {Signal<Error>}
   */
  failed = new Signal();
  /**
   * A cleaning waits for the service.
   * @type {Signal<void>}
   */
  postponed = new Signal();
  /**
   * A job has succeeded, failed or been canceled.
   * @type {Signal<{ layer: Layer, state: string }>}
   */
  ended = new Signal();
  /**
   * Another recording was opened, or the recording was closed.
   * @type {Signal<void>}
   */
  opened = new Signal();

  /** @type {Layer[]} */
  layers = [];
  /**
   * The best regions to learn the noise from.
   * @type {{ start: number, end: number, score: number, level: number }[]}
   */
  regions = [];
  /** Whether the service still looks for them. */
  isSearching = true;
  /** @type {"mix" | "split"} */
  channels = "mix";
  /**
   * The cleaned layer in front, which is audible and drawn over the others.
   * @type {Layer | null}
   */
  cleaned = null;
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
  /** The cleaned layers, in the order in which they were made. */
  get results() { return this.layers.filter(layer => layer.role === "cleaned"); }
  /** The layers to draw, from back to front; results in progress grow over all others. */
  get shown() {
    const depth = (/** @type {Layer} */ layer) => layer.role === "original" ? 0 : layer.job ? 3 : layer === this.cleaned ? 2 : 1;
    const solo = this.layers.filter(layer => layer.isSolo);
    return (solo.length ? solo : this.layers.filter(layer => layer.isVisible)).sort((a, b) => depth(a) - depth(b));
  }
  /** Seconds. */
  get duration() {
    const { waveform, recording } = this.layers[0] ?? {};
    return (waveform && waveform.totalFrames ? waveform.totalFrames / waveform.sampleRate : recording?.format.duration) || 1;
  }
  /**
   * Returns the layer of a recording, if it is shown.
   * @param {string} id
   */
  layerOf(id) { return this.layers.find(layer => layer.recording.id === id); }

  /**
   * Opens a recording; a derived one over its source, if that still exists, together with others of the same source.
   * @param {any | string} recordingOrID
   * @param {string[]} [others] which others; those that are gone are left out
   */
  async open(recordingOrID, others = []) {
    this.close();
    const { signal } = this.#control;
    try {
      const recording = typeof recordingOrID === "string"
        ? await this.service.json(recordingPath(recordingOrID), { signal }) : recordingOrID;
      signal.throwIfAborted();
      // What is drawn is asked for first, and together with the source.
      const waveform = new Waveform(recording, this.channels);
      this.tiles.want([waveform.whole]);
      const find = (/** @type {string} */ id) => this.service.json(recordingPath(id), { signal })
        .catch(error => { if (!(error instanceof Refusal)) throw error; });
      const sourceID = cleanedFrom(recording), source = sourceID && await find(sourceID);
      const results = await Promise.all(source ? others.slice(0, mostColors - 1).map(find) : []);
      signal.throwIfAborted();
      this.layers = [source ? this.#layer("original", source) : this.#layer("original", recording, waveform)];
      const isResult = (/** @type {any} */ other) => source && cleanedFrom(other) === source.id;
      // Ids begin with their time of creation, so sorting by id gives each its previous color.
      for (const result of [...results, recording].filter(isResult).sort((a, b) => a.id < b.id ? -1 : 1)) {
        this.#add(result, result === recording ? waveform : undefined);
      }
      this.tiles.want(this.layers.map(layer => layer.waveform.whole));
      if (source) this.cleaned = this.layerOf(recording.id) ?? null;
      this.opened.emit();
      this.changed.emit();
      for (const layer of this.layers) void this.#follow(layer, signal);
      void afterFrame().then(() => { if (!signal.aborted) void this.#findRegions(signal); });
    } catch (error) {
      this.#complain(error);
    }
  }

  close() {
    this.#control.abort();
    this.#control = new AbortController();
    for (const layer of this.layers) this.tiles.forget(layer.waveform);
    this.layers = [];
    this.cleaned = null;
    this.regions = [];
    this.isSearching = true;
    this.opened.emit();
    this.changed.emit();
  }

  /**
   * Brings a cleaned layer to the front.
   * @param {Layer} layer
   */
  take(layer) {
    if (layer === this.cleaned) return;
    this.cleaned = layer;
    this.changed.emit();
  }

  /**
   * Shows a result of the open recording.
   * @param {any} recording
   * @returns {Layer | null} its layer; null where it is not of what is open
   */
  add(recording) {
    const present = this.layerOf(recording.id), { original } = this;
    if (present || !original || cleanedFrom(recording) !== original.recording.id) return present ?? null;
    const layer = this.#add(recording);
    void this.#follow(layer, this.#control.signal);
    return layer;
  }

  /**
   * Adds a layer for a recording unless it has one.
   * @param {any} recording made of the original
   * @param {Waveform} [waveform] its waveform, if that is being loaded
   */
  #add(recording, waveform) {
    const layer = this.layerOf(recording.id) ?? this.#layer("cleaned", recording, waveform);
    if (!this.layers.includes(layer)) this.layers.push(layer);
    this.cleaned ??= layer;
    return layer;
  }

  /**
   * Shows each channel in its own lane, or their mean.
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
   * @param {string} label what the result is called beside others, in brackets
   */
  async clean(settings, label) {
    const original = this.original, { signal } = this.#control;
    if (!original) return;
    try {
      const job = await this.#begin(`${recordingPath(original.recording.id)}/denoise`, settings);
      const path = recordingPath(job.result.recording), { name } = await this.service.json(path, { signal });
      const result = await this.service.json(path, { method: "PATCH", body: { name: this.#unused(name, label) } });
      signal.throwIfAborted();
      remember("results", [{ source: original.recording.id, result: result.id, settings }, ...recall("results") ?? []].slice(0, mostRemembered));
      const layer = this.#add(result);
      layer.job = job;
      this.changed.emit();
      void this.#follow(layer, signal);
    } catch (error) {
      this.#complain(error);
    }
  }

  /**
   * Sends a request for a job, and again when the service is reachable. The key makes that safe if only the response was lost.
   * @param {string} path
   * @param {Settings} settings
   */
  async #begin(path, settings) {
    const { signal } = this.#control, key = `${Date.now()}-${Math.random()}`;
    for (;;) {
      try {
        return await this.service.json(path, { method: "POST", body: requestOf(settings), key });
      } catch (error) {
        if (!(error instanceof Refusal && error.code === "unreachable")) throw error;
      }
      this.postponed.emit();
      await this.service.untilBack();
      signal.throwIfAborted();
    }
  }

  /**
   * Returns the result that was made with the same settings, if it still exists.
   * @param {Settings} settings
   */
  async madeWith(settings) {
    const source = this.original?.recording.id, wanted = JSON.stringify(settings);
    const made = (recall("results") ?? []).find((/** @type {any} */ entry) => entry.source === source && JSON.stringify(entry.settings) === wanted);
    return made ? this.service.json(recordingPath(made.result)).catch(() => null) : null;
  }

  /**
   * Cancels the job in progress.
   * @param {Layer} layer
   */
  async cancel(layer) {
    const id = layer.job?.id ?? layer.recording.waveform.job;
    // Nothing asks for a result that is being deleted: the browser would log the 404.
    layer.isCanceled = true;
    if (layer.role === "cleaned") this.tiles.forget(layer.waveform);
    this.changed.emit();
    await layer.asked.catch(() => { });
    try {
      await this.service.json(`v1/jobs/${id}`, { method: "DELETE" });
    } catch (error) {
      layer.isCanceled = false;
      if (layer.waveform.isForgotten) layer.waveform = new Waveform(layer.recording, this.channels);
      // It has ended in the meantime.
      if (!(error instanceof Refusal && error.status === 409)) this.#complain(error);
    }
  }

  /**
   * Returns a result's name: the source's with the label in parentheses, and a number if that name is taken. The ending
   * stays, because it depends on what the service can write.
   * @param {string} name
   * @param {string} label
   */
  #unused(name, label) {
    const labelled = (/** @type {string} */ text) => name.replace(/\([^()]*\)(\.\w+)?$/, (_, ending = "") => `(${text})${ending}`);
    let unused = labelled(label);
    for (let k = 2; k < 100 && this.layers.some(({ recording }) => recording.name === unused); k++) unused = labelled(`${label} ${k}`);
    return unused;
  }

  /**
   * Starts reading a recording again after a failure.
   * @param {string} id
   */
  async readAgain(id) {
    try {
      await this.service.json(`${recordingPath(id)}/waveform`, { method: "POST" });
      if (this.original?.recording.id === id) await this.open(id);
    } catch (error) {
      this.#complain(error);
    }
  }

  /**
   * Removes a layer from the view; the recording stays.
   * @param {Layer} layer
   */
  remove(layer) {
    this.#drop(layer);
    this.changed.emit();
  }

  /** @param {Layer} layer */
  #drop(layer) {
    this.tiles.forget(layer.waveform);
    this.layers = this.layers.filter(other => other !== layer);
    if (layer === this.cleaned) this.cleaned = this.results.at(-1) ?? null;
  }

  /**
   * @param {"original" | "cleaned"} role
   * @param {any} recording
   * @returns {Layer}
   */
  #layer(role, recording, waveform = new Waveform(recording, this.channels)) {
    const used = this.results.map(layer => layer.color);
    const free = [...Array(mostColors).keys()].find(color => !used.includes(color));
    return {
      role, recording, waveform, color: free ?? used.length % mostColors, isVisible: true, isSolo: false, job: null,
      failure: "", isCanceled: false, asked: Promise.resolve(), revealed: waveform.complete ? Infinity : 0,
    };
  }

  /**
   * Follows a recording in progress and emits each step.
   * @param {Layer} layer
   * @param {AbortSignal} signal
   */
  async #follow(layer, signal) {
    const isGrowing = () => ["queued", "building"].includes(layer.recording.waveform.state)
      || layer.recording.sha256 === null;
    try {
      while (isGrowing() && this.layers.includes(layer)) {
        const { job } = layer.recording.waveform;
        // A link doesn't share jobs.
        if (this.service.credentials.share) await pause(1000, signal);
        else if (job) layer.job = await this.service.json(`v1/jobs/${job}?wait=20`, { signal });
        if (!this.layers.includes(layer)) return;
        if (layer.job && ["cancelled", "failed"].includes(layer.job.state)) return this.#lose(layer);
        if (layer.isCanceled) continue;
        layer.asked = this.service.json(recordingPath(layer.recording.id), { signal });
        layer.recording = await layer.asked;
        layer.waveform.learn(layer.recording);
        this.changed.emit();
      }
      if (layer.recording.waveform.state === "failed") layer.failure = await failureOf(this.service, layer.recording, signal);
      const hadJob = layer.job !== null;
      layer.job = null;
      if (hadJob && this.results.includes(layer)) this.cleaned = layer;
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
    if (layer.role === "cleaned") {
      this.#drop(layer);
      forgetMade(layer.recording.id);
    } else layer.failure = state === "cancelled" ? texts.readingCanceled : explain(error, texts.unknownFailure);
    layer.job = null;
    this.changed.emit();
    if (state === "failed" && layer.role === "cleaned") this.failed.emit(new Error(explain(error, texts.unknownFailure)));
    this.ended.emit({ layer, state });
  }

  /** @param {AbortSignal} signal */
  async #findRegions(signal) {
    const id = this.original?.recording.id;
    try {
      for (;;) {
        const answer = await this.service.json(`${recordingPath(id)}/noise-regions?limit=5`, { signal });
        this.regions = answer.regions;
        this.isSearching = answer.complete === false;
        this.changed.emit();
        if (answer.complete !== false) return;
        const { job, state } = this.original?.recording.waveform ?? {};
        if (state === "failed") return;
        const made = job ? await this.service.json(`v1/jobs/${job}?wait=5`, { signal }) : await pause(1000, signal);
        // Until it is read again, there won't be more.
        if (["cancelled", "failed"].includes(made?.state)) return;
      }
    } catch (error) {
      // Suggestions are optional.
      if (isAbort(error)) return;
      this.regions = [];
      this.isSearching = false;
      this.changed.emit();
    }
  }

  /** @param {unknown} error */
  #complain(error) {
    if (!isAbort(error)) this.failed.emit(error instanceof Error ? error : new Error(String(error)));
  }
}
