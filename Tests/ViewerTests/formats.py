import os
import re

import peaks
import positions
from chapter import Chapter
from material import write_media, write_video
from page import in_chromium
from webdriver import wait


# Keeps the samples of the piece that the page plays first. A piece that begins late is entered later, so it is kept whole.
STARTED = """{
  const { start } = AudioBufferSourceNode.prototype;
  window.started = null;
  AudioBufferSourceNode.prototype.start = function (when, offset = 0) {
    window.started ??= this.buffer.getChannelData(0).slice();
    return start.call(this, when, offset);
  };
}"""

# By how many frames these samples are later than those that are drawn at an instant; null if they aren't the same.
APART = """
const [recording, seconds] = arguments;
return fetch(`v1/recordings/${recording}/waveform?scale=1&start=${seconds}&end=${seconds + 0.1}`).then(answer => answer.json())
  .then(({ data, start_frame, sample_rate }) => {
    const before = start_frame - Math.round(seconds * sample_rate), drawn = data.filter((_, k) => k % 2 === 0).slice(50, 4000);
    return [0, 1, -1, 2, -2].find(lag => drawn.every((value, k) => Math.abs(value - started[k + 50 + before - lag] * 32768) <= 2)) ?? null;
  });"""


class FilesOfManyFormatsArePlayed(Chapter):
    differs = True

    def a_file_that_does_not_say_its_length_has_an_estimate(self):
        browser, page = self.browser, self.page
        verse = write_media(os.path.join(self.folder, "verse.m4a"), "-i", self.sound("verse.wav", 15, 44100, repeats=4))
        song = write_media(os.path.join(self.folder, "song.m4a"), "-stream_loop", "15", "-i", verse, "-c", "copy")
        with self.service.holding(b"waveform") as step:
            page.drop([song])
            wait("it is opened", lambda: browser.text("#name") == "song.m4a")
            wait("a part of it is drawn", lambda: step() or page.reach() > 0.02)
            wait("its whole is shown", lambda: " 16:0" in browser.text("#window-text"))
            assert self.service.named("song.m4a")["waveform"]["state"] == "building", "it is still read"
        wait("the waveform reaches the end", lambda: page.reach() > 0.98)

    def a_video_is_seen_in_step_with_its_sound(self):
        browser, page = self.browser, self.page
        page.choose(write_video(os.path.join(self.folder, "clip.webm"), 12, "-c:v", "libvpx", "-c:a", "libopus"))
        wait("it is opened", lambda: browser.text("#name") == "clip.webm")
        wait("its picture is shown", lambda: browser.shown("#picture"))
        picture, wave = browser.box("#picture"), browser.box("#wave")
        assert picture["y"] + picture["height"] <= wave["y"] and browser.run("return getComputedStyle(document.querySelector('#picture')).objectFit") == "contain"
        page.focus()
        # However long it takes until it's in step.
        browser.keys("l")
        self._check_step("original")
        browser.click("#clean")
        wait("the noise is removed", lambda: "removed" in page.toast())
        assert page.voice() == "cleaned" and browser.shown("#picture")
        self._check_step("cleaned")
        browser.click("#preview")
        wait("the preview plays", lambda: page.is_playing() and page.playhead() > 0.3)
        self._check_step("cleaned")

    def _check_step(self, voice):
        """Plays, checks that sound, waveform and picture are in sync, and stops."""
        browser, page = self.browser, self.page
        page.focus()
        if not page.is_playing():
            browser.keys(" ")
        wait("it plays", lambda: page.is_playing() and page.playhead() > 0.3)
        assert page.voice() == voice
        lags = []

        def in_step():
            lags[:] = [sorted(abs(lag) for lag in column)[30] for column in zip(*page.pictures(60))]
            # The picture may be up to one frame (40 ms) old.
            return lags[0] < 50 and lags[1] < 90
        wait("the picture is where the sound is", in_step)
        self.figures.append("the picture's time is {:.0f} ms from the playhead, what it shows {:.0f} ms".format(*lags))
        browser.keys(" ")
        wait("it stops", lambda: not page.is_playing())

    def what_has_no_index_is_heard_where_it_is_drawn(self):
        browser, page = self.browser, self.page
        tone = ["-f", "lavfi", "-i", "aevalsrc=(0.1+0.5*lt(mod(t\\,3)\\,1))*sin(2*PI*(300*t+10*t*t)):s=44100:d=90"]
        for name, words in (("variable.mp3", ["-q:a", "3", "-write_xing", "0"]), ("xing.mp3", ["-q:a", "3"]), ("raw.aac", ["-c:a", "aac"])):
            recording = self.service.upload(write_media(os.path.join(self.folder, name), *tone, *words), name)
            page.open(recording)
            browser.run(STARTED)
            for seconds in (5.2, 58.3, 86.7):
                self.select(f"{seconds}", f"{seconds + 1.5}")
                browser.run("window.started = null")
                browser.keys(" ")
                wait("it plays", lambda: browser.run("return started !== null"))
                browser.keys(" ")
                apart = browser.run(APART, recording, seconds)
                assert apart == 0, f"{name} at {seconds} s: {apart} frames"

    @in_chromium("which formats must be converted, and whether sound is decoded, is Chromium's")
    def what_the_browser_cannot_read_is_played_all_the_same(self):
        browser, page = self.browser, self.page
        sound = self.sound("first.wav", 8, 44100)
        tone = write_video(os.path.join(self.folder, "surround.mp4"), 6, "-c:v", "libx264", "-pix_fmt", "yuv420p", "-c:a", "ac3")
        for path, is_converted in (
                (write_media(os.path.join(self.folder, "memo.m4a"), "-i", sound, "-c:a", "aac"), False),
                (write_media(os.path.join(self.folder, "lossless.m4a"), "-i", sound, "-c:a", "alac"), True),
                (write_media(os.path.join(self.folder, "old.wma"), "-i", sound, "-c:a", "wmav2"), True), (tone, True)):
            name = os.path.basename(path)
            page.choose(path)
            wait(f"{name} is opened", lambda: browser.text("#name") == name)
            page.wait_for_waveform()
            page.focus()
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

    @in_chromium("it is about libraries, not about the browser")
    def peaks_js_reads_what_the_readme_names(self):
        with open(os.path.join(os.path.dirname(__file__), "../../README.md"), encoding="utf-8") as file:
            form = re.search(r"`…/(waveform\.dat\?[^`]*)`", file.read())[1]
        stereo, six = self.upload("stereo.wav", 8, rate=44100, channels=2), self.upload("six.wav", 1, rate=8000, channels=6)
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
