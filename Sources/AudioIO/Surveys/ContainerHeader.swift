import Glibc
import Terms

// What the first bytes of a file declare. They are parsed here because extensions and Content-Type can be wrong, and
// because libsndfile reports neither what a header claimed before it was corrected nor why it rejected one.
//
//   RIFF/WAVE, RF64   "RIFF" size "WAVE" (id size bytes, padded to even)*  "fmt ": tag, channels, rate, …, block
//                     align; "data": samples. RF64 keeps the 64-bit data size in "ds64" at offset 8 of its content.
//   AIFF, AIFF-C      "FORM" size "AIFF" (id size bytes, padded to even)*  "COMM": channels, frames, bits, rate as
//                     an 80-bit float; "SSND": offset, block size, samples. COMM's frames are converted to bytes.
//   W64               for every chunk a GUID and a 64-bit size that includes these 24 bytes, padded to 8; a GUID begins
//                     with the letters of the RIFF chunk, in lower case. "riff" and "wave" occupy the first 40 bytes.
//   AU                ".snd" data offset, data size (2^32 − 1: unknown), encoding, rate, channels; all big-endian.
//   FLAC, Ogg, CAF, and MP3 are recognized by their magic; for everything else libsndfile's header parser is used.

/// What a file's own header declares, before any decoder sees it.
package struct ContainerHeader: Sendable, Equatable {
  /// The kind of file, according to its first bytes.
  package let container: AudioContainer
  /// Nil if this parser doesn't extract it.
  package private(set) var channels: Int?
  /// In hertz; nil if this parser doesn't extract it.
  package private(set) var sampleRate: Int64?
  /// Bytes of coded samples that the header promises.
  package private(set) var declaredDataBytes: Int64?
  /// Bytes from the start of the coded samples to the end of the file.
  package private(set) var presentDataBytes: Int64?

  /// Bytes after the promised samples of a WAV, RF64, AIFF, or AU file that don't form a chunk. They may be sound
  /// written after the header was.
  package private(set) var strayBytes: Int64 = 0

  /// Whether a WAV file's samples are coded in blocks, and one byte remains: the padding to an even length, which some
  /// encoders count.
  private(set) var countsPadding = false
  /// Whether a WAV file has GSM 6.10.
  private(set) var isGSM = false

  /// Whether the first bytes identify the format. False for an MP3 with other data before its first frame.
  private(set) var beginsWithMark = true

  /// The offset of a WAV file's samples.
  private(set) var dataOffset: Int64?
  /// The size of the whole file, in bytes.
  let fileSize: Int64

  /// Whether the header was written before the length was known, to a pipe or before a crash. It then contains the
  /// largest number (ffmpeg: 32 bits, sox: 0x7FFFF000, both sometimes minus the header's size) or 0.
  package var lengthIsUnknown: Bool {
    guard let declaredDataBytes, let presentDataBytes, declaredDataBytes != presentDataBytes else { return false }
    switch declaredDataBytes {
    case 0, 0x7FFF_EF00...0x7FFF_F000, 0xFFFF_FF00...0xFFFF_FFFF: return true
    default: return false
    }
  }

  /// Reads and evaluates the first bytes of the file at `path`.
  ///
  /// Throws `.unsupportedMedia` if they aren't in a supported format. Costs a few small reads.
  package init(path: String) throws(AudioIOError) {
    let file = try HeaderFile(path: path)
    let head = try file.bytes(at: 0, count: 64)
    let magic = head.prefix(16)
    switch magic.prefix(4) {
    case "RIFF" where magic.dropFirst(8).prefix(4) == "WAVE": self.init(container: .wav, fileSize: file.size)
    case "RF64" where magic.dropFirst(8).prefix(4) == "WAVE": self.init(container: .rf64, fileSize: file.size)
    case "FORM" where magic.dropFirst(8).prefix(4) == "AIFF", "FORM" where magic.dropFirst(8).prefix(4) == "AIFC":
      self.init(container: .aiff, fileSize: file.size)
    case ".snd": self.init(container: .au, fileSize: file.size)
    case "fLaC": self.init(container: .flac, fileSize: file.size)
    case "OggS": self.init(container: .ogg, fileSize: file.size)
    case "caff": self.init(container: .caf, fileSize: file.size)
    case "riff": self.init(container: .w64, fileSize: file.size)
    case let start where start.prefix(3) == "ID3" || isMPEGAudioHeader(start):
      self.init(container: .mp3, fileSize: file.size)
    default:
      if let rare = AudioContainer.rare(Array(head), fileSize: file.size) {
        self.init(container: rare, fileSize: file.size)
      } else if let found = describe(magic), found != text {
        throw .unsupportedMedia(found: found)
      } else if try MPEGSurvey.firstFrame(path: path) != nil {
        self.init(container: .mp3, fileSize: file.size)
        beginsWithMark = false
      } else {
        throw .unsupportedMedia(found: describe(magic))
      }
    }
    switch container {
    case .wav, .rf64: try readRIFF(file)
    case .aiff: try readAIFF(file)
    case .au: try readAU(file)
    case .w64: try readW64(file)
    default: break
    }
  }

  private init(container: AudioContainer, fileSize: Int64) {
    self.container = container
    self.fileSize = fileSize
  }

  private mutating func readRIFF(_ file: borrowing HeaderFile) throws(AudioIOError) {
    var longDataBytes: Int64?
    var blockBytes: Int64?
    for chunk in try file.chunks(bigEndian: false) {
      let content = try file.bytes(at: chunk.offset, count: 24)
      switch chunk.id {
      case "ds64": longDataBytes = content.little(8, bytes: 8)
      case "fmt ":
        guard channels == nil else { continue }
        channels = content.little(2, bytes: 2).map(Int.init)
        sampleRate = content.little(4, bytes: 4)
        // Microsoft's and IMA's ADPCM, and GSM 6.10.
        if [0x02, 0x11, 0x31].contains(content.little(0, bytes: 2)) { blockBytes = content.little(12, bytes: 2) }
        isGSM = content.little(0, bytes: 2) == 0x31
      case "data":
        declaredDataBytes = chunk.size == 0xFFFF_FFFF ? longDataBytes ?? chunk.size : chunk.size
        if let blockBytes, blockBytes > 1 { countsPadding = (declaredDataBytes ?? 0) % blockBytes == 1 }
        presentDataBytes = max(file.size - chunk.offset, 0)
        dataOffset = chunk.offset
        strayBytes = try file.strayBytes(after: declaredDataBytes ?? 0, from: chunk.offset, bigEndian: false)
        return
      default: continue
      }
    }
  }

  private mutating func readW64(_ file: borrowing HeaderFile) throws(AudioIOError) {
    var offset: Int64 = 40
    for _ in 0..<4096 {
      let head = try file.bytes(at: offset, count: 24)
      guard let size = head.little(16, bytes: 8), size >= 24, size < .max - offset - 8 else { return }
      switch head.prefix(4) {
      case "fmt ":
        let content = try file.bytes(at: offset + 24, count: 8)
        channels = content.little(2, bytes: 2).map(Int.init)
        sampleRate = content.little(4, bytes: 4)
      case "data":
        declaredDataBytes = size - 24
        presentDataBytes = max(file.size - offset - 24, 0)
        return
      default: break
      }
      offset += (size + 7) / 8 * 8
    }
  }

  private mutating func readAIFF(_ file: borrowing HeaderFile) throws(AudioIOError) {
    var promisedBytes: Int64 = 0
    for chunk in try file.chunks(bigEndian: true) {
      let content = try file.bytes(at: chunk.offset, count: 18)
      switch chunk.id {
      case "COMM":
        channels = content.big(0, bytes: 2).map(Int.init)
        sampleRate = content.extendedFloat(at: 8)
        // AIFF-C may be compressed, so its number of frames implies no number of bytes.
        if try file.bytes(at: 8, count: 4) == "AIFF", let channels, let frames = content.big(2, bytes: 4),
          let bits = content.big(6, bytes: 2)
        {
          // At most 2^16 · 2^32 · 2^13, so it fits.
          promisedBytes = frames * Int64(channels) * ((bits + 7) / 8)
        }
      case "SSND":
        declaredDataBytes = max(chunk.size - 8, 0)
        presentDataBytes = max(file.size - chunk.offset - 8, 0)
        strayBytes = try file.strayBytes(after: chunk.size, from: chunk.offset, bigEndian: true)
      default: continue
      }
    }
    declaredDataBytes = declaredDataBytes.map { max($0, promisedBytes) }
  }

  private mutating func readAU(_ file: borrowing HeaderFile) throws(AudioIOError) {
    let content = try file.bytes(at: 0, count: 24)
    guard let offset = content.big(4, bytes: 4), let bytes = content.big(8, bytes: 4) else { return }
    sampleRate = content.big(16, bytes: 4)
    channels = content.big(20, bytes: 4).map { Int(truncatingIfNeeded: $0) }
    declaredDataBytes = bytes
    presentDataBytes = max(file.size - offset, 0)
    strayBytes = max(file.size - offset - bytes, 0)
  }
}

