"""The page as a person uses it: what it shows and which controls it has."""

import re

from webdriver import wait

SHIFT, ENTER, ESCAPE, END, HOME, DELETE, TAB = "\ue008", "\ue007", "\ue00c", "\ue010", "\ue011", "\ue017", "\ue004"
LEFT, UP, RIGHT, DOWN, F2, CONTROL = "\ue012", "\ue013", "\ue014", "\ue015", "\ue032", "\ue009"

# How long a finger rests to select, in milliseconds. The page takes 380 for it, and a busy one notices it later; the gesture has
# to be one command: after a gesture in two, chromedriver begins no second one.
LONG_PRESS = 2000

# Canvases are read through a copy: Chromium stops drawing a canvas with the graphics processor if it is read often.
COPY = """
  const copy = canvas => {
    const pen = new OffscreenCanvas(canvas.width, canvas.height).getContext("2d", { willReadFrequently: true });
    pen.drawImage(canvas, 0, 0);
    return pen.getImageData(0, 0, canvas.width, canvas.height);
  };
"""

# Finds elements that are wider than their place or cover another one.
OVERFLOW = """
const found = [], box = element => element.getBoundingClientRect();
const words = element => {
  const range = document.createRange();
  range.selectNodeContents(element);
  return range.getBoundingClientRect();
};
document.querySelector("#job").hidden = false;
for (const element of document.querySelectorAll("button, label, legend, output, h2, dialog[open]")) {
  if (!element.checkVisibility() || element.closest(".region, #list, .unseen")) continue;
  const isCut = element.scrollWidth > element.clientWidth + 1 && getComputedStyle(element).textOverflow !== "ellipsis";
  if (isCut) found.push([element.id || element.textContent, element.clientWidth, element.scrollWidth]);
  // On phones, the layers are a row that scrolls.
  const isFixed = element.closest("#transport") || element.closest("#layers") && getComputedStyle(document.querySelector("#layers")).overflowX === "visible";
  if (isFixed && (box(element).right > innerWidth || box(element).left < 0)) found.push(["off the page", element.textContent]);
}
if (document.documentElement.scrollWidth > innerWidth) found.push(["the page", document.documentElement.scrollWidth, innerWidth]);
const tools = box(document.querySelector("#selection-tools")), wave = box(document.querySelector("#wave"));
if (tools.width && (tools.left < wave.left || tools.right > wave.right)) found.push(["the selection's toolbar", tools.left, tools.right, wave.right]);
const lane = box(document.querySelector("#regions"));
for (const region of document.querySelectorAll(".region:not([hidden])")) {
  if (box(region).right > lane.right + 1 || box(region).left < lane.left - 1) found.push(["region", box(region).right, lane.right]);
}
for (const row of document.querySelectorAll("#list li")) {
  const name = words(row.querySelector("bdi")), frame = box(row.querySelector("bdi")), tools = box(row.querySelector(".row-tools"));
  const isOver = Math.min(name.right, frame.right) > tools.left + 4 && Math.max(name.left, frame.left) < tools.right - 4
    && Math.min(name.bottom, frame.bottom) > tools.top + 4;
  if (tools.width && isOver) found.push(["name under the buttons", row.querySelector("bdi").textContent]);
}
document.querySelector("#job").hidden = true;
return found;
"""

# The height of an element's part that is on the screen and not covered, along its middle, in CSS pixels.
SEEN = """
const element = document.querySelector(arguments[0]), box = element.getBoundingClientRect();
let seen = 0;
for (let y = Math.max(0, Math.ceil(box.top)); y < Math.min(innerHeight, box.bottom); y++) {
  const top = document.elementFromPoint(box.left + box.width / 2, y);
  if (top && (element.contains(top) || element.parentElement.control === top || top.contains(element) && top.matches("label"))) seen++;
}
return seen;
"""


def in_chromium(why):
    """Marks a step for Chromium alone, and says why: most need its DevTools."""
    def mark(step):
        step.why_chromium = why
        return step
    return mark


