import Storage
import Workers

// The limits for each kind of work. They grow with the size of the recording and are generous: they stop work that
// would never end, and don't affect any other. A header may claim less audio than the file contains, so the file's
// bytes count too, as eight samples each, as in MP3 at 64 kbit/s.

extension WorkerFence {
  /// A release build processes at least five million samples a second, a debug build half a million.
  private static let samplesPerSecond = 100_000.0
  /// For starting and opening the file.
  private static let leastSeconds = 60.0
  /// The size of a 64-bit float.
  private static let bytesPerSample = 8.0
  /// For headers, and the waveform of a short file.
  private static let leastBytes = 64.0 * 1024 * 1024

  /// Returns the limits of a probe, which decodes a second or two and writes nothing.
  package static func probe(_ settings: WorkerSettings, processorSeconds: Int64) -> WorkerFence {
    WorkerFence(
      memoryBytes: settings.memoryBytes, processorSeconds: processorSeconds, outputBytes: 0)
  }

  /// Returns the limits of a probe that may also build the waveform of a short recording.
  package static func intake(_ settings: WorkerSettings, processorSeconds: Int64) -> WorkerFence {
    WorkerFence(
      memoryBytes: settings.memoryBytes, processorSeconds: processorSeconds, outputBytes: Int64(leastBytes))
  }

  /// The most memory that a reader of samples needs: what it decodes at a time, and the map of a long recording.
  private static let readerMemoryBytes: Int64 = 256 << 20
  /// A reader begins nothing a minute after its start, and nothing takes it longer than another minute, on two threads.
  private static let readerSeconds: Int64 = 240

  /// Returns the limits of a reader of samples, which writes nothing.
  package static func reader(_ settings: WorkerSettings) -> WorkerFence {
    WorkerFence(
      memoryBytes: min(settings.memoryBytes, readerMemoryBytes), processorSeconds: readerSeconds, outputBytes: 0)
  }

  /// Returns the limits of a reader that also does the work of previews, spectra and noise profiles, which may write a
  /// file of up to half a minute.
  package static func reader(of source: Recording, _ settings: WorkerSettings) -> WorkerFence {
    let samples = 60 * Double(source.format.sampleRate) * Double(source.format.channels)
    var fence = WorkerFence(settings, samples: samples, leastSeconds: 0)
    fence.processorSeconds = readerSeconds
    return fence
  }

  /// Returns the limits of a job, which reads a whole recording.
  package static func job(on source: Recording, _ settings: WorkerSettings) -> WorkerFence {
    WorkerFence(settings, samples: expectedSamples(of: source, settings), leastSeconds: leastSeconds)
  }

  /// Returns the maximum number of samples, of all channels, to expect from decoding.
  private static func expectedSamples(of source: Recording, _ settings: WorkerSettings) -> Double {
    let (format, limits) = (source.format, settings.audioLimits)
    let most = limits.frameLimit(sampleRate: format.sampleRate)
    // If the length is unknown, the service's limit counts: a megabyte of FLAC can hold two hours of silence.
    let frames = min(format.frames ?? most, most)
    return max(Double(frames) * Double(format.channels), 8 * Double(source.bytes ?? 0))
  }

  private init(_ settings: WorkerSettings, samples: Double, leastSeconds: Double) {
    self.init(
      memoryBytes: settings.memoryBytes,
      processorSeconds: Int64(min(leastSeconds + samples / Self.samplesPerSecond, 1e9)),
      outputBytes: Int64(min(Self.leastBytes + samples * Self.bytesPerSample, 0x1p62)))
  }
}
