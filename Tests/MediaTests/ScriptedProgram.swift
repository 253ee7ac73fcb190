import Foundation

/// Programs that stand in for ffmpeg.
enum ScriptedProgram {
  private static let launcher = URL(filePath: #filePath).deletingLastPathComponent().appending(
    path: "Programs/launcher")

  /// Creates programs with these names that run `script` in bash. They are links to a launcher that no test writes: a
  /// file that is open for writing anywhere, even in another test's child before its `exec`, can't be executed
  /// (ETXTBSY).
  static func write(_ script: String, as names: [String], in folder: String) throws {
    for name in names {
      try Data(script.utf8).write(to: URL(filePath: "\(folder)/\(name).script"))
      try FileManager.default.createSymbolicLink(
        atPath: "\(folder)/\(name)", withDestinationPath: launcher.path(percentEncoded: false))
    }
  }
}
