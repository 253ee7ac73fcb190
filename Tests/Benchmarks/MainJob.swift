import Foundation

/// Upload, waveform, slices and noise removal of one long stereo recording through the real service.
struct MainJob {
  let binary: String
  let folder: String
  let seconds: Int

  private var recording: String { "\(folder)/\(seconds)s.wav" }

  /// Prints a row per figure; returns how many missed their bound.
  func run() throws -> Int {
    try SyntheticRecording.write(seconds: seconds, to: recording)
    var table = Table(title: "Main job, \(seconds) s of 44.1 kHz stereo 16-bit WAV (medians of 5)")
    try measureWaveform(&table)
    let server = try Server(binary: binary, directory: folder)
    defer { server.stop() }
    let watch = MemoryWatch(of: server.processIdentifier)
    let id = try measureUpload(server, &table)
    try measureSlices(server, id, &table)
    try measureDenoise(server, id, &table)
    let peaks = watch.stop()
    table.row("anonymous memory, service", "\(peaks.service / 1024) MB", "≤ 150 MB", peaks.service <= 150 * 1024)
    table.row("anonymous memory, any child", "\(peaks.child / 1024) MB", "≤ 150 MB", peaks.child <= 150 * 1024)
    try measureLongUpload(server, &table)
    return table.failures
  }

  /// The command alone, alternating with the bare read.
  private func measureWaveform(_ table: inout Table) throws {
    var ratios: [Double] = []
    var times: [Double] = []
    var floors: [Double] = []
    _ = try BareRead.seconds(recording)
    for _ in 0..<5 {
      let bare = try BareRead.seconds(recording)
      let built = try Child([binary, "worker"], input: WaveformRequest.file(recording, in: folder)).wall
      ratios.append(built / bare)
      times.append(built)
      floors.append(bare)
    }
    let size =
      try FileManager.default.attributesOfItem(atPath: WaveformRequest.pyramid(in: folder))[.size] as? Int64 ?? 0
    let share = Double(size) / Double(seconds * SyntheticRecording.sampleRate * 4) * 100
    try FileManager.default.removeItem(atPath: WaveformRequest.pyramid(in: folder))
    let ratio = median(ratios)
    table.row(
      "waveform, all levels and channels / bare libsndfile read",
      "\(rounded(ratio)) × (\(rounded(median(times))) s / \(rounded(median(floors))) s)", "≤ 12 ×", ratio <= 12)
    table.row("pyramid / WAV", "\(rounded(share)) %", "< 5 %", share < 5)
  }

  private func measureUpload(_ server: Server, _ table: inout Table) throws -> String {
    let bytes = seconds * SyntheticRecording.sampleRate * 4 + 44
    guard let file = FileHandle(forReadingAtPath: recording) else { throw BenchmarkFailure(what: "no \(recording)") }
    let answer = try server.client.send("POST", "/v1/recordings?name=bench.wav", length: Int64(bytes)) { send in
      while let piece = try file.read(upToCount: 1 << 20), !piece.isEmpty { try send(Array(piece)) }
    }
    guard answer.status == 201, let id = answer.member("id"), let job = answer.member("job") else {
      throw BenchmarkFailure(what: "the upload was answered \(answer.status)")
    }
    table.row("upload to 201, hashed and durable", "\(rounded(answer.seconds)) s", "", true)
    let start = ContinuousClock.now
    _ = try server.finish(job: job)
    table.row("201 to waveform ready", "\(rounded((ContinuousClock.now - start) / .seconds(1))) s", "", true)
    return id
  }

  /// Windows all over the recording, from the whole to single samples.
  private func measureSlices(_ server: Server, _ id: String, _ table: inout Table) throws {
    let windows = [
      "", "&start=0&end=600", "&start=\(seconds / 2)&end=\(seconds / 2 + 60)", "&start=\(seconds - 30)&end=\(seconds)",
      "&measures=peak,rms,average&channels=split", "&start=\(seconds / 3)&end=\(seconds / 3 + 5)",
      "&start=\(seconds / 4).5&end=\(seconds / 4).545", "&bits=8&start=1&end=2",
    ]
    var slowest = 0.0
    var all: [Double] = []
    for window in windows {
      var times: [Double] = []
      for _ in 0..<5 {
        let answer = try server.client.get("/v1/recordings/\(id)/waveform?width=2000\(window)")
        guard answer.status == 200 else {
          throw BenchmarkFailure(what: "slice \(window) was answered \(answer.status)")
        }
        times.append(answer.seconds)
      }
      slowest = max(slowest, times.max() ?? 0)
      all += times
    }
    table.row("slice of 2,000 pixels, median", "\(rounded(median(all) * 1000)) ms", "< 20 ms", median(all) < 0.02)
    table.row("slice of 2,000 pixels, slowest", "\(rounded(slowest * 1000)) ms", "< 20 ms", slowest < 0.02)
  }

  private func measureDenoise(_ server: Server, _ id: String, _ table: inout Table) throws {
    let start = ContinuousClock.now
    let answer = try server.client.post(
      "/v1/recordings/\(id)/denoise", json: #"{"noise":{"start":0,"end":\#(SyntheticRecording.noiseEnd)}}"#)
    guard answer.status == 202, let job = answer.member("id") else {
      throw BenchmarkFailure(what: "the denoise request was answered \(answer.status)")
    }
    _ = try server.finish(job: job)
    let pace = Double(seconds) / ((ContinuousClock.now - start) / .seconds(1))
    table.row("denoise, request to result", "\(rounded(pace)) × real time", "> 40 ×", pace > 40)
  }

  /// Uploads 4 GB of silence, measures how much memory the service needs meanwhile, and deletes the recording.
  private func measureLongUpload(_ server: Server, _ table: inout Table) throws {
    let before = MemoryWatch.anonymous(server.processIdentifier)
    let watch = MemoryWatch(of: server.processIdentifier)
    let total = Int64(4) << 30
    let piece = [UInt8](repeating: 0, count: 1 << 20)
    let header = Array(SyntheticRecording.header(dataBytes: UInt32(clamping: total - 44)))
    let answer = try server.client.send("POST", "/v1/recordings?name=long.wav", length: total) { send in
      try send(header + piece.dropFirst(header.count))
      for _ in 1..<Int(total >> 20) { try send(piece) }
    }
    let grown = Double(watch.stop().service - before) / 1024
    guard answer.status == 201, let id = answer.member("id") else {
      throw BenchmarkFailure(what: "the 4 GB upload was answered \(answer.status)")
    }
    table.row("memory grown by a 4 GB upload", "\(rounded(grown)) MB", "< 16 MB", grown < 16)
    table.row("4 GB upload", "\(rounded(4096 / answer.seconds)) MB/s", "", true)
    _ = try server.client.send("DELETE", "/v1/recordings/\(id)", length: 0) { _ in }
  }
}
