// @ts-check
import { mostColors } from "./session.js";
import { formatTime, rulerStep, sampleStep } from "./time.js";
import { leastGrowingExponent, tileLength } from "./tiles.js";

// Draws waveforms and the ruler onto canvases from the view model and the tile store. It reads only colors from the page
// and emits no signals.

/** @typedef {import("./session.js").Layer} Layer */
/** @typedef {import("./view.js").Span} Span */

/** The part of a lane's height that full scale takes. */
export const fill = 0.94;
/** Above this many pixels per frame the samples themselves are drawn, with dots if there is room. */
const samplesFrom = 2.5, dotsFrom = 7;
/** Points wider than this stand in for finer ones that aren't loaded, and are drawn faintly, in pixels. */
const widest = 3, faintness = 0.35;

/** A canvas that remembers its position and size: asking the page for them within a frame would force a layout. */
export class Surface {
  left = 0;
  width = 0;
  height = 0;
  ratio = 1;

  /**
   * @param {HTMLCanvasElement} canvas
   * @param {() => void} onResize
   */
  constructor(canvas, onResize) {
    this.canvas = canvas;
    this.pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    new ResizeObserver(([entry]) => {
      this.left = canvas.getBoundingClientRect().left;
      this.width = entry.contentRect.width;
      this.height = entry.contentRect.height;
      this.ratio = devicePixelRatio;
      canvas.width = Math.round(this.width * this.ratio);
      canvas.height = Math.round(this.height * this.ratio);
      onResize();
    }).observe(canvas);
  }

  clear() {
    this.pen.setTransform(1, 0, 0, 1, 0, 0);
    this.pen.clearRect(0, 0, this.canvas.width, this.canvas.height);
  }
}

/** The page's colors, read when they change. */
export class Palette {
  original = { peak: "", rms: "", front: "" };
  /** The colors of cleaned waveforms. */
  cleaned = [{ peak: "", rms: "", front: "" }];
  noise = { peak: "", rms: "" };
  line = "";
  ink = "";
  quiet = "";
  font = "";

  constructor() { this.read(); }

  read() {
    const style = getComputedStyle(document.documentElement);
    const color = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
    this.original = { peak: color("wave-peak"), rms: color("wave-rms"), front: color("quiet") };
    this.cleaned = Array.from({ length: mostColors }, (_, k) => (
      { peak: color(`clean-${k}-peak`), rms: color(`clean-${k}-rms`), front: color(`clean-${k}-rms`) }));
    this.noise = { peak: color("noise-peak"), rms: color("noise") };
    this.line = color("line");
    this.ink = color("ink");
    this.quiet = color("quiet");
    this.font = `${parseFloat(style.fontSize) * 0.79}px ${style.getPropertyValue("--font")}`;
  }
}

/**
 * Draws the layers over each other, with one lane per channel.
 * @param {Surface} surface
 * @param {Span} window
 * @param {Layer[]} layers
 * @param {Palette} palette
 * @param {number} gain
 * @param {import("./tiles.js").TileStore} store
 */
export function drawWaveforms(surface, window, layers, palette, gain, store) {
  const { pen, canvas } = surface;
  surface.clear();
  const lanes = layers[0]?.waveform.lanes ?? 1, laneHeight = canvas.height / lanes;
  for (let lane = 0; lane < lanes; lane++) {
    const middle = (lane + 0.5) * laneHeight;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.fillStyle = palette.line;
    pen.fillRect(0, Math.round(middle), canvas.width, 1);
    if (lane) pen.fillRect(0, Math.round(lane * laneHeight), canvas.width, 1);
    for (const layer of layers) {
      if (lane < layer.waveform.lanes) drawLane(surface, window, layer, palette, lane, middle, laneHeight, gain, store);
    }
  }
}

