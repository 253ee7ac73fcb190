#!/usr/bin/env python3
"""A small client for Stillwave, with nothing but requests. As a command, it cleans a file:

    python3 stillwave.py talk.wav clean.flac
"""

import base64
import os
import sys
import time

import requests

CHUNK = 8 << 20


class Failed(Exception):
    """A request that the service refused, or a job that failed. `problem` is the service's (RFC 9457)."""

    def __init__(self, problem):
        super().__init__(problem.get("detail") or problem.get("title") or str(problem))
        self.problem = problem


class Stillwave:
    def __init__(self, url=None, key=None):
        self.url = (url or os.environ.get("STILLWAVE_URL") or "http://127.0.0.1:8080").rstrip("/")
        self.session = requests.Session()
        key = key or os.environ.get("STILLWAVE_KEY")
        if key:
            self.session.headers["Authorization"] = f"Bearer {key}"

    def call(self, method, path, tries=8, **options):
        """Sends a request, again if the service is busy or away. Raises Failed if it is refused."""
        for attempt in range(tries):
            try:
                answer = self.session.request(method, self.url + path, timeout=60, **options)
            except requests.ConnectionError:
                if attempt == tries - 1:
                    raise
                time.sleep(min(2 ** attempt / 4, 10))
                continue
            if answer.ok:
                return answer
            if answer.status_code not in (429, 503) or attempt == tries - 1:
                kind = answer.headers.get("Content-Type", "")
                raise Failed(answer.json() if "json" in kind else {"status": answer.status_code, "title": answer.reason})
            time.sleep(float(answer.headers.get("Retry-After", 1)))

    def upload(self, path, name=None, progress=lambda sent, total: None, address=None):
        """Uploads a file in pieces (tus 1.0.0) and returns the recording's id. If it fails, `failure.address` is where
        another call can go on."""
        total, tus = os.path.getsize(path), {"Tus-Resumable": "1.0.0"}
        if address is None:
            filename = base64.b64encode((name or os.path.basename(path)).encode()).decode()
            made = self.call("POST", "/v1/uploads", headers={**tus, "Upload-Length": str(total), "Upload-Metadata": f"filename {filename}"})
            address = made.headers["Location"].removeprefix(self.url)
        try:
            with open(path, "rb") as file:
                answer = self.call("HEAD", address, headers=tus)
                while (offset := int(answer.headers["Upload-Offset"])) < total:
                    progress(offset, total)
                    file.seek(offset)
                    fields = {**tus, "Upload-Offset": str(offset), "Content-Type": "application/offset+octet-stream"}
                    try:
                        answer = self.call("PATCH", address, tries=1, headers=fields, data=file.read(CHUNK))
                    except requests.ConnectionError:
                        # Some of the piece may have arrived.
                        answer = self.call("HEAD", address, headers=tus)
        except (requests.RequestException, OSError) as failure:
            failure.address = address
            raise
        progress(total, total)
        return answer.headers["Stillwave-Recording"]

    def wait(self, job, progress=lambda share: None):
        """Waits for a job to end and returns its result."""
        while True:
            state = self.call("GET", f"/v1/jobs/{job}", params={"wait": 20}).json()
            progress(state["progress"])
            if state["state"] == "succeeded":
                return state["result"]
            if state["state"] in ("failed", "cancelled"):
                raise Failed(state.get("error") or {"title": f"The job is {state['state']}."})

    def denoise(self, recording, progress=lambda share: None, **options):
        """Cleans a recording and returns the result's id."""
        job = self.call("POST", f"/v1/recordings/{recording}/denoise", json=options).json()
        return self.wait(job["id"], progress)["recording"]

    def ready(self, recording):
        """Waits until a recording has been read, and returns it."""
        while True:
            found = self.call("GET", f"/v1/recordings/{recording}").json()
            if found["waveform"]["state"] == "ready":
                return found
            self.wait(found["waveform"]["job"])

    def download(self, recording, path, **options):
        """Downloads a recording's sound, converted with `format="mp3"`. Nothing is left at `path` if it fails."""
        with self.call("GET", f"/v1/recordings/{recording}/audio", params=options, stream=True) as answer, open(path + ".part", "wb") as file:
            for piece in answer.iter_content(1 << 20):
                file.write(piece)
        os.replace(path + ".part", path)


def main():
    source, target = sys.argv[1:]
    service = Stillwave()
    show = lambda what: lambda done, total=1: print(f"\r{what} {100 * done / total:.0f} %", end="", file=sys.stderr)  # noqa: E731
    recording = service.upload(source, progress=show("uploading"))
    clean = service.denoise(recording, progress=show("cleaning"), format=os.path.splitext(target)[1][1:] or "same")
    service.download(clean, target)
    print(f"\n{target} is recording {clean}", file=sys.stderr)


if __name__ == "__main__":
    main()
