/// The peaks of pixels finer than the pyramid, from samples.
enum SamplePeaks {
  /// Maximum number of frames of which one lane is extracted at a time: 8 KB, which stay in the first-level cache.
  private static let framesAtOnce = 4096

  /// Appends the peaks of a slice's next pixels. `samples` are those of the pixels, with all channels of the recording;
  /// the last pixel may be cut short.
  static func append(_ samples: Span<Int16>, to slice: inout WaveformSlice, by loops: PeakLoops) {
    let (scale, channels) = (slice.window.scale, slice.window.extent.channels)
    let frames = samples.count / channels
    let lanes: [Int?] =
      switch slice.window.query.channels {
      case .mix: [channels == 1 ? 0 : nil]
      case .channel(let channel): [channel]
      case .split: (0..<channels).map { $0 }
      }
    slice.appendPeaks(ofPixels: (frames + scale - 1) / scale) { data, start in
      if channels == 1 { return loops.fold(samples, scale: scale, to: &data, at: start, step: 1) }
      var lane = [Int16](repeating: 0, count: Self.framesAtOnce)
      let pixelsAtOnce = Self.framesAtOnce / scale
      for first in stride(from: 0, to: frames, by: pixelsAtOnce * scale) {
        let count = min(pixelsAtOnce * scale, frames - first)
        let run = samples.extracting(first * channels..<(first + count) * channels)
        for (index, channel) in lanes.enumerated() {
          extract(channel, of: channels, from: run, to: &lane, loops)
          loops.fold(
            lane.span.extracting(..<count), scale: scale, to: &data,
            at: start + 4 * (first / scale * lanes.count + index),
            step: lanes.count)
        }
      }
    }
  }

  /// Copies one channel, or the mix, to the beginning of `lane`.
  private static func extract(
    _ channel: Int?, of channels: Int, from frames: Span<Int16>, to lane: inout [Int16], _ loops: PeakLoops
  ) {
    var target = lane.mutableSpan
    if channels == 2 {
      loops.extract(channel, ofStereo: frames, to: &target)
    } else if let channel {
      for frame in 0..<frames.count / channels { target[frame] = frames[frame &* channels &+ channel] }
    } else {
      var mix = InlineArray<256, Int16>(repeating: 0)
      for first in stride(from: 0, to: frames.count / channels, by: PeakKernel.pointFrames) {
        let count = min(PeakKernel.pointFrames, frames.count / channels - first)
        PeakKernel.downmix(
          frames.extracting(first * channels..<(first + count) * channels), channels: channels, to: &mix)
        for frame in 0..<count { target[first &+ frame] = mix[frame] }
      }
    }
  }
}
