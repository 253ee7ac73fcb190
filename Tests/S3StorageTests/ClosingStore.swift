import Foundation
import Synchronization

@testable import S3Storage

/// A store that answers each request with success, but takes one of them and then closes its connection without a byte
/// of an answer. It serves one connection at a time.
final class ClosingStore: Sendable {
  private let listener: Int32
  private let port: UInt16
  private let closing: Int
  private let requests = Mutex(0)

  /// `closing` is the number, from 1, of the request that isn't answered.
  init(closingAt closing: Int) throws {
    listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    self.closing = closing
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let isListening = unsafe withUnsafeMutablePointer(to: &address) { [listener] in
      unsafe $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe bind(listener, $0, length) == 0 && listen(listener, 8) == 0 && getsockname(listener, $0, &length) == 0
      }
    }
    guard isListening else { throw POSIXError(.EADDRINUSE) }
    port = UInt16(bigEndian: address.sin_port)
    Thread.detachNewThread { [self] in serve() }
  }

  /// Returns a client that makes at most `attempts` attempts at each call.
  func client(attempts: Int) throws -> S3Client {
    var settings = S3Settings()
    (settings.attempts, settings.pauseSeconds, settings.breakSeconds) = (attempts, 0.001, 0)
    return S3Client(
      try S3Bucket("s3://sounds?endpoint=http://127.0.0.1:\(port)"), credentials: try TestStore.source(),
      settings: settings)
  }

  /// Stops serving, and returns the number of requests that arrived.
  func stop() -> Int {
    shutdown(listener, Int32(SHUT_RDWR))
    return requests.withLock { $0 }
  }

  private func serve() {
    while true {
      let connection = accept(listener, nil, nil)
      guard connection >= 0 else { break }
      while takesRequest(connection) {
        let number = requests.withLock { count in
          count += 1
          return count
        }
        guard number != closing else { break }
        let answer = Array("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".utf8)
        guard unsafe send(connection, answer, answer.count, Int32(MSG_NOSIGNAL)) == answer.count else { break }
      }
      // Also if a program that another test has just started has the descriptor, too.
      shutdown(connection, Int32(SHUT_RDWR))
      close(connection)
    }
    close(listener)
  }

  /// Receives a request with Content-Length; false if the client has closed the connection instead.
  private func takesRequest(_ connection: Int32) -> Bool {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 65_536)
    while true {
      let text = String(decoding: bytes, as: UTF8.self)
      if let end = text.range(of: "\r\n\r\n") {
        let length = text[..<end.lowerBound].split(separator: "\r\n").lazy
          .map { $0.lowercased().split(separator: ": ") }.first { $0[0] == "content-length" }
          .flatMap { Int($0[1]) }
        if text[end.upperBound...].utf8.count >= length ?? 0 { return true }
      }
      let count = unsafe recv(connection, &buffer, buffer.count, 0)
      guard count > 0 else { return false }
      bytes += buffer.prefix(count)
    }
  }
}
