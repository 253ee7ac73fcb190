"""Material for the clients."""

import io
import math
import random
import struct
import wave as wav

RATE = 16_000


def wave(seconds):
    """A WAV file: noise, and a tone over its second half."""
    chance = random.Random(15)
    frames = seconds * RATE
    samples = []
    for frame in range(frames):
        tone = 8_000 * math.sin(2 * math.pi * 440 * frame / RATE) if frame > frames // 2 else 0
        samples.append(int(tone + chance.gauss(0, 300)))
    file = io.BytesIO()
    with wav.open(file, "wb") as writer:
        writer.setparams((1, 2, RATE, 0, "NONE", ""))
        writer.writeframes(struct.pack(f"<{frames}h", *samples))
    return file.getvalue()
