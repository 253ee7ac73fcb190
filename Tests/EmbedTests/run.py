"""Uses the service from pages of another origin, in Chromium and Firefox. See deploy/embed-test."""

import argparse
import http.server
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "ViewerTests"))

import docs  # noqa: E402
import element  # noqa: E402
import libraries  # noqa: E402
from firefox import Firefox  # noqa: E402
from material import Service, write_video  # noqa: E402
from webdriver import Browser, wait  # noqa: E402

# What a page wants, as a script of it. `at(path)` is an address of the recording; each resolves to true, or rejects.
WANTS = {
    "`<img>`": "load('img', at('waveform.png?width=200'), 'load')",
    "`<img crossorigin>`": "load('img', at('waveform.png?width=200'), 'load', true)",
    "`<audio>`": "load('audio', at('audio'), 'loadedmetadata')",
    "`<audio crossorigin>`": "load('audio', at('audio'), 'loadedmetadata', true)",
    "`<video>`": "load('video', at('video'), 'loadedmetadata')",
    "`fetch`": "fetch(at('waveform?width=100')).then(r => r.json()).then(w => w.length > 0)",
    "`fetch` of a range": "fetch(at('audio'), { headers: { Range: 'bytes=0-3' } }).then(r => r.status === 206 && /^bytes 0-3/.test(r.headers.get('Content-Range')))",
    "`fetch` of a field": "fetch(at('waveform.points?width=9')).then(r => r.headers.get('Stillwave-Complete') === 'true')",
    "`EventSource`": "listen(events)",
    "wavesurfer.js, `url`": "surf({ url: at('audio') })",
    "wavesurfer.js, `media` and `peaks`": "fetch(at('peaks.json?width=500')).then(r => r.json()).then(({ peaks, duration }) => surf({ media: media(at('audio')), peaks, duration }))",
    "peaks.js, `dataUri`": "peaks({ dataUri: { arraybuffer: at('waveform.dat?scale=512&bits=8') } })",
    "waveform-data.js": "fetch(at('waveform.dat?scale=512&bits=8')).then(r => r.arrayBuffer()).then(data => WaveformData.create(data).length > 0)",
    "`<stillwave-waveform>`": "element()",
    "`/embed` in an `<iframe>`": "frame()",
}

PAGE = """<!doctype html><meta charset="utf-8"><title>Another page</title><div id="box" style="width: 600px"></div>
<script src="/wavesurfer.js"></script><script src="/peaks.js"></script>
<script>
const setup = %s, box = document.querySelector("#box");
const at = path => {
  const url = new URL(`${setup.service}/v1/recordings/${setup.id}/${path}`);
  if (setup.token) url.searchParams.set("token", setup.token);
  return url.href;
};
const events = (() => { const url = new URL(`${setup.service}/v1/jobs/${setup.job}/events`); if (setup.token) url.searchParams.set("token", setup.token); return url.href; })();
const load = (name, src, event, isCORS) => new Promise((done, refuse) => {
  const element = document.createElement(name);
  if (isCORS) element.crossOrigin = "anonymous";
  element.addEventListener(event, () => done(true));
  element.addEventListener("error", () => refuse(Error("error event")));
  element.preload = "metadata";
  element.src = src;
  box.append(element);
});
const media = src => { const made = new Audio(src); made.preload = "metadata"; return made; };
const listen = url => new Promise((done, refuse) => {
  const source = new EventSource(url);
  const end = how => value => { source.close(); how(value); };
  source.onmessage = end(() => done(true));
  for (const name of ["progress", "done"]) source.addEventListener(name, source.onmessage);
  source.onerror = end(() => refuse(Error("error event")));
});
const surf = options => new Promise((done, refuse) => {
  const made = WaveSurfer.create({ container: box, ...options });
  made.on("ready", () => done(made.getDuration() > 1));
  made.on("error", refuse);
});
const peaks = options => new Promise((done, refuse) => {
  const view = box.appendChild(document.createElement("div"));
  view.style.height = "100px";
  Peaks.init({ overview: { container: view }, mediaElement: box.appendChild(media(at("audio"))), ...options }, (error, made) => error ? refuse(error) : done(!!made));
});
const element = async () => {
  await import(`${setup.service}/embed/stillwave.js`);
  return new Promise((done, refuse) => {
    const made = document.createElement("stillwave-waveform");
    for (const [name, value] of Object.entries({ recording: setup.id, token: setup.token })) if (value) made.setAttribute(name, value);
    made.addEventListener("loadedmetadata", () => done(made.duration > 1));
    made.addEventListener("error", () => refuse(made.error));
    box.append(made);
  });
};
const frame = () => new Promise((done, refuse) => {
  const made = document.createElement("iframe");
  made.src = `${setup.service}/embed#recording=${setup.id}&token=${setup.token ?? ""}`;
  // A page that may not be shown loads an error page, whose origin can't be seen; only the test driver sees into it.
  made.onload = () => done("look");
  box.append(made);
});
window.attempt = async script => {
  box.replaceChildren();
  let timer;
  try {
    const late = new Promise((_, refuse) => { timer = setTimeout(() => refuse(Error("nothing happens")), 20_000); });
    const value = await Promise.race([(0, eval)(script), late]);
    return value === true || value === "look" ? value : `it is ${value}`;
  } catch (error) { return String(error?.message ?? error); } finally { clearTimeout(timer); }
};
</script>
"""


