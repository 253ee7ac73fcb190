import AudioIO
import Denoise
import Terms
import Waveform
import Workers

/// Decodes a recording once and writes all levels of its waveform.
struct AnalyzeRecording {
  let source: String
  /// The pyramid file to write.
  let pyramid: String
  var limits = AudioLimits()
  /// The number of cores to use, 1 or more, if the recording is long enough.
  var threads = 1
  /// Whether to look for noise regions in the same pass.
  var findsNoiseRegions = false
  /// Where to store the sound map for later readers of `source` (see SampleWindow); nil to discard it.
  var soundMap: String?
  /// Frames per segment on several cores; nil for the usual number. For tests.
  var segmentFrames: Int?
  /// Whether to wait until the pyramid file is on disk.
  var isDurable = true
  /// The time between two moments at which new points become readable, on one core.
  var interval = Duration.milliseconds(25)

  /// Reads `source` to its end and writes a pyramid file at `pyramid`.
  ///
  /// Calls `progress` after every chunk, at least every 24 s of stereo at 44.1 kHz; the frames it reports can be read
  /// from the file by then. Memory use is constant. The number of threads affects only the time.
  func run(progress: (WorkerProgress) -> Void) throws(ProcessingError) -> Analysis {
    let reader = try audio { () throws(AudioIOError) in try AudioReader(path: source, limits: limits) }
    let (format, map, claimedFrames) = (reader.format, reader.map, reader.promisedFrames)
    let length = ExpectedLength(reader, path: source)
    let frameLimit = limits.frameLimit(sampleRate: format.sampleRate)
    var files = try SoundWriter(
      nil, pyramid: pyramid, of: format, findsNoiseRegions: findsNoiseRegions, interval: interval)
    var sound = segments(reader, format)
    while try sound.read(
      { (samples) throws(ProcessingError) in try files.append(samples) },
      result: { (part) throws(ProcessingError) in try files.append(part) }) > 0
    {
      guard sound.position <= frameLimit else { throw tooLong(sound.position, format) }
      progress(length.progress(read: sound.position, ready: files.readyFrames))
    }
    guard sound.position > 0 else { throw .audio(.empty) }
    try files.finish(isDurable: isDurable)
    // Without the map, only time is lost.
    if let soundMap, map.isWorthKeeping { try? map.keep(at: soundMap) }
    progress(length.finished(frames: sound.position))
    let warnings =
      Warning.ofReading(
        map, claimedFrames: claimedFrames, decodedFrames: sound.position, nonFiniteSamples: sound.nonFiniteSamples,
        lostFrames: sound.lostFrames, excess: sound.excess) + Warning.ofSeeking(map)
    return Analysis(frames: sound.position, warnings: warnings, noiseRegions: files.noiseRegions)
  }

  private func segments(
    _ reader: consuming AudioReader, _ format: AudioFormat
  ) -> SegmentedReader<SegmentPartWork> {
    let (rate, channels, finds) = (format.sampleRate, format.channels, findsNoiseRegions)
    let frames = segmentFrames ?? SegmentPartWork.segmentFrames(channels: channels)
    return SegmentedReader(
      reader, path: source, workers: threads, segmentFrames: frames,
      tailFrames: NoiseMeter.tailFrames(sampleRate: rate, channels: channels)
    ) {
      // Made only for several workers: its memory takes longer to clear than a short recording's samples to read.
      guard let waveform = try? PyramidPartBuilder(sampleRate: rate, channels: channels, frames: frames) else {
        preconditionFailure("the pyramid's writer has accepted the format")
      }
      return SegmentPartWork(waveform, finds ? NoiseMeter(sampleRate: rate, channels: channels) : nil)
    }
  }

  private func tooLong(_ frames: Int64, _ format: AudioFormat) -> ProcessingError {
    .audio(.durationOutOfRange(seconds: Double(frames) / Double(format.sampleRate), limit: limits.durationSeconds))
  }
}
