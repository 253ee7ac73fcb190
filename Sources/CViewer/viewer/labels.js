// @ts-check
import { byStart, LabelTiles } from "./labeltiles.js";
import { isAbort, recordingPath, Refusal } from "./service.js";
import { Signal } from "./signal.js";
import { texts } from "./texts.js";
import { isSame, normal } from "./words.js";

// The label tracks of the open recording. A change appears in the tiles immediately. Saving it replaces the track, so it
// reads the whole track (which the browser takes from its cache if nobody changed it), applies the changes to it and sends
// it back with If-Match. If somebody else changed the track in between, the changes are applied to the newer version.

/**
 * @typedef {import("./words.js").Label} Label
 * @typedef {import("./labeltiles.js").Change} Change
 * @typedef {{ id: string, name: string, kind: string, language: string | null, count: number, words: number, start: number | null, end: number | null, inherited: boolean }} Track
 */

/** How long changes are collected before they are saved, in milliseconds. */
const savePace = 400;

export class Labels {
  /**
   * The tracks or the chosen one have changed.
   * @type {Signal<void>}
   */
  changed = new Signal();
  /**
   * Something that a person should know.
   * @type {Signal<{ text: string, isError: boolean }>}
   */
  told = new Signal();

  /** @type {Track[]} */
  tracks = [];
  /** @type {Track | null} */
  track = null;

  /** The recording whose tracks these are. */
  #recording = "";
  /** @type {Promise<void> | null} */
  #saving = null;
  #saveTimer = 0;
  #control = new AbortController();

