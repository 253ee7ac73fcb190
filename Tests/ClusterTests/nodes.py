"""The nodes of the cluster."""

import contextlib
import glob
import http.client
import os
import random
import shutil
import signal
import subprocess
import sys
import time

here = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(here, "../ViewerTests"))
from database import children
from network import DATABASE
from webdriver import free_port

SECRET = "a secret for webhooks"


class Node:
    """A node, and what a machine does to it."""

    def __init__(self, number, cluster, *settings, wrapper=()):
        self.number, self.cluster, self.settings, self.wrapper = number, cluster, list(settings), list(wrapper)
        self.name = f"n{number}"
        self.address, self.inside = cluster.network.add(number)
        self.port = 8080 if self.inside else free_port()
        if cluster.bucket:
            # Where the other nodes fetch the waveforms that it builds. Those who are cut off can't.
            address = f"{DATABASE}.{10 + number}:8090" if self.inside else f"127.0.0.1:{free_port()}"
            self.settings += ["--cluster-secret-file", cluster.bucket.secret, "--cluster-listen", address]
        self.log, self.folder = os.path.join(cluster.folder, self.name + ".log"), os.path.join(cluster.folder, self.name)
        # With a bucket, a small disk of its own for its files, if it may be mounted where only the test sees it.
        self.has_own_disk = bool(cluster.bucket and self.inside)
        if self.has_own_disk:
            os.makedirs(self.folder)
            subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256m,mode=700", "tmpfs", self.folder], check=True)
        self.process, self.random = None, random.Random(f"{cluster.seed} {number}")
        self.error = os.path.join(cluster.folder, self.name + ".clock")
        self.usual_error = (0, -cluster.skew, cluster.skew)[number % 3]
        self.set_clock(self.usual_error)

    def set_clock(self, error):
        """Makes the node's clock wrong by `error` seconds, within a second if it runs."""
        with open(self.error + ".new", "w") as file:
            file.write(f"{error:+}s")
        os.rename(self.error + ".new", self.error)

    def clock(self):
        """The environment that makes the node's clock wrong."""
        if not self.cluster.skew:
            return {}
        library = next(iter(glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")), None)
        if not library:
            raise SystemExit("cluster-test: libfaketime is missing, which makes clocks wrong; --skew 0 goes without")
        timers = os.path.join(self.cluster.folder, "timers.so")
        if not os.path.exists(timers):
            subprocess.run(["clang", "-shared", "-fPIC", "-o", timers, os.path.join(here, "timers.c")], check=True)
        return {
            "LD_PRELOAD": f"{timers}:{library}", "FAKETIME_TIMESTAMP_FILE": self.error, "FAKETIME_CACHE_DURATION": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1"}

    def start(self):
        words = [
            *self.wrapper, *self.inside, self.random.choice(self.cluster.programs), "serve", "--listen", f"{self.address}:{self.port}", "--data",
            self.folder, "--catalog", self.cluster.database.url,
            *self.cluster.media_settings, "--node", self.name, "--lease", str(self.cluster.lease), "--webhook-networks",
            "10.77.0.0/24,127.0.0.0/8", "--max-queued-jobs-per-client", "1000", "--max-open-uploads-per-client", "900",
            "--reserve-bytes", "1", "--log-level", "notice", *self.settings]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                words, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                env={**os.environ, **self.clock(), "STILLWAVE_WEBHOOK_SECRET": SECRET})

    def connect(self, timeout):
        return http.client.HTTPConnection(self.address, self.port, timeout=timeout)

    def is_ready(self):
        connection = self.connect(2)
        with contextlib.closing(connection), contextlib.suppress(OSError, http.client.HTTPException):
            connection.request("GET", "/healthz")
            return connection.getresponse().status == 200
        return False

    def wait(self, seconds=60):
        end = time.monotonic() + seconds
        while not self.is_ready():
            if self.process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"{self.name} doesn't answer:\n{self.output()[-3000:]}")
            time.sleep(0.05)

    def output(self):
        with open(self.log, errors="replace") as file:
            return file.read()

    def kill(self):
        """Kills the node. Its workers notice that it is gone."""
        if self.process:
            self.process.kill()
            self.process.wait()

    def fill_disk(self, seconds):
        """Leaves no room on the node's disk for some seconds, whatever the node removes."""
        path, end = os.path.join(self.folder, "filler"), time.monotonic() + seconds
        with open(path, "wb", buffering=0) as file:
            while time.monotonic() < end:
                for size in (1 << 20, 4096):
                    with contextlib.suppress(OSError):
                        while file.write(bytes(size)) == size:
                            pass
                time.sleep(0.05)
        os.remove(path)

    def remove_cache(self):
        """Removes the node's cache while it runs, as somebody does who needs room."""
        shutil.rmtree(os.path.join(self.folder, "scratch/cache"), ignore_errors=True)

    def unmount(self):
        if self.has_own_disk:
            subprocess.run(["umount", "--lazy", self.folder], check=False)

    def signal(self, number, workers=False):
        """Sends a signal to the node and, if wanted, to its workers."""
        for pid in [self.process.pid, *(tree(self.process.pid) if workers else [])]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    def drain(self):
        """Ends the node as a deployment does. Returns whether it ended by itself, with status 0."""
        self.process.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            return self.process.wait(60) == 0
        self.kill()
        return False


def tree(pid):
    """The descendants of a process."""
    found = []
    for child in children(pid):
        found += [child, *tree(child)]
    return found
