"""The bucket of the nodes: a store, and a line to it that can be slow, cut, silent or busy, or damage answers."""

import contextlib
import datetime
import hashlib
import hmac
import http.client
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.parse
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../ViewerTests"))
from openstack import Swift
from webdriver import free_port

here = os.path.dirname(os.path.abspath(__file__))
NAME, PREFIX = "sounds", "stillwave/"
KEY, SECRET = "AKSTILLWAVE", "SKSTILLWAVE12345678"


class OwnStore:
    """Our own store, in the memory of a process. It checks signatures, and loses nothing. Nodes have temporary keys."""

    FAULTS, HAS_BUCKET, KEY = ("key renewed late",), True, KEY

    def __init__(self, folder, programs):
        program = os.path.join(programs, "BucketServer")
        if not os.path.exists(program):
            sys.exit(f"cluster-test: {program} is missing; swift build -c release --product BucketServer")
        self.process = subprocess.Popen([program, NAME, KEY, SECRET], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip().removeprefix("http://")
        self.sessions = 0
        self.renew()

    def say(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def limit(self, length):
        """Lets the bucket hold this many bytes; None for any number."""
        self.say(f"{length if length is not None else 1 << 62}")

    def renew(self):
        """Makes a key with a session token, and ends the one before."""
        self.sessions += 1
        self.say(f"session SESSION{self.sessions}")

    def key(self):
        """The name and the session token of the key that nodes have."""
        return f"SESSION{self.sessions}", f"SESSION{self.sessions}"

    def stop(self):
        self.process.kill()
        self.process.wait()


class Ceph:
    """Ceph with a monitor, a manager, three OSDs in files, and a gateway that speaks S3, on the loopback interface."""

    FAULTS, HAS_BUCKET, KEY = ("gateway kill", "OSD kill"), False, KEY
    OSDS = 3

    def __init__(self, folder, programs):
        self.folder = os.path.join(folder, "ceph")
        for name in ("run", "mon", "mgr", "rgw", "log", *(f"osd{number}" for number in range(self.OSDS))):
            os.makedirs(os.path.join(self.folder, name))
        self.configuration = os.path.join(self.folder, "ceph.conf")
        self.monitor, port = f"v2:127.0.0.1:{free_port()}/0", free_port()
        self.address, self.processes = f"127.0.0.1:{port}", {}
        with open("/proc/sys/kernel/random/uuid") as file:
            cluster = file.read().strip()
        with open(self.configuration, "w") as file:
            file.write(self.settings(cluster, port))
        self.begin(cluster)

    def settings(self, cluster, port):
        # Without recovery that would compete with the test, and with little memory.
        return f"""[global]
fsid = {cluster}
mon_initial_members = a
mon_host = {self.monitor}
ms_bind_ipv6 = false
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
osd_pool_default_size = 3
osd_pool_default_min_size = 2
osd_pool_default_pg_num = 8
osd_pool_default_pg_autoscale_mode = off
osd_crush_chooseleaf_type = 0
mon_data = {self.folder}/mon
mgr_data = {self.folder}/mgr
osd_data = {self.folder}/osd$id
osd_objectstore = bluestore
bluestore_block_size = 21474836480
bluestore_block_create = true
bluestore_block_preallocate_file = false
osd_memory_target = 939524096
osd_memory_cache_min = 134217728
osd_heartbeat_grace = 6
mon_osd_down_out_interval = 600
run_dir = {self.folder}/run
admin_socket = {self.folder}/run/$name.asok
log_file = {self.folder}/log/$name.log
crash_dir = {self.folder}/log
mgr_initial_modules =
[client.rgw]
rgw_data = {self.folder}/rgw
rgw_frontends = beast endpoint=127.0.0.1:{port} tcp_nodelay=1
ms_mon_client_mode = crc
rgw_bucket_quota_ttl = 0
rgw_user_quota_bucket_sync_interval = 1
"""

    def run(self, *words):
        done = subprocess.run(
            [words[0], "-c", self.configuration, *words[1:]], capture_output=True, text=True, timeout=120)
        if done.returncode:
            raise RuntimeError(f"{' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout

    def daemon(self, name, *words):
        """Starts a daemon in the foreground, as a child."""
        with open(os.path.join(self.folder, "log", name + ".out"), "ab") as log:
            self.processes[name] = subprocess.Popen(
                [words[0], "-c", self.configuration, "-f", *words[1:]], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def begin(self, cluster):
        path = os.path.join(self.folder, "monmap")
        subprocess.run(["monmaptool", "--create", "--addv", "a", f"[{self.monitor}]", "--fsid", cluster, path],
                       check=True, capture_output=True)
        self.run("ceph-mon", "--mkfs", "-i", "a", "--monmap", path)
        self.daemon("mon", "ceph-mon", "-i", "a")
        self.run("ceph", "--connect-timeout", "30", "mon", "enable-msgr2")
        self.daemon("mgr", "ceph-mgr", "-i", "x")
        for number in range(self.OSDS):
            with open("/proc/sys/kernel/random/uuid") as file:
                osd = file.read().strip()
            self.run("ceph", "osd", "new", osd)
            self.run("ceph-osd", "-i", str(number), "--mkfs", "--osd-uuid", osd)
            self.run("ceph", "osd", "crush", "add", f"osd.{number}", "1", "root=default")
            self.start_osd(number)
        self.start_gateway()
        self.wait()
        self.run("radosgw-admin", "user", "create", "--uid=stillwave", "--display-name=stillwave",
                 f"--access-key={KEY}", f"--secret-key={SECRET}")

    def start_osd(self, number):
        self.daemon(f"osd{number}", "ceph-osd", "-i", str(number))

    def start_gateway(self):
        self.daemon("gateway", "radosgw", "-n", "client.rgw")

    def wait(self):
        """Waits until the gateway answers."""
        host, port = self.address.split(":")
        for _ in range(600):
            with contextlib.suppress(OSError, http.client.HTTPException):
                connection = http.client.HTTPConnection(host, int(port), timeout=5)
                connection.request("GET", "/")
                connection.getresponse().read()
                return
            time.sleep(0.2)
        raise RuntimeError("Ceph's gateway doesn't answer")

    def kill(self, name):
        self.processes[name].send_signal(signal.SIGKILL)
        self.processes[name].wait()

    def cause(self, kind, seconds, draw):
        if kind == "gateway kill":
            self.kill("gateway")
            time.sleep(seconds / 3)
            self.start_gateway()
            self.wait()
        else:
            number = draw.randrange(self.OSDS)
            self.kill(f"osd{number}")
            time.sleep(seconds)
            self.start_osd(number)
            # Before another one is killed, all three must have what was written meanwhile.
            end = time.monotonic() + 120
            while "active+clean" not in (state := self.run("ceph", "pg", "stat")) or any(
                    word in state for word in ("degraded", "peering", "undersized", "recover")):
                if time.monotonic() > end:
                    raise RuntimeError(f"Ceph doesn't recover: {state}")
                time.sleep(0.5)

    def limit(self, length):
        quota = ["radosgw-admin", "quota"]
        if length is None:
            self.run(*quota, "disable", "--quota-scope=bucket", "--uid=stillwave")
        else:
            self.run(*quota, "set", "--quota-scope=bucket", "--uid=stillwave", f"--max-size={length}")
            self.run(*quota, "enable", "--quota-scope=bucket", "--uid=stillwave")

    def stop(self):
        for process in self.processes.values():
            process.kill()
            process.wait()


STORES = {"bucket": OwnStore, "ceph": Ceph, "swift": lambda folder, _: Swift(folder, SECRET, NAME)}


class Bucket:
    """A bucket, as the nodes reach it. Has the faults that may befall it, each for some seconds."""

    FAULTS = ("store slow", "store cut", "store silent", "store busy", "store damaged", "store short", "bucket full",
              "wrong key")

    def __init__(self, kind, folder, programs, host):
        self.store = STORES[kind](folder, programs)
        self.faults = self.FAULTS + self.store.FAULTS
        if not self.store.HAS_BUCKET:
            self.request("PUT", f"/{NAME}")
        port = free_port()
        self.endpoint = f"http://{host}:{port}"
        self.line = subprocess.Popen(
            [sys.executable, os.path.join(here, "line.py"), host, str(port), *self.store.address.split(":")],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.line.stdout.readline()
        self.credentials, self.secret = os.path.join(folder, "key"), os.path.join(folder, "secret")
        with open(self.secret, "w") as file:
            file.write("a secret that all nodes have, and that is long enough")
        self.set_key(SECRET)

    def settings(self):
        return ["--media", f"s3://{NAME}/{PREFIX}", "--s3-endpoint", self.endpoint, "--s3-credentials", self.credentials]

    def set_key(self, secret):
        name, token = self.store.key() if isinstance(self.store, OwnStore) else (self.store.KEY, None)
        with open(self.credentials + ".new", "w") as file:
            file.write(f"[default]\naws_access_key_id = {name}\naws_secret_access_key = {secret}\n")
            if token:
                file.write(f"aws_session_token = {token}\n")
        os.rename(self.credentials + ".new", self.credentials)

    def say(self, mode):
        self.line.stdin.write(mode + "\n")
        self.line.stdin.flush()

    def cause(self, kind, seconds, draw):
        if kind == "bucket full":
            self.store.limit(0)
            time.sleep(seconds)
            self.store.limit(None)
        elif kind == "wrong key":
            self.set_key("expired")
            time.sleep(seconds)
            self.set_key(SECRET)
        elif kind == "key renewed late":
            self.store.renew()
            # Usually, what is under way waits for that.
            time.sleep(seconds)
            self.set_key(SECRET)
        elif kind in self.FAULTS:
            self.say(kind.split()[1])
            time.sleep(seconds)
            self.say("well")
        else:
            self.store.cause(kind, seconds, draw)

    def stop(self):
        self.line.kill()
        self.store.stop()

    # What the store has, asked without the line

    def request(self, method, path, query=()):
        """Sends a signed request (SigV4) and returns the answer's fields and body."""
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        text = "&".join(f"{name}={urllib.parse.quote(value, safe='')}" for name, value in sorted(query))
        nothing, host = hashlib.sha256(b"").hexdigest(), self.store.address
        lines = [method, urllib.parse.quote(path), text, f"host:{host}", f"x-amz-content-sha256:{nothing}", f"x-amz-date:{now}",
                 "", "host;x-amz-content-sha256;x-amz-date", nothing]
        scope = f"{now[:8]}/us-east-1/s3/aws4_request"
        digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
        key = ("AWS4" + SECRET).encode()
        for part in [*scope.split("/"), f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{digest}"]:
            key = hmac.digest(key, part.encode(), "sha256")
        name, _, port = host.partition(":")
        connection = http.client.HTTPConnection(name, int(port), timeout=60)
        with contextlib.closing(connection):
            connection.request(method, urllib.parse.quote(path) + (f"?{text}" if text else ""), headers={
                "x-amz-content-sha256": nothing, "x-amz-date": now,
                "Authorization": f"AWS4-HMAC-SHA256 Credential={self.store.KEY}/{scope}, SignedHeaders={lines[7]}, Signature={key.hex()}"})
            answer = connection.getresponse()
            body = answer.read()
            if answer.status >= 300:
                raise RuntimeError(f"{method} {path}: {answer.status} {body[:300]}")
            return answer.headers, body

    def keys(self):
        """The keys of all objects, without the prefix."""
        found, token = [], None
        while True:
            query = [("list-type", "2"), ("prefix", PREFIX), *([("continuation-token", token)] if token else [])]
            page = xml.etree.ElementTree.fromstring(self.request("GET", f"/{NAME}", query)[1])
            texts = [(element.tag.rpartition("}")[2], element.text) for element in page.iter()]
            found += [text.removeprefix(PREFIX) for tag, text in texts if tag == "Key"]
            token = dict(texts).get("NextContinuationToken")
            if not token:
                return found

    def digests(self, key):
        """The SHA-256 that an object was stored with, and that of its bytes."""
        fields, body = self.request("GET", f"/{NAME}/{PREFIX}{key}")
        return fields["x-amz-meta-sha256"], hashlib.sha256(body).hexdigest()

    def multiparts(self):
        """The multipart uploads in progress, as pairs of key and ID."""
        found, place = [], []
        while True:
            page = xml.etree.ElementTree.fromstring(
                self.request("GET", f"/{NAME}", [("uploads", ""), ("prefix", PREFIX), *place])[1])
            texts = {element.tag.rpartition("}")[2]: element.text for element in page}
            for upload in page:
                fields = {element.tag.rpartition("}")[2]: element.text for element in upload}
                if "UploadId" in fields:
                    found.append((fields["Key"].removeprefix(PREFIX), fields["UploadId"]))
            if texts.get("IsTruncated") != "true":
                return found
            place = [("key-marker", texts["NextKeyMarker"]), ("upload-id-marker", texts["NextUploadIdMarker"])]

    def has_parts(self, key, upload):
        """Whether a multipart upload that still exists has any part."""
        try:
            body = self.request("GET", f"/{NAME}/{PREFIX}{key}", [("uploadId", upload)])[1]
        except RuntimeError as error:
            if "NoSuchUpload" in str(error):
                return False
            raise
        return any(element.tag.endswith("Part") for element in xml.etree.ElementTree.fromstring(body))
