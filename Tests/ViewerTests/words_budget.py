"""Measures the lane of labels and the singing view: what a frame costs, and how far the fill is from the sound."""

import array
import json
import os
import tempfile
import urllib.parse

from material import write_wav
from page import Page
from webdriver import Browser, wait

WORDS_PER_LABEL = 7

# Runs before the page's own scripts: notes when the loudspeaker gets each click, in seconds of the audio context.
LISTEN = """
(() => {
  const connect = AudioNode.prototype.connect;
  const heard = window.heard = { clicks: [], context: null, isReady: false };
  const processor = `registerProcessor("clicks", class extends AudioWorkletProcessor {
    process([[samples]]) {
      const at = samples ? samples.findIndex(sample => Math.abs(sample) > 0.1) : -1;
      if (at >= 0 && !(currentFrame < this.next)) {
        this.port.postMessage((currentFrame + at) / sampleRate);
        this.next = currentFrame + sampleRate / 10;
      }
      return true;
    }
  })`;
  const listen = async (context, end) => {
    heard.context = context;
    await context.audioWorklet.addModule(URL.createObjectURL(new Blob([processor], { type: "text/javascript" })));
    const node = new AudioWorkletNode(context, "clicks", { numberOfOutputs: 0 });
    node.port.onmessage = ({ data }) => heard.clicks.push(data);
    connect.call(end, node);
    heard.isReady = true;
  };
  const ends = new WeakMap();
  AudioNode.prototype.connect = function (target, ...rest) {
    const { context } = this;
    if (context instanceof AudioContext && target === context.destination) {
      if (!ends.has(context)) {
        const end = new GainNode(context);
        ends.set(context, end);
        void listen(context, end);
      }
      connect.call(this, ends.get(context));
    }
    return connect.call(this, target, ...rest);
  };
})();
"""

# In each frame: what leaves the loudspeaker, and the transform of the box that hides what isn't sung yet.
WATCH_FILL = """
const [frames] = arguments, found = [];
const matrix = element => new DOMMatrix(getComputedStyle(element).transform);
return new Promise(done => {
  const look = () => {
    const { contextTime, performanceTime } = heard.context.getOutputTimestamp(), now = document.timeline.currentTime;
    const line = [...document.querySelectorAll(".sung-line")].find(line => getComputedStyle(line).opacity > 0.99);
    if (line) {
      const clip = line.querySelector(".sung-clip"), { width, height } = clip.getBoundingClientRect();
      found.push({
        heard: contextTime + (now - performanceTime) / 1000, text: document.querySelector("#sung-lines").ariaLabel,
        playhead: Number(document.querySelector("#playhead-time").textContent.split(":")[1]), edge: matrix(clip).m41 + width, counter: matrix(clip).m41 + matrix(clip.firstChild).m41, width,
        size: parseFloat(document.querySelector("#sung-lines").style.getPropertyValue("--line")) / 1.5,
      });
    }
    found.length < frames ? requestAnimationFrame(look) : done({ found, clicks: heard.clicks });
  };
  requestAnimationFrame(look);
});
"""

# Where each word of a text begins and ends in its line, in pixels from its left edge.
PLACES = """
const [text, size, width] = arguments, pen = document.createElement("canvas").getContext("2d");
pen.font = `600 ${size}px system-ui, sans-serif`;
const measure = text => pen.measureText(text).width, left = (width - measure(text)) / 2;
return [...text.matchAll(/\\S+/g)].map(({ 0: word, index }) => [left + measure(text.slice(0, index)), left + measure(text.slice(0, index + word.length))]);
"""


def add_track(service, recording, labels, name):
    query = urllib.parse.urlencode({"name": name, "kind": "lyrics"})
    status, _, body = service.request("POST", f"/v1/recordings/{recording}/labels?{query}", json.dumps({"labels": labels}),
                                      {"Content-Type": "application/json"})
    assert status == 201, body
    return json.loads(body)


def timed_label(start, word_seconds, words):
    return {"start": start, "end": round(start + word_seconds * len(words), 6), "text": " ".join(words), "words": [
        {"start": round(start + k * word_seconds, 6), "end": round(start + (k + 1) * word_seconds, 6), "text": word}
        for k, word in enumerate(words)]}


def many_words(seconds, count):
    """Labels with `count` words in all, from the first second to the last."""
    length, labels = seconds / count, []
    for first in range(0, count, WORDS_PER_LABEL):
        words = [f"word{k % 1000}" for k in range(first, min(count, first + WORDS_PER_LABEL))]
        labels.append(timed_label(round(first * length, 6), length, words))
    return labels


