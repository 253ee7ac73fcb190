import Glibc

/// Encodes a sound file from its first frame to its last, in constant memory. Confined: one caller at a time; blocks.
///
/// The file is whole only after `finish`; write to a temporary path and rename.
package struct AudioWriter: ~Copyable {
  /// What is written; `.rf64` where `.wav` was asked for and would not hold it.
  package let format: AudioFormat
  /// Samples beyond full scale that were cut to it.
  package private(set) var clippedSamples: Int64 = 0

  private let target: EncodedFile
  private let file: SndfileHandle
  private let framesPerWrite: Int
  private var order: ChannelOrder?
  private var floats: PageBuffer<Float>
  private var integers: PageBuffer<Int32>
  private var shorts: PageBuffer<Int16>

  /// Creates the file at `path`, replacing what is there.
  ///
  /// `expectedFrames` decides between WAV and RF64: a WAV file ends at 4 GiB. Throws `.unwritable` where the container
  /// can't hold the codec, the rate or the channels. `tags` that it can't hold are left out.
  package init(
    creating path: String, format: AudioFormat, expectedFrames: Int64, tags: SoundTags = SoundTags()
  ) throws(AudioIOError) {
    var format = format
    if format.container == .wav, Self.needsRF64(format, frames: expectedFrames) { format.container = .rf64 }
    guard Self.canWrite(format) else { throw .unwritable(format) }
    let target = try EncodedFile(creating: path)
    let file: SndfileHandle
    do { file = try SndfileHandle(writing: target, info: format.sndfileInfo) } catch {
      throw target.failure ?? .unwritable(format)
    }
    Self.chooseQuality(of: file, codec: format.codec)
    tags.write(to: file)
    // Long writes overflow the stack of libvorbis inside libsndfile; 4,096 frames are safe and fast.
    framesPerWrite = 4096
    let count = framesPerWrite * format.channels
    floats = PageBuffer(count: count)
    integers = PageBuffer(count: count)
    shorts = PageBuffer(count: count)
    self.file = file
    self.format = format
    self.target = target
    order = ChannelOrder(format)
  }

  /// Transparent for speech and music alike; the size is not what a cleaned recording is made for.
  private static func chooseQuality(of file: borrowing SndfileHandle, codec: AudioCodec) {
    switch codec {
    case .vorbis: file.setCompression(0.3)
    // 118 kbit/s a channel. Left to itself the encoder of six or eight channels drops what is above 4 kHz.
    case .opus: file.setCompression(0.55)
    case .mp3:
      file.setVariableBitRate()
      file.setCompression(0.2)
    default: break
    }
  }

  /// Whether `init` would take this format.
  package static func canWrite(_ format: AudioFormat) -> Bool {
    switch format.codec {
    // libsndfile 1.2.0 takes 12-bit DWVW, MPEG layers 1 and 2, and MPEG audio in WAV for writable and then isn't able
    // to; of 20-bit ALAC it writes other samples than it is given.
    case .dwvw12, .mp1, .mp2, .alac20: return false
    case .mp3: return format.container == .mp3
    case .flacS8, .flacS16, .flacS24: return format.container == .flac
    default: return format.container != .flac && SndfileHandle.canWrite(format.sndfileInfo)
    }
  }

  /// With room to spare: the number of frames may be a guess.
  private static func needsRF64(_ format: AudioFormat, frames: Int64) -> Bool {
    Double(frames) * Double(format.channels * format.codec.bytesPerSample) > 0xC000_0000
  }

  /// Encodes interleaved samples of full scale ±1, whole frames, any number of them. What is beyond full scale is cut
  /// to it, but for float codecs, which keep it. What is not finite becomes 0.
  ///
  /// `quantised` is filled with the same samples as a reader of the new file would make 16-bit ones of them: exactly
  /// so for PCM, FLAC and ALAC, before the coding loss for the rest.
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
    clippedSamples += countBeyondFullScale(part)
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
    if let failure = target.failure { throw failure }
    guard target.size <= format.container.sizeLimit else {
      throw .writeFailed(code: 0, reason: "\(format.container.rawValue) files end at 4 GiB")
    }
    guard written == frames else { throw .writeFailed(code: file.errorCode, reason: file.errorMessage) }
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

  private func countBeyondFullScale(_ part: Span<Float>) -> Int64 {
    guard format.codec.sampleKind != .float else { return 0 }
    // Lanes, for the loop to become vectors.
    var lanes = InlineArray<16, Int32>(repeating: 0)
    var start = 0
    while start + 16 <= part.count {
      let group = part.extracting(start..<(start + 16))
      for lane in 0..<16 { lanes[lane] &+= group[lane].magnitude > 1 ? 1 : 0 }
      start += 16
    }
    for index in start..<part.count { lanes[0] &+= part[index].magnitude > 1 ? 1 : 0 }
    var count: Int64 = 0
    for lane in 0..<16 { count += Int64(lanes[lane]) }
    return count
  }

  /// Writes what the encoder still holds, corrects the header and makes the file durable.
  package consuming func finish() throws(AudioIOError) {
    let target = self.target
    file.close()
    try target.synchronize()
  }
}
