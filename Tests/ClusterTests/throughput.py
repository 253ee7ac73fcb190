"""What several nodes do together: waveforms a second with one, two and three working nodes, and claims a second.

Each working node is pinned to the same share of the machine, which must leave room for the database, for the node that
answers clients, and for all of them at once. Then the ratio to one node shows what sharing the catalog costs.
"""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

from chaos import Cluster
from database import Pair
from network import Network
from nodes import Node, free_port

V1, V2 = "/sys/fs/cgroup/cpu", "/sys/fs/cgroup"
PERIOD = 20_000


class Share:
    """A group of processes that gets at most this many seconds of processor time per second."""

    def __init__(self, name, cores):
        self.path = None
        with contextlib.suppress(OSError):
            if os.path.exists(V2 + "/cgroup.controllers"):
                with open(V2 + "/cgroup.subtree_control", "w") as file:
                    file.write("+cpu")
                self.make(os.path.join(V2, name), "cpu.max", f"{int(cores * PERIOD)} {PERIOD}")
            else:
                self.make(os.path.join(V1, name), "cpu.cfs_period_us", str(PERIOD))
                with open(self.path + "/cpu.cfs_quota_us", "w") as file:
                    file.write(str(int(cores * PERIOD)))
            return
        self.remove()
        sys.exit("cluster-test: nodes can't be pinned to a share of the machine: that needs root and the controller “cpu” of "
                 "cgroups")

    def make(self, path, name, text):
        os.mkdir(path)
        self.path = path
        with open(os.path.join(path, name), "w") as file:
            file.write(text)

    def wrapper(self):
        """The words that run a program in the group; 0 is the writing process."""
        return ["sh", "-c", f'echo 0 > {self.path}/cgroup.procs && exec "$@"', "sh"]

    def remove(self):
        for _ in range(50):
            try:
                return self.path and os.rmdir(self.path)
            except OSError:
                time.sleep(0.1)


def throughput(program, count, seconds, share, store):
    """Prints how fast `count` recordings of some seconds get their waveforms."""
    folder = tempfile.mkdtemp(prefix="stillwave-cluster-")
    cluster, shares = Cluster([program], folder, lease=10, standby=False, store=store), []
    share = share or round((os.cpu_count() - 0.5) / 3, 2)
    try:
        sound = os.path.join(folder, "sound.flac")
        subprocess.run(["sox", "-n", "-r", "44100", "-c", "2", "-b", "16", sound, "synth", str(seconds), "pinknoise", "vol", "0.5"],
                       check=True)
        front = Node(9, cluster, "--role", "api")
        front.start()
        front.wait()
        print(f"{count} FLAC files of {seconds} s (44.1 kHz, stereo); each node has {share} of {os.cpu_count()} processors, and "
              "one worker")
        print(f"{'nodes':>5}{'seconds':>9}{'hours of sound per minute':>27}{'ratio':>7}")
        first, number = None, 0
        for nodes in (1, 2, 3):
            working, before = [], costs(cluster, [front])
            for _ in range(count):
                upload(front, sound)
            for _ in range(nodes):
                number += 1
                shares.append(Share(f"{os.path.basename(folder)}-{number}", share))
                node = Node(10 + number, cluster, "--role", "work", "--workers", "1", wrapper=shares[-1].wrapper())
                working.append(node)
                node.start()
            wait(cluster, working)
            took, by_node = cluster.database.rows(
                "SELECT (max(finished_at) - min(started_at)) / 1000.0, count(DISTINCT node) FROM "
                f"(SELECT * FROM jobs ORDER BY id DESC LIMIT {count}) AS last")[0]
            after = costs(cluster, [front, *working])
            for node in working:
                node.drain()
            took = float(took)
            first = first or took
            print(f"{nodes:>5}{took:>9.1f}{count * seconds / 60 / took:>27.2f}{first / took:>7.2f}"
                  + ("" if int(by_node) == nodes else f"   only {by_node} had jobs"), flush=True)
        print("a recording, from its upload to its waveform: " + ", ".join(
            f"{(amount - before.get(what, 0)) / count:.1f} {what}" for what, amount in after.items()
            if amount != before.get(what, 0)))
    finally:
        for node in [front, *working] if "working" in locals() else []:
            node.kill()
        cluster.stop()
        for group in shares:
            group.remove()
        shutil.rmtree(folder, ignore_errors=True)


