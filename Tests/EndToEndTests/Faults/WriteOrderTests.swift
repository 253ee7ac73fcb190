import Foundation
import Testing

/// The order of writes that makes a crash harmless, as strace sees it: bytes, their fsync, the rename, the fsync of the
/// folder, the catalogue's, and only then the answer.
struct WriteOrderTests {
  @Test func anUploadIsAnsweredAfterEverythingOfItIsOnTheDisk() throws {
    let name = "order: bytes, fsync, rename, fsync of the folder, row, answer"
    guard let tracer = Self.tracer else { return FaultRecord.skip(name, "strace is missing or not permitted") }
    var record = FaultRecord(name)
    defer { record.write("strace") }
    record.attempt {
      let folder = try TemporaryFolder()
      let trace = folder.file("trace")
      let calls = "trace=write,pwrite64,writev,fsync,fdatasync,rename,renameat,renameat2,sendto,sendmsg"
      let server = try Command(
        tracer,
        ["-f", "-y", "-s", "16", "-e", calls, "-e", "signal=none", "-o", trace, try Program.path()]
          + ["serve", "--listen", "127.0.0.1:0", "--data", folder.file("data")])
      defer { Processes.naming(folder.file("data")).forEach { kill($0, SIGKILL) } }
      let isListening = try eventually { try server.output().hasSuffix("\n") || !server.isRunning }
      let port = try #require(
        isListening ? UInt16(try server.output().split(separator: ":").last?.dropLast() ?? "") : nil)
      let id = try #require(try HTTPClient(port: port).upload(BadUploadTests.tone.bytes, name: "a.wav")["id"].string)
      return losses(try lines(trace, until: "HTTP/1.1 201"), id)
    }
  }

  /// Where strace is, if it may trace.
  private static var tracer: String? {
    let path = "/usr/bin/strace"
    guard FileManager.default.isExecutableFile(atPath: path),
      let tried = try? Command(path, ["-o", "/dev/null", "/bin/true"]).finish()
    else { return nil }
    return tried.status == 0 ? path : nil
  }

  /// The trace is written as the calls come; the answer's line may follow the answer.
  private func lines(_ trace: String, until last: String) throws -> [String] {
    var text = ""
    _ = try eventually {
      text = String(decoding: try contents(trace), as: UTF8.self)
      return text.contains(last)
    }
    return text.split(separator: "\n").map(String.init)
  }

  /// What came out of order, or not at all.
  private func losses(_ lines: [String], _ id: String) -> [String] {
    let steps: [(what: String, isDone: (String) -> Bool)] = [
      ("the bytes", { $0.contains(".part>") && $0.contains("write") }),
      ("their fsync", { $0.contains("fsync(") && $0.contains(".part>") }),
      ("the rename", { $0.contains("rename") && $0.contains("/recordings/\(id)/audio.wav") }),
      ("the fsync of the folder", { $0.contains("fsync(") && $0.contains("/recordings/\(id)>") }),
      ("the row's sync", { $0.contains("sync(") && $0.contains("catalog.sqlite") }),
      ("the answer", { $0.contains("HTTP/1.1 201") }),
    ]
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
