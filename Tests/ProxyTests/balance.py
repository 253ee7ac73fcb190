"""Runs deploy/haproxy.cfg in front of three nodes that share a catalog and a folder. See deploy/proxies."""

import contextlib
import hashlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time

from drain import Service, tiny_wave
from walk import NAME, ROOT, TOKEN, Body, HELD_BACK, PROXY_MEMORY, Process, Walk, certify, replaced
from webdriver import free_port, wait

sys.path.insert(0, os.path.join(ROOT, "Tests/ClusterTests"))
from database import Pair

CLIENTS = 20
# A node that leaves gets its last request within this time.
LEAVES_SECONDS = 2


class Front(Walk):
    """What a client does at the balancer."""

    def __init__(self, process, port, folder, length):
        super().__init__(process, process, port, folder, "", length)
        self.log = process.log

    def incoming(self):
        """The nodes' shared folder has a folder of files in progress for each node."""
        return sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(self.folder + "/media/incoming")
                   for name in names)

    def text(self, since=0):
        """HAProxy's log from a position on."""
        with open(self.log, "rb") as file:
            file.seek(since)
            return file.read().decode(errors="replace")

    def served(self, since=0, backend="nodes"):
        """The requests in that part of the log: (node, status, method, path)."""
        return re.findall(rf" {backend}/(\S+) \S+ (\d+) \d+ \S+ (\S+) (\S+)$", self.text(since), re.M)

    def status_of(self, node, path):
        """The status of an answer of a node itself."""
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", node.port, timeout=10)) as connection:
            connection.request("GET", path)
            return connection.getresponse().status

    def position(self):
        return os.path.getsize(self.log)

    def add(self, number):
        status, fields, body = self.ask("POST", f"/v1/recordings?name={number}.wav", tiny_wave(number), {"Origin": self.origin})
        assert status == 201, (status, body)
        return fields["Location"]


class Readers:
    """Clients that read recordings on connections that they keep, until the end of the block."""

    def __init__(self, front, recordings):
        self.front, self.recordings = front, recordings
        self.failed, self.answered, self.is_over = [], [0] * CLIENTS, threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(client,)) for client in range(CLIENTS)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        self.more()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        for thread in self.threads:
            thread.join()

    def run(self, client):
        connection, number = self.front.connect(), client
        while not self.is_over.is_set():
            path = self.recordings[number % len(self.recordings)] + ("", "/audio", "/waveform?width=100", "/labels")[number % 4]
            try:
                connection.request("GET", path)
                answer = connection.getresponse()
                body = answer.read()
                if answer.status != 200:
                    self.failed.append((path, answer.status, body[:200]))
            except OSError as error:
                self.failed.append((path, repr(error)))
                connection.close()
                connection = self.front.connect()
            number += 1
            self.answered[client] += 1
        connection.close()

    def more(self):
        before = list(self.answered)
        wait("every client is served", lambda: all(now >= then + 8 for now, then in zip(self.answered, before)))


def configuration(folder, nodes, port):
    with open(os.path.join(ROOT, "deploy/haproxy.cfg")) as file:
        text = file.read()
    certify(folder)
    with open(folder + "/both.pem", "w") as both:
        for name in ("certificate.pem", "key.pem"):
            with open(os.path.join(folder, name)) as part:
                both.write(part.read())
    text = replaced(
        text, ("bind :80\n", f"bind 127.0.0.1:{free_port()}\n"), ("bind :443 ", f"bind 127.0.0.1:{port} "),
        ("/etc/haproxy/audio.example.com.pem", folder + "/both.pem"),
        *((f"10.0.0.{number}:8080", f"127.0.0.1:{node.port}") for number, node in enumerate(nodes, 1)))
    path = os.path.join(folder, "haproxy.cfg")
    with open(path, "w") as file:
        file.write(text)
    return path


def goes_to_one_node(front, recordings):
    """What is asked about one recording or job reaches one node; the rest is divided."""
    since = front.position()
    for location in recordings:
        for path in ("", "/audio", "/waveform", "/peaks.json"):
            assert front.ask("GET", location + path)[0] == 200
    # Chance divides them: that one of three nodes gets none happens once in 90 million times.
    for _ in range(48):
        assert front.ask("GET", "/v1/recordings?limit=1")[0] == 200
    served = front.served(since)
    chosen = [{node for node, _, _, path in served if path.startswith(location)} for location in recordings]
    assert all(len(nodes) == 1 for nodes in chosen), chosen
    assert len(set.union(*chosen)) == 3, "the recordings are divided among the nodes"
    assert len({node for node, _, _, path in served if path == "/v1/recordings"}) == 3
    for path in ("/readyz", "/metrics", "/%6Detrics", "/audio/metrics", "/metrics?x"):
        assert front.ask("GET", path)[0] == 404, path


