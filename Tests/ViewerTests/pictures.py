"""Compares small pictures of the page with those in Pictures/.

They are taken at a quarter of the size, at which letters are gray stripes: the positions and colors of things are
compared, not how a font draws an “a”.
"""

import base64
import os
import struct
import zlib

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "Pictures")
SCALE = 0.25


def pixels(png):
    """Width, height and the RGB bytes of a PNG of 8 bits a channel that is not interlaced."""
    place, packed = 8, b""
    while place < len(png):
        length, kind = struct.unpack(">I4s", png[place:place + 8])
        data = png[place + 8:place + 8 + length]
        if kind == b"IHDR":
            width, height, depth, color = struct.unpack(">IIBB", data[:10])
            assert depth == 8 and color in (2, 6) and not data[12]
        elif kind == b"IDAT":
            packed += data
        place += 12 + length
    step = 3 if color == 2 else 4
    raw, stride = zlib.decompress(packed), width * step
    above, rows = bytearray(stride), []
    for y in range(height):
        start = y * (stride + 1)
        kind, row = raw[start], bytearray(raw[start + 1:start + 1 + stride])
        for x in range(stride):
            left = row[x - step] if x >= step else 0
            if kind == 1:
                row[x] = (row[x] + left) & 255
            elif kind == 2:
                row[x] = (row[x] + above[x]) & 255
            elif kind == 3:
                row[x] = (row[x] + (left + above[x]) // 2) & 255
            elif kind == 4:
                corner = above[x - step] if x >= step else 0
                guess = left + above[x] - corner
                row[x] = (row[x] + min((left, above[x], corner), key=lambda value: abs(guess - value))) & 255
        rows.append(row)
        above = row
    return width, height, bytes(row[x] for row in rows for x in range(stride) if x % step < 3)


def compare(browser, name, selector, most):
    """Fails if an element differs from its picture by more than `most` of 255 in the mean.

    STILLWAVE_PICTURES=remake renews the picture instead.
    """
    clip = {**browser.box(selector), "scale": SCALE}
    taken = base64.b64decode(browser.devtools("Page.captureScreenshot", format="png", clip=clip)["data"])
    path = os.path.join(FOLDER, name + ".png")
    if os.environ.get("STILLWAVE_PICTURES") == "remake":
        os.makedirs(FOLDER, exist_ok=True)
        with open(path, "wb") as file:
            file.write(taken)
        return
    with open(path, "rb") as file:
        width, height, expected = pixels(file.read())
    taken_width, taken_height, got = pixels(taken)
    assert (taken_width, taken_height) == (width, height), f"{name}: {taken_width} x {taken_height}, not {width} x {height}"
    difference = sum(abs(a - b) for a, b in zip(got, expected)) / len(expected)
    assert difference <= most, f"{name} differs by {difference:.2f} of 255, {most} at the most; see {path}"
