import os
import re

from chapter import Chapter
from page import CONTROL, DELETE, ENTER, ESCAPE, F2, LONG_PRESS, SHIFT, in_chromium
from webdriver import wait


class RecordingsAreFoundRenamedAndDeleted(Chapter):
    data, address = "cleaned", ("talk (Natural).wav", "")

    def without_keys_nothing_is_asked_and_nothing_more_requested(self):
        browser = self.browser
        wait("sound is loaded", lambda: browser.run("return document.querySelector('audio')?.readyState > 0"))
        self.page.rest()
        addresses = browser.run("return performance.getEntriesByType('resource').map(entry => entry.name)")
        assert not browser.shown("#ask-key") and not browser.shown("#sign-out")
        page = self.page
        browser.drag(page.point(0.5), page.point(0.5))
        page.rest()
        browser.click("#share")
        assert browser.value("#share-link") == browser.run("return location.href"), "the link is the address"
        assert "&t=8:00" in browser.value("#share-link") and not browser.shown("#share-make"), browser.value("#share-link")
        browser.click("#close-sharing")
        assert not [address for address in addresses if "token" in address], addresses
        # Each thing once; a sound is read in several parts.
        once = [address for address in addresses if re.search(r"/v1/(noise-profiles|recordings\?)", address)]
        assert len(once) == len(set(once)) == 2, once

    def recordings_are_searched_renamed_and_deleted_with_undo(self):
        browser, page = self.browser, self.page
        browser.type("#search", "FIRST")
        wait("the list is searched", lambda: page.names() == ["first.wav"])
        page.focus("#list .open")
        browser.keys(F2)
        browser.keys(*"second", ENTER)
        wait("it is renamed", lambda: page.names() == ["second.wav"])
        browser.run("const s = document.querySelector('#search'); s.value = ''; s.dispatchEvent(new Event('input'))")
        wait("all are listed", lambda: len(page.names()) == 3)
        page.focus("#list li:first-child .open")
        browser.keys(DELETE)
        wait("what was open is closed", lambda: browser.shown("#welcome") and not browser.run("return location.hash"))
        page.press(".toast [data-part=action]")
        wait("it is back with what was made of it", lambda: len(browser.all("#layers .layer")) == 2)
        assert page.names() == ["talk.wav", "talk (Natural).wav", "second.wav"], page.names()
        page.focus("#list li:last-child .open")
        browser.keys(DELETE)
        wait("it is gone from the list", lambda: "second.wav" not in page.names())
        page.press(".toast [data-part=action]")
        wait("it is back", lambda: "second.wav" in page.names())
        page.delete("#list li:last-child .open")
        wait("the service has deleted it", lambda: len(self.service.recordings()) == 2)

    def a_message_comes_before_a_dialog_that_opens(self):
        browser, page = self.browser, self.page
        self.upload("between.wav", 3)
        wait("it is listed", lambda: page.names()[:1] == ["between.wav"])
        page.focus("#list .open")
        browser.keys(DELETE)
        wait("a message offers to undo it", lambda: "between.wav" in page.toast())
        browser.keys("?")
        wait("a dialog opens", lambda: browser.run("return document.querySelector('#keys').matches(':modal')"))
        # Outside of the dialog, everything is inert.
        wait("the message is in the dialog", lambda: browser.run("""
          const button = document.querySelector("dialog:modal .toast [data-part=action]"), box = button?.getBoundingClientRect();
          return box?.width && document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2) === button;"""))
        page.press(".toast [data-part=action]")
        wait("it is undone", lambda: page.names()[:1] == ["between.wav"])
        assert browser.run("return document.querySelector('#keys').open"), "the dialog stays"
        # A message comes while the dialog is open, and stays when it is closed.
        browser.run("import('./viewer/messages.js').then(({ tell }) => tell('A word more', { action: { text: 'Do', run() { window.isDone = true; } } }))")
        wait("it is in the dialog", lambda: browser.run("return !!document.querySelector('dialog:modal #toasts .toast')"))
        browser.click("#close-keys")
        wait("the message is back in the page", lambda: browser.run("return document.querySelector('#toasts').parentElement === document.body"))
        page.press(".toast [data-part=action]")
        assert browser.run("return isDone === true") and not page.toast()

    def the_list_tells_when_a_recording_is_read(self):
        browser, page = self.browser, self.page
        with self.service.holding(b"waveform"):
            page.drop([self.sound("long.wav", 4, channels=2, repeats=300), self.sound("short.wav", 1, 8000)])
            wait("the last one is opened", lambda: browser.text("#name") == "short.wav")
            about = "#list li:nth-child(2) [data-part=about]"
            wait("the other one is being read", lambda: page.names()[:2] == ["short.wav", "long.wav"] and "being read" in browser.text(about))
        wait("the list tells that it was read", lambda: re.fullmatch("20:00 · stereo · 77\u00a0MB · [A-Z][a-z]+ \\d+", browser.text(about)))
        assert "width=232&" in browser.run("return document.querySelector('#list li:nth-child(2) img').src"), "its picture is whole"

    def changes_made_elsewhere_are_shown(self):
        browser, page = self.browser, self.page
        other = self.upload("elsewhere.wav", 3)
        wait("it is listed", lambda: page.names()[:1] == ["elsewhere.wav"])
        browser.click("#list li:first-child .open")
        wait("it is opened", lambda: browser.text("#name") == "elsewhere.wav")
        self.service.rename(other, "renamed.wav")
        wait("its new name is listed", lambda: page.names()[:1] == ["renamed.wav"])
        wait("and is that of what is open", lambda: browser.text("#name") == "renamed.wav")
        self.service.request("DELETE", f"/v1/recordings/{other}")
        wait("it is gone", lambda: "renamed.wav" not in page.names() and browser.shown("#welcome"))
        assert "deleted in another window" in page.toast(), page.toast()
        # The page may still have been reading it.
        self.check_console(404)

    def an_older_answer_lists_no_deleted_recording(self):
        browser, page = self.browser, self.page
        away = self.upload("away.wav", 3)
        wait("it is listed", lambda: page.names()[:1] == ["away.wav"])
        names = page.names()
        self.hold("String(path).includes('q=away')")
        browser.type("#search", "away")
        self.wait_for_held()
        self.service.request("DELETE", f"/v1/recordings/{away}")
        wait("it is gone", lambda: page.names() == names[1:])
        self.let_pass()
        wait("the older answer is shown without it", lambda: page.names() == [])

    def the_list_is_sorted_and_tells_sizes(self):
        browser, page = self.browser, self.page
        browser.run("const s = document.querySelector('#search'); s.value = ''; s.dispatchEvent(new Event('input'))")
        newest = [recording["name"] for recording in self.service.recordings()]
        wait("all are listed", lambda: len(page.names()) == len(newest))
        by_date = page.names()
        choose = """const sort = document.querySelector("#sort"); sort.value = arguments[0]; sort.onchange();"""
        browser.run(choose, "name")
        wait("it is sorted by name", lambda: page.names()[0] == min(newest, key=str.lower) and page.names() != by_date)
        browser.reload()
        wait("it stays so", lambda: page.names() and page.names()[0] == min(newest, key=str.lower))
        browser.run(choose, "created")
        wait("it is sorted by date", lambda: page.names() == by_date)

    def many_are_cleaned_and_deleted_at_once(self):
        browser, page = self.browser, self.page
        for k in range(3):
            self.upload(f"one of many {k}.wav", 2, seed=k)
        browser.type("#search", "one of many")
        wait("they are listed", lambda: page.names() == [f"one of many {k}.wav" for k in (2, 1, 0)])

        def click(row, key=CONTROL):
            browser.click_holding(key, page.point(0.3, 0.3, f"#list li:nth-child({row}) .open"))

        def picked():
            return browser.run("return [...document.querySelectorAll('#list .open[aria-pressed=true] bdi')].map(name => name.textContent.at(-5))")
        opened = browser.text("#name")
        click(1)
        wait("the first one is selected", lambda: picked() == ["2"] and browser.shown("#picked"))
        click(3, SHIFT)
        wait("so are those up to the last one", lambda: picked() == ["2", "1", "0"])
        click(2)
        wait("but the second one", lambda: picked() == ["2", "0"])
        assert browser.text("#picked [data-part=text]") == "2 selected" and browser.text("#name") == opened, "none is opened"
        browser.click("#picked-clean")
        assert browser.shown("#batch") and browser.text("#batch-title") == "Clean 2 recordings"
        browser.run("""
          document.querySelector("#batch-strength").value = "25";
          const ask = window.fetch;
          window.fetch = (path, options) => {
            if (String(path).endsWith("v1/batches")) window.batch = JSON.parse(options.body);
            return ask(path, options);
          };""")
        browser.click("#batch-clean")
        wait("both are cleaned", lambda: "2 of 2 recordings are cleaned." in page.toast())
        results = [recording for recording in self.service.recordings() if recording["derived_from"] and "one of many" in recording["name"]]
        assert len(results) == 2 and not browser.shown("#picked"), results
        wait("the results are listed", lambda: len(page.names()) == 5)
        assert browser.run("return batch.denoise.reduction") == 25, browser.run("return batch")
        for row in (1, 2):
            click(row)
        browser.keys(ESCAPE)
        wait("none is selected any more", lambda: not picked() and not browser.shown("#picked"))
        click(1)
        click(5, SHIFT)
        wait("all are selected", lambda: len(picked()) == 5)
        browser.click("#picked-remove")
        wait("all are gone", lambda: not page.names() and "Deleted 5 recordings." in page.toast())
        page.press(".toast:last-child [data-part=action]")
        wait("all are back", lambda: len(page.names()) == 5)
        click(1)
        click(5, SHIFT)
        browser.click("#picked-remove")
        page.press(".toast:last-child [data-part=close]")
        wait("the service has deleted them", lambda: not any("one of many" in recording["name"] for recording in self.service.recordings()))

    @in_chromium("it says where downloads go")
    def many_are_downloaded_at_once(self):
        browser, page = self.browser, self.page
        places = [self.upload(f"to keep {name}.wav", 2) for name in ("ä", "b", "c")]
        browser.run("const s = document.querySelector('#search'); s.value = 'to keep'; s.dispatchEvent(new Event('input'))")
        wait("they are listed", lambda: len(page.names()) == 3 and all(name.startswith("to keep") for name in page.names()))
        folder = os.path.join(self.folder, "downloads")
        browser.devtools("Page.setDownloadBehavior", behavior="allow", downloadPath=folder)
        for key, row in ((CONTROL, 1), (SHIFT, 3)):
            browser.click_holding(key, page.point(0.3, 0.3, f"#list li:nth-child({row}) .open"))
        wait("all are selected", lambda: browser.text("#picked [data-part=text]") == "3 selected")
        browser.click("#picked-download")
        wait("all are files", lambda: os.path.isdir(folder) and sorted(os.listdir(folder)) == ["to keep b.wav", "to keep c.wav", "to keep ä.wav"])
        assert not browser.shown("#picked"), "none is selected any more"
        for place in places:
            self.service.request("DELETE", f"/v1/recordings/{place}")

    @in_chromium("it has a touch screen")
    def a_finger_that_rests_selects(self):
        browser, page = self.browser, self.page
        browser.run("const s = document.querySelector('#search'); s.value = ''; s.dispatchEvent(new Event('input'))")
        wait("all are listed", lambda: len(page.names()) > 1)
        browser.size(390, 844, ratio=2, touch=True)
        browser.click("#menu")
        wait("the list comes out", lambda: browser.box("#library")["x"] >= 0)
        point = page.point(0.4, 0.3, "#list li:first-child .open")
        browser.drag(point, point, kind="touch", hold=LONG_PRESS)
        wait("one is selected", lambda: browser.shown("#picked") and browser.text("#picked [data-part=text]") == "1 selected")
        browser.click("#picked-clear")
        wait("and no longer", lambda: not browser.shown("#picked"))
        browser.keys(ESCAPE)
        browser.size(1440, 900)

    def the_list_loads_while_it_is_scrolled(self):
        note = self.sound("note.wav", 0.2, 8000)
        for k in range(35):
            self.service.upload(note, f"note {k}.wav")
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
        self.hold("String(path).includes('v1/recordings?')")
        self.service.upload(note, "note 35.wav")
        self.wait_for_held()
        scroll(1e6)
        self.let_pass()
        count = len(self.service.recordings())
        wait("all are listed", lambda: scroll(1e6) or len(self.page.names()) == count)
        # What is seen stays where it is.
        scroll(500)
        seen = self.browser.run("""
          return [...document.querySelectorAll('#list > *')].find(row => row.getBoundingClientRect().top > 200).dataset.id""")
        place = lambda: self.browser.run("return document.querySelector(`[data-id='${arguments[0]}']`).getBoundingClientRect().top", seen)
        before = place()
        self.service.upload(note, "note 36.wav")
        wait("the new one is listed, too", lambda: self.page.names()[0] == "note 36.wav")
        assert abs(place() - before) < 1, (before, place())

    def a_slow_device_lists_all_too(self):
        # An observer's changes arrive together, the earliest first.
        with self.browser.preload("""
          window.IntersectionObserver = class extends IntersectionObserver {
            constructor(call, options) { super((entries, self) => call([{ isIntersecting: false }, ...entries], self), options); }
          };"""):
            self.page.open()
        wait("the first are listed", lambda: len(self.page.names()) == 30)
        self.browser.run("document.querySelector('#library').scrollTo(0, 1e6)")
        wait("the rest is listed", lambda: len(self.page.names()) == len(self.service.recordings()))
