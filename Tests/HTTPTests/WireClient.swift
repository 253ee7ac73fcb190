import Glibc

/// A blocking client on a raw socket, which sends exactly the given bytes.
final class WireClient {
  private var descriptor: Int32
  private var buffer: [UInt8] = []

  /// Connects. Every later call gives up after ten seconds, so that a failing test ends. `source`: the last number of
  /// the loopback address that the server sees.
  init(port: UInt16, receiveBuffer: Int32? = nil, source: UInt32 = 1) throws {
    descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var timeout = timeval(tv_sec: 10, tv_usec: 0)
    unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
    unsafe setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
    if var receiveBuffer {
      unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVBUF, &receiveBuffer, socklen_t(MemoryLayout<Int32>.size))
    }
    let socket = descriptor
    func call(
      _ function: (Int32, UnsafePointer<sockaddr>, socklen_t) -> Int32, _ host: UInt32, _ port: UInt16
    ) throws {
      var address = sockaddr_in()
      address.sin_family = sa_family_t(AF_INET)
      address.sin_port = port.bigEndian
      address.sin_addr.s_addr = (UInt32(0x7F00_0000) + host).bigEndian
      let result = unsafe withUnsafePointer(to: &address) { pointer in
        unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          unsafe function(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
      }
      guard result == 0 else { throw WireError.failed(errno) }
    }
    if source != 1 { try unsafe call(bind, source, 0) }
    try unsafe call(connect, 1, port)
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  enum WireError: Error { case failed(Int32), ended }

  func send(_ text: String) throws { try send(Array(text.utf8)) }

  func send(_ bytes: [UInt8]) throws {
    var sent = 0
    while sent < bytes.count {
      let count = unsafe bytes.withUnsafeBytes {
        unsafe Glibc.send(
          descriptor, $0.baseAddress.map { unsafe $0 + sent }, bytes.count - sent, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { throw WireError.failed(errno) }
      sent += count
    }
  }

  /// Sends as much as the kernel's buffers take and returns the number of bytes.
  func sendWithoutWaiting(_ bytes: [UInt8]) -> Int {
    var sent = 0
    while sent < bytes.count {
      let count = unsafe bytes.withUnsafeBytes {
        unsafe Glibc.send(
          descriptor, $0.baseAddress.map { unsafe $0 + sent }, bytes.count - sent,
          Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
      }
      guard count > 0 else { break }
      sent += count
    }
    return sent
  }

  /// Holds sent data back, so that it is sent in one segment together with the end.
  func cork() {
    var on: Int32 = 1
    unsafe setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_CORK, &on, socklen_t(MemoryLayout<Int32>.size))
  }

  func shutdownOutput() { shutdown(descriptor, Int32(SHUT_WR)) }

  /// Closes with a reset.
  func reset() {
    var option = linger(l_onoff: 1, l_linger: 0)
    unsafe setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    close(descriptor)
    descriptor = -1
  }

  /// Reads once more. Returns false at the end.
  private func fill() throws -> Bool {
    var piece = [UInt8](repeating: 0, count: 64 * 1024)
    let count = unsafe piece.withUnsafeMutableBytes { unsafe recv(descriptor, $0.baseAddress, $0.count, 0) }
    guard count >= 0 else { throw WireError.failed(errno) }
    buffer += piece.prefix(count)
    return count > 0
  }

  /// Reads to the end of the connection.
  func readToEnd() throws -> String {
    while try fill() {}
    defer { buffer = [] }
    return String(decoding: buffer, as: UTF8.self)
  }

  /// Reads exactly `count` bytes.
  func read(_ count: Int) throws -> [UInt8] {
    while buffer.count < count {
      guard try fill() else { throw WireError.ended }
    }
    defer { buffer.removeFirst(count) }
    return Array(buffer.prefix(count))
  }

  struct Answer {
    var status: Int
    var head: String
    var body: String

    func field(_ name: String) -> String? {
      head.split(separator: "\r\n").first { $0.lowercased().hasPrefix(name.lowercased() + ": ") }
        .map { String($0.dropFirst(name.count + 2)) }
    }
  }

  /// Reads one answer, delimited by its Content-Length or its chunks.
  func answer(toHead: Bool = false) throws -> Answer {
    var head: [UInt8] = []
    while !head.suffix(4).elementsEqual("\r\n\r\n".utf8) { head += try read(1) }
    var answer = Answer(status: 0, head: String(decoding: head, as: UTF8.self), body: "")
    answer.status = Int(answer.head.split(separator: " ")[1]) ?? 0
    if toHead || answer.status == 100 || answer.status == 204 || answer.status == 304 { return answer }
    if let length = answer.field("Content-Length").flatMap(Int.init) {
      answer.body = String(decoding: try read(length), as: UTF8.self)
    } else if answer.field("Transfer-Encoding") == "chunked" {
      var body: [UInt8] = []
      while true {
        var size: [UInt8] = []
        while !size.suffix(2).elementsEqual("\r\n".utf8) { size += try read(1) }
        let count = Int(String(decoding: size.dropLast(2), as: UTF8.self), radix: 16) ?? 0
        body += try read(count)
        _ = try read(2)
        if count == 0 { break }
      }
      answer.body = String(decoding: body, as: UTF8.self)
    }
    return answer
  }
}
