import Foundation
import Terms
import Testing

@testable import Media

/// The workaround for a fault of ffmpeg depends on whether the installed version has it.
struct OpusLeadTests {
  private let folder = NSTemporaryDirectory() + "stillwave-lead-\(UUID().uuidString)"

  /// Measures the lead with `late` seconds added to the timestamps that ffmpeg writes.
  private func lead(late: Double) throws -> Double {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: folder) }
    let real = try #require(FFmpeg())
    // Simulates another version: the same program, made to delay its input.
    let script =
      "for word; do shift; [ \"$word\" = lavfi ] && set -- \"$@\" lavfi -itsoffset \(late) || "
      + "set -- \"$@\" \"$word\"; done\nexec \(real.path) \"$@\"\n"
    try ScriptedProgram.write(script, as: ["ffmpeg", "ffprobe"], in: folder)
    let ffmpeg = try #require(FFmpeg("\(folder)/ffmpeg"))
    return try MediaEncoding.opusLead("webm", tryingAt: "\(folder)/trial.webm", with: ffmpeg, in: .none)
  }

  @Test("a version that adds the codec's delay to the timestamps is left alone")
  func later() throws {
    let own = try lead(late: 0)
    #expect(own == 0 || own == 312.0 / 48_000)
    #expect(try lead(late: own) == 0)
  }
}
