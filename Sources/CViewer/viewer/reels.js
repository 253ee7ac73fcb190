// @ts-check
import { equalGains, fade, heardTime, lead, mostSpeakers, outputOf, startInStep } from "./comparison.js";
import { breathe } from "./page.js";
import { isAbort, recordingPath } from "./service.js";
import { Signal } from "./signal.js";
import { parseHeader } from "./wav.js";

// Playback of finished recordings of any length: the original, its results and what was removed, in step to the sample.
//
// A sound is read in pieces as WAV, by range requests; one that is not WAV is converted by the service. Of a file in which
// browsers only guess where an instant is, the service is asked for each piece by its time. The pieces of all
// sounds are scheduled at the same instants of one AudioContext, a few seconds ahead, and one sound is audible. What was
// removed is the difference between the original and a result. A loop is a piece that begins at the loop's start.

/** @typedef {import("./view.js").Span} Span */
/** @typedef {import("./session.js").Layer} Layer */
/** @typedef {(start: number, count: number) => Promise<Float32Array[]>} Reader returns the channels of some frames */
/** @typedef {{ read: Reader, output: GainNode, gain: number }} Strand */
/** @typedef {{ at: number, frame: number, count: number, sources: Map<string, AudioBufferSourceNode> }} Piece `at`: seconds of the context */

/** Seconds of the first piece, of the longest one, and how far ahead pieces are scheduled. */
const firstPiece = 0.5, longestPiece = 4, ahead = 6;
/** Samples that are decoded at a time: a few milliseconds of work. */
const mostSamples = 100_000;
/** Pieces of a sound that are kept, so that a short loop isn't fetched again. */
const keptPieces = 4;
/** The stretches by which sounds get the same loudness, and the seconds of each. */
const probes = 6, probeLength = 1.5;

/** The sound of one recording, read in pieces. */
class Tape {
  /** @type {Map<string, Promise<Float32Array[]>>} */
  #kept = new Map();

  /**
   * @param {import("./service.js").Service} service
   * @param {string} path of a WAV file; or of any other, if it has no header here
   * @param {import("./wav.js").Header | null} header null: pieces are asked for by their times
   * @param {number} rate
   * @param {AbortSignal} signal
   */
  constructor(service, path, header, rate, signal) {
    this.service = service;
    this.path = path;
    this.header = header;
    this.rate = rate;
    this.signal = signal;
  }

  /**
   * @param {import("./service.js").Service} service
   * @param {any} recording
   * @param {AbortSignal} signal
   */
  static async open(service, recording, signal) {
    const { sample_rate: rate } = recording.format;
    if (seeksInexactly(recording)) return new Tape(service, `${recordingPath(recording.id)}/audio`, null, rate, signal);
    const path = `${recordingPath(recording.id)}/audio${isWAV(recording) ? "" : "?format=wav"}`;
    const answer = await service.fetch(path, { signal, range: "bytes=0-65535" }), header = parseHeader(await answer.arrayBuffer());
    if (!header || answer.status !== 206 && header.bytes > 65536) throw new Error("not WAV");
    return new Tape(service, path, header, rate, signal);
  }

