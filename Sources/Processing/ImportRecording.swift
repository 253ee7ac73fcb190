import AudioIO
import Denoise
import Media
import Waveform

// What libsndfile can't read is decoded once, by ffmpeg, into a working copy that loses nothing: FLAC of 24 bits where
// the source is integers of at most as many (FLAC stores the zero bits of 16-bit sound for nothing), else WAV of 32-bit
// floats, which is what lossy decoders give, beyond full scale too. All other work reads the working copy and knows of
// no other container. The same is done with what libsndfile decodes and can't seek in.

extension MediaFacts {
  /// What the working copy of such a file is; RF64 in place of WAV where it gets long.
  package var workingFormat: AudioFormat {
    let fitsFLAC = isInteger && channels <= 8 && sampleRate <= 655_350
    // What libsndfile decodes becomes 16 bits again in any other format, too.
    let integers: AudioCodec = demuxer == nil && (sampleBits ?? 24) <= 16 ? .flacS16 : .flacS24
    return AudioFormat(
      container: fitsFLAC ? .flac : .wav, codec: fitsFLAC ? integers : .pcmF32, sampleRate: sampleRate,
      channels: channels)
  }

  /// A guess at the frames, for a picture that has to have a width before the end is known.
  func estimatedFrames(inFileAt path: String) -> Int64 {
    if let promisedFrames { return promisedFrames }
    let bySound = workingFormat.estimatedFrames(inFileAt: path)
    // Beside pictures sound is about a twentieth of the bytes.
    return video == nil ? bySound : max(bySound / 20, 1)
  }
}

/// Makes the working copy of a recording and, in the same pass, its waveform.
package struct ImportRecording {
  /// What is decoded.
  package let decoding: any WorkingSource
  /// The sound file to write.
  package let working: String
  /// The pyramid file to write; nil for none.
  package let pyramid: String?
  /// What a recording may be at the most.
  package let limits: AudioLimits
  /// Whether to look for noise regions in the same pass.
  package let findsNoiseRegions: Bool

  /// Work on `decoding`; nothing is read before `run`.
  package init(
    _ decoding: any WorkingSource, working: String, pyramid: String? = nil, limits: AudioLimits = AudioLimits(),
    findsNoiseRegions: Bool = false
  ) {
    self.decoding = decoding
    self.working = working
    self.pyramid = pyramid
    self.limits = limits
    self.findsNoiseRegions = findsNoiseRegions
  }

  /// Reads to the end and leaves both files durable. `progress` is called after every chunk; what it says is readable
  /// in the pyramid by then. Memory is constant.
  package func run(progress: (WorkerProgress) -> Void) throws(ProcessingError) -> Analysis {
    let (facts, format) = (decoding.facts, decoding.facts.workingFormat)
    try audio { () throws(AudioIOError) in
      try limits.check(channels: format.channels, sampleRate: Int64(format.sampleRate), frames: nil)
    }
    let frameLimit = Int64(min(limits.durationSeconds * Double(format.sampleRate), 0x1p62))
    let estimate = facts.estimatedFrames(inFileAt: decoding.path)
    var files = try ImportedFiles(self, format)
    while try decoding.read({ (samples) throws(ProcessingError) in try files.append(samples) }) > 0 {
      let position = decoding.position
      guard position <= frameLimit else {
        throw .audio(
          .durationOutOfRange(
            seconds: Double(position) / Double(format.sampleRate), limit: limits.durationSeconds))
      }
      progress(
        WorkerProgress(
          fraction: min(Double(position) / Double(max(estimate, 1)), 0.999), readyFrames: files.readyFrames,
          totalFrames: nil, estimatedFrames: max(estimate, position)))
    }
    try decoding.end()
    try files.finish()
    let frames = decoding.position
    if pyramid != nil {
      progress(WorkerProgress(fraction: 1, readyFrames: frames, totalFrames: frames, estimatedFrames: nil))
    }
    var analysis = Analysis(frames: frames, warnings: decoding.warnings(notFinite: files.nonFiniteSamples))
    analysis.noiseRegions = files.noiseRegions
    return analysis
  }
}

/// The working copy and, beside it, its waveform.
private struct ImportedFiles: ~Copyable {
  private var copy: AudioWriter?
  private var waveform: PyramidWriter?
  private var finder: NoiseRegionFinder?
  private var finite: [Float] = []
  private var quantised: [Int16] = []
  private(set) var nonFiniteSamples: Int64 = 0
  private(set) var readyFrames: Int64 = 0
  private(set) var noiseRegions: [NoiseRegion]?

