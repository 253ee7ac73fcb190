#!/usr/bin/env python3
"""Imports a folder of recordings, thousands if need be, at the speed of the service. Run again, it goes on.

    python3 archive.py folder/ done.jsonl [--jobs 4]

Each line of done.jsonl has a file's path and its recording, or why it was refused. A file that failed is tried again by the
next run if the fault may pass.
"""

import argparse
import concurrent.futures
import hashlib
import json
import os
import threading
import time
from urllib.parse import quote

import requests
from stillwave import Failed, Stillwave

local = threading.local()


def send(path, root):
    """Uploads one file. The Idempotency-Key makes a second attempt find the first one's recording."""
    service = local.__dict__.setdefault("service", Stillwave())
    name = os.path.relpath(path, root)
    about = os.stat(path)
    key = hashlib.sha256(f"{name} {about.st_size} {about.st_mtime_ns}".encode()).hexdigest()
    while True:
        try:
            with open(path, "rb") as file:
                answer = service.call("POST", f"/v1/recordings?name={quote(name)}", tries=1, data=file, headers={"Idempotency-Key": key})
            return {"path": name, "recording": answer.json()["id"]}
        except Failed as failure:
            # The service says when it has room: the queue is full, or the tenant's rate is reached.
            if failure.problem.get("status") in (429, 503):
                time.sleep(1)
                continue
            return {"path": name, "error": failure.problem.get("code"), "detail": str(failure)}
        except requests.ConnectionError:
            time.sleep(1)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("folder")
    options.add_argument("done")
    options.add_argument("--jobs", type=int, default=4)
    given = options.parse_args()
    known = set()
    if os.path.exists(given.done):
        with open(given.done, encoding="utf-8") as file:
            # A last line that was cut off by a crash is done again.
            known = {json.loads(line)["path"] for line in file if line.endswith("\n")}
    paths = [os.path.join(folder, name) for folder, _, names in os.walk(given.folder) for name in sorted(names)]
    waiting = [path for path in paths if os.path.relpath(path, given.folder) not in known]
    began, count = time.monotonic(), 0
    with open(given.done, "a", encoding="utf-8") as log, concurrent.futures.ThreadPoolExecutor(given.jobs) as pool:
        for result in pool.map(lambda path: send(path, given.folder), waiting):
            log.write(json.dumps(result) + "\n")
            log.flush()
            count += 1
            if count % 100 == 0:
                print(f"{count} of {len(waiting)}, {count / (time.monotonic() - began):.1f} per second", flush=True)
    print(f"{count} files, {len(known)} done before", flush=True)


if __name__ == "__main__":
    main()
