import re
import signal

import budget
import pictures
from chapter import Chapter
from page import COPY, ESCAPE, RIGHT
from webdriver import wait

# Records, while files are uploaded and read, how far the waveform has grown and what screen readers are told.
WATCH = """
const watched = window.watched = { reached: [], said: [] };
new MutationObserver(() => watched.said.push(document.querySelector("#live").textContent))
  .observe(document.querySelector("#live"), { childList: true, characterData: true, subtree: true });
const canvas = document.querySelector("#waves");
let [name, before] = ["", -1];
const look = () => {
  if (document.querySelector("#name").textContent !== name) {
    name = document.querySelector("#name").textContent;
    before = watched.reached.at(-1);
    watched.reached = [];
  }
  if (name && canvas.width) {
    const pen = new OffscreenCanvas(canvas.width, 1).getContext("2d", { willReadFrequently: true });
    pen.drawImage(canvas, 0, Math.round(canvas.height / 2) + 4, canvas.width, 1, 0, 0, canvas.width, 1);
    const { data } = pen.getImageData(0, 0, canvas.width, 1);
    let last = canvas.width - 1;
    while (last > 0 && !data[4 * last + 3]) last--;
    // Until it is drawn again, it shows the recording from before.
    if (watched.reached.length || last / canvas.width !== before) watched.reached.push(last / canvas.width);
  }
  if (name !== "talk.wav" || !(watched.reached.at(-1) >= 0.97)) requestAnimationFrame(look);
};
look();
"""


# Whether the middle pixel of a small picture is drawn as noise, which is red, or as a cleaned waveform, which is green.
HUE = COPY + """
  const { data, width, height } = copy(document.querySelector(arguments[0])), at = 4 * (Math.floor(height / 2) * width + Math.floor(width / 2));
  return data[at] > data[at + 1] ? "noise" : "cleaned";"""


