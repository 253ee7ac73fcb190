import CLinux
import Dispatch
import Glibc

/// A connected, nonblocking TCP socket. Owns its descriptor. Confined to the queue of the loop that serves it.
@safe
final class Socket: @unchecked Sendable {
  private(set) var descriptor: Int32

  /// Takes ownership of a descriptor. Disables Nagle's algorithm: an answer is written whole, so Nagle could only hold
  /// its last packet back until the client's delayed acknowledgement, 40 ms later.
  init(adopting descriptor: Int32) {
    self.descriptor = descriptor
    var on: Int32 = 1
    _ = unsafe setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
  }

  deinit { close() }

  /// The outcome of a read or a write.
  enum Transfer: Equatable {
    case moved(Int)
    case wouldBlock
    /// The peer has shut down its half.
    case ended
    case failed
  }

  /// Reads into the start of `buffer`, whose size doesn't change.
  func receive(into buffer: inout [UInt8]) -> Transfer {
    while true {
      let count = unsafe buffer.withUnsafeMutableBytes { unsafe recv(descriptor, $0.baseAddress, $0.count, 0) }
      if count > 0 { return .moved(count) }
      if count == 0 { return .ended }
      if errno == EINTR { continue }
      return errno == EAGAIN ? .wouldBlock : .failed
    }
  }

  /// Appends at most `limit` bytes to `buffer`, in one read.
  func receive(atMost limit: Int, appendingTo buffer: inout [UInt8]) -> Transfer {
    while true {
      var (count, failure) = (0, Int32(0))
      buffer.append(addingCapacity: limit) { output in
        unsafe output.withUnsafeMutableBufferPointer { room, initializedCount in
          count = unsafe recv(descriptor, room.baseAddress, room.count, 0)
          failure = errno
          initializedCount = max(count, 0)
        }
      }
      if count > 0 { return .moved(count) }
      if count == 0 { return .ended }
      if failure == EINTR { continue }
      return failure == EAGAIN ? .wouldBlock : .failed
    }
  }

  /// Writes the rest of `first` and all of `second` in one call. `more`: a file follows immediately.
  func send(_ first: [UInt8], from offset: Int, _ second: [UInt8], more: Bool) -> Transfer {
    let flags = Int32(MSG_NOSIGNAL) | (more ? Int32(MSG_MORE) : 0)
    while true {
      let count = unsafe first.withUnsafeBytes { first in
        unsafe second.withUnsafeBytes { second in
          var vectors = unsafe (
            iovec(
              iov_base: .init(mutating: first.baseAddress.map { unsafe $0 + offset }), iov_len: first.count - offset),
            iovec(iov_base: .init(mutating: second.baseAddress), iov_len: second.count)
          )
          return unsafe withUnsafeMutablePointer(to: &vectors) { vectors in
            var message = unsafe msghdr()
            unsafe message.msg_iov = UnsafeMutableRawPointer(vectors).assumingMemoryBound(to: iovec.self)
            unsafe message.msg_iovlen = second.isEmpty ? 1 : 2
            return unsafe sendmsg(descriptor, &message, flags)
          }
        }
      }
      if count >= 0 { return .moved(count) }
      if errno == EINTR { continue }
      return errno == EAGAIN ? .wouldBlock : .failed
    }
  }

  /// Sends bytes of a file without copying them into the process. Returns `.ended` if the file ends before `offset`.
  func send(file descriptor: Int32, at offset: Int64, count: Int) -> Transfer {
    while true {
      var position = off_t(offset)
      let sent = unsafe sendfile(self.descriptor, descriptor, &position, count)
      if sent > 0 { return .moved(sent) }
      if sent == 0 { return .ended }
      if errno == EINTR { continue }
      return errno == EAGAIN ? .wouldBlock : .failed
    }
  }

  /// Shuts down our half: the client sees the end of the answer and can still send.
  func shutdownOutput() { shutdown(descriptor, Int32(SHUT_WR)) }

