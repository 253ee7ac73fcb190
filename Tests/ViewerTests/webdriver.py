"""A small client for WebDriver (W3C) and chromedriver's access to DevTools, with only the standard library."""

import base64
import contextlib
import json
import socket
import subprocess
import time
import urllib.error
import urllib.request

# After so many seconds, what is waited for is taken for hung. Nothing that works needs a part of it.
HUNG = 300
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"


class DriverError(Exception):
    pass


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def wait(what, condition):
    """Waits until `condition` is true and returns its value. Names `what` if that fails."""
    end = time.monotonic() + HUNG
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > end:
            raise AssertionError(f"waited {HUNG} s in vain: {what}")
        # WebDriver has no events, so the browser must be polled.
        time.sleep(0.03)


# Runs before the page's scripts. The page rests if it doesn't draw, and nothing is put off: the end of a change of the view,
# the address, what can be undone, and reading the list again wait for more than 0.2 s and at most half a second of calm.
REST = """
(() => {
  const timers = new Set(), frames = new Set(), { setTimeout, clearTimeout, requestAnimationFrame } = window;
  window.setTimeout = (call, delay = 0, ...rest) => {
    const timer = setTimeout(() => { timers.delete(timer); call(...rest); }, delay);
    if (delay > 200 && delay <= 500) timers.add(timer);
    return timer;
  };
  window.clearTimeout = timer => { timers.delete(timer); clearTimeout(timer); };
  window.requestAnimationFrame = call => {
    const frame = requestAnimationFrame(time => { frames.delete(frame); call(time); });
    frames.add(frame);
    return frame;
  };
  window.rests = () => !timers.size && !frames.size;
})();
"""