/// Whether the bytes begin an MPEG audio frame: eleven ones; layer 0, version 1, and rates 15 and 3 are reserved (ISO
/// 11172-3 2.4.2.3).
private func isMPEGAudioHeader(_ bytes: ArraySlice<UInt8>) -> Bool {
  guard bytes.count >= 4 else { return false }
  let head = Array(bytes)
  return head[0] == 0xFF && head[1] & 0xE0 == 0xE0 && head[1] & 0x18 != 0x08 && head[1] & 0x06 != 0
    && head[2] & 0xF0 != 0xF0 && head[2] & 0x0C != 0x0C
}

private let text = "text"

/// Returns a name for formats that are often uploaded by mistake or must be converted by other programs; nil for
/// others.
private func describe(_ magic: ArraySlice<UInt8>) -> String? {
  if magic.dropFirst(4).prefix(4) == "ftyp" { return "an MP4, M4A or MOV file" }
  if ["styp", "sidx", "moof"].contains(where: { magic.dropFirst(4).prefix(4) == $0 })
    || magic.starts(with: [0x1F, 0x43, 0xB6, 0x75])
  {
    return "a segment of a stream (DASH or HLS) without its initialization segment, which describes the sound: upload "
      + "that segment and those that follow it, joined into one file"
  }
  if magic.starts(with: [0x1A, 0x45, 0xDF, 0xA3]) { return "a WebM or Matroska file" }
  if magic.starts(with: [0x30, 0x26, 0xB2, 0x75]) { return "a Windows Media file" }
  if magic.prefix(5) == "#!AMR" { return "an AMR file" }
  if magic.count >= 2, magic.starts(with: [0xFF]), Array(magic)[1] & 0xF6 == 0xF0 { return "an AAC (ADTS) stream" }
  // Archives and programs are listed because they may contain uncompressed sound.
  if magic.starts(with: [0x50, 0x4B, 0x03, 0x04]) { return "a ZIP archive" }
  if [[0x37, 0x7A, 0xBC, 0xAF], Array("Rar!".utf8)].contains(where: { magic.starts(with: $0) }) {
    return "an archive"
  }
  if [[0x1F, 0x8B], [0xFD, 0x37, 0x7A, 0x58], [0x28, 0xB5, 0x2F, 0xFD], Array("BZh".utf8)].contains(where: {
    magic.starts(with: $0)
  }) {
    return "a compressed file"
  }
  if magic.starts(with: [0x7F, 0x45, 0x4C, 0x46]) || magic.prefix(2) == "MZ" { return "a program" }
  if magic.prefix(4) == "GIF8" { return "a GIF picture" }
  if magic.prefix(15) == "SQLite format 3" { return "a database" }
  if magic.prefix(4) == "MThd" { return "a MIDI file" }
  if magic.starts(with: [0xFF, 0xD8, 0xFF]) { return "a JPEG picture" }
  if magic.starts(with: [0x89, 0x50, 0x4E, 0x47]) { return "a PNG picture" }
  if magic.prefix(5) == "%PDF-" { return "a PDF document" }
  if !magic.isEmpty, magic.allSatisfy({ (0x20...0x7E).contains($0) || (9...13).contains($0) }) { return text }
  return nil
}

