import AudioIO
import Denoise
import Terms
import Workers

/// Noise and what it was learned from.
struct LearntNoise {
  let course: NoiseCourse
  let source: NoiseSource
  /// How a profile that was learned before differs from the recording, and what a region holds besides noise.
  var warnings: [Warning] = []
  /// A region with less besides noise.
  var better: NoiseSource.Region?
}

/// Learns a recording's noise. Reads given regions, a few seconds spread over the file for a quantile, or the whole
/// file to find a region; a profile that was learned before is read from its own file.
struct NoiseLearner {
  /// The maximum number of seconds that a quantile is learned from, each in a stretch of its own. For two hours of 44.1
  /// kHz stereo, this takes 0.1 s of CPU time; the whole would take 22 s. Previews wait for it.
  static let wholeSeconds = 32
  /// How much quieter a better region is, in dB.
  private static let leastFall = 3.0

  let source: String
  /// nil for the best region found, or for `NoiseSource.usualQuantile` if there is none that noise can be learned from.
  let noise: NoiseSource?
  /// The regions found before, best first; nil to look for them if they are needed: if `noise` is nil, or holds more
  /// than noise.
  var found: [NoiseRegion]?
  /// Whether to look for regions if `noise` holds more than noise.
  var looksForBetter = true
  let limits: AudioLimits
  /// The file of the profile if `noise` is one, and its descriptor if it is open already.
  var profilePath: String?
  var profileFile: Int32?
  /// Whether digital silence in a region counts, to measure the region as it is.
  var countsSilence = false
  /// The file's sound map, if already known.
  var map: SoundMap?

  /// Returns the number of frames to read for learning from a recording of `total` frames; the regions may be outside
  /// it.
  func frames(of total: Int64, sampleRate: Int) -> Int64 {
    switch noise {
    case nil where found == nil: return total
    case nil: return min(total, Int64(Self.wholeSeconds * sampleRate))
    case .quantile: return min(total, Int64(Self.wholeSeconds * sampleRate))
    case .profile: return 0
    case .region, .regions:
      let seconds = noise?.regions.reduce(0) { $0 + $1.end - $1.start } ?? 0
      let frames = seconds * Double(sampleRate)
      return frames > 0 && frames < Double(total) ? Int64(frames) : total
    }
  }

  /// Calls `progress` with the number of frames read so far, which never decreases. If a region has to be found first,
  /// that pass and the next count half each.
  func learn(progress: (Int64) -> Void) throws(ProcessingError) -> LearntNoise {
    switch noise {
    case nil:
      return try learnBest(progress)
    case .region(let region)?:
      let (part, level) = try learn(region, progress)
      let learnt = LearntNoise(course: NoiseCourse(part.profile), source: .region(region))
      return try judged(learnt, level.map { [$0] } ?? [], read: Int64(part.frames.count), progress)
    case .regions(let regions)?:
      var (parts, suspects, read) = ([NoiseCourse.Part](), [Double](), Int64(0))
      for region in regions {
        let (part, level) = try learn(region) { progress(read + $0) }
        read += Int64(part.frames.count)
        parts.append(part)
        if let level { suspects.append(level) }
      }
      return try judged(
        LearntNoise(course: NoiseCourse(parts), source: .regions(regions)), suspects, read: read, progress)
    case .quantile(let quantile)?:
      return LearntNoise(course: NoiseCourse(try learnQuantile(quantile, progress)), source: .quantile(quantile))
    case .profile(let name)?:
      return try known(name)
    }
  }

