import AudioIO
import Foundation
import Terms
import Waveform

/// Building waveforms of every codec and serving windows of them, compared with `audiowaveform` if it's installed, and
/// always with libsndfile's bare decoding.
struct WaveformFigures {
  let binary: String
  let folder: String
  let seconds: Int

  private static let compressed: [AudioFormat] =
    [(.flac, .flacS16, 44_100), (.mp3, .mp3, 44_100), (.ogg, .vorbis, 44_100), (.ogg, .opus, 48_000)].map {
      AudioFormat(container: $0, codec: $1, sampleRate: $2, channels: 2)
    }

  /// The codecs that are also measured at full length: quick to make, one known by its header, one by a survey.
  private static let long: [AudioFormat] = Array(compressed.prefix(2))

  /// Seconds of a compressed file: over ten minutes, so that several cores are worthwhile.
  private var compressedSeconds: Int { min(seconds, 1800) }

  /// Prints a row per figure; returns how many missed their bound.
  func run() throws -> Int {
    var table = Table(title: "\nWaveforms (medians of 5; CPU time unless said otherwise)")
    try SyntheticRecording.write(seconds: seconds, to: wave)
    try SyntheticRecording.write(seconds: 600, to: shortWave)
    for format in Self.compressed { try encode(format, seconds: compressedSeconds) }
    for format in Self.long {
      try encode(format, seconds: 600)
      try encode(format, seconds: seconds)
    }
    try measurePyramid(&table)
    for seconds in [600, compressedSeconds] where seconds <= self.seconds { try measureImport(seconds, &table) }
    for format in Self.compressed {
      try measureBuild(path(format, compressedSeconds), "\(format.codec.name), \(compressedSeconds) s", &table)
    }
    for format in Self.long where seconds > compressedSeconds {
      try measureBuild(path(format, seconds), "\(format.codec.name), \(seconds) s", rounds: 3, &table)
    }
    try measureMemory(&table)
    measureJSON(&table)
    try measureService(&table)
    return table.failures
  }

  private var wave: String { "\(folder)/\(seconds)s.wav" }
  private var shortWave: String { "\(folder)/600s.wav" }
  private func path(_ format: AudioFormat, _ seconds: Int) -> String { "\(folder)/\(seconds)s.\(format.codec.name)" }

  private func encode(_ format: AudioFormat, seconds: Int) throws {
    let path = path(format, seconds)
    guard !FileManager.default.fileExists(atPath: path) else { return }
    var reader = try AudioReader(path: wave)
    let frames = Int64(seconds * format.sampleRate)
    var writer = try AudioWriter(creating: path, format: format, expectedFrames: frames)
    var quantised: [Int16] = []
    var left = Int(frames)
    while left > 0 {
      // Played slightly faster at another rate, then from the start again: it only has to be long.
      let got = try reader.readFloat(upTo: left) { try writer.write($0, quantised: &quantised) }
      left -= got
      if got == 0 { try reader.seek(to: 0) }
    }
    try writer.finish()
  }

  // MARK: Building

  private func build(
    _ path: String, threads: Int, findsNoiseRegions: Bool = true, in folder: String? = nil
  ) throws -> Child {
    let folder = folder ?? self.folder
    // Freeing an existing file's cache takes time too, and jobs have none.
    try? FileManager.default.removeItem(atPath: WaveformRequest.pyramid(in: folder))
    return try Child(
      [binary, "worker"],
      input: WaveformRequest.file(path, in: folder, threads: threads, findsNoiseRegions: findsNoiseRegions))
  }

  /// Two builds at once, each on one core, compared with one after the other.
  private func buildTwo(_ path: String) throws -> Double {
    let folders = try (0...1).map { try WaveformRequest.folder($0, in: folder) }
    defer { for folder in folders { try? FileManager.default.removeItem(atPath: folder) } }
    return try Child.halfOfTwo { try build(path, threads: 1, in: folders[$0]) }
  }

