#!/usr/bin/env bash
# Draws spectrograms of changing-noise clips before and after noise removal, and prints levels at named places: the
# figures of "Listening checks" in denoise.md.
#   noise-levels.sh STILLWAVE CLIPS OUT
# STILLWAVE is the program, CLIPS a folder made by changing-noise.py --turn 1, and OUT gets the sound and the pictures.
# Needs sox.
set -euo pipefail
if [ $# -ne 3 ]; then
  sed -n '2,6s/^# \{0,1\}//p' "$0" >&2
  exit 2
fi
stillwave=$1 clips=$2 out=$3
mkdir -p "$out"

# Prints the level of a part in dBFS, of all frequencies or of the band after the first three arguments.
level() {
  local file=$1 start=$2 end=$3
  shift 3
  sox "$file" -n trim "$start" "=$end" "$@" stats 2>&1 | awk '/^RMS lev dB/ {if ($4 == "-inf") printf "none"; else printf "%.1f", $4}'
}

# Clip, region, then the places: name, start, end, band.
check() {
  local clip=$1 region=$2
  shift 2
  local noisy=$clips/$clip.wav
  "$stillwave" denoise "$noisy" -o "$out/$clip-region.wav" --force --progress none --noise "$region" --strength strong
  "$stillwave" denoise "$noisy" -o "$out/$clip-adapt.wav" --force --progress none --noise "$region" --strength strong \
    --adapt
  "$stillwave" denoise "$noisy" -o "$out/$clip-auto.wav" --force --progress none --noise auto --strength strong
  local version
  for version in "$noisy" "$out/$clip-region.wav" "$out/$clip-adapt.wav" "$out/$clip-auto.wav"; do
    sox "$version" -n spectrogram -x 800 -y 257 -z 90 -Z -10 -t "$(basename "$version" .wav)" \
      -o "$out/$(basename "$version" .wav).png"
  done
  while [ $# -gt 0 ]; do
    local name=$1 start=$2 end=$3 band=$4
    shift 4
    # A band is one argument or none.
    local filter=(${band:+sinc "$band"})
    printf '| `%s` | %s, %s to %s s%s |' "$clip" "$name" "$start" "$end" "${band:+, $band Hz}"
    for version in "$noisy" "$out/$clip-region.wav" "$out/$clip-adapt.wav" "$out/$clip-auto.wav" \
      "$clips/${clip}_clean.wav"; do
      printf ' %s |' "$(level "$version" "$start" "$end" "${filter[@]}")"
    done
    printf '\n'
  done
}

echo '| clip | place | noisy | region | `--adapt` | `auto` | speech alone |'
echo '| --- | --- | --- | --- | --- | --- | --- |'
# In each, the profile's region is 0 to 1.5 s, and the speech lasts from 2 to 12.5 s.
check up8_15dB 0-1.5 \
  'noise before the step' 1.55 1.95 '' 'speech before it' 2.1 4.9 '' \
  'speech after it' 5.3 5.7 '' 'noise 8 dB louder' 12.6 13.9 '' 'the same, bright' 12.6 13.9 3k-7k
check hum-on_15dB 0-1.5 \
  'noise before the hum' 1.55 1.95 '' 'pause with hum' 5.77 5.93 '' 'hum alone' 12.6 13.9 40-800 \
  'noise above the hum' 12.6 13.9 2k-7k 'speech in the hum' 6 7.4 ''
check train_15dB 0-1.5 \
  'noise before the train' 1.55 1.95 '' 'speech in the first train' 4.5 5.1 '' \
  'second train alone' 12.55 13.2 '' 'after it' 13.7 13.95 ''
