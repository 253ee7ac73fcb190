import Foundation
import Testing

/// Sound is where players have it. The table in docs/formats.md is written by this test and checked against it:
///
///     STILLWAVE_TABLES=remake deploy/test --filter PositionTableTests
@Suite(.serialized) struct PositionTableTests {
  /// The measurements of one format, in milliseconds after the beeps as ffmpeg plays the uploaded file.
  private struct Result {
    var waveform, wav, cleaned: Double
    /// Whether the cleaned file's pictures have the source's times; nil without pictures.
    var keepsPictures: Bool?

    func line(_ row: PositionRow) -> String {
      func text(_ value: Double) -> String { String(format: "%.1f", value.magnitude < 0.05 ? 0 : value) }
      let pictures = keepsPictures.map { $0 ? "equal" : "not equal" } ?? "none"
      let cells = [row.kind, row.program, text(waveform), text(wav), text(cleaned), pictures]
      return "| " + cells.joined(separator: " | ") + " |"
    }
  }

  private static let document = URL(fileURLWithPath: #filePath).deletingLastPathComponent()
    .appending(path: "../../docs/formats.md").standardized.path
  private static let (begin, end) = ("<!-- table of positions -->", "<!-- end of table -->")
  private static let head = [
    "| kind of file | written by | waveform, ms | `?format=wav`, ms | cleaned, ms | times of the pictures |",
    "| --- | --- | --- | --- | --- | --- |",
  ]

  @Test("waveform, WAV, and cleaned file match players' times, as in the table", .secondTier)
  func table() throws {
    let server = try TestServer("--workers", "2")
    let material = try PositionRow.Material(in: server.folder)
    var lines: [String] = []
    for row in PositionRow.all {
      let result: Result
      do { result = try measure(row, material, server) } catch {
        Issue.record("\(row.kind) by \(row.program): \(error)")
        continue
      }
      for offset in [result.waveform, result.wav, result.cleaned] {
        #expect(offset.magnitude < 1, "\(row.kind) by \(row.program): \(result)")
      }
      #expect(result.keepsPictures != false, "\(row.kind) by \(row.program)")
      lines.append(result.line(row))
    }
    try server.stop()
    try compare(Self.head + lines)
  }

  private func measure(_ row: PositionRow, _ material: PositionRow.Material, _ server: TestServer) throws -> Result {
    let path = try row.make(material)
    let (client, times) = (server.client, try pictureTimes(path))
    let recording = try client.uploadReady(contents(path), name: row.file)
    let id = try #require(recording["id"].string)
    // A second cleaning would find nothing different.
    let job = try client.denoise(id, MediaClip.cleaning)
    try client.succeed(try #require(job["id"].string))
    let (wav, cleaned) = (material.folder.file("converted.wav"), material.folder.file("cleaned-\(row.file)"))
    let converted = try client.conversion("/v1/recordings/\(id)/audio?format=wav")
    try #require(converted.status == 200, "\(row.kind): \(converted.text)")
    try write(converted.body, to: wav)
    let other = try #require(job["result"]["recording"].string)
    try write(try client.get("/v1/recordings/\(other)/audio").body, to: cleaned)

    // The clocks of broadcasts and discs begin with their content.
    let isForeign = row.file.hasSuffix(".ts") || row.file.hasSuffix(".mpg")
    let base = isForeign && !times.isEmpty ? try firstTime(path) : 0
    let expected = try beeps(in: path, onClock: !times.isEmpty).map { $0 - base }
    func late(_ found: [Double]) -> Double {
      zip(found, expected).map { 1000 * ($0 - $1) }.max { $0.magnitude < $1.magnitude } ?? .infinity
    }
    let cleanedTimes = try pictureTimes(cleaned)
    return Result(
      waveform: late(try client.beeps(in: id, near: expected)), wav: late(try beeps(in: wav, onClock: false)),
      cleaned: late(try beeps(in: cleaned, onClock: !cleanedTimes.isEmpty).map { $0 - base }),
      keepsPictures: times.isEmpty ? nil : times == cleanedTimes)
  }

  /// The times at which a file's pictures are shown, in order, as stored in the file.
  func pictureTimes(_ path: String) throws -> [String] {
    let words = ["-v", "error", "-select_streams", "V", "-show_entries", "packet=pts_time", "-of", "csv=p=0", path]
    let finished = try Command("/usr/bin/env", ["ffprobe"] + words).finish()
    try #require(finished.status == 0, "\(path): \(finished.errors)")
    return finished.lines.filter { !$0.isEmpty }.map { String($0.prefix { $0 != "," }) }.sorted()
  }

  /// When the first sound or picture of a file begins, on the file's clock.
  private func firstTime(_ path: String) throws -> Double {
    let words = ["-v", "error", "-show_entries", "packet=pts_time", "-of", "csv=p=0", path]
    let finished = try Command("/usr/bin/env", ["ffprobe"] + words).finish()
    return try #require(finished.lines.compactMap { Double($0.prefix { $0 != "," }) }.min(), "\(path)")
  }

  /// Returns when a file's beeps begin as ffmpeg plays it: after the first decoded sound or, with `onClock`, on the
  /// file's clock, which the pictures use.
  func beeps(in path: String, onClock: Bool) throws -> [Double] {
    let sound = ["-map", "0:a:0", "-ac", "1", "-c:a", "pcm_s16le"]
    let frames = try DecodedFrames(ffmpegLines(["-copyts", "-i", path] + sound + ["-f", "framecrc", "-"]))
    let words = ["-v", "error", "-nostdin", "-i", path] + sound + ["-f", "s16le", "-"]
    let finished = try Command("/usr/bin/env", ["ffmpeg"] + words).finish()
    try #require(finished.status == 0, "\(path): \(finished.errors)")
    let bytes = finished.output
    var (found, quiet) = ([Double](), 0)
    for frame in 0..<bytes.count / 2 {
      let sample = Int16(bitPattern: UInt16(bytes[2 * frame]) | UInt16(bytes[2 * frame + 1]) << 8)
      if sample.magnitude > 4000 {
        // A tenth of a second of beep, then nine of silence.
        if quiet > frames.rate / 2 { found.append(frames.time(of: frame, onClock: onClock)) }
        quiet = 0
      } else {
        quiet += 1
      }
    }
    try #require(found.count == 2, "\(path): \(found)")
    return found
  }

  /// The times of the parts of the sound, from ffmpeg's decoder: lines of "framecrc".
  private struct DecodedFrames {
    var rate = 0
    private var parts: [(seconds: Double, frames: Int)] = []

    init(_ lines: [String]) throws {
      var unit = 0.0
      for line in lines {
        let fields = line.split { "#:/, ".contains($0) }
        if line.hasPrefix("#sample_rate") { rate = try #require(Int(fields[2])) }
        if line.hasPrefix("#tb") { unit = try #require(Double(fields[2])) / (try #require(Double(fields[3]))) }
        guard !line.hasPrefix("#"), let time = Double(fields[2]), let bytes = Int(fields[4]) else { continue }
        parts.append((time * unit, bytes / 2))
      }
      try #require(rate > 0 && !parts.isEmpty)
    }

    /// Matroska rounds each time by itself, and players go by the majority: the median of nearby offsets.
    func time(of frame: Int, onClock: Bool) -> Double {
      var (first, number, offsets) = (0, 0, [Double]())
      for part in parts {
        offsets.append(part.seconds - Double(first) / Double(rate))
        first += part.frames
        if first <= frame { number += 1 }
      }
      let near = offsets[max(number - 16, 0)..<min(number + 16, offsets.count)].sorted()
      return Double(frame) / Double(rate) + (onClock ? near[near.count / 2] : 0)
    }
  }

  /// Compares the table with the document's; values may differ by a tenth of a millisecond.
  private func compare(_ lines: [String]) throws {
    let text = String(decoding: try contents(Self.document), as: UTF8.self)
    let parts = text.components(separatedBy: Self.begin + "\n")
    let rest = try #require(parts.last).components(separatedBy: Self.end)
    try #require(parts.count == 2 && rest.count == 2, "docs/formats.md has no place for the table")
    if ProcessInfo.processInfo.environment["STILLWAVE_TABLES"] == "remake" {
      let table = lines.joined(separator: "\n") + "\n"
      return try write(Array((parts[0] + Self.begin + "\n" + table + Self.end + rest[1]).utf8), to: Self.document)
    }
    let written = rest[0].split(separator: "\n").map(String.init)
    #expect(written.count == lines.count, "docs/formats.md is out of date")
    for (line, other) in zip(lines, written) {
      let pairs = zip(line.components(separatedBy: " | "), other.components(separatedBy: " | "))
      let agrees = pairs.allSatisfy { cell, other in
        guard let value = Double(cell), let number = Double(other) else { return cell == other }
        return (value - number).magnitude < 0.11
      }
      #expect(agrees, "docs/formats.md is out of date: \(other); measured: \(line)")
    }
  }
}
