import Foundation

/// Reading 200,000 labels from each format, and finding windows and texts in them through the real service.
struct LabelFigures {
  let binary: String
  let folder: String

  private static let count = 200_000
  private static let words = ["the", "noise", "of", "rain", "on", "an", "old", "roof", "Grüße", "again"]

  /// Prints a row per figure; returns how many missed their bound.
  func run() throws -> Int {
    var table = Table(title: "200,000 labels of nine hours")
    for name in ["json", "vtt", "srt", "lrc", "audacity"] { try measureReading(name, &table) }
    let sound = "\(folder)/600s.wav"
    try SyntheticRecording.write(seconds: 600, to: sound)
    let server = try Server(binary: binary, directory: folder)
    defer { server.stop() }
    let made = try post(sound, to: "/v1/recordings", server)
    guard let id = made.member("id"), let job = made.member("job") else {
      throw BenchmarkFailure(what: "the upload was answered \(made.status)")
    }
    _ = try server.finish(job: job)
    let posted = try post("\(folder)/labels.json", to: "/v1/recordings/\(id)/labels", server)
    guard posted.status == 201, let track = posted.field("location") else {
      throw BenchmarkFailure(what: "the labels were answered \(posted.status)")
    }
    table.row("POST of 200,000 labels as JSON", "\(rounded(posted.seconds)) s", "≤ 2 s", posted.seconds <= 2)
    try measureWindows(server, track, &table)
    return table.failures
  }

  private func post(_ path: String, to target: String, _ server: Server) throws -> Client.Answer {
    guard let file = FileHandle(forReadingAtPath: path) else { throw BenchmarkFailure(what: "no \(path)") }
    let length = Int64(try file.seekToEnd())
    try file.seek(toOffset: 0)
    return try server.client.send("POST", target, length: length) { send in
      while let piece = try file.read(upToCount: 1 << 20), !piece.isEmpty { try send(Array(piece)) }
    }
  }

  private func clock(_ milliseconds: Int, _ separator: String) -> String {
    let parts = [milliseconds / 3_600_000, milliseconds / 60_000 % 60, milliseconds / 1000 % 60]
    return parts.map { String(format: "%02d", $0) }.joined(separator: ":") + separator
      + String(format: "%03d", milliseconds % 1000)
  }

  /// Returns a label as a format writes it. A label begins every 0.16 s.
  private func label(_ index: Int, _ format: String) -> String {
    let words = (0..<4).map { Self.words[(index * 7 + $0 * 3 + index / 10) % 10] }.joined(separator: " ")
    let (start, end, text) = (index * 160, index * 160 + 150, "\(words) \(index)")
    func seconds(_ milliseconds: Int) -> String { "\(Double(milliseconds) / 1000)" }
    switch format {
    case "json":
      let label = #"{"start":\#(seconds(start)),"end":\#(seconds(end)),"text":"\#(text)"}"#
      return (index == 0 ? #"{"labels":["# : ",") + label + (index == Self.count - 1 ? "]}" : "")
    case "vtt": return (index == 0 ? "WEBVTT\n\n" : "") + "\(clock(start, ".")) --> \(clock(end, "."))\n\(text)\n\n"
    case "srt": return "\(index + 1)\n\(clock(start, ",")) --> \(clock(end, ","))\n\(text)\n\n"
    case "lrc":
      let rest = String(format: "%02d.%02d", start / 1000 % 60, start % 1000 / 10)
      return "[\(start / 60_000):\(rest)]\(text)\n"
    default: return "\(seconds(start))\t\(seconds(end))\t\(text)\n"
    }
  }

  /// Writes a file in pieces: a child counts the memory of this process too until it has begun.
  private func write(_ format: String, to path: String) throws -> Int {
    _ = FileManager.default.createFile(atPath: path, contents: nil)
    guard let file = FileHandle(forWritingAtPath: path) else { throw BenchmarkFailure(what: "no \(path)") }
    for first in stride(from: 0, to: Self.count, by: 1000) {
      try file.write(contentsOf: Data((first..<first + 1000).map { label($0, format) }.joined().utf8))
    }
    let length = Int(try file.offset())
    try file.close()
    return length
  }

  private func measureReading(_ format: String, _ table: inout Table) throws {
    let path = "\(folder)/labels.\(format)"
    let length = try write(format, to: path)
    let output = ["-o", "\(folder)/labels.out", "--format", "audacity"]
    let runs = try (0..<5).map { _ in try Child([binary, "labels", "convert", path, "--from", format] + output) }
    let (time, memory) = (median(runs.map(\.wall)), runs.map(\.peakResident).max() ?? 0)
    table.row(
      "read \(format) (\(length >> 20) MB), write Audacity's labels", "\(rounded(time)) s, \(memory / 1024) MB",
      "≤ 1 s, ≤ 100 MB", time <= 1 && memory <= 100 * 1024)
  }

  /// Windows of a minute and searches for each beginning of a text, all over the track.
  private func measureWindows(_ server: Server, _ track: String, _ table: inout Table) throws {
    func times(_ targets: [String]) throws -> [Double] {
      try targets.map { target in
        let answer = try server.client.get(track + target)
        guard answer.status == 200 else { throw BenchmarkFailure(what: "\(target) was answered \(answer.status)") }
        return answer.seconds
      }
    }
    let starts = (0..<500).map { $0 * 7919 % 31_940 }
    _ = try times(["?start=0&end=1"])
    for (name, length) in [("10 s", 10), ("a minute", 60)] {
      let found = try times(starts.map { "?start=\($0)&end=\($0 + length)" }).sorted()
      table.row(
        "window of \(name): median, 99th percentile",
        "\(rounded(median(found) * 1000)) ms, \(rounded(found[found.count * 99 / 100] * 1000)) ms", "< 5 ms",
        found[found.count * 99 / 100] < 0.005)
    }
    for text in ["g", "gr", "gr%C3%BC", "noise%20of", "roof%20123456", "nothing"] {
      let whole = try times((0..<5).map { _ in "?q=\(text)" })
      let window = try times((0..<20).map { "?q=\(text)&start=\($0 * 1000)&end=\($0 * 1000 + 600)" })
      table.row(
        "search for “\(text)”: everywhere, in 10 minutes",
        "\(rounded(median(whole) * 1000)) ms, \(rounded(median(window) * 1000)) ms", "", true)
    }
  }
}
