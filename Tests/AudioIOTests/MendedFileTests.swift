import Testing

@testable import AudioIO

struct MendedFileTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func mended(_ bytes: [UInt8]) throws -> Bool {
    let path = try folder.file("judged", bytes)
    return try MendedFile.ifNeeded(try ContainerHeader(path: path), path: path) != nil
  }

  @Test func aWholeFileNeedsNoMending() throws {
    #expect(try !mended(wave([1, 2, 3])))
    #expect(try !mended(riff(waveFormat() + chunk("data", []))))
    for (container, codec) in [(AudioContainer.mp3, AudioCodec.mp3), (.flac, .flacS16), (.ogg, .vorbis)] {
      let format = AudioFormat(container: container, codec: codec, sampleRate: 8000, channels: 1)
      try encode(swell(frames: 20_000, channels: 1, sampleRate: 8000), to: folder("a"), format)
      #expect(try !mended(contents(folder("a"))))
    }
  }

  @Test func noiseAfterATagIsNotTakenForMPEG() throws {
    var generator = SeededGenerator(state: 1)
    let noise = (0..<300_000).map { _ in UInt8.random(in: 0...255, using: &generator) }
    #expect(try !mended(Array("ID3".utf8) + [4, 0, 0, 0, 0, 0, 0] + noise))
  }

  @Test func aWaveFileLeftByACrashIsReadToItsEnd() throws {
    let samples = (0..<5000).map { Int16($0) }
    let path = try folder.file(
      "a", riff(chunk("LIST", [1, 2, 3]) + waveFormat() + chunk("data", bytes(samples), claiming: 0)))
    #expect(try decode(path) == samples)
    #expect(try decode(path, from: 4321) == Array(samples[4321...]))
  }

  @Test(arguments: [(8000, 1), (16_000, 2), (22_050, 1), (44_100, 1), (44_100, 2), (48_000, 2)])
  func anMP3WithoutACountGivesEveryFrame(sampleRate: Int, channels: Int) throws {
    let format = AudioFormat(container: .mp3, codec: .mp3, sampleRate: sampleRate, channels: channels)
    let frames = 200_000
    // Varying: noise alone, then nearly nothing.
    let samples =
      swell(frames: frames / 4, channels: channels, sampleRate: sampleRate)
      + [Float](repeating: 0, count: (frames - frames / 4) * channels)
    try encode(samples, to: folder("a"), format)
    let bytes = try contents(folder("a"))
    let head = try #require(MPEGFrameHeader(bytes[0..<4]))
    let path = try folder.file("b", Array(bytes.dropFirst(head.length)))
    #expect(try mended(contents(path)))
    let (whole, plain) = (try decode(path), try decode(folder("a")))
    #expect(whole.count >= frames * channels && whole.count < (frames + 4 * 1152) * channels)
    // The same samples, later by what the encoder's own header would have had cut off.
    let delay = (0..<2000).first { delay in
      (2000..<2200).allSatisfy { abs(Int(whole[(delay * channels) + $0]) - Int(plain[$0])) <= 2 }
    }
    #expect(delay != nil)
    for frame in [100_000, 150_000, 30_000] {
      let part = try decode(path, from: Int64(frame))
      let agrees = zip(part, whole[(frame * channels)...]).allSatisfy { abs(Int($0) - Int($1)) <= 1 }
      #expect(agrees && part.count == whole.count - frame * channels)
    }
  }
}
