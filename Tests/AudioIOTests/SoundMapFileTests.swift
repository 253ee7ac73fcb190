import Foundation
import Randomness
import SoundFiles
import Terms
import Testing

@testable import AudioIO

/// Maps that are saved next to their sound file.
struct SoundMapFileTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private static func make(_ codec: AudioCodec, in folder: TemporaryFolder) throws -> [UInt8] {
    let container: AudioContainer = codec == .mp3 ? .mp3 : codec == .flacS16 ? .flac : .ogg
    let format = AudioFormat(container: container, codec: codec, sampleRate: 48_000, channels: 2)
    try encode(swell(frames: 150_000, channels: 2, sampleRate: 48_000), to: folder("made"), format)
    return try contents(folder("made"))
  }

  /// Sound files for every kind of map, encoded once for all tests.
  private static let made = Result { () throws -> [(name: String, bytes: [UInt8])] in
    let folder = try TemporaryFolder()
    let (mp3, vorbis) = (try make(.mp3, in: folder), try make(.vorbis, in: folder))
    let (opus, flac) = (try make(.opus, in: folder), try make(.flacS16, in: folder))
    let short = Array(flac[..<22]) + big(50_000, 4) + flac[26...]
    return [
      ("one.mp3", mp3), ("joined.mp3", mp3 + [1, 2, 3] + mp3), ("cut.mp3", Array(mp3.dropLast(100))),
      ("one.ogg", vorbis), ("cut.ogg", Array(vorbis.dropLast(100))), ("chained.ogg", opus + opus),
      ("mixed.ogg", vorbis + opus), ("one.flac", flac), ("short.flac", short),
      ("joined.flac", short + flac[1000...] + flac),
    ]
  }

  private func files() throws -> [String] { try Self.made.get().map { try folder.file($0.name, $0.bytes) } }

  /// Returns frames from several positions.
  private func decodeSome(_ path: String, _ map: SoundMap) throws -> [Int16] {
    var reader = try AudioReader(path: path, map: map)
    var samples: [Int16] = []
    let last = (reader.claimedFrames ?? 100_000) - 3000
    for frame in [0, 70_000, last] {
      try reader.seek(to: frame)
      _ = reader.readInt16(upTo: 2000) { span in for index in span.indices { samples.append(span[index]) } }
    }
    return samples
  }

  @Test func aStoredMapReadsBackEqual() throws {
    for path in try files() {
      let found = try SoundMap(path: path)
      #expect(found.isWorthKeeping)
      try found.keep(at: folder("map"))
      let kept = try #require(try SoundMap(path: path, keptAt: folder("map")), "\(path)")
      #expect(kept.findings == found.findings && kept.frames == found.frames)
      #expect(kept.streams.map(\.start) == found.streams.map(\.start))
      let equal = try decodeSome(path, kept) == decodeSome(path, found)
      #expect(equal, "\(path)")
      try kept.keep(at: folder("again"))
      #expect(try contents(folder("map")) == contents(folder("again")))
    }
    #expect(try !FileManager.default.contentsOfDirectory(atPath: folder.path).contains { $0.contains("map.") })
  }

  @Test func aMapOfAnotherFileVersionOrLengthIsRejected() throws {
    let bytes = try Self.made.get()[0].bytes
    let path = try folder.file("a.mp3", bytes)
    #expect(try SoundMap(path: path, keptAt: folder("none")) == nil)
    try SoundMap(path: path).keep(at: folder("map"))
    let longer = try folder.file("b.mp3", bytes + [0])
    #expect(try SoundMap(path: longer, keptAt: folder("map")) == nil)
    var map = try contents(folder("map"))
    map[8] += 1
    #expect(try SoundMap(path: path, keptAt: try folder.file("map", map)) == nil)
  }

  @Test func aDamagedMapIsRejected() throws {
    let path = try folder.file("a.mp3", try Self.made.get()[0].bytes)
    try SoundMap(path: path).keep(at: folder("map"))
    let map = try contents(folder("map"))
    for place in map.indices {
      var damaged = map
      damaged[place] ^= 0x10
      #expect(try SoundMap(path: path, keptAt: try folder.file("map", damaged)) == nil, "byte \(place)")
    }
    for length in [0, 1, 8, 31, 32, 40, map.count - 8, map.count - 1] {
      let cut = try folder.file("map", Array(map.prefix(length)))
      #expect(try SoundMap(path: path, keptAt: cut) == nil, "\(length) bytes")
    }
  }

  /// The checksum protects against accidents, not against attackers.
  @Test(arguments: 0..<10 as Range<UInt64>)
  func noMapContentTraps(seed: UInt64) throws {
    var generator = SeededGenerator(state: TestSeed.of(seed))
    let sound = try Self.made.get()[Int(seed)]
    let path = try folder.file(sound.name, sound.bytes)
    try SoundMap(path: path).keep(at: folder("map"))
    let map = try contents(folder("map"))
    let words = stride(from: 0, to: map.count, by: 8).map { start in
      map[start..<start + 8].reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    }
    var taken = 0
    for _ in 0..<150 {
      var changed = words
      for _ in 0..<Int.random(in: 1...2, using: &generator) {
        let place = Int.random(in: 4..<min(changed.count, 60), using: &generator)
        let values: [UInt64] = [0, 1, .max, changed[place] &+ 1, changed[place] &- 1, 1 << 40, 1 << 62]
        changed[place] = values.randomElement(using: &generator) ?? 0
      }
      changed[3] = changed[4...].reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ $1) &* 0x100_0000_01B3 }
      let hostile = try folder.file("hostile", changed.flatMap { little($0, 8) })
      guard let map = try SoundMap(path: path, keptAt: hostile) else { continue }
      taken += 1
      _ = try? decodeSome(path, map)
    }
    #expect(taken < 150)
  }
}

extension SoundMap {
  /// Reads the map that is stored at a path; nil if there is none.
  fileprivate init?(path: String, keptAt kept: String) throws(AudioIOError) {
    let descriptor = unsafe open(kept, O_RDONLY)
    defer { close(descriptor) }
    try self.init(path: path, keptIn: descriptor)
  }
}
