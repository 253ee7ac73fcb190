"""Counts broken promises, from what the clients wrote down and from what the catalog says in the end."""

import hashlib
import http.client
import json
import os
import subprocess
import time

from readers import MAXIMUM_AGE

# Writes down each transition of a job with the time, in the catalog itself: what was done before a failover is known after
# it only if it wasn't lost.
TRIGGER = """
CREATE TABLE chaos (number bigserial PRIMARY KEY, at timestamptz NOT NULL DEFAULT clock_timestamp(), job text NOT NULL,
  before text, after text, attempt bigint, nonce text, node text, interruptions bigint);
CREATE FUNCTION chaos() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF TG_OP = 'INSERT' THEN
    INSERT INTO chaos (job, after) VALUES (NEW.id, NEW.state);
  ELSIF TG_OP = 'DELETE' THEN
    INSERT INTO chaos (job, before) VALUES (OLD.id, OLD.state);
  ELSIF OLD.state <> NEW.state OR OLD.attempts <> NEW.attempts THEN
    INSERT INTO chaos (job, before, after, attempt, nonce, node, interruptions)
      VALUES (NEW.id, OLD.state, NEW.state, NEW.attempts, NEW.nonce, NEW.node, NEW.interruptions);
  END IF;
  RETURN NULL;
END $$;
CREATE TRIGGER chaos AFTER INSERT OR UPDATE OR DELETE ON jobs FOR EACH ROW EXECUTE FUNCTION chaos();
CREATE TABLE chaos_deletions (at timestamptz NOT NULL DEFAULT clock_timestamp(), recording text NOT NULL,
  tenant text NOT NULL, created_at bigint NOT NULL, transaction xid8 NOT NULL DEFAULT pg_current_xact_id(), node inet DEFAULT inet_client_addr());
CREATE FUNCTION chaos_deletion() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  INSERT INTO chaos_deletions (recording, tenant, created_at) VALUES (OLD.id, OLD.tenant, OLD.created_at);
  RETURN NULL;
END $$;
CREATE TRIGGER chaos_deletion AFTER DELETE ON recordings FOR EACH ROW EXECUTE FUNCTION chaos_deletion();
"""
FINISHED = ("succeeded", "failed", "cancelled")
# The kinds of broken promises.
KINDS = ("lost", "twice", "stale", "stray")
# What `stillwave check` calls files that nothing names.
STRAYS = ("row_missing", "stray_object", "stray_objects", "strange_file")