/**
 * @param {Surface} surface
 * @param {Span} window
 * @param {Layer} layer
 * @param {Palette} palette
 * @param {number} lane
 * @param {number} middle
 * @param {number} height of the lane, in pixels
 * @param {number} gain
 * @param {import("./tiles.js").TileStore} store
 */
function drawLane(surface, window, layer, palette, lane, middle, height, gain, store) {
  const { canvas } = surface, { waveform } = layer, colors = layer.role === "original" ? palette.original : palette.cleaned[layer.color];
  const firstFrame = window.start * waveform.sampleRate, half = height / 2 * fill * gain;
  const framesPerPixel = (window.end - window.start) * waveform.sampleRate / canvas.width;
  const seen = Math.min(firstFrame + canvas.width * framesPerPixel, layer.revealed, waveform.totalFrames || Infinity);
  const edge = Math.min(canvas.width, (seen - firstFrame) / framesPerPixel);
  if (edge <= 0) return;
  const exponent = waveform.exponentFor(framesPerPixel);
  if (exponent === 0 && 1 / framesPerPixel >= samplesFrom * surface.ratio
    && drawSamples(surface, waveform, colors.rms, firstFrame, seen, framesPerPixel, lane, middle, half)) return;
  const columns = new Columns(edge, middle, half, height / 2);
  const span = tileLength * 2 ** exponent, last = Math.floor((seen - 1) / span);
  let loaded = 0;
  for (let index = Math.floor(firstFrame / span); index <= last; index++) {
    const left = (index * span - firstFrame) / framesPerPixel;
    for (const tile of tilesFor(waveform, exponent, index, Math.min(seen, (index + 1) * span))) {
      const origin = (tile.startFrame - firstFrame) / framesPerPixel;
      store.touch(waveform, tile);
      loaded = Math.max(loaded, tile.startFrame + tile.count * tile.scale);
      columns.add(tile, Math.min(lane, tile.channels - 1), Math.max(left, origin), left + span / framesPerPixel,
        origin, tile.scale / framesPerPixel, tile.exponent === 0);
    }
  }
  const { pen } = surface;
  columns.draw(pen, colors);
  // The front isn't drawn ahead of the points: it would have to go back if the job ends before they arrive.
  const front = Math.min(edge, (loaded - firstFrame) / framesPerPixel);
  if (layer.job && front > 0 && front < canvas.width) {
    pen.fillStyle = colors.front;
    pen.fillRect(front - surface.ratio, middle - height / 2, surface.ratio, height);
  }
}

/**
 * Returns a tile and, where it isn't loaded or doesn't reach the end, the finest that cover it, coarsest first: answers may
 * arrive in another order than their requests, so that while a recording grows a fine tile may have less of it. Its two
 * halves at the next finer scale stand in for a missing tile, so that zooming out shows at once what was seen before.
 * @param {import("./tiles.js").Waveform} waveform
 * @param {number} exponent
 * @param {number} index
 * @param {number} end frame up to which points are wanted
 */
function tilesFor(waveform, exponent, index, end) {
  // In a narrow view, the whole recording is shown at a coarser scale than the one at which it is a single tile. Of a short
  // one, there may only be what was loaded while it grew.
  const most = Math.max(exponent, waveform.wholeExponent, leastGrowingExponent), tiles = [];
  for (let up = exponent, at = index; up <= most; up++, at = Math.floor(at / 2)) {
    const tile = waveform.tile(up, at);
    if (!tile) continue;
    tiles.unshift(tile);
    if (tile.startFrame + tile.count * tile.scale >= end) break;
  }
  if (exponent && tiles.at(-1)?.exponent !== exponent) {
    for (const half of [2 * index, 2 * index + 1].map(at => waveform.tile(exponent - 1, at))) if (half) tiles.push(half);
  }
  return tiles;
}

/** @typedef {{ window: Span, points: Points, isNoise: boolean }} PreviewPicture what a preview made of a stretch, as the mean of its channels */

