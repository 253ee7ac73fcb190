// How the sound of a cleaned file is coded: losslessly if the source was, as far as the container and ffmpeg 5.1
// support it.
//
//   mkv        24-bit FLAC; 24-bit PCM if the source is PCM, or 32-bit floats if that has more than 24 bits;
//              AAC with pictures; else Opus. Sound alone is never AAC: ffmpeg and browsers disagree on whether its
//              encoder's delay, 21 ms, is played in Matroska
//   mov        PCM likewise, ALAC; else AAC
//   mp4        24-bit FLAC, also for PCM, which ffmpeg 5.1 can't write there; ALAC; else AAC
//   m4a        ALAC; else AAC
//   webm       always Opus
//   others     see streamCodec

extension MediaFacts {
  /// Numbers of channels that end up in the right order in Opus; with 5 and 7, ffmpeg 5.1 swaps some.
  package static let opusChannels: Set = [1, 2, 3, 4, 6, 8]

  /// The codec of sound that replaces this file's; nil if no such file can be written.
  package var writtenCodec: String? {
    // libsndfile writes what it reads.
    if demuxer == nil { return codec }
    if isStream { return streamCodec }
    if isLossless, !isPhoneFilm, let codec = losslessCodec { return codec }
    switch container {
    case _ where isPhoneFilm: return channels <= 2 && sampleRate <= 48_000 ? "aac" : nil
    case .mp4, .m4a, .mov: return channels <= 8 && sampleRate <= 96_000 ? "aac" : nil
    case .mkv:
      if codec == "aac", video != nil, channels <= 8, sampleRate <= 96_000 { return codec }
      return Self.opusChannels.contains(channels) ? "opus" : nil
    case .webm: return Self.opusChannels.contains(channels) ? "opus" : nil
    default: return nil
    }
  }

  /// Whether this is a film with H.263, which only 3GP, a kind of MP4, can hold.
  package var isPhoneFilm: Bool { container == .mp4 && pictures == "h263" }

  /// Whether the sound is coded losslessly.
  package var isLossless: Bool {
    codec.hasPrefix("pcm_")
      || ["alac", "flac", "wmalossless", "tta", "wavpack", "ape", "mlp", "truehd"].contains(codec)
  }

  /// Whether a file that replaces this one loses quality that this one has. What a stream's sound becomes is reported
  /// separately, as `format_changed`.
  package var losesSound: Bool {
    guard demuxer != nil, !isStream, isLossless, let writtenCodec else { return false }
    return writtenCodec != losslessCodec || writtenCodec != "pcm_f32" && hasManyBits
  }

  /// Whether the samples may have more than 24 bits.
  private var hasManyBits: Bool { ["pcm_s32", "pcm_f32", "pcm_f64"].contains(codec) }

  private var losslessCodec: String? {
    let isPCM = codec.hasPrefix("pcm_")
    let fitsFLAC = channels <= 8 && sampleRate <= 655_350
    return switch container {
    case .mkv where isPCM, .mov where isPCM: hasManyBits ? "pcm_f32" : "pcm_s24"
    case .mov, .m4a: channels <= 8 ? "alac" : nil
    case .mp4 where codec == "alac": channels <= 8 ? "alac" : nil
    case .mkv, .mp4: fitsFLAC ? "flac" : nil
    default: nil
    }
  }
}

extension MediaFacts {
  /// The codec for the new sound; nil if no such file can be written: ffmpeg has no encoder for Monkey's Audio and
  /// Musepack and only an experimental one for DTS.
  private var streamCodec: String? {
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
    case "opus": Self.opusChannels.contains(channels)
    default: channels == 1 && sampleRate == 8000
    }
  }
}
