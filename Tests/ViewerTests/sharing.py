import json
import os
import re
import subprocess

from chapter import Chapter
from languages import SIZES, TAGS
from material import Service
from page import ENTER
from webdriver import wait

# The addresses of everything that the page has requested, and its own.
ADDRESSES = "return [location.href, ...performance.getEntriesByType('resource').map(entry => entry.name)]"

# Lets tokens for elements be renewed after two seconds instead of hours.
SHORT = """{
  const { fetch, setTimeout } = window;
  window.minted = 0;
  window.setTimeout = (call, delay, ...rest) => setTimeout(call, delay > 600_000 ? 2000 : delay, ...rest);
  window.fetch = (path, options) => {
    if (path === "v1/tokens") minted++;
    return fetch(path, options);
  };
}"""

# Turns requests for tokens away: by recording, [status, Retry-After or null] one after another, then as the service answers.
TURNED_AWAY = """
  const ask = window.fetch, refusals = %s;
  window.asked = {};
  window.fetch = (path, options) => {
    if (path !== "v1/tokens") return ask(path, options);
    const { recording } = JSON.parse(options.body);
    (asked[recording] ??= []).push(performance.now());
    const [status, seconds] = refusals[recording]?.shift() ?? [];
    if (!status) return ask(path, options);
    return Promise.resolve(new Response("", { status, headers: seconds ? { "Retry-After": seconds } : {} }));
  };
"""


class KeyedService(Service):
    """A service with the keys of two tenants. Requests have the first one's, unless they name another one."""

    def start(self):
        keys = self.folder.name + "/keys.jsonl"
        self.secrets = {tenant: subprocess.run(
            [self.binary, "keys", "add", tenant, "--keys", keys, "--tenant", tenant, "--scopes", "read,write,delete"],
            check=True, capture_output=True, text=True).stdout.strip() for tenant in ("acme", "stranger")}
        self.options = "--keys", keys, "--admin-listen", "127.0.0.1:0"
        super().start()

    def request(self, method, path, body=None, fields={}):
        return super().request(method, path, body, {"Authorization": f"Bearer {self.secrets['acme']}", **fields})

    def fields(self, tenant):
        return {"Authorization": f"Bearer {self.secrets[tenant]}"}

    def logged(self):
        with open(self.folder.name + "/log", encoding="utf-8") as file:
            return file.read()


