import AudioIO
import Waveform

/// What decoding a file from end to end told.
public struct Analysis: Codable, Sendable, Equatable {
  /// Frames that were really decoded.
  public var frames: Int64
  /// What the file's header got wrong, and what was done about it.
  public var warnings: [Anomaly]
}

/// Decodes a recording once and writes all levels of its waveform.
public struct AnalyzeRecording: Sendable {
  /// The sound file to read.
  public let source: String
  /// The pyramid file to write.
  public let pyramid: String
  /// What a recording may be at the most.
  public let limits: AudioLimits

  /// Work on `source`; nothing happens before `run`.
  public init(source: String, pyramid: String, limits: AudioLimits = AudioLimits()) {
    self.source = source
    self.pyramid = pyramid
    self.limits = limits
  }

  /// Reads `source` to its end and leaves a durable pyramid file at `pyramid`.
  ///
  /// `progress` is called after every chunk, several thousand times an hour of sound; what it says is readable in the
  /// file by then. Memory is constant.
  public func run(progress: (WorkerProgress) -> Void) throws(ProcessingError) -> Analysis {
    var reader = try audio { () throws(AudioIOError) in try AudioReader(path: source, limits: limits) }
    let format = reader.format
    let length = ExpectedLength(reader, path: source)
    let frameLimit = Int64(min(limits.durationSeconds * Double(format.sampleRate), 0x1p62))
    var writer = try waveform { () throws(WaveformError) in
      try PyramidWriter(creating: pyramid, sampleRate: format.sampleRate, channels: format.channels)
    }
    func append(_ samples: Span<Int16>) throws(ProcessingError) {
      do { try writer.append(samples) } catch { throw .waveform(error) }
    }
    while try reader.readInt16({ (samples) throws(ProcessingError) in try append(samples) }) > 0 {
      guard reader.position <= frameLimit else { throw tooLong(reader.position, format) }
      progress(length.progress(read: reader.position, ready: writer.readyFrames))
    }
    guard reader.position > 0 else { throw .audio(.empty) }
    do { try writer.finish() } catch { throw .waveform(error) }
    progress(length.finished(frames: reader.position))
    return Analysis(frames: reader.position, warnings: try warnings(of: reader))
  }

  private func tooLong(_ frames: Int64, _ format: AudioFormat) -> ProcessingError {
    .audio(.durationOutOfRange(seconds: Double(frames) / Double(format.sampleRate), limit: limits.durationSeconds))
  }

  private func warnings(of reader: borrowing AudioReader) throws(ProcessingError) -> [Anomaly] {
    let (decoded, format) = (reader.position, reader.format)
    var warnings = Anomaly.inHeader(reader.header)
    warnings += try audio { () throws(AudioIOError) in try Anomaly.beyond(decoded, of: format, path: source) }
    if let claimed = reader.claimedFrames, claimed != decoded, !warnings.contains(where: { $0.code == "truncated" }) {
      warnings.append(.decodedFrames(decoded, claimed: claimed))
    }
    if reader.nonFiniteSamples > 0 { warnings.append(.nonFinite(reader.nonFiniteSamples)) }
    return warnings
  }
}
