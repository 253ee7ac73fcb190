"""Two PostgreSQL servers, a primary and its synchronous standby, that can be crashed and take turns."""

import contextlib
import glob
import os
import shutil
import signal
import subprocess
import sys
import time

ACCESS = """local all all trust
local replication all trust
host all all 0.0.0.0/0 trust
host replication all 0.0.0.0/0 trust
"""


def programs():
    """The folder of the newest version's programs, as Debian installs them."""
    found = [path for path in glob.glob("/usr/lib/postgresql/*/bin") if os.access(path + "/initdb", os.X_OK)]
    if not found:
        sys.exit("PostgreSQL isn't installed: deploy/install postgres")
    return max(found, key=lambda path: int(path.split("/")[4]))


def children(pid):
    """The processes that a process has started."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(child) for child in file.read().split()]
    return []


def kill_tree(pid):
    """Kills a process and its children with SIGKILL, so that none can notice the end of another first."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
        for child in [*children(pid), pid]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)


class Server:
    """One server. initdb and postgres refuse to run as root; then they run as another user."""

    def __init__(self, name, folder, address, port, fsync=False):
        self.name, self.address, self.port, self.fsync = name, address, port, fsync
        self.folder, self.data = folder, os.path.join(folder, name)
        self.process = None

    def words(self, program, *words):
        return [*Pair.prefix(), os.path.join(programs(), program), *words]

    def run(self, program, *words):
        done = subprocess.run(self.words(program, *words), cwd=self.folder, capture_output=True, text=True, timeout=60,
                              env=self.environment())
        if done.returncode:
            raise RuntimeError(f"{program}: {done.stdout}{done.stderr}")
        return done.stdout

    def environment(self):
        return {**os.environ, "LC_ALL": "C.UTF-8", "HOME": self.folder}

    def create(self):
        self.run("initdb", "--no-sync", "-D", self.data, "-U", "stillwave", "-A", "trust", "-E", "UTF8")
        with open(self.data + "/pg_hba.conf", "w") as file:
            file.write(ACCESS)

    def copy(self, primary):
        """Becomes a standby of another server, with a fresh copy of its data."""
        shutil.rmtree(self.data, ignore_errors=True)
        self.run("pg_basebackup", "-h", self.folder, "-p", str(primary.port), "-U", "stillwave", "-D", self.data, "-R",
                 "--checkpoint=fast", "--no-sync")

    def start(self):
        """Starts the server. Without fsync, what a killed server has written is still there: only the machine's own end
        would lose it."""
        settings = {
            "port": self.port, "listen_addresses": self.address, "unix_socket_directories": self.folder,
            "fsync": "on" if self.fsync else "off", "shared_buffers": "32MB", "max_connections": 100, "log_min_messages": "warning", "wal_level": "replica",
            "max_wal_senders": 4, "hot_standby": "on", "wal_receiver_status_interval": "1s", "wal_sender_timeout": "5s"}
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with open(os.path.join(self.folder, self.name + ".log"), "ab") as log:
            self.process = subprocess.Popen(
                self.words("postgres", "-D", self.data, *words), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log,
                stderr=log, env=self.environment(), start_new_session=True)
        self.wait("the start", lambda: self.sql("SELECT 1") == "1")

    def wait(self, what, condition, seconds=60):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if self.process.poll() is not None:
                break
            with contextlib.suppress(RuntimeError):
                if condition():
                    return
            time.sleep(0.05)
        with open(os.path.join(self.folder, self.name + ".log"), errors="replace") as log:
            raise RuntimeError(f"{self.name}: {what} failed:\n{log.read()[-3000:]}")

    def sql(self, text, database="postgres"):
        """Runs statements and returns the rows in lines, with columns separated by `|`."""
        done = subprocess.run(
            ["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", "-h", self.folder, "-p", str(self.port), "-U", "stillwave", "-d",
             database, "-c", text], capture_output=True, text=True, timeout=60)
        if done.returncode:
            raise RuntimeError(done.stderr)
        return done.stdout.strip()

    def kill(self):
        if self.process:
            kill_tree(self.process.pid)
            self.process.wait()


