"""The files in deploy/monitoring, loaded by Prometheus itself."""

import json
import os
import re
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import yaml
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
                wait(f"“{title}” shows something", has_series)


def histogram(name, labels, bound, later):
    """The buckets of requests that all take more than `bound`, and no more than `later`; and of those that take less."""
    def buckets(first):
        counts = {bound: first, later: 10, "+Inf": 10}
        return {f'{name}_bucket{{instance="n1",{labels},le="{le}"}}': f"0+{count}x240" for le, count in counts.items()}
    return buckets(0), buckets(10)


def series(name, labels, alarming, calm):
    name = f'{name}{{instance="n1"{"," + labels if labels else ""}}}'
    return {name: alarming}, {name: calm}


def both(*parts):
    return tuple({name: values for part in side for name, values in part.items()} for side in zip(*parts))


# For each alert: minutes after which it fires, labels beside the instance, the value if the summary has it, and the series
# that make it fire and those that don't.
ALERTS = {
    "StillwaveDown": (5, {"job": "stillwave"}, None, series("up", 'job="stillwave"', "0x240", "1x240")),
    "StillwaveNotReady": (5, {}, None, series("stillwave_ready", "", "0x240", "1x240")),
    "StillwaveServerErrors": (30, {}, None, both(
        series("stillwave_http_responses_total", 'class="5xx"', "0+1x240", "0x240"),
        series("stillwave_http_responses_total", 'class="2xx"', "0+9x240", "0+9x240"))),
    "StillwaveDiskFull": (10, {}, None, series("stillwave_disk_free_bytes", "", "500000000x240", "5000000000x240")),
    "StillwaveDiskFillsUp": (120, {}, None, series(
        "stillwave_disk_free_bytes", "", "1000000000000-1000000000x240", "1000000000000x240")),
    "StillwaveQueueGrows": (90, {"state": "queued"}, "290", series("stillwave_jobs", 'state="queued"', "200+1x240", "200x240")),
    "StillwaveJobsFail": (90, {"kind": "waveform"}, None, both(
        series("stillwave_jobs_total", 'kind="waveform",state="failed"', "0+1x240", "0x240"),
        series("stillwave_jobs_total", 'kind="waveform",state="succeeded"', "0+2x240", "0+2x240"))),
    "StillwaveJobsLost": (90, {}, None, series("stillwave_lost_attempts_total", "", "0+1x240", "0x240")),
    "StillwaveCatalogSlow": (40, {"operation": "write"}, None, histogram(
        "stillwave_catalog_seconds", 'operation="write"', "0.5", "1.0")),
    "StillwaveCatalogHeld": (70, {}, None, series("stillwave_catalog_held_total", "", "0+1x240", "0+0x30 1x210")),
    # Its first worker begins a series.
    "StillwaveWorkerSignals": (70, {"signal": "4"}, None, series(
        "stillwave_worker_signals_total", 'signal="4"', "_x30 1x210", "1x240")),
    "StillwaveClockDoubtful": (15, {}, None, series("stillwave_clock_doubtful", "", "1x240", "0x240")),
    "StillwaveFilesAltered": (1, {}, "1", series("stillwave_altered_files", "", "1x240", "0x240")),
    "StillwaveFeedInterrupted": (5, {}, None, series("stillwave_feed_age_seconds", "", "30x240", "1x240")),
    "StillwaveForwardingFails": (30, {}, None, both(
        series("stillwave_forwarded_waveforms_total", 'outcome="failed"', "0+3x240", "0+1x240"),
        series("stillwave_forwarded_waveforms_total", 'outcome="succeeded"', "0+1x240", "0+3x240"))),
    "StillwaveStoreFails": (15, {}, None, both(
        series("stillwave_store_requests_total", 'operation="get",outcome="failed"', "0+1x240", "0x240"),
        series("stillwave_store_requests_total", 'operation="put",outcome="refused"', "0+1x240", "0x240"),
        series("stillwave_store_requests_total", 'operation="get",outcome="ok"', "0+9x240", "0+9x240"))),
    "StillwaveStoreFull": (5, {}, None, series("stillwave_store_full", "", "1x240", "0x240")),
    "StillwaveStoreSlow": (40, {"operation": "put"}, None, histogram(
        "stillwave_store_request_seconds", 'operation="put"', "10.0", "60.0")),
    "StillwaveCacheTooSmall": (200, {}, None, both(
        series("stillwave_cache_bytes", "", "95x240", "95x240"), series("stillwave_cache_limit_bytes", "", "100x240", "100x240"),
        series("stillwave_cache_miss_bytes_total", "", "0+9x240", "0+1x240"),
        series("stillwave_cache_hit_bytes_total", "", "0+1x240", "0+9x240"))),
    "StillwaveTurnsSlow": (40, {"lane": "previews"}, None, histogram("stillwave_lane_wait_seconds", 'lane="previews"', "10.0", "60.0")),
    "StillwaveOrphans": (5, {}, "2", series("stillwave_orphaned_files", "", "2x240", "0x240")),
    "StillwaveWebhooksGivenUp": (20, {"outcome": "given_up"}, None, series(
        "stillwave_webhooks_total", 'outcome="given_up"', "0x10 1x240", "1x240")),
}


