// @ts-check
import { listed } from "./language.js";
import { announce, tell } from "./messages.js";
import { copy, find, label, part } from "./page.js";
import { explain } from "./problems.js";
import { isAbort } from "./service.js";
import { texts, translated } from "./texts.js";

// The controls of labels: adding them, choosing what is shown, and the dialog of tracks with import and export.

/** @typedef {import("./labels.js").Track} Track */

/** What a file's ending says about its content. */
const kinds = /** @type {Record<string, string>} */ ({ vtt: "transcript", srt: "transcript", lrc: "lyrics", txt: "labels", tsv: "labels", json: "transcript" });
const trackKinds = /** @type {const} */ (["labels", "transcript", "lyrics", "chapters"]);
const formats = /** @type {Record<string, { ending: string, name: string }>} */ ({
  vtt: { ending: "vtt", name: "WebVTT" }, srt: { ending: "srt", name: "SRT" }, lrc: { ending: "lrc", name: "LRC" },
  audacity: { ending: "txt", name: "Audacity" }, json: { ending: "json", name: "JSON" }, chapters: { ending: "chapters.json", name: "Podcasting 2.0" },
});
/** What a format can't hold, by the name that the service gives it. */
const lost = /** @type {Record<string, string>} */ ({
  "empty-labels": texts.lostEmpty, ends: texts.lostEnds, "line-breaks": texts.lostBreaks, markup: texts.lostMarkup, precision: texts.lostPrecision,
  speakers: texts.lostSpeakers, "word-ends": texts.lostWordEnds, words: texts.lostWords, images: texts.lostImages, urls: texts.lostLinks,
  locations: texts.lostPlaces, hidden: texts.lostHidden, frequencies: texts.lostFrequencies,
});
/** The largest file of labels that the service reads, in bytes. */
const mostBytes = 16 * 2 ** 20;
/** A key that is held this long marks a stretch, in milliseconds. */
const hold = 300;

const ending = (/** @type {string} */ name) => /\.([^.]+)$/.exec(name)?.[1].toLowerCase() ?? "";
/** Whether a file's name says that it has labels. */
export const isLabelFile = (/** @type {File} */ { name }) => ending(name) in kinds;

export class Labelling {
  /** What listens while a key marks a stretch. */
  #marking = new AbortController();

