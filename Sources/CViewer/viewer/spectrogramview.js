// @ts-check
import { BoxLayer } from "./boxes.js";
import { planOf, wishes } from "./drawing.js";
import { mainView, wheel } from "./gestures.js";
import { leftToRight, number } from "./language.js";
import { recall, remember } from "./memory.js";
import { NoiseCurve } from "./noisecurve.js";
import { copy, find, part } from "./page.js";
import { isAbort } from "./service.js";
import { gradient, painterFor, paletteNames } from "./spectrogramcanvas.js";
import { Band, Frequencies, hertz, loudest, mostLevel, quietest, rows, scaleNames } from "./spectrogramtiles.js";
import { texts } from "./texts.js";
import { tileLength, TileStore } from "./tiles.js";
import { formatTime } from "./time.js";

/** Minimum time between requests for tiles while the window moves, in milliseconds. */
const wishPace = 90;
/** How many tiles are kept: 25 MB. */
const mostTiles = 96;
/** The most that the frequencies are enlarged; the least distance of the two levels, in dB, and of two labels, in CSS pixels. */
const mostZoom = 2 ** mostLevel, leastRange = 10, labelRoom = 22;
/** The most columns, and the rows, of the picture of a preview. */
const mostColumns = 2048, previewRows = 512;
const notes = ["C", "C♯", "D", "E♭", "E", "F", "F♯", "G", "A♭", "A", "B♭", "B"];

/** Returns the name of the note that is nearest to a frequency; A4 has 440 Hz. */
function noteOf(/** @type {number} */ value) {
  const pitch = Math.round(69 + 12 * Math.log2(value / 440));
  return value >= 16 ? `${notes[((pitch % 12) + 12) % 12]}${Math.floor(pitch / 12) - 1}` : "";
}

/** The spectrogram below the waveform, on the same time axis. */
export class SpectrogramView {
  isShown = false;
  /**
   * The frequencies in view, as places on their scale.
   * @type {{ low: number, high: number }}
   */
  band = { low: 0, high: 1 };
  width = 0;
  height = 0;
  #ratio = 1;
  #top = 0;
  /** @type {Map<string, Band>} */
  #bands = new Map();
  #shownOf = "";
  #drawn = "";
  #plan = "";
  #restedPlan = "";
  #nextWish = 0;
  #restTimer = 0;
  /** @type {{ x: number, y: number } | null} */
  #pointer = null;
  /** @type {import("./drawing.js").PreviewPicture | null} */
  #preview = null;
  /** @type {{ tile: { bytes: Uint8Array, count: number }, start: number, end: number } | null} */
  #overlay = null;
  /** Where the original ends and the preview begins, as a share of the preview. */
  #curtain = 0.5;
  #control = new AbortController();