class Checker:
    def __init__(self, cluster):
        self.cluster, self.journal, self.database = cluster, cluster.journal, cluster.database

    def settle(self):
        """Waits until all jobs have ended and called back. Returns how many jobs haven't ended.

        A webhook takes longer than its job: if it was refused, it comes again 10 s later, then 30 s later, and if the
        outcome of a call couldn't be recorded, 30 s after the call at the earliest.
        """
        # One that the store has failed four times waits for up to 80 s.
        left = self.wait_for_none("SELECT count(*) FROM jobs WHERE state IN ('queued', 'running')", 180)
        self.wait_for_none("SELECT count(*) FROM webhooks", 120)
        return left

    def wait_for_none(self, query, seconds):
        end = time.monotonic() + seconds
        while True:
            left = int(self.database.sql(query))
            if left == 0 or time.monotonic() > end:
                return left
            time.sleep(0.2)

    def check(self):
        self.retention()
        self.jobs()
        self.names()
        self.followers()
        self.recordings()
        self.labels()
        self.conversions()
        self.deleted()
        self.webhooks()
        self.objects()

    def lost(self, text, at=None):
        self.journal.violation("lost", text, at)

    def jobs(self):
        """Each job is there, has ended, and has done so once and as its client was told."""
        ends, known, gone = {}, set(), set()
        for at, job, before, after, attempt in self.database.rows(
                "SELECT extract(epoch FROM at), job, before, after, attempt FROM chaos ORDER BY number"):
            known.add(job)
            if not after:
                gone.add(job)
                continue
            if before in FINISHED:
                self.journal.violation("twice", f"job {job} went from {before} to {after}", float(at))
            if after in FINISHED:
                ends.setdefault(job, []).append((float(at), after))
            self.journal.count("attempts", after == "running")
        for job in sorted(known - gone):
            found = ends.get(job, [])
            if len(found) > 1:
                self.journal.violation("twice", f"job {job} has ended {len(found)} times", found[-1][0])
            elif not found:
                self.lost(f"job {job} hasn't ended")
            elif found[0][1] == "failed":
                error = self.database.sql(f"SELECT error FROM jobs WHERE id = '{job}'")
                self.lost(f"job {job} has failed: {error}", found[0][0])
            self.journal.count("jobs that ended", len(found))
        for job, facts in self.journal.jobs.items():
            if job not in known:
                self.lost(f"job {job} was acknowledged, and there is no trace of it", facts["at"])
            elif "seen" in facts and [facts["seen"]] != [state for _, state in ends.get(job, [])]:
                self.lost(f"job {job} was seen as {facts['seen']} and has ended as {ends.get(job)}", facts["seen_at"])
            elif "cancelled" in facts and [state for _, state in ends.get(job, [])] != ["cancelled"]:
                self.lost(f"job {job} was canceled and has ended as {ends.get(job)}", facts["cancelled"])
        self.journal.count("attempts lost with their nodes", int(self.database.sql(
            "SELECT count(*) FROM chaos WHERE before = 'running' AND after = 'queued'")))
        for job, number in self.database.rows(
                "SELECT job, count(*) FROM attempts WHERE ending = 'succeeded' GROUP BY job HAVING count(*) > 1"):
            self.journal.violation("twice", f"{number} attempts at job {job} have succeeded")

    def names(self):
        """One recording per upload and per key: each upload has its own name."""
        for name, number in self.database.rows(
                "SELECT replace(name, '-renamed', ''), count(*) FROM recordings WHERE derived_recording IS NULL GROUP BY 1 "
                "HAVING count(*) > 1"):
            self.journal.violation("twice", f"{number} recordings are named {name}")
        for source, number in self.database.rows(
                "SELECT derived_job, count(*) FROM recordings WHERE derived_job IS NOT NULL GROUP BY 1 HAVING count(*) > 1"):
            self.journal.violation("twice", f"job {source} has made {number} recordings")
        for recording, number in self.database.rows(
                "SELECT recording, count(*) FROM jobs WHERE kind = 'denoise' GROUP BY recording, parameters HAVING count(*) > 1"):
            self.journal.violation("twice", f"{number} jobs of {recording} have the same parameters")

    def followers(self):
        """Who has followed the list all the time sees what the rows say, a little later."""
        end = time.monotonic() + 30
        wrong = True
        while wrong and time.monotonic() < end:
            time.sleep(0.3)
            names = dict(self.database.rows("SELECT id, name FROM recordings"))
            states = dict(self.database.rows("SELECT id, state FROM jobs"))
            wrong = []
            for follower in self.cluster.followers:
                with follower.view_lock:
                    seen = {*follower.recordings.items()}
                    jobs = {job: state for job, state in follower.jobs.items() if job in states}
                for recording, name in sorted(seen ^ {*names.items()}):
                    wrong.append(f"{follower.name}: {recording} “{name}” is only in " + (
                        "its list" if (recording, name) in seen else "the catalog"))
                wrong += [f"{follower.name}: job {job} is {state}, and has {states[job]}" for job, state in jobs.items()
                          if state != states[job]]
        for text in wrong:
            self.journal.violation("stale", text)
        self.journal.count("followers compared", len(self.cluster.followers))

    def retention(self):
        """No recording was deleted because of its age before its time, by the database's clock, and those that have
        reached it are gone. Each node looks once per age, unless its clock and the database's differ by minutes."""
        left = self.wait_for_none("SELECT count(*) FROM recordings WHERE tenant = 'brief'", 2 * MAXIMUM_AGE + 20)
        if left:
            self.journal.violation("stale", f"{left} recordings are there that have expired")
        ages = {recording: (float(age), tenant) for recording, age, tenant in self.database.rows(
            "SELECT recording, extract(epoch FROM at) - created_at / 1000.0, tenant FROM chaos_deletions")}
        for recording, (age, tenant) in ages.items():
            if tenant == "brief" and age < MAXIMUM_AGE:
                self.lost(f"recording {recording} has expired at the age of {age:.2f} s")
        for recording, facts in self.journal.expiring.items():
            if recording not in ages:
                self.lost(f"recording {recording} was acknowledged, and there is no trace of its expiry", facts["at"])
        self.journal.count("expired recordings compared", len(self.journal.expiring))

    def labels(self):
        """Each track has the labels that were answered last, on every node."""
        for track, facts in self.journal.tracks.items():
            if facts["recording"] in self.journal.deleted:
                continue
            for node in self.cluster.nodes:
                status, body = self.get(node, facts["path"])
                texts = [label["text"] for label in json.loads(body)["labels"]] if status == 200 else status
                if texts not in [facts["texts"], facts["asked"]]:
                    self.lost(f"{node.name} has {texts} for the labels of {track}, not {facts['texts']}", facts["at"])
            self.journal.count("tracks of labels compared")

    def conversions(self):
        """What was converted is still the same, on every node, and is what its row says."""
        digests = dict(self.database.rows("SELECT recording, sha256 FROM conversions WHERE format = 'flac'"))
        for recording, facts in self.journal.recordings.items():
            if "flac" not in facts or recording in self.journal.deleted:
                continue
            if digests.get(recording) != facts["flac"]:
                self.lost(f"the FLAC file of {recording} has the SHA-256 {digests.get(recording)}, not {facts['flac']}")
            for node in self.cluster.nodes:
                status, body = self.get(node, f"/v1/recordings/{recording}/audio?format=flac")
                if status != 200 or hashlib.sha256(body).hexdigest() != facts["flac"]:
                    self.lost(f"{node.name} answers {status} for the FLAC file of {recording}, or it is another one")
            self.journal.count("conversions compared at the end")

    def recordings(self):
        """What was acknowledged and not deleted is there, byte for byte, on every node."""
        rows = {row[0]: row for row in self.database.rows(
            "SELECT id, sha256, waveform_state, split_part(audio_key, '/', 3), split_part(waveform_key, '/', 3), "
            "split_part(working_key, '/', 3), name FROM recordings")}
        for recording, facts in self.journal.recordings.items():
            if recording in self.journal.deleted:
                continue
            if recording not in rows:
                self.lost(f"recording {recording} was acknowledged and is gone", facts["at"])
                continue
            if rows[recording][1] != facts["sha256"]:
                self.lost(f"recording {recording} has another SHA-256", facts["at"])
            if "renamed" in facts and rows[recording][6] != facts["name"]:
                self.lost(f"recording {recording} was renamed to {facts['name']}, and is {rows[recording][6]}", facts["renamed"])
        for job, facts in self.journal.jobs.items():
            result = facts.get("result")
            if result and result not in rows and result not in self.journal.deleted:
                self.lost(f"recording {result}, which job {job} was seen to have made, is gone", facts["seen_at"])
        for number, (recording, sha256, state, audio, waveform, working, _) in enumerate(sorted(rows.values())):
            at = self.journal.recordings.get(recording, {}).get("at")
            if state != "ready" or not audio:
                self.lost(f"recording {recording} has waveform “{state}” and file “{audio}”", at)
                continue
            for name in filter(None, (audio, waveform, working)):
                if not self.has(f"recordings/{recording}/{name}"):
                    self.lost(f"the file {name} of {recording} is gone", at)
            node = self.cluster.nodes[number % len(self.cluster.nodes)]
            status, body = self.get(node, f"/v1/recordings/{recording}/audio")
            if status != 200 or hashlib.sha256(body).hexdigest() != sha256:
                self.lost(f"{node.name} answers {status} for the audio of {recording}, or its bytes have another SHA-256", at)
            slices = [self.get(node, f"/v1/recordings/{recording}/waveform?scale=256&start=0") for node in self.cluster.nodes]
            values = {hashlib.sha256(json.dumps(json.loads(body)["data"]).encode()).hexdigest() if status == 200 else status
                      for status, body in slices}
            first = self.journal.recordings.get(recording, {}).get("waveform")
            if len(values) > 1 or first and values != {first}:
                self.journal.violation("stale", f"the waveform of {recording} isn't the same everywhere and as before")
            self.journal.count("recordings compared at the end")

    def deleted(self):
        """What was deleted stays deleted, also after a failover."""
        for recording, facts in self.journal.deleted.items():
            if "at" not in facts:
                continue
            self.journal.count("deletions acknowledged")
            for node in self.cluster.nodes:
                status, _ = self.get(node, f"/v1/recordings/{recording}")
                if status != 404:
                    self.journal.violation("stale", f"{recording} was deleted, and {node.name} answers {status}", facts["at"])

    def deletions(self, text):
        """What the catalog knows of the deletion of a recording that a violation names, as text."""
        rows = self.database.rows("SELECT at, transaction, node, recording FROM chaos_deletions")
        return "".join(f"\n    deleted at {row[0]} by transaction {row[1]} of {row[2]}" for row in rows if row[3] in text)

    def webhooks(self):
        """Each job that is still there has called back at least once."""
        kept = {row[0] for row in self.database.rows("SELECT id FROM jobs")}
        for job, facts in self.journal.jobs.items():
            if facts["callback"] and job in kept:
                self.journal.count("webhooks expected")
                if job not in self.journal.webhooks:
                    self.lost(f"job {job} has sent no webhook", facts["at"])

    def objects(self):
        """Rows and intents name every file; and after a collection, the media have exactly the files that rows name."""
        self.report(self.unexplained, "is named by no row and no intent")
        # What may still be in use is kept for an hour, and what a killed node left for a day. Now nothing is in use.
        self.database.sql("UPDATE attempts SET due = 0 WHERE due IS NOT NULL")
        self.database.sql("UPDATE garbage SET due = 0")
        self.age_leftovers()
        # A node collects at its start. Another one may do so at the same time, and each leaves what the other has taken.
        for _ in range(2):
            node = self.cluster.nodes[0]
            node.drain()
            node.start()
            node.wait()
            left = self.wait_for_none(
                "SELECT (SELECT count(*) FROM attempts WHERE due IS NOT NULL) + (SELECT count(*) FROM garbage)", 20)
            if left == 0:
                break
        if left:
            names = [row[0] for row in self.database.rows("SELECT object FROM garbage ORDER BY object LIMIT 5")]
            self.journal.violation("stray", f"{left} rows say what may go, and two collections have left them: {names}")
        self.report(self.strays, "is named by no row")
        self.findings()

    def report(self, find, text):
        """Counts what `find` returns as strays, if it is still there after a while."""
        end = time.monotonic() + 10
        while (strays := find()) and time.monotonic() < end:
            time.sleep(0.3)
        for stray in strays:
            self.journal.violation("stray", f"{stray} {text}")

    def findings(self):
        """`stillwave check` finds nothing either: it compares all bytes again."""
        done = subprocess.run(
            [self.cluster.programs[0], "check", "--json", "--catalog", self.database.url, *self.cluster.media_settings],
            capture_output=True, text=True, timeout=600)
        if not done.stdout:
            raise RuntimeError(f"check: {done.stderr}")
        answer = json.loads(done.stdout)
        self.journal.count("files that stillwave check has compared", answer["files"])
        for finding in answer["problems"] + answer["notes"]:
            if finding["code"] in self.EXPECTED:
                continue
            kind = "stray" if finding["code"] in STRAYS else "lost"
            self.journal.violation(kind, f"{finding['code']}: {finding['path']}: {finding['detail']}")

    def named(self):
        """The names of each recording's files, by recording."""
        named = {}
        rows = self.database.rows("SELECT id, version, audio_key, working_key, waveform_key FROM recordings")
        for recording, version, *keys in rows:
            named[recording] = {f"recording-{version}.json", *(self.name(key, recording) for key in keys if key)}
        for recording, key in self.database.rows("SELECT recording, key FROM conversions"):
            named.setdefault(recording, set()).add(self.name(key, recording))
        return named

    def name(self, key, recording):
        """The name in an object's key, which must belong to the recording."""
        folder, name = key.rsplit("/", 1)
        return name if folder == f"recordings/{recording}" else f"elsewhere, as {key}"

    def get(self, node, path):
        """Returns the status and the content. What the store's line damaged earlier may be noticed only at the end of an
        answer, which is then cut off, and fetched again for the next one."""
        for _ in range(3):
            try:
                return self.get_once(node, path)
            except (ConnectionError, http.client.IncompleteRead):
                self.journal.count("answers cut off at the end")
        return "three broken answers", b""

    def get_once(self, node, path):
        connection = node.connect(30)
        try:
            connection.request("GET", path, headers=self.cluster.authorization("app"))
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


