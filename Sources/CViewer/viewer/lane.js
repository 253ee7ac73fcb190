// @ts-check
import { Surface } from "./drawing.js";
import { find } from "./page.js";
import { texts } from "./texts.js";
import { isRightToLeft, wordsOf } from "./words.js";

// The lane of labels under the ruler, drawn on a canvas. The nearer the view, the more it shows: where labels are, their
// first words, their whole texts, and where each word begins.

/**
 * @typedef {import("./words.js").Label} Label
 * @typedef {import("./view.js").Span} Span
 * @typedef {{ label: Label, part: "start" | "end" | "body" }} Place
 */

/** The least width of a label that is drawn as a box, and of one with a text, in CSS pixels. */
const leastBox = 4, leastText = 22;
/** Words are drawn at their own places where a label is wider than its text by this factor. */
const roomy = 1.3;
/** The room for the flag of a label at one instant, in CSS pixels. */
const flag = 8;
/** The most rows of labels that are heard together, and the room above and below all of them, in CSS pixels. */
const mostRows = 3, edge = 3;

export class Lane {
  /**
   * The label that keys change.
   * @type {Label | null}
   */
  chosen = null;
  #isDirty = true;
  #drawn = "";
  /** @type {Label | null} */
  #sounding = null;
  /**
   * A label whose edge is being dragged.
   * @type {{ before: Label, after: Label } | null}
   */
  drag = null;
  /** @type {WeakMap<Label, number>} */
  #widths = new WeakMap();
  #colors = { box: "", edge: "", ink: "", chosen: "", sounding: "" };

  /**
   * @param {import("./labels.js").Labels} labels
   * @param {import("./view.js").View} view
   * @param {import("./stage.js").Stage} stage
   */
  constructor(labels, view, stage) {
    this.labels = labels;
    this.view = view;
    this.stage = stage;
    this.area = /** @type {HTMLElement} */ (find("lane"));
    this.surface = new Surface(find("labels"), () => this.redraw());
    stage.painters.push(() => this.#paint());
    labels.tiles.arrived.subscribe(() => this.redraw());
    labels.changed.subscribe(() => {
      this.area.hidden = !labels.track;
      document.body.classList.toggle("with-labels", labels.track !== null);
      this.redraw();
    });
    labels.opened.subscribe(() => { this.chosen = null; });
    for (const query of ["(prefers-color-scheme: dark)", "(forced-colors: active)"]) {
      matchMedia(query).addEventListener("change", () => {
        this.#colors.box = "";
        this.redraw();
      });
    }
  }

  redraw() {
    this.#isDirty = true;
    this.stage.ask();
  }

  // Drawing

  /** Draws if anything has changed. A moving playhead changes something only when another label sounds. */
  #paint() {
    const { labels, view, surface } = this, { start, end } = view.window, { playhead } = view;
    if (!labels.track || !surface.width) return;
    labels.tiles.want("lane", view.target);
    const isOver = !this.#sounding || playhead < this.#sounding.start || playhead >= this.#sounding.end;
    if (isOver) {
      const next = labels.tiles.within({ start: playhead, end: playhead + 1e-6 }).at(-1) ?? null;
      if (next !== this.#sounding) this.#isDirty = true;
      this.#sounding = next;
    }
    const state = `${start} ${end}`;
    if (!this.#isDirty && state === this.#drawn) return;
    this.#isDirty = false;
    this.#drawn = state;
    if (!this.#colors.box) this.#readColors();
    surface.clear();
    const { pen, ratio } = surface;
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.font = this.stage.palette.font;
    pen.textBaseline = "middle";
    if (labels.tiles.isCrowded(view.window)) this.#drawCrowd();
    else this.#drawLabels(this.#shown());
  }

  #readColors() {
    const style = getComputedStyle(this.area), color = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
    this.#colors = { box: color("label"), edge: color("label-edge"), ink: color("ink"), chosen: color("select"), sounding: color("label-now") };
  }

  /** The labels in the window, with a dragged one where it is now. */
  #shown() {
    const drag = this.drag, found = this.labels.tiles.within(this.view.window);
    return drag ? found.map(label => (label === drag.before ? drag.after : label)) : found;
  }

  /** Where an instant is, in CSS pixels from the left edge. */
  x(/** @type {number} */ seconds) { return (seconds - this.view.window.start) / this.view.span * this.surface.width; }

  /** Draws a band with the number of labels where there are too many to read each. */
  #drawCrowd() {
    const { surface: { pen, width, height }, labels: { track } } = this;
    const left = Math.max(0, this.x(track?.start ?? 0)), right = Math.min(width, this.x(track?.end ?? 0));
    pen.fillStyle = this.#colors.box;
    pen.fillRect(left, 5, Math.max(1, right - left), height - 10);
    pen.fillStyle = this.#colors.ink;
    pen.textAlign = "start";
    pen.fillText(texts.labelsCrowded(track?.count ?? 0), Math.max(0, left) + 8, height / 2 + 0.5);
  }

