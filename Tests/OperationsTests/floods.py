"""Measures how long one tenant waits while another one floods the service in one way.

    python3 Tests/OperationsTests/floods.py [PROGRAM]      default: .build/release/stillwave

Prints a table: for each flood, what the flooding tenant got, and the other tenant's slowest upload, slice and waveform (from
the upload's answer to the finished waveform) of 20. The flood is a process of its own.
"""

import collections
import contextlib
import http.client
import json
import os
import random
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(here, "../ProxyTests"), os.path.join(here, "../ViewerTests")]
from walk import Process
from webdriver import free_port, wait

THREADS = 64
TRIES = 20
# What a flood may get. Anything else means that it doesn't do what its name says.
EXPECTED = {"200", "201", "202", "204", "206", "401", "429", "503", "broken off"}


def sound(seconds, seed, rate=16000):
    noise = random.Random(seed)
    samples = noise.randbytes(2 * seconds * rate)
    return (b"RIFF" + struct.pack("<I", 36 + len(samples)) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, rate, 2 * rate, 2, 16)
            + b"data" + struct.pack("<I", len(samples)) + samples)


class Tenant:
    def __init__(self, port, secret):
        self.port, self.fields, self.local = port, {"Authorization": f"Bearer {secret}"}, threading.local()

    def connection(self):
        """The calling thread's connection."""
        if getattr(self.local, "connection", None) is None:
            self.local.connection = self.connect()
        return self.local.connection

    def close(self):
        """Closes it after a failure, so that the thread gets another."""
        if getattr(self.local, "connection", None) is not None:
            self.local.connection.close()
            self.local.connection = None

    def connect(self):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)

    def ask(self, connection, method, path, body=None, fields={}):
        connection.request(method, path, body, {**self.fields, **fields})
        answer = connection.getresponse()
        return answer.status, answer.read()

    def upload(self, connection, content, name):
        status, body = self.ask(connection, "POST", f"/v1/recordings?name={name}", content)
        return status, json.loads(body)


