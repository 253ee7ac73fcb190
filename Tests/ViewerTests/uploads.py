import array
import contextlib
import hashlib
import os
import re

from chapter import Chapter
from material import write_wav
from page import Page, in_chromium
from proxy import RESET, Fault, Proxy
from webdriver import wait

# Records and shortens the uploader's pauses, which are recognized by fractional milliseconds or Retry-After.
HASTE = """
const { setTimeout } = window;
window.pauses = [];
window.setTimeout = (call, delay, ...rest) => {
  if (Number.isInteger(delay) && ![7000, 11000, 13000].includes(delay)) return setTimeout(call, delay, ...rest);
  window.pauses.push(delay);
  return setTimeout(call, Math.min(delay, 30), ...rest);
};
"""
PIECE = 16 << 20


class UploadsOutliveWhatGoesWrong(Chapter):
    def begin(self):
        super().begin()
        self.direct = self.page
        self.path = os.path.join(self.folder, "pieces.wav")
        # Two and a half pieces.
        write_wav(self.path, array.array("h", os.urandom(2 << 20)), 44100, repeats=20)
        self.length = os.path.getsize(self.path)
        with open(self.path, "rb") as file:
            self.digest = hashlib.sha256(file.read()).hexdigest()

    @contextlib.contextmanager
    def _proxy(self, prefix=""):
        """Opens the page through a proxy."""
        proxy = Proxy(self.service, prefix)
        try:
            self.page = Page(self.browser, proxy.address)
            self._open()
            self.count = len(self.service.recordings())
            yield proxy
        except Exception as failure:
            raise AssertionError(f"{failure}; {proxy.seen}") from failure
        finally:
            self.browser.open("about:blank")
            proxy.close()
        # The browser logs each response with an error.
        self.browser.console()

    def _open(self):
        self.page.open()
        self.browser.run(HASTE)

    def the_page_works_below_a_path(self):
        browser = self.browser
        # The proxy removes the path, so the service doesn't see it.
        with self._proxy(prefix="/tools/audio") as proxy:
            page = self.page
            page.choose(self.sound("below.wav", 3))
            wait("it is listed", lambda: page.names() == ["below.wav"])
            wait("it is opened", lambda: browser.text("#name") == "below.wav")
            page.wait_for_waveform()
            wait("its picture is drawn", lambda: browser.run("return document.querySelector('#list img').naturalWidth > 0"))
            page.focus()
            browser.keys(" ")
            wait("it plays", lambda: page.playhead() > 0.1)
            link = browser.run("return document.querySelector('#layers [data-part=download]').href")
            assert link.startswith(proxy.address + "/v1/recordings/"), link
            assert all(path.startswith("/tools/audio/v1/") for _, path, _ in proxy.seen), proxy.seen
            self.check_console()

    def _wait_for_the_whole(self, proxy, bytes_passed):
        wait("it is listed", lambda: len(self.page.names()) > self.count)
        whole = self.service.recordings()[0]
        assert (whole["bytes"], whole["sha256"]) == (self.length, self.digest)
        assert proxy.passed == bytes_passed, f"{proxy.passed} bytes were sent, {bytes_passed} had to be"
        strays = [request for request in proxy.seen if request[0] == "PATCH" and not request[1].startswith("/v1/uploads/")]
        assert not strays and not proxy.faults

    def _made(self, proxy):
        return sum(method == "POST" and status == 201 for method, _, status in proxy.seen)

    def what_passes_is_waited_out(self):
        with self._proxy() as proxy:
            proxy.faults = [
                Fault("POST", 503, {"Retry-After": "7"}), Fault("POST", 502),
                # A proxy cuts the first piece off, then asks for a password, then is unreachable.
                Fault("PATCH", 502), Fault("HEAD", 502), Fault("HEAD", 200), Fault("HEAD", 503, {"Retry-After": "11"}),
                Fault("PATCH", 429, {"Retry-After": "13"}), Fault("PATCH", 423), Fault("PATCH", 200),
                # The piece arrives, but its response is lost.
                Fault("PATCH", 504, is_passed=True), Fault("PATCH", 500), Fault("PATCH", RESET),
                Fault("PATCH", 500, {"Retry-After": "13"}),
            ]
            self.page.choose(self.path)
            self._wait_for_the_whole(proxy, self.length)
            assert self._made(proxy) == 1
            # Shorter pauses belong to drawing.
            pauses = self.browser.run("return window.pauses.filter(delay => delay >= 375)")
            assert pauses[0] == 7000, pauses
            # No byte arrives between the others, so each pause is twice the previous one, within a quarter.
            bases = [1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000, 30000]
            # A piece that arrives resets the pauses.
            bases.append(500)
            assert all(0.75 * base <= pause <= 1.25 * base for base, pause in zip(bases, pauses[1:], strict=False)), pauses
            # The browser itself may have repeated a request that was reset.
            assert pauses[-1] == 13000 and len(pauses) in (12, 13), pauses

    def a_reload_goes_on_behind_an_error(self):
        with self._proxy() as proxy:
            proxy.faults = [Fault("PATCH", 204, body=b"", is_passed=True)] + [Fault("PATCH", 503)] * 100
            # The first piece gets an empty response; the next ones are refused until the page is closed.
            self.page.choose(self.path)
            wait("it says that it tries again", lambda: "Trying again" in self.browser.text(".transfer [data-part=about]"))
            wait("the second piece was refused", lambda: sum(seen[2] == 503 for seen in proxy.seen) >= 2)
            self.browser.open("about:blank")
            proxy.faults = [Fault("HEAD", 502), Fault("HEAD", 403)]
            self._open()
            self.page.choose(self.path)
            wait("a refusal is told", lambda: "403" in self.page.toast())
            self.page.press(".toast [data-part=action]")
            self._wait_for_the_whole(proxy, self.length)
            assert self._made(proxy) == 1, "and it is still the same upload"

    def an_upload_that_is_gone_begins_again(self):
        with self._proxy() as proxy:
            def delete():
                upload = next(path for method, path, _ in proxy.seen if method == "PATCH")
                assert self.service.request("DELETE", upload, None, {"Tus-Resumable": "1.0.0"})[0] == 204

            proxy.faults = [Fault("PATCH", 204, {"Upload-Offset": str(PIECE)}, b"", is_passed=True), Fault("PATCH", 409, before=delete)]
            self.page.choose(self.path)
            self._wait_for_the_whole(proxy, PIECE + self.length)
            assert self._made(proxy) == 2

    def a_lost_refusal_is_heard(self):
        with self._proxy() as proxy:
            notes = os.path.join(self.folder, "notes.wav")
            with open(notes, "wb") as file:
                file.write(b"This is no sound at all.\n" * 999)
            proxy.faults = [Fault("PATCH", 502, is_passed=True)]
            for attempt in range(2):
                self.page.choose(notes)
                wait("the service's own words are shown", lambda: "notes.wav: " in self.page.toast())
                assert "kind of sound" in self.page.toast() or "not" in self.page.toast(), self.page.toast()
                self.page.press(".toast [data-part=close]")
            assert proxy.passed == os.path.getsize(notes) and self._made(proxy) == 1, "it was sent once"

    def a_person_may_wait_too(self):
        with self._proxy() as proxy:
            proxy.faults = [Fault("POST", 503, {"Retry-After": "3000"})] * 3
            self.page.choose(self.path)
            wait("it waits", lambda: "Trying again" in self.browser.text(".transfer [data-part=about]"))
            self.page.press(".transfer [data-part=pause]")
            wait("it is paused", lambda: "paused" in self.browser.text(".transfer"))
            self.page.press(".transfer [data-part=cancel]")
            wait("it is gone", lambda: not self.browser.all(".transfer"))

    @in_chromium("it slows the network down")
    def an_upload_pauses_and_goes_on(self):
        browser, page = self.browser, self.direct
        path = self.sound("slow.wav", 4, repeats=40)
        page.open()
        names = wait("the list is there", page.names)
        browser.slow(100_000)
        page.choose(path)
        page.press(".transfer [data-part=pause]")
        wait("it is paused", lambda: "paused" in browser.text(".transfer"))
        assert page.names() == names, page.names()
        browser.slow(None)
        browser.click(".transfer [data-part=pause]")
        wait("it goes on to the end", lambda: page.names() == ["slow.wav", *names])
        wait("it is opened", lambda: browser.text("#name") == "slow.wav")

    @in_chromium("it slows the network down, and has a touch screen")
    def a_phone_shows_what_it_sends(self):
        browser, page = self.browser, self.direct
        browser.size(390, 844, ratio=2, touch=True)
        page.open()
        names = wait("the list is there", page.names)
        assert "Choose" in browser.run("return document.querySelector('#welcome').innerText") and browser.shown("#choose")
        assert "Drop" not in browser.run("return document.querySelector('#welcome').innerText")
        browser.slow(100_000)
        page.choose(self.sound("memo.wav", 4, repeats=40))
        wait("it is named", lambda: page.seen("#sending") and re.search(r"memo\.wav, \d+%", browser.text("#sending-text")))
        browser.click("#sending")
        page.press(".transfer [data-part=cancel]")
        wait("it is gone", lambda: not browser.all(".transfer") and not browser.shown("#sending"))
        browser.slow(None)
        assert page.names() == names, page.names()

    @in_chromium("it slows the network down")
    def many_uploads_are_one_line_and_are_canceled_together(self):
        browser, page = self.browser, self.direct
        browser.size(1440, 900)
        page.open()
        names = wait("the list is there", page.names)
        browser.slow(100_000)
        page.choose(*[self.sound(f"take {k}.wav", 1, repeats=40) for k in range(9)])
        shown = "return [...document.querySelectorAll('.transfer')].filter(row => row.checkVisibility()).length"
        wait("three are listed", lambda: browser.run(shown) == 3)
        wait("all are in one line", lambda: re.search(r"take 0\.wav and 8 others, \d+%", browser.text("#transfers-sum [data-part=text]")))
        assert page.seen("#welcome-sending progress") > 3 and not browser.shown("#choose"), "the empty page shows it, too"
        assert browser.box("#list")["y"] < 420, browser.box("#list")
        browser.click("#cancel-all")
        wait("they are gone", lambda: not browser.all(".transfer") and not browser.shown("#transfers-sum") and browser.shown("#choose"))
        browser.slow(None)
        assert page.names() == names, page.names()
