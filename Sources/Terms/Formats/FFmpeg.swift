import Glibc

/// The installed ffmpeg.
package struct FFmpeg: Sendable, Equatable {
  /// The path of `ffmpeg`; `ffprobe` is in the same folder.
  package let path: String

  /// Finds the program at a path, or by name in the folders of PATH. Fails if it is missing or has no ffprobe next to
  /// it.
  package init?(_ name: String = "ffmpeg") {
    let variable = unsafe getenv("PATH").map { unsafe String(cString: $0) } ?? ""
    let candidates = name.contains("/") ? [name] : variable.split(separator: ":").map { "\($0)/\(name)" }
    let found = candidates.first { unsafe access($0, X_OK) == 0 }
    guard let found, unsafe access(Self.probe(beside: found), X_OK) == 0 else { return nil }
    path = found
  }

  private static func probe(beside path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "ffprobe" }
    return path[...slash] + "ffprobe"
  }

  /// The path of `ffprobe`.
  package var probePath: String { Self.probe(beside: path) }

  /// The paths of both programs.
  package var paths: [String] { [path, probePath] }
}
