import Glibc
import Synchronization
import Testing

@testable import HTTP

// In separate processes, because descriptors, their limit, and memory belong to the whole process.
@Suite("Line 12: descriptors and memory", .serialized) struct DescriptorTests {
  @Test func theServerSurvivesRunningOutOfDescriptors() async {
    await #expect(processExitsWith: .success) {
      var limit = rlimit(rlim_cur: 256, rlim_max: 256)
      try #require(unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
      try await withServer(echo) { port, _ in
        // The clients' own descriptors come first; then all others are used up, except for the last eight, which
        // Dispatch needs.
        let waiting = (0..<6).map { _ in UnconnectedClient() }
        var eaten: [Int32] = []
        repeat { eaten.append(unsafe open("/dev/null", O_RDONLY | O_CLOEXEC)) } while eaten[eaten.count - 1] < 247
        for client in waiting { #expect(client.connect(port: port)) }
        // Clients are disconnected one by one, each loop taking a tenth of a second per client. A spinning loop would
        // use all of its core.
        let began = Usage()
        for client in waiting.prefix(4) { #expect(client.readsEnd()) }
        let used = Usage()
        #expect(used.cpuSeconds - began.cpuSeconds < 0.5 * (used.wallSeconds - began.wallSeconds))
        for descriptor in eaten { close(descriptor) }
        let client = try WireClient(port: port)
        try client.send("GET /again HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(try client.answer().body == "/again")
      }
    }
  }

  @Test func theDescriptorLimitIsRaisedAsNeededAndAllowed() async {
    await #expect(processExitsWith: .success) {
      var limit = rlimit(rlim_cur: 1400, rlim_max: 6000)
      try #require(unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0)
      HTTPServer.raiseDescriptorLimit(forConnections: 10)
      #expect(ProcessLimits.descriptors == 1400)
      HTTPServer.raiseDescriptorLimit(forConnections: 1000)
      #expect(ProcessLimits.descriptors == 3280)
      HTTPServer.raiseDescriptorLimit(forConnections: 8192)
      #expect(ProcessLimits.descriptors == 6000)
    }
  }

  @Test func clientsLeavingDuringAnAnswerDoNotEndTheProcess() async {
    await #expect(processExitsWith: .success) {
      let file = try TemporaryFile(bytes: [UInt8](repeating: 0x61, count: 4 << 20))
      try await withServer { request in
        switch request.target.path {
        case "/bytes": HTTPResponse(.ok, body: .bytes(file.bytes))
        case "/file": HTTPResponse(.ok, body: .file(try FileContent(path: file.path)))
        case "/stream": HTTPResponse(.ok, body: .stream(length: nil) { [UInt8](repeating: 0x61, count: 65536) })
        default: text("here")
        }
      } test: { port, _ in
        for path in ["/bytes", "/file", "/stream"] {
          for leaves in ["by a reset", "at once"] {
            let client = try WireClient(port: port)
            try client.send("GET \(path) HTTP/1.1\r\nHost: a\r\n\r\n")
            _ = try client.read(1)
            if leaves == "by a reset" { client.reset() }
          }
        }
        let client = try WireClient(port: port)
        try client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        #expect(try client.answer().body == "here")
      }
    }
  }

  /// Run `HTTP_LEAK_ROUNDS=50000 deploy/test --filter DescriptorTests` for a longer test.
  @Test func clientsThatDisconnectLeaveNothingBehind() async {
    await #expect(processExitsWith: .success) {
      let rounds = unsafe getenv("HTTP_LEAK_ROUNDS").flatMap { unsafe Int(String(cString: $0)) } ?? 2000
      let configuration = configured {
        ($0.limits.headSeconds, $0.limits.bodyGapSeconds, $0.limits.lingerSeconds) = (0.01, 0.01, 0.01)
      }
      try await withServer(echo, configuration: configuration) { port, server in
        try breakOff(rounds / 4, port, server)
        let (descriptors, memory) = (Usage.descriptors, Usage.anonymousBytes)
        try breakOff(rounds, port, server)
        // Dispatch and the test process open and close a few; a leak would be one per client.
        #expect(Usage.descriptors < descriptors + 10)
        // The allocator keeps some memory; a leak of one head per client would be more. A sanitizer keeps everything.
        #expect(Usage.isSanitized || Usage.anonymousBytes < memory + 2 << 20)
      }
    }
  }
}

/// Makes clients disconnect in every way, and waits until the server has noticed.
private func breakOff(_ rounds: Int, _ port: UInt16, _ server: HTTPServer) throws {
  let post = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\n"
  for round in 0..<rounds {
    let client = try WireClient(port: port)
    switch round % 8 {
    case 0: break
    case 1: try client.send("GET / HT")
    case 2: try client.send(post + "ab")
    case 3:
      try client.send(post + "ab")
      client.shutdownOutput()
    case 4: try client.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab")
    case 5: try client.send("bad\r\n\r\n")
    case 6: try client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n")
    // Times out, gets a 408, and never disconnects.
    default:
      try client.send("GET / HT")
      _ = try client.answer()
    }
    if round % 2 == 0 { client.reset() }
  }
  while server.statistics.openConnections > 0 { sched_yield() }
}

/// A socket whose descriptor was created before the others are used up.
private final class UnconnectedClient {
  private let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)

  deinit { close(descriptor) }

  func connect(port: UInt16) -> Bool {
    var timeout = timeval(tv_sec: 60, tv_usec: 0)
    unsafe setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    return unsafe withUnsafePointer(to: &address) {
      unsafe Glibc.connect(
        descriptor, UnsafeRawPointer($0).assumingMemoryBound(to: sockaddr.self),
        socklen_t(MemoryLayout<sockaddr_in>.size))
    } == 0
  }

  /// Waits for the server to hang up.
  func readsEnd() -> Bool {
    var byte: UInt8 = 0
    return unsafe recv(descriptor, &byte, 1, 0) <= 0 && errno != EAGAIN
  }
}

/// The resources used by the process.
private struct Usage {
  var cpuSeconds: Double
  var wallSeconds: Double

  init() {
    (cpuSeconds, wallSeconds) = (Self.seconds(CLOCK_PROCESS_CPUTIME_ID), Self.seconds(CLOCK_MONOTONIC))
  }

  private static func seconds(_ clock: clockid_t) -> Double {
    var time = timespec()
    unsafe clock_gettime(clock, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
  }

  /// Whether deploy/sanitize runs the tests with a sanitizer.
  static var isSanitized: Bool { unsafe getenv("SANITIZER") != nil }

  /// Number of open descriptors, including the one for reading the folder.
  static var descriptors: Int {
    guard let folder = unsafe opendir("/proc/self/fd") else { return -1 }
    defer { unsafe closedir(folder) }
    var count = 0
    while unsafe readdir(folder) != nil { count += 1 }
    return count
  }

  static var anonymousBytes: Int {
    guard let file = try? FileContent(path: "/proc/self/status") else { return -1 }
    // Files in /proc have size 0, so read up to the end.
    var buffer = [UInt8](repeating: 0, count: 8192)
    let count = unsafe buffer.withUnsafeMutableBytes { unsafe pread(file.descriptor, $0.baseAddress, $0.count, 0) }
    let text = String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
    let line = text.split(separator: "\n").first { $0.hasPrefix("RssAnon:") }
    return (line.flatMap { Int($0.split(separator: " ").dropFirst().first ?? "") } ?? 0) * 1024
  }
}
