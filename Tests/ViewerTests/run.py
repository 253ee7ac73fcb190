"""Drives the viewer in Chromium and Firefox. See deploy/viewer-test."""

import argparse
import os
import shutil
import signal
import sys

import budget
import material
import story
from firefox import Firefox
from webdriver import Browser, BrowserStopped


def main():
    options = argparse.ArgumentParser(
        prog="deploy/viewer-test",
        description="Walks through the viewer in Chromium and Firefox, and measures what it costs in Chromium.")
    options.add_argument("part", nargs="?", choices=["story", "budget", "all"], default="all")
    options.add_argument("--binary", default=".build/release/stillwave", help="the program (default: %(default)s)")
    options.add_argument("--browser", choices=["chromium", "firefox", "both"], default="both", help="who walks through the story")
    options.add_argument("--port", type=int, help="an empty service that runs already on this port of 127.0.0.1")
    options.add_argument("--minutes", type=float, default=1, help="how long to scroll while memory is watched")
    options.add_argument("--pictures", default=".build/viewer-pictures",
                         help="a folder for pictures of the page in each size, and of steps that failed (default: %(default)s)")
    options.add_argument("--step", help="only the steps of the story whose name matches this expression")
    parsed = options.parse_args()
    # A signal to this process ends the browser and the service too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    os.makedirs(parsed.pictures, exist_ok=True)
    failures = 0
    if parsed.browser != "firefox" or parsed.part != "story":
        failures += visit(parsed, Browser, parsed.part)
    if parsed.browser != "chromium" and parsed.part != "budget":
        if shutil.which("firefox-esr"):
            print("Firefox", flush=True)
            failures += visit_firefox(parsed)
        else:
            print("There is no firefox-esr; its part is left out.", file=sys.stderr)
    sys.exit(min(failures, 100))


def visit_firefox(parsed):
    """Runs the story in Firefox, once more if the browser stops although no step has failed. Returns how much has failed."""
    for is_last in (False, True):
        try:
            return visit(parsed, Firefox, "story")
        except BrowserStopped:
            if is_last or parsed.port:
                return 1
            print("Firefox has stopped; the story begins again in another one", flush=True)


def visit(parsed, kind, part):
    """Runs the story, the budget, or both in one browser with a service of its own.

    Returns how much has failed; throws `BrowserStopped`.
    """
    service = material.ServiceElsewhere(parsed.port) if parsed.port else material.Service(os.path.abspath(parsed.binary))
    browser, failures = None, 0
    try:
        browser = kind()
        if part != "budget":
            failures += story.run(browser, service, parsed.pictures, parsed.step)
        if part != "story":
            failures += budget.run(browser, service, parsed.minutes)
    finally:
        try:
            if browser:
                browser.close()
        finally:
            service.close()
    return failures


main()
