import CLinux

/// What this machine has to fence workers and ffmpeg in with.
public struct FenceSupport: Sendable, Equatable {
  /// The version of Landlock, which closes files; 0 if the kernel has none.
  public var landlockVersion: Int
  /// Whether the kernel filters system calls.
  public var hasFilter: Bool
  /// Whether ffmpeg runs as a user without rights: not as root.
  public var dropsRoot: Bool

  /// What this process finds. A handful of system calls; root's file rights of this thread are changed and restored, so call
  /// it at the start.
  public static let current = FenceSupport(
    landlockVersion: Int(stillwave_landlock_version()), hasFilter: stillwave_has_filter(),
    dropsRoot: stillwave_can_drop_root())

  /// A value of known parts.
  public init(landlockVersion: Int, hasFilter: Bool, dropsRoot: Bool) {
    (self.landlockVersion, self.hasFilter, self.dropsRoot) = (landlockVersion, hasFilter, dropsRoot)
  }

  /// What an operator should know about the fence; nil if nothing is missing.
  public var warning: (code: String, detail: String)? {
    var parts: [String] = []
    if landlockVersion == 0 {
      parts.append("The kernel has no Landlock: other files of the same user are open to a decoder that is taken over.")
    }
    if !hasFilter {
      parts.append("The kernel filters no system calls: the network and other processes are open to such a decoder.")
    }
    if !dropsRoot { parts.append("ffmpeg runs as root, because root can't change to another user here.") }
    guard !parts.isEmpty else { return nil }
    return ("fence_incomplete", parts.joined(separator: " "))
  }
}
