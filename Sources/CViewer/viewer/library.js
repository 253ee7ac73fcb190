// @ts-check
import { bytes, day, timeOfDay } from "./language.js";
import { recall, remember } from "./memory.js";
import { announce, tell } from "./messages.js";
import { afterCalm, copy, find, label, part } from "./page.js";
import { isAbort, recordingPath, Refusal } from "./service.js";
import { failureOf, forgetMade, labelOf } from "./session.js";
import { texts } from "./texts.js";
import { formatTime } from "./time.js";

const pageLength = 30;
/** The most that the service lists at once. */
const longestPage = 1000;
/** @param {any} recording made of another one */
const madeHow = ({ name, created_at, derived_from }) => {
  const label = labelOf(name) ?? "", time = timeOfDay(created_at);
  return derived_from.operation === "denoise" ? texts.madeBy(label === texts.cleaned ? "" : label, time) : texts.excerptAt(time);
};
/** How near the end must be for more to be listed, in CSS pixels. */
const margin = 300;
/** How often recordings that are being read are refreshed, in milliseconds. */
const watchPace = 1500;
/** How long a finger rests on a row to pick it, in milliseconds. */
const longPress = 450;

/** The list of recordings: newest first, searched, renamed, deleted. */
export class Library {
  /** Where the next page begins; "" if all are listed. */
  #cursor = "";
  #query = "";
  #sort = "created";
  #control = new AbortController();
  /**
   * Tells the request for a page that is under way from aborted ones.
   * @type {AbortSignal | null}
   */
  #loading = null;
  #watchTimer = 0;
  /**
   * Deleted recordings that can still be restored.
   * @type {Map<string, () => void>}
   */
  #leaving = new Map();
  /**
   * Recordings that are deleted for good. An answer that the service gave before may still arrive and list them.
   * @type {Set<string>}
   */
  #gone = new Set();
  /**
   * By recording, the end of giving it its last name.
   * @type {Map<string, Promise<boolean>>}
   */
  #names = new Map();