def measure_frames(service, source, cleaned, report, trace, frames_and_tasks, percentile, seconds, count=20_000):
    """Plays with 20,000 words, the lane and the singing view, while the window rests: turning it costs what moving it costs."""
    add_track(service, source, many_words(seconds, count), "Many words")
    browser = Browser(trace=trace)
    try:
        page = Page(browser, service.address)
        page.open(f"{cleaned}&view=100-160")
        wait("the labels are drawn", lambda: page.ink("#labels") > 1000)
        browser.click("#sing")
        browser.drag(page.point(0.05), page.point(0.05))
        browser.keys(" ")
        wait("it plays", lambda: page.playhead() > 104)
        browser.run("""
          console.timeStamp("journey");
          return new Promise(done => setTimeout(done, 8000));""")
        events = browser.trace()
        assert page.playhead() > 110 and browser.run("return document.querySelector('#sung-lines').ariaLabel").startswith("word")
    finally:
        browser.close()
    frames, _ = frames_and_tasks(events)
    began = max(event["ts"] for event in events if event["name"] == "TimeStamp")
    layouts = [event for event in events if event["name"] == "Layout" and event["ts"] >= began]
    what = f"{count:,} words sung"
    report.line(f"{what}: script of a frame, 95 of 100 (of {len(frames)})", percentile(frames, 0.95), "ms", 2)
    report.line(f"{what}: layouts in those frames", len(layouts), "", 0)


def measure_fill(service, report, percentile, seconds=30, beat=0.5, rate=48000):
    """Compares the edge of the fill with clicks that are heard at the beginning of each word."""
    samples = array.array("h", bytes(2 * seconds * rate))
    for k in range(int(seconds / beat)):
        for n in range(24):
            samples[round(k * beat * rate) + n] = 20000 if n % 2 else -20000
    with tempfile.TemporaryDirectory() as folder:
        recording = service.upload(write_wav(os.path.join(folder, "clicks.wav"), samples, rate), "clicks.wav")
    labels = [timed_label(k * beat, beat, [f"b{k + n:02d}" for n in range(4)]) for k in range(0, int(seconds / beat), 4)]
    add_track(service, recording, labels, "Beats")
    browser = Browser()
    try:
        browser.devtools("Page.setBypassCSP", enabled=True)
        browser.devtools("Page.addScriptToEvaluateOnNewDocument", source=LISTEN)
        page = Page(browser, service.address)
        page.open(recording)
        wait("the labels are drawn", lambda: page.ink("#labels") > 1000)
        browser.click("#sing")
        browser.run("document.querySelector('#wave').focus()")
        browser.keys(" ")
        wait("it is heard", lambda: browser.run("return heard.isReady && heard.clicks.length > 3"))
        watched = browser.run(WATCH_FILL, 500)
        places = {text: browser.run(PLACES, text, entry["size"], entry["width"])
                  for text, entry in {entry["text"]: entry for entry in watched["found"]}.items()}
    finally:
        browser.close()
    service.request("DELETE", f"/v1/recordings/{recording}")
    clicks, errors = watched["clicks"], []
    assert all(abs((b - a) / beat - round((b - a) / beat)) < 0.01 for a, b in zip(clicks, clicks[1:])), clicks
    for entry in watched["found"]:
        assert abs(entry["counter"]) < 0.51, "the text stays where it is while its box moves"
        first = int(entry["text"][1:3])
        # While the view turns, the name is that of the next line.
        if not first * beat <= entry["playhead"] < (first + 4) * beat - 0.2:
            continue
        for k, (left, right) in enumerate(places[entry["text"]]):
            if left < entry["edge"] < right:
                shown = (first + k + (entry["edge"] - left) / (right - left)) * beat
                # The sound's position, up to whole beats; the playhead tells which.
                assert abs(shown - entry["playhead"]) < beat / 2, (shown, entry)
                sound = (entry["heard"] - clicks[0]) % beat
                errors.append(((shown - sound + beat / 2) % beat - beat / 2) * 1000)
    assert len(errors) > 200, f"{len(errors)} frames show the edge within a word"
    off = [abs(error) for error in errors]
    report.line(f"the fill's edge from the sound, 95 of 100 (of {len(off)})", percentile(off, 0.95), "ms", 20)
    report.line("the fill's edge from the sound, median", percentile(off, 0.5), "ms", 20)