  /// Learns from the best region from which noise can be learned, or from the whole recording. The search sees sound of
  /// 16 bits, a sixth of it, so a region may turn out to be silent.
  private func learnBest(_ progress: (Int64) -> Void) throws(ProcessingError) -> LearntNoise {
    var (first, read) = (Int64(0), Int64(0))
    let regions: [NoiseRegion]
    if let found {
      regions = found
    } else {
      regions = try FindNoiseRegions(source: source, limits: limits, map: map).run { frames, _ in
        first = frames / 2
        progress(first)
      }
    }
    func learning(_ frames: Int64) {
      read = max(read, frames)
      progress(first > 0 ? first + read / 2 : read)
    }
    if let learnt = try learnChanging(regions, learning) { return learnt }
    for region in regions.lazy.map(NoiseSource.Region.init) {
      if let part = try learnFound(region, learning) {
        return LearntNoise(course: NoiseCourse(part.profile), source: .region(region))
      }
    }
    let quantile = NoiseSource.usualQuantile
    return LearntNoise(
      course: NoiseCourse(try learnQuantile(quantile, learning)), source: .quantile(quantile),
      warnings: [.noiseNotFound])
  }

  /// Learns from all regions that have spans of their own, each for its span; nil if there are none.
  private func learnChanging(
    _ found: [NoiseRegion], _ progress: (Int64) -> Void
  ) throws(ProcessingError) -> LearntNoise? {
    var (parts, regions, read) = ([NoiseCourse.Part](), [NoiseSource.Region](), Int64(0))
    for region in found.sorted(by: { $0.frames.lowerBound < $1.frames.lowerBound }) {
      guard let span = region.span, span.lowerBound >= parts.last?.frames.upperBound ?? 0 else { continue }
      guard let part = try learnFound(.init(region), { progress(read + $0) }) else { continue }
      read += Int64(part.frames.count)
      parts.append(NoiseCourse.Part(part.profile, at: span))
      regions.append(.init(region))
    }
    return parts.count > 1 ? LearntNoise(course: NoiseCourse(parts), source: .regions(regions)) : nil
  }

  /// Returns nil if noise can't be learned from a region.
  private func learnFound(
    _ region: NoiseSource.Region, _ progress: (Int64) -> Void
  ) throws(ProcessingError) -> NoiseCourse.Part? {
    do throws(ProcessingError) { return try learn(region, progress).part } catch {
      switch error {
      case .denoise, .regionOutside: return nil
      default: throw error
      }
    }
  }

  /// Adds the warning about regions that hold more than noise, and a better region.
  /// - Parameter suspects: their levels in dBFS.
  private func judged(
    _ learnt: LearntNoise, _ suspects: [Double], read: Int64, _ progress: (Int64) -> Void
  ) throws(ProcessingError) -> LearntNoise {
    guard let level = suspects.max() else { return learnt }
    var regions = found ?? []
    if found == nil, looksForBetter {
      regions = try FindNoiseRegions(source: source, limits: limits, map: map).run { _, _ in progress(read) }
    }
    let better = regions.first { $0.score >= NoiseRegion.leastScore && $0.level <= level - Self.leastFall }
    guard let better else { return learnt }
    var learnt = learnt
    learnt.better = NoiseSource.Region(better)
    learnt.warnings.append(.noiseHasSpeech(better: NoiseSource.Region(better)))
    return learnt
  }

  /// Returns a profile that was learned before, for the recording's rate and channels.
  private func known(_ name: String) throws(ProcessingError) -> LearntNoise {
    let (path, format) = (profilePath ?? name, try open().format)
    let density: NoiseDensity
    do throws(NoiseProfileFile.Fault) {
      let file = if let profileFile { try NoiseProfileFile(profileFile) } else { try NoiseProfileFile(path: path) }
      density = file.density
    } catch { throw .profile(path: path, error) }
    return LearntNoise(
      course: NoiseCourse(density.profile(sampleRate: format.sampleRate, channels: format.channels)),
      source: .profile(name),
      warnings: Warning.ofProfile(density, sampleRate: format.sampleRate, channels: format.channels))
  }

  private func open() throws(ProcessingError) -> AudioReader {
    try audio { () throws(AudioIOError) in try AudioReader(path: source, limits: limits, map: map) }
  }

