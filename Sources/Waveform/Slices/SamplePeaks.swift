/// The peaks of pixels finer than the pyramid, from samples.
enum SamplePeaks {
  /// Appends the peaks of a slice's pixels. `samples` are those of the pixels, with all channels of the recording; the
  /// last pixel may be cut short.
  static func append(_ samples: Span<Int16>, to slice: inout WaveformSlice) {
    let (scale, channels) = (slice.window.scale, slice.window.extent.channels)
    let pixels = slice.length
    switch slice.window.query.channels {
    case .mix where channels > 1:
      // As many whole pixels at a time as the mix of one point has room for.
      let atOnce = max(1, PeakKernel.pointFrames / scale)
      var mix = InlineArray<256, Int16>(repeating: 0)
      for first in stride(from: 0, to: pixels, by: atOnce) {
        let count = min(atOnce, pixels - first)
        let frames = first * scale..<min((first + count) * scale, samples.count / channels)
        PeakKernel.downmix(
          samples.extracting(frames.lowerBound * channels..<frames.upperBound * channels), channels: channels, to: &mix)
        append(mix.span.extracting(..<frames.count), pixels: count, lanes: 0..<1, of: 1, to: &slice)
      }
    case .mix: append(samples, pixels: pixels, lanes: 0..<1, of: 1, to: &slice)
    case .channel(let channel): append(samples, pixels: pixels, lanes: channel..<channel + 1, of: channels, to: &slice)
    case .split: append(samples, pixels: pixels, lanes: 0..<channels, of: channels, to: &slice)
    }
  }

  private static func append(
    _ samples: Span<Int16>, pixels: Int, lanes: Range<Int>, of channels: Int, to slice: inout WaveformSlice
  ) {
    let length = slice.window.scale * channels
    slice.appendPeaks(ofPixels: pixels) { data, start in
      var place = start
      for pixel in 0..<pixels {
        let run = samples.extracting(pixel &* length..<min(pixel &* length &+ length, samples.count))
        for lane in lanes {
          data.storeBytes(of: extremes(run, lane, channels), toByteOffset: place, as: SIMD2<Int16>.self)
          place &+= 4
        }
      }
    }
  }

  /// Returns the minimum and maximum of one channel.
  @inline(__always)
  private static func extremes(_ samples: Span<Int16>, _ channel: Int, _ channels: Int) -> SIMD2<Int16> {
    var (low, high) = (Int16.max, Int16.min)
    if channels == 1 {
      for index in samples.indices { (low, high) = (min(low, samples[index]), max(high, samples[index])) }
    } else {
      for index in stride(from: channel, to: samples.count, by: channels) {
        (low, high) = (min(low, samples[index]), max(high, samples[index]))
      }
    }
    return SIMD2(low, high)
  }
}
