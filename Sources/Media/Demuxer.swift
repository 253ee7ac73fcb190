import Glibc
import Terms

// The format that ffmpeg is forced to assume, determined here from the first bytes. On its own, ffmpeg may also treat a
// file as a playlist (hls, concat, dash) or a pattern of names and open the files it mentions.
//
//   mov        a 32-bit size, then a box type that can begin a file; "ftyp" gives its brand (ISO 14496-12)
//   matroska   the EBML mark; the first header contains the document type, "webm" or "matroska" (RFC 8794)
//   asf        the GUID of its header object
//   amr        "#!AMR" (RFC 4867 §5)
//   aac, ac3,  frames that follow each other, also after an ID3 tag or other bytes: see `FirstFrame`
//   eac3
//   ogg        "OggS", with FLAC, Speex or Theora in the first page: libsndfile reads the others
//   The others are in `Demuxer+Kinds`.

extension Demuxer {
  /// Recognizes the file at `path` by its first bytes, ignoring its extension. Fails if it is in none of these formats
  /// or can't be read. Needs a few small reads.
  package init?(path: String) {
    guard let start = FileStart(path: path), let found = Demuxer(start) else { return nil }
    self = found
  }

  init?(_ start: FileStart) {
    let head = start.bytes(at: 0, count: 64)
    let behindTag = start.bytes(at: start.tagsLength, count: 8)
    if Self.boxes.contains(where: { head.dropFirst(4).starts(with: $0.utf8) }) || Self.initializesItself(start, head) {
      self = .mov
    } else if head.starts(with: [0x1A, 0x45, 0xDF, 0xA3]) {
      self = .matroska
    } else if head.starts(with: [0x30, 0x26, 0xB2, 0x75, 0x8E, 0x66, 0xCF, 0x11]) {
      self = .asf
    } else if head.starts(with: "#!AMR".utf8) {
      self = .amr
    } else if head.starts(with: "OggS".utf8), Self.hasForeignCodec(head) {
      self = .ogg
    } else if let found = Self.byMark(head) ?? Self.byTaggedMark(behindTag) ?? Self.byCodec(start, head) {
      self = found
    } else if Self.isTransportStream(start) {
      self = .mpegts
    } else if ProgramStream.begin(start) != nil {
      self = .mpeg
    } else if let found = FirstFrame(start)?.demuxer {
      self = found
    } else {
      return nil
    }
  }

  private static let boxes = ["ftyp", "moov", "mdat", "wide", "free", "skip", "pnot"]

  /// Whether this is a segment of a stream that has its own header.
  private static func initializesItself(_ start: FileStart, _ head: [UInt8]) -> Bool {
    head.dropFirst(4).starts(with: "styp".utf8) && BoxList(start, 0..<start.length, nil)?["moov"] != nil
  }

  /// Whether the first packet, after 27 bytes and the page's segment table, belongs to a codec unknown to libsndfile.
  private static func hasForeignCodec(_ head: [UInt8]) -> Bool {
    guard head.count > 27 else { return false }
    let packet = head.dropFirst(27 + Int(head[26]))
    return ["\u{7F}FLAC", "Speex   "].contains { packet.starts(with: $0.utf8) }
      || packet.starts(with: [0x80] + Array("theora".utf8))
  }
}

extension MediaContainer {
  /// Determines the container of the file at `path`, which was recognized as `demuxer`.
  init(_ demuxer: Demuxer, path: String) {
    let head = FileStart(path: path)?.bytes(at: 0, count: 64) ?? []
    switch demuxer {
    case .mov:
      let brand = String(decoding: head.dropFirst(8).prefix(4), as: UTF8.self)
      let hasBrand = head.dropFirst(4).starts(with: "ftyp".utf8)
      self = !hasBrand || brand == "qt  " ? .mov : ["M4A ", "M4B ", "M4P "].contains(brand) ? .m4a : .mp4
    case .matroska: self = String(decoding: head, as: UTF8.self).contains("webm") ? .webm : .mkv
    case .asf: self = .asf
    case .aac: self = .adts
    case .amr: self = .amr
    case .ac3, .eac3: self = .ac3
    case .ogg: self = .ogg
    case .mpegts: self = .ts
    case .mpeg: self = .mpg
    case .mpc8: self = .mpc
    case .avi, .flv, .caf, .wv, .tta, .ape, .mpc, .dts, .dsf, .voc, .wav:
      self = MediaContainer(rawValue: demuxer.rawValue) ?? .wav
    }
  }
}
