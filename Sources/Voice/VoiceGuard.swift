import Glibc

// Where the networks harm. They were trained on speech, and take music, birds and machines for noise. So their result
// (V) is compared with the classical one (S) in each second and band:
//
//   weaker     V is weaker than S by 2 dB, and what noise may be left in S doesn't explain it, or by 6 dB:  S is kept
//   lost       most of the second is 6 dB weaker, as music is:  S is kept in all bands of this second
//   brought    with noise that the user marked, V is stronger than S, where S found only noise in a second:  S is kept
//   clean      S has removed next to nothing:  S is kept in all bands of this second
//
// What is kept is cross-faded over 200 ms, and over the neighboring bands.

/// The powers of a segment's seconds, by band, and what follows from them.
struct VoiceGuard {
  private static let bands = VoiceBands.count
  /// Sums over the spectral frames of each second.
  private var voice, classical, input: [Float]
  /// What the classical method has removed in each second.
  private var removed: [Float]
  private let seconds: Int

  /// What was found in a second.
  struct Verdict: Equatable, Sendable {
    /// How much of the classical result to keep in each band, 0 … 1.
    var kept: [Float]
    /// The share of the second's sound that is kept, and that because the networks would have lost it.
    var keptShare: Float = 0, lostShare: Float = 0
    /// Whether there is more than noise in the second.
    var hasSound = false
  }

  init(seconds: Int) {
    self.seconds = seconds
    voice = [Float](repeating: 0, count: seconds * Self.bands)
    classical = voice
    input = voice
    removed = [Float](repeating: 0, count: seconds)
  }

  /// Counts a spectral frame of a second.
  mutating func add(second: Int, voice: [Float], classical: [Float], input: [Float]) {
    let place = second * Self.bands
    VoiceBands.add(powerOf: voice, to: &self.voice, at: place)
    VoiceBands.add(powerOf: classical, to: &self.classical, at: place)
    VoiceBands.add(powerOf: input, to: &self.input, at: place)
    var sum: Float = 0
    for index in 0..<input.count {
      let difference = input[index] - classical[index]
      sum += difference * difference
    }
    removed[second] += sum
  }

  /// Decides for a second.
  /// - Parameter isMarked: whether the user has said what is noise.
  func verdict(second: Int, isMarked: Bool) -> Verdict {
    var verdict = Verdict(kept: [Float](repeating: 0, count: Self.bands))
    let own = second * Self.bands..<(second + 1) * Self.bands
    let (whole, left) = (input[own].reduce(0, +), classical[own].reduce(0, +))
    guard whole > 0, left > 0 else { return verdict }
    let foundInAll = Self.decibels(left / whole)
    verdict.hasSound = foundInAll > -14
    // Groups of four bands are enough to tell, and steadier.
    var lost: Float = 0
    for first in stride(from: 0, to: Self.bands, by: 4) {
      let group = own.lowerBound + first..<own.lowerBound + first + 4
      let (v, s, x) = (voice[group].reduce(0, +), classical[group].reduce(0, +), input[group].reduce(0, +))
      guard s > 0, x > 0 else { continue }
      let change = Self.decibels((v + 1e-20) / (s + 1e-20)), found = Self.decibels(s / x)
      // What the noise may have left in S, and V may lack: half of what S has removed. Beyond 6 dB, nothing excuses it.
      let excused = Self.decibels(max(0.32, 1 - 0.5 * max(0, x - s) / s))
      let hasSound = Self.ramp(found, from: -16, to: -12)
      let isWeaker = Self.ramp(change, from: excused - 1, to: excused - 2) * Self.ramp(found, from: -6, to: -2)
      let isLost = Self.ramp(change, from: -4, to: -6) * hasSound
      let isBrought = isMarked ? Self.ramp(change, from: 3, to: 6) * Self.ramp(foundInAll, from: -9, to: -12) : 0
      lost += isLost * s
      for band in first..<first + 4 { verdict.kept[band] = max(isWeaker, isBrought) }
    }
    verdict.lostShare = lost / left
    // If most is lost, so are the parts of the same sound in other bands.
    let isForeign = Self.ramp(verdict.lostShare, from: 0.4, to: 0.6)
    let isClean = Self.ramp(Self.decibels((removed[second] + 1e-30) / whole), from: -27, to: -31)
    let spread = verdict.kept
    var kept: Float = 0
    for band in 0..<Self.bands {
      let (below, above) = (spread[max(band - 1, 0)], spread[min(band + 1, Self.bands - 1)])
      verdict.kept[band] = max(isClean, isForeign, 0.25 * (below + above) + 0.5 * spread[band])
      kept += verdict.kept[band] * classical[own.lowerBound + band]
    }
    verdict.keptShare = kept / left
    return verdict
  }

  private static func decibels(_ ratio: Float) -> Float { 10 * log10f(ratio) }

  /// 0 at `from`, 1 at `to` and beyond.
  private static func ramp(_ value: Float, from: Float, to: Float) -> Float {
    min(1, max(0, (value - from) / (to - from)))
  }
}
