"""Checks what docs/operating.md, docs/cluster.md and the files in deploy/ promise to operators. See deploy/operations."""

import os
import signal
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [here, os.path.join(here, "../ProxyTests"), os.path.join(here, "../ViewerTests"),
                os.path.join(here, "../ClusterTests")]
import backups
import cluster
import commands
import manifests
import monitoring


def main():
    program = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else ".build/release/stillwave")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    os.chdir(os.path.join(here, "../.."))
    for check in (*manifests.checks(), monitoring.every_alert_fires_when_it_should,
                  monitoring.the_monitoring_is_loaded, commands.the_table_of_commands,
                  commands.the_ways_to_start, cluster.every_command_for_several_machines_works,
                  backups.a_cluster_with_a_bucket_is_backed_up_and_restored):
        with tempfile.TemporaryDirectory(prefix="stillwave-operations-") as folder:
            done = check(program, folder)
        print(f"  {'left out' if done is False else 'ok'}      {check.__name__.replace('_', ' ')}", flush=True)


main()
