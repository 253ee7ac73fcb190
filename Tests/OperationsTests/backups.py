"""The commands of docs/cluster.md that back a cluster up and restore it to an earlier moment."""

import contextlib
import hashlib
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../ClusterTests"))
from database import Pair, Server, programs
from walk import Process
from webdriver import free_port, wait

KEY, SECRET = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCY"
MEDIA = "s3://recordings/stillwave"


def blocks():
    """The blocks of the section, in order: settings, backing up, restoring, getting a recording back."""
    with open("docs/cluster.md", encoding="utf-8") as document:
        section = document.read().split("\n## Backups\n")[1].split("\n## ")[0]
    found = re.findall(r"^```(?:sh)?\n(.*?)^```$", section, re.M | re.S)
    assert len(found) == 5, "the section has five blocks"
    return found


class Cluster:
    """A database that archives its log, a bucket, and a node."""

    def __init__(self, program, folder):
        self.program, self.folder = program, folder
        self.place = os.path.join(folder, "postgres")
        for name in ("postgres", "postgres/wal"):
            os.mkdir(os.path.join(folder, name))
        if os.getuid() == 0:
            os.chmod(folder, 0o711)
            for name in ("postgres", "postgres/wal"):
                shutil.chown(os.path.join(folder, name), Pair.prefix()[1].split("=")[1])
        self.server = Server("one", self.place, "127.0.0.1", free_port())
        self.url = f"postgres://stillwave@127.0.0.1:{self.server.port}/stillwave"

    def paths(self, text):
        """A block of the documentation with this cluster's places."""
        text = text.replace("/var/lib/postgresql/restored", self.place + "/restored").replace("/backup", self.place)
        return text.replace("postgres://stillwave@db1/", f"postgres://stillwave@127.0.0.1:{self.server.port}/")

    def shell(self, text, words=(), **variables):
        """Runs commands, and stops at the first that fails."""
        done = subprocess.run([*words, "bash", "-euo", "pipefail", "-c", text], cwd=self.place, capture_output=True, text=True,
                              timeout=120, env={**os.environ, "LC_ALL": "C.UTF-8", "HOME": self.place, **variables})
        assert done.returncode == 0, (text, done.stdout, done.stderr)
        return done.stdout

    def environment(self):
        return {"STILLWAVE_CATALOG": self.url, "STILLWAVE_MEDIA": MEDIA, "STILLWAVE_S3_ENDPOINT": self.endpoint,
                "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET}

    @contextlib.contextmanager
    def node(self, name):
        self.port = free_port()
        words = [self.program, "serve", "--listen", f"127.0.0.1:{self.port}", "--data", os.path.join(self.folder, name), "--node", name]
        with Process(name, words, self.folder, env={**os.environ, **self.environment()}) as process:
            wait("the node answers", lambda: process.answers(self.port))
            yield

    def ask(self, method, path, body=None, fields={}):
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.request(method, path, body, fields)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()

    def upload(self, sound, name):
        status, _, body = self.ask("POST", f"/v1/recordings?name={name}", sound)
        assert status == 201, body
        id = json.loads(body)["id"]
        wait("the waveform", lambda: self.recording(id)["waveform"]["state"] == "ready")
        return id

    def recording(self, id):
        return json.loads(self.ask("GET", f"/v1/recordings/{id}")[2])

    def check(self, *words):
        done = subprocess.run([self.program, "check", "--json", *words], capture_output=True, text=True, timeout=120,
                              env={**os.environ, **self.environment()})
        assert done.stdout, done.stderr
        return done.returncode, json.loads(done.stdout)

    def findings(self, kind="problems"):
        return {(finding["code"], finding["path"]) for finding in self.check()[1][kind]}


def tone(number):
    """A short sound, different for each number."""
    wave = b"".join((8000 * (i * (number + 3) // 40 % 2) - 4000).to_bytes(2, "little", signed=True) for i in range(20_000))
    size = len(wave)
    return (b"RIFF" + (36 + size).to_bytes(4, "little") + b"WAVEfmt " + bytes.fromhex("100000000100010044ac000088580100")
            + bytes.fromhex("02001000") + b"data" + size.to_bytes(4, "little") + wave)


TUS = {"Tus-Resumable": "1.0.0", "Content-Type": "application/offset+octet-stream"}


def a_cluster_with_a_bucket_is_backed_up_and_restored(program, folder):
    """Restores a catalog to the moment of its backup, with the bucket of a later time, and loses no sound."""
    store = os.path.join(os.path.dirname(program), "BucketServer")
    if not os.path.exists(store):
        return False
    settings, backup, restore, keep, again = blocks()
    cluster = Cluster(program, folder)
    server = cluster.server
    server.create()
    with open(server.data + "/postgresql.auto.conf", "a") as file:
        file.write(cluster.paths(settings) + f"port = {server.port}\nlisten_addresses = '127.0.0.1'\n"
                   f"unix_socket_directories = '{cluster.place}'\nfsync = off\n")
    server.start()
    server.sql("CREATE DATABASE stillwave")
    process = subprocess.Popen([store, "recordings", KEY, SECRET], stdout=subprocess.PIPE, text=True)
    try:
        cluster.endpoint = process.stdout.readline().strip()
        walk(cluster, server, backup, restore, keep, again)
    finally:
        process.kill()
        server.kill()
        subprocess.run([*Pair.prefix(), os.path.join(programs(), "pg_ctl"), "-D", cluster.place + "/restored", "-m", "immediate",
                        "stop"], cwd=cluster.place, capture_output=True)
    return True


def walk(cluster, server, backup, restore, keep, again):
    sounds = [tone(number) for number in range(4)]
    path = f"{programs()}:{os.environ['PATH']}"
    with cluster.node("before"):
        kept, deleted = cluster.upload(sounds[0], "kept.wav"), cluster.upload(sounds[1], "deleted.wav")
        _, fields, _ = cluster.ask("POST", "/v1/uploads", None, {**TUS, "Upload-Length": str(len(sounds[2]))})
        upload = fields["Location"]
        half = len(sounds[2]) // 2
        status, _, _ = cluster.ask("PATCH", upload, sounds[2][:half], {**TUS, "Upload-Offset": "0"})
        assert status == 204 and cluster.check()[0] == 0
        # As if it had a standby, without which the restored server must work. Without a reload, this one doesn't wait.
        server.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
        cluster.shell(cluster.paths(backup), Pair.prefix(), PATH=path)
        time.sleep(0.1)
        newer = cluster.upload(sounds[3], "newer.wav")
        assert cluster.ask("DELETE", f"/v1/recordings/{deleted}")[0] == 204
        _, fields, _ = cluster.ask("PATCH", upload, sounds[2][half:], {**TUS, "Upload-Offset": str(half)})
        ended = fields["Stillwave-Recording"]
        wait("the waveform", lambda: cluster.recording(ended)["waveform"]["state"] == "ready")
        assert cluster.ask("PATCH", f"/v1/recordings/{kept}", b'{"name":"renamed.wav"}', {"Content-Type": "application/json"})[0] == 200
        wait("the check finds nothing", lambda: cluster.check()[0] == 0)
    last = server.sql("SELECT pg_walfile_name(pg_switch_wal())")
    wait("the log is archived", lambda: os.path.exists(f"{cluster.place}/wal/{last}"))
    server.kill()
    cluster.shell(cluster.paths(restore), Pair.prefix(), PATH=path)
    wait("the catalog is restored", lambda: server_is_open(server))
    with open(cluster.place + "/restored/postgresql.auto.conf") as file:
        assert "synchronous_standby_names = '*'" in file.read(), "the backup has the primary's setting"
    cluster.shell(cluster.paths(keep), PATH=path)

    name = upload.rsplit("/", 1)[1]
    version = server.sql(f"SELECT version FROM recordings WHERE id = '{deleted}'", "stillwave")
    lost = {("row_missing", f"recordings/{newer}"), ("row_missing", f"recordings/{ended}")}
    expected = lost | {
        ("audio_missing", path_of(cluster, deleted)), ("upload_damaged", f"uploads/{name}"),
        ("description_outdated", f"recordings/{deleted}/recording-{version}.json")}
    found = cluster.findings()
    assert {finding for finding in found if finding[0] != "waveform_missing"} == expected, found
    before = objects(cluster)
    # Days pass: each start collects what is due.
    for number in range(3):
        with cluster.node(f"after{number}"):
            server.sql("UPDATE garbage SET due = 1", "stillwave")
            server.sql("UPDATE attempts SET due = 1 WHERE due IS NOT NULL", "stillwave")
        with cluster.node(f"later{number}"):
            wait("the collection", lambda: server.sql("SELECT count(*) FROM garbage WHERE due <= 1", "stillwave") == "0")
    left = objects(cluster)
    named = {key for key in before if any(id in key for id in (newer, ended, kept))}
    gone = {key for key in named if left.get(key) != before[key]}
    assert len(named) >= 9 and not gone, gone
    assert lost <= cluster.findings()
    with cluster.node("last"):
        assert cluster.ask("GET", f"/v1/recordings/{deleted}/audio")[0] == 410
        assert cluster.ask("DELETE", f"/v1/recordings/{deleted}")[0] == 204
        assert cluster.ask("DELETE", upload, None, TUS)[0] == 204
        assert cluster.ask("PATCH", f"/v1/recordings/{kept}", b'{"name":"again.wav"}', {"Content-Type": "application/json"})[0] == 200
        commands = again.replace("https://store:7480", cluster.endpoint).replace("http://n1:8080", f"http://127.0.0.1:{cluster.port}")
        answer = cluster.shell(re.sub(r"\bID\b", newer, commands), **cluster.environment())
        back = json.loads(answer)
        assert back["name"] == "newer.wav" and back["sha256"] == hashlib.sha256(sounds[3]).hexdigest(), back
        wait("only recordings without a row are left", lambda: cluster.findings() == lost)


def server_is_open(server):
    with contextlib.suppress(RuntimeError):
        return server.sql("SELECT pg_is_in_recovery()") == "f"


def path_of(cluster, recording):
    """The key of a recording's sound, as its row has it."""
    return cluster.server.sql(f"SELECT audio_key FROM recordings WHERE id = '{recording}'", "stillwave")


def objects(cluster):
    """The objects of the bucket with their lengths, as the store lists them."""
    text = subprocess.run(
        ["curl", "-fsS", "--aws-sigv4", "aws:amz:us-east-1:s3", "--user", f"{KEY}:{SECRET}", "-H",
         "x-amz-content-sha256: UNSIGNED-PAYLOAD", f"{cluster.endpoint}/recordings?list-type=2&prefix=stillwave%2F"],
        check=True, capture_output=True, text=True).stdout
    return {key.removeprefix("stillwave/"): size for key, size in re.findall(r"<Key>(.*?)</Key>.*?<Size>(\d+)</Size>", text)}
