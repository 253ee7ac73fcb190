import Glibc

/// A blocking HTTP/1.1 client for one server on loopback. It opens a connection per request, so that a figure includes
/// everything.
struct Client {
  let port: UInt16

  struct Answer {
    let status: Int
    /// The status line and the fields.
    let head: String
    let body: [UInt8]
    /// Seconds from the first byte sent to the last received.
    let seconds: Double
    /// Seconds of these from the last byte sent on.
    let waitSeconds: Double

    /// Returns the text after `"name":` up to the next comma or brace: enough for ids, states, and numbers.
    func member(_ name: String) -> String? {
      let text = String(decoding: body, as: UTF8.self)
      guard let start = text.range(of: "\"\(name)\":") else { return nil }
      let rest = text[start.upperBound...].prefix { $0 != "," && $0 != "}" && $0 != "]" }
      return rest.filter { $0 != "\"" }
    }

    /// Returns the value of a field.
    func field(_ name: String) -> String? {
      head.split(separator: "\r\n").first { $0.lowercased().hasPrefix(name.lowercased() + ": ") }
        .map { String($0.dropFirst(name.count + 2)) }
    }
  }

  /// Returns a port that nothing is listening on.
  static func freePort() throws -> UInt16 {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let failure = unsafe withUnsafeMutablePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        unsafe bind(descriptor, address, length) + getsockname(descriptor, address, &length)
      }
    }
    guard failure == 0 else { throw BenchmarkFailure(what: "no free port") }
    return UInt16(bigEndian: address.sin_port)
  }

  /// Returns once something listens on the port; gives up after five seconds.
  func waitUntilItAnswers() throws {
    for _ in 0..<500 {
      if let connection = try? connect() {
        close(connection)
        return
      }
      // nginx doesn't report that it's listening.
      usleep(10_000)
    }
    throw BenchmarkFailure(what: "nobody answers on port \(port)")
  }

  func get(_ target: String, fields: [String] = []) throws -> Answer {
    try send("GET", target, length: 0, fields: fields) { _ in }
  }

  func post(_ target: String, json: String) throws -> Answer {
    let bytes = Array(json.utf8)
    return try send("POST", target, length: Int64(bytes.count)) { try $0(bytes) }
  }

  /// `body` passes its pieces to the closure. `fields`: additional ones.
  func send(
    _ method: String, _ target: String, length: Int64, fields: [String] = [],
    body: (([UInt8]) throws -> Void) throws -> Void
  ) throws -> Answer {
    let connection = try connect()
    defer { close(connection) }
    let start = ContinuousClock.now
    let lines =
      ["\(method) \(target) HTTP/1.1", "Host: localhost", "Content-Length: \(length)", "Connection: close"] + fields
    try write(Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8), to: connection)
    try body { try write($0, to: connection) }
    let sent = ContinuousClock.now
    let received = try readAll(connection)
    let end = ContinuousClock.now
    guard let headEnd = received.firstRange(of: Array("\r\n\r\n".utf8)), received.count > 12,
      let status = Int(String(decoding: received[9..<12], as: UTF8.self))
    else { throw BenchmarkFailure(what: "no HTTP answer to \(method) \(target)") }
    return Answer(
      status: status, head: String(decoding: received[..<headEnd.lowerBound], as: UTF8.self),
      body: Array(received[headEnd.upperBound...]), seconds: (end - start) / .seconds(1),
      waitSeconds: (end - sent) / .seconds(1))
  }

  func connect() throws -> Int32 {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    let failure = unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    guard failure == 0 else { throw BenchmarkFailure(what: "no connection to port \(port)") }
    return descriptor
  }

  func write(_ bytes: [UInt8], to connection: Int32) throws {
    var rest = bytes[...]
    while !rest.isEmpty {
      let sent = unsafe rest.withUnsafeBytes {
        unsafe Glibc.send(connection, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard sent > 0 else { throw BenchmarkFailure(what: "the server hung up") }
      rest = rest.dropFirst(sent)
    }
  }

  private func readAll(_ connection: Int32) throws -> [UInt8] {
    var all: [UInt8] = []
    var piece = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = unsafe piece.withUnsafeMutableBytes { unsafe read(connection, $0.baseAddress, $0.count) }
      guard count > 0 else { return all }
      all += piece.prefix(count)
    }
  }
}

struct BenchmarkFailure: Error, CustomStringConvertible {
  let what: String
  var description: String { what }
}
