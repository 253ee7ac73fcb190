extension MediaFacts {
  /// The facts about such a cleaned file; nil if none can be written.
  package var ofResult: MediaFacts? {
    guard let writtenCodec else { return nil }
    var facts = self
    (facts.container, facts.codec, facts.bitRate) = (writtenContainer, writtenCodec, nil)
    return facts
  }

  /// ffmpeg's name for what writes it.
  package var muxer: String {
    switch writtenContainer {
    case _ where isPhoneFilm: "3gp"
    case .m4a: "ipod"
    case .mkv: "matroska"
    case .ts: "mpegts"
    case .mpg: "vob"
    default: writtenContainer.rawValue
    }
  }

  /// Whether the file's tracks can begin in the middle of what they contain.
  package var hasEditLists: Bool { ["mp4", "mov", "ipod", "3gp"].contains(muxer) }
}

extension MediaFacts {
  /// The facts about such a file without its pictures.
  package var withoutPictures: MediaFacts {
    var facts = self
    (facts.video, facts.pictures) = (nil, nil)
    return facts
  }

  /// The facts about a part of such a file from `start` on, in seconds from the first frame of the sound, with `frames`
  /// frames if that is known; nil if none can be written.
  package func ofPart(from start: Double, frames: Int64?) -> MediaFacts? {
    guard var facts = ofResult else { return nil }
    if facts.firstFrame != nil, !keepsBeginning(ofPartFrom: start) { facts.firstFrame = 0 }
    (facts.firstIsLate, facts.isCut, facts.lacksLength, facts.silentSeconds) = (nil, nil, nil, nil)
    (facts.promisedFrames, facts.promisesLength, facts.endsAsPromised) = (frames, false, false)
    (facts.audioTracks, facts.leadingBytes) = (hasEditLists ? audioTracks : 1, nil)
    facts.others?.covers = 0
    facts.others?.plainCovers = []
    facts.others?.sensors = []
    facts.others?.data = 0
    facts.others?.attachments = 0
    if !hasEditLists { facts.others?.subtitles = 0 }
    return facts
  }

  /// Whether a part from `start` on, in seconds, keeps what the file has before its first frame.
  package func keepsBeginning(ofPartFrom start: Double) -> Bool {
    hasPictures && !hasEditLists && ![.mkv, .webm].contains(container) && start * Double(sampleRate) < 0.5
  }

  /// Whether a part of the file is again a file of this kind: it has pictures, or its sound can be written without
  /// loss.
  package var hasPartOfItsKind: Bool {
    demuxer != nil && writtenCodec != nil && (hasPictures || isLossless && !losesSound)
  }
}
