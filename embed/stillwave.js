// Stillwave's <stillwave-waveform>. Made by deploy/embed from Sources/CViewer. Apache License 2.0.
const remote = (() => {
const decimalMark = (1.5).toLocaleString(globalThis.document?.documentElement.lang || undefined).charAt(1);
const mostColors = 1;
const isAbort = error => error instanceof DOMException && error.name === "AbortError";
const recordingPath = id => `v1/recordings/${encodeURIComponent(id)}`;
async function pause(milliseconds, signal) {
 signal.throwIfAborted();
 await new Promise((resolve, reject) => {
  const timer = setTimeout(resolve, milliseconds);
  signal.addEventListener("abort", () => { clearTimeout(timer); reject(signal.reason); }, { once: true });
 });
}
class StillwaveError extends Error {
 constructor(message, code, status) {
  super(message);
  this.name = "StillwaveError";
  this.code = code;
  this.status = status;
 }
}
const Refusal = StillwaveError;
function parsePlace(text, base, token) {
 const match = /^(?:(.*\/)v1\/recordings\/)?([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})(?:[/?#].*)?$/.exec(text.trim());
 if (!match) return null;
 const query = new URLSearchParams(text.split("#")[0].split("?")[1] ?? "");
 const own = match[1] === undefined ? base : new URL(match[1], globalThis.document?.baseURI).href;
 return { base: own, id: match[2], token: query.get("token") ?? token };
}
const mostTries = 6, firstTries = 3;
class Remote {
 #places = new Map();
 #control = new AbortController();
 #isKnown = false;
 constructor(onError) { this.onError = onError; }
 get ending() { return this.#control.signal; }
 close() { this.#control.abort(); }
 add(place) { this.#places.set(place.id, place); }
 address(path) {
  const place = this.#places.get(path.split(/[/?]/)[2]), url = new URL(path, place?.base);
  if (place?.token) url.searchParams.set("token", place.token);
  return url.href;
 }
 async fetch(path, { signal } = {}) {
  const own = this.#control.signal, control = new AbortController();
  const abort = () => control.abort();
  for (const source of [own, signal]) {
   if (source?.aborted) abort();
   source?.addEventListener("abort", abort, { once: true });
  }
  try {
   return await this.#answer(path, control.signal);
  } catch (error) {
   if (!isAbort(error)) this.onError((error));
   throw error;
  } finally {
   for (const source of [own, signal]) source?.removeEventListener("abort", abort);
  }
 }
 async #answer(path, signal) {
  for (let tries = 1; ; tries++) {
   let answer = null;
   try { answer = await fetch(this.address(path), { signal, referrerPolicy: "strict-origin-when-cross-origin" }); }
   catch (error) { if (isAbort(error)) throw error; }
   this.#isKnown ||= !!answer;
   if (answer?.ok) return answer;
   if (tries >= (this.#isKnown ? mostTries : firstTries) || answer && ![429, 502, 503, 504].includes(answer.status)) throw await refusal(answer);
   const seconds = Number(answer?.headers.get("Retry-After")) || 0.25 * 2 ** tries;
   await pause(Math.min(seconds, 60) * 1000, signal);
  }
 }
}
async function refusal(answer) {
 if (!answer) return new StillwaveError("The service can't be reached, or doesn't allow this page to use it.", "unreachable", 0);
 const problem = await answer.json().catch(() => ({}));
 return new StillwaveError(problem.title ?? `The service answered ${answer.status}.`, problem.code ?? "", answer.status);
}
return { decimalMark, mostColors, isAbort, recordingPath, pause, StillwaveError, Refusal, parsePlace, Remote };
})();
const signal = (() => {
class Signal {
 #listeners = new Set();
 subscribe(listener) {
  this.#listeners.add(listener);
  return () => this.#listeners.delete(listener);
 }
 emit(value) {
  for (const listener of this.#listeners) listener((value));
 }
}
return { Signal };
})();
const time = (() => {
const { decimalMark } = remote;
function formatTime(seconds, digits = 2) {
 const unit = 10 ** digits;
 const ticks = Math.max(0, Math.round(seconds * unit));
 const whole = Math.floor(ticks / unit);
 const hours = Math.floor(whole / 3600);
 const minutes = Math.floor((whole % 3600) / 60);
 const two = (value) => String(value).padStart(2, "0");
 const clock = hours ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
 return digits ? `${clock}${decimalMark}${String(ticks % unit).padStart(digits, "0")}` : clock;
}
function parseTime(text) {
 const parts = text.trim().replace(",", ".").split(":");
 if (parts.length > 3 || parts.some(part => !/^\d+(\.\d*)?$|^\.\d+$/.test(part))) return NaN;
 return parts.reduce((sum, part) => sum * 60 + Number(part), 0);
}
const longSteps = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400];
function rulerStep(secondsPerPixel, room) {
 const least = secondsPerPixel * room;
 if (least > 0.5) {
  const step = longSteps.find(candidate => candidate >= least) ?? Math.ceil(least / 86400) * 86400;
  return { step, parts: step % 60 === 0 || step === 2 ? 4 : step === 15 || step === 30 ? 3 : 5, digits: 0 };
 }
 const power = Math.floor(Math.log10(least));
 const factor = [1, 2, 5, 10].find(candidate => candidate * 10 ** power >= least) ?? 10;
 const step = factor * 10 ** power;
 return { step, parts: factor === 2 ? 4 : 5, digits: Math.max(0, -power - (factor === 10 ? 1 : 0)) };
}
function sampleStep(samplesPerPixel, room) {
 const least = Math.max(1, samplesPerPixel * room), power = 10 ** Math.floor(Math.log10(least));
 const factor = [1, 2, 5, 10].find(candidate => candidate * power >= least) ?? 10, step = factor * power;
 return { step, parts: step === 1 ? 1 : factor === 2 ? 4 : 5, digits: 0 };
}
return { formatTime, parseTime, rulerStep, sampleStep };
})();
const tiles = (() => {
const { isAbort, pause, recordingPath, Refusal } = remote;
const { Signal } = signal;
const tileLength = 1024;
const leastGrowingExponent = 8;
const mostExponent = 24;
class Tile {
 constructor(exponent, index, points) {
  const head = new DataView(points), headBytes = 32;
  this.exponent = exponent;
  this.index = index;
  this.count = head.getUint32(16, true);
  this.channels = head.getUint16(20, true);
  const values = this.count * this.channels;
  this.peaks = new Int16Array(points, headBytes, 2 * values);
  this.rms = new Uint16Array(points, headBytes + 4 * values, values);
  this.loudest = this.peaks.reduce((most, value) => Math.max(most, Math.abs(value)), 0) / 32768;
 }
 get scale() { return 2 ** this.exponent; }
 get startFrame() { return this.index * tileLength * this.scale; }
}
class Waveform {
 tiles = new Map();
 constructor(recording, channels) {
  this.id = recording.id;
  this.channels = channels;
  this.name = `${recording.id} ${channels}`;
  this.lanes = channels === "split" ? recording.format.channels : 1;
  this.sampleRate = recording.format.sample_rate;
  this.availableFrames = 0;
  this.totalFrames = 0;
  this.complete = false;
  this.isForgotten = false;
  this.isRefused = false;
  this.learn(recording);
 }
 learn({ format, waveform }) {
  this.totalFrames = format.frames ?? Math.max(this.totalFrames, Math.round((format.duration ?? 0) * this.sampleRate));
  this.complete = waveform.state === "ready";
  this.availableFrames = this.complete ? this.totalFrames
   : Math.max(this.availableFrames, Math.floor((waveform.available ?? 0) * this.sampleRate));
 }
 tile(exponent, index) { return this.tiles.get(key(exponent, index)); }
 async fetch(service, { exponent, index }, signal) {
  const answer = await service.fetch(
   `${recordingPath(this.id)}/waveform.points?measures=peak,rms&channels=${this.channels}&${this.place(exponent, index)}`, { signal });
  return { tile: new Tile(exponent, index, await answer.arrayBuffer()), headers: answer.headers };
 }
 place(exponent, index) {
  const seconds = tileLength * 2 ** exponent / this.sampleRate;
  return `scale=${2 ** exponent}&start=${index * seconds}&end=${(index + 1) * seconds}`;
 }
 get leastExponent() { return this.complete ? 0 : leastGrowingExponent; }
 get wholeExponent() {
  return Math.max(this.leastExponent, clampExponent(Math.ceil(Math.log2(Math.max(1, this.totalFrames) / tileLength))));
 }
 get whole() { return { waveform: this, exponent: this.wholeExponent, index: 0 }; }
 get loudest() {
  let most = 0;
  for (const tile of this.tiles.values()) if (tile.loudest > most) most = tile.loudest;
  return most;
 }
 exponentFor(framesPerPixel) {
  return Math.max(this.leastExponent, clampExponent(Math.floor(Math.log2(1.05 * framesPerPixel))));
 }
 isStale(exponent, index) {
  const scale = 2 ** exponent, start = index * tileLength * scale;
  const there = Math.min(this.availableFrames - start, tileLength * scale);
  if (there <= 0 || this.isForgotten) return false;
  const points = this.complete ? Math.ceil(there / scale) : Math.floor(there / scale);
  const tile = this.tile(exponent, index);
  return points > (tile ? tile.count : 0);
 }
}
const clampExponent = exponent => Math.max(0, Math.min(mostExponent, exponent));
const key = (exponent, index) => index * 32 + exponent;
class TileStore {
 arrived = new Signal();
 #errands = new Map();
 #wishes = [];
 #used = new Map();
 constructor(service, mostTiles = 320) {
  this.service = service;
  this.mostTiles = mostTiles;
 }
 static mostErrands = 4;
 static restTime = 250;
 want(wishes) {
  this.#wishes = wishes.filter(wish => wish.waveform.isStale(wish.exponent, wish.index));
  const wanted = new Set(this.#wishes.map(name));
  for (const [name, errand] of this.#errands) if (errand.isResting || !wanted.has(name)) errand.control.abort();
  this.#send();
 }
 touch(waveform, tile) {
  this.#used.delete(tile);
  this.#used.set(tile, waveform);
 }
 #send() {
  for (const wish of this.#wishes) {
   if (this.#errands.size >= TileStore.mostErrands) return;
   if (!this.#errands.has(name(wish)) && wish.waveform.isStale(wish.exponent, wish.index)) void this.#run(wish);
  }
 }
 async #run(wish) {
  const { waveform, exponent, index } = wish, control = new AbortController();
  const errand = { wish, control, isResting: false }, own = name(wish);
  this.#errands.set(own, errand);
  try {
   const { tile, headers } = await waveform.fetch(this.service, wish, control.signal);
   if (tile.count > (waveform.tile(exponent, index)?.count ?? 0)) this.#keep(waveform, tile, headers);
   else await rest(errand);
  } catch (error) {
   if (error instanceof Refusal && error.status >= 400 && error.status < 500 && error.status !== 429) {
    waveform.isRefused = true;
    this.#wishes = this.#wishes.filter(other => name(other) !== own);
   } else if (!isAbort(error)) await rest(errand).catch(() => { });
  }
  if (this.#errands.get(own) === errand) this.#errands.delete(own);
  this.#send();
 }
 #keep(waveform, tile, fields) {
  const place = key(tile.exponent, tile.index), old = waveform.tiles.get(place);
  const frames = (name) => Number(fields.get(`Stillwave-${name}-Frames`));
  waveform.availableFrames = Math.max(waveform.availableFrames, frames("Available"));
  waveform.totalFrames = frames("Total") || Math.max(waveform.availableFrames, frames("Estimated") || waveform.totalFrames);
  if (old) this.#used.delete(old);
  waveform.tiles.set(place, tile);
  this.touch(waveform, tile);
  for (const [oldest, owner] of this.#used) {
   if (this.#used.size <= this.mostTiles) break;
   if (oldest.exponent >= owner.wholeExponent) {
    this.touch(owner, oldest);
    continue;
   }
   this.#used.delete(oldest);
   owner.tiles.delete(key(oldest.exponent, oldest.index));
  }
  this.arrived.emit(tile.exponent >= waveform.wholeExponent - 3);
 }
 forget(waveform) {
  waveform.isForgotten = true;
  for (const { wish, control } of this.#errands.values()) if (wish.waveform === waveform) control.abort();
  for (const tile of waveform.tiles.values()) this.#used.delete(tile);
  waveform.tiles.clear();
 }
}
function rest(errand) {
 const { wish, control } = errand;
 errand.isResting = true;
 wish.tries = (wish.tries ?? 0) + 1;
 return pause(TileStore.restTime * 2 ** Math.min(5, wish.tries - 1), control.signal);
}
const name = ({ waveform, exponent, index }) => `${waveform.name} ${exponent} ${index}`;
return { tileLength, leastGrowingExponent, Tile, Waveform, TileStore };
})();
const drawing = (() => {
const { mostColors } = remote;
const { formatTime, rulerStep, sampleStep } = time;
const { leastGrowingExponent, tileLength } = tiles;
const fill = 0.94;
const samplesFrom = 2.5, dotsFrom = 7;
const widest = 3, faintness = 0.35;
class Surface {
 left = 0;
 width = 0;
 height = 0;
 ratio = 1;
 constructor(canvas, onResize) {
  this.canvas = canvas;
  this.pen = (canvas.getContext("2d"));
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
class Palette {
 original = { peak: "", rms: "", front: "" };
 cleaned = [{ peak: "", rms: "", front: "" }];
 noise = { peak: "", rms: "" };
 line = "";
 ink = "";
 quiet = "";
 font = "";
 constructor() { this.read(); }
 read() {
  const style = getComputedStyle(document.documentElement);
  const color = (name) => style.getPropertyValue(`--${name}`).trim();
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
function drawWaveforms(surface, window, layers, palette, gain, store) {
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
 const front = Math.min(edge, (loaded - firstFrame) / framesPerPixel);
 if (layer.job && front > 0 && front < canvas.width) {
  pen.fillStyle = colors.front;
  pen.fillRect(front - surface.ratio, middle - height / 2, surface.ratio, height);
 }
}
function tilesFor(waveform, exponent, index, end) {
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
function drawPreview({ pen, canvas, ratio }, window, { window: { start, end }, points, isNoise }, palette, gain) {
 const perSecond = canvas.width / (window.end - window.start), middle = canvas.height / 2;
 const left = (start - window.start) * perSecond, right = (end - window.start) * perSecond;
 if (right <= 0 || left >= canvas.width) return;
 const columns = new Columns(Math.min(canvas.width, right), middle, middle * fill * gain, middle), colors = isNoise ? palette.noise : palette.cleaned[0];
 columns.add(points, 0, left, right, left, (right - left) / points.count);
 columns.draw(pen, colors);
 pen.fillStyle = colors.rms;
 for (const x of [left, right - ratio]) pen.fillRect(x, 0, ratio, canvas.height);
}
class Columns {
 constructor(width, middle, half, most) {
  this.width = Math.ceil(width);
  this.middle = middle;
  this.half = half / 32768;
  this.most = most;
  this.tops = new Float32Array(this.width).fill(NaN);
  this.bottoms = new Float32Array(this.width).fill(NaN);
  this.means = new Float32Array(this.width).fill(NaN);
  this.faint = new Uint8Array(this.width);
 }
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
 draw(pen, colors) {
  const { tops, bottoms, means, faint } = this;
  pen.setTransform(1, 0, 0, 1, 0, 0);
  for (const kind of faint.includes(1) ? [1, 0] : [0]) {
   pen.globalAlpha = kind ? faintness : 1;
   pen.fillStyle = colors.peak;
   this.#fill(pen, x => Math.max(tops[x], x && bottoms[x - 1] > tops[x] ? bottoms[x - 1] : tops[x]),
    x => Math.min(bottoms[x], x && tops[x - 1] < bottoms[x] ? tops[x - 1] : bottoms[x]), kind);
   pen.fillStyle = colors.rms;
   this.#fill(pen, x => Math.min(means[x], tops[x]), x => Math.max(-means[x], bottoms[x]), kind);
  }
  pen.globalAlpha = 1;
 }
 #fill(pen, top,
bottom, kind) {
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
function drawSamples(
surface, waveform, color,
firstFrame, seen, framesPerPixel,
lane, middle, half) {
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
function drawRuler(surface, window, palette, rate = 0) {
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
  if (x + 4 + pen.measureText(text).width <= width) pen.fillText(text, x + 4, 3);
 }
}
function planOf(layers, { start, end }, width) {
 const half = (end - start) / 2;
 return layers.map(({ waveform }) => {
  const rate = waveform.sampleRate, exponent = waveform.exponentFor((end - start) * rate / width), perTile = rate / (tileLength * 2 ** exponent);
  return `${waveform.name} ${exponent} ${[start - half, start, end, end + half].map(seconds => Math.floor(seconds * perTile))}`;
 }).join();
}
function wishes(layers, window, width, whole, overviewWidth) {
 const ranks = [[], [], [], []];
 for (const { waveform } of layers) {
  const total = Math.max(1, waveform.totalFrames || waveform.availableFrames);
  const add = (rank, exponent, from, to) => {
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
return { fill, Surface, Palette, drawWaveforms, drawPreview, Columns, drawRuler, planOf, wishes };
})();
const view = (() => {
const { Signal } = signal;
const pace = 55;
const restTime = 250;
const leastFrames = 24;
class View {
 duration = 1;
 sampleRate = 44100;
 window = { start: 0, end: 1 };
 target = { start: 0, end: 1 };
 selection = null;
 noise = null;
 boxes = [];
 playhead = 0;
 gain = 1;
 isFitted = true;
 moved = new Signal();
 rested = new Signal();
 selected = new Signal();
 noiseMarked = new Signal();
 boxed = new Signal();
 #restTimer = 0;
 isCalm = matchMedia("(prefers-reduced-motion: reduce)");
 reset(duration, sampleRate) {
  this.duration = duration;
  this.sampleRate = sampleRate;
  this.window = this.target = { start: 0, end: duration };
  this.selection = this.noise = null;
  this.boxes = [];
  this.playhead = 0;
  this.isFitted = true;
  this.selected.emit();
  this.noiseMarked.emit();
  this.boxed.emit();
  this.#move();
 }
 setDuration(duration) {
  if (duration === this.duration || !(duration > 0)) return;
  const wasWhole = this.target.start === 0 && this.target.end >= this.duration;
  this.duration = duration;
  if (wasWhole) this.show({ start: 0, end: duration });
  else this.show(this.target);
 }
 get span() { return this.window.end - this.window.start; }
 get leastSpan() { return Math.min(this.duration, leastFrames / this.sampleRate); }
 show(window, atOnce = false) {
  const span = Math.min(this.duration, Math.max(this.leastSpan, window.end - window.start));
  const start = Math.min(Math.max(0, window.start), this.duration - span);
  this.target = { start, end: start + span };
  if (atOnce || this.isCalm.matches) this.window = this.target;
  this.#move();
 }
 #move() {
  clearTimeout(this.#restTimer);
  this.#restTimer = setTimeout(() => this.rested.emit(), restTime);
  this.moved.emit();
 }
 zoom(factor, at, atOnce) {
  const { start, end } = this.target, { selection, playhead } = this;
  const kept = at === undefined && selection && selection.start < end && selection.end > start ? selection : null;
  const around = at ?? (kept ? (kept.start + kept.end) / 2 : playhead > start && playhead < end ? playhead : (start + end) / 2);
  const span = Math.min(this.duration, Math.max(this.leastSpan, (end - start) * factor));
  const share = Math.min(1, Math.max(0, (around - start) / (end - start)));
  let from = around - share * span;
  if (kept && kept.end - kept.start <= span) from = Math.min(kept.start, Math.max(kept.end - span, from));
  this.show({ start: from, end: from + span }, atOnce);
 }
 pan(seconds, atOnce) {
  this.show({ start: this.target.start + seconds, end: this.target.end + seconds }, atOnce);
 }
 showAll() { this.show({ start: 0, end: this.duration }); }
 advance(milliseconds) {
  const from = this.window, to = this.target;
  if (from === to) return false;
  const share = 1 - Math.exp(-milliseconds / pace);
  const [spanFrom, spanTo] = [from.end - from.start, to.end - to.start];
  const near = spanTo / 4000;
  if (Math.abs(to.start - from.start) < near && Math.abs(to.end - from.end) < near) {
   this.window = to;
   return false;
  }
  const ratio = Math.log(spanTo / spanFrom);
  if (Math.abs(ratio) < 1e-4) {
   const start = from.start + (to.start - from.start) * share;
   this.window = { start, end: start + spanTo };
  } else {
   const place = (to.start - from.start) / (spanFrom - spanTo), still = from.start + place * spanFrom;
   const span = spanFrom * Math.exp(ratio * share);
   this.window = { start: still - place * span, end: still + (1 - place) * span };
  }
  return true;
 }
 select(selection) {
  this.selection = selection && this.#within(selection);
  this.selected.emit();
  this.moved.emit();
 }
 markNoise(noise) {
  this.noise = noise && this.#within(noise);
  this.noiseMarked.emit();
  this.moved.emit();
 }
 setBoxes(boxes) {
  this.boxes = boxes;
  this.boxed.emit();
  this.moved.emit();
 }
 movePlayhead(seconds) {
  this.playhead = Math.min(this.duration, Math.max(0, seconds));
  this.moved.emit();
 }
 #within(span) {
  const from = Math.max(0, Math.min(span.start, span.end)), to = Math.min(this.duration, Math.max(span.start, span.end));
  if (from > to || from >= this.duration) return null;
  const start = Math.max(0, Math.min(from, this.duration - 1 / this.sampleRate));
  return { start, end: Math.min(this.duration, Math.max(to, start + 1 / this.sampleRate)) };
 }
}
return { View };
})();
const look = (() => {
const colors = {
 background: ["#ffffff", "#101215"], peak: ["#8f949d", "#676e79"], rms: ["#5f656f", "#9aa2ad"],
 "overlay-peak": ["#2a9289", "#218f87"], "overlay-rms": ["#0b7771", "#6fe3d8"], line: ["#d8d5cf", "#30353c"],
 ink: ["#1c1f24", "#e9e7e3"], quiet: ["#5d646e", "#a0a7b1"], selection: ["#2a6fdb", "#6ea8ff"], playhead: ["#b3261e", "#ff8a80"],
 label: ["#dfe6f2", "#252d3a"], accent: ["#0b6f6b", "#55cfc5"], "on-accent": ["#ffffff", "#08211f"],
};
const forced = {
 background: "Canvas", peak: "GrayText", rms: "CanvasText", "overlay-peak": "LinkText", "overlay-rms": "LinkText", line: "GrayText",
 ink: "CanvasText", quiet: "CanvasText", selection: "Highlight", playhead: "Highlight", label: "Canvas", accent: "ButtonText", "on-accent": "ButtonFace",
};
const each = choose => Object.keys(colors).map(name => `--_${name}: var(--stillwave-${name}, ${choose(name)});`).join("");
const light = `color-scheme: light; ${each(name => colors[name][0])}`, dark = `color-scheme: dark; ${each(name => colors[name][1])}`;
const drawn = ["peak", "rms", "overlay-peak", "overlay-rms", "line", "ink", "quiet"];
const css = `
:host { ${light} display: block; position: relative; min-width: 0; container-type: inline-size; border-radius: .5rem; overflow: hidden;
 font: 400 .8125rem/1.4 var(--stillwave-font, system-ui, sans-serif); color: var(--_ink); background: var(--_background); }
:host([theme=dark]) { ${dark} }
@media (prefers-color-scheme: dark) { :host(:not([theme=light])) { ${dark} } }
@media (forced-colors: active) { :host(:not(#_)) { ${each(name => forced[name])} } }
:host([hidden]), [hidden] { display: none !important; }
* { box-sizing: border-box; }
.base { display: flex; flex-direction: column; height: 100%; }
canvas { display: block; width: 100%; height: 100%; }
.ruler { flex: none; height: 1.25rem; border-bottom: 1px solid var(--_line); pointer-events: none; }
.wave { position: relative; flex: 1 0 var(--stillwave-height, 8rem); min-height: 0; cursor: text; touch-action: pan-y; user-select: none; -webkit-user-select: none; outline: none; overflow: hidden; }
.wave:focus-visible::after { content: ""; position: absolute; inset: 0; border: 2px solid var(--_selection); border-radius: .25rem; pointer-events: none; }
.fill { position: absolute; inset: 0; }
.spectrogram { position: relative; flex: none; height: var(--stillwave-spectrogram-height, 8rem); border-top: 1px solid var(--_line); overflow: hidden; background: #000; }
.selection { position: absolute; inset-block: 0; left: 0; background: color-mix(in srgb, var(--_selection) 22%, transparent); border-inline: 2px solid var(--_selection); pointer-events: none; }
.playhead { position: absolute; inset-block: 0; left: -1px; width: 2px; background: var(--_playhead); pointer-events: none; }
.labels { position: relative; flex: none; height: 1.75rem; border-top: 1px solid var(--_line); overflow: hidden; }
.label { position: absolute; inset-block: 2px; padding: 0 .25rem; overflow: hidden; white-space: nowrap; text-overflow: ellipsis; line-height: 1.5rem; border-inline-start: 2px solid var(--_accent);
 background: var(--_label); border-radius: .15rem; min-width: 3px; color: inherit; }
.scroller { position: relative; flex: none; height: .75rem; border-top: 1px solid var(--_line); cursor: grab; touch-action: none; }
.thumb { position: absolute; inset-block: 2px; min-width: .75rem; background: var(--_quiet); border-radius: .25rem; }
.controls { display: flex; align-items: center; gap: .25rem; padding: .375rem; border-top: 1px solid var(--_line); }
.time { flex: 1; padding-inline: .375rem; font-variant-numeric: tabular-nums; white-space: nowrap; overflow: hidden; text-overflow: ellipsis; }
button { display: grid; place-items: center; flex: none; width: 2.25rem; height: 2.25rem; padding: 0; font: inherit; color: inherit; background: none; border: 1px solid transparent; border-radius: .4rem; cursor: pointer; }
button:hover { border-color: var(--_line); }
button:focus-visible { outline: 2px solid var(--_selection); outline-offset: -1px; }
button:disabled { opacity: .4; cursor: default; }
.play { background: var(--_accent); color: var(--_on-accent); border-radius: 50%; }
svg { width: 1.25rem; height: 1.25rem; fill: none; stroke: currentColor; stroke-width: 1.75; stroke-linecap: round; stroke-linejoin: round; }
.solid { fill: currentColor; stroke: none; }
.message { position: absolute; inset-inline: .5rem; top: 1.75rem; margin: 0; padding: .375rem .5rem; background: var(--_background); border: 1px solid var(--_playhead); border-radius: .25rem; }
@media (pointer: coarse) { button { width: 2.75rem; height: 2.75rem; } .scroller { height: 1.5rem; } }
@container (max-width: 14rem) { .zoom { display: none; } }
`;
function make(name, fields = {}, ...content) {
 const isDrawing = name === "svg" || name === "path";
 const made = isDrawing ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
 for (const [key, value] of Object.entries(fields)) made.setAttribute(key, value);
 made.append(...content);
 return made;
}
const paths = {
 play: "M6 3.5v13l11-6.5z", pause: "M5 4h3.5v12H5zM11.5 4H15v12h-3.5z",
 out: "M8.5 3a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM12.5 12.5 17 17M6 8.5h5",
 in: "M8.5 3a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11zM12.5 12.5 17 17M6 8.5h5M8.5 6v5",
 all: "M3 4v12M17 4v12M6 10h8M8 7.5 5.5 10 8 12.5M12 7.5l2.5 2.5-2.5 2.5",
};
function button(name) {
 const path = make("path", { d: paths[name], class: name === "play" ? "solid" : "" });
 return make("button", { type: "button", "data-do": name, part: `button ${name}`, class: name === "play" ? name : "zoom" },
  make("svg", { viewBox: "0 0 20 20", "aria-hidden": "true" }, path));
}
const box = (name, fields = {}, ...content) => make("div", { class: name, part: name === "wave" ? "waveform" : name, ...fields }, ...content);
const content = () => box("base", {},
 box("ruler", {}, make("canvas")),
 box("wave", { role: "slider", tabindex: "0", "aria-valuemin": "0", "aria-valuemax": "0", "aria-valuenow": "0" },
  make("div", { class: "fill" }, make("canvas")), box("selection", { hidden: "" }), box("playhead")),
 box("spectrogram", { hidden: "" }),
 box("labels", { role: "list", hidden: "" }),
 box("scroller", { "aria-hidden": "true", hidden: "" }, box("thumb")),
 box("controls", { hidden: "" }, button("play"), make("span", { class: "time", part: "time" }), button("out"), button("in"), button("all")),
 make("p", { class: "message", part: "message", role: "alert", hidden: "" }),
 ...drawn.map(name => make("i", { "data-color": name, hidden: "" })));
const colorRules = drawn.map(name => `[data-color=${name}] { color: var(--_${name}); }`).join("");
return { drawn, css, make, paths, content, colorRules };
})();
const { drawRuler, drawWaveforms, Surface, wishes } = drawing;
const { TileStore, Waveform } = tiles;
const { formatTime } = time;
const { View } = view;
const { colorRules, content, css, drawn, make, paths } = look;
const { isAbort, parsePlace, pause, Remote, StillwaveError } = remote;
const texts = {
 waveform: "Waveform", play: "Play", pause: "Pause", in: "Zoom in", out: "Zoom out", all: "Show everything", required: "Select a part of the recording.",
 position: (at, all) => `${at} of ${all}`,
 selected: (from, to) => `selected: ${from} to ${to}`,
 unplayable: "This browser can't play the recording.",
};
const growth = 1000;
const slack = 4;
const mostLabels = 300;
const origin = new URL(import.meta.url.endsWith("/embed/stillwave.js") ? ".." : ".", import.meta.url).href;
let sheet;
function style() {
 if (!sheet) (sheet = new CSSStyleSheet()).replaceSync(css + colorRules);
 return sheet;
}
const Base = globalThis.HTMLElement ?? (class {});
export class StillwaveWaveform extends Base {
 static formAssociated = true;
 static observedAttributes = ["src", "recording", "token", "start", "end", "overlay", "labels", "spectrogram", "controls", "theme", "disabled", "required", "aria-label"];
 static texts = texts;
 error = null;
 info = null;
 #internals = this.attachInternals();
 #root = this.attachShadow({ mode: "open", delegatesFocus: true });
 #audio = new Audio();
 #view = new View();
 #remote = null;
 #store = null;
 #layers = [];
 #labels = null;
 #spectrogram = null;
 #isFramed = false;
 #lastFrame = 0;
 #isLoading = false;
 #isStale = true;
 #shownTarget = this.#view.target;
 #stopAt = Infinity;
 #pendingTime = NaN;
 #conversion = null;
 #forget = () => {};
 constructor() {
  super();
  this.#root.adoptedStyleSheets = [style()];
  this.#root.append(content());
  this.#audio.preload = "none";
  const resized = () => this.#wake();
  this.surface = new Surface(this.#find(".fill canvas"), resized);
  this.ruler = new Surface(this.#find(".ruler canvas"), resized);
  this.#view.moved.subscribe(() => this.#wake());
  this.#view.rested.subscribe(() => this.#readLabels());
  this.#listen();
 }
 get duration() { return this.#layers.length ? this.#view.duration : NaN; }
 get paused() { return this.#audio.paused; }
 get currentTime() { return this.#view.playhead; }
 set currentTime(seconds) {
  this.#view.movePlayhead(Number(seconds) || 0);
  if (this.#audio.src && this.#audio.readyState > 0) this.#audio.currentTime = this.#view.playhead;
  else this.#pendingTime = this.#view.playhead;
  this.#stopAt = Infinity;
  this.#fire("timeupdate");
 }
 get selection() { return this.#view.selection && { ...this.#view.selection }; }
 set selection(span) { this.#select(span); }
 get visible() { return { ...this.#view.target }; }
 set visible({ start, end }) { this.#view.show({ start, end }); }
 zoom(factor, at = undefined) { this.#view.zoom(factor, at); }
 showAll() { this.#view.showAll(); }
 async play() {
  const { selection, playhead, duration } = this.#view;
  if (!this.#audio.getAttribute("src")) this.#setAudio();
  if (selection && (playhead < selection.start || playhead >= selection.end - 0.01)) this.currentTime = selection.start;
  else if (playhead >= duration - 0.01) this.currentTime = 0;
  this.#stopAt = selection ? selection.end : Infinity;
  try { await this.#audio.play(); } catch (error) {
   await new Promise(done => setTimeout(done));
   if (!this.#conversion) throw error;
   await this.#conversion;
  }
 }
 pause() { this.#audio.pause(); }
 get media() { return this.#audio; }
 get form() { return this.#internals.form; }
 get name() { return this.getAttribute("name") ?? ""; }
 set name(name) { this.setAttribute("name", name); }
 get type() { return this.localName; }
 get value() { return this.#view.selection ? `${round(this.#view.selection.start)}-${round(this.#view.selection.end)}` : ""; }
 set value(text) {
  const match = /^(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)$/.exec(text ?? "");
  this.#select(match && { start: Number(match[1]), end: Number(match[2]) });
 }
 get validity() { return this.#internals.validity; }
 get validationMessage() { return this.#internals.validationMessage; }
 get willValidate() { return this.#internals.willValidate; }
 checkValidity() { return this.#internals.checkValidity(); }
 reportValidity() { return this.#internals.reportValidity(); }
 connectedCallback() {
  if (this.#isStale) this.#plan();
  const dark = matchMedia("(prefers-color-scheme: dark)"), wake = () => this.#wake();
  dark.addEventListener("change", wake);
  this.#forget = () => dark.removeEventListener("change", wake);
 }
 disconnectedCallback() {
  this.#forget();
  this.pause();
  queueMicrotask(() => { if (!this.isConnected) this.#close(); });
 }
 attributeChangedCallback(name, old, value) {
  if (old === value) return;
  switch (name) {
   case "src": case "recording": case "token": case "overlay": return this.#plan();
   case "start": case "end": return this.#showAttributes();
   case "labels": this.#labels = null; return this.#readLabels();
   case "spectrogram": return void this.#openSpectrogram();
   case "controls": this.#find(".controls").hidden = value === null; return;
   case "required": return this.#judge();
   case "disabled": return this.formDisabledCallback(value !== null);
   default: this.#wake();
  }
 }
 formResetCallback() { this.#select(null); }
 formStateRestoreCallback(state) { this.value = state; }
 formDisabledCallback(isDisabled) {
  this.#find(".wave").tabIndex = isDisabled ? -1 : 0;
  this.#find(".wave").setAttribute("aria-disabled", String(isDisabled));
  for (const button of this.#root.querySelectorAll("button")) button.disabled = isDisabled;
  if (isDisabled) this.pause();
 }
 #plan() {
  this.#isStale = true;
  if (this.#isLoading || !this.isConnected) return;
  this.#isLoading = true;
  queueMicrotask(() => { this.#isLoading = false; if (this.isConnected) void this.#load(); });
 }
 #close() {
  this.#isStale = true;
  this.#remote?.close();
  for (const { waveform } of this.#layers) this.#store?.forget(waveform);
  this.#spectrogram?.close();
  this.#audio.removeAttribute("src");
  this.#audio.load();
  [this.#remote, this.#store, this.#layers, this.#labels, this.#spectrogram, this.info] = [null, null, [], null, null, null];
  this.#conversion = null;
 }
 get #place() {
  const src = this.getAttribute("src") ?? "", id = this.getAttribute("recording") ?? "", token = this.getAttribute("token") ?? "";
  const base = src && !src.includes("/v1/recordings/") ? new URL(src.replace(/\/?$/, "/"), document.baseURI).href : origin;
  return parsePlace(id || src, base, token);
 }
 async #load() {
  this.#close();
  this.#isStale = false;
  this.#show(null);
  const place = this.#place;
  if (!place) {
   if (this.getAttribute("recording") || this.getAttribute("src")) this.#fail(new StillwaveError("The recording's id or address isn't valid.", "invalid_recording", 0));
   return this.#wake();
  }
  const remote = this.#remote = new Remote(error => this.#fail(error)), store = this.#store = new TileStore((remote));
  remote.add(place);
  store.arrived.subscribe(() => {
   if (this.error?.code === "unreachable") this.#show(null);
   this.#judgeGrowth();
   this.#wake();
  });
  try {
   const layer = await this.#addLayer(remote, place.id, "original");
   if (this.#remote !== remote) return;
   this.#view.reset(layer.waveform.totalFrames / layer.waveform.sampleRate || 1, layer.waveform.sampleRate);
   if (this.#wanted) this.#select(this.#wanted);
   this.#showAttributes();
   this.#fire("loadedmetadata");
   this.#readLabels();
   void this.#openSpectrogram();
   const over = parsePlace(this.getAttribute("overlay") ?? "", place.base, place.token);
   if (over) {
    remote.add(over);
    await this.#addLayer(remote, over.id, "cleaned");
   }
  } catch { /* the error was reported */ }
 }
 #wanted = null;
 async #addLayer(remote, id, role) {
  const read = async () => (await remote.fetch(`v1/recordings/${id}`)).json();
  const recording = await read(), layer = { waveform: new Waveform(recording, "mix"), role, color: 0, revealed: Infinity, job: null };
  if (this.#remote !== remote) throw new DOMException("", "AbortError");
  this.#layers.push(layer);
  const learn = (now) => {
   layer.waveform.learn(now);
   layer.job = layer.waveform.complete ? null : now.waveform.job ?? true;
   if (role === "original") this.info = now;
   this.#judgeGrowth();
   if (now.waveform.state === "failed") this.#fail(new StillwaveError("The recording's waveform couldn't be made.", "waveform_failed", 200));
   this.#wake();
  };
  learn(recording);
  if (["queued", "building"].includes(recording.waveform.state)) void (async () => {
   for (let state = recording; ["queued", "building"].includes(state.waveform.state);) {
    await pause(growth, remote.ending);
    if (this.#remote !== remote) return;
    state = await read();
    learn(state);
   }
  })().catch(() => { /* reported */ });
  return layer;
 }
 #judgeGrowth() {
  const longest = Math.max(...this.#layers.map(({ waveform }) => (waveform.totalFrames || waveform.availableFrames) / waveform.sampleRate));
  if (longest > 0) this.#view.setDuration(longest);
 }
 #showAttributes() {
  const [start, end] = ["start", "end"].map(name => parseFloat(this.getAttribute(name) ?? ""));
  if (this.#layers.length && (start >= 0 || end > 0)) this.#view.show({ start: start || 0, end: end || this.#view.duration }, true);
 }
 async #openSpectrogram() {
  const isWanted = this.hasAttribute("spectrogram"), place = this.#find(".spectrogram"), remote = this.#remote;
  place.hidden = !isWanted;
  if (!isWanted) {
   this.#spectrogram?.close();
   this.#spectrogram = null;
  }
  if (!isWanted || this.#spectrogram || !remote || !this.#layers.length) return;
  try {
   const { Spectrogram } = await import("./spectrogram.js");
   if (this.#remote !== remote || this.#spectrogram || !this.hasAttribute("spectrogram")) return;
   this.#spectrogram = new Spectrogram(place, remote, this.#layers[0].waveform);
   this.#wake();
  } catch (error) { this.#fail(new StillwaveError(String(error), "unreachable", 0)); }
 }
 async #readLabels() {
  const wanted = this.getAttribute("labels"), remote = this.#remote, place = this.#find(".labels"), { start, end } = this.#view.target;
  place.hidden = wanted === null;
  if (wanted === null || !remote || !this.#layers.length) return;
  if (this.#labels && this.#labels.from <= start && this.#labels.to >= end) return;
  const path = `v1/recordings/${this.#layers[0].waveform.id}/labels`, span = end - start;
  try {
   let track = wanted || this.#labels?.track;
   if (!track) track = (await (await remote.fetch(path)).json()).tracks[0]?.id;
   if (!track) return;
   const [from, to] = [Math.max(0, start - span), end + span];
   const { labels } = await (await remote.fetch(`${path}/${encodeURIComponent(track)}?start=${from}&end=${to}`)).json();
   if (this.#remote !== remote) return;
   this.#labels = { track, from, to, list: labels };
   this.#wake();
  } catch { /* reported */ }
 }
 #drawLabels() {
  const place = this.#find(".labels"), { start, end } = this.#view.window, span = end - start;
  if (place.hidden) return;
  const seen = this.#labels?.list.filter(label => label.start < end && label.end >= start) ?? [];
  const few = seen.slice(0, mostLabels);
  while (place.children.length > few.length) place.lastChild?.remove();
  few.forEach((label, k) => {
   const box = (place.children[k] ?? place.appendChild(make("div", { class: "label", part: "label", role: "listitem" })));
   const left = Math.max(0, (label.start - start) / span), right = Math.min(1, (label.end - start) / span);
   if (box.textContent !== label.text) box.title = box.textContent = label.text;
   box.style.left = `${100 * left}%`;
   box.style.width = `${100 * (right - left)}%`;
  });
 }
 #wake() {
  if (this.#isFramed) return;
  this.#isFramed = true;
  requestAnimationFrame(time => {
   this.#isFramed = false;
   this.#frame(time);
  });
 }
 #frame(time) {
  const view = this.#view, isMoving = view.advance(Math.min(50, time - this.#lastFrame || 16)), isPlaying = !this.#audio.paused;
  this.#lastFrame = time;
  if (isPlaying) this.#follow();
  this.#draw();
  if (view.target !== this.#shownTarget) {
   this.#shownTarget = view.target;
   this.#fire("zoomchange");
  }
  if (isMoving || isPlaying) this.#wake();
 }
 #follow() {
  const { currentTime } = this.#audio, view = this.#view, before = view.playhead;
  if (currentTime >= this.#stopAt) {
   this.pause();
   view.movePlayhead(this.#stopAt);
   return;
  }
  view.movePlayhead(currentTime);
  const { start, end } = view.target;
  if (before <= end && currentTime > end && end < view.duration) view.show({ start: currentTime, end: currentTime + end - start });
 }
 #draw() {
  const view = this.#view, { surface, ruler } = this, store = this.#store;
  const style = (name) => getComputedStyle(this.#find(`[data-color=${name}]`)).color;
  const [peak, rms, overPeak, overRms, line, ink, quiet] = drawn.map(style);
  const palette = { original: { peak, rms, front: quiet }, cleaned: [{ peak: overPeak, rms: overRms, front: overRms }], line, ink, quiet, font: `11px ${getComputedStyle(this).fontFamily}` };
  if (store && this.#layers.length && surface.width > 0) {
   const { urgent, likely } = wishes(this.#layers, view.target, surface.canvas.width, { start: 0, end: view.duration }, surface.canvas.width);
   store.want([...urgent, ...likely]);
   drawWaveforms(surface, view.window, this.#layers, (palette), view.gain, store);
   drawRuler(ruler, view.window, (palette));
   this.#spectrogram?.draw(view.window);
  } else {
   surface.clear();
   ruler.clear();
  }
  const { start, end } = view.window, span = end - start, place = (at) => (at - start) / span * surface.width;
  const head = this.#find(".playhead"), mark = this.#find(".selection"), x = place(view.playhead);
  head.hidden = !this.#layers.length || x < 0 || x > surface.width;
  head.style.transform = `translateX(${x}px)`;
  mark.hidden = !view.selection;
  if (view.selection) {
   const left = Math.max(-4, place(view.selection.start)), right = Math.min(surface.width + 4, place(view.selection.end));
   mark.hidden = right < left;
   mark.style.transform = `translateX(${left}px)`;
   mark.style.width = `${Math.max(3, right - left)}px`;
  }
  const isWhole = !this.#layers.length || span >= view.duration * 0.9999, thumb = this.#find(".thumb");
  this.#find(".scroller").hidden = isWhole;
  thumb.style.left = `${100 * start / view.duration}%`;
  thumb.style.width = `${100 * span / view.duration}%`;
  this.#drawLabels();
  this.#describe();
 }
 #describe() {
  const { playhead, duration, selection } = this.#view, wave = this.#find(".wave"), has = this.#layers.length > 0;
  const clock = has ? texts.position(formatTime(playhead, 1), formatTime(duration, 1)) : "";
  const chosen = selection ? `, ${texts.selected(formatTime(selection.start), formatTime(selection.end))}` : "";
  const set = (element, name, value) => { if (element.getAttribute(name) !== value) element.setAttribute(name, value); };
  set(wave, "aria-label", this.getAttribute("aria-label") ?? this.info?.name ?? texts.waveform);
  set(wave, "aria-valuemax", String(has ? round(duration) : 0));
  set(wave, "aria-valuenow", String(Math.round(playhead * 10) / 10));
  set(wave, "aria-valuetext", clock + chosen);
  this.#find(".time").textContent = has ? `${formatTime(playhead, 0)} / ${formatTime(duration, 0)}` : "";
  const isPaused = this.#audio.paused;
  for (const button of this.#root.querySelectorAll("button")) {
   const name = (button.dataset.do);
   set(button, "aria-label", name === "play" && !isPaused ? texts.pause : texts[name]);
  }
  const path = this.#root.querySelector(".play path");
  if (path) set(path, "d", isPaused ? paths.play : paths.pause);
 }
 #listen() {
  const wave = this.#find(".wave"), scroller = this.#find(".scroller"), audio = this.#audio;
  wave.addEventListener("keydown", event => this.#press(event));
  wave.addEventListener("wheel", event => this.#turn(event), { passive: false });
  this.#point(wave);
  let grip = NaN;
  scroller.addEventListener("pointerdown", event => {
   if (this.#isDisabled) return;
   const { width, left } = scroller.getBoundingClientRect(), { start, end } = this.#view.target, at = (event.clientX - left) / width * this.#view.duration;
   grip = at >= start && at <= end ? at - start : (end - start) / 2;
   scroller.setPointerCapture(event.pointerId);
   move(event);
  });
  const move = (event) => {
   if (Number.isNaN(grip)) return;
   const { width, left } = scroller.getBoundingClientRect(), { start, end } = this.#view.target;
   const from = (event.clientX - left) / width * this.#view.duration - grip;
   this.#view.show({ start: from, end: from + end - start }, true);
  };
  scroller.addEventListener("pointermove", move);
  for (const name of ["pointerup", "pointercancel"]) scroller.addEventListener(name, () => { grip = NaN; });
  this.#find(".controls").addEventListener("click", event => {
   const button = ((event.target).closest("button"));
   const act = { play: () => this.#toggle(), in: () => this.zoom(0.5), out: () => this.zoom(2), all: () => this.showAll() };
   act[(button?.dataset.do)]?.();
  });
  for (const name of ["play", "pause", "ended"]) audio.addEventListener(name, () => { this.#fire(name); this.#wake(); });
  audio.addEventListener("timeupdate", () => {
   if (!audio.paused) this.#fire("timeupdate");
  });
  audio.addEventListener("loadedmetadata", () => {
   if (!Number.isNaN(this.#pendingTime)) audio.currentTime = this.#pendingTime;
   this.#pendingTime = NaN;
  });
  audio.addEventListener("error", () => this.#convert());
 }
 get #isDisabled() { return this.matches(":disabled"); }
 #toggle() {
  if (this.paused) this.play().catch(() => { /* the media element's error event says why */ });
  else this.pause();
 }
 #setAudio(query = "") {
  if (!this.#remote || !this.#layers.length) return;
  const { id } = this.#layers[0].waveform, address = this.#remote.address(`v1/recordings/${id}/audio${query}`), url = new URL(address);
  this.#audio.crossOrigin = url.origin === location.origin || url.searchParams.has("token") ? null : "anonymous";
  this.#audio.src = address;
  const { playhead } = this.#view;
  if (playhead > 0) this.#pendingTime = playhead;
 }
 #convert() {
  if (!this.#audio.getAttribute("src")) return;
  if (this.#conversion || this.#audio.error?.code === MediaError.MEDIA_ERR_NETWORK) return this.#fail(new StillwaveError(texts.unplayable, "unplayable", 0));
  this.#setAudio("?format=mp3");
  this.#conversion = this.#audio.play();
  this.#conversion.catch(() => { /* as above */ });
 }
 #press(event) {
  if (event.altKey || event.ctrlKey || event.metaKey || this.#isDisabled || !this.#layers.length) return;
  const view = this.#view, span = view.target.end - view.target.start, { playhead, selection } = view, step = span / 100;
  const go = (to) => {
   const at = Math.min(view.duration, Math.max(0, to));
   if (event.shiftKey) {
    const anchor = !selection ? playhead : Math.abs(selection.start - playhead) < Math.abs(selection.end - playhead) ? selection.end : selection.start;
    this.#select(anchor === at ? null : { start: Math.min(anchor, at), end: Math.max(anchor, at) }, true);
   }
   this.currentTime = at;
   const { start, end } = view.target;
   if (at < start || at > end) view.pan(at < start ? at - start : at - end);
  };
  const keys = {
   " ": () => this.#toggle(), ArrowRight: () => go(playhead + step), ArrowUp: () => go(playhead + step), ArrowLeft: () => go(playhead - step), ArrowDown: () => go(playhead - step),
   PageUp: () => go(playhead + span / 10), PageDown: () => go(playhead - span / 10), Home: () => go(0), End: () => go(view.duration),
   "+": () => view.zoom(0.5), "=": () => view.zoom(0.5), "-": () => view.zoom(2), "0": () => view.showAll(), Escape: () => this.#select(null, true),
  };
  const act = keys[event.key];
  if (!act || event.key === "Escape" && !selection) return;
  event.preventDefault();
  act();
 }
 #turn(event) {
  if (this.#isDisabled || !this.#layers.length) return;
  const { left, width } = this.#find(".wave").getBoundingClientRect(), { start, end } = this.#view.target, lines = event.deltaMode ? 16 : 1;
  const across = event.shiftKey && !event.deltaX ? event.deltaY : event.deltaX;
  if (event.ctrlKey || event.metaKey) this.#view.zoom(2 ** (event.deltaY * lines / 150), start + (end - start) * (event.clientX - left) / width);
  else if (Math.abs(across) > Math.abs(event.shiftKey ? 0 : event.deltaY) && end - start < this.#view.duration) this.#view.pan(across * lines / width * (end - start));
  else return; // The page scrolls.
  event.preventDefault();
 }
 #point(wave) {
  const down = new Map();
  let drag = null;
  let pinch = null;
  const view = this.#view, x = (event) => event.clientX - wave.getBoundingClientRect().left;
  const time = (at) => view.window.start + (view.window.end - view.window.start) * at / this.surface.width;
  wave.addEventListener("pointerdown", event => {
   if (event.button || this.#isDisabled || !this.#layers.length) return;
   down.set(event.pointerId, x(event));
   wave.setPointerCapture(event.pointerId);
   if (down.size === 2) {
    const [a, b] = [...down.values()].sort((one, other) => one - other);
    [drag, pinch] = [null, { from: time(a), to: time(b) }];
    return;
   }
   const reach = (event.pointerType === "touch" ? 16 : 6) / this.surface.width * (view.window.end - view.window.start), at = time(x(event)), { selection } = view;
   const near = (edge) => Math.abs(edge - at) < reach;
   const anchor = selection && near(selection.start) ? selection.end : selection && near(selection.end) ? selection.start : at;
   drag = { x: x(event), anchor, isDrag: anchor !== at };
  });
  wave.addEventListener("pointermove", event => {
   if (!down.has(event.pointerId)) return;
   down.set(event.pointerId, x(event));
   if (pinch && down.size === 2) {
    const [a, b] = [...down.values()].sort((one, other) => one - other);
    const span = (pinch.to - pinch.from) / Math.max(0.02, (b - a) / this.surface.width), start = pinch.from - span * a / this.surface.width;
    view.show({ start, end: start + span }, true);
   } else if (drag) {
    drag.isDrag ||= Math.abs(x(event) - drag.x) > slack;
    if (!drag.isDrag) return;
    const at = Math.min(view.duration, Math.max(0, time(Math.min(this.surface.width, Math.max(0, x(event))))));
    this.#select({ start: Math.min(at, drag.anchor), end: Math.max(at, drag.anchor) });
   }
  });
  const end = (event) => {
   if (!down.delete(event.pointerId)) return;
   if (drag && event.type === "pointerup") {
    if (drag.isDrag) this.#tellChange();
    else {
     if (view.selection) this.#select(null, true);
     this.currentTime = time(drag.x);
    }
   }
   drag = null;
   if (!down.size) pinch = null;
  };
  for (const name of (["pointerup", "pointercancel"])) wave.addEventListener(name, end);
 }
 #select(span, isDone) {
  this.#wanted = this.#layers.length ? null : span && { ...span };
  const before = this.value;
  this.#view.select(this.#layers.length ? span : null);
  if (this.value === before) return;
  this.#stopAt = this.#view.selection && !this.paused ? this.#view.selection.end : Infinity;
  this.#internals.setFormValue(this.value || null, this.value);
  this.#judge();
  this.#fire("selectionchange");
  if (isDone) this.#tellChange();
 }
 #tellChange() {
  this.#fire("input");
  this.#fire("change");
 }
 #judge() {
  const isMissing = this.hasAttribute("required") && !this.#view.selection;
  this.#internals.setValidity(isMissing ? { valueMissing: true } : {}, isMissing ? texts.required : "", this.#find(".wave"));
 }
 #find(selector) { return (this.#root.querySelector(selector)); }
 #fire(name) { this.dispatchEvent(new Event(name)); }
 #fail(error) {
  if (isAbort(error)) return;
  this.#show(error);
  this.#fire("error");
 }
 #show(error) {
  this.error = error;
  const message = this.#find(".message");
  message.hidden = !error;
  message.textContent = error?.message ?? "";
 }
}
const round = (seconds) => Number(seconds.toFixed(6));
if (globalThis.customElements && !customElements.get("stillwave-waveform")) customElements.define("stillwave-waveform", StillwaveWaveform);
