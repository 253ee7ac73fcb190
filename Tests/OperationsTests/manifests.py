"""The files for systemd, Kubernetes, compose and Caddy, checked by the programs and schemas that read them."""

import importlib.util
import os
import re
import shutil
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
    for name in ("keys", "node"):
        with open(f"deploy/stillwave-{name}.conf") as file, open(f"{unit}.d/{name}.conf", "w") as copy:
            text = file.read()
            copy.write(text)
        check_settings(program, re.findall(r"^Environment=(\w+)=", text, re.M))
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
    known = set(re.findall(r"STILLWAVE_[A-Z0-9_]+", run(program, "serve", "--help")))
    with open("docs/operating.md") as file:
        known |= set(re.findall(r"STILLWAVE_[A-Z0-9_]+", file.read()))
    assert set(names) <= known, set(names) - known


def compose_accepts_its_files(program, folder):
    if not importlib.util.find_spec("compose_spec"):
        return False
    from compose_spec import PyCompose
    for name in ("compose.yaml", "compose.internet.yaml", "compose.cluster.yaml"):
        with open(os.path.join("deploy", name)) as file:
            text = file.read()
        read = next(getattr(PyCompose, method) for method in ("from_yaml", "from_str", "from_string") if hasattr(PyCompose, method))

        def load(text):
            # The schema knows no merge keys (<<), as compose does.
            read(yaml.safe_dump(yaml.safe_load(text)))

        load(text)
        try:
            load(text.replace("restart: unless-stopped", "restarts: unless-stopped"))
        except Exception:
            pass
        else:
            raise AssertionError("a misspelled member is refused")
        manifest = yaml.safe_load(text)
        for service in manifest["services"].values():
            names = [key for key in service.get("environment", {}) if service["image"] == "stillwave" and key != "STILLWAVE_NAME"]
            check_settings(program, [key for key in names if not key.startswith("AWS_")])
            with open("docs/cluster.md") as file:
                document = file.read()
            assert all(f"`{key}`" in document for key in names if key.startswith("AWS_")), names
            # Otherwise compose looks for the image in a registry.
            assert service["image"] != "stillwave" or "build" in service, service
            # A folder of the host's belongs to another user than the container's.
            for volume in service.get("volumes", []):
                assert volume.split(":")[0] in manifest["volumes"] or volume.endswith(":ro"), volume


def unwritable_secrets(manifest):
    """The secrets and configurations that compose would have to write into a read-only file system: all but mounted files."""
    return [
        (name, entry) for name, service in manifest["services"].items() if service.get("read_only")
        for kind in ("secrets", "configs") for entry in service.get(kind, [])
        if "file" not in manifest[kind][entry["source"] if isinstance(entry, dict) else entry]]


def needed_variables(manifest):
    """The variables of the environment without which compose refuses a file."""
    return set(re.findall(r"(?<!\$)\$\{(\w+):\?", str(manifest)))


def a_container_can_read_its_secrets(program, folder):
    """No container has to be started to see these mistakes."""
    with open("deploy/compose.cluster.yaml") as file:
        text = file.read()
    manifest = yaml.safe_load(text)
    assert not unwritable_secrets(manifest)
    definition = manifest["secrets"]["cluster"]
    manifest["secrets"]["cluster"] = {"environment": "STILLWAVE_CLUSTER_SECRET"}
    assert [name for name, _ in unwritable_secrets(manifest)] == ["n1", "n2", "n3"], "a secret from a variable is noticed"
    manifest["secrets"]["cluster"] = definition
    assert manifest["services"]["n1"]["environment"]["STILLWAVE_CLUSTER_SECRET_FILE"] == "/run/secrets/cluster"
    for name in ("compose.yaml", "compose.internet.yaml"):
        with open(os.path.join("deploy", name)) as file:
            assert not unwritable_secrets(yaml.safe_load(file)), name
    # The commands at the head of the file are those of the document, which cluster.py runs.
    with open("docs/cluster.md") as file:
        section = file.read().split("\n## Trying it\n")[1].split("\n## ")[0]
    block, = re.findall(r"^```sh\n(.*?)^```$", section, re.M | re.S)
    assert "".join(line[4:] for line in text.splitlines(True) if line.startswith("#   ")) == block
    assert set(re.findall(r"(\w+)=", block)) == needed_variables(manifest), (block, needed_variables(manifest))


def run_as_postgres(folder, script, **environment):
    """Runs a shell script with PostgreSQL's programs, as the user that may."""
    from database import Pair, programs
    path = f"{programs()}:{os.environ['PATH']}"
    return run(*Pair.prefix(), "env", "-C", folder, f"PATH={path}", *(f"{name}={value}" for name, value in environment.items()),
               "bash", "-c", script)


