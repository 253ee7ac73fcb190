import Glibc

extension AudioFormat {
  /// Estimates the number of frames in a compressed file from its size alone, at 64 kbit/s per channel, the middle of
  /// the usual rates for speech and music. A picture needs a width before the end is known.
  package func estimatedFrames(inFileAt path: String) -> Int64 {
    var status = stat()
    guard unsafe stat(path, &status) == 0 else { return 1 }
    let seconds = Double(status.st_size) * 8 / (64_000 * Double(channels))
    return max(Int64(seconds * Double(sampleRate)), 1)
  }
}

extension MediaFacts {
  /// The format of such a file's working copy; a long WAV becomes RF64.
  package var workingFormat: AudioFormat {
    let fitsFLAC = isInteger && channels <= 8 && sampleRate <= 655_350
    // In any other format, audio that libsndfile decodes would become 16 bits again anyway.
    let integers: AudioCodec = demuxer == nil && (sampleBits ?? 24) <= 16 ? .flacS16 : .flacS24
    return AudioFormat(
      container: fitsFLAC ? .flac : .wav, codec: fitsFLAC ? integers : .pcmF32, sampleRate: sampleRate,
      channels: channels)
  }

  /// Estimates the number of frames, because a picture needs a width before the end is known.
  package func estimatedFrames(inFileAt path: String) -> Int64 {
    if let promisedFrames { return promisedFrames }
    let bySound = workingFormat.estimatedFrames(inFileAt: path)
    // In a video, about a twentieth of the bytes are audio.
    return video == nil ? bySound : max(bySound / 20, 1)
  }
}

extension MediaFacts {
  /// The file's format for libsndfile; nil for files that ffmpeg reads.
  package var soundFormat: AudioFormat? {
    guard demuxer == nil, let container = AudioContainer(rawValue: container.rawValue),
      let codec = AudioCodec.allCases.first(where: { $0.name == codec })
    else { return nil }
    return AudioFormat(container: container, codec: codec, sampleRate: sampleRate, channels: channels)
  }

  /// The facts about a file that libsndfile can decode but not seek in; nil for others.
  package init?(unseekable format: AudioFormat, claimedFrames: Int64?) {
    guard !format.isSeekable, let container = MediaContainer(rawValue: format.container.rawValue) else { return nil }
    var bits: Int?
    if case .integer(let count) = format.codec.sampleKind { bits = count }
    self.init(
      decodedInOrder: container, codec: format.codec.name, sampleRate: format.sampleRate, channels: format.channels,
      frames: claimedFrames, sampleBits: bits)
  }
}
