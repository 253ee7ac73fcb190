// @ts-check
import { afterCalm, copy, find, part } from "./page.js";
import { isAbort } from "./service.js";
import { texts } from "./texts.js";
import { formatTime } from "./time.js";
import { begun, wordsOf } from "./words.js";

// The transcript: the labels of a track as text that scrolls. Each tile of labels has a block, as high as its labels are
// likely to need; only blocks near the visible part have rows. A selection of text becomes the selection of sound.

/** @typedef {import("./words.js").Label} Label */

/** The most rows of a block; more labels at one place can be found by searching. */
const mostRows = 1000;
/** The likely height of a row, in CSS pixels. */
const likelyHeight = 46;
/** The results that are shown at once, and the shortest text that is searched for. */
const enough = 100, shortest = 2;
/** How long the text stays where a person has scrolled it, in milliseconds. */
const rest = 4000;

/** Marks the word that is heard, if the browser can without changing the rows. */
const { Highlight, CSS } = /** @type {any} */ (globalThis);
const highlight = Highlight && CSS.highlights ? new Highlight() : null;
if (highlight) CSS.highlights.set("heard", highlight);

export class Transcript {
  isShown = false;
  /** @type {HTMLElement[]} */
  #blocks = [];
  #layout = "";
  /** @type {WeakMap<HTMLElement, Label>} */
  #labels = new WeakMap();
  /** @type {HTMLElement | null} */
  #current = null;
  #word = -1;
  #scrolled = 0;
  #query = "";
  /** Where the search goes on; null at the end. */
  #next = /** @type {number | null} */ (0);
  /** The track that is searched, and the version of it. */
  #track = "";
  #etag = "";
  #control = new AbortController();
  /** @type {Set<HTMLElement>} */
  #near = new Set();

