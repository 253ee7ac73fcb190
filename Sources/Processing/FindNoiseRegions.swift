import AudioIO
import Denoise

/// What a region is called where Denoise isn't imported.
package typealias FoundNoiseRegion = NoiseRegion

/// Reads a recording once to find where it holds nothing but noise.
package struct FindNoiseRegions: Sendable {
  /// The sound file to read.
  package let source: String
  /// What a recording may be at the most.
  package let limits: AudioLimits

  /// Work on `source`; nothing happens before `run`.
  package init(source: String, limits: AudioLimits = AudioLimits()) {
    self.source = source
    self.limits = limits
  }

  /// The regions, best first; none where nothing is steady enough. `progress` is called after every chunk with the
  /// frames read and the fraction of the work. Memory is constant.
  package func run(progress: (Int64, Double) -> Void) throws(ProcessingError) -> [NoiseRegion] {
    var reader = try audio { () throws(AudioIOError) in try AudioReader(path: source, limits: limits) }
    let length = ExpectedLength(reader, path: source)
    var finder = NoiseRegionFinder(sampleRate: reader.format.sampleRate, channels: reader.format.channels)
    while reader.readInt16({ finder.append($0) }) > 0 {
      progress(reader.position, length.fraction(read: reader.position))
    }
    guard reader.position > 0 else { throw .audio(.empty) }
    progress(reader.position, 1)
    return finder.finish()
  }
}