class Actions:
    """What is the same in every browser that can run scripts and perform input actions (`run` and `actions`)."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0]).textContent.trim()", selector)

    def value(self, selector):
        return self.run("return document.querySelector(arguments[0]).value", selector)

    def shown(self, selector):
        return self.run("const e = document.querySelector(arguments[0]); return !!e && e.checkVisibility()", selector)

    def box(self, selector):
        return self.run("const b = document.querySelector(arguments[0]).getBoundingClientRect();"
                        "return {x: b.x, y: b.y, width: b.width, height: b.height}", selector)

    def keys(self, *keys):
        """Presses keys one after the other; for a tuple, holds all but the last and presses that one."""
        steps = []
        for key in keys:
            held = list(key[:-1]) if isinstance(key, tuple) else []
            last = key[-1] if isinstance(key, tuple) else key
            steps += [{"type": "keyDown", "value": k} for k in held]
            steps += [{"type": "keyDown", "value": last}, {"type": "keyUp", "value": last}]
            steps += [{"type": "keyUp", "value": k} for k in reversed(held)]
        self.actions({"type": "key", "id": "keys", "actions": steps})

    def click_holding(self, key, point):
        pause = {"type": "pause", "duration": 0}
        self.actions(
            {"type": "key", "id": "keys", "actions": [{"type": "keyDown", "value": key}, pause, pause, pause, {"type": "keyUp", "value": key}]},
            {"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": [
                pause, {"type": "pointerMove", "duration": 0, "x": round(point[0]), "y": round(point[1])},
                {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}, pause]})

    def drag(self, start, end, kind="mouse", hold=0, steps=6):
        moves = [{"type": "pointerMove", "duration": 0, "x": round(start[0]), "y": round(start[1])},
                 {"type": "pointerDown", "button": 0}, {"type": "pause", "duration": hold}]
        for k in range(1, steps + 1):
            x, y = (a + (b - a) * k / steps for a, b in zip(start, end))
            moves.append({"type": "pointerMove", "duration": 16, "x": round(x), "y": round(y)})
        moves.append({"type": "pointerUp", "button": 0})
        self.actions({"type": "pointer", "id": kind, "parameters": {"pointerType": kind}, "actions": moves})

    def pinch(self, middle, before, after, steps=8):
        sources = []
        for side in (-1, 1):
            moves = [{"type": "pointerMove", "duration": 0, "x": round(middle[0] + side * before), "y": round(middle[1])},
                     {"type": "pointerDown", "button": 0}]
            for k in range(1, steps + 1):
                distance = before + (after - before) * k / steps
                moves.append({"type": "pointerMove", "duration": 16, "x": round(middle[0] + side * distance), "y": round(middle[1])})
            moves.append({"type": "pointerUp", "button": 0})
            sources.append({"type": "pointer", "id": f"finger{side}", "parameters": {"pointerType": "touch"}, "actions": moves})
        self.actions(*sources)

    def wheel(self, point, y=0, x=0, count=1):
        self.actions({"type": "wheel", "id": "wheel", "actions": [
            {"type": "scroll", "x": round(point[0]), "y": round(point[1]), "deltaX": x, "deltaY": y, "duration": 0}] * count})


class Browser(Actions):
    """Chromium without a window, driven by chromedriver."""

    has_devtools = True

    def __init__(self, width=1440, height=900, trace=""):
        self.port = free_port()
        self.driver = subprocess.Popen(
            ["chromedriver", f"--port={self.port}", "--log-level=SEVERE"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.base = f"http://127.0.0.1:{self.port}"
        wait("chromedriver answers", self._is_ready)
        options = {
            "args": ["--headless=new", "--no-sandbox", "--hide-scrollbars", "--autoplay-policy=no-user-gesture-required",
                     # Machines without a graphics processor draw WebGL, too.
                     "--enable-unsafe-swiftshader", f"--window-size={width},{height}", "--enable-precise-memory-info"],
        }
        logs = {"browser": "ALL"}
        if trace:
            logs["performance"] = "ALL"
            options["perfLoggingPrefs"] = {"traceCategories": trace}
        answer = self.call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": options, "goog:loggingPrefs": logs}}})
        self.base += f"/session/{answer['sessionId']}"
        self.devtools("Page.addScriptToEvaluateOnNewDocument", source=REST)
        self.call("POST", "/timeouts", {"script": HUNG * 1000, "pageLoad": HUNG * 1000})
        self.size(width, height)

    def _is_ready(self):
        try:
            return self.call("GET", "/status")["ready"]
        except OSError:
            return False

    def call(self, method, path, body=None):
        request = urllib.request.Request(
            self.base + path, method=method, data=None if body is None else json.dumps(body).encode(),
            headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=HUNG + 10) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            value = json.load(error)["value"]
            raise DriverError(f"{value['error']}: {value['message'].splitlines()[0]}") from None

    def close(self):
        try:
            self.call("DELETE", "")
        finally:
            self.driver.terminate()
            self.driver.wait()

    def open(self, address):
        self.call("POST", "/url", {"url": address})

    def reload(self):
        self.call("POST", "/refresh", {})

    def choose(self, selector, paths):
        """Chooses files in a field for files."""
        self.call("POST", f"/element/{self.find(selector)}/value", {"text": "\n".join(paths)})

    def devtools(self, command, **parameters):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def size(self, width, height, ratio=1, touch=False):
        self.devtools("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=ratio, mobile=touch)
        self.devtools("Emulation.setTouchEmulationEnabled", enabled=touch)

    def dark(self, is_dark, is_forced=False):
        """Sets whether the page is dark, and whether colors are forced, as in high contrast."""
        self.devtools("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if is_dark else "light"},
            {"name": "forced-colors", "value": "active" if is_forced else "none"}])

    def policy(self, is_on):
        """Sets whether pages that are opened from now on keep to their content security policy."""
        self.devtools("Page.setBypassCSP", enabled=not is_on)

    def inject(self, source):
        """Runs a script of another program as if it were the page's own."""
        self.devtools("Runtime.evaluate", expression=source)

    def language(self, tags):
        """Sets the languages of pages that are opened from now on, the preferred ones first."""
        self.devtools("Emulation.setUserAgentOverride", userAgent=self.run("return navigator.userAgent"), acceptLanguage=tags)

    @contextlib.contextmanager
    def preload(self, script):
        """Runs a script in each page that is opened, before the page's own."""
        identifier = self.devtools("Page.addScriptToEvaluateOnNewDocument", source=script)["identifier"]
        try:
            yield
        finally:
            self.devtools("Page.removeScriptToEvaluateOnNewDocument", identifier=identifier)

    def run(self, script, *arguments):
        """Runs a script and returns its value, after waiting for promises."""
        return self.call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def find(self, selector):
        return self.call("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def all(self, selector):
        return [found[ELEMENT] for found in self.call("POST", "/elements", {"using": "css selector", "value": selector})]

    def click(self, selector):
        # A list that is drawn again after `find` has another element in its place.
        for attempts in (2, 1, 0):
            try:
                return self.call("POST", f"/element/{self.find(selector)}/click", {})
            except DriverError as error:
                if "stale element" not in str(error) or not attempts:
                    raise

    def type(self, selector, text):
        self.call("POST", f"/element/{self.find(selector)}/value", {"text": text})

    def actions(self, *sources):
        self.call("POST", "/actions", {"actions": list(sources)})

    def slow(self, bytes_per_second):
        """Limits the browser's upload rate; None removes the limit."""
        limit = -1 if bytes_per_second is None else bytes_per_second
        self.devtools("Network.enable")
        self.devtools("Network.emulateNetworkConditions", offline=False, latency=0, downloadThroughput=-1, uploadThroughput=limit)

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.devtools("Page.captureScreenshot", format="png")["data"]))

    def trace(self):
        """The events of Chromium's tracing since the last call."""
        messages = (json.loads(entry["message"])["message"] for entry in self.call("POST", "/se/log", {"type": "performance"}))
        return [message["params"] for message in messages if message["method"] == "Tracing.dataCollected"]

    def console(self):
        """The errors that the page has logged since the last call."""
        # Reading pixels of WebGL, which only tests do, costs time.
        return [entry for entry in self.call("POST", "/se/log", {"type": "browser"})
                if entry["level"] in ("SEVERE", "WARNING") and "GPU stall due to ReadPixels" not in entry["message"]]
