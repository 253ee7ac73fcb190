import Glibc
import Terms

/// Encodes a sound file from its first frame to its last in constant memory. Blocks. Use it from one thread at a time.
///
/// The file is complete only after `finish`; write to a temporary path and rename.
package struct AudioWriter: ~Copyable {
  /// The format written: `.rf64` if `.wav` was requested but would be too large.
  package let format: AudioFormat
  /// Number of samples beyond full scale that were clipped.
  package private(set) var clippedSamples: Int64 = 0
  /// Names of what the file can't hold of its tags, besides texts.
  package let leftOut: [String]

  private let target: EncodedFile
  /// What is added behind the sound.
  private let chunks: [UInt8]
  private let file: SndfileHandle
  private let framesPerWrite: Int
  private var order: ChannelOrder?
  private var floats: PageBuffer<Float>
  private var integers: PageBuffer<Int32>
  private var shorts: PageBuffer<Int16>

  /// Creates the file at `path`, replacing any existing file; `file` is its descriptor if it is open already.
  ///
  /// `expectedFrames` decides between WAV and RF64, because a WAV file can't exceed 4 GiB. Throws `.unwritable` if the
  /// container doesn't support the codec, sample rate, or number of channels. `tags` that the container can't hold are
  /// left out.
  package init(
    creating path: String, or file: Int32? = nil, format: AudioFormat, expectedFrames: Int64,
    tags: SoundTags = SoundTags()
  ) throws(AudioIOError) {
    var format = format
    if format.container == .wav, Self.needsRF64(format, frames: expectedFrames) { format.container = .rf64 }
    guard format.isWritable else { throw .unwritable(format) }
    let target = if let file { try EncodedFile(replacing: file) } else { try EncodedFile(creating: path) }
    if format.container == .ogg { target.pages = OggPages() }
    let file: SndfileHandle
    var info = format.sndfileInfo
    // SF_FORMAT_WAVEX in place of SF_FORMAT_WAV, if it can hold the codec.
    if tags.needsExtensibleHeader(format) { info.format += 0x12_0000 }
    if !SndfileHandle.canWrite(info) { info = format.sndfileInfo }
    do { file = try SndfileHandle(writing: target, info: info) } catch {
      throw target.failure ?? .unwritable(format)
    }
    Self.chooseQuality(of: file, codec: format.codec)
    leftOut = tags.write(to: file, format)
    chunks = [.wav, .rf64].contains(format.container) ? tags.chunks.bytes : []
    // Long writes overflow the stack of libvorbis inside libsndfile; 4,096 frames are safe and fast. The other codecs
    // save system calls.
    framesPerWrite = format.codec.sampleKind == .lossy ? 4096 : max(4096, 65_536 / format.channels)
    let count = framesPerWrite * format.channels
    floats = PageBuffer(count: count)
    integers = PageBuffer(count: count)
    shorts = PageBuffer(count: count)
    self.file = file
    self.format = format
    self.target = target
    order = ChannelOrder(format)
  }

  /// Sets a quality that is transparent for speech and music; small files aren't the goal of a cleaned recording.
  private static func chooseQuality(of file: borrowing SndfileHandle, codec: AudioCodec) {
    switch codec {
    case .vorbis: file.setCompression(0.3)
    // 118 kbit/s per channel. By default, the encoder drops everything above 4 kHz with six or eight channels.
    case .opus: file.setCompression(0.55)
    case .mp3:
      file.setVariableBitRate()
      file.setCompression(0.2)
    default: break
    }
  }

  /// Whether the file needs RF64, with a margin: the number of frames may be an estimate.
  private static func needsRF64(_ format: AudioFormat, frames: Int64) -> Bool {
    Double(frames) * Double(format.channels * format.codec.bytesPerSample) > 0xC000_0000
  }

  /// Encodes any number of whole frames, interleaved, full scale ±1. Samples beyond full scale are clipped, except by
  /// float codecs. Samples that aren't finite become 0.
  ///
  /// Fills `quantised` with the 16-bit samples that a reader of the new file would return: exactly those for PCM, FLAC,
  /// and ALAC, and those before coding loss for the others.
  package mutating func write(_ samples: Span<Float>, quantised: inout [Int16]) throws(AudioIOError) {
    if quantised.count != samples.count { quantised = [Int16](repeating: 0, count: samples.count) }
    let step = framesPerWrite * format.channels
    var start = 0
    while start < samples.count {
      let part = samples.extracting(start..<min(start + step, samples.count))
      try encode(part)
      shorts.withSpan(part.count) { span in
        var target = quantised.mutableSpan
        for index in span.indices { target[start + index] = span[index] }
      }
      start += part.count
    }
  }

  private mutating func encode(_ part: Span<Float>) throws(AudioIOError) {
    if format.codec.sampleKind != .float { clippedSamples += countBeyondFullScale(part) }
    let frames = part.count / format.channels
    let written: Int
    switch format.codec.sampleKind {
    case .integer(let bits) where bits <= 16:
      quantiseShorts(part, bits: bits)
      written = file.write(shorts, frames: frames)
    case .integer(let bits):
      quantiseIntegers(part, bits: bits)
      written = file.write(integers, frames: frames)
    case .float, .lossy:
      copyFloats(part, clamping: format.codec.sampleKind == .lossy)
      written = file.write(floats, frames: frames)
    }
    try check(written, frames)
  }

  /// Throws if fewer frames were written than given, or the file has become too large.
  private func check(_ written: Int, _ frames: Int) throws(AudioIOError) {
    if let failure = target.failure { throw failure }
    guard target.size <= format.container.sizeLimit else {
      throw .writeFailed(code: 0, reason: "\(format.container.rawValue) files end at 4 GiB")
    }
    guard written == frames else { throw .writeFailed(code: file.errorCode, reason: file.errorMessage) }
  }

  /// Encodes whole frames of integers, left-justified in 32 bits, without rounding. Only for integer codecs with as
  /// many bits. `quantised` gets the upper 16 bits.
  package mutating func write(_ samples: Span<Int32>, quantised: inout [Int16]) throws(AudioIOError) {
    if quantised.count != samples.count { quantised = [Int16](repeating: 0, count: samples.count) }
    let step = framesPerWrite * format.channels
    for start in stride(from: 0, to: samples.count, by: step) {
      let count = min(step, samples.count - start)
      integers.withMutableSpan(count) { target in
        for index in 0..<count { target[index] = samples[start + index] }
      }
      for index in start..<start + count { quantised[index] = Int16(truncatingIfNeeded: samples[index] >> 16) }
      try check(file.write(integers, frames: count / format.channels), count / format.channels)
    }
  }

  /// Encodes whole frames of 64-bit floats, full scale ±1. `quantised` gets the nearest 16-bit values.
  package mutating func write(_ samples: Span<Double>, quantised: inout [Int16]) throws(AudioIOError) {
    if quantised.count != samples.count { quantised = [Int16](repeating: 0, count: samples.count) }
    let step = framesPerWrite * format.channels
    var doubles = PageBuffer<Double>(count: step)
    for start in stride(from: 0, to: samples.count, by: step) {
      let count = min(step, samples.count - start)
      doubles.withMutableSpan(count) { target in
        for index in 0..<count { target[index] = samples[start + index] }
      }
      for index in start..<start + count { quantised[index] = quantised16(narrowed(samples[index])) }
      try check(file.write(doubles, frames: count / format.channels), count / format.channels)
    }
  }

  private mutating func quantiseShorts(_ part: Span<Float>, bits: Int) {
    shorts.withMutableSpan(part.count) { target in
      if bits == 16 {
        _ = quantise16(part, into: &target)
      } else {
        for index in part.indices {
          target[index] = Int16(truncatingIfNeeded: quantisedLeftJustified(part[index], bits: bits) >> 16)
        }
      }
    }
  }

  private mutating func quantiseIntegers(_ part: Span<Float>, bits: Int) {
    integers.withMutableSpan(part.count) { target in
      for index in part.indices { target[index] = quantisedLeftJustified(part[index], bits: bits) }
    }
    integers.withSpan(part.count) { source in
      shorts.withMutableSpan(part.count) { target in
        for index in source.indices { target[index] = Int16(truncatingIfNeeded: source[index] >> 16) }
      }
    }
  }

  private mutating func copyFloats(_ part: Span<Float>, clamping: Bool) {
    floats.withMutableSpan(part.count) { target in
      for index in part.indices {
        let sample = part[index].isFinite ? part[index] : 0
        target[index] = clamping ? min(max(sample, -1), 1) : sample
      }
      order?.toCodec(&target)
    }
    _ = shorts.withMutableSpan(part.count) { quantise16(part, into: &$0) }
  }

  /// Writes what the encoder still buffers, corrects the header, and makes the file durable if `isDurable` is true.
  package consuming func finish(isDurable: Bool = true) throws(AudioIOError) {
    let (target, chunks) = (self.target, self.chunks)
    file.close()
    if !chunks.isEmpty { try target.addChunks(chunks) }
    if isDurable { try target.synchronize() } else { try target.check() }
  }
}
