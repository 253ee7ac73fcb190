"""What <stillwave-waveform> does in a page of another origin: keys, pointers, playback, forms, and what it looks like."""

import array
import os
import random
import threading

from material import Service, speech_like, write_media, write_wav
from webdriver import Browser, wait

PAGE = """<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>A talk</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; script-src 'self' 'unsafe-inline' %(service)s; connect-src %(service)s; media-src %(service)s; style-src 'unsafe-inline'; require-trusted-types-for 'script'">
<style>body { font: 1rem/1.5 system-ui; max-width: 40rem; margin: 1rem auto; padding: 0 1rem; color-scheme: light dark; } :root { color-scheme: light dark; }</style>
<script type="module" src="%(service)s/embed/stillwave.js"></script>
<main><h1>A talk</h1>
<form id="form"><stillwave-waveform id="wave" name="part" recording="%(id)s" labels controls required %(more)s></stillwave-waveform><button>Send</button></form>
<p>Some text below, in the page's own font.</p></main>
<script>
const wave = document.querySelector("#wave"), seen = [];
for (const name of ["loadedmetadata", "timeupdate", "selectionchange", "zoomchange", "error", "play", "pause", "ended", "change"]) wave.addEventListener(name, () => seen.push(name));
document.querySelector("form").addEventListener("submit", event => { event.preventDefault(); window.sent = [...new FormData(event.target)]; });
const inside = selector => wave.shadowRoot.querySelector(selector);
const drawn = () => { const canvas = inside(".fill canvas"), { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height); let count = 0; for (let k = 3; k < data.length; k += 4) if (data[k]) count++; return count; };
</script>"""