  /// A waveform job for a long WAV compared with a plain C program that writes the same bytes (Anchors/pyramid.c).
  private func measurePyramid(_ table: inout Table) throws {
    let plainPath = "\(folder)/plain.pyramid"
    let anchor = URL(fileURLWithPath: binary).deletingLastPathComponent().appendingPathComponent("plain-pyramid").path
    var (plain, bare, job, both): ([Child], [Child], [Child], [Child]) = ([], [], [], [])
    var (theirs, halves): ([Double], [Double]) = ([], [])
    for _ in 0..<5 {
      plain.append(try Child([anchor, wave, plainPath]))
      bare.append(try build(wave, threads: 1, findsNoiseRegions: false))
      job.append(try build(wave, threads: 1))
      both.append(try build(wave, threads: 2))
      halves.append(try buildTwo(wave))
      if let other = Child.find("audiowaveform") {
        let arguments = [other, "-q", "-i", wave, "-o", "\(folder)/figures.dat", "-z", "256", "-b", "16"]
        theirs.append(try Child(arguments).work)
      }
    }
    guard FileManager.default.contentsEqual(atPath: plainPath, andPath: WaveformRequest.pyramid(in: folder)) else {
      throw BenchmarkFailure(what: "the plain C pyramid is different")
    }
    try FileManager.default.removeItem(atPath: plainPath)
    let name = "WAV, \(seconds) s"
    table.row("plain C pyramid, \(name)", "\(rounded(median(plain.map(\.work)))) s", "", true)
    for (what, runs, goal) in [("waveform job", job, 1.4), ("the same without noise regions", bare, 1.1)] {
      let ratios = zip(runs, plain).map { $0.work / $1.work }
      table.row("\(what) / plain C", spread(ratios), "goal ≤ \(goal) ×", median(ratios) <= goal)
    }
    let shares = zip(both, job).map { $0.wall / $1.wall }
    table.row("two cores / one by the clock, \(name)", spread(shares), "goal ≤ 0.6 ×", median(shares) <= 0.6)
    let bounds = zip(halves, job).map { $0 / $1.wall }
    table.row("  at best: two runs at once / two in turn, \(name)", spread(bounds), "", true)
    let peak = Double(job.map(\.peakResident).max() ?? 0) / 1024
    table.row("peak resident memory, waveform job", "\(rounded(peak)) MB", "goal ≤ 25 MB", peak <= 25)
    let command = try Child([binary, "waveform", wave, "-o", "\(folder)/figures.dat"])
    let commandPeak = Double(command.peakResident) / 1024
    table.row(
      "peak resident memory, waveform command", "\(rounded(commandPeak)) MB", "goal ≤ 25 MB", commandPeak <= 25)
    if !theirs.isEmpty {
      let gain = median(zip(theirs, bare).map { $0 / $1.work })
      table.row("audiowaveform / build, \(name)", "\(rounded(gain)) ×", "≥ 4 ×", gain >= 4)
    }
  }

  /// An m4a from upload to ready, which ffmpeg decodes into a working copy, compared with ffmpeg's decoding alone.
  private func measureImport(_ seconds: Int, _ table: inout Table) throws {
    guard let ffmpeg = Child.find("ffmpeg") else { return }
    let (path, raw, report) = ("\(folder)/\(seconds)s.m4a", "\(folder)/decoded.raw", "\(folder)/report.json")
    if !FileManager.default.fileExists(atPath: path) {
      _ = try Child([ffmpeg, "-v", "error", "-t", "\(seconds)", "-i", wave, "-c:a", "aac", "-b:a", "128k", path])
    }
    var ratios: [Double] = []
    for _ in 0..<5 {
      let decoding = try Child([ffmpeg, "-v", "error", "-y", "-i", path, "-c:a", "pcm_f32le", "-f", "f32le", raw])
      let probe = try Child([binary, "worker"], input: WaveformRequest.probe(path, in: folder), output: report)
      let facts = try WaveformRequest.facts(in: String(contentsOfFile: report, encoding: .utf8))
      let job = try Child([binary, "worker"], input: WaveformRequest.file(path, in: folder, facts: facts))
      ratios.append((probe.work + job.work) / decoding.work)
    }
    for file in [raw, "\(folder)/working"] { try FileManager.default.removeItem(atPath: file) }
    table.row(
      "m4a to ready / ffmpeg's decoding, \(seconds) s", spread(ratios), "goal ≤ 1.4 ×", median(ratios) <= 1.4)
  }

  private func measureBuild(_ path: String, _ name: String, rounds: Int = 5, _ table: inout Table) throws {
    let other = Child.find("audiowaveform")
    var (bare, alone, both, theirs): ([Double], [Child], [Child], [Double]) = ([], [], [], [])
    for _ in 0..<rounds {
      let before = Child.ownWork
      _ = try BareRead.seconds(path, floats: !path.hasSuffix("flac"))
      bare.append(Child.ownWork - before)
      alone.append(try build(path, threads: 1, findsNoiseRegions: false))
      both.append(try build(path, threads: 2, findsNoiseRegions: false))
      if let other {
        let arguments = [other, "-q", "-i", path, "-o", "\(folder)/figures.dat", "-z", "256", "-b", "16"]
        theirs.append(try Child(arguments).work)
      }
    }
    let ratios = zip(alone, bare).map { $0.work / $1 }
    let goal = path.hasSuffix("flac") ? 1.06 : 1.1
    table.row("build / bare decoding, \(name)", spread(ratios), "goal ≤ \(goal) ×", median(ratios) <= goal)
    if !theirs.isEmpty {
      let gain = median(zip(theirs, alone).map { $0 / $1.work })
      table.row("audiowaveform / build, \(name)", "\(rounded(gain)) ×", "", true)
    }
    let shares = zip(both, alone).map { $0.wall / $1.wall }
    table.row("two cores / one by the clock, \(name)", spread(shares), "≤ 0.65 ×", median(shares) <= 0.65)
  }

