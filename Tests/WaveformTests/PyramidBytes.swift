import Foundation

@testable import Waveform

extension Int64 {
  var littleEndianBytes: [UInt8] { (0..<8).map { UInt8(truncatingIfNeeded: self >> ($0 * 8)) } }
}

/// Corrects a header's checksums after its values were changed.
func resealHeader(_ data: inout Data) {
  for (end, place) in [(3, 24), (5, 40)] {
    let sum = XXH64.hash(words(data.prefix(end * 8)).span)
    data.replaceSubrange(place..<place + 8, with: Int64(bitPattern: sum).littleEndianBytes)
  }
}

/// Gives all pages after the header their numbers and correct checksums.
func resealPages(_ data: inout Data) {
  var pages = words(data.dropFirst(4096))
  PyramidLayout.seal(&pages, from: 1)
  data = data.prefix(4096) + pages.flatMap { Int64(bitPattern: UInt64(littleEndian: $0)).littleEndianBytes }
}

private func words(_ data: Data) -> [UInt64] {
  let bytes = [UInt8](data)
  return stride(from: 0, to: bytes.count, by: 8).map { start in
    bytes[start..<start + 8].reversed().reduce(0) { $0 << 8 | UInt64($1) }.littleEndian
  }
}

/// Truncates a file in place, as disk damage may.
func cut(_ path: String, to length: Int) throws {
  let file = try FileHandle(forUpdating: URL(filePath: path))
  try file.truncate(atOffset: UInt64(length))
  try file.close()
}
