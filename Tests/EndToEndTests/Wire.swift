import Glibc

/// A connection at the level of bytes: the test's bytes are sent exactly as given, valid or not.
final class Wire {
  enum Failure: Error { case notConnected(errno: Int32), closed, timedOut, malformed(String) }

  private let descriptor: Int32
  private var received: [UInt8] = []

  /// `source` is the last number of the loopback address that the service sees: 127.0.0.1, 127.0.0.2, and so on.
  init(port: UInt16, source: UInt32 = 1, timeoutSeconds: Int = 120) throws(Failure) {
    let socket = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    descriptor = socket
    func call(
      _ function: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32, _ host: UInt32, _ port: UInt16
    ) -> Int32 {
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_port = port.bigEndian
      address.sin_addr.s_addr = (UInt32(0x7F00_0000) + host).bigEndian
      return unsafe withUnsafePointer(to: &address) { pointer in
        unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          unsafe function(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
      }
    }
    var failure: Int32 = 0
    if source != 1 { failure = unsafe call(bind, source, 0) }
    if failure == 0 { failure = unsafe call(connect, 1, port) }
    guard failure == 0 else { throw .notConnected(errno: errno) }
    var limit = timeval(tv_sec: timeoutSeconds, tv_usec: 0)
    let size = socklen_t(MemoryLayout<timeval>.size)
    unsafe _ = setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, size)
    unsafe _ = setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &limit, size)
  }

  deinit { close() }

  private var isClosed = false

  /// Closes the connection.
  func close() {
    guard !isClosed else { return }
    isClosed = true
    _ = Glibc.close(descriptor)
  }

  /// Returns false if the other side has disconnected.
  @discardableResult
  func send(_ bytes: [UInt8]) -> Bool {
    var sent = 0
    while sent < bytes.count {
      let count = unsafe bytes.withUnsafeBytes { buffer in
        unsafe Glibc.send(
          descriptor, buffer.baseAddress?.advanced(by: sent), bytes.count - sent, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { return false }
      sent += count
    }
    return true
  }

  @discardableResult
  func send(_ text: String) -> Bool { send(Array(text.utf8)) }

  /// Whether an answer or the end of the connection can be read.
  var hasInput: Bool {
    var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    return unsafe poll(&entry, 1, 0) > 0
  }

  // MARK: Reading an answer

  /// Reads the next final answer, skipping interim ones (100).
  func answer(to method: String) throws(Failure) -> Answer {
    while true {
      let head = try head()
      guard head.status >= 200 else { continue }
      let hasBody = method != "HEAD" && head.status != 204 && head.status != 304
      return Answer(status: head.status, fields: head.fields, body: hasBody ? try body(head) : [])
    }
  }

  private func head() throws(Failure) -> Answer {
    let status = try line().split(separator: " ", maxSplits: 2)
    guard status.count >= 2, status[0] == "HTTP/1.1", let code = Int(status[1]) else { throw .malformed("\(status)") }
    var fields: [(String, String)] = []
    while case let text = try line(), !text.isEmpty {
      guard let colon = text.firstIndex(of: ":") else { throw .malformed(text) }
      let value = text[text.index(after: colon)...].drop { $0 == " " }
      fields.append((text[..<colon].lowercased(), String(value)))
    }
    return Answer(status: code, fields: fields, body: [])
  }

  private func body(_ head: Answer) throws(Failure) -> [UInt8] {
    if head["transfer-encoding"]?.lowercased() == "chunked" { return try chunks() }
    guard let length = head["content-length"].flatMap({ Int($0) }) else { throw .malformed("no length") }
    return try take(length)
  }

  private func chunks() throws(Failure) -> [UInt8] {
    var body: [UInt8] = []
    while true {
      guard let size = Int(try line(), radix: 16) else { throw .malformed("chunk size") }
      guard size > 0 else { break }
      body += try take(size)
      guard try line().isEmpty else { throw .malformed("chunk end") }
    }
    while try !line().isEmpty {}
    return body
  }

  private func line() throws(Failure) -> String {
    var searched = 0
    while true {
      if let end = received[searched...].firstIndex(of: 10) {
        guard end > 0, received[end - 1] == 13 else { throw .malformed("line end") }
        defer { received.removeFirst(end + 1) }
        return String(decoding: received[..<(end - 1)], as: UTF8.self)
      }
      searched = received.count
      try receive()
    }
  }

  private func take(_ count: Int) throws(Failure) -> [UInt8] {
    received.reserveCapacity(count)
    while received.count < count { try receive() }
    defer { received.removeFirst(count) }
    return Array(received[..<count])
  }

  private func receive() throws(Failure) {
    var piece = [UInt8](repeating: 0, count: 65_536)
    let count = unsafe piece.withUnsafeMutableBytes { unsafe recv(descriptor, $0.baseAddress, $0.count, 0) }
    if count < 0 && errno == EAGAIN { throw .timedOut }
    guard count > 0 else { throw .closed }
    received += piece[..<count]
  }
}
