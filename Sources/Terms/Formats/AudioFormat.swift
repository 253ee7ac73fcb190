/// The kind of file: the structure around the coded samples.
package enum AudioContainer: String, Codable, Sendable, CaseIterable {
  case wav, rf64, w64, aiff, au, caf, flac, ogg, mp3
  // See `RareContainers`.
  case nist, ircam, paf, pvf, svx, avr, xi, wve, sds, mat4, mat5, htk, mpc2k

  /// Maximum file size in bytes: 32-bit sizes, less some room for what follows the samples.
  package var sizeLimit: Int64 {
    switch self {
    case .wav, .aiff, .au: 0xFFFF_0000
    case .nist, .ircam, .paf, .pvf, .svx, .avr, .xi, .wve, .sds, .mat4, .mat5, .htk, .mpc2k: 0x7FFF_0000
    case .rf64, .w64, .caf, .flac, .ogg, .mp3: .max
    }
  }
}

/// How one sample, or a block of samples, is coded. Raw values are the API's names.
package enum AudioCodec: String, Codable, Sendable, CaseIterable {
  case pcmU8 = "pcm_u8"
  case pcmS8 = "pcm_s8"
  case pcmS16 = "pcm_s16"
  case pcmS24 = "pcm_s24"
  case pcmS32 = "pcm_s32"
  case pcmF32 = "pcm_f32"
  case pcmF64 = "pcm_f64"
  case aLaw = "pcm_alaw"
  case muLaw = "pcm_mulaw"
  case imaADPCM = "adpcm_ima"
  case microsoftADPCM = "adpcm_ms"
  case gsm610 = "gsm"
  case g721
  case g723At24 = "g723_24"
  case g723At40 = "g723_40"
  case nmsADPCM16 = "nms_adpcm_16"
  case nmsADPCM24 = "nms_adpcm_24"
  case nmsADPCM32 = "nms_adpcm_32"
  case dwvw12 = "dwvw_12"
  case dwvw16 = "dwvw_16"
  case dwvw24 = "dwvw_24"
  case flacS8 = "flac_s8"
  case flacS16 = "flac_s16"
  case flacS24 = "flac_s24"
  case alac16 = "alac_16"
  case alac20 = "alac_20"
  case alac24 = "alac_24"
  case alac32 = "alac_32"
  case dpcm8 = "dpcm_8"
  case dpcm16 = "dpcm_16"
  case vorbis
  case opus
  case mp1, mp2, mp3

  /// The codec's name in the API, which treats the depth of FLAC and ALAC as a property of the stream, not as another
  /// codec.
  package var name: String {
    switch self {
    case .flacS8, .flacS16, .flacS24: "flac"
    case .alac16, .alac20, .alac24, .alac32: "alac"
    default: rawValue
    }
  }

  /// How samples pass between this codec and memory without loss or invented precision.
  package var sampleKind: SampleKind {
    switch self {
    case .pcmU8, .pcmS8, .flacS8, .dpcm8: .integer(bits: 8)
    case .pcmS16, .flacS16, .alac16: .integer(bits: 16)
    case .alac20: .integer(bits: 20)
    case .pcmS24, .flacS24, .alac24: .integer(bits: 24)
    case .pcmS32, .alac32: .integer(bits: 32)
    case .pcmF32, .pcmF64: .float
    case .vorbis, .opus, .mp1, .mp2, .mp3: .lossy
    // The others decode to 16-bit integers inside libsndfile.
    case .aLaw, .muLaw, .imaADPCM, .microsoftADPCM, .gsm610, .g721, .g723At24, .g723At40, .nmsADPCM16, .nmsADPCM24,
      .nmsADPCM32, .dwvw16, .dpcm16:
      .integer(bits: 16)
    case .dwvw12: .integer(bits: 12)
    case .dwvw24: .integer(bits: 24)
    }
  }

  /// Maximum number of bytes per sample in a file.
  package var bytesPerSample: Int {
    switch self {
    case .pcmF64: 8
    case .pcmF32: 4
    default: if case .integer(let bits) = sampleKind { (bits + 7) / 8 } else { 4 }
    }
  }

  /// Whether a file's frame count is known without decoding it: the bytes per frame are constant, or libsndfile reads a
  /// reliable count from the codec's header.
  package var hasReliableFrameCount: Bool { sampleKind != .lossy }

  /// Whether decoding takes far longer than processing the samples.
  package var isSlow: Bool {
    switch self {
    case .flacS8, .flacS16, .flacS24, .vorbis, .opus, .mp3: true
    default: false
    }
  }

  /// Whether every sample has its own bytes, so that reading some takes no longer than copying them.
  package var isPlain: Bool {
    switch self {
    case .pcmU8, .pcmS8, .pcmS16, .pcmS24, .pcmS32, .pcmF32, .pcmF64, .aLaw, .muLaw: true
    default: false
    }
  }
}

