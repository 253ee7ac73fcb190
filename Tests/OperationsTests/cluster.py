"""Runs the commands of docs/cluster.md on one machine: only hosts, ports, paths and names are replaced."""

import contextlib
import hashlib
import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../ClusterTests"))
import backups
import monitoring
import stand_ins
from backups import KEY, SECRET, tone
from database import Pair, Server
from webdriver import free_port, wait

# The blocks of commands by section, in the page's order, and what runs them.
BLOCKS = [
    ("Starting the nodes", "here"), ("Starting the nodes", "here"), ("Trying it", "here"), ("Media in a bucket", "here"), ("Checking a bucket", "here"),
    *[("From one machine to three", "here")] * 4, *[("Backups", "backups.py")] * 4,
]


def blocks():
    """The section and the text of each block of commands."""
    with open("docs/cluster.md", encoding="utf-8") as document:
        lines = document.read().splitlines()
    found, section, block = [], None, None
    for line in lines:
        if block is None:
            if title := re.fullmatch(r"###? (.*)", line):
                section = title[1]
            elif fence := re.fullmatch(r"\s*```(\w*)", line):
                # The other kind is a file's content.
                assert fence[1] in ("sh", ""), line
                block, kind = [], fence[1]
        elif line.strip() == "```":
            if kind:
                found.append((section, "".join(entry + "\n" for entry in block)))
            block = None
        else:
            block.append(line.strip() if section == "From one machine to three" else line)
    return found


