"""Cuts the power of a service's disk at random moments. See deploy/faults --power.

Each round starts the service with an empty folder on a disk of its own (disk.py), and clients upload (plain and resumable),
rename, label, denoise, convert, delete, and learn profiles. At a random moment after an answer, the disk stops. What may be
left of it is mounted, which replays the file system's journal, a service is started there, and all that was acknowledged
is compared.
"""

import argparse
import base64
import contextlib
import hashlib
import http.client
import json
import os
import random
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(here, "../ClusterTests"), os.path.join(here, "../ViewerTests")]
from clients import FINISHED, TUS, sound
from disk import MAKERS, Disk, mount, unmount
from webdriver import free_port

JSON = {"Content-Type": "application/json"}
REMAINS = ("none", "prefix", "torn")


class Over(Exception):
    """The power is gone, or the service gave no answer."""


class Service:
    def __init__(self, program, place, preload=None):
        self.port, data = free_port(), os.path.join(place, "data")
        words = [
            program, "serve", "--listen", f"127.0.0.1:{self.port}", "--data", data, "--reserve-bytes", "1",
            "--log-level", "warning", "--max-open-uploads-per-client", "500"]
        self.output = tempfile.TemporaryFile()
        environment = {**os.environ, "LD_PRELOAD": preload} if preload else os.environ
        self.process = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=self.output, stderr=self.output, env=environment)
        end = time.monotonic() + 60
        while self.ask("GET", "/healthz")[0] != 200:
            if self.process.poll() is not None or time.monotonic() > end:
                self.kill()
                self.output.seek(0)
                raise RuntimeError("the service doesn't start: " + self.output.read().decode(errors="replace")[-600:])
            time.sleep(0.02)

    def ask(self, method, path, body=None, fields=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            try:
                connection.request(method, path, body, fields or {})
                answer = connection.getresponse()
                return answer.status, answer.headers, answer.read()
            except (OSError, http.client.HTTPException):
                return None, None, b""

    def kill(self):
        """Kills the service. Its workers notice that it is gone."""
        self.process.kill()
        self.process.wait()


class Promises:
    """What the service acknowledged: path → what a GET must find there. A change that wasn't answered before the cut may have
    happened or not, so that a path can have two values. None stands for 404."""

    def __init__(self, cut_after):
        self.lock, self.values, self.answers, self.cut_after = threading.Lock(), {}, 0, cut_after
        self.is_over, self.complaints = threading.Event(), []
        # Idempotency-Key → the content that was sent and the recording that it became.
        self.keys = {}

    def begin(self, path, value):
        with self.lock:
            if self.is_over.is_set():
                raise Over
            self.values[path] = [*self.values.get(path, []), value]

    def keep(self, path, value):
        with self.lock:
            if self.is_over.is_set():
                raise Over
            self.values[path] = [value]


class Client(threading.Thread):
    def __init__(self, service, promises, seed):
        super().__init__(daemon=True)
        self.service, self.promises, self.random, self.recordings = service, promises, random.Random(seed), []
        self.due = threading.Event()

    def run(self):
        with contextlib.suppress(Over):
            while True:
                self.random.choice([
                    self.plain, self.plain, self.resumable, self.resumable, self.rename, self.label, self.label, self.denoise,
                    self.convert, self.profile, self.delete])()

    def ask(self, method, path, body=None, fields=None, expected=(200, 201, 202, 204)):
        status, headers, answer = self.service.ask(method, path, body, fields)
        if self.promises.is_over.is_set() or status is None:
            raise Over
        if status not in expected:
            self.promises.complaints.append(f"{method} {path}: {status} {answer[:200]}")
            raise Over
        with self.promises.lock:
            self.promises.answers += method != "GET"
        return headers, answer

    def recording(self):
        """The path of a recording of this client; a new one if it has none."""
        return self.random.choice(self.recordings) if self.recordings else self.plain()

    def keep_recording(self, identifier, content, name):
        path = f"/v1/recordings/{identifier}"
        self.promises.keep(path, name)
        self.promises.keep(path + "/audio", hashlib.sha256(content).hexdigest())
        self.recordings.append(path)
        return path

    def content(self):
        key = f"{self.random.getrandbits(64):016x}"
        return key, sound(self.random.choice([2, 2, 4, 30]), key, rate=8000)

    def plain(self):
        key, content = self.content()
        _, answer = self.ask("POST", f"/v1/recordings?name={key}", content, {"Idempotency-Key": key, "Content-Type": "audio/wav"})
        path = self.keep_recording(json.loads(answer)["id"], content, key)
        self.promises.keys[key] = content, path
        return path

    def resumable(self):
        key, content = self.content()
        name = "filename " + base64.b64encode(key.encode()).decode()
        headers, _ = self.ask("POST", "/v1/uploads", None, {
            **TUS, "Upload-Length": str(len(content)), "Upload-Metadata": name})
        path, offset = urllib.parse.urlsplit(headers["Location"]).path, 0
        self.promises.keep(path, 0)
        piece = -(-len(content) // self.random.randint(1, 5))
        while offset < len(content):
            headers, _ = self.ask("PATCH", path, content[offset:offset + piece], {
                **TUS, "Content-Type": "application/offset+octet-stream", "Upload-Offset": str(offset)})
            offset = int(headers["Upload-Offset"])
            self.promises.keep(path, offset)
            if self.random.random() < 0.2 and offset < len(content):
                return
        self.keep_recording(headers["Stillwave-Recording"], content, key)

    def rename(self):
        path, name = self.recording(), f"{self.random.getrandbits(64):016x}"
        self.promises.begin(path, name)
        self.ask("PATCH", path, json.dumps({"name": name}), {"Content-Type": "application/merge-patch+json"})
        self.promises.keep(path, name)

    def label(self):
        def body():
            texts = [f"{self.random.getrandbits(64):x}" for _ in range(self.random.randint(1, 4))]
            return texts, json.dumps({"labels": [{"start": 0, "end": 1, "text": text} for text in texts]})

        recording, (texts, content) = self.recording(), body()
        headers, answer = self.ask("POST", recording + "/labels?name=power", content, JSON)
        path = f"{recording}/labels/{json.loads(answer)['id']}"
        self.promises.keep(path, texts)
        for method in self.random.choice([(), ("PUT",), ("PUT", "PUT"), ("DELETE",)]):
            texts, content = body() if method == "PUT" else (None, None)
            self.promises.begin(path, texts)
            headers, _ = self.ask(method, path, content, {**JSON, "If-Match": headers["ETag"]})
            self.promises.keep(path, texts)

    def denoise(self):
        _, answer = self.ask("POST", self.recording() + "/denoise", json.dumps({"reduction": 12}), JSON)
        job = json.loads(answer)
        path, state = f"/v1/jobs/{job['id']}", None
        self.promises.keep(path, "succeeded")
        while state not in FINISHED:
            job = json.loads(self.ask("GET", path + "?wait=2")[1])
            state = job["state"]
        if state != "succeeded":
            self.promises.complaints.append(f"{path}: {job}")
            return
        result = f"/v1/recordings/{job['result']['recording']}"
        document = json.loads(self.ask("GET", result)[1])
        _, content = self.ask("GET", result + "/audio")
        self.promises.keep(result, document["name"])
        self.promises.keep(result + "/audio", hashlib.sha256(content).hexdigest())

    def convert(self):
        path = self.recording() + "/audio?format=flac"
        self.promises.keep(path, hashlib.sha256(self.ask("GET", path)[1]).hexdigest())

    def profile(self):
        request = {"recording": self.recording().rsplit("/", 1)[1], "noise": {"start": 1.1, "end": 1.9}, "name": "fan"}
        _, answer = self.ask("POST", "/v1/noise-profiles", json.dumps(request), JSON, (201, 409))
        if identifier := json.loads(answer).get("id"):
            self.promises.keep(f"/v1/noise-profiles/{identifier}", "fan")

    def delete(self):
        if not self.recordings:
            return
        path = self.recordings.pop(self.random.randrange(len(self.recordings)))
        # All below it, and its tracks and conversions.
        below = [known for known in list(self.promises.values) if known.startswith(path)]
        for known in below:
            self.promises.begin(known, None)
        self.ask("DELETE", path)
        for known in below:
            self.promises.keep(known, None)


def found(service, path):
    """What a GET finds at a path, in the words of `Promises`."""
    if path.startswith("/v1/uploads/"):
        status, headers, _ = service.ask("HEAD", path, None, TUS)
        return int(headers["Upload-Offset"]) if status == 200 else None if status == 404 else f"status {status}"
    if path.startswith("/v1/jobs/"):
        state = None
        while state not in FINISHED:
            status, _, answer = service.ask("GET", path + "?wait=20")
            if status != 200:
                return f"status {status}"
            state = json.loads(answer)["state"]
        return state
    status, _, answer = service.ask("GET", path)
    if status != 200:
        return None if status == 404 else f"status {status}: {answer[:200]}"
    if "/audio" in path:
        return hashlib.sha256(answer).hexdigest()
    document = json.loads(answer)
    return [label["text"] for label in document["labels"]] if "/labels/" in path else document["name"]


def losses(service, promises):
    """Descriptions of promises that don't hold."""
    lost = []
    for path, values in promises.values.items():
        value = found(service, path)
        # More of an upload may have come than was answered.
        is_kept = value is not None and value >= values[0] if path.startswith("/v1/uploads/") else value in values
        if not is_kept:
            lost.append(f"{path}: {value}, not {' or '.join(map(str, values))}")
    alive = [key for key, (_, path) in promises.keys.items() if promises.values[path][-1] is not None]
    for key in alive[-3:]:
        content, path = promises.keys[key]
        status, _, answer = service.ask(
            "POST", f"/v1/recordings?name={key}", content, {"Idempotency-Key": key, "Content-Type": "audio/wav"})
        if status != 201 or json.loads(answer)["id"] != path.rsplit("/", 1)[1]:
            lost.append(f"{path}: its Idempotency-Key is answered with {status} {answer[:120]}")
    return lost


def cut(folder, kind, program, seed, preload=None):
    """One cut. Returns descriptions of losses by what remains of the disk, the promises, and the number of writes that weren't
    flushed."""
    draw = random.Random(seed)
    disk, promises = Disk(folder, kind), Promises(draw.randint(1, 120))
    service = Service(program, disk.place, preload)
    try:
        clients = [Client(service, promises, f"{seed} {number}") for number in range(8)]
        for client in clients:
            client.start()
        while promises.answers < promises.cut_after and any(client.is_alive() for client in clients):
            time.sleep(0.001)
        with promises.lock:
            promises.is_over.set()
            answered = disk.log_bytes()
        # Requests under way go on, so that the cut falls into what they write.
        time.sleep(draw.uniform(0, 0.2))
        instant = disk.instant(answered, draw)
    finally:
        service.kill()
        disk.remove()
    for client in clients:
        client.join()
    lost, rest = {}, 0
    for what in REMAINS:
        path, rest, kept = disk.remains(instant, what, seed)
        try:
            mount(path, disk.place)
            service = Service(program, disk.place)
            lost[what] = losses(service, promises)
            service.kill()
        except (RuntimeError, subprocess.CalledProcessError) as error:
            lost[what] = [str(error)]
        unmount(disk.place)
        os.remove(path)
        lost[what] = [f"{what}, {kept} of {rest} writes: {loss}" for loss in lost[what]]
    return lost, promises, rest


def main():
    parser = argparse.ArgumentParser(prog="deploy/faults --power")
    parser.add_argument("--cuts", type=int, default=20, help="cuts on each file system")
    parser.add_argument("--control", type=int, default=5, help="cuts on each with fsync made a no-op")
    parser.add_argument("--kinds", default=",".join(MAKERS))
    parser.add_argument("program", nargs="?", default=".build/release/stillwave")
    given = parser.parse_args()
    program, seed = os.path.abspath(given.program), int(os.environ.get("STILLWAVE_TEST_SEED") or random.randrange(1 << 30))
    table = open(os.environ.get("FAULT_TABLE", os.devnull), "a")
    folder, is_well = tempfile.mkdtemp(), True
    # Only this process's namespace has these mounts (deploy/faults).
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "power", folder], check=True)
    control = os.path.join(folder, "fsync.so")
    subprocess.run(["clang", "-shared", "-fPIC", "-o", control, os.path.join(here, "fsync.c")], check=True)
    for kind in given.kinds.split(","):
        for preload, rounds in ((None, given.cuts), (control, given.control)):
            counts = {"cuts": 0, "held": 0, "disks": 0, "lost": 0, "kept": 0, "answers": 0, "unflushed": 0}
            for number in range(rounds):
                lost, promises, unflushed = cut(folder, kind, program, f"{seed} {kind} {number}", preload)
                every = [loss for losses in lost.values() for loss in losses]
                counts["cuts"] += 1
                counts["held"] += not every
                counts["disks"] += len(lost)
                counts["lost"] += len(every)
                counts["kept"] += len(promises.values)
                counts["answers"] += promises.answers
                counts["unflushed"] += unflushed
                for line in [*promises.complaints, *every[:1 if preload else 5]]:
                    print(f"{kind} {number}: {line}", file=sys.stderr)
                is_well = is_well and not promises.complaints and bool(every) == bool(preload)
            name = f"power cuts on {kind}" + (", control: fsync does nothing" if preload else "")
            note = f"{counts['disks']} disks; {counts['answers']} answers, {counts['kept']} promises, {counts['unflushed']} writes not flushed"
            if preload:
                print(f"{name}: {counts['cuts'] - counts['held']} of {counts['cuts']} noticed, {counts['lost']} losses ({note})")
            else:
                print(f"{name}: {counts['held']} of {counts['cuts']} held, {counts['lost']} losses ({note})")
                table.write(f"{name}\t{counts['cuts']}\t{counts['held']}\t{counts['lost']}\t{note}\n")
            sys.stdout.flush()
    table.close()
    sys.exit(0 if is_well else 1)


main()
