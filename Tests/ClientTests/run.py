"""Uses a service as clients do that know openapi.yaml alone:

    a client that openapi-python-client generates   walk.py: upload, waveform, .dat, denoise, poll, download
    requests that schemathesis makes up             allowed and forbidden ones; every answer is held against the document

    run.py PROGRAM OPENAPI [--examples N] [--seed N]
"""

import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import urllib.request

HERE = pathlib.Path(__file__).parent
BIN = pathlib.Path(sys.executable).parent
sys.path.insert(0, str(HERE))
import sound  # noqa: E402

parser = argparse.ArgumentParser()
parser.add_argument("program")
parser.add_argument("openapi")
parser.add_argument("--examples", type=int, default=12, help="made-up requests for each call and phase")
parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))


def run(title, command, **options):
    """Says nothing of what goes well."""
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **options)
    if done.returncode != 0:
        print(done.stdout)
        sys.exit(f"{title} failed: {' '.join(map(str, command))}")
    return done.stdout


class Service:
    def __init__(self, program, folder):
        self.log = open(folder / "log", "w")
        self.process = subprocess.Popen(
            [program, "serve", "--listen", "127.0.0.1:0", "--data", folder / "data"], stdout=subprocess.PIPE,
            stderr=self.log, text=True)
        line = self.process.stdout.readline()
        if not line:
            sys.exit((folder / "log").read_text())
        self.address = line.removeprefix("Stillwave listens on ").strip()

    def stop(self):
        self.process.terminate()
        status = self.process.wait(60)
        self.log.close()
        if status != 0:
            sys.exit(f"The service ended with status {status}.")

    def post(self, path, body=b"", **fields):
        request = urllib.request.Request(self.address + path, data=body, method="POST", headers=fields)
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.headers, answer.read()

    def get(self, path):
        with urllib.request.urlopen(self.address + path, timeout=60) as answer:
            return json.load(answer)


def walk(service, openapi, folder):
    package = folder / "generated"
    # The generator wants to tidy up with ruff, which is beside it.
    tools = dict(os.environ, PATH=f"{BIN}:{os.environ['PATH']}")
    run("Generating the client",
        [BIN / "openapi-python-client", "generate", "--path", openapi, "--output-path", package, "--config",
         HERE / "generator.yaml", "--fail-on-warning"], env=tools, cwd=folder)
    run("The walk with the generated client", [sys.executable, HERE / "walk.py", service.address],
        env=dict(os.environ, PYTHONPATH=str(package), PYTHONDONTWRITEBYTECODE="1"), cwd=folder)


def configuration(service):
    """Gives the calls something that is there: a recording and its job, and an upload that has begun."""
    octets = {"Content-Type": "application/octet-stream"}
    recording = json.loads(service.post("/v1/recordings?name=made-up.wav", sound.wave(2), **octets)[1])
    job = recording["waveform"]["job"]
    while service.get(f"/v1/jobs/{job}?wait=20")["state"] in ("queued", "running"):
        pass
    headers, _ = service.post("/v1/uploads", **{"Tus-Resumable": "1.0.0", "Upload-Length": "1000000"})
    upload = headers["Location"].rsplit("/", 1)[1]
    # What deletes gets ids that nothing has: 404.
    places = [("/v1/recordings/\\\\{id\\\\}", recording["id"]), ("/v1/jobs/\\\\{id\\\\}", job), ("/v1/uploads/\\\\{id\\\\}", upload)]
    operations = "".join(f"""
[[operations]]
include-path-regex = "^{path}"
exclude-method = "DELETE"
parameters = {{ "path.id" = "{identifier}" }}
""" for path, identifier in places)
    return (HERE / "schemathesis.toml").read_text() + operations


def schemathesis(service, openapi, folder, arguments):
    settings = folder / "schemathesis.toml"
    settings.write_text(configuration(service))
    output = run(
        "schemathesis",
        [BIN / "schemathesis", "--config-file", settings, "run", openapi, "--url", service.address, "--phases",
         "examples,coverage,fuzzing", "--max-examples", str(arguments.examples), "--seed", str(arguments.seed),
         "--continue-on-failure", "--generation-database", "none", "--no-color", "--request-timeout", "60",
         # Some seeds make too few names that fit their pattern; then there are fewer examples.
         "--suppress-health-check", "filter_too_much"],
        env=dict(os.environ, SCHEMATHESIS_HOOKS="schemathesis_hooks", PYTHONPATH=str(HERE),
                 PYTHONDONTWRITEBYTECODE="1"), cwd=folder)
    return next((line.strip() for line in output.splitlines() if " generated" in line), "nothing")


def main():
    arguments = parser.parse_args()
    openapi = pathlib.Path(arguments.openapi).resolve()
    run("Checking openapi.yaml", [BIN / "openapi-spec-validator", openapi])
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        service = Service(pathlib.Path(arguments.program).resolve(), folder)
        try:
            walk(service, openapi, folder)
            made = schemathesis(service, openapi, folder, arguments)
        finally:
            service.stop()
    print(f"The generated client works; schemathesis: {made} (--seed {arguments.seed}).")


main()
