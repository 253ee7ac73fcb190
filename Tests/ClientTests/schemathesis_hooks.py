"""What schemathesis can't know from openapi.yaml."""

import base64

import schemathesis

# The length of the recording that the calls are given.
SECONDS = 2


@schemathesis.serializer("application/offset+octet-stream")
def octets(context, value):
    return {"data": value if isinstance(value, bytes) else str(value).encode()}


@schemathesis.hook
def filter_case(context, case):
    """Leaves out what is right by the schemas and wrong by the words: parameters that exclude each other, a window that
    ends before it starts, and what only an `Accept` makes known."""
    query = case.query if isinstance(case.query, dict) else {}
    if "scale" in query and "width" in query:
        return False
    headers = case.headers or {}
    # What it makes up for the pattern of this field does not fit it.
    if headers.get("Upload-Checksum") == "0" or not is_metadata(headers.get("Upload-Metadata")):
        return False
    if case.operation.path.endswith("/waveform") and "version" in query:
        return False
    # An upload has a length, now or later, except if it is joined from others.
    if case.operation.path == "/v1/uploads" and case.method == "POST" and (
            ("Upload-Length" in headers) == ("Upload-Defer-Length" in headers)
            or headers.get("Upload-Concat", "partial") != "partial"):
        return False
    # A name of which nothing is left without control characters and folders.
    if "name" in query and not any(map(str.isalnum, str(query["name"]))):
        return False
    if not is_consistent(case.operation.path, case.body):
        return False
    try:
        return float(query.get("start", 0)) < float(query.get("end", "inf"))
    except (TypeError, ValueError):
        return True


def is_consistent(path, body):
    """Whether a body's members fit each other, which the schemas only say in words."""
    if not isinstance(body, dict):
        return True
    if path == "/v1/batches":
        return all(is_consistent(f"/{name}", body.get(name)) for name in ("denoise", "trim"))
    if path == "/v1/tokens":
        is_upload = body.get("upload") is True
        others = ["recording", "scopes", "convert"] if is_upload else ["max_bytes"]
        return is_upload != (body.get("recording") is not None) and all(body.get(name) is None for name in others)
    if path == "/v1/noise-profiles":
        density = [body.get("frequencies"), body.get("power_db")]
        if None in density:
            others = ["steadiness", "sample_rate", "channels", "id", "created_at", "changed_at"]
            if (density != [None, None] or body.get("recording") is None
                    or any(body.get(name) is not None for name in others)):
                return False
        # One value for each channel.
        steadiness = body.get("steadiness")
        if isinstance(steadiness, list) and isinstance(density[1], list) and len(steadiness) != len(density[1]):
            return False
        # Frequencies ascend, which no JSON Schema can say, and each channel has a number for each of them.
        if isinstance(density[0], list) and not all(map(is_below, density[0], density[0][1:])):
            return False
        if all(isinstance(rows, list) for rows in density) and not all(
                len(row) == len(density[0]) for row in density[1] if isinstance(row, list)):
            return False
    if path.endswith("/denoise"):
        # A method that isn't installed, or has members of its own.
        if body.get("method") in ("none", "voice") or None not in (body.get("strength"), body.get("reduction")):
            return False
        boxes = (body.get("edit") or {}).get("boxes") if isinstance(body.get("edit"), dict) else None
        if isinstance(boxes, list) and not all(is_ordered(box) and is_band(box) for box in boxes):
            return False
    if path.endswith("/trim") and not (is_ordered(body) and is_below(body.get("start"), SECONDS)):
        return False
    noise = body.get("noise")
    if not isinstance(noise, dict):
        return True
    regions = noise.get("regions")
    if not isinstance(regions, list):
        return is_ordered(noise)
    ends = [0] + [region.get("end") for region in regions if isinstance(region, dict)]
    starts = [region.get("start") for region in regions if isinstance(region, dict)]
    return all(map(is_ordered, regions)) and all(is_below(end, start, True) for end, start in zip(ends, starts))


def is_ordered(window):
    return not isinstance(window, dict) or is_below(window.get("start"), window.get("end"))


def is_band(box):
    return not isinstance(box, dict) or is_below(box.get("min_hz"), box.get("max_hz"))


def is_below(first, second, or_equal=False):
    """Whether numbers ascend; true of anything else, which the schemas judge."""
    if not all(isinstance(number, (int, float)) for number in (first, second)):
        return True
    return first < second or or_equal and first == second


def is_metadata(text):
    """Whether keys stand once and values are UTF-8, which no pattern can say; what has no values is judged as it is."""
    try:
        pairs = [pair.split() for pair in (text or "").split(",")]
        keys = [pair[0] for pair in pairs if pair]
        for pair in pairs:
            base64.b64decode("".join(pair[1:2]), validate=True).decode()
        return len(set(keys)) == len(keys)
    except ValueError:
        return False
