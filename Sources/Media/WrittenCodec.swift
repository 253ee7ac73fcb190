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
//   others     see MediaEncoding+Streams.swift

extension MediaFacts {
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
      return MediaEncoding.opusChannels.contains(channels) ? "opus" : nil
    case .webm: return MediaEncoding.opusChannels.contains(channels) ? "opus" : nil
    default: return nil
    }
  }

  /// Whether this is a film with H.263, which only 3GP, a kind of MP4, can hold.
  var isPhoneFilm: Bool { container == .mp4 && pictures == "h263" }

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
