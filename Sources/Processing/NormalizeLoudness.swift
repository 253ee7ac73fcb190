import AudioIO
import Loudness
import Terms
import Waveform
import Workers

// A target loudness takes the loudness of the whole cleaned sound, so the work has two stages:
//
//   1   The cleaned sound is written to a file of 32-bit floats, and measured. The result's waveform stays empty.
//   2   The same samples, with a gain and a limiter, are written in the result's format, with their waveform. Both
//       numbers are fixed before the first sample is written, so no served value of the waveform changes.
//
// The gain is the target minus the measured loudness. If peaks would then exceed the ceiling, they are limited, which
// makes the sound a little softer; so the file is read again without writing, up to four times, and the gain corrected
// by what is missing. A true peak above the ceiling lowers the limiter's.

/// Both sounds' loudness, measured while the first stage runs.
final class LoudnessPair {
  private var before: LoudnessMeter?
  private var after: LoudnessMeter?

  /// The format of the source.
  private(set) var format: AudioFormat?

  func begin(_ format: AudioFormat) {
    self.format = format
    let (rate, channels) = (format.sampleRate, format.channels)
    before = LoudnessMeter(sampleRate: rate, channels: channels)
    after = LoudnessMeter(sampleRate: rate, channels: channels)
  }

  /// Appends the next frames of the recording and of the cleaned sound, interleaved.
  func append(_ original: Span<Float>, _ cleaned: Span<Float>) {
    before?.append(original)
    after?.append(cleaned)
  }

  var loudness: (before: MeasuredLoudness, after: MeasuredLoudness) {
    let none = MeasuredLoudness(integratedLufs: nil, rangeLu: nil, truePeakDbtp: nil)
    return (before?.loudness ?? none, after?.loudness ?? none)
  }
}

/// Brings a sound to a target loudness, with a true peak of at most −1 dBTP.
struct NormalizeLoudness {
  /// The cleaned sound, as floats.
  let source: String
  /// The audio file to write, and its format.
  let output: String
  let format: AudioFormat
  /// The tags to write.
  let tags: SoundTags
  /// The result's pyramid file; nil for none.
  let pyramid: String?
  let findsNoiseRegions: Bool
  /// Also receives the result; nil for none.
  let encoding: (any CleanedFile)?
  /// Whether users get a file coded with loss, whose peaks may exceed those of the samples given to the encoder.
  let isLossy: Bool
  /// In LUFS.
  let target: Double
  /// The loudness of `source`.
  let cleaned: MeasuredLoudness

  /// What was written.
  struct Outcome {
    var frames: Int64
    var clippedSamples: Int64
    var noiseRegions: [NoiseRegion]?
    var loudness: MeasuredLoudness
    /// Names of what the file can't hold of its tags.
    var leftOut: [String]
  }

  /// The gain and the limiter's ceiling, in dB.
  private struct Settings: Equatable {
    var gain: Double
    var ceiling: Double
  }

  /// −1 dBTP, less what other meters and the change of the limiter's gain add; a codec adds up to 1 dB.
  private var ceiling: Double { isLossy ? -2 : -1.1 }

  /// Reads the file up to five times. `progress` gets the fraction done and the frames whose waveform can be read.
  func run(progress: (Double, Int64) -> Void) throws(ProcessingError) -> Outcome {
    let settings = try chosen { progress(0.5 * $0, 0) }
    return try write(settings) { progress(0.5 + 0.5 * $0, $1) }
  }

  private static let rehearsals = 4

  private func chosen(_ progress: (Double) -> Void) throws(ProcessingError) -> Settings {
    // Without a loudness, there is nothing to bring to a target.
    guard let loudness = cleaned.integratedLufs else { return Settings(gain: 0, ceiling: ceiling) }
    var settings = Settings(gain: target - loudness, ceiling: ceiling)
    guard let peak = cleaned.truePeakDbtp, peak + settings.gain > ceiling else { return settings }
    for number in 0..<Self.rehearsals {
      let found = try rehearsed(settings) { progress((Double(number) + $0) / Double(Self.rehearsals)) }
      let over = max((found.truePeakDbtp ?? ceiling) - ceiling, 0)
      let missing = target - (found.integratedLufs ?? target)
      if over < 0.05, abs(missing) < 0.05 { break }
      settings.ceiling -= over
      // A sound whose peaks carry its loudness can't get louder.
      settings.gain = min(settings.gain + missing, target - loudness + 12)
    }
    return settings
  }

  private func rehearsed(
    _ settings: Settings, _ progress: (Double) -> Void
  ) throws(ProcessingError) -> MeasuredLoudness {
    let meter = LoudnessMeter(sampleRate: format.sampleRate, channels: format.channels)
    try pass(settings, progress) { (samples) throws(ProcessingError) in meter?.append(samples) }
    return meter?.loudness ?? cleaned
  }

  private func write(
    _ settings: Settings, _ progress: (Double, Int64) -> Void
  ) throws(ProcessingError) -> Outcome {
    let meter = LoudnessMeter(sampleRate: format.sampleRate, channels: format.channels)
    let (output, format, tags) = (output, format, tags)
    let frames = try audio { () throws(AudioIOError) in try AudioReader(path: source, limits: .none) }.claimedFrames
    let file = try audio { () throws(AudioIOError) in
      try AudioWriter(creating: output, format: format, expectedFrames: frames ?? .max, tags: tags)
    }
    var requantiser = Requantiser(file.format.codec.sampleKind, changesNothing: false, isResidue: false)
    var files = try SoundWriter(file, pyramid: pyramid, of: format, findsNoiseRegions: findsNoiseRegions)
    var (written, number): ([Float], Int64) = ([], 0)
    var ready: Int64 = 0
    try pass(settings, { progress($0, ready) }) { (samples) throws(ProcessingError) in
      if written.count < samples.count { written = [Float](repeating: 0, count: samples.count) }
      var all = written.mutableSpan
      var part = all._mutatingExtracting(0..<samples.count)
      requantiser.apply(samples, original: samples, number: number, into: &part)
      number += Int64(samples.count)
      let quantised = written.span.extracting(0..<samples.count)
      try files.append(quantised)
      try encoding?.append(quantised)
      meter?.append(quantised)
      ready = files.readyFrames
    }
    try encoding?.close()
    try files.finish()
    return Outcome(
      frames: number / Int64(format.channels), clippedSamples: requantiser.clippedSamples + files.clippedSamples,
      noiseRegions: files.noiseRegions, loudness: meter?.loudness ?? cleaned, leftOut: files.leftOut)
  }

  /// Passes all samples of the source, with gain and limiter, to `body`.
  private func pass(
    _ settings: Settings, _ progress: (Double) -> Void, _ body: (Span<Float>) throws(ProcessingError) -> Void
  ) throws(ProcessingError) {
    var reader = try audio { () throws(AudioIOError) in try AudioReader(path: source, limits: .none) }
    let total = Double(max(reader.claimedFrames ?? 1, 1))
    var limiter = TruePeakLimiter(
      gainDB: settings.gain, ceilingDB: settings.ceiling, sampleRate: format.sampleRate, channels: format.channels)
    while try reader.readFloat({ (samples) throws(ProcessingError) in try limiter.process(samples, body) }) > 0 {
      progress(min(Double(reader.position) / total, 1))
    }
    try limiter.finish(body)
  }
}
