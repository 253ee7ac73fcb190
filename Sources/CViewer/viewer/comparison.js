// @ts-check

// A cleaned stretch, its original and the removed noise, played from memory: three voices that loop in step, of which one
// is audible. They get the same loudness: that of the cleaned voice, which is loaded first.

/** @typedef {import("./view.js").Span} Span */
/** @typedef {import("./session.js").Settings} Settings */

export const voices = /** @type {const} */ (["original", "cleaned", "residue"]);
/** @typedef {typeof voices[number]} Voice */
/** @typedef {{ buffer: AudioBuffer, gain: number, output: GainNode | null, source: AudioBufferSourceNode | null }} Take */

/** How long one voice fades into another, in seconds. */
export const fade = 0.012;
/** Sounds are scheduled this many seconds ahead, so that none starts late. */
export const lead = 0.01;
/** A start that reaches the thread of the sound less than this many seconds ahead may be late. */
const margin = 0.006;
/**
 * Limits of the factors by which the original and the removed noise are made louder or softer. If there is only noise, an
 * original as soft as the cleaned sound would hide the effect.
 */
const mostGain = { original: 2, residue: 16 };

/** The most channels that browsers mix down to the loudspeakers; more than that are mixed here. */
export const mostSpeakers = 6;

/**
 * The latest instant of each context that has been heard.
 * @type {WeakMap<AudioContext, number>}
 */
const heard = new WeakMap();

/**
 * The instant of a context that leaves the loudspeaker now, in its seconds. `currentTime` would be ahead by the latency of
 * the output, and advances in blocks. Browsers correct their estimate now and then, but it never goes back here.
 * @param {AudioContext} context
 */
export function heardTime(context) {
  const { contextTime = 0, performanceTime = 0 } = context.getOutputTimestamp?.() ?? {}, { currentTime } = context;
  const estimate = performanceTime ? Math.min(currentTime, contextTime + Math.max(0, performance.now() - performanceTime) / 1000)
    : currentTime - (context.outputLatency || 0);
  const time = Math.max(estimate, heard.get(context) ?? 0);
  heard.set(context, time);
  return time;
}

/**
 * Starts a source so that it is in step with others. If the instant of its beginning has passed, or passes meanwhile because
 * the page's thread has to wait, it starts later, and as much further into the sound.
 * @param {AudioContext} context
 * @param {number} begun when the sound begins, in seconds of the context
 * @param {(late: number) => number} offset where it starts when it is late, in seconds of the buffer
 * @param {() => AudioBufferSourceNode} make a source that is connected
 * @param {number} [duration] of the sound, in seconds
 * @returns {AudioBufferSourceNode | null} null: the sound is over before it could start
 */
export function startInStep(context, begun, offset, make, duration = Infinity) {
  for (let ahead = lead; ; ahead *= 2) {
    const source = make(), { sampleRate: rate } = context;
    // By whole frames, lest it be resampled.
    const late = Math.max(0, Math.ceil((context.currentTime + ahead - begun) * rate)) / rate;
    if (late < duration) {
      source.start(begun + late, offset(late));
      if (context.currentTime + margin < begun + late || ahead > 1) return source;
      source.stop();
    }
    source.disconnect();
    if (late >= duration) return null;
  }
}

/**
 * How loud sounds are played, as a factor, and the last node of each context.
 * @type {WeakMap<AudioContext, GainNode>}
 */
const outputs = new WeakMap();
let volume = 1;

/**
 * Returns the node that sounds are connected to; it applies the volume.
 * @param {AudioContext} context
 */
export function outputOf(context) {
  const output = outputs.get(context) ?? new GainNode(context, { gain: volume });
  if (!outputs.has(context)) output.connect(context.destination);
  outputs.set(context, output);
  return output;
}

/**
 * Sets how loud sounds of a context, and of later ones, are played.
 * @param {number} factor
 * @param {AudioContext | null} context
 */
