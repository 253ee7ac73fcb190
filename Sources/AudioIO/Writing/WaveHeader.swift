import Terms

// The header of a WAV file whose length is known in advance (RIFF, Microsoft 1991), or of an RF64 file (EBU Tech 3306)
// if it exceeds 4 GiB. All numbers are little-endian.
//
//   "RIFF"  u32 bytes after this number   "WAVE"          RF64: "RF64", 0xFFFFFFFF
//   "ds64"  u32 28, u64 those bytes, u64 bytes of samples, u64 frames, u32 0                    (RF64 only)
//   "JUNK"  u32 28, 28 bytes of 0         the place of "ds64" in a shorter file, if the length is written at the end
//   "fmt "  u32 16, u16 1 (integers) or 3 (floats), u16 channels, u32 sample rate, u32 bytes per second,
//           u16 bytes per frame, u16 bits per sample
//   "fact"  u32 4, u32 frames             (floats only)   RF64: 0xFFFFFFFF
//   "data"  u32 bytes of samples                          RF64: 0xFFFFFFFF
//   samples, interleaved: 8-bit ones unsigned, all others signed; then a zero byte if their number of bytes is odd

/// The bytes before a WAV file's samples.
package struct WaveHeader: Sendable, Equatable {
  /// The header itself.
  package let bytes: [UInt8]
  /// The length of the samples, in bytes.
  package let sampleBytes: Int64
  /// Bytes per frame.
  package let frameBytes: Int

  /// The length of the whole file, in bytes.
  package var fileBytes: Int64 { Int64(bytes.count) + sampleBytes + sampleBytes % 2 }

  /// Throws `.unwritable` if a WAV file can't hold such frames.
  /// - Parameters:
  ///   - codec: PCM: unsigned 8-bit, or signed integers or floats of more bits.
  ///   - frames: the number of frames, 0 or more.
  ///   - isFixed: whether the header must have the same length for any number of frames.
  package init(
    _ codec: AudioCodec, sampleRate: Int, channels: Int, frames: Int64, isFixed: Bool = false
  ) throws(AudioIOError) {
    let (frameBytes, isFloat) = (codec.bytesPerSample * channels, codec.sampleKind == .float)
    let (total, overflow) = frames.multipliedReportingOverflow(by: Int64(frameBytes))
    guard frameBytes <= 0xFFFF, sampleRate <= 0xFFFF_FFFF / frameBytes, !overflow, total < .max / 2
    else {
      throw .unwritable(AudioFormat(container: .wav, codec: codec, sampleRate: sampleRate, channels: channels))
    }
    func number(_ value: Int64, _ count: Int) -> [UInt8] {
      (0..<count).map { UInt8(truncatingIfNeeded: value >> Int64(8 * $0)) }
    }
    var format = Array("fmt ".utf8) + number(16, 4) + number(isFloat ? 3 : 1, 2) + number(Int64(channels), 2)
    format += number(Int64(sampleRate), 4) + number(Int64(sampleRate * frameBytes), 4) + number(Int64(frameBytes), 2)
    format += number(Int64(8 * codec.bytesPerSample), 2)
    // "WAVE", the chunks' own heads, and the padding.
    let rest = Int64(4 + (isFixed ? 36 : 0) + format.count + (isFloat ? 12 : 0) + 8) + total + total % 2
    let isLong = rest > 0xFFFF_FFFE
    func size(_ value: Int64) -> [UInt8] { number(isLong ? 0xFFFF_FFFF : value, 4) }
    var all = Array((isLong ? "RF64" : "RIFF").utf8) + size(rest) + Array("WAVE".utf8)
    if isLong {
      all +=
        Array("ds64".utf8) + number(28, 4) + number(isFixed ? rest : rest + 36, 8) + number(total, 8)
        + number(frames, 8)
      all += number(0, 4)
    } else if isFixed {
      all += Array("JUNK".utf8) + number(28, 4) + [UInt8](repeating: 0, count: 28)
    }
    all += format
    if isFloat { all += Array("fact".utf8) + number(4, 4) + size(frames) }
    bytes = all + Array("data".utf8) + size(total)
    sampleBytes = total
    self.frameBytes = frameBytes
  }
}
