"""The whole story in a real browser: from a dropped file to the cleaned one, by mouse, wheel, touch and keys."""

import os
import tempfile
import time

from material import speech_like, write_wav
from page import DELETE, DOWN, END, ENTER, ESCAPE, F2, HOME, LEFT, RIGHT, SHIFT, TAB, Page
from webdriver import wait

RTL_NAME = "مقابلة 🎙️.wav"


class Story:
    """Steps in the order in which a person takes them; each leaves the page as the next expects it."""

    def __init__(self, browser, service, folder):
        self.browser, self.service, self.folder = browser, service, folder
        self.page = Page(browser, service.address)

    def steps(self):
        return [
            self.the_page_is_served_with_a_strict_policy,
            self.an_empty_service_invites_to_drop_files,
            self.dropped_files_are_uploaded_and_drawn,
            self.the_wheel_zooms_around_the_pointer_down_to_samples,
            self.keys_move_and_zoom,
            self.a_drag_selects_and_handles_and_typed_times_change_it,
            self.a_suggested_region_is_taken_with_one_click,
            self.the_variants_are_drawn_and_one_is_taken,
            self.the_preview_plays_and_voices_switch_without_a_gap,
            self.cancelling_takes_the_result_away,
            self.cleaning_draws_the_result_over_the_original,
            self.layers_are_hidden_and_soloed,
            self.the_cleaned_recording_plays_and_loops,
            self.a_reload_keeps_the_place,
            self.recordings_are_searched_renamed_and_deleted_with_undo,
            self.names_of_any_script_are_shown,
            self.fingers_move_pinch_and_select_on_a_small_screen,
            self.everything_has_a_name_for_a_screen_reader,
            self.the_keyboard_reaches_everything,
            self.text_is_readable_in_light_and_dark,
            self.a_service_that_was_away_is_found_again,
        ]

    def the_page_is_served_with_a_strict_policy(self):
        if not self.service.binary:
            return
        _, fields, _ = self.service.request("GET", "/")
        assert "script-src 'self';" in fields["Content-Security-Policy"] and "unsafe" not in fields["Content-Security-Policy"]
        status, fields, body = self.service.request("GET", "/viewer/main.js", fields={"Accept-Encoding": "gzip"})
        assert (status, fields["Content-Encoding"]) == (200, "gzip") and fields["Content-Type"].startswith("text/javascript")
        status, _, body = self.service.request("GET", "/viewer/main.js", fields={"If-None-Match": fields["ETag"]})
        assert (status, body) == (304, b"")
        assert self.service.request("GET", "/viewer/nothing.js")[0] == 404

    def an_empty_service_invites_to_drop_files(self):
        self.page.open()
        assert self.browser.shown("#welcome") and not self.browser.shown("#document")
        wait("the list says that it is empty", lambda: self.browser.shown("#list-empty"))

    def dropped_files_are_uploaded_and_drawn(self):
        block = speech_like(32, 44100, seed=1)
        first = write_wav(os.path.join(self.folder, "first.wav"), block[:44100 * 8], 44100)
        # Sixteen minutes of stereo, so that it takes a moment to read.
        talk = write_wav(os.path.join(self.folder, "talk.wav"), block, 44100, channels=2, repeats=30)
        self.page.drop([first, talk])
        wait("both are listed", lambda: self.page.names() == ["talk.wav", "first.wav"], 60)
        wait("the last one is opened", lambda: self.browser.text("#name") == "talk.wav")
        self.page.wait_for_waveform()
        wait("the waveform reaches the end", lambda: self.page.reach() > 0.98)
        assert self.page.ink("#overview-canvas") > 1000 and self.page.ink("#ruler") > 100
        assert "talk.wav" in self.browser.run("return document.title")

    def the_wheel_zooms_around_the_pointer_down_to_samples(self):
        point = self.page.point(0.25)
        self.browser.wheel(point, y=-100, count=4)
        start, end = self.page.window()
        whole = 960
        assert end - start < whole * 0.5, (start, end)
        assert abs((start + (end - start) * 0.25) - whole * 0.25) < 1, "the instant under the pointer stays"
        self.browser.wheel(point, y=-120, count=45)
        start, end = self.page.window()
        assert (end - start) * 44100 < 25, "down to single samples"
        wait("samples are drawn", lambda: self.page.ink("#waves") > 200)
        self.browser.wheel(point, y=120, count=60)
        assert self.page.window() is None, "and back to the whole"

    def keys_move_and_zoom(self):
        self.browser.click("#wave")
        self.browser.keys("+", "+", "+", "+")
        start, end = self.page.window()
        self.browser.keys(RIGHT)
        moved = self.page.window()
        assert moved[0] > start and abs((moved[1] - moved[0]) - (end - start)) < 1e-3
        self.browser.keys(END)
        assert abs(self.page.window()[1] - 960) < 0.01
        self.browser.keys(HOME)
        assert self.page.window()[0] == 0
        self.browser.keys("0")
        assert self.page.window() is None

    def a_drag_selects_and_handles_and_typed_times_change_it(self):
        browser = self.browser
        browser.drag(self.page.point(0.2), self.page.point(0.4))
        self.page.window()
        start, end = self.page.field("mark")
        assert abs(start - 0.2 * 960) < 2 and abs(end - 0.4 * 960) < 2, (start, end)
        handle = browser.box("#handle-end")
        middle = (handle["x"] + handle["width"] / 2, handle["y"] + handle["height"] / 2)
        browser.drag(middle, (middle[0] + 100, middle[1]))
        self.page.window()
        assert self.page.field("mark")[1] > end + 10
        for field, text in (("#select-from", "0:10"), ("#select-to", "0:22.5")):
            browser.run("document.querySelector(arguments[0]).select()", field)
            browser.type(field, text + ENTER)
        self.page.window()
        assert self.page.field("mark") == (10, 22.5)
        assert browser.value("#select-length") == "0:12.500"
        browser.run("document.querySelector('#handle-start').focus()")
        browser.keys(RIGHT)
        self.page.window()
        assert self.page.field("mark")[0] > 10
        browser.run("document.querySelector('#wave').focus()")
        browser.keys("z")
        start, end = self.page.window()
        assert 8 < start < 13 and 22 < end < 24.5, (start, end)

    def a_suggested_region_is_taken_with_one_click(self):
        wait("noise is suggested", lambda: self.browser.all("#suggestions button"), 60)
        self.browser.keys("0")
        self.browser.click("#suggestions button")
        self.page.window()
        noise = self.page.field("noise")
        # The hiss is alone in the first 1.4 seconds of every four.
        assert noise[0] % 4 < 1.5 and noise[1] - noise[0] < 1.6, noise
        assert self.browser.shown("#noise-times") and self.browser.shown("#noise-band")

    def the_variants_are_drawn_and_one_is_taken(self):
        self.browser.run("document.querySelector('#wave').focus()")
        self.browser.keys("z")
        wait("four small waveforms", lambda: all(
            self.page.ink(f"#variant-list > :nth-child({k}) canvas") > 100 for k in (1, 2, 3, 4)), 60)
        self.browser.click("#variant-list > :nth-child(3)")
        assert self.browser.value("#reduction") == "25"
        assert self.browser.run("return document.querySelector('#strength-strong').checked")

    def the_preview_plays_and_voices_switch_without_a_gap(self):
        self.browser.keys(ESCAPE)
        began = time.monotonic()
        self.browser.click("#preview")
        wait("the preview plays", lambda: self.page.is_playing() and self.page.playhead() > 0)
        self.preview_seconds = time.monotonic() - began
        assert self.page.voice() == "cleaned"
        before = self.page.playhead()
        for key, voice in (("1", "original"), ("3", "residue"), ("2", "cleaned")):
            self.browser.keys(key)
            assert self.page.voice() == voice and self.page.is_playing()
        assert 0 <= self.page.playhead() - before < 5, "it goes on where it was"
        self.browser.keys(" ")
        wait("space stops it", lambda: not self.page.is_playing())

    def cancelling_takes_the_result_away(self):
        self.browser.keys("0")
        self.browser.click("#clean")
        # In one go: the job may be quicker than two commands.
        wait("it can be cancelled", lambda: self.browser.run("""
          const button = document.querySelector("#cancel-job");
          if (button.checkVisibility()) button.click();
          return button.checkVisibility();"""))
        wait("the result is gone", lambda: not self.browser.shown("#job"))
        wait("the list has forgotten it", lambda: len(self.page.names()) == 2)
        assert not self.browser.all("#layers [data-role=cleaned]")

    def cleaning_draws_the_result_over_the_original(self):
        self.browser.click("#clean")
        wait("the result grows in the picture", lambda: self.page.greenish() > 0)
        wait("the noise is removed", lambda: "removed" in self.page.toast(), 120)
        wait("the result is listed", lambda: len(self.page.names()) == 3)
        wait("all of it is drawn", lambda: self.page.greenish() > 3000)

    def layers_are_hidden_and_soloed(self):
        self.browser.click("#layers [data-role=cleaned] [data-part=show]")
        wait("the cleaned one is hidden", lambda: self.page.greenish() == 0)
        self.browser.click("#layers [data-role=cleaned] [data-part=show]")
        wait("the cleaned one is back", lambda: self.page.greenish() > 3000)
        both = self.page.ink("#waves")
        self.browser.click("#layers [data-role=cleaned] [data-part=solo]")
        wait("the original is hidden", lambda: self.page.ink("#waves") < both)
        self.browser.click("#layers [data-role=cleaned] [data-part=solo]")

    def the_cleaned_recording_plays_and_loops(self):
        browser = self.browser
        assert self.page.voice() == "cleaned"
        for field, text in (("#select-from", "0:06"), ("#select-to", "0:06.8")):
            browser.run("document.querySelector(arguments[0]).select()", field)
            browser.type(field, text + ENTER)
        browser.run("document.querySelector('#wave').focus()")
        browser.keys("l", " ")
        wait("it plays from the selection's start", lambda: 6 < self.page.playhead() < 6.8)
        heard = [browser.run("""return new Promise(done => {
          const places = [], head = document.querySelector("#playhead-time");
          const look = () => { places.push(head.textContent); places.length < 160 ? requestAnimationFrame(look) : done(places); };
          look();
        })""")]
        places = [float(text.split(":")[1]) for text in heard[0]]
        assert any(b < a for a, b in zip(places, places[1:])), "it goes round"
        assert all(5.9 < place < 7.2 for place in places), places
        browser.keys("1")
        assert self.page.is_playing() and self.page.voice() == "original"
        browser.keys(" ", "l", ESCAPE)

    def a_reload_keeps_the_place(self):
        self.browser.wheel(self.page.point(0.5), y=-100, count=5)
        window, noise = self.page.window(), self.page.field("noise")
        name = self.browser.text("#name")
        self.browser.call("POST", "/refresh", {})
        self.page.wait_for_waveform()
        assert self.browser.text("#name") == name
        assert self.page.window() == window and self.page.field("noise") == noise

    def recordings_are_searched_renamed_and_deleted_with_undo(self):
        browser, page = self.browser, self.page
        browser.type("#search", "FIRST")
        wait("the list is searched", lambda: page.names() == ["first.wav"])
        browser.run("document.querySelector('#list .open').focus()")
        browser.keys(F2)
        browser.keys(*"second", ENTER)
        wait("it is renamed", lambda: page.names() == ["second.wav"])
        browser.run("const s = document.querySelector('#search'); s.value = ''; s.dispatchEvent(new Event('input'))")
        wait("all are listed", lambda: len(page.names()) == 3)
        browser.run("document.querySelector('#list li:last-child .open').focus()")
        browser.keys(DELETE)
        wait("it is gone from the list", lambda: "second.wav" not in page.names())
        browser.click(".toast [data-part=action]")
        wait("it is back", lambda: "second.wav" in page.names())
        browser.run("document.querySelector('#list li:last-child .open').focus()")
        browser.keys(DELETE)
        browser.click(".toast [data-part=close]")
        wait("the service has deleted it", lambda: len(self.service.json("/v1/recordings")["recordings"]) == 2)

    def names_of_any_script_are_shown(self):
        path = write_wav(os.path.join(self.folder, RTL_NAME), speech_like(5, 16000, seed=3), 16000)
        browser = self.browser
        browser.call("POST", f"/element/{browser.find('#file')}/value", {"text": path})
        wait("it is opened", lambda: browser.text("#name") == RTL_NAME)
        self.page.wait_for_waveform()
        assert browser.run("return getComputedStyle(document.querySelector('#name')).direction") == "rtl"

    def fingers_move_pinch_and_select_on_a_small_screen(self):
        browser, page = self.browser, self.page
        talk = next(r for r in self.service.json("/v1/recordings")["recordings"] if r["name"] == "talk.wav")
        browser.size(320, 640, ratio=2, touch=True)
        page.open(talk["id"])
        assert browser.run("return document.documentElement.scrollWidth") <= 320, "nothing is cut off at the side"
        middle = page.point(0.5)
        browser.pinch(middle, 25, 120)
        start, end = page.window()
        assert end - start < 960 / 3, (start, end)
        browser.drag(middle, page.point(0.1), kind="touch")
        moved = page.window()
        assert moved[0] > start + 5
        browser.drag(page.point(0.3), page.point(0.7), kind="touch", hold=600)
        page.window()
        assert page.field("mark") is not None
        browser.click("#menu")
        wait("the list comes out", lambda: browser.box("#library")["x"] >= 0)
        browser.size(1440, 900)
        page.open(talk["id"])

    def everything_has_a_name_for_a_screen_reader(self):
        self.browser.devtools("Accessibility.enable")
        nodes = self.browser.devtools("Accessibility.getFullAXTree")["nodes"]
        controls = {"button", "link", "slider", "textbox", "searchbox", "combobox", "radio", "checkbox", "scrollbar",
                    "progressbar", "spinbutton", "toolbar", "radiogroup"}
        unnamed = []
        for node in nodes:
            role = node.get("role", {}).get("value")
            if not node.get("ignored") and role in controls and not node.get("name", {}).get("value", "").strip():
                found = self.browser.devtools("DOM.describeNode", backendNodeId=node["backendDOMNodeId"])["node"]
                unnamed.append((role, found["nodeName"], found.get("attributes")))
        assert len(nodes) > 50 and not unnamed, unnamed

    def the_keyboard_reaches_everything(self):
        self.browser.run("document.activeElement.blur(); scrollTo(0, 0)")
        reached = set()
        for _ in range(90):
            self.browser.keys(TAB)
            reached.add(self.browser.run("return document.activeElement.id || document.activeElement.dataset.part || document.activeElement.className"))
        for wanted in ("search", "add", "open", "overview-window", "wave", "zoom-in", "strength-natural", "reduction",
                       "sensitivity", "method", "preview", "clean", "play", "loop", "select-from"):
            assert wanted in reached or wanted == "strength-natural" and any("strength" in r for r in reached), wanted

    def text_is_readable_in_light_and_dark(self):
        for is_dark in (False, True):
            self.browser.dark(is_dark)
            contrasts = self.browser.run("""
              const style = getComputedStyle(document.documentElement);
              const light = name => {
                const [r, g, b] = style.getPropertyValue(name).trim().match(/\\w\\w/g).map(h => parseInt(h, 16) / 255)
                  .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
                return 0.2126 * r + 0.7152 * g + 0.0722 * b;
              };
              const contrast = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
              return [["--ink", "--page"], ["--ink", "--panel"], ["--quiet", "--panel"], ["--quiet", "--page"],
                ["--on-accent", "--accent"], ["--accent", "--panel"], ["--noise", "--raised"], ["--page", "--noise"],
                ["--page", "--bad"]].map(([a, b]) => [a, b, contrast(a, b)]);""")
            poor = [pair for pair in contrasts if pair[2] < 4.5]
            assert not poor, poor
        self.browser.dark(False)

    def a_service_that_was_away_is_found_again(self):
        if not self.service.binary:
            return
        self.check_console()
        self.service.stop()
        self.browser.run("document.querySelector('#wave').focus()")
        self.browser.keys("+", "+", "+", "+", "+", "+")
        wait("the page says so", lambda: self.browser.shown("#away"))
        self.service.start()
        wait("the page finds it again", lambda: not self.browser.shown("#away"))
        self.page.wait_for_waveform()
        # The lost requests are the browser's own complaints.
        self.browser.console()

    def check_console(self):
        complaints = [entry["message"] for entry in self.browser.console()]
        assert not complaints, complaints


def run(browser, service, pictures=None, only=None):
    """Runs the story; returns how many steps failed."""
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        story = Story(browser, service, folder)
        for step in story.steps():
            name = step.__name__.replace("_", " ")
            if only and only not in name:
                continue
            try:
                step()
                story.check_console()
                print(f"  ok      {name}", flush=True)
            except Exception as error:
                failures += 1
                print(f"  FAILED  {name}: {type(error).__name__}: {error}", flush=True)
                if pictures:
                    browser.screenshot(os.path.join(pictures, f"failed {name}.png"))
        if hasattr(story, "preview_seconds"):
            print(f"  preview heard after {story.preview_seconds:.2f} s", flush=True)
    return failures
