"""Sends uploads, events, ranges and resumable uploads through the proxies that docs/proxies.md describes. See deploy/proxies."""

import argparse
import contextlib
import hashlib
import http.client
import json
import os
import re
import shutil
import signal
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../ViewerTests"))
from material import workers
from webdriver import free_port, wait

NAME = "audio.example.com"
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# What a proxy may take of memory, and hold back of a body, however long the body is.
PROXY_MEMORY = 48 << 20
HELD_BACK = 8 << 20
# How Caddy's configuration begins.
LOG = "{\n\t# All logs, of errors too, have neither keys nor tokens.\n\tlog {"
TOKEN = "a-token-that-no-log-may-have"


def blocks(language):
    """The blocks of code of one language in the document."""
    with open(os.path.join(ROOT, "docs/proxies.md"), encoding="utf-8") as file:
        return re.findall(rf"^```{language}\n(.*?)^```$", file.read(), re.M | re.S)


def replaced(text, *pairs):
    for old, new in pairs:
        assert old in text, f"docs/proxies.md has no “{old}” in:\n{text}"
        text = text.replace(old, new)
    return text


def stands_still(process):
    """Waits until a process that was sent SIGSTOP stands still, or is gone. Returns whether it stands still."""
    def state():
        with contextlib.suppress(OSError), open(f"/proc/{process}/stat") as stat:
            return stat.read().rpartition(")")[2].split()[0]
        return "X"
    return wait("a process stands still or is gone", lambda: (now := state()) in "TZX" and now) == "T"


class Process:
    """A program with its output in a file, ended with whoever holds it."""

    def __init__(self, name, words, folder, **options):
        self.log = os.path.join(folder, name + ".log")
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, **options)
        self.pid = self.process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(30)
        self.process.kill()
        self.process.wait()

    def text(self):
        """The end of what it has written."""
        with open(self.log, errors="replace") as log:
            return log.read()[-2000:]

    def answers(self, port):
        assert self.process.poll() is None, self.text()
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return True

    @property
    def memory(self):
        """The most that it has held, in bytes."""
        with open(f"/proc/{self.pid}/status") as file:
            return int(re.search(r"VmHWM:\s+(\d+) kB", file.read())[1]) * 1024


def proxy(kind, text, folder, upstream, port):
    """The proxy of a block of the document: ports, certificates and folders are the test's own, all else is as printed."""
    certificate, key = (os.path.join(folder, name) for name in ("certificate.pem", "key.pem"))
    if kind == "nginx":
        site = replaced(
            text, ("listen 443 ssl", f"listen 127.0.0.1:{port} ssl"), ("127.0.0.1:8080", f"127.0.0.1:{upstream}"),
            (f"/etc/ssl/{NAME}.pem", certificate), (f"/etc/ssl/{NAME}.key", key),
            ("/var/log/nginx/stillwave.log", folder + "/access.log"))
        site = site.replace("/var/cache/nginx/stillwave", folder + "/cache")
        folders = "".join(
            f"{name}_temp_path {folder}/held/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        path = os.path.join(folder, "nginx.conf")
        with open(path, "w") as file:
            file.write(f"daemon off; master_process off; pid {folder}/nginx.pid; error_log stderr;\n"
                       f"events {{}}\nhttp {{\naccess_log off;\n{folders}{site}}}\n")
        return Process("nginx", [shutil.which("nginx") or "/usr/sbin/nginx", "-p", folder, "-c", path], folder)
    site = replaced(
        text, (NAME + " {\n", f"https://{NAME}:{port} {{\n\tbind 127.0.0.1\n\ttls {certificate} {key}\n"),
        ("127.0.0.1:8080", f"127.0.0.1:{upstream}"), (LOG, "{\n\tadmin off\n\tauto_https disable_redirects\n\tlog {"))
    path = os.path.join(folder, "Caddyfile")
    with open(path, "w") as file:
        file.write(site)
    environment = dict(os.environ, HOME=folder, XDG_DATA_HOME=folder, XDG_CONFIG_HOME=folder, TMPDIR=folder + "/held")
    return Process("caddy", ["caddy", "run", "--adapter", "caddyfile", "--config", path], folder, env=environment)


def certify(folder):
    """Makes a certificate for the name, and its key."""
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={NAME}",
         "-addext", f"subjectAltName=DNS:{NAME}", "-keyout", folder + "/key.pem", "-out", folder + "/certificate.pem"],
        check=True, capture_output=True)


def check_logs(kind, front, folder):
    """The proxy has logged the request with a token, but not the token. nginx's log of errors may have it."""
    with open(folder + "/access.log" if kind == "nginx" else front.log, encoding="utf-8", errors="replace") as file:
        log = file.read()
    assert "/v1/recordings" in log, log[-2000:]
    assert TOKEN not in log, log[log.index(TOKEN) - 500:][:1000]


