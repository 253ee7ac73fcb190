// @ts-check
import { formatTime, rulerStep } from "./time.js";
import { tileLength } from "./tiles.js";

// Draws waveforms and the ruler onto canvases, from what the view model and the tile store hold. It asks nothing of the
// page but colours, and tells nobody anything.

/** @typedef {import("./session.js").Layer} Layer */
/** @typedef {import("./view.js").Span} Span */

/** Above so many pixels a frame the samples themselves are drawn; dots where there is room for them. */
const samplesFrom = 2.5, dotsFrom = 7;

/** A canvas that knows its size, so that no frame has to ask the page for it. */
export class Surface {
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

/** The page's colours, read when they change. */
export class Palette {
  original = { peak: "", rms: "", front: "" };
  cleaned = { peak: "", rms: "", front: "" };
  line = "";
  quiet = "";
  font = "";

  constructor() { this.read(); }

  read() {
    const style = getComputedStyle(document.documentElement);
    const color = (/** @type {string} */ name) => style.getPropertyValue(`--${name}`).trim();
    this.original = { peak: color("wave-peak"), rms: color("wave-rms"), front: color("quiet") };
    this.cleaned = { peak: color("clean-peak"), rms: color("clean-rms"), front: color("accent") };
    this.line = color("line");
    this.quiet = color("quiet");
    this.font = `11px ${style.getPropertyValue("--font")}`;
  }
}

/**
 * Draws layers over each other, a lane for each channel.
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
    pen.save();
    pen.beginPath();
    pen.rect(0, lane * laneHeight, canvas.width, laneHeight);
    pen.clip();
    for (const layer of layers) {
      if (lane < layer.waveform.lanes) drawLane(surface, window, layer, palette, lane, middle, laneHeight / 2 * 0.94 * gain, store);
    }
    pen.restore();
  }
}

/**
 * @param {Surface} surface
 * @param {Span} window
 * @param {Layer} layer
 * @param {Palette} palette
 * @param {number} lane
 * @param {number} middle
 * @param {number} half height of full scale, in pixels
 * @param {import("./tiles.js").TileStore} store
 */
function drawLane(surface, window, layer, palette, lane, middle, half, store) {
  const { pen, canvas } = surface, { waveform } = layer, colors = palette[layer.role];
  const firstFrame = window.start * waveform.sampleRate;
  const framesPerPixel = (window.end - window.start) * waveform.sampleRate / canvas.width;
  const seen = Math.min(firstFrame + canvas.width * framesPerPixel, layer.revealed, waveform.totalFrames || Infinity);
  const edge = (seen - firstFrame) / framesPerPixel;
  if (edge <= 0) return;
  pen.save();
  if (edge < canvas.width) {
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.beginPath();
    pen.rect(0, 0, edge, canvas.height);
    pen.clip();
  }
  const exponent = waveform.exponentFor(framesPerPixel);
  if (exponent === 0 && 1 / framesPerPixel >= samplesFrom * surface.ratio
    && drawSamples(surface, waveform, colors.rms, firstFrame, seen, framesPerPixel, lane, middle, half)) {
    pen.restore();
    return;
  }
  const span = tileLength * 2 ** exponent;
  const last = Math.floor((seen - 1) / span);
  for (let index = Math.floor(firstFrame / span); index <= last; index++) {
    drawTile(surface, waveform, colors, exponent, index, firstFrame, framesPerPixel, lane, middle, half, store);
  }
  pen.restore();
  if (layer.job && edge < canvas.width) {
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.fillStyle = colors.front;
    pen.fillRect(edge - surface.ratio, 0, surface.ratio, canvas.height);
  }
}

/** Draws a tile, or where it has not come yet the part of a coarser one that covers it. */
function drawTile(
  /** @type {Surface} */ surface, /** @type {import("./tiles.js").Waveform} */ waveform,
  /** @type {{ peak: string, rms: string }} */ colors, /** @type {number} */ exponent, /** @type {number} */ index,
  /** @type {number} */ firstFrame, /** @type {number} */ framesPerPixel, /** @type {number} */ lane,
  /** @type {number} */ middle, /** @type {number} */ half, /** @type {import("./tiles.js").TileStore} */ store) {
  const { pen } = surface;
  let found = waveform.tile(exponent, index);
  // A partial tile of a recording that grows may be behind a coarser one; the sharp one is soon there.
  let stand = found;
  for (let up = exponent + 1, at = index >> 1; !stand && up <= waveform.wholeExponent; up++, at >>= 1) {
    stand = waveform.tile(up, at);
  }
  if (!stand) return;
  store.touch(waveform, stand);
  const shape = stand.shapes(Math.min(lane, stand.channels - 1), half);
  if (!found) {
    const span = tileLength * 2 ** exponent, left = (index * span - firstFrame) / framesPerPixel;
    pen.save();
    pen.setTransform(1, 0, 0, 1, 0, 0);
    pen.beginPath();
    pen.rect(left, 0, span / framesPerPixel, surface.canvas.height);
    pen.clip();
  }
  pen.setTransform(stand.scale / framesPerPixel, 0, 0, half, (stand.startFrame - firstFrame) / framesPerPixel, middle);
  pen.fillStyle = colors.peak;
  pen.fill(shape.peak);
  pen.fillStyle = colors.rms;
  pen.fill(shape.rms);
  if (!found) pen.restore();
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
 */
export function drawRuler(surface, window, palette) {
  const { pen, width, height, ratio } = surface;
  surface.clear();
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  const perPixel = (window.end - window.start) / width;
  const { step, parts, digits } = rulerStep(perPixel, 70 + 7 * Math.max(0, -Math.log10(perPixel)));
  pen.font = palette.font;
  pen.textBaseline = "top";
  pen.fillStyle = palette.quiet;
  const small = step / parts, first = Math.floor(window.start / small);
  for (let k = first; k * small <= window.end + step; k++) {
    const x = Math.round((k * small - window.start) / perPixel * ratio) / ratio, isMain = k % parts === 0;
    pen.fillRect(x, isMain ? 0 : height - 5, 1 / ratio, isMain ? height : 5);
    if (isMain) pen.fillText(formatTime(k * small, digits), x + 4, 3);
  }
}

/**
 * What the picture needs, most urgent first: the whole (which stands in for everything), what is in view, the overview,
 * then what the next move may show.
 * @param {Layer[]} layers
 * @param {Span} window
 * @param {number} width in device pixels
 * @param {Span} whole
 * @param {number} overviewWidth in device pixels
 * @returns {import("./tiles.js").Wish[]}
 */
export function wishes(layers, window, width, whole, overviewWidth) {
  /** @type {import("./tiles.js").Wish[][]} */
  const ranks = [[], [], [], [], []];
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
    add(3, exponent, from - length, from);
    add(3, exponent, to, to + length);
    add(4, Math.min(24, exponent + 1), from - length / 2, to + length / 2);
    add(4, Math.max(waveform.leastExponent, exponent - 1), from + length / 4, to - length / 4);
  }
  return ranks.flat();
}
