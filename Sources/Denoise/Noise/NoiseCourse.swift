import CKernels
import Glibc

// Noise that differs from place to place. Part i was learned from the frames from start_i up to end_i, and t is a frame
// of the recording:
//
//   λ[t]     = λ_1                                      before the end of the first part
//   log λ[t] = (1 − s) log λ_i + s log λ_i+1            between two parts, s = (t − end_i) / (start_i+1 − end_i)
//   λ[t]     = λ_n                                      from the start of the last part on
//
// so that within a part, λ is its own. An analysis frame has the λ of its middle. t is counted from the recording's
// start, so a window has the bits of the whole, and one part alone has those of its profile.

/// The noise of a recording over time: one profile, or several that are cross-faded in logarithmic power.
package struct NoiseCourse: Sendable, Equatable {
  /// A profile and where it was learned.
  package struct Part: Sendable, Equatable {
    /// The noise.
    package let profile: NoiseProfile
    /// Frames of the recording.
    package let frames: Range<Int64>

    /// Creates a part.
    package init(_ profile: NoiseProfile, at frames: Range<Int64>) { (self.profile, self.frames) = (profile, frames) }
  }

  /// At least one, in ascending order; they don't overlap, and their profiles have the same rate and channels.
  package let parts: [Part]

  /// Creates noise that is the same everywhere.
  package init(_ profile: NoiseProfile) { parts = [Part(profile, at: 0..<0)] }

  /// Creates noise from parts; see `parts`.
  package init(_ parts: [Part]) {
    precondition(!parts.isEmpty, "noise has a profile")
    for (part, next) in zip(parts, parts.dropFirst()) {
      precondition(part.frames.upperBound <= next.frames.lowerBound, "parts are in order")
      precondition(
        part.profile.sampleRate == next.profile.sampleRate && part.profile.power.count == next.profile.power.count,
        "all profiles have the same rate and channels")
    }
    self.parts = parts
  }

  /// The mean of the profiles, by the number of frames that each was learned from.
  package var mean: NoiseProfile {
    guard parts.count > 1 else { return parts[0].profile }
    let total = Float(parts.reduce(0) { $0 + $1.frames.count })
    var power = parts[0].profile.power.map { [Float](repeating: 0, count: $0.count) }
    for part in parts {
      let share = Float(part.frames.count) / max(total, 1)
      for channel in power.indices {
        for bin in power[channel].indices { power[channel][bin] += share * part.profile.power[channel][bin] }
      }
    }
    return NoiseProfile(power: power, sampleRate: parts[0].profile.sampleRate)
  }

  /// Returns the noise of some of the channels.
  func ofChannels(_ channels: [Int]) -> NoiseCourse {
    NoiseCourse(
      parts.map { part in
        let power = channels.map { part.profile.power[$0] }
        let steadiness = channels.map { part.profile.steadiness[$0] }
        let liveliness = channels.map { part.profile.liveliness[$0] }
        return Part(
          NoiseProfile(
            power: power, steadiness: steadiness, liveliness: liveliness, sampleRate: part.profile.sampleRate),
          at: part.frames)
      })
  }
}

/// λ of the analysis frames of a denoiser, summed over its channels.
struct FrameNoise: Sendable {
  /// Where a frame is: in a part, or this share of the way from one to the next.
  enum Place: Equatable {
    case part(Int)
    case between(Int, share: Float)
  }

  /// The least λ of a bin with noise. Less is none: it would be 120 dB below one step of 16 bits.
  private static let least: Float = 1e-14

  /// λ of each part; 0 in bins that have no noise in any part.
  let levels: [[Float]]
  /// 1 / 4λ of each part, or 0 if a bin has no noise; γ is then `bias`. The 4 comes from `pair_power`.
  private let inverse: [[Float]]
  private let bias: [Float]
  /// The octaves from λ of each part to the next one's.
  private let steps: [[Float]]
  /// How much of each part is hiss, from 0 to 1.
  private let hiss: [Float]
  /// How lively the noise of each part was, 0 if that isn't known; see PauseGate.swift.
  private let liveliness: [Float]
  /// Samples of each channel.
  private let places: [Range<Int64>]
  private let hop: Int64

