import AudioIO
import Media

/// The facts learned from the first seconds of a file, used to answer an upload.
package struct Probe: Codable, Sendable, Equatable {
  /// The kind of file, as the API names it.
  package var container: String
  /// The codec, as the API names it.
  package var codec: String
  /// In Hz.
  package var sampleRate: Int
  /// The number of channels, 1 or more.
  package var channels: Int
  /// The header's number of frames; the waveform job counts the actual ones.
  package var frames: Int64?
  /// An estimate of the frames if the header has no count.
  package var estimatedFrames: Int64?
  /// The extension for the file's name.
  package var fileExtension: String
  /// The media type to serve the file with.
  package var mediaType: String
  /// Errors in the header, as far as the beginning shows.
  package var warnings: [Anomaly]
  /// The facts needed to make a working copy; nil if the file can be used directly.
  package var media: MediaFacts?
}

/// Sniffs a file, opens it and decodes a little of it.
package struct ProbeRecording: Sendable {
  /// The file to probe.
  package let source: String
  /// Limits for the recording.
  package let limits: AudioLimits

  /// Maximum number of decoded samples: enough to know that there is audio, quick even for a slow codec.
  private static let sampleLimit = 1 << 20

  /// Creates a task for `source`; nothing happens before `run`.
  package init(source: String, limits: AudioLimits = AudioLimits()) {
    self.source = source
    self.limits = limits
  }

  /// Throws `.audio` if the file isn't audio, exceeds a limit, or none of its frames can be decoded.
  package func run() throws(ProcessingError) -> Probe {
    do { return try probe() } catch { throw .audio(error) }
  }

  /// The same for a file that ffmpeg reads, using the probe begun by `look`. Also throws `.media`.
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
