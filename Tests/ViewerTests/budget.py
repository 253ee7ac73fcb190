"""Measures the cost of the page in a real browser, with a two-hour recording and two waveforms.

Times of script and tasks are processor time of the page's own thread, from Chromium's tracing, and don't depend on other
load. The script time of a frame is all script from one frame to the next: input, animation callbacks, and the handling of
tiles that arrive. Bytes don't depend on load either. Times by the clock do: they fail only with `--times`.
"""

import gzip
import os
import statistics
import tempfile

import asking
import words_budget
from material import speech_like, write_wav
from page import Page
from webdriver import Browser, wait

# All files of the page that every visitor gets, compressed. The languages other than English are loaded when needed.
PAGE_KILOBYTES = 120
# What is loaded when the spectrogram is first shown, compressed.
SPECTROGRAM = ["spectrogram.css", "spectrogramview.js", "spectrogramcanvas.js", "spectrogramtiles.js", "noisecurve.js", "boxes.js"]
ROUNDS = 5
RATE = 16000
SECONDS = 7200
TRACE = "devtools.timeline,disabled-by-default-devtools.timeline,toplevel"

# Runs before the page's own scripts: notes when the waveform is first drawn, which is higher than its middle line.
FIRST_PIXELS = """
const fill = CanvasRenderingContext2D.prototype.fillRect;
CanvasRenderingContext2D.prototype.fillRect = function (...args) {
  if (this.canvas.id === "waves" && args[3] > 2) window.firstPixels ??= performance.now();
  return fill.apply(this, args);
};
"""

# Zooms and pans with every frame for some milliseconds: in to single samples, along, and out again.
JOURNEY = """
const [milliseconds] = arguments, wave = document.querySelector("#wave");
const box = wave.getBoundingClientRect(), began = performance.now();
console.timeStamp("journey");
return new Promise(done => {
  let step = 0;
  const move = () => {
    if (performance.now() - began > milliseconds) return done();
    const phase = step++ % 180, isPan = phase >= 60 && phase < 120;
    wave.dispatchEvent(new WheelEvent("wheel", {
      deltaY: phase < 60 ? -100 : isPan ? 40 : 100, shiftKey: isPan, bubbles: true, cancelable: true,
      clientX: box.left + box.width * (0.5 + 0.4 * Math.sin(step / 37)), clientY: box.top + 50,
    }));
    requestAnimationFrame(move);
  };
  requestAnimationFrame(move);
});
"""

SCRIPT = {"FunctionCall", "EvaluateScript", "RunMicrotasks", "BlinkScheduler_PerformMicrotaskCheckpoint"}


def frames_and_tasks(events):
    """Milliseconds of script in each frame, and of each task, on the page's thread since the journey began."""
    began = max(event["ts"] for event in events if event["name"] == "TimeStamp")
    events = sorted((event for event in events if event.get("ts", 0) >= began and "tdur" in event), key=lambda event: event["ts"])
    page = next((event["pid"], event["tid"]) for event in events if event["name"] == "FireAnimationFrame")
    frames, spent, covered, tasks = [], 0.0, 0, []
    for event in events:
        if (event["pid"], event["tid"]) != page:
            continue
        if event["name"] == "RunTask":
            tasks.append(event["tdur"] / 1000)
        elif event["name"] == "Commit":
            frames.append(spent)
            spent = 0.0
        elif event["name"] in SCRIPT and event["ts"] >= covered:
            spent += event["tdur"] / 1000
            covered = event["ts"] + event["dur"]
    return frames, tasks


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


class Report:
    def __init__(self, checks_times):
        self.misses = 0
        self.checks_times = checks_times

    def line(self, what, value, unit, bound, is_by_clock=False):
        is_kept = value <= bound
        self.misses += not is_kept and (self.checks_times or not is_by_clock)
        print(f"  {'ok    ' if is_kept else 'MISSED'}  {what:<58} {value:8.2f} {unit:<3} (at most {bound})", flush=True)


def page_bytes(service, *names):
    """Bytes of all files of the page, or of these, as they are sent."""
    total = 0
    names = list(names) or ["/"]
    for name in names:
        _, fields, body = service.request("GET", name, fields={"Accept-Encoding": "gzip"})
        total += len(body)
        text = (gzip.decompress(body) if fields.get("Content-Encoding") == "gzip" else body).decode()
        if name == "/":
            names += sorted({"/" + part for part in text.split('"') if part.endswith((".js", ".css"))})
    return total


