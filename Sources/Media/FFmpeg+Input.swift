import Terms

extension FFmpeg {
  /// Finds the program for reading the file at `path`. Throws `.missingProgram` if there is none.
  package static func find(_ name: String, toRead path: String, as demuxer: Demuxer) throws(MediaError) -> FFmpeg {
    guard let found = FFmpeg(name) else { throw .missingProgram(MediaContainer(demuxer, path: path)) }
    return found
  }

  /// Returns the arguments up to and including the input's name. They restrict ffmpeg to one local file and our pipe,
  /// to `demuxer`, and to these sound decoders.
  ///
  /// With `copiesCovers`, the JPEG and PNG decoders are allowed too: the size of a picture is only in its own header,
  /// and without the size no cover can be written. The picture itself isn't decoded (libavformat sets `skip_frame`).
  ///
  /// In the same way, picture decoders find the size of the pictures if the file's headers don't give it, or if
  /// libavformat ignores what they say, as in MP4 and MOV with MPEG-4 Visual, H.261 and H.263. With
  /// `decodesTexts`, those of subtitles are allowed.
  func inputWords(
    _ demuxer: Demuxer, copiesCovers: Bool = false, decodesTexts: Bool = false, leadingBytes: Int? = nil
  ) -> [String] {
    let decoders =
      Self.decoders + (decodesTexts ? "," + MediaTexts.codecs.joined(separator: ",") : "")
      + (copiesCovers ? ",mjpeg,png" : "") + (demuxer.hidesTracks ? "," + Self.pictureDecoders : "")
      + (demuxer == .mov ? ",mpeg4,h261,h263" : "")
    var words = ["-protocol_whitelist", "file,pipe", "-codec_whitelist", decoders, "-f", demuxer.rawValue]
    if let leadingBytes { words += ["-skip_initial_bytes", "\(leadingBytes)"] }
    // Keeps references to other files, which QuickTime supports, from being opened.
    if demuxer == .mov { words += ["-enable_drefs", "0", "-use_absolute_path", "0"] }
    return words + ["-i", FencedRun.inputName]
  }

  /// The arguments for reading an AMR file from standard input.
  var packedInputWords: [String] {
    ["-protocol_whitelist", "pipe", "-codec_whitelist", "amrnb,amrwb", "-f", Demuxer.amr.rawValue, "-i", "pipe:0"]
  }

  /// Returns the arguments for reading the file described by `facts`.
  func inputWords(_ facts: MediaFacts, copiesCovers: Bool = false) -> [String] {
    guard let demuxer = facts.demuxer else { preconditionFailure("libsndfile reads it") }
    return inputWords(demuxer, copiesCovers: copiesCovers, leadingBytes: facts.leadingBytes)
  }

  static let quietly = ["-nostdin", "-hide_banner", "-v", "quiet"]

  /// Sound only: the pictures of a video are never decoded.
  static let decoders =
    [
      "aac", "aac_latm", "alac", "mp1float", "mp2float", "mp3float", "mp3", "opus", "libopus", "vorbis", "flac", "ac3",
      "eac3", "amrnb", "amrwb", "wmav1", "wmav2", "wmapro", "wmalossless", "wmavoice", "speex", "libspeex", "dca",
      "mlp",
      "truehd", "tta", "wavpack", "ape", "mpc7", "mpc8", "g726", "g726le", "gsm", "gsm_ms", "mp1", "mp2", "pcm_dvd",
      "pcm_bluray", "s302m", "nellymoser", "adpcm_swf", "adpcm_sbpro_2", "adpcm_sbpro_3", "adpcm_sbpro_4", "qdm2",
      "qdmc", "mace3", "mace6", "adpcm_ima_qt", "adpcm_ima_wav", "adpcm_ms",
      "pcm_alaw", "pcm_mulaw", "pcm_u8", "pcm_s8", "pcm_s16le", "pcm_s16be", "pcm_s24le", "pcm_s24be", "pcm_s32le",
      "pcm_s32be", "pcm_f32le", "pcm_f32be", "pcm_f64le", "pcm_f64be",
      "dsd_lsbf", "dsd_lsbf_planar", "dsd_msbf", "dsd_msbf_planar",
    ].joined(separator: ",")

  /// Libavformat sets `skip_frame` for all of these, so they parse only headers.
  static let pictureDecoders = "h264,hevc,mpeg1video,mpeg2video,mpeg4,flv,mjpeg,vp6f,vp6a"
}
