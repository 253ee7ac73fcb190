"""The whole story in a real browser: from a dropped file to the cleaned one, with mouse, wheel, touch and keys.

Both browsers walk through it. A step that only Chromium can walk is marked with the reason (`in_chromium`), and Firefox
lists these steps at the end.
"""

import array
import json
import os
import re
import signal
import tempfile
import wave
from urllib.parse import quote

import budget
import languages
import peaks
import pictures
import positions
from material import speech_like, write_media, write_video, write_wav
from page import COPY, DELETE, DOWN, END, ENTER, ESCAPE, F2, HOME, LEFT, RIGHT, SHIFT, TAB, Page, in_chromium
from proxy import Proxy
from sharing import Sharing
from sound import Tap
from uploads import UploadFaults
from webdriver import BrowserStopped, DriverError, wait
from words import Words

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
# Presses a button if it exists, in one command: it may be gone before a second one.
PRESS = """
const button = document.querySelector(arguments[0]), isThere = !!button && button.checkVisibility();
if (isThere) button.click();
return isThere;
"""

# The height of an element's part that is on the screen and not covered, along its middle, in CSS pixels.
SEEN = """
const element = document.querySelector(arguments[0]), box = element.getBoundingClientRect();
let seen = 0;
for (let y = Math.max(0, Math.ceil(box.top)); y < Math.min(innerHeight, box.bottom); y++) {
  const top = document.elementFromPoint(box.left + box.width / 2, y);
  if (top && (element.contains(top) || element.parentElement.control === top || top.contains(element) && top.matches("label"))) seen++;
}
return seen;
"""

# What the page uses if the service has it.
LOUDNESS, TRIM = "/v1/recordings/{id}/loudness", "/v1/recordings/{id}/trim"
PROFILES, EVENTS = "/v1/noise-profiles", "/v1/events"

RTL_NAME = "مقابلة 🎙️.wav"


