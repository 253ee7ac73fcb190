#!/usr/bin/env bash
# Makes the README's pictures anew: speech from espeak-ng in pink noise, and what `stillwave denoise` makes of it.
#   Tests/WaveformTests/Pictures/readme.sh [PROGRAM]      by default .build/release/stillwave
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
program=${1:-$here/../../../.build/release/stillwave}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

text='Good morning, and welcome back. Today we walk along the river, from the old mill to the harbour. The water is high
this spring! You can hear it under the bridge, and behind us, the road. Wait. A heron, over there, between the reeds. It
has not seen us yet. Two years ago there were none left in the whole valley; last summer we counted eleven. How did that
happen? Nobody cut the grass. That is the whole secret. Let us go on, slowly, and listen.'
espeak-ng -v en-gb+m3 -s 150 -p 40 -g 4 -w "$work/voice.wav" "$text"
sox "$work/voice.wav" -r 44100 -b 16 -c 1 "$work/speech.wav" pad 1.5 1.5 reverb 25 norm -4
sox -R -n -r 44100 -b 16 -c 1 "$work/noise.wav" synth "$(soxi -D "$work/speech.wav")" pinknoise gain -14
sox -R -m -v 1 "$work/speech.wav" -v 1 "$work/noise.wav" "$work/noisy.wav"
"$program" denoise "$work/noisy.wav" -o "$work/clean.wav" --noise 0.1-1.4 --strength strong

draw() {
  "$program" waveform "$work/noisy.wav" -o "$here/$1.png" --overlay "$work/clean.wav" --axis --background white \
    --width 900 --height 150 --pixel-ratio 2 --amplitude-scale auto "${@:2}"
}
draw readme-overlay --start 0.5 --end 15.5
draw readme-samples --start 4.27 --end 4.3
