import Foundation

/// Samples of several channels, ±1, and their conversion to a file.
struct Sound {
  var rate: Int
  /// One array per channel, all with the same length.
  var channels: [[Double]]

  var frames: Int { channels.first?.count ?? 0 }
  var seconds: Double { Double(frames) / Double(rate) }

  /// The samples as 16-bit integers, interleaved.
  var samples16: [Int16] {
    var samples: [Int16] = []
    samples.reserveCapacity(frames * channels.count)
    for frame in 0..<frames {
      for channel in channels { samples.append(Int16((channel[frame] * 32767).rounded())) }
    }
    return samples
  }

  /// One channel's samples between two times.
  func part(_ channel: Int, _ start: Double, _ end: Double) -> ArraySlice<Double> {
    channels[channel][Int(start * Double(rate))..<min(Int(end * Double(rate)), frames)]
  }
}

/// Uniform noise that is the same in every run, from a 64-bit linear congruential generator (Knuth's constants).
struct NoiseGenerator {
  private var state: UInt64

  init(seed: Int) { state = UInt64(truncatingIfNeeded: seed) &* 0x9E37_79B9_7F4A_7C15 | 1 }

  /// −1 … 1.
  mutating func next() -> Double {
    state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
    return Double(Int64(bitPattern: state)) / 0x1p63
  }
}

extension Sound {
  /// A clip to judge a denoiser by: only noise in the first 1.5 s and the last second, in between with `voice` over it.
  ///
  /// Every channel has its own noise at −34 dBFS; `voice` is called with the time and the channel.
  static func noisy(
    rate: Int, channels: Int, seconds: Double = 4.5, level: Double = 0.035, voice: (Double, Int) -> Double
  ) -> Sound {
    let frames = Int(seconds * Double(rate))
    return Sound(
      rate: rate,
      channels: (0..<channels).map { channel in
        var noise = NoiseGenerator(seed: channel + 1)
        return (0..<frames).map { frame in
          let time = Double(frame) / Double(rate)
          let isVoiced = time >= 1.5 && time < seconds - 1
          return noise.next() * level + (isVoiced ? voice(time, channel) : 0)
        }
      })
  }

  /// A steady tone, different on each channel.
  static func tone(_ time: Double, _ channel: Int) -> Double {
    0.3 * sin(2 * .pi * toneHertz(channel) * time)
  }

  static func toneHertz(_ channel: Int) -> Double { 440 + 110 * Double(channel) }

  /// 200 to 2,000 Hz over the course of the clip.
  static func sweep(_ time: Double, _ channel: Int) -> Double {
    0.3 * sin(2 * .pi * (200 * time + 200 * time * time))
  }

  static func silence(rate: Int, channels: Int, seconds: Double = 4.5) -> Sound {
    let frames = Int(seconds * Double(rate))
    return Sound(rate: rate, channels: .init(repeating: .init(repeating: 0, count: frames), count: channels))
  }

  /// Full-scale clicks in silence, and both ends of the range: no noise to learn from, and everything to get wrong.
  static func clicks(rate: Int, channels: Int) -> Sound {
    var sound = silence(rate: rate, channels: channels)
    for channel in 0..<channels {
      for frame in stride(from: channel, to: sound.frames, by: 1013) {
        sound.channels[channel][frame] = frame % 2 == 0 ? 1 : -1
      }
    }
    return sound
  }
}

/// Energy and similarity in decibels.
enum Loudness {
  /// Mean power relative to full scale; −200 for digital silence.
  static func decibels(_ samples: ArraySlice<Double>) -> Double {
    let power = samples.reduce(0) { $0 + $1 * $1 } / Double(max(samples.count, 1))
    return power > 1e-20 ? 10 * log10(power) : -200
  }

  static func decibels(_ samples: [Double]) -> Double { decibels(samples[...]) }

  /// The level of a single frequency: the projection on its sine and cosine.
  static func decibels(_ samples: ArraySlice<Double>, atHertz hertz: Double, rate: Int) -> Double {
    var (real, imaginary) = (0.0, 0.0)
    for (index, sample) in samples.enumerated() {
      let angle = 2 * .pi * hertz * Double(index) / Double(rate)
      real += sample * cos(angle)
      imaginary += sample * sin(angle)
    }
    let amplitude = 2 * (real * real + imaginary * imaginary).squareRoot() / Double(max(samples.count, 1))
    return 20 * log10(max(amplitude, 1e-10))
  }

  /// The energy of `reference` over that of the difference.
  static func signalToNoise(_ samples: [Double], reference: [Double]) -> Double {
    let difference = zip(samples, reference).map { $0 - $1 }
    return decibels(Array(reference.prefix(difference.count))) - decibels(difference)
  }
}
