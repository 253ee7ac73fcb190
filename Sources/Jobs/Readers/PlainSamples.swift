import CLinux
import Waveform

/// A recording's samples, stored as 16-bit integers at a place that a reader has found. Any two bytes are a valid one,
/// so there is nothing to parse, and the service reads them itself: that takes less time than waking a reader.
package final class PlainSamples: Sendable {
  /// Maximum number of bytes that are read for a window: this takes about as long as a switch to another queue.
  private static let byteLimit: Int64 = 256 << 10
  /// Number of samples that are read at a time, so that they stay in the first-level cache.
  private static let samplesAtOnce = 8192

  private let file: OpenFile
  private let start: Int64

  /// `start`: the place of the first frame, in bytes.
  init(of file: OpenFile, from start: Int64) { (self.file, self.start) = (file, start) }

  /// Whether the file is as it was, and still there.
  package var isUnchanged: Bool { FileState(descriptor: file.descriptor) == file.state }

  /// Returns a window's pixels; nil if it is long, if not all of its samples are in memory, or if the file has changed.
  /// Never waits for the disk.
  package func sliceInMemory(_ window: WaveformWindow) -> WaveformSlice? {
    let (channels, range) = (window.extent.channels, window.frameRange)
    let frameBytes = Int64(2 * channels)
    guard Int64(range.count) * frameBytes <= Self.byteLimit, isUnchanged else { return nil }
    let framesAtOnce = max(Self.samplesAtOnce / channels / window.scale, 1) * window.scale
    var samples = [Int16](repeating: 0, count: min(framesAtOnce, range.count) * channels)
    var slice = SlicedSamples(window)
    for first in stride(from: range.lowerBound, to: range.upperBound, by: framesAtOnce) {
      let count = min(framesAtOnce, Int(range.upperBound - first)) * channels
      let got = unsafe samples.withUnsafeMutableBytes { samples in
        unsafe stillwave_read_cached(file.descriptor, samples.baseAddress, 2 * count, Int(start + first * frameBytes))
      }
      guard got == 2 * count else { return nil }
      slice.append(samples.span.extracting(..<count))
    }
    return slice.finish()
  }
}
