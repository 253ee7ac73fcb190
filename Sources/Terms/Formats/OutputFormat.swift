/// The file formats that a client can request.
package enum OutputFormat: String, Codable, Sendable, CaseIterable {
  /// The container, codec, and depth of the source.
  case same
  case wav, flac, mp3, ogg, opus

  /// Returns the format of a file of this kind made from `source`. Sample rate and channels stay the same, depth stays
  /// if the container supports it, and a lossy source becomes 16-bit in a lossless container.
  ///
  /// Throws `.unwritable` if the sample rate or the channels aren't supported.
  package func format(for source: AudioFormat) throws(AudioIOError) -> AudioFormat {
    var target = source
    switch self {
    case .same: target = Self.writable(source)
    case .wav:
      target.container = .wav
      target.codec = Self.pcm(for: source.codec.sampleKind)
    case .flac:
      target.container = .flac
      target.codec = Self.flac(for: source.codec.sampleKind)
    case .mp3: (target.container, target.codec) = (.mp3, .mp3)
    case .ogg: (target.container, target.codec) = (.ogg, .vorbis)
    case .opus: (target.container, target.codec) = (.ogg, .opus)
    }
    guard Self.holdsRateAndChannels(target), target.isWritable else { throw .unwritable(target) }
    return target
  }

  /// Returns the closest writable format for a source that libsndfile reads but can't write.
  private static func writable(_ source: AudioFormat) -> AudioFormat {
    guard !source.isWritable else { return source }
    var target = source
    switch source.codec {
    case .mp1 where source.container == .mp3, .mp2 where source.container == .mp3: target.codec = .mp3
    case .alac20 where source.container == .caf: target.codec = .alac24
    default:
      target.container = .wav
      target.codec = pcm(for: source.codec.sampleKind)
    }
    return target
  }

  /// Returns the PCM that holds decoded samples of this kind.
  package static func pcm(for kind: SampleKind) -> AudioCodec {
    switch kind {
    case .integer(let bits) where bits <= 8: .pcmU8
    case .integer(let bits) where bits <= 16: .pcmS16
    case .integer(let bits) where bits <= 24: .pcmS24
    case .integer: .pcmS32
    case .float: .pcmF32
    case .lossy: .pcmS16
    }
  }

  private static func flac(for kind: SampleKind) -> AudioCodec {
    switch kind {
    case .integer(let bits) where bits <= 8: .flacS8
    case .integer(let bits) where bits <= 16: .flacS16
    case .lossy: .flacS16
    case .integer, .float: .flacS24
    }
  }

  /// Whether the codec supports the rate and channels, apart from `AudioFormat.isWritable`: MP3 (ISO 11172-3 and
  /// 13818-3), Opus (RFC 6716 §2.1.3 and the rates that libsndfile encodes).
  private static func holdsRateAndChannels(_ format: AudioFormat) -> Bool {
    switch format.codec {
    case .mp3:
      format.channels <= 2
        && [8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000].contains(format.sampleRate)
    case .opus: format.channels <= 8 && [8000, 12000, 16000, 24000, 48000].contains(format.sampleRate)
    case .vorbis: format.channels <= 8 && format.sampleRate <= 200_000
    default: true
    }
  }

  /// The codecs that ffmpeg writes in place of libsndfile.
  package enum Encoder: String, Sendable, CaseIterable {
    case opus, mp3
  }

  /// Returns ffmpeg's codec for writing a recording in this format; nil if libsndfile can write it. ffmpeg is used for
  /// sample rates or channels that the codec lacks, because it resamples. Throws `.unwritable` if neither can write it.
  package func encoder(for source: AudioFormat) throws(AudioIOError) -> Encoder? {
    do {
      _ = try format(for: source)
      return nil
    } catch {
      switch self {
      case .mp3: return .mp3
      case .opus where MediaFacts.opusChannels.contains(source.channels): return .opus
      default: throw error
      }
    }
  }

  /// Returns the format of a part cut out of `source`. Throws `.unwritable` if no format can hold it.
  package static func trimmed(_ source: AudioFormat) throws(AudioIOError) -> AudioFormat {
    if isLossless(source.codec), source.isWritable { return source }
    do { return try flac.format(for: source) } catch { return try wav.format(for: source) }
  }

  private static func isLossless(_ codec: AudioCodec) -> Bool {
    switch codec {
    case .pcmU8, .pcmS8, .pcmS16, .pcmS24, .pcmS32, .pcmF32, .pcmF64, .aLaw, .muLaw, .flacS8, .flacS16, .flacS24,
      .alac16, .alac24, .alac32:
      true
    default: false
    }
  }
}
