"""Namespaces for nodes, so that one can be cut off from the database.

Everything is in a network of its own (deploy/cluster-test calls unshare), which ends with the test. Nodes have two lines:
one to the clients and one to the database, each through a bridge. A line that is taken off its bridge loses packets in both
directions without an error, as a broken cable or a failed switch does.
"""

import os
import subprocess

CLIENTS, DATABASE = "10.77.0", "10.78.0"


def ip(*words, **options):
    subprocess.run(["ip", *words], check=True, **options)


class Network:
    """Bridges and namespaces, or the loopback interface if this isn't a network of our own."""

    def __init__(self):
        self.can_cut = os.environ.get("STILLWAVE_OWN_NETWORK") == "1"
        if not self.can_cut:
            self.client_side = self.database_side = "127.0.0.1"
            return
        self.client_side, self.database_side = CLIENTS + ".1", DATABASE + ".1"
        os.makedirs("/run/netns", exist_ok=True)
        # The mounts are our own as well, so that no name of a namespace is left behind.
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run/netns"], check=True)
        ip("link", "set", "lo", "up")
        for bridge, prefix in (("swclients", CLIENTS), ("swdata", DATABASE)):
            ip("link", "add", bridge, "type", "bridge")
            ip("addr", "add", prefix + ".1/24", "dev", bridge)
            ip("link", "set", bridge, "up")

    def add(self, number):
        """Makes the namespace of a node. Returns its address for clients and the words that run a program in it."""
        if not self.can_cut:
            return "127.0.0.1", []
        name = f"swnode{number}"
        ip("netns", "add", name)
        ip("-n", name, "link", "set", "lo", "up")
        for kind, bridge, prefix in (("c", "swclients", CLIENTS), ("d", "swdata", DATABASE)):
            outer = f"sw{kind}{number}"
            ip("link", "add", outer, "type", "veth", "peer", "name", "sw" + kind, "netns", name)
            ip("link", "set", outer, "master", bridge, "up")
            ip("-n", name, "addr", "add", f"{prefix}.{10 + number}/24", "dev", "sw" + kind)
            ip("-n", name, "link", "set", "sw" + kind, "up")
        return f"{CLIENTS}.{10 + number}", ["ip", "netns", "exec", name]

    def cut(self, number):
        """Cuts a node off from the database."""
        ip("link", "set", f"swd{number}", "nomaster")

    def join(self, number):
        """Ends the cut."""
        ip("link", "set", f"swd{number}", "master", "swdata")
