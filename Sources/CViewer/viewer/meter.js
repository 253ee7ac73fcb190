// @ts-check
import { Surface } from "./drawing.js";
import { find } from "./page.js";
import { tileLength } from "./tiles.js";

/** The lowest level that is shown, in dB; how long a peak is read back, and how fast the bar falls, in dB per second. */
const floor = -60, window = 0.05, fall = 24;

/** A bar with the level of the sound, taken from the points at the playhead, which the page has anyway. */
export class Meter {
  #shown = floor;
  #time = 0;
  #drawn = "";

  /**
   * @param {import("./session.js").Session} session
   * @param {import("./view.js").View} view
   * @param {import("./player.js").Player} player
   * @param {import("./stage.js").Stage} stage
   */
  constructor(session, view, player, stage) {
    this.session = session;
    this.view = view;
    this.player = player;
    this.stage = stage;
    this.surface = new Surface(find("meter"), () => {
      this.#drawn = "";
      this.#paint();
    });
    stage.painters.push(() => this.#paint());
  }

  /** The highest sample of the last instant, in dB below full scale. */
  #peak() {
    const { player, session, stage, view: { playhead } } = this, from = Math.max(0, playhead - window);
    const layer = player.voice === "cleaned" && session.cleaned || session.original, preview = stage.preview;
    if (preview && player.voice !== "original" && playhead >= preview.window.start && playhead < preview.window.end) {
      const { window: { start, end }, points } = preview, perPoint = (end - start) / points.count;
      return loudest(points, Math.floor((from - start) / perPoint), Math.ceil((playhead - start) / perPoint));
    }
    if (!layer || player.voice === "residue") return 0;
    const { waveform } = layer, frame = playhead * waveform.sampleRate;
    for (let exponent = waveform.leastExponent; exponent <= waveform.wholeExponent; exponent++) {
      const span = tileLength * 2 ** exponent, tile = waveform.tile(exponent, Math.floor(frame / span));
      if (tile) return loudest(tile, Math.floor((from * waveform.sampleRate - tile.startFrame) / tile.scale), Math.ceil((frame - tile.startFrame) / tile.scale));
    }
    return 0;
  }

  #paint() {
    const { surface: { canvas, pen }, player, stage } = this, now = performance.now(), elapsed = Math.min(0.1, (now - this.#time) / 1000);
    this.#time = now;
    const level = player.isPlaying ? 20 * Math.log10(Math.max(1e-6, this.#peak())) : floor;
    this.#shown = player.isPlaying ? Math.max(floor, level, this.#shown - fall * elapsed) : floor;
    const width = Math.round((this.#shown - floor) / -floor * canvas.width), state = `${width} ${stage.palette.line} ${canvas.width}`;
    if (state === this.#drawn) return;
    this.#drawn = state;
    this.surface.clear();
    pen.fillStyle = stage.palette.line;
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.fillStyle = this.#shown > -1 ? stage.palette.noise.rms : stage.palette.cleaned[0].rms;
    pen.fillRect(0, 0, width, canvas.height);
  }
}

/** Returns the highest amplitude of some points, 0 … 1. */
function loudest(/** @type {import("./drawing.js").Points} */ { peaks, count, channels }, /** @type {number} */ from, /** @type {number} */ to) {
  let most = 0;
  for (let k = 2 * channels * Math.max(0, from); k < 2 * channels * Math.min(count, Math.max(to, from + 1)); k++) most = Math.max(most, Math.abs(peaks[k]));
  return most / 32768;
}
