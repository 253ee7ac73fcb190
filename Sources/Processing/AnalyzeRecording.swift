import AudioIO
import Denoise
import Waveform

/// The result of decoding a file from end to end.
package struct Analysis: Codable, Sendable, Equatable {
  /// The number of frames actually decoded.
  package var frames: Int64
  /// Errors in the file's header, and how they were handled.
  package var warnings: [Anomaly]
  /// Regions that contain only noise, best first; nil if they weren't searched for.
  package var noiseRegions: [NoiseRegion]?
}

/// Decodes a recording once and writes all levels of its waveform.
package struct AnalyzeRecording: Sendable {
  /// The sound file to read.
  package let source: String
  /// The pyramid file to write.
  package let pyramid: String
  /// Limits for the recording.
  package let limits: AudioLimits
  /// The number of cores to use, 1 or more, for files that take long to decode.
  package let threads: Int
  /// Whether to look for noise regions in the same pass.
  package let findsNoiseRegions: Bool
  /// Where to store the sound map for later readers of `source` (see SampleWindow); nil to discard it.
  package let soundMap: String?

  /// Creates a task for `source`; nothing happens before `run`.
  package init(
    source: String, pyramid: String, limits: AudioLimits = AudioLimits(), threads: Int = 1,
    findsNoiseRegions: Bool = false, soundMap: String? = nil
  ) {
    self.source = source
    self.pyramid = pyramid
    self.limits = limits
    self.threads = threads
    self.findsNoiseRegions = findsNoiseRegions
    self.soundMap = soundMap
  }

  /// Reads `source` to its end and writes a durable pyramid file at `pyramid`.
  ///
  /// Calls `progress` after every chunk, several thousand times per hour of audio; the frames it reports can be read
  /// from the file by then. Memory use is constant. The number of threads affects only the time.
  package func run(progress: (WorkerProgress) -> Void) throws(ProcessingError) -> Analysis {
    let reader = try audio { () throws(AudioIOError) in try AudioReader(path: source, limits: limits) }
    let (format, map, claimedFrames) = (reader.format, reader.map, reader.promisedFrames)
    let length = ExpectedLength(reader, path: source)
    let frameLimit = Int64(min(limits.durationSeconds * Double(format.sampleRate), 0x1p62))
    var sound = SegmentedReader(reader, path: source, workers: threads)
    var writer = try waveform { () throws(WaveformError) in
      try PyramidWriter(creating: pyramid, sampleRate: format.sampleRate, channels: format.channels)
    }
    var finder = findsNoiseRegions ? NoiseRegionFinder(sampleRate: format.sampleRate, channels: format.channels) : nil
    func append(_ samples: Span<Int16>) throws(ProcessingError) {
      finder?.append(samples)
      do { try writer.append(samples) } catch { throw .waveform(error) }
    }
    while try sound.readInt16({ (samples) throws(ProcessingError) in try append(samples) }) > 0 {
      guard sound.position <= frameLimit else { throw tooLong(sound.position, format) }
      progress(length.progress(read: sound.position, ready: writer.readyFrames))
    }
    guard sound.position > 0 else { throw .audio(.empty) }
    do { try writer.finish() } catch { throw .waveform(error) }
    // Without the map, only time is lost.
    if let soundMap, map.isWorthKeeping { try? map.keep(at: soundMap) }
    progress(length.finished(frames: sound.position))
    let warnings = Anomaly.ofReading(
      map, claimedFrames: claimedFrames, decodedFrames: sound.position, nonFiniteSamples: sound.nonFiniteSamples,
      lostFrames: sound.lostFrames)
    var analysis = Analysis(frames: sound.position, warnings: warnings)
    if let finder = finder.take() { analysis.noiseRegions = finder.finish() }
    return analysis
  }

  private func tooLong(_ frames: Int64, _ format: AudioFormat) -> ProcessingError {
    .audio(.durationOutOfRange(seconds: Double(frames) / Double(format.sampleRate), limit: limits.durationSeconds))
  }
}
