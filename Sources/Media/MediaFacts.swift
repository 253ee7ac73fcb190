import FoundationEssentials

/// What is known of a file that ffmpeg reads for us: enough to decode it, and to say what it is.
package struct MediaFacts: Codable, Sendable, Equatable {
  /// What ffmpeg is told that it is; nil for what libsndfile decodes, yet can't seek in.
  package var demuxer: Demuxer?
  /// The kind of file, as the API names it.
  package var container: MediaContainer
  /// How the sound is coded, as the API names it: "aac", "opus".
  package var codec: String
  /// Of the decoded sound, in hertz.
  package var sampleRate: Int
  /// Of the decoded sound.
  package var channels: Int
  /// ffmpeg's name for the places of three or four channels, of which it would make others; else nil.
  package var layout: String?
  /// Where frame 0 is on the clock of the file, in frames; nil where the first sound there is is frame 0.
  package var firstFrame: Int64?
  /// Frames by which the first sound's time is later than those behind it say; nil where nobody looked.
  package var firstIsLate: Int64?
  /// Bits a second of the coded sound, where the file says so.
  package var bitRate: Int?
  /// Frames that the file promises from frame 0 on, as far as it does.
  package var promisedFrames: Int64?
  /// Whether a header says how long this very track is; else the promised frames are a guess.
  package var promisesLength: Bool
  /// Whether there are just the promised frames: what is decoded past them is an encoder's padding, and what is missing
  /// of an AMR file's end silence.
  package var endsAsPromised: Bool
  /// Tracks of sound; the first one is used.
  package var audioTracks: Int
  /// The first track of pictures, if there is one.
  package var video: Video?
  /// The codec of that track, also where its size is not found, so that `video` is nil; nil without one, and where an
  /// older version wrote the facts.
  package var pictures: String?
  /// Whether the file's own sizes show that its end is missing; nil where nobody looked.
  package var isCut: Bool?
  /// Whether nothing in the file tells how long it is, though such files do; nil where nobody looked.
  package var lacksLength: Bool?
  /// Seconds that the coder left out while nobody spoke; nil where nobody looked.
  package var silentSeconds: Double?
  /// The tracks beside these two; nil where an older version wrote the facts.
  package var others: OtherTracks?
  /// Bytes before the first frame of a raw stream, or the first packet of a program stream; nil if there are none, or
  /// ID3v2 tags alone.
  package var leadingBytes: Int?
  /// Bits of a sample of uncompressed or losslessly coded sound; nil where it is coded with loss, or nobody looked.
  package var sampleBits: Int?

  /// A track of pictures.
  package struct Video: Codable, Sendable, Equatable {
    /// "h264", "vp9" …
    package var codec: String
    /// In pixels.
    package var width: Int
    /// In pixels.
    package var height: Int
  }

  /// Tracks beside the sound that is used and the pictures, and what else stands in the headers.
  package struct OtherTracks: Codable, Sendable, Equatable {
    /// Tracks of subtitles.
    package var subtitles = 0
    /// Files that a Matroska file carries.
    package var attachments = 0
    /// Pictures that stand for the whole file.
    package var covers = 0
    /// The numbers of those that are JPEG or PNG.
    package var plainCovers: [Int] = []
    /// Tracks of data, but for chapters and time code, which are written anew from what the headers tell.
    package var data = 0
    /// The numbers of those that ffmpeg can write: GoPro's sensors.
    package var sensors: [Int] = []
    /// Of the sound, three letters; nil where it is not told.
    package var language: String?
    /// Whether the file's metadata stand under QuickTime's long keys, as a phone's place and model do.
    package var hasLongKeys = false

    init() {}
  }

  /// Whether the sound is coded without loss, as integers of at most 24 bits.
  package var isInteger: Bool {
    ["alac", "flac", "wmalossless", "pcm_s16", "pcm_s24", "pcm_u8", "pcm_s8", "tta"].contains(codec)
      || sampleBits.map { $0 <= 24 } ?? false
  }

  /// What the file's name should end in.
  package var fileExtension: String { container.fileExtension(hasVideo: video != nil) }
  /// The media type to serve the file with, as sound.
  package var mediaType: String { container.mediaType(hasVideo: false) }
  /// The media type to serve the file with, as pictures with sound.
  package var videoMediaType: String { container.mediaType(hasVideo: true) }
}

extension MediaFacts {
  /// Whether there is a track of pictures, of whatever size.
  var hasPictures: Bool { pictures != nil || video != nil }

  /// A file of one track that libsndfile decodes, yet can't seek in.
  package init(
    decodedInOrder container: MediaContainer, codec: String, sampleRate: Int, channels: Int, frames: Int64?,
    sampleBits: Int?
  ) {
    self.init(
      demuxer: nil, container: container, codec: codec, sampleRate: sampleRate, channels: channels,
      promisedFrames: frames, promisesLength: frames != nil, endsAsPromised: false, audioTracks: 1,
      sampleBits: sampleBits)
  }

  /// As rows and command lines have it.
  package var json: String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    guard let data = try? encoder.encode(self) else { return "{}" }
    return String(decoding: data, as: UTF8.self)
  }

  /// nil where `json` is of another version's making, or no facts.
  package init?(json: String) {
    guard let facts = try? JSONDecoder().decode(MediaFacts.self, from: Data(json.utf8)), facts.sampleRate > 0,
      facts.channels > 0
    else { return nil }
    self = facts
  }
}

/// What can go wrong between a file and what ffmpeg makes of it.
package enum MediaError: Error, Sendable, Equatable {
  /// There is no ffmpeg here.
  case missingProgram(MediaContainer)
  /// The same, where something was to be written.
  case missingEncoder
  case noAudio(MediaContainer)
  /// Not one frame of the sound could be decoded; `codec` is nil where not even that is known.
  case undecodable(MediaContainer, codec: String?)
  /// Looking at the file took more processor time than a probe may use.
  case tooSlow
  /// Decoding the file took more processor time than a job may use.
  case tooLong
  /// ffmpeg or ffprobe failed itself, before it had said or decoded all that is in the file.
  case programFailed(ProgramFailure)
  /// ffmpeg did not write the file it was to write.
  case encoderFailed
  /// A system call failed.
  case system(operation: String, errno: Int32)
}