class Flood:
    """A process whose threads repeat something until the end of the block; `answers` counts what they got."""

    def __init__(self, name, port, secret, recording):
        self.words = [sys.executable, os.path.abspath(__file__), "--flood", name, str(port), secret, recording]
        self.answers = collections.Counter()

    def __enter__(self):
        self.process = subprocess.Popen(self.words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        time.sleep(2)
        return self

    def __exit__(self, *_):
        output, _ = self.process.communicate("", timeout=120)
        self.answers.update(json.loads(output))


def flood(name, port, secret, recording):
    """Floods the service until standard input ends, and prints what it got."""
    tenant = Tenant(int(port), secret)
    once, threads = floods(tenant, recording)[name]
    answers, is_over = collections.Counter(), threading.Event()

    def run(number):
        step = 0
        while not is_over.is_set():
            try:
                answers[once(number, step)] += 1
            except (OSError, http.client.HTTPException, ValueError) as error:
                answers[type(error).__name__] += 1
                tenant.close()
            step += 1

    for number in range(threads):
        threading.Thread(target=run, args=(number,), daemon=True).start()
    sys.stdin.read()
    is_over.set()
    time.sleep(1)
    print(json.dumps(dict(answers)), flush=True)
    os._exit(0)


def floods(tenant, recording):
    """The kinds of flood by name: a function that does one thing and returns what became of it, and how many threads do it."""
    small = sound(1, 1)
    body = {"Content-Type": "application/json"}
    own = f"/v1/recordings/{recording}"

    def ask(*words):
        return tenant.ask(tenant.connection(), *words)[0]

    def requests(number, step):
        return ask("GET", f"{own}/waveform?width=1000&start={(step * 64 + number) % 5000 / 100}")

    def lists(number, step):
        return ask("GET", f"/v1/recordings?limit=500&q={(step * 64 + number) % 1000}")

    def pictures(number, step):
        return ask("GET", f"{own}/waveform.png?width=4000&height=1000&start={(step * 64 + number) % 5000 / 100}")

    def uploads(number, step):
        return tenant.upload(tenant.connection(), small, f"{number}-{step}")[0]

    def jobs(number, step):
        return ask("POST", f"{own}/denoise", json.dumps({"reduction": 5 + (step * 64 + number) % 300 / 10}), body)

    def previews(number, step):
        start = (step * 64 + number) % 300 / 10
        return ask("POST", f"{own}/denoise/preview", json.dumps({"noise": {"start": 0, "end": 1}, "window": {"start": start, "end": start + 20}}), body)

    def parts(number, step):
        return ask("GET", f"{own}/audio?format=mp3&start={(step * 64 + number) % 300 / 10}&end=50")

    def labels(number, step):
        words = [{"start": k / 10, "end": k / 10 + 0.1, "text": "word"} for k in range(500)]
        status, made = tenant.ask(tenant.connection(), "POST", f"{own}/labels?name=Words&kind=transcript", json.dumps({"labels": words}), body)
        if status == 201:
            ask("DELETE", f"{own}/labels/{json.loads(made)['id']}", None, {"If-Match": "*"})
        return status

    def job_lists(number, step):
        return ask("GET", "/v1/jobs?state=running&limit=100")

    def trims(number, step):
        return ask("POST", f"{own}/trim", json.dumps({"start": (step * 64 + number) % 300 / 10, "end": 40}), body)

    def downloads(number, step):
        return ask("GET", f"{own}/audio")

    def resumable(number, step):
        # The first half of an upload, which stays open.
        tus = {"Tus-Resumable": "1.0.0"}
        connection = tenant.connection()
        connection.request("POST", "/v1/uploads", None, {**tenant.fields, **tus, "Upload-Length": str(len(small))})
        answer = connection.getresponse()
        answer.read()
        if answer.status != 201:
            return answer.status
        half = {**tus, "Upload-Offset": "0", "Content-Type": "application/offset+octet-stream"}
        return ask("PATCH", answer.headers["Location"], small[:len(small) // 2], half)

    def slow(number, step):
        # Sends one byte of the body every 0.1 s.
        with socket.create_connection(("127.0.0.1", tenant.port), 60) as raw:
            raw.sendall(f"POST /v1/recordings HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: {tenant.fields['Authorization']}\r\n"
                        f"Content-Length: 1000000\r\n\r\n".encode() + small[:44])
            for _ in range(10):
                time.sleep(0.1)
                raw.sendall(b"0")
        return "broken off"

    def events(number, step):
        stream = tenant.connect()
        with contextlib.closing(stream):
            stream.request("GET", "/v1/events", headers=tenant.fields)
            answer = stream.getresponse()
            if answer.status != 200:
                time.sleep(0.02)
                return answer.status
            answer.read(1)
            time.sleep(1)
        return 200

    def wrong(number, step):
        return tenant.ask(tenant.connection(), "GET", own, None, {"Authorization": f"Bearer {number}-{step}"})[0]

    return {"slices": (requests, THREADS), "pictures": (pictures, THREADS), "lists": (lists, THREADS), "uploads": (uploads, THREADS),
            "jobs": (jobs, THREADS), "previews": (previews, THREADS), "parts as MP3": (parts, THREADS), "labels": (labels, THREADS),
            "trims": (trims, THREADS), "downloads": (downloads, THREADS), "resumable uploads": (resumable, THREADS),
            "lists of jobs": (job_lists, THREADS), "slow uploads": (slow, 400), "event streams": (events, 400),
            "wrong keys": (wrong, THREADS)}


def measure(calm, number):
    connection = calm.connect()
    slowest = collections.defaultdict(float)

    def timed(name, action):
        start = time.monotonic()
        value = action()
        slowest[name] = max(slowest[name], time.monotonic() - start)
        return value

    for attempt in range(TRIES):
        status, made = timed("upload", lambda: calm.upload(connection, sound(5, 100 * number + attempt + 10), f"calm-{number}-{attempt}"))
        assert status == 201, made

        def is_ready():
            return json.loads(calm.ask(connection, "GET", f"/v1/recordings/{made['id']}")[1])["waveform"]["state"] == "ready"

        timed("waveform", lambda: wait("the waveform is ready", is_ready))
        status, _ = timed("slice", lambda: calm.ask(connection, "GET", f"/v1/recordings/{made['id']}/waveform?width=1000"))
        assert status == 200
    connection.close()
    return slowest


def main():
    program = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else ".build/release/stillwave")
    print("| one tenant's flood | what it got | another's upload | slice | waveform |\n| --- | --- | --- | --- | --- |")
    with tempfile.TemporaryDirectory(prefix="stillwave-floods-") as folder:
        keys = folder + "/keys.jsonl"
        flooding, calm = (subprocess.run(
            [program, "keys", "add", tenant, "--keys", keys, "--tenant", tenant, "--scopes", "read,write,delete"], check=True,
            capture_output=True, text=True).stdout.strip() for tenant in ("flooding", "calm"))
        for number, name in enumerate([None, *floods(Tenant(0, ""), "")]):
            port = free_port()
            words = [program, "serve", "--listen", f"127.0.0.1:{port}", "--data", f"{folder}/{number}", "--keys", keys, "--admin-listen", "127.0.0.1:0"]
            with Process("service", words, folder) as service:
                wait("the service answers", lambda: service.answers(port))
                tenant, other = Tenant(port, flooding), Tenant(port, calm)
                recording = tenant.upload(tenant.connect(), sound(60, 0), "base")[1]["id"]
                measure(other, 900 + number)
                with Flood(name, port, flooding, recording) if name else contextlib.nullcontext() as running:
                    slowest = measure(other, number)
                answers = running.answers if name else collections.Counter()
                assert set(answers) <= EXPECTED, f"{name}: {dict(answers)}"
                got = ", ".join(f"{count} × {kind}" for kind, count in answers.most_common(4))
            print(f"| {name or 'nothing'} | {got} | " + " | ".join(f"{slowest[what]:.2f} s" for what in ("upload", "slice", "waveform")) + " |", flush=True)


if sys.argv[1:2] == ["--flood"]:
    flood(*sys.argv[2:])
else:
    main()