def upload(node, path):
    connection = node.connect(120)
    with contextlib.closing(connection), open(path, "rb") as file:
        connection.request("POST", "/v1/recordings?name=sound.flac", file, {"Content-Length": str(os.path.getsize(path))})
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == 201, body


def costs(cluster, nodes):
    """What the nodes have cost so far: bytes of the catalog's log, and requests to the store."""
    return {"KB of the database's log": cluster.database.written() / 1024, **requests(nodes)}


def requests(nodes):
    """How many requests of each kind the nodes have sent to the store so far."""
    found = {}
    for node in nodes:
        connection = node.connect(10)
        with contextlib.closing(connection):
            connection.request("GET", "/metrics")
            text = connection.getresponse().read().decode()
        for operation, number in re.findall(r'^stillwave_store_requests_total\{operation="(\w+)".*\} (\d+)$', text, re.M):
            what = f"{operation} requests"
            found[what] = found.get(what, 0) + int(number)
    return found


def wait(cluster, nodes):
    while cluster.database.sql("SELECT count(*) FROM jobs WHERE state <> 'succeeded'") != "0":
        for node in nodes:
            assert node.process.poll() is None, node.output()[-3000:]
        failed = cluster.database.sql("SELECT min(error) FROM jobs WHERE state = 'failed'")
        assert not failed, failed
        time.sleep(0.2)


def claims(program, jobs):
    """Prints claims a second and what they write to the log, with the safety of a real server (fsync).

    The pages that claims change have been changed by the filling before, after the last checkpoint, so that hardly any is
    written whole: a page's first change after a checkpoint would be, which depends on how often there is one.
    """
    # Its loopback interface is up from then on.
    Network()
    folder = tempfile.mkdtemp(prefix="stillwave-cluster-")
    pair = Pair(folder, "127.0.0.1", (free_port(), free_port()), standby=False, fsync=True)
    try:
        def measured(what, *words):
            before = pair.written()
            done = subprocess.run([program, pair.url, *map(str, words)], check=True, capture_output=True, text=True, timeout=600)
            number, seconds, refused = done.stdout.split()
            print(f"{what:<44}{int(number) / float(seconds):>9.0f}{(pair.written() - before) / int(number) / 1024:>9.2f}{refused:>9}",
                  flush=True)

        print(f"{jobs} jobs{'':<{44 - len(f'{jobs} jobs')}}{'per s':>9}{'KB of log':>10}{'refused':>9}")
        for nodes in (1, 3):
            measured("(filling)", "fill", jobs)
            measured(f"claim and finish, {nodes} node(s), 8 threads", "work", nodes, 8)
        measured("(filling)", "fill", jobs)
        measured("claim only, 1 node, 8 threads", "claim", 1, 8)
        measured("renew, 8 threads", "renew", 8, 3)
        print("prototype: 1,214 to 1,614 claims/s and 0.95 KB per job with 8 workers; 0.2 to 0.3 KB per renewal")
        # Updates that change no index cost less of the log.
        pair.sql("SELECT pg_stat_force_next_flush()")
        for table, updates, hot in pair.rows(
                "SELECT relname, n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE n_tup_upd > 0 ORDER BY relname"):
            print(f"{table}: {updates} updates, {100 * int(hot) // int(updates)} % of them in the row's page (HOT)")
    finally:
        pair.stop()
        shutil.rmtree(folder, ignore_errors=True)