def makes_the_bucket_when_the_store_is_up(folder, script):
    """A shell that exits with 0 although the store answers only the third session that makes the bucket."""
    os.mkdir(folder + "/store")
    with open(folder + "/store/weed", "w") as file:
        file.write('''#!/bin/sh
cd "$(dirname "$0")"
while read -r line; do
  case $line in
    *bucket.create*) echo >>tries; [ "$(wc -l <tries)" -lt 3 ] || touch made; echo "> create bucket recordings" ;;
    *bucket.list*) [ ! -e made ] || printf '>   recordings\\tsize:0\\tchunk:0\\n' ;;
  esac
done
''')
    os.chmod(folder + "/store/weed", 0o755)
    run("env", f"PATH={folder}/store:{os.environ['PATH']}", "SECRET=secret", "sh", "-c", script)
    with open(folder + "/store/tries") as file:
        assert len(file.read()) == 3, "it ends once the bucket is listed"


def the_cluster_of_compose_fits_together(program, folder):
    """Nothing here can start containers. What their commands do is tried with the programs themselves."""
    with open("deploy/compose.cluster.yaml") as file:
        services = yaml.safe_load(file)["services"]

    def command(name, member="command"):
        # Compose makes one dollar of two.
        return services[name][member][2].replace("$$", "$")

    # HAProxy gets its nodes at their addresses, and no TLS.
    script = command("haproxy").replace("/etc/haproxy/haproxy.cfg", os.path.abspath("deploy/haproxy.cfg"))
    script = script.replace("/tmp/haproxy.cfg", folder + "/haproxy.cfg").replace("exec haproxy -W -db", "exec /usr/sbin/haproxy -c")
    run("sh", "-c", script)
    with open(folder + "/haproxy.cfg") as file:
        text = file.read()
    nodes = {name: service["networks"]["default"]["ipv4_address"] for name, service in services.items() if name in ("n1", "n2", "n3")}
    # Each is named twice: among those that do all their work, and among those that answer what they can.
    assert re.findall(r"^  server (\S+) (\S+)$", text, re.M) == [(name, f"{address}:8080") for name, address in nodes.items()] * 2
    assert re.findall(r"^  bind (.*)$", text, re.M) == [":8080"] and services["haproxy"]["ports"] == ["127.0.0.1:8080:8080"]
    for name in nodes:
        environment = services[name]["environment"]
        assert environment["STILLWAVE_NODE"] == name
        assert environment["STILLWAVE_TRUSTED_PROXIES"] == services["haproxy"]["networks"]["default"]["ipv4_address"]
        assert int(environment["STILLWAVE_DRAIN"]) + 10 < int(services[name]["stop_grace_period"].rstrip("s"))
        assert services[name]["volumes"] == [f"{name}:/data"]
    for name in ("primary", "standby", "store"):
        assert services[name]["image"] and services[name]["healthcheck"]["test"]
    # The node's bucket and key are those that are made.
    made, environment = command("bucket", "entrypoint"), services["n1"]["environment"]
    assert f"-name {environment['STILLWAVE_MEDIA'].removeprefix('s3://')}\\n" in made
    assert f"-access_key {environment['AWS_ACCESS_KEY_ID']} " in made
    assert services["bucket"]["environment"]["SECRET"] == environment["AWS_SECRET_ACCESS_KEY"]
    assert ":8333/" in services["store"]["healthcheck"]["test"][-1] and environment["STILLWAVE_S3_ENDPOINT"] == "http://store:8333"
    makes_the_bucket_when_the_store_is_up(folder, made)
    # The primary waits for the standby, which copies it.
    from database import Pair, Server
    from webdriver import free_port
    postgres = folder + "/postgres"
    os.mkdir(postgres)
    os.chmod(folder, 0o711)
    if os.getuid() == 0:
        shutil.chown(postgres, Pair.prefix()[1].split("=")[1])
    shutil.copy("deploy/compose.cluster.primary", folder + "/primary.sh")
    os.chmod(folder + "/primary.sh", 0o755)
    primary, standby = (Server(name, postgres, "127.0.0.1", free_port()) for name in ("primary", "standby"))
    try:
        primary.create()
        primary.start()
        run_as_postgres(postgres, folder + "/primary.sh", POSTGRES_USER="stillwave", PGDATA=primary.data, PGHOST=postgres, PGPORT=primary.port)
        primary.kill()
        primary.start()
        with open(primary.data + "/pg_hba.conf") as file:
            assert file.read().endswith("host replication stillwave all scram-sha-256\n")
        os.mkdir(standby.data, 0o755)
        if os.getuid() == 0:
            shutil.chown(standby.data, Pair.prefix()[1].split("=")[1])
        run_as_postgres(postgres, command("standby").replace("-h primary", f"-h {postgres} -p {primary.port}").replace("exec postgres", "true"),
                        PGDATA=standby.data)
        standby.start()
        primary.wait("the standby", lambda: primary.sql("SELECT sync_state FROM pg_stat_replication") == "sync")
        primary.sql("CREATE TABLE written (number int)")
    finally:
        primary.kill()
        standby.kill()


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
    # The stage before builds the program.
    image = text.rpartition("\nFROM ")[2]
    check_settings(program, re.findall(r"(STILLWAVE_[A-Z_]+)=", image))


def checks():
    return [systemd_accepts_the_units, kubernetes_schemas_accept_the_manifest, compose_accepts_its_files, a_container_can_read_its_secrets,
            the_cluster_of_compose_fits_together,
            caddy_accepts_its_file,
            the_image_has_what_the_program_needs]
