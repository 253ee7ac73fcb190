"""Nodes of a cluster, each in a network of its own that can be cut off."""

import os
import signal
import subprocess
import threading
import time


class Node:
    """A service on 10.213.NUMBER.2, whose database is at 10.213.NUMBER.1."""

    def __init__(self, number, program, folder, database, lease, arguments=()):
        self.number, self.name = number, f"n{number}"
        self.gateway, self.host = f"10.213.{number}.1", f"10.213.{number}.2"
        self.space, self.link = f"stillwave{number}-{os.getpid()}", f"sw{number}h{os.getpid() % 10000}"
        self.folder, self.process = folder, None
        # Held while a fault lasts, so that no other one begins on this node.
        self.lock = threading.Lock()
        self.words = [
            "ip", "netns", "exec", self.space, program, "serve", "--listen", f"{self.host}:8080", "--allowed-hosts",
            self.host, "--catalog", database.url(self.gateway), "--media", "file://" + os.path.join(folder, "media"),
            "--data", os.path.join(folder, self.name), "--node", self.name, "--lease", str(lease), "--log-level", "notice",
            *arguments]
        self.lay()

    def lay(self):
        inside = f"{self.link}i"[:15]
        for words in (
            ["netns", "add", self.space], ["link", "add", self.link, "type", "veth", "peer", "name", inside],
            ["link", "set", inside, "netns", self.space], ["addr", "add", f"{self.gateway}/24", "dev", self.link],
            ["link", "set", self.link, "up"],
            ["-n", self.space, "addr", "add", f"{self.host}/24", "dev", inside],
            ["-n", self.space, "link", "set", inside, "up"], ["-n", self.space, "link", "set", "lo", "up"],
        ):
            subprocess.run(["ip", *words], check=True)

    def remove(self):
        self.kill()
        subprocess.run(["ip", "link", "del", self.link], stderr=subprocess.DEVNULL)
        subprocess.run(["ip", "netns", "del", self.space], stderr=subprocess.DEVNULL)

    def start(self):
        with open(os.path.join(self.folder, f"{self.name}.log"), "ab") as log:
            self.process = subprocess.Popen(self.words, stdout=subprocess.DEVNULL, stderr=log, start_new_session=True)

    def signal(self, number):
        if self.process and self.process.poll() is None:
            os.kill(self.process.pid, number)

    def kill(self):
        self.signal(signal.SIGKILL)
        if self.process:
            self.process.wait()

    def cut(self, seconds):
        subprocess.run(["ip", "link", "set", self.link, "down"], check=True)
        time.sleep(seconds)
        subprocess.run(["ip", "link", "set", self.link, "up"], check=True)
