"""Runs a cluster of three nodes, under faults or to measure it. See deploy/cluster-test."""

import argparse
import os
import random
import signal
import sys

here = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [here, os.path.join(here, "../ViewerTests")]
import chaos


def main():
    parser = argparse.ArgumentParser(prog="deploy/cluster-test")
    parser.add_argument("--part", choices=["chaos", "throughput", "claims"], default="chaos")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--minutes", type=float)
    parser.add_argument("--clients", type=int, default=6)
    parser.add_argument("--lease", type=int, default=3)
    parser.add_argument("--keep", action="store_true", help="keeps the folder with all logs and media")
    parser.add_argument("program", nargs="?", default=".build/release/stillwave")
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    seed = int(os.environ.get("STILLWAVE_TEST_SEED") or random.randrange(1 << 30))
    program = os.path.abspath(given.program)
    seconds = given.minutes * 60 if given.minutes else given.seconds
    sys.exit(0 if chaos.run(program, seconds, given.clients, given.lease, seed, given.keep) else 1)


main()
