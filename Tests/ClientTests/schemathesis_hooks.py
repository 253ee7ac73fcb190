"""What schemathesis can't know from openapi.yaml."""

import base64

import schemathesis


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
    try:
        return float(query.get("start", 0)) < float(query.get("end", "inf"))
    except (TypeError, ValueError):
        return True


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
