"""The checks that peaks.js (3.x) and waveform-data.js (4.x) make when they load waveform data."""

# Loads waveform data as the two libraries do and returns their results.
#
#   waveform-data.js   an object is JSON data where it has sample_rate, samples_per_pixel, bits, length and data, whose length
#                      must be two numbers for each pixel and channel; an ArrayBuffer is binary data, of version 1 or 2. Eight
#                      bits where any flag is set. `resample` refuses a scale finer than the data's.
#   peaks.js           the response's status is 200 and nothing else; one or two channels; eight bits; its zoom levels
#                      (512, 1024, 2048 and 4096 frames a pixel, unless others are set) can be resampled to.
LOAD = """
const [url, kind, zoomLevels] = arguments;
return new Promise(done => {
  const refuse = reason => done({ refused: reason });
  const request = new XMLHttpRequest();
  request.open("GET", url);
  request.responseType = kind;
  request.onerror = () => refuse("no answer");
  request.onload = () => {
    if (request.status !== 200) return refuse("status");
    const body = request.response, waveform = kind === "json" ? fromJSON(body) : fromBinary(new DataView(body));
    if (typeof waveform === "string") return refuse(waveform);
    const { channels, bits, scale, values } = waveform;
    if (channels !== 1 && channels !== 2) return refuse("channels");
    if (bits !== 8) return refuse("bits");
    if (zoomLevels.some(level => level < scale)) return refuse("scale");
    done({ ...waveform, values: undefined, count: values.length, low: Math.min(...values), high: Math.max(...values),
      first: values.slice(0, 40) });
  };
  request.send();
  const fromJSON = data => {
    if (!["sample_rate", "samples_per_pixel", "bits", "length", "data"].every(name => name in data)) return "no waveform data";
    const channels = data.channels || 1;
    if (data.data.length !== 2 * data.length * channels) return "length mismatch";
    const store = data.bits === 8 ? Int8Array : Int16Array;
    return { channels, bits: data.bits === 8 ? 8 : 16, rate: data.sample_rate, scale: data.samples_per_pixel, length: data.length,
      values: [...store.from(data.data)] };
  };
  const fromBinary = view => {
    const version = view.getInt32(0, true);
    if (version !== 1 && version !== 2) return "version";
    const bits = view.getUint32(4, true) ? 8 : 16, channels = version === 2 ? view.getInt32(20, true) : 1;
    const length = view.getUint32(16, true), start = version === 2 ? 24 : 20, values = [];
    for (let k = 0; k < 2 * length * channels; k++)
      values.push(bits === 8 ? view.getInt8(start + k) : view.getInt16(start + 2 * k, true));
    return { channels, bits, rate: view.getInt32(8, true), scale: view.getInt32(12, true), length, values };
  };
});
"""
ZOOM_LEVELS = [512, 1024, 2048, 4096]


class WaveformLibraries:
    """peaks.js's view of a recording."""

    def __init__(self, browser, recording):
        self.browser, self.recording = browser, recording

    def load(self, form, kind="arraybuffer"):
        return self.browser.run(LOAD, f"/v1/recordings/{self.recording}/{form}", kind, ZOOM_LEVELS)