  /**
   * @param {import("./labels.js").Labels} labels
   * @param {import("./view.js").View} view
   * @param {import("./player.js").Player} player
   * @param {{ editor: import("./editing.js").LabelEditor } & Record<"transcript" | "singing", { isShown: boolean, show: (isShown: boolean) => void }>} shown
   */
  constructor(labels, view, player, shown) {
    this.labels = labels;
    this.view = view;
    this.player = player;
    this.shown = shown;
    this.dialog = /** @type {HTMLDialogElement} */ (find("label-tracks"));
    const choice = /** @type {HTMLSelectElement} */ (find("track-choice")), input = /** @type {HTMLInputElement} */ (find("label-file"));
    choice.onchange = () => labels.choose(choice.value);
    find("label-add").onclick = () => this.#add(this.#here);
    find("read").onclick = () => shown.transcript.show(!shown.transcript.isShown);
    find("sing").onclick = () => shown.singing.show(!shown.singing.isShown);
    find("label-menu").onclick = () => this.dialog.showModal();
    find("close-tracks").onclick = () => this.dialog.close();
    find("track-new").onclick = () => {
      labels.add('{"labels":[]}', { name: this.#unused(texts.labels), kind: "labels" }).catch(error => this.#complain(error));
    };
    find("track-import").onclick = () => input.click();
    input.onchange = () => {
      for (const file of input.files ?? []) void this.take(file);
      input.value = "";
    };
    labels.changed.subscribe(() => this.#show());
    labels.session.opened.subscribe(() => this.#marking.abort());
    labels.told.subscribe(({ text, isError }) => tell(text, { isError }));
  }

  /** What keys do. */
  get keys() {
    return {
      m: (/** @type {KeyboardEvent} */ event) => { if (!event.repeat) this.#mark(event.key); },
      t: () => this.#press("read"), k: () => this.#press("sing"),
    };
  }

  #press(/** @type {string} */ id) { if (!find(id).hidden) find(id).click(); }

  // Adding

  /** The selection, or else the playhead. */
  get #here() { return this.view.selection ?? { start: this.view.playhead, end: this.view.playhead }; }

  /** A key marks an instant, and the stretch in which it is held. */
  #mark(/** @type {string} */ key) {
    const { start, end } = this.#here, pressed = performance.now();
    if (start < end || !this.player.isPlaying) return this.#add({ start, end });
    this.#marking.abort();
    this.#marking = new AbortController();
    const { signal } = this.#marking;
    const release = () => {
      this.#marking.abort();
      const isHeld = performance.now() - pressed > hold && this.view.playhead > start;
      this.#add({ start, end: isHeld ? this.view.playhead : start });
    };
    addEventListener("keyup", event => { if (event.key.toLowerCase() === key.toLowerCase()) release(); }, { signal });
    // A window without the focus doesn't hear that a key is released.
    addEventListener("blur", release, { signal });
  }

  #add(/** @type {import("./view.js").Span} */ span) {
    if (!this.labels.service.credentials.allows("write")) return tell(texts.notShared, { isError: true });
    if (!this.labels.track) this.labels.begin(texts.labels);
    this.shown.editor.add(span, !this.player.isPlaying);
  }

  /** A name that no track has: with a number if it is taken. */
  #unused(/** @type {string} */ name) {
    const taken = this.labels.tracks.map(track => track.name);
    let unused = name;
    for (let k = 2; taken.includes(unused); k++) unused = `${name} ${k}`;
    return unused;
  }

  // Files

  /** Adds a track from a file. */
  async take(/** @type {File} */ file) {
    if (file.size > mostBytes) return tell(texts.labelsTooLarge(file.name), { isError: true });
    let kind = kinds[ending(file.name)] ?? "labels";
    if (ending(file.name) === "json" && /"chapters"\s*:/.test(await file.slice(0, 4096).text())) kind = "chapters";
    try {
      const name = this.#unused(file.name.replace(/\.[^.]+$/, "").slice(0, 200) || file.name);
      const track = await this.labels.add(file, { name, kind });
      tell(texts.imported(track.name, track.count));
      for (const found of track.warnings) tell(explain(found, found.code));
    } catch (error) {
      tell(texts.notImported(file.name, String(/** @type {Error} */(error).message)), { isError: true });
    }
  }

  async #export(/** @type {Track} */ track, /** @type {string} */ format) {
    await this.labels.save();
    try {
      const answer = await this.labels.service.fetch(`${this.labels.path}/${track.id}?format=${format}`);
      const address = URL.createObjectURL(await answer.blob()), link = document.createElement("a");
      [link.href, link.download] = [address, `${track.name}.${formats[format].ending}`];
      link.click();
      setTimeout(() => URL.revokeObjectURL(address), 60_000);
      const left = answer.headers.get("Stillwave-Left-Out");
      if (left) tell(texts.leftOut(formats[format].name, listed(left.split(", ").map(name => lost[name] ?? name))));
    } catch (error) {
      this.#complain(error);
    }
  }

  // What is shown

  #show() {
    const { tracks, track } = this.labels, choice = find("track-choice");
    for (const id of ["read", "sing"]) find(id).hidden = !track;
    choice.hidden = tracks.length < 2;
    choice.replaceChildren(...tracks.map(({ id, name }) => new Option(translated(name), id, false, id === track?.id)));
    if (!track && this.shown.transcript.isShown) this.shown.transcript.show(false);
    if (!track && this.shown.singing.isShown) this.shown.singing.show(false);
    find("tracks-none").hidden = tracks.length > 0;
    const list = find("track-list"), focused = document.activeElement?.closest("[data-track]");
    // A row that is being typed in stays.
    if (focused && list.contains(focused) && tracks.some(({ id }) => id === /** @type {HTMLElement} */ (focused).dataset.track)) {
      if (list.childElementCount === tracks.length) return;
    }
    list.replaceChildren(...tracks.map(entry => this.#row(entry)));
  }

  #row(/** @type {Track} */ track) {
    const row = copy("track-template"), { id, name, kind, count, words } = track, { labels } = this;
    row.dataset.track = id;
    const [chosen, field, select, format] = ["chosen", "name", "kind", "format"].map(found => part(row, found));
    chosen.checked = id === labels.track?.id;
    chosen.onchange = () => labels.choose(id);
    label(chosen, texts.chooseTrack(name));
    field.value = name;
    label(field, texts.trackName(name));
    field.onchange = () => { if (field.value.trim()) void labels.change(track, { name: field.value.trim() }); };
    select.replaceChildren(...trackKinds.map(value => new Option(texts[value], value, false, value === kind)));
    label(select, texts.trackKind(name));
    select.onchange = () => void labels.change(track, { kind: select.value });
    part(row, "about").textContent = texts.trackAbout(count, words);
    format.replaceChildren(...Object.entries(formats).map(([value, entry]) => new Option(entry.name, value)));
    label(format, texts.exportFormat(name));
    label(part(row, "export"), texts.exportTrack(name));
    part(row, "export").onclick = () => this.#export(track, format.value);
    label(part(row, "remove"), texts.remove(name));
    part(row, "remove").onclick = () => this.#remove(track);
    return row;
  }

  async #remove(/** @type {Track} */ track) {
    const step = await this.labels.remove(track);
    if (!step) return;
    const undo = () => {
      this.labels.undo.forget(step);
      void step.undo();
    };
    tell(texts.deleted(track.name), { action: { text: texts.undo, run: undo } });
    announce(texts.deleted(track.name));
  }

  #complain(/** @type {unknown} */ error) {
    if (!isAbort(error)) tell(String(/** @type {Error} */(error).message), { isError: true });
    return null;
  }
}
