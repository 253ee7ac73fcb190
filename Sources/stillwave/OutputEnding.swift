import AudioIO

/// The ending of a file's name, which says to people and players what the file is.
struct OutputEnding {
  private let text: String
  private let path: String

  /// Endings of one kind of file. A file of the first one's kind may have any of them.
  private static let kinds = [
    ["wav", "wave", "rf64", "bwf"], ["aiff", "aif", "aifc"], ["au", "snd"], ["ogg", "oga"], ["opus", "ogg", "oga"],
    ["mp4", "m4a", "m4v", "m4b"], ["m4a", "mp4", "m4b"], ["mov", "qt"], ["mkv", "mka", "mk3d"], ["mka", "mkv"],
    ["webm", "weba"], ["mpg", "mpeg", "vob"], ["ts", "m2ts", "mts"],
  ]

  /// nil where the name has none.
  init?(of path: String) {
    guard let name = path.split(separator: "/").last, let dot = name.lastIndex(of: "."), dot > name.startIndex,
      path != OutputFile.standardName
    else { return nil }
    (text, self.path) = (name[name.index(after: dot)...].lowercased(), path)
  }

  /// Throws where a file of the kind with this ending has no such name; nil stands for one of which only WAV and FLAC
  /// can be written.
  func check(isOf written: String?) throws(CommandFailure) {
    if let written, text == written || Self.kinds.contains(where: { $0[0] == written && $0.contains(text) }) { return }
    let others = OutputFormat.allCases.filter { $0 != .same && $0.rawValue != written }.map { ".\($0.rawValue)" }
    let kept = written.map { ".\($0), to keep the kind of file that it is, or " } ?? ""
    throw CommandFailure(
      code: "unsupported_output",
      detail: "\(path): “.\(text)” is not what would be written. Name OUT \(kept)\(others.joined(separator: ", ")), or "
        + "choose with --format.")
  }
}
