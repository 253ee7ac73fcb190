"""Drives the viewer in Chromium. See deploy/viewer-test."""

import argparse
import os
import sys

import material
import story
from webdriver import Browser


def main():
    options = argparse.ArgumentParser(prog="deploy/viewer-test", description="Tests the viewer in Chromium and measures it.")
    options.add_argument("--binary", default=".build/release/stillwave", help="the program (default: %(default)s)")
    options.add_argument("--port", type=int, help="a service that runs already on this port of 127.0.0.1, and is empty")
    options.add_argument("--screenshots", help="a folder for pictures of what failed")
    options.add_argument("--step", help="only the steps whose name holds this")
    parsed = options.parse_args()
    service = material.ServiceElsewhere(parsed.port) if parsed.port else material.Service(os.path.abspath(parsed.binary))
    browser = Browser()
    try:
        failures = story.run(browser, service, parsed.screenshots, parsed.step)
    finally:
        browser.close()
        service.close()
    sys.exit(1 if failures else 0)


main()
