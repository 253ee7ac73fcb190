import CVoice
import Foundation
import Processing
import Terms
import Testing
import Workers

@testable import Voice

/// The networks in C, with made-up weights and with those that are installed.
@Suite struct VoiceNetworksTests {
  /// Numbers in −1 … 1 that are the same everywhere.
  private static func numbers(_ count: Int, seed: UInt32, scale: Float = 1) -> [Float] {
    var state = seed
    return (0..<count).map { _ in
      state = state &* 1_664_525 &+ 1_013_904_223
      return Float(Int32(state >> 8) - 8_388_608) / 8_388_608 * scale
    }
  }

  /// Takes seven frames through the networks, the same for `count` sounds; returns the results of the last sound.
  private func results(_ networks: voice_networks, _ weights: [Float], count: Int) -> [Float] {
    let features = Self.numbers(7 * 224, seed: 7)
    let streams = UnsafeMutableRawPointer.allocate(
      byteCount: count * MemoryLayout<voice_stream>.stride, alignment: MemoryLayout<voice_stream>.alignment)
    unsafe streams.initializeMemory(as: UInt8.self, repeating: 0, count: count * MemoryLayout<voice_stream>.stride)
    var frames = [Float](repeating: 0, count: count * 1216)
    defer { unsafe streams.deallocate() }
    var results: [Float] = []
    for frame in 0..<7 {
      for sound in 0..<count {
        frames.replaceSubrange(sound * 1216..<sound * 1216 + 224, with: features[frame * 224..<(frame + 1) * 224])
      }
      unsafe frames.withUnsafeMutableBytes { bytes in
        unsafe weights.withUnsafeBufferPointer { weights in
          guard let first = bytes.baseAddress, let weights = weights.baseAddress else { return }
          unsafe networks(
            streams.assumingMemoryBound(to: voice_stream.self), first.assumingMemoryBound(to: voice_frame.self), count,
            weights)
        }
      }
      results += frames[((count - 1) * 1216 + 224)...]
    }
    return results
  }

  /// FNV-1a.
  private func digest(_ numbers: [Float]) -> UInt64 {
    numbers.reduce(1_469_598_103_934_665_603) { digest, number in
      (0..<4).reduce(digest) { ($0 ^ UInt64(number.bitPattern >> (8 * UInt32($1)) & 0xFF)) &* 1_099_511_628_211 }
    }
  }

  @Test("all instruction sets give the same bits, however many sounds go side by side")
  func bits() {
    let weights = Self.numbers(VoiceWeights.count, seed: 1, scale: 0.0625)
    var index: Int32 = 0
    while let networks = unsafe voice_of_set(index) {
      for count in [1, 3, 5] {
        let digest = digest(unsafe results(networks, weights, count: count))
        #expect(digest == 0x62d_38bd_3bc9_9cf2, "set \(index), \(count) sounds")
      }
      index += 1
    }
  }

  /// The gains are those of ONNX Runtime 1.32 with weights of 32 bits; 16 bits differ by at most 0.0017 here.
  @Test(
    "with the installed weights, the networks agree with ONNX Runtime",
    .enabled(if: VoiceFile.isInstalled(at: VoiceFile.usualPath)))
  func installed() throws {
    let weights = try VoiceWeights(path: VoiceFile.usualPath)
    let numbers = unsafe Array(UnsafeBufferPointer(start: weights.address, count: VoiceWeights.count))
    let all = unsafe results(voice_best(), numbers, count: 1)
    #expect(digest(all) == 0x4766_b1e2_9b8f_0c1a)
    let last = all.suffix(992)
    let gains: [Float] = [0.20134, 0.34724, 0.46962, 0.08417, 0.19719, 0.08072, 0.51563, 0.45571]
    for (gain, expected) in zip(last, gains) { #expect(abs(gain - expected) < 0.002) }
    let taps: [Float] = [0.003386, 0.000058, 0.009080, 0.000846, 0.037989, 0.000851]
    for (tap, expected) in zip(last.dropFirst(32), taps) { #expect(abs(tap - expected) < 0.0005) }
  }

  @Test("numbers of 16 bits are converted exactly")
  func halves() {
    let cases: [(UInt16, Float)] = [
      (0, 0), (0x8000, -0.0), (1, 0x1p-24), (0x83ff, -0x1.ff8p-15), (0x0400, 0x1p-14), (0x3c00, 1),
      (0xbc01, -1.000_976_6),
      (0x7bff, 65_504),
    ]
    let bytes = cases.flatMap { [UInt8($0.0 & 0xFF), UInt8($0.0 >> 8)] }
    var numbers = [Float](repeating: .nan, count: cases.count)
    unsafe voice_expand(&numbers, bytes, cases.count)
    #expect(numbers.map(\.bitPattern) == cases.map(\.1.bitPattern))
  }
}

/// The file of weights.
@Suite struct VoiceWeightsTests {
  private let folder = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)

  init() throws { try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true) }

