import Foundation

/// The HTTP server compared with nginx, which serves files of the same size: requests, CPU time, tail latency, ranges,
/// and the cost of idle, stalled, and slow clients. Both write their usual log to a file.
struct HTTPLoad {
  let binary: String
  let folder: String
  let seconds: Int

  var root: String { "\(folder)/nginx" }
  private static let shortSeconds = 600

  /// Prints a row per figure; returns how many missed their bound.
  func run() throws -> Int {
    try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
    let server = try Server(binary: binary, directory: folder, log: "\(folder)/service.log")
    defer { server.stop() }
    let short = try upload(Self.shortSeconds, to: server)
    let long = try upload(seconds, to: server)
    guard Wrk.isInstalled, let nginx = try Nginx(folder: root) else {
      throw BenchmarkFailure(what: "wrk and nginx are not installed; deploy/install bench installs them")
    }
    defer { nginx.stop() }
    var load = ComparedLoad(server: server, nginx: nginx, root: root)
    ComparedLoad.printHead(nginxVersion)
    let plain = try distinctRows(short, long).map { try load.run($0) }
    for row in try browserRows(server, long, plainMicroseconds: plain[0]) { try load.run(row) }
    for row in try cachedRows(server, long) { try load.run(row) }
    var table = Table(title: "")
    try compareRanges(server, nginx, long, &table)
    try Clients(server: server, id: long).run(&table)
    return load.failures + table.failures
  }

  private var nginxVersion: String {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/sbin/nginx")
    process.arguments = ["-v"]
    let output = Pipe()
    process.standardError = output
    guard (try? process.run()) != nil else { return "" }
    let text = String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    return text.split(separator: "/").last.map { $0.trimmingCharacters(in: .whitespacesAndNewlines) } ?? ""
  }

  /// The recording of `seconds`, which is uploaded.
  var recording: String { recording(seconds) }
  private func recording(_ seconds: Int) -> String { "\(folder)/\(seconds)s.wav" }
  static func bytes(_ seconds: Int) -> Int { seconds * SyntheticRecording.sampleRate * 4 + 44 }

  private func upload(_ seconds: Int, to server: Server) throws -> String {
    let recording = recording(seconds)
    try SyntheticRecording.write(seconds: seconds, to: recording)
    let bytes = Self.bytes(seconds)
    guard let file = FileHandle(forReadingAtPath: recording) else { throw BenchmarkFailure(what: "no \(recording)") }
    let answer = try server.client.send("POST", "/v1/recordings?name=bench.wav", length: Int64(bytes)) { send in
      while let piece = try file.read(upToCount: 1 << 20), !piece.isEmpty { try send(Array(piece)) }
    }
    guard answer.status == 201, let id = answer.member("id"), let job = answer.member("job") else {
      throw BenchmarkFailure(what: "the upload was answered \(answer.status)")
    }
    _ = try server.finish(job: job)
    return id
  }

  // MARK: Rows

  /// Rows for windows that nobody has requested before. `short` is a recording of ten minutes, `long` one of `seconds`.
  private func distinctRows(_ short: String, _ long: String) -> [ComparedLoad.Row] {
    let (minutes, hours) = (Double(Self.shortSeconds), Double(seconds))
    func windows(_ form: String) -> [DistinctWindows.Kind] {
      [
        .init(target: "/v1/recordings/\(short)/\(form)", seconds: minutes, window: 12...540),
        .init(target: "/v1/recordings/\(long)/\(form)", seconds: hours, window: 12...hours),
      ]
    }
    // 800 pixels at a scale.
    func level(_ scale: Int) -> [DistinctWindows.Kind] {
      let length = Double(800 * scale) / Double(SyntheticRecording.sampleRate)
      return [
        .init(target: "/v1/recordings/\(short)/waveform?scale=\(scale)&", seconds: minutes, window: length...length)
      ]
    }
    func deep(_ window: ClosedRange<Double>) -> DistinctWindows.Kind {
      .init(target: "/v1/recordings/\(short)/waveform?width=2000&", seconds: minutes, window: window)
    }
    func row(
      _ name: String, _ kinds: [DistinctWindows.Kind], _ goal: ComparedLoad.Goal, connections: Int = 64
    ) -> ComparedLoad.Row {
      .init(name: name, requests: .distinct(.init(kinds: kinds, folder: root)), connections: connections, goal: goal)
    }
    return [
      row("JSON, 2,000 px", windows("waveform?width=2000&"), .init(rate: 0.5, microseconds: 25, tail: 2)),
      row(
        "JSON, 2,000 px", windows("waveform?width=2000&"), .init(rate: 0.5, microseconds: 25, tail: 2),
        connections: 1000),
      row("JSON, 800 px, 16 bit", windows("waveform?width=800&bits=16&"), .init(microseconds: 20)),
      row(".dat, 2,000 px", windows("waveform.dat?width=2000&"), .init(microseconds: 20)),
      row("JSON, 800 px, scale 256", level(256), .init(microseconds: 20)),
      row("samples: 0.5 s, 2,000 px", [deep(0.5...0.5)], .init(microseconds: 100)),
      row("a third 0.5 to 11 s", windows("waveform?width=2000&") + [deep(0.5...11)], .init(microseconds: 100)),
      // A client may have 64 pictures waiting.
      row(
        "PNG, 1,000 × 200", windows("waveform.png?width=1000&height=200&"), .init(microseconds: 800), connections: 32),
    ]
  }

  /// What many clients request alike. The Job is a denoise job's, with every member that it can have.
  private func cachedRows(_ server: Server, _ id: String) throws -> [ComparedLoad.Row] {
    let request = #"{"noise":{"start":0,"end":\#(SyntheticRecording.noiseEnd)}}"#
    guard let job = try server.client.post("/v1/recordings/\(id)/denoise", json: request).member("id") else {
      throw BenchmarkFailure(what: "no denoise job")
    }
    _ = try server.finish(job: job)
    let targets = [("cached slice", "/v1/recordings/\(id)/waveform?width=1420"), ("job poll", "/v1/jobs/\(job)")]
    return targets.flatMap { name, target in
      [64, 1000].map { connections in
        .init(
          name: name, requests: .same(target), connections: connections,
          goal: .init(rate: 1, tail: connections == 1000 ? 1.5 : nil))
      }
    }
  }

  /// The recording's own bytes, 64 MB at a time.
  private func compareRanges(_ server: Server, _ nginx: Nginx, _ id: String, _ table: inout Table) throws {
    var (ours, theirs): ([Double], [Double]) = ([], [])
    let range = ["Range: bytes=1048576-68157439"]
    for _ in 0..<5 {
      ours.append(
        try Wrk(
          port: server.client.port, target: "/v1/recordings/\(id)/audio", connections: 4, seconds: 3, fields: range
        ).bytesPerSecond)
      theirs.append(
        try Wrk(port: nginx.port, target: "/audio.wav", connections: 4, seconds: 3, fields: range).bytesPerSecond)
    }
    let ratio = median(ours) / median(theirs)
    table.row(
      "audio in ranges of 64 MB, bytes/s over nginx's",
      "\(rounded(ratio)) × (\(rounded(median(ours) / 1e9)) / \(rounded(median(theirs) / 1e9)) GB/s)", "≥ 0.9 ×",
      ratio >= 0.9)
  }
}
