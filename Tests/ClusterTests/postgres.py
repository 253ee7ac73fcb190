"""Two PostgreSQL servers from Debian's package: a primary, and a standby that every commit waits for."""

import glob
import os
import pwd
import shutil
import subprocess
import time


def programs():
    """The folder of the newest version's programs; None if there is none."""
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/initdb"), key=lambda path: int(path.split("/")[4]))
    return os.path.dirname(found[-1]) if found else None


class Server:
    def __init__(self, folder, port):
        self.folder, self.port, self.data = folder, port, os.path.join(folder, f"data{port}")

    def run(self, *words, check=True):
        # initdb and postgres refuse to run as root.
        user = pwd.getpwnam("postgres") if os.getuid() == 0 else None
        return subprocess.run(
            [os.path.join(programs(), words[0]), *words[1:]], check=check, cwd=self.folder, capture_output=True, text=True,
            user=user and user.pw_uid, group=user and user.pw_gid, extra_groups=[] if user else None,
            env={"LC_ALL": "C.UTF-8", "HOME": self.folder, "PATH": os.environ["PATH"]})

    def create(self):
        self.run("initdb", "--no-sync", "-D", self.data, "-U", "stillwave", "-A", "trust", "-E", "UTF8")
        with open(os.path.join(self.data, "pg_hba.conf"), "a") as file:
            file.write("host all all 10.213.0.0/16 trust\nhost replication all 127.0.0.1/32 trust\n")
        with open(os.path.join(self.data, "postgresql.conf"), "a") as file:
            file.write("listen_addresses = '*'\nmax_connections = 200\nshared_buffers = 64MB\nwal_keep_size = 256MB\n"
                       "hot_standby = on\nsynchronous_standby_names = '*'\nlog_min_messages = warning\n")

    def start(self):
        self.run("pg_ctl", "-D", self.data, "-w", "-t", "60", "-l", os.path.join(self.folder, f"log{self.port}"), "-o",
                 f"-p {self.port} -k {self.folder}", "start")

    def stop(self):
        """As in a crash: nothing is written or told any more."""
        self.run("pg_ctl", "-D", self.data, "-w", "-m", "immediate", "stop", check=False)

    def promote(self):
        self.run("pg_ctl", "-D", self.data, "-w", "promote")

    def follow(self, primary):
        """Begins anew as the standby of another server."""
        shutil.rmtree(self.data, ignore_errors=True)
        self.run("pg_basebackup", "-h", primary.folder, "-p", str(primary.port), "-U", "stillwave", "-D", self.data, "-R",
                 "-c", "fast", "--no-sync")
        self.start()

    def sql(self, statement, database="stillwave"):
        """The rows of a statement, as lists of text."""
        psql = subprocess.run(
            ["psql", "-XqAt", "-F", "\t", "-v", "ON_ERROR_STOP=1", "-h", self.folder, "-p", str(self.port), "-U",
             "stillwave", "-d", database, "-c", statement], capture_output=True, text=True, timeout=60)
        if psql.returncode != 0:
            raise RuntimeError(psql.stderr)
        return [line.split("\t") for line in psql.stdout.splitlines()]


class Pair:
    """A primary and its synchronous standby, which change places."""

    def __init__(self, folder, ports):
        if os.getuid() == 0:
            shutil.chown(folder, "postgres")
        os.chmod(folder, 0o755)
        self.primary, self.standby = (Server(folder, port) for port in ports)
        self.primary.create()
        self.primary.start()
        self.standby.follow(self.primary)
        self.primary.sql("CREATE DATABASE stillwave", "postgres")

    def crash(self):
        """The primary crashes and starts again."""
        self.primary.stop()
        self.primary.start()

    def fail_over(self):
        """The primary is lost; the standby takes its place and gets a standby of its own."""
        self.primary.stop()
        self.standby.promote()
        self.primary, self.standby = self.standby, self.primary
        self.standby.follow(self.primary)

    def stop(self):
        for server in (self.standby, self.primary):
            server.stop()

    def url(self, host):
        return f"postgres://stillwave@{host}:{self.primary.port},{host}:{self.standby.port}/stillwave"
