"""Uploads from the page through a failing proxy: what the uploader gives up, repeats and waits for."""

import array
import hashlib
import os

from material import write_wav
from page import Page
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


class UploadFaults:
    def __init__(self, browser, service, folder):
        self.browser, self.service, self.folder = browser, service, folder
        samples = os.urandom(2 << 20)
        self.path = os.path.join(folder, "pieces.wav")
        with open(write_wav(self.path, array.array("h"), 44100), "r+b") as file:
            # Two and a half pieces.
            file.seek(0, 2)
            for _ in range(20):
                file.write(samples)
            length = file.tell()
            file.seek(4)
            file.write((length - 8).to_bytes(4, "little"))
            file.seek(40)
            file.write((length - 44).to_bytes(4, "little"))
        self.length = os.path.getsize(self.path)
        with open(self.path, "rb") as file:
            self.digest = hashlib.sha256(file.read()).hexdigest()

    def run(self):
        for scene in (self.what_passes_is_waited_out, self.a_reload_goes_on_behind_an_error,
                      self.an_upload_that_is_gone_begins_again, self.a_lost_refusal_is_heard, self.a_person_may_wait_too):
            proxy = Proxy(self.service)
            try:
                self.page = Page(self.browser, proxy.address)
                self.open()
                scene(proxy)
            except Exception as failure:
                raise AssertionError(f"{scene.__name__}: {failure}; {proxy.seen}") from None
            finally:
                self.browser.open("about:blank")
                proxy.close()
                for recording in self.service.json("/v1/recordings")["recordings"]:
                    if recording["name"] in ("pieces.wav", "notes.wav"):
                        self.service.request("DELETE", f"/v1/recordings/{recording['id']}")
                # The browser logs each response with an error.
                self.browser.console()

    def open(self):
        self.page.open()
        self.browser.run(HASTE)

    def wait_for_the_whole(self, proxy, bytes_passed):
        wait("it is listed", lambda: self.page.names()[:1] == ["pieces.wav"], 120)
        whole = self.service.json("/v1/recordings")["recordings"][0]
        assert (whole["bytes"], whole["sha256"]) == (self.length, self.digest)
        assert proxy.passed == bytes_passed, f"{proxy.passed} bytes were sent, {bytes_passed} had to be"
        strays = [request for request in proxy.seen if request[0] == "PATCH" and not request[1].startswith("/v1/uploads/")]
        assert not strays and not proxy.faults

    def made(self, proxy):
        return sum(method == "POST" and status == 201 for method, _, status in proxy.seen)

    def what_passes_is_waited_out(self, proxy):
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
        self.wait_for_the_whole(proxy, self.length)
        assert self.made(proxy) == 1
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

    def a_reload_goes_on_behind_an_error(self, proxy):
        proxy.faults = [Fault("PATCH", 204, body=b"", is_passed=True)] + [Fault("PATCH", 503)] * 100
        # The first piece gets an empty response; the next ones are refused until the page is closed.
        self.page.choose(self.path)
        wait("it says that it tries again", lambda: "Trying again" in self.browser.text(".transfer [data-part=about]"))
        wait("the second piece was refused", lambda: sum(seen[2] == 503 for seen in proxy.seen) >= 2)
        self.browser.open("about:blank")
        proxy.faults = [Fault("HEAD", 502), Fault("HEAD", 403)]
        self.open()
        self.page.choose(self.path)
        wait("a refusal is told", lambda: "403" in self.page.toast())
        self.page.press(".toast [data-part=action]")
        self.wait_for_the_whole(proxy, self.length)
        assert self.made(proxy) == 1, "and it is still the same upload"

    def an_upload_that_is_gone_begins_again(self, proxy):
        def delete():
            upload = next(path for method, path, _ in proxy.seen if method == "PATCH")
            assert self.service.request("DELETE", upload, None, {"Tus-Resumable": "1.0.0"})[0] == 204

        proxy.faults = [Fault("PATCH", 204, {"Upload-Offset": str(PIECE)}, b"", is_passed=True), Fault("PATCH", 409, before=delete)]
        self.page.choose(self.path)
        self.wait_for_the_whole(proxy, PIECE + self.length)
        assert self.made(proxy) == 2

    def a_lost_refusal_is_heard(self, proxy):
        notes = os.path.join(self.folder, "notes.wav")
        with open(notes, "wb") as file:
            file.write(b"This is no sound at all.\n" * 999)
        proxy.faults = [Fault("PATCH", 502, is_passed=True)]
        for attempt in range(2):
            self.page.choose(notes)
            wait("the service's own words are shown", lambda: "notes.wav: " in self.page.toast())
            assert "kind of sound" in self.page.toast() or "not" in self.page.toast(), self.page.toast()
            self.page.press(".toast [data-part=close]")
        assert proxy.passed == os.path.getsize(notes) and self.made(proxy) == 1, "it was sent once"

    def a_person_may_wait_too(self, proxy):
        proxy.faults = [Fault("POST", 503, {"Retry-After": "3000"})] * 3
        self.page.choose(self.path)
        wait("it waits", lambda: "Trying again" in self.browser.text(".transfer [data-part=about]"))
        self.page.press(".transfer [data-part=pause]")
        wait("it is paused", lambda: "paused" in self.browser.text(".transfer"))
        self.page.press(".transfer [data-part=cancel]")
        wait("it is gone", lambda: not self.browser.all(".transfer"))
        proxy.faults = []
