import array
import io
import math
import os
import random
import wave

import languages
import sizes
from chapter import Chapter
from material import write_wav
from page import COPY, CONTROL, DELETE, RIGHT, SHIFT, UP, in_chromium
from webdriver import wait

RATE, SECONDS = 16000, 10
# A tone in quiet hiss: its frequency in Hz, when it sounds, and its amplitude, −12 dB.
TONE, FROM, TO, LOUD = 1000, 4, 6, 8231
AREA = "#spectrogram [data-part=area]"
CANVAS = AREA + " canvas"

# The brightest row of a column of the spectrogram, and how bright the column is in the mean, 0 … 255.
COLUMN = COPY + """
const [across] = arguments, canvas = document.querySelector("#spectrogram canvas"), { data, width, height } = copy(canvas);
let [row, most, sum] = [0, -1, 0];
for (let y = 0; y < height; y++) {
  const at = 4 * (y * width + Math.round(across * (width - 1))), light = (data[at] + data[at + 1] + data[at + 2]) / 3;
  sum += light;
  if (light > most) [row, most] = [y, light];
}
return { place: (row + 0.5) / height, mean: sum / height };"""

# The points of the curve of the noise: how far from its loudest level each is, and its height, both 0 … 100.
CURVE = """
const line = document.querySelector("#spectrogram [data-part=line]").getAttribute("d");
return line && line.slice(1).split("L").map(point => point.split(" ").map(Number));"""

# What is beyond the right edge of the waveform and the spectrogram.
BEYOND = """
const { right } = document.querySelector("#stage").getBoundingClientRect();
return [...document.querySelectorAll("#stage canvas, #spectrogram *")].filter(element => element.getBoundingClientRect().right > right).map(element => element.outerHTML.slice(0, 80));"""

# Notes previews that are asked for, and how loud the sounds are that come, in dB of full scale.
PREVIEWED = """
window.previewed = [];
const ask = window.fetch;
window.fetch = async (path, options) => {
  const answer = await ask(path, options);
  if (String(path).endsWith("/preview") && !JSON.parse(options.body).as) {
    const sound = await new OfflineAudioContext(1, 1, 16000).decodeAudioData(await answer.clone().arrayBuffer());
    const samples = sound.getChannelData(0), power = samples.reduce((sum, value) => sum + value * value, 0) / samples.length;
    previewed.push({ ...JSON.parse(options.body), level: 10 * Math.log10(power + 1e-12) });
  }
  return answer;
};"""


