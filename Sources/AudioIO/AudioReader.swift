/// Decodes a sound file from its first frame to its last, in constant memory. Confined: one caller at a time; blocks.
public struct AudioReader: ~Copyable {
  /// What the file holds, as its header has it.
  public let format: AudioFormat
  /// What libsndfile makes of the header, corrected to the file's size where it could tell. It is a claim: count what
  /// was decoded. nil where the header does not know (an Ogg stream without its end claims 2^63 − 1 frames).
  public let claimedFrames: Int64?
  /// What the header itself said.
  public let header: ContainerHeader
  /// The frame that the next read begins with.
  public private(set) var position: Int64 = 0
  /// Samples so far that were NaN or infinite; they were given as 0.
  public private(set) var nonFiniteSamples: Int64 = 0

  /// Frames of one read at the most.
  public let framesPerRead: Int

  private let file: SndfileHandle
  private var order: ChannelOrder?
  private var floats: PageBuffer<Float>
  private var shorts: PageBuffer<Int16>

  /// Opens the file at `path`, whatever its name says.
  ///
  /// Throws `.unsupportedMedia` for what is no sound that can be read here, a limit's error where the header breaks
  /// one, `.undecodable` where libsndfile refuses it.
  public init(path: String, limits: AudioLimits = AudioLimits()) throws(AudioIOError) {
    let header = try ContainerHeader(path: path)
    if let channels = header.channels, let sampleRate = header.sampleRate {
      try limits.check(channels: channels, sampleRate: sampleRate, frames: nil)
    }
    let file =
      if let mended = try MendedFile.ifNeeded(header, path: path) {
        try SndfileHandle(reading: mended)
      } else {
        try SndfileHandle(reading: path)
      }
    guard let format = AudioFormat(file.info) else { throw .unsupportedMedia(found: nil) }
    let frames = Int64(file.info.frames)
    let claimedFrames = frames >= 0 && frames < Int64.max / 2 ? frames : nil
    try limits.check(channels: format.channels, sampleRate: Int64(format.sampleRate), frames: claimedFrames)
    self.header = header
    self.file = file
    self.claimedFrames = claimedFrames
    self.format = format
    // About 64 K samples: two buffers that stay in the second-level cache.
    framesPerRead = max(65_536 / format.channels, 1)
    order = ChannelOrder(format)
    floats = PageBuffer(count: framesPerRead * format.channels)
    shorts = PageBuffer(count: framesPerRead * format.channels)
  }

  /// Whether libsndfile hands out this file's samples as 16-bit integers without wrapping any.
  private var readsIntegers: Bool {
    if case .integer = format.codec.sampleKind { return true }
    return false
  }

  /// Decodes up to `frames` frames (`framesPerRead` at the most) and gives them to `body`, interleaved: integers
  /// without their low bits (24 bits: >> 8), anything else as the nearest of x · 32768, clamped.
  ///
  /// Returns the number of frames, 0 at the end, where `body` isn't called.
  public mutating func readInt16<E: Error>(
    upTo frames: Int = .max, _ body: (Span<Int16>) throws(E) -> Void
  ) throws(E) -> Int {
    let wanted = min(frames, framesPerRead)
    let got = readsIntegers ? file.read(into: shorts, frames: wanted) : readQuantised(wanted)
    guard got > 0 else { return 0 }
    position += Int64(got)
    try shorts.withSpan(got * format.channels, body)
    return got
  }

  private mutating func readFloats(_ frames: Int) -> Int {
    let got = file.read(into: floats, frames: frames)
    if got > 0, order != nil { floats.withMutableSpan(got * format.channels) { order?.fromCodec(&$0) } }
    return got
  }

  private mutating func readQuantised(_ frames: Int) -> Int {
    let got = readFloats(frames)
    guard got > 0 else { return 0 }
    let count = got * format.channels
    let notFinite = floats.withSpan(count) { source in
      shorts.withMutableSpan(count) { quantise16(source, into: &$0) }
    }
    nonFiniteSamples += Int64(notFinite)
    return got
  }

  /// Decodes up to `frames` frames (`framesPerRead` at the most) and gives them to `body`, interleaved, full scale ±1,
  /// not clamped, every sample finite.
  ///
  /// Returns the number of frames, 0 at the end, where `body` isn't called.
  public mutating func readFloat<E: Error>(
    upTo frames: Int = .max, _ body: (Span<Float>) throws(E) -> Void
  ) throws(E) -> Int {
    let got = readFloats(min(frames, framesPerRead))
    guard got > 0 else { return 0 }
    position += Int64(got)
    let count = got * format.channels
    if !readsIntegers { nonFiniteSamples += Int64(floats.withMutableSpan(count) { replaceNonFinite(&$0) }) }
    try floats.withSpan(count, body)
    return got
  }

  /// Continues at `frame`, counted from 0, with the samples that decoding from the start would give; MP3 may differ by
  /// one in 16 bits. Throws `.seekFailed` where the file can't.
  public mutating func seek(to frame: Int64) throws(AudioIOError) {
    let entry = entryFrame(before: frame)
    guard file.seek(to: entry) == entry else { throw .seekFailed(frame: frame) }
    position = entry
    while position < frame {
      let got = file.read(into: floats, frames: Int(min(frame - position, Int64(framesPerRead))))
      guard got > 0 else { throw .seekFailed(frame: frame) }
      position += Int64(got)
    }
  }

  /// After a seek libsndfile 1.2.0 begins a Vorbis block with the half of another one, an Opus one with another state,
  /// and is off by what the last page was cut by when it lands in that. A page of Vorbis holds up to 255 blocks, of 1024
  /// frames from nearly every encoder; one of Opus seldom more than a second.
  /// Where the length isn't known libsndfile can't seek at all but to the start.
  private func entryFrame(before frame: Int64) -> Int64 {
    guard format.container == .ogg else { return frame }
    guard let claimedFrames else { return 0 }
    let lastPage = format.codec == .vorbis ? 258 * 1024 : 2 * Int64(format.sampleRate)
    return max(min(frame - 8192, claimedFrames - lastPage), 0)
  }
}

/// Puts 0 for NaN and infinity; returns how many there were.
private func replaceNonFinite(_ samples: inout MutableSpan<Float>) -> Int {
  var count: Int32 = 0
  for index in samples.indices {
    let finite = samples[index].isFinite
    count &+= finite ? 0 : 1
    samples[index] = finite ? samples[index] : 0
  }
  return Int(count)
}