def rules():
    with open(f"{FILES}/rules.yaml") as file:
        group, = yaml.safe_load(file)["groups"]
    return {rule["alert"]: rule for rule in group["rules"]}


def every_alert_fires_when_it_should(program, folder):
    """Plays series of hours to the rules, with the labels that the service gives."""
    found = rules()
    assert found.keys() == ALERTS.keys(), found.keys() ^ ALERTS.keys()
    tests = []
    for name, (minutes, labels, value, sides) in ALERTS.items():
        labels = {"instance": "n1", **labels, "severity": found[name]["labels"]["severity"]}
        summary = found[name]["annotations"]["summary"]
        for key, text in [*((f"$labels.{key}", text) for key, text in labels.items()), ("$value", value or "")]:
            summary = summary.replace(f"{{{{ {key} }}}}", text)
        assert "{{" not in summary, summary
        for entries, expected in zip(sides, ([{"exp_labels": labels, "exp_annotations": {"summary": summary}}], [])):
            tests.append({
                "interval": "1m", "input_series": [{"series": key, "values": values} for key, values in entries.items()],
                "alert_rule_test": [{"eval_time": f"{minutes}m", "alertname": name, "exp_alerts": expected}]})
    path = os.path.join(folder, "tests.yaml")
    with open(path, "w") as file:
        yaml.safe_dump({"rule_files": [os.path.abspath(f"{FILES}/rules.yaml")], "evaluation_interval": "1m", "tests": tests}, file)
    check("test", "rules", path)


# Values of labels that a healthy service doesn't show.
UNSEEN = {("stillwave_jobs_total", "state", "failed"), ("stillwave_store_requests_total", "outcome", "failed"),
          ("stillwave_store_requests_total", "outcome", "refused")}


def check_names(text):
    """Whether a node with everything has the metrics and labels that the rules, their tests and the dashboard name."""
    known = {}
    for name, labels in re.findall(r"^(stillwave_\w+)(?:\{(.*)\})? ", text, re.M):
        known.setdefault(name, set()).update(re.findall(r'(\w+)="(.*?)"', labels) or [("", "")])
    with open(f"{FILES}/grafana-dashboard.json") as file:
        shown = [expression for _, expression in expressions(json.load(file)["panels"])]
    shown += [rule["expr"] for rule in rules().values()]
    tested = [key for *_, sides in ALERTS.values() for side in sides for key in side]
    for expression in shown + tested:
        for name, selector in re.findall(r"\b(stillwave_\w+)(?:\{(.*?)\})?", expression):
            if name.startswith("stillwave_tenant_"):
                continue
            assert name in known, name
            for label, values in re.findall(r'(\w+)=~?"(.*?)"', selector):
                if label in ("instance", "le"):
                    continue
                assert label in {key for key, _ in known[name]}, (name, label)
                for value in values.split("|"):
                    assert (label, value) in known[name] or (name, label, value) in UNSEEN, (name, label, value)
        for words in re.findall(r"\bby \((.*?)\)", expression):
            labels = {key for name in re.findall(r"stillwave_\w+", expression) for key, _ in known.get(name, ())}
            assert set(words.split(", ")) <= labels | {"instance"}, (expression, words)