class FolderChecker(Checker):
    """For media in a folder."""

    # The nodes run on; and what killed ones left of uploads is kept aside.
    EXPECTED = ("half_finished", "orphaned_files")

    def has(self, path):
        return os.path.exists(os.path.join(self.cluster.media, path))

    def strays(self):
        """The files in the folder that no row explains."""
        named = self.named()
        uploads = {row[0] for row in self.database.rows("SELECT id FROM uploads WHERE recording IS NULL")}
        jobs = {row[0] for row in self.database.rows("SELECT id FROM jobs WHERE state IN ('queued', 'running')")}
        strays, number = [], 0
        for recording in self.entries("recordings"):
            files = set(self.entries(f"recordings/{recording}"))
            number += len(files)
            strays += [f"recordings/{recording}/{name}" for name in sorted(files - named.get(recording, set()))]
            if not files and recording not in named:
                strays.append(f"recordings/{recording}")
        for folder, kept in (("uploads", uploads), ("removed", set()), ("jobs", jobs)):
            strays += [f"{folder}/{name}" for name in self.entries(folder) if name[:36] not in kept]
        with self.journal.lock:
            self.journal.counts["files that rows name"] = number
        return strays

    def unexplained(self):
        """Nothing: in a folder, everything in a recording's folder belongs to its row or its removal."""
        return []

    def age_leftovers(self):
        """Renames what killed nodes left as if it were two days older: the time is in the names."""
        busy = {row[0] for row in self.database.rows("SELECT id FROM jobs WHERE state IN ('queued', 'running')")}
        known = {row[0] for table in ("recordings", "uploads") for row in self.database.rows(f"SELECT id FROM {table}")}
        left = {
            "work folders left by kills": [f"jobs/{name}" for name in self.entries("jobs") if name not in busy],
            "folders left unfinished by kills": [
                f"recordings/{name}" for name in self.entries("recordings")
                if name not in known and "unfinished" in self.entries(f"recordings/{name}")],
            "uploads left without a row by kills": [
                f"uploads/{name}" for name in self.entries("uploads") if name[:36] not in known]}
        for path in (path for paths in left.values() for path in paths):
            folder, name = path.split("/")
            time = int(name[:8] + name[9:13], 16) - 2 * 86_400_000
            older = f"{folder}/{time >> 16:08x}-{time & 0xffff:04x}{name[13:]}"
            os.rename(os.path.join(self.cluster.media, path), os.path.join(self.cluster.media, older))
        with self.journal.lock:
            self.journal.counts.update({what: len(paths) for what, paths in left.items()})

    def entries(self, folder):
        return sorted(os.listdir(os.path.join(self.cluster.media, folder)))


