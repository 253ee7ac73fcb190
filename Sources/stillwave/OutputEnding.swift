import AudioIO

/// A file name's extension, which tells people and players the format.
struct OutputEnding {
  private let text: String
  private let path: String

  /// The extensions of each format. The first one is written; a file may have any of them.
  private static let kinds = [
    ["wav", "wave", "rf64", "bwf"], ["aiff", "aif", "aifc"], ["au", "snd"], ["ogg", "oga"], ["opus", "ogg", "oga"],
    ["mp4", "m4a", "m4v", "m4b"], ["m4a", "mp4", "m4b"], ["mov", "qt"], ["mkv", "mka", "mk3d"], ["mka", "mkv"],
    ["webm", "weba"], ["mpg", "mpeg", "vob"], ["ts", "m2ts", "mts"],
  ]

  /// nil if the name has no extension.
  init?(of path: String) {
    guard let name = path.split(separator: "/").last, let dot = name.lastIndex(of: "."), dot > name.startIndex,
      path != OutputFile.standardName
    else { return nil }
    (text, self.path) = (name[name.index(after: dot)...].lowercased(), path)
  }

  /// Throws if a file whose format has the extension `written` shouldn't have this one. nil stands for a format that
  /// can be written only as WAV or FLAC.
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
