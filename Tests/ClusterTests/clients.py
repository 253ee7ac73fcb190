"""Clients of the cluster, which write down what they asked for and what they got.

A client that gets no answer repeats its request, usually at another node. So it may learn late that something has happened,
but what it was once told must stay true.
"""

import contextlib
import hashlib
import hmac
import http.client
import http.server
import json
import random
import struct
import threading
import time
import urllib.parse
import uuid

from nodes import SECRET

TUS = {"Tus-Resumable": "1.0.0"}
# Changes may take this long to be heard of by other nodes.
STALE_SECONDS = 5.0
FINISHED = {"succeeded", "failed", "cancelled"}
# Answers that say: try again.
BUSY = {408, 423, 429, 500, 502, 503, 504, 507}


class Over(Exception):
    """The time of the test is over."""


class Journal:
    """The clients' logs, and what in them is wrong."""

    def __init__(self, path):
        self.lock, self.file = threading.Lock(), open(path, "w", buffering=1)
        self.recordings, self.jobs, self.deleted, self.webhooks, self.counts = {}, {}, {}, {}, {}
        # Tracks of labels, and the recordings that retention deletes.
        self.tracks, self.expiring = {}, {}
        self.violations = []

    def write(self, **entry):
        with self.lock:
            self.file.write(json.dumps({"time": round(time.time(), 3), **entry}) + "\n")

    def count(self, what, number=1):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + number

    def violation(self, kind, text, at=None):
        """Notes a broken promise of one of the checker's kinds."""
        at = at or time.time()
        with self.lock:
            self.violations.append((at, kind, text))
        self.write(violation=kind, text=text)

    def note(self, table, key, **facts):
        with self.lock:
            getattr(self, table).setdefault(key, {}).update(facts)


def sound(seconds, seed, rate=16000):
    """A WAV file of noise and pauses, different for each seed."""
    noise = random.Random(seed)
    block = noise.randbytes(2 * rate)
    quiet = bytes(2 * rate // 2)
    samples = b"".join(block[k * 2 % 200:] + block[:k * 2 % 200] if k % 7 else quiet * 2 for k in range(seconds))
    return (b"RIFF" + struct.pack("<I", 36 + len(samples)) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, rate, 2 * rate, 2, 16)
            + b"data" + struct.pack("<I", len(samples)) + samples)


def flac_content(content):
    """The number of frames and the MD5 of the samples that a FLAC file says it has; None if it isn't one."""
    if content[:4] != b"fLaC" or len(content) < 42 or content[4] & 0x7F:
        return None
    return int.from_bytes(content[18:26], "big") & ((1 << 36) - 1), content[26:42].hex()


