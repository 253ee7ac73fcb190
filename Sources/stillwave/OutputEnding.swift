import AudioIO
import Terms

/// The ending of a file's name, from which people and players know what the file is.
struct OutputEnding {
  private let text: String
  private let path: String

  /// Endings that mean the same kind of file: the usual one first, then others that such a file may have.
  private static let kinds = [
    ["wav", "wave", "rf64", "bwf"], ["aiff", "aif", "aifc"], ["au", "snd"], ["ogg", "oga"], ["opus", "ogg", "oga"],
    ["mp4", "m4a", "m4v", "m4b"], ["m4a", "mp4", "m4b"], ["mov", "qt"], ["mkv", "mka", "mk3d"], ["mka", "mkv"],
    ["webm", "weba"], ["mpg", "mpeg", "vob"], ["ts", "m2ts", "mts"],
  ]

  /// nil if the name has no ending.
  init?(of path: String) {
    guard let text = Self.text(of: path) else { return nil }
    (self.text, self.path) = (text, path)
  }

  /// Returns the ending of a file's name in lower case, without its dot; nil if it has none.
  static func text(of path: String) -> String? {
    guard let name = path.split(separator: "/").last, let dot = name.lastIndex(of: "."), dot > name.startIndex,
      path != OutputFile.standardName
    else { return nil }
    return name[name.index(after: dot)...].lowercased()
  }

  /// Throws if the ending doesn't fit a file of the kind `written`, which is named by its usual ending; nil if the
  /// source's own kind can't be written.
  func check(isOf written: String?) throws(CommandFailure) {
    if let written, text == written || Self.kinds.contains(where: { $0[0] == written && $0.contains(text) }) { return }
    let others = OutputFormat.allCases.filter { $0 != .same && $0.rawValue != written }.map { ".\($0.rawValue)" }
    let kept = written.map { ".\($0), to keep the kind of file that it is, or " } ?? ""
    throw CommandFailure(
      code: "unsupported_output",
      detail: "\(path): the file would not be a “.\(text)” file. Name OUT \(kept)\(others.joined(separator: ", ")), or "
        + "choose with --format.")
  }
}
