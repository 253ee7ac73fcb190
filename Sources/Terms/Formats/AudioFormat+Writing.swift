extension AudioFormat {
  /// Whether libsndfile 1.2.0 can write such a file, apart from what only the encoders of lossy codecs know: see
  /// `OutputFormat`.
  package var isWritable: Bool {
    guard container.writableCodecs.contains(codec), channels <= min(container.channelLimit, codec.channelLimit) else {
      return false
    }
    // Rates that a frame's header can hold (RFC 9639 §9.1.2), without which libFLAC writes nothing.
    return container != .flac || sampleRate < 65_536 || sampleRate <= 655_350 && sampleRate % 10 == 0
  }
}

extension AudioContainer {
  /// The codecs that libsndfile can write in such a file. It also accepts 12-bit DWVW, MPEG layers 1 and 2, and MPEG
  /// audio in WAV, but then fails to write them; with 20-bit ALAC, it writes other samples than it was given.
  fileprivate var writableCodecs: Set<AudioCodec> {
    let wide: Set<AudioCodec> = [.pcmS16, .pcmS24, .pcmS32, .pcmF32, .pcmF64, .aLaw, .muLaw]
    return switch self {
    case .wav:
      wide.union([.pcmU8, .imaADPCM, .microsoftADPCM, .gsm610, .g721, .nmsADPCM16, .nmsADPCM24, .nmsADPCM32])
    case .rf64: wide.union([.pcmU8])
    case .w64: wide.union([.pcmU8, .imaADPCM, .microsoftADPCM, .gsm610])
    case .aiff: wide.union([.pcmS8, .pcmU8, .imaADPCM, .gsm610, .dwvw16, .dwvw24])
    case .au: wide.union([.pcmS8, .g721, .g723At24, .g723At40])
    case .caf: wide.union([.pcmS8, .alac16, .alac24, .alac32])
    case .flac: [.flacS8, .flacS16, .flacS24]
    case .ogg: [.vorbis, .opus]
    case .mp3: [.mp3]
    case .paf, .sds: [.pcmS8, .pcmS16, .pcmS24]
    case .svx: [.pcmS8, .pcmS16]
    case .nist: [.pcmS8, .pcmS16, .pcmS24, .pcmS32, .aLaw, .muLaw]
    case .ircam: [.pcmS16, .pcmS32, .pcmF32, .aLaw, .muLaw]
    case .mat4: [.pcmS16, .pcmS32, .pcmF32, .pcmF64]
    case .mat5: [.pcmU8, .pcmS16, .pcmS32, .pcmF32, .pcmF64]
    case .pvf: [.pcmS8, .pcmS16, .pcmS32]
    case .xi: [.dpcm8, .dpcm16]
    case .htk, .mpc2k: [.pcmS16]
    case .avr: [.pcmS8, .pcmU8, .pcmS16]
    case .wve: [.aLaw]
    }
  }

  fileprivate var channelLimit: Int {
    switch self {
    case .svx, .xi, .htk, .sds, .wve: 1
    case .avr, .mpc2k, .mp3: 2
    case .flac: 8
    case .ircam: 256
    default: 1024
    }
  }
}

extension AudioCodec {
  fileprivate var channelLimit: Int {
    switch self {
    case .gsm610, .g721, .g723At24, .g723At40, .nmsADPCM16, .nmsADPCM24, .nmsADPCM32, .dwvw16, .dwvw24: 1
    case .imaADPCM, .microsoftADPCM: 2
    default: .max
    }
  }
}