  /// Returns the profile of a region and its frames, and its level in dBFS if it seems to hold more than noise.
  private func learn(
    _ region: NoiseSource.Region, _ progress: (Int64) -> Void
  ) throws(ProcessingError) -> (part: NoiseCourse.Part, suspectLevel: Double?) {
    let reader = try open()
    let format = reader.format
    func frames(of total: Int64?) throws(ProcessingError) -> Range<Int64> {
      if let frames = region.frames(sampleRate: format.sampleRate, total: total) { return frames }
      let duration = total.map { Double($0) / Double(format.sampleRate) }
      throw .regionOutside(start: region.start, end: region.end, duration: duration)
    }
    let wanted = try frames(of: format.codec.hasReliableFrameCount ? reader.claimedFrames : nil)
    var sound = CenteredSound(reader)
    do { try sound.seek(to: wanted.lowerBound) } catch {
      throw .regionOutside(start: region.start, end: region.end, duration: nil)
    }
    var builder = NoiseProfileBuilder(
      sampleRate: format.sampleRate, channels: format.channels, countsSilence: countsSilence)
    var check = NoiseRegionCheck(sampleRate: format.sampleRate, channels: format.channels)
    while sound.position < wanted.upperBound {
      let got = sound.read(upTo: wanted.upperBound - sound.position) { _, centered in
        builder.append(centered)
        check.append(centered)
      }
      if got == 0 {
        _ = try frames(of: sound.reader.position)
        break
      }
      progress(sound.position - wanted.lowerBound)
    }
    do {
      let part = NoiseCourse.Part(try builder.finish(), at: wanted.lowerBound..<sound.position)
      return (part, check.hasMoreThanNoise ? check.levelDB : nil)
    } catch {
      throw .denoise(error)
    }
  }

  /// Learns from a few seconds of a long recording. Learns from all of it if these hold only digital silence, or if the
  /// length is unknown or isn't what the header says.
  private func learnQuantile(_ quantile: Double, _ progress: (Int64) -> Void) throws(ProcessingError) -> NoiseProfile {
    let sampled = try learnQuantile(quantile, whole: false, progress)
    if let sampled, sampled.power.contains(where: { $0.contains { $0 > 0 } }) { return sampled }
    guard let all = try learnQuantile(quantile, whole: true, { _ in }) else {
      preconditionFailure("a recording read from its start to its end needs no place looked for")
    }
    return all
  }

  /// Returns nil if one of the stretches isn't in the file.
  private func learnQuantile(
    _ quantile: Double, whole: Bool, _ progress: (Int64) -> Void
  ) throws(ProcessingError) -> NoiseProfile? {
    let reader = try open()
    var builder = QuantileProfileBuilder(
      sampleRate: reader.format.sampleRate, channels: reader.format.channels, quantile: quantile)
    let stretches = Self.stretches(of: whole ? nil : reader.claimedFrames, sampleRate: reader.format.sampleRate)
    var sound = CenteredSound(reader)
    var read: Int64 = 0
    for stretch in stretches {
      if stretch.lowerBound != sound.position {
        // Only the stretch itself is read, because 2 s around each would take five times as long.
        do { try sound.seek(to: stretch.lowerBound, within: stretch) } catch { return nil }
        builder.beginStretch()
      }
      while sound.position < stretch.upperBound {
        let got = sound.read(upTo: stretch.upperBound - sound.position) { builder.append($1) }
        if got == 0 { break }
        read += Int64(got)
        progress(read)
      }
      if sound.position < stretch.upperBound, stretches.count > 1 { return nil }
    }
    do { return try builder.finish() } catch {
      if case .regionTooShort(let frames, let needed) = error {
        throw .recordingTooShort(frames: frames, needed: needed)
      }
      throw .denoise(error)
    }
  }

  /// Returns the frames to learn a quantile from: all, or stretches of a second, each in the middle of its share.
  static func stretches(of total: Int64?, sampleRate: Int) -> [Range<Int64>] {
    let (length, count) = (Int64(sampleRate), Int64(wholeSeconds))
    guard let total, total > count * length else { return [0..<(.max)] }
    return (0..<count).map { index in
      let middle = (Double(index) + 0.5) / Double(count) * Double(total)
      let start = Int64(middle) - length / 2
      return start..<(start + length)
    }
  }
}
