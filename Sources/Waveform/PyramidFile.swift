import Synchronization

/// A pyramid to read from, mapped into memory; it may still be growing.
///
/// Safe to share between threads. Opening one costs a few system calls; a slice none, but where the file has grown.
public final class PyramidFile: Sendable {
  private let layout: PyramidLayout
  /// Replaced by a longer one as the file grows; a slice keeps the one it began with alive.
  private let mapping: Mutex<MappedFile>

  /// Opens a pyramid, finished or growing.
  ///
  /// Throws `.io`, or `.malformedPyramid` and `.truncatedPyramid` for a file that is none.
  public init(path: String) throws(WaveformError) {
    let file = try MappedFile(path: path)
    layout = try file.withWords(PyramidLayout.headerWords) { words throws(WaveformError) in
      try PyramidLayout(header: words)
    }
    mapping = Mutex(file)
  }

  /// Frames per second of the recording.
  public var sampleRate: Int { layout.sampleRate }

  /// Channels of the recording.
  public var channels: Int { layout.channels }

  /// The recording's length in frames; nil until the file is finished.
  public var totalFrames: Int64? {
    // A header that has been damaged since it was checked says nothing.
    try? mapping.withLock { $0 }.withWords(PyramidLayout.headerWords) { words throws(WaveformError) in
      try PyramidLayout.totalFrames(UInt64(littleEndian: words[3]))
    }
  }

  /// The pixels of a window, made of the pyramid's points.
  ///
  /// Throws `.needsSamples` below 256 frames per pixel, `.extentMismatch` where the window's extent is not this
  /// recording's, or claims it complete where the file is not finished, and `.truncatedPyramid`. O(pixels · log scale).
  public func slice(_ window: WaveformWindow) throws(WaveformError) -> WaveformSlice {
    if window.needsSamples { throw .needsSamples(scale: window.scale) }
    let extent = window.extent
    guard extent.sampleRate == sampleRate, extent.channels == channels,
      (0...PyramidLayout.frameLimit).contains(extent.availableFrames)
    else { throw .extentMismatch }
    if extent.isComplete, totalFrames != extent.availableFrames { throw .extentMismatch }
    var slice = WaveformSlice(empty: window)
    guard window.pixelCount > 0 else { return slice }
    let needed = layout.words(frames: window.frameRange.upperBound)
    try reaching(needed).withWords(needed) { words throws(WaveformError) in
      PointReader(layout: layout, window: window).read(words, into: &slice)
    }
    return slice
  }

  private func reaching(_ words: Int64) throws(WaveformError) -> MappedFile {
    let current = mapping.withLock { $0 }
    if current.reaches(words) { return current }
    let longer = try current.remapped()
    mapping.withLock { $0 = longer }
    return longer
  }
}
