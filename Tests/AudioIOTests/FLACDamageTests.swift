import SoundFiles
import Terms
import Testing

@testable import AudioIO

/// FLAC files damaged in the middle: the sound after the damage is still there, in its place.
struct FLACDamageTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  enum Damage: String, CaseIterable {
    case flippedBit, zeroes, foreignBytes, missingBytes, addedBytes

    func done(to bytes: [UInt8], at place: Int) -> [UInt8] {
      var bytes = bytes
      switch self {
      case .flippedBit: bytes[place] ^= 0x10
      case .zeroes: bytes.replaceSubrange(place..<place + 20_000, with: repeatElement(0, count: 20_000))
      case .foreignBytes: bytes.replaceSubrange(place..<place + 500, with: repeatElement(0x55, count: 500))
      case .missingBytes: bytes.removeSubrange(place..<place + 700)
      case .addedBytes: bytes.insert(contentsOf: repeatElement(0xFF, count: 300), at: place)
      }
      return bytes
    }
  }

  private static let blockSize = 4096

  /// Makes a stereo file; returns its bytes and samples.
  private func make(_ codec: AudioCodec, frames: Int = 100_000) throws -> (bytes: [UInt8], samples: [Int16]) {
    let format = AudioFormat(container: .flac, codec: codec, sampleRate: 44_100, channels: 2)
    let path = folder("made")
    try encode(swell(frames: frames, channels: 2, sampleRate: 44_100, peak: 0.9), to: path, format)
    return (try contents(path), try decode(path))
  }

  /// Returns all samples, and the number of frames that the reader reports as lost.
  private func read(_ path: String, workers: Int = 1) throws -> (samples: [Int16], lost: Int64) {
    var reader = SegmentedReader(
      try AudioReader(path: path), path: path, workers: workers, segmentFrames: 12_345
    ) { CollectedSegment() }
    var samples: [Int16] = []
    while reader.read(
      { span in for index in span.indices { samples.append(span[index]) } }, result: { samples += $0.samples }) > 0
    {}
    return (samples, reader.lostFrames)
  }

  @Test(
    "blocks that can't be decoded become silence, and all others are unchanged",
    arguments: Damage.allCases, [AudioCodec.flacS16, .flacS24])
  func blocks(damage: Damage, codec: AudioCodec) throws {
    let (bytes, samples) = try make(codec)
    for place in stride(from: 20_001, to: bytes.count - 40_000, by: bytes.count / 5) {
      let path = try folder.file("damaged", damage.done(to: bytes, at: place))
      let (found, lost) = try read(path)
      try #require(found.count == samples.count, "\(damage) at \(place)")
      var lostBlocks = 0
      for start in stride(from: 0, to: samples.count, by: Self.blockSize * 2) {
        let range = start..<min(start + Self.blockSize * 2, samples.count)
        if found[range] == samples[range] { continue }
        lostBlocks += 1
        #expect(found[range].allSatisfy { $0 == 0 }, "\(damage) at \(place), sample \(start)")
      }
      #expect(lostBlocks >= 1 && lost == lostBlocks * Self.blockSize, "\(damage) at \(place)")
      // Reading from elsewhere yields the same samples.
      for frame in stride(from: Int64(1000), to: 100_000, by: 3777) {
        let rest = try decode(path, from: frame)
        #expect(rest == Array(found[(Int(frame) * 2)...]), "\(damage) at \(place), from frame \(frame)")
      }
      let parallel = try read(path, workers: 2)
      #expect(parallel.samples == found && parallel.lost == lost)
    }
  }

  @Test("several damaged places become several silences")
  func places() throws {
    var (bytes, samples) = try make(.flacS16)
    for place in stride(from: 30_000, to: bytes.count - 30_000, by: 60_000) { bytes[place] ^= 1 }
    let (found, lost) = try read(try folder.file("damaged", bytes))
    #expect(found.count == samples.count)
    let silent = stride(from: 0, to: samples.count, by: Self.blockSize * 2).count { start in
      found[start..<min(start + Self.blockSize * 2, found.count)].allSatisfy { $0 == 0 }
    }
    #expect(silent > 2 && lost == silent * Self.blockSize)
  }

  @Test("if nothing after the damage can be decoded, the sound ends there")
  func end() throws {
    let (bytes, samples) = try make(.flacS16)
    let noise = (0..<bytes.count - 60_000).map { UInt8(truncatingIfNeeded: $0 &* 7 % 251) }
    let (found, lost) = try read(try folder.file("damaged", bytes.prefix(60_000) + noise))
    #expect(lost == 0 && found.count > 0 && found.count < samples.count)
    #expect(found == Array(samples.prefix(found.count)))
  }
}
