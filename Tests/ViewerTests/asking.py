import math

from chapter import Chapter
from failing import STRENGTHS
from webdriver import wait

# Runs before the page's own scripts: notes each request of a recording, when the page has read its answer if that is binary,
# and how many requests have no answer yet.
ASKED = """
window.asked = [];
window.pending = 0;
const ask = window.fetch;
window.fetch = (path, options) => {
  const [isOfRecording, id, kind] = /^v1\\/recordings\\/([^/?]+)\\/?([^?]*)/.exec(path) ?? [];
  const entry = { path: String(path), id, kind, body: options?.body && JSON.parse(options.body), at: performance.now() };
  if (isOfRecording) asked.push(entry);
  pending++;
  return ask(path, options).then(answer => {
    const read = answer.arrayBuffer.bind(answer);
    entry.type = answer.headers.get("Content-Type");
    answer.arrayBuffer = async () => {
      const bytes = await read();
      entry.came = performance.now();
      return bytes;
    };
    return answer;
  }).finally(() => { pending--; });
};
"""

# The bytes of a recording's answers, without the list and its pictures.
LOADED = """
return performance.getEntriesByType("resource").filter(entry => /\\/v1\\/recordings\\/./.test(entry.name) && !/png/.test(entry.name))
  .reduce((sum, entry) => sum + entry.encodedBodySize, 0);"""

# Lengths of views, in seconds, and what each may need until it rests, without and with a result.
VIEWS, KILOBYTES, KILOBYTES_WITH_RESULT = (29.9, 20, 0.5, 0.002), 60, 65


def open_and_rest(page, place):
    """Opens a view and returns what it has asked for, and how many bytes came."""
    page.open(place)
    wait("the pictures are drawn", lambda: all(
        page.ink(f"#variant-list > :nth-child({k} of :not([hidden])) canvas") > 100 for k in (1, 2, 3, 4)))
    # The spectra come last. One request remains: the one for what others change.
    wait("the spectrum is drawn", lambda: page.ink("#spectrum") > 100)
    wait("all is loaded", lambda: page.browser.run("return rests() && pending <= 1"))
    return page.browser.run("return asked"), page.browser.run(LOADED)


class WhatIsDrawnIsAskedForFirst(Chapter):
    data = "cleaned"

    def begin(self):
        self.browser.devtools("Page.addScriptToEvaluateOnNewDocument", source=ASKED)
        self._list()

    def _list(self):
        self.page.open()
        wait("all are listed", lambda: len(self.page.names()) == 3)

    def _click(self, name):
        """Clicks on a recording in the list and returns the kinds of requests that follow at once."""
        return self.browser.run("""
          asked.length = 0;
          document.querySelector(`[data-id="${arguments[0]}"] .open`).click();
          return new Promise(done => setTimeout(() => done(asked.map(({ id, kind }) => [id, kind]))));""", self.id(name))

    def points_come_first_and_wait_for_nothing(self):
        self.hold("/labels|noise-regions|methods|spectrum/.test(path)")
        talk = self.id("talk.wav")
        first = self._click("talk.wav")
        assert first == [[talk, "waveform.points"]], first
        self.page.wait_for_waveform()
        self.let_pass()

    def a_result_is_asked_for_together_with_its_source(self):
        talk, result = self.id("talk.wav"), self.id("talk (Natural).wav")
        self._list()
        self.hold(f"path === 'v1/recordings/{talk}'")
        first = self._click("talk (Natural).wav")
        assert first == [[result, "waveform.points"], [talk, ""]], first
        self.wait_for_held()
        self.let_pass()
        wait("both are drawn", lambda: self.page.tinted(1) > 1000)

    def a_view_at_rest_needs_little(self):
        for name, most in (("talk.wav", KILOBYTES), ("talk (Natural).wav", KILOBYTES_WITH_RESULT)):
            for seconds in VIEWS:
                asked, loaded = open_and_rest(self.page, f"{self.id(name)}&view=100-{100 + seconds}")
                kinds = [entry["kind"] for entry in asked]
                assert [kinds.count(kind) for kind in ("denoise/preview", "spectrum", "labels", "noise-regions")] == [4, 5, 1, 1], kinds
                assert all(entry["body"]["as"] == "points" for entry in asked if entry["kind"] == "denoise/preview"), "no sound"
                # The loudness is asked for until it is measured.
                paths = [entry["path"] for entry in asked if not entry["body"] and entry["kind"] != "loudness"]
                assert len(set(paths)) == len(paths), f"and nothing twice: {sorted(paths)}"
                self.figures.append(f"{name}, {seconds} s: {loaded / 1000:.1f} KB, {len(asked)} requests")
                assert loaded / 1000 <= most, f"{name}, {seconds} s: {loaded}"

    def sound_is_loaded_when_it_is_played(self):
        self.browser.click("#preview")
        sounds = wait("its sound has come", lambda: self.browser.run(
            "return asked.filter(({ kind, body, type }) => kind === 'denoise/preview' && !body.as && type).map(({ type }) => type)"))
        # One for each of the voices that may be heard.
        assert set(sounds) == {"audio/flac"}, sounds
        wait("it plays", self.page.is_playing)
        self.browser.keys(" ")

    def zooming_out_shows_at_once_what_was_seen(self):
        browser, page = self.browser, self.page
        page.open(f"{self.id('talk.wav')}&view=100-120")
        page.rest()
        wait("what is around it is loaded", lambda: browser.run("return pending <= 1"))
        self.hold("path.includes('waveform.points')")
        page.focus()
        browser.keys("-")
        assert page.window()[1] > 125
        full, faint = browser.run(STRENGTHS)
        assert full > 1000 and not faint, f"nothing is blurred: {full}, {faint}"
        self.let_pass()

    def small_steps_load_the_points_of_their_scale(self):
        browser, page = self.browser, self.page
        page.open(f"{self.id('first.wav')}&view=0-7.9")
        page.rest()
        while page.window()[1] > 4.6:
            browser.wheel(page.point(0.001), y=-20, count=4)
        width = browser.run("return document.querySelector('#waves').width")
        scale = 2 ** int(math.log2(1.05 * page.window()[1] * 44100 / width))
        wait("points of that scale are asked for", lambda: browser.run(
            "return asked.some(({ path }) => path.includes(`&scale=${arguments[0]}&start=0&`))", scale))

    def each_frame_is_drawn_once(self):
        page = self.page
        page.focus()
        self.browser.run("""
          const { clearRect } = CanvasRenderingContext2D.prototype;
          window.drawn = [];
          CanvasRenderingContext2D.prototype.clearRect = function (...area) {
            if (this.canvas.id === "waves") drawn.push(document.timeline.currentTime);
            return clearRect.apply(this, area);
          };""")
        self.browser.keys("0", *"+++")
        page.rest()
        drawn = self.browser.run("return drawn")
        assert len(drawn) > 3 and len(set(drawn)) == len(drawn), drawn