class Machine:
    """A machine's folders, in a folder of their own, and the service's addresses."""

    def __init__(self, page, name):
        self.page, self.name = page, name
        self.root = os.path.join(page.folder, name)
        for folder in ("etc/stillwave", "etc/systemd/system/stillwave.service.d", "var/lib/private", "run", "srv"):
            os.makedirs(os.path.join(self.root, folder))
        os.chmod(self.root + "/etc/stillwave", 0o700)
        self.port, self.admin, self.cluster = free_port(), free_port(), free_port()
        # The only differences between the page and what runs. Longer texts come first.
        host, database = "127.0.0.1", f"127.0.0.1:{page.server.port}"
        self.places = [
            ("/etc/systemd/system", self.root + "/etc/systemd/system"), ("/etc/stillwave", self.root + "/etc/stillwave"),
            ("/var/lib/stillwave", self.root + "/var/lib/stillwave"), ("/srv/stillwave", page.folder + "/shared"),
            ("/usr/local/bin/stillwave", page.program), ("db1,db2", f"{database},{database}"),
            ("stillwave@db/", f"stillwave@{database}/"), ("https://store:7480", page.endpoint),
            ("sslmode=verify-full", "sslmode=prefer"), ("10.0.0.1:8080", f"{host}:{self.port}"), ("127.0.0.1:8080", f"{host}:{self.port}"),
            ("10.0.0.1:8081", f"{host}:{self.admin}"), ("10.0.0.1:8090", f"{host}:{self.cluster}"), ("10.0.0.9", host),
            ("AWS_ACCESS_KEY_ID=…", "AWS_ACCESS_KEY_ID=" + KEY), ("AWS_SECRET_ACCESS_KEY=…", "AWS_SECRET_ACCESS_KEY=" + SECRET),
        ]
        self.settings = os.path.join(self.root, "run/settings.json")
        with open(self.settings, "w") as file:
            json.dump({"program": page.program, "root": self.root, "name": name, "places": self.places, "log": page.log}, file)

    def run(self, text, variables=None, **more):
        """Runs a block as printed but for the places. Returns the variables that the next one would find in the shell."""
        for old, new in self.places:
            text = text.replace(old, new)
        assert "…" not in text, text
        environment = {
            "PATH": f"{self.page.folder}/bin:{os.environ['PATH']}", "HOME": self.page.folder + "/home", "LANG": "C.UTF-8",
            "STAND_INS": self.settings, **(variables or {}), **more}
        after = os.path.join(self.root, "run/variables")
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", f"{text}\nenv -0 >{after}"], env=environment, capture_output=True,
                              text=True, timeout=300)
        assert done.returncode == 0, (self.name, text, done.stdout, done.stderr)
        with open(after) as file:
            return dict(entry.split("=", 1) for entry in file.read().split("\0") if entry)

    def ask(self, method, path, body=None, fields={}):
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)) as connection:
            connection.request(method, path, body, fields)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()

    def upload(self, sound, name, fields={}):
        status, _, body = self.ask("POST", f"/v1/recordings?name={name}", sound, fields)
        assert status == 201, body
        id = json.loads(body)["id"]

        def is_ready():
            return json.loads(self.ask("GET", f"/v1/recordings/{id}", None, fields)[2])["waveform"]["state"] == "ready"

        wait("the waveform", is_ready)
        return id

    def metrics(self):
        """What the operators' port says."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}/metrics", timeout=60) as answer:
            return answer.read().decode()

    @property
    def is_running(self):
        return os.path.exists(self.root + "/run/pid")

    def stop(self):
        if self.is_running:
            self.run("systemctl stop stillwave")


class Page:
    """The machines, a database whose user has a password, and a bucket."""

    def __init__(self, program, folder):
        self.folder = folder
        self.machines = []
        self.log = folder + "/called"
        for name in ("bin", "home", "shared", "postgres"):
            os.mkdir(os.path.join(folder, name))
        os.chmod(folder, 0o711)
        # A service that isn't root's may not reach the folder that the program is built in.
        self.program = shutil.copy(program, folder + "/program")
        for name in ("stillwave", "systemctl", "docker"):
            os.symlink(os.path.abspath(stand_ins.__file__), f"{folder}/bin/{name}")
        if os.getuid() == 0:
            shutil.chown(folder + "/postgres", Pair.prefix()[1].split("=")[1])
        self.server = Server("one", folder + "/postgres", "127.0.0.1", free_port())
        self.server.create()
        with open(self.server.data + "/pg_hba.conf") as file:
            access = file.read()
        with open(self.server.data + "/pg_hba.conf", "w") as file:
            file.write("host stillwave stillwave all scram-sha-256\n" + access)
        self.server.start()
        self.server.sql("ALTER ROLE stillwave PASSWORD 'secret'")
        self.store = None
        self.store_program = os.path.join(os.path.dirname(program), "BucketServer")

    def renew(self):
        """Makes the database and the bucket empty."""
        self.server.sql("DROP DATABASE IF EXISTS stillwave WITH (FORCE)")
        self.server.sql("CREATE DATABASE stillwave")
        if self.store:
            self.store.kill()
            self.store.wait()
        self.store = subprocess.Popen([self.store_program, "recordings", KEY, SECRET], stdout=subprocess.PIPE, text=True)
        self.endpoint = self.store.stdout.readline().strip()

    def machine(self, name):
        self.machines.append(Machine(self, name))
        return self.machines[-1]

    def stop(self):
        for machine in self.machines:
            with contextlib.suppress(Exception):
                machine.stop()
        if self.store:
            self.store.kill()
        self.server.kill()


def every_command_for_several_machines_works(program, folder):
    """Runs each block of the page; those about backups are run by backups.py."""
    if not os.path.exists(os.path.join(os.path.dirname(program), "BucketServer")):
        return False
    found = blocks()
    assert [section for section, _ in found] == [section for section, _ in BLOCKS], [section for section, _ in found]
    assert [text for (_, text), (_, place) in zip(found, BLOCKS) if place == "backups.py"] == backups.blocks()[1:]
    texts = iter([text for (_, text), (_, place) in zip(found, BLOCKS) if place == "here"])
    page = Page(program, folder)
    try:
        making_the_database(page, next(texts))
        starting(page, next(texts))
        trying(page, next(texts))
        bucket(page, next(texts), next(texts))
        moving(page, next(texts), next(texts), next(texts), next(texts))
        assert next(texts, None) is None
        # No stand-in was called in vain: each notes its call at its end.
        with open(page.log) as file:
            called = file.read()
        for words in ("docker compose", "systemctl start", "systemctl stop", "systemctl daemon-reload", "stillwave serve"):
            assert words in called, words
    finally:
        page.stop()
    return True


def making_the_database(page, block):
    """Nobody but the nodes' role and superusers can connect to the database, in which a node then makes its tables."""
    page.renew()
    # The test's superuser has the name of the page's role already.
    assert block.count("stillwave") == 4, block
    superuser = {"PGHOST": page.server.folder, "PGPORT": str(page.server.port), "PGUSER": "stillwave"}
    machine = page.machine("database")
    machine.run(block.replace("stillwave", "waves"), superuser)
    page.server.sql("CREATE ROLE stranger LOGIN")

    def connect(role):
        return subprocess.run(["psql", "-XAtc", "SELECT 1", "-d", "waves"], capture_output=True, text=True,
                              env={**os.environ, **superuser, "PGUSER": role})

    refused = connect("stranger")
    assert refused.returncode != 0 and "permission denied for database" in refused.stderr, refused
    assert connect("waves").stdout == "1\n"
    machine.run("stillwave serve --media file:///srv/stillwave --data /var/lib/stillwave --node n1",
                STILLWAVE_CATALOG=f"postgres://waves@127.0.0.1:{page.server.port}/waves", STILLWAVE_LISTEN=f"127.0.0.1:{machine.port}")
    machine.upload(tone(5), "first.wav")
    machine.stop()
    shutil.rmtree(page.folder + "/shared")
    os.mkdir(page.folder + "/shared")
    page.server.sql("DROP DATABASE waves WITH (FORCE)")


