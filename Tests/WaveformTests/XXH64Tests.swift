import Testing

@testable import Waveform

struct XXH64Tests {
  /// Computed with libxxhash 0.8.1 for words wᵢ = 0x1122334455667788 + i·0x0102030405060708.
  private static let known: [(count: Int, seed: UInt64, hash: UInt64)] = [
    (0, 0, 0xef46_db37_51d8_e999), (0, 7, 0x95f0_626f_6f0a_4409),
    (1, 0, 0x7d38_3ebd_f158_0e8c), (1, 7, 0x1edb_3125_151b_884d),
    (3, 0, 0x9ffa_5495_83fe_651f), (3, 7, 0x093c_396a_fac3_92a4),
    (4, 0, 0x4371_18cb_53a0_706a), (4, 7, 0x5e88_7fd4_a375_3d96),
    (5, 0, 0x4a48_27de_fdbb_3106), (5, 7, 0x98ee_c8cf_255e_a01f),
    (8, 0, 0xf25b_8de3_3bdd_0af2), (8, 7, 0x7ff0_ffdc_c988_62f9),
    (511, 0, 0x7e2e_e023_f6c5_6fc7), (511, 7, 0x3248_991e_a122_e669),
  ]

  @Test(arguments: known.indices)
  func itMatchesTheLibrarysHash(index: Int) {
    let (count, seed, hash) = Self.known[index]
    let words = (0..<count).map { (0x1122_3344_5566_7788 &+ UInt64($0) &* 0x0102_0304_0506_0708).littleEndian }
    #expect(XXH64.hash(words.span, seed: seed) == hash)
  }
}