class Pages:
    """A server of pages for another site than the service's: `localhost` instead of 127.0.0.1."""

    def __init__(self):
        self.files = {}
        pages = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                found = pages.files.get(self.path.partition("?")[0])
                self.send_response(200 if found else 404)
                self.send_header("Content-Type", found[0] if found else "text/plain")
                self.end_headers()
                self.wfile.write(found[1].encode() if found else b"")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.origin = f"http://localhost:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def put(self, path, text, kind="text/html; charset=utf-8"):
        self.files[path] = kind, text
        return self.origin + path


class Keyed(Service):
    """A service with a key, which its requests have."""

    extra = ()

    def start(self):
        keys = self.folder.name + "/keys.jsonl"
        self.key = subprocess.run(
            [self.binary, "keys", "add", "one", "--keys", keys, "--tenant", "one", "--scopes", "read,write,delete"],
            check=True, capture_output=True, text=True).stdout.strip()
        self.options = "--keys", keys, "--admin-listen", "127.0.0.1:0", *self.extra
        super().start()

    def request(self, method, path, body=None, fields={}):
        return super().request(method, path, body, {"Authorization": f"Bearer {self.key}", **fields})

    def token(self, recording):
        body = json.dumps({"recording": recording, "convert": True}).encode()
        return json.loads(self.request("POST", "/v1/tokens", body, {"Content-Type": "application/json"})[2])["token"]


def with_options(kind, *extra):
    return type("Service", (kind,), {"extra": extra} if kind is Keyed else {"options": extra})


def upload(service, path):
    recording = json.loads(service.request("POST", f"/v1/recordings?name={os.path.basename(path)}", open(path, "rb").read())[2])
    job = recording["waveform"]["job"]
    wait("the waveform is ready", lambda: json.loads(
        service.request("GET", f"/v1/recordings/{recording['id']}")[2])["waveform"]["state"] == "ready")
    return recording["id"], job


