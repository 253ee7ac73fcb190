// audiowaveform's binary form, little-endian:
//
//   int32   version: 1 or 2
//   uint32  flags: bit 0 set for 8 bits, no other bit
//   int32   sample rate
//   int32   samples per pixel
//   uint32  length: pixels
//   int32   channels, in version 2 only
//   then for each pixel, for each channel: minimum, maximum, as int8 or int16
//
// Source: audiowaveform, doc/DataFormat.md.

extension WaveformSlice {
  /// The slice as a `.dat` file of version 2, or 1.
  ///
  /// Version 1 has no room for a channel count: more lanes than one are written as version 2, as audiowaveform does.
  /// `WaveformWindow.check` tells beforehand whether a form can hold what was asked.
  public func dat(version: Int = 2) -> [UInt8] {
    let first = version == 1 && lanes == 1
    let eight = window.query.bits == .eight
    var bytes: [UInt8] = []
    bytes.reserveCapacity(24 + data.count * (eight ? 1 : 2))
    Self.append(first ? 1 : 2, to: &bytes)
    Self.append(eight ? 1 : 0, to: &bytes)
    Self.append(UInt32(window.extent.sampleRate), to: &bytes)
    Self.append(UInt32(clamping: window.scale), to: &bytes)
    Self.append(UInt32(length), to: &bytes)
    if !first { Self.append(UInt32(lanes), to: &bytes) }
    if eight {
      for value in data { bytes.append(UInt8(truncatingIfNeeded: value)) }
    } else {
      for value in data {
        bytes.append(UInt8(truncatingIfNeeded: value))
        bytes.append(UInt8(truncatingIfNeeded: value >> 8))
      }
    }
    return bytes
  }

  private static func append(_ value: UInt32, to bytes: inout [UInt8]) {
    for shift in stride(from: UInt32(0), to: 32, by: 8) { bytes.append(UInt8(truncatingIfNeeded: value >> shift)) }
  }
}
