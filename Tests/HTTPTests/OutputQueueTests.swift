import Glibc
import Testing

@testable import HTTP

struct OutputQueueTests {
  /// Whatever a call takes, the rest stays queued.
  @Test(arguments: [1, 3000, 70_000, 1 << 20])
  func whatIsQueuedArrivesWholeAndInOrder(_ readAtOnce: Int) throws {
    var descriptors: [Int32] = [0, 0]
    try #require(
      unsafe socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_NONBLOCK.rawValue), 0, &descriptors) == 0)
    let socket = Socket(adopting: descriptors[0])
    defer { close(descriptors[1]) }
    let file = try TemporaryFile(bytes: bytes(5000, 7))
    var queue = OutputQueue()
    let pieces = [bytes(100, 1), bytes(readAtOnce == 1 ? 50 : 600_000, 2), bytes(10, 3)]
    for piece in pieces { queue.append(piece) }
    queue.append(ResponseBody.file(try FileContent(path: file.path)))
    queue.append(bytes(20, 4))
    let expected = pieces.flatMap { $0 } + bytes(5000, 7) + bytes(20, 4)
    #expect(queue.byteCount == expected.count - 5000)
    var received: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: readAtOnce)
    while received.count < expected.count {
      if !queue.isEmpty {
        switch queue.write(to: socket) {
        case .moved, .wouldBlock: break
        case .ended, .failed: Issue.record("the socket failed"); return
        }
      }
      let count = unsafe buffer.withUnsafeMutableBytes { unsafe recv(descriptors[1], $0.baseAddress, $0.count, 0) }
      if count > 0 { received += buffer[..<count] }
    }
    #expect(received == expected)
    #expect(queue.isEmpty && queue.byteCount == 0)
    queue.append(bytes(5, 5))
    #expect(queue.write(to: socket) == .moved(5) && queue.isEmpty)
  }

  private func bytes(_ count: Int, _ seed: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ seed &+ $0 >> 8) }
  }
}