def table(binary, kinds, pages, film):
    """Returns the cells: what each page got, by what it wants and what the service is started with."""
    origin = pages.origin
    for name, text in libraries.scripts().items():
        pages.put(f"/{name}", text, "text/javascript")
    ways = {
        "keys; a token": with_options(Keyed),
        "keys; a token; `--embed-origins`": with_options(Keyed, "--embed-origins", origin),
        "no keys; `--cors-origin`": with_options(Service, "--cors-origin", origin),
        "no keys; `--embed-origins`": with_options(Service, "--embed-origins", origin),
        "no keys": with_options(Service),
    }
    cells = {}
    for way, kind in ways.items():
        with kind(binary) as service:
            identifier, job = upload(service, film)
            setup = {"service": service.address, "id": identifier, "job": job,
                     "token": service.token(identifier) if kind.__mro__[1] is Keyed else ""}
            address = pages.put("/page", PAGE % json.dumps(setup))
            for browser_kind in kinds:
                with browser_kind() as browser:
                    for want, script in WANTS.items():
                        browser.open(address)
                        got = browser.run("return attempt(arguments[0])", script)
                        if got == "look":
                            got = framed(browser)
                        cells[want, way, browser_kind.__name__] = got
    return list(ways), cells


def framed(browser):
    """Whether the frame shows a waveform, which only a script within it can say."""
    look = "return !!document.querySelector('stillwave-waveform')"
    if isinstance(browser, Browser):
        browser.call("POST", "/frame", {"id": 0})
        found = browser.run(look)
        browser.call("POST", "/frame", {"id": None})
    else:
        tree = browser.call("browsingContext.getTree", root=browser.context)["contexts"][0]
        page, browser.context = browser.context, tree["children"][0]["context"]
        found = browser.run(look)
        browser.context = page
    return found or "the frame is blocked"


def check_table(binary, kinds, pages, film, remake):
    """Compares what each page got with the table in docs/embedding.md, where ✓ is true, or writes that table."""
    ways, cells = table(binary, kinds, pages, film)
    lines = ["| what you want | " + " | ".join(ways) + " |", "| --- |" + " --- |" * len(ways)]
    failures = 0
    for want in WANTS:
        row = []
        for way in ways:
            got = {kind.__name__: cells[want, way, kind.__name__] for kind in kinds}
            works = {value is True for value in got.values()}
            row.append("✓" if works == {True} else "–" if works == {False} else
                       "only " + next(name for name, value in got.items() if value is True))
            print(f"{want:40} {way:45} {got}", flush=True)
        lines.append(f"| {want} | " + " | ".join(row) + " |")
    made = "\n".join(lines) + "\n"
    document = HERE.parent.parent / "docs/embedding.md"
    text = document.read_text()
    begin, end = "<!-- table -->\n", "<!-- end -->"
    written = text[text.index(begin) + len(begin):text.index(end)]
    if remake:
        document.write_text(text.replace(begin + written, begin + made))
    elif written != made:
        failures += 1
        print("docs/embedding.md has another table; --remake writes it:\n" + made)
    return failures


def main():
    options = argparse.ArgumentParser(prog="deploy/embed-test", description=__doc__)
    options.add_argument("part", nargs="?", choices=["table", "element", "docs", "all"], default="all")
    options.add_argument("--binary", default=".build/debug/stillwave", help="the program (default: %(default)s)")
    options.add_argument("--browser", choices=["chromium", "firefox", "both"], default="both")
    options.add_argument("--pictures", default=".build/embed-pictures", help="a folder for pictures (default: %(default)s)")
    options.add_argument("--remake", action="store_true", help="write the table in docs/embedding.md instead of comparing it")
    parsed = options.parse_args()
    kinds = {"chromium": [Browser], "firefox": [Firefox], "both": [Browser, Firefox]}[parsed.browser]
    binary, failures = os.path.abspath(parsed.binary), 0
    os.makedirs(parsed.pictures, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="stillwave-embed-") as folder:
        pages = Pages()
        if parsed.part in ("table", "all"):
            film = write_video(folder + "/film.mp4", 3, "-c:v", "libx264", "-pix_fmt", "yuv420p", "-c:a", "aac")
            failures += check_table(binary, kinds, pages, film, parsed.remake)
        if parsed.part in ("element", "all"):
            failures += element.check(binary, kinds, pages, folder, parsed.pictures)
        if parsed.part in ("docs", "all"):
            failures += docs.check(binary, kinds, folder, parsed.pictures)
    print(f"{failures} failures" if failures else "All of it works.")
    sys.exit(min(failures, 100))


main()
