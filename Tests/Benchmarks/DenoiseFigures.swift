import AudioIO
import Foundation
import Terms

/// Denoising a file compared with SoX, on one core and on two, and previewing over HTTP.
struct DenoiseFigures {
  let binary: String
  let folder: String
  let seconds: Int

  private static let shortSeconds = 600
  private static let rounds = 5
  private static let sampleRates = [44_100, 48_000]

  private var long: String { "\(folder)/\(seconds)s.wav" }
  private var short: String { short(SyntheticRecording.sampleRate) }
  private var wide: String { "\(folder)/8-channels.wav" }
  private func result(_ number: Int = 0) -> String { "\(folder)/denoised-\(number).wav" }

  private func short(_ sampleRate: Int) -> String {
    let suffix = sampleRate == SyntheticRecording.sampleRate ? "" : "-\(sampleRate)"
    return "\(folder)/\(Self.shortSeconds)s\(suffix).wav"
  }

  /// Prints a row per figure; returns how many missed their bound.
  func run() throws -> Int {
    var table = Table(
      title: "\nNoise removal (stereo 16-bit WAV; medians of \(Self.rounds) runs in turn, their range, and goals)")
    try SyntheticRecording.write(seconds: seconds, to: long)
    for rate in Self.sampleRates {
      try SyntheticRecording.write(seconds: Self.shortSeconds, to: short(rate), sampleRate: rate)
    }
    try writeWide()
    defer {
      for number in 0...1 { try? FileManager.default.removeItem(atPath: result(number)) }
    }
    for rate in Self.sampleRates { try measureWork(&table, sampleRate: rate) }
    try measureLong(&table)
    try measurePreview(&table)
    return table.failures
  }

  private func denoise(
    _ path: String, threads: Int, to number: Int = 0, progress: String = "none", log: String = "/dev/null"
  ) throws -> Child {
    // Freeing an existing file's cache takes time too.
    try? FileManager.default.removeItem(atPath: result(number))
    return try Child(
      [
        binary, "denoise", path, "-o", result(number), "--noise", "0-\(SyntheticRecording.noiseEnd)", "--threads",
        "\(threads)",
        "--progress", progress,
      ], output: log)
  }

  /// SoX learns a profile and then removes it, in two runs.
  private func soxWork(_ program: String, _ path: String) throws -> Double {
    let profile = "\(folder)/noise.prof"
    let learnt = try Child([
      program, path, "-n", "trim", "0", "\(SyntheticRecording.noiseEnd)", "noiseprof", profile,
    ])
    return learnt.work + (try Child([program, path, "\(folder)/sox.wav", "noisered", profile, "0.21"]).work)
  }

  private func measureWork(_ table: inout Table, sampleRate: Int) throws {
    guard let sox = Child.find("sox") else {
      throw BenchmarkFailure(what: "sox is not installed; deploy/install bench installs it")
    }
    let path = short(sampleRate), name = "\(Self.shortSeconds) s at \(Double(sampleRate) / 1000) kHz"
    var (theirs, alone, both, halves): ([Double], [Child], [Child], [Double]) = ([], [], [], [])
    for _ in 0..<Self.rounds {
      theirs.append(try soxWork(sox, path))
      alone.append(try denoise(path, threads: 1))
      both.append(try denoise(path, threads: 2))
      try? FileManager.default.removeItem(atPath: result(1))
      halves.append(try Child.halfOfTwo { try denoise(path, threads: 1, to: $0) })
    }
    let gains = zip(theirs, alone).map { $0 / $1.work }
    table.row(
      "SoX / denoise, CPU time, \(name)",
      "\(spread(gains)) (\(rounded(median(theirs))) s / \(rounded(median(alone.map(\.work)))) s)", "goal ≥ 4.5 ×",
      median(gains) >= 4.5)
    let paces = alone.map { Double(Self.shortSeconds) / $0.wall }
    table.row("denoise on one core, \(name)", "\(spread(paces)) real time", "≥ 200 ×", median(paces) >= 200)
    let shares = zip(both, alone).map { $0.wall / $1.wall }
    table.row(
      "two cores / one by the clock, \(name)",
      "\(spread(shares)) (\(rounded(median(both.map(\.wall)))) s / \(rounded(median(alone.map(\.wall)))) s)",
      "goal ≤ 0.56 ×", median(shares) <= 0.56)
    let bounds = zip(halves, alone).map { $0 / $1.wall }
    table.row("  at best: two runs at once / two in turn, \(name)", spread(bounds), "", true)
  }

