// Conversion from seconds to pixels.
//
// Let r be the sample rate, N the number of available frames, and L the length: N if complete, else the total, the
// estimate, or N, whichever is known first. S = round(start · r), and E = max(round(end · r), S + 1), both at most L.
// Pixels are counted from frame 0 and cover `scale` = s frames each:
//
//   first pixel    ⌊S / s⌋
//   end pixel      ⌈E / s⌉, or if E = L, the end of the recording:  ⌈L / s⌉ below 256 frames,
//                  ⌈P·256 / s⌉ for the P = ⌈L / 256⌉ points from 256 up
//   ready pixels   all if complete; else ⌊N / s⌋ from 256 up (their frames have all been read), none below
//
// The slice has pixels first ..< min(end, ready). A width w selects the smallest s with end − first ≤ w. That is the
// smallest s with s ≥ ⌈E' / (⌊S / s⌋ + w)⌉, where E' is E, or P·256 at the end. The right side never decreases when s
// grows, so repeatedly setting s to it climbs to the smallest solution without passing it. It starts at the lower bound
// ⌈(E' − S) / w⌉ and in practice stops after a few steps.

/// A query resolved to whole pixels, counted from frame 0 and limited to what is available.
package struct WaveformWindow: Sendable, Hashable {
  /// Maximum scale that can be requested. A width may result in a larger one.
  package static let scaleLimit = 1 << 24
  /// Maximum number of pixels for a width, and for any slice below 256 frames per pixel.
  package static let pixelLimit = 20_000
  /// Maximum number of numbers in a JSON response.
  package static let jsonNumberLimit: Int64 = 1_000_000
  /// Maximum number of numbers in any response: 2^26 are 128 MiB of 16-bit values, 24 hours at 48 kHz with two split
  /// channels at scale 256.
  package static let numberLimit: Int64 = 1 << 26

  /// Frames per pixel.
  package let scale: Int
  /// Index of the first pixel, counted from frame 0.
  package private(set) var firstPixel: Int64
  /// Number of pixels available now.
  package private(set) var pixelCount: Int
  /// The query.
  package private(set) var query: WaveformQuery
  /// The extent that was available.
  package let extent: WaveformExtent

  /// The first frame of the first pixel: a multiple of `scale`.
  package var startFrame: Int64 { firstPixel * Int64(scale) }

  /// The frames of the pixels, up to the recording's end. Below 256 frames per pixel, these are the samples needed.
  package var frameRange: Range<Int64> {
    let end = min((firstPixel + Int64(pixelCount)) * Int64(scale), extent.availableFrames)
    return pixelCount == 0 ? startFrame..<startFrame : startFrame..<max(startFrame, end)
  }

  /// The frames of a pixel, from 256 frames per pixel up those of whole points, up to the recording's end. The first
  /// pixel of the window has number 0.
  package func frames(ofPixel number: Int) -> Range<Int64> {
    func edge(_ pixel: Int64) -> Int64 {
      let frame = pixel * Int64(scale), point = Int64(PeakKernel.pointFrames)
      return scale < PeakKernel.pointFrames ? frame : frame / point * point
    }
    let pixel = firstPixel + Int64(number), end = extent.availableFrames
    return min(edge(pixel), end)..<min(edge(pixel + 1), end)
  }

  /// Whether the slice must be computed from samples because it is finer than the pyramid. False for an empty one.
  package var needsSamples: Bool { scale < PeakKernel.pointFrames && pixelCount > 0 }

  /// Number of lanes in the response: 1, or the number of channels.
  package var lanes: Int { query.channels == .split ? extent.channels : 1 }

  /// Number of numbers in the response.
  package var numberCount: Int64 { Int64(pixelCount) * Self.numbers(perPixelOf: query, lanes: lanes) }

  /// Resolves a query.
  ///
  /// Throws `.timeOutOfRange`, `.windowReversed`, `.scaleOutOfRange`, `.widthOutOfRange`, `.tooManyPixels`,
  /// `.channelOutOfRange`, or `.noMeasures` for an invalid query, and `.unsupportedFormat` for an impossible extent.
  package init(_ query: WaveformQuery, of extent: WaveformExtent) throws(WaveformError) {
    _ = try PyramidLayout(sampleRate: extent.sampleRate, channels: extent.channels)
    if case .channel(let channel) = query.channels, !(0..<extent.channels).contains(channel) {
      throw .channelOutOfRange(channel: channel, channels: extent.channels)
    }
    guard !query.measures.isDisjoint(with: [.peak, .rms, .average]) else { throw .noMeasures }
    let span = try FrameSpan(query, of: extent)
    let scale = try span.scale(for: query.resolution)
    let first = span.start / Int64(scale)
    let end = span.endPixel(scale: scale)
    let ready = span.readyPixels(scale: scale, extent: extent)

    // Checks what was requested, not what has been read, so that a request doesn't begin to fail as the recording
    // grows.
    let asked = max(0, end - first)
    if scale < PeakKernel.pointFrames, asked > Self.pixelLimit {
      throw .tooManyPixels(count: asked, limit: Int64(Self.pixelLimit))
    }
    let lanes = query.channels == .split ? extent.channels : 1
    let perPixel = Self.numbers(perPixelOf: query, lanes: lanes)
    guard asked <= Self.numberLimit / perPixel else {
      throw .tooManyPixels(count: asked, limit: Self.numberLimit / perPixel)
    }
    self.scale = scale
    firstPixel = first
    pixelCount = Int(max(0, min(end, ready) - first))
    self.query = query
    self.extent = extent
  }

  /// Creates a window from its parts.
  init(scale: Int, firstPixel: Int64, pixelCount: Int, query: WaveformQuery, extent: WaveformExtent) {
    (self.scale, self.firstPixel, self.pixelCount) = (scale, firstPixel, pixelCount)
    (self.query, self.extent) = (query, extent)
  }

  /// Returns the window of some of the pixels, counted from its first.
  package func part(_ pixels: Range<Int>) -> WaveformWindow {
    precondition(pixels.lowerBound >= 0 && pixels.upperBound <= pixelCount, "a part lies within the window")
    var part = self
    part.firstPixel += Int64(pixels.lowerBound)
    part.pixelCount = pixels.count
    return part
  }

  /// Returns the window of a single lane. The window's channels must be split.
  func lane(_ channel: Int) -> WaveformWindow {
    var lane = self
    lane.query.channels = .channel(channel)
    return lane
  }

  private static func numbers(perPixelOf query: WaveformQuery, lanes: Int) -> Int64 {
    let measures = query.measures
    return Int64(lanes)
      * ((measures.contains(.peak) ? 2 : 0) + (measures.contains(.rms) ? 1 : 0) + (measures.contains(.average) ? 1 : 0))
  }
}

