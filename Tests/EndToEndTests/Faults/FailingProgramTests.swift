import Foundation
import Testing

/// A failure of ffmpeg itself isn't the file's fault: nothing is rejected because of it, and uploads in pieces are
/// kept.
@Suite(.serialized) struct FailingProgramTests {
  private static let deeds = ["crash", "abort", "killed", "use-up-memory", "no-memory", "no-library"]

  /// A folder whose ffmpeg and ffprobe fail as `deed` says until they're replaced.
  struct Programs {
    let folder: TemporaryFolder
    let path: String

    /// If `failsToProbe` is false, ffprobe is the real one.
    init(_ deed: String, failsToProbe: Bool = true) throws {
      folder = try TemporaryFolder()
      path = folder.file(deed)
      try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
      try link("ffmpeg", to: Program.path(of: "FailingProgram"))
      try link("ffprobe", to: failsToProbe ? Program.path(of: "FailingProgram") : Self.real("ffprobe"))
    }

    private static func real(_ name: String) throws -> String {
      let folders = (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin").split(separator: ":")
      return try #require(folders.map { "\($0)/\(name)" }.first(where: FileManager.default.isExecutableFile))
    }

    var ffmpeg: String { path + "/ffmpeg" }

    /// Replaces them with the real ones.
    func mend() throws {
      for name in ["ffmpeg", "ffprobe"] {
        try FileManager.default.removeItem(atPath: "\(path)/\(name)")
        try link(name, to: Self.real(name))
      }
    }

    private func link(_ name: String, to program: String) throws {
      try FileManager.default.createSymbolicLink(atPath: "\(path)/\(name)", withDestinationPath: program)
    }
  }

  @Test("if ffmpeg dies of itself, the file isn't blamed and its upload can be retried", .secondTier)
  func dies() throws {
    var record = FaultRecord("ffmpeg crashes, is killed, has no memory or no library")
    defer { record.write("while it looks at an upload; then it works again") }
    for deed in Self.deeds { record.attempt(deed) { try losses(deed) } }
  }

  private func losses(_ deed: String) throws -> [String] {
    var losses: [String] = []
    let programs = try Programs(deed)
    let server = try TestServer("--ffmpeg", programs.ffmpeg, "--worker-memory-bytes", "268435456")
    let bytes = try contents(try MediaUploadTests.memo.make(in: server.folder))
    func expectUnavailable(_ answer: Answer, _ what: String) {
      guard answer.status != 503 || answer["retry-after"] == nil else { return }
      losses.append("\(what): \(answer.status) \(answer.text)")
    }
    expectUnavailable(try server.client.send("POST", "/v1/recordings", [:], .bytes(bytes)), "at once")
    let tus = ["Tus-Resumable": "1.0.0", "Upload-Length": "\(bytes.count)"]
    let upload = try #require(try server.client.send("POST", "/v1/uploads", tus)["location"])
    func patch(_ offset: Int, _ rest: [UInt8]) throws -> Answer {
      let fields = ["Upload-Offset": "\(offset)", "Content-Type": "application/offset+octet-stream"]
      return try server.client.send("PATCH", upload, tus.merging(fields) { $1 }, .bytes(rest))
    }
    expectUnavailable(try patch(0, bytes), "in pieces")
    expectUnavailable(try server.client.send("HEAD", upload, tus), "asked for again")
    try programs.mend()
    let made = try patch(bytes.count, [])
    guard made.status == 204, let id = made["stillwave-recording"] else {
      return losses + ["the upload is gone: \(made.status) \(made.text)"]
    }
    if try server.client.get("/v1/recordings/\(id)/audio").body != bytes { losses.append("the bytes are others") }
    try server.client.succeed(try #require(try server.client.recording(id)["waveform"]["job"].string))
    try server.stop()
    return losses
  }

  @Test("the check that decides who is at fault passes only with a working ffmpeg")
  func check() throws {
    func check(_ ffmpeg: String) throws -> [String] {
      let finished = try WorkerTests.run(WorkerTests.request("ffmpegCheck", on: "/dev/null", ffmpeg: ffmpeg))
      return ["\(finished.status)"] + finished.lines
    }
    #expect(try check("ffmpeg") == ["0", #"{"ffmpeg_works":true}"#])
    #expect(try check("/nonexistent/ffmpeg")[0] == "1")
    // Nothing limits the memory of a worker without a fence.
    for deed in Self.deeds.filter({ $0 != "use-up-memory" }) + ["refuse"] {
      let programs = try Programs(deed)
      // With the last reference to them their folder goes.
      let answer = try withExtendedLifetime(programs) { try check(programs.ffmpeg) }
      #expect(answer == ["0", #"{"ffmpeg_works":false}"#], "\(deed)")
    }
  }

  @Test("a file on which a working ffmpeg always crashes is rejected")
  func hostileFile() throws {
    let programs = try Programs("crash-on-files")
    let server = try TestServer("--ffmpeg", programs.ffmpeg)
    let bytes = try contents(try MediaUploadTests.memo.make(in: server.folder))
    let answer = try server.client.send("POST", "/v1/recordings", [:], .bytes(bytes))
    expectProblem(answer, 415, "unsupported_media")
    try server.expectNothingKept()
  }
}
