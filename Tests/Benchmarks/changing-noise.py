#!/usr/bin/env python3
"""Makes clips of speech in noise that changes, for the table in denoise.md.

    changing-noise.py CLIPS OUT [--turn N]

CLIPS holds a manifest.csv and pairs of noisy and clean sound, with noise at both ends of each clip. Noisy minus clean
is the noise, so that speech and noise can be combined in other ways. OUT gets the same layout, so that the same scorer
reads it. --turn N combines other noises with other speech: tune with one turn, and measure with another.

Each kind of change occurs at 0, 5, 10, and 15 dB, the ratio before the change:

    up4 down4 up8 down8   the level changes by so many dB within 20 ms, in the middle of the speech
    hum-on hum-off        a 50 Hz hum with harmonics switches, 6 dB over the noise
    fan-on fan-off        a fan speeds up or runs down within 0.8 s, 8 dB over the noise
    train                 a train passes: 14 dB more within 3 s, first dull, then bright, then dull
    traffic               a street swells by 9 dB, twice

The clip at 15 dB of each kind is 14 s of espeak-ng, in which the change occurs at two places; the others are 7 to 8 s.
The profile's region lies before the first change, and the region for the residual noise after the last.
"""
import argparse, csv, math, os, subprocess, tempfile
import numpy as np, soundfile as sf
from scipy.signal import butter, resample_poly, sosfilt

RATE = 16000
KINDS = ["up4", "down4", "up8", "down8", "hum-on", "hum-off", "fan-on", "fan-off", "train", "traffic"]
STEADY = ["white", "pink", "rain", "airplane", "washer", "street"]
SENTENCES = [
    "The harbor was quiet that morning, and the boats lay still. Nobody had slept much. "
    "At eight the first ferry arrived with the mail, two crates of apples, and a very old piano.",
    "Please leave the key under the blue pot. The neighbors will water the plants on Tuesday. "
    "If it rains, close the window in the kitchen, and put the chairs into the shed.",
]


def level(x):
    return math.sqrt(float(np.mean(x * x)))


