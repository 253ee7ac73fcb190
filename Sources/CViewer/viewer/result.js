// @ts-check
import { tell } from "./messages.js";
import { download, find } from "./page.js";
import { recordingPath } from "./service.js";
import { layerName } from "./session.js";
import { texts } from "./texts.js";

/** @typedef {import("./session.js").Layer} Layer */

/** The card of the result in front: listening before and after, the noise in figures, downloads, and another attempt. */
export class ResultCard {
  /** @type {Layer | null} */
  #layer = null;
  /** @type {Layer | null} */
  #closed = null;
  #control = new AbortController();

  /**
   * @param {import("./service.js").Service} service
   * @param {import("./session.js").Session} session
   * @param {import("./player.js").Player} player
   * @param {() => void} openSettings
   */
  constructor(service, session, player, openSettings) {
    this.service = service;
    this.session = session;
    this.card = find("result");
    session.changed.subscribe(() => this.#show());
    session.ended.subscribe(({ layer }) => {
      this.#closed = null;
      this.#show();
      if (layer === this.#layer) this.card.scrollIntoView({ block: "nearest" });
    });
    const hear = (/** @type {"original" | "cleaned"} */ voice) => () => {
      player.setVoice(voice);
      if (!player.isPlaying) void player.play();
    };
    find("result-before").onclick = hear("original");
    find("result-after").onclick = hear("cleaned");
    player.changed.subscribe(() => {
      for (const [id, voice] of [["before", "original"], ["after", "cleaned"]]) {
        find(`result-${id}`).setAttribute("aria-pressed", String(player.isPlaying && player.voice === voice));
      }
    });
    find("result-again").onclick = openSettings;
    find("result-download").onclick = () => this.#download();
    find("result-close").onclick = () => {
      this.#closed = this.#layer;
      this.#show();
    };
  }

  #show() {
    const { cleaned } = this.session, layer = cleaned && cleaned.recording.sha256 !== null && cleaned !== this.#closed ? cleaned : null;
    this.card.hidden = !layer;
    if (!layer || layer === this.#layer) return;
    this.#layer = layer;
    const name = layerName(layer);
    find("result-title").textContent = name === texts.cleaned ? name : texts.resultOf(name);
    this.#figures = ["", ""];
    this.#tell();
    const { container } = layer.recording.format;
    find("result-format").replaceChildren(...["", "wav", "flac", "mp3", "opus"].filter(format => format !== container).map(format => (
      new Option(format ? format.toUpperCase() : texts.sameFormat(container.toUpperCase()), format))));
    void this.#measure(layer);
  }

  /** The level of the noise and the loudness, before and after. */
  #figures = ["", ""];
  #tell() { find("result-figures").textContent = this.#figures.filter(Boolean).join(" · "); }

  async #measure(/** @type {Layer} */ layer) {
    this.#control.abort();
    const { signal } = this.#control = new AbortController(), { original } = this.session;
    // Jobs are forgotten after a while.
    const job = await this.service.json(`v1/jobs/${layer.recording.derived_from.job}`, { signal }).catch(() => null);
    await this.#measureNoise(layer, original, job, signal);
    await this.#measureLoudness(layer, original, job, signal);
  }

  /** Shows the loudness of both; if the job has not measured it, the service does it now, which may take a while. */
  async #measureLoudness(/** @type {Layer} */ layer, /** @type {Layer | null} */ original, /** @type {any} */ job, /** @type {AbortSignal} */ signal) {
    const measure = async (/** @type {Layer} */ { recording }) => this.service.json(`${recordingPath(recording.id)}/loudness`, { signal });
    try {
      const { before, after } = job?.result?.loudness
        ?? (original ? { before: await measure(original), after: await measure(layer) } : {});
      const isKnown = typeof before?.integrated_lufs === "number" && typeof after?.integrated_lufs === "number";
      if (!isKnown || layer !== this.#layer) return;
      this.#figures[1] = texts.loudnessLevels(before.integrated_lufs, after.integrated_lufs);
      this.#tell();
    } catch { /* Figures are optional. */ }
  }

  /** Shows the level of the noise where it was learned. */
  async #measureNoise(/** @type {Layer} */ layer, /** @type {Layer | null} */ original, /** @type {any} */ job, /** @type {AbortSignal} */ signal) {
    try {
      let { before, after } = job?.result?.noise_level ?? {};
      if (typeof before !== "number" || typeof after !== "number") {
        const region = job?.result?.noise?.start === undefined ? this.session.regions[0] : job.result.noise;
        if (!region || !original) return;
        [before, after] = await Promise.all([original, layer].map(({ recording }) => this.#level(recording, region, signal)));
      }
      if (layer !== this.#layer) return;
      this.#figures[0] = texts.noiseLevels(before, after);
      this.#tell();
    } catch { /* Figures are optional. */ }
  }

  /**
   * Returns the level of a stretch in dBFS.
   * @param {any} recording
   * @param {import("./view.js").Span} region
   * @param {AbortSignal} signal
   */
  async #level({ id }, { start, end }, signal) {
    const slice = await this.service.json(`${recordingPath(id)}/waveform?measures=rms&scale=256&start=${start}&end=${end}`, { signal });
    // The window is widened to whole points, so the first and the last may have other sound.
    const inner = slice.rms.length > 4 ? slice.rms.slice(1, -1) : slice.rms;
    const power = inner.reduce((/** @type {number} */ sum, /** @type {number} */ value) => sum + value * value, 0) / Math.max(1, inner.length);
    return 10 * Math.log10(Math.max(0.25, power)) - 20 * Math.log10(32768);
  }

  /** Downloads the result; in another format, once the service has converted it. */
  async #download() {
    const layer = this.#layer, format = find("result-format").value, button = find("result-download");
    if (!layer) return;
    const path = `${recordingPath(layer.recording.id)}/audio?download=1${format ? `&format=${format}` : ""}`;
    button.classList.add("busy");
    try {
      if (format) await (await this.service.fetch(path, { range: "bytes=0-0" })).body?.cancel();
      await download(this.service, path);
    } catch (error) {
      tell(String(/** @type {Error} */(error).message), { isError: true });
    }
    button.classList.remove("busy");
  }
}
