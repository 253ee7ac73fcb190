/// The expected values of a slice, computed from the samples as simply (and slowly) as possible.
struct ExpectedWaveform {
  let rate: Int
  let channels: Int
  /// Interleaved samples.
  let samples: [Int16]

  var frames: Int { samples.count / channels }

  init(_ sound: Sound) { (rate, channels, samples) = (sound.rate, sound.channels.count, sound.samples16) }

  /// The sum of the channels divided by their number, toward zero, frame by frame.
  var mix: [Int] {
    (0..<frames).map { frame in (0..<channels).reduce(0) { $0 + Int(samples[frame * channels + $1]) } / channels }
  }

  func channel(_ number: Int) -> [Int] { (0..<frames).map { Int(samples[$0 * channels + number]) } }

  /// The frames of a pixel: whole points of 256 frames at that scale and above, exactly `scale` frames below.
  private func range(_ pixel: Int, _ scale: Int) -> Range<Int> {
    guard scale >= 256 else { return pixel * scale..<min((pixel + 1) * scale, frames) }
    return pixel * scale / 256 * 256..<min((pixel + 1) * scale / 256 * 256, frames)
  }

  func length(_ scale: Int) -> Int {
    guard scale >= 256 else { return (frames + scale - 1) / scale }
    return ((frames + 255) / 256 * 256 + scale - 1) / scale
  }

  /// The minimum and maximum of every pixel in `pixels`, by lane within a pixel.
  func peaks(_ lanes: [[Int]], scale: Int, pixels: Range<Int>, bits: Int = 16) -> [Int] {
    pixels.flatMap { pixel in
      lanes.flatMap { lane in
        let part = lane[range(pixel, scale)]
        return [part.min() ?? 0, part.max() ?? 0].map { bits == 8 ? $0 / 256 : $0 }
      }
    }
  }
}
