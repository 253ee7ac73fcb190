import Foundation

@testable import Sounds

/// A file that lies, is broken, or isn't sound at all.
struct HostileFile {
  /// The permitted outcome.
  enum Verdict {
    /// 415 or 422 only.
    case refused
    /// A recording of all its sound, whatever else is odd.
    case sound
    /// Any outcome that isn't silent: a rejection, a warning, or a failed job.
    case told
  }

  let name: String
  let bytes: [UInt8]
  let verdict: Verdict

  init(_ name: String, _ bytes: [UInt8], _ verdict: Verdict = .told) {
    (self.name, self.bytes, self.verdict) = (name, bytes, verdict)
  }

  static func all(_ folder: TemporaryFolder) throws -> [HostileFile] {
    try truncations(folder) + sizes() + formats() + samples() + lengths(folder) + inDisguise(folder)
      + [bomb(folder)]
  }

  // MARK: Cut short

  /// Every kind of file, truncated inside its header, right after it, and at several places in the audio.
  private static func truncations(_ folder: TemporaryFolder) throws -> [HostileFile] {
    let plain = folder.file("whole.wav")
    try write(WAVFile.noise(seconds: 4, seed: 9), to: plain)
    let kinds: [(name: String, arguments: [String])] = [
      ("wav", ["-c:a", "pcm_s16le"]), ("wav", ["-c:a", "pcm_s24le"]), ("wav", ["-c:a", "pcm_f32le"]),
      ("rf64", ["-rf64", "always", "-f", "wav"]), ("w64", []), ("aiff", []), ("au", []), ("caf", []), ("flac", []),
      ("ogg", ["-c:a", "libvorbis"]), ("opus", ["-c:a", "libopus"]), ("mp3", ["-c:a", "libmp3lame"]),
    ]
    return try kinds.enumerated().flatMap { index, kind -> [HostileFile] in
      let path = folder.file("\(index).\(kind.name)")
      try Tool.ffmpeg.run(["-v", "error", "-y", "-i", plain] + kind.arguments + [path])
      let bytes = try contents(path)
      return [3, 16, 40, 100, bytes.count / 10, bytes.count / 3, bytes.count / 2, bytes.count * 9 / 10].map { length in
        HostileFile("\(kind.name) \(kind.arguments.last ?? "") cut at \(length)", Array(bytes.prefix(length)))
      }
    }
  }

  // MARK: Headers that lie

  private static let tone = Clip.tone

  private static func wave(_ change: (inout WAVFile) -> Void) -> [UInt8] {
    var file = tone
    change(&file)
    return file.bytes
  }

  private static func sizes() -> [HostileFile] {
    let claims: [UInt32] = [0x7FFF_FFFF, 0x8000_0000, 0xFFFF_FFDB, 0xFFFF_FFFE, 0xFFFF_FFFF]
    let empty = HostileFile("WAV that claims no samples", wave { $0.claimedBytes = 0 })
    return claims.flatMap { claim in
      let hex = "0x" + String(claim, radix: 16)
      return [
        HostileFile("WAV of \(hex) bytes", wave { $0.claimedBytes = claim }),
        HostileFile("WAV whose fmt has \(hex) bytes", replaced(tone.bytes, at: 16, littleEndian(claim))),
        HostileFile("AIFF of \(hex) frames", aiff(frames: claim, soundBytes: nil)),
        HostileFile("AIFF whose sound has \(hex) bytes", aiff(frames: nil, soundBytes: claim)),
        HostileFile("RF64 of \(hex)00000000 bytes", rf64(high: claim)),
      ]
    } + [empty]
  }

  private static func replaced(_ bytes: [UInt8], at offset: Int, _ new: [UInt8]) -> [UInt8] {
    Array(bytes[..<offset]) + new + Array(bytes[(offset + new.count)...])
  }

  private static func bigEndian(_ value: UInt32) -> [UInt8] { littleEndian(value.byteSwapped) }

  /// 16 bits, mono, 8 kHz; the rate is an 80-bit float.
  private static func aiff(frames: UInt32?, soundBytes: UInt32?) -> [UInt8] {
    let samples = tone.data
    let common =
      littleEndian(UInt16(1).byteSwapped) + bigEndian(frames ?? UInt32(samples.count / 2))
      + littleEndian(UInt16(16).byteSwapped) + [0x40, 0x0B, 0xFA, 0, 0, 0, 0, 0, 0, 0]
    let sound = bigEndian(soundBytes ?? UInt32(samples.count + 8)) + [UInt8](repeating: 0, count: 8) + samples
    let body = Array("AIFFCOMM".utf8) + bigEndian(18) + common + Array("SSND".utf8) + sound
    return Array("FORM".utf8) + bigEndian(UInt32(body.count)) + body
  }

  /// The upper half of the 64-bit sizes in the ds64 chunk is `high`.
  private static func rf64(high: UInt32) -> [UInt8] {
    let length = littleEndian(UInt32(tone.data.count)) + littleEndian(high)
    let sizes = length + length + littleEndian(UInt64(tone.data.count / 2)) + littleEndian(UInt32(0))
    return Array("RF64".utf8) + littleEndian(UInt32.max) + Array("WAVEds64".utf8) + littleEndian(UInt32(28)) + sizes
      + Array(tone.bytes[12..<40]) + littleEndian(UInt32.max) + tone.data
  }

