// @ts-check
import { strengths } from "./cleaning.js";
import { Palette, Surface } from "./drawing.js";
import { afterCalm, copy, find, label, part } from "./page.js";
import { fetchPreview, longestPreview, picture } from "./preview.js";
import { isAbort } from "./service.js";
import { texts } from "./texts.js";

/** @typedef {{ window: import("./view.js").Span, shapes: ReturnType<typeof picture> }} Drawing */

const names = /** @type {const} */ (["gentle", "natural", "strong", "residue"]);

/** What is in view, cleaned in four ways, small and side by side. */
export class Variants {
  #control = new AbortController();
  #asked = "";

  /**
   * @param {import("./service.js").Service} service
   * @param {import("./session.js").Session} session
   * @param {import("./view.js").View} view
   * @param {import("./cleaning.js").CleaningPanel} panel
   */
  constructor(service, session, view, panel) {
    this.service = service;
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
      /** @type {Drawing | null} */
      const drawing = null;
      return { name, cell, surface: new Surface(part(cell, "canvas"), () => this.#draw()), drawing: /** @type {Drawing | null} */ (drawing) };
    });
    const settled = afterCalm(250, () => this.#fetch());
    view.moved.subscribe(() => {
      this.#ask();
      settled();
    });
    view.noiseMarked.subscribe(settled);
    find("cleaning").addEventListener("input", settled);
    session.changed.subscribe(settled);
    session.opened.subscribe(() => {
      this.#control.abort();
      for (const cell of this.cells) cell.drawing = null;
      this.#asked = "";
    });
    this.area.addEventListener("toggle", settled);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.palette.read();
      this.#draw();
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

  #draw() {
    const { start, end } = this.view.window, { reduction, output } = this.panel.settings;
    find("variants-hint").hidden = end - start <= longestPreview;
    for (const { name, cell, surface, drawing } of this.cells) {
      const isTaken = name === "residue" ? output === "residue" : output === "denoised" && strengths[name] === reduction;
      if (cell.getAttribute("aria-pressed") !== String(isTaken)) cell.setAttribute("aria-pressed", String(isTaken));
      surface.clear();
      if (!drawing || end - start > longestPreview * 4) continue;
      const { pen, canvas } = surface, { window, shapes } = drawing, perSecond = canvas.width / (end - start);
      const scale = (window.end - window.start) / shapes.count * perSecond;
      pen.setTransform(scale, 0, 0, canvas.height / 2 * 0.94 * this.view.gain, (window.start - start) * perSecond, canvas.height / 2);
      const colors = name === "residue" ? this.palette.original : this.palette.cleaned;
      pen.fillStyle = colors.peak;
      pen.fill(shapes.peak);
      pen.fillStyle = colors.rms;
      pen.fill(shapes.rms);
    }
  }

  async #fetch() {
    const { original } = this.session, { start, end } = this.view.target;
    if (!this.area.open || !original || original.recording.waveform.state !== "ready" || end - start > longestPreview) return this.#draw();
    const window = { start, end }, { method, sensitivity, noise, reduction } = this.panel.settings;
    const asked = JSON.stringify([original.recording.id, window, method, sensitivity, noise, reduction]);
    if (asked === this.#asked) return this.#draw();
    this.#asked = asked;
    this.#control.abort();
    const { signal } = this.#control = new AbortController();
    try {
      for (const cell of this.cells) {
        const settings = cell.name === "residue"
          ? { method, sensitivity, noise, reduction, output: /** @type {const} */ ("residue") }
          : { method, sensitivity, noise, reduction: strengths[cell.name], output: /** @type {const} */ ("denoised") };
        const bytes = await fetchPreview(this.service, original.recording.id, window, settings, signal);
        signal.throwIfAborted();
        cell.drawing = { window, shapes: picture(bytes, 1200, cell.surface.canvas.height / 2 * this.view.gain) };
        this.#ask();
      }
    } catch (error) {
      // Small pictures are a help, not a need; what is wrong is told where it is asked for.
      if (!isAbort(error)) this.#asked = "";
    }
  }
}
