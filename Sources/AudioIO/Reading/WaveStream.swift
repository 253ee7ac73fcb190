import Terms

/// A part of a sound file as the bytes of a WAV file, from any of its bytes on. Decodes only what is asked for. Blocks.
/// Use it from one thread at a time.
///
/// Samples keep their values: integers have the source's number of bits, rounded up to whole bytes, floats have 32 or
/// 64. Those of a lossy codec become 16-bit integers.
package struct WaveStream: ~Copyable {
  /// The beginning of the WAV file, which also gives its length.
  package let header: WaveHeader
  private let frames: Range<Int64>
  private let codec: AudioCodec
  private var reader: AudioReader

  /// Maximum number of samples in one result of `bytes`.
  private static let samplesAtOnce = 32_768

  /// Opens the file at `path`, which must have been decoded before: its length isn't checked.
  ///
  /// Throws `.unwritable` if a WAV file can't hold so many channels, and what `AudioReader` throws.
  /// - Parameters:
  ///   - map: the file's map.
  ///   - frames: the frames to return.
  package init(path: String, map: SoundMap, frames: Range<Int64>) throws(AudioIOError) {
    let reader = try AudioReader(path: path, limits: .none, map: map)
    let format = reader.format
    let codec = format.codec == .pcmF64 ? .pcmF64 : OutputFormat.pcm(for: format.codec.sampleKind)
    let header = try WaveHeader(
      codec, sampleRate: format.sampleRate, channels: format.channels, frames: Int64(frames.count))
    (self.header, self.frames, self.codec) = (header, frames, codec)
    self.reader = reader
  }

  /// Returns bytes of the WAV file from byte `place` on, as many as are decoded at once; none at the end.
  ///
  /// Throws `.seekFailed` if the source has fewer frames than expected.
  package mutating func bytes(from place: Int64) throws(AudioIOError) -> [UInt8] {
    let head = Int64(header.bytes.count)
    if place < head { return Array(header.bytes[Int(place)...]) }
    let offset = place - head
    guard offset < header.sampleBytes else { return place < header.fileBytes ? [0] : [] }
    let frame = frames.lowerBound + offset / Int64(header.frameBytes)
    if reader.position != frame { try reader.seek(to: frame) }
    let most = min(max(Self.samplesAtOnce / reader.format.channels, 1), Int(frames.upperBound - frame))
    let decoded = read(upTo: most)
    guard !decoded.isEmpty else { throw .seekFailed(frame: frame) }
    let skipped = Int(offset % Int64(header.frameBytes))
    return skipped == 0 ? decoded : Array(decoded[skipped...])
  }

  private mutating func read(upTo frames: Int) -> [UInt8] {
    var bytes: [UInt8] = []
    _ =
      switch codec {
      case .pcmU8: reader.readInt16(upTo: frames) { bytes = Self.offsetBytes($0) }
      case .pcmS16: reader.readInt16(upTo: frames) { bytes = Self.copy($0) }
      case .pcmS24: reader.readInt32(upTo: frames) { bytes = Self.highBytes($0) }
      case .pcmS32: reader.readInt32(upTo: frames) { bytes = Self.copy($0) }
      case .pcmF64: reader.readDouble(upTo: frames) { bytes = Self.copy($0) }
      default: reader.readFloat(upTo: frames) { bytes = Self.copy($0) }
      }
    return bytes
  }

  /// Little-endian, as are all processors that this program runs on.
  private static func copy<Sample: BitwiseCopyable>(_ samples: Span<Sample>) -> [UInt8] {
    unsafe samples.withUnsafeBytes { unsafe Array($0) }
  }

  /// Unsigned 8-bit samples, with silence at 128.
  private static func offsetBytes(_ samples: Span<Int16>) -> [UInt8] {
    samples.indices.map { UInt8(truncatingIfNeeded: (samples[$0] >> 8) + 128) }
  }

  /// The three high bytes of each sample.
  private static func highBytes(_ samples: Span<Int32>) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: 3 * samples.count)
    var target = bytes.mutableSpan
    for index in samples.indices {
      let sample = samples[index]
      target[3 * index] = UInt8(truncatingIfNeeded: sample >> 8)
      target[3 * index + 1] = UInt8(truncatingIfNeeded: sample >> 16)
      target[3 * index + 2] = UInt8(truncatingIfNeeded: sample >> 24)
    }
    return bytes
  }
}
