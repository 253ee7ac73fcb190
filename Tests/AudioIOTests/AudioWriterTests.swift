import AudioIO
import Foundation
import SoundFiles
import Terms
import Testing

struct AudioWriterTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  static let lossless: [AudioFormat] = {
    let codecs: [(AudioContainer, [AudioCodec])] = [
      (.wav, [.pcmU8, .pcmS16, .pcmS24, .pcmS32, .pcmF32, .pcmF64]),
      (.rf64, [.pcmU8, .pcmS16, .pcmS24, .pcmS32, .pcmF32, .pcmF64]),
      (.w64, [.pcmU8, .pcmS16, .pcmS24, .pcmS32, .pcmF32, .pcmF64]),
      (.aiff, [.pcmU8, .pcmS8, .pcmS16, .pcmS24, .pcmS32, .pcmF32, .pcmF64]),
      (.au, [.pcmS8, .pcmS16, .pcmS24, .pcmS32, .pcmF32, .pcmF64]),
      (.caf, [.pcmS8, .pcmS16, .pcmS24, .pcmS32, .pcmF32, .pcmF64, .alac16, .alac24, .alac32]),
      (.flac, [.flacS8, .flacS16, .flacS24]),
    ]
    return codecs.flatMap { container, codecs in
      codecs.map { AudioFormat(container: container, codec: $0, sampleRate: 44_100, channels: 2) }
    }
  }()

  @Test("lossy codecs get nothing beyond full scale", arguments: [AudioCodec.vorbis, .opus, .mp3])
  func loud(codec: AudioCodec) throws {
    let container: AudioContainer = codec == .mp3 ? .mp3 : .ogg
    let format = AudioFormat(container: container, codec: codec, sampleRate: 48_000, channels: 1)
    let samples = swell(frames: 20_000, channels: 1, sampleRate: 48_000, peak: 2)
    try encode(samples, to: folder("loud"), format)
    try encode(samples.map { min(max($0, -1), 1) }, to: folder("full"), format)
    #expect(try decode(folder("loud")) == decode(folder("full")))
  }

  @Test("what is beyond full scale is counted, full scale isn't", arguments: [AudioCodec.pcmS16, .pcmF32])
  func clipped(codec: AudioCodec) throws {
    var samples = (0..<40).map { $0.isMultiple(of: 2) ? Float(1) : -1 }
    for place in [3, 37] { samples[place] = -1.001 }
    let format = AudioFormat(container: .wav, codec: codec, sampleRate: 8000, channels: 1)
    var writer = try AudioWriter(creating: folder("c.wav"), format: format, expectedFrames: 40)
    var quantised: [Int16] = []
    try writer.write(samples.span, quantised: &quantised)
    let count = writer.clippedSamples
    try writer.finish()
    #expect(count == (codec == .pcmF32 ? 0 : 2))
  }

  @Test(arguments: lossless)
  func aLosslessFileKeepsWhatItsDepthCanHold(format: AudioFormat) throws {
    let path = folder("file")
    let samples = swell(frames: 9_001, channels: 2, sampleRate: 44_100, peak: 0.9) + [1, -1, 0, 1.5, -1.5, 1e-9]
    let result = try encode(samples, to: path, format)
    #expect(try SoundFiles.format(of: path) == format)
    #expect(try decode(path) == result.quantised)
    let back = try decodeFloat(path)
    guard back.count == samples.count else { Issue.record("\(back.count) samples"); return }
    let isFloat = format.codec.sampleKind == .float
    #expect(result.clipped == (isFloat ? 0 : 2))
    for (sample, read) in zip(samples, back) {
      if case .integer(let bits) = format.codec.sampleKind {
        let step = exp2(Float(1 - bits))
        let expected = min(max(sample, -1), 1 - step)
        guard abs(expected - read) <= max(step / 2, 1e-7) else {
          Issue.record("\(sample) became \(read)")
          return
        }
      } else if read != sample {
        Issue.record("\(sample) became \(read)")
        return
      }
    }
  }

  static let lossy: [AudioFormat] = {
    var formats: [AudioFormat] = []
    for channels in [1, 2] {
      for rate in [8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000] {
        formats.append(AudioFormat(container: .mp3, codec: .mp3, sampleRate: rate, channels: channels))
        formats.append(AudioFormat(container: .ogg, codec: .vorbis, sampleRate: rate, channels: channels))
      }
      for rate in [8000, 12000, 16000, 24000, 48000] {
        formats.append(AudioFormat(container: .ogg, codec: .opus, sampleRate: rate, channels: channels))
      }
    }
    for channels in [6, 8] {
      formats.append(AudioFormat(container: .ogg, codec: .opus, sampleRate: 48000, channels: channels))
      formats.append(AudioFormat(container: .ogg, codec: .vorbis, sampleRate: 48000, channels: channels))
    }
    for rate in [64_000, 96_000, 192_000] {
      formats.append(AudioFormat(container: .ogg, codec: .vorbis, sampleRate: rate, channels: 2))
    }
    return formats
  }()

  @Test(arguments: lossy)
  func aLossyFileKeepsItsLengthAndItsBeginning(format: AudioFormat) throws {
    let path = folder("file")
    for frames in [20_137, 5, 1152] {
      let samples = swell(frames: frames, channels: format.channels, sampleRate: format.sampleRate)
      let result = try encode(samples, to: path, format)
      #expect(try SoundFiles.format(of: path) == format)
      #expect(result.quantised.count == samples.count)
      let back = try decodeFloat(path)
      #expect(back.count == samples.count)
      guard frames > 20_000 else { continue }
      // The fourth of six or eight channels keeps only its low frequencies.
      for channel in 0..<format.channels where channel != 3 {
        let match = likeness(back, samples, channels: format.channels, channel)
        #expect(match > 0.93, "channel \(channel) of \(frames) frames: correlation \(match)")
      }
    }
  }

  /// Returns the normalized correlation of one channel of two recordings over half a second. One sample of delay
  /// results in at most 0.81, because the tones are at a tenth of the rate and above.
  private func likeness(_ copy: [Float], _ original: [Float], channels: Int, _ channel: Int) -> Float {
    var (both, one, other): (Float, Float, Float) = (0, 1e-9, 1e-9)
    for index in stride(from: 4000 * channels + channel, to: 14_000 * channels, by: channels) {
      let (a, b) = (original[index], copy[index])
      (both, one, other) = (both + a * b, one + a * a, other + b * b)
    }
    return both / (one * other).squareRoot()
  }
}
