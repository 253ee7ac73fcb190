import FoundationEssentials
import Labels
import Media
import Terms
import Workers

/// Reads the lyrics, chapters and subtitles inside a file.
struct ReadEmbeddedLabels {
  let work: EmbeddedLabelsWork
  let source: String
  /// The facts about a file that ffmpeg reads.
  let facts: MediaFacts?
  /// The programs that read such a file; nil if they couldn't be started.
  let texts: MediaTexts?

  /// Reads the file, whose sound `analysis` describes, writes the labels that it finds, and adds the tags and what
  /// couldn't be read to `analysis`. Doesn't throw, because the recording is good without its labels. Reads the heads
  /// of all elements of a Matroska file, and little of other files.
  func run(_ analysis: inout Analysis) {
    guard let file = FileStart(path: source) else { return }
    var bytes = FileBytes(file)
    var labels = EmbeddedLabels()
    let duration = MediaTime(seconds: Double(analysis.frames) / Double(work.sampleRate))
    if facts?.demuxer.map({ $0 != .matroska }) ?? true {
      let clock = EmbeddedClock(duration: duration, mpegFrameMicroseconds: mpegFrameMicroseconds)
      labels.addTags(of: &bytes, clock)
    }
    if let texts {
      let zero = facts?.firstFrame.map { Int64((Double($0) / Double(work.sampleRate) * 1e6).rounded()) } ?? 0
      let clock = EmbeddedClock(duration: duration, zero: zero)
      // ffprobe finds the same tags as above, but not all that is in them.
      if labels.tracks.isEmpty { labels.add(probe: texts.report(), clock) }
      if facts?.demuxer == .matroska {
        if facts?.others?.subtitles != 0 { labels.addSubtitles(ofMatroska: &bytes, clock) }
      } else if let subtitles = texts.decodedSubtitles() {
        var memory = MemoryBytes(subtitles)
        labels.addSubtitles(ofMatroska: &memory, clock)
      }
    }
    let document = labels.document()
    let isWritten = labels.tracks.isEmpty || (try? Data(document).write(to: URL(fileURLWithPath: work.output))) != nil
    analysis.warnings += labels.faults.map(Warning.init) + (isWritten ? [] : [.labelsUnwritten])
    if labels.tags != FileTags() { analysis.tags = labels.tags }
  }

  /// Some lyrics count frames of MPEG sound, which have 384 samples in layer I, 1152 in layers II and III, and 576 in
  /// layer III at the lower rates of MPEG-2.
  private var mpegFrameMicroseconds: Double? {
    let samples: [String: Double] = ["mp1": 384, "mp2": 1152, "mp3": work.sampleRate >= 32_000 ? 1152 : 576]
    return samples[work.codec].map { $0 * 1e6 / Double(work.sampleRate) }
  }
}

extension Warning {
  fileprivate init(_ fault: EmbeddedFault) { self.init(code: "embedded_labels", detail: fault.words) }

  fileprivate static let labelsUnwritten = Warning(
    code: "embedded_labels", detail: "The labels inside the file could not be stored.")
}

/// A file that is read at random in small pieces.
private struct FileBytes: ByteSource {
  private let file: FileStart
  let length: Int
  private var window: [UInt8] = []
  private var start = 0

  /// Fits a page. The heads of a film's elements are farther apart than this, those of its sound are closer together.
  private static let windowLength = 4096

  init(_ file: FileStart) { (self.file, length) = (file, file.length) }

  mutating func bytes(at offset: Int, count: Int) -> ArraySlice<UInt8> {
    guard offset >= 0, offset < length else { return [] }
    let count = min(count, length - offset)
    if count > Self.windowLength / 2 { return file.bytes(at: offset, count: count)[...] }
    if offset < start || offset + count > start + window.count {
      (window, start) = (file.bytes(at: offset, count: Self.windowLength), offset)
    }
    return window.dropFirst(offset - start).prefix(count)
  }
}
