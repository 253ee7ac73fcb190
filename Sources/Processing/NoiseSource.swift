import AudioIO
import Denoise

/// Where the noise profile is learnt from.
public enum NoiseSource: Sendable, Equatable {
  /// Seconds of the recording in which only noise is heard.
  case region(start: Double, end: Double)
  /// The quiet quantile of every frequency over the whole recording, 0 … 1: for recordings without such a stretch.
  case quantile(Double)
  /// The best region that is found; where there is none, `usualQuantile`.
  case automatic

  /// The quantile where nobody asked for one.
  public static let usualQuantile = 0.2
  /// Regions found in a recording at the most.
  public static let regionLimit = NoiseRegionFinder.regionLimit
}

/// A noise profile, and where it was learnt in the end: a region or a quantile.
struct LearntNoise {
  let profile: NoiseProfile
  let source: NoiseSource
}

/// Learns a noise profile from a file. Reads the region, or the whole file for a quantile or to find a region.
struct NoiseLearner {
  let source: String
  let noise: NoiseSource
  let limits: AudioLimits

  /// Frames that are read to learn, for a recording of `total` frames; the region may not be within it.
  func frames(of total: Int64, sampleRate: Int) -> Int64 {
    guard case .region(let start, let end) = noise else { return total }
    let frames = (end - start) * Double(sampleRate)
    return frames > 0 && frames < Double(total) ? Int64(frames) : total
  }

  /// `progress` is called with the frames read so far, which never fall; where a region is looked for first, that pass
  /// and the next one count half.
  func learn(progress: (Int64) -> Void) throws(ProcessingError) -> LearntNoise {
    var searched: Int64 = 0
    var source = noise
    if noise == .automatic {
      let regions = try FindNoiseRegions(source: self.source, limits: limits).run { frames, _ in
        searched = frames
        progress(frames / 2)
      }
      source = NoiseSource(best: regions)
    }
    let first = searched / 2
    func learning(_ frames: Int64) { progress(first > 0 ? first + frames / 2 : frames) }
    var reader = try audio { () throws(AudioIOError) in try AudioReader(path: self.source, limits: limits) }
    switch source {
    case .region(let start, let end):
      return LearntNoise(profile: try learnRegion(start: start, end: end, from: &reader, learning), source: source)
    case .quantile(let quantile):
      return LearntNoise(profile: try learnQuantile(quantile, from: &reader, learning), source: source)
    case .automatic: preconditionFailure("what was found is a region or a quantile")
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
  /// What `automatic` comes to where these regions, best first, were found.
  public init(best regions: [NoiseRegion]) {
    self = regions.first.map { .region(start: $0.start, end: $0.end) } ?? .quantile(Self.usualQuantile)
  }

  /// Frames a region must have at the least: two analysis frames.
  public static func minimumFrames(sampleRate: Int) -> Int64 { 2 * Int64(AnalysisFrame(sampleRate: sampleRate).length) }

  /// Whether the region lies in a recording of `duration` seconds. It may end up to 10 ms past it, where it is cut:
  /// times are rounded where they are shown and typed.
  public static func isRegion(start: Double, end: Double, within duration: Double) -> Bool {
    start >= 0 && start < end && start < duration && end <= duration + 0.01
  }
}