  /// Closes the descriptor; later calls do nothing.
  func close() {
    guard descriptor >= 0 else { return }
    Glibc.close(descriptor)
    descriptor = -1
  }

  /// Closes with a reset, so that a client can't take a truncated answer for a complete one.
  func abort() {
    guard descriptor >= 0 else { return }
    var option = linger(l_onoff: 1, l_linger: 0)
    _ = unsafe setsockopt(descriptor, SOL_SOCKET, SO_LINGER, &option, socklen_t(MemoryLayout<linger>.size))
    close()
  }
}

/// A listening socket shared by the loops, with a spare descriptor for when the process runs out.
@safe
final class ListeningSocket: @unchecked Sendable {
  let descriptor: Int32
  let address: SocketAddress
  /// The spare descriptor; -1 while it is closed. Only one thread accepts at a time. Otherwise another loop could
  /// accept a client on the descriptor that was freed to turn one away, and the spare would be lost.
  private var reserve: Int32
  /// Connections get only lower descriptors: files need some, and Dispatch ends a process in which it can't open
  /// /proc/<thread>/stat, which it does once a second.
  private let limit = ProcessLimits.descriptors - 16
  /// A queue instead of a Mutex: with no descriptors left, the thread sanitizer can't look up its symbols for Mutex.
  private let accepting = DispatchQueue(label: "http.accept")

  /// The outcome of an `accept`.
  enum Accepted {
    case connection(descriptor: Int32, peer: SocketAddress)
    case none
    /// The client was disconnected; no other can be accepted until a descriptor is free.
    case outOfDescriptors
    /// `refuse` was called: no more connections will come.
    case refused
  }

  /// Listens on the first address of `host`. Port 0 picks any free port.
  init(host: String, port: UInt16, backlog: Int32) throws(HTTPServerError) {
    var hints = unsafe addrinfo()
    unsafe hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV
    unsafe hints.ai_socktype = Int32(SOCK_STREAM.rawValue)
    var found: UnsafeMutablePointer<addrinfo>?
    guard unsafe getaddrinfo(host, String(port), &hints, &found) == 0, let first = unsafe found else {
      throw .unknownHost(host)
    }
    defer { unsafe freeaddrinfo(first) }
    descriptor = unsafe socket(
      first.pointee.ai_family, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue), 0)
    reserve = Self.openReserve()
    guard descriptor >= 0 else {
      address = SocketAddress(host: host, port: port)
      throw .cannotListen(host: host, port: port, errno: errno)
    }
    var on: Int32 = 1
    unsafe setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &on, socklen_t(MemoryLayout<Int32>.size))
    guard unsafe bind(descriptor, first.pointee.ai_addr, first.pointee.ai_addrlen) == 0,
      listen(descriptor, backlog) == 0
    else {
      let error = errno
      address = SocketAddress(host: host, port: port)
      throw .cannotListen(host: host, port: port, errno: error)
    }
    address = Self.boundAddress(descriptor)
  }

  private static func boundAddress(_ descriptor: Int32) -> SocketAddress {
    var storage = sockaddr_storage()
    var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
    _ = unsafe withUnsafeMutablePointer(to: &storage) {
      unsafe getsockname(
        descriptor,
        UnsafeMutableRawPointer($0).assumingMemoryBound(to: sockaddr.self), &length)
    }
    return SocketAddress(storage)
  }

  deinit {
    if descriptor >= 0 { close(descriptor) }
    if reserve >= 0 { close(reserve) }
  }

  private static func openReserve() -> Int32 { unsafe open("/dev/null", O_RDONLY | O_CLOEXEC) }

  /// Accepts one waiting connection.
  func accept() -> Accepted { accepting.sync { acceptAlone() } }

  private func acceptAlone() -> Accepted {
    while true {
      var storage = sockaddr_storage()
      var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
      let accepted = unsafe withUnsafeMutablePointer(to: &storage) {
        unsafe accept4(
          descriptor,
          UnsafeMutableRawPointer($0).assumingMemoryBound(to: sockaddr.self), &length,
          Int32(SOCK_NONBLOCK.rawValue | SOCK_CLOEXEC.rawValue))
      }
      if accepted >= limit {
        close(accepted)
        return .outOfDescriptors
      }
      if accepted >= 0 { return .connection(descriptor: accepted, peer: SocketAddress(storage)) }
      switch errno {
      case EINTR, ECONNABORTED, EPROTO: continue
      case EMFILE, ENFILE, ENOBUFS, ENOMEM:
        turnOneAway()
        return .outOfDescriptors
      case EINVAL: return .refused
      default: return .none
      }
    }
  }

  /// Completes no more connections from now on. Those in the queue can still be accepted; `refuse` would reset them.
  func pause() { _ = stillwave_drop_input(descriptor) }

  /// Accepts no connections from now on, even if loops still watch the socket. The last owner closes the descriptor.
  func refuse() { shutdown(descriptor, Int32(SHUT_RDWR)) }

  /// Closing the spare frees one descriptor, enough to accept the client and disconnect it instead of leaving it to
  /// wait for nothing. If another file takes the descriptor first, the client waits for the next attempt; the spare is
  /// reopened as soon as a descriptor is free.
  private func turnOneAway() {
    if reserve < 0 { reserve = Self.openReserve() }
    guard reserve >= 0 else { return }
    close(reserve)
    let accepted = accept4(descriptor, nil, nil, Int32(SOCK_CLOEXEC.rawValue))
    if accepted >= 0 { close(accepted) }
    reserve = Self.openReserve()
  }
}