def starting(page, block):
    """Two nodes share a folder."""
    page.renew()
    one, two = page.machine("folder1"), page.machine("folder2")
    for machine, text in ((one, block), (two, block.replace("--node n1", "--node n2"))):
        machine.run(text, STILLWAVE_LISTEN=f"127.0.0.1:{machine.port}")
    id = one.upload(tone(1), "shared.wav")
    assert two.ask("GET", f"/v1/recordings/{id}/audio")[2] == tone(1)
    for machine in (one, two):
        machine.stop()


def trying(page, block):
    page.machine("compose").run(block)


def bucket(page, serve, check):
    """Two nodes share a bucket, and it is checked while they work."""
    page.renew()
    one, two = page.machine("bucket1"), page.machine("bucket2")
    for machine, text in ((one, serve), (two, serve.replace("--node n1", "--node n2"))):
        variables = machine.run(text, STILLWAVE_LISTEN=f"127.0.0.1:{machine.port}")
    id = one.upload(tone(2), "in-the-bucket.wav")
    assert two.ask("GET", f"/v1/recordings/{id}/audio")[2] == tone(2)
    two.run(check, variables)
    for machine in (one, two):
        machine.stop()


def moving(page, away, node, empty, back):
    """A service with keys becomes three nodes, and one service again. A shared link works all the time."""
    page.renew()
    first = page.machine("n1")
    shutil.copy("deploy/stillwave.service", first.root + "/etc/systemd/system/")
    shutil.copy("deploy/stillwave-keys.conf", first.root + "/etc/systemd/system/stillwave.service.d/keys.conf")
    with open(os.open(first.root + "/etc/stillwave/s3-key", os.O_WRONLY | os.O_CREAT, 0o600), "w") as file:
        file.write(f"[default]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n")
    keys = first.root + "/etc/stillwave/keys.jsonl"
    secret = subprocess.run([page.program, "keys", "add", "app", "--keys", keys, "--tenant", "acme", "--scopes", "read,write"],
                            check=True, capture_output=True, text=True).stdout.strip()
    bearer = {"Authorization": f"Bearer {secret}"}
    # The keys' default is a port that another service may have; nodes have theirs from node.conf.
    admin = first.root + "/etc/systemd/system/stillwave.service.d/admin.conf"
    with open(admin, "w") as file:
        file.write(f"[Service]\nEnvironment=STILLWAVE_ADMIN_LISTEN=127.0.0.1:{first.admin}\n")
    first.run("systemctl daemon-reload\nsystemctl start stillwave")
    id = first.upload(tone(3), "moved.wav", bearer)

    def link(machine):
        status, _, body = machine.ask("POST", "/v1/tokens", json.dumps({"recording": id}), {**bearer, "Content-Type": "application/json"})
        assert status == 201, body
        return f"/v1/recordings/{id}/audio?token={json.loads(body)['token']}"

    shared = link(first)
    private = first.root + "/var/lib/private/stillwave"
    with open(private + "/token-secret") as file:
        signing = file.read()

    def check(machine, *recordings):
        assert machine.ask("GET", shared)[2] == tone(3), "the link that was shared before the move works"
        assert machine.ask("GET", link(machine))[2] == tone(3)
        for name, sound in recordings:
            status, _, body = machine.ask("GET", f"/v1/recordings/{name}/audio", None, bearer)
            assert status == 200 and hashlib.sha256(body).digest() == hashlib.sha256(sound).digest(), (machine.name, status)

    check(first)
    first.run(away)
    assert not first.is_running and os.stat(first.root + "/etc/stillwave/token-secret").st_mode & 0o777 == 0o600
    nodes = [first]
    for name in ("n2", "n3"):
        nodes.append(page.machine(name))
        shutil.rmtree(nodes[-1].root + "/etc")
        shutil.copytree(first.root + "/etc", nodes[-1].root + "/etc")
        os.remove(nodes[-1].root + "/etc/systemd/system/stillwave.service.d/admin.conf")
    for machine in nodes:
        machine.run(node)
    for machine in nodes:
        check(machine)
    # What is still there is the complete service.
    assert os.path.exists(private + "/catalog.sqlite") and os.path.islink(first.root + "/var/lib/stillwave")
    first.run(empty)
    assert os.listdir(private) == [] and os.path.islink(first.root + "/var/lib/stillwave")
    later = nodes[1].upload(tone(4), "later.wav", bearer)
    for machine in nodes:
        check(machine, (later, tone(4)))
    # With a bucket, other nodes, and jobs that have ended, the nodes have all metrics.
    monitoring.check_names("".join(machine.metrics() for machine in nodes))
    for machine in nodes[1:]:
        machine.stop()
    first.run(back)
    check(first, (later, tone(4)))
    with open(private + "/token-secret") as file:
        assert file.read() == signing, "the secret isn't replaced"
    owners = {os.stat(os.path.join(place, name)).st_uid for place, _, names in os.walk(private) for name in names}
    assert owners == {stand_ins.USER if os.getuid() == 0 else os.getuid()}, owners
    first.stop()
