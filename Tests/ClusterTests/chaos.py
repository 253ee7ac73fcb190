"""Three nodes under faults, clients that use them, and a table of the promises that were broken."""

import os
import shutil
import subprocess
import tempfile
import threading
import time

from bucket import Bucket
from checker import TRIGGER, BucketChecker, FolderChecker, table
from clients import Client, Journal, Receiver
from database import Pair
from faults import DATABASE_FAULTS, NODE_FAULTS, Faults
from network import Network
from nodes import Node, free_port
from readers import MAXIMUM_AGE, Follower, StaleReader, Tenant

# What must have happened, or else the test shows nothing.
NEEDED = ("recordings acknowledged", "offsets acknowledged", "jobs that ended", "webhooks received", "reads after changes",
          "slices compared", "recordings compared at the end", "deletions acknowledged", "requests sent to two nodes at once",
          "events of the list", "files that rows name", "label sets acknowledged", "conversions compared",
          "recordings seen to have expired", "signatures verified")
# A run that is at least this long must have had each fault and lost an attempt with its node.
FULL_SECONDS = 120


class Cluster:
    def __init__(self, programs, folder, lease, standby=True, is_synchronous=True, skew=0, seed=0, store="folder"):
        """A node runs any of `programs` each time that it starts. Some nodes' clocks are wrong by up to `skew` seconds."""
        self.programs, self.folder, self.lease, self.skew, self.seed = programs, folder, lease, skew, seed
        self.network = Network()
        if store == "folder":
            self.media, self.bucket = os.path.join(folder, "media"), None
            self.media_settings = ["--media", "file://" + self.media]
        else:
            self.bucket = Bucket(store, folder, os.path.dirname(programs[0]), self.network.database_side)
            self.media_settings = self.bucket.settings()
        ports = (5432, 5433) if self.network.can_cut else (free_port(), free_port())
        self.database = Pair(folder, self.network.database_side, ports, standby, is_synchronous=is_synchronous)
        self.nodes, self.followers, self.deadline, self.keys = [], [], float("inf"), {}
        # Whether faults and clients end, and whether everything does.
        self.is_ending, self.is_over = threading.Event(), threading.Event()

    def make_keys(self, **tenants):
        """Makes a key for each tenant, and returns the settings with which nodes accept them."""
        path, secret = os.path.join(self.folder, "keys.jsonl"), os.path.join(self.folder, "token-secret")
        for name, tenant in tenants.items():
            words = [self.programs[0], "keys", "add", name, "--keys", path, "--scopes", "read,write,delete"]
            made = subprocess.run(words + (["--tenant", tenant] if tenant else []), capture_output=True, text=True, check=True)
            self.keys[name] = made.stdout.strip()
        with open(os.open(secret, os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
            file.write("a secret for the tokens of the cluster's test\n")
        return ["--keys", path, "--token-secret-file", secret]

    def authorization(self, name):
        """The field that shows a key; none if the nodes have no keys."""
        return {"Authorization": "Bearer " + self.keys[name]} if name in self.keys else {}

    def start(self, count, *settings):
        for number in range(1, count + 1):
            node = Node(number, self, *settings)
            self.nodes.append(node)
            node.start()
            node.wait()

    def stop(self):
        self.is_over.set()
        for node in self.nodes:
            node.kill()
            node.unmount()
        self.database.stop()
        if self.bucket:
            self.bucket.stop()


def run(programs, seconds, clients, lease, seed, keep, is_synchronous, skew, store):
    folder = tempfile.mkdtemp(prefix="stillwave-cluster-")
    print(f"cluster-test: seed {seed}, everything is in {folder}" + ("" if keep else ", unless all is well"), flush=True)
    cluster = Cluster(programs, folder, lease, is_synchronous=is_synchronous, skew=skew, seed=seed, store=store)
    cluster.journal = Journal(os.path.join(folder, "clients.log"))
    cluster.receiver = Receiver(cluster.network.client_side, cluster.journal)
    is_well = False
    try:
        is_well = go(cluster, seconds, clients, seed)
        return is_well
    finally:
        cluster.stop()
        # A failing run leaves its logs.
        if is_well and not keep:
            shutil.rmtree(folder, ignore_errors=True)


def go(cluster, seconds, clients, seed):
    cluster.start(3, *cluster.make_keys(app=None, brief="brief"), "--tenant-max-age", f"brief={MAXIMUM_AGE}")
    cluster.database.sql(TRIGGER)
    impossible = {
        "cut": not cluster.network.can_cut, "clock set": not cluster.skew, "disk full": not cluster.nodes[0].has_own_disk,
        "cache gone": not cluster.bucket}
    kinds = [kind for kind in NODE_FAULTS if not impossible.get(kind)]
    if not cluster.network.can_cut:
        print("cluster-test: nodes are not cut off from the database: that needs root, for namespaces", flush=True)
    faults = [Faults(cluster, kinds, seed, (0.5, 3)), Faults(cluster, DATABASE_FAULTS, seed, (3, 9))]
    if cluster.bucket:
        faults.append(Faults(cluster, cluster.bucket.faults, seed, (2, 8)))
    threads = [Client(number, cluster, seed) for number in range(clients)] + [StaleReader(clients, cluster, seed), Tenant(clients + 1, cluster, seed)]
    cluster.followers = [Follower(clients + 2 + number, cluster, seed, node) for number, node in enumerate(cluster.nodes)]
    for thread in threads + cluster.followers + faults:
        thread.start()
    broken = wait(threads + cluster.followers + faults, seconds)
    cluster.is_ending.set()
    for fault in faults:
        fault.join(120)
    # All is well again: what the clients have begun they can end, and a node whose clock is right deletes what is old.
    for node in cluster.nodes:
        node.set_clock(node.usual_error)
    cluster.deadline = time.monotonic() + 60
    broken = broken or wait(threads, 90, until_all_end=True)
    for thread in broken:
        print(f"cluster-test: {thread.name} broke off: {thread.error!r}")
    if broken:
        return False
    journal, checker = cluster.journal, (BucketChecker if cluster.bucket else FolderChecker)(cluster)
    # So that no webhook has to wait for a long pause.
    cluster.receiver.is_patient = True
    left = checker.settle()
    # An attempt that lost its job has ended once its lease has, and has nothing left to write.
    time.sleep(cluster.lease)
    checker.check()
    for at, kind, text in sorted(journal.violations)[:40]:
        print(f"  {kind}: {text} ({time.strftime('%H:%M:%S', time.localtime(at))}){checker.deletions(text)}")
    print(table(journal, [time for fault in faults for time in fault.times]))
    print(", ".join(f"{number} {what}" for what, number in sorted(journal.counts.items())), flush=True)
    missing = [what for what in NEEDED if not journal.counts.get(what)]
    if seconds >= FULL_SECONDS:
        had = {kind for fault in faults for _, kind in fault.times}
        missing += [kind for fault in faults for kind in fault.kinds if kind not in had]
        missing += ["attempts lost with their nodes"] * (not journal.counts.get("attempts lost with their nodes"))
    if missing:
        print(f"cluster-test: nothing was shown, for want of: {', '.join(missing)}")
    return not (journal.violations or missing or left)


def wait(threads, seconds, until_all_end=False):
    """Waits, and returns the threads that failed."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        failed = [thread for thread in threads if thread.error]
        if failed or until_all_end and not any(thread.is_alive() for thread in threads):
            return failed
        time.sleep(0.2)
    return [thread for thread in threads if thread.error]
