import Glibc

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

/// The formats that ffmpeg reads for us, by ffmpeg's names. None of them opens other files.
package enum Demuxer: String, Sendable, Codable, CaseIterable {
  case mov, matroska, asf, aac, amr, ac3, eac3, ogg
  // See `Demuxer+Kinds`.
  case mpegts, mpeg, avi, flv, caf, wv, tta, ape, mpc, mpc8, dts, dsf, voc, wav

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

  /// Whether the tracks share a clock on which the sound may begin before or after the picture.
  var hasTimeline: Bool { [.mov, .matroska, .asf, .mpegts, .mpeg, .avi, .flv].contains(self) }

  /// Whether that clock is a broadcast's or a disc's, which can start at any value.
  var hasForeignClock: Bool { [.mpegts, .mpeg].contains(self) }

  /// Whether picture sizes, and in some formats even the tracks, are only found by examining the first packets.
  var hidesTracks: Bool { [.mpegts, .mpeg, .flv, .avi].contains(self) }
}

/// The file format, as the API names it.
package enum MediaContainer: String, Sendable, Codable, CaseIterable {
  case mp4, m4a, mov, webm, mkv, asf, adts, amr, ac3, ogg
  case ts, mpg, avi, flv, caf, wv, tta, ape, mpc, dts, dsf, voc, wav
  // Formats of libsndfile in which it can't seek; see `MediaFacts.demuxer`.
  case w64, aiff, au, xi, paf, sds

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

  /// A description of the format for people.
  package var words: String {
    switch self {
    case .mp4, .m4a, .mov: "an MP4, M4A or MOV file"
    case .webm, .mkv: "a WebM or Matroska file"
    case .asf: "a Windows Media file"
    case .adts: "a raw AAC file"
    case .amr: "an AMR file"
    case .ac3: "an AC-3 file"
    case .ogg: "an Ogg file with FLAC, Speex or Theora"
    case .ts: "an MPEG transport stream"
    case .mpg: "an MPEG program stream"
    case .avi: "an AVI file"
    case .flv: "a Flash video"
    case .caf: "a CAF file"
    case .wv: "a WavPack file"
    case .tta: "a True Audio file"
    case .ape: "a Monkey's Audio file"
    case .mpc: "a Musepack file"
    case .dts: "a raw DTS file"
    case .dsf: "a DSD file (DSF)"
    case .voc: "a Creative Voice file"
    case .wav: "a WAV file"
    case .w64: "a W64 file"
    case .aiff: "an AIFF file"
    case .au: "an AU file"
    case .xi: "a FastTracker instrument"
    case .paf: "a PARIS file"
    case .sds: "a MIDI sample dump"
    }
  }

  /// Returns the customary file name extension.
  package func fileExtension(hasVideo: Bool) -> String {
    switch self {
    case .mkv: hasVideo ? "mkv" : "mka"
    case .mp4, .m4a, .mov, .webm, .amr, .ac3: rawValue
    case .ts, .mpg, .avi, .flv, .caf, .wv, .tta, .ape, .mpc, .dts, .dsf, .voc, .wav: rawValue
    case .w64, .aiff, .au, .xi, .paf, .sds: rawValue
    case .asf: hasVideo ? "wmv" : "wma"
    case .adts: "aac"
    case .ogg: hasVideo ? "ogv" : "oga"
    }
  }

  /// Returns the media type, registered or customary.
  package func mediaType(hasVideo: Bool) -> String {
    let kind = hasVideo ? "video" : "audio"
    return switch self {
    case .mp4, .m4a: "\(kind)/mp4"
    case .mov: hasVideo ? "video/quicktime" : "audio/mp4"
    case .webm: "\(kind)/webm"
    case .mkv: "\(kind)/x-matroska"
    case .asf: hasVideo ? "video/x-ms-wmv" : "audio/x-ms-wma"
    case .adts: "audio/aac"
    case .amr: "audio/amr"
    case .ac3: "audio/ac3"
    case .ogg: "\(kind)/ogg"
    case .ts: "\(kind)/mp2t"
    case .mpg: "\(kind)/mpeg"
    case .avi: "\(kind)/x-msvideo"
    case .flv: "\(kind)/x-flv"
    case .wv: "audio/x-wavpack"
    case .mpc: "audio/x-musepack"
    case .dts: "audio/vnd.dts"
    case .aiff, .wav: "audio/\(rawValue)"
    case .au: "audio/basic"
    case .caf, .tta, .ape, .dsf, .voc, .w64, .xi, .paf, .sds: "audio/x-\(rawValue)"
    }
  }
}
