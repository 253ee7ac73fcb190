import SoundFiles
import Terms
import Testing

@testable import AudioIO

/// Files that libsndfile alone decodes only partially or not at all.
struct SoundMapTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func make(
    _ codec: AudioCodec, rate: Int = 48_000, channels: Int = 1, frames: Int, peak: Float = 0.5
  ) throws -> (bytes: [UInt8], samples: [Int16]) {
    let container: AudioContainer = codec == .mp3 ? .mp3 : .ogg
    let format = AudioFormat(container: container, codec: codec, sampleRate: rate, channels: channels)
    let path = folder("made-\(codec)-\(rate)-\(channels)-\(frames)-\(peak)")
    try encode(swell(frames: frames, channels: channels, sampleRate: rate, peak: peak), to: path, format)
    return (try contents(path), try decode(path))
  }

  /// Makes an MP3 with a variable bit rate: a swell followed by near silence.
  private func makeVarying(rate: Int, channels: Int, frames: Int) throws -> (bytes: [UInt8], samples: [Int16]) {
    let format = AudioFormat(container: .mp3, codec: .mp3, sampleRate: rate, channels: channels)
    let samples =
      swell(frames: frames / 4, channels: channels, sampleRate: rate)
      + [Float](repeating: 0, count: (frames - frames / 4) * channels)
    try encode(samples, to: folder("varying"), format)
    return (try contents(folder("varying")), try decode(folder("varying")))
  }

  /// Removes the frame that counts the others.
  private func withoutCount(_ bytes: [UInt8]) throws -> [UInt8] {
    Array(bytes.dropFirst(try #require(header(bytes)).length))
  }

  private func header(_ bytes: [UInt8]) -> MPEGFrameHeader? {
    MPEGFrameHeader(bytes[0..<4].reduce(UInt32(0)) { $0 << 8 | UInt32($1) })
  }

  /// Decodes the whole file, then from several positions; every seek must give the same samples as decoding from the
  /// start.
  private func decodeSeeking(_ path: String) throws -> [Int16] {
    let (whole, channels) = (try decode(path), try format(of: path).channels)
    var reader = try AudioReader(path: path)
    let frames = whole.count / channels
    for frame in [0, frames / 3, frames / 2 - 1, frames - 1, 1, frames / 2 + 1000, frames * 2 / 3, frames - 3000]
    where frame >= 0 {
      try reader.seek(to: Int64(frame))
      var some: [Int16] = []
      while some.count < 40_000,
        reader.readInt16(upTo: 9000, { span in for index in span.indices { some.append(span[index]) } }) > 0
      {}
      let agrees = !some.isEmpty && whole[(frame * channels)...].starts(with: some)
      #expect(agrees, "from frame \(frame)")
    }
    return whole
  }

  // MARK: WAV

  @Test func aWaveFileLeftByACrashIsReadToItsEnd() throws {
    let samples = (0..<5000).map { Int16($0) }
    let path = try folder.file(
      "a", riff(chunk("LIST", [1, 2, 3]) + waveFormat() + chunk("data", bytes(samples), claiming: 0)))
    #expect(try decode(path) == samples)
    #expect(try decode(path, from: 4321) == Array(samples[4321...]))
  }

  @Test(arguments: [AudioCodec.gsm610, .imaADPCM])
  func paddingCountedAsSoundIsNoBlock(codec: AudioCodec) throws {
    let format = AudioFormat(container: .wav, codec: codec, sampleRate: 8000, channels: 1)
    try encode(swell(frames: 960, channels: 1, sampleRate: 8000), to: folder("a"), format)
    var bytes = try contents(folder("a"))
    let data = try #require(bytes.indices.first { bytes[$0...].starts(with: "data".utf8) })
    let size = Int(bytes[data + 4]) | Int(bytes[data + 5]) << 8
    for count in [size, size + 1] {
      bytes.replaceSubrange(data + 4..<data + 8, with: little(UInt64(count), 4))
      let whole = try decode(folder.file("b", bytes[..<(data + 8 + size)] + [0]))
      #expect(whole.count == (codec == .gsm610 ? 960 : size / 256 * 505))
    }
  }

  // MARK: MP3

  @Test(arguments: [(8000, 1), (16_000, 2), (22_050, 1), (44_100, 1), (44_100, 2), (48_000, 2)])
  func anMP3WithoutACountGivesEveryFrame(sampleRate: Int, channels: Int) throws {
    let frames = 200_000
    let (bytes, plain) = try makeVarying(rate: sampleRate, channels: channels, frames: frames)
    #expect(plain.count == frames * channels)
    let path = try folder.file("b", try withoutCount(bytes))
    let map = try SoundMap(path: path)
    #expect(map.findings.lacksLength && map.findings.wrongCount == nil && map.findings.streams == 1)
    let whole = try decodeSeeking(path)
    #expect(whole.count >= frames * channels && whole.count < (frames + 4 * 1152) * channels)
    #expect(map.frames == Int64(whole.count / channels))
    // The samples are the same, delayed by what the encoder's header would have cut off.
    let delay = (0..<2000).first { delay in
      (2000..<2200).allSatisfy { abs(Int(whole[(delay * channels) + $0]) - Int(plain[$0])) <= 2 }
    }
    #expect(delay != nil)
  }

  @Test(arguments: [(44_100, 2), (22_050, 1)])
  func joinedMP3FilesAreOneRecording(sampleRate: Int, channels: Int) throws {
    let first = try make(.mp3, rate: sampleRate, channels: channels, frames: 100_000)
    let second = try make(.mp3, rate: sampleRate, channels: channels, frames: 61_234, peak: 0.3)
    let tag: [UInt8] = Array("ID3".utf8) + [4, 0, 0, 0, 0, 2, 0] + [UInt8](repeating: 0x55, count: 256)
    for between in [[], tag, [UInt8](repeating: 0, count: 5000)] {
      let path = try folder.file("b", tag + first.bytes + between + second.bytes + between + first.bytes)
      let whole = try decodeSeeking(path)
      let equal = whole == first.samples + second.samples + first.samples
      #expect(equal && whole.count == (100_000 + 61_234 + 100_000) * channels)
      let findings = try SoundMap(path: path).findings
      #expect(findings.streams == 3 && findings.streamsLeftOut == 0 && findings.wrongCount == nil)
      #expect(findings.foreignBytes == (between == tag ? 0 : Int64(2 * between.count)))
    }
  }

  @Test func joinedMP3FilesWithoutCountsAreOneStream() throws {
    let (bytes, _) = try make(.mp3, rate: 44_100, channels: 2, frames: 90_000)
    let plain = try withoutCount(bytes)
    let single = try decode(try folder.file("a", plain))
    let path = try folder.file("b", plain + [UInt8](repeating: 7, count: 3000) + plain)
    let whole = try decodeSeeking(path)
    #expect(whole.count == 2 * single.count)
    #expect(whole.starts(with: single.dropLast(2 * 1152)))
    #expect(try SoundMap(path: path).findings.foreignBytes == 3000)
  }

  @Test(arguments: [UInt32(0), 3, 50, 100_000, .max])
  func aWrongCountIsIgnored(count: UInt32) throws {
    var (bytes, samples) = try make(.mp3, rate: 44_100, channels: 1, frames: 100_000)
    let place = try Int(#require(header(bytes)).sideInformation.upperBound) + 8
    bytes.replaceSubrange(place..<place + 4, with: big(UInt64(count), 4))
    let path = try folder.file("b", bytes)
    let whole = try decodeSeeking(path)
    // The encoder's padding at the end can no longer be distinguished from sound.
    #expect(whole.starts(with: samples) && whole.count - samples.count < 2 * 1152)
    let found = try #require(try SoundMap(path: path).findings.wrongCount)
    #expect(found.promised == Int64(count) * 1152 && found.found >= 100_000)
  }

  @Test func aCountWithTheFrameThatHasItIsRightToo() throws {
    var (bytes, samples) = try make(.mp3, rate: 44_100, channels: 1, frames: 100_000)
    let place = try Int(#require(header(bytes)).sideInformation.upperBound) + 8
    let count = bytes[place..<place + 4].reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
    bytes.replaceSubrange(place..<place + 4, with: big(count + 1, 4))
    #expect(try decodeSeeking(try folder.file("b", bytes)) == samples)
  }

  @Test func anMP3CutShortIsUsedToItsLastWholeFrame() throws {
    let (bytes, samples) = try make(.mp3, rate: 44_100, channels: 2, frames: 100_000)
    let path = try folder.file("b", Array(bytes.prefix(bytes.count / 2)))
    let whole = try decodeSeeking(path)
    let findings = try SoundMap(path: path).findings
    #expect(findings.lacksEnd && findings.wrongCount != nil)
    #expect((45_000...55_000).contains(whole.count / 2))
    #expect(samples.starts(with: whole.dropLast(2 * 1152)))
  }

  @Test func streamsOfAnotherShapeAreSkippedAndReported() throws {
    let long = try make(.mp3, rate: 44_100, channels: 2, frames: 90_000)
    let mono = try make(.mp3, rate: 44_100, channels: 1, frames: 44_100)
    let slow = try make(.mp3, rate: 22_050, channels: 2, frames: 22_050)
    let path = try folder.file("b", mono.bytes + long.bytes + slow.bytes + long.bytes)
    #expect(try decodeSeeking(path) == long.samples + long.samples)
    let findings = try SoundMap(path: path).findings
    #expect(findings.streams == 2 && findings.streamsLeftOut == 2 && findings.secondsLeftOut == 2)
  }

  @Test func anMP3ThatIsWholeHasNothingToReport() throws {
    for (rate, channels) in [(44_100, 2), (8000, 1)] {
      let made = try make(.mp3, rate: rate, channels: channels, frames: 30_000)
      #expect(try SoundMap(path: try folder.file("b", made.bytes)).findings == .init())
    }
  }

  @Test func noiseAfterATagIsNotMistakenForMPEG() throws {
    var generator = SeededGenerator(state: 1)
    let noise = (0..<300_000).map { _ in UInt8.random(in: 0...255, using: &generator) }
    let path = try folder.file(Array("ID3".utf8) + [4, 0, 0, 0, 0, 0, 0] + noise)
    #expect(try SoundMap(path: path).frames == nil)
  }

  // MARK: Ogg

  @Test(arguments: [(AudioCodec.vorbis, 1), (.vorbis, 2), (.opus, 1), (.opus, 2)])
  func chainedOggFilesAreOneRecording(codec: AudioCodec, channels: Int) throws {
    let first = try make(codec, channels: channels, frames: 300_000)
    let second = try make(codec, channels: channels, frames: 70_001, peak: 0.3)
    for between: [UInt8] in [[], [1, 2, 3, 4, 5]] {
      let path = try folder.file("c", first.bytes + between + second.bytes + between + first.bytes)
      let equal = try decodeSeeking(path) == first.samples + second.samples + first.samples
      #expect(equal)
      let map = try SoundMap(path: path)
      #expect(map.findings.streams == 3 && map.findings.streamsLeftOut == 0 && !map.findings.lacksEnd)
      #expect(map.frames == 670_001)
    }
  }

  @Test(arguments: [AudioCodec.vorbis, .opus])
  func chainedStreamsOfAnotherShapeAreSkippedAndReported(codec: AudioCodec) throws {
    let long = try make(codec, channels: 2, frames: 200_000)
    let mono = try make(codec, channels: 1, frames: 48_000)
    let slow = try make(codec, rate: 24_000, channels: 2, frames: 24_000)
    let other = try make(codec == .opus ? .vorbis : .opus, channels: 2, frames: 48_000)
    let path = try folder.file("c", mono.bytes + long.bytes + slow.bytes + other.bytes + long.bytes)
    let equal = try decodeSeeking(path) == long.samples + long.samples
    #expect(equal)
    let findings = try SoundMap(path: path).findings
    #expect(findings.streams == 2 && findings.streamsLeftOut == 3 && findings.secondsLeftOut == 3)
  }

  @Test(arguments: [AudioCodec.vorbis, .opus])
  func aTruncatedOggFileHasALengthAndSupportsSeeking(codec: AudioCodec) throws {
    let (bytes, samples) = try make(codec, channels: 2, frames: 400_000)
    for cut in [10, bytes.count / 3, bytes.count / 2] {
      let path = try folder.file("c", Array(bytes.dropLast(cut)))
      let reader = try AudioReader(path: path)
      let whole = try decodeSeeking(path)
      #expect(reader.claimedFrames == Int64(whole.count / 2) && whole.count > samples.count / 3)
      #expect(samples.starts(with: whole))
      #expect(reader.map.findings.lacksEnd)
    }
  }

  @Test func aTruncatedStreamInAChainDoesNotShiftTheNext() throws {
    let first = try make(.vorbis, channels: 1, frames: 300_000)
    let second = try make(.vorbis, channels: 1, frames: 100_000, peak: 0.3)
    // Damaged where a page's checksum detects it, far from the end.
    var spoiled = first.bytes
    spoiled[first.bytes.count / 2] ^= 0xFF
    let path = try folder.file("c", spoiled + second.bytes)
    let whole = try decode(path)
    #expect(whole.count == 400_000)
    #expect(whole.suffix(100_000) == second.samples[...])
    #expect(try decode(path, from: 300_000) == second.samples)
  }

  @Test func aStreamWithImpossibleClaimsIsSkipped() throws {
    let first = try make(.vorbis, channels: 1, frames: 60_000)
    let second = try make(.vorbis, channels: 1, frames: 50_000)
    // The last page's position is half of the maximum, with a corrected checksum.
    var liar = second.bytes
    let page = try #require(liar.indices.dropLast(3).last { liar[$0...].starts(with: "OggS".utf8) })
    liar.replaceSubrange(page + 6..<page + 14, with: little(1 << 61, 8))
    liar.replaceSubrange(page + 22..<page + 26, with: [0, 0, 0, 0])
    liar.replaceSubrange(page + 22..<page + 26, with: little(UInt64(checksum(liar[page...])), 4))
    let path = try folder.file("c", first.bytes + liar + liar + first.bytes)
    #expect(try decode(path) == first.samples + first.samples)
    let findings = try SoundMap(path: path).findings
    #expect(findings.streams == 2 && findings.streamsLeftOut == 2)
  }

  /// Computes an Ogg page's checksum: polynomial 0x04C11DB7, neither reflected nor inverted.
  private func checksum(_ page: ArraySlice<UInt8>) -> UInt32 {
    page.reduce(UInt32(0)) { sum, byte in
      (0..<8).reduce(sum ^ UInt32(byte) << 24) { sum, _ in sum << 1 ^ (sum >> 31 == 1 ? 0x04C1_1DB7 : 0) }
    }
  }

  // MARK: Everything

  @Test func aMapServesEveryFurtherReaderOfTheFile() throws {
    let made = try make(.mp3, rate: 44_100, channels: 2, frames: 100_000)
    let path = try folder.file("a", made.bytes + made.bytes)
    let map = try AudioReader(path: path).map
    var reader = try AudioReader(path: path, map: map)
    try reader.seek(to: 150_000)
    var some: [Int16] = []
    _ = reader.readInt16(upTo: 5000) { span in for index in span.indices { some.append(span[index]) } }
    #expect(some == Array(made.samples[100_000..<110_000]))
  }
}
