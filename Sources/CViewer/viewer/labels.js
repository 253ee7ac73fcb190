// @ts-check
import { byStart, LabelTiles } from "./labeltiles.js";
import { afterFrame } from "./page.js";
import { growingPause, isAbort, pause, recordingPath, Refusal } from "./service.js";
import { Signal } from "./signal.js";
import { texts } from "./texts.js";
import { isSame, normal } from "./words.js";

// The label tracks of the open recording. A change appears in the tiles immediately. Saving it replaces the track, so it
// reads the whole track (which the browser takes from its cache if nobody changed it), applies the changes to it and sends
// it back with If-Match. If somebody else changed the track in between, the changes are applied to the newer version.
// Changes wait for the service, also when another track or recording is shown by then; so does a track that was begun here.

/**
 * @typedef {import("./words.js").Label} Label
 * @typedef {import("./labeltiles.js").Change} Change
 * @typedef {{ id: string, name: string, kind: string, language: string | null, count: number, words: number, start: number | null, end: number | null, inherited: boolean, changed_at: string }} Track
 */

/**
 * The changes of a track that the service doesn't have yet, the version in which they were made (empty: unknown), whether
 * an attempt to save them has failed, and the track if the service doesn't have that either.
 * @typedef {{ path: string, etag: string, changes: Change[], isRepeated: boolean, begun: Track | null }} Edits
 */

/** How long changes are collected before they are saved, in milliseconds. */
const savePace = 400;
/** How often the page looks for what others have changed, in milliseconds. */
const lookPace = 4000;
/** How the ids of tracks begin that were begun here. */
const localPrefix = "begun-";

