"""The story of the page: chapters that begin with a data folder and an address, any of which runs alone."""

import os
import re
import shutil
import tempfile
import time
import traceback

import accessible
import asking
import failing
import formats
import labels
import listening
import listing
import moving
import opening
import saving
import sharing
import sizes
import spectra
import uploads
from material import Service, speech_like, write_wav
from webdriver import Browser

CHAPTERS = [
    opening.AFileIsDroppedAndCleaned, moving.TheViewIsMovedAndMarked, listening.ResultsAreHeardInStep,
    listening.TheSoundHasNoGaps, listing.RecordingsAreFoundRenamedAndDeleted, uploads.UploadsOutliveWhatGoesWrong,
    formats.FilesOfManyFormatsArePlayed, labels.LabelsAreEditedReadAndSung, saving.PartsNoiseAndLoudnessAreKept,
    asking.WhatIsDrawnIsAskedForFirst, spectra.TheSpectrogramIsReadAndEdited, sharing.AKeyOpensAndALinkSharesRecordings, sizes.EverythingHasRoomAtAnySizeInAnyLanguage,
    accessible.EverybodyCanUseIt, failing.WhatFailsSaysSoAndGoesOn,
]


def name(chapter):
    """The sentence that is the class's name."""
    return re.sub(r"(?<!^)(?=[A-Z])", " ", chapter.__name__).capitalize()


class Folders:
    """Data folders that chapters begin with copies of; the service makes each one, when it is first needed."""

    def __init__(self, binary, folder):
        self.binary, self.folder = binary, folder

    def prepared(self, content):
        """The folder: None for an empty one, "talk" with first.wav and talk.wav, "cleaned" also with talk (Natural).wav."""
        path = content and os.path.join(self.folder, content)
        if path and not os.path.exists(path):
            with Service(self.binary, self.prepared("talk" if content == "cleaned" else None)) as service:
                if content == "cleaned":
                    service.rename(service.clean(service.named("talk.wav")["id"], reduction=18), "talk (Natural).wav")
                else:
                    service.upload(write_wav(os.path.join(self.folder, "first.wav"), speech_like(8, 44100, seed=1), 44100))
                    # Sixteen minutes.
                    service.upload(write_wav(os.path.join(self.folder, "talk.wav"), speech_like(32, 16000, seed=1), 16000, repeats=30))
                service.stop()
                shutil.copytree(service.data, path)
        return path


def fail(step, error):
    """Says what has failed, and where."""
    places = [f"{os.path.basename(place.filename)}:{place.lineno}" for place in traceback.extract_tb(error.__traceback__)]
    print(f"  FAILED  {step}: {type(error).__name__}: {error} ({' '.join(places)})", flush=True)
    return True


def walk(chapter, kind, folders, pictures):
    """Walks through a chapter in a browser and with a service of its own. Returns whether it has failed."""
    step = "its beginning"
    with tempfile.TemporaryDirectory() as folder:
        try:
            with chapter.service(folders.binary, folders.prepared(chapter.data)) as service, kind() as browser:
                told = chapter(browser, service, folder, pictures)
                try:
                    told.begin()
                    for step, act in chapter.steps():
                        if browser.has_devtools or not hasattr(act, "why_chromium"):
                            act(told)
                            told.check_console()
                            print(f"  ok      {step}", flush=True)
                        else:
                            print(f"  only in Chromium: {step}: {act.why_chromium}", flush=True)
                except Exception as error:
                    fail(step, error)
                    browser.screenshot(os.path.join(pictures, f"failed {step}.png"))
                    return True
                for line in told.figures:
                    print(f"  {line}", flush=True)
        except Exception as error:
            return fail("beside the steps", error)
    return False


def run(binary, kinds, pictures, wanted):
    """Runs the chapters whose names contain one of `wanted`, or all. Returns how many have failed."""
    chosen = [chapter for chapter in CHAPTERS if not wanted or any(part.lower() in name(chapter).lower() for part in wanted)]
    assert chosen, "No chapter has such a name: " + "; ".join(map(name, CHAPTERS))
    failed = 0
    with tempfile.TemporaryDirectory(prefix="stillwave-story-") as folder:
        folders = Folders(os.path.abspath(binary), folder)
        for kind in kinds:
            for chapter in chosen:
                if kind is not Browser and not chapter.differs:
                    continue
                began = time.monotonic()
                print(f"{name(chapter)}, in {'Chromium' if kind is Browser else 'Firefox'}", flush=True)
                failed += walk(chapter, kind, folders, pictures)
                print(f"  {time.monotonic() - began:.0f} s", flush=True)
    return failed
