// @ts-check
import { drawPreview, drawRuler, drawWaveforms, fill, Palette, planOf, Surface, wishes } from "./drawing.js";
import { number } from "./language.js";
import { LoadingNote } from "./loading.js";
import { recall, remember } from "./memory.js";
import { formatTime } from "./time.js";
import { texts } from "./texts.js";

/** How fast the front of a growing waveform follows what was read, in milliseconds. */
const revealPace = 180;
/** The room for the label of a suggested region, in CSS pixels. */
const leastLabel = 18;
/** Minimum time between requests for tiles while the window moves, and before prefetching once it rests, in milliseconds. */
const wishPace = 90, restTime = 220;

/** The labels of the amplitude scale: factors of full scale, and the least distance of two, in CSS pixels. */
const scales = {
  decibels: [0, -3, -6, -12, -18, -24, -30, -36, -42, -48, -54, -60].map(decibels => ({ text: number(decibels), at: 10 ** (decibels / 20) })),
  linear: [1, 0.75, 0.5, 0.25, 0.1, 0.05, 0.025, 0.01].map(share => ({ text: number(share, share < 1 ? Math.max(2, String(share).length - 2) : 0), at: share })),
};
const scaleRoom = 20;

/** The two canvases, the ruler and the overlays: everything that moves with the window. */
export class Stage {
  #isDirty = true;
  #isOverviewDirty = true;
  #plan = "";
  /** The plan whose likely tiles are asked for. */
  #restedPlan = "";
  /** @type {import("./tiles.js").Wish[]} */
  #urgent = [];
  #nextWish = 0;
  #wishTimer = 0;
  #restTimer = 0;
  #drawn = "";
  /** @type {keyof typeof scales} */
  #unit = "decibels";
  #scale = "";
  #isAsked = false;
  /** The width of the selection's toolbar, which depends on the language, in CSS pixels. */
  #toolsWidth = 0;
  #lastTime = 0;

