"""Three nodes under faults, and clients that write down what they were promised.

    deploy/cluster-test [--seconds N | --minutes N] [--seed N] [--program PROGRAM]

Prints a table: each fault, how often, and how many promises were broken after it began and before the next one:

    lost    a recording, an acknowledged byte of an upload, or a job that is gone or never ends
    twice   a job finished by two attempts, or two recordings for one key or one upload
    stale   a deleted recording that is served five seconds later, or a value that changed

Exits with 1 if any is broken.
"""

import argparse
import collections
import hashlib
import http.client
import json
import os
import random
import shutil
import signal
import struct
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import postgres
from nodes import Node

LEASE = 3
CLIENTS = 6
# A deleted recording may be served for this long, and a change may go unheard for this long.
STALE_SECONDS = 5
FAULTS = ["kill -9 of a node", "stop past the lease", "cut network", "database crash", "failover", "SIGTERM of a node"]


def sound(random, seconds, rate=8000):
    samples = random.randbytes(2 * int(seconds * rate))
    return (b"RIFF" + struct.pack("<I", 36 + len(samples)) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, rate, 2 * rate, 2, 16)
            + b"data" + struct.pack("<I", len(samples)) + samples)


class Unknown(Exception):
    """No answer came, so the request may have been carried out or not."""


class Broken:
    """Broken promises, by the fault that began last."""

    def __init__(self):
        self.lock, self.fault, self.began = threading.Lock(), "none", time.monotonic()
        self.times, self.counts, self.lines = collections.Counter(), collections.defaultdict(collections.Counter), []
        self.history = []

    def begin(self, fault, node):
        with self.lock:
            self.fault = fault
            self.times[fault] += 1
            self.history.append(f"{time.monotonic() - self.began:.1f} s {fault} {node.name if node else ''}".strip())

    def add(self, kind, line):
        with self.lock:
            self.counts[self.fault][kind] += 1
            self.lines.append(f"{kind} ({self.fault}, {time.monotonic() - self.began:.1f} s): {line}")

    def table(self):
        print(f"{'fault':24}{'times':>8}{'lost':>8}{'twice':>8}{'stale':>8}")
        for fault in FAULTS + [fault for fault in self.counts if fault not in FAULTS]:
            counts = self.counts[fault]
            print(f"{fault:24}{self.times[fault]:8}" + "".join(f"{counts[kind]:8}" for kind in ("lost", "twice", "stale")))
        if self.lines:
            print("faults: " + ", ".join(self.history))
        for line in self.lines[:200]:
            print(line)


