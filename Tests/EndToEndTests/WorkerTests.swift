import Foundation
import Testing

@testable import Sounds

/// `stillwave worker`, which is given its request on standard input: see `WorkerRequest`.
struct WorkerTests {
  /// A request without a fence, as a line.
  static func request(_ work: String, on source: String, ffmpeg: String = "ffmpeg", rest: String = "") -> String {
    #"{"ffmpeg":"\#(ffmpeg)","limits":{"channels":32,"durationSeconds":86400,"sampleRates":[1,768000]},\#(rest)"#
      + #""source":"\#(source)","work":{"\#(work)":{}}}"# + "\n"
  }

  /// A worker whose standard input is the text, and ends there.
  static func run(_ text: String) throws -> Command.Finished {
    let folder = try TemporaryFolder()
    try write(Array(text.utf8), to: folder.file("request"))
    return try Command(
      "/bin/sh", ["-c", "exec \"$1\" worker < \"$2\"", "sh", try Program.path(), folder.file("request")]
    )
    .finish()
  }

  private let folder: TemporaryFolder
  private let source: String

  init() throws {
    folder = try TemporaryFolder()
    source = folder.file("in.wav")
    let sound = Sound.noisy(rate: 16_000, channels: 2, seconds: 2, voice: Sound.tone)
    try write(WAVFile(sound).bytes, to: source)
  }

  @Test func aWorkerDoesWhatItsRequestSays() throws {
    let finished = try Self.run(Self.request("probe", on: source))
    #expect(finished.status == 0 && finished.lines.count == 1)
    #expect(finished.lines.first?.hasPrefix(#"{"probe":{"file_extension":"wav","#) == true, "\(finished.lines)")
  }

  @Test(
    "a worker that is given no whole request says so and does nothing",
    arguments: [
      ("", "is cut off"), ("{\"work\":", "is cut off"), ("{}\n", "can't be read"),
      ("stillwave\n", "can't be read"), (String(repeating: "x", count: 1 << 20), "is longer than 65536 bytes"),
    ])
  func fault(text: String, what: String) throws {
    let finished = try Self.run(text)
    #expect(finished.status == 1)
    #expect(
      finished.lines
        == [#"{"error":{"code":"worker_failed","detail":"The worker's request \#(what).","retry":false}}"#])
  }
}
