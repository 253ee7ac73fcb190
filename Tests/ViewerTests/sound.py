"""Records what the page sends to the loudspeaker, sample by sample."""

from webdriver import wait

# Runs before the page's own scripts: sound for the loudspeaker is also recorded here while requested, on the thread that
# renders it, so that nothing is lost on a busy machine.
TAP = """
(() => {
  const connect = AudioNode.prototype.connect, ends = new WeakMap();
  const tap = window.tap = { chunks: [], frames: 0, rate: 0, isOn: false, clicked: 0, heard: 0, delay: 0 };
  const processor = `registerProcessor("tap", class extends AudioWorkletProcessor {
    process([[samples]]) {
      if (samples) this.port.postMessage(samples.slice());
      return true;
    }
  })`;
  const keep = async (context, end) => {
    tap.rate = context.sampleRate;
    const analyser = new AnalyserNode(context, { fftSize: 32768 }), latest = new Float32Array(32768);
    connect.call(end, analyser);
    const look = () => {
      analyser.getFloatTimeDomainData(latest);
      if (!tap.heard && latest.some(sample => Math.abs(sample) > 1e-5)) tap.heard = performance.now();
      requestAnimationFrame(look);
    };
    look();
    await context.audioWorklet.addModule(URL.createObjectURL(new Blob([processor], { type: "text/javascript" })));
    const node = new AudioWorkletNode(context, "tap", { numberOfOutputs: 0 });
    node.port.onmessage = ({ data }) => {
      if (!tap.isOn) return;
      tap.chunks.push(data);
      tap.frames += data.length;
    };
    connect.call(end, node);
    tap.isReady = true;
  };
  AudioNode.prototype.connect = function (target, ...rest) {
    const { context } = this;
    if (context instanceof AudioContext && target === context.destination) {
      if (!ends.has(context)) {
        const end = new GainNode(context);
        ends.set(context, end);
        keep(context, end);
      }
      connect.call(this, ends.get(context));
    }
    return connect.call(this, target, ...rest);
  };
  const start = AudioBufferSourceNode.prototype.start;
  AudioBufferSourceNode.prototype.start = function (...words) {
    for (const until = performance.now() + tap.delay; performance.now() < until;);
    start.apply(this, words);
  };
  addEventListener("click", event => {
    if (event.target.closest("#preview")) [tap.clicked, tap.heard] = [performance.now(), 0];
  }, true);
  tap.start = () => [tap.chunks, tap.frames, tap.isOn] = [[], 0, true];
  tap.samples = () => {
    const all = new Float32Array(tap.frames);
    let at = 0;
    for (const chunk of tap.chunks) { all.set(chunk, at); at += chunk.length; }
    return all;
  };
  /** Milliseconds of the longest run without sound. */
  tap.longestGap = () => {
    let run = 0, most = 0;
    for (const sample of tap.samples()) {
      run = Math.abs(sample) < 2e-5 ? run + 1 : 0;
      if (run > most) most = run;
    }
    return most / tap.rate * 1000;
  };
  /** How many samples apart impulses are that don't fit a grid of `step` samples. */
  tap.offGrid = step => {
    const samples = tap.samples(), wrong = [];
    let last = -1;
    for (let k = 1; k < samples.length - 1; k++) {
      const here = Math.abs(samples[k]);
      if (here < 0.3 || here < 2 * Math.abs(samples[k - 1]) || here < 2 * Math.abs(samples[k + 1])) continue;
      const off = last < 0 ? 0 : (k - last + step / 2) % step - step / 2;
      if (Math.abs(off) > 1) wrong.push(k - last);
      last = k;
    }
    return { wrong, last };
  };
  /**
   * Loudness of a part in LUFS, by the filters and the gates of ITU-R BS.1770 (whose coefficients are for 48 kHz). The part
   * is one round of a loop, with a block every 10 ms of it, lest it matter where it begins.
   */
  tap.loudness = async (from, to) => {
    const samples = tap.samples().subarray(from, to), offline = new OfflineAudioContext(1, 3 * samples.length, tap.rate);
    const buffer = offline.createBuffer(1, 3 * samples.length, tap.rate);
    for (const round of [0, 1, 2]) buffer.copyToChannel(samples, 0, round * samples.length);
    const source = new AudioBufferSourceNode(offline, { buffer });
    const shelf = new IIRFilterNode(offline, {
      feedforward: [1.53512485958697, -2.69169618940638, 1.19839281085285], feedback: [1, -1.69065929318241, 0.73248077421585] });
    const pass = new IIRFilterNode(offline, { feedforward: [1, -2, 1], feedback: [1, -1.99004745483398, 0.99007225036621] });
    connect.call(source, shelf);
    connect.call(shelf, pass);
    connect.call(pass, offline.destination);
    source.start();
    const filtered = (await offline.startRendering()).getChannelData(0), block = Math.round(0.4 * tap.rate), powers = [];
    for (let at = samples.length; at < 2 * samples.length; at += block / 40 | 0)
      powers.push(filtered.subarray(at, at + block).reduce((sum, value) => sum + value * value, 0) / block);
    const mean = values => values.reduce((sum, value) => sum + value, 0) / values.length;
    const level = power => -0.691 + 10 * Math.log10(power);
    const loud = powers.filter(power => level(power) > -70), gate = level(mean(loud)) - 10;
    return level(mean(loud.filter(power => level(power) > gate)));
  };
})();
"""


class Tap:
    """Listens to each page that is opened from now on. Their policy is not enforced, because the recorder is a script of the test."""

    def __init__(self, browser):
        self.browser = browser
        browser.policy(False)
        browser.devtools("Page.addScriptToEvaluateOnNewDocument", source=TAP)

    def start(self):
        wait("the tap is open", lambda: self.browser.run("return tap.isReady"))
        self.browser.run("tap.start()")

    def delay(self, milliseconds):
        """From now on, the page's thread has to wait for so long before it starts a sound, as on a busy machine."""
        self.browser.run("tap.delay = arguments[0]", milliseconds)

    def seconds(self):
        return self.browser.run("return tap.frames / tap.rate")

    def longest_gap(self):
        return self.browser.run("return tap.longestGap()")

    def loudness(self, start, end):
        return self.browser.run("return tap.loudness(Math.round(arguments[0] * tap.rate), Math.round(arguments[1] * tap.rate))", start, end)

    def click_to_sound(self):
        """Seconds from the click on “Preview” to the first sample that is not silence; None until there is one."""
        return self.browser.run("return tap.heard > tap.clicked && tap.clicked ? (tap.heard - tap.clicked) / 1000 : null")