  /// A file of zeros with its right digest, changed by `change`.
  private func error(_ change: (inout Data) -> Void) throws -> VoiceError? {
    var file = Data("SWVW".utf8) + [1, 0, 0, 0] + Data(VoiceWeights.version.utf8)
    file += Data(count: 32 - file.count)
    // The SHA-256 of as many zeros.
    file += Data(Self.digestOfZeros) + Data(count: 2 * VoiceWeights.count)
    change(&file)
    let path = folder.appendingPathComponent("weights").path
    defer { try? FileManager.default.removeItem(at: folder) }
    try file.write(to: URL(fileURLWithPath: path))
    do throws(VoiceError) { _ = try VoiceWeights(path: path) } catch { return error }
    return nil
  }

  private static let digestOfZeros: [UInt8] = [
    0x36, 0x9a, 0xd5, 0x94, 0x81, 0xe8, 0x1f, 0x6c, 0x9e, 0xe0, 0x47, 0xd0, 0x2c, 0xed, 0x07, 0x06,
    0x5a, 0x41, 0x86, 0xe5, 0x75, 0x73, 0xaf, 0x8f, 0xbe, 0x1e, 0x00, 0x1a, 0x03, 0x69, 0xbc, 0xf4,
  ]

  private func path(_ error: VoiceError?) -> String {
    switch error {
    case .damaged: "damaged"
    case .otherVersion(_, let found): "version \(found ?? "none")"
    case .missing: "missing"
    case .noResampler: "no resampler"
    case nil: "fine"
    }
  }

  /// A change of a file.
  enum Change: Sendable {
    case none, flip(Int), set(Int, UInt8), cut(Int), append
  }

  @Test(
    "a file that isn't the one that the program needs is refused, with the reason",
    arguments: [
      ("fine", Change.none), ("damaged", .flip(70)), ("damaged", .flip(40)), ("damaged", .cut(1)), ("damaged", .append),
      ("version none", .set(0, 0)), ("version none", .cut(2 * VoiceWeights.count + 24)),
      ("version deepfilternet4-1", .set(21, UInt8(ascii: "4"))), ("version deepfilternet3-1", .set(4, 2)),
    ])
  func refusal(expected: String, change: Change) throws {
    let error = try error { file in
      switch change {
      case .none: break
      case .flip(let place): file[place] ^= 1
      case .set(let place, let byte): file[place] = byte
      case .cut(let count): file.removeLast(count)
      case .append: file.append(0)
      }
    }
    #expect(path(error) == expected)
  }

  @Test("without the file, the failure names the command that installs it")
  func missing() {
    #expect(throws: VoiceError.missing(path: "/nowhere")) { try VoiceWeights(path: "/nowhere") }
    for error in [
      VoiceError.missing(path: "p"), .damaged(path: "p"), .otherVersion(path: "p", found: "1"), .noResampler,
    ] {
      let failure = WorkerFailure(.voice(error))
      #expect(failure.code == "method_unavailable" && failure.detail.contains("deploy/install voice"))
    }
  }
}
