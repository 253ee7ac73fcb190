import Foundation

/// WAV as written and read by the tests, independently of the program under test.
///
///     "RIFF" u32 size "WAVE" | "fmt " u32 16, u16 format (1 integer, 3 float), u16 channels, u32 rate, u32 bytes a
///     second, u16 bytes a frame, u16 bits | "data" u32 size, samples
struct WAVFile {
  var format: UInt16 = 1
  var channels = 1
  var rate = 44_100
  var bits = 16
  var data: [UInt8] = []
  /// The length in the header; nil for the true one.
  var claimedBytes: UInt32?

  init() {}

  init(_ sound: Sound) {
    channels = sound.channels.count
    rate = sound.rate
    data = sound.samples16.flatMap { littleEndian(UInt16(bitPattern: $0)) }
  }

  /// Mono 32-bit float.
  init(floats: [Float], rate: Int) {
    (format, bits, self.rate) = (3, 32, rate)
    data = floats.flatMap { littleEndian($0.bitPattern) }
  }

  /// The 44 bytes before the samples.
  var header: [UInt8] {
    let length = claimedBytes ?? UInt32(data.count)
    let frameBytes = channels * bits / 8
    return Array("RIFF".utf8) + littleEndian(length &+ 36) + Array("WAVEfmt ".utf8) + littleEndian(UInt32(16))
      + littleEndian(format) + littleEndian(UInt16(channels)) + littleEndian(UInt32(rate))
      + littleEndian(UInt32(rate * frameBytes)) + littleEndian(UInt16(frameBytes)) + littleEndian(UInt16(bits))
      + Array("data".utf8) + littleEndian(length)
  }

  var bytes: [UInt8] { header + data }

  /// Reads 16, 24, or 32-bit integers or 32-bit floats, skipping other chunks.
  init(reading bytes: [UInt8]) throws {
    func number(_ offset: Int, _ count: Int) -> Int {
      bytes[offset..<offset + count].reversed().reduce(0) { $0 << 8 | Int($1) }
    }
    var offset = 12
    while offset + 8 <= bytes.count {
      let name = String(decoding: bytes[offset..<offset + 4], as: UTF8.self)
      let (start, size) = (offset + 8, number(offset + 4, 4))
      if name == "fmt " {
        format = UInt16(number(start, 2))
        if format == 0xFFFE { format = UInt16(number(start + 24, 2)) }
        (channels, rate, bits) = (number(start + 2, 2), number(start + 4, 4), number(start + 14, 2))
      } else if name == "data" {
        data = Array(bytes[start..<min(start + size, bytes.count)])
      }
      offset = start + size + size % 2
    }
    guard !data.isEmpty else { throw NoSamples(bytes: bytes.count) }
  }

  var frames: Int { data.count / (channels * bits / 8) }

  var sound: Sound {
    let width = bits / 8
    let values = stride(from: 0, to: frames * channels * width, by: width).map { offset -> Double in
      let pattern = (0..<width).reduce(UInt32(0)) { $0 | UInt32(data[offset + $1]) << (8 * UInt32($1)) }
      if format == 3 { return Double(Float(bitPattern: pattern)) }
      return Double(Int32(bitPattern: pattern << UInt32(32 - bits))) / 0x1p31
    }
    return Sound(
      rate: rate,
      channels: (0..<channels).map { channel in
        stride(from: channel, to: values.count, by: channels).map { values[$0] }
      })
  }
}

/// A WAV file without samples.
struct NoSamples: Error {
  let bytes: Int
}

func littleEndian<Value: FixedWidthInteger>(_ value: Value) -> [UInt8] {
  (0..<Value.bitWidth / 8).map { UInt8(truncatingIfNeeded: value >> Value($0 * 8)) }
}
