"""Firefox, driven by WebDriver BiDi (W3C) over its remote-debugging socket, with only the standard library.

Debian has no geckodriver, and BiDi needs none. What only DevTools can do (slow networks, dark mode, touch screens, the
tree of screen readers, pages without their policy) is left to Chromium; files are chosen instead of dropped.
"""

import base64
import contextlib
import json
import os
import re
import secrets
import signal
import socket
import struct
import subprocess
import tempfile
import time

from webdriver import HUNG, REST, Actions, DriverError, free_port, wait

# Sound starts without a click, as in Chromium's tests; nothing is fetched that the story doesn't ask for.
PREFERENCES = {
    # Firefox's own pretended loudspeaker. Without any, sound stands still; PulseAudio's made Firefox hang now and then.
    "media.cubeb.force_mock_context": True,
    "media.autoplay.default": 0, "media.autoplay.blocking_policy": 0, "intl.accept_languages": "en-US, en",
    "browser.shell.checkDefaultBrowser": False, "datareporting.policy.dataSubmissionEnabled": False,
    "app.update.auto": False, "browser.safebrowsing.malware.enabled": False, "browser.safebrowsing.phishing.enabled": False,
    "network.captive-portal-service.enabled": False, "network.connectivity-service.enabled": False,
    "extensions.getAddons.cache.enabled": False, "browser.startup.page": 0, "remote.active-protocols": 1,
}



def processes(root):
    """The process `root` and all that it has started."""
    parents = {}
    for entry in os.listdir("/proc"):
        with contextlib.suppress(OSError, ValueError):
            with open(f"/proc/{int(entry)}/stat") as file:
                parents[int(entry)] = int(file.read().rpartition(")")[2].split()[1])
    family = [root] if root in parents else []
    for parent in family:
        family += [child for child, of in parents.items() if of == parent]
    return family


