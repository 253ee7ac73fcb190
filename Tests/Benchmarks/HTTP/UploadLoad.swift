import Foundation

/// The processor time of one long upload, direct, as a form and resumable, compared with nginx, which stores the same
/// bytes in a file, and `openssl`, which hashes that file; and how long the client waits after its last byte.
///
/// Only the servers and `openssl` count: not the client, nor the service's workers, which read the recording later.
/// Unlike nginx, the service also waits until the bytes are on disk.
struct UploadLoad {
  let binary: String
  let folder: String
  let seconds: Int

  private var recording: String { "\(folder)/\(seconds)s.wav" }
  private var root: String { "\(folder)/nginx" }
  private var byteCount: Int64 { Int64(seconds * SyntheticRecording.sampleRate * 4 + 44) }

  private static let rounds = 5
  private static let goal = 1.15

  /// Prints a row per figure; returns how many missed their bound.
  func run() throws -> Int {
    try FileManager.default.createDirectory(atPath: root, withIntermediateDirectories: true)
    try SyntheticRecording.write(seconds: seconds, to: recording)
    guard Wrk.isInstalled, let nginx = try Nginx(folder: root), Child.find("openssl") != nil else {
      throw BenchmarkFailure(what: "nginx, openssl and wrk are not installed; deploy/install bench installs them")
    }
    defer { nginx.stop() }
    let server = try Server(binary: binary, directory: folder)
    let gigabytes = rounded(Double(byteCount) / 1e9)
    var table = Table(
      title:
        "\nUploads of \(gigabytes) GB, CPU / nginx to a file + openssl's SHA-256 (medians of \(Self.rounds), range)")
    let before = MemoryWatch.anonymous(server.processIdentifier)
    var (anchor, direct, form, resumable): ([Double], [Double], [Double], [Double]) = ([], [], [], [])
    var waits: [[Double]] = [[], []]
    for _ in 0..<Self.rounds {
      anchor.append(try storeAndHash(nginx))
      direct.append(try measure(server) { try upload(to: server, &waits[0]) })
      form.append(try measure(server) { try upload(to: server, asForm: true, &waits[1]) })
      resumable.append(try measure(server) { try resume(to: server) })
    }
    let ratios = zip(form, direct).map { $0 / $1 }
    table.row("form / direct upload", spread(ratios), "goal ≤ \(Self.goal) ×", median(ratios) <= Self.goal)
    for (name, seconds) in zip(["direct", "form"], waits) {
      let wait = median(seconds)
      table.row("last byte to answer, \(name)", "\(rounded(wait)) s", "goal ≤ 0.3 s", wait <= 0.3)
    }
    for (name, figures) in [("direct upload", direct), ("resumable upload", resumable)] {
      let ratios = zip(figures, anchor).map { $0 / $1 }
      table.row(
        name, "\(spread(ratios)), \(rounded(median(figures))) s / \(rounded(median(anchor))) s",
        "goal ≤ \(Self.goal) ×",
        median(ratios) <= Self.goal)
    }
    // The service returns memory ten seconds after the last long upload.
    sleep(20)
    let grown = Double(MemoryWatch.anonymous(server.processIdentifier) - before) / 1024
    table.row("memory kept 20 s after these uploads", "\(rounded(grown)) MB", "≤ 4 MB", grown <= 4)
    return table.failures
  }

  /// The recording's pieces, for `Client.send`.
  private func sendRecording(_ send: ([UInt8]) throws -> Void) throws {
    guard let file = FileHandle(forReadingAtPath: recording) else { throw BenchmarkFailure(what: "no \(recording)") }
    while let piece = try file.read(upToCount: 1 << 20), !piece.isEmpty { try send(Array(piece)) }
  }

  /// Touches as much memory as an upload takes in the page cache.
  ///
  /// The host of a virtual machine takes back memory that is unused for a while. Whoever touches it first pays for
  /// that, with more processor time than for the whole upload.
  private func touchPages() throws {
    let path = "\(root)/pages"
    defer { try? FileManager.default.removeItem(atPath: path) }
    _ = FileManager.default.createFile(atPath: path, contents: nil)
    guard let file = FileHandle(forWritingAtPath: path) else { throw BenchmarkFailure(what: "can't write \(path)") }
    let piece = Data(count: 1 << 20)
    for _ in 0...(byteCount >> 20) { try file.write(contentsOf: piece) }
    try file.close()
  }

  private func storeAndHash(_ nginx: Nginx) throws -> Double {
    try touchPages()
    let before = Processes.processorSeconds(nginx.processes)
    let answer = try nginx.client.send("PUT", "/uploads/recording.wav", length: byteCount, body: sendRecording)
    guard answer.status == 201 || answer.status == 204 else {
      throw BenchmarkFailure(what: "nginx answered the upload with \(answer.status)")
    }
    let spent = Processes.processorSeconds(nginx.processes) - before
    let path = "\(root)/uploads/recording.wav"
    let hashing = try Child(["openssl", "dgst", "-sha256", path]).work
    try FileManager.default.removeItem(atPath: path)
    return spent + hashing
  }

  /// Returns the processor time that the service spends on an upload, and deletes the recording, whose ID `upload`
  /// returns.
  private func measure(_ server: Server, _ upload: () throws -> String) throws -> Double {
    try touchPages()
    let before = Processes.processorSeconds([server.processIdentifier])
    let id = try upload()
    let spent = Processes.processorSeconds([server.processIdentifier]) - before
    _ = try server.client.send("DELETE", "/v1/recordings/\(id)", length: 0) { _ in }
    return spent
  }

  private func upload(to server: Server, asForm: Bool = false, _ waits: inout [Double]) throws -> String {
    let boundary = "----WebKitFormBoundary7MA4YWxkTrZu0gWx"
    let (head, tail) =
      asForm
      ? (
        "--\(boundary)\r\nContent-Disposition: form-data; name=\"file\"; filename=\"bench.wav\"\r\n\r\n",
        "\r\n--\(boundary)--"
      )
      : ("", "")
    let answer = try server.client.send(
      "POST", "/v1/recordings?name=bench.wav", length: byteCount + Int64(head.utf8.count + tail.utf8.count),
      fields: asForm ? ["Content-Type: multipart/form-data; boundary=\(boundary)"] : []
    ) { send in
      try send(Array(head.utf8))
      try sendRecording(send)
      try send(Array(tail.utf8))
    }
    guard answer.status == 201, let id = answer.member("id") else {
      throw BenchmarkFailure(what: "the upload was answered \(answer.status)")
    }
    waits.append(answer.waitSeconds)
    return id
  }

  private func resume(to server: Server) throws -> String {
    let version = "Tus-Resumable: 1.0.0"
    let created = try server.client.send(
      "POST", "/v1/uploads", length: 0, fields: [version, "Upload-Length: \(byteCount)"]
    ) { _ in }
    guard let target = created.field("Location") else {
      throw BenchmarkFailure(what: "the creation of an upload was answered \(created.status)")
    }
    let answer = try server.client.send(
      "PATCH", target, length: byteCount,
      fields: [version, "Upload-Offset: 0", "Content-Type: application/offset+octet-stream"], body: sendRecording)
    guard answer.status == 204, let id = answer.field("Stillwave-Recording") else {
      throw BenchmarkFailure(what: "the resumable upload was answered \(answer.status)")
    }
    return id
  }
}
