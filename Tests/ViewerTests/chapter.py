"""What the chapters of the story have in common."""

import os
import re

from material import Service, speech_like, write_wav
from page import ENTER, Page
from webdriver import wait

# Answers to requests for which a condition on `path` and `options` is true are kept from the page until `pass()`.
HOLD = """
const ask = window.fetch;
let open;
const opened = new Promise(done => { open = done; });
window.holds = 0;
window.pass = () => { window.fetch = ask; open(); };
window.fetch = async (path, options) => {
  const isHeld = %s, answer = await ask(path, options);
  if (isHeld) { window.holds++; await opened; }
  return answer;
};
"""


class Chapter:
    """Steps that follow one another, in a browser and with a service of their own.

    A step is a method of the subclass without an underscore; each leaves the page as the next one expects it.
    """

    # What the service begins with (see `Folders.prepared`).
    data = None
    # The page's address at the beginning: the name of a recording, and what follows its id.
    address = ("", "")
    # Whether browsers may differ in what it's about: playback, pointers, canvases, the clipboard, downloads.
    differs = False
    service = Service

    def __init__(self, browser, service, folder, pictures):
        self.browser, self.service, self.folder, self.pictures = browser, service, folder, pictures
        self.page = Page(browser, service.address)
        # What is measured, for people.
        self.figures = []

    @classmethod
    def steps(cls):
        return [(name.replace("_", " "), step) for name, step in vars(cls).items()
                if callable(step) and not name.startswith("_") and name not in ("service", "begin")]

    def begin(self):
        recording, place = self.address
        self.page.open(self.id(recording) + place if recording else "")

    def id(self, name):
        return self.service.named(name)["id"]

    def sound(self, name, seconds, rate=16000, seed=3, **options):
        """Writes a file."""
        return write_wav(os.path.join(self.folder, name), speech_like(seconds, rate, seed), rate, **options)

    def upload(self, name, seconds, **options):
        """Uploads a recording and returns its id."""
        return self.service.upload(self.sound(name, seconds, **options))

    def reload(self):
        self.page.rest()
        self.browser.reload()
        self.page.wait_for_waveform()
        self.page.focus()

    def select(self, start, end):
        """Types a selection."""
        for field, text in (("#select-from", start), ("#select-to", end)):
            self.browser.run("document.querySelector(arguments[0]).select()", field)
            self.browser.type(field, text + ENTER)
        self.page.focus()

    def hold(self, condition):
        """Keeps answers from the page, those for whose `path` and `options` of fetch the condition is true, until `let_pass`."""
        self.browser.run(HOLD % condition)

    def wait_for_held(self):
        wait("an answer is held", lambda: self.browser.run("return holds > 0"))

    def let_pass(self):
        self.browser.run("pass()")

    def check_axe(self, state):
        """Checks the page's accessibility. Its policy must be off."""
        self.page.rest()
        with open(os.environ["STILLWAVE_AXE"], encoding="utf-8") as file:
            self.browser.inject(file.read())
        found = self.browser.run("return axe.run().then(({ violations }) => violations.map(({ id, nodes }) => [id, nodes.map(node => node.target[0])]))")
        assert not found, f"{state}: {found}"

    def check_console(self, *statuses):
        """Checks that the page has logged no error. The browser logs each answer with an error; these were expected."""
        # Answers that ask for patience while the service measures or converts.
        busy = r"/(loudness|audio\?\S*format=)"
        found = [entry["message"] for entry in self.browser.console()
                 if not any(f"status of {status}" in entry["message"] for status in statuses)
                 and not ("status of 503" in entry["message"] and re.search(busy, entry["message"]))]
        assert not found, found