/**
 * Draws what a preview made over the waveforms.
 * @param {Surface} surface
 * @param {Span} window
 * @param {PreviewPicture} picture
 * @param {Palette} palette
 * @param {number} gain
 */
export function drawPreview({ pen, canvas, ratio }, window, { window: { start, end }, points, isNoise }, palette, gain) {
  const perSecond = canvas.width / (window.end - window.start), middle = canvas.height / 2;
  const left = (start - window.start) * perSecond, right = (end - window.start) * perSecond;
  if (right <= 0 || left >= canvas.width) return;
  const columns = new Columns(Math.min(canvas.width, right), middle, middle * fill * gain, middle), colors = isNoise ? palette.noise : palette.cleaned[0];
  columns.add(points, 0, left, right, left, (right - left) / points.count);
  columns.draw(pen, colors);
  pen.fillStyle = colors.rms;
  for (const x of [left, right - ratio]) pen.fillRect(x, 0, ratio, canvas.height);
}

/** @typedef {{ count: number, channels: number, peaks: Int16Array, rms: Int16Array | Uint16Array }} Points minimum and maximum of each point and channel, and their RMS */

/**
 * One lane of a waveform as columns of whole pixels: the cost of a frame depends only on the width, and every canvas fills
 * rectangles on whole pixels fastest, with or without a graphics processor. Outlines as paths looked the same and took
 * 45 ms per frame without one.
 */
export class Columns {
  /**
   * @param {number} width in pixels
   * @param {number} middle
   * @param {number} half height of full scale, in pixels
   * @param {number} most of the height above the middle that may be drawn upon
   */
  constructor(width, middle, half, most) {
    this.width = Math.ceil(width);
    this.middle = middle;
    this.half = half / 32768;
    this.most = most;
    // Heights above the middle, NaN in empty columns.
    this.tops = new Float32Array(this.width).fill(NaN);
    this.bottoms = new Float32Array(this.width).fill(NaN);
    this.means = new Float32Array(this.width).fill(NaN);
    /** Columns of points that are coarser than the picture. */
    this.faint = new Uint8Array(this.width);
  }

  /**
   * Adds points, spread over the columns from `from` to `to`.
   * @param {Points} points
   * @param {number} channel
   * @param {number} from
   * @param {number} to
   * @param {number} origin where point 0 begins, in pixels
   * @param {number} perPoint pixels of a point
   * @param {boolean} [areSamples] points that are single samples are joined by lines; of others, only their range is known
   */
  add({ count, channels, peaks, rms }, channel, from, to, origin, perPoint, areSamples = false) {
    const first = Math.max(0, Math.ceil(from - 0.5)), end = Math.min(this.width, Math.ceil(to - 0.5));
    for (let x = first; x < end; x++) {
      let low, high, mean;
      if (areSamples && perPoint > 1.5) {
        const place = (x + 0.5 - origin) / perPoint - 0.5, before = Math.floor(place), share = place - before;
        if (before >= count) break;
        const a = Math.max(0, before) * channels + channel, b = Math.min(count - 1, before + 1) * channels + channel;
        low = peaks[2 * a] + (peaks[2 * b] - peaks[2 * a]) * share;
        high = peaks[2 * a + 1] + (peaks[2 * b + 1] - peaks[2 * a + 1]) * share;
        mean = rms[a] + (rms[b] - rms[a]) * share;
      } else {
        const start = Math.max(0, Math.floor((x - origin) / perPoint)), stop = Math.min(count, Math.floor((x + 1 - origin) / perPoint) + 1);
        if (start >= count) break;
        low = 32767, high = -32768, mean = 0;
        for (let k = start; k < stop; k++) {
          const at = k * channels + channel;
          if (peaks[2 * at] < low) low = peaks[2 * at];
          if (peaks[2 * at + 1] > high) high = peaks[2 * at + 1];
          if (rms[at] > mean) mean = rms[at];
        }
      }
      this.tops[x] = high;
      this.bottoms[x] = low;
      this.means[x] = mean;
      this.faint[x] = Number(!areSamples && perPoint > widest);
    }
  }

