import Foundation
import Synchronization
import Testing

@testable import AudioService

/// A slow reader of the log blocks nothing.
@Suite struct LogWriterTests {
  @Test func linesComeInOrder() throws {
    let pipe = Pipe()
    let writer = LogWriter(descriptor: pipe.fileHandleForWriting.fileDescriptor)
    for number in 0..<100 { writer.write(Array("\(number)\n".utf8)) }
    writer.flush(within: 10)
    let text = String(decoding: pipe.fileHandleForReading.availableData, as: UTF8.self)
    #expect(text == (0..<100).map { "\($0)\n" }.joined())
  }

  @Test func aStalledReaderBlocksNothingAndLearnsWhatItMissed() throws {
    let pipe = Pipe()
    let writer = LogWriter(descriptor: pipe.fileHandleForWriting.fileDescriptor, limit: 100_000)
    let line = String(repeating: "x", count: 999) + "\n"
    // A pipe holds 64 KB, so the writer's thread blocks after about 65 lines.
    for _ in 0..<1000 { writer.write(Array(line.utf8)) }
    writer.flush(within: 0.01)
    let ended = DispatchSemaphore(value: 0)
    DispatchQueue.global().async {
      var text = ""
      while !text.contains("dropped") {
        text += String(decoding: pipe.fileHandleForReading.availableData, as: UTF8.self)
      }
      ended.signal()
    }
    #expect(ended.wait(timeout: .now() + 60) == .success)
    writer.flush(within: 10)
  }

  @Test func aClosedDescriptorDiscardsLines() throws {
    let writer = LogWriter(descriptor: -1)
    writer.write([0x41])
    writer.flush(within: 10)
  }

  /// A socket whose reader gets what was written at once as one message.
  private struct Messages {
    let reading, writing: Int32

    init() throws {
      var pair: [Int32] = [0, 0]
      try #require(unsafe socketpair(AF_UNIX, Int32(SOCK_SEQPACKET.rawValue), 0, &pair) == 0)
      (reading, writing) = (pair[0], pair[1])
    }

    func next() -> String {
      var bytes = [UInt8](repeating: 0, count: 200_000)
      let count = unsafe bytes.withUnsafeMutableBytes { unsafe recv(reading, $0.baseAddress, $0.count, 0) }
      return String(decoding: bytes.prefix(max(count, 0)), as: UTF8.self)
    }

    func close() { for descriptor in [reading, writing] { _ = Glibc.close(descriptor) } }
  }

  @Test func linesAreWrittenTogetherAtTheEnd() throws {
    let messages = try Messages()
    defer { messages.close() }
    let writer = LogWriter(descriptor: messages.writing, pauseSeconds: 1000)
    for number in 0..<100 { writer.write(Array("\(number)\n".utf8)) }
    writer.flush(within: 60)
    #expect(messages.next() == (0..<100).map { "\($0)\n" }.joined())
  }

  @Test func aLineThatCannotWaitTakesTheOthersAlong() throws {
    let messages = try Messages()
    defer { messages.close() }
    let writer = LogWriter(descriptor: messages.writing, pauseSeconds: 1000)
    for _ in 0..<3 {
      writer.write(Array("a\n".utf8))
      writer.write(Array("b\n".utf8), isUrgent: true)
      #expect(messages.next() == "a\nb\n")
    }
  }

  @Test func manyLinesAreWrittenBeforeThePauseIsOver() throws {
    let messages = try Messages()
    defer { messages.close() }
    let writer = LogWriter(descriptor: messages.writing, pauseSeconds: 1000)
    let line = [UInt8](repeating: 0x41, count: 1023) + [0x0A]
    for _ in 0..<64 { writer.write(line) }
    #expect(messages.next().utf8.count == 64 * 1024)
  }

  @Test func aLoneLineIsWrittenAfterThePause() throws {
    let messages = try Messages()
    defer { messages.close() }
    let waiting = Mutex(0)
    let writer = LogWriter(descriptor: messages.writing) { begins in waiting.withLock { $0 += begins ? 1 : -1 } }
    writer.write([0x41])
    #expect(messages.next() == "A")
    writer.flush(within: 60)
    #expect(waiting.withLock { $0 } >= 0)
  }
}
