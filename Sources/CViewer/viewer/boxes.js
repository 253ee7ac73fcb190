// @ts-check
import { announce } from "./messages.js";
import { label, part } from "./page.js";
import { hertz } from "./spectrogramtiles.js";
import { texts } from "./texts.js";
import { formatTime } from "./time.js";

/** @typedef {import("./view.js").Box} Box */
/** @typedef {import("./spectrogramview.js").SpectrogramView} SpectrogramView */

/** The level of a new box, in dB; the least size of one and the width of its edges, in CSS pixels. */
const firstGain = -24, least = 4, edge = 7;
/** How far keys move a box, with Shift ten times as far, in CSS pixels. */
const step = 2;

/** The boxes over the spectrogram: stretches of time and frequency that a cleaning turns down. */
export class BoxLayer {
  #chosen = -1;
  /** @type {HTMLButtonElement[]} */
  #elements = [];
  /** @type {Box | null} */
  #draft = null;

  /** @param {SpectrogramView} spectrogram */
  constructor(spectrogram) {
    this.spectrogram = spectrogram;
    this.view = spectrogram.view;
    const own = (/** @type {string} */ name) => part(spectrogram.element, name);
    this.area = own("boxes");
    this.sketch = own("draft");
    this.parts = { tools: own("tools"), readout: own("readout"), hear: own("hear"), gain: own("gain"), gainText: own("gain-text"), remove: own("remove") };
    const { parts, view } = this;
    own("add").onclick = () => this.#addHere();
    parts.hear.onclick = () => { if (this.chosen) void spectrogram.player.hearBox(this.chosen); };
    parts.remove.onclick = () => this.#remove();
    parts.gain.oninput = () => { if (this.chosen) this.#change({ ...this.chosen, gain_db: Number(parts.gain.value) }); };
    spectrogram.player.changed.subscribe(() => part(parts.hear, "icon").setAttribute("href", spectrogram.player.isHearingBox ? "#i-pause" : "#i-play"));
    view.boxed.subscribe(() => {
      if (this.#chosen >= view.boxes.length) this.#chosen = -1;
      this.#show();
    });
    this.#show();
  }

  /**
   * What a drag over the spectrogram marks.
   * @type {import("./gestures.js").Marker}
   */
  marker = {
    held: () => null,
    set: ({ start, end }, from, to) => {
      const [low, high] = [from, to].map(y => this.spectrogram.placeAt(y)).sort((a, b) => a - b);
      this.#draft = this.#box(Math.min(start, end), Math.max(start, end), low, high, firstGain);
      this.spectrogram.stage.ask();
    },
    clear: () => { this.#draft = null; },
    done: () => {
      const draft = this.#draft;
      this.#draft = null;
      this.spectrogram.stage.ask();
      if (draft && this.#height(draft) >= least) this.#add(draft);
    },
  };

  /** @returns {Box} within the recording, with values that people can read */
  #box(/** @type {number} */ start, /** @type {number} */ end, /** @type {number} */ low, /** @type {number} */ high, /** @type {number} */ gain) {
    const { frequencies } = this.spectrogram, { duration } = this.view, round = (/** @type {number} */ seconds) => Math.round(seconds * 1e4) / 1e4;
    const [min, max] = [low, high].map(place => Math.min(frequencies.highest, Math.round(frequencies.hertz(place))));
    return {
      start: round(Math.min(Math.max(0, start), duration - 1e-3)), end: round(Math.min(duration, Math.max(end, start + 1e-3))),
      min_hz: Math.min(min, Math.max(0, max - 1)), max_hz: Math.max(max, 1), gain_db: gain,
    };
  }

  #height(/** @type {Box} */ box) {
    const { spectrogram } = this, { frequencies } = spectrogram;
    return spectrogram.y(frequencies.place(box.min_hz)) - spectrogram.y(frequencies.place(box.max_hz));
  }

  get chosen() { return this.view.boxes[this.#chosen] ?? null; }

  choose(/** @type {number} */ index) {
    if (index === this.#chosen) return;
    this.#chosen = index;
    this.#show();
  }

  #add(/** @type {Box} */ box) {
    this.#chosen = this.view.boxes.length;
    this.view.setBoxes([...this.view.boxes, box]);
    this.#elements[this.#chosen]?.focus({ preventScroll: true });
    announce(describe(box));
  }

  /** Adds a box at the selection, or else around the playhead. */
  #addHere() {
    const { view, spectrogram: { band } } = this, { selection, playhead, target } = view, third = (band.high - band.low) / 3, half = (target.end - target.start) / 20;
    const middle = playhead >= target.start && playhead <= target.end ? playhead : (target.start + target.end) / 2;
    const { start, end } = selection ?? { start: middle - half, end: middle + half };
    this.#add(this.#box(start, end, band.low + third, band.high - third, firstGain));
  }

  #change(/** @type {Box} */ box, index = this.#chosen) {
    this.view.setBoxes(this.view.boxes.map((other, k) => (k === index ? box : other)));
  }

  #remove() {
    const index = this.#chosen;
    this.#chosen = -1;
    this.view.setBoxes(this.view.boxes.filter((_, k) => k !== index));
    this.spectrogram.parts.area.focus({ preventScroll: true });
  }

  #show() {
    const { boxes } = this.view, { parts, chosen } = this;
    while (this.#elements.length > boxes.length) this.#elements.pop()?.remove();
    while (this.#elements.length < boxes.length) this.#elements.push(this.#element(this.#elements.length));
    boxes.forEach((box, k) => {
      const element = this.#elements[k];
      label(element, describe(box));
      element.setAttribute("aria-pressed", String(k === this.#chosen));
      element.style.setProperty("--down", String(-box.gain_db / 60));
    });
    parts.tools.hidden = !chosen;
    parts.readout.hidden = chosen !== null;
    if (chosen) {
      parts.gain.value = String(chosen.gain_db);
      parts.gainText.textContent = texts.decibels(chosen.gain_db);
      parts.gain.setAttribute("aria-valuetext", texts.decibels(chosen.gain_db));
    }
    this.spectrogram.stage.ask();
  }

  #element(/** @type {number} */ index) {
    const element = document.createElement("button");
    element.type = "button";
    element.className = "box";
    this.area.append(element);
    element.onfocus = () => this.choose(index);
    /** @type {{ x: number, y: number, box: Box, sides: { left: boolean, right: boolean, top: boolean, bottom: boolean } } | null} */
    let grip = null;
    element.addEventListener("pointerdown", event => {
      if (event.button) return;
      event.stopPropagation();
      element.setPointerCapture(event.pointerId);
      this.choose(index);
      const { left, right, top, bottom } = element.getBoundingClientRect(), near = (/** @type {number} */ a, /** @type {number} */ b, /** @type {number} */ size) => Math.abs(a - b) < Math.min(edge, size / 4);
      const [width, height, { clientX: x, clientY: y }] = [right - left, bottom - top, event];
      grip = { x, y, box: this.view.boxes[index], sides: { left: near(x, left, width), right: near(x, right, width), top: near(y, top, height), bottom: near(y, bottom, height) } };
    });
    element.addEventListener("pointermove", event => {
      if (grip && element.hasPointerCapture(event.pointerId)) this.#change(this.#moved(grip.box, event.clientX - grip.x, event.clientY - grip.y, grip.sides), index);
    });
    for (const end of ["pointerup", "pointercancel"]) element.addEventListener(end, () => { grip = null; });
    element.addEventListener("keydown", event => {
      const [right, down] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key] ?? [0, 0];
      const pixels = event.shiftKey ? 10 * step : step, isResizing = event.ctrlKey || event.metaKey;
      if (event.key === "Delete" || event.key === "Backspace") this.#remove();
      else if (event.key === "Escape") {
        this.choose(-1);
        this.spectrogram.parts.area.focus({ preventScroll: true });
      } else if (right || down) {
        // With Ctrl, the end and the upper edge move.
        const sides = { left: false, right: isResizing && right !== 0, top: isResizing && down !== 0, bottom: false };
        this.#change(this.#moved(this.view.boxes[index], right * pixels, down * pixels, sides), index);
      } else return;
      event.preventDefault();
      event.stopPropagation();
    });
    return element;
  }

  /** Returns a box that was moved by some pixels, or some of its sides. */
  #moved(/** @type {Box} */ box, /** @type {number} */ x, /** @type {number} */ y, /** @type {{ left: boolean, right: boolean, top: boolean, bottom: boolean }} */ sides) {
    const { spectrogram, view } = this, { frequencies, band } = spectrogram, isWhole = !Object.values(sides).includes(true);
    const seconds = x / Math.max(1, spectrogram.width) * view.span, places = -y / Math.max(1, spectrogram.height) * (band.high - band.low);
    let { start, end } = box, [low, high] = [box.min_hz, box.max_hz].map(value => frequencies.place(value));
    if (isWhole) {
      const along = Math.min(view.duration - end, Math.max(-start, seconds)), up = Math.min(1 - high, Math.max(-low, places));
      [start, end, low, high] = [start + along, end + along, low + up, high + up];
    }
    if (sides.left) start += seconds;
    if (sides.right) end += seconds;
    if (sides.bottom) low += places;
    if (sides.top) high += places;
    return this.#box(Math.min(start, end), Math.max(start, end), Math.min(low, high), Math.max(low, high), box.gain_db);
  }

  /** Places the boxes for the window, once a frame. */
  place() {
    const { spectrogram } = this, { frequencies, width } = spectrogram, put = (/** @type {HTMLElement} */ element, /** @type {Box | null} */ box) => {
      const left = box ? Math.max(-4, spectrogram.x(box.start)) : 0, right = box ? Math.min(width + 4, spectrogram.x(box.end)) : -1;
      element.hidden = !box || right < left;
      if (element.hidden || !box) return;
      const top = spectrogram.y(frequencies.place(box.max_hz));
      element.style.transform = `translate(${left}px, ${top}px)`;
      element.style.width = `${Math.max(least, right - left)}px`;
      element.style.height = `${Math.max(least, spectrogram.y(frequencies.place(box.min_hz)) - top)}px`;
    };
    this.#elements.forEach((element, k) => put(element, this.view.boxes[k]));
    put(this.sketch, this.#draft);
  }
}

/** Says what a box is, for screen readers and as a tooltip. */
const describe = (/** @type {Box} */ { start, end, min_hz, max_hz, gain_db }) => (
  texts.boxSaid(formatTime(start), formatTime(end), hertz(min_hz), hertz(max_hz), texts.decibels(gain_db)));