  /**
   * @param {import("./labels.js").Labels} labels
   * @param {import("./view.js").View} view
   * @param {import("./stage.js").Stage} stage
   * @param {import("./player.js").Player} player
   */
  constructor(labels, view, stage, player) {
    this.labels = labels;
    this.view = view;
    this.stage = stage;
    this.player = player;
    this.area = /** @type {HTMLElement} */ (find("transcript"));
    this.text = /** @type {HTMLElement} */ (find("transcript-text"));
    this.hits = /** @type {HTMLElement} */ (find("transcript-hits"));
    this.search = /** @type {HTMLInputElement} */ (find("transcript-search"));
    this.watcher = new IntersectionObserver(entries => this.#see(entries), { root: this.text, rootMargin: "600px" });
    labels.changed.subscribe(() => {
      this.#leave();
      this.#lay();
    });
    const repeat = afterCalm(500, () => void this.#repeat());
    labels.tiles.arrived.subscribe(() => {
      repeat();
      this.#lay();
      for (const block of this.#near) this.#fill(block);
    });
    stage.painters.push(() => this.#follow());
    const search = afterCalm(150, () => this.#find());
    this.search.addEventListener("input", search);
    for (const kind of ["wheel", "touchmove", "keydown"]) this.text.addEventListener(kind, () => { this.#scrolled = performance.now(); }, { passive: true });
    for (const list of [this.text, this.hits]) list.addEventListener("click", event => this.#click(/** @type {HTMLElement} */ (event.target)));
    document.addEventListener("selectionchange", afterCalm(120, () => this.#select()));
    find("transcript-close").onclick = () => this.show(false);
    find("transcript-more").onclick = () => void this.#more();
  }

  /** @param {boolean} isShown */
  show(isShown) {
    this.isShown = isShown;
    this.area.hidden = !isShown;
    document.body.classList.toggle("transcript-shown", isShown);
    find("read").setAttribute("aria-pressed", String(isShown));
    if (!isShown) this.labels.tiles.want("transcript", null);
    this.#layout = "";
    this.#scrolled = 0;
    this.#lay();
    this.view.moved.emit();
    // On a small screen, it is below the waveform.
    if (isShown) this.area.scrollIntoView({ block: "nearest" });
  }

  // Blocks

  /** Makes a block for each tile, if that isn't done yet. */
  #lay() {
    const { labels } = this, { track } = labels;
    const layout = this.isShown && track ? `${track.id} ${labels.tiles.seconds} ${labels.tiles.count}` : "";
    find("transcript-none").hidden = !this.isShown || Boolean(track?.count);
    if (layout === this.#layout) return;
    this.#layout = layout;
    this.watcher.disconnect();
    this.#near.clear();
    this.#current = null;
    const count = layout ? labels.tiles.count : 0, perBlock = (track?.count ?? 0) / Math.max(1, count);
    this.#blocks = Array.from({ length: count }, (_, k) => {
      const block = document.createElement("div");
      block.dataset.index = String(k);
      block.style.minHeight = `${Math.round(perBlock * likelyHeight)}px`;
      return block;
    });
    this.text.replaceChildren(...this.#blocks);
    for (const block of this.#blocks) this.watcher.observe(block);
  }

  #span(/** @type {HTMLElement} */ block) {
    const start = Number(block.dataset.index) * this.labels.tiles.seconds;
    return { start, end: start + this.labels.tiles.seconds };
  }

  #see(/** @type {IntersectionObserverEntry[]} */ entries) {
    for (const { target, isIntersecting, boundingClientRect } of entries) {
      const block = /** @type {HTMLElement} */ (target);
      if (isIntersecting) {
        this.#near.add(block);
        this.#fill(block);
      } else if (this.#near.delete(block) && block.firstChild) {
        // It keeps its height.
        block.style.minHeight = `${boundingClientRect.height}px`;
        block.replaceChildren();
      }
    }
    this.#want();
  }

  #want() {
    const spans = [...this.#near].map(block => this.#span(block)), { length } = spans;
    this.labels.tiles.want("transcript", length && this.isShown ? { start: Math.min(...spans.map(span => span.start)), end: Math.max(...spans.map(span => span.end)) - 1e-6 } : null);
  }

  /** Shows the labels that begin in a block. */
  #fill(/** @type {HTMLElement} */ block) {
    const span = this.#span(block);
    if (!this.labels.tiles.has({ start: span.start, end: span.end - 1e-6 })) return;
    const found = this.labels.tiles.within(span).filter(label => label.start >= span.start), shown = found.slice(0, mostRows);
    const rows = /** @type {HTMLElement[]} */ ([...block.children]);
    if (rows.length === shown.length && rows.every((row, k) => this.#labels.get(row) === shown[k])) return;
    const known = new Map(rows.map(row => [this.#labels.get(row), row]));
    block.replaceChildren(...shown.map(label => known.get(label) ?? this.#row(label)));
    block.style.minHeight = "0";
    this.#current = null;
    this.stage.ask();
  }

  #row(/** @type {Label} */ label) {
    const row = copy("transcript-template");
    part(row, "time").textContent = formatTime(label.start, 1);
    part(row, "time").setAttribute("aria-label", texts.playFrom(formatTime(label.start, 1)));
    part(row, "speaker").textContent = label.speaker ?? "";
    part(row, "text").textContent = label.text;
    this.#labels.set(row, label);
    return row;
  }

  // Following

  /** Once per frame: marks what is heard, and keeps it in view. Changes nothing while the same word is heard. */
  #follow() {
    if (!this.isShown || this.#query) return;
    const { playhead } = this.view, label = this.#current && this.#labels.get(this.#current);
    if (!label || !this.#current?.isConnected || playhead < label.start || playhead >= label.end) this.#turn(playhead);
    const row = this.#current, now = row && this.#labels.get(row);
    if (!row || !now || !highlight) return;
    const words = wordsOf(now), word = begun(words, playhead) - 1;
    if (word === this.#word) return;
    this.#word = word;
    highlight.clear();
    const content = part(row, "text").firstChild;
    if (!words[word] || !content || !this.player.isPlaying) return;
    const range = new Range();
    range.setStart(content, words[word].from);
    range.setEnd(content, words[word].to);
    highlight.add(range);
  }

  /** Marks the row of a position, and brings it into view. */
  #turn(/** @type {number} */ seconds) {
    const block = this.#blocks[Math.min(this.#blocks.length - 1, Math.floor(seconds / this.labels.tiles.seconds))];
    const row = block && /** @type {HTMLElement[]} */ ([...block.children]).filter(child => (this.#labels.get(child)?.start ?? Infinity) <= seconds).at(-1);
    if (row === this.#current && row) return;
    const isNew = row && row !== this.#current;
    if (isNew) {
      this.#current?.removeAttribute("aria-current");
      row.setAttribute("aria-current", "true");
      this.#current = row;
      this.#word = -1;
    }
    const isFree = this.player.isFollowing && performance.now() - this.#scrolled > rest && getSelection()?.isCollapsed !== false;
    if (!isFree || !block || !isNew && block.firstChild) return;
    const target = row ?? block, top = target.offsetTop - this.text.clientHeight / 3;
    const isFar = Math.abs(top - this.text.scrollTop) > 2 * this.text.clientHeight;
    this.text.scrollTo({ top, behavior: isFar || this.view.isCalm.matches ? "auto" : "smooth" });
  }

  // Searching

  async #find() {
    const query = this.search.value.trim();
    if (query === this.#query) return;
    this.#query = query.length >= shortest ? query : "";
    this.#control.abort();
    this.#control = new AbortController();
    this.text.hidden = this.#query !== "";
    find("transcript-found").hidden = this.#query === "";
    this.#scrolled = 0;
    this.hits.replaceChildren();
    this.#next = 0;
    if (this.#query) await this.#more();
    else this.view.moved.emit();
  }

  /** Forgets the search when another track is shown. */
  #leave() {
    const id = this.labels.track?.id ?? "";
    if (id === this.#track) return;
    this.#track = id;
    this.search.value = "";
    void this.#find();
  }

  /** Searches again if the labels have changed; what was found stays until then. */
  async #repeat() {
    if (!this.#query || this.labels.tiles.etag === this.#etag) return;
    this.#control.abort();
    this.#control = new AbortController();
    await this.#more(true);
  }

  /** @param {boolean} [isAgain] whether to search from the beginning, for as many as are shown */
  async #more(isAgain = false) {
    const { signal } = this.#control, from = isAgain ? 0 : this.#next, shown = this.hits.childElementCount;
    if (from === null) return;
    if (!from) this.#etag = this.labels.tiles.etag;
    try {
      const { found, next } = await this.labels.tiles.search(this.#query, from, isAgain ? Math.max(enough, shown) : enough, signal);
      signal.throwIfAborted();
      this.#next = next;
      if (isAgain) this.hits.replaceChildren();
      for (const label of found) this.hits.append(this.#row(label));
      find("transcript-more").hidden = next === null;
      find("transcript-count").textContent = texts.hits(this.hits.childElementCount, next !== null);
    } catch (error) {
      if (!isAbort(error)) find("transcript-count").textContent = String(/** @type {Error} */(error).message);
    }
  }

  // Clicking and selecting

  /** The instant of a place in a row's text. */
  #instant(/** @type {Label} */ label, /** @type {number} */ at, /** @type {"start" | "end"} */ side) {
    const words = wordsOf(label);
    const word = side === "start" ? words.find(({ to }) => to > at) : words.filter(({ from }) => from < at).at(-1);
    return word ? word[side] : label[side === "start" ? "end" : "start"];
  }

  #click(/** @type {HTMLElement} */ target) {
    const row = /** @type {HTMLElement | null} */ (target.closest("[data-part=row]")), label = row && this.#labels.get(row);
    const selection = getSelection();
    if (!label || selection && !selection.isCollapsed) return;
    const isInText = target.dataset.part === "text" && selection?.focusNode?.parentElement === target;
    this.view.select(null);
    this.#scrolled = 0;
    const at = isInText ? this.#instant(label, selection.focusOffset, "start") : label.start;
    this.player.seek(at);
    const { start, end } = this.view.target;
    if (at < start || at > end) this.view.show({ start: at - (end - start) * 0.2, end: at + (end - start) * 0.8 });
  }

  /** Selects the sound of the selected text. */
  #select() {
    const selection = getSelection();
    if (!this.isShown || !selection || selection.isCollapsed || !selection.rangeCount) return;
    const range = selection.getRangeAt(0);
    const first = this.#end(range.startContainer, range.startOffset, "start"), last = this.#end(range.endContainer, range.endOffset, "end");
    if (first === null || last === null || last <= first) return;
    this.view.select({ start: first, end: last });
    const { start, end } = this.view.target;
    if (last < start || first > end) this.view.show({ start: first - (end - start) * 0.2, end: first + (end - start) * 0.8 });
  }

  /** The instant of one end of the selected text; null outside the transcript. */
  #end(/** @type {Node} */ node, /** @type {number} */ offset, /** @type {"start" | "end"} */ side) {
    const element = node instanceof HTMLElement ? node : node.parentElement;
    const row = /** @type {HTMLElement | null} */ (element?.closest("[data-part=row]") ?? null), label = row && this.#labels.get(row);
    if (!label) return null;
    if (node.nodeType === Node.TEXT_NODE && element?.dataset.part === "text") return this.#instant(label, offset, side);
    return side === "start" ? label.start : element?.dataset.part === "text" || offset ? label.end : label.start;
  }
}
