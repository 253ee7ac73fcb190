import Processing
import Storage

// What each kind of work may use up. All of it grows with what is known of the recording, with room to spare: the
// limits end work that will not end by itself, they don't hurry the rest. A header may claim less than the file holds,
// so its bytes count too, as eight samples each: MP3 at 64 kbit/s.

extension WorkerFence {
  /// A release build works through five million samples a second and more, a debug build through half of one.
  private static let samplesPerSecond = 100_000.0
  /// Started, and with the file opened.
  private static let leastSeconds = 60.0
  /// 64-bit floats.
  private static let bytesPerSample = 8.0
  /// Headers, and the waveform of a short file.
  private static let leastBytes = 64.0 * 1024 * 1024

  /// A probe decodes a second or two, and writes nothing.
  package static func probe(_ settings: WorkerSettings, processorSeconds: Int64) -> WorkerFence {
    WorkerFence(
      memoryBytes: settings.memoryBytes, processorSeconds: processorSeconds, outputBytes: 0)
  }

  /// A preview or a spectrum: some seconds of a recording, in one file at the most.
  package static func preview(of source: Recording, _ settings: WorkerSettings) -> WorkerFence {
    let samples = 60 * Double(source.format.sampleRate) * Double(source.format.channels)
    return WorkerFence(settings, samples: samples, leastSeconds: 120)
  }

  /// A job on the whole of a recording.
  static func job(on source: Recording, _ settings: WorkerSettings) -> WorkerFence {
    WorkerFence(settings, samples: expectedSamples(of: source, settings), leastSeconds: leastSeconds)
  }

  /// Samples of all channels that decoding may bring.
  private static func expectedSamples(of source: Recording, _ settings: WorkerSettings) -> Double {
    let (format, limits) = (source.format, settings.audioLimits)
    let most = limits.durationSeconds * Double(format.sampleRate)
    // Where the file doesn't say, only the limits do: two hours of silence are a megabyte of FLAC.
    let frames = format.frames.map { min(Double($0), most) } ?? most
    return max(frames * Double(format.channels), 8 * Double(source.bytes ?? 0))
  }

  private init(_ settings: WorkerSettings, samples: Double, leastSeconds: Double) {
    self.init(
      memoryBytes: settings.memoryBytes,
      processorSeconds: Int64(min(leastSeconds + samples / Self.samplesPerSecond, 1e9)),
      outputBytes: Int64(min(Self.leastBytes + samples * Self.bytesPerSample, 0x1p62)))
  }
}
