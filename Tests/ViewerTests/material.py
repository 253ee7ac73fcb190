"""The tests' material: synthetic recordings, and a service of their own."""

import array
import contextlib
import http.client
import json
import math
import os
import random
import signal
import subprocess
import tempfile
import threading
import time
import wave

from webdriver import free_port, wait


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


def write_wav(path, block, rate, channels=1, repeats=1):
    with wave.open(path, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        frames = block if channels == 1 else array.array("h", [value for value in block for _ in range(channels)])
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


class Service:
    """The program under test, with its own port and folder."""

    def __init__(self, binary):
        self.binary = binary
        self.folder = tempfile.TemporaryDirectory(prefix="stillwave-viewer-")
        self.port = free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            [self.binary, "serve", "--listen", f"127.0.0.1:{self.port}", "--data", self.folder.name + "/data"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait("the service answers", self.is_alive)

    def is_alive(self):
        try:
            return self.request("GET", "/healthz")[0] == 200
        except OSError:
            return False

    def stop(self):
        self.process.terminate()
        self.process.wait()

    def close(self):
        self.stop()
        self.folder.cleanup()

    @contextlib.contextmanager
    def holding(self, command):
        """
        Stops each worker of a kind as it starts. Yields a function that lets them run for a moment, or sends them another
        signal.
        """
        held, is_over = set(), threading.Event()

        def send(number):
            for worker in list(held):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(worker, number)

        def hold():
            while not is_over.wait(0.002):
                for worker in workers(self.process.pid, command) - held:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(worker, signal.SIGSTOP)
                    held.add(worker)

        def step(number=signal.SIGCONT):
            send(number)
            time.sleep(0.02)
            send(signal.SIGSTOP)

        thread = threading.Thread(target=hold)
        thread.start()
        try:
            yield step
        finally:
            is_over.set()
            thread.join()
            send(signal.SIGCONT)

    @contextlib.contextmanager
    def killing(self, command):
        """Kills each worker of a kind."""
        is_over = threading.Event()

        def kill():
            while not is_over.wait(0.002):
                for worker in workers(self.process.pid, command):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(worker, signal.SIGKILL)

        thread = threading.Thread(target=kill)
        thread.start()
        try:
            yield
        finally:
            is_over.set()
            thread.join()

    def request(self, method, path, body=None, fields={}):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.request(method, path, body, fields)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def json(self, path):
        return json.loads(self.request("GET", path)[2])

    def upload(self, path, name):
        """Uploads a file, waits for its waveform and returns its id."""
        with open(path, "rb") as file:
            status, _, body = self.request("POST", f"/v1/recordings?name={name}", file,
                                           {"Content-Length": str(os.path.getsize(path))})
        assert status == 201, body
        identifier = json.loads(body)["id"]
        wait("the waveform is ready", lambda: self.json(f"/v1/recordings/{identifier}")["waveform"]["state"] == "ready", 300)
        return identifier

    def clean(self, identifier, asked="{}"):
        """Cleans a recording and returns the result's id."""
        status, _, body = self.request("POST", f"/v1/recordings/{identifier}/denoise", asked, {"Content-Type": "application/json"})
        assert status == 202, body
        job = json.loads(body)

        def is_done():
            found = self.json(f"/v1/jobs/{job['id']}?wait=20")
            assert found["state"] not in ("failed", "cancelled"), found
            return found["state"] == "succeeded"

        wait("the noise is removed", is_done, 600)
        return job["result"]["recording"]


class ServiceElsewhere(Service):
    """A service that is already running, for working on the page."""

    def __init__(self, port):
        self.binary = None
        self.port = port
        self.address = f"http://127.0.0.1:{port}"

    @contextlib.contextmanager
    def holding(self, command):
        yield lambda number=signal.SIGCONT: None

    def close(self):
        pass
