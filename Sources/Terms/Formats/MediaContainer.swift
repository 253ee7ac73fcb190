/// The formats that ffmpeg reads for us, by ffmpeg's names. None of them opens other files.
package enum Demuxer: String, Sendable, Codable, CaseIterable {
  case mov, matroska, asf, aac, amr, ac3, eac3, ogg
  case mpegts, mpeg, avi, flv, caf, wv, tta, ape, mpc, mpc8, dts, dsf, voc, wav

  /// Whether the tracks share a clock on which the sound may begin before or after the picture.
  package var hasTimeline: Bool { [.mov, .matroska, .asf, .mpegts, .mpeg, .avi, .flv].contains(self) }

  /// Whether that clock is a broadcast's or a disc's, which can start at any value.
  package var hasForeignClock: Bool { [.mpegts, .mpeg].contains(self) }

  /// Whether picture sizes, and in some formats even the tracks, are only found by examining the first packets.
  package var hidesTracks: Bool { [.mpegts, .mpeg, .flv, .avi].contains(self) }
}

/// The file format, as the API names it.
package enum MediaContainer: String, Sendable, Codable, CaseIterable {
  case mp4, m4a, mov, webm, mkv, asf, adts, amr, ac3, ogg
  case ts, mpg, avi, flv, caf, wv, tta, ape, mpc, dts, dsf, voc, wav
  // Formats of libsndfile in which it can't seek; see `MediaFacts.demuxer`.
  case w64, aiff, au, xi, paf, sds

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
