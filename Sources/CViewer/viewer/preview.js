// @ts-check
import { recordingPath } from "./service.js";

// Short stretches, cleaned at once by the service: to be heard, and to be drawn small.

/** @typedef {import("./session.js").Settings} Settings */
/** @typedef {import("./view.js").Span} Span */

/** The longest stretch that is cleaned at once, in seconds. */
export const longestPreview = 30;
export const voices = /** @type {const} */ (["original", "cleaned", "residue"]);
/** @typedef {typeof voices[number]} Voice */

/**
 * The bytes of a WAV file with a stretch of a recording, cleaned.
 * @param {import("./service.js").Service} service
 * @param {string} id
 * @param {Span} window
 * @param {Settings} settings
 * @param {AbortSignal} signal
 */
export async function fetchPreview(service, id, window, settings, signal) {
  const answer = await service.fetch(`${recordingPath(id)}/denoise/preview`, {
    method: "POST", body: { ...settings, window }, signal,
  });
  return answer.arrayBuffer();
}

/**
 * @typedef {object} Comparison
 * @property {Span} window
 * @property {Record<Voice, AudioBuffer>} buffers of equal length
 * @property {Record<Voice, number>} gains that make them equally loud
 */

/**
 * A stretch three ways. What was removed is the difference of the other two, so the original is their sum.
 * @param {AudioContext} context
 * @param {import("./service.js").Service} service
 * @param {string} id
 * @param {Span} window
 * @param {Settings} settings
 * @param {AbortSignal} signal
 * @returns {Promise<Comparison>}
 */
export async function compare(context, service, id, window, settings, signal) {
  const decode = async (/** @type {"denoised" | "residue"} */ output) =>
    context.decodeAudioData(await fetchPreview(service, id, window, { ...settings, output }, signal));
  const [cleaned, residue] = await Promise.all([decode("denoised"), decode("residue")]);
  const original = context.createBuffer(cleaned.numberOfChannels, cleaned.length, cleaned.sampleRate);
  for (let channel = 0; channel < cleaned.numberOfChannels; channel++) {
    const sum = original.getChannelData(channel), a = cleaned.getChannelData(channel);
    const b = residue.getChannelData(Math.min(channel, residue.numberOfChannels - 1));
    for (let k = 0; k < sum.length; k++) sum[k] = a[k] + (b[k] ?? 0);
    // Thirty seconds of many channels must not keep the page waiting.
    await new Promise(resolve => setTimeout(resolve));
  }
  const buffers = { original, cleaned, residue };
  const loudness = await Promise.all(voices.map(voice => measureLoudness(buffers[voice])));
  const gains = /** @type {Record<Voice, number>} */ ({});
  voices.forEach((voice, k) => {
    const wanted = Math.min(16, Math.sqrt(loudness[0].power / Math.max(1e-12, loudness[k].power)));
    gains[voice] = Math.min(wanted, 1 / Math.max(1e-6, loudness[k].peak, loudness[0].peak));
    if (voice === "original") gains[voice] = 1;
  });
  return { window, buffers, gains };
}

/** Power as the ear weighs it, of the louder blocks, after ITU-R BS.1770; computed off the page's thread. */
async function measureLoudness(/** @type {AudioBuffer} */ buffer) {
  const offline = new OfflineAudioContext(1, buffer.length, buffer.sampleRate);
  const source = new AudioBufferSourceNode(offline, { buffer });
  const shelf = new BiquadFilterNode(offline, { type: "highshelf", frequency: 1500, gain: 4 });
  const pass = new BiquadFilterNode(offline, { type: "highpass", frequency: 38, Q: -6 });
  source.connect(shelf).connect(pass).connect(offline.destination);
  source.start();
  const samples = (await offline.startRendering()).getChannelData(0);
  const block = Math.max(1, Math.round(0.4 * buffer.sampleRate)), powers = [];
  let peak = 0;
  for (let start = 0; start < samples.length; start += block) {
    const end = Math.min(samples.length, start + block);
    let sum = 0;
    for (let k = start; k < end; k++) {
      const value = samples[k];
      sum += value * value;
      if (value > peak) peak = value;
      else if (-value > peak) peak = -value;
    }
    powers.push(sum / (end - start));
  }
  const mean = (/** @type {number[]} */ values) => values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
  const gate = mean(powers) / 10;
  return { power: mean(powers.filter(power => power >= gate)), peak };
}

/**
 * The points of a 16-bit WAV file's mean of channels.
 * @param {ArrayBuffer} bytes
 * @param {number} points at the most
 * @returns {import("./drawing.js").Points}
 */
export function picture(bytes, points) {
  const view = new DataView(bytes);
  let offset = 12, channels = 1, dataAt = 44, length = bytes.byteLength - 44;
  while (offset + 8 <= bytes.byteLength) {
    const id = view.getUint32(offset), size = view.getUint32(offset + 4, true);
    if (id === 0x666d7420) channels = view.getUint16(offset + 10, true);
    if (id === 0x64617461) {
      [dataAt, length] = [offset + 8, Math.min(size, bytes.byteLength - offset - 8)];
      break;
    }
    offset += 8 + size + size % 2;
  }
  const samples = new Int16Array(bytes, dataAt, length >> 1), frames = Math.floor(samples.length / channels);
  const count = Math.max(1, Math.min(points, frames)), peaks = new Int16Array(2 * count), rms = new Int16Array(count);
  for (let k = 0; k < count; k++) {
    const from = Math.floor(k * frames / count), to = Math.max(from + 1, Math.floor((k + 1) * frames / count));
    let least = 32767, most = -32768, sum = 0;
    for (let frame = from; frame < to; frame++) {
      let value = 0;
      for (let channel = 0; channel < channels; channel++) value += samples[frame * channels + channel];
      value /= channels;
      if (value < least) least = value;
      if (value > most) most = value;
      sum += value * value;
    }
    [peaks[2 * k], peaks[2 * k + 1], rms[k]] = [least, most, Math.sqrt(sum / (to - from))];
  }
  return { count, channels: 1, peaks, rms };
}
