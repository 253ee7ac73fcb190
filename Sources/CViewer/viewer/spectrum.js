// @ts-check
import { Surface } from "./drawing.js";
import { afterCalm, find } from "./page.js";
import { isAbort, recordingPath } from "./service.js";
import { Signal } from "./signal.js";
import { texts } from "./texts.js";

// The spectrum of the recording, with that of the noise over it: shaded is how far the noise is turned down. Levels are those
// of a bin of 48 ms, as `…/spectrum` gives them: the powers of all bins add up to the mean square.

/** @typedef {{ frequencies: number[], power_db: number[] }} Spectrum */

/** The lowest frequency that is drawn, in Hz; the highest range of levels, in dB. */
const lowest = 40, mostRange = 110;
/** A longer recording is represented by some stretches of it, in seconds. */
const longest = 240, stretches = 4, stretch = 30;
/** The width of a bin of 48 ms, in Hz. */
const binHertz = 1 / 0.048;
const marks = [100, 1000, 10_000];

/** The picture of the noise in the settings. */
export class SpectrumPicture {
  /**
   * The spectrum of the noise has changed.
   * @type {Signal<void>}
   */
  changed = new Signal();
  /** @type {Spectrum | null} */
  #whole = null;
  /** @type {Spectrum | null} */
  #noise = null;
  #wholeOf = "";
  #noiseOf = "";
  #control = new AbortController();

