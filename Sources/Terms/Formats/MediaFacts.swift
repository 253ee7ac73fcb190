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

    /// Creates a value from its parts.
    package init(codec: String, width: Int, height: Int) {
      (self.codec, self.width, self.height) = (codec, width, height)
    }
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

    /// Creates a value without other tracks.
    package init() {}
  }

  /// Creates facts from their parts; what is left out isn't known.
  package init(
    demuxer: Demuxer? = nil, container: MediaContainer, codec: String, sampleRate: Int, channels: Int,
    layout: String? = nil, firstFrame: Int64? = nil, firstIsLate: Int64? = nil, bitRate: Int? = nil,
    promisedFrames: Int64? = nil, promisesLength: Bool, endsAsPromised: Bool, audioTracks: Int, video: Video? = nil,
    pictures: String? = nil, isCut: Bool? = nil, lacksLength: Bool? = nil, silentSeconds: Double? = nil,
    others: OtherTracks? = nil, leadingBytes: Int? = nil, packedStart: Double? = nil, sampleBits: Int? = nil
  ) {
    (self.demuxer, self.container, self.codec, self.sampleRate) = (demuxer, container, codec, sampleRate)
    (self.channels, self.layout, self.firstFrame, self.firstIsLate) = (channels, layout, firstFrame, firstIsLate)
    (self.bitRate, self.promisedFrames, self.promisesLength, self.endsAsPromised) = (
      bitRate, promisedFrames, promisesLength, endsAsPromised
    )
    (self.audioTracks, self.video, self.pictures, self.isCut) = (audioTracks, video, pictures, isCut)
    (self.lacksLength, self.silentSeconds, self.others, self.leadingBytes) = (
      lacksLength, silentSeconds, others, leadingBytes
    )
    (self.packedStart, self.sampleBits) = (packedStart, sampleBits)
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
  package var hasPictures: Bool { pictures != nil || video != nil }

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
}
