"""The files for systemd, Kubernetes, compose and Caddy, checked by the programs and schemas that read them."""

import importlib.util
import os
import re
import subprocess
import sys

import yaml


def run(*words, **options):
    answer = subprocess.run(words, capture_output=True, text=True, **options)
    assert answer.returncode == 0 and "warning" not in answer.stderr.lower(), (words, answer.stdout, answer.stderr)
    return answer.stdout + answer.stderr


def systemd_accepts_the_units(program, folder):
    # The program is in its place only where it is installed.
    unit = os.path.join(folder, "stillwave.service")
    with open("deploy/stillwave.service") as file, open(unit, "w") as copy:
        copy.write(file.read().replace("/usr/local/bin/stillwave", program))
    os.mkdir(unit + ".d")
    with open("deploy/stillwave-keys.conf") as file, open(unit + ".d/keys.conf", "w") as copy:
        copy.write(file.read())
    assert run("systemd-analyze", "verify", unit).strip() == ""
    # Its sandbox: systemd's own measure of what the service could do, 0 … 10.
    table = run("systemd-analyze", "security", "--offline=true", "--threshold=30", unit)
    assert float(re.search(r"exposure level.*?: ([\d.]+)", table)[1]) <= 2.0, table[-300:]


def kubernetes_schemas_accept_the_manifest(program, folder):
    if not importlib.util.find_spec("kubernetes_validate"):
        return False
    answer = run(sys.executable, "-m", "kubernetes_validate", "--strict", "deploy/kubernetes.yaml")
    assert answer.count(" passed ") == 3, answer
    with open("deploy/kubernetes.yaml") as file:
        documents = {document["kind"]: document for document in yaml.safe_load_all(file)}
    pod = documents["StatefulSet"]["spec"]["template"]["spec"]
    container, = pod["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    # What no schema can know: names and numbers that must fit each other and the program.
    labels = documents["StatefulSet"]["spec"]["template"]["metadata"]["labels"]
    for selector in (documents["Service"]["spec"]["selector"], documents["StatefulSet"]["spec"]["selector"]["matchLabels"],
                     documents["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"]):
        assert selector.items() <= labels.items()
    assert documents["StatefulSet"]["spec"]["serviceName"] == documents["Service"]["metadata"]["name"]
    assert documents["StatefulSet"]["spec"]["replicas"] == 1
    assert {port["targetPort"] for port in documents["Service"]["spec"]["ports"]} <= ports.keys()
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        assert container[name]["httpGet"]["port"] in ports
    volumes = {volume["name"] for volume in pod["volumes"]}
    volumes |= {claim["metadata"]["name"] for claim in documents["StatefulSet"]["spec"]["volumeClaimTemplates"]}
    assert {mount["name"] for mount in container["volumeMounts"]} == volumes
    settings = {entry["name"]: entry["value"] for entry in container["env"]}
    check_settings(program, settings)
    assert int(settings["STILLWAVE_GRACE_PERIOD"]) < pod["terminationGracePeriodSeconds"]
    assert {rule["port"] for entry in documents["NetworkPolicy"]["spec"]["ingress"] for rule in entry["ports"]} == set(ports.values())


def check_settings(program, names):
    """Whether the program has these settings."""
    known = set(re.findall(r"STILLWAVE_[A-Z_]+", run(program, "serve", "--help")))
    with open("docs/operating.md") as file:
        known |= set(re.findall(r"STILLWAVE_[A-Z_]+", file.read()))
    assert set(names) <= known, set(names) - known


def compose_accepts_its_files(program, folder):
    if not importlib.util.find_spec("compose_spec"):
        return False
    from compose_spec import PyCompose
    for name in ("compose.yaml", "compose.internet.yaml"):
        with open(os.path.join("deploy", name)) as file:
            text = file.read()
        load = next(getattr(PyCompose, method) for method in ("from_yaml", "from_str", "from_string") if hasattr(PyCompose, method))
        load(text)
        try:
            load(text.replace("restart: unless-stopped", "restarts: unless-stopped"))
        except Exception:
            pass
        else:
            raise AssertionError("a misspelled member is refused")
        manifest = yaml.safe_load(text)
        for service in manifest["services"].values():
            check_settings(program, [key for key in service.get("environment", {}) if key != "STILLWAVE_NAME"])
            # Otherwise compose looks for the image in a registry.
            assert service["image"] != "stillwave" or "build" in service, service
            # A folder of the host's belongs to another user than the container's.
            for volume in service.get("volumes", []):
                assert volume.split(":")[0] in manifest["volumes"] or volume.endswith(":ro"), volume


def caddy_accepts_its_file(program, folder):
    environment = dict(os.environ, STILLWAVE_NAME="audio.example.com", HOME=folder, XDG_DATA_HOME=folder, XDG_CONFIG_HOME=folder)
    run("caddy", "adapt", "--config", "deploy/Caddyfile", "--adapter", "caddyfile", env=environment)
    answer = subprocess.run(["caddy", "validate", "--config", "deploy/Caddyfile", "--adapter", "caddyfile"],
                            capture_output=True, text=True, env=environment)
    assert answer.returncode == 0 and "Valid configuration" in answer.stdout + answer.stderr, answer.stderr
    # What deploy/proxies tests of the log.
    with open("deploy/Caddyfile") as file, open("docs/proxies.md") as document:
        settings = re.search(r"^\{\n.*?^\}\n", file.read(), re.M | re.S)[0]
        assert document.read().count(settings) == 2, settings


def the_image_has_what_the_program_needs(program, folder):
    """Nothing here can build the image, so its packages are compared with the libraries that the program is linked to."""
    with open("deploy/Dockerfile") as file:
        text = file.read()
    named = re.findall(r"\b(?:lib[\w.-]+|ca-certificates|ffmpeg)\b", text)
    installed = run("apt-cache", "depends", "--recurse", "--installed", "--no-recommends", "--no-suggests", "--no-conflicts",
                    "--no-breaks", "--no-replaces", "--no-enhances", *dict.fromkeys(named))
    there = set(re.findall(r"^(\S+)$", installed, re.M))
    for path in re.findall(r"=> (/\S+)", run("ldd", program)):
        owner = subprocess.run(["dpkg", "-S", os.path.realpath(path)], capture_output=True, text=True).stdout.split(":")[0]
        assert not owner or owner in there, owner
    for name in re.findall(r"COPY (?!--from)(\S+)", text):
        assert os.path.exists(name), name
    check_settings(program, re.findall(r"(STILLWAVE_[A-Z_]+)=", text))


def checks():
    return [systemd_accepts_the_units, kubernetes_schemas_accept_the_manifest, compose_accepts_its_files, caddy_accepts_its_file,
            the_image_has_what_the_program_needs]