/// A file of any size, for small reads at any offset.
private struct HeaderFile: ~Copyable {
  private let descriptor: Int32
  let size: Int64

  struct Chunk {
    let id: ArraySlice<UInt8>
    let offset: Int64
    let size: Int64
  }

  init(path: String) throws(AudioIOError) {
    descriptor = unsafe Glibc.open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw .system(operation: "open", errno: errno) }
    size = Int64(lseek(descriptor, 0, SEEK_END))
  }

  deinit { close(descriptor) }

  /// Reads `count` bytes, or fewer at the end of the file.
  func bytes(at offset: Int64, count: Int) throws(AudioIOError) -> ArraySlice<UInt8> {
    var bytes = [UInt8](repeating: 0, count: count)
    let got = unsafe bytes.withUnsafeMutableBytes { unsafe pread(descriptor, $0.baseAddress, count, off_t(offset)) }
    guard got >= 0 else { throw .system(operation: "read", errno: errno) }
    return bytes.prefix(got)
  }

  /// Returns the chunks of a RIFF or IFF file in order. Stops at 4,096, because a hostile file may contain millions.
  func chunks(bigEndian: Bool) throws(AudioIOError) -> [Chunk] {
    var chunks: [Chunk] = []
    var offset: Int64 = 12
    while chunks.count < 4096, offset + 8 <= size {
      let head = try bytes(at: offset, count: 8)
      guard let length = bigEndian ? head.big(4, bytes: 4) : head.little(4, bytes: 4) else { break }
      chunks.append(Chunk(id: head.prefix(4), offset: offset + 8, size: length))
      if head.prefix(4) == "data" { break }
      offset += 8 + length + length % 2
    }
    return chunks
  }
}

