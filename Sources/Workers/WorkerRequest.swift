import FoundationEssentials
import Glibc
import Terms

// The service sends a worker one JSON object, followed by a newline, on the worker's standard input, which then stays
// open as long as the service lives.
//
//   {"ffmpeg":"…","fence":{…},"folder":"…","limits":{…},"source":"…","threads":2,"work":{"waveform":{"_0":{…}}}}
//
// A worker answers with `WorkerReport`s. Readers get such lines, too (see `ReaderRequest`). The commands perform the
// same requests in their own process, without a fence.

/// Work on one file.
package struct WorkerRequest: Codable, Sendable, Equatable {
  /// The kinds of work on the source.
  package enum Work: Codable, Sendable, Equatable {
    /// Report what is in the file.
    case probe
    /// Report the file's format and, if it's short, build its waveform.
    case intake(IntakeWork)
    /// Report whether ffmpeg works, without reading the source.
    case ffmpegCheck
    case waveform(WaveformWork)
    case denoise(DenoiseWork)
    case convert(ConvertWork)
    /// Find regions that contain only noise.
    case noiseRegions(WorkingCopy?)
    /// Measure the mean power spectrum of a stretch.
    case spectrum(TimeWindow)
    /// Measure the loudness, after making the working copy if the source needs one.
    case loudness(WorkingCopy?)
    case trim(TrimWork)
    case noiseProfile(NoiseProfileWork)

    /// The name of the kind of work, for people.
    package var name: String {
      switch self {
      case .probe: "probe"
      case .intake: "intake"
      case .ffmpegCheck: "ffmpeg-check"
      case .waveform: "waveform"
      case .denoise: "denoise"
      case .convert: "convert"
      case .noiseRegions: "noise-regions"
      case .spectrum: "spectrum"
      case .loudness: "loudness"
      case .trim: "trim"
      case .noiseProfile: "noise-profile"
      }
    }
  }

  /// The work to do.
  package var work: Work
  /// The file to work on.
  package var source: String
  /// The job's folder. Only one worker at a time may use it, and a fenced worker writes only there.
  package var folder: String?
  /// Limits for the recording.
  package var limits: AudioLimits
  /// The resources that the worker may use; nil for a command, which isn't fenced in.
  package var fence: WorkerFence?
  /// The folder of the control group to join first; nil for none.
  package var group: String?
  /// The ffmpeg to use: a path, or a name to look up on PATH, or `noFFmpeg`.
  package var ffmpeg: String
  /// The file of weights of the method `voice`.
  package var voice: String?
  /// Makes a look at a file that only ffmpeg can read fail with `WorkerFailure.needsFFmpegCode`.
  package static let noFFmpeg = ""
  /// The number of threads to use, 1 or more; nil for one per core.
  package var threads: Int?

  /// Creates a request from its parts.
  package init(
    _ work: Work, on source: String, in folder: String? = nil, limits: AudioLimits = AudioLimits(),
    fence: WorkerFence? = nil, ffmpeg: String = "ffmpeg", voice: String? = nil, threads: Int? = nil
  ) {
    self.work = work
    self.source = source
    self.folder = folder
    self.limits = limits
    self.fence = fence
    self.ffmpeg = ffmpeg
    self.voice = voice
    self.threads = threads
  }
}

/// The working copy to make first if the source can't be read directly (see `ImportRecording`).
package struct WorkingCopy: Codable, Sendable, Equatable {
  /// The probe's facts about the source.
  package var facts: MediaFacts
  /// The audio file to write.
  package var path: String

  /// Creates a value from its parts.
  package init(_ facts: MediaFacts, at path: String) {
    self.facts = facts
    self.path = path
  }
}

