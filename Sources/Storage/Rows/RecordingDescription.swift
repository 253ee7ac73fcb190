import FoundationEssentials
import Terms

// recording-<version>.json, next to a recording's audio: the catalog's data about the recording, so that a lost catalog
// can be rebuilt from the objects alone. Of several, the one with the highest version that is whole counts.
//
//   {"recording":{"id":…,"name":…,"created_at":…,"bytes":…,"sha256":…,"format":{…},"audio_file":…,…},
//    "sha256":"<of the recording member as written here, sorted and without blanks>","version":1}
//
// Members are those of `Recording` in snake case; `created_at` is in milliseconds since 1970. Each commit that changes
// what the description says gives the row another version, and the object is written after it, once. The checksum
// detects later corruption.

/// A recording as described by its own folder.
struct RecordingDescription: Decodable, Equatable {
  /// The version of the format that this program writes and reads.
  static let currentVersion = 1
  /// Maximum length of a file that is read, in bytes.
  static let byteLimit: Int64 = 16 << 20

  var version = Self.currentVersion
  var recording: Recording
  private var sha256 = ""

  init(_ recording: Recording) {
    self.recording = Self.lasting(recording)
    sha256 = Self.digest(of: Self.encoded(self.recording))
  }

  /// Returns a recording as its description has it, without the progress of its job: that changes often and means
  /// nothing once the job's row is lost.
  static func lasting(_ recording: Recording) -> Recording {
    var recording = recording
    if recording.waveformState == .building { recording.waveformState = .queued }
    return recording
  }

  private static func digest(of encoded: [UInt8]) -> String {
    var hash = SHA256()
    hash.update(encoded.span)
    return hash.hexDigest()
  }

  /// Returns the member `recording` as written.
  private static func encoded(_ recording: Recording) -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    // Every number in a row is finite (see `Recording.isPlausible`), and nothing else can fail to encode.
    return (try? encoder.encode(recording)).map(Array.init) ?? []
  }

  /// Parses the content of a file, which may be hostile. Fails if it doesn't describe a recording.
  init?(json bytes: [UInt8]) {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    guard let description = try? decoder.decode(Self.self, from: Data(bytes)),
      description.version == Self.currentVersion, description.recording.isPlausible,
      description.sha256 == Self.digest(of: Self.encoded(description.recording))
    else { return nil }
    self = description
  }

  /// Returns the content of the file that describes a recording.
  static func json(of recording: Recording) -> [UInt8] {
    let member = encoded(lasting(recording))
    let rest = #","sha256":"\#(digest(of: member))","version":\#(currentVersion)}"# + "\n"
    return Array(#"{"recording":"#.utf8) + member + Array(rest.utf8)
  }
}

extension Recording {
  /// Whether every value is one that the program could have written. A damaged catalog or folder must neither crash the
  /// process nor lead to a path outside the recording's folder.
  var isPlausible: Bool {
    // Each kind of file has its own names, so that none can be taken for another. Otherwise, a damaged row could cause
    // the audio to be removed as a damaged waveform, or overwritten by a working copy.
    let files = [(audioKey, "audio"), (workingKey, "working"), (waveformKey, "waveform")]
    let lengths = [bytes, workingBytes, waveformBytes, mapBytes]
    return (tags?.isPlausible(fileBytes: bytes ?? 0) ?? true) && createdAt.isPlausible
      && (0..<1 << 60).contains(version) && format.isPlausible
      && lengths.allSatisfy { 0...(1 << 60) ~= $0 ?? 0 }
      && [sha256, workingSHA256].allSatisfy {
        $0.map { $0.utf8.count == 64 && $0.utf8.allSatisfy(\.isLowerHexDigit) } ?? true
      }
      && files.allSatisfy { key, kind in
        key.map { $0.recording == id && $0.name.hasPrefix(kind) && MediaStore.isFileName($0.name) } ?? true
      }
  }
}

extension SoundShape {
  fileprivate var isPlausible: Bool {
    let counts = [frames, estimatedFrames].compactMap { $0 }
    let words = [container, codec]
    return words.allSatisfy { !$0.isEmpty && $0.utf8.allSatisfy(\.isWordByte) }
      && (1...1_000_000_000).contains(sampleRate) && (1...1_000_000).contains(channels)
      && counts.allSatisfy { $0 >= 0 }
  }
}

extension Timestamp {
  /// Whether the year is from 0000 to 9999.
  var isPlausible: Bool { (-62_167_219_200_000..<253_402_300_800_000).contains(milliseconds) }
}

extension UInt8 {
  /// Whether the byte is 0 … 9 or a … f.
  fileprivate var isLowerHexDigit: Bool { (0x30...0x39).contains(self) || (0x61...0x66).contains(self) }
  /// Whether the byte is a … z, 0 … 9, or “_”, as in names of formats.
  fileprivate var isWordByte: Bool { (0x61...0x7A).contains(self) || (0x30...0x39).contains(self) || self == 0x5F }
}
