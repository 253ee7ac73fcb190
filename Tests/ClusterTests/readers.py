"""Clients that watch what others change, and what the cluster deletes by itself."""

import contextlib
import http.client
import json
import threading
import time
import uuid

from clients import STALE_SECONDS, BUSY, Client, sound

# The age at which retention deletes the recordings of one tenant, in seconds. Each node looks as often.
MAXIMUM_AGE = 8
# How exactly nodes know the database's time, in seconds.
CLOCK_SECONDS = 1.0


class StaleReader(Client):
    """Asks every node for what was deleted, renamed, labelled or completed more than five seconds ago."""

    def story(self):
        now = time.time()
        with self.journal.lock:
            gone = [(key, facts["at"]) for key, facts in self.journal.deleted.items() if "at" in facts]
            renamed = [(key, facts["renamed"], facts["name"]) for key, facts in self.journal.recordings.items()
                       if "renamed" in facts and key not in self.journal.deleted]
        recent = [item for item in gone if now - item[1] < 30]
        for key, at in recent:
            # Read at once, so that the nodes have something to keep.
            for path in (f"/v1/recordings/{key}", f"/v1/recordings/{key}/audio", f"/v1/recordings/{key}/waveform?width=9"):
                self.look(path, at, lambda status, _: status == 200, f"{key} was deleted")
        for key, at, name in [item for item in renamed if now - item[1] < 30]:
            self.look(f"/v1/recordings/{key}", at, lambda status, body: status == 200 and json.loads(body)["name"] != name,
                      f"{key} was renamed", unless=lambda: key in self.journal.deleted)
        for recording in self.ready(now):
            # Read twice: from the catalog, and from what the node keeps of the waveform.
            self.look(f"/v1/recordings/{recording[0]}", recording[1], self.is_unready, f"{recording[0]} was ready",
                      unless=lambda: recording[0] in self.journal.deleted)
        with self.journal.lock:
            tracks = [dict(facts) for facts in self.journal.tracks.values() if now - facts["at"] < 30]
        for track in tracks:
            self.labels(track)
        self.pause(0.2)

    def ready(self, now):
        """A few recordings whose waveforms were complete a while ago."""
        with self.journal.lock:
            ready = [(key, facts["ready"]) for key, facts in self.journal.recordings.items()
                     if "ready" in facts and key not in self.journal.deleted and now - facts["ready"] > STALE_SECONDS]
        return self.random.sample(ready, min(2, len(ready)))

    @staticmethod
    def is_unready(status, body):
        return status == 200 and json.loads(body)["waveform"]["state"] != "ready"

    def labels(self, track):
        """The labels are those that were answered last, unless they are being changed."""
        def is_changing():
            with self.journal.lock:
                now = next((facts for facts in self.journal.tracks.values() if facts["path"] == track["path"]), {})
                return track["asked"] or now.get("asked") or now.get("texts") != track["texts"]

        self.look(track["path"], track["at"],
                  lambda status, body: status == 200 and [label["text"] for label in json.loads(body)["labels"]] != track["texts"],
                  "labels were replaced", unless=lambda: is_changing() or track["recording"] in self.journal.deleted)

    def look(self, path, changed, is_stale, what, unless=lambda: False):
        node = self.node()
        began = time.time()
        answer = self.ask(node, "GET", path, timeout=3)
        if answer is None or unless():
            return
        if began - changed > STALE_SECONDS:
            self.journal.count("reads after changes")
            if is_stale(answer[0], answer[2]):
                self.journal.violation("stale", f"{what}, and {node.name} serves {path} {began - changed:.1f} s later")


class Follower(Client):
    """Follows the list at one node, as a page does: reads it, then keeps it by the events of /v1/events."""

    def __init__(self, number, cluster, seed, followed):
        super().__init__(number, cluster, seed)
        self.name, self.followed = f"follower of {followed.name}", followed
        # What the page shows: the recordings with their names, and the jobs that have been heard of with their states.
        self.view_lock, self.recordings, self.jobs, self.last = threading.Lock(), {}, {}, None

    def run(self):
        try:
            while not self.cluster.is_over.is_set():
                with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
                    self.follow_list()
                time.sleep(0.2)
        except Exception as error:  # noqa: BLE001, because the main thread must hear of it
            self.error = error

    def follow_list(self):
        fields = {**self.authorization, "Accept": "text/event-stream", **({"Last-Event-ID": self.last} if self.last else {})}
        # Longer than the time between two comments.
        connection = self.followed.connect(20)
        with contextlib.closing(connection):
            connection.request("GET", "/v1/events", headers=fields)
            answer = connection.getresponse()
            if answer.status != 200:
                return
            self.journal.count("streams of the list")
            if not self.last:
                self.read_list()
            kind = place = None
            for line in answer:
                word, _, value = line.decode().rstrip("\r\n").partition(": ")
                if word == "event":
                    kind = value
                elif word == "id":
                    place = value
                elif word == "data":
                    self.take(kind, json.loads(value))
                elif not word and not value and place:
                    # Only after what it is about has been taken in.
                    self.last, kind = place, None

    def take(self, kind, document):
        self.journal.count("events of the list")
        if kind == "resync":
            return self.read_list()
        with self.view_lock:
            if kind == "recording":
                self.recordings[document["id"]] = document["name"]
            elif kind == "deleted":
                self.recordings.pop(document["id"], None)
            elif kind == "job":
                self.jobs[document["id"]] = document["state"]

    def read_list(self):
        """Reads the whole list at the same node. What has changed meanwhile comes as events afterward."""
        self.last, found, cursor = None, {}, ""
        while cursor is not None:
            answer = self.ask(self.followed, "GET", f"/v1/recordings?limit=200{cursor and '&cursor=' + cursor}", timeout=8)
            if not answer or answer[0] != 200:
                raise OSError("the list can't be read")
            page = json.loads(answer[2])
            found.update((recording["id"], recording["name"]) for recording in page["recordings"])
            cursor = page["next_cursor"]
        with self.view_lock:
            # The jobs are in no list: those heard of before are looked at at the end like all others.
            self.recordings, self.jobs = found, {}


class Tenant(Client):
    """Uploads recordings for a tenant whose recordings are deleted by age, and reads each until it is gone."""

    KEY = "brief"

    def story(self):
        key = str(uuid.UUID(int=self.random.getrandbits(128)))
        content, asked = sound(2, key), time.time()
        status, _, answer, _ = self.insist("POST", f"/v1/recordings?name={key}", content, {
            "Idempotency-Key": key, "Content-Type": "audio/wav"}, timeout=15)
        if status != 201:
            return self.odd("an upload", status, answer)
        recording = json.loads(answer)["id"]
        self.journal.note("expiring", recording, asked=asked, at=time.time())
        self.journal.count("recordings that will expire")
        while True:
            answer = self.ask(self.node(), "GET", f"/v1/recordings/{recording}/audio", timeout=6)
            age = time.time() - asked
            if answer and answer[0] == 200 and answer[2] != content:
                self.journal.violation("lost", f"{recording}, which will expire, has other bytes")
            elif answer and answer[0] == 404:
                # Its age counts from when it was made, which is later than when it was asked for.
                if age < MAXIMUM_AGE - CLOCK_SECONDS:
                    self.journal.violation("lost", f"{recording} has expired {age:.1f} s after it was asked for")
                return self.journal.count("recordings seen to have expired")
            elif answer and answer[0] not in BUSY | {200}:
                return self.odd("the audio of a recording that will expire", answer[0], answer[2])
            self.pause(self.random.uniform(0.1, 0.5))
