import AudioIO
import Denoise
import Terms
import Workers

/// Reads a recording once to find regions that contain only noise.
struct FindNoiseRegions {
  let source: String
  var limits = AudioLimits()
  /// The file's sound map, if already known.
  var map: SoundMap?

  /// Returns the regions, best first; none if nothing is steady enough. Calls `progress` after every chunk with the
  /// frames read and the fraction of the work. Memory use is constant.
  func run(progress: (Int64, Double) -> Void) throws(ProcessingError) -> [NoiseRegion] {
    var reader = try audio { () throws(AudioIOError) in try AudioReader(path: source, limits: limits, map: map) }
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
