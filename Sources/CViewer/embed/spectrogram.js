// @ts-check
// The spectrogram of <stillwave-waveform>, which loads this module if its attribute is set. Like the waveform, it consists
// of tiles: 1024 columns of a scale, a power of two from 64 frames per column on, which join without a seam. A tile
// is drawn when it is there; until then, coarser ones stand in.

const columns = 1024, height = 256, leastExponent = 6, mostTiles = 64, mostErrands = 3;

/** @typedef {{ picture: ImageBitmap | null, complete: boolean, available: number, columns: number }} Tile */

export class Spectrogram {
  /** @type {Map<string, Tile>} */
  #tiles = new Map();
  #errands = new Set();
  #failed = false;
  #control = new AbortController();
  /** @type {{ start: number, end: number }} */
  #window = { start: 0, end: 1 };

  /**
   * @param {HTMLElement} place
   * @param {import("./remote.js").Remote} remote
   * @param {{ id: string, sampleRate: number, totalFrames: number, availableFrames: number, complete: boolean }} waveform
   */
  constructor(place, remote, waveform) {
    this.remote = remote;
    this.waveform = waveform;
    this.canvas = place.ownerDocument.createElement("canvas");
    this.pen = /** @type {CanvasRenderingContext2D} */ (this.canvas.getContext("2d"));
    place.replaceChildren(this.canvas);
    this.observer = new ResizeObserver(([{ contentRect }]) => {
      this.canvas.width = Math.round(contentRect.width * devicePixelRatio);
      this.canvas.height = Math.round(contentRect.height * devicePixelRatio);
      this.draw(this.#window);
    });
    this.observer.observe(place);
  }

  close() {
    this.#control.abort();
    this.observer.disconnect();
    this.canvas.remove();
  }

  /** @param {{ start: number, end: number }} window in seconds */
  draw(window) {
    this.#window = window;
    const { canvas, pen, waveform } = this, first = window.start * waveform.sampleRate, perPixel = (window.end - window.start) * waveform.sampleRate / canvas.width;
    if (!(perPixel > 0)) return;
    pen.clearRect(0, 0, canvas.width, canvas.height);
    const own = Math.max(leastExponent, Math.min(24, Math.ceil(Math.log2(perPixel)))), total = waveform.totalFrames || waveform.availableFrames;
    const whole = Math.max(own, leastExponent, Math.min(24, Math.ceil(Math.log2(Math.max(1, total) / columns))));
    for (const exponent of new Set([whole, Math.min(whole, own + 2), own])) {
      const span = columns * 2 ** exponent, last = Math.floor((Math.min(total, first + perPixel * canvas.width) - 1) / span);
      for (let index = Math.max(0, Math.floor(first / span)); index <= last; index++) {
        const tile = this.#tiles.get(`${exponent} ${index}`);
        if (tile?.picture) pen.drawImage(tile.picture, (index * span - first) / perPixel, 0, tile.columns * 2 ** exponent / perPixel, canvas.height);
        const there = Math.min(total, (index + 1) * span);
        if ((exponent === own || exponent === whole) && (!tile || !tile.complete && tile.available < Math.min(waveform.availableFrames, there))) void this.#load(exponent, index);
      }
    }
  }

  /**
   * @param {number} exponent
   * @param {number} index
   */
  async #load(exponent, index) {
    const key = `${exponent} ${index}`, { waveform, remote } = this;
    if (this.#failed || this.#errands.has(key) || this.#errands.size >= mostErrands) return;
    this.#errands.add(key);
    const frames = columns * 2 ** exponent, available = waveform.availableFrames;
    const start = index * frames / waveform.sampleRate, end = (index + 1) * frames / waveform.sampleRate;
    try {
      const answer = await remote.fetch(
        `v1/recordings/${waveform.id}/spectrogram.png?scale=${2 ** exponent}&start=${start}&end=${end}&height=${height}`, { signal: this.#control.signal });
      const count = Number(answer.headers.get("Stillwave-Columns")), complete = answer.headers.get("Stillwave-Complete") !== "false";
      const picture = answer.status === 204 ? null : await createImageBitmap(await answer.blob());
      this.#tiles.delete(key);
      this.#tiles.set(key, { picture, complete, available, columns: count || picture?.width || columns });
      for (const old of this.#tiles.keys()) {
        if (this.#tiles.size <= mostTiles) break;
        this.#tiles.get(old)?.picture?.close();
        this.#tiles.delete(old);
      }
    } catch { this.#failed = !this.#control.signal.aborted; } // The error was reported.
    this.#errands.delete(key);
    if (!this.#control.signal.aborted) requestAnimationFrame(() => this.draw(this.#window));
  }
}