export function setVolume(factor, context) {
  volume = factor;
  if (context) outputOf(context).gain.setTargetAtTime(factor, context.currentTime, fade / 3);
}

export class Comparison {
  isHeard = false;
  isComplete = false;
  /** @type {Voice} */
  #voice = "cleaned";
  /** @type {Partial<Record<Voice, Take>>} */
  #takes = {};
  /** @type {Span} */
  #loop;
  #begun = 0;
  #offset = 0;

  /**
   * @param {AudioContext} context
   * @param {Span} window
   */
  constructor(context, window) {
    this.context = context;
    this.window = this.#loop = window;
  }

  /**
   * Fetches a stretch; resolves when the cleaned voice is there.
   * @param {(output: Settings["output"]) => Promise<ArrayBuffer>} fetch the bytes of a WAV file
   * @returns {Promise<{ others: Promise<void> }>} when the other voices are there too
   */
  async load(fetch) {
    // Decoding detaches the buffer, so it gets its own copy.
    const decode = async (/** @type {Settings["output"]} */ output) => mixed(await this.context.decodeAudioData((await fetch(output)).slice(0)));
    const cleaned = await decode("denoised");
    this.#add("cleaned", cleaned, 1);
    return { others: this.#complete(cleaned, decode("residue")) };
  }

  /** The original is the sum of the cleaned sound and the removed noise. */
  async #complete(/** @type {AudioBuffer} */ cleaned, /** @type {Promise<AudioBuffer>} */ fetched) {
    const residue = await fetched, { context } = this;
    const original = context.createBuffer(cleaned.numberOfChannels, cleaned.length, cleaned.sampleRate);
    for (let channel = 0; channel < cleaned.numberOfChannels; channel++) {
      const sum = original.getChannelData(channel), a = cleaned.getChannelData(channel);
      const b = residue.getChannelData(Math.min(channel, residue.numberOfChannels - 1));
      for (let k = 0; k < sum.length; k++) sum[k] = a[k] + (b[k] ?? 0);
      // Thirty seconds of many channels must not block the page.
      await new Promise(resolve => setTimeout(resolve));
    }
    const gains = await equalGains(cleaned, original, residue);
    this.#add("original", original, gains.original);
    this.#add("residue", residue, gains.residue);
    this.isComplete = true;
  }

  #add(/** @type {Voice} */ voice, /** @type {AudioBuffer} */ buffer, /** @type {number} */ gain) {
    /** @type {Take} */
    const take = this.#takes[voice] = { buffer, gain, output: null, source: null };
    if (!this.isHeard) return;
    this.#run(take);
    this.hear(this.#voice);
  }

  /**
   * Starts all voices at one instant.
   * @param {Voice} voice the one that is heard
   * @param {number} position in seconds of the recording
   * @param {Span | null} range what they go round; null: the whole stretch
   */
  start(voice, position, range) {
    this.stop();
    const start = Math.max(range?.start ?? 0, this.window.start), end = Math.min(range?.end ?? Infinity, this.window.end);
    this.#loop = end > start ? { start, end } : this.window;
    this.#begun = this.context.currentTime + lead;
    this.#offset = Math.max(0, position - this.#loop.start) % this.#length;
    this.isHeard = true;
    for (const take of Object.values(this.#takes)) this.#run(take);
    this.hear(voice);
  }

  get #length() { return this.#loop.end - this.#loop.start; }

  #run(/** @type {Take} */ take) {
    const { context, window } = this, { buffer } = take, output = new GainNode(context, { gain: 0 });
    const loopStart = this.#loop.start - window.start, loopEnd = this.#loop.end - window.start;
    output.connect(outputOf(context));
    take.output = output;
    take.source = startInStep(context, this.#begun, late => loopStart + (late + this.#offset) % this.#length, () => {
      const source = new AudioBufferSourceNode(context, { buffer, loop: true, loopStart, loopEnd });
      source.connect(output);
      return source;
    });
  }

