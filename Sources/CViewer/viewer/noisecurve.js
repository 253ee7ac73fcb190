// @ts-check
import { part } from "./page.js";
import { levels } from "./spectrum.js";

/** How far below its loudest part the curve ends, in dB; the height of a point, in CSS pixels. */
const range = 48, pace = 4;

/** The spectrum of the noise that a cleaning removes, as a curve at the side of the spectrogram. */
export class NoiseCurve {
  #drawn = "";
  /** @type {import("./spectrum.js").Spectrum | null} */
  #of = null;

  /**
   * @param {HTMLElement} element
   * @param {import("./spectrum.js").SpectrumPicture} spectrum
   */
  constructor(element, spectrum) {
    this.element = element;
    this.line = part(element, "line");
    this.spectrum = spectrum;
  }

  /**
   * Draws the frequencies in view, if they or the noise have changed.
   * @param {import("./spectrogramtiles.js").Frequencies} frequencies
   * @param {{ low: number, high: number }} band places in view
   * @param {number} height in CSS pixels
   */
  draw(frequencies, { low, high }, height) {
    const { noise } = this.spectrum, state = `${frequencies.name} ${frequencies.highest} ${low} ${high} ${height}`;
    if (noise === this.#of && state === this.#drawn) return;
    [this.#of, this.#drawn] = [noise, state];
    this.element.hidden = !noise;
    if (!noise) return;
    const count = Math.max(1, Math.round(height / pace)), loudest = Math.max(...noise.power_db.slice(1));
    const edges = Array.from({ length: count + 1 }, (_, k) => frequencies.hertz(low + k / count * (high - low)));
    const points = levels(noise, edges).map((level, k) => {
      const across = Math.min(1, Math.max(0, (loudest - level) / range));
      return `${(100 * across).toFixed(1)} ${(100 * (1 - (k + 0.5) / count)).toFixed(2)}`;
    });
    this.line.setAttribute("d", `M${points.join("L")}`);
  }
}
