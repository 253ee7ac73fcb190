// A file whose tags, subtitles, or ffprobe's report of it are searched for labels.

import Labels

func fuzzEmbedded(_ input: [UInt8]) {
  let clock = EmbeddedClock(duration: MediaTime(seconds: 60), mpegFrameMicroseconds: 26_122, zero: 20_000)
  var (file, labels) = (MemoryBytes(input), EmbeddedLabels())
  labels.addTags(of: &file, clock)
  labels.addSubtitles(ofMatroska: &file, clock)
  labels.add(probe: input, clock)
  check(labels.tracks.count <= EmbeddedLabels.trackLimit, "there are too many tracks")
  for track in labels.tracks {
    check(!track.labels.isEmpty && areValid(track.labels), "the labels are not valid")
  }
  let document = labels.document()
  guard let again = try? EmbeddedLabels(parsing: document) else { return check(false, "the document can't be read") }
  check(again.tracks == labels.tracks, "the document has other tracks")
  _ = try? EmbeddedLabels(parsing: input)
}