class Socket:
    """The client's side of a WebSocket (RFC 6455) with text messages."""

    def __init__(self, port, path):
        self.stream = socket.create_connection(("127.0.0.1", port), timeout=HUNG)
        self.stream.sendall((
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {base64.b64encode(secrets.token_bytes(16)).decode()}\r\nSec-WebSocket-Version: 13\r\n\r\n").encode())
        # What has been received and not yet returned: bytes, and the first frames of a message.
        self.received, self.message = b"", b""
        head = self._until(lambda: b"\r\n\r\n" in self.received and self.received.partition(b"\r\n\r\n"), HUNG)
        self.received = head[2]
        if b" 101 " not in head[0].split(b"\r\n")[0]:
            raise DriverError(f"no WebSocket: {head[0].decode()}")

    def send(self, text):
        self._send(1, text.encode())

    def _send(self, kind, data):
        mask = secrets.token_bytes(4)
        length = len(data)
        if length < 126:
            size = bytes([0x80 | length])
        elif length < 65536:
            size = bytes([0x80 | 126]) + struct.pack(">H", length)
        else:
            size = bytes([0x80 | 127]) + struct.pack(">Q", length)
        self.stream.settimeout(HUNG)
        self.stream.sendall(bytes([0x80 | kind]) + size + mask + bytes(value ^ mask[k % 4] for k, value in enumerate(data)))

    def receive(self, seconds):
        """Returns the next message. Throws `TimeoutError` if it takes longer; what has been received stays."""
        end = time.monotonic() + seconds
        while True:
            kind, is_last, data = self._until(self._frame, end - time.monotonic())
            if kind == 9:
                self._send(10, data)
            elif kind == 8:
                raise DriverError("Firefox closed the socket")
            elif kind < 3:
                self.message += data
                if is_last:
                    message, self.message = self.message, b""
                    return message.decode()

    def _frame(self):
        """Takes the next frame from what has been received, if all of it has."""
        if len(self.received) < 2:
            return None
        first, length, start = self.received[0], self.received[1] & 127, 2
        if length > 125:
            start = 4 if length == 126 else 10
            length = int.from_bytes(self.received[2:start], "big")
        if len(self.received) < start + length:
            return None
        data, self.received = self.received[start:start + length], self.received[start + length:]
        return first & 15, first & 0x80, data

    def _until(self, found, seconds):
        """Receives until `found` returns something, and returns that."""
        end = time.monotonic() + seconds
        while True:
            value = found()
            if value:
                return value
            left = end - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self.stream.settimeout(left)
            piece = self.stream.recv(1 << 20)
            if not piece:
                raise DriverError("Firefox closed the connection")
            self.received += piece

    def close(self):
        self.stream.close()


class Firefox(Actions):
    """Firefox without a window. Its methods are those of `Browser`, except for DevTools."""

    has_devtools = False

    def __init__(self, width=1440, height=900):
        self.socket = self.context = self.process = None
        self.number, self.complaints = 0, []
        self.profile = tempfile.TemporaryDirectory(prefix="stillwave-firefox-", ignore_cleanup_errors=True)
        try:
            self._start()
            self.size(width, height)
        except BaseException:
            self._end()
            raise

    def _start(self):
        with open(os.path.join(self.profile.name, "user.js"), "w") as file:
            for name, value in PREFERENCES.items():
                file.write(f"user_pref({json.dumps(name)}, {json.dumps(value)});\n")
        port = free_port()
        environment = {**os.environ, "HOME": self.profile.name, "XDG_RUNTIME_DIR": self.profile.name, "MOZ_CRASHREPORTER_DISABLE": "1"}
        self.process = subprocess.Popen(
            ["firefox-esr", "--headless", "--no-remote", f"--remote-debugging-port={port}", "--profile", self.profile.name],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
        self.socket = self._connect(port)
        self.call("session.new", capabilities={})
        self.call("session.subscribe", events=["log.entryAdded"])
        # In the first window, the address bar has the focus: elements get no events of it, and keys press no buttons.
        self.context = self.call("browsingContext.create", type="window")["context"]
        self.call("script.addPreloadScript", functionDeclaration=f"() => {{ {REST} }}")

    def _connect(self, port):
        def connected():
            assert self.process.poll() is None, "Firefox has ended"
            with contextlib.suppress(OSError):
                return Socket(port, "/session")
        return wait("Firefox listens", connected)

    def call(self, method, **parameters):
        self.number += 1
        self.socket.send(json.dumps({"id": self.number, "method": method, "params": parameters}))
        end = time.monotonic() + HUNG
        while True:
            try:
                message = json.loads(self.socket.receive(end - time.monotonic()))
            except TimeoutError:
                raise DriverError(f"{method} has no answer after {HUNG} s: {str(parameters)[:300]}") from None
            if message.get("type") == "event":
                self._note(message["params"])
            elif message.get("id") == self.number:
                if message["type"] == "error":
                    raise DriverError(f"{message['error']}: {message['message']}")
                return message["result"]

    def _note(self, entry):
        if entry.get("level") in ("error", "warn"):
            self.complaints.append({"level": entry["level"], "message": entry.get("text") or ""})

    def close(self):
        try:
            self.call("browser.close")
            self.process.wait(HUNG)
        except (DriverError, OSError, subprocess.TimeoutExpired, ValueError):
            pass
        finally:
            self._end()

    def _end(self):
        if self.process and self.process.poll() is None:
            for process in processes(self.process.pid):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)
        if self.socket:
            self.socket.close()
        if self.process:
            self.process.kill()
            self.process.wait()
        self.profile.cleanup()

    def open(self, address):
        self.call("browsingContext.navigate", context=self.context, url=address, wait="complete")

    def reload(self):
        self.call("browsingContext.reload", context=self.context, wait="complete")

    def size(self, width, height, ratio=1, touch=False):
        self.call("browsingContext.setViewport", context=self.context, viewport={"width": width, "height": height},
                  devicePixelRatio=ratio)

    def run(self, script, *arguments):
        result = self.call(
            "script.callFunction", target={"context": self.context}, awaitPromise=True, userActivation=True,
            arguments=[{"type": "string", "value": json.dumps(arguments)}],
            functionDeclaration=f"""async text => {{
              const value = await (function () {{ {script} }}).apply(window, JSON.parse(text));
              return JSON.stringify(value ?? null);
            }}""")
        if result["type"] == "exception":
            raise DriverError(result["exceptionDetails"]["text"])
        return json.loads(result["result"]["value"])

    def find(self, selector):
        found = self.all(selector)
        if not found:
            raise DriverError(f"no such element: {selector}")
        return found[0]

    def all(self, selector):
        nodes = self.call("browsingContext.locateNodes", context=self.context, locator={"type": "css", "value": selector})["nodes"]
        return [{"sharedId": node["sharedId"]} for node in nodes]

    def click(self, selector):
        element = self.find(selector)
        self.run("document.querySelector(arguments[0]).scrollIntoView({ block: 'nearest', inline: 'nearest' })", selector)
        self.actions({"type": "pointer", "id": "mouse", "parameters": {"pointerType": "mouse"}, "actions": [
            {"type": "pointerMove", "x": 0, "y": 0, "origin": {"type": "element", "element": element}},
            {"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]})

    def type(self, selector, text):
        self.run("document.querySelector(arguments[0]).focus()", selector)
        self.keys(*text)

    def choose(self, selector, paths):
        self.call("input.setFiles", context=self.context, element=self.find(selector), files=paths)

    def actions(self, *sources):
        self.call("input.performActions", context=self.context, actions=list(sources))

    def screenshot(self, path):
        picture = self.call("browsingContext.captureScreenshot", context=self.context)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(picture))

    def console(self):
        """The errors that the page has logged since the last call."""
        self.run("")
        found, self.complaints = self.complaints, []
        # It warns about what isn't an error: sound that isn't allowed yet, and fields of the page that it doesn't know.
        return [entry for entry in found if entry["level"] == "error" and not re.search("AudioContext|NS_BINDING_ABORTED", entry["message"])]
