import json
import os

from chapter import Chapter
from page import CONTROL, DELETE, ENTER, ESCAPE, RIGHT, SHIFT, in_chromium
from webdriver import wait

# Lines at any tempo, in scripts that run either way, with words that have times and words that don't.
LYRICS = """[00:04.00]<00:04.00>Morning <00:04.80>comes <00:05.40>across <00:06.00>the <00:06.30>water
[00:07.00]<00:07.00>slow <00:07.60>and <00:08.00>clear
[00:08.60]and the harbor wakes
[00:10.40]one
[00:10.80]two
[00:11.20]three
[00:12.00]
[00:16.00]مرحبا بالعالم الجميل
[00:19.00]今日はいい天気ですね
[00:22.00]A line that is far too long for any screen has to be divided into rows that can be read
[00:27.00]and ends
[00:29.00]
"""

# How the line in focus looks: its text, the place of its fill's edge, 0 … 1 across the view, and its neighbors.
SUNG = """
return (async () => {
await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
const place = element => new DOMMatrix(getComputedStyle(element).transform);
const lines = [...document.querySelectorAll(".sung-line")].filter(line => getComputedStyle(line).opacity > 0.2);
const focus = lines.find(line => getComputedStyle(line).opacity > 0.99), clip = focus?.querySelector(".sung-clip");
const width = clip?.clientWidth ?? 1;
return {
  text: document.querySelector("#sung-lines").ariaLabel, lines: lines.length, edge: clip ? place(clip).m41 / width : null,
  dots: [...document.querySelectorAll("#sung-count i")].filter(dot => getComputedStyle(dot).opacity > 0.5).length,
};
})();
"""

# The next change of labels is turned away, as while a service restarts behind a proxy.
BUSY_ONCE = """
const real = window.fetch;
window.fetch = (path, options) => {
  if (options?.method !== "PUT") return real(path, options);
  window.fetch = real;
  return Promise.resolve(new Response("", { status: 503 }));
};
"""


