import AudioIO
import Denoise
import Media
import Terms
import Voice
import Waveform
import Workers

/// Removes a recording's noise, and turns down what an edit names, from beginning to end. Writes the result and its
/// waveform in the same pass.
struct DenoiseRecording {
  let source: String
  /// The audio file to write.
  var output: String
  /// The result's pyramid file; nil for none.
  var pyramid: String?
  var parameters: DenoiseParameters
  var limits = AudioLimits()
  /// Whether to look for noise regions in the result.
  var findsNoiseRegions = false
  /// The file of the noise profile if the parameters name one.
  var profilePath: String?
  var opened = OpenedFiles()
  /// The source's noise regions, best first; nil to look for them if they are needed.
  var knownRegions: [NoiseRegion]?
  /// The part of the result to write; nil for all of it.
  var window: TimeWindow?
  /// Whether to wait until the result is on disk.
  var isDurable = true
  /// Whether to use a second core, which doesn't change the result.
  var usesSecondThread = false
  /// Texts for a result whose source has none, because it is a working copy.
  var texts: FileTags?
  /// Also receives the result, to put it into a copy of the source; nil for none.
  var encoding: (any CleanedFile)?
  /// Measures both sounds, whose loudness is about to be changed: the output is a WAV file of floats. nil for an
  /// ordinary output.
  var measuring: LoudnessPair?
  /// The networks' weights if the method is `voice`.
  var weights: VoiceWeights?

  /// Runs in constant memory and calls `progress` after every chunk. The output has as many frames as the source
  /// decodes to, and its rate, channels, and (if the format can hold it) depth. With a window, it has that window's
  /// frames, with the same bits as in the whole; only a few seconds around the window are read.
  ///
  /// A recording that is too short to learn its noise from stays as it is, unless `parameters` say where its noise is.
  func run(progress: (WorkerProgress) -> Void) throws(ProcessingError) -> DenoiseOutcome {
    do { return try write(progress) } catch {
      guard case .recordingTooShort = error, parameters.noise == nil else { throw error }
      var unchanged = self
      unchanged.parameters.settings.method = .editOnly
      var outcome = try unchanged.write(progress)
      outcome.warnings.append(.tooShortForNoise)
      return outcome
    }
  }

  private func write(_ progress: (WorkerProgress) -> Void) throws(ProcessingError) -> DenoiseOutcome {
    let reader = try Processing.audio { () throws(AudioIOError) in
      try AudioReader(path: source, limits: limits, map: opened.map)
    }
    let format = reader.format
    if let box = parameters.edit?.firstBox(above: format.sampleRate) {
      throw .boxAbove(number: box, limit: Double(format.sampleRate) / 2)
    }
    let length = ExpectedLength(reader, path: source)
    let learner = NoiseLearner(
      source: source, noise: parameters.noise, found: knownRegions, looksForBetter: window == nil, limits: limits,
      profilePath: profilePath, profileFile: opened.profile, map: reader.map)
    let learns = parameters.settings.method != .editOnly
    let share =
      learns ? shareOfLearning(learner, expected: length.total ?? length.estimate ?? 1, format.sampleRate) : 0
    func report(_ fraction: Double, ready: Int64) {
      progress(
        WorkerProgress(
          fraction: fraction, readyFrames: ready, totalFrames: length.total, estimatedFrames: length.estimate))
    }

    let learnt =
      try learns ? learner.learn { frames in report(share * length.fraction(read: frames), ready: 0) } : nil
    let frames = FrameWindow(window, of: format, parameters)
    var sound = CenteredSound(reader, isCentering: parameters.removesNoise)
    try begin(&sound, at: frames.read.lowerBound)
    let expected = min(length.total ?? length.estimate ?? 0, Int64(frames.wanted.count))
    var target = try DenoisedFile(self, source: format, expectedFrames: expected)
    measuring?.begin(format)
    var levels: NoiseLevelMeter?
    if window == nil, let learnt {
      levels = NoiseLevelMeter(learnt.source, sampleRate: format.sampleRate, channels: format.channels)
    }
    // The residue is what's missing from the written file, not what the gains removed.
    var kept = parameters.settings
    kept.output = .denoised
    var denoiser: NoiseRemover?
    if let learnt {
      denoiser = NoiseRemover(
        weights, noise: learnt, settings: kept, sampleRate: format.sampleRate, channels: format.channels,
        startFrame: sound.position, wanted: frames.edited, usesSecondThread: usesSecondThread)
    }
    var editor: BoxEditor?
    if let edit = parameters.edit {
      editor = BoxEditor(
        edit, sampleRate: format.sampleRate, channels: format.channels,
        startFrame: max(sound.position, frames.edited.lowerBound), wanted: frames.wanted)
    }
    var (processed, written) = (sound.position, frames.wanted.lowerBound)
    var pending = PendingSound()
    func write(_ output: Span<Float>) throws(ProcessingError) {
      var done = 0
      try pending.take(output.count) { (original) throws(ProcessingError) in
        let cleaned = output.extracting(done..<(done + original.count))
        levels?.append(original, cleaned)
        try target.write(cleaned, original: original, number: written * Int64(format.channels))
        written += Int64(original.count / format.channels)
        done += original.count
      }
    }
    func edit(_ sound: Span<Float>) throws(ProcessingError) {
      guard editor != nil else { return try write(sound) }
      try editor?.process(sound) { (output: Span<Float>) throws(ProcessingError) in try write(output) }
    }
    func denoise(_ original: Span<Float>, _ centered: Span<Float>) throws(ProcessingError) {
      pending.append(original.extracting(frames.wanted(of: original, at: processed, channels: format.channels)))
      processed += Int64(original.count / format.channels)
      guard denoiser != nil else { return try edit(original) }
      try denoiser?.process(centered) { (output: Span<Float>) throws(ProcessingError) in try edit(output) }
    }
    while sound.position < frames.read.upperBound {
      let most = frames.read.upperBound - sound.position
      let got = try sound.read(upTo: most) { (original, centered) throws(ProcessingError) in
        try denoise(original, centered)
      }
      guard got > 0 else { break }
      report(share + (1 - share) * length.fraction(read: sound.position), ready: target.readyFrames)
    }
    guard sound.position > 0 else { throw .audio(.empty) }
    try denoiser?.finish { (output: Span<Float>) throws(ProcessingError) in try edit(output) }
    try editor?.finish { (output: Span<Float>) throws(ProcessingError) in try write(output) }
    let hasChanged = denoiser?.hasNoiseChanged ?? false
    let removalWarnings = denoiser?.warnings ?? []
    let adapted = kept.adaptation == .always || kept.adaptation == .ifCertain && hasChanged
    if let window, target.frames == 0 { throw .windowOutside(start: window.start, end: window.end) }
    try target.finish(isDurable: isDurable)
    progress(length.finished(frames: target.frames))
    let warnings = Warning.ofReading(
      sound.reader.map, claimedFrames: sound.reader.promisedFrames,
      decodedFrames: window == nil ? sound.position : nil, nonFiniteSamples: sound.reader.nonFiniteSamples,
      lostFrames: sound.reader.lostFrames)
    return DenoiseOutcome(
      frames: target.frames, noise: learnt.map { NoiseUsed($0.source, adapted: adapted, better: $0.better) },
      profile: learnt.map { PowerSpectrum($0.course.mean, upTo: 96) },
      link: learns ? kept.link ?? ChannelLink(channels: format.channels) : nil,
      noiseRegions: target.noiseRegions, clippedSamples: target.clippedSamples, noiseLevel: levels?.levels,
      voice: denoiser?.voiceUsed,
      warnings: warnings + Warning.overFullScale(target.excess) + Warning.ofFile(leftOut: target.leftOut)
        + (learnt?.warnings ?? []) + removalWarnings
        + (sound.warning.map { [$0] } ?? []))
  }