  /**
   * @param {import("./service.js").Service} service
   * @param {import("./session.js").Session} session
   * @param {import("./undo.js").Undo} undo
   */
  constructor(service, session, undo) {
    this.service = service;
    this.session = session;
    this.undo = undo;
    this.tiles = new LabelTiles(service);
    this.tiles.failed.subscribe(error => this.#complain(error));
    session.opened.subscribe(() => {
      void this.save();
      this.#set([], null);
      this.#recording = session.original?.recording.id ?? "";
      if (this.#recording) void this.load();
    });
    // Labels inside a file become tracks while it is read.
    session.ended.subscribe(({ layer }) => { if (layer.role === "original") void this.load(); });
    addEventListener("beforeunload", event => { if (this.tiles.pending.length || this.#saving) event.preventDefault(); });
  }

  get path() { return `${recordingPath(this.#recording)}/labels`; }
  get #trackPath() { return `${this.path}/${this.track?.id}`; }

  /**
   * Reads the list of tracks.
   * @param {string} [chosen] the track to choose; the chosen one stays if it still exists
   */
  async load(chosen = this.track?.id) {
    const { signal } = this.#control;
    try {
      const { tracks } = await this.service.json(this.path, { signal });
      this.#set(tracks, tracks.find((/** @type {Track} */ { id }) => id === chosen) ?? tracks[0] ?? null);
    } catch (error) {
      if (!isAbort(error)) this.#complain(error);
    }
  }

  #set(/** @type {Track[]} */ tracks, /** @type {Track | null} */ track) {
    const isOther = track?.id !== this.track?.id;
    [this.tracks, this.track] = [tracks, track];
    if (isOther || !track) this.#open();
    this.changed.emit();
    this.#divide();
  }

  /** Drops what belongs to the track before. */
  #open() {
    this.#control.abort();
    this.#control = new AbortController();
    this.tiles.open(this.track ? this.#trackPath : "");
  }

  #divide() { this.tiles.divide(this.track ?? { start: 0, end: 0, count: 0 }, this.session.duration); }

  /** @param {string} id */
  async choose(id) {
    await this.save();
    this.#set(this.tracks, this.tracks.find(track => track.id === id) ?? null);
  }

  // Changes

  /**
   * Changes a label, adds one or removes one, as a step that can be undone.
   * @param {Change} change
   * @returns {Label | null} the label after it
   */
  edit(change) {
    const { before } = change, after = change.after && normal(change.after), id = this.track?.id;
    if (before && after && isSame(before, after)) return before;
    if (!this.service.credentials.allows("write")) {
      this.told.emit({ text: texts.notShared, isError: true });
      return before;
    }
    const forth = { before, after }, back = { before: after, after: before };
    const perform = async (/** @type {Change} */ done) => {
      if (this.track?.id !== id && this.tracks.some(track => track.id === id)) await this.choose(id ?? "");
      if (this.track?.id === id) this.#perform(done);
    };
    this.undo.add({ undo: () => void perform(back), redo: () => void perform(forth), isOfView: true });
    this.#perform(forth);
    return after;
  }

  #perform(/** @type {Change} */ change) {
    this.tiles.pending.push(change);
    this.tiles.apply(change);
    if (this.track) this.track.count += net([change]);
    this.#divide();
    clearTimeout(this.#saveTimer);
    this.#saveTimer = setTimeout(() => this.save(), savePace);
  }

  /** Saves all changes. */
  async save() {
    clearTimeout(this.#saveTimer);
    while (this.tiles.pending.length || this.#saving) {
      this.#saving ??= this.#send().finally(() => { this.#saving = null; });
      await this.#saving;
    }
  }

  async #send() {
    const path = this.#trackPath, id = this.track?.id, changes = [...this.tiles.pending];
    try {
      const { lost, isMerged, saved } = await this.#merge(path, changes), about = await saved.json();
      if (isMerged) this.told.emit({ text: lost ? texts.labelsLost : texts.labelsMerged, isError: lost > 0 });
      if (!this.track || this.track.id !== id) return;
      this.tiles.pending = this.tiles.pending.slice(changes.length);
      Object.assign(this.track, about, { count: about.count + net(this.tiles.pending) });
      this.tiles.turnTo(saved.headers.get("ETag") ?? "", isMerged);
      this.changed.emit();
    } catch (error) {
      if (error instanceof Refusal && error.code === "unreachable") return this.service.untilBack();
      this.#complain(error);
      if (this.track?.id !== id) return;
      // The changes are lost; what the service has is shown.
      this.tiles.pending = [];
      this.tiles.turnTo("", true);
      await this.load();
    }
  }

  /** Applies changes to the service's version, also if it is newer than the one that is shown. */
  async #merge(/** @type {string} */ path, /** @type {Change[]} */ changes) {
    const known = this.tiles.etag;
    for (let attempt = 0; ; attempt++) {
      const answer = await this.service.fetch(path), etag = answer.headers.get("ETag") ?? "";
      /** @type {{ labels: Label[] }} */
      const { labels } = await answer.json();
      let lost = 0;
      for (const { before, after } of changes) {
        const at = before ? labels.findIndex(label => isSame(label, before)) : labels.length;
        if (at < 0) lost++;
        else labels.splice(at, before ? 1 : 0, ...after ? [after] : []);
      }
      try {
        const saved = await this.service.fetch(path, { method: "PUT", body: { labels: labels.sort(byStart) }, match: etag });
        return { lost, isMerged: known !== "" && etag !== known, saved };
      } catch (error) {
        if (!(error instanceof Refusal && error.status === 412) || attempt > 4) throw error;
      }
    }
  }

  // Tracks

  /**
   * Adds a track from a file and chooses it.
   * @param {Blob | string} content
   * @param {{ name: string, kind: string, language?: string | null }} about
   */
  async add(content, { name, kind, language }) {
    await this.save();
    const query = new URLSearchParams({ name, kind, ...language && { language } });
    const track = await this.service.json(`${this.path}?${query}`, { method: "POST", content });
    await this.load(track.id);
    return track;
  }

  /**
   * @param {Track} track
   * @param {{ name?: string, kind?: string }} members
   */
  async change(track, members) {
    await this.save();
    try {
      await this.service.json(`${this.path}/${track.id}`, { method: "PATCH", body: members, match: await this.#etagOf(track) });
    } catch (error) {
      this.#complain(error);
    }
    this.tiles.etag = "";
    await this.load();
  }

  /** Removes a track, as a step that can be undone. Returns that step, or null if it failed. */
  async remove(/** @type {Track} */ track) {
    await this.save();
    const path = `${this.path}/${track.id}`;
    try {
      const answer = await this.service.fetch(path), content = await answer.text(), { tracks } = await this.service.json(this.path);
      // It may have been renamed since it was listed.
      const about = tracks.find((/** @type {Track} */ other) => other.id === track.id) ?? track;
      await this.service.json(path, { method: "DELETE", match: answer.headers.get("ETag") ?? "" });
      await this.load();
      let id = track.id;
      const step = {
        undo: async () => { id = (await this.add(content, about)).id; },
        redo: async () => {
          const again = this.tracks.find(other => other.id === id);
          if (!again) return;
          await this.service.json(`${this.path}/${id}`, { method: "DELETE", match: await this.#etagOf(again) });
          await this.load();
        },
        isOfView: true,
      };
      this.undo.add(step);
      return step;
    } catch (error) {
      this.#complain(error);
      return null;
    }
  }

  async #etagOf(/** @type {Track} */ { id }) {
    const answer = await this.service.fetch(`${this.path}/${id}?start=0&end=0.000001`);
    await answer.body?.cancel();
    return answer.headers.get("ETag") ?? "";
  }

  #complain(/** @type {unknown} */ error) { this.told.emit({ text: String(/** @type {Error} */(error).message), isError: true }); }
}

/** How many labels more there are after some changes. */
const net = (/** @type {Change[]} */ changes) => changes.reduce((sum, { before, after }) => sum + Number(!!after) - Number(!!before), 0);