/// A query's window in frames.
struct FrameSpan {
  let start: Int64
  /// The end of the window; at most `length`, and equal to `start` if the window is empty.
  let end: Int64
  let length: Int64

  init(_ query: WaveformQuery, of extent: WaveformExtent) throws(WaveformError) {
    let limit = PyramidLayout.frameLimit
    let known = extent.knownFrames ?? extent.estimatedFrames
    // If the length turned out too short, the frames beyond it that were read still count.
    length = min(max(known ?? 0, extent.availableFrames, 0), limit)
    let from = query.start ?? 0
    guard from.isFinite, from >= 0 else { throw .timeOutOfRange(parameter: "start", seconds: from) }
    start = Self.frame(from, rate: extent.sampleRate)
    var past = length
    if let to = query.end {
      guard to.isFinite, to >= 0 else { throw .timeOutOfRange(parameter: "end", seconds: to) }
      guard to > from else { throw .windowReversed(start: from, end: to) }
      past = max(Self.frame(to, rate: extent.sampleRate), start + 1)
    }
    end = max(start, min(past, length))
  }

  private static func frame(_ seconds: Double, rate: Int) -> Int64 {
    Int64(min((seconds * Double(rate)).rounded(), Double(PyramidLayout.frameLimit)))
  }

  /// Returns the end of the window in frames for `scale`: the end of the last point if the window ends with the
  /// recording.
  private func end(scale: Int64) -> Int64 {
    guard scale >= 256, end == length, start < end else { return end }
    return (length + 255) / 256 * 256
  }

  func endPixel(scale: Int) -> Int64 {
    let scale = Int64(scale)
    return start < end ? (end(scale: scale) + scale - 1) / scale : start / scale
  }

  func readyPixels(scale: Int, extent: WaveformExtent) -> Int64 {
    if extent.isComplete { return .max }
    return scale < PeakKernel.pointFrames ? 0 : max(0, extent.availableFrames) / Int64(scale)
  }

  func scale(for resolution: WaveformResolution) throws(WaveformError) -> Int {
    switch resolution {
    case .scale(let scale):
      guard (1...WaveformWindow.scaleLimit).contains(scale) else {
        throw .scaleOutOfRange(scale: Int64(scale), limit: Int64(WaveformWindow.scaleLimit))
      }
      return scale
    case .width(let width):
      guard (1...WaveformWindow.pixelLimit).contains(width) else {
        throw .widthOutOfRange(width: width, limit: WaveformWindow.pixelLimit)
      }
      let fine = leastScale(width: Int64(width), end: end(scale: 1), from: 1)
      return Int(fine < 256 ? fine : leastScale(width: Int64(width), end: end(scale: 256), from: 256))
    }
  }

  private func leastScale(width: Int64, end: Int64, from: Int64) -> Int64 {
    var scale = max(from, (end - start + width - 1) / width)
    while true {
      let pixels = start / scale + width
      let needed = (end + pixels - 1) / pixels
      if needed <= scale { return scale }
      scale = needed
    }
  }
}