  /// FLAC whose header has a wrong length or none, and chained files whose second part looks like junk.
  private static func lengths(_ folder: TemporaryFolder) throws -> [HostileFile] {
    let (plain, path) = (folder.file("tone.wav"), folder.file("tone.flac"))
    try write(tone.bytes, to: plain)
    try Tool.ffmpeg.run(["-v", "error", "-y", "-i", plain, "-c:a", "flac", path])
    let bytes = try contents(path)
    let claims: [UInt32] = [0, 1, UInt32(tone.frames - 1), UInt32(tone.frames + 1), .max]
    let liars = claims.map {
      HostileFile("FLAC of \($0) frames", replaced(bytes, at: 22, bigEndian($0)))
    }
    let layerII = try ["384k", "64k"].map { rate in
      let path = folder.file("tone\(rate).mp2")
      try Tool.ffmpeg.run(["-v", "error", "-y", "-i", plain, "-ar", "44100", "-ac", "2", "-b:a", rate, path])
      return try contents(path)
    }
    return liars + [
      HostileFile("two FLACs in one", bytes + bytes),
      HostileFile("two MPEG layer II files of other bit rates", layerII[0] + layerII[1]),
    ]
  }

  private static func formats() -> [HostileFile] {
    let format = Array(tone.bytes[12..<36])
    let other = replaced(replaced(format, at: 10, littleEndian(UInt16(2))), at: 12, littleEndian(UInt32(96_000)))
    return [
      HostileFile("0 channels", wave { $0.channels = 0 }, .refused),
      HostileFile("65,535 channels", replaced(tone.bytes, at: 22, littleEndian(UInt16.max)), .refused),
      HostileFile("a rate of 0", wave { $0.rate = 0 }, .refused),
      HostileFile("a rate of 4 G", replaced(tone.bytes, at: 24, littleEndian(UInt32.max)), .refused),
      HostileFile("a rate of 2 G", replaced(tone.bytes, at: 24, littleEndian(UInt32(0x8000_0000))), .refused),
      HostileFile("0 bits", replaced(tone.bytes, at: 34, littleEndian(UInt16(0)))),
      HostileFile("65,535 bits", replaced(tone.bytes, at: 34, littleEndian(UInt16.max)), .refused),
      HostileFile("a codec that nobody knows", replaced(tone.bytes, at: 20, littleEndian(UInt16(0x4242))), .refused),
      HostileFile("frames of 0 bytes", replaced(tone.bytes, at: 32, littleEndian(UInt16(0))), .sound),
      HostileFile("two fmt chunks", Array(tone.bytes[..<36]) + other + Array(tone.bytes[36...])),
      HostileFile("a fmt chunk after the samples", tone.bytes + other, .sound),
      HostileFile("samples before the fmt chunk", Array(tone.bytes[..<12]) + Array(tone.bytes[36...]) + format),
    ]
  }

  // MARK: Samples and bombs

  private static func samples() -> [HostileFile] {
    [Float.nan, .infinity, -.infinity, .signalingNaN].map { value in
      HostileFile(
        "samples that are \(value)", WAVFile(floats: [Float](repeating: value, count: 20_000), rate: 8000).bytes)
    } + [
      HostileFile(
        "the loudest floats",
        WAVFile(floats: [Float](repeating: .greatestFiniteMagnitude, count: 20_000), rate: 8000).bytes, .sound)
    ]
  }

  /// A few kilobytes that decode to 28 million samples.
  private static func bomb(_ folder: TemporaryFolder) throws -> HostileFile {
    let path = folder.file("bomb.flac")
    let silence = "anullsrc=sample_rate=48000:channel_layout=mono"
    try Tool.ffmpeg.run([
      "-v", "error", "-y", "-f", "lavfi", "-i", silence, "-t", "583", "-c:a", "flac", "-frame_size", "32768", path,
    ])
    return HostileFile("a FLAC bomb", try contents(path), .sound)
  }

  private static func inDisguise(_ folder: TemporaryFolder) throws -> [HostileFile] {
    let (plain, aac, picture) = (folder.file("plain.wav"), folder.file("a.aac"), folder.file("a.jpg"))
    try write(tone.bytes, to: plain)
    try Tool.ffmpeg.run(["-v", "error", "-y", "-i", plain, "-c:a", "aac", aac])
    try Tool.ffmpeg.run(["-v", "error", "-y", "-f", "lavfi", "-i", "testsrc=size=320x240", "-frames:v", "1", picture])
    let zip = Array("PK\u{3}\u{4}".utf8) + [UInt8](repeating: 0, count: 26) + tone.bytes
    return [
      HostileFile("a zip named .wav", zip, .refused), HostileFile("a JPEG named .wav", try contents(picture), .refused),
      // Read as what it is, with ffmpeg: names don't matter.
      HostileFile("AAC named .mp3", try contents(aac), .sound),
    ]
  }
}
