// An encoder writes the length of the sound into the head of the file when it has finished. A client that gets the file
// while it's being written would keep a head without it. So the head is completed in advance, from the number of frames
// given to the encoder. What else the encoder writes there at the end is removed, so that these bytes are always the
// same.
//
//   FLAC (RFC 9639 §8.2)   6 bytes from byte 12 on: the smallest and largest frame in bytes, 0 for unknown; the low 36
//                          bits of the 8 bytes from byte 18 on: the number of frames; then an MD5, 0 for unknown
//   MP3                    the first frame, which LAME leaves silent for this purpose, becomes a counting frame
//                          (see MPEGStream): "Xing", flags 1, the number of frames that follow; "LAME3.100", 12 bytes
//                          of 0, then 12 bits of delay and 12 of padding. LAME's delay is 576 samples; it fills the
//                          last frame and adds another if that leaves less than 576 samples of padding.
//
// Ogg files have no such field.

/// The head of a file that is sent while it is being encoded.
package enum StreamedHeader {
  /// Number of bytes to have before calling `complete`, if the file has as many. It changes none behind them.
  package static let byteCount = 2048

  private static let delay: Int64 = 576

  /// Writes the length of the sound into the first bytes of a FLAC or MP3 file; leaves those of others unchanged.
  /// - Parameters:
  ///   - frames: the number of frames given to the encoder.
  ///   - sampleRate: the rate of those frames, in hertz; the file may have another.
  package static func complete(_ start: inout [UInt8], frames: Int64, sampleRate: Int) {
    if start.starts(with: Array("fLaC".utf8)), start.count >= 42 {
      for index in [12..<18, 26..<42].joined() { start[index] = 0 }
      for index in 0..<5 { start[25 - index] |= UInt8(truncatingIfNeeded: min(frames, 1 << 36 - 1) >> (8 * index)) }
    } else if start.count >= 4, let header = MPEGFrameHeader(start.prefix(4).reduce(0) { $0 << 8 | UInt32($1) }),
      header.isLayerIII, header.length <= start.count
    {
      countFrames(&start, header, samples: samples(frames, from: sampleRate, to: header.sampleRate))
    }
  }

  private static func samples(_ frames: Int64, from source: Int, to target: Int) -> Int64 {
    source == target ? frames : Int64((Double(frames) * Double(target) / Double(source)).rounded())
  }

  private static func countFrames(_ start: inout [UInt8], _ header: MPEGFrameHeader, samples: Int64) {
    let length = Int64(header.samples)
    var padding = length - (samples + delay) % length
    if padding < delay { padding += length }
    let count = (samples + delay + padding) / length
    let numbers = delay << 12 | padding
    func bytes(_ value: Int64, _ count: Int) -> [UInt8] {
      (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * (count - 1 - $0))) }
    }
    let text =
      Array("Xing".utf8) + bytes(1, 4) + bytes(count, 4) + Array("LAME3.100".utf8) + bytes(0, 12) + bytes(numbers, 3)
    let place = Int(header.sideInformation.upperBound)
    guard place + text.count <= header.length else { return }
    // LAME sets the extension of the mode at the end only.
    start[3] &= 0xCF
    start.replaceSubrange(4..<header.length, with: repeatElement(0, count: header.length - 4))
    start.replaceSubrange(place..<place + text.count, with: text)
  }
}
