import Foundation
import Terms
import Testing

@testable import Media

/// How programs that stand in for ffmpeg end, and how that is interpreted.
struct FencedRunTests {
  private func run(_ script: String, in fencing: Fencing = .none) throws -> FencedRun {
    try FencedRun(["/bin/bash", "-c", script], in: fencing)
  }

  @Test("a program killed at its limit of processor time was too slow; one killed from outside was not")
  func limit() throws {
    let slow = try run(
      "trap '' XCPU; ulimit -St 1; ulimit -Ht 2; while :; do :; done", in: Fencing(processorSeconds: 1))
    #expect(slow.text(upTo: 10).isEmpty)
    #expect(slow.end() == SIGXCPU && slow.failure == nil)
    let killed = try run("kill -KILL $$", in: Fencing(processorSeconds: 1))
    #expect(killed.text(upTo: 10).isEmpty)
    #expect(killed.end() == SIGKILL && killed.failure == .killed)
  }

  @Test("a program that closes its output but keeps running is ended, which is not a failure")
  func stays() throws {
    let run = try run("echo told; exec >&- sleep 100000")
    #expect(run.text(upTo: 10) == Array("told\n".utf8))
    #expect(run.end() == SIGPIPE && run.failure == nil)
  }

  /// Decodes a quarter of a second with a program that ends with `script`.
  private func decode(endingBy script: String) throws -> MediaError? {
    let folder = FileManager.default.temporaryDirectory.appending(path: "ffmpeg-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    defer { try? FileManager.default.removeItem(at: folder) }
    let program = folder.appending(path: "ffmpeg")
    try ScriptedProgram.write("head -c 8000 /dev/zero\n\(script)\n", as: ["ffmpeg", "ffprobe"], in: folder.path)
    let facts = MediaFacts(
      demuxer: .mov, container: .mp4, codec: "aac", sampleRate: 8000, channels: 1, promisesLength: false,
      endsAsPromised: false, audioTracks: 1)
    let decoding = try MediaDecoding(
      path: "/dev/null", facts: facts, with: try #require(FFmpeg(program.path)), in: .none)
    while try decoding.read({ _ throws(MediaError) in }) > 0 {}
    #expect(decoding.position == 2000)
    do { try decoding.finish() } catch { return error }
    return nil
  }

  @Test("sound whose decoder failed before its end is not considered complete")
  func cut() throws {
    #expect(try decode(endingBy: "exit 0") == nil)
    #expect(try decode(endingBy: "exit 244") == .programFailed(.outOfMemory))
    #expect(try decode(endingBy: "kill -KILL $$") == .programFailed(.killed))
    #expect(try decode(endingBy: "kill -SEGV $$") == .programFailed(.crashed(signal: SIGSEGV)))
    #expect(try decode(endingBy: "exit 127") == .programFailed(.notStarted(status: 127)))
    #expect(try decode(endingBy: "kill -XCPU $$") == .tooLong)
  }
}
