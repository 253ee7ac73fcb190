import FoundationEssentials

/// The facts about a file that ffmpeg reads for us: what is needed to decode and describe it.
package struct MediaFacts: Codable, Sendable, Equatable {
  /// The format that ffmpeg is forced to assume; nil for formats that libsndfile decodes but can't seek in.
  package var demuxer: Demuxer?
  /// The file format, as the API names it.
  package var container: MediaContainer
  /// The codec of the sound, as the API names it: "aac", "opus".
  package var codec: String
  /// The sample rate of the decoded sound, in hertz.
  package var sampleRate: Int
  /// Number of channels of the decoded sound.
  package var channels: Int
  /// ffmpeg's name for the layout of three or four channels, which it would otherwise change; else nil.
  package var layout: String?
  /// The position of frame 0 on the file's clock, in frames; nil if the first sound in the file is frame 0.
  package var firstFrame: Int64?
  /// Number of frames by which the first sound's timestamp is later than the following ones imply; nil if not checked.
  package var firstIsLate: Int64?
  /// Bit rate of the coded sound in bits per second, if the file gives it.
  package var bitRate: Int?
  /// Number of frames from frame 0 on that the file promises, if it does.
  package var promisedFrames: Int64?
  /// Whether a header gives the length of this particular track; otherwise the promised frames are an estimate.
  package var promisesLength: Bool
  /// Whether the sound has exactly the promised frames: anything decoded past them is an encoder's padding, and silence
  /// replaces what is missing at the end of an AMR file.
  package var endsAsPromised: Bool
  /// Number of sound tracks; the first one is used.
  package var audioTracks: Int
  /// The first picture track, if there is one.
  package var video: Video?
  /// The codec of that track, even if its size is unknown and `video` is nil. Nil without one.
  package var pictures: String?
  /// Whether the file's own sizes show that its end is missing; nil if not checked.
  package var isCut: Bool?
  /// Whether the file doesn't give its length although files of its format can; nil if not checked.
  package var lacksLength: Bool?
  /// Seconds of silence that the encoder left out; nil if not checked.
  package var silentSeconds: Double?
  /// The other tracks; nil if not checked.
  package var others: OtherTracks?
  /// Bytes before the first frame of a raw stream or the first packet of a program stream; nil if there are none, or
  /// only ID3v2 tags.
  package var leadingBytes: Int?
  /// The time of the first sound on the file's clock, in seconds, if each packet has several frames of AMR, of which
  /// ffmpeg decodes only one; else nil.
  package var packedStart: Double?
  /// Bits per sample of uncompressed or losslessly coded sound; nil if the coding is lossy or this wasn't checked.
  package var sampleBits: Int?

  /// A picture track.
  package struct Video: Codable, Sendable, Equatable {
    /// "h264", "vp9" …
    package var codec: String
    /// In pixels.
    package var width: Int
    /// In pixels.
    package var height: Int
  }

  /// Tracks other than the sound used and the pictures, and other information from the headers.
  package struct OtherTracks: Codable, Sendable, Equatable {
    /// Number of subtitle tracks.
    package var subtitles = 0
    /// The indices of the subtitle tracks that ffmpeg can decode to text; nil if not checked.
    package var texts: [Int]?
    /// Number of files attached to a Matroska file.
    package var attachments = 0
    /// Number of pictures that represent the whole file.
    package var covers = 0
    /// The indices of the covers that are JPEG or PNG.
    package var plainCovers: [Int] = []
    /// Number of data tracks, excluding chapters and time code, which are rewritten from the headers.
    package var data = 0
    /// The indices of the data tracks that ffmpeg can write: GoPro's sensors.
    package var sensors: [Int] = []
    /// The language of the sound as three letters; nil if unknown.
    package var language: String?
    /// Whether the file's metadata use QuickTime's long keys, as a phone's location and model do.
    package var hasLongKeys = false

    init() {}
  }

  /// Whether the sound is coded without loss, as integers of at most 24 bits.
  package var isInteger: Bool {
    ["alac", "flac", "wmalossless", "pcm_s16", "pcm_s24", "pcm_u8", "pcm_s8", "tta"].contains(codec)
      || sampleBits.map { $0 <= 24 } ?? false
  }

  /// Whether the sound is decoded as an AMR file's is, which leaves out silence.
  package var isTelephone: Bool { demuxer == .amr || packedStart != nil }

  /// The extension for the file's name.
  package var fileExtension: String { container.fileExtension(hasVideo: video != nil) }
  /// The media type for serving the file as sound.
  package var mediaType: String { container.mediaType(hasVideo: false) }
  /// The media type for serving the file as pictures with sound.
  package var videoMediaType: String { container.mediaType(hasVideo: true) }
}

extension MediaFacts {
  /// Whether there is a picture track, of known or unknown size.
  var hasPictures: Bool { pictures != nil || video != nil }

  /// Creates the facts about a file with one track that libsndfile decodes but can't seek in.
  package init(
    decodedInOrder container: MediaContainer, codec: String, sampleRate: Int, channels: Int, frames: Int64?,
    sampleBits: Int?
  ) {
    self.init(
      demuxer: nil, container: container, codec: codec, sampleRate: sampleRate, channels: channels,
      promisedFrames: frames, promisesLength: frames != nil, endsAsPromised: false, audioTracks: 1,
      sampleBits: sampleBits)
  }

  /// The facts as JSON, as stored in rows.
  package var json: String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    guard let data = try? encoder.encode(self) else { return "{}" }
    return String(decoding: data, as: UTF8.self)
  }

  /// Fails if `json` isn't valid or comes from an incompatible version.
  package init?(json: String) {
    guard let facts = try? JSONDecoder().decode(MediaFacts.self, from: Data(json.utf8)), facts.sampleRate > 0,
      facts.channels > 0
    else { return nil }
    self = facts
  }
}

/// Errors in reading and writing files with ffmpeg.
package enum MediaError: Error, Sendable, Equatable {
  /// A file can't be read because ffmpeg isn't installed.
  case missingProgram(MediaContainer)
  /// A file can't be written because ffmpeg isn't installed.
  case missingEncoder
  case noAudio(MediaContainer)
  /// No frame of the sound could be decoded; `codec` is nil if unknown.
  case undecodable(MediaContainer, codec: String?)
  /// Probing the file took more processor time than a probe may use.
  case tooSlow
  /// Decoding the file took more processor time than a job may use.
  case tooLong
  /// ffmpeg or ffprobe itself failed before it had described or decoded the whole file.
  case programFailed(ProgramFailure)
  /// ffmpeg didn't write its output file.
  case encoderFailed
  /// A system call failed.
  case system(operation: String, errno: Int32)
}
