import os

import languages
from chapter import Chapter
from page import ESCAPE, LONG_PRESS
from webdriver import wait

# What is smaller than a fingertip, 44 CSS pixels, and fields whose text makes iPhones zoom.
SMALL = """
const found = [];
for (const element of document.querySelectorAll("button, a[href], select, summary, textarea, input, .handle")) {
  if (!element.checkVisibility({ visibilityProperty: true }) || element.matches(".skip, .box")) continue;
  const { width, height } = (element.matches("[type=radio], [type=checkbox]") ? element.closest("label") : element).getBoundingClientRect();
  if (width && (width < 43.9 || height < 43.9)) found.push([element.id || element.dataset.part || element.outerHTML.slice(0, 80), width, height]);
  if (element.matches("select, textarea, input") && parseFloat(getComputedStyle(element).fontSize) < 16) found.push([element.id, getComputedStyle(element).fontSize]);
}
const place = document.querySelector("#document").getBoundingClientRect();
for (const layer of document.querySelectorAll(".layer")) {
  const { left, right } = layer.getBoundingClientRect();
  if (left < place.left - 1 || right > place.right + 1) found.push([layer.textContent, left, right]);
}
return found;"""

RTL_NAME = "مقابلة 🎙️.wav"


class EverythingHasRoomAtAnySizeInAnyLanguage(Chapter):
    data, address = "cleaned", ("talk.wav", "")

    def names_of_any_script_are_shown(self):
        self.page.choose(self.sound(RTL_NAME, 30))
        wait("it is opened", lambda: self.browser.text("#name") == RTL_NAME)
        self.page.wait_for_waveform()
        assert self.browser.run("return getComputedStyle(document.querySelector('#name')).direction") == "rtl"

    def nothing_is_cut_off_or_covered_at_any_size(self):
        browser, page = self.browser, self.page
        recording, other = (self.service.clean(self.id(RTL_NAME)) for _ in range(2))
        self.service.rename(recording, "The one that " * 12)
        page.open(recording)
        wait("noise is suggested", lambda: browser.all(".region"))
        start = browser.run("return Math.max(...[...document.querySelectorAll('.region')].map(e => e.dataset.start))")
        for width, height in ((320, 640), (1024, 768), (1280, 800), (3840, 2160)):
            browser.size(width, height, touch=width == 320)
            # A region begins at the right edge.
            page.open(f"{recording}&with={other}&view={start - 9.9:.2f}-{start + 0.1:.2f}")
            wait("noise is suggested", lambda: browser.all(".region:not([hidden])"))
            page.rest()
            found = page.overflow()
            assert not found, f"at {width} x {height}: {found}"
        browser.size(1280, 800)
        page.open(recording)
        notes = os.path.join(self.folder, "notes.pdf")
        with open(notes, "w") as file:
            file.write("These are words. " * 20)
        page.choose(notes)
        wait("what is no recording is refused", lambda: "notes.pdf: This is not a sound or video file that can be read." in page.toast())
        assert browser.text(".toast.bad [data-part=action]") == "Which files can be read"
        assert browser.box(".toast.bad [data-part=action]")["height"] < 50, "the button beside a long message keeps its width"
        assert browser.box(".toast.bad")["height"] < 130, "and the message leaves room for the page"
        empty = os.path.join(self.folder, "empty.wav")
        open(empty, "w").close()
        page.choose(empty)
        wait("so is an empty file", lambda: "empty.wav: This file is empty." in page.toast())
        self.check_console(415, 422)

    def every_language_has_every_text(self):
        languages.check_texts(self.browser, self.service)

    def small_screens_keep_the_waveform_and_what_to_do_with_it_in_view(self):
        browser, page = self.browser, self.page
        talk = self.id("talk.wav")
        for width, height in ((844, 390), (932, 430), (1024, 600), (390, 844), (320, 640)):
            browser.size(width, height, ratio=2, touch=width != 1024)
            page.open(talk)
            share = page.seen("#wave") / height
            assert share >= 0.4, f"at {width} x {height} the waveform has {share:.0%} of the height"
            for selector in ("#play", "#preview", "#clean", "#settings"):
                assert page.seen(selector) > 28, f"at {width} x {height} {selector} is covered"
            assert not browser.shown("#cleaning") or page.seen("#cleaning") == 0
            browser.click("#settings")
            wait("the settings come out", lambda: page.seen("#strength-natural + span") > 20)
            assert browser.run("return document.querySelector('#settings').ariaExpanded") == "true"
            browser.keys(ESCAPE)
            wait("and go", lambda: not page.seen("#cleaning"))
            assert page.focused() == "settings"
        browser.click("#display-menu")
        browser.click("#show-keys")
        wait("the list of keys begins at its top", lambda: page.seen("#close-keys") > 20)
        assert browser.run("return document.querySelector('#keys').scrollTop") == 0
        browser.keys(ESCAPE)
        browser.drag(page.point(0.5, 0.8), page.point(0.5, 0.1), kind="touch")
        wait("a finger upward scrolls", lambda: browser.run("return document.querySelector('#editor').scrollTop") > 20)
        assert page.window() is None and page.field("mark") is None
        browser.size(1440, 900)

    def fingers_have_room(self):
        browser, page = self.browser, self.page
        cleaned = self.id("talk (Natural).wav")
        for width, height in ((390, 844), (844, 390)):
            browser.size(width, height, ratio=2, touch=True)
            page.open(f"{cleaned}&view=0-20&mark=6-9&noise=0.2-1.2")
            wait("noise is suggested", lambda: browser.all(".suggestion"))
            wait("the card is there", lambda: browser.shown("#result"))
            for button in (None, "#settings", "#menu", "#label-menu", "#display-menu", "#selection-save"):
                if button:
                    page.press(button)
                    if button == "#selection-save":
                        wait("the dialog opens", lambda: browser.shown("#excerpt"))
                    page.settle()
                found = browser.run(SMALL)
                assert not found, f"at {width} x {height}, after {button}: {found}"
                browser.run("document.querySelector('dialog[open]')?.close(); document.querySelector(':popover-open')?.hidePopover()")
                browser.run("document.querySelector('#scrim').click()")
                page.settle()
        browser.size(1440, 900)

    def the_readers_text_size_counts(self):
        browser, page = self.browser, self.page
        browser.devtools("Page.setFontSizes", fontSizes={"standard": 32})
        page.open(f"{self.id('talk (Natural).wav')}&view=0-20&mark=6-9")
        assert browser.run("return getComputedStyle(document.documentElement).fontSize") == "28px"
        page.rest()
        browser.screenshot(os.path.join(self.pictures, "1440 x 900 with large text.png"))
        found = page.overflow()
        browser.devtools("Page.setFontSizes", fontSizes={"standard": 16})
        assert not found, found

    def nothing_moves_while_a_recording_is_opened(self):
        browser, page = self.browser, self.page
        with browser.preload("""{
          const ask = window.fetch;
          window.fetch = async (path, ...rest) => {
            if (/regions|spectrum|labels|jobs|loudness/.test(path)) await new Promise(done => setTimeout(done, 300));
            return ask(path, ...rest);
          };
          window.shift = 0;
          new PerformanceObserver(list => { for (const entry of list.getEntries()) window.shift += entry.value; }).observe({ type: "layout-shift", buffered: true });
        }"""):
            page.open(f"{self.id('talk (Natural).wav')}&view=0-20")
        wait("all is there", lambda: browser.all(".suggestion") and "dBFS" in browser.text("#result-figures"))
        page.rest()
        shift = browser.run("return shift")
        assert shift <= 0.02, shift
        self.figures.append(f"layout shift while a recording is opened: {shift:.3f}")

    def every_size_can_do_the_whole_in_light_and_dark(self):
        """The short story at each size: play, select, mark noise, choose a strength, preview, and find the list."""
        browser, page = self.browser, self.page
        talk = self.id("talk.wav")
        for width, height, ratio in ((390, 844, 2), (844, 390, 2), (1024, 600, 1), (1440, 900, 1), (1920, 1080, 2)):
            is_phone = 390 in (width, height)
            browser.size(width, height, ratio=ratio, touch=is_phone)
            for is_dark in (False, True):
                browser.dark(is_dark)
                place = f"{width * ratio} x {height * ratio} {'dark' if is_dark else 'light'}"
                page.open(f"{talk}&view=0-29")
                browser.click("#play")
                wait(f"{place}: it plays", lambda: page.is_playing() and page.playhead() > 0.1)
                browser.click("#play")
                browser.drag(page.point(0.01), page.point(0.04), kind="touch" if is_phone else "mouse", hold=LONG_PRESS if is_phone else 0)
                page.press("#selection-noise")
                page.rest()
                noise = page.field("noise")
                assert noise and noise[0] < 1.2 and page.field("mark") is None, (place, noise)
                if browser.shown("#settings"):
                    browser.click("#settings")
                    wait(f"{place}: the settings come out", lambda: page.seen("#close-settings") > 20)
                    page.settle()
                browser.click("#cleaning .choice label:nth-child(3)")
                assert browser.value("#reduction") == "25", place
                if browser.shown("#settings"):
                    browser.keys(ESCAPE)
                    wait(f"{place}: the settings go", lambda: not page.seen("#cleaning"))
                browser.click("#preview")
                wait(f"{place}: the preview plays", lambda: page.is_playing() and page.voice() == "cleaned")
                browser.click("#play")
                if browser.shown("#menu"):
                    browser.click("#menu")
                    wait(f"{place}: the list comes out", lambda: browser.box("#library")["x"] >= 0)
                    browser.keys(ESCAPE)
                wait(f"{place}: the waveform has its part of the height", lambda: page.seen("#wave") >= 0.4 * height)
                assert browser.run("return document.documentElement.scrollWidth <= innerWidth"), place
                page.open(f"{talk}&view=0-29&mark=20-26&noise=0.2-1.2")
                page.rest()
                browser.screenshot(os.path.join(self.pictures, f"{place}.png"))

    def every_language_has_room_at_any_size(self):
        self.browser.dark(False)
        languages.check_room(self.browser, self.page, self.service.clean(self.upload("room.wav", 30)), self.folder, self.pictures)
