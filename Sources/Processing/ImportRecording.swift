import AudioIO
import Denoise
import Media
import Terms
import Waveform
import Workers

// Files that libsndfile can't read are decoded once, by ffmpeg, into a lossless working copy: 24-bit FLAC if the source
// has integers of at most 24 bits (in FLAC, the zero bits of 16-bit audio take no space), otherwise WAV with 32-bit
// floats, because lossy decoders return those, beyond full scale too. All other work reads the working copy and needn't
// know other containers. Files that libsndfile can decode but not seek in get a working copy too.
//
// ffmpeg writes the floats of a WAV file itself, after a head of fixed length that is filled in at the end, because its
// sizes, and whether it is RF64, depend on the number of frames.

extension MediaFacts {
  /// Returns the head of a working copy whose samples ffmpeg writes; nil if they are written here: FLAC, and AMR, whose
  /// silence at the end ffmpeg doesn't know. Throws `.unwritable` if a WAV file can't hold such frames.
  func directHead(frames: Int64) throws(ProcessingError) -> [UInt8]? {
    guard workingFormat.codec == .pcmF32, demuxer != nil, !isTelephone else { return nil }
    return try audio { () throws(AudioIOError) in
      try WaveHeader(.pcmF32, sampleRate: sampleRate, channels: channels, frames: frames, isFixed: true).bytes
    }
  }
}

/// Writes a recording's working copy and, in the same pass, its waveform.
struct ImportRecording {
  let decoding: any WorkingSource
  /// The audio file to write.
  let working: String
  /// The pyramid file to write; nil for none.
  var pyramid: String?
  var limits = AudioLimits()
  /// Whether to look for noise regions in the same pass.
  var findsNoiseRegions = false

  /// Reads to the end and makes both files durable. Calls `progress` after every chunk; the frames it reports can be
  /// read from the pyramid by then. Memory use is constant.
  func run(progress: (WorkerProgress) -> Void) throws(ProcessingError) -> Analysis {
    let (facts, format) = (decoding.facts, decoding.facts.workingFormat)
    try audio { () throws(AudioIOError) in
      try limits.check(channels: format.channels, sampleRate: Int64(format.sampleRate), frames: nil)
    }
    let frameLimit = limits.frameLimit(sampleRate: format.sampleRate)
    let estimate = facts.estimatedFrames(inFileAt: decoding.path)
    var files = try SoundWriter(
      decoding.copy == nil ? try writer() : nil, pyramid: pyramid, of: format, findsNoiseRegions: findsNoiseRegions)
    var (finite, notFinite, quantised): ([Float], Int64, [Int16]) = ([], 0, [])
    var excess = Excess()
    func append(_ samples: Span<Float>) throws(ProcessingError) {
      if facts.codec.hasPrefix("pcm_f") { excess.count(samples) }
      if let copy = decoding.copy {
        if quantise16(samples, into: &quantised) > 0 {
          notFinite += replaceNonFinite(samples, into: &finite)
          let index = Int(decoding.position) * format.channels - samples.count
          try media { () throws(MediaError) in try copy.replace(finite.span, at: index) }
        }
        try files.append(quantised.span)
      } else if isFinite(samples) {
        try files.append(samples)
      } else {
        notFinite += replaceNonFinite(samples, into: &finite)
        try files.append(finite.span)
      }
    }
    while try decoding.read({ (samples) throws(ProcessingError) in try append(samples) }) > 0 {
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
    let frames = decoding.position
    if let copy = decoding.copy, let head = try facts.directHead(frames: frames) {
      try media { () throws(MediaError) in try copy.complete(head, count: Int(frames) * format.channels) }
    }
    try files.finish()
    if pyramid != nil {
      progress(WorkerProgress(fraction: 1, readyFrames: frames, totalFrames: frames, estimatedFrames: nil))
    }
    return Analysis(
      frames: frames, warnings: decoding.warnings(notFinite: notFinite) + Warning.overFullScale(excess),
      noiseRegions: files.noiseRegions)
  }
}

extension ImportRecording {
  /// Creates the working copy.
  private func writer() throws(ProcessingError) -> AudioWriter {
    let facts = decoding.facts
    // If the length is unknown, write a header that fits any.
    let expected = facts.promisesLength ? facts.promisedFrames ?? .max : .max
    return try audio { () throws(AudioIOError) in
      try AudioWriter(creating: working, format: facts.workingFormat, expectedFrames: expected)
    }
  }
}

extension Warning {
  /// Returns the warnings from reading the headers.
  static func ofHeaders(_ facts: MediaFacts) -> [Warning] {
    var found: [Warning] = []
    if facts.audioTracks > 1 {
      found.append(
        Warning(
          code: "audio_tracks_left_out",
          detail: "The file has \(facts.audioTracks) audio tracks; the first one is used."
        ))
    }
    if let demuxer = facts.demuxer, [.aac, .ac3, .eac3, .dts].contains(demuxer) { found.append(.seeksInexactly) }
    if let bytes = facts.leadingBytes { found.append(.leading(Int64(bytes))) }
    if facts.isCut == true { found.append(.endsWithin) }
    if facts.lacksLength == true { found.append(.lengthUnknown) }
    if let seconds = facts.silentSeconds, seconds > 0 { found.append(.silenceLeftOut(seconds)) }
    return found
  }

  /// Returns the warnings from decoding everything.
  static func ofImport(_ facts: MediaFacts, frames: Int64, notFinite: Int64) -> [Warning] {
    var found = ofHeaders(facts)
    // Codecs work in blocks, and some containers count milliseconds, so a tenth of a second doesn't count as lost.
    if facts.promisesLength, let promised = facts.promisedFrames,
      (promised - frames).magnitude > UInt64(facts.sampleRate / 10)
    {
      // The frame count is the clearer warning.
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

  private static func lengthMisstated(_ promised: Int64, _ frames: Int64, sampleRate: Int) -> Warning {
    func seconds(_ frames: Int64) -> Double { (Double(frames) / Double(sampleRate) * 100).rounded() / 100 }
    return Warning(
      code: "length_misstated",
      detail: "The header says \(seconds(promised)) s, but the file has \(seconds(frames)) s, which are used.")
  }
}

/// Whether no sample is NaN or infinite. x − x is 0 for finite x and NaN otherwise, and NaN persists in the sum.
private func isFinite(_ samples: Span<Float>) -> Bool {
  var doubt = InlineArray<16, Float>(repeating: 0)
  var start = 0
  while start + 16 <= samples.count {
    let group = samples.extracting(start..<(start + 16))
    for lane in 0..<16 { doubt[lane] += group[lane] - group[lane] }
    start += 16
  }
  for index in start..<samples.count { doubt[0] += samples[index] - samples[index] }
  for lane in 0..<16 where doubt[lane] != 0 { return false }
  return true
}

/// Copies samples, replacing NaN and infinity with 0. Returns how many were replaced.
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
