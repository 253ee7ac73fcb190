import Foundation
import Processing
import Testing
import Workers

struct FenceSupportTests {
  @Test("a whole fence needs no warning")
  func whole() {
    #expect(FenceSupport(landlockVersion: 1, hasFilter: true, dropsRoot: true).warning == nil)
  }

  @Test(
    "an ffmpeg that only root can start is reported", .enabled(if: geteuid() == 0, "only root becomes another user"))
  func closedProgram() throws {
    let folder = FileManager.default.temporaryDirectory.appending(path: "ffmpeg-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    func warning(folder mode: Int, ffprobe: Int) throws -> String {
      for (name, mode) in [("ffmpeg", 0o755), ("ffprobe", ffprobe)] {
        try Data().write(to: URL(filePath: folder + "/" + name))
        try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: folder + "/" + name)
      }
      try FileManager.default.setAttributes([.posixPermissions: mode], ofItemAtPath: folder)
      return FenceSupport.current(with: folder + "/ffmpeg").warning?.detail ?? ""
    }
    #expect(try !warning(folder: 0o755, ffprobe: 0o755).contains(folder))
    #expect(try warning(folder: 0o755, ffprobe: 0o700).contains(folder + "/ffprobe"))
    #expect(try warning(folder: 0o755, ffprobe: 0o750).contains(folder + "/ffprobe"))
    #expect(try warning(folder: 0o700, ffprobe: 0o755).contains(folder + "/ffmpeg"))
  }

  @Test(
    "the warning names everything that is missing",
    arguments: [
      (FenceSupport(landlockVersion: 0, hasFilter: true, dropsRoot: true), ["Landlock"]),
      (FenceSupport(landlockVersion: 1, hasFilter: false, dropsRoot: true), ["system calls"]),
      (FenceSupport(landlockVersion: 1, hasFilter: true, dropsRoot: false), ["as root"]),
      (FenceSupport(landlockVersion: 0, hasFilter: false, dropsRoot: false), ["Landlock", "system calls", "as root"]),
    ])
  func incomplete(support: FenceSupport, words: [String]) throws {
    let warning = try #require(support.warning)
    #expect(warning.code == "fence_incomplete")
    for word in ["Landlock", "system calls", "as root"] {
      #expect(warning.detail.contains(word) == words.contains(word), "\(warning.detail)")
    }
  }
}