  /**
   * The channels of some frames: one or two, or the mean of more than there are loudspeakers.
   * @type {Reader}
   */
  read = (start, count) => {
    const key = `${start} ${count}`, piece = this.#kept.get(key) ?? this.#fetch(start, count);
    this.#kept.delete(key);
    this.#kept.set(key, piece);
    piece.catch(() => this.#kept.delete(key));
    for (const oldest of this.#kept.keys()) if (this.#kept.size > keptPieces) this.#kept.delete(oldest);
    return piece;
  };

  /** @type {Reader} */
  async #fetch(start, count) {
    const { bytes, header: { read, channels, width }, dataAt } = await (this.header ? this.#range(this.header, start, count) : this.#part(start, count));
    const view = new DataView(bytes), frames = Math.min(count, Math.floor((bytes.byteLength - dataAt) / channels / width));
    const isMixed = channels > mostSpeakers, lanes = Array.from({ length: isMixed ? 1 : channels }, () => new Float32Array(count));
    const step = Math.ceil(mostSamples / channels);
    for (let first = 0; first < frames; first += step) {
      const last = Math.min(frames, first + step);
      for (let channel = 0; channel < channels; channel++) {
        const lane = lanes[isMixed ? 0 : channel], share = isMixed ? 1 / channels : 1;
        for (let k = first; k < last; k++) lane[k] += read(view, dataAt + (k * channels + channel) * width) * share;
      }
      await breathe();
    }
    return lanes;
  }

  async #range(/** @type {import("./wav.js").Header} */ header, /** @type {number} */ start, /** @type {number} */ count) {
    const { channels, width } = header, from = header.dataAt + start * channels * width;
    const range = `bytes=${from}-${from + count * channels * width - 1}`;
    const bytes = await (await this.service.fetch(this.path, { signal: this.signal, range })).arrayBuffer();
    return { bytes, header, dataAt: 0 };
  }

  async #part(/** @type {number} */ start, /** @type {number} */ count) {
    const { rate, signal } = this, path = `${this.path}?start=${start / rate}&end=${(start + count) / rate}&format=wav`;
    const bytes = await (await this.service.fetch(path, { signal })).arrayBuffer(), header = parseHeader(bytes);
    if (!header) throw new Error("not WAV");
    return { bytes, header, dataAt: header.dataAt };
  }
}

export class Reels {
  /**
   * The sound has reached the end of what was to be played.
   * @type {Signal<void>}
   */
  ended = new Signal();
  /** @type {Signal<Error>} */
  failed = new Signal();
  isPlaying = false;

  /** @type {Map<string, Tape>} */
  #tapes = new Map();
  /** @type {Map<string, Promise<void>>} */
  #opening = new Map();
  /** @type {Map<string, Strand>} */
  #strands = new Map();
  /** @type {Map<string, Promise<{ original: number, residue: number }>>} */
  #balances = new Map();
  /** @type {Piece[]} */
  #pieces = [];
  /** @type {Layer | null} */
  #original = null;
  #heard = "";
  #control = new AbortController();
  /** Replaced with each start, so that what an earlier one has begun is dropped. */
  #run = {};
  #range = { start: 0, end: 0 };
  #isLooping = false;
  #cursor = 0;
  /** When the next piece begins, in seconds of the context. */
  #at = 0;
  #length = firstPiece;
  #isPumping = false;
  #timer = 0;

  /**
   * @param {import("./service.js").Service} service
   * @param {(rate: number) => AudioContext} contextFor
   */
  constructor(service, contextFor) {
    this.service = service;
    this.contextFor = contextFor;
  }

  get #rate() { return this.#original?.recording.format.sample_rate ?? 44100; }

