import Foundation
import Testing

/// Root lends a file to ffmpeg's user for as long as ffmpeg runs. A service that is killed meanwhile can't take it
/// back: the next one does.
@Suite(.serialized, .enabled(if: geteuid() == 0, "only root lends files"))
struct LentFileTests {
  enum Killed: String, CaseIterable {
    case alone = "the service"
    /// As a container or a unit that is out of memory ends: nobody is left to take anything back.
    case withWorkers = "the service and its workers"
  }

  @Test(arguments: Killed.allCases) func aFileThatWasLentWhenTheServiceWasKilledIsItsOwnersAgain(_ killed: Killed)
    throws
  {
    var record = FaultRecord("\(killed.rawValue) killed while ffmpeg reads")
    defer { record.write("the file, which was lent to ffmpeg, is root's alone after the next start") }
    record.attempt { try losses(killed) }
  }

  private func losses(_ killed: Killed) throws -> [String] {
    let server = try TestServer()
    let bytes = try contents(try MediaUploadTests.sounds[0].0.make(in: server.folder))
    let id = try #require(try server.client.uploadReady(bytes, name: "memo.m4a")["id"].string)
    try server.stop()
    let folder = server.data + "/recordings/\(id)"
    let audio = folder + "/audio.m4a"
    func mode() -> Int? {
      let attributes = try? FileManager.default.attributesOfItem(atPath: audio)
      return attributes?[.posixPermissions] as? Int
    }
    try #require(mode() == 0o600)
    // The next start builds them again, with an ffmpeg that reads on and writes nothing, so that its worker waits for
    // it.
    for name in try FileManager.default.contentsOfDirectory(atPath: folder)
    where name.hasPrefix("waveform") || name.hasPrefix("working") {
      try FileManager.default.removeItem(atPath: folder + "/" + name)
    }
    let programs = try FailingProgramTests.Programs("silent", failsToProbe: false)
    try server.restart("--ffmpeg", programs.ffmpeg)
    guard eventually({ mode() == 0o640 }) else { return ["the file was never lent: nothing is shown"] }
    if killed == .withWorkers {
      // It stands still, and takes nothing back when its worker is gone.
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
