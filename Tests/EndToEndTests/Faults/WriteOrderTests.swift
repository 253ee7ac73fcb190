import Foundation
import Testing

@testable import Sounds

/// The order of writes that makes a crash harmless, as strace sees it: bytes, their fsync, the rename, the fsync of the
/// folder, the catalog's, and only then the answer.
struct WriteOrderTests {
  private typealias Step = (what: String, isDone: (String) -> Bool)

  @Test func anUploadIsAnsweredOnlyOnceDurable() throws {
    try check("order: bytes, fsync, rename, fsync of the folder, row, answer") { client, folder, trace in
      let id = try #require(try client.upload(Clip.tone.bytes, name: "a.wav")["id"].string)
      let steps: [Step] = [
        ("the fsync of the folder that the data are in", { $0.contains("fsync(") && $0.contains(folder + ">") }),
        ("the bytes", { $0.contains(".part>") && $0.contains("write") }),
        ("their fsync", { $0.contains("fsync(") && $0.contains(".part>") }),
        ("the rename", { $0.contains("rename") && $0.contains("/recordings/\(id)/audio.wav") }),
        ("the fsync of the folder", { $0.contains("fsync(") && $0.contains("/recordings/\(id)>") }),
        ("the row's sync", { $0.contains("sync(") && $0.contains("catalog.sqlite") }),
        ("the answer", { $0.contains("HTTP/1.1 201") }),
      ]
      return losses(try lines(trace, until: "HTTP/1.1 201", times: 1), steps)
    }
  }

  @Test func anOffsetIsReportedOnlyOnceDurable() throws {
    try check("order in pieces: bytes, fsync, row, answer; link, fsync, row") { client, _, trace in
      let bytes = Clip.tone.bytes
      let made = try client.send(
        "POST", "/v1/uploads", ["Tus-Resumable": "1.0.0", "Upload-Length": "\(bytes.count)"], .bytes([]))
      let upload = try #require(made["Location"])
      func patch(_ offset: Int, _ piece: ArraySlice<UInt8>) throws -> Answer {
        try client.send(
          "PATCH", upload,
          [
            "Tus-Resumable": "1.0.0", "Upload-Offset": "\(offset)", "Content-Type": "application/offset+octet-stream",
          ], .bytes(Array(piece)))
      }
      let half = bytes.count / 2
      #expect(try patch(0, bytes[..<half]).status == 204)
      let id = try #require(try patch(half, bytes[half...])["Stillwave-Recording"])
      let kept: [Step] = [
        ("the bytes", { $0.contains(".part>") && $0.contains("write") }),
        ("their fsync", { $0.contains("fsync(") && $0.contains(".part>") }),
        ("their row's sync", { $0.contains("sync(") && $0.contains("catalog.sqlite") }),
      ]
      let told: Step = ("the answer", { $0.contains("HTTP/1.1 204") })
      let finished: [Step] = [
        ("the link", { $0.contains("link") && $0.contains("/recordings/\(id)/audio.wav") }),
        ("the fsync of the folder", { $0.contains("fsync(") && $0.contains("/recordings/\(id)>") }),
        ("the recording's row's sync", { $0.contains("sync(") && $0.contains("catalog.sqlite") }),
        ("the end of the part", { $0.contains("unlink") && $0.contains(".part") }),
      ]
      let steps = kept + [told] + kept + finished + [told]
      return losses(try lines(trace, until: "HTTP/1.1 204", times: 2), steps)
    }
  }

  /// Tries once, with the service under strace. `attempt` gets a client, the folder that contains the data folder, and
  /// the trace; it returns descriptions of losses.
  private func check(_ name: String, _ attempt: (HTTPClient, String, String) throws -> [String]) throws {
    guard let tracer = Self.tracer else { return FaultRecord.skip(name, "strace is missing or not permitted") }
    var record = FaultRecord(name)
    defer { record.write("strace") }
    record.attempt {
      let folder = try TemporaryFolder()
      let trace = folder.file("trace")
      let calls =
        "trace=write,pwrite64,writev,fsync,fdatasync,rename,renameat,renameat2,link,linkat,unlink,sendto,sendmsg"
      let server = try Command(
        tracer,
        ["-f", "-y", "-s", "16", "-e", calls, "-e", "signal=none", "-o", trace, try Program.path()]
          + ["serve", "--listen", "127.0.0.1:0", "--data", folder.file("data")])
      defer { Processes.naming(folder.file("data")).forEach { kill($0, SIGKILL) } }
      let isListening = try eventually { try server.output().hasSuffix("\n") || !server.isRunning }
      let port = try #require(
        isListening ? UInt16(try server.output().split(separator: ":").last?.dropLast() ?? "") : nil)
      return try attempt(HTTPClient(port: port), folder.path, trace)
    }
  }

  /// The path of strace, if it may trace.
  static var tracer: String? {
    let path = "/usr/bin/strace"
    guard FileManager.default.isExecutableFile(atPath: path),
      let tried = try? Command(path, ["-o", "/dev/null", "/bin/true"]).finish()
    else { return nil }
    return tried.status == 0 ? path : nil
  }

  /// The trace is written while the calls happen; the answer's line may come after the answer.
  private func lines(_ trace: String, until last: String, times: Int) throws -> [String] {
    var text = ""
    _ = try eventually {
      text = String(decoding: try contents(trace), as: UTF8.self)
      return text.components(separatedBy: last).count > times
    }
    return text.split(separator: "\n").map(String.init)
  }

  /// Returns the steps that are out of order or missing.
  private func losses(_ lines: [String], _ steps: [Step]) -> [String] {
    var position = 0
    for step in steps {
      guard let found = lines[position...].firstIndex(where: step.isDone) else {
        return ["\(step.what) came too early or not at all"]
      }
      position = found + 1
    }
    return []
  }
}