/// The form of one decoded sample.
package enum SampleKind: Sendable, Equatable {
  /// Two's complement with `bits` significant bits.
  case integer(bits: Int)
  /// IEEE 754, nominally ±1, but may exceed that or be NaN.
  case float
  /// The output of a lossy transform codec: decodes to float and may overshoot ±1.
  case lossy
}

/// The contents of a file, according to its header.
package struct AudioFormat: Codable, Sendable, Equatable {
  /// The structure around the samples.
  package var container: AudioContainer
  /// How the samples are coded.
  package var codec: AudioCodec
  /// The sample rate in hertz, at least 1.
  package var sampleRate: Int
  /// Number of channels, at least 1.
  package var channels: Int

  /// Creates a format from its parts.
  package init(container: AudioContainer, codec: AudioCodec, sampleRate: Int, channels: Int) {
    self.container = container
    self.codec = codec
    self.sampleRate = sampleRate
    self.channels = channels
  }

  /// Whether libsndfile 1.2.0 can seek to any frame. It can't for codecs that predict each sample from the previous
  /// one, and it loses the last block of a MIDI sample dump and of 24-bit PAF.
  package var isSeekable: Bool {
    switch codec {
    case .gsm610, .g721, .g723At24, .g723At40, .nmsADPCM16, .nmsADPCM24, .nmsADPCM32, .dwvw12, .dwvw16, .dwvw24, .dpcm8,
      .dpcm16:
      false
    default: container != .sds && !(container == .paf && codec == .pcmS24)
    }
  }

  /// Returns the bytes that samples take in a file of this format: the most for FLAC and ALAC, and for lossy codecs, in
  /// the quality that `AudioWriter` chooses, what white noise takes. That is 15,000 bytes for a second of a channel in
  /// Opus, whatever the rate, and .14 to .32 bytes a sample in MP3 and Vorbis at 44.1 and 48 kHz.
  package func expectedBytes(frames: Int64) -> Int64 {
    let (samples, overflow) = max(frames, 0).multipliedReportingOverflow(by: Int64(channels))
    guard !overflow, samples < 1 << 58 else { return 1 << 60 }
    switch codec {
    case .opus: return Int64(Double(samples) * 15_000 / Double(max(sampleRate, 1)))
    default: return codec.sampleKind == .lossy ? samples / 3 : samples * Int64(codec.bytesPerSample)
    }
  }

  /// The customary file name extension.
  package var fileExtension: String {
    switch (container, codec) {
    case (.rf64, _): "wav"
    case (.ogg, .opus): "opus"
    case (.ircam, _): "sf"
    case (.nist, _): "sph"
    case (.svx, _): "iff"
    case (.mat4, _), (.mat5, _): "mat"
    case (.mpc2k, _): "snd"
    default: container.rawValue
    }
  }

  /// The media type, registered or customary.
  package var mediaType: String {
    switch container {
    case .wav, .rf64: "audio/wav"
    case .w64: "audio/x-w64"
    case .aiff: "audio/aiff"
    case .au: "audio/basic"
    case .caf: "audio/x-caf"
    case .flac: "audio/flac"
    case .ogg: "audio/ogg"
    case .mp3: "audio/mpeg"
    case .nist, .ircam, .paf, .pvf, .svx, .avr, .xi, .wve, .sds, .htk, .mpc2k: "audio/x-\(container.rawValue)"
    case .mat4, .mat5: "audio/x-mat"
    }
  }
}
