"""Steps of the story about a service with keys: a person enters one, and shares a recording with somebody who has none."""

import json
import os
import re
import subprocess

from languages import SIZES, TAGS
from material import Service, speech_like, write_wav
from page import ENTER, Page
from webdriver import wait

# The addresses of everything that the page has requested, and its own.
ADDRESSES = "return [location.href, ...performance.getEntriesByType('resource').map(entry => entry.name)]"

# Lets tokens for elements end after four seconds instead of hours.
SHORT = """
  const ask = window.fetch;
  window.minted = 0;
  window.fetch = (path, options = {}) => {
    if (path !== "v1/tokens") return ask(path, options);
    minted++;
    return ask(path, { ...options, body: JSON.stringify({ ...JSON.parse(options.body), expires_in: 4 }) });
  };
"""


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

    def __init__(self, binary):
        self.secrets = {}
        super().__init__(binary)

    def start(self):
        path = self.folder.name + "/keys.jsonl"
        for tenant in () if self.secrets else ("acme", "stranger"):
            self.secrets[tenant] = subprocess.run(
                [self.binary, "keys", "add", tenant, "--keys", path, "--tenant", tenant, "--scopes", "read,write,delete"],
                check=True, capture_output=True, text=True).stdout.strip()
        self.log = open(self.folder.name + "/log", "ab")
        self.process = subprocess.Popen(
            [self.binary, "serve", "--listen", f"127.0.0.1:{self.port}", "--data", self.folder.name + "/data", "--keys", path,
             "--admin-listen", "127.0.0.1:0"],
            stdout=subprocess.DEVNULL, stderr=self.log)
        wait("the service answers", self.is_alive)

    def request(self, method, path, body=None, fields={}):
        return super().request(method, path, body, {"Authorization": f"Bearer {self.secrets['acme']}", **fields})

    def upload_as(self, tenant, path, name):
        with open(path, "rb") as file:
            status, _, body = self.request("POST", f"/v1/recordings?name={name}", file.read(), self.fields(tenant))
        assert status == 201, body
        return json.loads(body)["id"]

    def fields(self, tenant):
        return {"Authorization": f"Bearer {self.secrets[tenant]}"}

    def logged(self):
        with open(self.folder.name + "/log", encoding="utf-8") as file:
            return file.read()