def read(path):
    x, rate = sf.read(path)
    return x if rate == RATE else resample_poly(x, RATE // math.gcd(rate, RATE), rate // math.gcd(rate, RATE))


def spoken(text, voice):
    """14 s of synthetic speech, with 2 s of silence before and 1.5 s after it."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "speech.wav")
        subprocess.run(["espeak-ng", "-v", voice, "-s", "150", "-w", path, text], check=True)
        x = read(path)
    x = x[: int(10.5 * RATE)]
    fade = int(0.05 * RATE)
    x[-fade:] *= np.linspace(1, 0, fade)
    y = np.zeros(14 * RATE)
    y[2 * RATE : 2 * RATE + len(x)] = 0.08 * x / level(x)
    return y


def lengthened(noise, count):
    """Repeats a noise with cross-faded seams."""
    fade = int(0.25 * RATE)
    rise = np.sin(np.linspace(0, math.pi / 2, fade))
    y = noise.copy()
    while len(y) < count:
        z = noise.copy()
        y[-fade:] = y[-fade:] * rise[::-1] + z[:fade] * rise
        y = np.concatenate([y, z[fade:]])
    return y[:count]


def switched(count, places, seconds):
    """0 before the first place, then 1, 0, … after each, with ramps."""
    t = np.arange(count) / RATE
    on = np.zeros(count)
    for index, place in enumerate(places):
        ramp = np.clip((t - place) / seconds + 0.5, 0, 1)
        on += (1 if index % 2 == 0 else -1) * (0.5 - 0.5 * np.cos(math.pi * ramp))
    return on


def hum(count, random):
    t = np.arange(count) / RATE
    y = sum(0.7**k * np.sin(2 * math.pi * 50 * k * t + random.uniform(0, 6.3)) for k in range(1, 16))
    return y / level(y)


def fan(count, random):
    t = np.arange(count) / RATE
    dull = sosfilt(butter(2, 700, fs=RATE, output="sos"), random.standard_normal(count))
    wide = sosfilt(butter(1, 3000, fs=RATE, output="sos"), random.standard_normal(count))
    blades = sum(np.sin(2 * math.pi * 118 * k * t + random.uniform(0, 6.3)) / k for k in range(1, 5))
    y = dull / level(dull) + 0.5 * wide / level(wide) + 0.5 * blades / level(blades)
    return y / level(y)


def changed(kind, noise, train, places, random):
    """The noise with its changes, which begin at `places` in seconds."""
    count = len(noise)
    t = np.arange(count) / RATE
    if kind[:2] == "up" or kind[:4] == "down":
        decibels = float(kind.strip("updown")) * (1 if kind[:2] == "up" else -1)
        return noise * 10 ** (decibels * switched(count, places, 0.02) / 20)
    if kind.startswith("hum") or kind.startswith("fan"):
        added = hum(count, random) if kind.startswith("hum") else fan(count, random)
        gain = (2.0 if kind.startswith("hum") else 2.5) * level(noise)
        on = switched(count, places, 0.02 if kind.startswith("hum") else 0.8)
        return noise + gain * added * (on if kind.endswith("on") else 1 - on)
    if kind == "train":
        y = noise.copy()
        dull = sosfilt(butter(2, 500, fs=RATE, output="sos"), train)
        for place in places:
            near = np.clip(1 - np.abs(t - place) / 1.5, 0, 1)
            near = 0.5 - 0.5 * np.cos(math.pi * near)
            y += 5 * level(noise) / level(train) * near * (near * train + (1 - near) * dull)
        return y
    near = sum(0.5 - 0.5 * np.cos(math.pi * np.clip(1 - np.abs(t - place) / 1.2, 0, 1)) for place in places)
    return noise * 10 ** (9 * near / 20)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clips")
    parser.add_argument("out")
    parser.add_argument("--turn", type=int, default=0)
    arguments = parser.parse_args()
    rows = list(csv.DictReader(open(os.path.join(arguments.clips, "manifest.csv"))))
    os.makedirs(arguments.out, exist_ok=True)

    def parts(row):
        clean = read(os.path.join(arguments.clips, row["clean"]))
        return clean, read(os.path.join(arguments.clips, row["noisy"])) - clean

    speech = [row for row in rows if row["layout"] == "start"]
    steady = [row for row in rows if row["noise_type"] in STEADY]
    streets = [row for row in rows if row["noise_type"] == "street"]
    trains = [row for row in rows if row["noise_type"] == "train"]
    written = []
    for number, kind in enumerate(KINDS):
        for place, ratio in enumerate([0, 5, 10, 15]):
            turn = 7 * arguments.turn + 4 * number + place
            random = np.random.default_rng(1000 * arguments.turn + 10 * number + place)
            if ratio == 15:
                clean = spoken(SENTENCES[number % 2], ["en-us", "en-gb", "en-us+f3"][number % 3])
                region, held, begins, ends, source = (0.0, 1.5), (12.7, 13.9), 2.0, 12.5, "espeak-ng"
            else:
                row = speech[turn % len(speech)]
                clean, _ = parts(row)
                region = float(row["noise_start"]), float(row["noise_end"])
                held = float(row["eval_start"]), float(row["eval_end"])
                begins, ends, source = region[1], held[0], row["speech_source"]
            steadies = streets if kind == "traffic" else steady
            noise = lengthened(parts(steadies[(turn * 5 + 3) % len(steadies)])[1], len(clean))
            train = lengthened(parts(trains[turn % len(trains)])[1], len(clean))
            span = ends - begins
            if kind == "train":
                places = [begins + 0.5 * span] if ratio < 15 else [begins + 0.25 * span, ends]
            elif kind == "traffic":
                places = [begins + 0.3 * span, ends] if ratio < 15 else [begins + 0.3 * span, ends + 0.5]
            else:
                places = [begins + 0.5 * span] if ratio < 15 else [begins + f * span for f in (0.3, 0.6, 0.8)]
            heard = clean[int(begins * RATE) : int(ends * RATE)]
            noise *= level(heard) / level(noise) * 10 ** (-ratio / 20)
            noisy = clean + changed(kind, noise, train, places, random)
            scale = min(1, 0.9 / np.max(np.abs(noisy)))
            name = f"{kind}_{ratio:02d}dB"
            sf.write(os.path.join(arguments.out, name + ".wav"), scale * noisy, RATE, subtype="PCM_16")
            sf.write(os.path.join(arguments.out, name + "_clean.wav"), scale * clean, RATE, subtype="PCM_16")
            written.append(
                dict(id=name, noisy=name + ".wav", clean=name + "_clean.wav", noise_start=region[0],
                     noise_end=region[1], eval_start=held[0], eval_end=held[1], snr=ratio, noise_type=kind, sr=RATE,
                     layout="start", speech_source=source))
    with open(os.path.join(arguments.out, "manifest.csv"), "w", newline="") as file:
        table = csv.DictWriter(file, written[0].keys())
        table.writeheader()
        table.writerows(written)


if __name__ == "__main__":
    main()
