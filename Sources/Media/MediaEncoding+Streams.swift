// How to code sound that replaces that of a transport or program stream, of AVI, Flash video, CAF, WavPack, True Audio,
// Creative Voice, or of G.726 in WAV.

extension MediaFacts {
  /// The codec for the new sound; nil if no such file can be written: ffmpeg has no encoder for Monkey's Audio and
  /// Musepack and only an experimental one for DTS.
  var streamCodec: String? {
    switch writtenContainer {
    case .ts: Self.streams.contains(codec) && fits(codec) ? codec : fits("aac") ? "aac" : nil
    case .mpg: ["mp2", "ac3"].contains(codec) && fits(codec) ? codec : fits("mp2") ? "mp2" : nil
    case .avi:
      if codec.hasPrefix("pcm_") {
        codec == "pcm_s24" || codec == "pcm_s32" || codec.hasPrefix("pcm_f") ? "pcm_s24" : "pcm_s16"
      } else {
        ["ac3", "mp2"].contains(codec) && fits(codec) ? codec : fits("mp3") ? "mp3" : "pcm_s16"
      }
    case .flv: fits("aac") ? "aac" : nil
    // Lossless for every source.
    case .caf: codec == "opus" && fits("opus") ? "opus" : channels <= 8 ? "alac" : nil
    case .wv: channels <= 8 ? "wavpack" : nil
    case .tta: codec
    case .voc:
      channels > 2 ? nil : ["pcm_u8", "pcm_alaw", "pcm_mulaw"].contains(codec) ? codec : "pcm_s16"
    case .wav: codec.hasPrefix("adpcm_g726") && fits("g726") ? "adpcm_g726" : nil
    default: nil
    }
  }

  /// The format of the file that replaces this one. In a program stream, ffmpeg writes a single timestamp for all
  /// pictures that begin in a packet; MPEG-1 and 2 let players derive the others, but H.264 doesn't. So a program
  /// stream with H.264 becomes a transport stream.
  package var writtenContainer: MediaContainer {
    guard container == .mpg, let pictures, !["mpeg1video", "mpeg2video"].contains(pictures) else { return container }
    return .ts
  }

  /// Whether `streamCodec` determines the codec.
  package var isStream: Bool {
    [.ts, .mpg, .avi, .flv, .caf, .wv, .tta, .voc, .wav].contains(container) && demuxer != nil
  }

  private static let streams = ["aac", "mp2", "mp3", "ac3"]

  /// Whether the codec supports the sound's sample rate and number of channels.
  private func fits(_ codec: String) -> Bool {
    let old = [16_000, 22_050, 24_000, 32_000, 44_100, 48_000]
    return switch codec {
    case "aac": channels <= 8 && sampleRate <= 96_000
    case "mp2": channels <= 2 && old.contains(sampleRate)
    case "mp3": channels <= 2 && (old + [8000, 11_025, 12_000]).contains(sampleRate)
    case "ac3": channels <= 6 && [32_000, 44_100, 48_000].contains(sampleRate)
    case "opus": MediaEncoding.opusChannels.contains(channels)
    default: channels == 1 && sampleRate == 8000
    }
  }

  /// Returns the encoder's arguments, with `bits` per second if the codec has a choice.
  func streamWords(_ codec: String, bits: Int) -> [String] {
    let words =
      switch codec {
      case "aac": ["aac", "-b:a:0", "\(min(bits, 6 * sampleRate * channels))"]
      case "mp2": ["mp2", "-b:a:0", sampleRate < 32_000 ? "160000" : "384000"]
      case "mp3": ["libmp3lame", "-q:a:0", "0"]
      case "ac3": ["ac3", "-b:a:0", "640000"]
      case "opus": ["libopus", "-ar:a:0", "48000", "-b:a:0", "\(min(bits, 256_000 * channels))"]
      case "alac": ["alac", "-sample_fmt:a:0", "s32p"]
      case "wavpack": ["wavpack", "-sample_fmt:a:0", isInteger ? "s32p" : "fltp"]
      case "tta": ["tta", "-sample_fmt:a:0", "s32"]
      case "adpcm_g726": ["g726", "-b:a:0", "\(min(max(bitRate ?? 32_000, 16_000), 40_000) / 8000 * 8000)"]
      case "pcm_s16", "pcm_s24": [codec + "le"]
      default: [codec]
      }
    let delay = delay(of: codec)
    return ["-c:a:0"] + words + (delay > 0 ? ["-filter:a:0", "atrim=start_sample=\(delay)"] : [])
  }

  /// Number of frames that ffmpeg's encoder returns before the first that it was given. These containers have no times
  /// before 0, or no times at all. So that many of the first frames are dropped, which puts all others at the right
  /// time.
  private func delay(of codec: String) -> Int {
    switch codec {
    case "aac": 1024
    case "ac3": 256
    case "mp2": 481
    case "mp3": 1105
    case "opus": (312 * sampleRate + 24_000) / 48_000
    default: 0
    }
  }

  /// Arguments for containers whose times start at 0. A packet before 0 would shift all others or be taken for the last
  /// one.
  var streamMuxerWords: [String] {
    guard [.ts, .mpg, .flv].contains(container) else { return [] }
    return ["-bsf:a:0", "noise=drop=lt(pts\\,0)", "-muxdelay", "0", "-muxpreload", "0"]
  }
}