class Client(threading.Thread):
    def __init__(self, run, number):
        super().__init__(daemon=True)
        self.run_, self.random = run, random.Random(run.seed * 1000 + number)
        self.requests = collections.Counter()
        # By ID: the SHA-256 of the file, or None for a result.
        self.recordings, self.jobs, self.deleted, self.keys, self.uploads = {}, set(), set(), {}, {}

    def ask(self, node, method, path, body=None, fields={}, seconds=20):
        connection = http.client.HTTPConnection(node.host, 8080, timeout=seconds)
        try:
            connection.request(method, path, body, fields)
            response = connection.getresponse()
            data = response.read()
            self.requests[f"{method} {response.status}"] += 1
            return response, data
        except (OSError, http.client.HTTPException) as error:
            self.requests[f"{method} no answer"] += 1
            raise Unknown(str(error)) from error
        finally:
            connection.close()

    @property
    def node(self):
        return self.random.choice(self.run_.nodes)

    def run(self):
        acts = [self.upload, self.upload, self.resumable, self.twice_with_one_key, self.denoise, self.delete, self.cancel,
                self.look, self.look]
        while not self.run_.is_over.is_set():
            try:
                self.random.choice(acts)()
            except Unknown:
                self.run_.is_over.wait(0.05)

    def took(self, data, digest):
        recording = json.loads(data)
        self.recordings[recording["id"]] = digest
        if recording["waveform"].get("job"):
            self.jobs.add(recording["waveform"]["job"])
        return recording["id"]

    def upload(self):
        # One in five is too long for its waveform to come with the answer.
        bytes = sound(self.random, 80 if self.random.random() < 0.2 else 2)
        response, data = self.ask(self.node, "POST", "/v1/recordings", bytes, {"Content-Type": "audio/wav"})
        if response.status == 201:
            self.took(data, hashlib.sha256(bytes).hexdigest())

    def twice_with_one_key(self):
        """Two requests with one key at different nodes at once."""
        bytes, key = sound(self.random, 2), f"{self.random.getrandbits(64):x}"
        name = "key-" + key
        pair, found = self.random.sample(self.run_.nodes, 2), []

        def send(node):
            try:
                response, data = self.ask(
                    node, "POST", "/v1/recordings?name=" + name, bytes,
                    {"Content-Type": "audio/wav", "Idempotency-Key": key})
                if response.status == 201:
                    found.append(self.took(data, hashlib.sha256(bytes).hexdigest()))
            except Unknown:
                pass

        threads = [threading.Thread(target=send, args=(node,)) for node in pair]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.keys[name] = found
        if len(set(found)) > 1:
            self.run_.broken.add("twice", f"key {key}: {found}")

    def resumable(self):
        bytes = sound(self.random, 3)
        fields = {"Tus-Resumable": "1.0.0"}
        response, _ = self.ask(self.node, "POST", "/v1/uploads", None, fields | {"Upload-Length": str(len(bytes))})
        if response.status != 201:
            return
        path, promised = response.headers["Location"], 0
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and not self.run_.is_over.is_set():
            try:
                node = self.node
                response, _ = self.ask(node, "HEAD", path, None, fields)
                if response.status != 200:
                    if response.status in (404, 410):
                        self.run_.broken.add("lost", f"upload {path}: {response.status} at {node.name}")
                        return
                    continue
                offset = int(response.headers["Upload-Offset"])
                if offset < promised:
                    self.run_.broken.add("lost", f"upload {path}: {promised} bytes were promised, and {offset} are there")
                promised = max(promised, offset)
                if response.headers.get("Stillwave-Recording"):
                    self.recordings[response.headers["Stillwave-Recording"]] = hashlib.sha256(bytes).hexdigest()
                    self.uploads.setdefault(path, set()).add(response.headers["Stillwave-Recording"])
                    return
                if offset == len(bytes):
                    # All bytes have arrived, but the recording could not be made.
                    self.ask(self.node, "POST", path, None, fields)
                    continue
                piece = bytes[offset:offset + self.random.randrange(1, len(bytes))]
                response, _ = self.ask(
                    self.node, "PATCH", path, piece,
                    fields | {"Upload-Offset": str(offset), "Content-Type": "application/offset+octet-stream"})
                if response.status == 204:
                    promised = max(promised, int(response.headers["Upload-Offset"]))
            except Unknown:
                self.run_.is_over.wait(0.05)

    def denoise(self):
        if not self.recordings:
            return
        id = self.random.choice(list(self.recordings))
        response, data = self.ask(self.node, "POST", f"/v1/recordings/{id}/denoise", b"{}", {"Content-Type": "application/json"})
        if response.status == 202:
            self.jobs.add(json.loads(data)["id"])

    def cancel(self):
        if self.jobs:
            self.ask(self.node, "DELETE", f"/v1/jobs/{self.random.choice(list(self.jobs))}")

    def delete(self):
        if len(self.recordings) < 5:
            return
        id = self.random.choice(list(self.recordings))
        self.recordings.pop(id)
        response, _ = self.ask(self.node, "DELETE", f"/v1/recordings/{id}")
        if response.status != 204:
            return
        self.deleted.add(id)
        self.run_.is_over.wait(STALE_SECONDS)
        for node in self.run_.nodes:
            for path in ("", "/audio", "/waveform?width=9"):
                try:
                    response, _ = self.ask(node, "GET", f"/v1/recordings/{id}{path}")
                except Unknown:
                    continue
                if response.status == 200:
                    self.run_.broken.add("stale", f"recording {id}{path} was deleted, but {node.name} serves it")

    def look(self):
        if not self.recordings:
            return
        id, digest = self.random.choice(list(self.recordings.items()))
        node = self.node
        response, data = self.ask(node, "GET", f"/v1/recordings/{id}/audio")
        if response.status == 200 and digest and hashlib.sha256(data).hexdigest() != digest:
            self.run_.broken.add("stale", f"recording {id} has another file")
        if response.status == 404:
            self.run_.broken.add("lost", f"recording {id} isn't found at {node.name}: {data}")
        if self.jobs:
            self.ask(self.node, "GET", f"/v1/jobs/{self.random.choice(list(self.jobs))}?wait=1")


