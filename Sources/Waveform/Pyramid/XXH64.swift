// XXH64, a fast 64-bit hash against corruption on disk. It doesn't protect against forgery.
//
// Source: https://github.com/Cyan4973/xxHash/blob/dev/doc/xxhash_spec.md, section "XXH64". Only for whole little-endian
// 64-bit words x₀ … xₙ₋₁, so the steps for 4 bytes and for single bytes are omitted. With all arithmetic modulo 2^64, ⋘
// a rotation to the left, and round(a, x) = ((a + x·P2) ⋘ 31)·P1:
//
//   n ≥ 4:  a₁ = seed + P1 + P2, a₂ = seed + P2, a₃ = seed, a₄ = seed − P1; each group of four words updates the four
//           accumulators, aᵢ = round(aᵢ, x); then h = (a₁ ⋘ 1) + (a₂ ⋘ 7) + (a₃ ⋘ 12) + (a₄ ⋘ 18), and for each aᵢ
//           h = (h ⊕ round(0, aᵢ))·P1 + P4
//   n < 4:  h = seed + P5
//   then    h += 8n; for each remaining word h = ((h ⊕ round(0, x)) ⋘ 27)·P1 + P4
//   last    h = (h ⊕ h ≫ 33)·P2; h = (h ⊕ h ≫ 29)·P3; h ⊕ h ≫ 32
//
// A word is only transformed by bijections (P1 and P2 are odd), so a single wrong word always changes its accumulator.

enum XXH64 {
  private static let prime1: UInt64 = 0x9e37_79b1_85eb_ca87
  private static let prime2: UInt64 = 0xc2b2_ae3d_27d4_eb4f
  private static let prime3: UInt64 = 0x1656_67b1_9e37_79f9
  private static let prime4: UInt64 = 0x85eb_ca77_c2b2_ae63
  private static let prime5: UInt64 = 0x27d4_eb2f_1656_67c5

  /// Returns the hash of little-endian words.
  static func hash(_ words: Span<UInt64>, seed: UInt64 = 0) -> UInt64 {
    var index = 0
    var hash = seed &+ prime5
    if words.count >= 4 {
      var (first, second, third, fourth) = (seed &+ prime1 &+ prime2, seed &+ prime2, seed, seed &- prime1)
      while index + 4 <= words.count {
        first = round(first, UInt64(littleEndian: words[index]))
        second = round(second, UInt64(littleEndian: words[index + 1]))
        third = round(third, UInt64(littleEndian: words[index + 2]))
        fourth = round(fourth, UInt64(littleEndian: words[index + 3]))
        index += 4
      }
      hash = rotate(first, 1) &+ rotate(second, 7) &+ rotate(third, 12) &+ rotate(fourth, 18)
      hash = merge(merge(merge(merge(hash, first), second), third), fourth)
    }
    hash &+= UInt64(words.count) &* 8
    while index < words.count {
      hash = rotate(hash ^ round(0, UInt64(littleEndian: words[index])), 27) &* prime1 &+ prime4
      index += 1
    }
    hash = (hash ^ hash >> 33) &* prime2
    hash = (hash ^ hash >> 29) &* prime3
    return hash ^ hash >> 32
  }

  @inline(__always)
  private static func round(_ accumulator: UInt64, _ word: UInt64) -> UInt64 {
    rotate(accumulator &+ word &* prime2, 31) &* prime1
  }

  @inline(__always)
  private static func merge(_ hash: UInt64, _ accumulator: UInt64) -> UInt64 {
    (hash ^ round(0, accumulator)) &* prime1 &+ prime4
  }

  @inline(__always)
  private static func rotate(_ value: UInt64, _ count: UInt64) -> UInt64 {
    value &<< count | value &>> (64 &- count)
  }
}
