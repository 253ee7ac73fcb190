// @ts-check
import { Surface } from "./drawing.js";
import { find, label, part } from "./page.js";
import { texts } from "./texts.js";
import { count, fillOf, isCounted, rowsOf, turnsOf } from "./verses.js";

// The singing view. Each line is painted once, in two colors, onto canvases of a fixed size; after that, the compositor
// moves it, and moves the edge between the colors, by animations whose times are those of the recording. Script only
// compares their clock with the sound's, and paints the next line when one has left. Nothing is laid out.
//
// A line's fill is a box that hides what is beyond its edge: the box moves by x, and the canvas in it by −x.

/** @typedef {import("./verses.js").Row} Row */
/**
 * @typedef {object} Slot a line's elements
 * @property {HTMLElement} line
 * @property {HTMLElement} clip
 * @property {Surface} rest the text before it is sung
 * @property {Surface} sung
 * @property {Row | null} row
 * @property {number} from the time at which its animations begin, in seconds
 * @property {Animation[]} animations
 */

/** Lines that exist, more than are ever visible; those before the one in focus. */
const slotCount = 7, before = 2;
/** The stretch of labels around the playhead that is read, in seconds. */
const behind = 20, ahead = 60;
/** The clock of the animations is set again when it differs from the sound's by this, or at once by the other, in ms. */
const mostDrift = 4, jump = 50;
/** The height of a line in sizes of its letters, and the part of the width that it may take. */
const lineHeight = 1.5, breadth = 0.92;
const font = "system-ui, sans-serif";

