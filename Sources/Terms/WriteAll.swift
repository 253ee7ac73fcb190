import Glibc

/// Writes all bytes to a descriptor, in as many calls as it takes. Returns the errno of the call that failed, or nil.
/// Blocks until the reader of a full pipe has taken them.
@discardableResult
package func writeAll(_ bytes: [UInt8], to descriptor: Int32) -> Int32? {
  var rest = bytes[...]
  while !rest.isEmpty {
    let written = unsafe rest.withUnsafeBytes { unsafe write(descriptor, $0.baseAddress, $0.count) }
    if written > 0 {
      rest = rest.dropFirst(written)
    } else if written < 0 && errno == EAGAIN {
      // Another program that shares this pipe has made it non-blocking.
      var waiting = pollfd(fd: descriptor, events: Int16(POLLOUT), revents: 0)
      unsafe _ = poll(&waiting, 1, -1)
    } else if !(written < 0 && errno == EINTR) {
      return written < 0 ? errno : EIO
    }
  }
  return nil
}