  /**
   * @param {import("./service.js").Service} service
   * @param {import("./session.js").Session} session
   * @param {import("./undo.js").Undo} undo
   * @param {import("./events.js").Changes} changes
   * @param {(recording: any) => void} open
   */
  constructor(service, session, undo, changes, open) {
    this.service = service;
    this.undo = undo;
    this.session = session;
    this.open = open;
    this.list = /** @type {HTMLElement} */ (find("list"));
    const search = find("search");
    search.addEventListener("input", afterCalm(200, () => {
      this.#query = search.value.trim();
      this.#cursor = "";
      find("library").scrollTop = 0;
      void this.load(pageLength);
    }));
    // On a slow device, several changes arrive together, the last one last; only the place as it is now counts.
    const sort = /** @type {HTMLSelectElement} */ (find("sort"));
    sort.replaceChildren(new Option(texts.sortDate, "created"), new Option(texts.sortName, "name"), new Option(texts.sortLength, "duration"));
    sort.value = recall("sort") ?? this.#sort;
    this.#sort = sort.value ||= "created";
    sort.onchange = () => {
      this.#sort = sort.value;
      remember("sort", sort.value);
      this.#cursor = "";
      find("library").scrollTop = 0;
      void this.load(pageLength);
    };
    new IntersectionObserver(() => {
      if (this.#cursor && !this.#loading && this.#isEndNear()) void this.#more();
    }, { root: find("library"), rootMargin: `${margin}px` }).observe(find("list-end"));
    session.changed.subscribe(() => {
      for (const { recording: { id } } of session.layers) if (this.#isCanceled(id)) this.#drop(id);
      this.#mark();
    });
    session.ended.subscribe(({ layer: { role, recording: { id } }, state }) => {
      if (state === "succeeded" || role === "original") return void this.#refresh(id);
      this.#gone.add(id);
      this.#drop(id);
    });
    this.#followOthers(changes);
    // Carries out pending deletions now.
    addEventListener("pagehide", () => {
      for (const remove of this.#leaving.values()) remove();
    });
  }

  /** Shows what other pages and programs change. */
  #followOthers(/** @type {import("./events.js").Changes} */ changes) {
    const load = afterCalm(300, () => this.load());
    changes.missed.subscribe(load);
    changes.changed.subscribe(recording => {
      const row = this.#rowOf(recording.id);
      if (this.#isDeleted(recording.id)) return;
      // Ids begin with their time of creation: an older one than those listed appears when the list is scrolled.
      const isOlder = this.#sort === "created" && this.#cursor !== "" && [...this.list.children].every(other => (/** @type {HTMLElement} */ (other).dataset.id ?? "") > recording.id);
      if (row) this.#learn(row, recording);
      else if (!isOlder) load();
    });
    changes.deleted.subscribe(id => {
      this.#gone.add(id);
      const layer = this.session.layerOf(id);
      this.#drop(id);
      // The session follows its jobs itself.
      if (!layer || layer.job || layer.isCanceled) return;
      forgetMade(id);
      tell(texts.deletedElsewhere(layer.recording.name));
      if (layer.role === "cleaned") this.session.remove(layer);
      else this.session.close();
    });
  }

  /**
   * Reloads the list, newest first.
   * @param {number} [count] how many recordings to list at once, a page at least; by default, as many as there are
   */
  async load(count = this.list.childElementCount) {
    if (this.service.credentials.share) return;
    this.#control.abort();
    this.#control = new AbortController();
    await this.#more(Math.min(Math.max(count, pageLength), longestPage), true);
  }

  async #more(limit = pageLength, isNew = false) {
    const { signal } = this.#control, query = new URLSearchParams({ limit: String(limit) });
    this.#loading = signal;
    if (this.#query) query.set("q", this.#query);
    if (this.#sort !== "created") query.set("sort", this.#sort);
    if (this.#sort === "duration") query.set("order", "desc");
    if (!isNew) query.set("cursor", this.#cursor);
    try {
      const page = await this.service.json(`v1/recordings?${query}`, { signal });
      signal.throwIfAborted();
      this.#loading = null;
      this.#cursor = page.next_cursor ?? "";
      this.#show(page.recordings, isNew);
      // The end may still be near; an observer reports only changes.
      if (this.#cursor && this.#isEndNear()) void this.#more();
    } catch (error) {
      if (this.#loading === signal) this.#loading = null;
      if (!isAbort(error)) tell(String(/** @type {Error} */(error).message), { isError: true });
    }
  }

  /** Adds rows, or shows them in place of the others; then what has been scrolled to stays where it is. */
  #show(/** @type {any[]} */ recordings, /** @type {boolean} */ isNew) {
    const area = find("library"), focused = /** @type {HTMLElement | null} */ (document.activeElement), { scrollTop } = area;
    const rows = /** @type {HTMLElement[]} */ ([...this.list.children]), former = new Map(rows.map(row => [row.dataset.id, row]));
    const { top } = area.getBoundingClientRect(), first = scrollTop > 0 ? rows.find(row => row.getBoundingClientRect().bottom > top) : undefined;
    const place = first?.getBoundingClientRect().top ?? 0;
    if (isNew) this.list.replaceChildren();
    for (const recording of recordings) {
      if (!this.#isDeleted(recording.id)) this.#insert(this.#row(recording, former.get(recording.id)), recording);
    }
    if (isNew) area.scrollTop = scrollTop;
    if (isNew && first?.isConnected) area.scrollTop += first.getBoundingClientRect().top - place;
    if (isNew && this.list.contains(focused)) focused?.focus({ preventScroll: true });
    this.#mark();
    this.#tellCount();
  }

  #isEndNear() {
    return find("list-end").getBoundingClientRect().top < find("library").getBoundingClientRect().bottom + margin;
  }

  #isDeleted(/** @type {string} */ id) { return this.#leaving.has(id) || this.#gone.has(id) || this.#isCanceled(id); }

  /** Whether a recording is a result that is being canceled, which deletes it. */
  #isCanceled(/** @type {string} */ id) {
    const layer = this.session.layerOf(id);
    return layer?.role === "cleaned" && layer.isCanceled;
  }

  /** Removes a recording's row, and stops loading its picture: the browser would log the 404 of one that is deleted meanwhile. */
  #drop(/** @type {string} */ id) {
    const row = this.#rowOf(id);
    if (!row) return;
    part(row, "picture").removeAttribute("src");
    row.remove();
    if (this.picked.delete(id)) void this.showPicked();
    this.#tellCount();
  }

  #tellCount() {
    const isEmpty = !this.list.childElementCount, empty = find("list-empty");
    empty.hidden = !isEmpty;
    empty.textContent = this.#query ? texts.noMatch : texts.noRecordings;
    if (this.#query) announce(texts.found(this.list.childElementCount));
  }

  /**
   * A recording's row; one that was shown before keeps its picture.
   * @param {any} recording
   */
  #row(recording, row = copy("row-template")) {
    row.dataset.id = recording.id;
    this.#fill(row, recording);
    return row;
  }

  /** Adds a row to those of the same source: the source first, then its results, the newest first. */
  #insert(/** @type {HTMLElement} */ row, /** @type {any} */ { id, derived_from }) {
    const source = derived_from?.recording ?? id;
    const group = /** @type {HTMLElement[]} */ ([...this.list.children]).filter(other => other.dataset.source === source);
    row.dataset.source = source;
    row.classList.toggle("result", derived_from !== null);
    if (!group.length) this.list.append(row);
    else if (derived_from) group[group.length - 1].after(row);
    else group[0].before(row);
  }

  #fill(/** @type {HTMLElement} */ row, /** @type {any} */ recording) {
    this.#listed.set(row, recording);
    const { name, format, waveform, derived_from } = recording, isReading = ["queued", "building"].includes(waveform.state);
    const hasFailed = waveform.state === "failed";
    // The end of a long name stays visible: results of one source differ there.
    const end = name.length > 18 ? name.search(/ \([^()]{1,20}\)[^()]*$|[^\s]{1,8}$/u) : 0;
    part(row, "head").textContent = name.slice(0, end);
    part(row, "tail").textContent = name.slice(end);
    part(row, "whole").textContent = name;
    const about = [
      format.duration ? formatTime(format.duration, 0) : "", format.channels > 1 ? texts.channelsCount(format.channels) : "", recording.bytes ? bytes(recording.bytes) : "",
      derived_from ? "" : day(recording.created_at),
      derived_from ? madeHow(recording) : "", isReading ? texts.reading : "", hasFailed ? texts.unread : "",
    ];
    part(row, "about").textContent = about.filter(Boolean).join(" · ");
    row.classList.toggle("reading", isReading);
    row.classList.toggle("failed", hasFailed);
    if (isReading) this.#watch();
    part(row, "failure").hidden = !hasFailed;
    if (hasFailed) void this.#explain(row, recording);
    const picture = part(row, "picture");
    const color = derived_from?.operation === "denoise" ? "2a9d96" : "8a9099";
    // The width makes the address differ, so that a cached picture of the unfinished waveform isn't shown for the finished one.
    const width = waveform.state === "ready" ? 232 : 231;
    if (hasFailed) picture.removeAttribute("src");
    else void this.#picture(picture, `${recordingPath(recording.id)}/waveform.png?width=${width}&height=36&pixel_ratio=${devicePixelRatio > 1 ? 2 : 1}&amplitude_scale=auto&color=${color}`);
    const open = part(row, "open"), rename = part(row, "rename"), remove = part(row, "remove");
    row.classList.toggle("picked", this.picked.has(recording.id));
    open.onclick = (/** @type {MouseEvent} */ event) => {
      if (this.picked.size || event.ctrlKey || event.metaKey || event.shiftKey) void this.#pick(row, recording, event.shiftKey);
      else this.open(recording);
    };
    this.#pickByTouch(open, row, recording);
    label(rename, texts.rename(name));
    label(remove, texts.remove(name));
    rename.onclick = () => this.#rename(row, recording);
    remove.onclick = () => this.remove(recording);
    open.onkeydown = (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "F2") this.#rename(row, recording);
      else if (event.key === "Delete") this.remove(recording);
      else if (event.key === "Escape" && this.picked.size) this.#unpick();
      else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        const next = /** @type {HTMLElement | null} */ (event.key === "ArrowDown" ? row.nextElementSibling : row.previousElementSibling);
        this.#focus(next);
        if (next && event.shiftKey) {
          if (!this.picked.size) void this.#pick(row, recording, false);
          void this.#pick(next, this.#listed.get(next), true);
        }
      } else return;
      event.preventDefault();
    };
  }

