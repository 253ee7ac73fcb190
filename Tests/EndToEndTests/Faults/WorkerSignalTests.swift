import Foundation
import Testing

@testable import Sounds

/// Workers must not end by a signal that nobody sent, however busy the machine is. Dispatch ended them when a thread of
/// its global queues got no processor for a second.
@Suite(.serialized) struct WorkerSignalTests {
  /// Surround sound: six channels of noise at 8 kHz, in groups that share the work of two threads.
  private static func surround(seconds: Int) -> WAVFile {
    var (noise, file) = (NoiseGenerator(seed: 7), WAVFile())
    (file.channels, file.rate) = (6, 8000)
    let second = (0..<(6 * 8000)).flatMap { _ in littleEndian(Int16(noise.next() * 1000)) }
    file.data = Array(repeatElement(second, count: seconds).joined())
    return file
  }

  private static let parameters =
    #""parameters":{"format":"same","method":"mmse_lsa","noise":{"end":3,"start":1},"output":"denoised","#
    + #""reduction":18,"sensitivity":1}"#

  @Test("a worker survives wake-ups that come more than a second late", .secondTier)
  func delayedWakeUps() throws {
    let name = "wake-ups of a worker's threads delayed by 1.3 s"
    guard let tracer = WriteOrderTests.tracer else {
      return FaultRecord.skip(name, "strace is missing or not permitted")
    }
    var record = FaultRecord(name)
    defer { record.write("strace") }
    record.attempt {
      let folder = try TemporaryFolder()
      let (source, work) = (folder.file("in.wav"), folder.file("work"))
      try write(Self.surround(seconds: 60).bytes, to: source)
      try FileManager.default.createDirectory(atPath: work, withIntermediateDirectories: false)
      let request =
        #"{"fence":{"memoryBytes":1073741824,"outputBytes":1073741824,"processorSeconds":600},"#
        + #""ffmpeg":"ffmpeg","folder":"\#(work)","threads":2,"#
        + #""limits":{"channels":32,"durationSeconds":86400,"sampleRates":[1,768000]},"source":"\#(source)","#
        + #""work":{"denoise":{"_0":{"findsNoiseRegions":true,"isDurable":false,"output":"\#(work)/out.wav","#
        + #""pyramid":"\#(work)/pyramid",\#(Self.parameters)}}}}"#
      try write(Array((request + "\n").utf8), to: folder.file("request"))
      // Standard input stays open until the worker has ended.
      let finished = try Command(
        "/bin/bash",
        [
          "-c", #"exec 8<>"$0"; cat "$1" >&8; shift; exec "$@" <&8"#, try Self.pipe(folder),
          folder.file("request"), tracer, "-f", "-o", folder.file("trace"), "-e", "trace=futex,openat,clone,clone3",
          "-e", "inject=futex:delay_exit=1300000:when=30+37", try Program.path(), "worker",
        ]
      ).finish()
      let trace = String(decoding: try contents(folder.file("trace")), as: UTF8.self)
      let lines = trace.split(separator: "\n")
      var losses: [String] = []
      if finished.lines.last?.hasPrefix(#"{"denoised""#) != true {
        losses.append("status \(finished.status): \(finished.lines.last ?? "") \(lines.suffix(1))")
      }
      if !trace.contains("(INJECTED") && !trace.contains("(DELAYED)") { losses.append("nothing was delayed") }
      losses += lines.filter { $0.contains("/stat\"") || $0.contains("killed by") }.map(String.init)
      return losses
    }
  }

  private static func pipe(_ folder: TemporaryFolder) throws -> String {
    let path = folder.file("pipe")
    guard unsafe mkfifo(path, 0o600) == 0 else { throw ToolFailure(description: "mkfifo: errno \(errno)") }
    return path
  }

  /// `FAULT_JOBS` and `FAULT_SECONDS`: the number of jobs and the recording's length.
  @Test("no job of a busy machine loses its worker")
  func busyMachine() throws {
    func setting(_ name: String, _ usual: Int) -> Int {
      ProcessInfo.processInfo.environment[name].flatMap { Int($0) } ?? usual
    }
    let (jobs, seconds) = (setting("FAULT_JOBS", 2), setting("FAULT_SECONDS", 20))
    var record = FaultRecord("denoise jobs of surround sound beside six busy loops")
    defer { record.write("\(seconds) s of six channels at 8 kHz") }
    let server = try TestServer()
    let source = try #require(try server.client.uploadReady(Self.surround(seconds: seconds).bytes)["id"].string)
    let loops = try (0..<6).map { _ in try Command("/bin/sh", ["-c", "while :; do :; done"]) }
    defer { for loop in loops { loop.signal(SIGKILL) } }
    for _ in 0..<jobs {
      record.attempt {
        let job = try #require(
          try server.client.denoise(source, #"{"noise":{"start":1,"end":3}}"#)["id"].string)
        let document = try server.client.follow(job, withinSeconds: 3600)
        let signals = try server.client.get("/metrics").text.split(separator: "\n")
          .filter { $0.hasPrefix("stillwave_worker_signals_total{") && !$0.hasSuffix(" 0") }
        let isFirst = document["attempts"] == .number(1) && document["state"] == .string("succeeded")
        return (isFirst ? [] : ["\(document)"]) + signals.map(String.init)
      }
    }
  }
}
