"""The tests' material: synthetic recordings, and a service of their own."""

import array
import contextlib
import http.client
import json
import math
import os
import random
import shutil
import signal
import subprocess
import tempfile
import threading
import wave
from urllib.parse import quote

from webdriver import HUNG, free_port, wait


def speech_like(seconds, rate, seed):
    """Bursts of a gliding voice with pauses, over steady hiss, as 16-bit samples."""
    chance = random.Random(seed)
    hiss = [chance.gauss(0, 260) for _ in range(65536)]
    samples = array.array("h", bytes(2 * int(seconds * rate)))
    phase = 0.0
    for k in range(len(samples)):
        moment = k / rate
        place = moment % 4
        value = hiss[(k * 7919) % 65536]
        if place > 1.4:
            phase += 2 * math.pi * (170 + 60 * math.sin(2 * moment)) / rate
            loudness = max(0.0, math.sin(math.pi * (place - 1.4) / 2.6)) * (0.55 + 0.45 * math.sin(9 * moment))
            value += loudness * 6500 * (math.sin(phase) + 0.5 * math.sin(2 * phase) + 0.3 * math.sin(5 * phase))
        samples[k] = max(-32768, min(32767, round(value)))
    return samples


def write_wav(path, block, rate, channels=1, repeats=1, lanes=1):
    """Writes samples, which are those of one channel, for each of them, or those of `lanes` channels."""
    with wave.open(path, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        frames = block if channels == lanes else array.array("h", [value for value in block for _ in range(channels)])
        for _ in range(repeats):
            file.writeframes(frames.tobytes())
    return path


def write_media(path, *arguments):
    """Makes a file with ffmpeg."""
    subprocess.run(["ffmpeg", "-v", "error", "-nostdin", "-y", *arguments, path], check=True)
    return path


def write_video(path, seconds, *codecs):
    """A tone, and a picture that gets brighter by 7 with each of the 25 frames per second."""
    return write_media(
        path, "-f", "lavfi", "-i", f"color=black:s=160x90:r=25:d={seconds},geq=lum='40+mod(N\\,25)*7':cb=128:cr=128",
        "-f", "lavfi", "-i", f"sine=440:d={seconds}", *codecs)


def workers(service, command):
    """The worker processes of one kind of job, given the service's process id."""
    found = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            with open(f"/proc/{name}/stat") as stat, open(f"/proc/{name}/cmdline", "rb") as words:
                if int(stat.read().rpartition(")")[2].split()[1]) == service and command in words.read().split(b"\0"):
                    found.add(int(name))
    return found


def worked(process):
    """The processor time of a process, in ticks; None if it has ended."""
    with contextlib.suppress(OSError):
        with open(f"/proc/{process}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return None if fields[0] == "Z" else int(fields[11]) + int(fields[12])


class Service:
    """The program under test with its own port and data folder: a copy of `data`, or an empty one."""

    # Further arguments of the program.
    options = ()

    def __init__(self, binary, data=None):
        self.binary = binary
        self.folder = tempfile.TemporaryDirectory(prefix="stillwave-viewer-")
        self.data = self.folder.name + "/data"
        if data:
            shutil.copytree(data, self.data)
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()
        self.folder.cleanup()

    def start(self):
        with open(self.folder.name + "/log", "ab") as log:
            self.process = subprocess.Popen(
                [self.binary, "serve", "--listen", f"127.0.0.1:{self.port}", "--data", self.data, *self.options],
                stdout=subprocess.DEVNULL, stderr=log)
        wait("the service answers", self.is_alive)

    def is_alive(self):
        assert self.process.poll() is None, f"the service has ended with status {self.process.returncode}"
        try:
            return self.request("GET", "/healthz")[0] == 200
        except OSError:
            return False

    def stop(self):
        self.process.terminate()
        self.process.wait()

    @contextlib.contextmanager
    def holding(self, command):
        """
        Stops each worker of a kind as it starts. Yields a function that lets them work for a hundredth of a second of
        processor time, or sends them another signal.
        """
        held, is_over = set(), threading.Event()

        def send(number, to):
            for worker in to:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(worker, number)

        def hold():
            while not is_over.wait(0.002):
                new = workers(self.process.pid, command) - held
                send(signal.SIGSTOP, new)
                held.update(new)

        def step(number=signal.SIGCONT):
            before = {worker: worked(worker) for worker in list(held)}
            send(number, before)
            while number == signal.SIGCONT and any(ticks is not None and worked(worker) == ticks for worker, ticks in before.items()):
                os.sched_yield()
            send(signal.SIGSTOP, before)

        thread = threading.Thread(target=hold)
        thread.start()
        try:
            yield step
        finally:
            is_over.set()
            thread.join()
            send(signal.SIGCONT, held)

    def request(self, method, path, body=None, fields={}):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=HUNG)
        try:
            connection.request(method, path, body, fields)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def json(self, path):
        return json.loads(self.request("GET", path)[2])

    def recordings(self):
        """All recordings, the newest first."""
        return self.json("/v1/recordings?limit=1000")["recordings"]

    def named(self, name):
        """The newest recording with a name."""
        return next(recording for recording in self.recordings() if recording["name"] == name)

    def rename(self, identifier, name):
        status, _, body = self.request("PATCH", f"/v1/recordings/{identifier}", json.dumps({"name": name}), {"Content-Type": "application/json"})
        assert status == 200, body

    def upload(self, path, name=None, fields={}):
        """Uploads a file, waits for its waveform and returns its id."""
        with open(path, "rb") as file:
            status, _, body = self.request("POST", f"/v1/recordings?name={quote(name or os.path.basename(path))}", file,
                                           {"Content-Length": str(os.path.getsize(path)), **fields})
        assert status == 201, body
        identifier = json.loads(body)["id"]
        wait("the waveform is ready", lambda: json.loads(
            self.request("GET", f"/v1/recordings/{identifier}", fields=fields)[2])["waveform"]["state"] == "ready")
        return identifier

    def clean(self, identifier, **asked):
        """Cleans a recording and returns the result's id."""
        status, _, body = self.request("POST", f"/v1/recordings/{identifier}/denoise", json.dumps(asked), {"Content-Type": "application/json"})
        assert status == 202, body
        job = json.loads(body)

        def is_done():
            found = self.json(f"/v1/jobs/{job['id']}?wait=20")
            assert found["state"] not in ("failed", "cancelled"), found
            return found["state"] == "succeeded"

        wait("the noise is removed", is_done)
        return job["result"]["recording"]