def streams_an_upload(front):
    """A body arrives at a node as it is sent, and isn't kept by the balancer."""
    body, connection, half = Body(front.length), front.connect(), front.length // 2
    connection.putrequest("POST", "/v1/recordings?name=long.wav")
    connection.putheader("Content-Length", str(front.length))
    connection.putheader("Origin", front.origin)
    connection.endheaders()
    body.send(connection, half)
    wait("the first half reaches a node", lambda: front.incoming() >= half - HELD_BACK)
    body.send(connection, front.length)
    answer = connection.getresponse()
    recording = json.loads(answer.read())
    assert answer.status == 201 and recording["sha256"] == body.hash.hexdigest(), recording
    assert front.front.memory < PROXY_MEMORY + (16 << 20), f"HAProxy has taken {front.front.memory} bytes of memory"
    location = answer.headers["Location"]
    front.ranges(location)
    wait("its waveform is ready", lambda: front.json(location)["waveform"]["state"] == "ready")
    return location


def takes_an_upload_over_http2(front):
    body = Body(min(front.length, 20_000_000))
    whole = (body.head + body.piece * (body.length // len(body.piece) + 1))[:body.length]
    answer = subprocess.run(
        ["curl", "--silent", "--show-error", "--http2", "--cacert", front.folder + "/certificate.pem", "--resolve",
         f"{NAME}:{front.port}:127.0.0.1", "--data-binary", "@-", "--write-out", " %{http_version}", f"{front.origin}/v1/recordings"],
        input=whole, capture_output=True)
    text, _, version = answer.stdout.decode().rpartition(" ")
    assert version == "2", (answer.stdout, answer.stderr)
    assert json.loads(text)["sha256"] == hashlib.sha256(whole).hexdigest(), text


def leaves_a_node_that_drains(front, nodes, recordings, location):
    """While a node finishes its job, it gets no more requests."""
    job, node, worker = front.stopped_job(location, nodes)
    with Readers(front, recordings) as readers:
        node.process.process.send_signal(signal.SIGTERM)
        time.sleep(LEAVES_SECONDS)
        since = front.position()
        readers.more()
        # One that was sent before may be logged only now.
        late = [entry for entry in front.served(since) if entry[0] == node.name]
        assert len(late) <= CLIENTS, late[:10]
        since = front.position()
        readers.more()
        assert not [entry for entry in front.served(since) if entry[0] == node.name]
        assert node.process.process.poll() is None, "it ended before its job: " + node.process.text()
        os.kill(worker, signal.SIGCONT)
        assert node.process.process.wait(120) == 0
        assert front.json(job)["state"] == "succeeded"
        node.start()
        wait("it is back", lambda: any(entry[0] == node.name for entry in front.served(since)))
    assert not readers.failed, (len(readers.failed), readers.failed[:5])
    return sum(readers.answered)


def leaves_a_node_that_dies(front, nodes, recordings):
    """Requests that a killed node can't answer are answered by others, if they only read."""
    with Readers(front, recordings) as readers:
        for node in nodes:
            node.process.process.kill()
            node.process.process.wait()
            time.sleep(LEAVES_SECONDS)
            since = front.position()
            readers.more()
            assert not [entry for entry in front.served(since) if entry[0] == node.name]
            node.start()
            wait("it is back", lambda: any(entry[0] == node.name for entry in front.served(since)))
    assert not readers.failed, (len(readers.failed), readers.failed[:5])
    return sum(readers.answered)


class SilentNode:
    """A node that is ready, and that closes the connection of any other request without an answer."""

    def __init__(self, requests):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port, self.requests = self.listener.getsockname()[1], requests
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while True:
            with contextlib.suppress(OSError), self.listener.accept()[0] as connection:
                line = connection.recv(65536).split(b"\r\n")[0].decode()
                if "/readyz" in line:
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                else:
                    self.requests.append(line.split()[0])


def repeats_only_reads(folder):
    """A request that a node has received and not answered is sent to another one only if it changes nothing."""
    requests, port = [], free_port()
    path = configuration(folder, [SilentNode(requests) for _ in range(3)], port)
    with Process("haproxy", ["/usr/sbin/haproxy", "-f", path], folder) as haproxy:
        wait("HAProxy answers", lambda: haproxy.answers(port))
        front = Front(haproxy, port, folder, 0)
        for method, body in (("POST", "sound"), ("PATCH", "{}"), ("DELETE", None), ("PUT", "labels")):
            status, _, _ = front.ask(method, "/v1/recordings/0", body)
            assert status == 502 and requests == [method], (method, status, requests)
            requests.clear()
        assert front.ask("GET", "/v1/recordings/0")[0] == 502 and requests == ["GET"] * 4, requests


def answers_without_the_store(program, folder):
    """While the store is dead, no node is ready, and each answers what it can, through the balancer, too."""
    key, secret = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCY"
    with open(os.open(folder + "/key", os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        file.write(f"[default]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n")
    port = free_port()
    with contextlib.ExitStack() as stack:
        database = Pair(folder, "127.0.0.1", (free_port(), free_port()), standby=False)
        stack.callback(database.stop)
        store = subprocess.Popen([store_program(program), "recordings", key, secret], stdout=subprocess.PIPE, text=True)
        stack.callback(store.kill)
        endpoint = store.stdout.readline().strip()
        nodes = [
            Service(program, folder, name, "--catalog", database.url, "--media", "s3://recordings", "--s3-endpoint", endpoint,
                    "--s3-credentials", folder + "/key", "--node", name, "--allowed-hosts", NAME) for name in ("n1", "n2", "n3")]
        for node in nodes:
            stack.callback(lambda node=node: node.process.__exit__())
        haproxy = stack.enter_context(Process("haproxy", ["/usr/sbin/haproxy", "-f", configuration(folder, nodes, port)], folder))
        wait("HAProxy answers", lambda: haproxy.answers(port))
        front = Front(haproxy, port, folder, 0)
        wait("the nodes are ready", lambda: front.ask("GET", "/v1/recordings")[0] == 200)
        kept, deleted = front.add(1), front.add(2)
        for location in (kept, deleted):
            wait("its waveform is ready", lambda: front.json(location)["waveform"]["state"] == "ready")
        assert front.ask("GET", kept + "/waveform?width=100")[0] == 200
        job = front.json(kept)["waveform"]["job"]
        store.kill()
        wait("no node is ready", lambda: all(front.status_of(node, "/readyz") == 503 for node in nodes))
        assert all(front.status_of(node, "/readyz?own=1") == 200 for node in nodes)
        since = front.position()
        wait("HAProxy has noticed", lambda: front.ask("GET", "/v1/recordings")[0] == 200 and front.served(since, "impaired"))
        since = front.position()
        for method, path, body, expected in (
                ("GET", "/v1/recordings", None, 200), ("GET", kept, None, 200), ("GET", kept + "/labels", None, 200),
                ("GET", kept + "/waveform?width=100", None, 200), ("GET", f"/v1/jobs/{job}?wait=1", None, 200),
                ("PATCH", kept, '{"name":"renamed.wav"}', 200), ("DELETE", deleted, None, 204), ("GET", deleted, None, 404)):
            status, _, answer = front.ask(method, path, body, {"Origin": front.origin})
            assert status == expected, (method, path, status, answer)
        status, fields, answer = front.ask("POST", "/v1/recordings?name=new.wav", tiny_wave(3), {"Origin": front.origin})
        assert status == 503 and "Retry-After" in fields and json.loads(answer)["code"] == "media_unavailable", (status, fields, answer)
        wait("the log has all nine", lambda: len(front.served(since, "impaired")) >= 9)
        assert len(front.served(since, "impaired")) == 9 and not front.served(since), front.text(since)
        # One that drains gets nothing.
        nodes[0].process.process.send_signal(signal.SIGTERM)
        time.sleep(LEAVES_SECONDS)
        since = front.position()
        for _ in range(48):
            assert front.ask("GET", "/v1/recordings")[0] == 200
        assert {node for node, *_ in front.served(since, "impaired")} == {"n2", "n3"}
    print("  ok      HAProxy and three nodes without their store: they answer what they can", flush=True)


def store_program(program):
    return os.path.join(os.path.dirname(program), "BucketServer")


def run(program, folder, length):
    os.mkdir(folder + "/silent")
    repeats_only_reads(folder + "/silent")
    if os.path.exists(store_program(program)):
        os.mkdir(folder + "/dead")
        # PostgreSQL, which isn't root, has its files in it.
        os.chmod(folder, 0o711)
        answers_without_the_store(program, folder + "/dead")
    else:
        print("  left out  the nodes without their store: there is no BucketServer beside the program", flush=True)
    os.mkdir(folder + "/media")
    port = free_port()
    with contextlib.ExitStack() as stack:
        database = Pair(folder, "127.0.0.1", (free_port(), free_port()), standby=False)
        stack.callback(database.stop)
        nodes = [
            Service(program, folder, name, "--catalog", database.url, "--media", f"file://{folder}/media", "--node", name,
                    "--lease", "3", "--drain", "60", "--allowed-hosts", NAME) for name in ("n1", "n2", "n3")]
        for node in nodes:
            stack.callback(lambda node=node: node.process.__exit__())
        path = configuration(folder, nodes, port)
        haproxy = stack.enter_context(Process("haproxy", ["/usr/sbin/haproxy", "-f", path], folder))
        wait("HAProxy answers", lambda: haproxy.answers(port))
        front = Front(haproxy, port, folder, length)
        wait("the nodes are ready", lambda: front.ask("GET", "/v1/recordings")[0] == 200)
        recordings = [front.add(number) for number in range(24)]
        goes_to_one_node(front, recordings)
        location = streams_an_upload(front)
        takes_an_upload_over_http2(front)
        # Also if the job's worker is another node's.
        front.events(location, nodes)
        drained = leaves_a_node_that_drains(front, nodes, recordings, location)
        died = leaves_a_node_that_dies(front, nodes, recordings)
        front.send_tokens(200)
    with open(haproxy.log, errors="replace") as log:
        assert TOKEN not in log.read()
    print(f"  ok      HAProxy and three nodes: {length} bytes in; {drained} requests while a node drained, {died} while each was "
          "killed, none failed", flush=True)
