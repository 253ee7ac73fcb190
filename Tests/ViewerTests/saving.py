import re

from chapter import Chapter
from page import COPY, ENTER
from webdriver import wait


class PartsNoiseAndLoudnessAreKept(Chapter):
    differs = True

    def a_selection_is_saved_as_a_file_and_as_a_recording(self):
        browser, page = self.browser, self.page
        page.open(f"{self.upload('whole.wav', 8)}&mark=2-4.5")
        browser.run("""
          window.downloaded = [];
          HTMLAnchorElement.prototype.click = function () { downloaded.push(this.href); };""")
        page.press("#selection-save")
        wait("the dialog opens", lambda: browser.shown("#excerpt"))
        assert "0:02.00" in browser.text("#excerpt-title") and "0:04.50" in browser.text("#excerpt-title")
        assert "whole.wav" in browser.text("#excerpt-source")
        browser.run("document.querySelector('#excerpt-format').value = 'flac'")
        browser.click("#excerpt-download")
        link = wait("it is downloaded", lambda: browser.run("return downloaded[0]"))
        assert not page.toast(), page.toast()
        status, fields, body = self.service.request("GET", link.removeprefix(self.service.address))
        assert status == 200 and body[:4] == b"fLaC" and "attachment" in fields["Content-Disposition"], (status, fields)
        page.press("#selection-save")
        assert browser.value("#excerpt-format") == "flac", "the format is remembered"
        browser.click("#excerpt-keep")
        wait("it is kept", lambda: "is in the list" in page.toast())
        kept = self.service.recordings()[0]
        assert kept["format"]["frames"] == 40000 and kept["derived_from"]["operation"] == "trim", kept
        wait("it is listed below its source", lambda: page.names()[:2] == ["whole.wav", kept["name"]])
        assert re.search(r"excerpt, \d\d:\d\d$", browser.text("#list li:nth-child(2) [data-part=about]"))
        page.press(".toast [data-part=action]")
        wait("it is opened", lambda: browser.text("#name") == kept["name"])
        assert len(browser.all("#layers .layer")) == 1, "it isn't laid over its source"

    def noise_is_kept_under_a_name_and_used_again(self):
        browser, page = self.browser, self.page
        page.open(f"{self.upload('hum.wav', 8)}&noise=0.2-1.2")
        watch = """
          const ask = window.fetch;
          [window.previewed, window.previewing] = [[], 0];
          window.fetch = async (path, options) => {
            if (!String(path).endsWith("/preview")) return ask(path, options);
            previewed.push(JSON.parse(options.body).noise);
            previewing++;
            try { return await ask(path, options); } finally { previewing--; }
          };"""
        browser.run(watch)
        browser.type("#noise-name", "Fan" + ENTER)
        wait("it is saved", lambda: "Saved the noise" in page.toast())
        assert not browser.shown("#job"), "Enter saves, and cleans nothing"
        use = "#profiles [data-part=use]"
        page.press(use)
        wait("it is used", lambda: "Fan" in browser.text("#noise-auto") and not browser.shown("#noise-times"))
        wait("previews use it", lambda: browser.run("return previewed.some(noise => noise.profile)"))
        self.reload()
        wait("a reload keeps it", lambda: browser.run("return document.querySelector(arguments[0])?.ariaPressed === 'true'", use))
        browser.run(watch)
        browser.click("#profiles [data-part=rename]")
        browser.keys(*"Motor", ENTER)
        wait("what is used has its new name", lambda: "Motor" in browser.text("#noise-auto"))
        assert browser.run("return document.activeElement.dataset.part") == "rename", "the focus stays in its place"
        wait("it is renamed", lambda: browser.text(use) == "Motor" and self.service.json("/v1/noise-profiles")["profiles"][0]["name"] == "Motor")
        browser.click("#profiles [data-part=remove]")
        wait("it is gone", lambda: not browser.shown("#profiles-part") and browser.text("#noise-auto") == "the best stretch found")
        # Only then has the page given up those with the profile.
        wait("previews no longer use it", lambda: browser.run("return previewed.length > 0 && !previewed.at(-1).profile"))
        page.press(".toast:last-child [data-part=action]")
        wait("it is back", lambda: browser.all(use) and browser.text(use) == "Motor")
        browser.click("#profiles [data-part=remove]")
        page.press(".toast:last-child [data-part=close]")
        wait("the service has deleted it", lambda: not self.service.json("/v1/noise-profiles")["profiles"])
        wait("no preview is being made", lambda: browser.run("return previewing === 0"))

    def the_spectrum_shows_what_is_removed(self):
        browser, page = self.browser, self.page
        page.open(f"{self.id('hum.wav')}&noise=0.2-1.2")

        def orange():
            """Pixels in the color of noise, over the recording's gray or beside it."""
            return browser.run(COPY + """
              const { data } = copy(document.querySelector("#spectrum"));
              let count = 0;
              for (let k = 0; k < data.length; k += 4) if (data[k + 3] && data[k] > data[k + 2] + 40) count++;
              return count;""")
        wait("the spectrum is drawn", lambda: page.ink("#spectrum") > 1000 and orange() > 500)
        shares = []
        for reduction in (6, 30):
            browser.run("""
              const field = document.querySelector("#reduction");
              field.value = arguments[0];
              field.dispatchEvent(new Event("input", { bubbles: true }));""", reduction)
            shares.append(orange())
        assert shares[1] > 2 * shares[0], f"the more is removed, the more is shaded: {shares}"

    def a_result_gets_the_loudness_that_was_chosen(self):
        browser, page = self.browser, self.page
        page.open(self.upload("quiet.wav", 12))
        browser.run("""
          const field = document.querySelector("#loudness");
          field.value = "-23";
          field.dispatchEvent(new Event("input", { bubbles: true }));
          document.querySelector("#strength-natural").click();""")
        browser.click("#clean")
        wait("the noise is removed", lambda: "removed" in page.toast())
        wait("the card has both figures", lambda: "LUFS" in browser.text("#result-figures") and "dBFS" in browser.text("#result-figures"))
        after = float(re.search(r"\u2192 \u2212(\d+\.\d) LUFS", browser.text("#result-figures"))[1])
        assert abs(after - 23) < 0.3, browser.text("#result-figures")
        assert any("\u221223 LUFS" in name for name in page.names()), page.names()