class AFileIsDroppedAndCleaned(Chapter):
    def the_page_is_small_and_has_a_strict_policy(self):
        _, fields, _ = self.service.request("GET", "/")
        assert "script-src 'self';" in fields["Content-Security-Policy"] and "unsafe" not in fields["Content-Security-Policy"]
        kilobytes = budget.page_bytes(self.service) / 1000
        assert kilobytes <= budget.PAGE_KILOBYTES, kilobytes

    def an_empty_service_invites_to_drop_files(self):
        assert self.browser.shown("#welcome") and not self.browser.shown("#document")
        wait("the list says that it is empty", lambda: self.browser.shown("#list-empty"))
        for is_dark in (True, False):
            self.browser.dark(is_dark)
            pictures.compare(self.browser, f"welcome-{'dark' if is_dark else 'light'}", "body", most=3)

    def dropped_files_are_uploaded_and_drawn(self):
        # Sixteen minutes.
        files = [self.sound("first.wav", 8, 44100, seed=1), self.sound("talk.wav", 32, seed=1, repeats=30)]
        self.browser.run(WATCH)
        with self.service.holding(b"waveform") as step:
            self.page.drop(files)
            wait("both are listed", lambda: self.page.names() == ["talk.wav", "first.wav"])
            wait("the last one is opened", lambda: self.browser.text("#name") == "talk.wav")
            wait("a part of it is drawn", lambda: step() or self.page.reach() > 0.1)
            # Another worker begins again, and has less for a while.
            step(signal.SIGKILL)
            wait("more of it is drawn", lambda: step() or self.page.reach() > 0.5)
        wait("the waveform reaches the end", lambda: self.page.reach() > 0.98)
        wait("it is watched to the end", lambda: self.browser.run("return watched.reached.at(-1) >= 0.97"))
        assert self.page.ink("#overview-canvas") > 1000 and self.page.ink("#ruler") > 100
        assert "talk.wav" in self.browser.run("return document.title")
        reached, said = self.browser.run("return [watched.reached, watched.said]")
        assert any(0.02 < place < 0.9 for place in reached), f"it appears from left to right: {reached[:40]}"
        assert reached == sorted(reached), f"and never goes back: {reached}"
        assert any("Uploading" in text and "%" in text for text in said), said

    def a_drag_selects_and_handles_and_typed_times_change_it(self):
        browser, page = self.browser, self.page
        browser.run("document.activeElement.blur()")
        browser.drag(page.point(0.2), page.point(0.4))
        page.rest()
        assert page.focused() == "wave", "the keys are the waveform's"
        assert not browser.run("return document.activeElement.matches(':focus-visible')"), "without a ring around it"
        start, end = page.field("mark")
        assert abs(start - 0.2 * 960) < 2 and abs(end - 0.4 * 960) < 2, (start, end)
        handle = browser.box("#handle-end")
        middle = (handle["x"] + handle["width"] / 2, handle["y"] + handle["height"] / 2)
        browser.drag(middle, (middle[0] + 100, middle[1]))
        page.rest()
        assert page.field("mark")[1] > end + 10
        browser.keys(" ")
        wait("space plays what was just changed", page.is_playing)
        browser.keys(" ")
        wait("and stops it", lambda: not page.is_playing())
        self.select("0:10", "0:22.5")
        page.rest()
        assert page.field("mark") == (10, 22.5)
        assert browser.value("#select-length") == "0:12.500"
        page.focus("#handle-start")
        browser.keys(RIGHT)
        page.rest()
        assert page.field("mark")[0] > 10
        page.focus()
        browser.keys("z")
        start, end = page.window()
        assert 8 < start < 13 and 22 < end < 24.5, (start, end)

    def a_suggested_region_is_taken_with_one_click(self):
        wait("noise is suggested", lambda: self.browser.all("#suggestions button"))
        self.browser.keys("0")
        self.browser.click("#suggestions button")
        self.page.rest()
        noise = self.page.field("noise")
        # Only the first 1.4 seconds of every four contain hiss alone.
        assert noise[0] % 4 < 1.5 and noise[1] - noise[0] < 1.6, noise
        assert self.browser.shown("#noise-times") and self.browser.shown("#noise-band")

    def a_suggestion_shows_that_it_is_chosen_and_is_heard(self):
        browser, page = self.browser, self.page
        start = browser.run("return Number(document.querySelector('.region').dataset.start)")
        assert abs(page.playhead() - start) < 0.01, "the playhead is there"
        pressed = "return [...document.querySelectorAll('%s')].map(button => button.ariaPressed === 'true')"
        for buttons in ("#regions button", "#suggestions [data-part=use]"):
            assert browser.run(pressed % buttons) == [True, False, False, False, False], buttons
        browser.click("#suggestions .suggestion:nth-child(2) [data-part=play]")
        second = browser.run("return Number(document.querySelector('.region:nth-child(2)').dataset.start)")
        wait("the second one is heard", lambda: page.is_playing() and second <= page.playhead() < second + 3)
        wait("to its end", lambda: not page.is_playing())
        assert second < page.playhead() < second + 3 and page.field("noise")[0] == round(start, 2), "and the first one stays chosen"
        browser.click("#suggestions .suggestion:first-child [data-part=use]")
        page.rest()
        assert page.field("noise") is None, "a second click gives it up"
        browser.click("#suggestions .suggestion:first-child [data-part=use]")
        browser.keys(" ")
        wait("Space plays from there", lambda: page.is_playing() and start <= page.playhead() < start + 2)
        browser.keys(" ")

    def the_variants_are_drawn_and_one_is_taken(self):
        self.select("0:10", "0:22.5")
        self.browser.keys("z")
        wait("four small waveforms", lambda: all(
            self.page.ink(f"#variant-list > :nth-child({k} of :not([hidden])) canvas") > 100 for k in (1, 2, 3, 4)))
        gentle, natural, strong, noise = (f"#variant-list > :nth-child({k} of :not([hidden])) canvas" for k in (1, 2, 3, 4))
        ink = self.page.ink
        wait("the quiet parts differ", lambda: ink(gentle) > 1.02 * ink(natural) and ink(natural) > 1.02 * ink(strong))
        assert self.browser.run(HUE, noise) == "noise" and self.browser.run(HUE, strong) == "cleaned"
        self.browser.click("#variant-list > :nth-child(3)")
        assert self.browser.value("#reduction") == "25"
        assert self.browser.run("return document.querySelector('#strength-strong').checked")

    def a_preview_shows_what_it_changes(self):
        browser, page = self.browser, self.page
        assert page.tinted(1) == 0
        browser.click("#preview")
        wait("the preview is drawn over the original", lambda: page.tinted(1) > 1000)
        wait("it plays", page.is_playing)
        browser.keys("3")
        wait("the noise alone is drawn in its own color", lambda: page.tinted(1) == 0 and page.ink("#waves") > 1000)
        browser.keys("2")
        wait("and the cleaned sound again", lambda: page.tinted(1) > 1000)
        browser.keys(" ")
        browser.click("#cleaning .choice label:nth-child(1)")
        wait("with other settings, it is no longer shown", lambda: page.tinted(1) == 0)

    def cancelling_takes_the_result_away(self):
        browser, page = self.browser, self.page
        browser.click("#cleaning .choice label:nth-child(2)")
        # The list is read while the result is made; its answer comes when the result is gone, and no event has told so.
        with browser.preload("{ const { fetch } = window; window.fetch = (path, ...rest) => path === 'v1/events' ? new Promise(() => {}) : fetch(path, ...rest); }"):
            self.reload()
        self.hold("String(path).includes('q=talk')")
        with self.service.holding(b"denoise"):
            browser.click("#clean")
            wait("it can be cancelled", lambda: browser.shown("#cancel-job"))
            browser.type("#search", "talk")
            self.wait_for_held()
            browser.click("#cancel-job")
        wait("the result is gone", lambda: not browser.shown("#job"))
        self.let_pass()
        wait("the held answer is shown", lambda: "first.wav" not in page.names())
        assert page.names() == ["talk.wav"], page.names()
        browser.run("const s = document.querySelector('#search'); s.value = ''; s.dispatchEvent(new Event('input'))")
        wait("all are listed", lambda: page.names() == ["talk.wav", "first.wav"])
        assert not browser.all("#layers [data-role=cleaned]")
        self.reload()

    def cleaning_draws_the_result_over_the_original(self):
        self.page.focus()
        self.browser.keys(ESCAPE, "0")
        self.browser.click("#clean")
        wait("the result grows in the picture", lambda: self.page.tinted(1) > 0)
        wait("the noise is removed", lambda: "removed" in self.page.toast())
        wait("the result is listed", lambda: len(self.page.names()) == 3)
        wait("all of it is drawn", lambda: self.page.tinted(1) > 3000)

    def a_card_tells_what_the_cleaning_did(self):
        browser, page = self.browser, self.page
        wait("the card has figures", lambda: "dBFS" in browser.text("#result-figures"))
        before, after = (float(level.replace("\u2212", "-")) for level in re.findall(r"\u2212?\d+\.\d", browser.text("#result-figures").split("dBFS")[0]))
        assert -60 < before < -30 and before - 20 < after < before - 10, browser.text("#result-figures")
        browser.click("#result-before")
        wait("the original plays", lambda: page.is_playing() and page.voice() == "original")
        browser.click("#result-after")
        assert page.is_playing() and page.voice() == "cleaned"
        browser.keys(" ")
        browser.run("document.querySelector('#result-format').value = 'flac'")
        browser.click("#result-download")
        wait("it is converted", lambda: not browser.run("return document.querySelector('#result-download').matches('.busy')"))
        assert "flac" not in page.toast(), page.toast()
        assert page.names() == ["talk.wav", "talk (Natural).wav", "first.wav"], page.names()
        about = browser.text("#list li:nth-child(2) [data-part=about]")
        assert re.search(r"cleaned, natural, \d\d:\d\d$", about), about
        browser.click("#clean")
        wait("it is said to exist", lambda: "exists already" in page.toast())
        assert len(browser.all("#layers .layer")) == 2 and len(page.names()) == 3
        browser.click("#cleaning .choice label:nth-child(1)")
        self.reload()
        assert browser.value("#reduction") == "12" and browser.run("return document.querySelector('#strength-gentle').checked")
        wait("the card is back", lambda: browser.shown("#result"))

    def layers_are_hidden_and_soloed(self):
        self.browser.click("#layers [data-role=cleaned] [data-part=show]")
        wait("the cleaned one is hidden", lambda: self.page.tinted(1) == 0)
        assert self.browser.shown("#layers [data-role=cleaned] .slash") and not self.browser.shown("#layers [data-role=original] .slash")
        self.browser.click("#layers [data-role=cleaned] [data-part=show]")
        wait("the cleaned one is back", lambda: self.page.tinted(1) > 3000)
        both = self.page.ink("#waves")
        self.browser.click("#layers [data-role=cleaned] [data-part=solo]")
        wait("the original is hidden", lambda: self.page.ink("#waves") < both)
        self.browser.click("#layers [data-role=cleaned] [data-part=solo]")