export class Labels {
  /**
   * The tracks or the chosen one have changed.
   * @type {Signal<void>}
   */
  changed = new Signal();
  /**
   * Another track is shown, or none.
   * @type {Signal<void>}
   */
  opened = new Signal();
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
  /**
   * What has to be saved, by the tracks' paths.
   * @type {Map<string, Edits>}
   */
  #edits = new Map();
  /** @type {Promise<void> | null} */
  #saving = null;
  /** How many times in a row the service couldn't save. */
  #setbacks = 0;
  #saveTimer = 0;
  /**
   * The steps in which labels were added.
   * @type {WeakMap<Label, import("./undo.js").Step>}
   */
  #additions = new WeakMap();
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
      const { signal } = this.#control;
      // What is drawn is asked for first.
      if (this.#recording) void afterFrame().then(() => { if (!signal.aborted) void this.load(); });
    });
    // Labels inside a file become tracks while it is read.
    session.ended.subscribe(({ layer }) => { if (layer.role === "original") void this.load(); });
    addEventListener("beforeunload", event => { if (this.#edits.size) event.preventDefault(); });
    void this.#lookOut();
  }

  /** Shows what others change. */
  async #lookOut() {
    for (;;) {
      await pause(lookPace);
      // What fails is asked for again.
      if (!document.hidden && this.#recording && !this.#edits.size) await this.#look().catch(() => { });
    }
  }

  async #look() {
    const { signal } = this.#control, { track } = this, { tracks } = await this.service.json(this.path, { signal });
    signal.throwIfAborted();
    if (this.#edits.size || JSON.stringify(tracks) === JSON.stringify(this.tracks)) return;
    const now = tracks.find((/** @type {Track} */ { id }) => id === track?.id);
    this.#set(tracks, now ?? tracks[0] ?? null);
    if (now && now.changed_at !== track?.changed_at) this.tiles.turnTo("", true);
  }

  get path() { return `${recordingPath(this.#recording)}/labels`; }

  /**
   * Reads the list of tracks.
   * @param {string} [chosen] the track to choose; the chosen one stays if it still exists
   */
  async load(chosen = this.track?.id) {
    const { signal } = this.#control;
    try {
      const { tracks } = await this.service.json(this.path, { signal });
      for (const { begun, path } of this.#edits.values()) if (begun && path.startsWith(this.path)) tracks.push(begun);
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
    const left = this.#edits.get(this.tiles.path), path = this.track ? `${this.path}/${this.track.id}` : "";
    if (left) left.etag = this.tiles.etag;
    this.tiles.open(path, this.#edits.get(path)?.changes ?? [], this.track?.id.startsWith(localPrefix));
    this.opened.emit();
  }

  #divide() { this.tiles.divide(this.track ?? { start: 0, end: 0, count: 0 }, this.session.duration); }

  /** @param {string} id */
  choose(id) {
    void this.save();
    this.#set(this.tracks, this.tracks.find(track => track.id === id) ?? null);
  }

  // Changes

  /**
   * Begins a track, which the service gets with its first label.
   * @param {string} name
   */
  begin(name) {
    /** @type {Track} */
    const track = {
      id: `${localPrefix}${Date.now()}`, name, kind: "labels", language: null, count: 0, words: 0, start: null, end: null,
      inherited: false, changed_at: "",
    };
    this.#set([...this.tracks, track], track);
  }

  /**
   * Changes a label, adds one or removes one, as a step that can be undone.
   * @param {Change} change
   * @returns {Label | null} the label after it
   */
  edit(change) {
    const { before } = change, after = change.after && normal(change.after), { track } = this;
    if (before && after && isSame(before, after)) return before;
    if (!this.service.credentials.allows("write")) {
      this.told.emit({ text: texts.notShared, isError: true });
      return before;
    }
    const forth = { before, after }, back = { before: after, after: before };
    const perform = (/** @type {Change} */ done) => {
      // A track that was begun here gets another id.
      const id = track?.id ?? "";
      if (this.track?.id !== id && this.tracks.some(other => other.id === id)) this.choose(id);
      if (this.track?.id === id) this.#perform(done);
    };
    const step = { undo: () => perform(back), redo: () => perform(forth), isOfView: true };
    this.undo.add(step);
    if (!before && after) this.#additions.set(after, step);
    this.#perform(forth);
    return after;
  }

  /** Takes back a label that was added, as if it never had been. */
  withdraw(/** @type {Label} */ label) {
    const step = this.#additions.get(label);
    if (step) this.undo.forget(step);
    this.#perform({ before: label, after: null });
  }

  #perform(/** @type {Change} */ change) {
    const { path, etag, pending } = this.tiles;
    if (!path) return;
    pending.push(change);
    this.#edits.set(path, this.#edits.get(path) ?? {
      path, etag, changes: pending, isRepeated: false, begun: this.track?.id.startsWith(localPrefix) ? this.track : null });
    this.tiles.apply(change);
    if (this.track) this.track.count += net([change]);
    this.#divide();
    clearTimeout(this.#saveTimer);
    this.#saveTimer = setTimeout(() => this.save(), savePace);
  }

  /** Saves all changes, of all tracks. */
  async save() {
    clearTimeout(this.#saveTimer);
    for (let edits; (edits = this.#edits.values().next().value);) {
      this.#saving ??= this.#send(edits).finally(() => { this.#saving = null; });
      await this.#saving;
    }
  }

  /** Saves the changes of one track. If the service can't for now, they stay, and it returns when it is time to try again. */
  async #send(/** @type {Edits} */ edits) {
    const count = edits.changes.length;
    if (edits.begun && !net(edits.changes)) {
      // It never had a label that stayed.
      this.#finish(edits, count);
      const rest = this.tracks.filter(track => track !== edits.begun);
      return this.#set(rest, this.track === edits.begun ? rest[0] ?? null : this.track);
    }
    const merged = await this.#merge(edits).catch(error => this.#postpone(edits, error));
    if (!merged) return;
    const { lost, isMerged, etag, about } = merged, { path } = edits;
    this.#finish(edits, count);
    [edits.etag, edits.isRepeated, this.#setbacks] = [etag, false, 0];
    if (isMerged) this.told.emit({ text: lost ? texts.labelsLost : texts.labelsMerged, isError: lost > 0 });
    const track = this.tracks.find(({ id }) => path === `${this.path}/${id}`);
    if (track) Object.assign(track, about, { count: about.count + net(edits.changes) });
    if (path === this.tiles.path) this.tiles.turnTo(etag, isMerged);
    this.changed.emit();
  }

  /** Drops the oldest changes of a track, which need not be saved any more. */
  #finish(/** @type {Edits} */ edits, /** @type {number} */ count) {
    edits.changes.splice(0, count);
    if (!edits.changes.length) this.#edits.delete(edits.path);
  }

  /** Returns when it is time for another attempt; changes that the service would refuse again are dropped. */
  async #postpone(/** @type {Edits} */ edits, /** @type {unknown} */ error) {
    const { path } = edits;
    edits.isRepeated = true;
    if (error instanceof Refusal && error.code === "unreachable") return this.service.untilBack();
    if (isFinal(error)) {
      this.#complain(error);
      this.#finish(edits, edits.changes.length);
      this.#setbacks = 0;
      if (path !== this.tiles.path) return;
      // What the service has is shown.
      this.tiles.turnTo("", true);
      return this.load();
    }
    // Other tracks have their turn first.
    this.#edits.delete(path);
    this.#edits.set(path, edits);
    // A single failure isn't worth a word.
    if (this.#setbacks === 1) this.#complain(error);
    await pause(growingPause(this.#setbacks++, error instanceof Refusal ? error.seconds : 0));
  }

  /** Applies changes to the service's version, also if it is newer than the one in which they were made. */
  async #merge(/** @type {Edits} */ edits) {
    const all = [...edits.changes];
    if (edits.begun) await this.#found(edits, edits.begun);
    const { path, etag: left, isRepeated } = edits;
    const known = path === this.tiles.path ? this.tiles.etag : left;
    for (let attempt = 0; ; attempt++) {
      const answer = await this.service.fetch(path), match = answer.headers.get("ETag") ?? "";
      /** @type {{ labels: (Label & { id?: string })[] }} */
      const { labels } = await answer.json();
      const had = new Set(labels);
      let lost = 0;
      for (const { before, after } of all) {
        // An attempt that failed may have been carried out all the same.
        if (isRepeated && after && labels.some(label => isSame(label, after))) continue;
        const at = before ? labels.findIndex(label => isSame(label, before)) : labels.length;
        if (at < 0) lost++;
        else labels.splice(at, before ? 1 : 0, ...after ? [{ ...after, id: labels[at]?.id }] : []);
      }
      const ids = new Set(labels.map(({ id }) => id));
      const set = labels.filter(label => !had.has(label)), remove = [...had].map(({ id }) => id).filter(id => !ids.has(id));
      try {
        const saved = await this.service.fetch(path, { method: "PATCH", body: { set, remove }, match });
        const etag = saved.headers.get("ETag") ?? "", about = await saved.json();
        return { lost, isMerged: known !== "" && match !== known, etag, about };
      } catch (error) {
        if (!(error instanceof Refusal && error.status === 412) || attempt > 4) throw error;
      }
    }
  }

  /** Gives the service a track that was begun here. */
  async #found(/** @type {Edits} */ edits, /** @type {Track} */ track) {
    const { path } = edits, tracks = path.slice(0, path.lastIndexOf("/")), query = new URLSearchParams({ name: track.name, kind: track.kind });
    // An attempt that failed may have been carried out all the same.
    const listed = edits.isRepeated ? (await this.service.json(tracks)).tracks : [];
    const known = listed.find((/** @type {Track} */ { id, name, count }) => name === track.name && !count && !this.tracks.some(other => other.id === id));
    const { id } = known ?? await this.service.json(`${tracks}?${query}`, { method: "POST", content: '{"labels":[]}' });
    this.#edits.delete(path);
    [track.id, edits.path, edits.begun] = [id, `${tracks}/${id}`, null];
    this.#edits.set(edits.path, edits);
    this.tiles.rename(path, edits.path);
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

/** Whether the service would refuse the same changes again. Too many requests and failures of servers pass. */
const isFinal = (/** @type {unknown} */ error) => (
  error instanceof Refusal && error.status >= 400 && error.status < 500 && error.status !== 429);
/** How many labels more there are after some changes. */
const net = (/** @type {Change[]} */ changes) => changes.reduce((sum, { before, after }) => sum + Number(!!after) - Number(!!before), 0);
