import AudioIO
import Denoise
import Waveform

/// What became of a denoise job.
public struct DenoiseOutcome: Codable, Sendable, Equatable {
  /// The region used, or the quantile.
  public struct Noise: Codable, Sendable, Equatable {
    /// Seconds, with `end`.
    public var start: Double?
    /// Seconds, with `start`.
    public var end: Double?
    /// 0 … 1, where there is no region.
    public var quantile: Double?
  }

  /// Frames of the result: as many as the source decodes to.
  public var frames: Int64
  /// What the noise was learnt from.
  public var noise: Noise
  /// Samples of the result that were beyond full scale and were cut to it.
  public var clippedSamples: Int64
  /// What the result can't tell otherwise.
  public var warnings: [Anomaly]
}

/// Removes a recording's noise from beginning to end; writes the result and its waveform in the same pass.
public struct DenoiseRecording: Sendable {
  /// The sound file to clean.
  public let source: String
  /// The sound file to write.
  public let output: String
  /// Where the result's waveform grows; nil for none.
  public let pyramid: String?
  /// Where the noise is learnt from.
  public let noise: NoiseSource
  /// How it is removed.
  public let settings: DenoiseSettings
  /// The kind of file to write.
  public let format: OutputFormat
  /// What a recording may be at the most.
  public let limits: AudioLimits

  /// Work on `source`; nothing happens before `run`.
  public init(
    source: String, output: String, pyramid: String?, noise: NoiseSource, settings: DenoiseSettings,
    format: OutputFormat = .same, limits: AudioLimits = AudioLimits()
  ) {
    self.source = source
    self.output = output
    self.pyramid = pyramid
    self.noise = noise
    self.settings = settings
    self.format = format
    self.limits = limits
  }

  /// Runs in constant memory; `progress` is called after every chunk. The output has as many frames as the source
  /// decodes to, its rate, channels and (where the format can hold it) depth.
  public func run(progress: (WorkerProgress) -> Void) throws(ProcessingError) -> DenoiseOutcome {
    var reader = try Processing.audio { () throws(AudioIOError) in try AudioReader(path: source, limits: limits) }
    let length = ExpectedLength(reader, path: source)
    let learner = NoiseLearner(source: source, noise: noise, limits: limits)
    let share = shareOfLearning(learner, expected: length.total ?? length.estimate ?? 1, reader.format.sampleRate)
    func report(_ fraction: Double, ready: Int64) {
      progress(
        WorkerProgress(
          fraction: fraction, readyFrames: ready, totalFrames: length.total, estimatedFrames: length.estimate))
    }

    let profile = try learner.learn { frames in report(share * length.fraction(read: frames), ready: 0) }
    var target = try DenoisedFile(self, source: reader.format, expectedFrames: length.total ?? length.estimate ?? 0)
    var denoiser = Denoiser(
      profile: profile, settings: settings, sampleRate: reader.format.sampleRate, channels: reader.format.channels)
    func denoise(_ input: Span<Float>) throws(ProcessingError) {
      try denoiser.process(input) { (output: Span<Float>) throws(ProcessingError) in try target.write(output) }
    }
    while try reader.readFloat({ (input) throws(ProcessingError) in try denoise(input) }) > 0 {
      report(share + (1 - share) * length.fraction(read: reader.position), ready: target.readyFrames)
    }
    guard reader.position > 0 else { throw .audio(.empty) }
    try denoiser.finish { (output: Span<Float>) throws(ProcessingError) in try target.write(output) }
    try target.finish()
    progress(length.finished(frames: reader.position))
    let warnings = reader.nonFiniteSamples > 0 ? [Anomaly.nonFinite(reader.nonFiniteSamples)] : []
    return DenoiseOutcome(
      frames: reader.position, noise: noiseUsed, clippedSamples: target.clippedSamples, warnings: warnings)
  }

  /// Learning costs a decode and half of the transforms for each frame it reads.
  private func shareOfLearning(_ learner: NoiseLearner, expected: Int64, _ sampleRate: Int) -> Double {
    let learning = 0.4 * Double(learner.frames(of: expected, sampleRate: sampleRate))
    return min(learning / (learning + Double(max(expected, 1))), 0.5)
  }

  private var noiseUsed: DenoiseOutcome.Noise {
    switch noise {
    case .region(let start, let end): .init(start: start, end: end, quantile: nil)
    case .quantile(let quantile): .init(start: nil, end: nil, quantile: quantile)
    }
  }
}

/// The denoised file and, beside it, its waveform: that of the signal given to the encoder, in 16 bits.
private struct DenoisedFile: ~Copyable {
  private var audio: AudioWriter?
  private var waveform: PyramidWriter?
  private var quantised: [Int16] = []
  private(set) var readyFrames: Int64 = 0
  private(set) var clippedSamples: Int64 = 0

  init(_ job: DenoiseRecording, source: AudioFormat, expectedFrames: Int64) throws(ProcessingError) {
    let audio = try Processing.audio { () throws(AudioIOError) in
      try AudioWriter(creating: job.output, format: job.format.format(for: source), expectedFrames: expectedFrames)
    }
    let waveform = try Self.pyramid(at: job.pyramid, of: source)
    self.audio = consume audio
    self.waveform = consume waveform
  }

  private static func pyramid(at path: String?, of source: AudioFormat) throws(ProcessingError) -> PyramidWriter? {
    guard let path else { return nil }
    return try Processing.waveform { () throws(WaveformError) in
      try PyramidWriter(creating: path, sampleRate: source.sampleRate, channels: source.channels)
    }
  }

  /// A writer that throws is not taken up again: the job ends there.
  mutating func write(_ samples: Span<Float>) throws(ProcessingError) {
    guard var audio = audio.take() else { return }
    do { try audio.write(samples, quantised: &quantised) } catch { throw .audio(error) }
    clippedSamples = audio.clippedSamples
    self.audio = consume audio
    guard var waveform = waveform.take() else { return }
    do { try waveform.append(quantised.span) } catch { throw .waveform(error) }
    readyFrames = waveform.readyFrames
    self.waveform = consume waveform
  }

  /// Makes both files whole and durable.
  mutating func finish() throws(ProcessingError) {
    if let audio = audio.take() {
      do { try audio.finish() } catch { throw .audio(error) }
    }
    if var waveform = waveform.take() {
      do { try waveform.finish() } catch { throw .waveform(error) }
    }
  }
}
