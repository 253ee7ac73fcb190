import AudioIO
import Denoise
import Media
import Waveform

/// The result of a denoise job.
package struct DenoiseOutcome: Codable, Sendable, Equatable {
  /// Frames of the result, as many as the source decodes to.
  package var frames: Int64
  /// The source of the noise profile.
  package var noise: NoiseSource
  /// The noise profile, in at most 96 points.
  package var profile: PowerSpectrum?
  /// Regions of the result that contain only noise, best first; nil if they weren't searched for.
  package var noiseRegions: [NoiseRegion]?
  /// Samples of the result that exceeded full scale and were clipped.
  package var clippedSamples: Int64
  /// Errors in the source's header, and how they were handled.
  package var warnings: [Anomaly]
}

/// Removes a recording's noise from beginning to end. Writes the result and its waveform in the same pass.
package struct DenoiseRecording {
  /// The audio file to clean.
  package let source: String
  /// The audio file to write.
  package let output: String
  /// The result's pyramid file; nil for none.
  package let pyramid: String?
  /// Where to learn the noise profile from; nil for the best region found.
  package let noise: NoiseSource?
  /// The settings of the noise removal.
  package let settings: DenoiseSettings
  /// The file format to write.
  package let format: OutputFormat
  /// Limits for the recording.
  package let limits: AudioLimits
  /// Whether to look for noise regions in the result.
  package let findsNoiseRegions: Bool
  /// The part of the result to write; nil for all of it.
  package let window: TimeWindow?
  /// Whether to use a second core, which doesn't change the result.
  package let usesSecondThread: Bool
  /// Also receives the result, to put it into a copy of the source; nil for none.
  package let encoding: (any CleanedFile)?

  /// Creates a task for `source`; nothing happens before `run`.
  package init(
    source: String, output: String, pyramid: String?, noise: NoiseSource?, settings: DenoiseSettings,
    format: OutputFormat = .same, limits: AudioLimits = AudioLimits(), findsNoiseRegions: Bool = false,
    window: TimeWindow? = nil, usesSecondThread: Bool = false, encoding: (any CleanedFile)? = nil
  ) {
    self.source = source
    self.output = output
    self.pyramid = pyramid
    self.noise = noise
    self.settings = settings
    self.format = format
    self.limits = limits
    self.findsNoiseRegions = findsNoiseRegions
    self.window = window
    self.usesSecondThread = usesSecondThread
    self.encoding = encoding
  }

  /// Runs in constant memory and calls `progress` after every chunk. The output has as many frames as the source
  /// decodes to, and its rate, channels, and (if the format can hold it) depth. With a window, it has that window's
  /// frames, with the same bits as in the whole; only a few seconds around the window are read.
  package func run(progress: (WorkerProgress) -> Void) throws(ProcessingError) -> DenoiseOutcome {
    var reader = try Processing.audio { () throws(AudioIOError) in try AudioReader(path: source, limits: limits) }
    let format = reader.format
    let length = ExpectedLength(reader, path: source)
    let learner = NoiseLearner(source: source, noise: noise, limits: limits, map: reader.map)
    let share = shareOfLearning(learner, expected: length.total ?? length.estimate ?? 1, format.sampleRate)
    func report(_ fraction: Double, ready: Int64) {
      progress(
        WorkerProgress(
          fraction: fraction, readyFrames: ready, totalFrames: length.total, estimatedFrames: length.estimate))
    }

    let learnt = try learner.learn { frames in report(share * length.fraction(read: frames), ready: 0) }
    let frames = FrameWindow(window, of: format)
    try begin(&reader, at: frames.read.lowerBound)
    let expected = min(length.total ?? length.estimate ?? 0, Int64(frames.wanted.count))
    var target = try DenoisedFile(self, source: format, expectedFrames: expected)
    // The residue is what's missing from the written file, not what the gains removed.
    var kept = settings
    kept.output = .denoised
    var denoiser = Denoiser(
      profile: learnt.profile, settings: kept, sampleRate: format.sampleRate, channels: format.channels,
      startFrame: reader.position, usesSecondThread: usesSecondThread)
    var position = reader.position
    var pending = PendingSound()
    func write(_ output: Span<Float>) throws(ProcessingError) {
      let wanted = frames.wanted(of: output, at: position, channels: format.channels)
      let first = position * Int64(format.channels) + Int64(wanted.lowerBound)
      position += Int64(output.count / format.channels)
      try pending.take(output.count) { (original) throws(ProcessingError) in
        guard !wanted.isEmpty else { return }
        try target.write(output.extracting(wanted), original: original.extracting(wanted), number: first)
      }
    }
    func denoise(_ input: Span<Float>) throws(ProcessingError) {
      pending.append(input)
      try denoiser.process(input) { (output: Span<Float>) throws(ProcessingError) in try write(output) }
    }
    while reader.position < frames.read.upperBound {
      let most = Int(min(frames.read.upperBound - reader.position, Int64(reader.framesPerRead)))
      guard try reader.readFloat(upTo: most, { (input) throws(ProcessingError) in try denoise(input) }) > 0 else {
        break
      }
      report(share + (1 - share) * length.fraction(read: reader.position), ready: target.readyFrames)
    }
    guard reader.position > 0 else { throw .audio(.empty) }
    try denoiser.finish { (output: Span<Float>) throws(ProcessingError) in try write(output) }
    if let window, target.frames == 0 { throw .windowOutside(start: window.start, end: window.end) }
    try target.finish()
    progress(length.finished(frames: target.frames))
    let warnings = Anomaly.ofReading(
      reader.map, claimedFrames: reader.promisedFrames, decodedFrames: window == nil ? reader.position : nil,
      nonFiniteSamples: reader.nonFiniteSamples, lostFrames: reader.lostFrames)
    return DenoiseOutcome(
      frames: target.frames, noise: learnt.source, profile: PowerSpectrum(learnt.profile, upTo: 96),
      noiseRegions: target.noiseRegions, clippedSamples: target.clippedSamples, warnings: warnings)
  }

  private func begin(_ reader: inout AudioReader, at frame: Int64) throws(ProcessingError) {
    guard frame > 0 else { return }
    do { try reader.seek(to: frame) } catch {
      guard let window else { throw .audio(error) }
      throw .windowOutside(start: window.start, end: window.end)
    }
  }

  /// For each frame read, learning takes a decode and half of the transforms.
  private func shareOfLearning(_ learner: NoiseLearner, expected: Int64, _ sampleRate: Int) -> Double {
    let learning = 0.4 * Double(learner.frames(of: expected, sampleRate: sampleRate))
    return min(learning / (learning + Double(max(expected, 1))), 0.5)
  }
}

