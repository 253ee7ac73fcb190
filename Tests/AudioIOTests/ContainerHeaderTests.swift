import AudioIO
import SoundFiles
import Terms
import Testing

struct ContainerHeaderTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func header(_ bytes: [UInt8]) throws -> ContainerHeader {
    try ContainerHeader(path: try folder.file("named.au", bytes))
  }

  /// Returns an 80-bit extended number: the exponent, then the significand with its highest bit at the top.
  private func extended(_ hertz: UInt64) -> [UInt8] {
    guard hertz > 0 else { return [UInt8](repeating: 0, count: 10) }
    let zeros = hertz.leadingZeroBitCount
    return big(UInt64(16383 + 63 - zeros), 2) + big(hertz << UInt64(zeros), 8)
  }

  private func aiff(_ kind: String = "AIFF", rate: UInt64, channels: UInt64 = 2, promised: UInt64, data: Int) -> [UInt8]
  {
    let common =
      big(channels, 2) + big(0, 4) + big(16, 2) + extended(rate) + (kind == "AIFC" ? Array("NONE\0\0".utf8) : [])
    let chunks =
      "COMM".utf8 + big(UInt64(common.count), 4) + common + "SSND".utf8 + big(promised + 8, 4)
      + [UInt8](repeating: 0, count: 8 + data)
    return "FORM".utf8 + big(UInt64(chunks.count + 4), 4) + kind.utf8 + chunks
  }

  private func au(promised: UInt64, rate: UInt64 = 8000, channels: UInt64 = 1, data: Int) -> [UInt8] {
    ".snd".utf8 + big(24, 4) + big(promised, 4) + big(3, 4) + big(rate, 4) + big(channels, 4)
      + [UInt8](repeating: 0, count: data)
  }

  @Test("a W64 header that promises more than the file contains is reported")
  func w64Promises() throws {
    func chunk(_ id: String, _ promised: Int, _ content: [UInt8]) -> [UInt8] {
      let identifier = Array(id.utf8) + [UInt8](repeating: 7, count: 12)
      let size = (0..<8).map { UInt8(truncatingIfNeeded: (promised + 24) >> (8 * $0)) }
      return identifier + size + content + [UInt8](repeating: 0, count: (8 - content.count % 8) % 8)
    }
    let format: [UInt8] = [1, 0, 2, 0, 0x80, 0xBB, 0, 0, 0, 0, 0, 0, 4, 0, 16, 0]
    let start = chunk("riff", 1 << 40, [UInt8](repeating: 9, count: 16)) + chunk("fmt ", 16, format)
    let header = try header(start + chunk("odd ", 3, [1, 2, 3]) + chunk("data", 1000, [1, 2, 3, 4, 5, 6, 7, 8]))
    #expect(header.channels == 2 && header.sampleRate == 48_000)
    #expect(header.declaredDataBytes == 1000 && header.presentDataBytes == 8 && !header.lengthIsUnknown)
    // A chunk longer than any file can be, and one shorter than its own header.
    for size in [Int.max - 24, -24] {
      #expect(try self.header(start + chunk("odd ", size, []) + chunk("data", 8, [])).declaredDataBytes == nil)
    }
  }

  @Test("the frames promised by an AIFF are converted to bytes, unless it is compressed")
  func aiffFrames() throws {
    func file(_ kind: String) -> [UInt8] {
      var bytes = aiff(kind, rate: 8000, promised: 40, data: 40)
      bytes.replaceSubrange(22..<26, with: [0xFF, 0xFF, 0xFF, 0xFF])
      return bytes
    }
    #expect(try header(file("AIFF")).declaredDataBytes == 0xFFFF_FFFF * 4)
    #expect(try header(file("AIFC")).declaredDataBytes == 40)
  }

  @Test(arguments: [
    ("RIFF....WAVE", AudioContainer.wav), ("RF64....WAVE", .rf64), ("FORM....AIFF", .aiff), ("FORM....AIFC", .aiff),
    (".snd", .au), ("fLaC", .flac), ("OggS", .ogg), ("caff", .caf), ("riff", .w64), ("ID3", .mp3),
  ])
  func theFirstBytesNameTheContainer(magic: String, container: AudioContainer) throws {
    #expect(try header(magic.utf8 + [UInt8](repeating: 0, count: 40)).container == container)
  }

  @Test(arguments: [
    [0xFF, 0xFB, 0x90, 0x64], [0xFF, 0xF3, 0x40, 0xC0], [0xFF, 0xE3, 0x40, 0xC0], [0xFF, 0xFD, 0x90, 0],
  ])
  func aBareMPEGFrameIsMP3(start: [UInt8]) throws {
    #expect(try header(start + [0, 0, 0, 0]).container == .mp3)
  }

  @Test(
    arguments: [
      ([0x50, 0x4B, 3, 4, 20, 0], "a ZIP archive"), ([0xFF, 0xD8, 0xFF, 0xE0], "a JPEG picture"),
      ([0, 0, 0, 32] + Array("ftypM4A ".utf8), "an MP4, M4A or MOV file"),
      ([0x1A, 0x45, 0xDF, 0xA3, 1], "a WebM or Matroska file"), ([0xFF, 0xF1, 0x50, 0x80], "an AAC (ADTS) stream"),
      ([0xFF, 0xF9, 0x50, 0x80], "an AAC (ADTS) stream"), ([0x89, 0x50, 0x4E, 0x47, 13, 10], "a PNG picture"),
      (Array("%PDF-1.7".utf8), "a PDF document"), (Array("#!AMR\n".utf8), "an AMR file"),
      ([0x30, 0x26, 0xB2, 0x75, 0x8E], "a Windows Media file"), (Array("{\"a\":1}\n".utf8), "text"),
      ([0x52], "text"), ([0x00], nil), ([], nil), ([0xFF], nil), ([0xFF, 0xFF, 0xFF, 0xFF], nil),
      (Array("RIFF....AVI LIST".utf8), nil), (Array("FORM....ILBMBMHD".utf8), nil),
    ] as [([UInt8], String?)])
  func whatIsNoSoundIsNamedWhereItIsKnown(bytes: [UInt8], found: String?) throws {
    let expected = bytes.starts(with: "RIFF".utf8) || bytes.starts(with: "FORM".utf8) ? "text" : found
    #expect(throws: AudioIOError.unsupportedMedia(found: expected)) { try header(bytes) }
  }

  @Test(arguments: [Array("\0\0\0\u{18}stypmsdh".utf8), Array("\0\0\0\u{18}moof".utf8), [0x1F, 0x43, 0xB6, 0x75, 1]])
  func aSegmentOfAStreamIsNamed(bytes: [UInt8]) {
    #expect { try header(bytes) } throws: {
      if case AudioIOError.unsupportedMedia(let found?) = $0 { found.contains("initialization segment") } else { false }
    }
  }

  @Test func aMissingFileIsASystemError() {
    #expect(throws: AudioIOError.system(operation: "open", errno: 2)) { try ContainerHeader(path: folder("none")) }
    #expect(throws: AudioIOError.system(operation: "read", errno: 21)) { try ContainerHeader(path: folder.path) }
  }

  @Test func aWaveFileReportsChannelsRateAndBytes() throws {
    let header = try header(wave([1, 2, 3, 4], channels: 2, sampleRate: 44_100))
    #expect(header.channels == 2 && header.sampleRate == 44_100)
    #expect(header.declaredDataBytes == 8 && header.presentDataBytes == 8 && !header.lengthIsUnknown)
  }

  @Test func chunksBeforeTheDataAreSkippedEvenIfTheirSizeIsOdd() throws {
    let odd = chunk("LIST", Array("INFO!".utf8)) + chunk("junk", [1, 2, 3])
    let header = try header(riff(odd + waveFormat(channels: 3) + odd + chunk("data", [1, 2, 3, 4, 5, 6])))
    #expect(header.channels == 3 && header.declaredDataBytes == 6 && header.presentDataBytes == 6)
  }

  @Test func rf64TakesItsSizeFromDs64() throws {
    let ds64 = chunk("ds64", little(9_000_000_060, 8) + little(9_000_000_000, 8) + little(0, 8) + little(0, 4))
    let data = chunk("data", [1, 2, 3, 4], claiming: 0xFFFF_FFFF)
    let header = try header(riff(ds64 + waveFormat() + data, magic: "RF64"))
    #expect(header.declaredDataBytes == 9_000_000_000 && header.presentDataBytes == 4 && !header.lengthIsUnknown)
  }

  @Test(arguments: [UInt64](arrayLiteral: 0, 1, 8000, 44_100, 192_000, 0xFFFF_FFFF))
  func aiffRatesAreEightyBitNumbers(rate: UInt64) throws {
    let header = try header(aiff(rate: rate, promised: 100, data: 40))
    #expect(header.sampleRate == Int64(rate) && header.channels == 2)
    #expect(header.declaredDataBytes == 100 && header.presentDataBytes == 40)
    #expect(try self.header(aiff("AIFC", rate: rate, promised: 8, data: 8)).sampleRate == Int64(rate))
  }

  @Test func anInfiniteAiffRateIsRejected() throws {
    var bytes = aiff(rate: 8000, promised: 4, data: 4)
    bytes.replaceSubrange(28..<30, with: [0x7F, 0xFF])
    #expect(try header(bytes).sampleRate == nil)
  }

  @Test func anAuFileMayOmitItsLength() throws {
    let header = try header(au(promised: 0xFFFF_FFFF, data: 12))
    #expect(header.lengthIsUnknown && header.presentDataBytes == 12)
    #expect(try !self.header(au(promised: 12, data: 12)).lengthIsUnknown)
  }

  @Test(arguments: [UInt64](arrayLiteral: 0xFFFF_FFFF, 0xFFFF_FFDB, 0x7FFF_F000, 0))
  func aHeaderFromAPipeHasNoLength(size: UInt64) throws {
    let data = chunk("data", [1, 2, 3, 4], claiming: size)
    #expect(try header(riff(waveFormat() + data)).lengthIsUnknown)
  }

  @Test func emptyDataIsNotAnUnknownLength() throws {
    #expect(try !header(riff(waveFormat() + chunk("data", []))).lengthIsUnknown)
  }

  @Test func truncatedDataShowsInTheTwoSizes() throws {
    let header = try header(Array(wave([Int16](repeating: 1, count: 500)).dropLast(300)))
    #expect(header.declaredDataBytes == 1000 && header.presentDataBytes == 700 && !header.lengthIsUnknown)
  }

  @Test(arguments: [0, 1, 255, 65_535])
  func anyNumberOfChannelsIsReported(channels: Int) throws {
    #expect(try header(riff(waveFormat(channels: channels, bits: 8) + chunk("data", [0]))).channels == channels)
    #expect(try header(au(promised: 1, channels: UInt64(channels), data: 1)).channels == channels)
  }

  @Test("bytes after the promised samples that form no chunk are counted")
  func strayBytes() throws {
    let samples = [UInt8](repeating: 200, count: 40)
    let list = chunk("LIST", [1, 2, 3])
    for (claim, after, stray) in [
      (40, [], 0), (40, list, 0), (40, [9, 9], 0), (40, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 10), (30, [], 10),
      (30, list, 10 + list.count), (31, [], 8), (41, [], 0), (36, list, 4 + list.count),
    ] as [(UInt64, [UInt8], Int)] {
      let plain = try header(riff(waveFormat() + chunk("data", samples, claiming: claim) + after))
      #expect(plain.strayBytes == stray, "\(claim) and \(after)")
    }
    #expect(try header(aiff(rate: 8000, promised: 40, data: 40)).strayBytes == 0)
    #expect(try header(aiff(rate: 8000, promised: 20, data: 40)).strayBytes == 20)
    #expect(try header(au(promised: 40, data: 40)).strayBytes == 0)
    #expect(try header(au(promised: 30, data: 40)).strayBytes == 10)
    #expect(try header(au(promised: 0xFFFF_FFFF, data: 40)).strayBytes == 0)
  }

  @Test func hostileChunkSizesEndTheSearch() throws {
    let far = chunk("LIST", [0, 0], claiming: 0xFFFF_FFFF)
    #expect(try header(riff(waveFormat() + far + chunk("data", [1, 2]))).declaredDataBytes == nil)
    let ds64 = chunk("ds64", [UInt8](repeating: 0xFF, count: 28))
    let header = try header(riff(ds64 + waveFormat() + chunk("data", [], claiming: 0xFFFF_FFFF), magic: "RF64"))
    #expect(header.lengthIsUnknown)
  }

  @Test func aMillionChunksAreNotAllLookedAt() throws {
    let many = [UInt8](repeating: 0, count: 8 * 5000)
    #expect(try header(riff(many + waveFormat() + chunk("data", [1, 2]))).channels == nil)
  }

  @Test func everyPrefixOfAFileIsReadSafely() throws {
    let whole = [wave([1, 2, 3]), aiff(rate: 8000, promised: 4, data: 4), au(promised: 4, data: 4)]
    for bytes in whole {
      for length in 12..<bytes.count { _ = try header(Array(bytes.prefix(length))) }
    }
  }
}
