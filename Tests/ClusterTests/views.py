"""What a bucket costs: uploads beside `aws s3 cp`, the first view of a recording that a node has never seen, idle nodes."""

import contextlib
import os
import shutil
import statistics
import subprocess
import tempfile
import time

from bucket import NAME, SECRET
import throughput
from chaos import Cluster

ROUNDS = 3


def views(program, store, seconds):
    """Prints figures of a WAV file of some seconds (44.1 kHz, stereo) with two nodes and a bucket."""
    folder = tempfile.mkdtemp(prefix="stillwave-cluster-")
    cluster = Cluster([program], folder, lease=10, standby=False, store=store)
    try:
        sound = os.path.join(folder, "sound.wav")
        write(sound, seconds)
        # Without the line between, as other programs do.
        cluster.bucket.endpoint = f"http://{cluster.bucket.store.address}"
        cluster.media_settings = cluster.bucket.settings()
        cluster.start(2)
        first, second = cluster.nodes
        length = os.path.getsize(sound)
        print(f"a WAV file of {seconds} s, {length / 1e6:.0f} MB; {type(cluster.bucket.store).__name__}; the median of {ROUNDS}")
        recording = uploads(cluster, first, sound, length)
        while cluster.database.sql("SELECT count(*) FROM jobs WHERE state <> 'succeeded'") != "0":
            time.sleep(0.5)
        answers(second, recording, seconds, os.path.join(folder, second.name))
        idle(cluster)
    finally:
        cluster.stop()
        shutil.rmtree(folder, ignore_errors=True)


def write(path, seconds):
    block, count = os.urandom(4 * 44_100), seconds
    size = count * len(block)
    with open(path, "wb") as file:
        file.write(b"RIFF" + (36 + size).to_bytes(4, "little") + b"WAVEfmt " + bytes.fromhex("1000000001000200")
                   + (44_100).to_bytes(4, "little") + (176_400).to_bytes(4, "little") + bytes.fromhex("04001000")
                   + b"data" + size.to_bytes(4, "little"))
        for _ in range(count):
            file.write(block)


def uploads(cluster, node, sound, length):
    """Uploads the file by turns with the node and with aws. Returns the last recording."""
    ours, others, recording = [], [], None
    environment = {**os.environ, "AWS_ACCESS_KEY_ID": cluster.bucket.store.KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_DEFAULT_REGION": "us-east-1"}
    for number in range(ROUNDS):
        if recording:
            assert request(node, "DELETE", f"/v1/recordings/{recording}")[0] == 204
        start = time.monotonic()
        status, answer = request(node, "POST", "/v1/recordings?name=sound.wav", sound, 600)
        ours.append(time.monotonic() - start)
        assert status == 201, answer
        recording = answer.split(b'"id":"')[1][:36].decode()
        # The job that follows would compete with the other program.
        while cluster.database.sql("SELECT count(*) FROM jobs WHERE state IN ('queued', 'running')") != "0":
            time.sleep(0.2)
        if shutil.which("aws"):
            start = time.monotonic()
            subprocess.run(["aws", "--endpoint-url", f"http://{cluster.bucket.store.address}", "s3", "cp", "--quiet", sound,
                            f"s3://{NAME}/copy-{number}"], check=True, env=environment)
            others.append(time.monotonic() - start)
            cluster.bucket.request("DELETE", f"/{NAME}/copy-{number}")
    ours, text = statistics.median(ours), ""
    if others:
        text = f"; aws s3 cp: {length / 1e6 / statistics.median(others):.0f} MB/s, {statistics.median(others) / ours:.2f} of its rate"
    print(f"upload, until it is answered: {length / 1e6 / ours:.0f} MB/s{text}")
    return recording


def request(node, method, path, file=None, timeout=60):
    connection = node.connect(timeout)
    with contextlib.closing(connection), (open(file, "rb") if file else contextlib.nullcontext()) as body:
        connection.request(method, path, body, {"Content-Length": str(os.path.getsize(file))} if file else {})
        answer = connection.getresponse()
        return answer.status, answer.read()


def answers(node, recording, seconds, data):
    """Times views of the whole recording by a node that has nothing of it, and by one that has."""
    cold, warm, windows = [], [], []
    for _ in range(ROUNDS):
        node.kill()
        # The store's disks, which are this machine's, aren't busy with what was uploaded.
        os.sync()
        shutil.rmtree(os.path.join(data, "scratch"), ignore_errors=True)
        node.start()
        node.wait()
        # Its connections to the database and the store, and what it reads at its start.
        time.sleep(2)
        before = throughput.requests([node])
        for times, path in ((cold, "waveform?width=2000"), (warm, "waveform?width=1999"), *(
                (windows, f"waveform?width=2000&start={number * seconds / 40}&end={number * seconds / 40 + seconds / 20}")
                for number in range(20))):
            start = time.monotonic()
            status, body = request(node, "GET", f"/v1/recordings/{recording}/{path}")
            times.append(1000 * (time.monotonic() - start))
            assert status == 200, body
            if times is cold:
                needed = [f"{number - before[what]:.0f} {what}" for what, number in throughput.requests([node]).items()
                          if number > before[what]]
    print(f"the first view by a node that has nothing of the recording: {statistics.median(cold):.0f} ms, with {', '.join(needed)}; the next one: "
          f"{statistics.median(warm):.1f} ms; then windows of a twentieth: {statistics.median(windows):.1f} ms")


def idle(cluster, seconds=60):
    """What nodes cost that nobody asks anything."""
    time.sleep(5)

    def used(node):
        with open(f"/proc/{node.process.pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    database = cluster.database
    processors, commits, written = [used(node) for node in cluster.nodes], database.transactions(), database.written()
    time.sleep(seconds)
    processors = [used(node) - before for node, before in zip(cluster.nodes, processors)]
    count = len(cluster.nodes)
    print(f"an idle node: {1000 * statistics.mean(processors) / seconds:.1f} ms of a processor, "
          f"{(database.transactions() - commits) / seconds / count:.1f} transactions and {(database.written() - written) / seconds / count:.0f} bytes of "
          "the database's log a second")
