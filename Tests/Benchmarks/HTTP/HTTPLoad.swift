import Foundation

/// The HTTP server compared with nginx, which serves files with the same bytes: requests, CPU time, tail latency, large
/// ranges, and the cost of idle, stalled, and slow clients.
struct HTTPLoad {
  let binary: String
  let folder: String
  let seconds: Int

  private var recording: String { "\(folder)/\(seconds)s.wav" }
  private var root: String { "\(folder)/nginx" }

  private struct Case {
    let name: String
    let target: String
    let file: String
  }

  /// Prints a row per figure; returns how many missed their bound.
  func run() throws -> Int {
    try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
    try SyntheticRecording.write(seconds: seconds, to: recording)
    let server = try Server(binary: binary, directory: folder)
    defer { server.stop() }
    let id = try upload(server)
    guard Wrk.isInstalled, let nginx = try Nginx(folder: root) else {
      throw BenchmarkFailure(what: "wrk and nginx are not installed; deploy/install bench installs them")
    }
    defer { nginx.stop() }
    let cases = try self.cases(server, id)
    print("\nHTTP, Stillwave / nginx \(nginxVersion) of the same bytes (medians of 3 runs in turn, neither logs)\n")
    print(
      "answer, connections".padded(26) + "requests/s".padded(24) + "ratio".padded(8) + "CPU µs".padded(16)
        + "ratio".padded(8) + "p99 ms".padded(18) + "ratio")
    var failures = 0
    for item in cases {
      for connections in [64, 1000] { failures += try compare(item, connections, server, nginx) }
    }
    var table = Table(title: "")
    try compareRanges(server, nginx, id, &table)
    try Clients(server: server, id: id).run(&table)
    return failures + table.failures
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

  private func upload(_ server: Server) throws -> String {
    let bytes = seconds * SyntheticRecording.sampleRate * 4 + 44
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

  /// The service's own answers, stored as files for nginx. The Job is a denoise job's, with every member that it can
  /// have.
  private func cases(_ server: Server, _ id: String) throws -> [Case] {
    let request = #"{"noise":{"start":0,"end":\#(SyntheticRecording.noiseEnd)}}"#
    guard let job = try server.client.post("/v1/recordings/\(id)/denoise", json: request).member("id") else {
      throw BenchmarkFailure(what: "no denoise job")
    }
    _ = try server.finish(job: job)
    let cases = [
      Case(name: "slice", target: "/v1/recordings/\(id)/waveform?width=1420", file: "slice.json"),
      Case(name: "job poll", target: "/v1/jobs/\(job)", file: "job.json"),
    ]
    for item in cases {
      let answer = try server.client.get(item.target)
      guard answer.status == 200 else { throw BenchmarkFailure(what: "\(item.target) was answered \(answer.status)") }
      try Data(answer.body).write(to: URL(fileURLWithPath: "\(root)/\(item.file)"))
    }
    return cases
  }

  private struct Figures {
    var requests: [Double] = []
    var microseconds: [Double] = []
    var p99: [Double] = []

    mutating func add(port: UInt16, target: String, connections: Int, processes: [Int32]) throws {
      let before = Processes.processorSeconds(processes)
      let load = try Wrk(port: port, target: target, connections: connections, seconds: 3)
      let spent = Processes.processorSeconds(processes) - before
      guard load.errors == 0 else { throw BenchmarkFailure(what: "\(load.errors) errors at \(target)") }
      requests.append(load.requestsPerSecond)
      microseconds.append(spent / load.requests * 1e6)
      p99.append(load.p99)
    }
  }

  private func compare(_ item: Case, _ connections: Int, _ server: Server, _ nginx: Nginx) throws -> Int {
    var (ours, theirs) = (Figures(), Figures())
    for _ in 0..<3 {
      try ours.add(
        port: server.client.port, target: item.target, connections: connections,
        processes: [server.processIdentifier])
      try theirs.add(
        port: nginx.port, target: "/\(item.file)", connections: connections, processes: nginx.processes)
    }
    let bytes = try Data(contentsOf: URL(fileURLWithPath: "\(root)/\(item.file)")).count
    let rate = median(ours.requests) / median(theirs.requests)
    let cost = median(ours.microseconds) / median(theirs.microseconds)
    let tail = median(ours.p99) / median(theirs.p99)
    var missed: [String] = []
    if rate < 0.8 { missed.append("requests < 0.8 ×") }
    if cost > 1.25 { missed.append("CPU > 1.25 ×") }
    if connections == 1000, tail > 1.5 { missed.append("p99 > 1.5 ×") }
    print(
      "\(item.name) \(bytes) B, \(connections)".padded(26)
        + "\(Int(median(ours.requests))) / \(Int(median(theirs.requests)))".padded(24) + "\(rounded(rate))".padded(8)
        + "\(rounded(median(ours.microseconds))) / \(rounded(median(theirs.microseconds)))".padded(16)
        + "\(rounded(cost))".padded(8)
        + "\(rounded(median(ours.p99))) / \(rounded(median(theirs.p99)))".padded(18) + "\(rounded(tail))".padded(8)
        + (missed.isEmpty ? "ok" : "MISSED: " + missed.joined(separator: ", ")))
    return missed.count
  }

  /// The recording's own bytes, 64 MB at a time.
  private func compareRanges(_ server: Server, _ nginx: Nginx, _ id: String, _ table: inout Table) throws {
    let link = "\(root)/audio.wav"
    try? FileManager.default.removeItem(atPath: link)
    try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: recording)
    var (ours, theirs): ([Double], [Double]) = ([], [])
    let range = ["Range: bytes=1048576-68157439"]
    for _ in 0..<3 {
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

extension String {
  /// The text padded with spaces to a column.
  func padded(_ width: Int) -> String { self + String(repeating: " ", count: max(1, width - count)) }
}