class Story:
    """The steps in the order in which a person takes them. Each leaves the page as the next one expects it."""

    def __init__(self, browser, service, folder, pictures):
        self.browser, self.service, self.folder, self.pictures = browser, service, folder, pictures
        self.page = Page(browser, service.address)
        self.tap = Tap(browser)

    def steps(self):
        return [
            self.the_page_is_served_with_a_strict_policy,
            self.the_page_is_small,
            self.an_empty_service_invites_to_drop_files,
            self.dropped_files_are_uploaded_and_drawn,
            self.a_file_that_does_not_say_its_length_has_an_estimate,
            self.it_looks_as_it_did,
            self.an_upload_pauses_and_goes_on, self.an_older_answer_lists_no_deleted_recording,
            self.an_upload_outlives_what_proxies_answer,
            self.the_page_works_below_a_path,
            self.peaks_js_reads_what_the_readme_names,
            self.the_list_tells_when_a_recording_is_read,
            self.the_wheel_zooms_around_the_pointer_down_to_samples,
            self.keys_move_and_zoom,
            self.the_overview_moves_with_the_view,
            self.handles_change_places_when_one_passes_the_other,
            self.marks_and_moves_are_undone,
            self.zooming_keeps_the_selection_and_the_ruler_moves_the_playhead,
            self.marking_noise_ends_the_selection_and_the_preview_plays_what_its_button_says,
            self.a_drag_selects_and_handles_and_typed_times_change_it,
            self.a_suggested_region_is_taken_with_one_click,
            self.the_variants_are_drawn_and_one_is_taken,
            self.the_preview_plays_and_voices_switch_without_a_gap,
            self.cancelling_takes_the_result_away,
            self.cleaning_draws_the_result_over_the_original,
            self.a_card_tells_what_the_cleaning_did,
            self.layers_are_hidden_and_soloed,
            self.the_cleaned_recording_plays_and_loops,
            self.a_second_cleaning_stays_beside_the_first,
            self.finished_results_are_heard_in_step_to_the_sample,
            self.more_channels_than_loudspeakers_are_heard_as_their_mean,
            self.the_view_follows_the_playhead,
            self.a_reload_keeps_the_place,
            self.recordings_are_searched_renamed_and_deleted_with_undo,
            self.a_message_comes_before_a_dialog_that_opens,
            self.names_of_any_script_are_shown,
            self.nothing_is_cut_off_or_covered_at_any_size,
            self.every_language_has_every_text,
            self.every_language_has_room_at_any_size,
            self.a_recording_that_cannot_be_read_says_why_and_what_to_do,
            self.the_list_loads_while_it_is_scrolled,
            self.a_video_is_seen_in_step_with_its_sound,
            self.what_the_browser_cannot_read_is_played_all_the_same,
            self.sound_is_where_the_browser_has_it,
            *Words(self).steps(),
            self.fingers_move_pinch_and_select_on_a_small_screen,
            self.small_screens_keep_the_waveform_and_what_to_do_with_it_in_view,
            self.a_phone_shows_what_it_sends,
            self.every_size_can_do_the_whole_in_light_and_dark,
            self.everything_has_a_name_for_a_screen_reader,
            self.axe_finds_nothing,
            self.the_keyboard_reaches_everything,
            self.text_is_readable_in_light_and_dark,
            self.changes_made_elsewhere_are_shown,
            self.a_selection_is_saved_as_a_file_and_as_a_recording,
            self.noise_is_kept_under_a_name_and_used_again,
            self.the_spectrum_shows_what_is_removed,
            self.a_result_gets_the_loudness_that_was_chosen,
            *(Sharing(self).steps() if self.service.binary else ()),
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

    def the_page_is_small(self):
        if self.service.binary:
            kilobytes = budget.page_bytes(self.service) / 1000
            assert kilobytes <= budget.PAGE_KILOBYTES, kilobytes

    def an_empty_service_invites_to_drop_files(self):
        self.page.open()
        assert self.browser.shown("#welcome") and not self.browser.shown("#document")
        wait("the list says that it is empty", lambda: self.browser.shown("#list-empty"))
        for is_dark in (True, False) if self.browser.has_devtools else ():
            self.browser.dark(is_dark)
            pictures.compare(self.browser, f"welcome-{'dark' if is_dark else 'light'}", "body", most=3)

    def dropped_files_are_uploaded_and_drawn(self):
        block = speech_like(32, 44100, seed=1)
        first = write_wav(os.path.join(self.folder, "first.wav"), block[:44100 * 8], 44100)
        # Sixteen minutes of stereo, so that reading takes a moment.
        talk = write_wav(os.path.join(self.folder, "talk.wav"), block, 44100, channels=2, repeats=30)
        self.browser.run(WATCH)
        with self.service.holding(b"waveform") as step:
            self.page.drop([first, talk])
            wait("both are listed", lambda: self.page.names() == ["talk.wav", "first.wav"])
            wait("the last one is opened", lambda: self.browser.text("#name") == "talk.wav")
            wait("a part of it is drawn", lambda: step() or self.page.reach() > 0.1)
            # Another worker begins again, and has less for a while.
            step(signal.SIGKILL)
            wait("more of it is drawn", lambda: step() or self.page.reach() > 0.5)
        self.page.wait_for_waveform()
        wait("the waveform reaches the end", lambda: self.page.reach() > 0.98)
        assert self.page.ink("#overview-canvas") > 1000 and self.page.ink("#ruler") > 100
        assert "talk.wav" in self.browser.run("return document.title")
        reached, said = self.browser.run("return [watched.reached, watched.said]")
        assert any(0.02 < place < 0.9 for place in reached), f"it appears from left to right: {reached[:40]}"
        assert reached == sorted(reached), f"and never goes back: {reached}"
        assert any("Uploading" in text and "%" in text for text in said), said

    def a_file_that_does_not_say_its_length_has_an_estimate(self):
        browser, page = self.browser, self.page
        talk = os.path.join(self.folder, "talk.wav")
        verse = write_media(os.path.join(self.folder, "verse.m4a"), "-t", "60", "-i", talk)
        song = write_media(os.path.join(self.folder, "song.m4a"), "-stream_loop", "15", "-i", verse, "-c", "copy")
        with self.service.holding(b"waveform") as step:
            page.drop([song])
            wait("it is opened", lambda: browser.text("#name") == "song.m4a")
            wait("a part of it is drawn", lambda: step() or page.reach() > 0.02)
            wait("its whole is shown", lambda: " 16:0" in browser.text("#window-text"))
            if self.service.binary:
                state = self.service.json("/v1/recordings")["recordings"][0]["waveform"]["state"]
                assert state == "building", "it is still read"
        wait("the waveform reaches the end", lambda: page.reach() > 0.98)
        browser.click("#list li:nth-child(2) .open")
        wait("the other one is opened", lambda: browser.text("#name") == "talk.wav")
        song = self.service.json("/v1/recordings")["recordings"][0]
        assert song["name"] == "song.m4a" and self.service.request("DELETE", f"/v1/recordings/{song['id']}")[0] == 204
        wait("it is gone", lambda: page.names() == ["talk.wav", "first.wav"])
        wait("the waveform reaches the end", lambda: page.reach() > 0.98)

    @in_chromium("it compares with pictures of Chromium's, light and dark")
    def it_looks_as_it_did(self):
        browser = self.browser
        browser.click("#list li:last-child .open")
        wait("it is opened", lambda: browser.text("#name") == "first.wav")
        wait("the waveform reaches the end", lambda: self.page.reach() > 0.98)
        for is_dark in (True, False):
            browser.dark(is_dark)
            for name, selector in (("waveform", "#waves"), ("overview", "#overview-canvas")):
                pictures.compare(browser, f"{name}-{'dark' if is_dark else 'light'}", selector, most=2)
        browser.click("#list li:first-child .open")
        wait("the other one is opened", lambda: browser.text("#name") == "talk.wav")
        wait("its waveform reaches the end", lambda: self.page.reach() > 0.98)

    @in_chromium("it slows the network down")
    def an_upload_pauses_and_goes_on(self):
        browser = self.browser
        path = write_wav(os.path.join(self.folder, "slow.wav"), speech_like(4, 16000, seed=4), 16000, repeats=40)
        browser.slow(400_000)
        self.page.choose(path)
        wait("it can be paused", lambda: browser.run(PRESS, ".transfer [data-part=pause]"))
        wait("it is paused", lambda: "paused" in browser.text(".transfer"))
        assert not any(name == "slow.wav" for name in self.page.names()), self.page.names()
        browser.slow(None)
        browser.click(".transfer [data-part=pause]")
        wait("it goes on to the end", lambda: self.page.names()[:1] == ["slow.wav"])
        wait("it is opened", lambda: browser.text("#name") == "slow.wav")
        browser.run("document.querySelector('#list .open').focus()")
        browser.keys(DELETE)
        browser.click(".toast [data-part=close]")
        browser.slow(400_000)
        self.page.choose(path)
        wait("it can be cancelled", lambda: browser.run(PRESS, ".transfer [data-part=cancel]"))
        wait("it is gone", lambda: not browser.all(".transfer"))
        browser.slow(None)
        assert self.page.names() == ["talk.wav", "first.wav"], self.page.names()
        browser.click("#list li:first-child .open")
        wait("the other one is opened", lambda: browser.text("#name") == "talk.wav")
        self.page.wait_for_waveform()

    def an_older_answer_lists_no_deleted_recording(self):
        browser, page = self.browser, self.page
        page.open()
        away = self.service.upload(write_wav(os.path.join(self.folder, "away.wav"), speech_like(3, 16000, seed=41), 16000), "away.wav")
        wait("it is listed", lambda: page.names()[:1] == ["away.wav"])
        browser.run("""
          const ask = window.fetch;
          window.fetch = async (path, options) => {
            const answer = await ask(path, options);
            if (String(path).includes("q=away")) await new Promise(done => { window.pass = done; });
            return answer;
          };""")
        browser.type("#search", "away")
        wait("an answer is held", lambda: browser.run("return !!window.pass"))
        self.service.request("DELETE", f"/v1/recordings/{away}")
        wait("it is gone", lambda: page.names() == ["talk.wav", "first.wav"])
        browser.run("pass()")
        wait("the older answer is shown without it", lambda: page.names() == [])
        page.open()

    def an_upload_outlives_what_proxies_answer(self):
        UploadFaults(self.browser, self.service, self.folder).run()
        self.page.open()

    def the_page_works_below_a_path(self):
        # The proxy removes the path, so the service doesn't see it.
        proxy = Proxy(self.service, "/tools/audio")
        page, browser = Page(browser=self.browser, address=proxy.address), self.browser
        path = write_wav(os.path.join(self.folder, "below.wav"), speech_like(3, 16000, seed=9), 16000)
        try:
            page.open()
            page.choose(path)
            wait("it is listed", lambda: page.names()[:1] == ["below.wav"])
            wait("it is opened", lambda: browser.text("#name") == "below.wav")
            page.wait_for_waveform()
            wait("its picture is drawn", lambda: browser.run("return document.querySelector('#list img').naturalWidth > 0"))
            browser.run("document.querySelector('#wave').focus()")
            browser.keys(" ")
            wait("it plays", lambda: page.playhead() > 0.1)
            link = browser.run("return document.querySelector('#layers [data-part=download]').href")
            assert link.startswith(proxy.address + "/v1/recordings/"), link
            assert all(path.startswith("/tools/audio/v1/") for _, path, _ in proxy.seen), proxy.seen
            self.check_console()
        finally:
            browser.open("about:blank")
            proxy.close()
            newest = self.service.json("/v1/recordings")["recordings"][0]
            if newest["name"] == "below.wav":
                self.service.request("DELETE", f"/v1/recordings/{newest['id']}")
        self.page.open()

    @in_chromium("it is about libraries, not about the browser")
    def peaks_js_reads_what_the_readme_names(self):
        with open(os.path.join(os.path.dirname(__file__), "../../README.md"), encoding="utf-8") as file:
            form = re.search(r"`…/(waveform\.dat\?[^`]*)`", file.read())[1]
        stereo = self.service.upload(write_wav(
            os.path.join(self.folder, "stereo.wav"), speech_like(8, 44100, seed=11), 44100, channels=2), "stereo.wav")
        six = self.service.upload(write_wav(
            os.path.join(self.folder, "six.wav"), speech_like(1, 8000, seed=12), 8000, channels=6), "six.wav")
        self.page.open()
        library = peaks.WaveformLibraries(self.browser, stereo)
        read = library.load(form)
        assert (read["channels"], read["bits"], read["rate"], read["scale"]) == (1, 8, 44100, 256), read
        assert read["length"] == -(-8 * 44100 // 256) and -128 <= read["low"] < -10 and 10 < read["high"] <= 127, read
        split = library.load(form + "&channels=split")
        assert split["channels"] == 2 and split["count"] == 2 * read["count"], split
        for other in (form.replace(".dat", ".json"), form.replace(".dat", "")):
            assert library.load(other, "json") == read, other
        # This is why the address holds the whole view.
        assert library.load("waveform.dat?scale=256") == {"refused": "bits"}
        assert library.load("waveform.json?scale=256", "json") == {"refused": "bits"}
        assert library.load("waveform.dat?bits=8&scale=8192") == {"refused": "scale"}
        assert peaks.WaveformLibraries(self.browser, six).load(form)["channels"] == 1
        assert peaks.WaveformLibraries(self.browser, six).load(form + "&channels=split") == {"refused": "channels"}
        for recording in (stereo, six):
            self.service.request("DELETE", f"/v1/recordings/{recording}")
        self.page.open()

    def the_list_tells_when_a_recording_is_read(self):
        browser, page = self.browser, self.page
        page.open()
        wait("the list is there", lambda: page.names() or browser.shown("#list-empty"))
        names = page.names()
        long = write_wav(os.path.join(self.folder, "long.wav"), speech_like(4, 44100, seed=7), 44100, channels=2, repeats=300)
        short = write_wav(os.path.join(self.folder, "short.wav"), speech_like(1, 8000, seed=8), 8000)
        page.drop([long, short])
        wait("the last one is opened", lambda: browser.text("#name") == "short.wav")
        about = "#list li:nth-child(2) [data-part=about]"
        wait("the other one is being read", lambda: page.names()[:2] == ["short.wav", "long.wav"])
        wait("the list tells that it was read", lambda: browser.text(about) == "20:00 · stereo", 30)
        assert "width=232&" in browser.run("return document.querySelector('#list li:nth-child(2) img').src"), "its picture is whole"
        browser.open("about:blank")
        for recording in self.service.json("/v1/recordings")["recordings"][:2]:
            self.service.request("DELETE", f"/v1/recordings/{recording['id']}")
        page.open()
        wait("the others are listed", lambda: page.names() == names)
        if names:
            browser.click("#list li:first-child .open")
            page.wait_for_waveform()

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

    def the_overview_moves_with_the_view(self):
        browser, page = self.browser, self.page
        browser.wheel(page.point(0.5), y=-100, count=5)
        start, end = page.window()
        box, strip = browser.box("#overview-window"), browser.box("#overview")
        assert abs((box["x"] - strip["x"]) / strip["width"] - start / 960) < 0.01, (box, strip, start)
        assert abs(box["width"] / strip["width"] - (end - start) / 960) < 0.01
        middle = (box["x"] + box["width"] / 2, box["y"] + 20)
        browser.drag(middle, (middle[0] + strip["width"] * 0.2, middle[1]))
        moved = page.window()
        assert abs(moved[0] - start - 0.2 * 960) < 4 and abs((moved[1] - moved[0]) - (end - start)) < 1e-3, moved
        browser.wheel(page.point(0.5), x=200)
        assert page.window()[0] > moved[0], "a wheel sideways moves"
        browser.run("document.querySelector('#wave').focus()")
        browser.keys("0")
        assert page.window() is None

    @in_chromium("it listens to what is played, without the page's policy")
    def finished_results_are_heard_in_step_to_the_sample(self):
        browser, page, tap = self.browser, self.page, self.tap
        back = browser.run("return location.hash.slice(1)")
        sound = speech_like(12, 44100, seed=13)
        for k, value in enumerate(sound):
            sound[k] = value // 3
        for k in range(2205, len(sound), 4410):
            sound[k] = 32000
        source = self.service.upload(write_wav(os.path.join(self.folder, "clicks.wav"), sound, 44100, channels=2), "clicks.wav")
        first, second = (self.service.clean(source, json.dumps({"noise": {"quantile": 0.2}, "reduction": reduction})) for reduction in (9, 25))
        tap.install()
        page.open(f"{first}&with={second}&mark=4-8")
        browser.run("document.querySelector('#wave').focus()")
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
        browser.keys(" ", "l")
        tap.remove()
        browser.open("about:blank")
        for identifier in (second, first, source):
            self.service.request("DELETE", f"/v1/recordings/{identifier}")
        page.open(back)
        assert not grid["wrong"] and grid["last"] > 44100, grid
        assert gap < 5, f"a gap of {gap:.1f} ms"
        assert max(loudness.values()) - min(loudness.values()) < 1, loudness

    @in_chromium("it listens to what is played, without the page's policy")
    def more_channels_than_loudspeakers_are_heard_as_their_mean(self):
        browser, page, tap = self.browser, self.page, self.tap
        back = browser.run("return location.hash.slice(1)")
        # Only the last one has a sound.
        frames = array.array("h", bytes(2 * 32 * 48000 * 4))
        for k in range(48000 * 4):
            frames[32 * k + 31] = 26214 if k % 100 < 50 else -26214
        path = os.path.join(self.folder, "array.wav")
        with wave.open(path, "wb") as file:
            file.setnchannels(32)
            file.setsampwidth(2)
            file.setframerate(48000)
            file.writeframes(frames.tobytes())
        source = self.service.upload(path, "array.wav")
        tap.install()
        page.open(source)
        browser.run("document.querySelector('#wave').focus()")
        browser.keys(" ")
        wait("it plays", lambda: page.is_playing() and page.playhead() > 0.3)
        assert not page.toast(), page.toast()
        tap.start()
        wait("it is heard", lambda: tap.seconds() > 1)
        loudest = browser.run("return tap.samples().reduce((most, value) => Math.max(most, Math.abs(value)), 0)")
        browser.keys(" ")
        tap.remove()
        browser.open("about:blank")
        self.service.request("DELETE", f"/v1/recordings/{source}")
        browser.console()
        page.open(back)
        assert 0.8 / 32 - 0.001 < loudest < 0.8 / 32 * 1.3, f"the mean, and not the first channels: {loudest}"

    def the_view_follows_the_playhead(self):
        browser, page = self.browser, self.page
        browser.wheel(page.point(0.5), y=-120, count=14)
        start, end = page.window()
        assert end - start < 10, "a few seconds are in view"
        browser.drag(page.point(0.9), page.point(0.9))
        browser.keys(" ")
        wait("the page turns", lambda: page.is_playing() and page.playhead() > end)
        browser.keys(" ")
        wait("it stops", lambda: not page.is_playing())
        start, end = page.window()
        assert start - 1 < page.playhead() < end + 1, "the playhead stays in view"
        browser.keys("0")

    def handles_change_places_when_one_passes_the_other(self):
        browser, page = self.browser, self.page

        def place(selector):
            box = browser.box(selector)
            return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2

        for zoom in (0, 20, 60):
            browser.keys(ESCAPE, "0")
            browser.wheel(page.point(0.5), y=-120, count=zoom)
            start, end = page.window() or (0, 960)
            second = browser.box("#wave")["width"] / (end - start)
            for kind in ("mouse", "touch"):
                browser.keys(ESCAPE)
                browser.drag(page.point(0.3), page.point(0.4))
                for selector, to in (("#handle-start", 0.7), ("#handle-end", 0.2)):
                    page.window()
                    before = page.field("mark")
                    kept = before[1] if selector == "#handle-start" else before[0]
                    down = place(selector)[1]
                    browser.drag(place(selector), (page.point(to)[0], down), kind=kind)
                    page.window()
                    mark, moved = page.field("mark"), start + (end - start) * to
                    assert mark and mark[0] < mark[1], (zoom, kind, selector, before, mark)
                    kept_now, moved_now = (mark[0], mark[1]) if to == 0.7 else (mark[1], mark[0])
                    assert abs(kept_now - kept) * second < 1 and abs(moved_now - moved) * second < 3, (zoom, kind, before, mark)
            browser.keys(ESCAPE)
            browser.drag(page.point(0.4), page.point(0.41))
            page.window()
            kept = page.field("mark")[1]
            browser.run("document.querySelector('#handle-start').focus()")
            for _ in range(4):
                browser.keys((SHIFT, RIGHT))
                browser.run("return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
            page.window()
            mark = page.field("mark")
            assert abs(mark[0] - kept) * second < 1 and (mark[1] - kept) * second > 30, (zoom, kept, mark)
            assert browser.run("return document.activeElement.id") == "handle-end"
        browser.run("document.querySelector('#wave').focus()")
        browser.keys(ESCAPE, "0")

    def marks_and_moves_are_undone(self):
        browser, page = self.browser, self.page
        control = "\ue009"
        page.window()
        self.select("0:10", "0:12")
        page.window()
        browser.keys("n")
        page.window()
        self.select("0:20", "0:30")
        page.window()
        for noise, mark in (((10, 12), None), (None, (10, 12)), (None, None)):
            browser.keys((control, "z"))
            page.window()
            assert (page.field("noise"), page.field("mark")) == (noise, mark), (noise, mark, browser.run("return location.hash"))
        for noise, mark in ((None, (10, 12)), ((10, 12), None), ((10, 12), (20, 30))):
            browser.keys((control, SHIFT, "z"))
            page.window()
            assert (page.field("noise"), page.field("mark")) == (noise, mark), (noise, mark, browser.run("return location.hash"))
        browser.click("#noise-clear")
        browser.keys(ESCAPE, "+", "+")
        first = page.window()
        browser.keys("+", "+")
        second = page.window()
        browser.click("#list li:last-child .open")
        wait("the other one is opened", lambda: browser.text("#name") == "first.wav")
        page.window()
        for window in (second, first):
            browser.run("history.back()")
            wait("the recording is back", lambda: browser.text("#name") == "talk.wav")
            assert page.window() == window, (page.window(), window)
        browser.run("history.forward()")
        assert page.window() == second
        row = "document.querySelector('#list li:last-child .open').focus()"
        browser.run(row)
        browser.keys(DELETE)
        wait("it is gone", lambda: page.names() == ["talk.wav"])
        browser.keys((control, "z"))
        wait("it is back", lambda: page.names() == ["talk.wav", "first.wav"] and not page.toast())
        # The list hears of a change before its request is answered.
        self.slow_answers("options?.method === 'PATCH'")
        browser.run(row)
        browser.keys(F2, *"name", ENTER)
        wait("it is renamed", lambda: page.names() == ["talk.wav", "name.wav"])
        browser.keys((control, "z"))
        browser.run("restoreFetch()")
        wait("it has its name", lambda: page.names() == ["talk.wav", "first.wav"])
        browser.run("document.querySelector('#wave').focus()")
        browser.keys("0")
        page.window()

    def zooming_keeps_the_selection_and_the_ruler_moves_the_playhead(self):
        browser, page = self.browser, self.page
        self.select("0:20", "0:25")
        for _ in range(6):
            browser.click("#zoom-in")
            start, end = page.window()
            assert start <= 20 and end >= 25, (start, end)
        browser.click("#zoom-in")
        browser.click("#zoom-in")
        start, end = page.window()
        assert start < 22.5 < end and end - start < 5, (start, end)
        browser.keys(ESCAPE)
        browser.drag(page.point(0.25, 0.5, "#ruler"), page.point(0.5, 0.5, "#ruler"))
        assert abs(page.playhead() - (start + end) / 2) < (end - start) / 100
        browser.wheel(page.point(0.75, 0.5, "#ruler"), y=100, count=4)
        wider = page.window()
        at = start + 0.75 * (end - start)
        assert wider[1] - wider[0] > end - start and abs(wider[0] + 0.75 * (wider[1] - wider[0]) - at) < 0.05
        browser.drag(page.point(0.5), (page.point(1)[0] + 60, page.point(0.5)[1]), steps=30)
        page.window()
        mark = page.field("mark")
        assert mark[1] > wider[1] and page.window()[0] > wider[0], "a selection that is dragged past the edge goes on"
        self.select("0:00", "0:20")
        browser.keys("z", ESCAPE)
        start, end = page.window()
        page.wait_for_waveform()
        x, y = page.point((6.7 - start) / (end - start))
        browser.actions({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": [
            {"type": "pointerMove", "duration": 0, "x": round(x), "y": round(y)},
            *[{"type": kind, "button": 0} for kind in ("pointerDown", "pointerUp") * 2]]})
        page.window()
        mark = page.field("mark")
        assert mark and 5.3 < mark[0] < 5.9 and 7.3 < mark[1] < 8.1, f"a double-click selects a sound between two silences: {mark}"
        labels = browser.run("return [...document.querySelectorAll('#scale span')].map(e => e.textContent)")
        assert "\u221212" in labels and "\u221224" in labels, labels
        browser.click("#scale-unit")
        wait("the scale is linear", lambda: "0.25" in browser.run("return document.querySelector('#scale').innerText"))
        browser.click("#scale-unit")
        browser.keys(ESCAPE, "0", HOME)
        page.window()

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
        page.window()
        assert page.field("noise") == (0.2, 1.2) and page.field("mark") is None
        assert preview("Preview 30 s around here")["start"] < page.playhead() < 510
        assert 475 < page.playhead() < 485, page.playhead()
        self.select("0:20", "0:25")
        browser.keys("z")
        page.window()
        assert preview("Preview the selection") is None or 20 <= page.playhead() < 25
        assert 20 <= page.playhead() < 25, page.playhead()
        browser.keys(ESCAPE)
        assert browser.text("#preview-long") == "Preview the visible part"
        browser.click("#noise-clear")
        browser.keys("0", HOME)
        assert page.window() is None
        self.reload()

    def a_drag_selects_and_handles_and_typed_times_change_it(self):
        browser = self.browser
        browser.run("document.activeElement.blur()")
        browser.drag(self.page.point(0.2), self.page.point(0.4))
        self.page.window()
        assert browser.run("return document.activeElement.id") == "wave", "the keys are the waveform's"
        assert not browser.run("return document.activeElement.matches(':focus-visible')"), "without a ring around it"
        start, end = self.page.field("mark")
        assert abs(start - 0.2 * 960) < 2 and abs(end - 0.4 * 960) < 2, (start, end)
        handle = browser.box("#handle-end")
        middle = (handle["x"] + handle["width"] / 2, handle["y"] + handle["height"] / 2)
        browser.drag(middle, (middle[0] + 100, middle[1]))
        self.page.window()
        assert self.page.field("mark")[1] > end + 10
        browser.keys(" ")
        wait("space plays what was just changed", lambda: self.page.is_playing())
        browser.keys(" ")
        wait("and stops it", lambda: not self.page.is_playing())
        self.select("0:10", "0:22.5")
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
        # Only the first 1.4 seconds of every four contain hiss alone.
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

    @in_chromium("it listens to what is played, without the page's policy")
    def the_preview_plays_and_voices_switch_without_a_gap(self):
        browser, page, tap = self.browser, self.page, self.tap
        tap.install()
        self.reload()
        # One burst of the voice and the pause around it, looped.
        self.select("0:12", "0:16")
        page.window()
        browser.click("#preview")
        wait("the preview plays", lambda: page.is_playing() and 12 < page.playhead() < 16)
        self.preview_seconds = wait("it is heard", tap.click_to_sound)
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
        self.voices = (tap.longest_gap(), max(loudness.values()) - min(loudness.values()))
        assert self.voices[0] < 5, f"a gap of {self.voices[0]:.1f} ms"
        assert self.voices[1] < 1, loudness
        assert 12 <= page.playhead() <= 16
        browser.keys(" ")
        wait("space stops it", lambda: not page.is_playing())
        tap.remove()
        self.reload()
        browser.keys(ESCAPE)

    def reload(self):
        self.browser.reload()
        self.page.wait_for_waveform()
        self.browser.run("document.querySelector('#wave').focus()")

    def select(self, start, end):
        """Types a selection."""
        for field, text in (("#select-from", start), ("#select-to", end)):
            self.browser.run("document.querySelector(arguments[0]).select()", field)
            self.browser.type(field, text + ENTER)
        self.browser.run("document.querySelector('#wave').focus()")

    def cancelling_takes_the_result_away(self):
        self.browser.click("#cleaning .choice label:nth-child(2)")
        self.browser.keys("0")
        self.browser.click("#clean")
        wait("it can be cancelled", lambda: self.browser.run(PRESS, "#cancel-job"))
        wait("the result is gone", lambda: not self.browser.shown("#job"))
        wait("the list has forgotten it", lambda: len(self.page.names()) == 2)
        assert not self.browser.all("#layers [data-role=cleaned]")

    def cleaning_draws_the_result_over_the_original(self):
        self.browser.click("#clean")
        wait("the result grows in the picture", lambda: self.page.tinted(1) > 0)
        wait("the noise is removed", lambda: "removed" in self.page.toast(), 120)
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
        page.window()
        self.reload()
        assert browser.value("#reduction") == "12" and browser.run("return document.querySelector('#strength-gentle').checked")
        wait("the card is back", lambda: browser.shown("#result"))
        browser.click("#cleaning .choice label:nth-child(2)")
        browser.run("document.querySelector('#wave').focus()")

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

    def the_cleaned_recording_plays_and_loops(self):
        browser = self.browser
        assert self.page.voice() == "cleaned", self.page.voice()
        self.select("0:06", "0:06.8")
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
        state = (self.page.is_playing(), self.page.voice(), self.page.toast())
        assert state[:2] == (True, "original"), state
        browser.keys(" ", "l", ESCAPE)

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
        browser.run("document.querySelector('#wave').focus()")
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
        page.window()
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
        browser.run("document.querySelector('#list li:nth-child(2) .open').focus()")
        browser.keys(DELETE)
        browser.click(".toast:last-child [data-part=close]")
        wait("the first one is left", lambda: layers() == [["Original", False], ["Natural", True]])
        wait("the service has deleted it", lambda: len(self.service.json("/v1/recordings")["recordings"]) == 3)
        browser.run("document.querySelector('#wave').focus()")
        browser.keys(" ")
        wait("the first one plays without it", lambda: heard() == ["Natural"] and page.playhead() > 481.5)
        browser.keys(" ")

    def a_reload_keeps_the_place(self):
        self.browser.wheel(self.page.point(0.5), y=-100, count=5)
        self.browser.drag(self.page.point(0.4), self.page.point(0.6))
        window, noise, mark = self.page.window(), self.page.field("noise"), self.page.field("mark")
        assert window and noise and mark
        name = self.browser.text("#name")
        self.reload()
        assert self.browser.text("#name") == name
        assert self.page.window() == window and self.page.field("noise") == noise and self.page.field("mark") == mark
        self.browser.keys(ESCAPE)

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
        browser.run("document.querySelector('#list li:first-child .open').focus()")
        browser.keys(DELETE)
        wait("what was open is closed", lambda: browser.shown("#welcome") and not browser.run("return location.hash"))
        browser.click(".toast [data-part=action]")
        wait("it is back with what was made of it", lambda: len(browser.all("#layers .layer")) == 2)
        assert page.names() == ["talk.wav", "talk (Natural).wav", "second.wav"], page.names()
        browser.run("document.querySelector('#list li:last-child .open').focus()")
        browser.keys(DELETE)
        wait("it is gone from the list", lambda: "second.wav" not in page.names())
        browser.click(".toast [data-part=action]")
        wait("it is back", lambda: "second.wav" in page.names())
        browser.run("document.querySelector('#list li:last-child .open').focus()")
        browser.keys(DELETE)
        browser.click(".toast [data-part=close]")
        wait("the service has deleted it", lambda: len(self.service.json("/v1/recordings")["recordings"]) == 2)

    def a_message_comes_before_a_dialog_that_opens(self):
        browser, page = self.browser, self.page
        path = write_wav(os.path.join(self.folder, "between.wav"), speech_like(3, 16000, seed=43), 16000)
        behind, between = (self.service.upload(path, name) for name in ("behind.wav", "between.wav"))
        page.open(behind)
        browser.run("document.querySelector('#list .open').focus()")
        browser.keys(DELETE)
        wait("a message offers to undo it", lambda: "between.wav" in page.toast())
        browser.keys("?")
        wait("a dialog opens", lambda: browser.run("return document.querySelector('#keys').matches(':modal')"))
        # Outside of the dialog, everything is inert.
        reached = wait("the message is in the dialog", lambda: browser.run("""
          const button = document.querySelector("dialog:modal .toast [data-part=action]"), box = button?.getBoundingClientRect();
          return box?.width && document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2) === button;"""))
        assert reached
        browser.click(".toast [data-part=action]")
        wait("it is undone", lambda: page.names()[:1] == ["between.wav"])
        assert browser.run("return document.querySelector('#keys').open"), "the dialog stays"
        # A message comes while the dialog is open, and stays when it is closed.
        browser.run("import('./viewer/messages.js').then(({ tell }) => tell('A word more', { action: { text: 'Do', run() { window.isDone = true; } } }))")
        wait("it is in the dialog", lambda: browser.run("return !!document.querySelector('dialog:modal #toasts .toast')"))
        browser.click("#close-keys")
        wait("the message is back in the page", lambda: browser.run("return document.querySelector('#toasts').parentElement === document.body"))
        browser.click(".toast [data-part=action]")
        assert browser.run("return isDone === true") and not page.toast()
        browser.open("about:blank")
        for recording in (between, behind):
            self.service.request("DELETE", f"/v1/recordings/{recording}")
        page.open()

    def names_of_any_script_are_shown(self):
        path = write_wav(os.path.join(self.folder, RTL_NAME), speech_like(5, 16000, seed=3), 16000)
        browser = self.browser
        self.page.choose(path)
        wait("it is opened", lambda: browser.text("#name") == RTL_NAME)
        self.page.wait_for_waveform()
        assert browser.run("return getComputedStyle(document.querySelector('#name')).direction") == "rtl"

    def nothing_is_cut_off_or_covered_at_any_size(self):
        browser, page = self.browser, self.page
        path = write_wav(os.path.join(self.folder, RTL_NAME), speech_like(30, 16000, seed=3), 16000)
        source = self.service.upload(path, quote(RTL_NAME))
        recording = self.service.clean(source)
        self.service.request("PATCH", f"/v1/recordings/{recording}", json.dumps({"name": "The one that " * 12}), {"Content-Type": "application/json"})
        other = self.service.clean(source)
        page.open(recording)
        wait("noise is suggested", lambda: browser.all(".region"))
        start = browser.run("return Math.max(...[...document.querySelectorAll('.region')].map(e => e.dataset.start))")
        for width, height in ((320, 640), (1024, 768), (1280, 800), (3840, 2160)):
            browser.size(width, height, touch=width == 320)
            # A region begins at the right edge.
            page.open(f"{recording}&with={other}&view={start - 9.9:.2f}-{start + 0.1:.2f}")
            wait("noise is suggested", lambda: browser.all(".region:not([hidden])"))
            page.window()
            found = page.overflow()
            assert not found, f"at {width} x {height}: {found}"
        browser.size(1280, 800)
        page.open(recording)
        notes = os.path.join(self.folder, "notes.pdf")
        with open(notes, "w") as file:
            file.write("These are words. " * 20)
        page.choose(notes)
        wait("what is no recording is refused", lambda: "not a sound or video file we can read" in page.toast())
        assert browser.text(".toast.bad [data-part=action]") == "Which files can be read"
        assert browser.box(".toast.bad [data-part=action]")["height"] < 50, "the button beside a long message keeps its width"
        assert browser.box(".toast.bad")["height"] < 130, "and the message leaves room for the page"
        empty = os.path.join(self.folder, "empty.wav")
        open(empty, "w").close()
        page.choose(empty)
        wait("so is an empty file", lambda: "empty.wav: This file is empty." in page.toast())
        # The browser logs the refusal too.
        browser.console()
        browser.size(1440, 900)
        browser.open("about:blank")
        for identifier in (recording, other, source):
            self.service.request("DELETE", f"/v1/recordings/{identifier}")

    def every_language_has_every_text(self):
        self.page.open()
        languages.check_texts(self.browser, self.service)

    def every_language_has_room_at_any_size(self):
        path = write_wav(os.path.join(self.folder, "room.wav"), speech_like(30, 16000, seed=3), 16000)
        source = self.service.upload(path, "room.wav")
        cleaned = self.service.clean(source)
        languages.check_room(self.browser, self.page, cleaned, self.folder, self.pictures)
        self.browser.open("about:blank")
        for identifier in (cleaned, source):
            self.service.request("DELETE", f"/v1/recordings/{identifier}")

    def a_recording_that_cannot_be_read_says_why_and_what_to_do(self):
        if not self.service.binary:
            return
        browser, page = self.browser, self.page
        page.open()
        # Long enough that a worker is killed before it has read everything.
        path = write_wav(os.path.join(self.folder, "broken.wav"), speech_like(8, 44100, seed=1), 44100, channels=2, repeats=100)
        with self.service.killing(b"waveform"):
            page.choose(path)
            wait("it is opened", lambda: browser.text("#name") == "broken.wav")
            wait("the failure is shown", lambda: browser.shown("#failure"))
        assert "killed" in browser.text("#failure-reason"), browser.text("#failure-reason")
        row = "#list li:first-child"
        wait("the row shows it too", lambda: "killed" in browser.text(f"{row} [data-part=reason]"))
        assert "could not be read" in browser.text(f"{row} [data-part=about]")
        page.window()
        browser.reload()
        wait("it lasts", lambda: browser.shown("#failure") and "killed" in browser.text("#failure-reason"))
        wait("in the row too", lambda: browser.shown(f"{row} [data-part=retry]"))
        assert not browser.run("return !document.querySelector('#clean').disabled")
        browser.click("#failure-retry")
        page.wait_for_waveform()
        wait("it is read", lambda: not browser.shown("#failure") and page.reach() > 0.98)
        wait("the row is as any other", lambda: not browser.shown(f"{row} [data-part=failure]"))
        browser.run("document.querySelector('#list .open').focus()")
        browser.keys(DELETE)
        browser.click(".toast [data-part=close]")

    def the_list_loads_while_it_is_scrolled(self):
        path = write_wav(os.path.join(self.folder, "note.wav"), speech_like(0.2, 8000, seed=6), 8000)
        notes = [self.service.upload(path, f"note%20{k}.wav") for k in range(35)]
        self.page.open()
        wait("the first are listed", lambda: len(self.page.names()) == 30)
        assert self.page.names()[0] == "note 34.wav", "newest first"
        # A page that fails is asked for again.
        self.browser.run("""
          const fetch = window.fetch.bind(window);
          window.refused = false;
          window.fetch = async (path, options) => {
            if (refused || !String(path).includes("cursor=")) return fetch(path, options);
            refused = true;
            return new Response("{}", { status: 503, headers: { "Content-Type": "application/json" } });
          };""")
        scroll = lambda place: self.browser.run(f"document.querySelector('#library').scrollTo(0, {place})")
        scroll(1e6)
        wait("a page is refused", lambda: self.browser.run("return refused"))
        assert len(self.page.names()) == 30
        scroll(0)
        # While the list is read again, because there is another recording.
        self.slow_answers("String(path).includes('v1/recordings?')")
        notes.append(self.service.upload(path, "note%2035.wav"))
        wait("the list is read again", lambda: self.browser.run("return slowed"))
        scroll(1e6)
        count = len(self.service.json("/v1/recordings?limit=1000")["recordings"])
        wait("all are listed", lambda: len(self.page.names()) == count)
        # What is seen stays where it is.
        scroll(500)
        seen = self.browser.run("""
          return [...document.querySelectorAll('#list > *')].find(row => row.getBoundingClientRect().top > 200).dataset.id""")
        place = lambda: self.browser.run(f"return document.querySelector('[data-id=\"{seen}\"]').getBoundingClientRect().top")
        before = place()
        notes.append(self.service.upload(path, "note%2036.wav"))
        wait("the new one is listed, too", lambda: self.page.names()[0] == "note 36.wav")
        assert abs(place() - before) < 1, (before, place())
        # Not while a page is still fetching their pictures.
        self.browser.open("about:blank")
        for note in notes:
            self.service.request("DELETE", f"/v1/recordings/{note}")

    def slow_answers(self, condition):
        """Has the page get some answers 0.7 s late: those for whose `path` and `options` of fetch the condition is true."""
        self.browser.run("""
          const fetch = window.fetch.bind(window);
          window.slowed = false;
          window.restoreFetch = () => window.fetch = fetch;
          window.fetch = async (path, options) => {
            const isSlow = %s;
            if (isSlow) window.slowed = true;
            const answer = await fetch(path, options);
            if (isSlow) await new Promise(done => setTimeout(done, 700));
            return answer;
          };""" % condition)

    def a_video_is_seen_in_step_with_its_sound(self):
        browser, page = self.browser, self.page
        self.page.open()
        page.choose(write_video(os.path.join(self.folder, "clip.webm"), 12, "-c:v", "libvpx", "-c:a", "libopus"))
        wait("it is opened", lambda: browser.text("#name") == "clip.webm")
        wait("its picture is shown", lambda: browser.shown("#picture"))
        self.check_step("original")
        browser.click("#clean")
        wait("the noise is removed", lambda: "removed" in page.toast(), 60)
        assert page.voice() == "cleaned" and browser.shown("#picture")
        self.check_step("cleaned")
        browser.click("#preview")
        wait("the preview plays", lambda: page.is_playing() and page.playhead() > 0.3)
        self.check_step("cleaned")

    def check_step(self, voice):
        """Plays, checks that sound, waveform and picture are in sync, and stops."""
        browser, page = self.browser, self.page
        browser.run("document.querySelector('#wave').focus()")
        if not page.is_playing():
            browser.keys(" ")
        wait("it plays", lambda: page.is_playing() and page.playhead() > 0.3)
        assert page.voice() == voice

        def in_step():
            lags = [sorted(abs(lag) for lag in column)[30] for column in zip(*page.pictures(60))]
            self.lags = lags
            # The picture may be up to one frame (40 ms) old.
            return lags[0] < 50 and lags[1] < 90
        try:
            wait("the picture is where the sound is", in_step, 20)
        except AssertionError as error:
            raise AssertionError(f"{error}: behind by {self.lags} ms") from None
        browser.keys(" ")
        wait("it stops", lambda: not page.is_playing())

    @in_chromium("which formats must be converted, and whether sound is decoded, is Chromium's")
    def what_the_browser_cannot_read_is_played_all_the_same(self):
        browser, page = self.browser, self.page
        sound = os.path.join(self.folder, "first.wav")
        tone = write_video(os.path.join(self.folder, "surround.mp4"), 6, "-c:v", "libx264", "-pix_fmt", "yuv420p", "-c:a", "ac3")
        for path, is_converted in (
                (write_media(os.path.join(self.folder, "memo.m4a"), "-i", sound, "-c:a", "aac"), False),
                (write_media(os.path.join(self.folder, "lossless.m4a"), "-i", sound, "-c:a", "alac"), True),
                (write_media(os.path.join(self.folder, "old.wma"), "-i", sound, "-c:a", "wmav2"), True), (tone, True)):
            name = os.path.basename(path)
            page.choose(path)
            wait(f"{name} is opened", lambda: browser.text("#name") == name)
            page.wait_for_waveform()
            browser.run("document.querySelector('#wave').focus()")
            browser.keys(" ")
            wait(f"{name} is heard", lambda: browser.run("""
              const { currentTime, webkitAudioDecodedByteCount } = document.querySelector("audio[data-role=original]");
              return currentTime > 0.3 && webkitAudioDecodedByteCount > 0;"""))
            source = browser.run("return document.querySelector('audio[data-role=original]').currentSrc")
            assert source.endswith("?format=flac") == is_converted, f"{name}: {source}"
            browser.keys(" ")
            # The browser logs the formats that it can't play, when their errors are expected.
            browser.console()
        page.choose(write_media(os.path.join(self.folder, "studio.wav"), "-i", sound, "-c:a", "pcm_s24le"))
        wait("it is opened", lambda: browser.text("#name") == "studio.wav")
        strip = "#variant-list > :first-child canvas"
        wait("its variants are drawn", lambda: page.ink(strip) > 100)
        area = browser.run("const c = document.querySelector(arguments[0]); return c.width * c.height", strip)
        assert page.ink(strip) < area * 0.6, "24 bits are drawn as what they are"

    @in_chromium("Firefox leaves out other frames of an encoder's delay in raw AAC, and none for iTunSMPB")
    def sound_is_where_the_browser_has_it(self):
        self.browser.open(self.service.address + "/healthz")
        positions.check(self.browser, self.service, self.folder)
        # The browser asks for an icon of what isn't a page.
        self.browser.console()
        self.page.open()

    @in_chromium("it has a touch screen")
    def fingers_move_pinch_and_select_on_a_small_screen(self):
        browser, page = self.browser, self.page
        talk = next(r for r in self.service.json("/v1/recordings")["recordings"] if r["name"] == "talk.wav")
        for ratio in (1, 2):
            browser.size(320, 640, ratio=ratio, touch=True)
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

    def small_screens_keep_the_waveform_and_what_to_do_with_it_in_view(self):
        browser, page = self.browser, self.page
        talk = next(r for r in self.service.json("/v1/recordings")["recordings"] if r["name"] == "talk.wav")
        for width, height in ((844, 390), (932, 430), (1024, 600), (390, 844), (320, 640)):
            browser.size(width, height, ratio=2, touch=width != 1024)
            page.open(talk["id"])
            share = browser.run(SEEN, "#wave") / height
            assert share >= 0.4, f"at {width} x {height} the waveform has {share:.0%} of the height"
            for selector in ("#play", "#preview", "#clean", "#settings"):
                assert browser.run(SEEN, selector) > 28, f"at {width} x {height} {selector} is covered"
            assert not browser.shown("#cleaning") or browser.run(SEEN, "#cleaning") == 0
            browser.click("#settings")
            wait("the settings come out", lambda: browser.run(SEEN, "#strength-natural + span") > 20)
            assert browser.run("return document.querySelector('#settings').ariaExpanded") == "true"
            browser.keys(ESCAPE)
            wait("and go", lambda: not browser.run(SEEN, "#cleaning"))
            assert browser.run("return document.activeElement.id") == "settings"
        browser.click("#show-keys")
        wait("the list of keys begins at its top", lambda: browser.run(SEEN, "#close-keys") > 20)
        assert browser.run("return document.querySelector('#keys').scrollTop") == 0
        browser.keys(ESCAPE)
        if browser.has_devtools:
            browser.drag(page.point(0.5, 0.8), page.point(0.5, 0.1), kind="touch")
            wait("a finger upward scrolls", lambda: browser.run("return document.querySelector('#editor').scrollTop") > 20)
        assert page.window() is None and page.field("mark") is None
        browser.size(1440, 900)

    @in_chromium("it slows the network down, and has a touch screen")
    def a_phone_shows_what_it_sends(self):
        browser, page = self.browser, self.page
        path = write_wav(os.path.join(self.folder, "memo.wav"), speech_like(4, 16000, seed=4), 16000, repeats=40)
        browser.size(390, 844, ratio=2, touch=True)
        page.open()
        assert "Choose" in browser.run("return document.querySelector('#welcome').innerText") and browser.shown("#choose")
        assert "Drop" not in browser.run("return document.querySelector('#welcome').innerText")
        browser.slow(400_000)
        page.choose(path)
        wait("it is named", lambda: browser.run(SEEN, "#sending") and re.search(r"memo\.wav, \d+%", browser.text("#sending-text")))
        browser.click("#sending")
        wait("the list comes out", lambda: browser.run(PRESS, ".transfer [data-part=cancel]"))
        browser.slow(None)
        wait("it is gone", lambda: not browser.shown("#sending"))
        browser.size(1440, 900)
        page.open(next(r for r in self.service.json("/v1/recordings")["recordings"] if r["name"] == "talk.wav")["id"])

    def every_size_can_do_the_whole_in_light_and_dark(self):
        """The short story at each size: play, select, mark noise, choose a strength, preview, and find the list."""
        browser, page = self.browser, self.page
        talk = next(r for r in self.service.json("/v1/recordings")["recordings"] if r["name"] == "talk.wav")["id"]
        for width, height, ratio in ((390, 844, 2), (844, 390, 2), (1024, 600, 1), (1440, 900, 1), (1920, 1080, 2)):
            is_phone = 390 in (width, height)
            browser.size(width, height, ratio=ratio, touch=is_phone)
            for is_dark in browser.shades:
                browser.dark(is_dark)
                place = f"{width * ratio} x {height * ratio} {'dark' if is_dark else 'light'}"
                page.open(f"{talk}&view=0-29")
                browser.click("#play")
                wait(f"{place}: it plays", lambda: page.is_playing() and page.playhead() > 0.1)
                browser.click("#play")
                browser.drag(page.point(0.01), page.point(0.04), kind="touch" if is_phone else "mouse", hold=600 if is_phone else 0)
                page.press("#selection-noise")
                page.window()
                noise = page.field("noise")
                assert noise and noise[0] < 1.2 and page.field("mark") is None, (place, noise)
                if browser.shown("#settings"):
                    browser.click("#settings")
                    wait(f"{place}: the settings come out", lambda: browser.run(SEEN, "#close-settings") > 20)
                    page.settle()
                browser.click("#cleaning .choice label:nth-child(3)")
                assert browser.value("#reduction") == "25", place
                if browser.shown("#settings"):
                    browser.keys(ESCAPE)
                    wait(f"{place}: the settings go", lambda: not browser.run(SEEN, "#cleaning"))
                browser.click("#preview")
                wait(f"{place}: the preview plays", lambda: page.is_playing() and page.voice() == "cleaned")
                browser.click("#play")
                if browser.shown("#menu"):
                    browser.click("#menu")
                    wait(f"{place}: the list comes out", lambda: browser.box("#library")["x"] >= 0)
                    browser.keys(ESCAPE)
                wait(f"{place}: the waveform has its part of the height", lambda: browser.run(SEEN, "#wave") >= 0.4 * height, 5)
                assert browser.run("return document.documentElement.scrollWidth <= innerWidth"), place
                page.open(f"{talk}&view=0-29&mark=20-26&noise=0.2-1.2")
                page.window()
                browser.screenshot(os.path.join(self.pictures, f"{place}.png"))
        browser.dark(False)
        browser.size(1440, 900)
        page.open(talk)
        browser.click("#cleaning .choice label:nth-child(2)")

    @in_chromium("it reads the tree that screen readers get")
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

    def axe_finds_nothing(self):
        if not os.environ.get("STILLWAVE_AXE"):
            return
        browser, page, check = self.browser, self.page, self.check_axe
        talk = next(r for r in self.service.json("/v1/recordings")["recordings"] if r["name"] == "talk.wav")["id"]
        cleaned = self.service.clean(talk)
        browser.policy(False)
        for is_dark in browser.shades:
            browser.dark(is_dark)
            page.open()
            check("nothing is open")
            page.open(f"{talk}&mark=3-6&noise=1-2&view=0-20")
            check("a selection and noise are marked")
            browser.click("#show-keys")
            check("the keys are shown")
            browser.click("#close-keys")
            browser.run("document.querySelector('#list .open').focus()")
            browser.keys(F2)
            check("a recording is renamed")
            browser.keys(ESCAPE)
            browser.size(390, 844, ratio=2, touch=True)
            page.open(f"{talk}&mark=3-6")
            for button in ("#settings", "#menu"):
                browser.click(button)
                check(f"{button} is open")
                browser.keys(ESCAPE)
            browser.size(1440, 900)
        for is_forced, width, height, ratio in ((False, 1440, 900, 1), (True, 1440, 900, 1), (False, 720, 450, 2)):
            # The last one is 1440 x 900 at 200 %.
            browser.dark(False, is_forced)
            browser.size(width, height, ratio=ratio)
            page.open(f"{cleaned}&mark=3-6&noise=1-2&view=0-20")
            wait("the card is there", lambda: browser.shown("#result"))
            check(f"a result is open at {width} x {height}, forced colors: {is_forced}")
            found = page.overflow()
            assert not found, f"at {width} x {height}, forced colors: {is_forced}: {found}"
            page.press("#selection-save")
            check("a selection is saved")
            browser.click("#excerpt-close")
        browser.size(1440, 900)
        browser.dark(False)
        # Not while the page still measures its loudness.
        browser.open("about:blank")
        self.service.request("DELETE", f"/v1/recordings/{cleaned}")
        browser.policy(True)
        page.open(talk)

    def the_keyboard_reaches_everything(self):
        self.browser.run("document.activeElement.blur(); scrollTo(0, 0)")
        reached = set()
        for _ in range(90):
            self.browser.keys(TAB)
            reached.add(self.browser.run("return document.activeElement.id || document.activeElement.dataset.part || document.activeElement.className"))
            if "show-keys" not in reached and self.browser.run("return document.activeElement.parentElement.role") == "toolbar":
                self.browser.keys(END)
                reached.add(self.browser.run("return document.activeElement.id"))
        assert "zoom-in" not in reached and "show-keys" in reached, "a toolbar is one stop, with arrows and End inside"
        for wanted in ("search", "add", "open", "overview-window", "wave", "strength-natural", "reduction",
                       "sensitivity", "method", "preview", "clean", "play", "loop", "select-from"):
            assert wanted in reached or wanted == "strength-natural" and any("strength" in r for r in reached), wanted

    @in_chromium("it switches to dark")
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
                ["--page", "--bad"], ["--edge", "--raised"], ["--wave-peak", "--well"], ["--wave-rms", "--well"],
                ...[0, 1, 2, 3].flatMap(k => [[`--clean-${k}-peak`, "--well"], [`--clean-${k}-rms`, "--well"]])].map(([a, b]) => [a, b, contrast(a, b)]);""")
            poor = [pair for pair in contrasts if pair[2] < (3 if "-peak" in pair[0] or "-rms" in pair[0] or "edge" in pair[0] else 4.5)]
            assert not poor, poor
        self.browser.dark(False)

    def changes_made_elsewhere_are_shown(self):
        if not self.offers(EVENTS):
            return
        browser, page = self.browser, self.page
        page.open()
        path = write_wav(os.path.join(self.folder, "elsewhere.wav"), speech_like(3, 16000, seed=21), 16000)
        other = self.service.upload(path, "elsewhere.wav")
        wait("it is listed", lambda: page.names()[:1] == ["elsewhere.wav"])
        browser.click("#list li:first-child .open")
        wait("it is opened", lambda: browser.text("#name") == "elsewhere.wav")
        self.service.request("PATCH", f"/v1/recordings/{other}", json.dumps({"name": "renamed.wav"}), {"Content-Type": "application/json"})
        wait("its new name is listed", lambda: page.names()[:1] == ["renamed.wav"])
        wait("and is that of what is open", lambda: browser.text("#name") == "renamed.wav")
        # Not while the page still reads it.
        page.window()
        self.service.request("DELETE", f"/v1/recordings/{other}")
        wait("it is gone", lambda: "renamed.wav" not in page.names() and browser.shown("#welcome"))
        assert "deleted in another window" in page.toast(), page.toast()
        self.browser.console()

    def a_selection_is_saved_as_a_file_and_as_a_recording(self):
        if not self.offers(TRIM):
            return
        browser, page = self.browser, self.page
        path = write_wav(os.path.join(self.folder, "whole.wav"), speech_like(8, 16000, seed=22), 16000)
        whole = self.service.upload(path, "whole.wav")
        page.open(f"{whole}&mark=2-4.5")
        browser.run("""
          window.downloaded = [];
          HTMLAnchorElement.prototype.click = function () { downloaded.push(this.href); };""")
        page.press("#selection-save")
        assert "0:02.00" in browser.text("#excerpt-title") and "0:04.50" in browser.text("#excerpt-title")
        assert "whole.wav" in browser.text("#excerpt-source")
        browser.run("document.querySelector('#excerpt-format').value = 'flac'")
        browser.click("#excerpt-download")
        link = wait("it is downloaded", lambda: browser.run("return downloaded[0]"))
        assert not page.toast(), page.toast()
        status, fields, body = self.service.request("GET", link.removeprefix(self.service.address))
        assert status == 200 and body[:4] == b"fLaC" and "attachment" in fields["Content-Disposition"], (status, fields)
        page.press("#selection-save")
        assert browser.value("#excerpt-format") == "flac", "the format is remembered"
        browser.click("#excerpt-keep")
        wait("it is kept", lambda: "is in the list" in page.toast())
        kept = self.service.json("/v1/recordings")["recordings"][0]
        assert kept["format"]["frames"] == 40000 and kept["derived_from"]["operation"] == "trim", kept
        wait("it is listed below its source", lambda: page.names()[:2] == ["whole.wav", kept["name"]])
        assert re.search(r"excerpt, \d\d:\d\d$", browser.text("#list li:nth-child(2) [data-part=about]"))
        browser.click(".toast [data-part=action]")
        wait("it is opened", lambda: browser.text("#name") == kept["name"])
        assert len(browser.all("#layers .layer")) == 1, "it isn't laid over its source"
        browser.open("about:blank")
        for identifier in (kept["id"], whole):
            self.service.request("DELETE", f"/v1/recordings/{identifier}")

    def noise_is_kept_under_a_name_and_used_again(self):
        if not self.offers(PROFILES):
            return
        browser, page = self.browser, self.page
        path = write_wav(os.path.join(self.folder, "hum.wav"), speech_like(8, 16000, seed=23), 16000)
        hum = self.service.upload(path, "hum.wav")
        page.open(f"{hum}&noise=0.2-1.2")
        watch = """
          const ask = window.fetch;
          [window.previewed, window.previewing] = [[], 0];
          window.fetch = async (path, options) => {
            if (!String(path).endsWith("/preview")) return ask(path, options);
            previewed.push(JSON.parse(options.body).noise);
            previewing++;
            try { return await ask(path, options); } finally { previewing--; }
          };"""
        browser.run(watch)
        browser.type("#noise-name", "Fan" + ENTER)
        wait("it is saved", lambda: "Saved the noise" in page.toast())
        assert not browser.shown("#job"), "Enter saves, and cleans nothing"
        use = "#profiles [data-part=use]"
        page.press(use)
        wait("it is used", lambda: "Fan" in browser.text("#noise-auto") and not browser.shown("#noise-times"))
        wait("previews use it", lambda: browser.run("return previewed.some(noise => noise.profile)"))
        page.window()
        self.reload()
        wait("a reload keeps it", lambda: browser.run("return document.querySelector(arguments[0])?.ariaPressed === 'true'", use))
        browser.run(watch)
        browser.click("#profiles [data-part=rename]")
        browser.keys(*"Motor", ENTER)
        wait("what is used has its new name", lambda: "Motor" in browser.text("#noise-auto"))
        assert browser.run("return document.activeElement.dataset.part") == "rename", "the focus stays in its place"
        wait("it is renamed", lambda: browser.text(use) == "Motor" and self.service.json("/v1/noise-profiles")["profiles"][0]["name"] == "Motor")
        browser.click("#profiles [data-part=remove]")
        wait("it is gone", lambda: not browser.shown("#profiles-part") and browser.text("#noise-auto") == "the best stretch found")
        # Only then has the page given up those with the profile.
        wait("previews no longer use it", lambda: browser.run("return previewed.length > 0 && !previewed.at(-1).profile"))
        browser.click(".toast:last-child [data-part=action]")
        wait("it is back", lambda: browser.all(use) and browser.text(use) == "Motor")
        browser.click("#profiles [data-part=remove]")
        browser.click(".toast:last-child [data-part=close]")
        wait("the service has deleted it", lambda: not self.service.json("/v1/noise-profiles")["profiles"])
        wait("no preview is being made", lambda: browser.run("return previewing === 0"))
        browser.open("about:blank")
        self.service.request("DELETE", f"/v1/recordings/{hum}")

    def the_spectrum_shows_what_is_removed(self):
        browser, page = self.browser, self.page
        path = write_wav(os.path.join(self.folder, "hiss.wav"), speech_like(8, 16000, seed=24), 16000)
        hiss = self.service.upload(path, "hiss.wav")
        page.open(f"{hiss}&noise=0.2-1.2")

        def orange():
            """Pixels in the color of noise, over the recording's gray or beside it."""
            return browser.run(COPY + """
              const { data } = copy(document.querySelector("#spectrum"));
              let count = 0;
              for (let k = 0; k < data.length; k += 4) if (data[k + 3] && data[k] > data[k + 2] + 40) count++;
              return count;""")
        wait("the spectrum is drawn", lambda: page.ink("#spectrum") > 1000 and orange() > 500)
        shares = []
        for reduction in (6, 30):
            browser.run("""
              const field = document.querySelector("#reduction");
              field.value = arguments[0];
              field.dispatchEvent(new Event("input", { bubbles: true }));""", reduction)
            shares.append(orange())
        assert shares[1] > 2 * shares[0], f"the more is removed, the more is shaded: {shares}"
        browser.open("about:blank")
        self.service.request("DELETE", f"/v1/recordings/{hiss}")

    def a_result_gets_the_loudness_that_was_chosen(self):
        if not self.offers(LOUDNESS):
            return
        browser, page = self.browser, self.page
        path = write_wav(os.path.join(self.folder, "quiet.wav"), speech_like(12, 16000, seed=25), 16000)
        quiet = self.service.upload(path, "quiet.wav")
        page.open(quiet)
        browser.run("""
          const field = document.querySelector("#loudness");
          field.value = "-23";
          field.dispatchEvent(new Event("input", { bubbles: true }));
          document.querySelector("#strength-natural").click();""")
        browser.click("#clean")
        wait("the noise is removed", lambda: "removed" in page.toast())
        wait("the card has both figures", lambda: "LUFS" in browser.text("#result-figures") and "dBFS" in browser.text("#result-figures"))
        after = float(re.search(r"\u2192 \u2212(\d+\.\d) LUFS", browser.text("#result-figures"))[1])
        assert abs(after - 23) < 0.3, browser.text("#result-figures")
        assert any("\u221223 LUFS" in name for name in page.names()), page.names()
        browser.run("document.querySelector('#loudness').value = ''; document.querySelector('#loudness').dispatchEvent(new Event('input', { bubbles: true }))")
        page.window()
        browser.open("about:blank")
        for recording in self.service.json("/v1/recordings")["recordings"]:
            if recording["name"].startswith("quiet"):
                self.service.request("DELETE", f"/v1/recordings/{recording['id']}")

    def a_service_that_was_away_is_found_again(self):
        if not self.service.binary:
            return
        browser, page = self.browser, self.page
        page.open(next(r for r in self.service.json("/v1/recordings")["recordings"] if r["name"] == "talk.wav")["id"])
        self.check_console()
        browser.run("document.querySelector('#wave').focus()")
        browser.keys(" ")
        wait("it plays", lambda: page.playhead() > 0.3)
        browser.run("document.querySelector('#strength-gentle').click()")
        self.service.stop()
        # The sound at that position has not been loaded yet.
        browser.drag(page.point(0.5), page.point(0.5))
        browser.keys("+", "+", "+", "+", "+", "+")
        wait("the page says so", lambda: browser.shown("#away"))
        browser.click("#clean")
        wait("it says when the cleaning begins", lambda: "begins when it is back" in page.toast())
        self.service.start()
        wait("the page finds it again", lambda: not browser.shown("#away"))
        page.wait_for_waveform()
        wait("it plays on", lambda: page.is_playing() and page.playhead() > 481)
        browser.keys(" ")
        wait("it is cleaned", lambda: any("(Gentle)" in recording["name"] and recording["sha256"]
                                          for recording in self.service.json("/v1/recordings")["recordings"]))
        # The browser logs the lost requests itself.
        self.browser.console()

    def check_axe(self, state):
        """Checks the page's accessibility. Its policy must be off."""
        self.page.window()
        with open(os.environ["STILLWAVE_AXE"], encoding="utf-8") as file:
            self.browser.inject(file.read())
        found = self.browser.run("return axe.run().then(({ violations }) => violations.map(({ id, nodes }) => [id, nodes.map(node => node.target[0])]))")
        assert not found, f"{state}: {found}"

    def offers(self, *paths):
        """Whether the service has these paths; one that runs elsewhere may be older than the page."""
        if not hasattr(self, "api"):
            self.api = self.service.request("GET", "/openapi.yaml")[2].decode()
        return all(f"\n  {path}:\n" in self.api for path in paths)

    def check_console(self):
        # The browser logs each answer that asks for patience while the service measures or converts.
        complaints = [entry["message"] for entry in self.browser.console()
                      if not ("status of 503" in entry["message"] and re.search(r"/(loudness|audio\?\S*format=)", entry["message"]))]
        for path in (LOUDNESS, PROFILES, EVENTS):
            if not self.offers(path):
                complaints = [message for message in complaints if path.rpartition("/")[2] not in message]
        assert not complaints, complaints


def run(browser, service, pictures, only=None):
    """Runs the story. Returns how many steps failed; throws `BrowserStopped` if none has."""
    failures, left = 0, []
    with tempfile.TemporaryDirectory() as folder:
        story = Story(browser, service, folder, pictures)
        for step in story.steps():
            name = step.__name__.replace("_", " ")
            if only and not re.search(only, name):
                continue
            if hasattr(step, "why_chromium") and not browser.has_devtools:
                left.append(f"{name}: {step.why_chromium}")
                continue
            try:
                step()
                story.check_console()
                print(f"  ok      {name}", flush=True)
            except BrowserStopped as stopped:
                print(f"  stopped {name}: {stopped}", flush=True)
                # A step may have failed before its end, in which the browser stopped.
                earlier = stopped.__context__
                while isinstance(earlier, (BrowserStopped, TimeoutError)):
                    earlier = earlier.__context__
                if failures or earlier or browser.errors:
                    print(f"  FAILED  {name}: {earlier or browser.errors}", flush=True)
                    return failures + 1
                raise
            except Exception as error:
                failures += 1
                print(f"  FAILED  {name}: {type(error).__name__}: {error}", flush=True)
                try:
                    browser.screenshot(os.path.join(pictures, f"failed {name}.png"))
                    # The next step begins at the usual size.
                    browser.size(1440, 900)
                except (OSError, DriverError, BrowserStopped) as gone:
                    print(f"  the browser doesn't answer any more: {gone}", flush=True)
                    break
        for line in left:
            print(f"  only in Chromium: {line}", flush=True)
        if hasattr(story, "preview_seconds"):
            print(f"  preview heard after {story.preview_seconds:.2f} s", flush=True)
        if hasattr(story, "voices"):
            print("  voices switch with a gap of {:.1f} ms at most, their loudness {:.2f} LU apart".format(*story.voices), flush=True)
        if hasattr(story, "lags"):
            print("  the picture's time is {:.0f} ms from the playhead, what it shows {:.0f} ms".format(*story.lags), flush=True)
    return failures