class Steps:
    """Steps of one browser; each leaves the page as the next one expects it."""

    def __init__(self, browser, service, pages, identifier):
        self.browser, self.service, self.pages, self.id = browser, service, pages, identifier

    def open(self, identifier=None, more=""):
        self.browser.open(self.pages.put("/talk", PAGE % {"service": self.service.address, "id": identifier or self.id, "more": more}))
        wait("the element has the recording", lambda: self.run("return wave.duration > 0"))
        wait("the waveform is drawn", lambda: self.run("return drawn() > 3000"))

    def run(self, script, *arguments):
        return self.browser.run(script, *arguments)

    def box(self):
        return self.run("const { x, y, width, height } = inside('.wave').getBoundingClientRect(); return { x, y, width, height }")

    def state(self):
        return self.run("return { time: wave.currentTime, selection: wave.selection, visible: wave.visible, value: wave.value, valid: wave.checkValidity(), paused: wave.paused }")

    def a_plain_page_shows_the_recording(self):
        self.open()
        assert abs(self.run("return wave.duration") - 60) < 0.01
        assert "loadedmetadata" in self.run("return seen")
        assert self.run("return inside('.wave').getAttribute('role')") == "slider"
        assert self.run("return inside('.wave').getAttribute('aria-valuemax')") == "60"
        wait("labels are shown", lambda: self.run("return inside('.labels').children.length") == 3)
        assert self.run("return performance.getEntriesByType('resource').filter(e => e.name.includes('spectrogram')).length") == 0

    def keys_move_zoom_and_select(self):
        # No selection yet, so the form can't be sent.
        assert self.state()["valid"] is False
        self.run("inside('.wave').focus()")
        self.browser.keys("\uE014", "\uE014")
        wait("the arrow keys move the playhead", lambda: abs(self.state()["time"] - 1.2) < 0.01)
        wait("screen readers hear it", lambda: self.run("return inside('.wave').getAttribute('aria-valuetext')").startswith("0:01.2 of 1:00.0"))
        self.browser.keys(("\uE008", "\uE014"))
        wait("Shift selects", lambda: self.state()["selection"] and abs(self.state()["selection"]["end"] - 1.8) < 0.01)
        assert self.state()["value"] == "1.2-1.8" and self.state()["valid"]
        self.browser.keys("+", "+")
        wait("+ zooms in", lambda: abs(self.state()["visible"]["end"] - self.state()["visible"]["start"] - 15) < 0.01)
        self.browser.keys("0")
        wait("0 shows all", lambda: self.state()["visible"] == {"start": 0, "end": 60})
        self.browser.keys("\uE010")
        wait("End goes to the end", lambda: self.state()["time"] == 60)
        self.browser.keys("\uE00C")
        wait("Escape ends the selection", lambda: self.state()["selection"] is None)

    def the_pointer_seeks_and_selects(self):
        wait("the page rests", lambda: self.run("return window.rests()"))
        box = self.box()
        middle = box["y"] + box["height"] / 2
        self.browser.drag((box["x"] + box["width"] * .25, middle), (box["x"] + box["width"] * .5, middle))
        wait("a drag selects", lambda: self.state()["selection"] and abs(self.state()["selection"]["end"] - 30) < .5)
        assert abs(self.state()["selection"]["start"] - 15) < .5, self.state()
        # An edge can be moved.
        self.browser.drag((box["x"] + box["width"] * .5, middle), (box["x"] + box["width"] * .75, middle))
        wait("an edge moves", lambda: abs(self.state()["selection"]["end"] - 45) < .5)
        assert abs(self.state()["selection"]["start"] - 15) < .5, self.state()
        assert "change" in self.run("return seen")
        self.run("document.querySelector('form button').click()")
        assert self.run("return window.sent?.[0]?.[0]") == "part", self.run("return window.sent")
        start, end = map(float, self.run("return window.sent[0][1]").split("-"))
        assert abs(start - 15) < .5 and abs(end - 45) < .5, (start, end)
        self.run("document.querySelector('form').reset()")
        assert self.state()["selection"] is None, self.state()
        self.browser.drag((box["x"] + box["width"] * .5, middle), (box["x"] + box["width"] * .5, middle), steps=1)
        wait("a click seeks", lambda: abs(self.state()["time"] - 30) < .5)

    def methods_and_events_are_the_media_elements(self):
        self.run("seen.length = 0; wave.currentTime = 10; wave.selection = { start: 10, end: 10.4 }; return wave.play()")
        wait("it plays to the end of the selection", lambda: self.state()["paused"] and abs(self.state()["time"] - 10.4) < .01)
        events = self.run("return seen")
        assert all(name in events for name in ("play", "pause", "timeupdate", "selectionchange")), events
        assert "change" not in events
        self.run("seen.length = 0; wave.visible = { start: 5, end: 8 }")
        wait("zoomchange", lambda: "zoomchange" in self.run("return seen"))
        assert self.run("return !inside('.scroller').hidden")
        self.run("wave.setAttribute('start', '20'); wave.setAttribute('end', '30')")
        wait("attributes move the window", lambda: self.state()["visible"] == {"start": 20, "end": 30})

    def a_second_recording_is_drawn_over_it(self):
        colored = """const canvas = inside(".fill canvas"), { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
            let count = 0; for (let k = 0; k < data.length; k += 4) if (data[k + 3] && data[k + 1] > data[k] + 60) count++; return count"""
        assert self.run(colored) == 0
        self.run("wave.setAttribute('overlay', arguments[0])", self.service.named("hiss.wav")["id"])
        wait("the overlay has its own color", lambda: self.run(colored) > 300)
        self.run("wave.removeAttribute('overlay')")
        wait("it is gone", lambda: self.run("return wave.duration > 0") and self.run(colored) == 0)

    def the_spectrogram_is_loaded_when_it_is_asked_for(self):
        # Tiles of a service are stood in for: their right half is white.
        self.run("""const { fetch } = window;
            window.tiles = [];
            window.fetch = async (address, options) => {
              if (!String(address).includes("/spectrogram.png")) return fetch(address, options);
              tiles.push(Object.fromEntries(new URL(address).searchParams));
              const canvas = new OffscreenCanvas(1024, 256), pen = canvas.getContext("2d");
              pen.fillRect(0, 0, 1024, 256);
              pen.fillStyle = "white";
              pen.fillRect(512, 0, 512, 256);
              return new Response(await canvas.convertToBlob(), { headers: { "Stillwave-Columns": "1024", "Stillwave-Complete": "true" } });
            };
            wave.setAttribute("spectrogram", "");""")
        light = """const canvas = inside(".spectrogram canvas"), { data } = canvas.getContext("2d").getImageData(0, 5, canvas.width, 1);
            return [0.1, 0.4, 0.6, 0.9].map(place => data[4 * Math.round(place * canvas.width)])"""
        self.run("wave.visible = { start: 0, end: 1024 * 512 / 8000 }")
        wait("tiles are drawn", lambda: self.run("return !!inside('.spectrogram canvas') && !inside('.spectrogram').hidden && tiles.length > 0"))
        wait("the page rests", lambda: self.run("return window.rests()"))
        assert all(int(tile["scale"]) in (64 * 2 ** k for k in range(12)) for tile in self.run("return tiles")), self.run("return tiles")
        for tile in self.run("return tiles"):
            start = float(tile["start"]) * 8000 / 1024 / int(tile["scale"])
            assert abs(start - round(start)) < 1e-6, tile
        self.run("wave.removeAttribute('spectrogram')")
        assert self.run("return inside('.spectrogram').hidden")

    def it_grows_while_the_recording_is_read(self):
        made = threading.Event()

        def upload():
            self.service.upload(self.growing, name="growing.wav")
            made.set()

        with self.service.holding(b"waveform") as step:
            thread = threading.Thread(target=upload)
            thread.start()
            wait("it is there", lambda: any(recording["name"] == "growing.wav" for recording in self.service.recordings()))
            self.run("wave.setAttribute('recording', arguments[0])", self.service.named("growing.wav")["id"])
            right = """const canvas = inside(".fill canvas"), { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height / 2 - 4);
                let most = 0; for (let k = 3; k < data.length; k += 4) if (data[k]) most = Math.max(most, (k - 3) / 4 % canvas.width); return most / canvas.width"""
            wait("a part is drawn", lambda: step() or 0 < self.run(right) < 1)
        wait("all of it is drawn", lambda: self.run(right) > .95)
        thread.join()
        assert self.run("return wave.error") is None
        self.run("wave.setAttribute('recording', arguments[0])", self.id)
        wait("the first one is back", lambda: self.run("return Math.abs(wave.duration - 60) < .01"))

    def the_folder_can_be_served_by_the_page(self):
        for name in ("stillwave.js", "spectrogram.js"):
            with open(os.path.join(os.path.dirname(__file__), "../../embed", name), encoding="utf-8") as file:
                self.pages.put(f"/vendored/{name}", file.read(), "text/javascript")
        page = PAGE % {"service": self.service.address, "id": self.id, "more": f"src='{self.service.address}'"}
        self.browser.open(self.pages.put("/own", page.replace(f"{self.service.address}/embed/stillwave.js", "/vendored/stillwave.js")))
        wait("the waveform is drawn", lambda: self.run("return wave.duration > 0 && drawn() > 3000"))
        self.service.stop()
        self.run("seen.length = 0; wave.visible = { start: 10, end: 12 }")
        wait("an error", lambda: "error" in self.run("return seen") and self.run("return wave.error.code") == "unreachable")
        self.service.start()
        wait("the rest arrives", lambda: self.run("return wave.error === null"))

    def what_a_browser_cannot_play_is_converted(self):
        self.open(self.service.named("talk.aiff")["id"])
        self.run("wave.currentTime = 1; return wave.play()")
        wait("it plays", lambda: self.state()["time"] > 1.1)
        assert "format=mp3" in self.run("return wave.media.src") and self.run("return wave.error") is None
        self.run("wave.pause()")

    def errors_have_a_code(self):
        self.open()
        self.run("seen.length = 0; wave.setAttribute('recording', '0199a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b')")
        wait("an error", lambda: "error" in self.run("return seen"))
        assert self.run("return [wave.error.code, wave.error.status, !inside('.message').hidden]") == ["not_found", 404, True]
        self.run("wave.setAttribute('recording', 'none')")
        wait("an error in the id", lambda: self.run("return wave.error.code") == "invalid_recording")
        self.run("wave.setAttribute('recording', arguments[0])", self.id)
        wait("it recovers", lambda: self.run("return wave.error === null && wave.duration > 0"))

    def two_hours_open_like_two_minutes(self):
        figures = {}
        for name in ("two minutes.wav", "two hours.wav"):
            self.open(self.service.named(name)["id"])
            figures[name] = self.run("return performance.getEntriesByType('resource').filter(e => e.name.includes('/v1/')).map(e => e.encodedBodySize || e.transferSize)")
        print("    requests:", {name: len(sizes) for name, sizes in figures.items()}, flush=True)
        assert len(figures["two hours.wav"]) <= len(figures["two minutes.wav"]) + 2


