import array
import os

from chapter import Chapter
from material import speech_like, write_wav
from page import ESCAPE, HOME
from sound import Tap
from webdriver import wait


class ResultsAreHeardInStep(Chapter):
    data, address, differs = "cleaned", ("talk (Natural).wav", ""), True

    def the_cleaned_recording_plays_and_loops(self):
        browser = self.browser
        assert self.page.voice() == "cleaned", self.page.voice()
        self.select("0:06", "0:06.8")
        browser.keys("l", " ")
        wait("it plays from the selection's start", lambda: 6 < self.page.playhead() < 6.8)
        # Until it has gone round twice.
        places = browser.run("""return new Promise(done => {
          const places = [], head = document.querySelector("#playhead-time");
          const look = () => {
            places.push(Number(head.textContent.split(":")[1]));
            places.filter((place, k) => place < places[k - 1]).length < 2 ? requestAnimationFrame(look) : done(places);
          };
          look();
        })""")
        assert all(5.9 < place < 7.2 for place in places), places
        browser.keys("1")
        assert (self.page.is_playing(), self.page.voice()) == (True, "original"), self.page.toast()
        browser.keys(" ", "l", ESCAPE)

    def it_plays_at_other_speeds(self):
        browser, page = self.browser, self.page
        browser.run("const speed = document.querySelector('#speed'); speed.value = '2'; speed.onchange()")
        self.select("0:20", "0:26")
        browser.keys(" ")
        wait("it plays", lambda: page.is_playing() and page.playhead() > 20.5)
        heard = browser.run("""
          const element = [...document.querySelectorAll("audio")].find(element => !element.muted);
          return [element.playbackRate, element.preservesPitch];""")
        assert heard == [2, True], heard
        wait("it stops at the end of the selection", lambda: not page.is_playing())
        browser.run("const speed = document.querySelector('#speed'); speed.value = '1'; speed.onchange()")
        page.focus()
        browser.keys(ESCAPE)

    def a_second_cleaning_stays_beside_the_first(self):
        browser, page = self.browser, self.page

        def layers():
            return browser.run("""return [...document.querySelectorAll("#layers [data-part=name]")]
              .map(name => [name.textContent, name.ariaPressed === "true"])""")

        def heard():
            return [name for name, is_heard in layers() if is_heard and page.is_playing()]
        assert layers() == [["Original", True], ["Natural", False]], layers()
        browser.keys("2", " ")
        wait("the first one is heard", lambda: heard() == ["Natural"])
        browser.click("#cleaning .choice label:nth-child(3)")
        browser.click("#clean")
        wait("both are there, the second one in front", lambda: layers() == [["Original", False], ["Natural", False], ["Strong", True]])
        wait("the second one takes over", lambda: heard() == ["Strong"])
        page.focus()
        assert browser.text("#voice-cleaned + span") == "Strong"
        wait("both are listed", lambda: {"talk (Natural).wav", "talk (Strong).wav"} < set(page.names()))
        wait("it has a colour of its own", lambda: page.tinted(2) > 3000)
        browser.keys("2")
        wait("the first one is heard again", lambda: heard() == ["Natural"])
        assert page.is_playing() and browser.text("#voice-cleaned + span") == "Natural"
        wait("the first one is in front", lambda: page.tinted(1) > 3000)
        browser.click("#layers [data-color='1'] [data-part=name]")
        wait("a click lets the second one be heard", lambda: heard() == ["Strong"])
        browser.keys(" ")
        second_layer = "#layers [data-color='1']"
        browser.click(f"{second_layer} [data-part=show]")
        wait("the second one is hidden", lambda: page.tinted(2) == 0 and page.tinted(1) > 3000)
        browser.click(f"{second_layer} [data-part=show]")
        browser.click("#layers [data-color='0'] [data-part=solo]")
        wait("the first one is alone", lambda: page.tinted(2) == 0 and page.tinted(1) > 3000)
        browser.click("#layers [data-color='0'] [data-part=solo]")
        self.reload()
        wait("a link leads to both", lambda: layers() == [["Original", False], ["Natural", False], ["Strong", True]])
        wait("each has its colour", lambda: page.tinted(2) > 3000)
        browser.drag(page.point(0.5), page.point(0.5))
        browser.keys(" ")
        wait("the second one is heard", lambda: heard() == ["Strong"] and page.playhead() > 480.2)
        browser.click(f"{second_layer} [data-part=remove]")
        wait("it is taken out of the picture", lambda: page.tinted(2) == 0 and len(layers()) == 2)
        wait("the first one goes on where it was", lambda: heard() == ["Natural"] and page.playhead() > 481)
        browser.keys(" ")
        browser.click("#list li:nth-child(2) .open")
        wait("it comes back from the list", lambda: len(layers()) == 3 and page.tinted(2) > 3000)
        page.delete("#list li:nth-child(2) .open")
        wait("the first one is left", lambda: layers() == [["Original", False], ["Natural", True]])
        wait("the service has deleted it", lambda: len(self.service.recordings()) == 3)
        page.focus()
        browser.keys(" ")
        wait("the first one plays without it", lambda: heard() == ["Natural"] and page.playhead() > 481.5)
        browser.keys(" ")

    def marking_noise_ends_the_selection_and_the_preview_plays_what_its_button_says(self):
        browser, page = self.browser, self.page
        browser.run("""
          const ask = window.fetch;
          window.previewed = [];
          window.fetch = (path, options) => {
            if (String(path).endsWith("/preview")) previewed.push(JSON.parse(options.body).window);
            return ask(path, options);
          };""")

        def preview(text):
            assert browser.text("#preview-long") == text, browser.text("#preview-long")
            browser.run("previewed.length = 0")
            browser.click("#preview")
            wait("the preview plays", lambda: page.is_playing())
            at = page.playhead()
            wait("it goes on", lambda: page.playhead() != at)
            browser.keys(" ")
            wait("it stops", lambda: not page.is_playing())
            return browser.run("return previewed[0]")
        browser.drag(page.point(0.5), page.point(0.5))
        self.select("0:00.2", "0:01.2")
        page.press("#selection-noise")
        page.rest()
        assert page.field("noise") == (0.2, 1.2) and page.field("mark") is None
        assert preview("Preview 30 s around here")["start"] < page.playhead() < 510
        assert 475 < page.playhead() < 485, page.playhead()
        self.select("0:20", "0:25")
        browser.keys("z")
        page.rest()
        assert preview("Preview the selection") is None or 20 <= page.playhead() < 25
        assert 20 <= page.playhead() < 25, page.playhead()
        browser.keys(ESCAPE)
        assert browser.text("#preview-long") == "Preview the visible part"
        browser.click("#noise-clear")
        browser.keys("0", HOME)
        assert page.window() is None


