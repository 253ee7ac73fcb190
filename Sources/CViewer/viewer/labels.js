// @ts-check
import { isAbort, recordingPath, Refusal } from "./service.js";
import { Signal } from "./signal.js";
import { texts } from "./texts.js";
import { isSame, normal } from "./words.js";

// The label tracks of the open recording. Labels are read in tiles: stretches of time with about 256 labels each, of which
// those in use are kept. A change appears in the tiles immediately. Saving it replaces the track, so it reads the whole
// track (which the browser takes from its cache if nobody changed it), applies the changes to it and sends it back with
// If-Match. If somebody else changed the track in between, the changes are applied to the newer version.

/**
 * @typedef {import("./words.js").Label} Label
 * @typedef {import("./view.js").Span} Span
 * @typedef {{ id: string, name: string, kind: string, language: string | null, count: number, words: number, start: number | null, end: number | null, inherited: boolean }} Track
 * @typedef {{ before: Label | null, after: Label | null }} Change null: there is no label before (added) or after (removed)
 */

/** The number of labels that a tile should have, of the tiles that are kept, and the most tiles of a recording. */
const tileLabels = 256, keptTiles = 64, mostTiles = 4096;
/** The most tiles of one request; a longer stretch has too many labels to be shown one by one. */
export const mostWanted = 16;
/** How long changes are collected before they are saved, in milliseconds. */
const savePace = 400;

export class Labels {
  /**
   * The tracks or the chosen one have changed.
   * @type {Signal<void>}
   */
  changed = new Signal();
  /**
   * Labels of the chosen track have arrived or changed.
   * @type {Signal<void>}
   */
  arrived = new Signal();
  /**
   * Something that a person should know.
   * @type {Signal<{ text: string, isError: boolean }>}
   */
  told = new Signal();

  /** @type {Track[]} */
  tracks = [];
  /** @type {Track | null} */
  track = null;
  /** Seconds of a tile of the chosen track, and the number of tiles. */
  tileSeconds = 1;
  tileCount = 0;