class AKeyOpensAndALinkSharesRecordings(Chapter):
    service = KeyedService

    def _enter(self, secret):
        self.browser.run("document.querySelector('#access-key').value = ''")
        self.browser.type("#access-key", secret + ENTER)

    def _open_with_key(self, recording):
        """Opens a recording in a tab that has the key."""
        self.browser.open(self.service.address + "/problems/not_ready")
        self.browser.run("sessionStorage.setItem('stillwave key /', arguments[0])", self.service.secrets["acme"])
        self.browser.console()
        self.page.open(recording)

    def _is_asked(self):
        return self.browser.run("return !!document.querySelector('#ask-key')?.open")

    def _plays(self, from_seconds=0):
        self.page.focus()
        self.browser.keys(" ")
        wait("it plays", lambda: self.page.playhead() > from_seconds + 0.1)
        self.browser.keys(" ")

    def _check_secrets(self):
        secrets = self.service.secrets["acme"]
        assert not [address for address in self.browser.run(ADDRESSES) if secrets in address]
        logged = self.service.logged()
        assert secrets not in logged and "token=" not in logged and '"path":"/v1/recordings' in logged

    def a_key_is_asked_for_once_and_opens_its_tenants_recordings(self):
        browser, page, service = self.browser, self.page, self.service
        secret = service.upload(self.sound("secret.wav", 3), fields=service.fields("stranger"))
        page.open()
        wait("a key is asked for", self._is_asked)
        assert not page.names() and not browser.shown("#share") and not browser.shown("#sign-out")
        self._enter("short")
        assert self._is_asked() and browser.shown("#key-wrong")
        self._enter("x" * 43)
        wait("a wrong key is refused", lambda: self._is_asked() and browser.shown("#key-wrong"))
        self._enter(service.secrets["acme"])
        wait("the list is there", lambda: not self._is_asked() and browser.shown("#list-empty"))
        self.check_console(401)
        page.choose(self.sound("own.wav", 6))
        wait("it is listed", lambda: page.names() == ["own.wav"])
        wait("it is opened", lambda: browser.text("#name") == "own.wav")
        page.wait_for_waveform()
        wait("its picture is drawn", lambda: browser.run("return document.querySelector('#list img').naturalWidth > 0"))
        self._plays()
        wait("sound has a token", lambda: "&token=" in browser.run(
            "return document.querySelector('audio').src.replace('?', '&')"))
        browser.run("window.downloaded = []; HTMLAnchorElement.prototype.click = function () { downloaded.push(this.href); };")
        assert "token" not in browser.run("return document.querySelector('#layers [data-part=download]').href")
        browser.click("#layers [data-part=download]")
        link = wait("it is downloaded", lambda: browser.run("return downloaded[0]"))
        status, fields, _ = Service.request(service, "GET", link.removeprefix(service.address))
        assert status == 200 and "attachment" in fields["Content-Disposition"] and "private" in fields["Cache-Control"], fields
        page.press("#clean")
        wait("it is cleaned", lambda: browser.shown("#result") and browser.text("#result-figures"))
        own = self.id("own.wav")
        service.rename(own, "renamed.wav")
        wait("changes are followed", lambda: "renamed.wav" in page.names())
        browser.reload()
        wait("the tab has kept the key", lambda: "renamed.wav" in page.names())
        assert not self._is_asked() and "secret.wav" not in page.names()
        page.rest()
        self._check_secrets()
        self.check_console()
        # It doesn't exist for this tenant.
        browser.open("about:blank")
        browser.open(f"{service.address}/#{secret}")
        wait("a stranger's recording isn't shown", lambda: "no longer exists" in page.toast())
        assert browser.shown("#welcome") and browser.text("#name") == ""
        self.check_console(404)
        for width, height in ((390, 844), (1440, 900)):
            browser.size(width, height)
            page.open(own)
            assert browser.shown("#share") and browser.shown("#sign-out") and not page.overflow(), page.overflow()
        browser.click("#sign-out")
        wait("the key is forgotten", lambda: self._is_asked() and not page.names())
        self.check_console(401)

    def tokens_of_elements_are_renewed(self):
        browser, page = self.browser, self.page
        long = self.upload("long.wav", 30, rate=8000, repeats=30)
        with browser.preload(SHORT):
            self._open_with_key(long)
            address = "return document.querySelector('audio').src"
            first = wait("sound has an address", lambda: browser.run(address))
            wait("it is renewed", lambda: browser.run(address) != first)
            # Nothing of the sound here has been loaded.
            browser.drag(page.point(0.8), page.point(0.8))
            self._plays(700)
            minted = browser.run("return minted")
            wait("tokens go on being renewed", lambda: browser.run("return minted") > minted + 1)

    def tokens_that_are_turned_away_are_asked_for_again(self):
        browser, page, service = self.browser, self.page, self.service
        late, never = self.upload("late.wav", 3), self.upload("never.wav", 3)
        refusals = {late: [[503, None], [429, "2"], [503, None]], never: [[503, None]] * 100}
        with browser.preload(TURNED_AWAY % json.dumps(refusals)):
            self._open_with_key(late)
            wait("sound has a token all the same", lambda: late in browser.run("return document.querySelector('audio')?.src ?? ''"))
            asked = browser.run("return asked[arguments[0]]", late)
            pauses = [after - before for before, after in zip(asked, asked[1:])]
            # Half a second, as long as the service says, and twice half a second; a busy machine may take longer, but not less.
            assert len(pauses) == 3 and pauses[0] > 370 and pauses[1] > 1990 and pauses[2] > 740, pauses
            self._plays()
            browser.click("#list li:first-child .open")
            wait("it is said if there is none in the end", lambda: "status 503" in page.toast())
            assert len(browser.run("return asked[arguments[0]]", never)) >= 5
        browser.console()

    def _share(self, rights):
        self.page.press("#share")
        self.browser.run("""
          const choice = document.querySelector("#share-rights");
          choice.value = arguments[0];
          choice.dispatchEvent(new Event("change"));""", rights)
        self.page.press("#share-make")
        link = wait("there is a link", lambda: self.browser.shown("#share-made") and self.browser.value("#share-link"))
        assert re.fullmatch(rf"{self.service.address}/#recording=[0-9a-f-]{{36}}&token=[\w.-]+", link), link
        self.browser.run("sessionStorage.clear()")
        self.browser.open("about:blank")
        return link

    def a_link_shares_one_recording_and_nothing_else(self):
        browser, page, service = self.browser, self.page, self.service
        shared, other = self.upload("shared.wav", 5), self.upload("other.wav", 5)
        self._open_with_key(shared)
        link = self._share("read")
        browser.open(link)
        page.wait_for_waveform()
        assert browser.text("#name") == "shared.wav" and not self._is_asked()
        hidden = ("#library", "#menu", "#add", "#cleaning", "#clean", "#preview", "#variants", "#share", "#sign-out", "#label-add",
                  ".voices", "#regions")
        assert not [selector for selector in hidden if browser.shown(selector)]
        self._plays()
        # The view goes into the address beside the token, and a reload shows it again.
        browser.keys("+")
        wait("the view is in the address", lambda: re.search(rf"recording={shared}&token=.*&view=", browser.run("return location.hash")))
        browser.reload()
        page.wait_for_waveform()
        page.rest()
        calls = [address for address in browser.run(ADDRESSES)[1:] if "/v1/" in address]
        assert calls and all(f"/v1/recordings/{shared}" in address for address in calls), calls
        for width, height in ((390, 844), (844, 390), (1440, 900)):
            browser.size(width, height)
            page.settle()
            assert not page.overflow(), page.overflow()
            assert browser.box("#wave")["width"] > width * 0.9, "the waveform has the whole width"
        self.check_console()
        self._check_secrets()
        for bad in (link.replace(shared, other), link[:-2] + ("aa" if link[-2:] != "aa" else "bb"), link.rpartition(".")[0]):
            browser.open("about:blank")
            browser.open(bad)
            wait("it says that the link doesn't work", lambda: browser.shown("#share-ended"))
            assert browser.text("#name") == "" and not page.names() and not self._is_asked()
            self.check_console(401, 403)

    def _ask_for_key(self):
        self.browser.open(self.service.address + "/problems/not_ready")
        self.browser.run("sessionStorage.clear()")
        self.page.open()
        wait("a key is asked for", self._is_asked)

    def axe_finds_nothing_in_sharing(self):
        browser, page, check = self.browser, self.page, self.check_axe
        if not os.environ.get("STILLWAVE_AXE"):
            return
        browser.policy(False)
        for is_dark in (False, True):
            browser.dark(is_dark)
            self._ask_for_key()
            check("a key is asked for")
            self._enter("short")
            check("a key is wrong")
            self._open_with_key(self.id("shared.wav"))
            page.press("#share")
            check("a link is offered")
            browser.run("document.querySelector('#sharing').close()")
            link = self._share("read")
            browser.open(link)
            page.wait_for_waveform()
            check("a shared recording is open")
            browser.open("about:blank")
            browser.open(link[:-9])
            wait("it says that the link doesn't work", lambda: browser.shown("#share-ended"))
            check("a link doesn't work")
        browser.dark(False)
        browser.policy(True)
        browser.console()

    def what_is_asked_and_shared_fits_in_every_language(self):
        browser, page = self.browser, self.page
        for tag in TAGS:
            browser.language(f"{tag},en")
            for width, height in ((390, 844), (844, 390)):
                browser.size(width, height)
                self._ask_for_key()
                assert not page.overflow(), f"{tag} at {width} x {height}: {page.overflow()}"
                self._open_with_key(self.id("shared.wav"))
                page.press("#share")
                page.press("#share-make")
                wait("there is a link", lambda: browser.shown("#share-made"))
                assert not page.overflow(), f"{tag} at {width} x {height}: {page.overflow()}"
            link = browser.value("#share-link")
            browser.run("sessionStorage.clear()")
            for address, is_shared in ((link, lambda: page.ink("#waves") > 1000), (link[:-9], lambda: browser.shown("#share-ended"))):
                browser.open("about:blank")
                browser.open(address)
                wait("what the link has is shown", is_shared)
                for width, height in SIZES:
                    browser.size(width, height)
                    page.settle()
                    found = page.overflow()
                    assert not found, f"{tag}, shared, at {width} x {height}: {found}"
        browser.language("en-US,en")
        browser.size(1440, 900)
        browser.console()

    def a_link_may_allow_labels(self):
        browser, page, service = self.browser, self.page, self.service
        shared = self.id("shared.wav")
        labels = f"/v1/recordings/{shared}/labels"
        self._open_with_key(shared)
        browser.open(self._share("read,write"))
        page.wait_for_waveform()
        page.press("#label-add")
        wait("its text is asked for", lambda: browser.shown("#label-editor"))
        browser.keys(*"Hello", ENTER)
        wait("the label is kept", lambda: [
            label["text"] for track in service.json(labels)["tracks"] for label in service.json(f"{labels}/{track['id']}")["labels"]] == ["Hello"])
        self.check_console()
        self._open_with_key(shared)
        browser.open(self._share("read"))
        page.wait_for_waveform()
        wait("the label is shown", lambda: page.ink("#labels") > 50)
        browser.drag(page.point(0.002, 0.5, "#lane"), page.point(0.002, 0.5, "#lane"))
        browser.keys(ENTER)
        if browser.shown("#label-editor"):
            browser.keys(*"Bye", ENTER)
            wait("the link doesn't allow it", lambda: "doesn’t allow" in page.toast())
        self.check_console()
