"""Drives the viewer in Chromium and Firefox. See deploy/viewer-test."""

import argparse
import os
import signal
import sys

import budget
import story
from firefox import Firefox
from material import Service
from webdriver import Browser


def main():
    options = argparse.ArgumentParser(
        prog="deploy/viewer-test",
        description="Walks through the viewer in Chromium and Firefox, and measures what it costs in Chromium.",
        epilog="The story's chapters: " + "; ".join(map(story.name, story.CHAPTERS)))
    options.add_argument("part", nargs="?", choices=["story", "budget", "all"], default="all")
    options.add_argument("--binary", default=".build/release/stillwave", help="the program (default: %(default)s)")
    options.add_argument("--browser", choices=["chromium", "firefox", "both"], default="both",
                         help="who walks through the story; Firefox only through chapters in which browsers may differ")
    options.add_argument("--chapter", nargs="+", metavar="NAME", default=[], help="only the chapters whose names contain one of these")
    options.add_argument("--minutes", type=float, default=1, help="how long to scroll while memory is watched")
    options.add_argument("--times", action="store_true", help="let times by the clock fail, too; nothing else should run meanwhile")
    options.add_argument("--pictures", default=".build/viewer-pictures",
                         help="a folder for pictures of the page in each size, and of steps that failed (default: %(default)s)")
    parsed = options.parse_args()
    # A signal to this process ends the browser and the service too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    os.makedirs(parsed.pictures, exist_ok=True)
    kinds = {"chromium": [Browser], "firefox": [Firefox], "both": [Browser, Firefox]}[parsed.browser]
    failures = 0
    if parsed.part != "budget":
        failures += story.run(parsed.binary, kinds, parsed.pictures, parsed.chapter)
    if parsed.part != "story":
        with Service(os.path.abspath(parsed.binary)) as service, Browser() as browser:
            failures += budget.run(browser, service, parsed.minutes, parsed.times)
    sys.exit(min(failures, 100))


main()
