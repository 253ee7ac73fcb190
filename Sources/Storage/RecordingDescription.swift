import FoundationEssentials

// recording.json, next to a recording's audio: what the catalog says of the recording, so that a lost catalog can be
// rebuilt from the folders alone.
//
//   {"version":1,"recording":{"id":…,"name":…,"created_at":…,"bytes":…,"sha256":…,"format":{…},"audio_file":…,…}}
//
// Members are those of `Recording` in snake case; `created_at` counts milliseconds since 1970. The file is written after
// each commit that changes the recording's row, through a temporary file and a rename, so it is always whole.

/// A recording as its own folder describes it.
struct RecordingDescription: Codable, Equatable {
  /// The name of the file in the recording's folder.
  static let fileName = "recording.json"
  /// The version of the format that this program writes and reads.
  static let currentVersion = 1
  /// Longest file that is read, in bytes.
  static let byteLimit: Int64 = 16 << 20

  var version = Self.currentVersion
  var recording: Recording

  init(_ recording: Recording) {
    self.recording = recording
    // How far a job is changes often and means nothing once the job's row is lost.
    if recording.waveformState == .building { self.recording.waveformState = .queued }
  }

  /// Reads the content of a file, which may be hostile; nil if it describes no recording.
  init?(json bytes: [UInt8]) {
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    guard let description = try? decoder.decode(Self.self, from: Data(bytes)),
      description.version == Self.currentVersion, description.recording.isPlausible
    else { return nil }
    self = description
  }

  /// The content of the file.
  func json() -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.keyEncodingStrategy = .convertToSnakeCase
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    // Every number in a row is finite (see `Recording.isPlausible`), and nothing else can fail to encode.
    guard let data = try? encoder.encode(self) else { return [] }
    return Array(data) + [UInt8(ascii: "\n")]
  }
}

extension Recording {
  /// Whether every value is one that the program itself writes: what a damaged catalog or folder says must neither crash
  /// the process nor lead out of the recording's folder.
  var isPlausible: Bool {
    let files = [audioFile, workingFile, waveformFile].compactMap { $0 }
    let regions = noiseRegions ?? []
    return createdAt.isPlausible && format.isPlausible && bytes ?? 0 >= 0 && workingBytes ?? 0 >= 0
      && sha256.map { $0.utf8.count == 64 } ?? true
      && files.allSatisfy(MediaStore.isFileName)
      && regions.allSatisfy { [$0.start, $0.end, $0.level, $0.score].allSatisfy(\.isFinite) }
  }
}

extension RecordingFormat {
  fileprivate var isPlausible: Bool {
    let counts = [frames, estimatedFrames].compactMap { $0 }
    return (1...1_000_000_000).contains(sampleRate) && (1...1_000_000).contains(channels)
      && counts.allSatisfy { $0 >= 0 } && (duration ?? 0).isFinite && duration ?? 0 >= 0
  }
}

extension Timestamp {
  /// Within the years 0000 to 9999.
  var isPlausible: Bool { (-62_167_219_200_000..<253_402_300_800_000).contains(milliseconds) }
}
