"""Runs the tests that say what a store must offer, and what media in a bucket must do, on a store."""

import os
import shutil
import subprocess
import tempfile

from bucket import NAME, SECRET, Bucket

TESTS = r"^(S3StorageTests\.StoreConformanceTests|StorageTests\.BlobsTests)"


def conformance(program, store):
    """Returns the exit status of the tests."""
    folder = tempfile.mkdtemp(prefix="stillwave-conformance-")
    bucket = Bucket(store, folder, os.path.dirname(program), "127.0.0.1")
    try:
        # Without the line: it's the store that is tested.
        return subprocess.run(
            ["swift", "test", "--skip-build", "--ignore-lock", "--filter", TESTS],
            env={**os.environ, "STILLWAVE_TEST_STORE": f"s3://{NAME}?endpoint=http://{bucket.store.address}",
                 "AWS_ACCESS_KEY_ID": bucket.store.KEY, "AWS_SECRET_ACCESS_KEY": SECRET}).returncode
    finally:
        bucket.stop()
        shutil.rmtree(folder, ignore_errors=True)
