import Dispatch
import Foundation
import Synchronization

/// A proxy on a Unix socket in front of a PostgreSQL server, which can cut a connection at the COMMIT of a transaction,
/// or act like a pooler; for tests.
///
/// It looks for the bytes of a simple query "COMMIT": 'Q', the length 11, the text, and a zero byte.
public final class CuttingProxy: Sendable {
  /// What happens at the next COMMIT.
  public enum Cut: Sendable {
    /// COMMIT doesn't reach the server, which notices the end of the connection.
    case beforeRequest
    /// COMMIT doesn't reach the server, which doesn't notice the end of the connection.
    case beforeRequestUnnoticed
    /// The server commits, but its response is lost.
    case beforeResponse
    /// COMMIT stays in the proxy while this runs; then the connection is cut at both ends.
    case after(@Sendable () -> Void)
  }

  /// How a pooler gives sessions to clients. Either way, it tells them process IDs of its own.
  public enum Pooling: Sendable {
    case sessionPerClient
    /// All statements of all clients, which must take turns, run in the first one's session.
    case sharedSession
  }

  /// The folder with the proxy's socket.
  public let folder: String
  private let pooling: Pooling?
  private let shared = Mutex<Int32?>(nil)
  private let server: String
  private let listener: Int32
  private let choice = Mutex<(@Sendable () -> Cut?)?>(nil)
  private let held = Mutex<[Int32]>([])
  private static let commit: [UInt8] = [0x51, 0, 0, 0, 11] + Array("COMMIT".utf8) + [0]

  /// Starts a proxy to the server with its socket in `folder`.
  public init(to folder: String, _ pooling: Pooling? = nil) throws {
    self.pooling = pooling
    server = folder + "/.s.PGSQL.5432"
    self.folder = "/tmp/stillwave-px-\(UInt32.random(in: 0...UInt32.max))"
    try FileManager.default.createDirectory(atPath: self.folder, withIntermediateDirectories: true)
    listener = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    let bound = unsafe Self.withAddress(self.folder + "/.s.PGSQL.5432") { [listener] in unsafe bind(listener, $0, $1) }
    guard bound == 0, listen(listener, 64) == 0 else { throw POSIXError(.EADDRINUSE) }
    Thread.detachNewThread { [self] in accept() }
  }

  /// Ends the proxy; connections in progress go on.
  public func stop() {
    shutdown(listener, Int32(SHUT_RDWR))
    for descriptor in held.withLock({ $0 }) { close(descriptor) }
    try? FileManager.default.removeItem(atPath: folder)
  }

  /// Cuts the connection that sends the next COMMIT.
  public func cutNext(_ cut: Cut) {
    let isDone = Once()
    cutOften { isDone.first() ? cut : nil }
  }

  /// Asks `choose` at every COMMIT from now on.
  public func cutOften(_ choose: @escaping @Sendable () -> Cut?) { choice.withLock { $0 = choose } }

  private final class Once: Sendable {
    private let isDone = Atomic(false)
    func first() -> Bool { !isDone.exchange(true, ordering: .relaxed) }
  }

  private func accept() {
    while true {
      let client = Glibc.accept(listener, nil, nil)
      guard client >= 0 else { break }
      let upstream = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
      guard unsafe Self.withAddress(server, { unsafe connect(upstream, $0, $1) }) == 0 else {
        close(client)
        close(upstream)
        continue
      }
      Thread.detachNewThread { [self] in serve(client, upstream) }
    }
    close(listener)
  }

  private func serve(_ client: Int32, _ upstream: Int32) {
    var keepsUpstream = false
    defer {
      close(client)
      if keepsUpstream { held.withLock { $0.append(upstream) } } else { close(upstream) }
    }
    var entries = [client, upstream].map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
    while unsafe poll(&entries, 2, 60_000) > 0 {
      if entries[0].revents != 0 {
        let bytes = Self.receive(client)
        guard !bytes.isEmpty else { return }
        if bytes.suffix(Self.commit.count) == Self.commit[...], let cut = choice.withLock({ $0 })?() {
          switch cut {
          case .beforeRequest: break
          case .beforeRequestUnnoticed: keepsUpstream = true
          case .beforeResponse:
            Self.send(bytes, upstream)
            _ = Self.receive(upstream)
          case .after(let action): action()
          }
          return
        }
        if pooling == .sharedSession, bytes[0] == UInt8(ascii: "Q") {
          serve(client, bytes, in: upstream)
          // What arrives there from now on may be another client's.
          entries[1].fd = -1
          continue
        }
        Self.send(bytes, upstream)
      }
      if entries[1].revents != 0 {
        let bytes = Self.receive(upstream)
        guard !bytes.isEmpty else { return }
        Self.send(pooling == nil ? bytes : Self.renumbered(bytes), client)
      }
    }
  }

  /// Runs a simple query in the shared session, which is `upstream` if there is none.
  private func serve(_ client: Int32, _ query: [UInt8], in upstream: Int32) {
    let session = shared.withLock { shared in
      if shared == nil { shared = dup(upstream) }
      return shared ?? upstream
    }
    Self.send(query, session)
    var bytes: [UInt8] = []
    repeat {
      bytes = Self.receive(session)
      Self.send(bytes, client)
    } while !bytes.isEmpty && bytes.suffix(6).prefix(5) != [UInt8(ascii: "Z"), 0, 0, 0, 5]
  }

  /// Changes the process ID in the message BackendKeyData: 'K', the length 12, the ID, and a secret.
  private static func renumbered(_ bytes: [UInt8]) -> [UInt8] {
    guard let range = bytes.firstRange(of: [UInt8(ascii: "K"), 0, 0, 0, 12]) else { return bytes }
    var bytes = bytes
    bytes[range.upperBound] ^= 0x40
    return bytes
  }

  private static func receive(_ descriptor: Int32) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: 65_536)
    let count = unsafe recv(descriptor, &bytes, bytes.count, 0)
    return Array(bytes.prefix(max(count, 0)))
  }

  private static func send(_ bytes: [UInt8], _ descriptor: Int32) {
    var rest = bytes[...]
    while !rest.isEmpty {
      let count = unsafe rest.withUnsafeBytes {
        unsafe Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
      }
      guard count > 0 else { return }
      rest = rest.dropFirst(count)
    }
  }

  @unsafe
  private static func withAddress<Result>(
    _ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Result
  ) -> Result {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    unsafe withUnsafeMutableBytes(of: &address.sun_path) {
      unsafe $0.copyBytes(from: path.utf8.prefix($0.count - 1))
    }
    return unsafe withUnsafePointer(to: &address) { pointer in
      unsafe pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        unsafe body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
      }
    }
  }
}