  /**
   * Prepares the sounds of a session, if they are to be played here: where there is something to compare, more channels
   * than a browser plays, or a file in which browsers only guess where an instant is.
   * @param {import("./session.js").Session} session
   * @param {boolean} [isAlone] whether a recording without results is played here too
   * @returns {Promise<boolean>} whether that is done; false while the service still converts one
   */
  async prepare({ original, results }, isAlone = false) {
    const finished = [original, ...results].filter(layer => layer && layer.recording.sha256 !== null && layer.recording.waveform.state === "ready");
    const { sample_rate: rate, channels } = original?.recording.format ?? {};
    if (!original || !finished.includes(original) || finished.length < 2 && channels <= mostSpeakers && !isAlone && !seeksInexactly(original.recording)) return false;
    if (rate < 3000 || rate > 384000 || finished.some(layer => layer?.recording.format.sample_rate !== rate)) return false;
    this.#original = original;
    this.#keep(new Set(finished.map(layer => layer?.recording.id)));
    const opening = finished.map(layer => layer && this.#open(layer.recording));
    if (channels > mostSpeakers || finished.every(layer => layer && (isWAV(layer.recording) || seeksInexactly(layer.recording)))) await Promise.all(opening);
    return finished.every(layer => layer && this.#tapes.has(layer.recording.id));
  }

  /** Forgets the sounds of other recordings, which may have been deleted. */
  #keep(/** @type {Set<string>} */ recordings) {
    for (const map of [this.#tapes, this.#opening, this.#strands, this.#balances]) {
      for (const key of map.keys()) {
        if (recordings.has(key.replace("residue ", ""))) continue;
        if (map === this.#strands) this.#strands.get(key)?.output.disconnect();
        map.delete(key);
      }
    }
  }

  /** Reads a piece of a sound. One that can't be heard now may fail: it is read again when it is to be heard. */
  async #read(/** @type {string} */ key, /** @type {number} */ frame, /** @type {number} */ count) {
    try {
      return await this.#strands.get(key)?.read(frame, count);
    } catch (error) {
      if (key === this.#heard) throw error;
      return undefined;
    }
  }

  /** One that can't be opened is streamed instead. */
  async #open(/** @type {any} */ recording) {
    const { id } = recording, { signal } = this.#control;
    if (!this.#opening.has(id)) {
      this.#opening.set(id, Tape.open(this.service, recording, signal).then(tape => { this.#tapes.set(id, tape); }, () => { }));
    }
    await this.#opening.get(id);
  }

  /** Ends playback and forgets all sounds. */
  close() {
    this.stop();
    this.#control.abort();
    this.#control = new AbortController();
    for (const { output } of this.#strands.values()) output.disconnect();
    for (const map of [this.#tapes, this.#opening, this.#strands, this.#balances]) map.clear();
    this.#original = null;
  }

  /**
   * Plays from a position.
   * @param {import("./comparison.js").Voice} voice
   * @param {Layer | null} cleaned the result that is heard, or that the noise is missing from
   * @param {number} position in seconds
   * @param {Span | null} range what is played; null: to the end
   * @param {boolean} isLooping
   */
  play(voice, cleaned, position, range, isLooping) {
    this.stop();
    const rate = this.#rate, context = this.contextFor(rate), frames = this.#original?.recording.format.frames ?? 0;
    void context.resume();
    this.context = context;
    const start = Math.round((range?.start ?? 0) * rate), end = Math.min(frames, Math.round((range?.end ?? Infinity) * rate));
    this.#range = { start, end: Math.max(start + 1, end) };
    this.#isLooping = isLooping;
    this.#cursor = Math.min(this.#range.end, Math.round(position * rate));
    this.#at = 0;
    this.#length = firstPiece;
    this.#run = {};
    this.isPlaying = true;
    this.hear(voice, cleaned);
    void this.#pump();
  }

  /**
   * Makes a voice audible instead of the current one, as soon as it is loaded.
   * @param {import("./comparison.js").Voice} voice
   * @param {Layer | null} cleaned
   */
  hear(voice, cleaned) {
    const original = this.#original?.recording.id ?? "", result = cleaned?.recording.id ?? "";
    const key = voice === "original" || !result ? original : voice === "cleaned" ? result : `residue ${result}`;
    const isNew = key !== this.#heard;
    for (const wanted of [original, result, result && `residue ${result}`]) if (wanted) this.#spin(wanted, result);
    this.#heard = key;
    if (result) void this.#balance(result);
    const run = this.#run;
    // What isn't loaded yet takes over once it is.
    Promise.all(this.#pieces.map(piece => this.#fill(piece, [key]))).then(() => {
      if (run === this.#run && key === this.#heard) this.#mix(isNew);
    }, error => this.#fail(error));
  }

  /** Fades to the audible sound. */
  #mix(isNew = true) {
    const now = this.context?.currentTime ?? 0;
    for (const [key, { output, gain }] of this.#strands) {
      if (isNew) output.gain.cancelScheduledValues(now);
      output.gain.setTargetAtTime(key === this.#heard ? gain : 0, now, fade / 3);
    }
  }

  /**
   * @param {string} key of a recording, or of what a result lacks of the original
   * @param {string} result id
   */
  #spin(key, result) {
    if (this.#strands.has(key) || !this.context) return;
    const original = this.#original?.recording.id ?? "", tape = this.#tapes.get(key);
    const a = this.#tapes.get(original), b = this.#tapes.get(result);
    const read = tape ? tape.read : a && b ? difference(a.read, b.read) : null;
    if (!read) return;
    const output = new GainNode(this.context, { gain: 0 });
    output.connect(outputOf(this.context));
    this.#strands.set(key, { read, output, gain: 1 });
  }

  /** Makes the original and the noise as loud as a result, measured in a few places. */
  async #balance(/** @type {string} */ result) {
    const original = this.#original?.recording.id ?? "", a = this.#tapes.get(original), b = this.#tapes.get(result);
    if (!a || !b) return;
    const frames = this.#original?.recording.format.frames ?? 0, rate = this.#rate, count = Math.min(frames, Math.round(probeLength * rate));
    const measure = async () => {
      const sounds = [b.read, a.read, difference(a.read, b.read)].map(read => ({ read, buffer: new AudioBuffer({ length: probes * count, sampleRate: rate, numberOfChannels: 1 }) }));
      for (let k = 0; k < probes; k++) {
        const start = Math.floor((frames - count) * k / (probes - 1));
        for (const { read, buffer } of sounds) buffer.copyToChannel(mean(await read(start, count)), 0, k * count);
      }
      const [cleaned, original, residue] = sounds.map(({ buffer }) => buffer);
      return equalGains(cleaned, original, residue);
    };
    if (!this.#balances.has(result)) this.#balances.set(result, measure());
    // Without it they play as loud as they are.
    const gains = await this.#balances.get(result)?.catch(() => null);
    for (const [key, gain] of [[original, gains?.original], [`residue ${result}`, gains?.residue]]) {
      const strand = this.#strands.get(String(key));
      if (strand) strand.gain = Number(gain ?? 1);
    }
    if (this.isPlaying) this.#mix(false);
  }

  /** @param {boolean} isLooping */
  setLoop(isLooping) {
    this.#isLooping = isLooping;
    const now = this.context?.currentTime ?? 0, current = this.#pieces.findIndex(piece => now < piece.at + piece.count / this.#rate);
    if (!this.isPlaying || current < 0) return;
    // What is scheduled after the current piece may be another round.
    for (const piece of this.#pieces.splice(current + 1)) for (const source of piece.sources.values()) source.stop();
    const { at, frame, count } = this.#pieces[current];
    [this.#at, this.#cursor] = [at + count / this.#rate, frame + count];
    void this.#pump();
  }

  stop() {
    clearTimeout(this.#timer);
    this.#run = {};
    this.isPlaying = false;
    const { context } = this;
    if (!context) return;
    for (const { output } of this.#strands.values()) output.gain.setTargetAtTime(0, context.currentTime, fade / 3);
    for (const { sources } of this.#pieces) for (const source of sources.values()) source.stop(context.currentTime + 2 * fade);
    this.#pieces = [];
  }

  /** Schedules pieces until enough are ahead, and again after a while. */
  async #pump() {
    const run = this.#run, { context } = this, rate = this.#rate;
    if (this.#isPumping || !context) return;
    this.#isPumping = true;
    clearTimeout(this.#timer);
    try {
      while (run === this.#run && this.#at < context.currentTime + ahead) {
        if (this.#cursor >= this.#range.end) {
          if (!this.#isLooping) break;
          this.#cursor = this.#range.start;
        }
        const frame = this.#cursor, count = Math.min(this.#range.end - frame, Math.round(this.#length * rate));
        /** @type {Piece} */
        const piece = { at: this.#at, frame, count, sources: new Map() };
        const keys = [...this.#strands.keys()].sort(key => key === this.#heard ? -1 : 1);
        const sounds = await Promise.all(keys.map(key => this.#read(key, frame, count)));
        if (run !== this.#run) break;
        if (frame !== this.#cursor) continue;
        // On a whole frame of the context, so that pieces join without resampling.
        piece.at = Math.max(this.#at, Math.ceil((context.currentTime + lead) * rate) / rate);
        keys.forEach((key, k) => this.#schedule(piece, key, sounds[k] ?? []));
        this.#pieces = [...this.#pieces.filter(({ at, count }) => at + count / rate > context.currentTime - 1), piece];
        [this.#at, this.#cursor] = [piece.at + count / rate, frame + count];
        this.#length = Math.min(longestPiece, 2 * this.#length);
        // A sound may have been added while these were loaded.
        void this.#fill(piece, [...this.#strands.keys()]).catch(error => this.#fail(error));
      }
    } catch (error) {
      if (run === this.#run) this.#fail(error);
    }
    this.#isPumping = false;
    if (!this.isPlaying) return;
    if (run !== this.#run) return void this.#pump();
    if (this.#cursor >= this.#range.end && !this.#isLooping && context.currentTime > this.#at) this.ended.emit();
    else this.#timer = setTimeout(() => this.#pump(), 200);
  }

  /** Adds sounds to a piece that is scheduled already. */
  async #fill(/** @type {Piece} */ piece, /** @type {string[]} */ keys) {
    const run = this.#run;
    for (const key of keys) {
      if (piece.sources.has(key)) continue;
      const sound = await this.#read(key, piece.frame, piece.count);
      if (run === this.#run && sound && !piece.sources.has(key)) this.#schedule(piece, key, sound);
    }
  }

  #schedule(/** @type {Piece} */ piece, /** @type {string} */ key, /** @type {Float32Array[]} */ lanes) {
    const { context } = this, strand = this.#strands.get(key), rate = this.#rate;
    if (!context || !strand || !lanes.length) return;
    const buffer = new AudioBuffer({ length: piece.count, sampleRate: rate, numberOfChannels: lanes.length });
    lanes.forEach((lane, channel) => buffer.copyToChannel(lane, channel));
    const source = startInStep(context, piece.at, late => late, () => {
      const source = new AudioBufferSourceNode(context, { buffer });
      source.connect(strand.output);
      return source;
    }, piece.count / rate);
    if (!source) return;
    piece.sources.set(key, source);
  }

  /** The position of the sound that is audible now, in seconds. */
  get position() {
    const { context } = this, rate = this.#rate, now = context ? heardTime(context) : 0;
    const [first] = this.#pieces;
    if (!first) return this.#cursor / rate;
    const piece = this.#pieces.filter(({ at }) => at <= now).at(-1) ?? first;
    return (piece.frame + Math.min(piece.count, Math.max(0, (now - piece.at) * rate))) / rate;
  }

  #fail(/** @type {unknown} */ error) {
    if (!isAbort(error)) this.failed.emit(error instanceof Error ? error : new Error(String(error)));
  }
}

/** @param {any} recording */
const isWAV = ({ format }) => format.container === "wav" && /^pcm_(u8|s16|s24|s32|f32|f64)$/.test(format.codec);

/**
 * Whether browsers only guess where an instant is: the file has no index, and its bytes aren't evenly spread over time.
 * @param {any} recording
 */
export const seeksInexactly = ({ format, warnings }) => ["mp3", "adts"].includes(format.container)
  || warnings.some((/** @type {{ code: string }} */ { code }) => ["seeks_inexactly", "length_unknown", "longer_than_claimed"].includes(code));

/**
 * What one sound has and the other lacks.
 * @param {Reader} whole
 * @param {Reader} rest
 * @returns {Reader}
 */
const difference = (whole, rest) => async (start, count) => {
  const [a, b] = await Promise.all([whole(start, count), rest(start, count)]);
  return a.map((lane, k) => lane.map((value, n) => value - (b[k] ?? b[0])[n]));
};

/** @param {Float32Array[]} lanes */
function mean(lanes) {
  return lanes.length === 1 ? lanes[0] : lanes[0].map((_, n) => lanes.reduce((sum, lane) => sum + lane[n], 0) / lanes.length);
}