  private func measureMemory(_ table: inout Table) throws {
    let long = Self.long.map { ("\($0.codec.name) on two cores", path($0, 600), path($0, seconds)) }
    for (name, short, long) in [("WAV", shortWave, wave)] + long {
      let peaks = try [short, long].map { path in
        median(try (0..<5).map { _ in Double(try build(path, threads: 2).peakResident) / 1024 })
      }
      let most = peaks.max() ?? 0
      table.row("peak resident memory, \(name)", "\(rounded(most)) MB", "< 40 MB", most < 40)
      let grown = abs(peaks[1] - peaks[0])
      table.row("  \(seconds) s more than 600 s", "\(rounded(grown)) MB", "≤ 1 MB", grown <= 1)
    }
  }

  private func measureJSON(_ table: inout Table) {
    let frames: Int64 = 20_000
    var state: UInt64 = 9
    let samples = (0..<2 * frames).map { _ in
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int16(truncatingIfNeeded: state >> 40)
    }
    let extent = WaveformExtent(
      sampleRate: 44_100, channels: 2, availableFrames: frames, totalFrames: frames, isComplete: true)
    let query = WaveformQuery(resolution: .scale(1), channels: .split, measures: [.peak, .rms, .average])
    guard let window = try? WaveformWindow(query, of: extent) else { return }
    let slice = WaveformSlice(window, samples: samples.span)
    var (times, bytes): ([Double], Int) = ([], 0)
    for _ in 0..<51 {
      let start = ContinuousClock.now
      bytes += slice.json().count
      times.append((ContinuousClock.now - start) / .nanoseconds(1) / Double(window.numberCount))
    }
    let figure = median(times)
    table.row(
      "JSON of \(window.numberCount) numbers", "\(rounded(figure)) ns a number", "< 3 ns", figure < 3 && bytes > 0)
  }

  // MARK: Serving

  private func upload(_ path: String, to server: Server) throws -> (id: String, job: String) {
    let size = try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int64 ?? 0
    guard let file = FileHandle(forReadingAtPath: path) else { throw BenchmarkFailure(what: "no \(path)") }
    let answer = try server.client.send("POST", "/v1/recordings?name=figures", length: size) { send in
      while let piece = try file.read(upToCount: 1 << 20), !piece.isEmpty { try send(Array(piece)) }
    }
    guard answer.status == 201, let id = answer.member("id"), let job = answer.member("job") else {
      throw BenchmarkFailure(what: "the upload of \(path) was answered \(answer.status)")
    }
    return (id, job)
  }

  private func measureService(_ table: inout Table) throws {
    var server = try Server(binary: binary, directory: folder)
    defer { server.stop() }
    var times: [Double] = []
    for _ in 0..<5 {
      let (id, job) = try upload(shortWave, to: server)
      let start = ContinuousClock.now
      _ = try server.finish(job: job)
      times.append((ContinuousClock.now - start) / .seconds(1))
      _ = try server.client.send("DELETE", "/v1/recordings/\(id)", length: 0) { _ in }
    }
    table.row(
      "201 to ready, 600 s of WAV", "\(rounded(median(times) * 1000)) ms", "< 300 ms", median(times) < 0.3)
    let compressed = Self.compressed.map { ($0.codec.name, path($0, compressedSeconds), compressedSeconds) }
    let long = Self.long.map { ("\($0.codec.name), \(seconds) s", path($0, seconds), seconds) }
    let files = [("WAV", wave, seconds)] + compressed + (seconds > compressedSeconds ? long : [])
    for (name, path, length) in files {
      let (id, job) = try upload(path, to: server)
      _ = try server.finish(job: job)
      // 2,000 pixels of at least 600 frames or so, and of 100.
      for (kind, window, limit) in [("from 256 up", 0.03 * Double(length), 0.005), ("below 256", 4.5, 0.03)] {
        var times: [Double] = []
        for place in [0.9, 0.1, 0.5, 0.97, 0.3] {
          server.stop(keepingData: true)
          server = try Server(binary: binary, directory: folder)
          _ = try server.client.get("/healthz")
          let start = min(place * Double(length), Double(length) - window)
          let answer = try server.client.get(
            "/v1/recordings/\(id)/waveform?width=2000&start=\(start)&end=\(start + window)")
          guard answer.status == 200 else { throw BenchmarkFailure(what: "a slice was answered \(answer.status)") }
          times.append(answer.seconds)
        }
        let figure = median(times)
        table.row(
          "first slice after a start, \(kind), \(name)", "\(rounded(figure * 1000)) ms",
          "< \(Int(limit * 1000)) ms", figure < limit)
      }
    }
  }
}