  private func measureLong(_ table: inout Table) throws {
    let log = "\(folder)/progress.json"
    let files = seconds == Self.shortSeconds ? [] : [("\(Self.shortSeconds) s", short)]
    for (name, path) in files + [("\(seconds) s", long), ("8 channels", wide)] {
      let run = try denoise(path, threads: 2, progress: "json", log: log)
      let peak = Double(run.peakResident) / 1024
      table.row("peak resident memory, \(name)", "\(rounded(peak)) MB", "goal ≤ 64 MB", peak <= 64)
      guard path == long else { continue }
      let lines = try String(contentsOfFile: log, encoding: .utf8).split(separator: "\n").count
      let rate = Double(lines) / run.wall
      table.row("progress told, \(name)", "\(rounded(rate)) times a second", "≥ 10", rate >= 10)
    }
  }

  /// About a minute of eight channels, each a part of the recording. Written piece by piece, because the peak that the
  /// kernel reports for a child starts with this program's own.
  private func writeWide() throws {
    var reader = try AudioReader(path: short)
    let format = AudioFormat(
      container: .wav, codec: .pcmS16, sampleRate: SyntheticRecording.sampleRate, channels: 8)
    let pieces = 320
    let frames = 1 << 15
    var writer = try AudioWriter(creating: wide, format: format, expectedFrames: Int64(pieces * frames / 4))
    var quantised: [Int16] = []
    for _ in 0..<pieces { _ = try reader.readFloat(upTo: frames) { try writer.write($0, quantised: &quantised) } }
    try writer.finish()
  }

  private func measurePreview(_ table: inout Table) throws {
    let server = try Server(binary: binary, directory: folder)
    defer { server.stop() }
    let size = try FileManager.default.attributesOfItem(atPath: long)[.size] as? Int64 ?? 0
    guard let file = FileHandle(forReadingAtPath: long) else { throw BenchmarkFailure(what: "no \(long)") }
    let upload = try server.client.send("POST", "/v1/recordings?name=preview", length: size) { send in
      while let piece = try file.read(upToCount: 1 << 20), !piece.isEmpty { try send(Array(piece)) }
    }
    guard upload.status == 201, let id = upload.member("id"), let job = upload.member("job") else {
      throw BenchmarkFailure(what: "the upload was answered \(upload.status)")
    }
    _ = try server.finish(job: job)
    let marked = #""noise":{"start":0,"end":\#(SyntheticRecording.noiseEnd)}"#
    for (name, noise, length, goal) in [
      ("marked", marked, 10, 40.0), ("found", #""noise":"auto""#, 10, 40), ("found", #""noise":"auto""#, 30, 80),
    ] {
      var times: [Double] = []
      let before = Processes.processorSecondsWithChildren(server.processIdentifier)
      for place in [0.9, 0.1, 0.5, 0.97, 0.3] {
        let start = place * Double(seconds - length)
        let answer = try server.client.post(
          "/v1/recordings/\(id)/denoise/preview",
          json: "{\"window\":{\"start\":\(start),\"end\":\(start + Double(length))},\(noise)}")
        guard answer.status == 200, answer.body.count > length * SyntheticRecording.sampleRate * 4 else {
          throw BenchmarkFailure(what: "a preview was answered \(answer.status)")
        }
        times.append(answer.seconds)
      }
      let figure = median(times) * 1000
      table.row(
        "preview of \(length) s of \(seconds) s, noise \(name)", "\(rounded(figure)) ms", "goal ≤ \(goal) ms",
        figure <= goal)
      let spent = Processes.processorSecondsWithChildren(server.processIdentifier) - before
      table.row(
        "CPU time of such a preview, with its reader", "\(rounded(spent / Double(times.count) * 1000)) ms", "", true)
    }
  }
}