  /**
   * Puts labels that are heard together into rows below each other. Neighbors that overlap by less than half share a row.
   * @param {Label[]} found by their start
   * @returns {Label[][]}
   */
  #rows(found) {
    const point = flag / Math.max(1, this.surface.width) * this.view.span;
    /** @type {{ labels: Label[], start: number, end: number }[]} */
    const rows = [];
    for (const label of found) {
      const { start } = label, end = Math.max(label.end, start + point);
      const row = rows.find(row => Math.min(row.end, end) - start <= Math.min(row.end - row.start, end - start) / 2)
        ?? (rows.length < mostRows ? null : rows.reduce((a, b) => a.end <= b.end ? a : b));
      if (row) Object.assign(row, { start, end: Math.max(row.end, end) }).labels.push(label);
      else rows.push({ labels: [label], start, end });
    }
    return rows.map(({ labels }) => labels);
  }

  #drawLabels(/** @type {Label[]} */ found) {
    const rows = this.#rows(found), height = (this.surface.height - 2 * edge) / Math.max(1, rows.length);
    if (rows.length === mostRows) this.surface.pen.font = this.stage.palette.font.replace(/^[\d.]+px/, `${height - 1}px`);
    rows.forEach((labels, k) => this.#drawRow(labels, edge + k * height, edge + (k + 1) * height - (k + 1 < rows.length ? 1 : 0)));
  }

  #drawRow(/** @type {Label[]} */ found, /** @type {number} */ top, /** @type {number} */ bottom) {
    const { surface: { pen, width } } = this;
    let covered = -1;
    found.forEach((label, k) => {
      const from = this.x(label.start), isPoint = label.end <= label.start;
      const next = found[k + 1] ? this.x(found[k + 1].start) : width;
      const to = isPoint ? Math.max(from + flag, next) : Math.max(from + 1, this.x(label.end));
      const isNow = label === this.#sounding, isChosen = label === this.chosen || label === this.drag?.after;
      if (!isPoint && to - from < leastBox && !isChosen) {
        // One mark per pixel.
        if (Math.floor(from) <= covered) return;
        covered = Math.floor(from);
        pen.fillStyle = this.#colors.edge;
        pen.fillRect(covered, top + 2, 1, bottom - top - 4);
        return;
      }
      const left = Math.max(-2, from), right = Math.min(width + 2, to);
      pen.fillStyle = isNow ? this.#colors.sounding : this.#colors.box;
      if (isPoint) pen.fillRect(from, top, flag, Math.min(8, bottom - top));
      else pen.fillRect(left, top, right - left - 1, bottom - top);
      pen.fillStyle = isChosen ? this.#colors.chosen : this.#colors.edge;
      pen.fillRect(from, top, isChosen ? 2 : 1, bottom - top);
      if (isChosen && !isPoint) {
        pen.fillRect(to - 2, top, 2, bottom - top);
        pen.fillRect(left, top, right - left, 1.5);
        pen.fillRect(left, bottom - 1.5, right - left, 1.5);
      }
      if (right - Math.max(0, left) > leastText) this.#drawText(label, from, isPoint ? from : to, Math.max(0, left), right, isPoint, bottom, (top + bottom) / 2 + 0.5);
    });
  }

  /** Draws the words at their own places if there is room, otherwise as much of the text as there is room for. */
  #drawText(/** @type {Label} */ label, /** @type {number} */ from, /** @type {number} */ to, /** @type {number} */ left,
    /** @type {number} */ right, /** @type {boolean} */ isPoint, /** @type {number} */ bottom, /** @type {number} */ middle) {
    const { surface: { pen, height } } = this;
    pen.save();
    pen.beginPath();
    pen.rect(left, 0, right - left - 3, height);
    pen.clip();
    const words = label.words?.length ? wordsOf(label) : [];
    if (words.length > 1 && to - from >= roomy * this.#widthOf(label)) {
      pen.textAlign = "left";
      words.forEach((word, k) => {
        const x = this.x(word.start), next = words[k + 1] ? this.x(words[k + 1].start) : to;
        if (x > right || next < left) return;
        pen.fillStyle = this.#colors.edge;
        if (x > from + 2) pen.fillRect(x, bottom - 5, 1, 5);
        pen.fillStyle = this.#colors.ink;
        // One that is longer than its time is written more narrowly.
        pen.fillText(label.text.slice(word.from, word.to), Math.max(x, from) + 4, middle, Math.max(6, next - x - 5));
      });
    } else {
      const start = isPoint ? left + flag + 3 : left + 5, isRTL = isRightToLeft(label.text), text = label.text.replaceAll("\n", " ");
      pen.fillStyle = this.#colors.ink;
      pen.direction = isRTL ? "rtl" : "ltr";
      pen.textAlign = "start";
      pen.fillText(this.#fitting(label, text, right - start - 6), isRTL ? right - 8 : start, middle);
    }
    pen.restore();
  }

  #widthOf(/** @type {Label} */ label) {
    const width = this.#widths.get(label) ?? this.surface.pen.measureText(label.text.replaceAll("\n", " ")).width;
    this.#widths.set(label, width);
    return width;
  }

  /** The part of a text that fits a width. */
  #fitting(/** @type {Label} */ label, /** @type {string} */ text, /** @type {number} */ room) {
    const width = this.#widthOf(label);
    if (width <= room) return text;
    const cut = text.slice(0, Math.max(1, Math.floor(text.length * room / width) - 1)), space = cut.lastIndexOf(" ");
    return `${space > cut.length / 2 ? cut.slice(0, space) : cut}…`;
  }

  /**
   * What is at a position; edges of the chosen label come first.
   * @param {number} x CSS pixels from the left edge
   * @param {number} y and from the upper one
   * @param {number} near
   * @returns {Place | null}
   */
  at(x, y, near) {
    if (this.labels.tiles.isCrowded(this.view.window)) return null;
    const rows = this.#rows(this.#shown()), row = Math.floor((y - edge) / (this.surface.height - 2 * edge) * rows.length);
    const shown = [...rows[Math.min(rows.length - 1, Math.max(0, row))] ?? []].reverse();
    if (this.chosen && shown.includes(this.chosen)) shown.unshift(this.chosen);
    for (const label of shown) {
      const from = this.x(label.start), to = this.x(label.end);
      if (Math.abs(x - to) <= near && (to - from > 3 * near || label === this.chosen || x > to)) return { label, part: "end" };
      if (Math.abs(x - from) <= near && (to - from > 3 * near || label === this.chosen)) return { label, part: "start" };
    }
    const label = shown.find(({ start, end }) => x >= this.x(start) && x < Math.max(this.x(end), this.x(start) + flag));
    return label ? { label, part: "body" } : null;
  }
}
