#!/usr/bin/env python3
"""Transcribes a recording with Whisper, and keeps the transcript with its words' times as labels.

    python3 transcript.py <recording> [--whisper whisper] [--model base] [--language en]

Needs openai-whisper, or another program that takes the same arguments. Prints the track's address.
"""

import argparse
import os
import subprocess
import tempfile

from stillwave import Stillwave


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("recording")
    options.add_argument("--whisper", default="whisper")
    options.add_argument("--model", default="base")
    options.add_argument("--language")
    given, service = options.parse_args(), Stillwave()
    with tempfile.TemporaryDirectory() as folder:
        service.download(given.recording, folder + "/sound.flac", format="flac")
        command = [given.whisper, folder + "/sound.flac", "--model", given.model, "--word_timestamps", "True",
                   "--output_format", "json", "--output_dir", folder]
        subprocess.run(command + (["--language", given.language] if given.language else []), check=True, stdout=subprocess.DEVNULL)
        with open(os.path.join(folder, "sound.json"), "rb") as file:
            about = {"kind": "transcript", "name": "Whisper", **({"language": given.language} if given.language else {})}
            made = service.call("POST", f"/v1/recordings/{given.recording}/labels", params=about, data=file.read(),
                                headers={"Content-Type": "application/json"})
    print(made.headers["Location"])


if __name__ == "__main__":
    main()
