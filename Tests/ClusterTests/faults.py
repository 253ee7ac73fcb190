"""What befalls the cluster, one thing after another on the nodes and another on the database."""

import random
import signal
import threading
import time

NODE_FAULTS = ("kill -9", "stop", "cut", "drain", "clock set", "disk full", "cache gone")
DATABASE_FAULTS = ("server crash", "failover", "standby hangs")


class Faults(threading.Thread):
    """Causes faults until the end, each kind once before any comes again. `times` lists when each began."""

    def __init__(self, cluster, kinds, seed, pause):
        super().__init__(daemon=True, name=kinds[0])
        self.cluster, self.kinds, self.pause, self.random = cluster, kinds, pause, random.Random(f"{seed} {kinds}")
        self.times, self.error = [], None

    def run(self):
        try:
            while not self.cluster.is_ending.wait(self.random.uniform(*self.pause)):
                kinds = list(self.kinds)
                self.random.shuffle(kinds)
                for kind in kinds:
                    self.times.append((time.time(), kind))
                    self.cluster.journal.write(fault=kind)
                    self.cause(kind)
                    if self.cluster.is_ending.wait(self.random.uniform(*self.pause)):
                        return
        except Exception as error:  # noqa: BLE001, because the main thread must hear of it
            self.error = error

    def cause(self, kind):
        self.look_for_crashes()
        node, lease = self.random.choice(self.cluster.nodes), self.cluster.lease
        seconds = self.random.uniform(lease + 1, lease + 5)
        if kind == "kill -9":
            node.kill()
            time.sleep(self.random.uniform(0, lease + 2))
            self.bring_back(node)
        elif kind == "stop":
            workers = self.random.random() < 0.5
            node.signal(signal.SIGSTOP, workers)
            time.sleep(seconds)
            node.signal(signal.SIGCONT, workers)
        elif kind == "cut":
            self.cluster.network.cut(node.number)
            time.sleep(seconds)
            self.cluster.network.join(node.number)
        elif kind == "drain":
            if not node.drain():
                self.cluster.journal.violation("lost", f"{node.name} didn't end by itself when it was drained")
            self.bring_back(node)
        elif kind == "clock set":
            node.set_clock(self.random.randint(-self.cluster.skew, self.cluster.skew))
        elif kind == "disk full":
            node.fill_disk(seconds)
        elif kind == "cache gone":
            node.remove_cache()
        elif kind == "server crash":
            self.cluster.database.crash(self.random.uniform(0, 3))
        elif kind == "failover":
            self.cluster.database.fail_over(self.random.uniform(0, 2))
        elif kind == "standby hangs":
            # Often longer than the servers wait for each other, which is 5 s.
            self.cluster.database.hang_standby(self.random.uniform(1, 10))
        else:
            # Often longer than a node's patience with the store, and now and then longer than a request's.
            self.cluster.bucket.cause(kind, self.random.choice([2, 6, 6, 35]) * self.random.uniform(0.5, 1), self.random)

    def look_for_crashes(self):
        """Notes nodes that have ended although no fault ended them."""
        for node in self.cluster.nodes if "kill -9" in self.kinds else []:
            status = node.process.poll()
            if status is not None:
                self.cluster.journal.violation("lost", f"{node.name} ended by itself, with status {status}")
                self.bring_back(node)

    def bring_back(self, node):
        """Starts a node, again if the database is away, or if the store is or refuses the key."""
        end = time.monotonic() + 120
        while time.monotonic() < end:
            node.start()
            try:
                return node.wait(15)
            except RuntimeError:
                if node.process.poll() not in (None, 1):
                    self.cluster.journal.violation("lost", f"{node.name} didn't start, with status {node.process.poll()}")
                node.kill()
                time.sleep(0.5)
        raise RuntimeError(f"{node.name} doesn't start:\n{node.output()[-3000:]}")