  /**
   * @param {CanvasRenderingContext2D} pen
   * @param {{ peak: string, rms: string }} colors
   */
  draw(pen, colors) {
    const { tops, bottoms, means, faint } = this;
    pen.setTransform(1, 0, 0, 1, 0, 0);
    for (const kind of faint.includes(1) ? [1, 0] : [0]) {
      pen.globalAlpha = kind ? faintness : 1;
      pen.fillStyle = colors.peak;
      // Neighbors that don't overlap are joined; otherwise thin lines would break.
      this.#fill(pen, x => Math.max(tops[x], x && bottoms[x - 1] > tops[x] ? bottoms[x - 1] : tops[x]),
        x => Math.min(bottoms[x], x && tops[x - 1] < bottoms[x] ? tops[x - 1] : bottoms[x]), kind);
      pen.fillStyle = colors.rms;
      this.#fill(pen, x => Math.min(means[x], tops[x]), x => Math.max(-means[x], bottoms[x]), kind);
    }
    pen.globalAlpha = 1;
  }

  /** Merges columns of equal height into one rectangle, of those that are faint or of the others. */
  #fill(/** @type {CanvasRenderingContext2D} */ pen, /** @type {(x: number) => number} */ top,
    /** @type {(x: number) => number} */ bottom, /** @type {number} */ kind) {
    const { width, faint, middle, half, most } = this, highest = Math.ceil(middle - most), lowest = Math.floor(middle + most);
    let start = 0, y = NaN, end = NaN;
    for (let x = 0; x <= width; x++) {
      const nextY = x < width && faint[x] === kind ? Math.max(highest, Math.round(middle - top(x) * half - 0.5)) : NaN;
      const nextEnd = Math.min(lowest, Math.max(nextY + 1, Math.round(middle - bottom(x) * half + 0.5)));
      if (nextY === y && nextEnd === end) continue;
      if (end > y) pen.fillRect(start, y, x - start, end - y);
      [start, y, end] = [x, nextY, nextEnd];
    }
  }
}

/**
 * Draws the line through the samples.
 * @returns {boolean} whether all of them were there
 */
function drawSamples(
  /** @type {Surface} */ surface, /** @type {import("./tiles.js").Waveform} */ waveform, /** @type {string} */ color,
  /** @type {number} */ firstFrame, /** @type {number} */ seen, /** @type {number} */ framesPerPixel,
  /** @type {number} */ lane, /** @type {number} */ middle, /** @type {number} */ half) {
  const { pen, ratio } = surface, from = Math.max(0, Math.floor(firstFrame) - 1);
  const to = Math.min(Math.ceil(seen) + 1, waveform.totalFrames);
  for (let index = Math.floor(from / tileLength); index <= Math.floor((to - 1) / tileLength); index++) {
    if (!waveform.tile(0, index)) return false;
  }
  const dot = 1 / framesPerPixel >= dotsFrom * ratio ? 2.2 * ratio : 0;
  const line = new Path2D(), dots = new Path2D();
  for (let frame = from; frame < to; frame++) {
    const tile = waveform.tile(0, Math.floor(frame / tileLength));
    const at = frame % tileLength;
    if (!tile || at >= tile.count) break;
    const x = (frame + 0.5 - firstFrame) / framesPerPixel;
    const y = middle - tile.peaks[2 * (at * tile.channels + lane)] / 32768 * half;
    line.lineTo(x, y);
    if (dot) dots.rect(x - dot, y - dot, 2 * dot, 2 * dot);
  }
  pen.setTransform(1, 0, 0, 1, 0, 0);
  pen.strokeStyle = pen.fillStyle = color;
  pen.lineWidth = 1.4 * ratio;
  pen.lineJoin = "round";
  pen.stroke(line);
  pen.fill(dots);
  return true;
}