extension HeaderFile {
  /// Returns the number of bytes after the `count` bytes from `offset`, unless a chunk begins there.
  fileprivate func strayBytes(after count: Int64, from offset: Int64, bigEndian: Bool) throws(AudioIOError) -> Int64 {
    guard count < size - offset else { return 0 }
    let end = offset + count + count % 2
    let head = try bytes(at: end, count: 8)
    guard let length = bigEndian ? head.big(4, bytes: 4) : head.little(4, bytes: 4) else { return 0 }
    let isChunk = head.prefix(4).allSatisfy { (0x20...0x7E).contains($0) } && length <= size - end - 8
    return isChunk ? 0 : size - end
  }
}

extension ArraySlice<UInt8> {
  fileprivate static func ~= (text: String, bytes: Self) -> Bool { bytes.elementsEqual(text.utf8) }
  fileprivate static func == (bytes: Self, text: String) -> Bool { bytes.elementsEqual(text.utf8) }

  /// Reads a little-endian unsigned number of at most 8 bytes. Returns nil if it is out of bounds or doesn't fit an
  /// Int64.
  fileprivate func little(_ offset: Int, bytes count: Int) -> Int64? {
    guard offset + count <= self.count else { return nil }
    let number = self[(startIndex + offset)..<(startIndex + offset + count)].reversed()
    return Int64(exactly: number.reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
  }

  fileprivate func big(_ offset: Int, bytes count: Int) -> Int64? {
    guard offset + count <= self.count else { return nil }
    let number = self[(startIndex + offset)..<(startIndex + offset + count)]
    return Int64(exactly: number.reduce(UInt64(0)) { $0 << 8 | UInt64($1) })
  }

  /// Returns the integer part of a positive IEEE 754 80-bit extended number (AIFF's sample rate), or nil if there is
  /// none.
  fileprivate func extendedFloat(at offset: Int) -> Int64? {
    guard let signAndExponent = big(offset, bytes: 2), offset + 10 <= count else { return nil }
    let fraction = self[(startIndex + offset + 2)..<(startIndex + offset + 10)].reduce(UInt64(0)) {
      $0 << 8 | UInt64($1)
    }
    let exponent = signAndExponent - 16383
    guard (0...62).contains(exponent) else { return exponent < 0 ? 0 : nil }
    return Int64(fraction >> UInt64(63 - exponent))
  }
}
