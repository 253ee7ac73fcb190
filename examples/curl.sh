#!/usr/bin/env bash
# Uploads a file, removes its noise, and downloads the result and a picture of both.
#   examples/curl.sh talk.wav clean.flac picture.png
set -euo pipefail
server=${STILLWAVE_URL:-http://127.0.0.1:8080}
call() { curl -fsS ${STILLWAVE_KEY:+-H "Authorization: Bearer $STILLWAVE_KEY"} "$@"; }

recording=$(call "$server/v1/recordings?name=$(basename "$1")" --data-binary "@$1" -H 'Content-Type: audio/wav' -o /dev/null -w '%header{location}')
job=$(call "$server$recording/denoise" --json '{"strength":"natural","format":"flac"}' -o /dev/null -w '%header{location}')

# Each call returns when the job has made progress, after 20 seconds at most.
until call "$server$job?wait=20" -o job.json && grep -qE '"state":"(succeeded|failed|cancelled)"' job.json; do :; done
grep -q '"state":"succeeded"' job.json || { cat job.json >&2; exit 1; }
result=$(sed -E 's/.*"recording":"([^"]+)".*/\1/' job.json) # the last one, in "result"
rm job.json

call -L "$server/v1/recordings/$result/audio" -o "$2"
call "$server$recording/waveform.png?width=800&overlay=$result" -o "$3"
echo "$result"
