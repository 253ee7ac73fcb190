import AudioIO
import Media
import Terms
import Workers

/// Sniffs a file, opens it and decodes a little of it.
struct ProbeRecording {
  let source: String
  var limits = AudioLimits()

  /// Maximum number of decoded samples: enough to know that there is audio, quick even for a slow codec.
  private static let sampleLimit = 1 << 20

  /// Throws `.audio` if the file isn't audio, exceeds a limit, or none of its frames can be decoded.
  func run() throws(ProcessingError) -> Probe {
    try runToEnd().probe
  }

  /// Probes a file that ffmpeg reads, with the probe begun by `look`. Also throws `.media`.
  func run(_ look: MediaProbe) throws(ProcessingError) -> Probe {
    let facts = try media { () throws(MediaError) in try look.facts() }
    try audio { () throws(AudioIOError) in
      try limits.check(
        channels: facts.channels, sampleRate: Int64(facts.sampleRate),
        frames: facts.promisesLength ? facts.promisedFrames : nil)
    }
    let shape = SoundShape(
      container: facts.container.rawValue, codec: facts.codec, sampleRate: facts.sampleRate, channels: facts.channels,
      estimatedFrames: facts.estimatedFrames(inFileAt: source))
    return Probe(
      shape: shape, fileExtension: facts.fileExtension, mediaType: facts.mediaType, warnings: Warning.ofHeaders(facts),
      media: facts)
  }

  /// Probes the file like `run`, and also returns whether the beginning that was decoded is all of the file.
  func runToEnd() throws(ProcessingError) -> (probe: Probe, isWhole: Bool) {
    do { return try probe() } catch { throw .audio(error) }
  }

  private func probe() throws(AudioIOError) -> (probe: Probe, isWhole: Bool) {
    var reader = try AudioReader(path: source, limits: limits)
    var isWhole = false
    while !isWhole, reader.position * Int64(reader.format.channels) < Self.sampleLimit {
      isWhole = reader.readInt16({ _ in }) <= 0
    }
    guard reader.position > 0 else { throw .empty }
    let warnings =
      Warning.ofReading(
        reader.map, claimedFrames: nil, decodedFrames: nil, nonFiniteSamples: reader.nonFiniteSamples,
        lostFrames: reader.lostFrames) + Warning.ofSeeking(reader.map)
    let format = reader.format
    let frames = reader.claimedFrames
    var shape = SoundShape(
      container: format.container.rawValue, codec: format.codec.name, sampleRate: format.sampleRate,
      channels: format.channels)
    if let frames {
      shape.setLength(frames: frames)
    } else {
      shape.estimatedFrames = format.estimatedFrames(inFileAt: source)
    }
    let probe = Probe(
      shape: shape, fileExtension: format.fileExtension, mediaType: format.mediaType, warnings: warnings,
      media: MediaFacts(unseekable: format, claimedFrames: frames))
    return (probe, isWhole)
  }
}
