import AudioIO
import SoundFiles
import Terms
import Testing
import Workers

@testable import Processing

struct ProbeRecordingTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  private func probe(_ path: String, _ limits: AudioLimits = AudioLimits()) throws -> Probe {
    try ProbeRecording(source: path, limits: limits).run()
  }

  private func failure(_ bytes: [UInt8]) throws -> String {
    let path = try folder.file(bytes)
    do throws(ProcessingError) { _ = try ProbeRecording(source: path).run() } catch { return WorkerFailure(error).code }
    return "none"
  }

  @Test(
    arguments: [
      (.wav, .pcmS16, "pcm_s16", "wav", "audio/wav"), (.wav, .muLaw, "pcm_mulaw", "wav", "audio/wav"),
      (.rf64, .pcmS24, "pcm_s24", "wav", "audio/wav"), (.w64, .pcmF32, "pcm_f32", "w64", "audio/x-w64"),
      (.aiff, .pcmS24, "pcm_s24", "aiff", "audio/aiff"), (.au, .pcmS16, "pcm_s16", "au", "audio/basic"),
      (.caf, .alac24, "alac", "caf", "audio/x-caf"), (.flac, .flacS24, "flac", "flac", "audio/flac"),
      (.ogg, .vorbis, "vorbis", "ogg", "audio/ogg"), (.ogg, .opus, "opus", "opus", "audio/ogg"),
      (.mp3, .mp3, "mp3", "mp3", "audio/mpeg"),
    ] as [(AudioContainer, AudioCodec, String, String, String)])
  func everyKindIsNamed(
    container: AudioContainer, codec: AudioCodec, name: String, fileExtension: String, mediaType: String
  ) throws {
    let format = AudioFormat(container: container, codec: codec, sampleRate: 48_000, channels: 2)
    try encode(swell(frames: 48_000, channels: 2, sampleRate: 48_000), to: folder("upload"), format)
    let probe = try probe(folder("upload"))
    #expect(probe.shape.container == container.rawValue && probe.shape.codec == name)
    #expect(probe.shape.sampleRate == 48_000 && probe.shape.channels == 2)
    #expect(probe.warnings == (container == .mp3 ? [.seeksInexactly] : []))
    let frames = try #require(probe.shape.frames ?? probe.shape.estimatedFrames)
    #expect((48_000...48_300).contains(frames))
    #expect(probe.fileExtension == fileExtension && probe.mediaType == mediaType)
  }

  @Test func whatIsNoSoundIsRefused() throws {
    #expect(try failure([]) == "unsupported_media")
    #expect(try failure([0]) == "unsupported_media")
    #expect(try failure(Array("hello, this is a text".utf8)) == "unsupported_media")
    #expect(try failure(Array("fLaC and no more".utf8)) == "unsupported_media")
    #expect(try failure(Array("OggS".utf8) + [UInt8](repeating: 0, count: 500)) == "unsupported_media")
    #expect(try failure([0xFF, 0xFB, 0x90, 0x64] + [UInt8](repeating: 7, count: 100)) == "unsupported_media")
  }

  @Test func aHeaderWithoutOneFrameIsRefused() throws {
    #expect(try failure(riff(waveFormat(channels: 2) + chunk("data", []))) == "unsupported_media")
    #expect(try failure(riff(waveFormat(channels: 2) + chunk("data", [1, 2]))) == "unsupported_media")
    #expect(try failure(riff(waveFormat())) == "unsupported_media")
  }

  @Test func filesBeyondALimitAreAnUnsupportedFormat() throws {
    let data = chunk("data", [UInt8](repeating: 0, count: 1000))
    #expect(try failure(riff(waveFormat(channels: 0) + data)) == "unsupported_format")
    #expect(try failure(riff(waveFormat(channels: 33) + data)) == "unsupported_format")
    #expect(try failure(riff(waveFormat(sampleRate: 0) + data)) == "unsupported_format")
    #expect(try failure(riff(waveFormat(sampleRate: 4_000_000_000) + data)) == "unsupported_format")
    #expect(try failure(wave([Int16](repeating: 0, count: 86_401), sampleRate: 1)) == "unsupported_format")
  }

  @Test func damageIsAcceptedWithAWarning() throws {
    let whole = wave([Int16](repeating: 1, count: 5000))
    let cut = try probe(try folder.file("cut", Array(whole.dropLast(4000))))
    #expect(cut.shape.frames == 3000 && cut.warnings.map(\.code) == ["truncated"])
    let odd = try probe(try folder.file("nan", floatWave([.nan, 0.5, 0.25])))
    #expect(odd.warnings.map(\.code) == ["non_finite_samples"])
    let piped = riff(waveFormat() + chunk("data", [1, 2, 3, 4], claiming: 0xFFFF_FFFF))
    #expect(try probe(try folder.file("piped", piped)).warnings.map(\.code) == ["length_unknown"])
  }
}