class Receiver:
    """Receives webhooks, whose signatures it verifies, and now and then refuses one, which must come again, unless it is
    patient."""

    # How old a signature may be: a node may be stopped while it sends.
    SIGNATURE_SECONDS = 60

    def __init__(self, address, journal):
        receiver, refused, self.is_patient = self, random.Random(1), False

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                document = json.loads(body)
                if fault := receiver.fault(self.headers["Stillwave-Signature"], body):
                    journal.violation("lost", f"the webhook of {document['id']} is signed wrongly: {fault}")
                journal.count("signatures verified")
                isTaken = receiver.is_patient or refused.random() > 0.1
                self.send_response(204 if isTaken else 503)
                self.send_header("Content-Length", "0")
                self.end_headers()
                if isTaken:
                    journal.write(webhook=document["id"], state=document["state"])
                    journal.count("webhooks received")
                    journal.note("webhooks", document["id"], state=document["state"])

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer((address, 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://{address}:{self.server.server_port}/"
        threading.Thread(target=receiver.server.serve_forever, daemon=True).start()

    @classmethod
    def fault(cls, signature, body):
        """What is wrong with a signature, as a receiver checks it; None if nothing is."""
        parts = dict(part.split("=", 1) for part in (signature or "").split(",") if "=" in part)
        if set(parts) != {"t", "v1"} or not parts["t"].isdigit():
            return f"“{signature}”"
        expected = hmac.new(SECRET.encode(), parts["t"].encode() + b"." + body, hashlib.sha256).hexdigest()
        if not hmac.compare_digest(expected, parts["v1"]):
            return "the HMAC is another one"
        if abs(age := time.time() - int(parts["t"])) > cls.SIGNATURE_SECONDS:
            return f"it is {age:.0f} s old"
        return None


class Client(threading.Thread):
    """Takes recordings through the service, one after another."""

    # Whose key it has, if the nodes have keys.
    KEY = "app"

    def __init__(self, number, cluster, seed):
        super().__init__(daemon=True, name=f"client {number}")
        self.number, self.cluster, self.journal = number, cluster, cluster.journal
        self.random = random.Random(seed * 1000 + number)
        self.stories, self.error = 0, None
        self.authorization = cluster.authorization(self.KEY)

    def run(self):
        try:
            while not self.cluster.is_ending.is_set():
                self.story()
                self.stories += 1
        except Over:
            self.journal.count("stories broken off at the end")
        except Exception as error:  # noqa: BLE001, because the main thread must hear of it
            self.error = error

    # Requests

    def ask(self, node, method, path, body=None, fields=None, timeout=8.0):
        """One request. Returns status, fields and body; None without a whole answer."""
        began = time.time()
        connection = node.connect(timeout)
        try:
            connection.request(method, path, body, {**self.authorization, **(fields or {})})
            answer = connection.getresponse()
            content = answer.read()
        except (OSError, http.client.HTTPException) as error:
            self.journal.write(client=self.number, node=node.name, method=method, path=path, began=began, error=type(error).__name__)
            return None
        finally:
            connection.close()
        self.journal.count("requests")
        self.journal.write(client=self.number, node=node.name, method=method, path=path, began=began, status=answer.status,
                           location=answer.headers.get("Location"), offset=answer.headers.get("Upload-Offset"))
        # The only thing that may go wrong inside: a commit whose outcome nobody knows.
        if answer.status == 500 and b'"outcome_unknown"' not in content:
            self.journal.violation("lost", f"{node.name} answered 500 to {method} {path}: {content[:200]}", began)
        return answer.status, answer.headers, content

    def node(self):
        return self.random.choice(self.cluster.nodes)

    def pause(self, seconds):
        if time.monotonic() > self.cluster.deadline:
            raise Over
        time.sleep(seconds)

    def insist(self, method, path, body=None, fields=None, timeout=8.0, first=None):
        """Repeats a request at any node, beginning with `first`, until it is answered. Returns also whether an earlier try
        may have been carried out."""
        was_tried = False
        while True:
            node, first = first or self.node(), None
            answer = self.ask(node, method, path, body, fields, timeout)
            if answer and answer[0] not in BUSY and not (answer[0] == 409 and b"idempotency_key_in_use" in answer[2]):
                return (*answer, was_tried)
            was_tried = was_tried or answer is None or answer[0] >= 500
            self.pause(self.random.uniform(0.05, 0.5))

    def twice(self, method, path, body, fields, timeout=8.0):
        """Sends a request with an Idempotency-Key to two nodes at the same moment, and repeats each until it is answered.
        Returns the answer if both got the same."""
        answers, start = [], threading.Barrier(2)

        def send(node, seed):
            # With draws of its own, so that this client's don't depend on which of the two is faster.
            twin = Client(self.number, self.cluster, seed)
            start.wait()
            with contextlib.suppress(Over):
                answers.append(twin.insist(method, path, body, fields, timeout, node))

        threads = [threading.Thread(target=send, args=(node, self.random.getrandbits(32)), daemon=True)
                   for node in self.random.sample(self.cluster.nodes, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if not answers:
            raise Over
        ids = {json.loads(answer[2]).get("id") if answer[0] in (201, 202) else answer[0] for answer in answers}
        self.journal.count("requests sent to two nodes at once", len(answers) == 2)
        if len(ids) > 1:
            self.journal.violation("twice", f"{method} {path} with one key was answered with {sorted(map(str, ids))}")
        return answers[0]

    def keyed(self, method, path, body, fields, timeout=8.0):
        """A request with an Idempotency-Key, half of the time to two nodes at once."""
        ask = self.twice if self.random.random() < 0.5 else self.insist
        return ask(method, path, body, fields, timeout)

    # What a client does

    def story(self):
        draw = self.random.random
        key = str(uuid.UUID(int=self.random.getrandbits(128)))
        seconds = self.random.choice([2, 10, 40, 240])
        content = sound(seconds, key)
        recording = self.resumable(key, content) if draw() < 0.5 else self.plain(key, content)
        if recording is None:
            return
        digest = hashlib.sha256(content).hexdigest()
        self.journal.note("recordings", recording, name=key, sha256=digest, at=time.time())
        self.journal.count("recordings acknowledged")
        self.see(recording)
        waveform = self.watch(recording, len(content))
        if draw() < 0.3:
            self.rename(recording, key)
        if draw() < 0.4:
            self.labels(recording)
        if draw() < 0.4 and seconds <= 40:
            self.convert(recording, content)
        jobs = [self.denoise(recording, callback=draw() < 0.6) for _ in range(self.random.choice([0, 1, 1, 2]))]
        for job in filter(None, jobs):
            if draw() < 0.2:
                self.cancel(job)
            self.follow(job)
        if draw() < 0.3:
            self.audio(recording, digest)
        if draw() < 0.4:
            self.delete(recording)
        elif waveform:
            self.journal.note("recordings", recording, waveform=hashlib.sha256(json.dumps(waveform).encode()).hexdigest())

    def plain(self, key, content):
        status, _, answer, _ = self.keyed(
            "POST", f"/v1/recordings?name={key}", content, {"Idempotency-Key": key, "Content-Type": "audio/wav"}, timeout=15)
        if status != 201:
            return self.odd("an upload", status, answer)
        document = json.loads(answer)
        if document["sha256"] != hashlib.sha256(content).hexdigest():
            self.journal.violation("lost", f"{document['id']} has another SHA-256 than what was sent")
        return document["id"]

    def resumable(self, key, content):
        name = "filename " + __import__("base64").b64encode(key.encode()).decode()
        status, headers, answer, _ = self.insist(
            "POST", "/v1/uploads", None, {**TUS, "Upload-Length": str(len(content)), "Upload-Metadata": name})
        if status != 201:
            return self.odd("the creation of an upload", status, answer)
        path, offset, piece = headers["Location"], 0, max(1, len(content) // self.random.randint(1, 6))
        path = urllib.parse.urlsplit(path).path
        while True:
            part = content[offset:offset + piece]
            answer = self.ask(self.node(), "PATCH", path, part, {
                **TUS, "Content-Type": "application/offset+octet-stream", "Upload-Offset": str(offset)}, timeout=10)
            if answer and answer[0] == 204:
                told = int(answer[1]["Upload-Offset"])
                self.journal.count("offsets acknowledged")
                if told != offset + len(part):
                    self.journal.violation("lost", f"{path}: {len(part)} bytes at {offset} were acknowledged as {told}")
                offset = told
                if answer[1]["Stillwave-Recording"]:
                    return answer[1]["Stillwave-Recording"]
                continue
            if answer and answer[0] not in BUSY | {409}:
                return self.odd("a PATCH", answer[0], answer[2])
            self.pause(self.random.uniform(0.05, 0.3))
            status, headers, answer, _ = self.insist("HEAD", path, None, TUS)
            if status != 200:
                self.journal.violation("lost", f"{path}: an upload with {offset} acknowledged bytes is answered with {status}")
                return None
            if headers["Stillwave-Recording"]:
                return headers["Stillwave-Recording"]
            told = int(headers["Upload-Offset"])
            if told < offset:
                self.journal.violation("lost", f"{path}: {offset} bytes were acknowledged, now {told} are there")
            offset = told

    def see(self, recording):
        """What one node has acknowledged is there on all others at once."""
        for node in self.cluster.nodes:
            answer = self.ask(node, "GET", f"/v1/recordings/{recording}", timeout=4)
            if answer and answer[0] == 404:
                self.journal.violation("lost", f"{recording} is acknowledged but {node.name} doesn't have it")

    def watch(self, recording, byte_count):
        """Reads the waveform while it grows, at any node. Returns its values, once they are complete.

        A served value never changes. At one node, a waveform never becomes shorter within an attempt; and once a node has
        served the whole, it goes on doing so, and the others do as soon as they must have heard of it."""
        seen, growth, complete = [], Growth(self, recording), None
        while True:
            began, node = time.time(), self.node()
            answer = self.ask(node, "GET", f"/v1/recordings/{recording}/waveform?scale=256&start=0", timeout=6)
            if answer and answer[0] == 200:
                slice = json.loads(answer[2])
                if seen[:len(slice["data"])] != slice["data"][:len(seen)]:
                    self.journal.violation("stale", f"{recording}: values of the waveform have changed")
                seen = max(seen, slice["data"], key=len)
                self.journal.count("slices compared")
                if complete and not slice["complete"] and (node is complete[1] or began - complete[0] > STALE_SECONDS):
                    self.journal.violation("stale", f"{recording} was complete, and {node.name} serves a part of it")
                growth.look(node, began, slice["available_frames"])
                if slice["complete"] and complete:
                    return seen
                if slice["complete"]:
                    complete = (time.time(), node)
                    self.journal.note("recordings", recording, ready=complete[0])
                    if len(seen) != 2 * -(-(byte_count - 44) // 512):
                        self.journal.violation("lost", f"{recording}: a complete waveform has {len(seen)} values")
            elif answer and answer[0] not in BUSY:
                return self.odd("a waveform", answer[0], answer[2])
            self.pause(self.random.uniform(0.05, 0.4))

    def rename(self, recording, key):
        name = key + "-renamed"
        fields = {"Content-Type": "application/merge-patch+json"}
        status, _, answer, _ = self.insist("PATCH", f"/v1/recordings/{recording}", json.dumps({"name": name}), fields)
        if status != 200:
            return self.odd("a new name", status, answer)
        self.journal.note("recordings", recording, name=name, renamed=time.time())

    def labels(self, recording):
        """Adds a track of labels and replaces its labels, at any node. What was answered last is there."""
        def label_set():
            count = self.random.randint(1, 4)
            return [f"{self.random.getrandbits(64):x}" for _ in range(count)]

        def body(texts):
            return json.dumps({"labels": [{"start": k, "end": k + 1, "text": text} for k, text in enumerate(texts)]})

        json_type, texts = {"Content-Type": "application/json"}, label_set()
        status, headers, answer, _ = self.insist("POST", f"/v1/recordings/{recording}/labels?name=chaos", body(texts), json_type)
        if status != 201:
            return self.odd("a track of labels", status, answer)
        track, tag = json.loads(answer)["id"], headers["ETag"]
        path = f"/v1/recordings/{recording}/labels/{track}"
        self.journal.note("tracks", track, recording=recording, path=path, texts=texts, at=time.time(), asked=None)
        for _ in range(self.random.choice([0, 1, 3])):
            earlier, texts = texts, label_set()
            # Until it is answered, both may be there.
            self.journal.note("tracks", track, asked=texts)
            status, headers, answer, was_tried = self.insist("PUT", path, body(texts), {**json_type, "If-Match": tag})
            if status == 412 and was_tried:
                # An earlier try was carried out, so that its tag is another one.
                status, headers, answer, _ = self.insist("GET", path)
                found = [label["text"] for label in json.loads(answer)["labels"]] if status == 200 else None
                if found != texts:
                    self.journal.violation("lost", f"{path} was changed by nobody: {found} after {earlier} and {texts}")
            if status != 200:
                return self.odd("new labels", status, answer)
            tag = headers["ETag"]
            self.journal.note("tracks", track, texts=texts, at=time.time(), asked=None)
        self.journal.count("label sets acknowledged")

    def convert(self, recording, content):
        """Downloads the sound as FLAC from two nodes, the first of which has to make it. It has the samples that were
        uploaded, and stays as it is."""
        samples = content[44:]
        expected = len(samples) // 2, hashlib.md5(samples).hexdigest()
        digests = set()
        for _ in range(2):
            status, _, answer, _ = self.insist("GET", f"/v1/recordings/{recording}/audio?format=flac", timeout=20)
            if status != 200:
                return self.odd("a conversion", status, answer)
            if flac_content(answer) != expected:
                self.journal.violation("lost", f"the FLAC file of {recording} has {flac_content(answer)}, not {expected}")
            digests.add(hashlib.sha256(answer).hexdigest())
        if len(digests) > 1:
            self.journal.violation("stale", f"the FLAC file of {recording} has changed")
        self.journal.note("recordings", recording, flac=digests.pop())
        self.journal.count("conversions compared")

    def denoise(self, recording, callback):
        # The reduction is different for each job of a recording, by which the checker knows them.
        body = {"reduction": round(self.random.uniform(5, 30), 9), **({"callback_url": self.cluster.receiver.url} if callback else {})}
        key = str(uuid.UUID(int=self.random.getrandbits(128)))
        status, _, answer, _ = self.keyed("POST", f"/v1/recordings/{recording}/denoise", json.dumps(body), {
            "Idempotency-Key": key, "Content-Type": "application/json"})
        if status != 202:
            return self.odd("a job", status, answer)
        job = json.loads(answer)
        self.journal.note("jobs", job["id"], recording=recording, callback=callback, at=time.time())
        self.journal.count("jobs acknowledged")
        return job["id"]

    def cancel(self, job):
        self.pause(self.random.uniform(0, 0.5))
        status, _, answer, _ = self.insist("DELETE", f"/v1/jobs/{job}")
        if status not in (202, 409):
            return self.odd("a cancellation", status, answer)
        if status == 202:
            self.journal.note("jobs", job, cancelled=time.time())

    def follow(self, job):
        """Follows a job in one of three ways until it has ended. An end stays as it is."""
        way = self.random.choice(["poll", "wait", "events"])
        while True:
            node = self.node()
            if way == "events":
                document = self.events(node, job)
            else:
                answer = self.ask(node, "GET", f"/v1/jobs/{job}" + ("?wait=3" if way == "wait" else ""), timeout=8)
                if answer and answer[0] == 404:
                    self.journal.violation("lost", f"job {job} is acknowledged but {node.name} doesn't have it")
                    return
                document = json.loads(answer[2]) if answer and answer[0] == 200 else None
            if document and document["state"] in FINISHED:
                return self.ended(job, document)
            self.pause(self.random.uniform(0.1, 0.4))

    def ended(self, job, document):
        self.journal.count("ends of jobs seen")
        self.journal.note("jobs", job, seen=document["state"], seen_at=time.time(),
                          result=(document.get("result") or {}).get("recording"))

    def events(self, node, job):
        """The last document of a job's stream of events; None if it was broken off."""
        began, connection, last = time.time(), node.connect(8), None
        with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException, ValueError):
            connection.request("GET", f"/v1/jobs/{job}/events", headers={**self.authorization, "Accept": "text/event-stream"})
            answer = connection.getresponse()
            self.journal.write(client=self.number, node=node.name, method="GET", path=f"/v1/jobs/{job}/events", began=began,
                               status=answer.status)
            if answer.status != 200:
                return None
            for line in answer:
                if line.startswith(b"event: done"):
                    last = "done"
                elif line.startswith(b"data:") and last == "done":
                    self.journal.count("streams that ended")
                    return json.loads(line[5:])
        return None

    def audio(self, recording, digest):
        status, _, answer, _ = self.insist("GET", f"/v1/recordings/{recording}/audio", timeout=10)
        if status != 200 or hashlib.sha256(answer).hexdigest() != digest:
            self.journal.violation("lost", f"the audio of {recording}: status {status}, or other bytes")

    def delete(self, recording):
        self.journal.note("deleted", recording, asked=time.time())
        status, _, answer, was_tried = self.insist("DELETE", f"/v1/recordings/{recording}")
        if status == 204 or status == 404 and was_tried:
            self.journal.note("deleted", recording, at=time.time())
            return
        if status == 404:
            self.journal.violation("lost", f"{recording} was gone before it was deleted")
        self.odd("a deletion", status, answer)

    def odd(self, what, status, answer):
        """Notes an answer that a client of a healthy cluster would never get."""
        text = answer if isinstance(answer, str) else (answer or b"").decode(errors="replace")
        self.journal.violation("lost", f"{what} was answered with {status}: {text[:300]}")


class Growth:
    """How far each node has served a waveform: never less than before, within an attempt and without a restart. Only
    nothing, if the node that builds it doesn't answer the others.
    """

    def __init__(self, client, recording):
        self.client, self.recording, self.served, self.attempt = client, recording, {}, self.current()

    def look(self, node, began, frames):
        process = node.process.pid
        last = self.served.get(node)
        self.served[node] = process, time.time(), frames
        if not last or frames >= last[2]:
            return self.client.journal.count("growing waveforms seen again", bool(last))
        if frames and process == last[0] and self.attempt == (now := self.current()) and now:
            self.client.journal.violation(
                "stale", f"{self.recording}: {node.name} served {last[2]} frames, and then {frames} of the same attempt")
        self.attempt, self.served = self.current(), {node: self.served[node]}

    def current(self):
        """The attempt that builds the waveform, according to the catalog; None if none does, or the catalog is away."""
        with contextlib.suppress(Exception):
            rows = self.client.cluster.database.rows(
                "SELECT attempts, nonce FROM jobs WHERE kind = 'waveform' AND state = 'running' "
                f"AND recording = '{self.recording}'")
            return tuple(rows[0]) if rows else None
        return None