  init(_ job: ImportRecording, _ format: AudioFormat) throws(ProcessingError) {
    // Of unknown length: a header that holds any.
    let facts = job.decoding.facts
    let expected = facts.promisesLength ? facts.promisedFrames ?? .max : .max
    let copy = try audio { () throws(AudioIOError) in
      try AudioWriter(creating: job.working, format: format, expectedFrames: expected)
    }
    self.copy = consume copy
    if let pyramid = job.pyramid {
      let writer = try Processing.waveform { () throws(WaveformError) in
        try PyramidWriter(creating: pyramid, sampleRate: format.sampleRate, channels: format.channels)
      }
      waveform = consume writer
    }
    guard job.findsNoiseRegions else { return }
    finder = NoiseRegionFinder(sampleRate: format.sampleRate, channels: format.channels)
  }

  /// A writer that throws is not taken up again: the work ends there.
  mutating func append(_ samples: Span<Float>) throws(ProcessingError) {
    guard var copy = copy.take() else { return }
    nonFiniteSamples += replaceNonFinite(samples, into: &finite)
    let finite = finite
    do { try copy.write(finite.span, quantised: &quantised) } catch { throw .audio(error) }
    self.copy = consume copy
    if var finder = finder.take() {
      finder.append(quantised.span)
      self.finder = consume finder
    }
    guard var waveform = waveform.take() else { return }
    do { try waveform.append(quantised.span) } catch { throw .waveform(error) }
    readyFrames = waveform.readyFrames
    self.waveform = consume waveform
  }

  /// Makes both files whole and durable.
  mutating func finish() throws(ProcessingError) {
    if let finder = finder.take() { noiseRegions = finder.finish() }
    if let copy = copy.take() {
      do { try copy.finish() } catch { throw .audio(error) }
    }
    if var waveform = waveform.take() {
      do { try waveform.finish() } catch { throw .waveform(error) }
    }
  }
}

extension Anomaly {
  /// What a look at the headers told.
  static func ofHeaders(_ facts: MediaFacts) -> [Anomaly] {
    var found: [Anomaly] = []
    if facts.audioTracks > 1 {
      found.append(
        Anomaly(
          code: "audio_tracks_left_out",
          detail: "The file has \(facts.audioTracks) audio tracks; the first one is used."
        ))
    }
    if let bytes = facts.leadingBytes { found.append(.leading(Int64(bytes))) }
    if facts.isCut == true { found.append(.endsWithin) }
    if facts.lacksLength == true { found.append(.lengthUnknown) }
    if let seconds = facts.silentSeconds, seconds > 0 { found.append(.silenceLeftOut(seconds)) }
    return found
  }

  /// What decoding all of it told.
  static func ofImport(_ facts: MediaFacts, frames: Int64, notFinite: Int64) -> [Anomaly] {
    var found = ofHeaders(facts)
    // Codecs work in blocks, and some containers count milliseconds: a tenth of a second is nothing that was lost.
    if facts.promisesLength, let promised = facts.promisedFrames,
      (promised - frames).magnitude > UInt64(facts.sampleRate / 10)
    {
      // It tells that better.
      found.removeAll { $0 == .endsWithin && frames < promised }
      found.append(.decodedFrames(frames, claimed: promised))
    }
    if facts.demuxer == .mov, !facts.promisesLength, facts.isCut != true, let promised = facts.promisedFrames,
      promised - frames > Int64(facts.sampleRate / 10)
    {
      found.append(.lengthMisstated(promised, frames, sampleRate: facts.sampleRate))
    }
    if notFinite > 0 { found.append(.nonFinite(notFinite)) }
    return found
  }

  private static func lengthMisstated(_ promised: Int64, _ frames: Int64, sampleRate: Int) -> Anomaly {
    func seconds(_ frames: Int64) -> Double { (Double(frames) / Double(sampleRate) * 100).rounded() / 100 }
    return Anomaly(
      code: "length_misstated",
      detail: "The header says \(seconds(promised)) s, the file holds \(seconds(frames)) s; what is there is used.")
  }
}

/// Puts 0 for NaN and infinity; returns how many there were.
private func replaceNonFinite(_ samples: Span<Float>, into target: inout [Float]) -> Int64 {
  if target.count != samples.count { target = [Float](repeating: 0, count: samples.count) }
  var count: Int64 = 0
  var span = target.mutableSpan
  for index in samples.indices {
    let isFinite = samples[index].isFinite
    count &+= isFinite ? 0 : 1
    span[index] = isFinite ? samples[index] : 0
  }
  return count
}