  /** The recording whose tracks these are. */
  #recording = "";
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
  #etag = "";
  /** @type {Change[]} */
  #changes = [];
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
    session.opened.subscribe(() => {
      void this.save();
      this.#set([], null);
      this.#recording = session.original?.recording.id ?? "";
      if (this.#recording) void this.load();
    });
    // Labels inside a file become tracks while it is read.
    session.ended.subscribe(({ layer }) => { if (layer.role === "original") void this.load(); });
    addEventListener("beforeunload", event => { if (this.#changes.length || this.#saving) event.preventDefault(); });
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
    if (isOther || !track) this.#forget();
    this.#divide();
    this.changed.emit();
    this.arrived.emit();
    void this.#fetch();
  }

  /** Drops what has been read, and asks for it again. */
  #forget() {
    this.#control.abort();
    this.#control = new AbortController();
    this.#tiles.clear();
    this.#stale.clear();
    this.#changes = [];
    this.#etag = "";
    this.#isLoading = false;
    this.tileSeconds = 0;
  }

  /** Sets the length of the tiles, which stays while a track is chosen. */
  #divide() {
    const { start, end, count } = this.track ?? { start: 0, end: 0, count: 0 }, whole = Math.max(this.session.duration, end ?? 0, 1);
    const length = count > tileLabels ? (end ?? 0) - (start ?? 0) : whole;
    this.tileSeconds ||= 2 ** Math.ceil(Math.log2(Math.max(tileLabels * length / Math.max(tileLabels, count), whole / mostTiles)));
    this.tileCount = Math.ceil(whole / this.tileSeconds + 1e-9);
  }

  /** @param {string} id */
  async choose(id) {
    await this.save();
    this.#set(this.tracks, this.tracks.find(track => track.id === id) ?? null);
  }

  // Reading

  #range(/** @type {Span} */ { start, end }) {
    return [Math.max(0, Math.floor(start / this.tileSeconds)), Math.min(this.tileCount, Math.ceil(end / this.tileSeconds + 1e-9))];
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
        const isRepeated = index > first && label.start < index * this.tileSeconds && this.#tiles.has(index - 1);
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
    if (this.#isLoading || !this.track) return;
    this.#isLoading = true;
    const { signal } = this.#control;
    try {
      for (let run; (run = this.#missing()) && !signal.aborted;) {
        const [first, end] = run, { tileSeconds } = this;
        const path = `${this.#trackPath}?start=${first * tileSeconds}&end=${end * tileSeconds}`;
        const answer = await this.service.fetch(path, { signal }), { labels } = await answer.json();
        signal.throwIfAborted();
        if (!this.#isCurrent(answer)) continue;
        for (let index = first; index < end; index++) this.#keep(index, labels);
        for (const change of this.#changes) this.#apply(change);
        this.arrived.emit();
      }
    } catch (error) {
      if (isAbort(error)) return;
      this.#complain(error);
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
    const start = index * this.tileSeconds, end = start + this.tileSeconds;
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
    const etag = answer.headers.get("ETag") ?? "", isCurrent = !this.#etag || etag === this.#etag;
    if (!isCurrent) this.#age();
    this.#etag = etag;
    return isCurrent;
  }

  #age() { for (const index of this.#tiles.keys()) this.#stale.add(index); }

  /**
   * Finds labels with a text, in one stretch after the other until there are enough.
   * @param {string} text
   * @param {number} from in seconds
   * @param {number} enough
   * @param {AbortSignal} signal
   * @returns {Promise<{ found: Label[], next: number | null }>} `next`: where to go on; null at the end
   */
  async search(text, from, enough, signal) {
    const found = [], step = this.tileSeconds * mostWanted, last = this.tileCount * this.tileSeconds;
    let at = from;
    while (at < last && found.length < enough) {
      const path = `${this.#trackPath}?q=${encodeURIComponent(text)}&start=${at}&end=${at + step}`, start = at;
      const { labels } = await this.service.json(path, { signal });
      found.push(...labels.filter((/** @type {Label} */ label) => label.start >= start || !start));
      at += step;
    }
    return { found, next: at < last ? at : null };
  }

  // Changing

  /**
   * Changes a label, adds one or removes one, as a step that can be undone.
   * @param {Change} change
   * @returns {Label | null} the label after it
   */
  edit(change) {
    const { before } = change, after = change.after && normal(change.after), id = this.track?.id;
    if (before && after && isSame(before, after)) return before;
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
    this.#changes.push(change);
    this.#apply(change);
    if (this.track) this.track.count += net([change]);
    this.#divide();
    this.arrived.emit();
    clearTimeout(this.#saveTimer);
    this.#saveTimer = setTimeout(() => this.save(), savePace);
  }

  #apply(/** @type {Change} */ { before, after }) {
    for (const [index, labels] of this.#tiles) {
      const start = index * this.tileSeconds, rest = before ? labels.filter(label => !isSame(label, before)) : labels;
      const isIn = after && overlaps(after, start, start + this.tileSeconds) && !rest.some(label => isSame(label, after));
      if (isIn || rest.length !== labels.length) this.#tiles.set(index, isIn ? [...rest, after].sort(byStart) : rest);
    }
  }

  /** Saves all changes. */
  async save() {
    clearTimeout(this.#saveTimer);
    while (this.#changes.length || this.#saving) {
      this.#saving ??= this.#send().finally(() => { this.#saving = null; });
      await this.#saving;
    }
  }

  async #send() {
    const path = this.#trackPath, id = this.track?.id, changes = [...this.#changes];
    try {
      const { lost, isMerged, saved } = await this.#merge(path, changes), about = await saved.json();
      if (isMerged) this.told.emit({ text: lost ? texts.labelsLost : texts.labelsMerged, isError: lost > 0 });
      if (!this.track || this.track.id !== id) return;
      this.#changes = this.#changes.slice(changes.length);
      Object.assign(this.track, about, { count: about.count + net(this.#changes) });
      if (isMerged) this.#age();
      this.#etag = saved.headers.get("ETag") ?? "";
      this.arrived.emit();
      this.changed.emit();
      void this.#fetch();
    } catch (error) {
      if (error instanceof Refusal && error.code === "unreachable") return this.service.untilBack();
      this.#complain(error);
      if (this.track?.id !== id) return;
      // The changes are lost; what the service has is shown.
      this.#changes = [];
      this.#age();
      this.#etag = "";
      await this.load();
    }
  }

  /** Applies changes to the service's version, also if it is newer than the one that is shown. */
  async #merge(/** @type {string} */ path, /** @type {Change[]} */ changes) {
    const known = this.#etag;
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
    this.#etag = "";
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
const byStart = (/** @type {Label} */ a, /** @type {Label} */ b) => a.start - b.start;
/** As the service has it: a point belongs to the window that it begins. */
const overlaps = (/** @type {Label} */ { start, end }, /** @type {number} */ from, /** @type {number} */ to) => (
  start < to && (end > from || start === end && start >= from));