def wave(length):
    """The head of a WAV file of so many bytes, and what each piece of its samples is."""
    head = b"RIFF" + struct.pack("<I", length - 8) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 2, 44100, 176400, 4, 16)
    return head + b"data" + struct.pack("<I", length - 44), os.urandom(1 << 20)


class Body:
    """The bytes of an upload, made as they are sent."""

    def __init__(self, length):
        self.length, self.sent = length, 0
        self.head, self.piece = wave(length)
        self.hash = hashlib.sha256()

    def send(self, connection, until):
        while self.sent < until:
            start = (self.sent - len(self.head)) % len(self.piece)
            piece = self.piece[start:start + until - self.sent] if self.sent else self.head
            connection.send(piece)
            self.hash.update(piece)
            self.sent += len(piece)


class Walk:
    def __init__(self, service, front, port, folder, prefix, length):
        self.service, self.front, self.port, self.folder = service, front, port, folder
        self.prefix, self.length = prefix, length
        self.context = ssl.create_default_context(cafile=os.path.join(folder, "certificate.pem"))
        self.origin = f"https://{NAME}:{port}"

    def connect(self):
        connection = http.client.HTTPSConnection(NAME, self.port, context=self.context, timeout=120)
        raw = socket.create_connection(("127.0.0.1", self.port), 120)
        connection.sock = self.context.wrap_socket(raw, server_hostname=NAME)
        return connection

    def ask(self, method, path, body=None, fields={}):
        connection = self.connect()
        try:
            connection.request(method, path, body, fields)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def json(self, path):
        status, _, body = self.ask("GET", self.prefix + path)
        assert status == 200, (path, status, body)
        return json.loads(body)

    def below(self, location):
        """A Location that leads through the proxy."""
        assert location.startswith(self.prefix + "/v1/"), location
        return location

    def run(self):
        self.page()
        recording = self.upload()
        self.ranges(recording)
        self.events(recording, [self.service])
        self.pieces()
        self.origins()
        self.send_tokens(200)

    def send_tokens(self, expected):
        fields = {"Referer": f"{self.origin}/?token={TOKEN}", "Authorization": f"Bearer {TOKEN}"}
        status, _, body = self.ask("GET", f"{self.prefix}/v1/recordings?token={TOKEN}", None, fields)
        assert status == expected, (status, body)

    def page(self):
        if self.prefix:
            status, fields, _ = self.ask("GET", self.prefix)
            assert status in (301, 302, 308) and fields["Location"].endswith(self.prefix + "/"), (status, fields["Location"])
        status, _, body = self.ask("GET", self.prefix + "/")
        files = re.findall(r'(?:src|href)="([^"#]+)"', body.decode())
        assert status == 200 and len(files) > 20
        for file in files:
            assert self.ask("GET", f"{self.prefix}/{file}")[0] == 200, file

    def incoming(self):
        """Bytes that the service has of a body that is still coming."""
        folder = self.folder + "/data/incoming"
        return sum(entry.stat().st_size for entry in os.scandir(folder)) if os.path.isdir(folder) else 0

    def held(self):
        """Bytes of bodies that the proxy keeps in files."""
        return sum(os.path.getsize(os.path.join(folder, name))
                   for folder, _, names in os.walk(self.folder + "/held") for name in names)

    def upload(self):
        """A body arrives at the service as it is sent, and takes nothing of the proxy."""
        body, connection, half = Body(self.length), self.connect(), self.length // 2
        connection.putrequest("POST", self.prefix + "/v1/recordings?name=long.wav")
        connection.putheader("Content-Length", str(self.length))
        connection.putheader("Origin", self.origin)
        connection.endheaders()
        body.send(connection, half)
        wait("the first half reaches the service", lambda: self.incoming() >= half - HELD_BACK)
        held, memory = self.held(), self.front.memory
        assert held == 0, f"the proxy has put {held} bytes of the upload into files"
        body.send(connection, self.length)
        answer = connection.getresponse()
        text = answer.read()
        assert answer.status == 201, (answer.status, text)
        recording = json.loads(text)
        assert recording["sha256"] == body.hash.hexdigest() and recording["bytes"] == self.length
        location = self.below(answer.headers["Location"])
        assert memory < PROXY_MEMORY, f"the proxy has taken {memory} bytes of memory"
        print(f"    {self.length} bytes in; halfway the service had all but {HELD_BACK} of them, the proxy 0 in files, "
              f"{memory >> 20} MB of memory at most")
        wait("its waveform is ready", lambda: self.json(f"/v1/recordings/{recording['id']}")["waveform"]["state"] == "ready")
        return location

    def ranges(self, location):
        status, fields, body = self.ask("GET", location + "/audio", fields={"Range": "bytes=0-43"})
        assert (status, body[:4], len(body)) == (206, b"RIFF", 44) and fields["Content-Range"] == f"bytes 0-43/{self.length}"
        status, fields, body = self.ask("GET", location + "/audio", fields={"Range": "bytes=-5"})
        assert (status, len(body)) == (206, 5)
        status, _, body = self.ask("GET", location + "/audio", fields={"If-None-Match": fields["ETag"]})
        assert (status, body) == (304, b"")

    def stopped_job(self, location, services):
        """Starts a job, whose worker stands still. Returns its address, which service's it is, and its worker."""
        # With few bytes, one may end before its worker is seen.
        for _ in range(20):
            status, fields, body = self.ask(
                "POST", location + "/denoise", "{}", {"Content-Type": "application/json", "Origin": self.origin})
            assert status == 202, body
            job = self.below(fields["Location"])

            def has_ended(job=job):
                return self.json(job.removeprefix(self.prefix))["finished_at"] is not None

            wait("the job has a worker", lambda: any(workers(service.pid, b"denoise") for service in services) or has_ended())
            for service in services:
                for worker in workers(service.pid, b"denoise"):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(worker, signal.SIGSTOP)
                        # One that is exiting can't be stopped any more, and its job is about to end.
                        if stands_still(worker) and not has_ended():
                            return job, service, worker
                        os.kill(worker, signal.SIGCONT)
        raise AssertionError("every job ends too soon")

    def events(self, location, services):
        """An event comes when it happens: the job's worker, one of these services', stands still until it was read."""
        job, _, worker = self.stopped_job(location, services)
        connection = self.connect()
        try:
            connection.request("GET", job + "/events", headers={"Accept": "text/event-stream"})
            answer = connection.getresponse()
            assert answer.headers["Content-Type"] == "text/event-stream"
            assert self.next_event(answer) == "progress"
            # The rest would be a whole cleaning, and a short one could end before it is canceled.
            assert self.ask("DELETE", job, fields={"Origin": self.origin})[0] == 202
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.kill(worker, signal.SIGCONT)
        while (event := self.next_event(answer)) == "progress":
            pass
        assert event == "done", event
        connection.close()

    @staticmethod
    def next_event(answer):
        while line := answer.readline():
            if line.startswith(b"event: "):
                return line[7:].strip().decode()
        return None

    def pieces(self):
        """A resumable upload goes on where its connection broke."""
        length = 3_000_044
        body, tus = Body(length), {"Tus-Resumable": "1.0.0", "Origin": self.origin}
        status, fields, text = self.ask("POST", self.prefix + "/v1/uploads", None, {**tus, "Upload-Length": str(length)})
        assert status == 201, text
        upload, connection = self.below(fields["Location"]), self.connect()
        connection.putrequest("PATCH", upload)
        sent = {**tus, "Upload-Offset": "0", "Content-Length": str(length), "Content-Type": "application/offset+octet-stream"}
        for name, value in sent.items():
            connection.putheader(name, value)
        connection.endheaders()
        body.send(connection, 2_000_000)
        parts = self.folder + "/data/uploads"
        wait("the piece reaches the service",
             lambda: sum(entry.stat().st_size for entry in os.scandir(parts)) >= 1_900_000)
        connection.close()

        def offset():
            status, fields, _ = self.ask("HEAD", upload, None, tus)
            assert status == 200, status
            return int(fields["Upload-Offset"])

        at = wait("what came counts", offset)
        assert 1_900_000 <= at <= 2_000_000, at
        whole = body.head + body.piece * 3
        status, fields, text = self.ask("PATCH", upload, whole[at:length], {
            **tus, "Upload-Offset": str(at), "Content-Type": "application/offset+octet-stream"})
        assert status == 204, text
        recording = self.json(f"/v1/recordings/{fields['Stillwave-Recording']}")
        assert recording["sha256"] == hashlib.sha256(whole[:length]).hexdigest()

    def origins(self):
        """The proxy's name is the service's own, other pages' names are not."""
        for origin, expected in ((self.origin, 404), ("https://evil.example", 403), (f"https://{NAME}", 403)):
            status, _, body = self.ask("DELETE", self.prefix + "/v1/recordings/0", None, {"Origin": origin})
            assert status == expected, (origin, status, body)