class Run:
    def __init__(self, arguments):
        self.seed = arguments.seed
        self.random, self.broken, self.is_over = random.Random(arguments.seed), Broken(), threading.Event()
        self.folder = tempfile.mkdtemp(prefix="stillwave-cluster-")
        os.chmod(self.folder, 0o755)
        os.mkdir(os.path.join(self.folder, "database"))
        self.nodes, self.database = [], None
        self.seconds, self.program = arguments.seconds, os.path.abspath(arguments.program)

    def start(self):
        self.database = postgres.Pair(os.path.join(self.folder, "database"), (self.free_port(), self.free_port()))
        for number in (1, 2, 3):
            self.nodes.append(Node(number, self.program, self.folder, self.database, LEASE, ["--workers", "1"]))
        for node in self.nodes:
            node.start()
            self.wait_until(lambda: self.is_ready(node), 60, f"{node.name} doesn't become ready")
        self.clients = [Client(self, number) for number in range(CLIENTS)]

    @staticmethod
    def free_port():
        import socket
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            return probe.getsockname()[1]

    @staticmethod
    def get(node, path):
        connection = http.client.HTTPConnection(node.host, 8080, timeout=10)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            return response.status, response.read()
        except (OSError, http.client.HTTPException):
            return 0, b""
        finally:
            connection.close()

    def is_ready(self, node):
        return self.get(node, "/readyz")[0] == 200

    @staticmethod
    def wait_until(condition, seconds, complaint):
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() > deadline:
                raise RuntimeError(complaint)
            time.sleep(0.1)

    # Faults

    def fault(self, name):
        node = self.random.choice(self.nodes)
        self.broken.begin(name, None if name in ("database crash", "failover") else node)
        if name == "database crash":
            self.database.crash()
        elif name == "failover":
            self.database.fail_over()
        elif name == "kill -9 of a node":
            node.kill()
            time.sleep(self.random.uniform(0, 2 * LEASE))
            node.start()
        elif name == "SIGTERM of a node":
            node.signal(signal.SIGTERM)
            node.process.wait()
            node.start()
        elif name == "stop past the lease":
            node.signal(signal.SIGSTOP)
            time.sleep(self.random.uniform(1.2, 2.5) * LEASE)
            node.signal(signal.SIGCONT)
        elif name == "cut network":
            node.cut(self.random.uniform(0.5, 2.5) * LEASE)

    def go(self):
        for client in self.clients:
            client.start()
        deadline = time.monotonic() + self.seconds
        while time.monotonic() < deadline:
            # Each kind once before any comes again.
            for name in self.random.sample(FAULTS, len(FAULTS)):
                if time.monotonic() < deadline:
                    time.sleep(self.random.uniform(0.5, 3))
                    self.fault(name)
        self.is_over.set()
        for client in self.clients:
            client.join()

    # Checks

    def settle(self):
        for node in self.nodes:
            self.wait_until(lambda: self.is_ready(node), 60, f"{node.name} doesn't become ready after the faults")
        unfinished = "SELECT id, state, attempts FROM jobs WHERE state IN ('queued', 'running')"
        try:
            self.wait_until(lambda: not self.database.primary.sql(unfinished), 240, "")
        except RuntimeError:
            for row in self.database.primary.sql(unfinished):
                self.broken.add("lost", f"job {row} never ends")

    def check(self):
        sql = self.database.primary.sql
        rows = {row[0]: row for row in sql("SELECT id, name, audio_file, sha256, waveform_state FROM recordings")}
        states = dict(sql("SELECT id, state FROM jobs"))
        for client in self.clients:
            for id, digest in client.recordings.items():
                if id not in rows:
                    # A result, or a recording that a deletion without an answer has removed.
                    self.broken.add("lost", f"recording {id} has no row")
                elif rows[id][3] != digest:
                    self.broken.add("lost", f"recording {id} has another hash in its row")
            for id in client.deleted & rows.keys():
                self.broken.add("stale", f"recording {id} was deleted, and is there")
            for id in client.jobs:
                if states.get(id) not in ("succeeded", "failed", "cancelled"):
                    self.broken.add("lost", f"job {id}: {states.get(id)}")
            for name, found in client.keys.items():
                same = [id for id, row in rows.items() if row[1] == name]
                if len(same) > 1:
                    self.broken.add("twice", f"{len(same)} recordings named {name}")
            for path, ids in client.uploads.items():
                if len(ids) > 1:
                    self.broken.add("twice", f"upload {path} became {ids}")
        for job, count in sql("SELECT job, count(*) FROM attempts WHERE ending = 'succeeded' GROUP BY job HAVING count(*) > 1"):
            self.broken.add("twice", f"job {job} was finished {count} times")
        failed = sql("SELECT kind, error, count(*) FROM jobs WHERE state = 'failed' GROUP BY kind, error")
        for id, row in rows.items():
            self.check_files(id, row)
        return len(rows), states, failed

    def check_files(self, id, row):
        path = os.path.join(self.folder, "media/recordings", id, row[2])
        if not row[2] or not os.path.exists(path):
            return self.broken.add("lost", f"recording {id} has no file {row[2]}")
        with open(path, "rb") as file:
            if hashlib.sha256(file.read()).hexdigest() != row[3]:
                self.broken.add("lost", f"recording {id} has a damaged file")
        answers = {self.get(node, f"/v1/recordings/{id}/waveform.dat?scale=256") for node in self.nodes}
        if len(answers) > 1:
            self.broken.add("stale", f"recording {id}: the nodes' waveforms differ: {[status for status, _ in answers]}")

    def stop(self):
        for node in self.nodes:
            node.remove()
        if self.database:
            self.database.stop()


