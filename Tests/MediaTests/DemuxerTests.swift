import Foundation
import Terms
import Testing

@testable import Media

/// The format recognized from a file's first bytes.
struct DemuxerTests {
  struct Case: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let bytes: [UInt8]
    let demuxer: Demuxer?

    init(_ name: String, _ bytes: [UInt8], _ demuxer: Demuxer?) {
      (testDescription, self.bytes, self.demuxer) = (name, bytes, demuxer)
    }
  }

  private static func ogg(_ packet: [UInt8]) -> [UInt8] {
    Array("OggS".utf8) + [UInt8](repeating: 0, count: 22) + [1, UInt8(packet.count)] + packet
  }

  private static func packets(_ length: Int, first: Int) -> [UInt8] {
    let packet = [0x47, 0x40, 0x11, 0x10] + [UInt8](repeating: 0xFF, count: length - 4)
    return [UInt8](repeating: 0, count: first) + Array(repeatElement(packet, count: 8).joined())
  }

  private static func wave(_ tag: UInt8) -> [UInt8] {
    Array("RIFF1234WAVEfmt ".utf8) + [16, 0, 0, 0, tag, 0] + [UInt8](repeating: 0, count: 14)
  }

  private static func caf(_ codec: String, flags: UInt8) -> [UInt8] {
    Array("caff".utf8) + [0, 1, 0, 0] + Array("desc".utf8) + [0, 0, 0, 0, 0, 0, 0, 32, 0x40, 0xE7, 0x70, 0, 0, 0, 0, 0]
      + Array(codec.utf8) + [0, 0, 0, flags] + [UInt8](repeating: 0, count: 16)
  }

  private static let adts: [UInt8] = [0xFF, 0xF1, 0x50, 0x80, 12, 0x9F, 0xFC, 7]

  static let cases = [
    Case("an MP4", [0, 0, 0, 32] + Array("ftypisom".utf8), .mov),
    Case("a QuickTime file that begins with its samples", [0, 0, 0, 8] + Array("wide".utf8), .mov),
    Case(
      "a segment with its own header", [0, 0, 0, 8] + Array("styp".utf8) + [0, 0, 0, 8] + Array("moov".utf8), .mov),
    Case("a segment without one", [0, 0, 0, 8] + Array("styp".utf8) + [0, 0, 0, 8] + Array("moof".utf8), nil),
    Case("a Matroska file", [0x1A, 0x45, 0xDF, 0xA3, 0x01], .matroska),
    Case("a Windows Media file", [0x30, 0x26, 0xB2, 0x75, 0x8E, 0x66, 0xCF, 0x11, 0xA6], .asf),
    Case("raw AAC", adts, .aac),
    Case("raw AAC behind an ID3 tag", Array("ID3".utf8) + [4, 0, 0, 0, 0, 0, 2, 7, 7] + adts, .aac),
    Case("AMR", Array("#!AMR\n".utf8), .amr),
    Case("AC-3", [0x0B, 0x77, 0, 0, 0, 8 << 3, 0, 0], .ac3),
    Case("E-AC-3", [0x0B, 0x77, 0, 40, 0, 16 << 3, 0, 0], .eac3),
    Case("FLAC in Ogg", ogg(Array("\u{7F}FLAC".utf8)), .ogg),
    Case("Speex", ogg(Array("Speex   1.2".utf8)), .ogg),
    Case("a program stream", [0, 0, 1, 0xBA, 0x44], .mpeg),
    Case("a transport stream from amid a packet", [1, 2, 3] + packets(188, first: 0), .mpegts),
    Case("Blu-ray's transport stream", packets(192, first: 4), .mpegts),
    Case("letters that look like packets", [UInt8](repeating: 0x47, count: 2000), nil),
    Case("an AVI file", Array("RIFF1234AVI LIST".utf8), .avi),
    Case("a Flash video", Array("FLV".utf8) + [1, 5, 0, 0, 0, 9], .flv),
    Case("WavPack behind an ID3 tag", Array("ID3".utf8) + [4, 0, 0, 0, 0, 0, 2, 7, 7] + Array("wvpk1234".utf8), .wv),
    Case("True Audio", Array("TTA1".utf8), .tta),
    Case("Monkey's Audio", Array("MAC ".utf8) + [0x96, 0x0F], .ape),
    Case("Musepack 7", Array("MP+".utf8) + [0x17, 1, 0, 0, 0], .mpc),
    Case("Musepack 8", Array("MPCKSH".utf8), .mpc8),
    Case("DSD", Array("DSD ".utf8) + [28, 0, 0, 0, 0, 0, 0, 0, 92], .dsf),
    Case("DTS", [0x7F, 0xFE, 0x80, 0x01, 0xFC], .dts),
    Case("a Creative Voice file", Array("Creative Voice File".utf8) + [0x1A, 0x1A, 0], .voc),
    Case("G.726 in WAV", wave(0x45), .wav),
    Case("PCM in WAV, which libsndfile reads", wave(1), nil),
    Case("Opus in CAF", caf("opus", flags: 0), .caf),
    Case("ALAC in CAF of unknown depth", caf("alac", flags: 0), .caf),
    Case("ALAC in CAF, which libsndfile reads", caf("alac", flags: 3), nil),
    Case("Vorbis, which libsndfile reads", ogg([1] + Array("vorbis".utf8)), nil),
    Case("MP3", [0xFF, 0xFB, 0x90, 0x64], nil),
    Case("MP3 behind an ID3 tag", Array("ID3".utf8) + [4, 0, 0, 0, 0, 0, 0] + [0xFF, 0xFB, 0x90, 0x64], nil),
    Case("a WAV file", Array("RIFF1234WAVE".utf8), nil),
    Case("a playlist of pieces", Array("#EXTM3U\n#EXT-X-VERSION:3\n".utf8), nil),
    Case("a list of files to be joined", Array("ffconcat version 1.0\nfile '/etc/passwd'\n".utf8), nil),
    Case("a manifest", Array("<?xml version=\"1.0\"?><MPD>".utf8), nil),
    Case("a session description", Array("v=0\no=- 0 0 IN IP4 127.0.0.1\n".utf8), nil),
    Case("an ID3 tag that claims to be longer than the file", Array("ID3".utf8) + [4, 0, 0, 127, 127, 127, 127], nil),
    Case(
      "an Ogg page whose table is longer than the file", Array("OggS".utf8) + [UInt8](repeating: 255, count: 30), nil),
    Case("nothing", [], nil),
  ]

  @Test("a file's format is determined by its first bytes", arguments: cases)
  func sniffing(_ file: Case) throws {
    let path = NSTemporaryDirectory() + "stillwave-media-\(UUID().uuidString).mp4"
    try Data(file.bytes).write(to: URL(fileURLWithPath: path))
    defer { try? FileManager.default.removeItem(atPath: path) }
    #expect(Demuxer(path: path) == file.demuxer)
  }

  @Test("a missing file has no format")
  func missing() {
    #expect(Demuxer(path: "/nonexistent/a.mp4") == nil)
  }

  @Test("no format is read by a demuxer that opens other files")
  func harmless() {
    let harmful = ["hls", "concat", "dash", "image2", "sdp", "rtsp", "lavfi", "applehttp", "imf"]
    #expect(Demuxer.allCases.allSatisfy { !harmful.contains($0.rawValue) })
  }
}
