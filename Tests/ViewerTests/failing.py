import signal

from chapter import Chapter
from page import CONTROL, COPY, ENTER
from webdriver import wait

# Pixels of the waveform, beside its middle line, that are drawn in full color and faintly.
STRENGTHS = COPY + """
  const { data, width, height } = copy(document.querySelector("#waves")), middle = Math.round(height / 2);
  let [full, faint] = [0, 0];
  for (let y = 0; y < height; y++) {
    if (Math.abs(y - middle) < 3) continue;
    for (let x = 0; x < width; x++) {
      const alpha = data[4 * (y * width + x) + 3];
      if (alpha > 200) full++;
      else if (alpha) faint++;
    }
  }
  return [full, faint];"""

# Answers requests with 503 whose path fits an expression.
UNAVAILABLE = """
  window.answered ??= window.fetch;
  window.fetch = (path, options) => (
    /%s/.test(path) ? Promise.resolve(new Response("{}", { status: 503 })) : answered(path, options));"""


class WhatFailsSaysSoAndGoesOn(Chapter):
    data, address = "talk", ("talk.wav", "")

    def a_recording_that_cannot_be_read_says_why_and_what_to_do(self):
        browser, page = self.browser, self.page
        with self.service.holding(b"waveform") as step:
            page.choose(self.sound("broken.wav", 8, channels=2, repeats=100))
            wait("it is opened", lambda: browser.text("#name") == "broken.wav")
            wait("the failure is shown", lambda: step(signal.SIGKILL) or browser.shown("#failure"))
        assert "The service has failed" in browser.text("#failure-reason"), browser.text("#failure-reason")
        row = "#list li:first-child"
        wait("the row shows it too", lambda: "The service has failed" in browser.text(f"{row} [data-part=reason]"))
        assert "could not be read" in browser.text(f"{row} [data-part=about]")
        page.rest()
        browser.reload()
        wait("it lasts", lambda: browser.shown("#failure") and "The service has failed" in browser.text("#failure-reason"))
        wait("in the row too", lambda: browser.shown(f"{row} [data-part=retry]"))
        assert not browser.run("return !document.querySelector('#clean').disabled")
        browser.click("#failure-retry")
        page.wait_for_waveform()
        wait("it is read", lambda: not browser.shown("#failure") and page.reach() > 0.98)
        wait("the row is as any other", lambda: not browser.shown(f"{row} [data-part=failure]"))

    def a_service_that_was_away_is_found_again(self):
        browser, page = self.browser, self.page
        page.open(self.id("talk.wav"))
        page.focus()
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
                                          for recording in self.service.recordings()))
        # The browser logs the lost requests itself.
        self.browser.console()

    def the_first_label_waits_for_the_service(self):
        browser, page = self.browser, self.page
        first = self.id("first.wav")
        page.open(first)
        page.rest()
        self.service.stop()
        page.focus()
        browser.keys("m")
        browser.type("#label-text", "not lost" + ENTER)
        wait("it is shown", lambda: page.ink("#labels") > 100)
        wait("the page says that it can't be saved yet", lambda: browser.shown("#away"))
        self.service.start()

        def stored():
            path = f"/v1/recordings/{first}/labels"
            return [[label["text"] for label in self.service.json(f"{path}/{track['id']}")["labels"]] for track in self.service.json(path)["tracks"]]
        wait("it is stored when the service is back", lambda: stored() == [["not lost"]])
        page.focus()
        browser.keys((CONTROL, "z"), (CONTROL, "z"))
        wait("it can be undone", lambda: stored() == [[]])
        self.browser.console()

    def what_is_not_loaded_is_not_invented(self):
        browser, page = self.browser, self.page
        page.open(self.id("talk.wav"))
        page.rest()
        browser.run(UNAVAILABLE % "waveform[.]points")
        page.focus()
        browser.keys(*"++++++++")
        wait("it is said", lambda: browser.text("#loading") == "Loading\u2026" and browser.shown("#loading"))
        full, faint = browser.run(STRENGTHS)
        assert not full and faint > 1000, f"what is known coarsely is drawn faintly: {full}, {faint}"
        wait("and said again after some seconds", lambda: "slow to answer" in browser.text("#loading"))
        browser.run("window.fetch = answered")
        wait("it mends itself", lambda: browser.run(STRENGTHS)[0] > 1000 and not browser.shown("#loading"))
        assert not browser.run(STRENGTHS)[1] and not browser.shown("#away")

    def a_proxy_that_answers_in_its_place_is_seen_through(self):
        browser, page = self.browser, self.page
        browser.run(UNAVAILABLE % ".")
        browser.keys("0", *"+++")
        wait("the page says so", lambda: browser.shown("#away"))
        browser.run("window.fetch = answered")
        wait("and that it is back", lambda: not browser.shown("#away"))
        wait("it is drawn", lambda: not browser.run(STRENGTHS)[1] and not browser.shown("#loading"))
