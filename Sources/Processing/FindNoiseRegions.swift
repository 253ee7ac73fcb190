import AudioIO
import Denoise

/// The name of a region for files that don't import Denoise.
package typealias FoundNoiseRegion = NoiseRegion

/// Reads a recording once to find regions that contain only noise.
package struct FindNoiseRegions: Sendable {
  /// The audio file to read.
  package let source: String
  /// Limits for the recording.
  package let limits: AudioLimits

  /// Creates a task for `source`; nothing happens before `run`.
  package init(source: String, limits: AudioLimits = AudioLimits()) {
    self.source = source
    self.limits = limits
  }

  /// Returns the regions, best first; none if nothing is steady enough. Calls `progress` after every chunk with the
  /// frames read and the fraction of the work. Memory use is constant.
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
