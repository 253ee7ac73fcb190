import AudioIO
import Denoise

/// Where the noise profile is learnt from.
public enum NoiseSource: Sendable, Equatable {
  /// Seconds of the recording in which only noise is heard.
  case region(start: Double, end: Double)
  /// The quiet quantile of every frequency over the whole recording, 0 … 1: for recordings without such a stretch.
  case quantile(Double)

  /// What `auto` means while no region has been found.
  public static let automatic = NoiseSource.quantile(0.2)
}

/// Learns a noise profile from a file. Reads the region, or the whole file for a quantile.
struct NoiseLearner {
  let source: String
  let noise: NoiseSource
  let limits: AudioLimits

  /// Frames the profile is learnt from, for a recording of `total` frames; the region may not be within it.
  func frames(of total: Int64, sampleRate: Int) -> Int64 {
    guard case .region(let start, let end) = noise else { return total }
    let frames = (end - start) * Double(sampleRate)
    return frames > 0 && frames < Double(total) ? Int64(frames) : total
  }

  /// `progress` is called with the frames read so far.
  func learn(progress: (Int64) -> Void) throws(ProcessingError) -> NoiseProfile {
    var reader = try audio { () throws(AudioIOError) in try AudioReader(path: source, limits: limits) }
    switch noise {
    case .region(let start, let end): return try learnRegion(start: start, end: end, from: &reader, progress)
    case .quantile(let quantile): return try learnQuantile(quantile, from: &reader, progress)
    }
  }

  private func learnRegion(
    start: Double, end: Double, from reader: inout AudioReader, _ progress: (Int64) -> Void
  ) throws(ProcessingError) -> NoiseProfile {
    let format = reader.format
    let rate = Double(format.sampleRate)
    let frames = format.codec.hasReliableFrameCount ? reader.claimedFrames : nil
    let duration = frames.map { Double($0) / rate }
    let outside = { duration in ProcessingError.regionOutside(start: start, end: end, duration: duration) }
    // Where the length is not known, a bound that no multiplication overflows.
    guard NoiseSource.isRegion(start: start, end: end, within: duration ?? 1e12) else { throw outside(duration) }
    let first = Int64((start * rate).rounded())
    let last = min(Int64((end * rate).rounded()), frames ?? .max)
    do { try reader.seek(to: first) } catch { throw outside(nil) }
    var builder = NoiseProfileBuilder(sampleRate: format.sampleRate, channels: format.channels)
    while reader.position < last {
      let wanted = Int(min(last - reader.position, Int64(reader.framesPerRead)))
      if reader.readFloat(upTo: wanted, { builder.append($0) }) == 0 {
        let isWithin = NoiseSource.isRegion(start: start, end: end, within: Double(reader.position) / rate)
        guard isWithin else { throw outside(Double(reader.position) / rate) }
        break
      }
      progress(reader.position - first)
    }
    do { return try builder.finish() } catch { throw .denoise(error) }
  }

  private func learnQuantile(
    _ quantile: Double, from reader: inout AudioReader, _ progress: (Int64) -> Void
  ) throws(ProcessingError) -> NoiseProfile {
    var builder = QuantileProfileBuilder(
      sampleRate: reader.format.sampleRate, channels: reader.format.channels, quantile: quantile)
    while reader.readFloat({ builder.append($0) }) > 0 { progress(reader.position) }
    do { return try builder.finish() } catch { throw .denoise(error) }
  }
}

extension NoiseSource {
  /// Frames a region must have at the least: two analysis frames.
  public static func minimumFrames(sampleRate: Int) -> Int64 { 2 * Int64(AnalysisFrame(sampleRate: sampleRate).length) }

  /// Whether the region lies in a recording of `duration` seconds. It may end up to 10 ms past it, where it is cut:
  /// times are rounded where they are shown and typed.
  public static func isRegion(start: Double, end: Double, within duration: Double) -> Bool {
    start >= 0 && start < end && start < duration && end <= duration + 0.01
  }
}
