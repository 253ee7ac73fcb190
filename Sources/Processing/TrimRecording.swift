import AudioIO
import Terms
import Waveform
import Workers

// The result has exactly the samples of the source from one frame to another, in the source's own format if that can be
// written again without loss: PCM, A-law and µ-law, FLAC, and ALAC. Sound that was coded with loss, or in a way that
// isn't written, becomes FLAC (16 bits if it was coded with loss), or WAV if FLAC can't hold it: coding it a second
// time would change it.

/// Cuts a part out of a recording. Writes the result and its waveform in the same pass.
struct TrimRecording {
  let source: String
  let window: TimeWindow
  /// The audio file to write.
  let output: String
  /// The result's pyramid file.
  let pyramid: String
  var limits = AudioLimits()
  /// Texts for a result whose source has none, because it is a working copy.
  var texts: FileTags?
  /// Also receives the result, to put it into a part of a video; nil for none.
  var encoding: (any CleanedFile)?

  /// Runs in constant memory and calls `progress` after every chunk. Throws `.windowOutside` if the source has no frame
  /// in the window.
  func run(progress: (WorkerProgress) -> Void) throws(ProcessingError) -> TrimOutcome {
    var reader = try audio { () throws(AudioIOError) in try AudioReader(path: source, limits: limits) }
    let (format, map, claimed) = (reader.format, reader.map, reader.promisedFrames)
    let part = window.frames(sampleRate: format.sampleRate)
    let known =
      format.codec.hasReliableFrameCount ? claimed.map { max(min($0, part.upperBound) - part.lowerBound, 0) } : nil
    if part.lowerBound > 0 {
      do { try reader.seek(to: part.lowerBound) } catch {
        throw .windowOutside(start: window.start, end: window.end)
      }
    }
    let expected = known ?? Int64(part.count)
    let path = output
    var tags = SoundTags(path: source)
    if let texts { tags.add(texts) }
    tags.cut(from: part.lowerBound, count: Int64(part.count))
    let file = try audio { () throws(AudioIOError) in
      try AudioWriter(creating: path, format: OutputFormat.trimmed(format), expectedFrames: expected, tags: tags)
    }
    var files = try SoundWriter(file, pyramid: pyramid, of: format, findsNoiseRegions: true)
    while reader.position < part.upperBound {
      let left = Int(clamping: part.upperBound - reader.position)
      guard try copy(&reader, upTo: left, into: &files) > 0 else { break }
      progress(
        WorkerProgress(
          fraction: min(Double(reader.position - part.lowerBound) / Double(max(expected, 1)), 0.999),
          readyFrames: files.readyFrames, totalFrames: known, estimatedFrames: known == nil ? expected : nil))
    }
    let written = reader.position - part.lowerBound
    guard written > 0 else { throw .windowOutside(start: window.start, end: window.end) }
    try encoding?.close()
    try files.finish()
    progress(WorkerProgress(fraction: 1, readyFrames: written, totalFrames: written, estimatedFrames: nil))
    let warnings = Warning.ofReading(
      map, claimedFrames: claimed, decodedFrames: nil, nonFiniteSamples: reader.nonFiniteSamples,
      lostFrames: reader.lostFrames, excess: reader.excess)
    return TrimOutcome(
      frames: written, noiseRegions: files.noiseRegions, warnings: warnings + Warning.ofFile(leftOut: files.leftOut))
  }

  /// Copies samples with all their bits; a 32-bit float has room for those of integers up to 24 bits.
  private func copy(
    _ reader: inout AudioReader, upTo frames: Int, into files: inout SoundWriter
  ) throws(ProcessingError) -> Int {
    switch reader.format.codec {
    case .pcmS32, .alac32:
      try reader.readInt32(upTo: frames) { (samples) throws(ProcessingError) in try files.append(samples) }
    case .pcmF64:
      try reader.readDouble(upTo: frames) { (samples) throws(ProcessingError) in try files.append(samples) }
    default:
      try reader.readFloat(upTo: frames) { (samples) throws(ProcessingError) in
        try files.append(samples)
        try encoding?.append(samples)
      }
    }
  }
}