  /**
   * Makes a voice audible instead of the current one, as soon as it is loaded.
   * @param {Voice} voice
   */
  hear(voice) {
    this.#voice = voice;
    if (!this.#takes[voice]) return;
    const now = Math.max(this.context.currentTime, this.#begun);
    for (const [name, { output, gain }] of Object.entries(this.#takes)) {
      output?.gain.cancelScheduledValues(now);
      output?.gain.setTargetAtTime(name === voice ? gain : 0, now, fade / 3);
    }
  }

  stop() {
    const now = this.context.currentTime;
    for (const { output, source } of Object.values(this.#takes)) {
      output?.gain.setTargetAtTime(0, now, fade / 3);
      source?.stop(now + 2 * fade);
    }
    this.isHeard = false;
  }

  /** The position of the sound that is audible now, in seconds of the recording. */
  get position() {
    const passed = heardTime(this.context) - this.#begun;
    return this.#loop.start + (Math.max(0, passed) + this.#offset) % this.#length;
  }
}

/** Returns the mean of the channels if there are more than browsers have loudspeakers for. */
function mixed(/** @type {AudioBuffer} */ buffer) {
  const { numberOfChannels: channels, length, sampleRate } = buffer;
  if (channels <= mostSpeakers) return buffer;
  const mix = new AudioBuffer({ length, sampleRate, numberOfChannels: 1 }), sum = mix.getChannelData(0);
  for (let channel = 0; channel < channels; channel++) buffer.getChannelData(channel).forEach((value, k) => { sum[k] += value / channels; });
  return mix;
}

/**
 * Returns the factors by which the other voices become as loud as the cleaned one.
 * @param {AudioBuffer} cleaned
 * @param {AudioBuffer} original
 * @param {AudioBuffer} residue
 */
export async function equalGains(cleaned, original, residue) {
  const wanted = await measureLoudness(cleaned);
  const gain = async (/** @type {AudioBuffer} */ buffer, /** @type {number} */ most) => {
    const { power, peak } = await measureLoudness(buffer), equal = Math.sqrt(wanted.power / Math.max(1e-12, power));
    return Math.min(Math.max(equal, 1 / most), most, Math.max(1, 1 / Math.max(1e-6, peak)));
  };
  return { original: await gain(original, mostGain.original), residue: await gain(residue, mostGain.residue) };
}

/** The perceived power of the louder blocks, after ITU-R BS.1770, computed off the page's thread. */
async function measureLoudness(/** @type {AudioBuffer} */ buffer) {
  const offline = new OfflineAudioContext(1, buffer.length, buffer.sampleRate);
  const source = new AudioBufferSourceNode(offline, { buffer });
  const shelf = new BiquadFilterNode(offline, { type: "highshelf", frequency: 1500, gain: 4 });
  const pass = new BiquadFilterNode(offline, { type: "highpass", frequency: 38, Q: -6 });
  source.connect(shelf).connect(pass).connect(offline.destination);
  source.start();
  const samples = (await offline.startRendering()).getChannelData(0);
  const step = Math.max(1, Math.round(0.02 * buffer.sampleRate)), steps = [];
  let peak = 0;
  for (let start = 0; start < samples.length; start += step) {
    const end = Math.min(samples.length, start + step);
    let sum = 0;
    for (let k = start; k < end; k++) {
      const value = samples[k];
      sum += value * value;
      if (value > peak) peak = value;
      else if (-value > peak) peak = -value;
    }
    steps.push(sum / (end - start));
  }
  const mean = (/** @type {number[]} */ values) => values.reduce((sum, value) => sum + value, 0) / Math.max(1, values.length);
  // Blocks of 0.4 s, one every 20 ms: with fewer, their start would matter in a short stretch.
  const powers = steps.slice(Math.min(19, steps.length - 1)).map((_, k) => mean(steps.slice(k, k + 20))), gate = mean(powers) / 10;
  return { power: mean(powers.filter(power => power >= gate)), peak };
}

