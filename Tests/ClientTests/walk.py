"""From an upload to the cleaned file, with nothing but the client that openapi-python-client has generated.

    walk.py ADDRESS
"""

import io
import struct
import sys
import wave

from stillwave_client import Client
from stillwave_client.api.denoise import denoise_recording, list_noise_regions, preview_denoise
from stillwave_client.api.jobs import get_job, list_jobs
from stillwave_client.api.operating import get_health, get_open_api, get_problem
from stillwave_client.api.recordings import (
    delete_recording, get_audio, get_recording, list_recordings, rename_recording, upload_recording)
from stillwave_client.api.uploads import append_to_upload, create_upload, delete_upload, get_upload
from stillwave_client.api.waveforms import get_peaks, get_waveform, get_waveform_dat, get_waveform_png, get_waveform_svg
from stillwave_client.models import (
    DenoiseRequest, JobState, NoiseRegion, PreviewRequest, PreviewRequestWindow, Problem, ProblemCode, RecordingChange,
    TusVersion, UploadRecordingFilesBody)
from stillwave_client.types import File

import sound

SECONDS = 4
content = sound.wave(SECONDS)
client = Client(base_url=sys.argv[1], raise_on_unexpected_status=True)


def file(bytes):
    return File(payload=io.BytesIO(bytes), file_name="part.wav")


def ended(job):
    """Polls as the document says: each answer comes with news, or after so many seconds."""
    while job.state in (JobState.QUEUED, JobState.RUNNING):
        job = get_job.sync(job.id, client=client, wait=20)
    assert job.state == JobState.SUCCEEDED, job
    return job


# Upload: the bytes as they are, and as a form. A repeat under the same key is answered again, and says so.
first = upload_recording.sync_detailed(
    client=client, body=file(content), name="walk.wav", idempotency_key="walk")
again = upload_recording.sync_detailed(
    client=client, body=file(content), name="walk.wav", idempotency_key="walk")
recording = first.parsed
assert first.status_code == 201 and again.parsed.id == recording.id
assert "idempotency-replayed" not in first.headers and again.headers["idempotency-replayed"] == "true"
form = upload_recording.sync(client=client, body=UploadRecordingFilesBody(file=file(content)))
assert form.name == "part.wav" and form.sha256 == recording.sha256 and form.bytes_ == len(content)
ended(get_job.sync(recording.waveform.job, client=client))
assert get_recording.sync(recording.id, client=client).waveform.state == "ready"

# Waveform: the defaults that the client sends by itself, a scale, a width, and the binary form.
whole = get_waveform.sync(recording.id, client=client)
assert whole.complete and whole.total_frames == SECONDS * sound.RATE, whole
for slice in (get_waveform.sync(recording.id, client=client, scale=512), get_waveform.sync(recording.id, client=client, width=50)):
    assert slice.length > 0 and len(slice.data) == 2 * slice.length
dat = get_waveform_dat.sync(recording.id, client=client, scale=512).payload.read()
version, flags, rate, scale, length, channels = struct.unpack("<iIiiIi", dat[:24])
assert (version, flags, rate, scale, channels) == (2, 0, sound.RATE, 512, 1) and length == SECONDS * sound.RATE // 512
assert len(dat) == 24 + 4 * length
assert list(struct.unpack(f"<{2 * length}h", dat[24:])) == get_waveform.sync(recording.id, client=client, scale=512).data
assert len(get_peaks.sync(recording.id, client=client, width=10).peaks) == 1
assert get_waveform_png.sync(recording.id, client=client, width=99).payload.read(4) == b"\x89PNG"
assert get_waveform_svg.sync(recording.id, client=client, amplitude_scale=2.5, color="Navy").payload.read(4) == b"<svg"

# Denoise with the defaults, with a reduction, and as a preview; poll; download.
regions = list_noise_regions.sync(recording.id, client=client)
assert regions.complete
for request in (DenoiseRequest(), DenoiseRequest(noise=NoiseRegion(0.1, 1.5), reduction=12.0, name="clean.wav")):
    job = ended(denoise_recording.sync(recording.id, client=client, body=request))
    clean = get_audio.sync(job.result.recording, client=client).payload
    with wave.open(clean) as reader:
        assert (reader.getframerate(), reader.getnframes()) == (sound.RATE, SECONDS * sound.RATE)
assert get_recording.sync(job.result.recording, client=client).name == "clean.wav"
preview = preview_denoise.sync(recording.id, client=client, body=PreviewRequest(window=PreviewRequestWindow(1, 2)))
with wave.open(preview.payload) as reader:
    assert reader.getnframes() == sound.RATE
assert get_audio.sync(recording.id, client=client).payload.read() == content
assert get_audio.sync(recording.id, client=client, range_="bytes=0-3").payload.read() == b"RIFF"

# Lists, changes, errors.
pages = list_recordings.sync_detailed(client=client, limit=1)
assert 'rel="next"' in pages.headers["link"] and pages.parsed.next_cursor
assert list_jobs.sync(client=client, state=JobState.SUCCEEDED, recording=recording.id).jobs
assert rename_recording.sync(recording.id, client=client, body=RecordingChange("other.wav")).name == "other.wav"
assert delete_recording.sync_detailed(form.id, client=client).status_code == 204
gone = get_recording.sync(form.id, client=client)
assert isinstance(gone, Problem) and gone.code == ProblemCode.NOT_FOUND and gone.type_ == "/problems/not_found"
assert "deleted" in get_problem.sync("not_found", client=client)
assert get_health.sync(client=client).status == "ok"
assert "openapi: 3.1.0" in get_open_api.sync(client=client)

# Resumable, in two pieces; and one that is given up.
tus = {"client": client, "tus_resumable": TusVersion.VALUE_0}
begun = create_upload.sync_detailed(**tus, upload_length=len(content), upload_metadata="filename dHVzLndhdg==")
upload = begun.headers["location"].rsplit("/", 1)[1]
for start, end in ((0, 5_000), (5_000, len(content))):
    told = get_upload.sync_detailed(upload, **tus)
    assert int(told.headers["upload-offset"]) == start
    sent = append_to_upload.sync_detailed(upload, **tus, upload_offset=start, body=file(content[start:end]))
    assert sent.status_code == 204, sent
assert get_recording.sync(sent.headers["stillwave-recording"], client=client).name == "tus.wav"
begun = create_upload.sync_detailed(**tus, upload_length=8)
assert delete_upload.sync_detailed(begun.headers["location"].rsplit("/", 1)[1], **tus).status_code == 204