def renderer_megabytes():
    """Resident memory of the largest page process."""
    most = 0
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/cmdline", "rb") as file:
                if b"--type=renderer" not in file.read():
                    continue
            with open(f"/proc/{entry}/statm") as file:
                most = max(most, int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6)
        except (OSError, IndexError):
            continue
    return most


def heap_megabytes(browser):
    browser.devtools("HeapProfiler.collectGarbage")
    metrics = {entry["name"]: entry["value"] for entry in browser.devtools("Performance.getMetrics")["metrics"]}
    return metrics["JSHeapUsedSize"] / 1e6


def run(browser, service, minutes, checks_times):
    """Prints the figures. Returns how many miss their bound, among times by the clock only if these are checked."""
    report = Report(checks_times)
    report.line("the page, html, js and css, compressed", page_bytes(service) / 1000, "KB", PAGE_KILOBYTES)
    with tempfile.TemporaryDirectory() as folder:
        block = speech_like(60, RATE, seed=5)
        path = write_wav(os.path.join(folder, "long.wav"), block, RATE, repeats=SECONDS // 60)
        source = service.upload(path, "two hours.wav")
    cleaned = service.clean(source)
    report.line("the spectrogram's files, compressed", page_bytes(service, *(f"/viewer/{name}" for name in SPECTROGRAM)) / 1000, "KB", 60)
    measure_rest(service, source, cleaned, report)
    measure_clicks(service, source, report)
    measure_zooms(service, source, report)
    for width, height, ratio in ((1440, 900, 1), (1920, 1080, 2)):
        measure_journey(service, cleaned, report, width, height, ratio)
    measure_journey(service, cleaned, report, 1440, 900, 1, "g")
    measure_preview(service, cleaned, report)
    words_budget.measure_frames(service, source, cleaned, report, TRACE, frames_and_tasks, percentile, SECONDS)
    words_budget.measure_fill(service, report, percentile)
    page = Page(browser, service.address)
    browser.devtools("Page.addScriptToEvaluateOnNewDocument", source=FIRST_PIXELS)
    browser.devtools("Performance.enable")
    firsts = []
    for _ in range(ROUNDS):
        page.open(cleaned)
        firsts.append(wait("the waveform is drawn", lambda: browser.run("return window.firstPixels")))
    report.line(f"first waveform pixels after opening, least of {ROUNDS}", min(firsts), "ms", 300, is_by_clock=True)
    # The first round fills the caches and doesn't count.
    browser.run(JOURNEY, 40_000)
    heap, resident = heap_megabytes(browser), renderer_megabytes()
    for _ in range(max(1, round(minutes * 2))):
        browser.run(JOURNEY, 30_000)
    report.line(f"growth of the script's memory in {minutes:g} min of scrolling", heap_megabytes(browser) - heap, "MB", 5)
    report.line(f"growth of the page's process in {minutes:g} min of scrolling", renderer_megabytes() - resident, "MB", 60)
    complaints = browser.console()
    assert not complaints, complaints
    for identifier in (cleaned, source):
        service.request("DELETE", f"/v1/recordings/{identifier}")
    return report.misses


def measure_rest(service, source, cleaned, report):
    """What the service sends for a view until the page rests, without the list of recordings."""
    for recording, what, most in ((source, "", asking.KILOBYTES), (cleaned, " with a result", asking.KILOBYTES_WITH_RESULT)):
        for seconds in asking.VIEWS:
            with Browser() as browser, browser.preload(asking.ASKED):
                asked, loaded = asking.open_and_rest(Page(browser, service.address), f"{recording}&view=100-{100 + seconds}")
            report.line(f"a view of {seconds:g} s{what} until it rests, in {len(asked)} requests", loaded / 1000, "KB", most)


# When points were read that were asked for since a moment, in milliseconds after it. Those that the next move may show are
# asked for when the view rests.
POINTS_CAME = """
const [began] = arguments;
return asked.filter(({ kind, at, came }) => kind === "waveform.points" && at >= began && at < began + 200 && came).map(({ came }) => came - began);"""


def rest(page):
    wait("all is loaded", lambda: page.browser.run("return rests() && pending <= 1"))


def measure_clicks(service, recording, report):
    """How long it takes from a click on a recording in the list until it is drawn."""
    firsts, lasts = [], []
    for _ in range(ROUNDS):
        with Browser() as browser, browser.preload(asking.ASKED), browser.preload(FIRST_PIXELS):
            page = Page(browser, service.address)
            page.open()
            wait("the recording is listed", lambda: browser.all(f"[data-id='{recording}'] .open"))
            rest(page)
            began = browser.run("""
              const began = performance.now();
              document.querySelector(`[data-id="${arguments[0]}"] .open`).click();
              return began;""", recording)
            firsts.append(wait("the waveform is drawn", lambda: browser.run("return window.firstPixels")) - began)
            rest(page)
            lasts.append(max(browser.run(POINTS_CAME, began)))
    report.line(f"first pixels after a click on two hours, median of {ROUNDS}", statistics.median(firsts), "ms", 250, is_by_clock=True)
    report.line(f"last points after a click on two hours, median of {ROUNDS}", statistics.median(lasts), "ms", 450, is_by_clock=True)


def measure_zooms(service, recording, report):
    """How long it takes from two turns of the wheel, while the view rests, until all is there that the view shows."""
    lasts = []
    with Browser() as browser, browser.preload(asking.ASKED):
        page = Page(browser, service.address)
        for k in range(ROUNDS):
            page.open(f"{recording}&view={1000 * k + 500}-{1000 * k + 900}")
            rest(page)
            began = browser.run("""
              const began = performance.now(), wave = document.querySelector("#wave"), { left, width, top } = wave.getBoundingClientRect();
              const turn = { deltaY: -120, bubbles: true, cancelable: true, clientX: left + width / 2, clientY: top + 50 };
              for (const _ of [1, 2]) wave.dispatchEvent(new WheelEvent("wheel", turn));
              return began;""")
            rest(page)
            lasts.append(max(browser.run(POINTS_CAME, began)))
    report.line(f"last points after a zoom at rest, median of {ROUNDS}", statistics.median(lasts), "ms", 120, is_by_clock=True)


def measure_journey(service, recording, report, width, height, ratio, key=""):
    """Presses a key first. Uses a separate browser, because tracing costs memory."""
    browser = Browser(trace=TRACE)
    try:
        browser.size(width, height, ratio=ratio)
        page = Page(browser, service.address)
        page.open(recording)
        if key:
            page.focus()
            browser.keys(key)
            wait("the spectrogram is drawn", lambda: page.ink("#spectrogram canvas") > 1000)
        # The first one compiles the scripts and fills the caches of both sides.
        browser.run(JOURNEY, 2_000)
        browser.run(JOURNEY, 4_000)
        frames, tasks = frames_and_tasks(browser.trace())
    finally:
        browser.close()
    assert len(frames) > 30, "the trace is cut short"
    size = f"{width * ratio} x {height * ratio}{key and ' with spectrogram'}"
    report.line(f"{size}: script of a frame, 95 of 100 (of {len(frames)})", percentile(frames, 0.95), "ms", 4)
    report.line(f"{size}: the longest task while zooming and panning (of {len(tasks)})", max(tasks), "ms", 50)


def measure_preview(service, recording, report):
    """A preview that plays beside its small pictures, at 4K."""
    browser = Browser(trace=TRACE)
    try:
        browser.size(1920, 1080, ratio=2)
        page = Page(browser, service.address)
        page.open(f"{recording}&view=100-129.9")
        wait("the pictures are drawn", lambda: all(
            page.ink(f"#variant-list > :nth-child({k} of :not([hidden])) canvas") > 100 for k in (1, 2, 3, 4)))
        browser.run("""
          console.timeStamp("journey");
          document.querySelector("#preview").click();
          return new Promise(done => setTimeout(done, 4000));""")
        assert page.playhead() > 101
        frames, tasks = frames_and_tasks(browser.trace())
    finally:
        browser.close()
    report.line(f"a preview plays: script of a frame, 95 of 100 (of {len(frames)})", percentile(frames, 0.95), "ms", 4)
    report.line(f"a preview plays: the longest task (of {len(tasks)})", max(tasks), "ms", 50)
