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

  func rms(_ lane: [Int], scale: Int, pixels: Range<Int>) -> [Double] {
    pixels.map { pixel in
      let part = lane[range(pixel, scale)]
      return (part.reduce(0.0) { $0 + Double($1 * $1) } / Double(part.count)).squareRoot()
    }
  }

  func average(_ lane: [Int], scale: Int, pixels: Range<Int>) -> [Double] {
    pixels.map { pixel in
      let part = lane[range(pixel, scale)]
      return part.reduce(0.0) { $0 + Double(abs($1)) } / Double(part.count)
    }
  }

  /// audiowaveform's file: version, flags (1 = 8 bits), rate, scale, length, in version 2 channels; then the peaks.
  func dat(_ lanes: [[Int]], scale: Int, bits: Int, version: Int) -> [UInt8] {
    let length = length(scale)
    var numbers = [version, bits == 8 ? 1 : 0, rate, scale, length]
    if version == 2 { numbers.append(lanes.count) }
    let values = peaks(lanes, scale: scale, pixels: 0..<length, bits: bits)
    return numbers.flatMap { littleEndian(Int32($0)) }
      + values.flatMap { bits == 8 ? [UInt8(bitPattern: Int8($0))] : littleEndian(UInt16(bitPattern: Int16($0))) }
  }
}
