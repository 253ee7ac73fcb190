// @ts-check
import { announce } from "./messages.js";
import { find } from "./page.js";
import { texts } from "./texts.js";
import { formatTime } from "./time.js";
import { moved, retyped } from "./words.js";

// Labels are changed in their lane: edges are dragged, texts are typed in their place, and keys step from one to the next.

/**
 * @typedef {import("./words.js").Label} Label
 * @typedef {import("./view.js").Span} Span
 */

/** The reach of an edge for a mouse and for a finger, in CSS pixels. */
const reach = { mouse: 6, touch: 16 };
/** A pointer that moves less than this has clicked, in CSS pixels. */
const slop = 4;
/** The least width of the field in which a text is typed, in CSS pixels. */
const leastField = 240;

export class LabelEditor {
  /** @type {Label | null} */
  #edited = null;
  /** Whether that was added just now. */
  #isNew = false;

  /**
   * @param {import("./lane.js").Lane} lane
   * @param {import("./stage.js").Stage} stage
   * @param {(seconds: number) => void} seek
   */
  constructor(lane, stage, seek) {
    this.lane = lane;
    this.labels = lane.labels;
    this.view = lane.view;
    this.stage = stage;
    this.seek = seek;
    this.box = /** @type {HTMLElement} */ (find("label-editor"));
    this.field = /** @type {HTMLTextAreaElement} */ (find("label-text"));
    stage.painters.push(() => { if (!this.box.hidden) this.#placeBox(); });
    this.#listenToPointers();
    this.#listenToKeys();
    this.#connectField();
  }

  #listenToPointers() {
    const { view, lane } = this, { area, surface } = lane;
    /** @type {import("./lane.js").Place | null} */
    let place = null;
    let startX = 0, isDrag = false, window = view.window;
    const x = (/** @type {MouseEvent} */ event) => event.clientX - surface.left;
    const near = (/** @type {PointerEvent} */ event) => reach[event.pointerType === "mouse" ? "mouse" : "touch"];
    area.addEventListener("pointerdown", event => {
      if (event.button || this.box.contains(/** @type {Node} */ (event.target))) return;
      [startX, isDrag, window] = [x(event), false, view.window];
      place = lane.at(startX, event.offsetY, near(event));
      area.setPointerCapture(event.pointerId);
    });
    area.addEventListener("pointermove", event => {
      if (!area.hasPointerCapture(event.pointerId)) {
        if (event.pointerType === "mouse") area.style.cursor = (lane.at(x(event), event.offsetY, reach.mouse)?.part ?? "body") === "body" ? "" : "ew-resize";
        return;
      }
      if (!isDrag && Math.abs(x(event) - startX) < slop) return;
      isDrag = true;
      if (!place || place.part === "body") {
        const shift = (x(event) - startX) / surface.width * (window.end - window.start);
        return view.show({ start: window.start - shift, end: window.end - shift }, true);
      }
      const { label, part } = place, at = Math.min(view.duration, Math.max(0, this.stage.secondsAt(x(event))));
      const span = part === "start" ? [Math.min(at, label.end), label.end] : [label.start, Math.max(label.start, at)];
      lane.drag = { before: label, after: moved(label, span[0], span[1]) };
      this.lane.redraw();
    });
    const end = (/** @type {PointerEvent} */ event) => {
      const drag = lane.drag, wasThere = place;
      [lane.drag, place] = [null, null];
      if (drag && event.type === "pointerup") this.#change(drag.before, drag.after);
      else if (event.type === "pointerup" && !isDrag && area.hasPointerCapture(event.pointerId)) {
        if (wasThere) this.#choose(wasThere.label);
        else lane.chosen = null;
        if (wasThere?.part !== "start") this.seek(wasThere ? wasThere.label.start : this.stage.secondsAt(x(event)));
      }
      this.lane.redraw();
    };
    area.addEventListener("pointerup", end);
    area.addEventListener("pointercancel", end);
    area.addEventListener("dblclick", event => {
      const found = this.box.contains(/** @type {Node} */ (event.target)) ? null : lane.at(x(event), event.offsetY, 0);
      if (found) this.edit(found.label);
    });
  }

  #choose(/** @type {Label} */ label) {
    this.lane.chosen = label;
    announce(texts.labelSaid(label.text, formatTime(label.start), formatTime(label.end)));
    this.lane.redraw();
  }