/// The parameters for building a waveform.
package struct WaveformWork: Codable, Sendable, Equatable {
  /// The pyramid file to write.
  package var pyramid: String
  /// The working copy to make; nil if the source is read directly.
  package var copy: WorkingCopy?
  /// Where to store the sound map; nil to discard it.
  package var soundMap: String?
  /// Whether to look for noise regions in the same pass.
  package var findsNoiseRegions: Bool
  /// How to read the timed text inside the source; nil to leave it alone.
  package var labels: EmbeddedLabelsWork?

  /// Creates a value from its parts.
  package init(
    pyramid: String, copy: WorkingCopy? = nil, soundMap: String? = nil, findsNoiseRegions: Bool = false,
    labels: EmbeddedLabelsWork? = nil
  ) {
    self.pyramid = pyramid
    self.copy = copy
    self.soundMap = soundMap
    self.findsNoiseRegions = findsNoiseRegions
    self.labels = labels
  }
}

/// The parameters for reading the timed text inside a file.
package struct EmbeddedLabelsWork: Codable, Sendable, Equatable {
  /// The file to write, if there is anything: `EmbeddedLabels.document`.
  package var output: String
  /// The recording's sample rate, in hertz.
  package var sampleRate: Int
  /// Its codec, as the API names it.
  package var codec: String

  /// Creates a value from its parts.
  package init(output: String, sampleRate: Int, codec: String) {
    (self.output, self.sampleRate, self.codec) = (output, sampleRate, codec)
  }
}

/// The parameters for building the waveform of a short recording together with the probe.
package struct IntakeWork: Codable, Sendable, Equatable {
  /// The pyramid file to write.
  package var pyramid: String
  /// Where to store the sound map.
  package var soundMap: String
  /// Where to store the timed text inside the source.
  package var labels: String

  /// Creates a value from its parts.
  package init(pyramid: String, soundMap: String, labels: String) {
    (self.pyramid, self.soundMap, self.labels) = (pyramid, soundMap, labels)
  }
}

/// The parameters for removing noise.
package struct DenoiseWork: Codable, Sendable, Equatable {
  /// A copy of a file that ffmpeg reads, with the cleaned audio in place of its own.
  package struct Replacement: Codable, Sendable, Equatable {
    /// The file to copy.
    package var original: String
    /// The probe's facts about that file.
    package var facts: MediaFacts
    /// The file to write.
    package var output: String

    /// Creates a value from its parts.
    package init(of original: String, _ facts: MediaFacts, output: String) {
      self.original = original
      self.facts = facts
      self.output = output
    }
  }

  /// The parameters of the noise removal.
  package var parameters: DenoiseParameters
  /// The audio file to write.
  package var output: String
  /// The result's pyramid file; nil for none.
  package var pyramid: String?
  /// The working copy to make; nil if the source is read directly.
  package var copy: WorkingCopy?
  /// Also receives the result; nil for none.
  package var replacement: Replacement?
  /// The part of the result to write; nil for all of it.
  package var window: TimeWindow?
  /// The file of the noise profile if the parameters name one.
  package var profilePath: String?
  /// The source's noise regions, best first; nil if they aren't known.
  package var noiseRegions: [NoiseRegion]?
  /// Texts for a result whose source has none, because it is a working copy.
  package var texts: FileTags?
  /// Whether to look for noise regions in the result.
  package var findsNoiseRegions: Bool
  /// Whether to wait until the result is on disk.
  package var isDurable: Bool

  /// Creates a value from its parts.
  package init(
    _ parameters: DenoiseParameters, output: String, pyramid: String? = nil, copy: WorkingCopy? = nil,
    replacement: Replacement? = nil, window: TimeWindow? = nil, findsNoiseRegions: Bool = false, isDurable: Bool = true
  ) {
    self.parameters = parameters
    self.output = output
    self.pyramid = pyramid
    self.copy = copy
    self.replacement = replacement
    self.window = window
    self.findsNoiseRegions = findsNoiseRegions
    self.isDurable = isDurable
  }
}

