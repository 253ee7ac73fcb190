import Glibc
import Testing

/// A file that exists during a test and is removed afterwards.
final class TemporaryFile: Sendable {
  let path: String
  let bytes: [UInt8]

  init(bytes: [UInt8]) throws {
    var template = Array("/tmp/http-test-XXXXXX".utf8CString)
    let descriptor = unsafe mkstemp(&template)
    try #require(descriptor >= 0)
    path = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    self.bytes = bytes
    let written = unsafe bytes.withUnsafeBytes { unsafe write(descriptor, $0.baseAddress, $0.count) }
    close(descriptor)
    try #require(written == bytes.count)
  }

  deinit { unsafe unlink(path) }
}
