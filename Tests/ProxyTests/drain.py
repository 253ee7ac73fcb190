"""Stops and restarts the service under load, behind nginx and Caddy: no request of 50 clients may fail. See deploy/proxies."""

import http.client
import json
import os
import re
import shutil
import signal
import struct
import subprocess
import threading

from walk import LOG, Process, blocks, replaced
from webdriver import free_port, wait

CLIENTS = 50
# Answers that each client must have had before the next thing happens.
ROUND = 8


def tiny_wave(number):
    """A short sound, different for each number."""
    samples = struct.pack("<800h", *((number * 31 + k * 7) % 2000 - 1000 for k in range(800)))
    return (b"RIFF" + struct.pack("<I", 36 + len(samples)) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 16000, 2, 16)
            + b"data" + struct.pack("<I", len(samples)) + samples)


class Service:
    """A service that can be stopped and started again at the same address, with the same recordings."""

    def __init__(self, binary, folder, name, *words):
        self.port, self.folder, self.name = free_port(), folder, name
        self.words = [binary, "serve", "--listen", f"127.0.0.1:{self.port}", "--data", os.path.join(folder, name),
                      "--trusted-proxies", "127.0.0.1", "--max-queued-jobs", "100000", "--max-queued-jobs-per-client", "100000",
                      *words]
        self.start()

    def start(self):
        self.process = Process(self.name, self.words, self.folder)
        wait(f"{self.name} answers", lambda: self.process.answers(self.port))

    @property
    def pid(self):
        return self.process.pid

    def stop(self):
        """Ends it as a service manager does. Returns when it has ended."""
        self.process.process.send_signal(signal.SIGTERM)
        status = self.process.process.wait(60)
        assert status == 0, f"the service ended with {status}: {open(self.process.log).read()[-2000:]}"


class Load:
    """Clients that send one request after another on connections that they keep, until the end of the block."""

    def __init__(self, port, request):
        """`request(connection, client, number)` sends one and returns its status."""
        self.port, self.request = port, request
        self.answered, self.failed = [0] * CLIENTS, []
        self.is_over = threading.Event()
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
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=90)
        number = 0
        while not self.is_over.is_set():
            try:
                status = self.request(connection, client, number)
                if not 200 <= status < 300:
                    self.failed.append(status)
            except (OSError, http.client.HTTPException) as error:
                self.failed.append(repr(error))
                connection.close()
            number += 1
            self.answered[client] = number
        connection.close()

    def more(self):
        """Waits until each client has had some more answers."""
        before = list(self.answered)
        wait("every client is served", lambda: all(now >= then + ROUND for now, then in zip(self.answered, before)))


def send(connection, method, path, body=None, fields={}):
    connection.request(method, path, body, fields)
    answer = connection.getresponse()
    content = answer.read()
    return answer.status, content


def stop_beside_another(binary, folder):
    """nginx passes requests on to a second service while the first one is stopped. Uploads can't be sent again, so the
    one that is stopped must answer every request that it has been given."""
    first, second = Service(binary, folder, "first"), Service(binary, folder, "second")
    port = free_port()
    temporary = "".join(f"{name}_temp_path {folder}/held-{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    path = os.path.join(folder, "drain.conf")
    with open(path, "w") as file:
        file.write(f"""daemon off; master_process off; pid {folder}/drain.pid; error_log stderr;
events {{}}
http {{
access_log off;
{temporary}
upstream stillwave {{
  server 127.0.0.1:{first.port} max_fails=0;
  server 127.0.0.1:{second.port} backup;
}}
server {{
  listen 127.0.0.1:{port};
  location / {{
    proxy_pass http://stillwave;
    proxy_http_version 1.1;
    proxy_set_header Host $http_host;
    proxy_request_buffering off;
    proxy_buffering off;
  }}
}}
}}
""")

    def request(connection, client, number):
        if number % 4:
            return send(connection, "GET", "/v1/recordings?limit=2")[0]
        return send(connection, "POST", f"/v1/recordings?name={client}", tiny_wave(client * 1000 + number))[0]

    with first.process, second.process, \
            Process("drain-nginx", [shutil.which("nginx") or "/usr/sbin/nginx", "-p", folder, "-c", path], folder) as nginx:
        wait("nginx answers", lambda: nginx.answers(port))
        with Load(port, request) as load:
            for _ in range(3):
                first.stop()
                load.more()
                first.start()
                load.more()
        first.process.__exit__()
    assert not load.failed, (len(load.failed), load.failed[:10])
    return sum(load.answered)


def restart(binary, folder):
    """Requests wait in Caddy while the service is restarted at the same address, as docs/proxies.md prints it."""
    service, port = Service(binary, folder, "restarted"), free_port()
    site = replaced(blocks("caddyfile")[0], ("audio.example.com {\n", f"http://127.0.0.1:{port} {{\n"), ("127.0.0.1:8080", f"127.0.0.1:{service.port}"),
                    (LOG, "{\n\tadmin off\n\tlog {"))
    path = os.path.join(folder, "Caddyfile-restart")
    with open(path, "w") as file:
        file.write(site)
    connection = http.client.HTTPConnection("127.0.0.1", service.port)
    status, content = send(connection, "POST", "/v1/recordings?name=shared.wav", tiny_wave(0))
    assert status == 201, content
    shared = json.loads(content)["id"]
    connection.close()

    def request(connection, client, number):
        # Without bodies: Caddy 2.6 closes the body of a request that finds no service, and can't send it again.
        path = ("", "/audio", "/labels", "/waveform")[number % 4]
        return send(connection, "GET", f"/v1/recordings/{shared}{path}")[0]

    environment = dict(os.environ, HOME=folder, XDG_DATA_HOME=folder, XDG_CONFIG_HOME=folder)
    with Process("restart-caddy", ["caddy", "run", "--adapter", "caddyfile", "--config", path], folder, env=environment) as caddy:
        wait("Caddy answers", lambda: caddy.answers(port))
        with Load(port, request) as load:
            for _ in range(3):
                service.stop()
                service.start()
                load.more()
        service.process.__exit__()
    assert not load.failed, (len(load.failed), load.failed[:10])
    return sum(load.answered)


def run(binary, folder):
    for name, test in (("a stopped service, beside another one, behind nginx", stop_beside_another),
                       ("a restarted service behind Caddy", restart)):
        print(f"  ok      {name}: 3 stops, {CLIENTS} clients, {test(binary, folder)} requests, none failed", flush=True)