export class SingingView {
  #isShown = false;
  /** @type {Row[]} */
  #rows = [];
  /** @type {import("./verses.js").Turn[]} */
  #turns = [];
  /** @type {WeakMap<import("./words.js").Label, Row[]>} */
  #divided = new WeakMap();
  /** @type {Slot[]} */
  #slots = [];
  #focus = -1;
  #isStale = true;
  #width = 0;
  /** The room above the lines, in CSS pixels. */
  #top = 0;
  #size = 40;
  /** The number of lines that are visible, and which of them has the focus. */
  #visible = 2;
  /** When second 0 of the recording would have been heard, in milliseconds of the page; null while nothing plays. */
  #origin = /** @type {number | null} */ (null);
  #drift = 0;
  #stillAt = -1;
  /** The playhead in the last frame. */
  #seenAt = 0;
  /** @type {Animation[]} */
  #counting = [];
  #countedFrom = 0;

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
    this.area = /** @type {HTMLElement} */ (find("singing"));
    this.lines = /** @type {HTMLElement} */ (find("sung-lines"));
    this.dots = /** @type {HTMLElement[]} */ ([...find("sung-count").children]);
    for (let k = 0; k < slotCount; k++) this.#slots.push(this.#makeSlot());
    this.ruler = /** @type {CanvasRenderingContext2D} */ (document.createElement("canvas").getContext("2d"));
    new ResizeObserver(([{ contentRect }]) => this.#resize(contentRect.width, contentRect.height)).observe(this.lines);
    labels.tiles.arrived.subscribe(() => this.#refresh());
    player.changed.subscribe(() => {
      part(find("sung-play"), "icon").setAttribute("href", player.isPlaying ? "#i-pause" : "#i-play");
      label(find("sung-play"), player.isPlaying ? texts.pause : texts.play);
      this.#refresh();
    });
    for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)", "(prefers-reduced-motion: reduce)"]) {
      matchMedia(query).addEventListener("change", () => this.#repaint());
    }
    stage.painters.push(() => this.#follow());
    find("sung-full").onclick = () => void this.#toggleFull();
    find("sung-play").onclick = () => player.toggle();
    find("sung-close").onclick = () => this.show(false);
    document.addEventListener("fullscreenchange", () => this.#setFull(document.fullscreenElement === this.area));
    addEventListener("keydown", event => {
      if (event.key !== "Escape" || !this.area.classList.contains("full")) return;
      event.stopImmediatePropagation();
      this.#setFull(false);
    }, true);
  }

  get isShown() { return this.#isShown; }

  /** @param {boolean} isShown */
  show(isShown) {
    this.#isShown = this.player.isExact = isShown;
    this.area.hidden = !isShown;
    if (!isShown) {
      this.labels.tiles.want("singing", null);
      this.#setFull(false);
    }
    find("sing").setAttribute("aria-pressed", String(isShown));
    this.#refresh();
    // On a small screen, it is below the waveform.
    if (isShown) this.area.scrollIntoView({ block: "nearest" });
  }

  async #toggleFull() {
    if (this.area.classList.contains("full")) return this.#setFull(false);
    this.#setFull(true);
    // Where a browser gives the whole screen only to videos, the view fills the window.
    await this.area.requestFullscreen?.().catch(() => { });
  }

  #setFull(/** @type {boolean} */ isFull) {
    if (!isFull && document.fullscreenElement) void document.exitFullscreen();
    this.area.classList.toggle("full", isFull);
    label(find("sung-full"), isFull ? texts.leaveFull : texts.fullScreen);
  }

  // Lines

  /** @returns {Slot} */
  #makeSlot() {
    const [line, clip, rest, sung] = ["div", "div", "canvas", "canvas"].map(name => document.createElement(name));
    line.className = "sung-line";
    clip.className = "sung-clip";
    clip.append(sung);
    line.append(rest, clip);
    this.lines.append(line);
    const surface = (/** @type {HTMLElement} */ canvas) => new Surface(/** @type {HTMLCanvasElement} */ (canvas), () => this.#repaint());
    return { line, clip, rest: surface(rest), sung: surface(sung), row: null, from: 0, animations: [] };
  }

  #resize(/** @type {number} */ width, /** @type {number} */ height) {
    this.#width = width;
    if (!width) return;
    this.#size = Math.round(Math.min(110, Math.max(20, Math.min(width / (height > width ? 11 : 17), height / 2.1 / lineHeight))));
    this.#visible = Math.max(2, Math.min(4, Math.floor(height / this.#pitch)));
    this.#top = Math.max(0, (height - this.#visible * this.#pitch) / 2);
    this.lines.style.setProperty("--line", `${this.#pitch}px`);
    const focusTop = this.lines.offsetTop + this.#top + this.#focusAt * this.#pitch;
    find("sung-count").style.top = `${focusTop - this.#pitch * 0.12}px`;
    this.#divided = new WeakMap();
    this.#repaint();
  }

  get #pitch() { return this.#size * lineHeight; }
  /** The place of the line in focus, from the top. */
  get #focusAt() { return this.#visible > 2 ? 1 : 0; }

  #repaint() {
    for (const slot of this.#slots) slot.row = null;
    this.#refresh();
  }

  #refresh() {
    this.#isStale = true;
    if (this.#isShown) this.stage.ask();
  }