def check(binary, kinds, pages, folder, pictures):
    failures = 0
    options = type("Open", (Service,), {"options": ("--cors-origin", pages.origin)})
    rate, speech = 8000, speech_like(60, 8000, 3)
    with options(binary) as service:
        identifier = service.upload(write_wav(folder + "/talk.wav", speech, rate))
        Steps.growing = write_wav(folder + "/growing.wav", speech, rate, repeats=40)
        service.upload(write_wav(folder + "/hiss.wav", array.array("h", [random.randrange(-9000, 9000) for _ in range(60 * rate)]), rate))
        service.upload(write_media(folder + "/talk.aiff", "-i", folder + "/talk.wav"))
        service.upload(write_wav(folder + "/two minutes.wav", speech, rate, repeats=2))
        service.upload(write_wav(folder + "/two hours.wav", speech, rate, repeats=120))
        labels = "WEBVTT\n\n00:02.000 --> 00:06.000\nWelcome\n\n00:10.000 --> 00:16.000\nThe first thing\n\n00:40.000 --> 00:55.000\nThank you\n"
        status, _, body = service.request("POST", f"/v1/recordings/{identifier}/labels", labels.encode(), {"Content-Type": "text/vtt"})
        assert status == 201, body
        for kind in kinds:
            with kind() as browser:
                steps = Steps(browser, service, pages, identifier)
                for name in [name for name in vars(Steps) if "_" in name.strip("_") and not name.startswith("__")]:
                    try:
                        getattr(steps, name)()
                        print(f"  {kind.__name__}: {name.replace('_', ' ')}", flush=True)
                    except Exception as error:  # noqa: BLE001
                        failures += 1
                        print(f"  {kind.__name__}: {name.replace('_', ' ')}: FAILED: {type(error).__name__} {error}", flush=True)
                        browser.screenshot(os.path.join(pictures, f"failed {kind.__name__} {name}.png"))
                if kind is Browser:
                    show(steps, browser, pictures)
    return failures


