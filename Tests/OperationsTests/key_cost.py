"""What checking a key costs: the instructions of a slice with and without `--keys`, counted by callgrind, which doesn't
depend on what else the machine does. Instructions of the kernel aren't counted, so the true share is less.

    python3 Tests/OperationsTests/key_cost.py [PROGRAM]      default: .build/release/stillwave; needs valgrind
"""

import http.client
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(here, "../ProxyTests"), os.path.join(here, "../ViewerTests")]
from walk import Process
from webdriver import free_port, wait

FEW, MANY = 300, 2300


def sound(seconds, rate=8000):
    samples = struct.pack(f"<{seconds * rate}h", *((k * 2654435761 >> 7) % 20000 - 10000 for k in range(seconds * rate)))
    return (b"RIFF" + struct.pack("<I", 36 + len(samples)) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, rate, 2 * rate, 2, 16)
            + b"data" + struct.pack("<I", len(samples)) + samples)


def serve(words, folder, port):
    service = Process("service", words, folder)
    wait("the service answers", lambda: service.answers(port))
    return service


def instructions(program, folder, recording, count, secrets, is_kept, keys):
    """Returns the instructions of a service that answers so many different slices, to keys by turns, and stops."""
    port, out = free_port(), os.path.join(folder, "callgrind")
    words = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", program, "serve", "--listen", f"127.0.0.1:{port}",
             "--data", folder + "/data", "--log-level", "critical", *keys]
    with serve(words, folder, port) as service:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=300)
        for number in range(count):
            fields = {"Authorization": f"Bearer {secrets[number % len(secrets)]}"} if secrets else {}
            if not is_kept:
                fields["Connection"] = "close"
            connection.request("GET", f"/v1/recordings/{recording}/waveform?start={number / 100}&width=1000", headers=fields)
            answer = connection.getresponse()
            content = answer.read()
            assert answer.status == 200, content
        connection.close()
        service.process.terminate()
        service.process.wait(300)
    with open(out) as file:
        return int(re.search(r"^(?:totals|summary): (\d+)", file.read(), re.M)[1])


def main():
    program = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else ".build/release/stillwave")
    with tempfile.TemporaryDirectory(prefix="stillwave-key-cost-") as folder:
        # Valgrind gives up at the debug information of some programs.
        subprocess.run(["objcopy", "--strip-debug", program, folder + "/stillwave"], check=True)
        program = folder + "/stillwave"
        port = free_port()
        with serve([program, "serve", "--listen", f"127.0.0.1:{port}", "--data", folder + "/data"], folder, port):
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            connection.request("POST", "/v1/recordings", sound(60))
            recording = json.loads(connection.getresponse().read())["id"]

            def is_ready():
                connection.request("GET", f"/v1/recordings/{recording}")
                return json.loads(connection.getresponse().read())["waveform"]["state"] == "ready"

            wait("the waveform is ready", is_ready)
            connection.close()
        path = folder + "/keys.jsonl"
        secrets = [subprocess.run([program, "keys", "add", name, "--keys", path, "--scopes", "read"], check=True,
                                  capture_output=True, text=True).stdout.strip() for name in ("app", "other")]
        settings = ["--keys", path, "--admin-listen", "127.0.0.1:0"]

        def cost(secrets, is_kept, keys):
            few, many = (instructions(program, folder, recording, count, secrets, is_kept, keys) for count in (FEW, MANY))
            return (many - few) / (MANY - FEW)

        # The same requests, to a service that has no keys and to one that has.
        for is_kept, way in ((True, "one connection"), (False, "a connection for each request")):
            for count in (1, 2):
                free = cost(secrets[:count], is_kept, [])
                more = cost(secrets[:count], is_kept, settings) - free
                print(f"{way}, keys by turns: {count}: {more:.0f} instructions more than {free:.0f}, {100 * more / free:.2f} %",
                      flush=True)


main()