  /** Divides the labels around the playhead into rows; those of a label stay the same objects. */
  #divide() {
    const { playhead } = this.view, room = this.#width * breadth;
    this.ruler.font = `600 ${this.#size}px ${font}`;
    const measure = (/** @type {string} */ text) => this.ruler.measureText(text).width;
    this.#rows = this.labels.tiles.within({ start: playhead - behind, end: playhead + ahead }).flatMap(label => {
      const rows = this.#divided.get(label) ?? rowsOf(label, room, measure);
      this.#divided.set(label, rows);
      return rows;
    });
    this.#turns = turnsOf(this.#rows);
    find("sung-none").hidden = this.#rows.length > 0;
  }

  // Time

  /** Once per frame: follows the sound. */
  #follow() {
    if (!this.#isShown || !this.#width) return;
    const { playhead } = this.view, position = this.player.position, now = performance.now();
    this.labels.tiles.want("singing", { start: Math.max(0, playhead - behind), end: playhead + ahead });
    // After a step back, a row may have to be counted in again.
    const focus = this.#focusOf(playhead), isBack = playhead < this.#seenAt - 0.05;
    this.#seenAt = playhead;
    if (this.#isStale || isBack || focus !== this.#focus) this.#arrange(playhead);
    if (position === null) {
      if (this.#origin !== null || this.#stillAt !== playhead) this.#hold(playhead);
      return;
    }
    const origin = now - position * 1000, off = this.#origin === null ? Infinity : origin - this.#origin;
    this.#stillAt = -1;
    if (Math.abs(off) > jump) this.#run(origin);
    else {
      // The sound's clock is read with some noise.
      this.#drift += (off - this.#drift) * 0.1;
      if (Math.abs(this.#drift) > mostDrift) this.#run(origin - off + this.#drift);
    }
  }

  /** The row to which the view has turned last. */
  #focusOf(/** @type {number} */ seconds) {
    let focus = 0;
    while (focus + 1 < this.#turns.length && this.#turns[focus + 1].at <= seconds) focus++;
    return focus;
  }

  /** Gives each row near the focus a slot, and paints those that are new. */
  #arrange(/** @type {number} */ playhead) {
    this.#divide();
    this.#isStale = false;
    const focus = this.#focus = this.#focusOf(playhead);
    const wanted = this.#rows.slice(Math.max(0, focus - before), focus + slotCount - before);
    const free = this.#slots.filter(slot => !slot.row || !wanted.includes(slot.row));
    for (const slot of this.#slots) {
      if (!free.includes(slot)) this.#animate(slot);
    }
    for (const row of wanted) {
      if (this.#slots.some(slot => slot.row === row)) continue;
      const slot = free.shift();
      if (!slot) break;
      slot.row = row;
      this.#paint(slot, row);
      this.#animate(slot);
    }
    for (const slot of free) this.#empty(slot);
    this.#countIn(focus);
    this.lines.ariaLabel = this.#rows[focus]?.text ?? "";
    if (this.#origin === null) this.#hold(playhead);
    else this.#run(this.#origin);
  }

  #empty(/** @type {Slot} */ slot) {
    for (const animation of slot.animations) animation.cancel();
    [slot.row, slot.animations] = [null, []];
  }

  #paint(/** @type {Slot} */ slot, /** @type {Row} */ row) {
    const style = getComputedStyle(this.area);
    for (const [{ pen, width, height, ratio, canvas }, name] of /** @type {[Surface, string][]} */ ([[slot.rest, "unsung"], [slot.sung, "sung"]])) {
      pen.setTransform(1, 0, 0, 1, 0, 0);
      pen.clearRect(0, 0, canvas.width, canvas.height);
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      pen.font = `600 ${this.#size * row.scale}px ${font}`;
      pen.fillStyle = style.getPropertyValue(`--${name}`).trim();
      pen.textBaseline = "middle";
      pen.textAlign = "center";
      pen.direction = row.isRTL ? "rtl" : "ltr";
      pen.fillText(row.text, width / 2, height / 2);
    }
  }

  /** Makes the animations of a line: its way through the view, and its fill. */
  #animate(/** @type {Slot} */ slot) {
    const { row } = slot, index = row ? this.#rows.indexOf(row) : -1;
    if (!row || index < 0) return this.#empty(slot);
    for (const animation of slot.animations) animation.cancel();
    const isCalm = this.view.isCalm.matches, pitch = this.#pitch;
    const first = Math.max(1, index - this.#visible), last = Math.min(this.#turns.length - 1, index + before);
    const place = (/** @type {number} */ focus) => {
      const away = index - focus, scale = away === 0 ? 1 : 0.78, shown = away >= -this.#focusAt && away < this.#visible - this.#focusAt;
      return { transform: `translateY(${this.#top + (away + this.#focusAt) * pitch}px) scale(${scale})`, opacity: shown ? away === 0 ? 1 : away < 0 ? 0.35 : 0.75 : 0 };
    };
    const from = slot.from = Math.min(row.start, first <= last ? this.#turns[first].at : row.start);
    const end = Math.max(row.end, first <= last ? this.#turns[last].at + this.#turns[last].length : row.end) + 0.001;
    const offset = (/** @type {number} */ seconds) => Math.min(1, Math.max(0, (seconds - from) / (end - from)));
    /** @type {Keyframe[]} */
    const way = [{ ...place(first - 1), offset: 0 }];
    for (let k = first; k <= last; k++) {
      const { at, length } = this.#turns[k];
      way.push({ ...place(k - 1), offset: offset(at), easing: isCalm ? "step-end" : "cubic-bezier(.35, 0, .2, 1)" });
      way.push({ ...place(k), offset: offset(at + length) });
    }
    way.push({ ...place(Math.max(first - 1, last)), offset: 1 });
    const options = { duration: (end - from) * 1000, fill: /** @type {const} */ ("both") };
    slot.animations = [slot.line.animate(way, options)];
    const { width } = slot.rest, left = (width - row.width) / 2, fill = fillOf(row);
    const box = (/** @type {number} */ x) => (row.isRTL ? width - left - x : left + x - width);
    const frames = (/** @type {1 | -1} */ side) => {
      /** @type {Keyframe[]} */
      const points = [{ transform: `translateX(${side * box(-left)}px)`, offset: 0, easing: "step-end" }];
      for (const { offset: share, x, isWord } of fill) {
        // Without motion, a word is filled as it begins.
        const easing = !isWord ? "step-end" : isCalm ? "step-start" : "linear";
        points.push({ transform: `translateX(${side * box(x)}px)`, offset: offset(row.start + share * (row.end - row.start)), easing });
      }
      points.push({ transform: `translateX(${side * box(row.width + left)}px)`, offset: 1 });
      return points;
    };
    slot.animations.push(slot.clip.animate(frames(1), options), slot.sung.canvas.animate(frames(-1), options));
  }

  /** Prepares the three dots before the next row that is counted in. */
  #countIn(/** @type {number} */ focus) {
    for (const animation of this.#counting) animation.cancel();
    this.#counting = [];
    const { playhead } = this.view;
    const next = [focus, focus + 1].find(k => this.#rows[k] && isCounted(this.#rows, k) && this.#rows[k].start > playhead);
    if (next === undefined) return;
    const { start } = this.#rows[next], from = this.#countedFrom = start - count - 0.4, length = count + 0.4;
    const isCalm = this.view.isCalm.matches;
    this.#counting = this.dots.map((dot, k) => {
      const off = (0.4 + k + 1) / length;
      return dot.animate([
        { opacity: 0, transform: "scale(.6)", offset: 0 }, { opacity: 1, transform: "scale(1)", offset: 0.4 / length, easing: isCalm ? "step-end" : "linear" },
        { opacity: 1, transform: "scale(1)", offset: off - 0.25 / length, easing: isCalm ? "step-end" : "ease-in" },
        { opacity: 0, transform: isCalm ? "none" : "scale(.2)", offset: off }, { opacity: 0, transform: "scale(.2)", offset: 1 },
      ], { duration: length * 1000, fill: "both" });
    });
  }

  /** @returns {[Animation, number][]} all animations and where they begin, in seconds */
  get #all() {
    const lines = this.#slots.flatMap(({ animations, from }) => animations.map(animation => /** @type {[Animation, number]} */ ([animation, from])));
    return [...lines, ...this.#counting.map(animation => /** @type {[Animation, number]} */ ([animation, this.#countedFrom]))];
  }

  /** Runs the animations by a clock. */
  #run(/** @type {number} */ origin) {
    this.#origin = origin;
    this.#drift = 0;
    for (const [animation, from] of this.#all) {
      if (animation.playState !== "running") animation.play();
      animation.startTime = origin + from * 1000;
    }
  }

  /** Stops the animations at a position. */
  #hold(/** @type {number} */ seconds) {
    this.#origin = null;
    this.#stillAt = seconds;
    for (const [animation, from] of this.#all) {
      animation.pause();
      animation.currentTime = (seconds - from) * 1000;
    }
  }
}
