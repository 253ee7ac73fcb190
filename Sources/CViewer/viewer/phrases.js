// @ts-check
import { tileLength } from "./tiles.js";

// What a double-click selects: the sound between the nearest silences, or a silence between sounds. A point counts as
// silent if its RMS is near that of the quietest tenth of the points around.

/** A point is silent below this factor of the quietest tenth, or this share of the loudest twentieth. */
const aboveFloor = 2.5, belowLoud = 0.02;
/** Shorter pauses belong to the sound, and shorter sounds to the pause, in seconds. */
const leastLength = 0.12;
/** The longest points that are looked at, in seconds. */
const longestPoint = 0.25;

/**
 * Returns the stretch around an instant in which it is as loud or as silent as there.
 * @param {import("./tiles.js").Waveform} waveform
 * @param {number} at in seconds
 * @param {number} finest seconds of a point: that of a few pixels is fine enough
 * @returns {import("./view.js").Span | null} null if the waveform isn't loaded there
 */
export function stretchAround(waveform, at, finest) {
  const frame = at * waveform.sampleRate;
  for (let exponent = waveform.exponentFor(Math.max(256, finest * waveform.sampleRate)); exponent <= waveform.wholeExponent; exponent++) {
    const span = tileLength * 2 ** exponent, index = Math.floor(frame / span), length = 2 ** exponent / waveform.sampleRate;
    if (length > longestPoint) return null;
    const tiles = [index - 1, index, index + 1].map(near => waveform.tile(exponent, near));
    if (!tiles[1]) continue;
    const first = tiles[0] ? index - 1 : index, levels = tiles.flatMap(tile => (tile ? levelsOf(tile) : []));
    const sorted = [...levels].sort((a, b) => a - b), share = (/** @type {number} */ part) => sorted[Math.floor(part * (sorted.length - 1))];
    const limit = Math.max(aboveFloor * share(0.1), belowLoud * share(0.95), 1);
    const start = first * span / waveform.sampleRate;
    const [from, to] = run(levels, Math.floor((at - start) / length), limit, Math.max(1, Math.round(leastLength / length)));
    return { start: start + from * length, end: start + to * length };
  }
  return null;
}

/** The RMS of each point, over all channels. */
function levelsOf(/** @type {import("./tiles.js").Tile} */ { rms, channels, count }) {
  return Array.from({ length: count }, (_, k) => {
    let most = 0;
    for (let channel = 0; channel < channels; channel++) most = Math.max(most, rms[k * channels + channel]);
    return most;
  });
}

/**
 * Returns the run around `at` of levels on its side of the limit, over interruptions that are shorter than `least`.
 * @param {number[]} levels
 * @param {number} at
 * @param {number} limit
 * @param {number} least
 */
function run(levels, at, limit, least) {
  const isLoud = levels[at] >= limit, belongs = (/** @type {number} */ k) => (levels[k] >= limit) === isLoud;
  const reach = (/** @type {number} */ step) => {
    let last = at;
    for (let k = at; k >= 0 && k < levels.length && Math.abs(k - last) <= least; k += step) if (belongs(k)) last = k;
    return last;
  };
  return [reach(-1), reach(1) + 1];
}