  /**
   * @param {import("./service.js").Service} service
   * @param {import("./session.js").Session} session
   * @param {import("./view.js").View} view
   * @param {import("./cleaning.js").CleaningPanel} panel
   * @param {import("./profiles.js").Profiles} profiles
   */
  constructor(service, session, view, panel, profiles) {
    this.service = service;
    this.session = session;
    this.view = view;
    this.panel = panel;
    this.profiles = profiles;
    this.surface = new Surface(find("spectrum"), () => this.#draw());
    const settled = afterCalm(400, () => this.#fetch());
    session.changed.subscribe(settled);
    session.opened.subscribe(() => {
      this.#control.abort();
      this.#whole = this.#noise = null;
      this.#wholeOf = this.#noiseOf = "";
      this.#draw();
    });
    view.noiseMarked.subscribe(settled);
    profiles.changed.subscribe(settled);
    find("cleaning").addEventListener("input", () => this.#draw());
    panel.taken.subscribe(() => this.#draw());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.#draw());
  }

  /** The spectrum of the noise, once it is known. */
  get noise() { return this.#noise; }

  async #fetch() {
    const { original, regions } = this.session;
    if (!original || original.recording.waveform.state !== "ready") return;
    const { id } = original.recording, { chosen } = this.profiles, region = chosen ? null : this.view.noise ?? regions[0] ?? null;
    const noiseOf = chosen ? chosen.id : region ? `${id} ${region.start} ${region.end}` : "";
    if (this.#wholeOf === id && this.#noiseOf === noiseOf) return;
    this.#control.abort();
    const { signal } = this.#control = new AbortController();
    try {
      const readNoise = async () => (chosen ? ofProfile(chosen) : region ? this.#read(id, region.start, region.end, signal) : null);
      const [noise, whole] = await Promise.all([
        this.#noiseOf === noiseOf ? this.#noise : readNoise(), this.#wholeOf === id ? this.#whole : this.#mean(id, this.session.duration, signal)]);
      [this.#noise, this.#noiseOf, this.#whole, this.#wholeOf] = [noise, noiseOf, whole, id];
      this.#draw();
      this.changed.emit();
    } catch (error) {
      // The picture is optional.
      if (!isAbort(error)) this.#draw();
    }
  }

  /** @returns {Promise<Spectrum>} */
  #read(/** @type {string} */ id, /** @type {number} */ start, /** @type {number} */ end, /** @type {AbortSignal} */ signal) {
    return this.service.json(`${recordingPath(id)}/spectrum?start=${start}&end=${end}`, { signal });
  }

  /**
   * Returns the mean spectrum of a recording, or of parts of a long one.
   * @param {string} id
   * @param {number} duration
   * @param {AbortSignal} signal
   */
  async #mean(id, duration, signal) {
    if (duration <= longest) return this.#read(id, 0, duration, signal);
    const starts = Array.from({ length: stretches }, (_, k) => (duration - stretch) * k / (stretches - 1));
    const parts = await Promise.all(starts.map(start => this.#read(id, start, start + stretch, signal)));
    const { frequencies } = parts[0];
    return { frequencies, power_db: frequencies.map((_, k) => mean(parts.map(part => part.power_db[k] ?? -200))) };
  }

  #draw() {
    const { surface } = this, { pen, canvas, ratio } = surface, whole = this.#whole;
    surface.clear();
    if (!whole || !canvas.width) return;
    const style = getComputedStyle(document.documentElement), color = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`);
    const highest = Math.max(2 * lowest, whole.frequencies[whole.frequencies.length - 1]), { width } = canvas, height = canvas.height - 13 * ratio;
    const all = columns(whole, width, highest), noise = this.#noise && columns(this.#noise, width, highest);
    const { reduction, sensitivity } = this.panel.settings, shift = 20 * Math.log10(sensitivity);
    const top = Math.max(...all) + 4, least = Math.min(...(noise ? noise.map(level => level + shift - reduction) : all));
    const bottom = Math.max(top - mostRange, Math.min(least, top - 40) - 2);
    const y = (/** @type {number} */ level) => Math.min(height, (top - level) / (top - bottom) * height);
    const line = (/** @type {number[]} */ levels, /** @type {Path2D} */ path) => {
      levels.forEach((level, x) => path.lineTo(x, y(level)));
      return path;
    };
    const area = line(all, new Path2D(`M0 ${height}`));
    area.lineTo(width, height);
    pen.fillStyle = color("wave-peak");
    pen.fill(area);
    pen.font = `${10 * ratio}px ${color("font")}`;
    pen.fillStyle = color("quiet");
    for (const mark of marks.filter(hertz => hertz < highest * 0.8)) {
      const x = at(mark, width, highest), text = texts.hertz(mark), room = x + (3 * ratio) + pen.measureText(text).width;
      pen.fillRect(x, height, ratio, 3 * ratio);
      if (room <= width) pen.fillText(text, x + 3 * ratio, canvas.height - 2 * ratio);
    }
    if (!noise) return;
    const before = noise.map(level => level + shift), removed = line(before, new Path2D());
    for (let x = width - 1; x >= 0; x--) removed.lineTo(x, y(before[x] - reduction));
    pen.fillStyle = pen.strokeStyle = color("noise");
    pen.globalAlpha = 0.4;
    pen.fill(removed);
    pen.globalAlpha = 1;
    pen.lineWidth = 1.5 * ratio;
    pen.stroke(line(before, new Path2D()));
  }
}

/** The position of a frequency on the logarithmic axis. */
const at = (/** @type {number} */ hertz, /** @type {number} */ width, /** @type {number} */ highest) =>
  Math.log(Math.max(hertz, lowest) / lowest) / Math.log(highest / lowest) * width;

/** The mean of levels in dB, as powers. */
const mean = (/** @type {number[]} */ levels) => 10 * Math.log10(levels.reduce((sum, level) => sum + 10 ** (level / 10), 0) / levels.length);

/** Returns the level of each column. */
const columns = (/** @type {Spectrum} */ spectrum, /** @type {number} */ width, /** @type {number} */ highest) =>
  levels(spectrum, Array.from({ length: width + 1 }, (_, x) => lowest * (highest / lowest) ** (x / width)));

/**
 * Returns the level between each two frequencies: the mean of the bins there, or the line between two bins.
 * @param {Spectrum} spectrum
 * @param {number[]} edges rising, in Hz
 */
export function levels({ frequencies, power_db }, edges) {
  const step = frequencies[1] - frequencies[0], last = frequencies.length - 1, places = edges.map(hertz => Math.min(last, hertz / step));
  return places.slice(1).map((to, k) => {
    const from = places[k], bin = Math.floor(from), next = Math.min(last, bin + 1);
    if (to - from >= 1) return mean(power_db.slice(bin, Math.floor(to) + 1));
    return power_db[bin] + (power_db[next] - power_db[bin]) * (from - bin);
  });
}

/**
 * Returns the spectrum of a profile, whose levels are densities per Hz and channel.
 * @param {import("./profiles.js").Profile} profile
 * @returns {Spectrum}
 */
function ofProfile({ frequencies, power_db }) {
  const width = 10 * Math.log10(binHertz);
  return { frequencies, power_db: frequencies.map((_, k) => mean(power_db.map(channel => channel[k] + width))) };
}
