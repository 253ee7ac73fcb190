"""The commands that docs/operating.md prints."""

import json
import os
import re
import shlex
import subprocess

from walk import NAME, Process, blocks, proxy
from webdriver import free_port, wait

with open("docs/operating.md", encoding="utf-8") as document:
    TEXT = document.read()

# What each command of the table gets for its words, in the order in which they are run here.
ARGUMENTS = [
    ("waveform IN -o OUT.dat", {}),
    ("denoise IN -o OUT --noise 0.2-1.8", {"OUT": "clean.wav"}),
    ("noise-profile IN --noise 0.2-1.8 -o FAN.json", {}),
    ("denoise IN… -o OUT/ --noise FAN.json", {"IN…": "IN IN2", "OUT/": "cleaned/"}),
    ("watch DIR --to DIR2", {"DIR": "cleaned/", "DIR2": "watched/"}),
    ("spectrogram IN -o OUT.png", {}),
    ("noise-regions IN", {}),
    ("labels convert IN -o OUT.srt", {"IN": "words.vtt"}),
    ("keys add|list|revoke|rotate", {}),
    ("backup --data DIR -o BACKUP", {}),
    ("restore BACKUP --data DIR", {"DIR": "DIR2"}),
    ("check --data DIR [--repair]", {}),
]
KEYS = ["add app --keys keys.jsonl --tenant acme --scopes read", "list --keys keys.jsonl", "rotate app --keys keys.jsonl --overlap 1h",
        "revoke app --keys keys.jsonl"]


def run(program, line, folder):
    answer = subprocess.run([program, *shlex.split(line)], cwd=folder, capture_output=True, text=True)
    assert answer.returncode == 0, (line, answer.stdout, answer.stderr)
    return answer.stdout


def the_table_of_commands(program, folder):
    """Runs each command of the table, with real files for its words."""
    for name, seconds in (("IN", 4), ("IN2", 3)):
        subprocess.run(["sox", "-n", "-r", "16000", "-t", "wav", os.path.join(folder, name), "synth", str(seconds), "pinknoise"], check=True)
    with open(os.path.join(folder, "words.vtt"), "w") as file:
        file.write("WEBVTT\n\n00:01.000 --> 00:02.000\nHello\n")
    os.mkdir(os.path.join(folder, "cleaned"))
    port = free_port()
    with Process("service", [program, "serve", "--listen", f"127.0.0.1:{port}", "--data", folder + "/DIR"], folder) as service:
        wait("the service answers", lambda: service.answers(port))
        subprocess.run(["curl", "-fsS", "--data-binary", f"@{folder}/IN", f"http://127.0.0.1:{port}/v1/recordings"], check=True, capture_output=True)
    printed = [line.replace("\\|", "|") for line in re.findall(r"^\| `stillwave (?!serve)(.*?)` \|", TEXT, re.M)]
    assert sorted(printed) == sorted(line for line, _ in ARGUMENTS), printed
    for line, words in ARGUMENTS:
        if line.startswith("keys "):
            for words in KEYS:
                run(program, "keys " + words, folder)
            continue
        both = [line.replace(" [--repair]", ""), line.replace("[", "").replace("]", "")] if "[" in line else [line]
        for command in both:
            for old, new in words.items():
                command = re.sub(rf"(?<!\S){re.escape(old)}(?!\S)", new, command)
            if command.startswith("watch "):
                with Process("watch", [program, *shlex.split(command)], folder, cwd=folder):
                    wait("what is in the folder is cleaned",
                         lambda: all(os.path.exists(f"{folder}/watched/{name}") for name in ("IN", "IN2")))
                continue
            run(program, command, folder)
    for name in ("OUT.dat", "clean.wav", "FAN.json", "cleaned/IN2", "OUT.png", "OUT.srt", "BACKUP/SHA256SUMS", "DIR2/catalog.sqlite"):
        found = name.rpartition("/")
        assert any(entry.startswith(found[2]) for entry in os.listdir(os.path.join(folder, found[0]))), name


def the_ways_to_start(program, folder):
    """Runs the blocks of shell as printed, except for ports and certificates. A line that serves goes on in the background."""
    port, front = free_port(), free_port()
    os.mkdir(folder + "/bin")
    os.symlink(program, folder + "/bin/stillwave")
    os.mkdir(folder + "/held")
    subprocess.run(["sox", "-n", "-r", "16000", folder + "/talk.wav", "synth", "2", "sine", "440"], check=True)
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={NAME}", "-addext",
         f"subjectAltName=DNS:{NAME}", "-keyout", folder + "/key.pem", "-out", folder + "/certificate.pem"], check=True, capture_output=True)
    shells = re.findall(r"^```sh\n(.*?)^```$", TEXT, re.M | re.S)
    assert len(shells) == 2, "docs/operating.md has two blocks of commands"
    for number, block in enumerate(shells):
        place = os.path.join(folder, str(number))
        os.mkdir(place)
        os.symlink(folder + "/talk.wav", place + "/talk.wav")
        environment = dict(os.environ, PATH=f"{folder}/bin:{os.environ['PATH']}", STILLWAVE_ADMIN_LISTEN="127.0.0.1:0")
        running = []
        try:
            for line in block.replace("\\\n", "").splitlines():
                line = line.replace("127.0.0.1:8080", f"127.0.0.1:{port}")
                if line.startswith("stillwave serve"):
                    words = shlex.split(line.removesuffix(" &"))
                    words += [] if "--listen" in words else ["--listen", f"127.0.0.1:{port}"]
                    running.append(Process("service", words, folder, cwd=place, env=environment))
                    wait("the service answers", lambda: running[-1].answers(port))
                elif line.startswith("caddy run"):
                    # With the configuration that the text before refers to.
                    running.append(proxy("caddy", blocks("caddyfile")[0], folder, port, front))
                    wait("Caddy answers", lambda: running[-1].answers(front))
                else:
                    line = line.replace(f"https://{NAME}", f"https://{NAME}:{front}")
                    if line.startswith("curl "):
                        line = line.replace("curl ", f"curl -fsS --resolve {NAME}:{front}:127.0.0.1 --cacert {folder}/certificate.pem ", 1)
                    answer = subprocess.run(["bash", "-euc", line], cwd=place, env=environment, capture_output=True, text=True)
                    assert answer.returncode == 0, (line, answer.stdout, answer.stderr)
                    if line.startswith("curl "):
                        assert json.loads(answer.stdout), answer.stdout
            assert running, "a service was started"
        finally:
            for process in reversed(running):
                process.__exit__()
