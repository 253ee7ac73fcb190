"""Measures how long one tenant waits while another one floods the service in one way.

    python3 Tests/OperationsTests/floods.py [PROGRAM]      default: .build/release/stillwave

Prints a table: for each flood, what the flooding tenant got, and the other tenant's slowest upload, slice and waveform (from
the upload's answer to the finished waveform) of five.
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
TRIES = 5


def sound(seconds, seed, rate=16000):
    noise = random.Random(seed)
    samples = noise.randbytes(2 * seconds * rate)
    return (b"RIFF" + struct.pack("<I", 36 + len(samples)) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, rate, 2 * rate, 2, 16)
            + b"data" + struct.pack("<I", len(samples)) + samples)


class Tenant:
    def __init__(self, port, secret):
        self.port, self.fields = port, {"Authorization": f"Bearer {secret}"}

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
    """Threads that repeat something until the end of the block; `answers` counts what they got."""

    def __init__(self, once, threads=THREADS):
        self.once, self.answers, self.is_over = once, collections.Counter(), threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(number,), daemon=True) for number in range(threads)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        time.sleep(2)
        return self

    def __exit__(self, *_):
        self.is_over.set()
        for thread in self.threads:
            thread.join(60)

    def run(self, number):
        step = 0
        while not self.is_over.is_set():
            try:
                self.answers[self.once(number, step)] += 1
            except (OSError, http.client.HTTPException, ValueError) as error:
                self.answers[type(error).__name__] += 1
            step += 1


def floods(tenant, recording):
    """The kinds of flood, as functions that do one thing and return what became of it."""
    local = threading.local()

    def connection():
        if not hasattr(local, "connection"):
            local.connection = tenant.connect()
        return local.connection

    small = sound(1, 1)

    def requests(number, step):
        return tenant.ask(connection(), "GET", f"/v1/recordings/{recording}/waveform?width=1000&start={(step * 64 + number) % 5000 / 100}")[0]

    def uploads(number, step):
        return tenant.upload(connection(), small, f"{number}-{step}")[0]

    def jobs(number, step):
        return tenant.ask(connection(), "POST", f"/v1/recordings/{recording}/denoise", json.dumps({"reduction": 5 + (step * 64 + number) % 300 / 10}),
                          {"Content-Type": "application/json"})[0]

    def slow(number, step):
        # A body of which a byte comes now and then.
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

    return [("nothing", None, 0), ("slices", requests, THREADS), ("uploads", uploads, THREADS), ("jobs", jobs, THREADS),
            ("slow uploads", slow, 400), ("event streams", events, 400)]


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

        timed("waveform", lambda: wait("the waveform is ready", is_ready, 300))
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
        for number, (name, _, threads) in enumerate(floods(Tenant(0, ""), "")):
            port = free_port()
            words = [program, "serve", "--listen", f"127.0.0.1:{port}", "--data", f"{folder}/{number}", "--keys", keys, "--admin-listen", "127.0.0.1:0"]
            with Process("service", words, folder) as service:
                wait("the service answers", lambda: service.answers(port))
                tenant = Tenant(port, flooding)
                recording = tenant.upload(tenant.connect(), sound(60, 0), "base")[1]["id"]
                other = Tenant(port, calm)
                measure(other, 900 + number)
                once = floods(tenant, recording)[number][1]
                with Flood(once, threads) if once else contextlib.nullcontext() as flood:
                    slowest = measure(other, number)
                    got = ", ".join(f"{count} × {kind}" for kind, count in flood.answers.most_common(4)) if flood else ""
            print(f"| {name} | {got} | " + " | ".join(f"{slowest[what]:.2f} s" for what in ("upload", "slice", "waveform")) + " |", flush=True)


main()