def main():
    parser = argparse.ArgumentParser(prog="deploy/cluster-test")
    parser.add_argument("--seconds", type=float, default=90)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--seed", type=int, default=int(os.environ.get("STILLWAVE_TEST_SEED", time.time())))
    parser.add_argument("--program", default=".build/release/stillwave")
    parser.add_argument("--keep", action="store_true", help="keep the folder with logs")
    arguments = parser.parse_args()
    arguments.seconds = arguments.minutes * 60 if arguments.minutes else arguments.seconds
    if os.getuid() != 0 or not postgres.programs():
        print("deploy/cluster-test: left out, because it needs root and PostgreSQL")
        return 0
    run = Run(arguments)
    is_well = False
    try:
        run.start()
        run.go()
        run.settle()
        recordings, states, failed = run.check()
        requests = sum((client.requests for client in run.clients), collections.Counter())
        print(f"{arguments.seconds:.0f} s, seed {run.seed}: {recordings} recordings, jobs "
              f"{dict(collections.Counter(states.values()))}")
        print("requests: " + ", ".join(f"{name} {count}" for name, count in sorted(requests.items())))
        for kind, error, count in failed:
            print(f"{count} {kind} jobs failed: {error}")
        run.broken.table()
        is_well = not run.broken.lines
        return 0 if is_well else 1
    finally:
        run.stop()
        if is_well and not arguments.keep:
            shutil.rmtree(run.folder, ignore_errors=True)
        else:
            print(f"deploy/cluster-test: logs are in {run.folder}")


sys.exit(main())
