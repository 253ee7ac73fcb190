import Foundation
import Testing

@testable import AudioService

/// A slow reader of the log blocks nothing.
@Suite struct LogWriterTests {
  @Test func linesComeInOrder() throws {
    let pipe = Pipe()
    let writer = LogWriter(descriptor: pipe.fileHandleForWriting.fileDescriptor)
    for number in 0..<100 { writer.write { Array("\(number)\n".utf8) } }
    writer.flush(within: 10)
    let text = String(decoding: pipe.fileHandleForReading.availableData, as: UTF8.self)
    #expect(text == (0..<100).map { "\($0)\n" }.joined())
  }

  @Test func aStalledReaderBlocksNothingAndLearnsWhatItMissed() throws {
    let pipe = Pipe()
    let writer = LogWriter(descriptor: pipe.fileHandleForWriting.fileDescriptor, limit: 100)
    let line = String(repeating: "x", count: 999) + "\n"
    // A pipe holds 64 KB, so the writer's thread blocks after about 65 lines.
    for _ in 0..<1000 { writer.write { Array(line.utf8) } }
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
    writer.write { [0x41] }
    writer.flush(within: 10)
  }
}
