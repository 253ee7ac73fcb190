/// The bytes and files that a connection still has to write, in order.
struct OutputQueue {
  private enum Segment {
    case bytes([UInt8])
    case file(FileContent)

    var length: Int64 {
      switch self {
      case .bytes(let bytes): Int64(bytes.count)
      case .file(let file): file.length
      }
    }
  }

  private var segments: [Segment] = []
  private var first = 0
  private var offset: Int64 = 0
  /// Bytes waiting in memory, not counting those of files.
  private(set) var byteCount = 0

  var isEmpty: Bool { first == segments.count }

  /// Adds bytes. Small pieces are joined, so that a stream of tiny pieces can't make a long queue.
  mutating func append(_ bytes: [UInt8]) {
    guard !bytes.isEmpty else { return }
    byteCount += bytes.count
    if segments.count > first + 1, case .bytes(var last) = segments[segments.count - 1], last.count < 4096 {
      segments[segments.count - 1] = .bytes([])
      last.append(contentsOf: bytes)
      segments[segments.count - 1] = .bytes(last)
    } else {
      segments.append(.bytes(bytes))
    }
  }

  /// Adds content that isn't a stream.
  mutating func append(_ body: ResponseBody) {
    switch body {
    case .bytes(let bytes): append(bytes)
    case .file(let file): if file.length > 0 { segments.append(.file(file)) }
    case .sequence(let bodies): for body in bodies { append(body) }
    case .empty, .stream: break
    }
  }

  mutating func removeAll() { self = OutputQueue() }

  /// Removes all segments after everything was sent, and keeps their room for the next answer.
  private mutating func becomeEmpty() {
    segments.removeAll(keepingCapacity: true)
    (first, offset, byteCount) = (0, 0, 0)
  }

  /// Writes as much as one system call takes.
  mutating func write(to socket: Socket) -> Socket.Transfer {
    let result: Socket.Transfer
    var includesAll = false
    switch segments[first] {
    case .bytes(let bytes):
      var second: [UInt8] = []
      var more = false
      if first + 1 < segments.count {
        if case .bytes(let next) = segments[first + 1] { second = next } else { more = true }
      }
      includesAll = !more && first + 2 >= segments.count
      result = socket.send(bytes, from: Int(offset), second, more: more)
    case .file(let file):
      // Half a megabyte per call, so that one fast client doesn't hold up the loop.
      result = socket.send(
        file: file.descriptor, at: file.offset + offset, count: Int(min(file.length - offset, 512 * 1024)))
    }
    if case .moved(let count) = result {
      if includesAll, count == byteCount { becomeEmpty() } else { advance(by: Int64(count)) }
    }
    return result
  }

  private mutating func advance(by count: Int64) {
    var rest = count
    while rest > 0 {
      let segment = segments[first]
      let taken = min(rest, segment.length - offset)
      if case .bytes = segment { byteCount -= Int(taken) }
      rest -= taken
      offset += taken
      if offset == segment.length {
        segments[first] = .bytes([])
        first += 1
        offset = 0
      }
    }
    if isEmpty {
      becomeEmpty()
    } else if first >= 64 {
      segments.removeFirst(first)
      first = 0
    }
  }
}
