import AudioIO
import FoundationEssentials
import Glibc
import Media

// What the service asks of a worker: one JSON object, ended by a newline, on the worker's standard input, which then
// stays open for as long as the service lives.
//
//   {"ffmpeg":"…","fence":{…},"folder":"…","limits":{…},"source":"…","threads":2,"work":{"waveform":{"_0":{…}}}}
//
// A worker answers with `WorkerReport`s. The commands perform the same requests in their own process, without a fence.

/// Work on one file.
package struct WorkerRequest: Codable, Sendable, Equatable {
  /// What to do with the source.
  package enum Work: Codable, Sendable, Equatable {
    /// Say what the file holds.
    case probe
    /// Say whether ffmpeg works; the source isn't read.
    case ffmpegCheck
    case waveform(WaveformWork)
    case denoise(DenoiseWork)
    case convert(ConvertWork)
    /// Find where there is only noise.
    case noiseRegions(WorkingCopy?)
    /// Measure the mean power spectrum of a stretch.
    case spectrum(TimeWindow)
  }

  /// What to do.
  package var work: Work
  /// The file to work on.
  package var source: String
  /// The job's folder, which one worker at a time may use, and where a fenced one finds all that it writes.
  package var folder: String?
  /// What a recording may be.
  package var limits: AudioLimits
  /// What the worker may use up; nil for a command, which isn't fenced in.
  package var fence: WorkerFence?
  /// The ffmpeg to use: a path, or a name to look for on PATH.
  package var ffmpeg: String
  /// Threads to work with, 1 or more; nil for as many as there are cores.
  package var threads: Int?

  /// A request of these parts.
  package init(
    _ work: Work, on source: String, in folder: String? = nil, limits: AudioLimits = AudioLimits(),
    fence: WorkerFence? = nil, ffmpeg: String = "ffmpeg", threads: Int? = nil
  ) {
    self.work = work
    self.source = source
    self.folder = folder
    self.limits = limits
    self.fence = fence
    self.ffmpeg = ffmpeg
    self.threads = threads
  }
}

/// A working copy to make first, of a source that isn't read as it is (see `ImportRecording`).
package struct WorkingCopy: Codable, Sendable, Equatable {
  /// What a probe found out about the source.
  package var facts: MediaFacts
  /// The sound file to write.
  package var path: String

  /// A copy of these parts.
  package init(_ facts: MediaFacts, at path: String) {
    self.facts = facts
    self.path = path
  }
}

/// Write a waveform.
package struct WaveformWork: Codable, Sendable, Equatable {
  /// The pyramid file to write.
  package var pyramid: String
  /// nil where the source is read as it is.
  package var copy: WorkingCopy?
  /// Where to keep the sound map; nil: nowhere.
  package var soundMap: String?
  /// Whether to look for noise regions in the same pass.
  package var findsNoiseRegions: Bool

  /// Work of these parts.
  package init(
    pyramid: String, copy: WorkingCopy? = nil, soundMap: String? = nil, findsNoiseRegions: Bool = false
  ) {
    self.pyramid = pyramid
    self.copy = copy
    self.soundMap = soundMap
    self.findsNoiseRegions = findsNoiseRegions
  }
}

/// Remove noise.
package struct DenoiseWork: Codable, Sendable, Equatable {
  /// A copy of a file that ffmpeg reads, with the cleaned sound in place of its own.
  package struct Replacement: Codable, Sendable, Equatable {
    /// The file to copy.
    package var original: String
    /// What a probe found out about it.
    package var facts: MediaFacts
    /// The file to write.
    package var output: String

    /// A replacement of these parts.
    package init(of original: String, _ facts: MediaFacts, output: String) {
      self.original = original
      self.facts = facts
      self.output = output
    }
  }

  /// How, and what to write.
  package var parameters: DenoiseParameters
  /// The sound file to write.
  package var output: String
  /// Where the result's waveform grows; nil for none.
  package var pyramid: String?
  /// nil where the source is read as it is.
  package var copy: WorkingCopy?
  /// What gets the result as well; nil for nothing.
  package var replacement: Replacement?
  /// The stretch of the result to write; nil for all of it.
  package var window: TimeWindow?
  /// Whether to look for noise regions in the result.
  package var findsNoiseRegions: Bool

  /// Work of these parts.
  package init(
    _ parameters: DenoiseParameters, output: String, pyramid: String? = nil, copy: WorkingCopy? = nil,
    replacement: Replacement? = nil, window: TimeWindow? = nil, findsNoiseRegions: Bool = false
  ) {
    self.parameters = parameters
    self.output = output
    self.pyramid = pyramid
    self.copy = copy
    self.replacement = replacement
    self.window = window
    self.findsNoiseRegions = findsNoiseRegions
  }
}

/// Write the sound in another format.
package struct ConvertWork: Codable, Sendable, Equatable {
  /// The sound file to write.
  package var output: String
  /// The kind of file to write.
  package var format: OutputFormat
  /// The source's format where ffmpeg has to resample it; nil where libsndfile writes the file.
  package var resampled: AudioFormat?

  /// Work of these parts.
  package init(output: String, format: OutputFormat, resampled: AudioFormat? = nil) {
    self.output = output
    self.format = format
    self.resampled = resampled
  }
}

// MARK: On the wire

extension WorkerRequest {
  /// Longest request in bytes, its newline included: what a pipe holds, so that it can be written before the worker is
  /// started.
  package static let sizeLimit = 65_536

  /// The line, newline included.
  package func line() -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let data = (try? encoder.encode(self)) ?? Data()
    return Array(data) + [UInt8(ascii: "\n")]
  }

  /// Reads the request from a descriptor, up to its newline. Blocks. Throws `.request` if it is no whole request.
  package init(from descriptor: Int32) throws(ProcessingError) {
    var line: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 4096)
    while !line.contains(UInt8(ascii: "\n")) {
      let count = unsafe piece.withUnsafeMutableBytes { unsafe read(descriptor, $0.baseAddress, $0.count) }
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { throw .request(.truncated) }
      line += piece.prefix(count)
      guard line.count <= Self.sizeLimit else { throw .request(.tooLong) }
    }
    guard
      let request = try? JSONDecoder().decode(WorkerRequest.self, from: Data(line.prefix { $0 != UInt8(ascii: "\n") }))
    else {
      throw .request(.malformed)
    }
    self = request
  }

  /// Files that the worker may lend to ffmpeg's user; see `LentFiles`.
  package var lentFiles: [String] {
    switch work {
    case .denoise(let work): [source] + (work.replacement.map { [$0.original, $0.output] } ?? [])
    case .convert(let work): [source, work.output]
    default: [source]
    }
  }
}
