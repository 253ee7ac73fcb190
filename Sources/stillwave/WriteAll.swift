import Glibc

/// Writes all bytes to a descriptor, in as many calls as it takes; gives up where nobody reads any more.
func writeAll(_ bytes: [UInt8], to descriptor: Int32) {
  var rest = bytes[...]
  while !rest.isEmpty {
    let written = unsafe rest.withUnsafeBytes { unsafe write(descriptor, $0.baseAddress, $0.count) }
    if written < 0 && errno == EINTR { continue }
    guard written > 0 else { return }
    rest = rest.dropFirst(written)
  }
}
