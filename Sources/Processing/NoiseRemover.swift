import Denoise
import Terms
import Voice
import Workers

/// Removes noise by any method: a LinkedDenoiser and, for `voice`, the networks, which compare their result with its.
///
/// The contract is LinkedDenoiser's.
struct NoiseRemover: ~Copyable {
  /// Below it, there is too little of a voice for the networks.
  private static let leastSampleRate = 4_000

  private var classical: LinkedDenoiser
  private let voice: VoiceDenoiser?
  private let usesVoice: Bool
  /// What was given to the classical denoiser, from `pendingStart` on, until its result has come.
  private var pending = PendingSound()
  private let pendingStart: Int64
  private var position: Int64
  private let channels: Int

  /// - Parameter weights: for the method `voice`.
  init(
    _ weights: VoiceWeights?, noise: LearntNoise, settings: DenoiseSettings, sampleRate: Int, channels: Int,
    startFrame: Int64, wanted: Range<Int64>, usesSecondThread: Bool
  ) {
    var needed = wanted
    usesVoice = settings.method == .voice
    if let weights, Self.runsVoice(settings, sampleRate) {
      needed = VoiceDenoiser.sound(for: wanted, sampleRate: sampleRate)
      voice = VoiceDenoiser(
        weights: weights, settings: .init(reductionDB: settings.reductionDB, isMarked: noise.source.isMarked),
        groups: (settings.link ?? ChannelLink(channels: channels)).groups(of: channels), sampleRate: sampleRate,
        startFrame: max(startFrame, needed.lowerBound), wanted: wanted, usesSecondThread: usesSecondThread)
    } else {
      voice = nil
    }
    classical = LinkedDenoiser(
      noise: noise.course, settings: Self.classical(settings), sampleRate: sampleRate, channels: channels,
      startFrame: startFrame, wanted: needed, usesSecondThread: usesSecondThread)
    pendingStart = needed.lowerBound
    position = startFrame
    self.channels = channels
  }

  /// Returns the sound to process so that `wanted` comes out.
  static func sound(
    for wanted: Range<Int64>, settings: DenoiseSettings, sampleRate: Int, channels: Int
  ) -> Range<Int64> {
    let needed = runsVoice(settings, sampleRate) ? VoiceDenoiser.sound(for: wanted, sampleRate: sampleRate) : wanted
    return LinkedDenoiser.sound(
      for: needed, settings: classical(settings), sampleRate: sampleRate, channels: channels)
  }

  private static func runsVoice(_ settings: DenoiseSettings, _ sampleRate: Int) -> Bool {
    settings.method == .voice && settings.reductionDB > 0 && sampleRate >= leastSampleRate
  }

  /// The networks are compared with the strong classical result, whatever their limit is.
  private static func classical(_ settings: DenoiseSettings) -> DenoiseSettings {
    guard settings.method == .voice, settings.reductionDB > 0 else { return settings }
    var classical = settings
    classical.reductionDB = Strength.strong.reductionDB(.mmseLSA)
    return classical
  }

  /// Whether the noise has changed so far; see LinkedDenoiser.
  var hasNoiseChanged: Bool { classical.hasNoiseChanged }

  /// What `voice` has kept, if that is the method.
  var voiceUsed: VoiceUsed? {
    guard usesVoice else { return nil }
    let kept = voice?.shares.kept ?? 1
    return VoiceUsed(kept: (kept * 1000).rounded() / 1000, weights: VoiceWeights.version)
  }

  /// Says if the sound isn't speech.
  var warnings: [Warning] { Warning.ofVoice(lost: voice?.shares.lost ?? 0).map { [$0] } ?? [] }

  /// Processes more sound, and passes on what is final.
  mutating func process(
    _ input: Span<Float>, _ output: (Span<Float>) throws(ProcessingError) -> Void
  ) throws(ProcessingError) {
    guard let voice else { return try classical.process(input, output) }
    let frames = Int64(input.count / channels)
    let first = Int(min(max(pendingStart - position, 0), frames))
    position += frames
    var pending = PendingSound()
    swap(&pending, &self.pending)
    pending.append(input.extracting((first * channels)..<input.count))
    try classical.process(input) { (cleaned: Span<Float>) throws(ProcessingError) in
      try Self.pass(cleaned, &pending, voice, output)
    }
    swap(&pending, &self.pending)
  }

  /// Ends the sound, and passes on the rest.
  mutating func finish(_ output: (Span<Float>) throws(ProcessingError) -> Void) throws(ProcessingError) {
    guard let voice else { return try classical.finish(output) }
    var pending = PendingSound()
    swap(&pending, &self.pending)
    try classical.finish { (cleaned: Span<Float>) throws(ProcessingError) in
      try Self.pass(cleaned, &pending, voice, output)
    }
    try voice.finish(failing: ProcessingError.voice, output)
  }

  private static func pass(
    _ cleaned: Span<Float>, _ pending: inout PendingSound, _ voice: VoiceDenoiser,
    _ output: (Span<Float>) throws(ProcessingError) -> Void
  ) throws(ProcessingError) {
    var done = 0
    try pending.take(cleaned.count) { (original) throws(ProcessingError) in
      let part = cleaned.extracting(done..<(done + original.count))
      done += original.count
      try voice.process(original, part, failing: ProcessingError.voice, output)
    }
  }
}

extension NoiseSource {
  /// Whether someone has said what is noise.
  fileprivate var isMarked: Bool {
    switch self {
    case .region, .regions, .profile: true
    case .quantile: false
    }
  }
}
