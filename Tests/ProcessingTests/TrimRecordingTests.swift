import AudioIO
import SoundFiles
import Terms
import Testing
import Waveform
import Workers

@testable import Processing

@Suite struct TrimRecordingTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func trim(
    _ start: Double, _ end: Double, progress: (WorkerProgress) -> Void = { _ in }
  ) throws(ProcessingError) -> TrimOutcome {
    try TrimRecording(
      source: folder("in"), window: TimeWindow(start: start, end: end), output: folder("out"),
      pyramid: folder("out.pyramid")
    ).run(progress: progress)
  }

  @Test(
    "the result has exactly the source's samples, in its format or a lossless one, and their waveform",
    arguments: [
      (.wav, .pcmU8, .pcmU8), (.wav, .pcmS16, .pcmS16), (.aiff, .pcmS24, .pcmS24), (.wav, .pcmS32, .pcmS32),
      (.wav, .pcmF32, .pcmF32), (.wav, .pcmF64, .pcmF64), (.rf64, .pcmS16, .pcmS16), (.w64, .pcmS24, .pcmS24),
      (.au, .muLaw, .muLaw), (.wav, .aLaw, .aLaw), (.caf, .alac16, .alac16), (.caf, .alac24, .alac24),
      (.flac, .flacS16, .flacS16), (.flac, .flacS24, .flacS24), (.wav, .imaADPCM, .flacS16), (.mp3, .mp3, .flacS16),
      (.ogg, .vorbis, .flacS16), (.ogg, .opus, .flacS16),
    ] as [(AudioContainer, AudioCodec, AudioCodec)])
  func exact(container: AudioContainer, codec: AudioCodec, written: AudioCodec) throws {
    let format = AudioFormat(container: container, codec: codec, sampleRate: 48_000, channels: 2)
    try encode(swell(frames: 30_000, channels: 2, sampleRate: 48_000), to: folder("in"), format)
    let outcome = try trim(0.1, 0.35)
    #expect(outcome.frames == 12_000 && outcome.warnings.isEmpty)
    let result = try SoundFiles.format(of: folder("out"))
    #expect(result.codec == written && (result.container == container || written == .flacS16))
    let range = 2 * 4800..<2 * 16_800
    #expect(try decode(folder("out")) == Array(decode(folder("in"))[range]))
    if codec.sampleKind != .lossy {
      #expect(try decodeFloat(folder("out")) == Array(decodeFloat(folder("in"))[range]))
    }
    _ = try AnalyzeRecording(source: folder("out"), pyramid: folder("again")).run { _ in }
    let isSame = try contents(folder("again")) == contents(folder("out.pyramid"))
    #expect(isSame, "the waveform made on the way is not that of the file")
  }

  @Test("all 32 bits of integers and all 64 of floats survive")
  func allBits() throws {
    let integers: [Int32] = [1, -1, .max, .min, 0x1234_5677, -0x1234_5679]
    let data = integers.flatMap { little(UInt64(UInt32(bitPattern: $0)), 4) }
    _ = try folder.file("in", riff(waveFormat(bits: 32) + chunk("data", data)))
    _ = try trim(1.0 / 8000, 5.0 / 8000)
    #expect(try contents(folder("out")).suffix(16) == data[4..<20])
    let doubles = [0.1, -0.1, 1e-300, 0.123456789012345, -1].flatMap { little($0.bitPattern, 8) }
    _ = try folder.file("in", riff(waveFormat(tag: 3, bits: 64) + chunk("data", doubles)))
    _ = try trim(0, 5.0 / 8000)
    #expect(try contents(folder("out")).suffix(40) == doubles[...])
  }

  @Test("an end past the source's is its end; a window past it has no frame")
  func bounds() throws {
    _ = try folder.file("in", wave((0..<8000).map { Int16($0) }))
    var totals: Set<Int64?> = []
    #expect(try trim(0.75, 99) { totals.insert($0.totalFrames) }.frames == 2000)
    #expect(totals == [2000])
    #expect(try decode(folder("out")).first == 6000)
    #expect(try trim(0.5, 0.500001).frames == 1)
    for start in [1.0, 1.5] {
      #expect {
        try trim(start, 2)
      } throws: {
        if case ProcessingError.windowOutside = $0 { true } else { false }
      }
    }
  }

  @Test("what can't be FLAC becomes WAV")
  func wide() throws {
    let wide = AudioFormat(container: .wav, codec: .microsoftADPCM, sampleRate: 48_000, channels: 2)
    #expect(try OutputFormat.trimmed(wide).codec == .flacS16)
    let many = AudioFormat(container: .wav, codec: .imaADPCM, sampleRate: 8000, channels: 32)
    #expect(
      try OutputFormat.trimmed(many)
        == AudioFormat(
          container: .wav, codec: .pcmS16, sampleRate: 8000, channels: 32))
  }
}