  /**
   * @param {import("./view.js").View} view
   * @param {import("./session.js").Session} session
   * @param {import("./tiles.js").TileStore} tiles
   */
  constructor(view, session, tiles) {
    this.view = view;
    this.session = session;
    this.tiles = tiles;
    this.palette = new Palette();
    this.loading = new LoadingNote();
    /** @type {import("./drawing.js").PreviewPicture | null} */
    this.preview = null;
    /** Whether the ruler counts samples, instead of hours, minutes and seconds. */
    this.countsSamples = recall("ruler") === "samples";
    const find = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
    const canvas = (/** @type {string} */ id) => /** @type {HTMLCanvasElement} */ (document.getElementById(id));
    this.overview = new Surface(canvas("overview-canvas"), () => this.redraw());
    this.ruler = new Surface(canvas("ruler"), () => this.redraw());
    this.waves = new Surface(canvas("waves"), () => {
      // At once: the frame that shows the new size has the picture, and what it needs is asked for before anything else.
      this.redraw();
      this.#paint(performance.now());
    });
    this.parts = {
      box: find("overview-window"), overviewHead: find("overview-playhead"), overviewNoise: find("overview-noise"),
      playhead: find("playhead"), selection: find("selection"), noise: find("noise-band"), tools: find("selection-tools"),
      from: find("handle-start"), to: find("handle-end"), lane: find("regions"), shownTime: find("window-text"),
      wave: find("wave"), ruler: find("ruler"), labels: find("lane"), scale: find("scale"),
    };
    /**
     * Emitted once per frame before drawing: playback moves the playhead here.
     * @type {() => boolean}
     */
    this.beforeFrame = () => false;
    /**
     * Called once per frame after drawing, for what moves with the window or the playhead.
     * @type {(() => void)[]}
     */
    this.painters = [];

    new ResizeObserver(([entry]) => {
      this.#toolsWidth = entry.borderBoxSize[0].inlineSize || this.#toolsWidth;
      this.ask();
    }).observe(this.parts.tools);
    view.moved.subscribe(() => this.ask());
    view.selected.subscribe(() => {
      const { from, to, tools } = this.parts;
      // At once, because a press before the next frame must not reach a handle of nothing.
      if (!view.selection) from.hidden = to.hidden = tools.hidden = true;
    });
    tiles.arrived.subscribe(isCoarse => {
      this.#isDirty = true;
      this.#isOverviewDirty ||= isCoarse;
      // It may have brought the length, or a better estimate.
      view.setDuration(session.duration);
      this.ask();
    });
    session.changed.subscribe(() => {
      view.setDuration(session.duration);
      this.describe();
      this.redraw();
    });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
      this.palette.read();
      this.redraw();
    });
  }

  /** Marks everything for redrawing. */
  redraw() {
    this.#isDirty = this.#isOverviewDirty = true;
    this.#plan = "";
    this.ask();
  }

  /** Schedules drawing with the next frame. */
  ask() {
    if (this.#isAsked) return;
    this.#isAsked = true;
    requestAnimationFrame(time => this.#frame(time));
  }

  /** The factor at which the loudest instant fills the height. */
  get fittingGain() {
    const loudest = Math.max(...this.session.layers.map(layer => layer.waveform.loudest));
    return loudest > 0 ? Math.min(64, Math.max(1, 0.95 / loudest)) : 1;
  }

  /**
   * Returns the time at a position of the main view, in seconds.
   * @param {number} x CSS pixels from its left edge
   */
  secondsAt(x) { return this.view.window.start + x / Math.max(1, this.waves.width) * this.view.span; }

  /** Switches the amplitude scale between decibels and shares of full scale. Returns whether it is in decibels. */
  toggleScale() {
    this.#unit = this.#unit === "decibels" ? "linear" : "decibels";
    this.redraw();
    return this.#unit === "decibels";
  }

  /** Switches the ruler between time and samples. */
  toggleRuler() {
    this.countsSamples = !this.countsSamples;
    remember("ruler", this.countsSamples ? "samples" : "time");
    this.redraw();
  }

  /** Labels the amplitudes of each lane, loudest first. */
  #placeScale(/** @type {number} */ lanes) {
    const { view, waves, parts } = this, state = `${this.#unit} ${view.gain} ${lanes} ${waves.height}`;
    if (state === this.#scale) return;
    this.#scale = state;
    const height = waves.height / lanes, half = height / 2 * fill * view.gain, labels = [];
    for (let lane = 0; lane < lanes && height > 4 * scaleRoom; lane++) {
      let last = height / 2;
      for (const { text, at } of scales[this.#unit]) {
        const above = at * half;
        if (above > height / 2 - 6 || above < scaleRoom || last - above < scaleRoom && last < height / 2) continue;
        last = above;
        const label = document.createElement("span");
        label.textContent = text;
        label.style.top = `${(lane + 0.5) * height - above}px`;
        labels.push(label);
      }
    }
    parts.scale.replaceChildren(...labels);
  }

  /** @param {number} time */
  #frame(time) {
    this.#isAsked = false;
    const elapsed = Math.min(50, Math.max(1, time - this.#lastTime));
    this.#lastTime = time;
    let goesOn = this.beforeFrame();
    goesOn = this.view.advance(elapsed) || goesOn;
    goesOn = this.#reveal(elapsed) || goesOn;
    this.#paint(time);
    if (goesOn) this.ask();
  }

  /**
   * Moves the fronts of growing waveforms toward what has been read.
   * @param {number} elapsed milliseconds
   */
  #reveal(elapsed) {
    let isMoving = false;
    for (const layer of this.session.layers) {
      const { availableFrames, totalFrames, complete } = layer.waveform;
      if (layer.revealed >= availableFrames) continue;
      const share = this.view.isCalm.matches ? 1 : 1 - Math.exp(-elapsed / revealPace);
      const least = totalFrames / 4000;
      layer.revealed = Math.min(availableFrames, layer.revealed + Math.max(least, (availableFrames - layer.revealed) * share));
      if (complete && layer.revealed >= totalFrames) layer.revealed = Infinity;
      this.#isDirty = this.#isOverviewDirty = isMoving = true;
    }
    return isMoving;
  }

  /** @param {number} time */
  #paint(time) {
    const { view, session, tiles, palette } = this, layers = session.shown;
    if (!session.layers.length || !this.waves.width) return;
    const whole = { start: 0, end: view.duration };
    this.#wish(layers, whole, time);
    if (view.isFitted && view.gain !== this.fittingGain) {
      view.gain = this.fittingGain;
      view.moved.emit();
    }
    const { start, end } = view.window;
    const state = `${start} ${end} ${view.gain}`;
    if (this.#isDirty || state !== this.#drawn) {
      drawWaveforms(this.waves, view.window, layers, palette, view.gain, tiles);
      if (this.preview && layers[0]?.waveform.lanes === 1) drawPreview(this.waves, view.window, this.preview, palette, view.gain);
      drawRuler(this.ruler, view.window, palette, this.countsSamples ? view.sampleRate : 0);
      this.#placeScale(layers[0]?.waveform.lanes ?? 1);
      this.#drawn = state;
    }
    if (this.#isOverviewDirty) drawWaveforms(this.overview, whole, layers, palette, this.fittingGain, tiles);
    this.#isDirty = this.#isOverviewDirty = false;
    this.loading.update(this.#urgent.some(({ waveform, exponent, index }) => (
      waveform.complete && !waveform.isForgotten && !waveform.isRefused && !waveform.tile(exponent, index))));
    this.#place();
    for (const paint of this.painters) paint();
  }

  /**
   * Requests the tiles for the window's target, if they differ from the last ones: now and then while the window moves,
   * because a request costs more than drawing a frame, and also those that may be needed next once it rests.
   */
  #wish(/** @type {import("./session.js").Layer[]} */ layers, /** @type {import("./view.js").Span} */ whole, /** @type {number} */ time) {
    const { target } = this.view, width = this.waves.canvas.width;
    const plan = planOf(layers, target, width);
    if (plan === this.#plan) return;
    if (time < this.#nextWish) {
      this.#wishTimer ||= setTimeout(() => {
        this.#wishTimer = 0;
        this.ask();
      }, this.#nextWish - time);
      return;
    }
    this.#plan = plan;
    this.#nextWish = time + wishPace;
    const { urgent, likely } = wishes(layers, target, width, whole, this.overview.canvas.width);
    this.#urgent = urgent;
    clearTimeout(this.#restTimer);
    const rest = () => {
      this.#restedPlan = plan;
      this.tiles.want([...urgent, ...likely]);
    };
    // A picture that is drawn again while it rests needs what it needed before.
    if (plan === this.#restedPlan) return rest();
    this.tiles.want(urgent);
    this.#restTimer = setTimeout(rest, restTime);
  }

  #place() {
    const { view, parts } = this, { width } = this.waves, overviewWidth = this.overview.width;
    const x = (/** @type {number} */ seconds) => (seconds - view.window.start) / view.span * width;
    const place = (/** @type {HTMLElement} */ part, /** @type {import("./view.js").Span | null} */ span,
      /** @type {(seconds: number) => number} */ at, /** @type {number} */ limit) => {
      const left = span ? Math.max(-4, at(span.start)) : 0, right = span ? Math.min(limit + 4, at(span.end)) : -1;
      part.hidden = right < left;
      if (part.hidden) return;
      part.style.transform = `translateX(${left}px)`;
      part.style.width = `${Math.max(1, right - left)}px`;
    };
    const along = (/** @type {number} */ seconds) => seconds / view.duration * overviewWidth;
    place(parts.box, view.window, along, overviewWidth);
    place(parts.overviewNoise, view.noise, along, overviewWidth);
    place(parts.selection, view.selection, x, width);
    place(parts.noise, view.noise, x, width);
    parts.overviewHead.style.transform = `translateX(${along(view.playhead)}px)`;
    const head = x(view.playhead);
    parts.playhead.hidden = head < -1 || head > width + 1;
    parts.playhead.style.transform = `translateX(${head}px)`;
    this.#placeHandles(x, width);
    this.#placeRegions(x, width);
    const digits = view.span < 1 ? 4 : view.span < 60 ? 2 : 0;
    const shown = `${formatTime(view.window.start, digits)} – ${formatTime(view.window.end, digits)}`;
    if (parts.shownTime.textContent !== shown) parts.shownTime.textContent = shown;
  }

  #placeHandles(/** @type {(seconds: number) => number} */ x, /** @type {number} */ width) {
    const { view, parts } = this, { selection } = view;
    if (!selection) return;
    for (const [handle, seconds] of /** @type {[HTMLElement, number][]} */ ([[parts.from, selection.start], [parts.to, selection.end]])) {
      const at = x(seconds);
      handle.hidden = at < -1 || at > width + 1;
      handle.style.transform = `translateX(${at}px)`;
    }
    const left = x(selection.start), right = x(selection.end);
    parts.tools.hidden = right < 0 || left > width;
    const middle = (Math.max(0, left) + Math.min(width, right)) / 2, half = Math.min(width / 2, this.#toolsWidth / 2 + 4);
    parts.tools.style.transform = `translateX(${Math.max(half, Math.min(width - half, middle))}px) translateX(-50%)`;
  }

  /** Places labels best first, and leaves out those that would overlap a better one. */
  #placeRegions(/** @type {(seconds: number) => number} */ x, /** @type {number} */ width) {
    /** @type {[number, number][]} */
    const taken = [];
    for (const child of this.parts.lane.children) {
      const part = /** @type {HTMLElement} */ (child), start = x(Number(part.dataset.start)), end = x(Number(part.dataset.end));
      const span = Math.max(leastLabel, Math.min(width, end) - Math.max(0, start)), left = Math.min(Math.max(0, start), width - span);
      part.hidden = end < 0 || start > width || taken.some(([from, to]) => left < to - 0.5 && from < left + span - 0.5);
      if (part.hidden) continue;
      taken.push([left, left + span]);
      part.style.transform = `translateX(${left}px)`;
      part.style.width = `${span}px`;
    }
  }

  /** Describes the picture for screen readers. */
  describe() {
    const { view, session, parts } = this;
    const name = session.original?.recording.name ?? "";
    parts.wave.setAttribute("aria-label", texts.waveLabel(name, formatTime(view.target.start), formatTime(view.target.end)));
    parts.wave.setAttribute("aria-valuemax", view.duration.toFixed(2));
    parts.wave.setAttribute("aria-valuenow", view.playhead.toFixed(2));
    parts.wave.setAttribute("aria-valuetext", texts.playheadSaid(formatTime(view.playhead), formatTime(view.duration)));
    parts.box.setAttribute("aria-valuenow", String(Math.round(view.target.start / Math.max(1e-9, view.duration) * 100)));
    parts.box.setAttribute("aria-valuetext", `${formatTime(view.target.start)} – ${formatTime(view.target.end)}`);
  }
}