class TheSoundHasNoGaps(Chapter):
    data, address = "cleaned", ("talk.wav", "&mark=12-16")

    def begin(self):
        self.tap = Tap(self.browser)
        super().begin()

    def the_preview_plays_and_voices_switch_without_a_gap(self):
        browser, page, tap = self.browser, self.page, self.tap
        # One burst of the voice and the pause around it, looped.
        browser.click("#preview")
        wait("the preview plays", lambda: page.is_playing() and 12 < page.playhead() < 16)
        self.figures.append(f"preview heard after {wait('it is heard', tap.click_to_sound):.2f} s")
        assert page.voice() == "cleaned"
        # The other voices are prepared while this one plays.
        loudness, pressed = {}, {}
        tap.start()
        for key, voice in (("2", "cleaned"), ("1", "original"), ("3", "residue")):
            browser.keys(key)
            assert page.voice() == voice and page.is_playing()
            pressed[voice] = tap.seconds() + 0.5
            wait("it goes round once", lambda: tap.seconds() > pressed[voice] + 4.2)
        browser.run("tap.isOn = false")
        for voice, start in pressed.items():
            loudness[voice] = tap.loudness(start, start + 4)
        gap, apart = tap.longest_gap(), max(loudness.values()) - min(loudness.values())
        assert gap < 5 and apart < 1, (gap, loudness)
        self.figures.append(f"voices switch with a gap of {gap:.1f} ms at most, their loudness {apart:.2f} LU apart")
        assert 12 <= page.playhead() <= 16
        browser.keys(" ")
        wait("space stops it", lambda: not page.is_playing())

    def finished_results_are_heard_in_step_to_the_sample(self):
        browser, page, tap = self.browser, self.page, self.tap
        sound = speech_like(12, 44100, seed=13)
        for k, value in enumerate(sound):
            sound[k] = value // 3
        for k in range(2205, len(sound), 4410):
            sound[k] = 32000
        source = self.service.upload(write_wav(os.path.join(self.folder, "clicks.wav"), sound, 44100, channels=2))
        first, second = (self.service.clean(source, noise={"quantile": 0.2}, reduction=reduction) for reduction in (9, 25))
        page.open(f"{first}&with={second}&mark=4-8")
        page.focus()
        browser.keys("l", "1", " ")
        wait("it plays", lambda: page.is_playing() and page.playhead() > 4.2)
        tap.start()
        tap.delay(15)
        # Original, first result, second result: each for a moment, across the end of the loop.
        for key in ("2", "2", "1", "2", "2", "2", "1", "2", "1", "2"):
            until = tap.seconds() + 0.55
            browser.keys(key)
            wait("it is heard for a while", lambda: tap.seconds() > until)
        tap.delay(0)
        grid, gap = browser.run("return [tap.offGrid(4410), tap.longestGap()]")
        loudness, pressed = {}, {}
        tap.start()
        for key, voice in (("1", "original"), ("2", "cleaned")):
            browser.keys(key)
            assert page.voice() == voice
            pressed[voice] = tap.seconds() + 0.3
            wait("it goes round once", lambda: tap.seconds() > pressed[voice] + 4.1)
        browser.run("tap.isOn = false")
        for voice, start in pressed.items():
            loudness[voice] = tap.loudness(start, start + 4)
        assert not grid["wrong"] and grid["last"] > 44100, grid
        assert gap < 5, f"a gap of {gap:.1f} ms"
        assert max(loudness.values()) - min(loudness.values()) < 1, loudness

    def more_channels_than_loudspeakers_are_heard_as_their_mean(self):
        browser, page, tap = self.browser, self.page, self.tap
        # Only the last one has a sound.
        frames = array.array("h", bytes(2 * 32 * 48000 * 4))
        for k in range(48000 * 4):
            frames[32 * k + 31] = 26214 if k % 100 < 50 else -26214
        page.open(self.service.upload(write_wav(os.path.join(self.folder, "array.wav"), frames, 48000, channels=32, lanes=32)))
        page.focus()
        browser.keys(" ")
        wait("it plays", lambda: page.is_playing() and page.playhead() > 0.3)
        assert not page.toast(), page.toast()
        tap.start()
        wait("it is heard", lambda: tap.seconds() > 1)
        loudest = browser.run("return tap.samples().reduce((most, value) => Math.max(most, Math.abs(value)), 0)")
        assert 0.8 / 32 - 0.001 < loudest < 0.8 / 32 * 1.3, f"the mean, and not the first channels: {loudest}"