/// The denoised file and its waveform, made from the signal given to the encoder, in 16 bits.
private struct DenoisedFile: ~Copyable {
  private var audio: AudioWriter?
  private let encoding: (any CleanedFile)?
  private var waveform: PyramidWriter?
  private var finder: NoiseRegionFinder?
  private var requantiser: Requantiser
  private var samples: [Float] = []
  private var quantised: [Int16] = []
  private let channels: Int
  /// The number of frames written.
  private(set) var frames: Int64 = 0
  private(set) var readyFrames: Int64 = 0
  private(set) var clippedSamples: Int64 = 0
  private(set) var noiseRegions: [NoiseRegion]?

  init(_ job: DenoiseRecording, source: AudioFormat, expectedFrames: Int64) throws(ProcessingError) {
    let audio = try Processing.audio { () throws(AudioIOError) in
      try AudioWriter(
        creating: job.output, format: job.format.format(for: source), expectedFrames: expectedFrames,
        tags: SoundTags(path: job.source))
    }
    let requantiser = Requantiser(
      audio.format.codec.sampleKind, changesNothing: job.settings.reductionDB <= 0,
      isResidue: job.settings.output == .residue)
    let waveform = try Self.pyramid(at: job.pyramid, of: source)
    self.requantiser = requantiser
    encoding = job.encoding
    self.audio = consume audio
    self.waveform = consume waveform
    channels = source.channels
    if job.findsNoiseRegions {
      finder = NoiseRegionFinder(sampleRate: source.sampleRate, channels: source.channels)
    }
  }

  private static func pyramid(at path: String?, of source: AudioFormat) throws(ProcessingError) -> PyramidWriter? {
    guard let path else { return nil }
    return try Processing.waveform { () throws(WaveformError) in
      try PyramidWriter(creating: path, sampleRate: source.sampleRate, channels: source.channels)
    }
  }

  /// Writes samples to both files. After a writer throws, it isn't used again, because the job ends.
  ///
  /// - Parameters:
  ///   - cleaned: interleaved samples.
  ///   - original: the original samples of the same frames.
  ///   - number: number of the first sample in the recording, counting all channels.
  mutating func write(_ cleaned: Span<Float>, original: Span<Float>, number: Int64) throws(ProcessingError) {
    guard var audio = audio.take() else { return }
    requantise(cleaned, original, number)
    let samples = self.samples
    do { try audio.write(samples.span.extracting(0..<cleaned.count), quantised: &quantised) } catch {
      throw .audio(error)
    }
    clippedSamples = requantiser.clippedSamples + audio.clippedSamples
    self.audio = consume audio
    if let encoding {
      try encoding.append(samples.span.extracting(0..<cleaned.count))
    }
    frames += Int64(cleaned.count / channels)
    if var finder = finder.take() {
      finder.append(quantised.span)
      self.finder = consume finder
    }
    guard var waveform = waveform.take() else { return }
    do { try waveform.append(quantised.span) } catch { throw .waveform(error) }
    readyFrames = waveform.readyFrames
    self.waveform = consume waveform
  }

  private mutating func requantise(_ cleaned: Span<Float>, _ original: Span<Float>, _ number: Int64) {
    var samples: [Float] = []
    swap(&samples, &self.samples)
    if samples.count < cleaned.count { samples = [Float](repeating: 0, count: cleaned.count) }
    var all = samples.mutableSpan
    var target = all._mutatingExtracting(0..<cleaned.count)
    requantiser.apply(cleaned, original: original, number: number, into: &target)
    self.samples = samples
  }

  /// Completes both files and makes them durable.
  mutating func finish() throws(ProcessingError) {
    if let finder = finder.take() { noiseRegions = finder.finish() }
    if let audio = audio.take() {
      do { try audio.finish() } catch { throw .audio(error) }
    }
    try encoding?.close()
    if var waveform = waveform.take() {
      do { try waveform.finish() } catch { throw .waveform(error) }
    }
  }
}
