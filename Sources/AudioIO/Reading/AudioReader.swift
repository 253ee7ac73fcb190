import Terms

/// Decodes a sound file from its first frame to its last in constant memory. Blocks. Use it from one thread at a time.
package struct AudioReader: ~Copyable {
  /// The file's format, according to its header.
  package let format: AudioFormat
  /// The number of frames that libsndfile reads from the header, corrected by the file's size if possible. It is only a
  /// claim, so count what was decoded. Nil if the header doesn't say (an Ogg stream without its end claims 2^63 − 1
  /// frames).
  package let claimedFrames: Int64?
  /// The claimed number if it is reliable, otherwise nil: for MPEG audio in a WAV file, libsndfile only divides the
  /// bytes by the bit rate.
  package var promisedFrames: Int64? {
    switch format.codec {
    case .mp1, .mp2, .mp3: format.container == .mp3 ? claimedFrames : nil
    default: claimedFrames
    }
  }

  /// What the file's own header declares.
  package let header: ContainerHeader
  /// The first frame of the next read.
  package private(set) var position: Int64 = 0
  /// Number of samples so far that were NaN or infinite; they are returned as 0.
  package private(set) var nonFiniteSamples: Int64 = 0
  /// Samples so far that exceed full scale, in a file of floats; a lossy decoder's overshoot doesn't count.
  package internal(set) var excess = Excess()
  /// Number of frames so far that couldn't be decoded although the file continues after them; they are returned as
  /// silence.
  package private(set) var lostFrames: Int64 = 0

  /// Maximum number of frames per read.
  package let framesPerRead: Int

  /// Where the sound is in the file; further readers of the same file can reuse it.
  package let map: SoundMap
  private let path: String
  /// The index of the stream being decoded.
  private var stream = 0
  private var file: SndfileHandle
  /// Frames to decode and discard before the next read.
  private var skip: Int64 = 0
  /// Frames of silence to return before the decoder's next frames, in place of lost sound.
  private var silence: Int64 = 0
  /// Frames of silence that other decoders return first but libsndfile's omits.
  private var lead: Int64 = 0
  /// Whether the current stream has ended.
  private var isOver = false
  private var order: ChannelOrder?
  private var floats: PageBuffer<Float>
  private var shorts: PageBuffer<Int16>
  /// A buffer for files with 64-bit float samples.
  private var doubles: PageBuffer<Double>?
  /// A buffer for integers of more than 16 bits, created by the first `readInt32`.
  private var integers: PageBuffer<Int32>?

  /// Opens the file at `path`, ignoring its extension. `map` is the map of the same file, if already known; otherwise
  /// an MP3, Ogg, or FLAC file is first read in full.
  ///
  /// Throws `.unsupportedMedia` if the format isn't supported, a limit's error if the header exceeds one, and
  /// `.undecodable` if libsndfile rejects the file.
  package init(path: String, limits: AudioLimits = AudioLimits(), map known: SoundMap? = nil) throws(AudioIOError) {
    let map = if let known { known } else { try SoundMap(path: path) }
    if let channels = map.header.channels, let sampleRate = map.header.sampleRate {
      try limits.check(channels: channels, sampleRate: sampleRate, frames: nil)
    }
    let opening = try map.streams[0].opening(at: 0, path: path)
    let file = try SndfileHandle(reading: path, opening.pieces)
    guard let format = AudioFormat(file.info) else { throw .unsupportedMedia(found: nil) }
    let claimedFrames = map.frames ?? (file.hasKnownLength ? Int64(file.info.frames) : nil)
    try limits.check(channels: format.channels, sampleRate: Int64(format.sampleRate), frames: claimedFrames)
    self.path = path
    self.map = map
    header = map.header
    self.file = file
    (skip, lead) = (max(opening.skip, 0), max(-opening.skip, 0))
    self.claimedFrames = claimedFrames
    self.format = format
    // About 64 K samples, so that the two buffers stay in the second-level cache. Fewer if the file is shorter, because
    // libsndfile clears the whole buffer at its end.
    framesPerRead = max(min(65_536 / format.channels, Int(clamping: max(claimedFrames ?? .max, 4096))), 1)
    order = ChannelOrder(format)
    floats = PageBuffer(count: framesPerRead * format.channels)
    shorts = PageBuffer(count: framesPerRead * format.channels)
    if format.codec == .pcmF64 { doubles = PageBuffer(count: framesPerRead * format.channels) }
  }

  /// Whether libsndfile returns this file's samples as 16-bit integers without wrapping any around.
  private var readsIntegers: Bool {
    if case .integer = format.codec.sampleKind { return true }
    return false
  }

  /// Decodes up to `frames` frames (at most `framesPerRead`) and passes them to `body`, interleaved. Integers lose
  /// their low bits (24 bits: >> 8); anything else becomes the nearest integer to x · 32768, clamped.
  ///
  /// Returns the number of frames, or 0 at the end, without calling `body`.
  package mutating func readInt16<E: Error>(
    upTo frames: Int = .max, _ body: (Span<Int16>) throws(E) -> Void
  ) throws(E) -> Int {
    let wanted = min(frames, framesPerRead)
    let got = readsIntegers ? readDecoded(wanted, as: .int16) : readQuantised(wanted)
    guard got > 0 else { return 0 }
    position += Int64(got)
    try shorts.withSpan(got * format.channels, body)
    return got
  }

  /// The buffer that samples are decoded into: `shorts`, `integers`, `floats`, or `doubles`.
  private enum Form { case int16, int32, float, double }

  /// Decodes into a buffer, continuing from one stream to the next.
  private mutating func readDecoded(_ frames: Int, as form: Form) -> Int {
    while true {
      let left = map.end(of: stream).map { $0 - position } ?? .max
      if left > 0 {
        let wanted = Int(min(Int64(frames), left))
        if lead > 0 {
          let count = Int(min(Int64(wanted), lead))
          lead -= Int64(count)
          return giveSilence(count, as: form)
        }
        if silence == 0 {
          let got = decode(wanted, as: form)
          if got > 0 { return got }
          // The map says where the next stream begins; silence replaces what couldn't be decoded before it.
          silence = soundAfterDamage() ?? (stream + 1 < map.streams.count ? left : 0)
        }
        let count = Int(min(Int64(wanted), silence))
        silence -= Int64(count)
        lostFrames += Int64(count)
        return giveSilence(count, as: form)
      }
      guard stream + 1 < map.streams.count else { return 0 }
      open(stream + 1, at: 0)
    }
  }

  private mutating func giveSilence(_ frames: Int, as form: Form) -> Int {
    let count = frames * format.channels
    switch form {
    case .int16: shorts.withMutableSpan(count) { $0.update(repeating: 0) }
    case .int32: integers?.withMutableSpan(count) { $0.update(repeating: 0) }
    case .float: floats.withMutableSpan(count) { $0.update(repeating: 0) }
    case .double: doubles?.withMutableSpan(count) { $0.update(repeating: 0) }
    }
    return frames
  }

  /// Maximum number of blocks to skip at once in a damaged file; each costs one attempt to decode.
  private static let damagedBlockLimit: Int64 = 1024

  /// After a FLAC block that doesn't decode, libsndfile returns nothing more, not even the intact blocks that follow.
  /// Skips to the next block that decodes and returns the gap in frames; nil if there is none.
  private mutating func soundAfterDamage() -> Int64? {
    guard case .flac(let found) = map.streams[stream].source, found.blockSize > 0 else { return nil }
    let place = position - map.streams[stream].start
    var next = (place / found.blockSize + 1) * found.blockSize
    let limit = min(found.samples, next + Self.damagedBlockLimit * found.blockSize)
    while next < limit {
      // Reopens the stream, because the decoder doesn't recover from its error.
      open(stream, at: 0)
      if !isOver, file.seek(to: found.firstSample + next) == found.firstSample + next { return next - place }
      next += found.blockSize
    }
    isOver = true
    return nil
  }

  /// Decodes from the current stream; returns 0 at its end.
  private mutating func decode(_ frames: Int, as form: Form) -> Int {
    while skip > 0, !isOver {
      let got = file.read(into: floats, frames: Int(min(skip, Int64(framesPerRead))))
      skip -= Int64(got)
      isOver = got == 0
    }
    let got = isOver ? 0 : read(frames, as: form)
    isOver = got <= 0
    if got > 0, form == .float, order != nil { floats.withMutableSpan(got * format.channels) { order?.fromCodec(&$0) } }
    return got
  }

  private mutating func read(_ frames: Int, as form: Form) -> Int {
    switch form {
    case .int16: return file.read(into: shorts, frames: frames)
    case .float: return readFloats(frames)
    case .int32:
      guard let integers = integers.take() else { return 0 }
      let got = file.read(into: integers, frames: frames)
      self.integers = consume integers
      return got
    case .double:
      guard let doubles = doubles.take() else { return 0 }
      let got = file.read(into: doubles, frames: frames)
      self.doubles = consume doubles
      return got
    }
  }

  /// Reads 16-bit integers and converts them here, because libsndfile would read them in pieces of 8 KB. Reads doubles
  /// and narrows them here; libsndfile would turn the loudest ones into infinity.
  private mutating func readFloats(_ frames: Int) -> Int {
    if format.codec.sampleKind == .integer(bits: 16) {
      let got = file.read(into: shorts, frames: frames)
      let count = max(got, 0) * format.channels
      shorts.withSpan(count) { source in floats.withMutableSpan(count) { convert(source, into: &$0) } }
      return got
    }
    guard let doubles = doubles.take() else { return file.read(into: floats, frames: frames) }
    let got = file.read(into: doubles, frames: frames)
    let count = max(got, 0) * format.channels
    doubles.withSpan(count) { source in
      floats.withMutableSpan(count) { target in
        for index in source.indices { target[index] = narrowed(source[index]) }
      }
    }
    self.doubles = consume doubles
    return got
  }

  /// Opens the stream with this number. If that fails, the stream counts as ended.
  private mutating func open(_ number: Int, at frame: Int64) {
    (stream, skip, silence, lead) = (number, 0, 0, 0)
    do {
      let opening = try map.streams[number].opening(at: frame, path: path)
      (skip, lead) = (max(opening.skip, 0), max(-opening.skip, 0))
      file = try SndfileHandle(reading: path, opening.pieces)
      isOver = Int(file.info.channels) != format.channels
    } catch {
      isOver = true
    }
  }

  private mutating func readQuantised(_ frames: Int) -> Int {
    let got = readDecoded(frames, as: .float)
    guard got > 0 else { return 0 }
    let count = got * format.channels
    let notFinite = floats.withSpan(count) { source in
      shorts.withMutableSpan(count) { quantise16(source, into: &$0) }
    }
    nonFiniteSamples += Int64(notFinite)
    countExcess(count)
    return got
  }

  private mutating func countExcess(_ count: Int) {
    guard format.codec.sampleKind == .float else { return }
    var excess = excess
    floats.withSpan(count) { excess.count($0) }
    self.excess = excess
  }

  /// Decodes up to `frames` frames (at most `framesPerRead`) and passes them to `body`, interleaved, full scale ±1, not
  /// clamped, every sample finite.
  ///
  /// Returns the number of frames, or 0 at the end, without calling `body`.
  package mutating func readFloat<E: Error>(
    upTo frames: Int = .max, _ body: (Span<Float>) throws(E) -> Void
  ) throws(E) -> Int {
    let got = readDecoded(min(frames, framesPerRead), as: .float)
    guard got > 0 else { return 0 }
    position += Int64(got)
    let count = got * format.channels
    if !readsIntegers { nonFiniteSamples += Int64(floats.withMutableSpan(count) { replaceNonFinite(&$0) }) }
    countExcess(count)
    try floats.withSpan(count, body)
    return got
  }

  /// Decodes like `readFloat`, but passes integers left-justified in 32 bits, without losing any. Only for files with
  /// integer samples. After `body` has thrown, the reader must not be used again.
  package mutating func readInt32<E: Error>(
    upTo frames: Int = .max, _ body: (Span<Int32>) throws(E) -> Void
  ) throws(E) -> Int {
    precondition(readsIntegers, "other samples aren't integers")
    if integers == nil { integers = PageBuffer(count: framesPerRead * format.channels) }
    let got = readDecoded(min(frames, framesPerRead), as: .int32)
    guard got > 0, let integers = integers.take() else { return 0 }
    position += Int64(got)
    try integers.withSpan(got * format.channels, body)
    self.integers = consume integers
    return got
  }

  /// Decodes like `readFloat`, but with all bits. Only for files with 64-bit floats. After `body` has thrown, the
  /// reader must not be used again.
  package mutating func readDouble<E: Error>(
    upTo frames: Int = .max, _ body: (Span<Double>) throws(E) -> Void
  ) throws(E) -> Int {
    precondition(format.codec == .pcmF64, "other samples have fewer bits")
    let got = readDecoded(min(frames, framesPerRead), as: .double)
    guard got > 0, var doubles = doubles.take() else { return 0 }
    position += Int64(got)
    let count = got * format.channels
    var lost: Int64 = 0
    doubles.withMutableSpan(count) { samples in
      for index in samples.indices where !samples[index].isFinite {
        samples[index] = 0
        lost += 1
      }
    }
    nonFiniteSamples += lost
    try doubles.withSpan(count, body)
    self.doubles = consume doubles
    return got
  }

  /// Continues at `frame`, counted from 0. Subsequent samples equal those of decoding from the start.
  ///
  /// Throws `.seekFailed` if the frame can't be reached. Costs a few milliseconds at most, except in an Ogg file of
  /// unknown length or with a codec that libsndfile can't seek in; those are decoded from the start.
  package mutating func seek(to frame: Int64) throws(AudioIOError) {
    let number = map.stream(of: frame)
    let start = map.streams[number].start
    switch map.streams[number].source {
    case .mpeg:
      guard frame - start < map.streams[number].frames ?? 0 else { throw .seekFailed(frame: frame) }
      open(number, at: frame - start)
      position = frame
    case .flac(let found):
      if number != stream { open(number, at: 0) }
      let entry = frame - start + found.firstSample
      (isOver, skip, silence, position) = (false, 0, 0, frame)
      if file.seek(to: entry) != entry {
        guard let gap = soundAfterDamage() else { throw .seekFailed(frame: frame) }
        silence = gap
      }
    case .file, .pieces:
      if number != stream { open(number, at: 0) }
      let entry = entryFrame(before: frame - start)
      if !format.isSeekable {
        // From the start: the preceding frames are decoded and discarded.
        open(number, at: 0)
        (isOver, skip, silence, position) = (isOver, frame - start, 0, frame)
        break
      }
      if entry == 0, format.container == .ogg {
        // Reopens instead of seeking, which in a damaged file may miss the start by Opus's delay of 312 frames.
        open(number, at: 0)
      } else if file.seek(to: entry) != entry {
        throw .seekFailed(frame: frame)
      }
      (isOver, skip, silence, position) = (false, frame - start - entry, 0, frame)
    }
    // Discards the frames right away, so that this call reports a frame that doesn't exist.
    while skip > 0 {
      let got = file.read(into: floats, frames: Int(min(skip, Int64(framesPerRead))))
      guard got > 0 else { throw .seekFailed(frame: frame) }
      skip -= Int64(got)
    }
  }

  /// How the file's frames are stored, if that is as interleaved integers of 16, 24 or 32 bits, of which `readInt16`
  /// returns the upper 16; nil for any other file. `start` is where libsndfile reads the first frame.
  ///
  /// Call `seek` before the next read.
  package var plainLayout: (start: Int64, sampleBytes: Int, isBigEndian: Bool)? {
    let widths: [AudioCodec: Int] = [.pcmS16: 2, .pcmS24: 3, .pcmS32: 4]
    let order = file.info.format & 0x3000_0000
    guard let sampleBytes = widths[format.codec], map.streams.count == 1, let claimedFrames,
      [.wav, .rf64, .aiff, .au].contains(header.container), order != 0x3000_0000, let start = file.place(of: 0),
      file.place(of: claimedFrames) == start + claimedFrames * Int64(sampleBytes * format.channels)
    else { return nil }
    // libsndfile states the order only if it isn't the container's usual one.
    let isUsuallyBig = [.aiff, .au].contains(header.container)
    return (start, sampleBytes, order == 0 ? isUsuallyBig : order == 0x2000_0000)
  }

  /// Returns a frame from which decoding yields the right samples at `frame`. After a seek, libsndfile 1.2.0 starts a
  /// Vorbis block with half of a different one and an Opus block with a different state. If it lands in the last page,
  /// it is off by the number of frames trimmed from that page. A page of Vorbis has up to 255 blocks, of 1024 frames
  /// with nearly every encoder; one of Opus is rarely longer than a second. If the length is unknown, libsndfile can
  /// only seek to the start.
  private func entryFrame(before frame: Int64) -> Int64 {
    guard format.container == .ogg else { return frame }
    guard file.hasKnownLength else { return 0 }
    let lastPage = format.codec == .vorbis ? 258 * 1024 : 2 * Int64(format.sampleRate)
    return max(min(frame - 8192, Int64(file.info.frames) - lastPage), 0)
  }
}

/// Replaces NaN and infinity with 0; returns how many there were.
private func replaceNonFinite(_ samples: inout MutableSpan<Float>) -> Int {
  var count: Int32 = 0
  for index in samples.indices {
    let finite = samples[index].isFinite
    count &+= finite ? 0 : 1
    samples[index] = finite ? samples[index] : 0
  }
  return Int(count)
}
