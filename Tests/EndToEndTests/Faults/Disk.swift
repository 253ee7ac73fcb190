import Foundation

/// A small disk of a test's own, made of memory: for root only.
final class Disk {
  let path: String
  private let folder: TemporaryFolder
  private var hasCover = false

  /// nil where this process may not mount.
  init?(_ options: String) {
    guard geteuid() == 0, let folder = try? TemporaryFolder() else { return nil }
    self.folder = folder
    path = folder.file("disk")
    guard (try? FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)) != nil,
      Self.run("mount", ["-t", "tmpfs", "-o", options, "none", path])
    else { return nil }
  }

  /// What is opened from now on can't be written; what is open can.
  func makeReadOnly() -> Bool {
    guard Self.run("mount", ["--bind", path, path]) else { return false }
    hasCover = true
    return Self.run("mount", ["-o", "remount,bind,ro", path])
  }

  func makeWritable() {
    // Lazily: files were opened through it.
    if hasCover { _ = Self.run("umount", ["-l", path]) }
    hasCover = false
  }

  deinit {
    makeWritable()
    _ = Self.run("umount", ["-l", path])
  }

  private static func run(_ program: String, _ arguments: [String]) -> Bool {
    (try? Command("/bin/\(program)", arguments).finish())?.status == 0
  }
}
