/// A slice finer than the pyramid, made from samples that come in pieces.
///
/// Peaks are made of each piece while it is in the processor's cache, so a window of any length needs memory only for
/// its pixels.
package struct SlicedSamples {
  private let window: WaveformWindow
  private let channels: Int
  private var slice: WaveformSlice
  /// Samples that no pixel has yet: those of less than one, or all if more than peaks are requested.
  private var rest: [Int16] = []
  private var frames = 0
  private let loops: PeakLoops

  /// Begins a slice. `window.needsSamples` must be true, or the window empty.
  package init(_ window: WaveformWindow) { self.init(window, by: .best) }

  init(_ window: WaveformWindow, by loops: PeakLoops) {
    precondition(window.needsSamples || window.pixelCount == 0, "from 256 frames a pixel, slices are the pyramid's")
    self.window = window
    channels = window.extent.channels
    slice = WaveformSlice(empty: window)
    self.loops = loops
  }

  /// Number of frames still missing.
  package var missingFrames: Int { window.frameRange.count - frames }

  /// Adds the next samples of `window.frameRange`, interleaved, with all channels of the recording. What exceeds it is
  /// ignored.
  package mutating func append(_ samples: Span<Int16>) {
    let count = min(samples.count / channels, missingFrames)
    frames += count
    var samples = samples.extracting(..<(count * channels))
    guard window.query.measures == .peak else { return keep(samples) }
    let pixel = window.scale * channels
    if !rest.isEmpty {
      let missing = min(pixel - rest.count, samples.count)
      keep(samples.extracting(..<missing))
      samples = samples.extracting(missing...)
      guard rest.count == pixel else { return }
      let filled = rest
      SamplePeaks.append(filled.span, to: &slice, by: loops)
      rest = []
    }
    let whole = samples.count / pixel * pixel
    if whole > 0 { SamplePeaks.append(samples.extracting(..<whole), to: &slice, by: loops) }
    keep(samples.extracting(whole...))
  }

  private mutating func keep(_ samples: Span<Int16>) {
    unsafe samples.withUnsafeBufferPointer { unsafe rest.append(contentsOf: $0) }
  }

  /// Returns the slice. If samples are missing, it has only the complete pixels.
  package consuming func finish() -> WaveformSlice {
    let length = missingFrames == 0 ? window.pixelCount : frames / window.scale
    let (rest, isWhole) = (rest, missingFrames == 0)
    if window.query.measures != .peak {
      slice.appendPixels(rest.span, frames: window.frameRange.count, count: length)
    } else if isWhole, !rest.isEmpty {
      SamplePeaks.append(rest.span, to: &slice, by: loops)
    }
    slice.length = length
    return slice
  }
}