class TheSpectrogramIsReadAndEdited(Chapter):
    differs = True

    def begin(self):
        chance, samples = random.Random(7), array.array("h", bytes(2 * RATE * SECONDS))
        for k in range(len(samples)):
            tone = LOUD * math.sin(2 * math.pi * TONE * k / RATE) if FROM <= k / RATE < TO else 0
            samples[k] = round(tone + chance.gauss(0, 60))
        self.recording = self.service.upload(write_wav(os.path.join(self.folder, "beep.wav"), samples, RATE))
        self.page.open(f"{self.recording}&view=0-10")

    def _column(self, seconds):
        return self.browser.run(COLUMN, seconds / SECONDS)

    def _requests(self):
        return self.browser.run("return performance.getEntriesByType('resource').filter(entry => /spectrogram/.test(entry.name)).length")

    def _wait_for_tone(self, what, place=None):
        """Waits until the tone is the brightest of its column, at this part of the height."""
        wait(what, lambda: self.page.ink(CANVAS) and self._column(5)["mean"] > 3 and (place is None or abs(self._column(5)["place"] - place) < 0.02))

    def _boxes(self):
        return self.browser.run("return [...document.querySelectorAll('.box:not(.draft)')].map(box => box.title)")

    def _draw_box(self, start, end, low, high):
        """Draws a box with the mouse; the frequencies are linear."""
        point = lambda seconds, hertz: self.page.point(seconds / SECONDS, 1 - hertz / (RATE / 2), AREA)
        self.browser.drag(point(start, high), point(end, low))
        self.page.rest()

    def it_opens_below_the_waveform_and_names_what_is_under_the_pointer(self):
        browser, page = self.browser, self.page
        page.rest()
        assert self._requests() == 0, "nothing is loaded before"
        page.focus()
        browser.keys("g")
        self._wait_for_tone("it is drawn")
        wave, area = browser.box("#wave"), browser.box(AREA)
        assert area["y"] > wave["y"] + wave["height"] and (area["x"], area["width"]) == (wave["x"], wave["width"]), "both have one time axis"
        x, y = page.point(0.5, self._column(5)["place"], AREA)
        browser.actions({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": [
            {"type": "pointerMove", "x": round(x), "y": round(y)}]})
        page.rest()
        said = browser.text("#spectrogram [data-part=readout]").split(" · ")
        hertz = float(said[1].removesuffix(" kHz")) * 1000 if said[1].endswith(" kHz") else float(said[1].removesuffix(" Hz"))
        assert said[0].startswith("0:05.0") and abs(hertz - TONE) < 40 and said[2] in ("B5", "C6"), said
        assert -15 <= int(said[3].removesuffix("\u00a0dB").removesuffix(" dB").replace("\u2212", "-")) <= -11, said

    def time_and_frequencies_are_zoomed(self):
        browser, page = self.browser, self.page
        place = self._column(5)["place"]
        browser.wheel(page.point(0.5, 0.5, AREA), y=-100, count=2)
        start, end = page.window()
        assert start > 0.5 and end < 9.5, "the wheel zooms both"
        page.focus()
        browser.keys("0")
        page.rest()
        browser.click("#spectrogram [data-part=closer]")
        # The middle half of the scale.
        self._wait_for_tone("the frequencies are enlarged", 2 * place - 0.5)
        browser.click("#spectrogram [data-part=wider]")
        self._wait_for_tone("all are shown", place)

    def scale_colors_and_levels_are_chosen_and_kept(self):
        browser, page = self.browser, self.page
        choose = "const select = document.querySelector(arguments[0]); select.value = arguments[1]; select.onchange();"
        browser.run(choose, "#frequency-scale", "linear")
        self._wait_for_tone("the frequencies are linear", 1 - TONE / (RATE / 2))
        browser.run(choose, "#palette", "grey")
        is_grey = COPY + """
          const { data } = copy(document.querySelector("#spectrogram canvas"));
          return data.every((value, k) => k % 4 !== 1 || value === data[k - 1] && value === data[k + 1]);"""
        wait("it is gray", lambda: browser.run(is_grey))
        bright = self._column(2)["mean"]
        page.focus("#spectrogram [data-part=low]")
        browser.keys(UP, UP, UP, (SHIFT, UP))
        wait("hiss is darker", lambda: self._column(2)["mean"] < bright - 5)
        low = browser.run("return document.querySelector('#spectrogram [data-part=low]').ariaValueNow")
        assert low == "-92", low
        self.reload()
        self._wait_for_tone("it stays as it was", 1 - TONE / (RATE / 2))
        assert browser.run(is_grey) and browser.run("return document.querySelector('#spectrogram [data-part=low]').ariaValueNow") == low

    def boxes_are_drawn_changed_and_undone(self):
        browser, page = self.browser, self.page
        self._draw_box(3.5, 6.5, 500, 1500)
        [box] = self._boxes()
        assert box.startswith("Box from 0:03.5") and "to 0:06.5" in box and box.endswith("\u221224\u00a0dB") or box.endswith("\u221224 dB"), box
        assert browser.shown("#spectrogram [data-part=gain]"), "its level can be set"
        browser.keys(RIGHT, RIGHT)
        page.rest()
        moved = self._boxes()[0]
        assert moved != box and moved.split(",")[1:] == box.split(",")[1:], (box, moved)
        browser.keys((CONTROL, "z"))
        wait("that is undone", lambda: self._boxes() == [box])
        browser.run("const gain = document.querySelector('#spectrogram [data-part=gain]'); gain.value = '-60'; gain.oninput()")
        wait("it is turned down", lambda: "\u221260" in self._boxes()[0])
        self._draw_box(7, 8, 3000, 4000)
        assert len(self._boxes()) == 2
        browser.keys(DELETE)
        wait("the second one is removed", lambda: len(self._boxes()) == 1)
        page.rest()
        browser.keys((CONTROL, "z"))
        wait("it is back", lambda: len(self._boxes()) == 2)

    def a_box_is_heard_alone(self):
        browser, page = self.browser, self.page
        browser.run(PREVIEWED)
        levels = []
        for k in (1, 2):
            browser.run("document.querySelectorAll('.box:not(.draft)')[arguments[0]].focus()", k - 1)
            browser.click("#spectrogram [data-part=hear]")
            levels.append(wait("it is asked for", lambda: browser.run("return previewed.filter(({ output }) => output === 'residue')[arguments[0]]", k - 1)))
            wait("it is heard", lambda: page.is_playing())
            browser.click("#spectrogram [data-part=hear]")
            wait("it stops", lambda: not page.is_playing())
        assert all(len(level["edit"]["boxes"]) == 1 and level["method"] == "none" for level in levels), levels
        # The tone is in the box for two of three seconds.
        assert abs(levels[0]["level"] - (20 * math.log10(LOUD / 32768) - 3 - 1.8)) < 1.5 and levels[1]["level"] < -55, levels
        assert page.voice() == "original"

    def boxes_alone_change_nothing_else(self):
        browser, page = self.browser, self.page
        page.focus("#method")
        browser.run("const method = document.querySelector('#method'); method.value = 'none'; method.dispatchEvent(new Event('input', { bubbles: true }))")
        browser.click("#clean")
        wait("they are turned down", lambda: "removed" in page.toast())
        assert browser.text("#name") == "beep (2 boxes).wav"
        result = self.service.named("beep (2 boxes).wav")["id"]

        def samples(recording):
            body = self.service.request("GET", f"/v1/recordings/{recording}/audio")[2]
            with wave.open(io.BytesIO(body)) as file:
                return array.array("h", file.readframes(file.getnframes()))
        before, after = samples(self.recording), samples(result)
        middle = slice(int(4.5 * RATE), int(5.5 * RATE))
        power = lambda values: sum(value * value for value in values)
        assert power(after[middle]) < power(before[middle]) / 1000, "the tone is gone"
        assert after[:3 * RATE] == before[:3 * RATE] and after[9 * RATE:] == before[9 * RATE:], "and the rest is as it was"
        wait("the spectrogram shows the result", lambda: self._column(5)["place"] != 1 - TONE / (RATE / 2) and self._column(5)["mean"] < 60)
        browser.keys("1")
        self._wait_for_tone("and the original again", 1 - TONE / (RATE / 2))

    def a_preview_is_compared_with_the_original(self):
        browser, page = self.browser, self.page
        page.open(f"{self.recording}&view=0-10&noise=1-3")
        browser.run("const reduction = document.querySelector('#reduction'); reduction.value = '40'; reduction.dispatchEvent(new Event('input', { bubbles: true }))")
        browser.click("#preview")
        curtain = "#spectrogram [data-part=curtain]"
        wait("original and preview are beside each other", lambda: browser.shown(curtain))
        wait("it plays", lambda: page.is_playing())
        browser.keys(" ")
        wait("hiss is less on the right", lambda: self._column(9)["mean"] < self._column(3)["mean"] - 10)
        box, area = browser.box(curtain), browser.box(AREA)
        browser.drag((box["x"] + box["width"] / 2, box["y"] + 30), (area["x"] + area["width"] * 0.1, box["y"] + 30))
        wait("the border is moved", lambda: abs(self._column(3)["mean"] - self._column(9)["mean"]) < 10)
        page.focus()
        browser.keys("3")
        wait("what is removed is shown as a whole", lambda: not browser.shown(curtain))

    def the_noise_is_a_curve_at_its_side(self):
        browser, page = self.browser, self.page
        page.open(f"{self.recording}&view=0-10&noise=4.2-5.8")
        loudest = lambda: min(browser.run(CURVE) or [[0, 0]])[1] / 100
        wait("the tone is its loudest part", lambda: abs(loudest() - self._column(5)["place"]) < 0.03)
        page.open(f"{self.recording}&view=0-10&noise=1-3")
        wait("hiss is flat", lambda: 0 < max(across for across, _ in (browser.run(CURVE) or 5 * [[0, 0]])[2:-2]) < 25)
        page.focus()

    def nothing_is_loaded_while_it_is_closed(self):
        browser, page = self.browser, self.page
        browser.keys("g")
        wait("it is closed", lambda: not browser.shown("#spectrogram"))
        page.rest()
        before = self._requests()
        browser.wheel(page.point(0.5), y=-100, count=6)
        page.rest()
        assert self._requests() == before
        browser.keys("0", "g")
        self._wait_for_tone("it is drawn again")

    @in_chromium("it takes WebGL away")
    def it_is_drawn_without_a_graphics_processor_too(self):
        browser, page = self.browser, self.page
        with browser.preload("""{
          const { getContext } = HTMLCanvasElement.prototype;
          HTMLCanvasElement.prototype.getContext = function (kind, ...rest) { return kind === "webgl2" ? null : getContext.call(this, kind, ...rest); };
        }"""):
            page.open(f"{self.recording}&view=0-10")
        self._wait_for_tone("it is drawn", 1 - TONE / (RATE / 2))

    @in_chromium("it has a touch screen, and languages")
    def it_has_room_on_phones_and_in_every_language(self):
        browser, page = self.browser, self.page
        for width, height in ((390, 844), (844, 390)):
            browser.size(width, height, ratio=2, touch=True)
            page.open(f"{self.recording}&view=0-10")
            self._wait_for_tone("it is drawn")
            for part in ("add", "closer"):
                page.press(f"#spectrogram [data-part={part}]")
                page.rest()
                found = browser.run(sizes.SMALL)
                assert not found, f"at {width} x {height}: {found}"
                found = browser.run(BEYOND)
                assert not found, f"at {width} x {height} beyond the edge: {found}"
        for tag in languages.TAGS:
            browser.language(f"{tag},en")
            for width, height in ((390, 844), (1440, 900)):
                browser.size(width, height, touch=width == 390)
                page.open(f"{self.recording}&view=0-10&mark=7-9")
                self._wait_for_tone("it is drawn")
                page.press("#spectrogram [data-part=add]")
                page.rest()
                found = page.overflow()
                assert not found, f"{tag} at {width} x {height}: {found}"
                browser.screenshot(os.path.join(self.pictures, f"spectrogram {tag} {width} x {height}.png"))
        browser.language("en")
        browser.size(1440, 900)

    @in_chromium("its policy can be taken off")
    def axe_finds_nothing_beside_it(self):
        if not os.environ.get("STILLWAVE_AXE"):
            return
        browser, page = self.browser, self.page
        browser.policy(False)
        for is_dark in (False, True):
            browser.dark(is_dark)
            page.open(f"{self.recording}&view=0-10&noise=1-3")
            self._wait_for_tone("it is drawn")
            self.check_axe("the spectrogram is shown")
            page.press("#spectrogram [data-part=add]")
            self.check_axe("a box is chosen")
