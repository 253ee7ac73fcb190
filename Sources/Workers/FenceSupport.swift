import CLinux
import Terms

/// The means that this machine has for fencing in workers and ffmpeg.
package struct FenceSupport: Sendable, Equatable {
  /// The version of Landlock, which restricts access to files; 0 if the kernel has none.
  package var landlockVersion: Int
  /// Whether the kernel can filter system calls.
  package var hasFilter: Bool
  /// Whether ffmpeg runs as an unprivileged user rather than as root.
  package var dropsRoot: Bool
  /// An ffmpeg or ffprobe that the unprivileged user can't start, so that root would start it as root.
  package var closedProgram: String?

  /// The means that this process finds, with a handful of system calls. Temporarily changes root's file rights of this
  /// thread, so call it at the start.
  package static let current = FenceSupport(
    landlockVersion: Int(stillwave_landlock_version()), hasFilter: stillwave_has_filter(),
    dropsRoot: stillwave_can_drop_root())

  /// The means that this process finds, including the ffmpeg in use, with a few more system calls. Without ffmpeg,
  /// nothing is missing.
  package static func current(with ffmpeg: String) -> FenceSupport {
    var support = current
    guard support.dropsRoot, let found = FFmpeg(ffmpeg) else { return support }
    support.closedProgram = found.paths.first { unsafe !stillwave_other_can_run($0) }
    return support
  }

  /// Creates a value from its parts.
  package init(landlockVersion: Int, hasFilter: Bool, dropsRoot: Bool, closedProgram: String? = nil) {
    (self.landlockVersion, self.hasFilter, self.dropsRoot) = (landlockVersion, hasFilter, dropsRoot)
    self.closedProgram = closedProgram
  }

  /// A warning for the operator about the fence; nil if nothing is missing.
  package var warning: Warning? {
    var parts: [String] = []
    if landlockVersion == 0 {
      parts.append("The kernel has no Landlock: other files of the same user are open to a decoder that is taken over.")
    }
    if !hasFilter {
      parts.append("The kernel filters no system calls: the network and other processes are open to such a decoder.")
    }
    if !dropsRoot { parts.append("ffmpeg runs as root, because root can't change to another user here.") }
    if let closedProgram {
      parts.append(
        "ffmpeg runs as root, because no other user can start \(closedProgram): open it and its folders to all.")
    }
    guard !parts.isEmpty else { return nil }
    return Warning(code: "fence_incomplete", detail: parts.joined(separator: " "))
  }
}
