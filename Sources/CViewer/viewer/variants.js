// @ts-check
import { strengths } from "./cleaning.js";
import { Columns, Palette, Surface } from "./drawing.js";
import { afterCalm, copy, find, label, part } from "./page.js";
import { longestPreview } from "./preview.js";
import { isAbort } from "./service.js";
import { texts } from "./texts.js";

const names = /** @type {const} */ (["gentle", "natural", "strong", "voice", "residue"]);
/** The least points of a picture, which otherwise has one for each pixel: it may not be laid out yet. */
const leastPoints = 200;

/** The visible part, cleaned in several ways, as small pictures side by side. */
export class Variants {
  #control = new AbortController();
  #asked = "";

  /**
   * @param {import("./preview.js").Previews} previews
   * @param {import("./session.js").Session} session
   * @param {import("./view.js").View} view
   * @param {import("./cleaning.js").CleaningPanel} panel
   */
  constructor(previews, session, view, panel) {
    this.previews = previews;
    this.session = session;
    this.view = view;
    this.panel = panel;
    this.palette = new Palette();
    this.area = /** @type {HTMLDetailsElement} */ (find("variants"));
    this.cells = names.map(name => {
      const cell = copy("variant-template");
      part(cell, "name").textContent = texts[name];
      label(cell, texts.takeVariant(texts[name]));
      cell.onclick = () => panel.take(name);
      find("variant-list").append(cell);
      const drawing = /** @type {import("./preview.js").Drawing | null} */ (null);
      return { name, cell, surface: new Surface(part(cell, "canvas"), () => this.#redraw()), drawing };
    });
    const showMethods = () => {
      const hasVoice = panel.hasVoice;
      this.area.classList.toggle("with-voice", hasVoice);
      for (const { name, cell } of this.cells) if (name === "voice") cell.hidden = !hasVoice;
    };
    showMethods();
    panel.methodsKnown.subscribe(() => {
      showMethods();
      settled();
    });
    const settled = afterCalm(250, () => this.#fetch());
    view.moved.subscribe(() => this.#ask());
    view.rested.subscribe(() => this.#fetch());
    view.noiseMarked.subscribe(settled);
    view.boxed.subscribe(settled);
    panel.profiles.changed.subscribe(settled);
    find("cleaning").addEventListener("input", settled);
    session.changed.subscribe(settled);
    session.opened.subscribe(() => {
      this.#control.abort();
      for (const cell of this.cells) cell.drawing = null;
      this.#isDirty = true;
      this.#asked = "";
    });
    this.area.addEventListener("toggle", settled);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.palette.read();
      this.#redraw();
    });
  }

  #isAsked = false;
  #ask() {
    if (this.#isAsked || !this.area.open) return;
    this.#isAsked = true;
    requestAnimationFrame(() => {
      this.#isAsked = false;
      this.#draw();
    });
  }

  #redraw() {
    this.#isDirty = true;
    this.#draw();
  }

  /** The last drawn state. A moving playhead changes nothing here. */
  #drawn = "";
  #isDirty = true;
  #draw() {
    const { start, end } = this.view.window, { method, reduction, output } = this.panel.settings;
    const state = `${start} ${end} ${this.view.gain} ${method} ${reduction} ${output}`;
    if (state === this.#drawn && !this.#isDirty) return;
    this.#drawn = state;
    this.#isDirty = false;
    find("variants-hint").hidden = end - start <= longestPreview;
    this.area.classList.toggle("too-long", end - start > longestPreview);
    for (const { name, cell, surface, drawing } of this.cells) {
      const isTaken = name === "residue" ? output === "residue"
        : output === "denoised" && (name === "voice" ? method === name : isClassical(method) && strengths[name] === reduction);
      if (cell.getAttribute("aria-pressed") !== String(isTaken)) cell.setAttribute("aria-pressed", String(isTaken));
      surface.clear();
      if (!drawing || end - start > longestPreview * 4) continue;
      const { pen, canvas } = surface, { window, points } = drawing, perSecond = canvas.width / (end - start);
      const middle = canvas.height / 2, columns = new Columns(canvas.width, middle, middle * 0.94 * Math.sqrt(this.view.gain), middle);
      const left = (window.start - start) * perSecond, right = (window.end - start) * perSecond;
      columns.add(points, 0, left, right, left, (right - left) / points.count);
      columns.draw(pen, name === "residue" ? this.palette.noise : this.palette.cleaned[0]);
    }
  }

  async #fetch() {
    const { original } = this.session, { start, end } = this.view.target;
    if (!this.area.open || !original || original.recording.waveform.state !== "ready" || end - start > longestPreview) return this.#draw();
    const window = { start, end }, { output, ...settings } = this.panel.settings, { hasVoice } = this.panel;
    const asked = JSON.stringify([original.recording.id, window, settings, hasVoice]);
    if (asked === this.#asked) return this.#draw();
    this.#asked = asked;
    this.#control.abort();
    const { signal } = this.#control = new AbortController();
    try {
      for (const cell of this.cells) {
        if (cell.name === "voice" && !hasVoice) continue;
        const drawing = await this.previews.draw(original.recording.id, window, variant(settings, cell.name), Math.max(leastPoints, cell.surface.canvas.width), signal);
        signal.throwIfAborted();
        cell.drawing = { ...drawing, points: evened(drawing.points) };
        this.#isDirty = true;
        this.#ask();
      }
    } catch (error) {
      // Small pictures are optional; errors are reported when the preview is requested.
      if (!isAbort(error)) this.#asked = "";
    }
  }
}

/**
 * Returns points whose amplitudes are the roots of others: what variants leave of the noise differs where it is quiet, by
 * less than a pixel in a small picture.
 * @param {import("./drawing.js").Points} points
 * @returns {import("./drawing.js").Points}
 */
function evened({ peaks, rms, ...rest }) {
  const root = (/** @type {number} */ value) => Math.sign(value) * Math.sqrt(Math.abs(value) * 32768);
  return { ...rest, peaks: peaks.map(root), rms: rms.map(root) };
}

/** @param {string} method */
const isClassical = method => method !== "voice" && method !== "none";

/**
 * Returns the settings of a variant.
 * @param {Omit<import("./session.js").Settings, "output">} settings those that are set
 * @param {typeof names[number]} name
 * @returns {import("./session.js").Settings}
 */
function variant(settings, name) {
  if (name === "residue") return { ...settings, output: name };
  const method = name === "voice" ? name : isClassical(settings.method) ? settings.method : "mmse_lsa";
  return { ...settings, method, reduction: name === "voice" ? settings.reduction : strengths[name], output: "denoised" };
}
