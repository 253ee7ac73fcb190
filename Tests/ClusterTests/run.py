"""Runs a cluster of three nodes, under faults or to measure it. See deploy/cluster-test."""

import argparse
import os
import random
import signal
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [here, os.path.join(here, "../ViewerTests")]
import chaos
import conformance
import throughput
import views


def main():
    parser = argparse.ArgumentParser(prog="deploy/cluster-test")
    parser.add_argument("--part", choices=["chaos", "throughput", "claims", "views", "conformance"], default="chaos")
    parser.add_argument("--seconds", type=float, help="how long faults last, or the recordings of throughput")
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--lease", type=int, default=3)
    parser.add_argument("--keep", action="store_true", help="keeps the folder with all logs and media")
    parser.add_argument("--skew", type=int, default=1200, help="seconds by which one node's clock is slow, and another's fast")
    parser.add_argument("--other", action="append", default=[], help="an older program, which nodes may run at any start")
    parser.add_argument("--media", choices=["folder", "bucket", "ceph", "swift"], default="folder",
                        help="what the nodes share: a folder, a bucket in our own store, or one in Ceph or OpenStack Swift")
    parser.add_argument("--asynchronous", action="store_true", help="the standby falls behind: shows that losses are found")
    parser.add_argument("--count", type=int, help="recordings per round of throughput, or jobs to claim")
    parser.add_argument("--share", type=float, help="processors of each node in throughput; default: a third of all but a half")
    parser.add_argument("program", nargs="?", default=".build/release/stillwave")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    seed = int(os.environ.get("STILLWAVE_TEST_SEED") or random.randrange(1 << 30))
    program = os.path.abspath(given.program)
    if given.part == "throughput":
        return throughput.throughput(program, given.count or 12, int(given.seconds or 480), given.share, given.media)
    if given.part == "views":
        return views.views(program, "bucket" if given.media == "folder" else given.media, int(given.seconds or 7200))
    if given.part == "conformance":
        sys.exit(conformance.conformance(program, "bucket" if given.media == "folder" else given.media))
    if given.part == "claims":
        return throughput.claims(os.path.join(os.path.dirname(program), "ClaimRate"), given.count or 5000)
    seconds = given.minutes * 60 if given.minutes else given.seconds or 60
    programs = [program, *map(os.path.abspath, given.other)]
    is_well = chaos.run(
        programs, seconds, given.clients, given.lease, seed, given.keep, not given.asynchronous, given.skew,
        given.media)
    sys.exit(0 if is_well else 1)


main()
