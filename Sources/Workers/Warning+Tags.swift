import Terms

// Which tags are in a result. libsndfile writes seven texts, some of which some containers lack; ffmpeg copies what its
// muxers hold. Chunks of WAV are copied to WAV as they are. ReplayGain is never right for another sound.

/// The file that a recording's cleaned or trimmed copy is.
package struct TagTarget: Sendable {
  private let container: String
  /// Whether ffmpeg copied the tags of the source.
  private let isCopied: Bool
  private let copiesChunks: Bool

  /// - Parameters:
  ///   - container: of the result, as the API names it.
  ///   - source: the container of its source.
  ///   - isCopied: whether ffmpeg made it from the source.
  package init(_ container: String, from source: String, isCopied: Bool) {
    (self.container, self.isCopied) = (container, isCopied)
    copiesChunks = !isCopied && [source, container].allSatisfy { ["wav", "rf64"].contains($0) }
  }

  /// The names of the tags that it can hold; nil for all.
  private var held: Set<String>? {
    let usual: Set = ["title", "artist", "album", "date", "genre", "comment"]
    switch container {
    case "mkv", "webm", "flv", "wv", "tta": return nil
    case "caf" where isCopied: return nil
    case "mp4", "m4a": return usual.union(["track", "album artist", "composer", "lyrics", "COPYRIGHT"])
    case "mov": return usual.union(["COPYRIGHT"])
    case "avi": return usual.union(["track", "language", "COPYRIGHT"])
    case "wav" where isCopied: return usual.union(["track", "language", "COPYRIGHT"])
    case "wav" where copiesChunks, "rf64" where copiesChunks: return nil
    case "wav", "rf64", "flac", "ogg", "mp3", "caf": return usual.union(["track"])
    case "aiff": return ["title", "artist", "comment"]
    default: return []
    }
  }

  private var isMP4: Bool { isCopied && ["mp4", "m4a", "mov"].contains(container) }

  /// Whether ffmpeg writes a tag into MP4 and MOV in another way than as text.
  private static func isOfFilm(_ name: String) -> Bool {
    name.hasPrefix("LOCATION") || ["TIMECODE", "chapters"].contains(name)
  }

  private var holdsCover: Bool { isCopied || copiesChunks }

  /// What players of the result meet: MP3 is written with a varying bit rate.
  package var warnings: [Warning] { container == "mp3" ? [.seeksInexactly] : [] }

  /// Returns the names of a source's tags that the result lacks.
  func leftOut(_ tags: FileTags) -> [String] {
    let texts = [
      ("title", tags.title), ("artist", tags.artist), ("album", tags.album), ("album artist", tags.albumArtist),
      ("composer", tags.composer), ("date", tags.date), ("track", tags.track), ("genre", tags.genre),
      ("comment", tags.comment), ("language", tags.language),
    ].filter { $0.1 != nil }.map(\.0)
    let others = tags.others ?? []
    let gains = others.filter(Self.isGain)
    // With QuickTime's long keys, ffmpeg writes every tag.
    let hasLongKeys = isMP4 && others.contains { $0.hasPrefix("COM.APPLE.QUICKTIME.") }
    let lost = (texts + others.filter { !Self.isGain($0) }).filter { name in
      !hasLongKeys && held?.contains(name) == false && !(isMP4 && Self.isOfFilm(name))
    }
    return lost + (tags.cover == nil || holdsCover ? [] : ["the cover"]) + gains
  }

  /// Whether a tag says how loud the sound is.
  private static func isGain(_ name: String) -> Bool {
    let name = name.uppercased()
    return name.hasPrefix("REPLAYGAIN_") || name.hasPrefix("R128_") || name == "ITUNNORM"
  }
}

extension Warning {
  /// Names the tags that a result lacks.
  package static func ofTags(_ tags: FileTags?, in target: TagTarget) -> [Warning] {
    let names = tags.map(target.leftOut) ?? []
    guard !names.isEmpty else { return [] }
    let shown = names.prefix(16).joined(separator: ", ") + (names.count > 16 ? " and \(names.count - 16) more" : "")
    return [
      Warning(
        code: "tags_left_out",
        detail:
          "These tags of the source aren't in the result, which can't hold them or for which they would be wrong: "
          + "\(shown).")
    ]
  }

  /// Names what a result's file can't hold of its source's, besides texts.
  package static func ofFile(leftOut names: [String]) -> [Warning] {
    guard !names.isEmpty else { return [] }
    return [
      Warning(
        code: "chunks_left_out",
        detail: "The result can't hold these of the source, which are left out: \(names.joined(separator: ", ")).")
    ]
  }
}

extension FileTags {
  /// The texts that results get, short enough for a worker's request.
  package var copied: FileTags {
    var copy = FileTags()
    for text in [\.title, \.artist, \.album, \.date, \.track, \.genre, \.comment] as [WritableKeyPath<Self, String?>] {
      copy[keyPath: text] = self[keyPath: text].map { String($0.prefix(500)) }
    }
    return copy
  }
}
