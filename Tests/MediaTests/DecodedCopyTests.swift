import Foundation
import Terms
import Testing

@testable import Media

/// A file that a program writes while it is read. The programs stand in for ffmpeg and write to descriptor 4.
final class DecodedCopyTests {
  private let folder = FileManager.default.temporaryDirectory.appending(path: "copy-\(UUID().uuidString)").path
  private var path: String { "\(folder)/copy" }

  init() throws { try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false) }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  /// Starts to decode mono at 8 kHz with a program that runs `script`.
  private func decode(_ script: String, promising frames: Int64? = nil) throws -> MediaDecoding {
    try ScriptedProgram.write(script, as: ["ffmpeg", "ffprobe"], in: folder)
    let facts = MediaFacts(
      demuxer: .mov, container: .mp4, codec: "aac", sampleRate: 8000, channels: 1, promisedFrames: frames,
      promisesLength: frames != nil, endsAsPromised: frames != nil, audioTracks: 1)
    return try MediaDecoding(
      path: "/dev/null", facts: facts, into: .init(path: path, headBytes: 8),
      with: try #require(FFmpeg("\(folder)/ffmpeg")), in: .none)
  }

  private func readAll(_ decoding: MediaDecoding) throws -> [Float] {
    var all: [Float] = []
    while try decoding.read({ (samples: Span<Float>) throws(MediaError) in
      for index in samples.indices { all.append(samples[index]) }
    }) > 0 {}
    return all
  }

  private func bytes() throws -> [UInt8] { try Array(Data(contentsOf: URL(filePath: path))) }

  @Test("samples are read as the program writes them, and stay in the file behind its head", .timeLimit(.minutes(1)))
  func grows() throws {
    // The program goes on only when its first samples have been seen in the file.
    let script = "printf '\\0\\0\\200\\77' >&4; read -r <\(folder)/go; printf '\\0\\0\\0\\100' >&4\n"
    try #require(unsafe mkfifo("\(folder)/go", 0o600) == 0)
    let decoding = try decode(script)
    while (try? bytes())?.count != 12 { sched_yield() }
    try Data("\n".utf8).write(to: URL(filePath: "\(folder)/go"))
    #expect(try readAll(decoding) == [1, 2])
    try decoding.finish()
    let copy = try #require(decoding.copy)
    try copy.replace([0.5].span, at: 1)
    try copy.complete(Array("the head".utf8), count: 2)
    #expect(try bytes() == Array("the head".utf8) + [0, 0, 0x80, 0x3F, 0, 0, 0, 0x3F])
  }

  @Test("a program that writes more than the file promises is stopped, and the rest is cut off")
  func endless() throws {
    // One process, as ffmpeg is, whose standard output stays open.
    let decoding = try decode("exec head -c 1000000 /dev/zero 5>&1 >&4\n", promising: 100_000)
    #expect(try readAll(decoding) == [Float](repeating: 0, count: 100_000))
    try decoding.finish()
    try #require(decoding.copy).complete([UInt8](repeating: 7, count: 8), count: 100_000)
    #expect(try bytes() == [UInt8](repeating: 7, count: 8) + [UInt8](repeating: 0, count: 400_000))
  }

  @Test("an abandoned program is stopped at once")
  func abandoned() throws {
    var decoding: MediaDecoding? = try decode(
      "echo $$ >\(folder)/identifier; head -c 1000000 /dev/zero >&4; exec sleep 100000\n")
    #expect(try decoding?.read({ (_: Span<Float>) throws(MediaError) in }) ?? 0 > 0)
    decoding = nil
    let text = try String(contentsOfFile: "\(folder)/identifier", encoding: .utf8)
    let identifier = try #require(pid_t(text.dropLast()))
    #expect(kill(identifier, 0) == -1 && errno == ESRCH)
  }

  /// Prints the report of a program that is at its end, after it has tried to write this many bytes.
  private static func report(_ bytes: String) -> String { "printf 'total_size=\(bytes)\\nprogress=end\\n'; " }
  private static let diskFull = MediaError.system(operation: "write", errno: ENOSPC)

  @Test(
    "how a program ends says whether the sound is complete, and what is at fault",
    arguments: [
      ("exit 0", nil), (report("8000") + "exit 0", nil), (report("N/A") + "exit 0", nil),
      // The file's fault: most of it, or its end, can't be decoded.
      (report("8000") + "exit 69", nil), (report("8000") + "exit 183", nil),
      // The program gave up: what it has decoded counts.
      ("exit 1", nil), ("exit 69", nil), ("echo progress=continue; exit 228", nil), (report("8000") + "exit 251", nil),
      // A write failed, even if there is room now.
      (report("8000") + "exit 1", diskFull), (report("9000") + "exit 1", diskFull),
      (report("9000") + "exit 0", diskFull), (report("8000") + "exit 228", diskFull),
      (report("8000") + "exit 134", .system(operation: "write", errno: EDQUOT)),
      ("exit 244", .programFailed(.outOfMemory)), (report("8000") + "exit 244", .programFailed(.outOfMemory)),
      ("kill -KILL $$", .programFailed(.killed)), ("kill -SEGV $$", .programFailed(.crashed(signal: SIGSEGV))),
      ("kill -XCPU $$", .tooLong),
      // What a program reports before it crashes may still be in its buffer.
      ("echo total_size=40000; kill -SEGV $$", .programFailed(.crashed(signal: SIGSEGV))),
      ("echo total_size=40000; kill -XCPU $$", .tooLong),
      (report("40000") + "kill -KILL $$", .programFailed(.killed)),
    ] as [(String, MediaError?)])
  func fails(ending: String, failure: MediaError?) throws {
    let decoding = try decode("head -c 8000 /dev/zero >&4\n\(ending)\n")
    #expect(try readAll(decoding).count == 2000)
    do {
      try decoding.finish()
      #expect(failure == nil)
    } catch {
      #expect(error == failure)
    }
    #expect(try bytes().count == 8008)
    if failure == nil {
      try #require(decoding.copy).complete([UInt8](repeating: 0, count: 8), count: 2000)
      #expect(try bytes().count == 8008)
    }
  }

  @Test("nothing decoded is an error")
  func empty() throws {
    let decoding = try decode("exit 1\n")
    #expect(try readAll(decoding).isEmpty)
    #expect(throws: MediaError.undecodable(.mp4, codec: "aac")) { try decoding.finish() }
  }

  /// Starts ffmpeg, which writes a sine of 1 s with the words of `MediaDecoding`: 32,000 bytes.
  private func sine(into path: String) throws -> FencedRun {
    let words = [try #require(FFmpeg()).path] + FFmpeg.quietly + ["-f", "lavfi", "-i", "sine=d=1:r=8000"]
    return try FencedRun(
      words + ["-f", "f32le"] + MediaDecoding.copyWords, writing: path, startingAt: 8, in: .none)
  }

  @Test("ffmpeg reports as much as it writes", .enabled(if: FFmpeg() != nil))
  func reports() throws {
    let run = try sine(into: path)
    let copy = DecodedCopy(of: run, from: 8)
    while !run.closesOutput(within: 1000) {}
    #expect(try copy.end() == 0 && run.exitStatus == 0)
    #expect(try run.finallyReportedBytes == 32_000 && bytes().count == 32_008)
  }

  @Test("a disk that is full when ffmpeg writes is reported, also for a short file", .enabled(if: FFmpeg() != nil))
  func full() throws {
    let run = try sine(into: "/dev/full")
    let copy = DecodedCopy(of: run, from: 8)
    while !run.closesOutput(within: 1000) {}
    #expect(throws: Self.diskFull) { _ = try copy.end() }
  }

  @Test(
    "a program waits if its reports aren't read; however many there are, its end is noticed", .timeLimit(.minutes(1)))
  func ahead() throws {
    let decoding = try decode(
      """
      head -c 4096 /dev/zero
      dd if=/dev/zero of=/dev/stdout bs=1 count=1 oflag=nonblock 2>/dev/null && found=ahead || found=waits
      echo $found >\(folder)/found
      head -c 4000000 /dev/zero >&4
      head -c 60000 /dev/zero
      \(Self.report("4000000"))

      """)
    while (try? String(contentsOfFile: "\(folder)/found", encoding: .utf8))?.hasSuffix("\n") != true { sched_yield() }
    #expect(try String(contentsOfFile: "\(folder)/found", encoding: .utf8) == "waits\n")
    #expect(try readAll(decoding).count == 1_000_000)
    try decoding.finish()
  }

  @Test("a file that can't be read is an error")
  func unreadable() throws {
    // Nothing is mapped at such a small address.
    let run = try FencedRun(["/bin/bash", "-c", "exit 0"], writing: "/proc/self/mem", startingAt: 8, in: .none)
    let copy = DecodedCopy(of: run, from: 8)
    var numbers: [Float] = [0, 0]
    #expect(copy.read(into: &numbers) == 0)
    #expect(copy.read(into: &numbers) == 0)
    #expect(throws: MediaError.system(operation: "read", errno: EIO)) { _ = try copy.end() }
  }
}
