import AudioIO
import Denoise
import Terms
import Waveform
import Workers

/// Writes a sound and its waveform and searches for noise regions, all in one pass over the samples. The waveform is
/// computed from 16-bit samples.
///
/// After an error, the writer must not be used again.
struct SoundWriter: ~Copyable {
  private var audio: AudioWriter?
  private var waveform: PyramidWriter?
  private var finder: NoiseRegionFinder?
  private var quantised: [Int16] = []
  private var pace: Pace
  /// The number of frames whose waveform can be read from the pyramid file.
  private(set) var readyFrames: Int64 = 0
  /// The number of samples that exceeded full scale and were clipped.
  private(set) var clippedSamples: Int64 = 0
  /// Names of what the sound's file can't hold of its tags.
  let leftOut: [String]
  /// The noise regions, best first; nil before `finish`, or if they aren't searched for.
  private(set) var noiseRegions: [NoiseRegion]?

  /// Creates the pyramid file.
  /// - Parameters:
  ///   - audio: writes the sound; nil if a file already contains it.
  ///   - pyramid: the path of the pyramid file; nil for none.
  ///   - sound: the sample rate and channels.
  ///   - interval: the time between two moments at which new points become readable.
  init(
    _ audio: consuming AudioWriter?, pyramid: String?, of sound: AudioFormat, findsNoiseRegions: Bool,
    interval: Duration = .milliseconds(25)
  ) throws(ProcessingError) {
    pace = Pace(interval)
    var waveform: PyramidWriter?
    if let pyramid {
      let writer = try Processing.waveform { () throws(WaveformError) in
        try PyramidWriter(creating: pyramid, sampleRate: sound.sampleRate, channels: sound.channels)
      }
      waveform = consume writer
    }
    leftOut = audio?.leftOut ?? []
    self.audio = consume audio
    self.waveform = consume waveform
    finder = findsNoiseRegions ? NoiseRegionFinder(sampleRate: sound.sampleRate, channels: sound.channels) : nil
  }

  /// Appends interleaved samples with full scale ±1 to all files.
  mutating func append(_ samples: Span<Float>) throws(ProcessingError) {
    guard var audio = audio.take() else { preconditionFailure("samples to write need a file for them") }
    do { try audio.write(samples, quantised: &quantised) } catch { throw .audio(error) }
    clippedSamples = audio.clippedSamples
    self.audio = consume audio
    let quantised = quantised
    try add(quantised.span)
  }

  /// Appends interleaved samples, left-justified in 32 bits, to all files. Only for files of integers.
  mutating func append(_ samples: Span<Int32>) throws(ProcessingError) {
    guard var audio = audio.take() else { preconditionFailure("samples to write need a file for them") }
    do { try audio.write(samples, quantised: &quantised) } catch { throw .audio(error) }
    self.audio = consume audio
    let quantised = quantised
    try add(quantised.span)
  }

  /// Appends interleaved samples of 64 bits with full scale ±1 to all files. Only for files of 64-bit floats.
  mutating func append(_ samples: Span<Double>) throws(ProcessingError) {
    guard var audio = audio.take() else { preconditionFailure("samples to write need a file for them") }
    do { try audio.write(samples, quantised: &quantised) } catch { throw .audio(error) }
    self.audio = consume audio
    let quantised = quantised
    try add(quantised.span)
  }

  /// Appends interleaved samples of a sound that a file already contains.
  mutating func append(_ samples: Span<Int16>) throws(ProcessingError) {
    precondition(audio == nil, "the file needs the samples before they are rounded")
    try add(samples)
  }

  private mutating func add(_ samples: Span<Int16>) throws(ProcessingError) {
    if var finder = finder.take() {
      finder.append(samples)
      self.finder = consume finder
    }
    guard var waveform = waveform.take() else { return }
    do {
      try waveform.append(samples)
      if pace.isDue() { try waveform.publish() }
    } catch {
      throw .waveform(error)
    }
    readyFrames = waveform.readyFrames
    self.waveform = consume waveform
  }

  /// Appends the next segment of a sound that a file already contains.
  mutating func append(_ part: SegmentPart) throws(ProcessingError) {
    if let noise = part.noise, var finder = finder.take() {
      finder.append(noise)
      self.finder = consume finder
    }
    guard var waveform = waveform.take() else { return }
    do { try waveform.append(part.waveform) } catch { throw .waveform(error) }
    readyFrames = waveform.readyFrames
    self.waveform = consume waveform
  }

  /// Completes the files and makes them durable if `isDurable` is true.
  mutating func finish(isDurable: Bool = true) throws(ProcessingError) {
    if let finder = finder.take() { noiseRegions = finder.finish() }
    if let audio = audio.take() {
      do { try audio.finish(isDurable: isDurable) } catch { throw .audio(error) }
    }
    if var waveform = waveform.take() {
      do { try waveform.finish(isDurable: isDurable) } catch { throw .waveform(error) }
    }
  }
}