class BucketChecker(Checker):
    """For media in a bucket."""

    EXPECTED = ()

    def check(self):
        self.keys = set(self.cluster.bucket.keys())
        super().check()
        self.digests()

    def has(self, path):
        return path in self.keys

    def age_leftovers(self):
        """Nothing to do: in a bucket, only rows say what is unneeded."""

    def strays(self):
        """The objects that no row explains, and the multipart uploads that have parts."""
        explained = self.explained()
        self.keys = set(self.cluster.bucket.keys())
        with self.journal.lock:
            self.journal.counts["files that rows name"] = len(self.keys & explained)
        return sorted(self.keys - explained) + [f"a part of {key}" for key, _ in self.multiparts(but=())]

    def unexplained(self):
        """The objects that neither a row nor an intent explains, and the multipart uploads that no intent does."""
        explained = self.explained()
        intents = {row[0] for row in self.database.rows("SELECT object FROM garbage")}
        attempts = [f"-{job}-{attempt}-{nonce}." for job, attempt, nonce in self.database.rows(
            "SELECT job, attempt, nonce FROM attempts WHERE due IS NOT NULL OR ended_at IS NULL")]
        keys = set(self.cluster.bucket.keys())
        with self.journal.lock:
            self.journal.counts["objects compared with rows and intents"] = len(keys)
            self.journal.counts["objects that only intents name"] = len(keys - explained)
        return sorted(
            key for key in keys - explained - intents if not any(attempt in key for attempt in attempts)) + [
                f"a part of {key}" for key, _ in self.multiparts(but=intents)]

    def explained(self):
        """The keys that rows explain."""
        explained = {"media-id"}
        for recording, names in self.named().items():
            # A sound may have a map beside it.
            explained |= {f"recordings/{recording}/{name}{end}" for name in names for end in ("", ".map")}
        for upload, name in self.database.rows("SELECT upload, name FROM upload_objects"):
            explained.add(f"uploads/{upload}/{name}")
        return explained

    def multiparts(self, but):
        """The multipart uploads with parts, as pairs of key and ID, except those that intents name. An empty one may be
        left of a node that was killed before it could write its row."""
        bucket = self.cluster.bucket
        found = bucket.multiparts()
        with self.journal.lock:
            self.journal.counts["multipart uploads compared"] = max(
                len(found), self.journal.counts.get("multipart uploads compared", 0))
        return [(key, upload) for key, upload in found
                if f"multipart/{key}?{upload}" not in but and bucket.has_parts(key, upload)]

    def digests(self):
        """Every object has the bytes with which it was put, and sounds those of their rows; no recording is undescribed."""
        for recording, version in self.database.rows("SELECT id, version FROM recordings"):
            if not self.has(f"recordings/{recording}/recording-{version}.json"):
                self.lost(f"the description of {recording} is gone")
        sounds = dict(self.database.rows("SELECT audio_key, sha256 FROM recordings WHERE audio_key IS NOT NULL"))
        for key in sorted(self.keys - {"media-id"}):
            told, found = self.cluster.bucket.digests(key)
            if told != found or sounds.get(key, found) != found:
                self.lost(f"the object {key} has the SHA-256 {found}, not {told} or {sounds.get(key)}")
            self.journal.count("objects compared")


def table(journal, times):
    """The table of faults as text; a broken promise counts toward the fault that began last before it."""
    times = sorted(times)
    kinds = sorted({kind for _, kind in times})
    rows = {kind: dict.fromkeys(KINDS, 0) for kind in [*kinds, "none yet"]}
    for at, what, _ in journal.violations:
        earlier = [kind for time, kind in times if time <= at]
        rows[earlier[-1] if earlier else "none yet"][what] += 1
    lines = [f"{'fault':<14}{'times':>7}" + "".join(f"{kind:>7}" for kind in KINDS)]
    for kind, row in rows.items():
        number = sum(1 for _, other in times if other == kind)
        if number or any(row.values()):
            lines.append(f"{kind:<14}{number:>7}" + "".join(f"{row[what]:>7}" for what in KINDS))
    totals = [sum(row[what] for row in rows.values()) for what in KINDS]
    lines.append(f"{'all':<14}{len(times):>7}" + "".join(f"{total:>7}" for total in totals))
    return "\n".join(lines)
