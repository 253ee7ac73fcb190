import Foundation
import Testing

/// Root lends a file to ffmpeg's user while ffmpeg runs. If the service is killed meanwhile, the next one takes it
/// back.
@Suite(.serialized, .enabled(if: geteuid() == 0, "only root lends files"))
struct LentFileTests {
  enum Killed: String, CaseIterable {
    case alone = "the service"
    /// How a container or unit ends that is out of memory: nothing is left that could take files back.
    case withWorkers = "the service and its workers"
  }

  @Test(arguments: Killed.allCases) func aLentFileIsTakenBackAfterTheServiceWasKilled(_ killed: Killed)
    throws
  {
    var record = FaultRecord("\(killed.rawValue) killed while ffmpeg reads")
    defer { record.write("the file, which was lent to ffmpeg, is root's alone after the next start") }
    record.attempt { try losses(killed) }
  }

  private func losses(_ killed: Killed) throws -> [String] {
    let server = try TestServer()
    server.losesWorkers = killed == .withWorkers
    let bytes = try contents(try MediaUploadTests.memo.make(in: server.folder))
    let id = try #require(try server.client.uploadReady(bytes, name: "memo.m4a")["id"].string)
    try server.stop()
    let folder = server.data + "/recordings/\(id)"
    let audio = folder + "/audio.m4a"
    func mode() -> Int? {
      let attributes = try? FileManager.default.attributesOfItem(atPath: audio)
      return attributes?[.posixPermissions] as? Int
    }
    try #require(mode() == 0o600)
    // The next start rebuilds them, with an ffmpeg that only reads and never writes, so that its worker keeps waiting.
    for name in try FileManager.default.contentsOfDirectory(atPath: folder)
    where name.hasPrefix("waveform") || name.hasPrefix("working") {
      try FileManager.default.removeItem(atPath: folder + "/" + name)
    }
    let programs = try FailingProgramTests.Programs("silent", failsToProbe: false)
    try server.restart("--ffmpeg", programs.ffmpeg)
    guard eventually({ mode() == 0o640 }) else { return ["the file was never lent: nothing is shown"] }
    if killed == .withWorkers {
      // A stopped service takes nothing back when its worker is gone.
      kill(server.processID, SIGSTOP)
      for worker in server.workers() { kill(worker, SIGKILL) }
    }
    try server.crash()
    var losses = killed == .withWorkers && mode() != 0o640 ? ["the file was taken back before: nothing is shown"] : []
    try programs.mend()
    try server.restart()
    if !eventually({ mode() == 0o600 }) {
      losses.append("the file has mode \(mode().map { String($0, radix: 8) } ?? "")")
    }
    let isReady = try eventually {
      try server.client.get("/v1/recordings/\(id)").json["waveform"]["state"].string == "ready"
    }
    if !isReady { losses.append("the waveform was not built again") }
    if try contents(audio) != bytes { losses.append("the recording") }
    if mode() != 0o600 { losses.append("the file is lent after the work") }
    try server.stop()
    return losses
  }
}
