import CSndfile
import Terms

/// The table that maps libsndfile's numbers to our names.
private let containers: [(AudioContainer, Int32)] = [
  (.wav, 0x01_0000), (.wav, 0x13_0000), (.rf64, 0x22_0000), (.w64, 0x0B_0000), (.aiff, 0x02_0000),
  (.au, 0x03_0000), (.caf, 0x18_0000), (.flac, 0x17_0000), (.ogg, 0x20_0000), (.mp3, 0x23_0000),
  (.paf, 0x05_0000), (.svx, 0x06_0000), (.nist, 0x07_0000), (.ircam, 0x0A_0000), (.mat4, 0x0C_0000), (.mat5, 0x0D_0000),
  (.pvf, 0x0E_0000), (.xi, 0x0F_0000), (.htk, 0x10_0000), (.sds, 0x11_0000), (.avr, 0x12_0000), (.wve, 0x19_0000),
  (.mpc2k, 0x21_0000),
]

private let codecs: [(AudioCodec, Int32)] = [
  (.pcmS8, 0x01), (.pcmS16, 0x02), (.pcmS24, 0x03), (.pcmS32, 0x04), (.pcmU8, 0x05), (.pcmF32, 0x06), (.pcmF64, 0x07),
  (.muLaw, 0x10), (.aLaw, 0x11), (.imaADPCM, 0x12), (.microsoftADPCM, 0x13), (.gsm610, 0x20),
  (.nmsADPCM16, 0x22), (.nmsADPCM24, 0x23), (.nmsADPCM32, 0x24), (.g721, 0x30), (.g723At24, 0x31), (.g723At40, 0x32),
  (.dwvw12, 0x40), (.dwvw16, 0x41), (.dwvw24, 0x42), (.dpcm8, 0x50), (.dpcm16, 0x51), (.vorbis, 0x60), (.opus, 0x64),
  (.alac16, 0x70), (.alac20, 0x71), (.alac24, 0x72), (.alac32, 0x73), (.mp1, 0x80), (.mp2, 0x81), (.mp3, 0x82),
]

private let containerMask: Int32 = 0x0FFF_0000
private let codecMask: Int32 = 0x0000_FFFF

extension AudioFormat {
  /// Fails if libsndfile reads a kind of file that the service doesn't offer.
  init?(_ info: SF_INFO) {
    guard let container = containers.first(where: { $0.1 == info.format & containerMask })?.0,
      var codec = codecs.first(where: { $0.1 == info.format & codecMask })?.0
    else { return nil }
    if container == .flac {
      switch codec {
      case .pcmS8: codec = .flacS8
      case .pcmS24: codec = .flacS24
      default: codec = .flacS16
      }
    }
    self.init(container: container, codec: codec, sampleRate: Int(info.samplerate), channels: Int(info.channels))
  }

  /// The libsndfile description for writing this format.
  var sndfileInfo: SF_INFO {
    let plainCodec: AudioCodec =
      switch codec {
      case .flacS8: .pcmS8
      case .flacS16: .pcmS16
      case .flacS24: .pcmS24
      default: codec
      }
    var info = SF_INFO()
    info.samplerate = Int32(clamping: sampleRate)
    info.channels = Int32(clamping: channels)
    info.format =
      (containers.first { $0.0 == container }?.1 ?? 0) | (codecs.first { $0.0 == plainCodec }?.1 ?? 0)
    return info
  }
}
