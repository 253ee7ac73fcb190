"""Checks that sound is where the browser plays it: in the served, converted and cleaned file, and in the waveform."""

import json
import os

from material import write_media
from webdriver import wait

FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "EndToEndTests", "Fixtures")
BEEPS = ["-f", "lavfi", "-i", "aevalsrc=0.7*sin(2*PI*1000*t)*lt(mod(t\\,1)\\,0.1)*gte(t\\,0.9):s=48000:d=2.5"]

# Files by other programs (see Tests/EndToEndTests/Fixtures/README.md), and ffmpeg's arguments for the rest.
MADE = {
    "tagged.mp3": [], "untagged.mp3": ["-write_xing", "0"], "untagged-22050.mp3": ["-write_xing", "0", "-ar", "22050"],
    "edit-list.m4a": ["-c:a", "aac"], "raw.aac": ["-c:a", "aac"], "opus.webm": ["-c:a", "libopus"],
    "opus.opus": ["-c:a", "libopus"], "vorbis.ogg": ["-c:a", "libvorbis"], "flac.mp4": ["-c:a", "flac", "-strict", "-2"],
    "sound.flac": [], "sound.wav": [],
}
FOREIGN = ["itunsmpb.m4a", "mp4mux.m4a", "webmmux.webm", "matroskamux.mka"]

# Seconds of the first loud sample near one second.
DECODED = """
  const [path] = arguments;
  return fetch(path).then(answer => answer.arrayBuffer())
    .then(bytes => new OfflineAudioContext(1, 1, 48000).decodeAudioData(bytes))
    .then(sound => {
      const samples = sound.getChannelData(0);
      return samples.findIndex((value, k) => k > 0.9 * 48000 && Math.abs(value) > 0.122) / 48000;
    });
"""


def drawn(service, identifier):
    """The position of that sample in the waveform."""
    slice = service.json(f"/v1/recordings/{identifier}/waveform?start=0.9&end=1.2&scale=1")
    loud = next(k for k, value in enumerate(slice["data"]) if abs(value) > 4000)
    return (slice["start_frame"] + loud // 2) / slice["sample_rate"]


def converted(service, path):
    """Returns the path once the conversion that it requests is done."""
    wait(f"{path} is converted", lambda: service.request("GET", path)[0] == 200)
    return path


def check(browser, service, folder):
    """Uploads and cleans each kind. Fails if two of the positions are more than a millisecond apart."""
    paths = [write_media(os.path.join(folder, name), *BEEPS, *words) for name, words in MADE.items()]
    wrong = []
    for path in paths + [os.path.join(FIXTURES, name) for name in FOREIGN]:
        name = os.path.basename(path)
        identifier = service.upload(path, name)
        # Nothing beside the beeps is noise: it's digital silence, or what an encoder made of it.
        cleaned = service.clean(identifier, noise={"quantile": 0.2}, reduction=0)
        audio = f"/v1/recordings/{identifier}/audio"
        found = {"audio": browser.run(DECODED, audio), "waveform": drawn(service, identifier),
                 "wav": browser.run(DECODED, converted(service, audio + "?format=wav")),
                 "cleaned": browser.run(DECODED, f"/v1/recordings/{cleaned}/audio"),
                 "cleaned waveform": drawn(service, cleaned)}
        if any(abs(value - found["audio"]) >= 0.001 for value in found.values()):
            wrong.append(f"{name}: {json.dumps(found)}")
    assert not wrong, "; ".join(wrong)