  /** Changes, adds or removes a label, and chooses the changed one. */
  #change(/** @type {Label | null} */ before, /** @type {Label | null} */ after) {
    this.lane.chosen = this.labels.edit({ before, after });
    this.lane.redraw();
  }

  // Keys

  #listenToKeys() {
    this.lane.area.addEventListener("keydown", event => {
      const { chosen } = this.lane, side = { ArrowLeft: -1, ArrowRight: 1 }[event.key], isOther = event.ctrlKey || event.metaKey;
      if (event.target !== this.lane.area || event.altKey || isOther && !(side && event.shiftKey && chosen)) return;
      if (side && event.shiftKey && chosen) this.#moveEdge(chosen, isOther ? "start" : "end", side);
      else if (side) this.#step(side);
      else if ((event.key === "Enter" || event.key === "F2") && chosen) this.edit(chosen);
      else if ((event.key === "Delete" || event.key === "Backspace") && chosen) this.remove(chosen);
      else if (event.key === "Escape" && chosen) this.lane.chosen = null;
      else return;
      event.preventDefault();
      this.lane.redraw();
    });
  }

  /** Moves an edge of a label by a few pixels. */
  #moveEdge(/** @type {Label} */ label, /** @type {"start" | "end"} */ edge, /** @type {number} */ side) {
    const step = side * Math.max(1 / this.view.sampleRate, this.view.span / this.lane.surface.width * 4), { start, end } = label;
    const at = Math.min(this.view.duration, Math.max(0, label[edge] + step));
    this.#change(label, edge === "start" ? moved(label, Math.min(at, end), end) : moved(label, start, Math.max(start, at)));
    if (this.lane.chosen) this.#choose(this.lane.chosen);
  }

  /** Chooses the next label or the one before, and shows it. */
  #step(/** @type {number} */ side) {
    const { view, labels } = this, from = this.lane.chosen?.start ?? view.playhead, room = labels.tiles.seconds * 4;
    const found = labels.tiles.within({ start: from - room, end: from + room });
    const next = side > 0 ? found.find(label => label.start > from) : found.filter(label => label.start < from).at(-1);
    if (!next) return;
    this.#choose(next);
    this.seek(next.start);
    const { start, end } = view.target, span = end - start;
    if (next.start < start || next.start > end) view.show({ start: next.start - span / 4, end: next.start + span * 3 / 4 });
  }

  // Changes

  /**
   * Adds a label, and opens it unless something plays.
   * @param {Span} span
   * @param {boolean} isOpened
   */
  add({ start, end }, isOpened) {
    /** @type {Label} */
    const label = { start, end, text: "" };
    this.#change(null, label);
    announce(texts.labelAdded(formatTime(start)));
    if (!isOpened || !this.lane.chosen) return;
    this.edit(this.lane.chosen);
    this.#isNew = true;
  }

  remove(/** @type {Label} */ label) {
    this.#change(label, null);
    announce(texts.labelRemoved(label.text));
  }

  /** Opens the text of a label in its place. */
  edit(/** @type {Label} */ label) {
    this.#finish(true);
    this.#edited = this.lane.chosen = label;
    this.field.value = label.text;
    this.field.dir = "auto";
    this.box.hidden = false;
    this.#placeBox();
    this.field.focus({ preventScroll: true });
    this.field.select();
    this.lane.redraw();
  }

  #placeBox() {
    const { start, end } = this.#edited ?? { start: 0, end: 0 }, left = this.lane.x(start), whole = this.lane.surface.width;
    const width = Math.min(whole, Math.max(leastField, this.lane.x(end) - left));
    this.box.style.width = `${width}px`;
    this.box.style.transform = `translateX(${Math.max(0, Math.min(whole - width, left))}px)`;
  }

  #connectField() {
    this.field.addEventListener("keydown", event => {
      event.stopPropagation();
      if (event.key === "Escape") this.#finish(false);
      else if (event.key === "Enter" && !event.shiftKey) this.#finish(true);
      else return;
      event.preventDefault();
      this.lane.area.focus({ preventScroll: true });
    });
    this.box.addEventListener("focusout", event => {
      if (!this.box.contains(/** @type {Node} */ (event.relatedTarget))) this.#finish(true);
    });
    find("label-remove").onclick = () => {
      const label = this.#edited, isNew = this.#isNew;
      this.#finish(false);
      if (label && !isNew) this.remove(label);
      this.lane.area.focus({ preventScroll: true });
    };
  }

  #finish(/** @type {boolean} */ isKept) {
    const label = this.#edited, isNew = this.#isNew;
    if (!label) return;
    this.#edited = null;
    this.#isNew = false;
    this.box.hidden = true;
    if (!isKept && isNew) {
      this.labels.withdraw(label);
      this.lane.chosen = null;
    }
    if (isKept && this.field.value.trim() !== label.text) this.#change(label, retyped(label, this.field.value));
    this.lane.redraw();
  }
}