def show(steps, browser, pictures):
    """Takes pictures for people to look at."""
    for name, size, dark, touch in [("page", (900, 700), False, False), ("page dark", (900, 700), True, False), ("phone", (390, 844), False, True), ("phone dark", (390, 844), True, True)]:
        browser.size(*size, ratio=2, touch=touch)
        browser.dark(dark)
        steps.open(more="style='margin-block: 1rem'")
        steps.run("wave.currentTime = 4; wave.selection = { start: 10, end: 16 }")
        wait("labels", lambda: steps.run("return inside('.labels').children.length") == 3)
        wait("the page rests", lambda: steps.run("return window.rests()"))
        browser.screenshot(os.path.join(pictures, f"{name}.png"))
    fingers(steps, browser)
    steps.run("wave.visible = { start: 8, end: 20 }")
    wait("the page rests", lambda: steps.run("return window.rests()"))
    browser.screenshot(os.path.join(pictures, "phone dark zoomed.png"))
    axe = os.environ.get("STILLWAVE_AXE")
    if axe:
        browser.policy(False)
        steps.open()
        with open(axe, encoding="utf-8") as file:
            browser.inject(file.read())
        found = browser.run("return axe.run().then(({ violations }) => violations.map(({ id, nodes }) => [id, nodes.map(node => node.target)]))")
        assert found == [], found
        browser.policy(True)
    for name, dark in (("frame", False), ("frame dark", True)):
        browser.size(640, 200, ratio=2)
        browser.dark(dark)
        browser.open(f"{steps.service.address}/embed#recording={steps.id}&labels=")
        wait("the frame is drawn", lambda: browser.run("return document.querySelector('stillwave-waveform')?.shadowRoot.querySelector('.labels').children.length") == 3)
        wait("the page rests", lambda: browser.run("return window.rests()"))
        assert browser.run("return document.documentElement.scrollHeight <= innerHeight && document.documentElement.scrollWidth <= innerWidth")
        browser.screenshot(os.path.join(pictures, f"{name}.png"))
    browser.size(1440, 900)
    browser.dark(False)


def fingers(steps, browser):
    """What fingers do, on a phone."""
    assert steps.run("return document.documentElement.scrollWidth") == 390
    assert all(side >= 44 for side in steps.run("return [...wave.shadowRoot.querySelectorAll('button')].map(button => button.getBoundingClientRect().height)"))
    box = steps.box()
    middle = box["y"] + box["height"] / 2
    browser.drag((box["x"] + box["width"] * .5, middle), (box["x"] + box["width"] * .8, middle), kind="touch")
    wait("a finger selects", lambda: abs(steps.state()["selection"]["end"] - 48) < 1 and abs(steps.state()["selection"]["start"] - 30) < 1)
    browser.pinch((box["x"] + box["width"] / 2, middle), 40, 120)
    wait("two fingers zoom", lambda: abs(steps.state()["visible"]["end"] - steps.state()["visible"]["start"] - 20) < 1)
    assert abs(steps.state()["visible"]["start"] - 20) < 1
    steps.run("wave.showAll(); wave.selection = { start: 10, end: 16 }")