/// An address and a port.
@safe
package struct SocketAddress: Sendable, Equatable, CustomStringConvertible {
  /// The numeric address: `127.0.0.1`, `::1`.
  package let host: String
  /// The port; if 0 was requested, the one that the kernel chose.
  package let port: UInt16

  /// `127.0.0.1:8080`, `[::1]:8080`.
  package var description: String { host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)" }

  init(host: String, port: UInt16) {
    (self.host, self.port) = (host, port)
  }

  init(_ storage: sockaddr_storage) {
    var storage = storage
    let isV6 = Int32(storage.ss_family) == AF_INET6
    (host, port) = unsafe withUnsafePointer(to: &storage) { pointer in
      let raw = unsafe UnsafeRawPointer(pointer)
      var text = [CChar](repeating: 0, count: Int(INET6_ADDRSTRLEN))
      // Both families have the port at byte 2; the address is at byte 4 (IPv4) or 8 (IPv6).
      let port = unsafe UInt16(bigEndian: raw.load(fromByteOffset: 2, as: UInt16.self))
      let address = unsafe raw + (isV6 ? 8 : 4)
      _ = unsafe inet_ntop(isV6 ? AF_INET6 : AF_INET, address, &text, socklen_t(text.count))
      let bytes = text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }
      return (String(decoding: bytes, as: UTF8.self), port)
    }
  }
}

/// Limits and signals of the process that a server depends on.
enum ProcessLimits {
  /// Maximum number of descriptors that the process may have open.
  static var descriptors: Int {
    var limit = rlimit()
    guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return 1024 }
    return Int(clamping: limit.rlim_cur)
  }

  /// Number of descriptors for what isn't a connection: files that a service keeps open, and its children's sockets.
  private static let otherDescriptors: rlim_t = 1280

  /// Raises the soft limit of descriptors (1,024 on many systems) to fit this many connections, each with a file to
  /// send, as far as the hard limit allows.
  static func raiseDescriptors(forConnections count: Int) {
    var limit = rlimit()
    guard unsafe getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
    let wanted = min(rlim_t(clamping: count) * 2 + otherDescriptors, limit.rlim_max)
    guard wanted > limit.rlim_cur else { return }
    limit.rlim_cur = wanted
    _ = unsafe setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
  }

  /// Number of cores that the process may use.
  static var processors: Int { max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN))) }

  /// Ignores SIGPIPE, because `sendfile` has no MSG_NOSIGNAL.
  static func ignoreBrokenPipes() { _ = signal(SIGPIPE, SIG_IGN) }
}