class CachedWalk(Walk):
    """Reads through a proxy that keeps what never changes."""

    def ranges(self, location):
        super().ranges(location)
        dat, json_type = "application/vnd.bbc.audiowaveform", "application/json"
        for path, fields, kind in (
                ("/waveform?width=300", {}, json_type), ("/waveform?width=300", {"Accept": dat}, dat), ("/waveform.dat?width=300", {}, dat),
                ("/waveform.png?width=300", {}, "image/png"), ("/audio?start=0&end=0.01", {}, "audio/wav"),
                ("/audio", {"Range": "bytes=100-299"}, "audio/wav"), ("/audio", {"Range": "bytes=-5"}, "audio/wav")):
            bodies = []
            for _ in range(2):
                # The second comes from the cache, whatever else its client prefers.
                status, found, body = self.ask("GET", location + path, fields=fields)
                assert status == (206 if "Range" in fields else 200) and found["Content-Type"] == kind, (path, status, found)
                bodies.append(body)
            assert found["X-Cache"] == "HIT" and bodies[0] == bodies[1], (path, found["X-Cache"])
            assert found["Cache-Control"] == "public, max-age=31536000, s-maxage=3600, immutable", found
        for path in ("", "/labels", "/audio?format=none"):
            assert [self.ask("GET", location + path)[1]["X-Cache"] for _ in range(3)][2] != "HIT", path
        self.deleted()

    def deleted(self):
        """A deleted recording is served for up to an hour, and no longer."""
        body = Body(60_044)
        whole = (body.head + body.piece)[:body.length]
        status, fields, text = self.ask("POST", "/v1/recordings?name=short.wav", whole, {"Origin": self.origin})
        assert status == 201, text
        location, now = fields["Location"], time.time()
        known = self.cached()
        for _ in range(2):
            assert self.ask("GET", location + "/audio")[2] == whole
        assert self.ask("DELETE", location, fields={"Origin": self.origin})[0] == 204
        assert self.ask("GET", location)[0] == 404
        status, fields, kept = self.ask("GET", location + "/audio")
        assert (status, fields["X-Cache"], kept) == (200, "HIT", whole)
        [entry] = self.cached() - known
        # ngx_http_file_cache_header_t: a version and the time until which it is fresh, of eight bytes each.
        with open(entry, "rb") as file:
            _, until = struct.unpack("<QQ", file.read(16))
        assert now + 3590 <= until <= now + 3630, until - now

    def cached(self):
        return {os.path.join(folder, name) for folder, _, names in os.walk(self.folder + "/cache") for name in names}