  /// The source's tags, or its original's; none if the result isn't a recording of its own.
  var tags: SoundTags {
    guard measuring == nil, window == nil else { return SoundTags() }
    var tags = SoundTags(path: source)
    if let texts { tags.add(texts) }
    return tags
  }

  /// Returns the format of the file to write.
  fileprivate func format(for source: AudioFormat) throws(AudioIOError) -> AudioFormat {
    guard measuring == nil else {
      return AudioFormat(
        container: .wav, codec: .pcmF32, sampleRate: source.sampleRate, channels: source.channels)
    }
    return try parameters.format.format(for: source)
  }

  private func begin(_ sound: inout CenteredSound, at frame: Int64) throws(ProcessingError) {
    guard frame > 0 else { return }
    do { try sound.seek(to: frame) } catch {
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

/// The denoised file, its waveform, and the encoded file for users, if there is one.
private struct DenoisedFile: ~Copyable {
  private var files: SoundWriter
  private let encoding: (any CleanedFile)?
  private let measuring: LoudnessPair?
  private var requantiser: Requantiser
  private var samples: [Float] = []
  private let channels: Int
  private let isFloat: Bool
  /// Samples of the result beyond full scale, if its users get floats.
  private(set) var excess = Excess()
  /// The number of frames written.
  private(set) var frames: Int64 = 0

  var readyFrames: Int64 { files.readyFrames }
  var clippedSamples: Int64 { requantiser.clippedSamples + files.clippedSamples }
  var noiseRegions: [NoiseRegion]? { files.noiseRegions }
  var leftOut: [String] { files.leftOut }

  init(_ job: DenoiseRecording, source: AudioFormat, expectedFrames: Int64) throws(ProcessingError) {
    let audio = try Processing.audio { () throws(AudioIOError) in
      try AudioWriter(
        creating: job.output, or: job.opened.output, format: job.format(for: source), expectedFrames: expectedFrames,
        tags: job.tags)
    }
    let isFloat = job.encoding == nil && job.measuring == nil && audio.format.codec.sampleKind == .float
    let requantiser = Requantiser(
      audio.format.codec.sampleKind, changesNothing: !job.parameters.removesNoise,
      isResidue: job.parameters.settings.output == .residue)
    let files = try SoundWriter(audio, pyramid: job.pyramid, of: source, findsNoiseRegions: job.findsNoiseRegions)
    self.requantiser = requantiser
    self.files = files
    self.isFloat = isFloat
    encoding = job.encoding
    measuring = job.measuring
    channels = source.channels
  }

  /// - Parameters:
  ///   - cleaned: interleaved samples.
  ///   - original: the original samples of the same frames.
  ///   - number: number of the first sample in the recording, counting all channels.
  mutating func write(_ cleaned: Span<Float>, original: Span<Float>, number: Int64) throws(ProcessingError) {
    requantise(cleaned, original, number)
    let samples = self.samples
    try files.append(samples.span.extracting(0..<cleaned.count))
    if isFloat { excess.count(samples.span.extracting(0..<cleaned.count)) }
    try encoding?.append(samples.span.extracting(0..<cleaned.count))
    measuring?.append(original, samples.span.extracting(0..<cleaned.count))
    frames += Int64(cleaned.count / channels)
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

  /// Completes the files and makes them durable if `isDurable` is true.
  mutating func finish(isDurable: Bool) throws(ProcessingError) {
    try encoding?.close()
    try files.finish(isDurable: isDurable)
  }
}
