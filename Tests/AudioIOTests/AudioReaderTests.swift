import Foundation
import SoundFiles
import Terms
import Testing

@testable import AudioIO

struct AudioReaderTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  /// One format of every kind that can be read and written.
  static let kinds: [AudioFormat] =
    [
      (.wav, .pcmU8), (.wav, .pcmS16), (.wav, .pcmS24), (.wav, .pcmF32), (.wav, .muLaw), (.wav, .imaADPCM),
      (.wav, .microsoftADPCM), (.rf64, .pcmS16), (.w64, .pcmS24), (.aiff, .pcmS8), (.aiff, .pcmS16), (.au, .pcmS16),
      (.caf, .pcmS32), (.caf, .alac16), (.caf, .alac24), (.flac, .flacS16), (.flac, .flacS24), (.ogg, .vorbis),
      (.ogg, .opus), (.mp3, .mp3),
    ].map { AudioFormat(container: $0, codec: $1, sampleRate: 24_000, channels: 2) }

  private func make(_ format: AudioFormat, frames: Int = 150_001, peak: Float = 0.5) throws -> String {
    let path = folder("sound.\(format.fileExtension)")
    let samples = swell(frames: frames, channels: format.channels, sampleRate: format.sampleRate, peak: peak)
    try encode(samples, to: path, format)
    return path
  }

  @Test(arguments: kinds)
  func piecesOfAnySizeAreTheSameSamples(format: AudioFormat) throws {
    let path = try make(format, frames: 9_001)
    let whole = try decode(path)
    let floats = try decodeFloat(path)
    #expect(whole.count == floats.count)
    for piece in [1, 7, 1152, 4096] {
      let (isWhole, isFloats) = (try decode(path, piece: piece) == whole, try decodeFloat(path, piece: piece) == floats)
      #expect(isWhole && isFloats, "pieces of \(piece)")
    }
  }

  @Test(arguments: kinds)
  func seekingReturnsTheSamplesOfDecodingFromTheStart(format: AudioFormat) throws {
    let path = try make(format)
    let whole = try decode(path)
    #expect(whole.count >= 150_001 * 2)
    func agree(_ read: [Int16], at frame: Int) -> Bool { whole[(frame * 2)...].starts(with: read) }
    var reader = try AudioReader(path: path)
    for frame in [0, 1, 1152, 20_000, 133_333, 12, 90_000, 149_000, 149_999, 150_000, 90_000] {
      if frame > 140_000 || frame == 1 {
        let rest = try decode(path, from: Int64(frame))
        #expect(rest.count == whole.count - frame * 2)
        #expect(agree(rest, at: frame), "a new reader from frame \(frame)")
      }
      try reader.seek(to: Int64(frame))
      #expect(reader.position == Int64(frame))
      var some: [Int16] = []
      let got = reader.readInt16(upTo: 900) { span in for index in span.indices { some.append(span[index]) } }
      #expect(got > 0 && reader.position == Int64(frame + got))
      #expect(agree(some, at: frame), "the same reader from frame \(frame)")
    }
  }

  @Test func seekingInALongVorbisFileDoesNotDecodeItFromTheStart() throws {
    let format = AudioFormat(container: .ogg, codec: .vorbis, sampleRate: 8_000, channels: 1)
    let path = try make(format, frames: 600_001)
    let whole = try decode(path)
    var reader = try AudioReader(path: path)
    for frame in [300_000, 500_000, 300_001, 599_000, 310_000, 20_000, 600_000] {
      try reader.seek(to: Int64(frame))
      var some: [Int16] = []
      _ = reader.readInt16(upTo: 900) { span in for index in span.indices { some.append(span[index]) } }
      let agrees = !some.isEmpty && whole[frame...].starts(with: some)
      #expect(agrees, "from frame \(frame)")
    }
  }

  @Test(arguments: kinds)
  func seekingPastTheEndIsRefusedOrFindsNothing(format: AudioFormat) throws {
    let path = try make(format, frames: 3_000)
    var reader = try AudioReader(path: path)
    do { try reader.seek(to: 1_000_000) } catch {
      #expect(error == .seekFailed(frame: 1_000_000))
      return
    }
    #expect(reader.readInt16 { _ in } == 0)
  }

  @Test func sixteenBitSamplesAreReturnedUnchanged() throws {
    let samples: [Int16] = [0, 1, -1, 32767, -32768, 257, -257]
    let path = try folder.file("a.wav", wave(samples))
    #expect(try decode(path) == samples)
    #expect(try decodeFloat(path) == samples.map { Float($0) / 32768 })
  }

  @Test func deeperIntegersLoseTheirLowBitsByArithmeticShift() throws {
    let values: [Int32] = [0, 1, 255, 256, -1, -255, -256, -257, 8_388_607, -8_388_608, 123_456]
    let data24 = values.flatMap { little(UInt64(UInt32(bitPattern: $0)), 3) }
    let deep = try folder.file("24.wav", riff(waveFormat(bits: 24) + chunk("data", data24)))
    #expect(try decode(deep) == values.map { Int16($0 >> 8) })
    let data32 = values.flatMap { little(UInt64(UInt32(bitPattern: $0 << 8 | 0x7F)), 4) }
    let deeper = try folder.file("32.wav", riff(waveFormat(bits: 32) + chunk("data", data32)))
    #expect(try decode(deeper) == values.map { Int16($0 >> 8) })
    let path = folder("24.flac")
    let format = AudioFormat(container: .flac, codec: .flacS24, sampleRate: 8000, channels: 1)
    try encode(values.map { Float($0) / 8_388_608 }, to: path, format)
    #expect(try decode(path) == values.map { Int16($0 >> 8) })
  }

  @Test func eightBitSamplesAreInTheUpperHalf() throws {
    let path = try folder.file("8.wav", riff(waveFormat(bits: 8) + chunk("data", [0, 127, 128, 129, 255])))
    #expect(try decode(path) == [-32768, -256, 0, 256, 32512])
  }

  @Test func nonFiniteSamplesBecomeZeroAndAreCounted() throws {
    let path = try folder.file("f.wav", floatWave([0.5, .nan, .infinity, -.infinity, 3, -3]))
    var reader = try AudioReader(path: path)
    _ = reader.readInt16 { span in
      #expect([16384, 0, 0, 0, 32767, -32768] == span.indices.map { span[$0] })
    }
    #expect(reader.nonFiniteSamples == 3)
    #expect(try decodeFloat(path) == [0.5, 0, 0, 0, 3, -3])
  }

  @Test("64-bit floats become the nearest 16-bit values, clamped; NaN and infinity become 0")
  func doubles() throws {
    let samples: [Double] = [0.5, .nan, .infinity, 1e300, -1e300, (16_384.5 + 1e-6) / 32_768, -0.25]
    let data = samples.flatMap { little($0.bitPattern, 8) }
    let path = try folder.file("d.wav", riff(waveFormat(tag: 3, bits: 64) + chunk("data", data)))
    #expect(try format(of: path).codec == .pcmF64)
    var reader = try AudioReader(path: path)
    var read: [Int16] = []
    _ = reader.readInt16 { span in for index in span.indices { read.append(span[index]) } }
    #expect(read == [16_384, 0, 0, 32_767, -32_768, 16_385, -8192] && reader.nonFiniteSamples == 2)
    let floats = try decodeFloat(path)
    #expect(floats[0] == 0.5 && floats[1] == 0 && floats[2] == 0 && floats[3] > 1e38 && floats[6] == -0.25)
    #expect(try decode(path, from: 5) == [16_385, -8192])
  }

  /// libsndfile's own 16-bit samples wrap around here.
  @Test(arguments: [
    AudioFormat(container: .ogg, codec: .vorbis, sampleRate: 48_000, channels: 2),
    AudioFormat(container: .ogg, codec: .opus, sampleRate: 48_000, channels: 2),
    AudioFormat(container: .mp3, codec: .mp3, sampleRate: 48_000, channels: 2),
  ])
  func whatIsLouderThanFullScaleIsCutAndDoesNotWrap(format: AudioFormat) throws {
    // A square wave at full scale overshoots in every transform codec.
    let samples = (0..<48_000).flatMap { frame -> [Float] in frame / 50 % 2 == 0 ? [0.999, -0.999] : [-0.999, 0.999] }
    try encode(samples, to: folder("hot"), format)
    let floats = try decodeFloat(folder("hot"))
    #expect(floats.contains { abs($0) > 1.02 })
    #expect(try decode(folder("hot")) == floats.map(quantised16))
  }

  @Test(arguments: ["a.au", "a.vox", "a.gsm", "a.mp3", "a.flac", "a"])
  func theNameSaysNothing(name: String) throws {
    let path = try folder.file(name, wave([1, 2, 3, 4], channels: 2, sampleRate: 44_100))
    #expect(
      try format(of: path) == AudioFormat(container: .wav, codec: .pcmS16, sampleRate: 44_100, channels: 2))
    #expect(try decode(path) == [1, 2, 3, 4])
  }

  @Test func limitsAreCheckedBeforeAnythingIsDecoded() throws {
    func failure(_ bytes: [UInt8], _ limits: AudioLimits = AudioLimits()) throws -> AudioIOError? {
      let path = try folder.file("judged", bytes)
      do throws(AudioIOError) { _ = try AudioReader(path: path, limits: limits) } catch { return error }
      return nil
    }
    let data = chunk("data", [UInt8](repeating: 0, count: 510))
    #expect(try failure(riff(waveFormat(channels: 0) + data)) == .channelsOutOfRange(channels: 0, limit: 32))
    #expect(try failure(riff(waveFormat(channels: 255) + data)) == .channelsOutOfRange(channels: 255, limit: 32))
    #expect(
      try failure(riff(waveFormat(sampleRate: 0) + data)) == .sampleRateOutOfRange(hertz: 0, limits: 1...768_000))
    #expect(
      try failure(riff(waveFormat(sampleRate: 0xFFFF_FFFF) + data))
        == .sampleRateOutOfRange(hertz: 0xFFFF_FFFF, limits: 1...768_000))
    var short = AudioLimits()
    short.durationSeconds = 0.25
    #expect(try failure(wave([Int16](repeating: 0, count: 2000)), short) == nil)
    #expect(
      try failure(wave([Int16](repeating: 0, count: 2001)), short)
        == .durationOutOfRange(seconds: 2001.0 / 8000, limit: 0.25))
    // 28.999… frames in floating point.
    short.durationSeconds = 0.29
    #expect(short.frameLimit(sampleRate: 100) == 29 && AudioLimits.none.frameLimit(sampleRate: 48_000) == 1 << 62)
  }

  @Test func oneHertzAndManyChannelsAreAccepted() throws {
    let path = try folder.file("slow.wav", wave([1, 2, 3], sampleRate: 1))
    #expect(try decode(path) == [1, 2, 3])
    let many = (0..<3 * 32).map { Int16($0) }
    #expect(try decode(try folder.file("many.wav", wave(many, channels: 32))) == many)
  }

  @Test(arguments: [UInt64](arrayLiteral: 0, 0xFFFF_FFFF, 0x7FFF_F000, 1_000_000))
  func aWrongDataSizeDoesNotHideTheSamples(size: UInt64) throws {
    let samples = (1...1000).map { Int16($0) }
    let bytes = riff(waveFormat() + chunk("data", SoundFiles.bytes(samples), claiming: size))
    #expect(try decode(try folder.file("a.wav", bytes)) == samples)
  }

  @Test func aFileTruncatedAnywhereIsReadUpToTheCut() throws {
    for format in Self.kinds {
      let path = try make(format, frames: 9_000)
      let (whole, bytes) = (try decode(path), try contents(path))
      for length in stride(from: 0, to: bytes.count, by: max(bytes.count / 23, 1)) {
        let cut = try folder.file("cut", Array(bytes.prefix(length)))
        guard let part = try? decode(cut) else { continue }
        // The last block of a transform codec lacks its neighbor, and that of ADPCM its end.
        let unsure = format.codec.sampleKind == .lossy ? 12_000 : "\(format.codec)".hasSuffix("ADPCM") ? 8_200 : 0
        let isBeginning = whole.starts(with: part.prefix(max(part.count - unsure, 0)))
        #expect(isBeginning, "\(format.codec) cut to \(length) of \(bytes.count) bytes")
      }
    }
  }

  @Test func hostileBytesNeverCrash() throws {
    var generator = SeededGenerator(state: 99)
    for format in Self.kinds {
      let bytes = try contents(try make(format, frames: 3_000))
      for _ in 0..<5 {
        var spoiled = bytes
        for _ in 0..<Int.random(in: 1...30, using: &generator) {
          let place = Int.random(
            in: 0..<(Bool.random(using: &generator) ? min(200, bytes.count) : bytes.count), using: &generator)
          spoiled[place] = UInt8.random(in: 0...255, using: &generator)
        }
        guard var reader = try? AudioReader(path: try folder.file("spoiled", spoiled)) else { continue }
        var frames = 0
        while frames < 1 << 16 {
          let got = reader.readInt16 { _ in }
          guard got > 0 else { break }
          frames += got
        }
      }
    }
  }
}