class LabelsAreEditedReadAndSung(Chapter):
    differs = True

    def begin(self):
        self.recording = self.upload("song.wav", 32)
        self.page.open(self.recording)

    def _tracks(self):
        return self.service.json(f"/v1/recordings/{self.recording}/labels")["tracks"]

    def _stored(self, track=None):
        """A track's labels without their IDs: one that was removed and put back has another."""
        track = track or self._tracks()[0]["id"]
        labels = self.service.json(f"/v1/recordings/{self.recording}/labels/{track}")["labels"]
        return [{member: value for member, value in label.items() if member != "id"} for label in labels]

    def _at(self, seconds, down=0.5):
        """The point of the lane at a time; the whole recording is shown."""
        return self.page.point(seconds / 32, down, "#lane")

    def _seek(self, seconds):
        self.browser.drag(self.page.point(seconds / 32, 0.5, "#ruler"), self.page.point(seconds / 32, 0.5, "#ruler"))
        wait("the playhead is there", lambda: abs(self.page.playhead() - seconds) < 0.1)

    def _drop(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        self.page.drop([path])

    def a_dropped_file_of_lyrics_becomes_a_track(self):
        assert not self.browser.shown("#lane") and not self.browser.shown("#sing"), "without labels, nothing is in the way"
        self._drop("Harbor.lrc", LYRICS)
        wait("it is shown", lambda: self.browser.shown("#lane") and self.page.ink("#labels") > 1000)
        wait("it is said", lambda: "“Harbor” with 10 labels" in self.page.toast())
        [track] = self._tracks()
        assert (track["name"], track["kind"], track["count"], track["words"]) == ("Harbor", "lyrics", 10, 8), track

    def a_bad_file_says_what_is_wrong_and_where(self):
        self._drop("bad.srt", "1\n00:00:05,000 --> 00:00:02,000\nbackward\n")
        wait("the line is named", lambda: "bad.srt: Line 2, column 18" in self.page.toast())
        assert len(self._tracks()) == 1
        big = os.path.join(self.folder, "big.vtt")
        with open(big, "wb") as file:
            file.truncate(17 << 20)
        self.page.drop([big])
        wait("a large one isn't sent", lambda: "larger than 16 MiB" in self.page.toast())
        self.page.open()
        wait("nothing is open", lambda: self.browser.shown("#welcome"))
        self._drop("early.vtt", "WEBVTT\n\n00:01.000 --> 00:02.000\nearly\n")
        wait("it needs a recording", lambda: "Open the recording that early.vtt belongs to" in self.page.toast())
        self.page.open(self.recording)
        wait("the labels are drawn", lambda: self.page.ink("#labels") > 1000)
        self.check_console(400, 422)

    def labels_are_dragged_typed_removed_and_undone(self):
        browser = self.browser
        before = self._stored()
        browser.run(BUSY_ONCE)
        browser.drag(self._at(29), self._at(30))
        wait("the last end is dragged, and saved when the service can", lambda: abs(max(label["end"] for label in self._stored()) - 30) < 0.1)
        browser.actions({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": [
            {"type": "pointerMove", "duration": 0, "x": round(self._at(9.4)[0]), "y": round(self._at(9.4)[1])},
            *[{"type": kind, "button": 0} for kind in ("pointerDown", "pointerUp", "pointerDown", "pointerUp")]]})
        wait("a double-click opens it", lambda: browser.shown("#label-editor"))
        assert browser.value("#label-text") == "and the harbor wakes"
        browser.type("#label-text", "and the harbor sleeps" + ENTER)
        wait("it is typed", lambda: any(label["text"] == "and the harbor sleeps" for label in self._stored()))
        assert self.page.focused() == "lane"
        typed = next(label for label in self._stored() if label["text"] == "and the harbor sleeps")
        browser.keys((CONTROL, SHIFT, RIGHT), (SHIFT, RIGHT), (SHIFT, RIGHT))

        def edges():
            found = next(label for label in self._stored() if label["text"] == typed["text"])
            return found["start"] - typed["start"], found["end"] - typed["end"]
        wait("its start is moved by keys, and its end further", lambda: 0 < edges()[0] < edges()[1] < 1)
        assert "and the harbor sleeps, 0:08.7" in browser.text("#live"), browser.text("#live")
        for _ in range(3):
            browser.keys((CONTROL, "z"))
        wait("both are undone", lambda: edges() == (0, 0))
        browser.keys(RIGHT)
        browser.keys(DELETE)
        wait("the next one is removed", lambda: len(self._stored()) == len(before) - 1)
        assert "one" not in [label["text"] for label in self._stored()]
        for _ in range(3):
            browser.keys((CONTROL, "z"))
        wait("all is undone", lambda: self._stored() == before)
        browser.keys((CONTROL, SHIFT, "z"))
        wait("and one is done again", lambda: self._stored() != before)
        browser.keys((CONTROL, "z"))
        wait("and undone", lambda: self._stored() == before)

    def keys_add_labels_while_it_plays(self):
        browser, page = self.browser, self.page
        count = len(self._stored())
        self._seek(12.5)
        page.focus()
        browser.keys(" ")
        wait("it plays", lambda: page.playhead() > 12.7)
        browser.keys("m")
        begin = page.playhead()
        browser.actions({"type": "key", "id": "keys", "actions": [{"type": "keyDown", "value": "m"}]})
        wait("the key is held for a while", lambda: page.playhead() > begin + 0.7)
        browser.actions({"type": "key", "id": "keys", "actions": [{"type": "keyUp", "value": "m"}]})
        browser.keys(" ")
        wait("two are stored", lambda: len(self._stored()) == count + 2)
        point, held = [label for label in self._stored() if not label["text"]]
        assert point["start"] == point["end"] and held["end"] - held["start"] > 0.3, (point, held)
        assert not browser.shown("#label-editor"), "nothing is opened while it plays"
        for _ in range(2):
            browser.keys((CONTROL, "z"))
        wait("they are gone", lambda: len(self._stored()) == count)

    def a_change_elsewhere_is_kept_and_said(self):
        browser = self.browser
        track = self._tracks()[0]["id"]
        path = f"/v1/recordings/{self.recording}/labels/{track}"

        def change(edit):
            _, fields, body = self.service.request("GET", path)
            labels = json.loads(body)["labels"]
            edit(labels)
            status, _, body = self.service.request("PUT", path, json.dumps({"labels": labels}), {
                "Content-Type": "application/json", "If-Match": fields["ETag"]})
            assert status == 200, body

        def rename(k, text):
            def edit(labels):
                labels[k].update(text=text)
                labels[k].pop("words", None)
            return edit
        before = self._stored()
        change(rename(5, "three and more"))
        self.page.focus("#lane")
        self._seek(27.5)
        browser.keys((SHIFT, "\ue004"))
        self.page.focus("#lane")
        browser.drag(self._at(29), self._at(30.5))
        wait("both are kept", lambda: abs(self._stored()[-1]["end"] - 30.5) < 0.1)
        assert "three and more" in [label["text"] for label in self._stored()], self._stored()
        wait("that is said", lambda: "Both changes are kept" in self.page.toast())
        change(rename(9, "and never ends"))
        browser.drag(self._at(30.5), self._at(31))
        wait("a lost one is said", lambda: "your change was not saved" in self.page.toast())
        assert self._stored()[9]["text"] == "and never ends" and self._stored()[9]["end"] < 30.9

        def restore(labels):
            labels[:] = before
        change(restore)
        self.page.open(self.recording)
        wait("the labels are drawn", lambda: self.page.ink("#labels") > 1000)
        self.check_console(412)

    def what_others_change_appears(self):
        self.page.focus()
        self.browser.keys("t")
        wait("the text is there", lambda: len(self.browser.all("#transcript .said")) == 10)
        track = self._tracks()[0]["id"]
        path = f"/v1/recordings/{self.recording}/labels/{track}"
        _, fields, body = self.service.request("GET", path)
        labels = json.loads(body)["labels"]
        texts = "return [...document.querySelectorAll('.said [data-part=text]')].map(text => text.textContent)"
        for text in ("changed elsewhere", labels[9]["text"]):
            labels[9]["text"] = text
            status, fields, _ = self.service.request("PUT", path, json.dumps({"labels": labels}), {
                "Content-Type": "application/json", "If-Match": fields["ETag"]})
            assert status == 200
            wait("it is shown", lambda: self.browser.run(texts)[-1] == text)
        self.browser.click("#transcript-close")

    def labels_at_one_time_are_both_read_and_escape_takes_a_new_one_back(self):
        browser, page = self.browser, self.page
        before = self._stored()
        for text in ("upper", "lower"):
            self.select("0:14", "0:15.5")
            browser.keys("m")
            browser.type("#label-text", text + ENTER)
        wait("both are stored", lambda: len(self._stored()) == len(before) + 2)
        for down, text in ((0.25, "upper"), (0.75, "lower")):
            browser.drag(self._at(14.7, down), self._at(14.7, down))
            wait(f"{text} is in a row of its own", lambda: text in browser.text("#live"))
        page.focus()
        # The selections are steps, too.
        wait("both are gone", lambda: self._stored() == before or browser.keys((CONTROL, "z")))
        self._seek(14)
        page.focus()
        browser.keys(ESCAPE, "m")
        wait("a new one is opened", lambda: browser.shown("#label-editor"))
        browser.keys(ESCAPE)
        assert not browser.shown("#label-editor")
        page.rest()
        wait("nothing is left to save", lambda: not browser.run("const event = new Event('beforeunload', { cancelable: true }); dispatchEvent(event); return event.defaultPrevented"))
        assert self._stored() == before

    def the_transcript_follows_seeks_and_selects(self):
        browser, page = self.browser, self.page
        page.focus()
        browser.keys("t")
        wait("the text is there", lambda: len(browser.all("#transcript .said")) == 10)
        self._seek(7.3)
        current = "return document.querySelector('.said[aria-current] [data-part=text]')?.textContent"
        wait("the line is marked", lambda: browser.run(current) == "slow and clear")
        page.focus()
        browser.keys(" ")
        wait("it follows", lambda: browser.run(current) == "and the harbor wakes")
        assert browser.run("return CSS.highlights.get('heard').size") == 1, "the word is marked, too"
        browser.keys(" ")
        browser.click("#transcript .said [data-part=time]")
        assert abs(page.playhead() - 4) < 0.05
        # “comes across” has times of its own.
        browser.run("""
          const text = document.querySelector("#transcript .said [data-part=text]").firstChild;
          getSelection().setBaseAndExtent(text, 8, text, 20);""")
        wait("its sound is selected", lambda: browser.value("#select-from") == "0:04.800")
        assert browser.value("#select-to") == "0:06.000", browser.value("#select-to")
        browser.click("#selection-noise")
        wait("and is the noise", lambda: page.field("noise") == (4.8, 6.0))
        browser.run("getSelection().empty()")
        browser.click("#noise-clear")

    def words_are_found_as_they_are_typed(self):
        browser = self.browser
        browser.type("#transcript-search", "harb")
        wait("it is found", lambda: browser.run("return [...document.querySelectorAll('#transcript-hits [data-part=text]')].map(e => e.textContent)") == ["and the harbor wakes"])
        assert browser.text("#transcript-count") == "1 place"
        browser.click("#transcript-hits [data-part=time]")
        assert abs(self.page.playhead() - 8.6) < 0.05
        browser.run("const field = document.querySelector('#transcript-search'); field.value = ''; field.dispatchEvent(new Event('input'))")
        wait("the text is back", lambda: browser.shown("#transcript-text"))
        browser.click("#transcript-close")
        assert not browser.shown("#transcript")

    def the_singing_view_fills_with_the_sound(self):
        browser, page = self.browser, self.page
        page.focus()
        browser.keys("k")
        wait("it is shown", lambda: browser.shown("#singing"))

        def sung(seconds):
            self._seek(seconds)
            return browser.run(SUNG)
        assert sung(0.2)["dots"] == 0
        assert [sung(at)["dots"] for at in (1.5, 2.4, 3.4)] == [3, 2, 1], "a first word is counted in"
        early, late = sung(4.2), sung(6.4)
        assert early["text"] == late["text"] == "Morning comes across the water" and early["lines"] == 2, (early, late)
        assert early["edge"] < late["edge"] < 0, (early, late)
        assert [sung(at)["text"] for at in (10.6, 11.0, 11.35)] == ["one", "two", "three"], "short lines change too"
        assert [sung(at)["dots"] for at in (13.5, 15.5)] == [3, 1], "after a silence, too"
        arabic = [sung(at) for at in (16.4, 18.4)]
        assert arabic[0]["edge"] > arabic[1]["edge"] > 0, f"the fill goes from right to left: {arabic}"
        japanese = [sung(at) for at in (19.5, 21.5)]
        assert japanese[0]["edge"] < japanese[1]["edge"] < 0, japanese
        rows = [sung(at)["text"] for at in (22.1, 24, 26.5)]
        assert len(set(rows)) > 1 and all(row in "A line that is far too long for any screen has to be divided into rows that can be read" for row in rows), rows
        self._seek(4)
        page.focus()
        browser.keys(" ")
        wait("it plays", lambda: page.playhead() > 5)
        edges = browser.run("""
          const clip = () => [...document.querySelectorAll(".sung-line")].find(line => getComputedStyle(line).opacity > 0.99)?.querySelector(".sung-clip");
          const found = [], first = clip();
          return new Promise(done => {
            const look = () => {
              if (clip() === first) found.push(new DOMMatrix(getComputedStyle(first).transform).m41);
              clip() === first && found.length < 30 ? requestAnimationFrame(look) : done(found);
            };
            look();
          });""")
        assert edges == sorted(edges) and edges[-1] > edges[0], edges
        browser.keys(" ")

    @in_chromium("it asks for less motion")
    def singing_respects_reduced_motion_and_fills_the_screen(self):
        browser, page = self.browser, self.page
        browser.devtools("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "reduce"}])
        self._seek(4.05)
        first = browser.run(SUNG)["edge"]
        self._seek(4.7)
        assert browser.run(SUNG)["edge"] == first, "a word is filled as it begins"
        browser.dark(False)
        browser.click("#sung-full")
        wait("it has the screen", lambda: browser.box("#singing")["width"] == browser.run("return innerWidth"))
        wait("with more lines", lambda: browser.run(SUNG)["lines"] >= 2)
        browser.keys(ESCAPE)
        wait("and gives it back", lambda: browser.box("#singing")["width"] < browser.run("return innerWidth"))
        browser.click("#sung-close")
        assert not browser.shown("#singing")

    def tracks_are_added_renamed_exported_and_removed(self):
        browser = self.browser
        self._drop("Chapters.json", json.dumps({"version": "1.2.0", "chapters": [
            {"startTime": 0, "title": "Intro"}, {"startTime": 16, "title": "Song"}]}))
        wait("it is added", lambda: len(self._tracks()) == 2 and browser.shown("#track-choice"))
        assert self._tracks()[1]["kind"] == "chapters"
        browser.click("#label-menu")
        wait("both are listed", lambda: len(browser.all("#track-list .track")) == 2)
        browser.run("""
          const field = document.querySelector(".track:last-child [data-part=name]");
          field.value = "Parts"; field.dispatchEvent(new Event("change"));""")
        wait("it is renamed", lambda: self._tracks()[1]["name"] == "Parts")
        browser.run("""
          const make = URL.createObjectURL;
          let blob;
          URL.createObjectURL = made => make.call(URL, blob = made);
          HTMLAnchorElement.prototype.click = function () { window.exported = blob.text().then(text => [this.download, text]); };
          const row = document.querySelector(".track");
          row.querySelector("[data-part=format]").value = "srt";
          row.querySelector("[data-part=export]").click();""")
        name, text = wait("it is exported", lambda: browser.run("return window.exported"))
        assert name == "Harbor.srt" and "Morning comes across the water" in text, (name, text)
        wait("what is left out is said", lambda: "SRT can’t hold everything" in self.page.toast())
        browser.click("#close-tracks")
        self._drop("Harbor.lrc", LYRICS)
        wait("a second one of the same name is told apart", lambda: [track["name"] for track in self._tracks()] == ["Harbor", "Parts", "Harbor 2"])
        browser.click("#label-menu")
        wait("all are listed", lambda: len(browser.all("#track-list .track")) == 3)
        browser.run("document.querySelector('.track:last-child [data-part=remove]').click()")
        wait("it is removed", lambda: len(browser.all("#track-list .track")) == 2)
        browser.run("document.querySelector('.track:last-child [data-part=remove]').click()")
        wait("so is another", lambda: len(self._tracks()) == 1)
        browser.click("#close-tracks")
        self.page.focus()
        browser.keys((CONTROL, "z"))
        wait("and back", lambda: [track["name"] for track in self._tracks()] == ["Harbor", "Parts"])
        assert len(self._stored(self._tracks()[1]["id"])) == 2

    @in_chromium("it is about the page")
    def axe_finds_nothing_in_labels(self):
        if not os.environ.get("STILLWAVE_AXE"):
            return
        browser, page = self.browser, self.page
        browser.policy(False)
        for is_dark, width in ((False, 1440), (True, 390)):
            browser.dark(is_dark)
            browser.size(width, 900, touch=width == 390)
            page.open(f"{self.recording}&view=2-16")
            wait("the labels are drawn", lambda: page.ink("#labels") > 1000)
            for button in ("#read", "#sing"):
                browser.click(button)
            self.check_axe("the transcript and the singing view are shown")
            self.page.focus("#lane")
            browser.keys(RIGHT, ENTER)
            self.check_axe("a label is edited")
            browser.keys(ESCAPE)
            browser.click("#label-menu")
            self.check_axe("the tracks are shown")
