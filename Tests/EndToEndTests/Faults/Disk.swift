import Foundation

/// A small in-memory disk for one test; needs root.
final class Disk {
  let path: String
  private let folder: TemporaryFolder
  private var hasCover = false

  /// nil if this process may not mount.
  init?(_ options: String) {
    guard geteuid() == 0, let folder = try? TemporaryFolder() else { return nil }
    self.folder = folder
    path = folder.file("disk")
    guard (try? FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)) != nil,
      Self.run("mount", ["-t", "tmpfs", "-o", options, "none", path])
    else { return nil }
  }

  /// Makes it read-only for files opened from now on; open files can still be written.
  func makeReadOnly() -> Bool {
    guard Self.run("mount", ["--bind", path, path]) else { return false }
    hasCover = true
    return Self.run("mount", ["-o", "remount,bind,ro", path])
  }

  /// Takes this many MiB of the room.
  func take(mebibytes: Int) { _ = Self.run("fallocate", ["-l", "\(mebibytes)M", "\(path)/taken"]) }

  /// Takes all room that is left, or the last inode.
  func fill() { _ = Self.run("dd", ["if=/dev/zero", "of=\(path)/filler", "bs=4k", "status=none"]) }

  func makeWritable() {
    // Lazily, because files were opened through it.
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
