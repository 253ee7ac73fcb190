/// The pixels of a window, ready to be written in one of the API's forms.
package struct WaveformSlice: Sendable, Equatable {
  /// The window of these pixels.
  package let window: WaveformWindow
  /// Number of lanes per pixel: 1, or the number of channels.
  package let lanes: Int
  /// Minimum and maximum for each lane of each pixel, on the scale of the query's bits. Empty unless peaks are
  /// requested.
  package private(set) var data: [Int16] = []
  /// RMS for each lane of each pixel. Empty unless requested.
  package private(set) var rms: [UInt16] = []
  /// Average for each lane of each pixel. Empty unless requested.
  package private(set) var average: [UInt16] = []

  /// Number of pixels.
  package internal(set) var length: Int

  /// Creates a slice finer than the pyramid, computed from samples.
  ///
  /// `samples`: those of `window.frameRange`, interleaved, with all channels of the recording. If there are fewer, the
  /// slice has only the complete pixels. `window.needsSamples` must be true, or the window empty. O(samples).
  package init(_ window: WaveformWindow, samples: Span<Int16>) {
    var sliced = SlicedSamples(window)
    sliced.append(samples)
    self = sliced.finish()
  }

  /// Appends `count` pixels with any measures, from the samples of `frames` frames or more: the plain version of
  /// `SamplePeaks`.
  mutating func appendPixels(_ samples: Span<Int16>, frames: Int, count: Int) {
    let channels = window.extent.channels
    for pixel in 0..<count {
      let first = pixel * window.scale
      let last = min(first + window.scale, frames)
      appendPixel(samples.extracting(first * channels..<last * channels), frames: last - first)
    }
  }

  /// Creates a slice from those of parts of `window`, with at most `pixels` pixels each, so that pages of only one part
  /// are read at a time. `slice` returns the complete slice of a part.
  package init<Failure: Error>(
    _ window: WaveformWindow, inPartsOf pixels: Int,
    _ slice: (WaveformWindow) throws(Failure) -> WaveformSlice
  ) throws(Failure) {
    self.init(empty: window)
    for first in stride(from: 0, to: window.pixelCount, by: pixels) {
      let part = try slice(window.part(first..<min(first + pixels, window.pixelCount)))
      data += part.data
      rms += part.rms
      average += part.average
    }
  }

  /// Creates a slice of any scale from samples. `samples` returns those of a pixel's frames, interleaved, with all
  /// channels of the recording; it's called once per pixel, in order. O(samples).
  package init<Failure: Error>(
    _ window: WaveformWindow, ofPixels samples: (Range<Int64>) throws(Failure) -> [Int16]
  ) throws(Failure) {
    self.init(empty: window)
    for number in 0..<window.pixelCount {
      let frames = window.frames(ofPixel: number)
      let pixel = try samples(frames)
      appendLongPixel(pixel.span, frames: frames.count)
    }
  }

  init(empty window: WaveformWindow) {
    self.window = window
    lanes = window.lanes
    length = window.pixelCount
    let values = length * lanes
    if window.query.measures.contains(.peak) { data.reserveCapacity(2 * values) }
    if window.query.measures.contains(.rms) { rms.reserveCapacity(values) }
    if window.query.measures.contains(.average) { average.reserveCapacity(values) }
  }

  /// Appends one lane of one pixel, converted to the query's bits.
  @inline(__always)
  mutating func append(_ point: WaveformPoint) {
    let eight = window.query.bits == .eight
    let measures = window.query.measures
    if measures.contains(.peak) {
      // Division truncates toward zero like audiowaveform's; a shift wouldn't.
      data.append(eight ? point.minimum / 256 : point.minimum)
      data.append(eight ? point.maximum / 256 : point.maximum)
    }
    append(PointLoudness(rms: point.rms, average: point.average))
  }

  /// Appends the loudness of one lane of one pixel, as far as it is requested, converted to the query's bits.
  @inline(__always)
  mutating func append(_ loudness: PointLoudness) {
    let eight = window.query.bits == .eight
    let measures = window.query.measures
    if measures.contains(.rms) { rms.append(eight ? Self.eightBits(loudness.rms) : loudness.rms) }
    if measures.contains(.average) { average.append(eight ? Self.eightBits(loudness.average) : loudness.average) }
  }

  /// Sets the peaks of all pixels, on the scale of the query's bits.
  mutating func setPeaks(_ peaks: [Int16]) { data = peaks }

  /// Sets the RMS or the average of all pixels, on the scale of the query's bits.
  mutating func setValues(_ values: [UInt16], of measure: Measures) {
    if measure == .rms { rms = values } else { average = values }
  }

  /// Appends the peaks of pixels, if they are requested. `write` gets the bytes of `data` and where to begin, and
  /// writes the minimum and maximum of each lane of each pixel, on the scale of 16 bits.
  mutating func appendPeaks(ofPixels count: Int, _ write: (inout MutableRawSpan, Int) -> Void) {
    guard window.query.measures.contains(.peak) else { return }
    let start = data.count
    data.append(contentsOf: repeatElement(0, count: 2 * count * lanes))
    var numbers = data.mutableSpan
    // `mutableBytes` is unsafe because not all bytes form valid elements in general; these do.
    var bytes = unsafe numbers.mutableBytes
    write(&bytes, start * MemoryLayout<Int16>.stride)
    guard window.query.bits == .eight else { return }
    for index in start..<data.count { data[index] /= 256 }
  }

  /// Converts with rounding. A corrupt file's values go up to 65535, so the sum needs more than 16 bits.
  private static func eightBits(_ value: UInt16) -> UInt16 { UInt16(min((Int(value) + 128) / 256, 127)) }

  private mutating func appendPixel(_ samples: Span<Int16>, frames: Int) {
    let channels = window.extent.channels
    switch window.query.channels {
    case .mix where channels > 1:
      var mix = InlineArray<256, Int16>(repeating: 0)
      PeakKernel.downmix(samples, channels: channels, to: &mix)
      append(Self.point(mix.span.extracting(0..<frames), first: 0, step: 1, frames: frames))
    case .mix:
      append(Self.point(samples, first: 0, step: 1, frames: frames))
    case .channel(let channel):
      append(Self.point(samples, first: channel, step: channels, frames: frames))
    case .split:
      for channel in 0..<channels {
        append(Self.point(samples, first: channel, step: channels, frames: frames))
      }
    }
  }

  /// Appends a pixel of any number of frames. A last pixel without any frame is that of an empty point.
  private mutating func appendLongPixel(_ samples: Span<Int16>, frames: Int) {
    let channels = window.extent.channels, isMix = window.query.channels == .mix && channels > 1
    var sums = [PointSums](repeating: PointSums(), count: lanes)
    var mix = InlineArray<256, Int16>(repeating: 0)
    for first in stride(from: 0, to: frames, by: PeakKernel.pointFrames) {
      let count = min(PeakKernel.pointFrames, frames - first)
      let run = samples.extracting(first * channels..<(first + count) * channels)
      if isMix {
        PeakKernel.downmix(run, channels: channels, to: &mix)
        for index in 0..<count { sums[0].add(mix[index]) }
      } else {
        for lane in 0..<lanes {
          var channel = lane
          if case .channel(let number) = window.query.channels { channel = number }
          for index in 0..<count { sums[lane].add(run[index * channels + channel]) }
        }
      }
    }
    for sum in sums {
      append(frames > 0 ? sum.point(frames: Int64(frames)) : WaveformPoint(minimum: 0, maximum: 0, rms: 0, average: 0))
    }
  }

  private static func point(_ samples: Span<Int16>, first: Int, step: Int, frames: Int) -> WaveformPoint {
    var sums = PointSums()
    for index in stride(from: first, to: samples.count, by: step) { sums.add(samples[index]) }
    return sums.point(frames: Int64(frames))
  }
}