  /** Shows a picture. With a key it is fetched: a token for the element would be one more request for each row. */
  async #picture(/** @type {HTMLImageElement} */ picture, /** @type {string} */ path) {
    const isKnown = picture.dataset.path === path;
    picture.dataset.path = path;
    if (!this.service.credentials.hasKey) return void (picture.src = path);
    if (isKnown && picture.complete && picture.naturalWidth) return;
    try {
      const content = await (await this.service.fetch(path)).blob();
      if (picture.dataset.path !== path) return;
      const address = URL.createObjectURL(content);
      for (const event of ["load", "error"]) picture.addEventListener(event, () => URL.revokeObjectURL(address), { once: true });
      picture.src = address;
    } catch { /* Pictures are optional. */ }
  }

  /** Says why a recording could not be read, and offers what can be done. */
  async #explain(/** @type {HTMLElement} */ row, /** @type {any} */ recording) {
    const { id } = recording;
    part(row, "retry").onclick = async () => {
      await this.session.readAgain(id);
      await this.#refresh(id);
    };
    part(row, "drop").onclick = () => this.remove(recording);
    part(row, "reason").textContent = await failureOf(this.service, recording);
  }

  /**
   * Refreshes the rows of recordings that are being read, one at a time so that they don't take every connection; rows of
   * open ones follow the session.
   */
  #watch() {
    this.#watchTimer ||= setTimeout(async () => {
      for (const row of /** @type {Iterable<HTMLElement>} */ (this.list.querySelectorAll(".reading"))) {
        const { id = "" } = row.dataset;
        if (row.isConnected && !this.session.layerOf(id)?.job) await this.#refresh(id);
      }
      this.#watchTimer = 0;
      if (this.list.querySelector(".reading")) this.#watch();
    }, watchPace);
  }

  /**
   * The recordings that are picked, by id.
   * @type {Map<string, any>}
   */
  picked = new Map();
  /** Where a range of picked recordings begins. */
  #pickedFrom = "";
  /** @type {Promise<import("./picking.js").Picking> | null} */
  #picking = null;
  /**
   * What each row shows.
   * @type {WeakMap<HTMLElement, any>}
   */
  #listed = new WeakMap();

  /** Picks a recording, or no longer; with Shift, all from the last one that was picked to this one. */
  async #pick(/** @type {HTMLElement} */ row, /** @type {any} */ recording, /** @type {boolean} */ isRange) {
    const { picked } = this, rows = /** @type {HTMLElement[]} */ ([...this.list.children]), from = rows.findIndex(other => other.dataset.id === this.#pickedFrom);
    if (isRange && from >= 0) {
      const [first, last] = [from, rows.indexOf(row)].sort((a, b) => a - b);
      picked.clear();
      for (const other of rows.slice(first, last + 1)) picked.set(other.dataset.id ?? "", this.#listed.get(other));
    } else {
      if (!picked.delete(recording.id)) picked.set(recording.id, recording);
      this.#pickedFrom = recording.id;
    }
    await this.showPicked();
  }

  /** A finger that rests on a row picks it; the click that follows does nothing, whatever is below the finger then. */
  #pickByTouch(/** @type {HTMLElement} */ open, /** @type {HTMLElement} */ row, /** @type {any} */ recording) {
    let press = 0, isTouch = false;
    open.onpointerdown = event => {
      clearTimeout(press);
      isTouch = event.pointerType === "touch";
      if (isTouch) press = setTimeout(() => {
        const next = new AbortController(), options = { capture: true, signal: next.signal };
        addEventListener("pointerdown", () => next.abort(), options);
        addEventListener("click", event => {
          event.preventDefault();
          event.stopPropagation();
        }, options);
        navigator.vibrate?.(10);
        void this.#pick(row, recording, false);
      }, longPress);
    };
    open.onpointerup = open.onpointercancel = () => clearTimeout(press);
    open.oncontextmenu = event => { if (isTouch) event.preventDefault(); };
  }

  #unpick() {
    this.picked.clear();
    return this.showPicked();
  }

  /** Shows which recordings are picked, and what can be done with them. */
  async showPicked() {
    for (const row of /** @type {Iterable<HTMLElement>} */ (this.list.children)) {
      const isPicked = this.picked.has(row.dataset.id ?? ""), open = part(row, "open");
      row.classList.toggle("picked", isPicked);
      if (this.picked.size) open.setAttribute("aria-pressed", String(isPicked));
      else open.removeAttribute("aria-pressed");
    }
    this.#picking ??= import("./picking.js").then(({ Picking }) => new Picking(this));
    (await this.#picking).show();
  }

  #focus(/** @type {Element | null} */ row) { if (row) part(row, "open").focus(); }

  async #refresh(/** @type {string} */ id) {
    const row = this.#rowOf(id);
    if (!row) return this.load();
    try {
      this.#learn(row, await this.service.json(recordingPath(id)));
    } catch {
      row.remove();
    }
  }

  /** Shows a recording as the service describes it now. */
  #learn(/** @type {HTMLElement} */ row, /** @type {any} */ recording) {
    const layer = this.session.layerOf(recording.id);
    // A row is being renamed until its field is closed.
    if (!row.classList.contains("renaming")) this.#fill(row, recording);
    if (!layer || layer.job || layer.recording.name === recording.name) return;
    layer.recording = recording;
    this.session.changed.emit();
  }

  /**
   * @param {string} id
   * @returns {HTMLElement | null}
   */
  #rowOf(id) { return this.list.querySelector(`[data-id="${CSS.escape(id)}"]`); }

  #mark() {
    for (const row of /** @type {Iterable<HTMLElement>} */ (this.list.children)) {
      const isOpen = this.session.layerOf(row.dataset.id ?? "") !== undefined;
      row.classList.toggle("current", isOpen);
      if (isOpen) part(row, "open").setAttribute("aria-current", "true");
      else part(row, "open").removeAttribute("aria-current");
    }
  }

  #rename(/** @type {HTMLElement} */ row, /** @type {any} */ recording) {
    const field = part(row, "field"), open = part(row, "open");
    field.value = recording.name;
    label(field, texts.renameLabel(recording.name));
    field.hidden = false;
    row.classList.add("renaming");
    field.focus();
    const dot = recording.name.lastIndexOf(".");
    field.setSelectionRange(0, dot > 0 ? dot : recording.name.length);
    let isDone = false;
    const finish = (/** @type {boolean} */ isKept) => {
      if (isDone) return;
      isDone = true;
      field.hidden = true;
      row.classList.remove("renaming");
      if (document.activeElement === document.body) open.focus();
      const name = field.value.trim();
      if (!isKept || !name || name === recording.name) return;
      const step = { undo: () => this.#name(recording.id, recording.name), redo: () => this.#name(recording.id, name) };
      // At once, because the list may show the new name before its request is answered.
      this.undo.add(step);
      void this.#name(recording.id, name).then(isRefused => { if (isRefused) this.undo.forget(step); });
    };
    field.onkeydown = (/** @type {KeyboardEvent} */ event) => {
      event.stopPropagation();
      if (event.key === "Enter") finish(true);
      if (event.key === "Escape") finish(false);
      if (event.key === "Enter" || event.key === "Escape") {
        // Otherwise Enter would press the element that gets the focus.
        event.preventDefault();
        open.focus();
      }
    };
    field.onblur = () => finish(true);
  }

  /** Gives a recording a name, after those that it is being given. Returns whether the service refuses it. */
  #name(/** @type {string} */ id, /** @type {string} */ name) {
    const named = (this.#names.get(id) ?? Promise.resolve(false)).then(() => this.#sendName(id, name));
    this.#names.set(id, named);
    return named;
  }

  async #sendName(/** @type {string} */ id, /** @type {string} */ name) {
    try {
      const renamed = await this.service.json(recordingPath(id), { method: "PATCH", body: { name } }), row = this.#rowOf(id);
      if (row) this.#fill(row, renamed);
      for (const layer of this.session.layers) if (layer.recording.id === renamed.id) layer.recording = renamed;
      this.session.changed.emit();
      announce(texts.renamed(name));
      return false;
    } catch (error) {
      tell(String(/** @type {Error} */(error).message), { isError: true });
      return error instanceof Refusal && error.status >= 400;
    }
  }

  /**
   * Hides recordings at once, and deletes them when they can no longer be restored.
   * @param {any[]} recordings
   */
  remove(...recordings) {
    const place = location.hash, rows = recordings.map(({ id }) => this.#rowOf(id));
    const layers = recordings.map(({ id }) => this.session.layerOf(id)), original = layers.find(layer => layer?.role === "original");
    const last = [...rows].reverse().find(row => row);
    this.#focus(last?.nextElementSibling ?? rows.find(row => row)?.previousElementSibling ?? null);
    for (const row of rows) row?.remove();
    this.#tellCount();
    for (const layer of layers) if (layer?.role === "cleaned") this.session.remove(layer);
    if (original) this.session.close();
    const remove = (/** @type {string} */ id) => () => {
      this.#leaving.delete(id);
      this.#gone.add(id);
      forgetMade(id);
      this.service.json(recordingPath(id), { method: "DELETE", keepalive: true }).catch(error => {
        if (error.status !== 404) {
          this.#gone.delete(id);
          tell(error.message, { isError: true });
        }
        void this.load();
      });
    };
    for (const { id } of recordings) this.#leaving.set(id, remove(id));
    const restore = async () => {
      for (const { id } of recordings) this.#leaving.delete(id);
      await this.load(this.list.childElementCount + recordings.length);
      this.#focus(this.#rowOf(recordings[0].id));
      // The address also restores the view and the results.
      if (original) location.hash = place;
      else for (const [k, layer] of layers.entries()) if (layer) this.open(recordings[k]);
    };
    /** @type {import("./undo.js").Step} */
    const step = { undo: () => { }, redo: () => { } };
    const dismiss = tell(recordings.length > 1 ? texts.deletedMany(recordings.length) : texts.deleted(recordings[0].name), {
      action: {
        text: texts.undo,
        run: () => {
          this.undo.forget(step);
          void restore();
        },
      },
      onGone: () => {
        this.undo.forget(step);
        for (const { id } of recordings) this.#leaving.get(id)?.();
      },
    });
    step.undo = () => {
      dismiss(true);
      void restore();
    };
    // Deleting again is a step of its own.
    step.redo = () => {
      this.undo.forget(step);
      this.remove(...recordings);
    };
    this.undo.add(step);
  }
}
