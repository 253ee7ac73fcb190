#!/usr/bin/env python3
"""Makes an episode of each recording that comes into a folder: cleaned, at -16 LUFS, as an MP3 with chapters.

    python3 podcast.py incoming/ episodes/ [--once] [--webhook https://cms.example.com/episodes]

Chapters are in a file beside the recording, talk.chapters.txt, with lines such as `00:01:30 The guest`. The webhook gets the
finished job, signed by the service. Needs ffmpeg for the chapters.
"""

import argparse
import os
import subprocess
import time

from stillwave import Failed, Stillwave

SOUNDS = (".wav", ".flac", ".mp3", ".m4a", ".ogg", ".opus")


def chapters(path):
    """Returns (seconds, title) of each line `hh:mm:ss Title`."""
    with open(path, encoding="utf-8") as file:
        for line in filter(str.strip, file):
            clock, _, title = line.strip().partition(" ")
            seconds = 0.0
            for part in clock.split(":"):
                seconds = seconds * 60 + float(part)
            yield seconds, title


def add_chapters(sound, marks, duration):
    lines = [";FFMETADATA1"]
    ends = [start for start, _ in marks[1:]] + [duration]
    for (start, title), end in zip(marks, ends):
        escaped = "".join("\\" + c if c in "=;#\\\n" else c for c in title)
        lines += ["[CHAPTER]", "TIMEBASE=1/1000", f"START={start * 1000:.0f}", f"END={end * 1000:.0f}", f"title={escaped}"]
    marked = sound.removesuffix(".mp3") + ".marked.mp3"
    subprocess.run(["ffmpeg", "-v", "error", "-y", "-i", sound, "-i", "-", "-map_metadata", "0", "-map_chapters", "1", "-c", "copy", marked],
                   input="\n".join(lines).encode(), check=True)
    os.replace(marked, sound)


def make(service, source, target, webhook):
    recording = service.upload(source)
    asked = {"loudness": -16, "format": "mp3", **({"callback_url": webhook} if webhook else {})}
    clean = service.denoise(recording, **asked)
    service.download(clean, target)
    notes = os.path.splitext(source)[0] + ".chapters.txt"
    if os.path.exists(notes):
        marks = list(chapters(notes))
        labels = {"labels": [{"start": start, "end": start, "text": title} for start, title in marks]}
        service.call("POST", f"/v1/recordings/{clean}/labels", params={"kind": "chapters"}, json=labels)
        add_chapters(target, marks, service.ready(clean)["format"]["duration"])


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("incoming")
    options.add_argument("episodes")
    options.add_argument("--once", action="store_true", help="end when everything is done")
    options.add_argument("--webhook")
    given, service, sizes = options.parse_args(), Stillwave(), {}
    while True:
        for name in sorted(os.listdir(given.incoming)):
            source, target = os.path.join(given.incoming, name), os.path.join(given.episodes, os.path.splitext(name)[0] + ".mp3")
            if not name.endswith(SOUNDS) or os.path.exists(target):
                continue
            # A file that is still being copied grows.
            size = os.path.getsize(source)
            if sizes.get(source) != size and not given.once:
                sizes[source] = size
                continue
            try:
                make(service, source, target, given.webhook)
                print(target, flush=True)
            except Failed as failure:
                print(f"{source}: {failure}", flush=True)
                os.rename(source, source + ".failed")
        if given.once:
            return
        time.sleep(5)


if __name__ == "__main__":
    main()
