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
    for (name, text) in files() { try measureParsing(name, text, &table) }
    try SyntheticRecording.write(seconds: 600, to: "\(folder)/600s.wav")
    let server = try Server(binary: binary, directory: folder)
    defer { server.stop() }
    let wave = Array(try Data(contentsOf: URL(fileURLWithPath: "\(folder)/600s.wav")))
    let made = try server.client.send("POST", "/v1/recordings", length: Int64(wave.count)) { try $0(wave) }
    guard let id = made.member("id"), let job = made.member("job") else {
      throw BenchmarkFailure(what: "the upload was answered \(made.status)")
    }
    _ = try server.finish(job: job)
    let body = Array((files()["json"] ?? "").utf8)
    let posted = try server.client.send("POST", "/v1/recordings/\(id)/labels", length: Int64(body.count)) {
      try $0(body)
    }
    guard posted.status == 201, let track = posted.field("location") else {
      throw BenchmarkFailure(what: "the labels were answered \(posted.status)")
    }
    table.row("POST of 200,000 labels as JSON", "\(rounded(posted.seconds)) s", "≤ 2 s", posted.seconds <= 2)
    try measureWindows(server, track, &table)
    return table.failures
  }

  /// Starts and texts of labels that follow each other every 0.16 s.
  private func label(_ index: Int) -> (start: Double, end: Double, text: String) {
    let text = (0..<4).map { Self.words[(index * 7 + $0 * 3 + index / 10) % 10] }.joined(separator: " ")
    return (Double(index * 160) / 1000, Double(index * 160 + 150) / 1000, "\(text) \(index)")
  }

  private func clock(_ seconds: Double, _ separator: String) -> String {
    let whole = Int((seconds * 1000).rounded())
    let parts = [whole / 3_600_000, whole / 60_000 % 60, whole / 1000 % 60].map { String(format: "%02d", $0) }
    return parts.joined(separator: ":") + separator + String(format: "%03d", whole % 1000)
  }

  private func files() -> [String: String] {
    let labels = (0..<Self.count).map(label)
    return [
      "json": #"{"labels":["#
        + labels.map { #"{"start":\#($0.start),"end":\#($0.end),"text":"\#($0.text)"}"# }.joined(separator: ",") + "]}",
      "vtt": "WEBVTT\n\n"
        + labels.map { "\(clock($0.start, ".")) --> \(clock($0.end, "."))\n\($0.text)\n" }.joined(separator: "\n"),
      "srt": labels.enumerated().map {
        "\($0 + 1)\n\(clock($1.start, ",")) --> \(clock($1.end, ","))\n\($1.text)\n"
      }.joined(separator: "\n"),
      "lrc": labels.map { label in
        let seconds = String(format: "%06.3f", label.start.truncatingRemainder(dividingBy: 60))
        return "[\(Int(label.start) / 60):\(seconds)]\(label.text)\n"
      }.joined(),
      "audacity": labels.map { "\($0.start)\t\($0.end)\t\($0.text)\n" }.joined(),
    ]
  }

  private func measureParsing(_ name: String, _ text: String, _ table: inout Table) throws {
    let path = "\(folder)/labels.\(name)"
    try Data(text.utf8).write(to: URL(fileURLWithPath: path))
    let output = ["-o", "\(folder)/labels.out", "--format", "audacity"]
    let command = [binary, "labels", "convert", path, "--from", name] + output
    var (times, memory) = ([Double](), 0)
    for _ in 0..<5 {
      let run = try Child(command)
      times.append(run.wall)
      memory = max(memory, run.peakResident)
    }
    let time = median(times)
    table.row(
      "read \(name), \(text.utf8.count >> 20) MB, and write Audacity's", "\(rounded(time)) s, \(memory / 1024) MB",
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
