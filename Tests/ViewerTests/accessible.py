import os

from chapter import Chapter
from page import END, ESCAPE, F2, RIGHT, TAB
from webdriver import wait


class EverybodyCanUseIt(Chapter):
    data, address = "cleaned", ("talk.wav", "")

    def everything_has_a_name_for_a_screen_reader(self):
        self.browser.devtools("Accessibility.enable")
        nodes = self.browser.devtools("Accessibility.getFullAXTree")["nodes"]
        controls = {"button", "link", "slider", "textbox", "searchbox", "combobox", "radio", "checkbox", "scrollbar",
                    "progressbar", "spinbutton", "toolbar", "radiogroup"}
        unnamed = []
        for node in nodes:
            role = node.get("role", {}).get("value")
            if not node.get("ignored") and role in controls and not node.get("name", {}).get("value", "").strip():
                found = self.browser.devtools("DOM.describeNode", backendNodeId=node["backendDOMNodeId"])["node"]
                unnamed.append((role, found["nodeName"], found.get("attributes")))
        assert len(nodes) > 50 and not unnamed, unnamed

    def the_playhead_and_names_are_read_in_one_piece(self):
        browser, page = self.browser, self.page
        self.upload("town-meeting-2h.wav", 2)
        wait("it is listed", lambda: "town-meeting-2h.wav" in page.names())
        browser.drag(page.point(0.5), page.point(0.5))
        page.rest()

        def nodes(role):
            return [node for node in browser.devtools("Accessibility.getFullAXTree")["nodes"]
                    if not node.get("ignored") and node.get("role", {}).get("value") == role]
        names = [node["name"]["value"] for node in nodes("button")]
        assert any(name.startswith("town-meeting-2h.wav") for name in names), names
        [wave] = [node for node in nodes("slider") if "Waveform of talk.wav" in node["name"]["value"]]
        before = page.playhead()
        page.focus()
        browser.keys(RIGHT)
        page.rest()
        said = browser.run("return document.querySelector('#wave').ariaValueText")
        assert said == f"Playhead at {browser.text('#playhead-time')} of 16:00.00" and 9.5 < page.playhead() - before < 9.7, said
        live = {entry["name"]: entry["value"]["value"] for entry in nodes("timer")[0]["properties"]}.get("live", "off")
        assert live == "off", "the time isn't said as often as it changes"
        assert wave["value"]["value"], wave

    def the_keyboard_reaches_everything(self):
        self.browser.run("document.activeElement.blur(); scrollTo(0, 0)")
        reached = set()
        for _ in range(90):
            self.browser.keys(TAB)
            reached.add(self.browser.run("return document.activeElement.id || document.activeElement.dataset.part || document.activeElement.className"))
            if "display-menu" not in reached and self.browser.run("return document.activeElement.parentElement.role") == "toolbar":
                self.browser.keys(END)
                reached.add(self.page.focused())
        assert "zoom-in" not in reached and "display-menu" in reached, "a toolbar is one stop, with arrows and End inside"
        for wanted in ("search", "add", "open", "overview-window", "wave", "strength-natural", "reduction",
                       "sensitivity", "method", "preview", "clean", "play", "loop", "select-from"):
            assert wanted in reached or wanted == "strength-natural" and any("strength" in r for r in reached), wanted

    def text_is_readable_in_light_and_dark(self):
        for is_dark in (False, True):
            self.browser.dark(is_dark)
            contrasts = self.browser.run("""
              const style = getComputedStyle(document.documentElement);
              const light = name => {
                const [r, g, b] = style.getPropertyValue(name).trim().match(/\\w\\w/g).map(h => parseInt(h, 16) / 255)
                  .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
                return 0.2126 * r + 0.7152 * g + 0.0722 * b;
              };
              const contrast = (a, b) => (Math.max(light(a), light(b)) + 0.05) / (Math.min(light(a), light(b)) + 0.05);
              return [["--ink", "--page"], ["--ink", "--panel"], ["--quiet", "--panel"], ["--quiet", "--page"],
                ["--on-accent", "--accent"], ["--accent", "--panel"], ["--noise", "--raised"], ["--page", "--noise"],
                ["--page", "--bad"], ["--edge", "--raised"], ["--wave-peak", "--well"], ["--wave-rms", "--well"],
                ...[0, 1, 2, 3].flatMap(k => [[`--clean-${k}-peak`, "--well"], [`--clean-${k}-rms`, "--well"]])].map(([a, b]) => [a, b, contrast(a, b)]);""")
            poor = [pair for pair in contrasts if pair[2] < (3 if "-peak" in pair[0] or "-rms" in pair[0] or "edge" in pair[0] else 4.5)]
            assert not poor, poor
        self.browser.dark(False)

    def axe_finds_nothing(self):
        if not os.environ.get("STILLWAVE_AXE"):
            return
        browser, page, check = self.browser, self.page, self.check_axe
        talk, cleaned = self.id("talk.wav"), self.id("talk (Natural).wav")
        browser.policy(False)
        for is_dark in (False, True):
            browser.dark(is_dark)
            page.open()
            check("nothing is open")
            page.open(f"{talk}&mark=3-6&noise=1-2&view=0-20")
            check("a selection and noise are marked")
            browser.click("#display-menu")
            check("the menu is open")
            browser.click("#show-keys")
            check("the keys are shown")
            browser.click("#close-keys")
            page.focus("#list .open")
            browser.keys(F2)
            check("a recording is renamed")
            browser.keys(ESCAPE)
            browser.size(390, 844, ratio=2, touch=True)
            page.open(f"{talk}&mark=3-6")
            for button in ("#settings", "#menu"):
                browser.click(button)
                check(f"{button} is open")
                browser.keys(ESCAPE)
            browser.size(1440, 900)
        for is_forced, width, height, ratio in ((False, 1440, 900, 1), (True, 1440, 900, 1), (False, 720, 450, 2)):
            # The last one is 1440 x 900 at 200 %.
            browser.dark(False, is_forced)
            browser.size(width, height, ratio=ratio)
            page.open(f"{cleaned}&mark=3-6&noise=1-2&view=0-20")
            wait("the card is there", lambda: browser.shown("#result"))
            check(f"a result is open at {width} x {height}, forced colors: {is_forced}")
            found = page.overflow()
            assert not found, f"at {width} x {height}, forced colors: {is_forced}: {found}"
            page.press("#selection-save")
            wait("the dialog opens", lambda: browser.shown("#excerpt"))
            check("a selection is saved")
            browser.click("#excerpt-close")