/**
 * Draws the time ruler.
 * @param {Surface} surface
 * @param {Span} window
 * @param {Palette} palette
 * @param {number} [rate] in samples per second, if it counts samples
 */
export function drawRuler(surface, window, palette, rate = 0) {
  const { pen, width, height, ratio } = surface;
  surface.clear();
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  const unit = rate || 1, from = window.start * unit, perPixel = (window.end - window.start) * unit / width;
  const { step, parts, digits } = rate ? sampleStep(perPixel, 100) : rulerStep(perPixel, 70 + 7 * Math.max(0, -Math.log10(perPixel)));
  pen.font = palette.font;
  pen.textBaseline = "top";
  pen.fillStyle = palette.quiet;
  const small = step / parts, first = Math.floor(from / small);
  for (let k = first; k * small <= window.end * unit + step; k++) {
    const x = Math.round((k * small - from) / perPixel * ratio) / ratio, isMain = k % parts === 0;
    pen.fillRect(x, isMain ? 0 : height - 5, 1 / ratio, isMain ? height : 5);
    if (!isMain) continue;
    const text = rate ? String(Math.round(k * small)).replace(/\B(?=(\d{3})+$)/g, "\u202f") : formatTime(k * small, digits);
    // The end of a recording can be a label's beginning.
    if (x + 4 + pen.measureText(text).width <= width) pen.fillText(text, x + 4, 3);
  }
}

/**
 * Names the tiles that `wishes` returns for the visible part and around it: the same text means the same tiles.
 * @param {Layer[]} layers
 * @param {Span} window
 * @param {number} width in device pixels
 */
export function planOf(layers, { start, end }, width) {
  const half = (end - start) / 2;
  return layers.map(({ waveform }) => {
    const rate = waveform.sampleRate, exponent = waveform.exponentFor((end - start) * rate / width), perTile = rate / (tileLength * 2 ** exponent);
    return `${waveform.name} ${exponent} ${[start - half, start, end, end + half].map(seconds => Math.floor(seconds * perTile))}`;
  }).join();
}

/**
 * Returns the tiles to load, most urgent first: the whole recording (which stands in for missing tiles), the visible part,
 * the overview, and half a window on either side, which is what the next move or a zoom out to twice the window shows.
 * @param {Layer[]} layers
 * @param {Span} window
 * @param {number} width in device pixels
 * @param {Span} whole
 * @param {number} overviewWidth in device pixels
 * @returns {{ urgent: import("./tiles.js").Wish[], likely: import("./tiles.js").Wish[] }}
 */
export function wishes(layers, window, width, whole, overviewWidth) {
  /** @type {import("./tiles.js").Wish[][]} */
  const ranks = [[], [], [], []];
  for (const { waveform } of layers) {
    const total = Math.max(1, waveform.totalFrames || waveform.availableFrames);
    const add = (/** @type {number} */ rank, /** @type {number} */ exponent, /** @type {number} */ from, /** @type {number} */ to) => {
      const span = tileLength * 2 ** exponent;
      const last = Math.min(Math.floor(to / span), Math.floor((total - 1) / span));
      for (let index = Math.max(0, Math.floor(from / span)); index <= last; index++) ranks[rank].push({ waveform, exponent, index });
    };
    const rate = waveform.sampleRate, from = window.start * rate, to = window.end * rate, length = to - from;
    const exponent = waveform.exponentFor(length / width);
    add(0, waveform.wholeExponent, 0, total);
    add(1, exponent, from, to);
    add(2, waveform.exponentFor((whole.end - whole.start) * rate / overviewWidth), 0, total);
    add(3, exponent, from - length / 2, from);
    add(3, exponent, to, to + length / 2);
  }
  return { urgent: ranks.slice(0, 3).flat(), likely: ranks[3] };
}
