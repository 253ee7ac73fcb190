import Foundation
import Testing

/// A file like those of phones, browsers, and recorders, made by ffmpeg: a beep begins at each second, from 1 on. If
/// there are pictures, a white one appears at the same moment for 40 ms.
struct MediaClip: Sendable, CustomTestStringConvertible {
  let fileName: String
  /// Names used by the API.
  let container, codec: String
  let rate: Int
  let hasVideo: Bool
  /// Arguments for ffmpeg between its inputs (the beep, then the flash) and the file's name.
  let words: [String]

  var testDescription: String { "\(fileName) (\(container), \(codec))" }

  static let seconds = 5.0

  /// Cleans a clip without changing its beeps. Nothing in it is noise: beside the beeps there is only digital silence.
  static let cleaning = #"{"noise":{"quantile":0.2},"reduction":0}"#

  static let h264 = ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p"]
  static let vp8 = ["-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8"]

  /// The beep and the flash of a second begin at the same time, with no picture in between.
  var inputWords: [String] {
    let beep = "aevalsrc=0.7*sin(2*PI*1000*t)*lt(mod(t\\,1)\\,0.1)*gte(t\\,0.9):s=\(rate):d=\(Self.seconds)"
    let flash =
      "color=black:s=64x48:r=25:d=\(Self.seconds),"
      + "drawbox=color=white:t=fill:enable='lt(mod(t+0.001,1),0.04)*gte(t,0.9)'"
    return ["-v", "error", "-y", "-f", "lavfi", "-i", beep] + (hasVideo ? ["-f", "lavfi", "-i", flash] : [])
  }

  /// Makes the file and returns its path.
  func make(in folder: TemporaryFolder) throws -> String {
    let path = folder.file(fileName)
    try Tool.ffmpeg.run(inputWords + words + [path])
    return path
  }
}

/// Returns when a file's white pictures begin, in seconds on its own clock.
func flashes(in path: String) throws -> [Double] {
  // The checksum of a picture of one gray pixel is that of one byte: 0x00bb00bb, where bb is its brightness.
  let lines = try ffmpegLines([
    "-copyts", "-i", path, "-map", "0:v:0", "-vf", "scale=1:1:flags=area,format=gray", "-vsync", "passthrough",
    "-enc_time_base", "1:90000", "-f", "framecrc", "-",
  ])
  var unit = 0.0
  var found: [Double] = []
  var wasWhite = false
  for line in lines {
    if line.hasPrefix("#tb 0: ") {
      let parts = line.dropFirst(7).split(separator: "/").compactMap { Double($0) }
      unit = try #require(parts.first) / (try #require(parts.last))
    }
    let fields = line.split(separator: ",").map { $0.trimmingCharacters(in: .whitespaces) }
    guard !line.hasPrefix("#"), fields.count > 5, let time = Double(fields[2]) else { continue }
    let isWhite = try #require(UInt32(fields[5].dropFirst(2), radix: 16)) & 0xFF > 128
    if isWhite, !wasWhite { found.append(time * unit) }
    wasWhite = isWhite
  }
  return found
}

/// Returns the lines of ffmpeg's standard output.
func ffmpegLines(_ words: [String]) throws -> [String] {
  let finished = try Command("/usr/bin/env", ["ffmpeg", "-v", "error", "-nostdin"] + words).finish()
  try #require(finished.status == 0, "\(words): \(finished.errors)")
  return finished.lines
}

extension HTTPClient {
  /// Cleans a recording, by default so that its beeps don't change; returns the new one.
  func cleaned(_ recording: JSON, _ json: String = MediaClip.cleaning) throws -> JSON {
    try cleaned(try #require(recording["id"].string), json)
  }

  func cleaned(_ id: String, _ json: String = MediaClip.cleaning) throws -> JSON {
    let job = try denoise(id, json)
    try succeed(try #require(job["id"].string))
    return try recording(try #require(job["result"]["recording"].string))
  }

  /// Returns where the beeps near the given seconds begin in a recording's waveform, searched within 50 ms, from the
  /// samples.
  func beeps(in id: String, near seconds: [Double]) throws -> [Double] {
    try seconds.map { second in
      let answer = try get("/v1/recordings/\(id)/waveform?start=\(second - 0.05)&end=\(second + 0.05)&scale=1")
      try #require(answer.status == 200, "\(answer.text)")
      let slice = answer.json
      let data = try #require(slice["data"].integers)
      let loud = try #require(data.firstIndex { $0.magnitude > 4000 }, "no beep near \(second)")
      let frame = try #require(slice["start_frame"].int) + loud / 2
      return Double(frame) / (try #require(slice["sample_rate"].double))
    }
  }
}
