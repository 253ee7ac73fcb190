#!/usr/bin/env python3
"""Takes labels to Audacity and back.

    python3 audacity.py get <recording> <track> labels.txt       writes labels.txt, and labels.txt.etag beside it
    python3 audacity.py put <recording> <track> labels.txt       fails if somebody has changed the track meanwhile

In Audacity: File > Import > Labels, and File > Export > Export Labels.
"""

import sys

from stillwave import Failed, Stillwave


def main():
    action, recording, track, path = sys.argv[1:]
    service, address = Stillwave(), f"/v1/recordings/{recording}/labels/{track}"
    if action == "get":
        answer = service.call("GET", address, params={"format": "audacity"})
        with open(path, "wb") as file:
            file.write(answer.content)
        with open(path + ".etag", "w", encoding="utf-8") as file:
            file.write(answer.headers["ETag"])
        if "Stillwave-Left-Out" in answer.headers:
            print(f"Audacity's format can't hold these, and a put would lose them: {answer.headers['Stillwave-Left-Out']}")
        return
    with open(path, "rb") as labels, open(path + ".etag", encoding="utf-8") as etag:
        try:
            answer = service.call("PUT", address, params={"format": "audacity"}, data=labels.read(), headers={"If-Match": etag.read()})
        except Failed as failure:
            if failure.problem.get("status") != 412:
                raise
            sys.exit("The track was changed meanwhile: get it again, and merge.")
    with open(path + ".etag", "w", encoding="utf-8") as file:
        file.write(answer.headers["ETag"])


if __name__ == "__main__":
    main()