class Page:
    def __init__(self, browser, address):
        self.browser = browser
        self.address = address

    def open(self, recording=""):
        self.browser.open("about:blank")
        self.browser.open(f"{self.address}/#{recording}" if recording else self.address + "/")
        if recording:
            self.wait_for_waveform()

    def wait_for_waveform(self):
        wait("the waveform is drawn", lambda: self.ink("#waves") > 1000)

    def rest(self):
        """Waits until the page has done what follows a change of the view, and the address shows it."""
        wait("the page rests", lambda: self.browser.run("return rests()"))

    def window(self):
        """Start and end of the view, from the address, when the page rests; None: the whole recording."""
        self.rest()
        return self.field("view")

    def field(self, name):
        match = re.search(rf"{name}=([\d.]+)-([\d.]+)", self.browser.run("return location.hash"))
        return (float(match[1]), float(match[2])) if match else None

    def point(self, across, down=0.3, selector="#wave"):
        box = self.browser.box(selector)
        return (box["x"] + box["width"] * across, box["y"] + box["height"] * down)

    def ink(self, selector):
        """The number of pixels of a canvas that aren't empty."""
        return self.browser.run(COPY + """
          const canvas = document.querySelector(arguments[0]);
          if (!canvas || !canvas.width || !canvas.height) return 0;
          const { data } = copy(canvas);
          let count = 0;
          for (let k = 3; k < data.length; k += 4) if (data[k]) count++;
          return count;""", selector)

    def tinted(self, channel):
        """How many pixels of the view have the hue of a cleaned waveform: more green (1) than red, or more blue (2) than green."""
        return self.browser.run(COPY + """
          const [channel] = arguments, { data } = copy(document.querySelector("#waves"));
          let count = 0;
          for (let k = 0; k < data.length; k += 4) if (data[k + 3] > 200 && data[k + channel] > data[k + channel - 1] + 40) count++;
          return count;""", channel)

    def reach(self, furthest=True):
        """The part of the view's width that the waveform has reached, 0 … 1."""
        return self.browser.run(COPY + """
          const canvas = document.querySelector("#waves");
          const { data } = copy(canvas);
          const middle = Math.round(canvas.height / 2);
          for (let x = canvas.width - 1; x > 0; x--)
            for (let y = 0; y < canvas.height; y++)
              if (Math.abs(y - middle) > 2 && data[4 * (y * canvas.width + x) + 3]) return x / canvas.width;
          return 0;""")

    def settle(self):
        """Waits until panels have moved to their places."""
        self.browser.run("return Promise.all(document.getAnimations().filter(a => a instanceof CSSTransition).map(a => a.finished)).then(() => 0)")

    def overflow(self):
        """Texts that are wider than their place, off the page, or over another element."""
        return self.browser.run(OVERFLOW)

    def names(self):
        return self.browser.run("return [...document.querySelectorAll('#list bdi')].map(e => e.textContent)")

    def playhead(self):
        hours = [float(part) for part in self.browser.text("#playhead-time").split(":")]
        return sum(value * 60 ** k for k, value in enumerate(reversed(hours)))

    def voice(self):
        return self.browser.run("return document.querySelector('[name=voice]:checked').id.slice(6)")

    def is_playing(self):
        return self.browser.run("return document.querySelector('#play').title.startsWith('Pause')")

    def toast(self):
        return self.browser.run("return [...document.querySelectorAll('.toast [data-part=text]')].map(e => e.textContent).join(' ')")

    def focus(self, selector="#wave"):
        self.browser.run("document.querySelector(arguments[0]).focus()", selector)

    def focused(self):
        return self.browser.run("return document.activeElement.id")

    def seen(self, selector):
        return self.browser.run(SEEN, selector)

    def press(self, selector):
        """Presses a button when it appears, in one command: it may be gone before a second one."""
        wait(f"{selector} is there", lambda: self.browser.run("""
          const button = document.querySelector(arguments[0]), isThere = !!button && button.checkVisibility();
          if (isThere) button.click();
          return isThere;""", selector))

    def delete(self, row="#list li:first-child .open"):
        """Deletes a recording of the list for good."""
        self.focus(row)
        self.browser.keys(DELETE)
        self.press(".toast:last-child [data-part=close]")

    def choose(self, *paths):
        """Chooses files as if with the button."""
        self.browser.choose("#file", paths)

    def pictures(self, count):
        """How far a video's picture is behind the playhead in each of `count` frames, by its time and by what it shows.

        In milliseconds; the latter from the brightness of the picture, which identifies the frame within its second.
        """
        return self.browser.run("""
          const [count] = arguments, video = document.querySelector("#picture"), head = document.querySelector("#playhead-time");
          const pen = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true }), lags = [];
          return new Promise(done => {
            const look = () => {
              const at = Number(head.textContent.split(":")[1]);
              pen.drawImage(video, 40, 40, 1, 1, 0, 0, 1, 1);
              const luma = 16 + pen.getImageData(0, 0, 1, 1).data[1] * 219 / 255, shown = ((luma - 40) / 7 + 0.5) / 25;
              const behind = ((at - shown) % 1 + 1.5) % 1 - 0.5;
              lags.push([(at - video.currentTime) * 1000, behind * 1000]);
              lags.length < count ? requestAnimationFrame(look) : done(lags);
            };
            look();
          });""", count)

    def drop(self, paths):
        """Drops files as a file manager does; in a browser that can't, chooses them."""
        if not self.browser.has_devtools:
            return self.choose(*paths)
        x, y = 700, 450
        data = {"items": [], "files": paths, "dragOperationsMask": 1}
        for kind in ("dragEnter", "dragOver", "drop"):
            self.browser.devtools("Input.dispatchDragEvent", type=kind, x=x, y=y, data=data)