def main():
    options = argparse.ArgumentParser(prog="deploy/proxies")
    options.add_argument("--bytes", type=int, default=1 << 30, help="of the upload (default: 1 GiB)")
    options.add_argument("program", nargs="?", default=".build/release/stillwave")
    parsed = options.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    found = [(kind, text) for kind, language in (("nginx", "nginx"), ("caddy", "caddyfile")) for text in blocks(language)]
    assert len(found) == 5, "docs/proxies.md has five configurations"
    for kind, text in found:
        prefix, is_cache = "/audio" if "/audio/" in text else "", "proxy_cache" in text
        print(f"  {kind} at {prefix or '/'}{', as a cache' if is_cache else ''}", flush=True)
        with tempfile.TemporaryDirectory(prefix="stillwave-proxies-") as folder:
            os.mkdir(folder + "/held")
            certify(folder)
            upstream, port = free_port(), free_port()
            words = [os.path.abspath(parsed.program), "serve", "--listen", f"127.0.0.1:{upstream}", "--data", folder + "/data",
                     "--allowed-hosts", NAME, "--trusted-proxies", "127.0.0.1"]
            words += ["--base-path", prefix] if prefix else []
            words += ["--cache-control", "public"] if is_cache else []
            with Process("service", words, folder) as service, proxy(kind, text, folder, upstream, port) as front:
                wait("the service answers", lambda: service.answers(upstream))
                wait("the proxy answers", lambda: front.answers(port))
                walk = (CachedWalk if is_cache else Walk)(service, front, port, folder, prefix, parsed.bytes)
                walk.run()
                # Where requests don't wait for the next service, one without a service is logged as an error.
                if kind == "caddy" and "lb_try_duration" not in text:
                    service.__exit__()
                    walk.send_tokens(502)
            check_logs(kind, front, folder)
    # They import this module.
    import balance
    import drain
    with tempfile.TemporaryDirectory(prefix="stillwave-balance-") as folder:
        balance.run(os.path.abspath(parsed.program), folder, min(parsed.bytes, 100_000_000))
    with tempfile.TemporaryDirectory(prefix="stillwave-drain-") as folder:
        drain.run(os.path.abspath(parsed.program), folder)
    print("The proxies of docs/proxies.md pass everything through.")


if __name__ == "__main__":
    main()
