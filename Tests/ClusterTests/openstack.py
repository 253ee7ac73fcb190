"""OpenStack Swift, whose proxy speaks S3 (s3api): a store for the nodes. Needs Debian's package python3-swift."""

import contextlib
import http.client
import os
import subprocess
import sys
import time

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "../ViewerTests"))
from webdriver import free_port

# Debian's Python, which has the package. Swift's servers are functions; this is what its scripts call.
PYTHON = "/usr/bin/python3"
RINGS = """
import sys
from swift.common.ring import RingBuilder
folder, *ports = sys.argv[1:]
for kind, port in zip(("account", "container", "object"), ports):
    ring = RingBuilder(4, 1, 0)
    ring.add_dev({"id": 0, "region": 1, "zone": 1, "ip": "127.0.0.1", "port": int(port), "device": "disk", "weight": 1})
    ring.rebalance()
    ring.get_ring().save(f"{folder}/{kind}.ring.gz")
"""
SERVER = """
import sys
from swift.common import utils, wsgi
utils.set_swift_dir(sys.argv[1])
sys.exit(wsgi.run_wsgi(sys.argv[2], sys.argv[3], verbose=True))
"""
UPDATER = """
import sys
from swift.common import daemon, utils
from swift.obj.updater import ObjectUpdater
utils.set_swift_dir(sys.argv[1])
daemon.run_daemon(ObjectUpdater, sys.argv[2], verbose=True)
"""


class Swift:
    """Swift with one copy of everything, in four servers on the loopback interface."""

    FAULTS, HAS_BUCKET = ("proxy kill", "object server kill"), False
    # tempauth's names of keys consist of an account and a user.
    ACCOUNT, USER = "stillwave", "test"
    KEY = f"{ACCOUNT}:{USER}"

    def __init__(self, folder, secret, bucket):
        self.folder, self.bucket, self.processes = os.path.join(folder, "swift"), bucket, {}
        os.makedirs(os.path.join(self.folder, "devices/disk"))
        self.ports = {name: free_port() for name in ("account", "container", "object", "proxy", "open")}
        self.address = f"127.0.0.1:{self.ports['proxy']}"
        self.write("swift.conf", "[swift-hash]\nswift_hash_path_suffix = test\n[storage-policy:0]\nname = only\ndefault = yes\n")
        for kind in ("account", "container", "object"):
            self.write(f"{kind}.conf", f"""{self.common(kind)}devices = {self.folder}/devices
mount_check = false
[pipeline:main]
pipeline = {kind}-server
[app:{kind}-server]
use = egg:swift#{kind}
[object-updater]
interval = 10
""")
        self.write("proxy.conf", self.proxy(secret))
        # Without keys, for the bucket's quota.
        self.write("open.conf", f"""{self.common("open")}[pipeline:main]
pipeline = proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
""")
        rings = [str(self.ports[kind]) for kind in ("account", "container", "object")]
        subprocess.run([PYTHON, "-c", RINGS, self.folder, *rings], check=True)
        for name in self.ports:
            self.start(name)
        # Tells the listing of what it didn't hear in time.
        self.start("updater")

    def common(self, name):
        return f"""[DEFAULT]
bind_ip = 127.0.0.1
bind_port = {self.ports[name]}
swift_dir = {self.folder}
user = {os.environ.get("USER") or "root"}
workers = 0
recon_cache_path = {self.folder}
log_level = WARNING
"""

    def proxy(self, secret):
        # There is no memcached; the proxy only wants to have the address of one. Objects of more than 1,000 parts need the
        # three greater limits.
        return f"""{self.common("proxy")}[pipeline:main]
pipeline = catch_errors cache s3api tempauth bulk slo container-quotas proxy-server
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:1
[filter:s3api]
use = egg:swift#s3api
max_upload_part_num = 10000
[filter:tempauth]
use = egg:swift#tempauth
user_{self.ACCOUNT}_{self.USER} = {secret} .admin
[filter:bulk]
use = egg:swift#bulk
max_deletes_per_request = 10000
[filter:slo]
use = egg:swift#slo
max_manifest_segments = 10000
[filter:container-quotas]
use = egg:swift#container_quotas
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
"""

    def write(self, name, text):
        with open(os.path.join(self.folder, name), "w") as file:
            file.write(text)

    def start(self, name):
        kind = {"updater": "object", "open": "proxy"}.get(name, name)
        program = [UPDATER if name == "updater" else SERVER, self.folder, f"{self.folder}/{kind}.conf", f"{kind}-server"]
        if name == "open":
            program[2] = f"{self.folder}/open.conf"
        with open(os.path.join(self.folder, f"{name}.log"), "a") as log:
            self.processes[name] = subprocess.Popen([PYTHON, "-c", *program], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        if name in self.ports:
            self.wait(self.ports[name])

    def wait(self, port):
        for _ in range(600):
            with contextlib.suppress(OSError, http.client.HTTPException):
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
                connection.request("GET", "/")
                connection.getresponse().read()
                return
            time.sleep(0.1)
        raise RuntimeError("Swift doesn't answer")

    def kill(self, name):
        self.processes[name].kill()
        self.processes[name].wait()

    def cause(self, kind, seconds, draw):
        name = kind.split()[0]
        self.kill(name)
        time.sleep(seconds / 3)
        self.start(name)

    def limit(self, length):
        for container in (self.bucket, f"{self.bucket}+segments"):
            connection = http.client.HTTPConnection("127.0.0.1", self.ports["open"], timeout=60)
            with contextlib.closing(connection):
                connection.request("POST", f"/v1/AUTH_{self.ACCOUNT}/{container}", headers={
                    "X-Container-Meta-Quota-Bytes": "" if length is None else str(length)})
                connection.getresponse().read()

    def stop(self):
        for name in self.processes:
            self.kill(name)