  /// - Parameters:
  ///   - levels: λ of each part, at least 0.
  ///   - hiss: how much of each part is hiss, from 0 to 1; nil for none.
  ///   - liveliness: of each part; nil if it isn't known.
  ///   - places: frames of the recording where each part was learned.
  ///   - hop: of the analysis frames.
  init(
    _ levels: [[Float]], hiss: [Float]? = nil, liveliness: [Float]? = nil, at places: [Range<Int64>], hop: Int
  ) {
    let bins = levels[0].indices
    let isNoisy = bins.map { bin in levels.contains { $0[bin] > Self.least } }
    let bounded = levels.map { level in bins.map { isNoisy[$0] ? max(level[$0], Self.least) : 0 } }
    self.levels = bounded
    inverse = bounded.map { $0.map { $0 > 0 ? 0.25 / $0 : 0 } }
    bias = isNoisy.map { $0 ? 0 : PriorSNR.largestPosterior }
    steps = zip(bounded, bounded.dropFirst()).map { level, next in
      bins.map { isNoisy[$0] ? log2(next[$0] / level[$0]) : 0 }
    }
    self.hiss = hiss ?? [Float](repeating: 0, count: levels.count)
    self.liveliness = liveliness ?? [Float](repeating: 0, count: levels.count)
    self.places = places
    self.hop = Int64(hop)
  }

  /// Creates noise that is the same everywhere.
  init(_ level: [Float], hiss: Float = 0) { self.init([level], hiss: [hiss], at: [0..<0], hop: 1) }

  /// Whether a bin has any noise.
  func hasNoise(inBin bin: Int) -> Bool { levels[0][bin] > 0 }

  func place(of frame: Int64) -> Place {
    // The frame covers the hops frame − 3 … frame.
    let middle = (frame - 1) * hop
    guard let next = places.indices.dropFirst().first(where: { middle < places[$0].lowerBound }) else {
      return .part(places.count - 1)
    }
    let (start, end) = (places[next - 1].upperBound, places[next].lowerBound)
    guard middle > start else { return .part(next - 1) }
    return .between(next - 1, share: Float(middle - start) / Float(end - start))
  }

  /// Returns how much of a frame's noise is hiss, from 0 to 1.
  func hiss(of frame: Int64) -> Float { value(hiss, of: frame) }

  /// Returns how lively a frame's noise is; see PauseGate.swift.
  func liveliness(of frame: Int64) -> Float { value(liveliness, of: frame) }

  private func value(_ values: [Float], of frame: Int64) -> Float {
    switch place(of: frame) {
    case .part(let part): values[part]
    case .between(let part, let share): values[part] + share * (values[part + 1] - values[part])
    }
  }

  /// Turns a frame's power, four times |Y|² summed over the channels, into γ.
  func makePosterior(_ power: Row, of frame: Int64, _ workspace: Workspace) {
    let (bins, largest) = (bias.count, PriorSNR.largestPosterior)
    switch place(of: frame) {
    case .part(let part): unsafe loops.posterior(power, inverse[part], bias, largest, bins)
    case .between(let part, let share):
      let (ratio, octaves) = unsafe (workspace.scratch[0], workspace.scratch[1])
      // The limit applies to the result.
      unsafe loops.posterior(power, inverse[part], bias, 1e30, bins)
      unsafe ratio.update(from: power, count: bins)
      let step = steps[part]
      for bin in 0..<bins { unsafe octaves[bin] = share * step[bin] }
      unsafe loops.rescale(power, ratio, octaves, largest, bins)
    }
  }

  /// Returns λ of a frame, divided by its sum; all 0 without any noise.
  func weights(of frame: Int64) -> [Float] {
    let level =
      switch place(of: frame) {
      case .part(let part): levels[part]
      case .between(let part, let share):
        levels[part].indices.map { levels[part][$0] * exp2(share * steps[part][$0]) }
      }
    let total = level.reduce(0.0) { $0 + Double($1) }
    return level.map { total > 0 ? Float(Double($0) / total) : 0 }
  }
}