  /**
   * @param {{ session: import("./session.js").Session, view: import("./view.js").View, stage: import("./stage.js").Stage,
   *   player: import("./player.js").Player, previews: import("./preview.js").Previews, spectrum: import("./spectrum.js").SpectrumPicture }} page
   */
  constructor({ session, view, stage, player, previews, spectrum }) {
    this.session = session;
    this.view = view;
    this.stage = stage;
    this.player = player;
    this.previews = previews;
    this.element = copy("spectrogram-template");
    find("stage").append(this.element);
    const own = (/** @type {string} */ name) => part(this.element, name);
    this.parts = {
      area: own("area"), canvas: own("canvas"), axis: own("axis"), readout: own("readout"), playhead: own("playhead"),
      selection: own("selection"), noise: own("noise"), curtain: own("curtain"), bar: own("bar"), ramp: own("ramp"), low: own("low"), high: own("high"),
    };
    this.store = new TileStore(session.service, mostTiles);
    this.store.arrived.subscribe(() => this.#redraw());
    this.painter = painterFor(this.parts.canvas, () => this.#redraw());
    const { palette, scale, low, high } = recall("spectrogram") ?? {};
    this.palette = paletteNames.find(name => name === palette) ?? paletteNames[0];
    this.scale = scaleNames.find(name => name === scale) ?? scaleNames[0];
    this.levels = high - low >= leastRange ? { low, high } : { low: -105, high: -15 };
    this.boxes = new BoxLayer(this);
    this.curve = new NoiseCurve(own("curve"), spectrum);
    spectrum.changed.subscribe(() => this.#redraw());
    this.#connect();
    this.#showLevels();
  }

  #connect() {
    const { view, stage, session, player } = this, { area, canvas } = this.parts;
    new ResizeObserver(([{ contentRect }]) => {
      [this.width, this.height, this.#ratio, this.#top] = [contentRect.width, contentRect.height, devicePixelRatio, area.getBoundingClientRect().top];
      canvas.width = Math.round(this.width * this.#ratio);
      canvas.height = Math.round(this.height * this.#ratio);
      this.#redraw();
    }).observe(area);
    stage.painters.push(() => { if (this.isShown) this.#paint(); });
    session.changed.subscribe(() => this.#redraw());
    session.opened.subscribe(() => this.#forget());
    player.changed.subscribe(() => this.#redraw());
    mainView(area, stage, view, seconds => {
      this.boxes.choose(-1);
      player.seek(seconds);
    }, session.service.credentials.share ? undefined : this.boxes.marker);
    wheel(area, stage, view, (amount, event) => this.zoom(Math.exp(-2 * amount), this.placeAt(event.clientY)));
    area.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => {
      this.#pointer = { x: event.clientX - stage.waves.left, y: event.clientY };
      stage.ask();
    });
    area.addEventListener("pointerleave", () => {
      this.#pointer = null;
      stage.ask();
    });
    part(this.element, "closer").onclick = () => this.zoom(0.5);
    part(this.element, "wider").onclick = () => this.zoom(2);
    const choose = (/** @type {string} */ id, /** @type {readonly string[]} */ names, /** @type {string} */ chosen, /** @type {(name: any) => void} */ act) => {
      const select = find(id);
      select.replaceChildren(...names.map(name => new Option(texts[/** @type {"mel"} */ (name)], name)));
      select.value = chosen;
      select.onchange = () => {
        act(select.value);
        this.#remember();
        this.#redraw();
      };
    };
    choose("palette", paletteNames, this.palette, name => {
      this.palette = name;
      this.#showLevels();
    });
    choose("frequency-scale", scaleNames, this.scale, name => {
      this.scale = name;
      this.band = { low: 0, high: 1 };
      this.#forget();
    });
    this.#connectLevels();
    this.#connectCurtain();
  }

  #remember() {
    const { palette, scale, levels: { low, high }, isShown } = this;
    remember("spectrogram", { palette, scale, low, high, isShown });
  }

  show(/** @type {boolean} */ isShown) {
    this.isShown = isShown;
    document.body.classList.toggle("spectrogram-shown", isShown);
    find("spectrogram-show").setAttribute("aria-pressed", String(isShown));
    this.element.hidden = !isShown;
    this.#remember();
    if (isShown) this.#redraw();
    else this.#forget();
  }

  #redraw() {
    this.#drawn = this.#plan = "";
    if (this.isShown) this.stage.ask();
  }

  /** Drops all tiles and stops loading. */
  #forget() {
    clearTimeout(this.#restTimer);
    this.#restedPlan = "";
    this.store.want([]);
    for (const band of this.#bands.values()) this.store.forget(band);
    this.#bands.clear();
    this.#control.abort();
    this.#preview = this.#overlay = null;
    this.#redraw();
  }

  /** The layer that is shown: the one that is heard; the original below a preview, and while a result is being made. */
  get layer() {
    const { session, player, stage } = this, { cleaned, original } = session;
    return cleaned && cleaned.recording.sha256 !== null && player.voice === "cleaned" && !stage.preview ? cleaned : original;
  }

  get frequencies() { return new Frequencies(this.layer?.waveform.sampleRate ?? 44100, this.scale); }

  /** The place of a height on the page, and the height of a place in the picture, in CSS pixels. */
  placeAt(/** @type {number} */ clientY) {
    const { low, high } = this.band;
    return Math.min(1, Math.max(0, high - (clientY - this.#top) / Math.max(1, this.height) * (high - low)));
  }
  y(/** @type {number} */ place) { return (this.band.high - place) / (this.band.high - this.band.low) * this.height; }
  x(/** @type {number} */ seconds) { return (seconds - this.view.window.start) / this.view.span * this.width; }

  /**
   * Shows `factor` times as many frequencies, keeping the position of a place.
   * @param {number} factor
   * @param {number} [around]
   */
  zoom(factor, around = (this.band.low + this.band.high) / 2) {
    const { low, high } = this.band, span = Math.min(1, Math.max(1 / mostZoom, (high - low) * factor));
    const start = Math.min(1 - span, Math.max(0, around - (around - low) / (high - low) * span));
    this.band = { low: start, high: start + span };
    this.#top = this.parts.area.getBoundingClientRect().top;
    this.#redraw();
  }

  /** The bands to draw: the whole, and those in view at the level that has a row for each or every second pixel. */
  #bandsInView() {
    const { layer } = this, { low, high } = this.band;
    if (!layer) return [];
    if (this.#shownOf !== layer.recording.id) this.#bands.clear();
    this.#shownOf = layer.recording.id;
    const level = Math.min(mostLevel, Math.max(0, Math.floor(Math.log2(this.parts.canvas.height / (high - low) / rows)))), bands = [];
    for (const each of level ? [0, level] : [0]) {
      for (let number = Math.floor(low * 2 ** each); number < Math.ceil(high * 2 ** each - 1e-9); number++) {
        const key = `${each} ${number}`, band = this.#bands.get(key) ?? new Band(layer.recording, this.frequencies, each, number);
        this.#bands.set(key, band);
        const { availableFrames, totalFrames, complete } = layer.waveform;
        Object.assign(band, { availableFrames, totalFrames, complete });
        bands.push(band);
      }
    }
    return bands;
  }

  /** Requests the tiles for the window's target, and those that may be needed next once it rests. */
  #want(/** @type {Band[]} */ bands) {
    const { target, duration } = this.view, { width } = this.parts.canvas, time = performance.now();
    const layers = /** @type {any[]} */ (bands.map(waveform => ({ waveform }))), plan = planOf(layers, target, width);
    if (plan === this.#plan) return;
    if (time < this.#nextWish) return void setTimeout(() => this.stage.ask(), this.#nextWish - time);
    this.#plan = plan;
    this.#nextWish = time + wishPace;
    const { urgent, likely } = wishes(layers, target, width, { start: 0, end: duration }, tileLength);
    clearTimeout(this.#restTimer);
    const rest = () => {
      this.#restedPlan = plan;
      this.store.want([...urgent, ...likely]);
    };
    if (plan === this.#restedPlan) return rest();
    this.store.want(urgent);
    this.#restTimer = setTimeout(rest, 220);
  }

  /** The tiles to draw, the coarsest first: finer ones cover them. */
  #pieces(/** @type {Band[]} */ bands) {
    const { canvas } = this.parts, { window, span } = this.view, pieces = [];
    for (const band of bands) {
      const first = window.start * band.sampleRate, perPixel = span * band.sampleRate / canvas.width, own = band.exponentFor(perPixel);
      const [top, bottom] = [this.y(band.high) * this.#ratio, this.y(band.low) * this.#ratio], found = [];
      const coarser = Array.from({ length: Math.max(0, band.wholeExponent - own) }, (_, k) => own + 1 + k);
      let isWhole = false;
      // Finer tiles stand in for those that are missing, so that zooming out shows at once what was seen before.
      for (const exponent of [own, own - 1, ...coarser]) {
        if (isWhole) break;
        const frames = tileLength * 2 ** exponent, last = Math.floor((Math.min(first + canvas.width * perPixel, band.totalFrames) - 1) / frames);
        isWhole = true;
        for (let index = Math.floor(first / frames); index <= last; index++) {
          const tile = /** @type {import("./spectrogramtiles.js").SpectrogramTile | undefined} */ (band.tile(exponent, index));
          isWhole &&= !band.isStale(exponent, index);
          if (!tile?.count) continue;
          this.store.touch(band, tile);
          const left = (tile.startFrame - first) / perPixel;
          found.push({ tile, left, right: left + tile.count * tile.scale / perPixel, top, bottom, skip: 0 });
        }
      }
      pieces.push(...found.reverse());
    }
    const overlay = this.#overlay;
    if (overlay) {
      const x = (/** @type {number} */ seconds) => this.x(seconds) * this.#ratio, skip = this.#preview?.isNoise ? 0 : this.#curtain;
      pieces.push({ tile: overlay.tile, left: x(overlay.start), right: x(overlay.end), top: this.y(1) * this.#ratio, bottom: this.y(0) * this.#ratio, skip });
    }
    return pieces;
  }

  #paint() {
    if (!this.width || !this.layer) return;
    this.#foresee();
    const bands = this.#bandsInView(), { window } = this.view, { low, high } = this.band;
    this.#want(bands);
    const state = `${window.start} ${window.end} ${low} ${high} ${this.levels.low} ${this.levels.high} ${this.palette} ${this.#curtain} ${this.#overlay !== null}`;
    if (state !== this.#drawn) {
      this.painter.draw(this.#pieces(bands), this.levels, this.palette);
      this.#labelAxis();
    }
    this.#drawn = state;
    this.curve.draw(this.frequencies, this.band, this.height);
    this.#place();
    this.boxes.place();
    this.#read(bands);
  }

  #place() {
    const { view, parts } = this;
    for (const [element, span] of /** @type {[HTMLElement, import("./view.js").Span | null][]} */ ([[parts.selection, view.selection], [parts.noise, view.noise]])) {
      const left = span ? Math.max(-4, this.x(span.start)) : 0, right = span ? Math.min(this.width + 4, this.x(span.end)) : -1;
      element.hidden = right < left;
      element.style.transform = `translateX(${left}px)`;
      element.style.width = `${Math.max(1, right - left)}px`;
    }
    const head = this.x(view.playhead), overlay = this.#overlay, curtain = overlay ? this.x(overlay.start + this.#curtain * (overlay.end - overlay.start)) : -1;
    parts.playhead.hidden = head < -1 || head > this.width + 1;
    parts.playhead.style.transform = `translateX(${head}px)`;
    parts.curtain.hidden = !overlay || this.#preview?.isNoise || curtain < -1 || curtain > this.width + 1;
    parts.curtain.style.transform = `translateX(${curtain}px)`;
  }

  /** Labels the frequencies: decades first, then what has room between them. */
  #labelAxis() {
    const { frequencies } = this, state = `${this.scale} ${this.band.low} ${this.band.high} ${this.height} ${frequencies.highest}`;
    if (this.parts.axis.dataset.state === state) return;
    this.parts.axis.dataset.state = state;
    /** @type {{ y: number, label: HTMLElement }[]} */
    const placed = [];
    for (const digits of [[1], [2, 5], [3, 4, 7], [1.5, 2.5, 6, 8], [1.2, 1.8, 3.5, 4.5, 9]]) {
      for (const decade of [10, 100, 1000, 10_000, 100_000]) {
        for (const digit of digits) {
          const value = digit * decade, y = this.y(frequencies.place(value));
          if (value > frequencies.highest || y < 9 || y > this.height - 9 || placed.some(other => Math.abs(other.y - y) < labelRoom)) continue;
          const label = document.createElement("span");
          label.textContent = leftToRight(value < 1000 ? number(value) : `${number(value / 1000, value % 1000 ? 1 : 0)} k`);
          label.style.top = `${y}px`;
          placed.push({ y, label });
        }
      }
    }
    this.parts.axis.replaceChildren(...placed.map(({ label }) => label));
  }

  /** Shows the time, frequency and level below the pointer. */
  #read(/** @type {Band[]} */ bands) {
    const { parts, view } = this, pointer = this.#pointer;
    let text = texts.boxHint;
    if (pointer) {
      const seconds = this.stage.secondsAt(pointer.x), place = this.placeAt(pointer.y), value = this.frequencies.hertz(place), frame = seconds * bands[0].sampleRate;
      const levels = bands.filter(band => place >= band.low && place <= band.high).map(band => band.level(frame, place)).filter(level => !Number.isNaN(level));
      text = [formatTime(Math.max(0, seconds), view.span < 1 ? 4 : 2), hertz(value), noteOf(value), levels.length && texts.decibels(Math.round(levels[levels.length - 1]))].filter(Boolean).join(" · ");
    }
    if (parts.readout.textContent !== text) parts.readout.textContent = text;
  }

  /** Fetches the picture of a preview, while there is one. */
  #foresee() {
    const { preview } = this.stage, { computed } = this.player;
    if (preview?.points === this.#preview?.points) return;
    this.#control.abort();
    this.#preview = preview;
    this.#overlay = null;
    this.#drawn = "";
    if (!preview || !computed) return;
    const { signal } = this.#control = new AbortController(), { id, window, settings } = computed, rate = this.layer?.waveform.sampleRate ?? 1;
    const scale = 2 ** Math.max(6, Math.ceil(Math.log2((window.end - window.start) * rate / mostColumns))), { lowest, highest } = this.frequencies;
    const spectrogram = { scale, height: previewRows, frequency_scale: this.scale, min_hz: lowest, max_hz: highest, window: this.#bands.get("0 0")?.transform };
    this.previews.fetch(id, window, { ...settings, output: preview.isNoise ? "residue" : "denoised" }, signal, { as: "spectrogram", spectrogram }).then(bytes => {
      if (signal.aborted) return;
      const start = Math.floor(window.start * rate / scale) * scale / rate, count = bytes.byteLength / previewRows;
      this.#overlay = { tile: { bytes: new Uint8Array(bytes), count }, start, end: start + count * scale / rate };
      this.#redraw();
      // It is heard all the same.
    }, error => { if (!isAbort(error)) this.#overlay = null; });
  }

  #connectCurtain() {
    const { curtain } = this.parts, move = (/** @type {number} */ share) => {
      this.#curtain = Math.min(1, Math.max(0, share));
      curtain.setAttribute("aria-valuenow", String(Math.round(this.#curtain * 100)));
      this.stage.ask();
    };
    move(this.#curtain);
    curtain.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => {
      event.stopPropagation();
      curtain.setPointerCapture(event.pointerId);
    });
    curtain.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => {
      const overlay = this.#overlay;
      if (!overlay || !curtain.hasPointerCapture(event.pointerId)) return;
      move((this.stage.secondsAt(event.clientX - this.stage.waves.left) - overlay.start) / (overlay.end - overlay.start));
    });
    turnByKeys(curtain, steps => move(this.#curtain + steps / 100));
  }

  /** The handles at the side set the levels of the first and the last color. */
  #connectLevels() {
    const { bar } = this.parts;
    for (const end of /** @type {const} */ (["low", "high"])) {
      const handle = this.parts[end], set = (/** @type {number} */ level) => {
        const { low, high } = this.levels, bounded = Math.round(Math.min(loudest, Math.max(quietest, level)));
        this.levels = end === "low" ? { low: Math.min(bounded, high - leastRange), high } : { low, high: Math.max(bounded, low + leastRange) };
        this.#showLevels();
        this.#remember();
      };
      handle.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => {
        event.stopPropagation();
        handle.setPointerCapture(event.pointerId);
      });
      handle.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => {
        if (!handle.hasPointerCapture(event.pointerId)) return;
        const { top, height } = bar.getBoundingClientRect();
        set(loudest - (event.clientY - top) / height * (loudest - quietest));
      });
      turnByKeys(handle, steps => set(this.levels[end] + steps));
    }
  }

  #showLevels() {
    const { ramp } = this.parts, at = (/** @type {number} */ level) => (loudest - level) / (loudest - quietest) * 100;
    for (const end of /** @type {const} */ (["low", "high"])) {
      const handle = this.parts[end];
      handle.style.top = `${at(this.levels[end])}%`;
      handle.setAttribute("aria-valuenow", String(this.levels[end]));
      handle.setAttribute("aria-valuetext", texts.decibels(this.levels[end]));
    }
    ramp.style.top = `${at(this.levels.high)}%`;
    ramp.style.bottom = `${100 - at(this.levels.low)}%`;
    ramp.style.background = gradient(this.palette);
    this.stage.ask();
  }
}

/** Keys of a slider: arrows go a step, with Shift or Page ten. */
function turnByKeys(/** @type {HTMLElement} */ element, /** @type {(steps: number) => void} */ turn) {
  element.addEventListener("keydown", event => {
    const steps = { ArrowUp: 1, ArrowRight: 1, ArrowDown: -1, ArrowLeft: -1, PageUp: 10, PageDown: -10 }[event.key];
    if (!steps) return;
    event.preventDefault();
    event.stopPropagation();
    turn(event.shiftKey && Math.abs(steps) === 1 ? 10 * steps : steps);
  });
}