/// The parameters for cutting a part out of a recording.
package struct TrimWork: Codable, Sendable, Equatable {
  /// The part, in seconds.
  package var window: TimeWindow
  /// The audio file to write.
  package var output: String
  /// The result's pyramid file.
  package var pyramid: String
  /// The working copy to make; nil if the source is read directly.
  package var copy: WorkingCopy?
  /// The part of a file that ffmpeg reads, with its pictures; nil if there is only the audio file.
  package var replacement: DenoiseWork.Replacement?
  /// Texts for a result whose source has none, because it is a working copy.
  package var texts: FileTags?

  /// Creates a value from its parts.
  package init(_ window: TimeWindow, output: String, pyramid: String) {
    (self.window, self.output, self.pyramid) = (window, output, pyramid)
  }
}

/// The parameters for learning a noise profile.
package struct NoiseProfileWork: Codable, Sendable, Equatable {
  /// Where to learn it; nil for the best region found. Not a profile.
  package var noise: NoiseSource?
  /// The recording's name, for the file.
  package var name: String?
  /// The file to write; see `NoiseProfileFile`.
  package var output: String
  /// The working copy to make first; nil if the source is read directly.
  package var copy: WorkingCopy?
  /// The source's noise regions, best first; nil if they aren't known.
  package var noiseRegions: [NoiseRegion]?

  /// Creates a value from its parts.
  package init(_ noise: NoiseSource?, name: String?, output: String, copy: WorkingCopy? = nil) {
    self.noise = noise
    self.name = name
    self.output = output
    self.copy = copy
  }
}

/// The parameters for converting to another format.
package struct ConvertWork: Codable, Sendable, Equatable {
  /// The audio file to write.
  package var output: String
  /// The file format to write.
  package var format: OutputFormat
  /// The source's format if ffmpeg has to resample it; nil if libsndfile writes the file.
  package var resampled: AudioFormat?
  /// The working copy to make first; nil if the source is read directly.
  package var copy: WorkingCopy?
  /// The frames of the source to write, which must exist; nil for all.
  package var frames: Range<Int64>?

  /// Creates a value from its parts.
  package init(
    output: String, format: OutputFormat, resampled: AudioFormat? = nil, frames: Range<Int64>? = nil
  ) {
    self.output = output
    self.format = format
    self.resampled = resampled
    self.frames = frames
  }
}

// MARK: On the wire

extension WorkerRequest {
  /// Maximum length of a request in bytes, including the newline. A pipe can hold this much, so the request can be
  /// written before the worker is started.
  package static let sizeLimit = 65_536

  /// Returns the line, including the newline.
  package func line() -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    let data = (try? encoder.encode(self)) ?? Data()
    return Array(data) + [UInt8(ascii: "\n")]
  }

  /// Reads the request from a descriptor, up to the newline. Blocks. Throws `.request` if it isn't complete and valid.
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
    guard let request = WorkerRequest(line: line.prefix { $0 != UInt8(ascii: "\n") }) else {
      throw .request(.malformed)
    }
    self = request
  }

  /// Parses a line without its newline; nil if it's invalid.
  package init?(line: ArraySlice<UInt8>) {
    guard let request = try? JSONDecoder().decode(WorkerRequest.self, from: Data(line)) else { return nil }
    self = request
  }

  /// The file that a reader's work writes, and that of its noise profile; nil if it writes none.
  package var readerFiles: (output: String, profile: String?)? {
    switch work {
    case .denoise(let work): (work.output, work.profilePath)
    case .noiseProfile(let work): (work.output, nil)
    default: nil
    }
  }

  /// The pyramid file that the work writes, if any.
  package var pyramid: String? {
    switch work {
    case .intake(let work): work.pyramid
    case .waveform(let work): work.pyramid
    case .denoise(let work): work.pyramid
    case .trim(let work): work.pyramid
    default: nil
    }
  }

  /// The files that the worker may lend to ffmpeg's user; see `TemporaryAccess`.
  package var filesForFFmpeg: [String] {
    switch work {
    case .denoise(let work): [source] + (work.replacement.map { [$0.original, $0.output] } ?? [])
    case .convert(let work): [source, work.output]
    case .trim(let work): [source] + (work.replacement.map { [$0.original, $0.output] } ?? [])
    default: [source]
    }
  }
}
