import AudioIO
import Media

/// What the first seconds of a file tell about it: the answer to an upload is made of this.
package struct Probe: Codable, Sendable, Equatable {
  /// The kind of file, as the API names it.
  package var container: String
  /// The codec, as the API names it.
  package var codec: String
  /// Hertz.
  package var sampleRate: Int
  /// Channels, 1 or more.
  package var channels: Int
  /// As the header has it; the waveform job counts what is really there.
  package var frames: Int64?
  /// A guess at the frames, where the header has none.
  package var estimatedFrames: Int64?
  /// What the file's name should end in.
  package var fileExtension: String
  /// The media type to serve the file with.
  package var mediaType: String
  /// What the header got wrong, as far as the beginning shows it.
  package var warnings: [Anomaly]
  /// What has to be known to make a working copy of it; nil for what is read as it is.
  package var media: MediaFacts?
}

/// Sniffs a file, opens it and decodes a little of it.
package struct ProbeRecording: Sendable {
  /// The file to look at.
  package let source: String
  /// What a recording may be at the most.
  package let limits: AudioLimits

  /// Samples decoded at the most: enough to know that there is sound, quick even for a slow codec.
  private static let sampleLimit = 1 << 20

  /// Work on `source`; nothing happens before `run`.
  package init(source: String, limits: AudioLimits = AudioLimits()) {
    self.source = source
    self.limits = limits
  }

  /// Throws `.audio` where the file is no sound, breaks a limit, or not one frame of it decodes.
  package func run() throws(ProcessingError) -> Probe {
    do { return try probe() } catch { throw .audio(error) }
  }

  /// The same of a file that ffmpeg reads, at which `look` has begun to look. Throws `.media` as well.
  package func run(_ look: MediaProbe) throws(ProcessingError) -> Probe {
    let facts = try media { () throws(MediaError) in try look.facts() }
    try audio { () throws(AudioIOError) in
      try limits.check(
        channels: facts.channels, sampleRate: Int64(facts.sampleRate),
        frames: facts.promisesLength ? facts.promisedFrames : nil)
    }
    return Probe(
      container: facts.container.rawValue, codec: facts.codec, sampleRate: facts.sampleRate, channels: facts.channels,
      frames: nil, estimatedFrames: facts.estimatedFrames(inFileAt: source), fileExtension: facts.fileExtension,
      mediaType: facts.mediaType, warnings: Anomaly.ofHeaders(facts), media: facts)
  }

  private func probe() throws(AudioIOError) -> Probe {
    var reader = try AudioReader(path: source, limits: limits)
    while reader.position * Int64(reader.format.channels) < Self.sampleLimit, reader.readInt16({ _ in }) > 0 {}
    guard reader.position > 0 else { throw .empty }
    let warnings = Anomaly.ofReading(
      reader.map, claimedFrames: nil, decodedFrames: nil, nonFiniteSamples: reader.nonFiniteSamples,
      lostFrames: reader.lostFrames)
    let format = reader.format
    let frames = reader.claimedFrames
    return Probe(
      container: format.container.rawValue, codec: format.codec.name, sampleRate: format.sampleRate,
      channels: format.channels, frames: frames,
      estimatedFrames: frames == nil ? format.estimatedFrames(inFileAt: source) : nil,
      fileExtension: format.fileExtension, mediaType: format.mediaType, warnings: warnings,
      media: MediaFacts(unseekable: format, claimedFrames: frames))
  }
}
