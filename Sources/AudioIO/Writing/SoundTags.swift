import CSndfile
import Glibc
import Terms

/// A sound file's title, artist, and other text tags that libsndfile supports, the chunks of a WAV file, and what its
/// channels are, copied without interpretation. Pictures aren't included.
package struct SoundTags: Sendable, Equatable {
  /// By libsndfile's numbers. The software tag is omitted, because different software writes the copy.
  package private(set) var texts: [Int32: [CChar]] = [:]
  /// What a WAV file says besides.
  private(set) var chunks = WaveChunks()
  /// What each channel is, in libsndfile's numbers; empty if the file doesn't say, or of plain mono and stereo.
  private(set) var channels: [Int32] = []

  private static let kinds = [
    SF_STR_TITLE, SF_STR_COPYRIGHT, SF_STR_ARTIST, SF_STR_COMMENT, SF_STR_DATE, SF_STR_ALBUM, SF_STR_LICENSE,
    SF_STR_TRACKNUMBER, SF_STR_GENRE,
  ].map { Int32($0) }
  /// Maximum size of one text, in bytes; a longer one isn't a title.
  private static let lengthLimit = 4096

  /// Creates an empty set of tags.
  package init() {}

  /// Reads the tags of the file at `path`. The result is empty if libsndfile can't open it.
  package init(path: String) {
    guard let file = try? SndfileHandle(reading: path) else { return }
    for kind in Self.kinds {
      guard let text = file.text(kind), text.count <= Self.lengthLimit else { continue }
      texts[kind] = text
    }
    channels = file.channelMap
    if channels.count <= 2, isUsual { channels = [] }
    chunks = WaveChunks(path: path)
  }

  /// Adds texts, by `FileTags`, unless the file has texts itself: a working copy has none.
  package mutating func add(_ tags: FileTags) {
    guard texts.isEmpty else { return }
    let kinds = [
      (SF_STR_TITLE, tags.title), (SF_STR_ARTIST, tags.artist), (SF_STR_ALBUM, tags.album), (SF_STR_DATE, tags.date),
      (SF_STR_TRACKNUMBER, tags.track), (SF_STR_GENRE, tags.genre), (SF_STR_COMMENT, tags.comment),
    ]
    for (kind, text) in kinds { if let text { texts[Int32(kind)] = text.utf8CString.map { $0 } } }
  }

  /// Keeps only the tags that still hold for a part of `count` frames that begins at frame `start`.
  package mutating func cut(from start: Int64, count: Int64) { chunks.cut(from: start, count: count) }

  /// Whether only WAV's newer kind of header can say what the channels of such a file are.
  func needsExtensibleHeader(_ format: AudioFormat) -> Bool {
    format.container == .wav && !channels.isEmpty && channels.count == format.channels
  }

  /// Whether the channels are those that FLAC and Ogg have if there are as many.
  private var isUsual: Bool {
    // Left, right, center 2 to 4; back 9 and 10, or in the center 8; low frequencies 11; sides 14 and 15.
    let usual: [[Int32]] = [
      [], [1], [4], [2, 3], [2, 3, 4], [2, 3, 9, 10], [2, 3, 4, 9, 10], [2, 3, 4, 14, 15], [2, 3, 4, 11, 9, 10],
      [2, 3, 4, 11, 14, 15], [2, 3, 4, 11, 8, 14, 15], [2, 3, 4, 11, 9, 10, 14, 15],
    ]
    return usual.contains(channels)
  }

  /// Writes the tags to a file that has no samples yet, except chunks, and returns the names of what it can't hold
  /// besides texts.
  func write(to file: borrowing SndfileHandle, _ format: AudioFormat) -> [String] {
    if ![.wav, .rf64].contains(format.container) || !chunks.hasTexts {
      for kind in Self.kinds {
        if let text = texts[kind] { file.setText(kind, text) }
      }
    }
    let isMapped = channels.count == format.channels && file.setChannelMap(channels)
    return chunks.leftOut(by: format.container) + (isMapped || isUsual ? [] : ["what its channels are"])
  }
}