class Sharing:
    """Works with a service of its own, which ends with the last step."""

    def __init__(self, story):
        self.story, self.browser, self.folder = story, story.browser, story.folder

    def steps(self):
        return [self.without_keys_nothing_is_asked_and_nothing_more_requested, self.a_key_is_asked_for_once_and_opens_its_tenants_recordings, self.tokens_of_elements_are_renewed,
                self.tokens_that_are_turned_away_are_asked_for_again,
                self.a_link_shares_one_recording_and_nothing_else, self.axe_finds_nothing_in_sharing, self.what_is_asked_and_shared_fits_in_every_language,
                self.a_link_may_allow_labels]

    @property
    def service(self):
        if not hasattr(self.story, "keyed"):
            self.story.keyed = KeyedService(self.story.service.binary)
        return self.story.keyed

    @property
    def page(self):
        return Page(self.browser, self.service.address)

    def sound(self, name, seconds, seed):
        return write_wav(os.path.join(self.folder, name), speech_like(seconds, 16000, seed=seed), 16000)

    def enter(self, secret):
        self.browser.run("document.querySelector('#access-key').value = ''")
        self.browser.type("#access-key", secret + ENTER)

    def open_with_key(self, recording):
        """Opens a recording in a tab that has the key."""
        self.browser.open(self.service.address + "/problems/not_ready")
        self.browser.run("sessionStorage.setItem('stillwave key /', arguments[0])", self.service.secrets["acme"])
        self.browser.console()
        self.page.open(recording)

    def is_asked(self):
        return self.browser.run("return !!document.querySelector('#ask-key')?.open")

    def plays(self, from_seconds=0):
        self.browser.run("document.querySelector('#wave').focus()")
        self.browser.keys(" ")
        wait("it plays", lambda: self.page.playhead() > from_seconds + 0.1)
        self.browser.keys(" ")

    def expect_refusals(self, *statuses):
        """The browser logs each request that was refused; nothing else may have gone wrong."""
        wrong = [entry["message"] for entry in self.browser.console()
                 if not any(f"status of {status}" in entry["message"] for status in statuses)]
        assert not wrong, wrong

    def check_secrets(self):
        secrets = self.service.secrets["acme"]
        assert not [address for address in self.browser.run(ADDRESSES) if secrets in address]
        logged = self.service.logged()
        assert secrets not in logged and "token=" not in logged and '"path":"/v1/recordings' in logged

    def without_keys_nothing_is_asked_and_nothing_more_requested(self):
        service, browser = self.story.service, self.browser
        path = self.sound("open.wav", 3, 30)
        recording = service.upload(path, "open.wav")
        page = Page(browser, service.address)
        page.open(recording)
        wait("sound is loaded", lambda: browser.run("return document.querySelector('audio')?.readyState > 0"))
        page.window()
        addresses = browser.run(ADDRESSES)
        assert not self.is_asked() and not browser.shown("#share") and not browser.shown("#sign-out")
        assert not [address for address in addresses if "token" in address], addresses
        # Each thing once; a sound is read in several parts.
        once = [address for address in addresses if re.search(r"/v1/(noise-profiles|recordings\?)", address)]
        assert len(once) == len(set(once)) == 2, once
        browser.open("about:blank")
        service.request("DELETE", f"/v1/recordings/{recording}")

    def a_key_is_asked_for_once_and_opens_its_tenants_recordings(self):
        browser, page, service = self.browser, self.page, self.service
        secret = service.upload_as("stranger", self.sound("secret.wav", 3, 31), "secret.wav")
        page.open()
        wait("a key is asked for", self.is_asked)
        assert not page.names() and not browser.shown("#share") and not browser.shown("#sign-out")
        self.enter("short")
        assert self.is_asked() and browser.shown("#key-wrong")
        self.enter("x" * 43)
        wait("a wrong key is refused", lambda: self.is_asked() and browser.shown("#key-wrong"))
        self.enter(service.secrets["acme"])
        wait("the list is there", lambda: not self.is_asked() and browser.shown("#list-empty"))
        self.expect_refusals(401)
        page.choose(self.sound("own.wav", 6, 32))
        wait("it is listed", lambda: page.names() == ["own.wav"])
        wait("it is opened", lambda: browser.text("#name") == "own.wav")
        page.wait_for_waveform()
        wait("its picture is drawn", lambda: browser.run("return document.querySelector('#list img').naturalWidth > 0"))
        self.plays()
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
        own = next(entry for entry in service.json("/v1/recordings")["recordings"] if entry["name"] == "own.wav")["id"]
        service.request("PATCH", f"/v1/recordings/{own}", json.dumps({"name": "renamed.wav"}), {"Content-Type": "application/json"})
        wait("changes are followed", lambda: "renamed.wav" in page.names())
        browser.reload()
        wait("the tab has kept the key", lambda: "renamed.wav" in page.names())
        assert not self.is_asked() and "secret.wav" not in page.names()
        page.window()
        self.check_secrets()
        self.story.check_console()
        # It doesn't exist for this tenant.
        browser.open("about:blank")
        browser.open(f"{service.address}/#{secret}")
        wait("a stranger's recording isn't shown", lambda: secret in page.toast())
        assert browser.shown("#welcome") and browser.text("#name") == ""
        self.expect_refusals(404)
        for width, height in ((390, 844), (1440, 900)):
            browser.size(width, height)
            page.open(own)
            assert browser.shown("#share") and browser.shown("#sign-out") and not page.overflow(), page.overflow()
        browser.click("#sign-out")
        wait("the key is forgotten", lambda: self.is_asked() and not page.names())
        self.expect_refusals(401)
        browser.open("about:blank")

    def tokens_of_elements_are_renewed(self):
        browser, page = self.browser, self.page
        long = self.service.upload_as("acme", self.sound("long.wav", 900, 33), "long.wav")
        wait("it is read", lambda: self.service.json(f"/v1/recordings/{long}")["waveform"]["state"] == "ready")
        with browser.preload(SHORT):
            self.open_with_key(long)
            address = "return document.querySelector('audio').src"
            first = wait("sound has an address", lambda: browser.run(address))
            wait("it is renewed", lambda: browser.run(address) != first)
            wait("and again, after the first has ended", lambda: browser.run("return minted") >= 4)
            status = Service.request(self.service, "GET", first.removeprefix(self.service.address))[0]
            assert status == 401, status
            # Nothing of the sound here has been loaded.
            browser.drag(page.point(0.8), page.point(0.8))
            self.plays(700)
            wait("tokens go on being renewed", lambda: browser.run("return minted") >= 6)
            self.story.check_console()
        browser.open("about:blank")
        self.service.request("DELETE", f"/v1/recordings/{long}")

    def tokens_that_are_turned_away_are_asked_for_again(self):
        browser, page, service = self.browser, self.page, self.service
        late, never = (service.upload_as("acme", self.sound(name, 3, seed), name) for name, seed in (("late.wav", 36), ("never.wav", 37)))
        for recording in (late, never):
            wait("it is read", lambda: service.json(f"/v1/recordings/{recording}")["waveform"]["state"] == "ready")
        refusals = {late: [[503, None], [429, "2"], [503, None]], never: [[503, None]] * 100}
        with browser.preload(TURNED_AWAY % json.dumps(refusals)):
            self.open_with_key(late)
            wait("sound has a token all the same", lambda: late in browser.run("return document.querySelector('audio')?.src ?? ''"))
            asked = browser.run("return asked[arguments[0]]", late)
            pauses = [after - before for before, after in zip(asked, asked[1:])]
            # Half a second, as long as the service says, and twice half a second; a busy machine may take longer, but not less.
            assert len(pauses) == 3 and pauses[0] > 370 and pauses[1] > 1990 and pauses[2] > 740, pauses
            self.plays()
            browser.click("#list li:first-child .open")
            wait("it is said if there is none in the end", lambda: "status 503" in page.toast())
            assert len(browser.run("return asked[arguments[0]]", never)) >= 5
        browser.open("about:blank")
        browser.console()
        for recording in (late, never):
            service.request("DELETE", f"/v1/recordings/{recording}")

    def share(self, rights):
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
        shared, other = (service.upload_as("acme", self.sound(name, 5, seed), name)
                         for name, seed in (("shared.wav", 34), ("other.wav", 35)))
        self.open_with_key(shared)
        link = self.share("read")
        browser.open(link)
        page.wait_for_waveform()
        assert browser.text("#name") == "shared.wav" and not self.is_asked()
        hidden = ("#library", "#menu", "#add", "#cleaning", "#clean", "#preview", "#variants", "#share", "#sign-out", "#label-add",
                  ".voices", "#regions")
        assert not [selector for selector in hidden if browser.shown(selector)]
        self.plays()
        # The view goes into the address beside the token, and a reload shows it again.
        browser.keys("+")
        wait("the view is in the address", lambda: re.search(rf"recording={shared}&token=.*&view=", browser.run("return location.hash")))
        browser.reload()
        page.wait_for_waveform()
        page.window()
        calls = [address for address in browser.run(ADDRESSES)[1:] if "/v1/" in address]
        assert calls and all(f"/v1/recordings/{shared}" in address for address in calls), calls
        for width, height in ((390, 844), (844, 390), (1440, 900)):
            browser.size(width, height)
            page.settle()
            assert not page.overflow(), page.overflow()
            assert browser.box("#wave")["width"] > width * 0.9, "the waveform has the whole width"
        self.story.check_console()
        self.check_secrets()
        for bad in (link.replace(shared, other), link[:-2] + ("aa" if link[-2:] != "aa" else "bb"), link.rpartition(".")[0]):
            browser.open("about:blank")
            browser.open(bad)
            wait("it says that the link doesn't work", lambda: browser.shown("#share-ended"))
            assert browser.text("#name") == "" and not page.names() and not self.is_asked()
            self.expect_refusals(401, 403)
        service.request("DELETE", f"/v1/recordings/{other}")
        browser.open("about:blank")

    def shared(self):
        return next(entry for entry in self.service.json("/v1/recordings")["recordings"] if entry["name"] == "shared.wav")["id"]

    def ask_for_key(self):
        self.browser.open(self.service.address + "/problems/not_ready")
        self.browser.run("sessionStorage.clear()")
        self.page.open()
        wait("a key is asked for", self.is_asked)

    def axe_finds_nothing_in_sharing(self):
        browser, page, check = self.browser, self.page, self.story.check_axe
        if not os.environ.get("STILLWAVE_AXE"):
            return
        browser.policy(False)
        for is_dark in browser.shades:
            browser.dark(is_dark)
            self.ask_for_key()
            check("a key is asked for")
            self.enter("short")
            check("a key is wrong")
            self.open_with_key(self.shared())
            page.press("#share")
            check("a link is offered")
            browser.run("document.querySelector('#sharing').close()")
            link = self.share("read")
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
        browser.open("about:blank")

    def what_is_asked_and_shared_fits_in_every_language(self):
        browser, page = self.browser, self.page
        try:
            for tag in TAGS:
                browser.language(f"{tag},en")
                for width, height in ((390, 844), (844, 390)):
                    browser.size(width, height)
                    self.ask_for_key()
                    assert not page.overflow(), f"{tag} at {width} x {height}: {page.overflow()}"
                    self.open_with_key(self.shared())
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
        finally:
            browser.language("en-US,en")
            browser.size(1440, 900)
            browser.console()
            browser.open("about:blank")

    def a_link_may_allow_labels(self):
        browser, page, service = self.browser, self.page, self.service
        shared = self.shared()
        labels = f"/v1/recordings/{shared}/labels"
        self.open_with_key(shared)
        browser.open(self.share("read,write"))
        page.wait_for_waveform()
        page.press("#label-add")
        wait("its text is asked for", lambda: browser.shown("#label-editor"))
        browser.keys(*"Hello", ENTER)
        wait("the label is kept", lambda: [
            label["text"] for track in service.json(labels)["tracks"] for label in service.json(f"{labels}/{track['id']}")["labels"]] == ["Hello"])
        self.story.check_console()
        self.open_with_key(shared)
        browser.open(self.share("read"))
        page.wait_for_waveform()
        wait("the label is shown", lambda: page.ink("#labels") > 50)
        browser.drag(page.point(0.002, 0.5, "#lane"), page.point(0.002, 0.5, "#lane"))
        browser.keys(ENTER)
        if browser.shown("#label-editor"):
            browser.keys(*"Bye", ENTER)
            wait("the link doesn't allow it", lambda: "doesn’t allow" in page.toast())
        self.story.check_console()
        browser.open("about:blank")
        service.close()
        del self.story.keyed
