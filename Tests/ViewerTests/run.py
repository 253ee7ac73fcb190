"""Drives the viewer in Chromium. See deploy/viewer-test."""

import argparse
import os
import signal
import sys

import budget
import material
import story
from webdriver import Browser


def main():
    options = argparse.ArgumentParser(
        prog="deploy/viewer-test", description="Walks through the viewer in Chromium and measures what it costs.")
    options.add_argument("part", nargs="?", choices=["story", "budget", "all"], default="all")
    options.add_argument("--binary", default=".build/release/stillwave", help="the program (default: %(default)s)")
    options.add_argument("--port", type=int, help="an empty service that runs already on this port of 127.0.0.1")
    options.add_argument("--minutes", type=float, default=1, help="how long to scroll while memory is watched")
    options.add_argument("--pictures", help="a folder for pictures of the page in each size, and of steps that failed")
    options.add_argument("--step", help="only the steps of the story whose name matches this expression")
    parsed = options.parse_args()
    # A signal to this process ends the browser and the service too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    service = material.ServiceElsewhere(parsed.port) if parsed.port else material.Service(os.path.abspath(parsed.binary))
    browser = Browser()
    failures = 0
    try:
        if parsed.part != "budget":
            failures += story.run(browser, service, parsed.pictures, parsed.step)
        if parsed.part != "story":
            failures += budget.run(browser, service, parsed.minutes)
    finally:
        browser.close()
        service.close()
    sys.exit(min(failures, 100))


main()
