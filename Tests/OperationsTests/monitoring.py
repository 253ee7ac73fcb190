"""The files in deploy/monitoring, loaded by Prometheus itself."""

import json
import os
import re
import subprocess
import urllib.error
import urllib.parse
import urllib.request

from walk import Process
from webdriver import free_port, wait

FILES = "deploy/monitoring"


def ask(address, **query):
    with urllib.request.urlopen(f"{address}?{urllib.parse.urlencode(query)}", timeout=30) as answer:
        return answer.read().decode()


def is_ready(address):
    try:
        return bool(ask(address))
    except urllib.error.HTTPError as error:
        assert error.code == 503, error
        return False


def check(*words, text=None):
    answer = subprocess.run(["promtool", *words], input=text, capture_output=True, text=True)
    assert answer.returncode == 0, (words, answer.stdout, answer.stderr)


def expressions(panels):
    for panel in panels:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]
        yield from expressions(panel.get("panels", []))


def the_monitoring_is_loaded(program, folder):
    port, admin, own = free_port(), free_port(), free_port()
    keys = os.path.join(folder, "keys.jsonl")
    secret = subprocess.run([program, "keys", "add", "app", "--keys", keys, "--tenant", "acme", "--scopes", "read,write"],
                            check=True, capture_output=True, text=True).stdout.strip()
    words = [program, "serve", "--listen", f"127.0.0.1:{port}", "--data", folder + "/data", "--keys", keys, "--admin-listen",
             f"127.0.0.1:{admin}", "--metrics-tenants", "true"]
    sound = os.path.join(folder, "tone.wav")
    subprocess.run(["sox", "-n", "-r", "16000", sound, "synth", "2", "sine", "440"], check=True)
    with Process("service", words, folder) as service:
        wait("the service answers", lambda: service.answers(port))

        def upload():
            with open(sound, "rb") as file:
                request = urllib.request.Request(f"http://127.0.0.1:{port}/v1/recordings", file.read(), {"Authorization": f"Bearer {secret}"})
            with urllib.request.urlopen(request, timeout=60) as answer:
                assert answer.status == 201

        upload()
        metrics = f"http://127.0.0.1:{admin}/metrics"
        wait("a job has ended", lambda: 'stillwave_jobs_total{kind="waveform"' in ask(metrics))
        check("check", "metrics", text=ask(metrics))
        check("check", "rules", f"{FILES}/rules.yaml")
        check("check", "config", f"{FILES}/prometheus.yaml")
        # As printed, but sooner, and on ports of its own.
        with open(f"{FILES}/prometheus.yaml") as file:
            text = file.read()
        for old, new in (("scrape_interval: 15s", "scrape_interval: 1s\n  evaluation_interval: 1s"), ("127.0.0.1:8081", f"127.0.0.1:{admin}"),
                         ("[rules.yaml]", f"[{os.path.abspath(FILES)}/rules.yaml]")):
            assert old in text, old
            text = text.replace(old, new)
        path = os.path.join(folder, "prometheus.yaml")
        with open(path, "w") as file:
            file.write(text)
        words = ["prometheus", f"--config.file={path}", f"--storage.tsdb.path={folder}/series", f"--web.listen-address=127.0.0.1:{own}"]
        with Process("prometheus", words, folder) as prometheus:
            wait("Prometheus answers", lambda: prometheus.answers(own))
            # It listens before it has opened its storage, and answers 503 until then.
            wait("Prometheus is ready", lambda: is_ready(f"http://127.0.0.1:{own}/-/ready"))

            def call(name, **query):
                return json.loads(ask(f"http://127.0.0.1:{own}/api/v1/{name}", **query))["data"]

            wait("it reads the service", lambda: [target["health"] for target in call("targets")["activeTargets"]] == ["up"])

            def rules():
                return [rule for group in call("rules")["groups"] for rule in group["rules"]]

            wait("every rule is evaluated", lambda: all(rule["health"] == "ok" for rule in rules()))
            with open(f"{FILES}/rules.yaml") as file:
                assert len(rules()) == file.read().count("- alert:")
            assert not [rule for rule in rules() if rule["state"] == "firing" and rule["name"] != "StillwaveDiskFull"]
            with open(f"{FILES}/grafana-dashboard.json") as file:
                dashboard = json.load(file)
            shown = list(expressions(dashboard["panels"]))
            # This service has no bucket.
            shown = [(title, expression) for title, expression in shown if not re.search("stillwave_(store|cache)_", expression)]
            assert len(shown) >= 13 and len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
            for title, expression in shown:
                def has_series():
                    return call("query", query=expression.replace("$instance", ".*"))["result"]
                # A rate needs a change between two looks.
                upload()
                wait(f"“{title}” shows something", has_series, 60)
