#!/usr/bin/env python3
"""Stands in for programs that docs/cluster.md calls: systemctl, docker, and stillwave, of which only `serve` is changed.

Called by the name of the program; the variable STAND_INS names a JSON file with `program`, `root`, `places` (pairs of a text
and what takes its place in units) and `environment`, which every program writes down for the next block of commands.
"""

import json
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
import urllib.request

import yaml

# Of the numbers that systemd gives to dynamic users.
USER = 61184 + 1234


def note(text):
    with open(SETTINGS["log"], "a") as file:
        file.write(text + "\n")


def start(words, environment, log, user=None):
    """Starts a service, and waits until it is ready. Ends with its log if it isn't."""
    prefix = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "--inh-caps=-all"] if user else []
    with open(log, "wb") as file:
        process = subprocess.Popen([*prefix, *words], stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=environment,
                                   cwd="/", start_new_session=True, preexec_fn=lambda: os.umask(0o077))
    address = environment["STILLWAVE_ADMIN_LISTEN"] if "STILLWAVE_KEYS" in environment else environment["STILLWAVE_LISTEN"]
    end = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < end:
        try:
            with urllib.request.urlopen(f"http://{address}/readyz", timeout=10):
                return process
        except OSError:
            time.sleep(0.05)
    process.kill()
    with open(log, errors="replace") as file:
        sys.exit(f"{words} isn't ready:\n{file.read()[-3000:]}")


def stop(pid_file):
    with open(pid_file) as file:
        pid = int(file.read())
    os.kill(pid, signal.SIGTERM)
    end = time.monotonic() + 60
    while os.path.exists(f"/proc/{pid}") and open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] != "Z":
        if time.monotonic() > end:
            sys.exit("the service doesn't end")
        time.sleep(0.05)
    os.unlink(pid_file)


class Unit:
    """The settings of the unit and its drop-ins that say what the service gets: files, variables, and folders."""

    def __init__(self, root):
        self.root = root
        self.environment, self.credentials, self.states, self.files = {}, {}, [], []
        self.command = None
        folder = root + "/run/loaded"
        names = ["stillwave.service", *(f"stillwave.service.d/{name}" for name in sorted(os.listdir(folder + "/stillwave.service.d")))]
        for name in names:
            with open(f"{folder}/{name}") as file:
                text = file.read()
            for old, new in SETTINGS["places"]:
                text = text.replace(old, new)
            for line in text.splitlines():
                key, _, value = line.partition("=")
                self.read(key, value)

    def read(self, key, value):
        for letter, place in (("%d", self.root + "/run/credentials"), ("%S", self.root + "/var/lib"), ("%H", SETTINGS["name"])):
            value = value.replace(letter, place)
        if key == "Environment":
            name, _, text = value.partition("=")
            self.environment[name] = text
        elif key == "EnvironmentFile":
            self.files.append(value)
        elif key == "LoadCredential":
            name, _, path = value.partition(":")
            self.credentials[name] = path
        elif key == "StateDirectory":
            self.states = self.states + [value] if value else []
        elif key == "ExecStart":
            self.command = value.split()

    def start(self):
        user = USER if os.getuid() == 0 else None
        for path in self.files:
            with open(path) as file:
                self.environment |= dict(line.strip().split("=", 1) for line in file if "=" in line)
        credentials = self.root + "/run/credentials"
        shutil.rmtree(credentials, ignore_errors=True)
        os.mkdir(credentials, 0o700)
        for name, path in self.credentials.items():
            shutil.copyfile(path, f"{credentials}/{name}")
            os.chmod(f"{credentials}/{name}", 0o400)
        if user:
            for path in (credentials, *(f"{credentials}/{name}" for name in self.credentials)):
                os.chown(path, user, user)
        for name in self.states:
            self.make_state(name, user)
        return start(self.command, {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **self.environment}, self.root + "/run/log", user)

    def make_state(self, name, user):
        """As systemd does for a dynamic user: a link to a folder that belongs to the user with all that is in it, unless the
        folder itself belongs to it already."""
        link, private = f"{self.root}/var/lib/{name}", f"{self.root}/var/lib/private/{name}"
        if os.path.isdir(link) and not os.path.islink(link):
            os.rename(link, private)
        os.makedirs(private, 0o700, exist_ok=True)
        if not os.path.islink(link):
            os.symlink("private/" + name, link)
        if user and os.stat(private).st_uid != user:
            for folder, folders, files in os.walk(private):
                for entry in [folder, *(os.path.join(folder, entry) for entry in folders + files)]:
                    os.lchown(entry, user, user)


def systemctl(words):
    root = SETTINGS["root"]
    pid_file = root + "/run/pid"
    if words == ["daemon-reload"]:
        shutil.rmtree(root + "/run/loaded", ignore_errors=True)
        shutil.copytree(root + "/etc/systemd/system", root + "/run/loaded")
    elif words == ["start", "stillwave"]:
        process = Unit(root).start()
        with open(pid_file, "w") as file:
            file.write(str(process.pid))
    elif words == ["stop", "stillwave"]:
        stop(pid_file)
    else:
        sys.exit(f"systemctl {words} isn't known here")


def docker(words):
    """Checks what `docker compose` needs of the commands before it."""
    path = "deploy/compose.cluster.yaml"
    if words != ["compose", "-f", path, "up", "--build", "-d"]:
        sys.exit(f"docker {words} isn't known here")
    with open(path) as file:
        text = file.read()
    for name in set(re.findall(r"(?<!\$)\$\{(\w+):\?", text)):
        if not os.environ.get(name):
            sys.exit(f"compose refuses the file: {name} isn't set")
    for name in ("STILLWAVE_DATABASE_PASSWORD", "STILLWAVE_STORE_SECRET"):
        if not re.fullmatch(r"[0-9a-zA-Z]{16,}", os.environ[name]):
            sys.exit(f"{name} can't be part of an address")
    for secret in yaml.safe_load(text)["secrets"].values():
        path = os.path.expandvars(re.sub(r":\?[^}]*", "", secret["file"]))
        status = os.stat(path)
        if not status.st_mode & stat.S_IROTH or status.st_size < 33:
            sys.exit(f"the nodes' user can't read {path}, or it is too short")
        if os.stat(os.path.dirname(path)).st_mode & 0o077:
            sys.exit(f"every user of the machine can reach {path}")


def stillwave(words):
    if words[:1] != ["serve"]:
        os.execv(SETTINGS["program"], ["stillwave", *words])
    root = SETTINGS["root"]
    process = start([SETTINGS["program"], *words], dict(os.environ), root + "/run/log")
    with open(root + "/run/pid", "w") as file:
        file.write(str(process.pid))


if __name__ == "__main__":
    with open(os.environ["STAND_INS"]) as settings:
        SETTINGS = json.load(settings)
    called = os.path.basename(sys.argv[0])
    {"systemctl": systemctl, "docker": docker, "stillwave": stillwave}[called](sys.argv[1:])
    note(" ".join([called, *sys.argv[1:]]))
