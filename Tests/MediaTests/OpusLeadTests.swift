import Foundation
import Testing

@testable import Media

/// What is done about a fault of ffmpeg's depends on whether this one has it.
struct OpusLeadTests {
  private let folder = NSTemporaryDirectory() + "stillwave-lead-\(UUID().uuidString)"

  /// The lead as measured, with that much put onto the times of what is written.
  private func lead(late: Double) throws -> Double {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let real = try #require(FFmpeg())
    // Stands for another version: the same program, told to have its input later.
    let script =
      "for word; do shift; [ \"$word\" = lavfi ] && set -- \"$@\" lavfi -itsoffset \(late) || "
      + "set -- \"$@\" \"$word\"; done\nexec \(real.path) \"$@\"\n"
    try ScriptedProgram.write(script, as: ["ffmpeg", "ffprobe"], in: folder)
    let ffmpeg = try #require(FFmpeg("\(folder)/ffmpeg"))
    return try MediaEncoding.opusLead("webm", tryingAt: "\(folder)/trial.webm", with: ffmpeg, in: .none)
  }

  @Test("one that puts the codec's delay onto the times is left alone")
  func later() throws {
    let own = try lead(late: 0)
    #expect(own == 0 || own == 312.0 / 48_000)
    #expect(try lead(late: own) == 0)
  }
}