class Pair:
    """A primary and a standby, without which nothing is committed unless the standby isn't synchronous."""

    @staticmethod
    def prefix():
        if os.getuid() != 0:
            return []
        user = "postgres" if subprocess.run(["getent", "passwd", "postgres"], capture_output=True).returncode == 0 else "nobody"
        group = subprocess.run(["id", "-g", user], capture_output=True, text=True).stdout.strip()
        return ["setpriv", f"--reuid={user}", f"--regid={group}", "--clear-groups"]

    def __init__(self, folder, address, ports, standby=True, fsync=False, is_synchronous=True):
        self.is_synchronous = is_synchronous
        self.folder = os.path.join(folder, "postgres")
        os.mkdir(self.folder)
        if os.getuid() == 0:
            # The user of the servers must reach its own folder.
            os.chmod(folder, 0o711)
            shutil.chown(self.folder, self.prefix()[1].split("=")[1])
        self.primary, self.standby = (
            Server(name, self.folder, address, port, fsync) for name, port in zip(("one", "two"), ports))
        self.primary.create()
        self.primary.start()
        self.primary.sql("CREATE DATABASE stillwave")
        hosts = [(server.address, server.port) for server in (self.primary, self.standby)][:2 if standby else 1]
        self.url = (f"postgres://stillwave@{','.join(f'{host}:{port}' for host, port in hosts)}/stillwave"
                    "?sslmode=disable&target_session_attrs=read-write&connect_timeout=2&tcp_user_timeout=4000")
        if standby:
            self.attach()

    def attach(self):
        """Gives the primary a standby, and waits until nothing is committed without it."""
        self.standby.copy(self.primary)
        self.standby.start()
        if self.is_synchronous:
            self.primary.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
            self.primary.sql("SELECT pg_reload_conf()")
        state = "sync" if self.is_synchronous else "async"
        self.primary.wait("the standby", lambda: self.primary.sql(
            f"SELECT count(*) FROM pg_stat_replication WHERE state = 'streaming' AND sync_state = '{state}'") == "1")

    def delay_standby(self):
        """Lets the standby fall behind: what is committed in the last two seconds is lost with the primary."""
        os.kill(int(self.primary.sql("SELECT pid FROM pg_stat_replication")), signal.SIGSTOP)
        time.sleep(2)

    def hang_standby(self, seconds):
        """Stops the standby. What is committed meanwhile waits for it, and the nodes can't know how that will end."""
        pids = [self.standby.process.pid, *children(self.standby.process.pid)]

        def send(number):
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)

        try:
            send(signal.SIGSTOP)
            time.sleep(seconds)
        finally:
            send(signal.SIGCONT)

    def crash(self, seconds):
        """Kills the primary and starts it again."""
        self.primary.kill()
        time.sleep(seconds)
        self.primary.start()

    def fail_over(self, seconds):
        """Kills the primary and promotes the standby. The former primary becomes the standby, with a copy of the data."""
        if not self.is_synchronous:
            self.delay_standby()
        self.primary.kill()
        time.sleep(seconds)
        self.primary, self.standby = self.standby, self.primary
        # Without this, nothing could be committed until there is another standby.
        with open(self.primary.data + "/postgresql.auto.conf", "a") as file:
            file.write("synchronous_standby_names = ''\n")
        self.primary.sql("SELECT pg_reload_conf()")
        self.primary.sql("SELECT pg_promote()")
        self.attach()

    def sql(self, text):
        return self.primary.sql(text, "stillwave")

    def written(self):
        """The bytes of the log that were written so far."""
        return float(self.sql("SELECT pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')"))

    def transactions(self):
        """The transactions that were committed so far."""
        self.sql("SELECT pg_stat_force_next_flush()")
        return int(self.sql("SELECT xact_commit FROM pg_stat_database WHERE datname = 'stillwave'"))

    def rows(self, text):
        return [line.split("|") for line in self.sql(text).splitlines()]

    def stop(self):
        for server in (self.primary, self.standby):
            server.kill()
