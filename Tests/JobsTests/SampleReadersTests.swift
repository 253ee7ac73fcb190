import AudioIO
import Foundation
import Processing
import Synchronization
import Terms
import Testing
import Waveform
import Workers

@testable import Jobs

/// The processes that read recordings on demand.
@Suite struct SampleReadersTests {
  private let folder = NSTemporaryDirectory() + "stillwave-readers-" + UUID().uuidString

  init() throws { try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false) }

  /// The program itself, beside the test bundle.
  private static let program: String = {
    let bundle = Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") }?.bundlePath ?? CommandLine.arguments[0]
    return URL(fileURLWithPath: bundle).deletingLastPathComponent().appendingPathComponent("stillwave").path
  }()

  /// A file of the end-to-end tests.
  private static func fixture(_ name: String, here: String = #filePath) -> String {
    URL(fileURLWithPath: here).deletingLastPathComponent().appendingPathComponent("../EndToEndTests/Fixtures/\(name)")
      .path
  }

  private let hand = ManualClock()
  static let client = Client(key: "a")
  private static let settings = WorkerSettings(
    program: program, ffmpeg: "ffmpeg", audioLimits: AudioLimits(), memoryBytes: 1 << 30)

  /// A reader that doesn't answer is looked at often.
  func readers(
    _ program: String = program, processorSeconds: Double = 1000, clockSeconds: Double = 60, idleSeconds: Double = 60,
    watch: WorkerWatch = .shared
  ) -> SampleReaders {
    var settings = Self.settings
    settings.program = program
    return SampleReaders(
      settings,
      .init(
        processorSeconds: processorSeconds, clockSeconds: clockSeconds, idleSeconds: idleSeconds, lookSeconds: 0.01,
        clock: hand.clock),
      watch: watch)
  }

  func script(_ text: String) throws -> String {
    let path = folder + "/\(UUID().uuidString)"
    let made = FileManager.default.createFile(
      atPath: path, contents: Data("#!/bin/sh\n\(text)\n".utf8), attributes: [.posixPermissions: 0o755])
    try #require(made)
    return path
  }

  /// The program, started with no limit of its stack.
  private func unlimited() throws -> String {
    try script("ulimit -s unlimited || :; exec \(Self.program) \"$@\"")
  }

  private static let samples = (0..<20_000).map { Int16(truncatingIfNeeded: $0 &* 7919) }

  /// A file of two channels with these samples.
  func sound(
    _ name: String = "sound.wav", _ container: AudioContainer = .wav, _ codec: AudioCodec = .pcmS16
  ) throws -> String {
    let format = AudioFormat(container: container, codec: codec, sampleRate: 8000, channels: 2)
    var writer = try AudioWriter(creating: folder + "/" + name, format: format, expectedFrames: 10_000)
    let floats = Self.samples.map { Float($0) / 32768 }
    var quantised: [Int16] = []
    try writer.write(floats.span, quantised: &quantised)
    try writer.finish(isDurable: false)
    return folder + "/" + name
  }

  static func window(
    _ query: WaveformQuery = WaveformQuery(start: 0.1, end: 0.2, resolution: .scale(3)), channels: Int = 2,
    frames: Int64 = 10_000
  ) throws -> WaveformWindow {
    try WaveformWindow(
      query,
      of: WaveformExtent(
        sampleRate: 8000, channels: channels, availableFrames: frames, totalFrames: frames, isComplete: true))
  }

  func pixels(
    _ window: WaveformWindow, of path: String, _ readers: SampleReaders, for client: Client = client
  ) throws -> WaveformSlice {
    try readers.read(path, for: client) { (reader) throws(ReaderFailure) in try reader.slice(window) }
  }

  private func pixels(_ window: WaveformWindow, of file: OpenFile, _ readers: SampleReaders) throws -> WaveformSlice {
    try readers.read(file, for: Self.client) { (reader) throws(ReaderFailure) in try reader.slice(window) }
  }

  @Test("a reader returns the pixels and the parts that the file has")
  func answers() throws {
    let (readers, path) = (readers(), try sound())
    for measures in [Measures.peak, [.peak, .rms, .average], .rms] {
      for bits in [SampleBits.eight, .sixteen] {
        for channels in [ChannelSelection.mix, .split, .channel(1)] {
          let window = try Self.window(
            WaveformQuery(
              start: 0.1, end: 0.2, resolution: .scale(3), channels: channels, measures: measures, bits: bits))
          let range = window.frameRange
          let part = Self.samples[Int(range.lowerBound) * 2..<Int(range.upperBound) * 2]
          let slice = try pixels(window, of: path, readers)
          #expect(slice == WaveformSlice(window, samples: Array(part).span))
        }
      }
    }
    let part: Range<Int64> = 100..<9000
    let whole = try readers.read(path, for: Self.client) { (reader) throws(ReaderFailure) in
      var bytes: [UInt8] = []
      while try bytes.count < reader.partLength(part) {
        bytes += try reader.part(part, from: Int64(bytes.count), limit: 1000)
      }
      return bytes
    }
    #expect(
      Array(whole.suffix(8900 * 4))
        == Self.samples[200..<18_000].flatMap { [UInt8($0 & 0xFF), UInt8(bitPattern: Int8($0 >> 8))] })
    #expect(
      try readers.read(path, for: Self.client) { (reader) throws(ReaderFailure) in
        try reader.part(part, from: 3000, limit: 10)
      }
        == Array(whole[3000..<3010]))
    #expect(readers.counts == (1, 1))
  }

  @Test("a reader serves one recording, is kept for a few seconds, and not used again after a minute")
  func kept() throws {
    let (readers, window) = (readers(), try Self.window())
    func read(_ path: String) throws { _ = try pixels(window, of: path, readers) }
    let (one, other) = (try sound(), try sound("other.wav"))
    try read(one)
    try read(other)
    try read(one)
    #expect(readers.counts == (2, 2))
    hand.advance(by: SampleReaders.idleSeconds - 1)
    try read(one)
    hand.advance(by: 2)
    #expect(readers.counts == (1, 2))
    try read(one)
    for _ in 0..<20 {
      hand.advance(by: SampleReaders.idleSeconds - 1)
      try read(one)
    }
    #expect(readers.counts == (1, 3))
    // A file that takes another's place is opened.
    try FileManager.default.removeItem(atPath: one)
    #expect(throws: ReaderFailure.unopened(ENOENT)) { try read(one) }
    _ = try sound()
    try read(one)
    #expect(readers.counts == (2, 4))
    readers.closeAll()
    #expect(readers.counts == (0, 4))
  }

  @Test("an open file is read although it was deleted, by the same reader or another one")
  func deleted() throws {
    let (readers, path, window) = (readers(), try sound(), try Self.window())
    let file = try OpenFile(path: path)
    let slice = try pixels(window, of: file, readers)
    try FileManager.default.removeItem(atPath: path)
    for started in [1, 2] {
      #expect(try pixels(window, of: file, readers) == slice)
      #expect(readers.counts == (1, started))
      readers.closeAll()
    }
    #expect(throws: ReaderFailure.unopened(ENOENT)) {
      try pixels(window, of: path, readers)
    }
  }

  @Test("there are never more readers than the limit: those that aren't used make room, and the others refuse")
  func limited() throws {
    let (readers, window) = (readers(), try Self.window())
    let paths = try (0...SampleReaders.limit).map { try sound("\($0).wav") }
    for path in paths {
      _ = try pixels(window, of: path, readers)
      #expect(readers.counts.running <= SampleReaders.limit)
    }
    func nest(_ depth: Int) throws(ReaderFailure) {
      try readers.read(paths[0], for: Self.client) { (_) throws(ReaderFailure) in
        #expect(readers.counts.running <= SampleReaders.limit)
        try nest(depth + 1)
      }
    }
    #expect(throws: ReaderFailure.slow) { try nest(0) }
  }

  @Test("the client with the most readers loses its own to others, the one that was used longest ago")
  func fairness() throws {
    let (readers, window) = (readers(), try Self.window())
    func read(_ path: String, for client: String) throws -> Bool {
      let before = readers.counts.started
      _ = try pixels(window, of: path, readers, for: Client(key: client))
      return readers.counts.started > before
    }
    let (mine, others) = (try sound(), try (0..<20).map { try sound("\($0).wav") })
    #expect(try read(mine, for: "a"))
    for path in others { #expect(try read(path, for: "b")) }
    #expect(readers.counts.running == SampleReaders.limit)
    for path in [mine] + others.suffix(7) { #expect(try !read(path, for: path == mine ? "a" : "b"), "\(path)") }
    // A third one's takes the place of the second's oldest.
    #expect(try read(others[0], for: "c") && !read(mine, for: "a") && read(others[13], for: "b"))
  }

  // MARK: Work

  /// The result of work, as a reader and as this process does it, with the bytes of the file that it writes.
  private func result(
    _ readers: SampleReaders?, _ work: WorkerRequest.Work, on path: String, _ name: String
  ) throws -> (WorkerReport, Data?) {
    var request = WorkerRequest(work, on: path)
    if readers != nil { request.fence = WorkerFence(memoryBytes: 1 << 30, processorSeconds: 240, outputBytes: 1 << 26) }
    let report =
      try readers?.report(of: request, for: Self.client, ReaderCall()) ?? request.begin()({ _ in })
    return (report, try request.readerFiles.map { try Data(contentsOf: URL(fileURLWithPath: $0.output)) })
  }

  @Test(
    "previews, spectra and noise profiles are the same from a reader, which is used for all of them")
  func work() throws {
    let (readers, path) = (readers(), try sound())
    var parameters = DenoiseParameters(noise: .region(.init(start: 0.1, end: 0.6)), format: .wav)
    let target = folder + "/target", profile = folder + "/profile"
    let works: [(String, () -> WorkerRequest.Work)] = [
      ("profile", { .noiseProfile(NoiseProfileWork(nil, name: nil, output: target)) }),
      ("spectrum", { .spectrum(TimeWindow(start: 0.2, end: 1)) }),
      (
        "preview",
        {
          .denoise(
            DenoiseWork(parameters, output: target, window: TimeWindow(start: 0.3, end: 0.9), isDurable: false))
        }
      ),
      (
        "preview with a profile",
        {
          parameters.noise = .profile("p")
          var work = DenoiseWork(
            parameters, output: target, window: TimeWindow(start: 0.3, end: 0.4), isDurable: false)
          work.profilePath = profile
          return .denoise(work)
        }
      ),
    ]
    for (name, work) in works {
      let (expected, bytes) = try result(nil, work(), on: path, name)
      try? FileManager.default.removeItem(atPath: target)
      let found = try result(readers, work(), on: path, name)
      #expect(found == (expected, bytes), "\(name)")
      if name == "profile" { try bytes?.write(to: URL(fileURLWithPath: profile)) }
    }
    #expect(readers.counts == (1, 1))
    // What is wrong with a request doesn't harm the reader.
    #expect(throws: ReaderFailure.self) {
      try result(readers, .spectrum(TimeWindow(start: 70, end: 80)), on: path, "outside")
    }
    #expect(readers.counts == (1, 1))
  }

  @Test("work and samples have readers of their own, because their limits differ")
  func narrow() throws {
    let (readers, path, window) = (readers(), try sound(), try Self.window())
    for started in [1, 2] {
      _ = try pixels(window, of: path, readers)
      _ = try result(readers, .spectrum(TimeWindow(start: 0.2, end: 1)), on: path, "spectrum")
      #expect(readers.counts == (2, 2), "\(started)")
    }
  }

  @Test("work that nobody waits for ends with its reader")
  func unwanted() throws {
    let (path, call) = (try sound(), ReaderCall())
    let begun = folder + "/begun"
    let readers = readers(try script("read -r opening; read -r line; echo > '\(begun)'; exec cat > /dev/null"))
    let request = WorkerRequest(.spectrum(TimeWindow(start: 0.2, end: 1)), on: path)
    #expect(unsafe mkfifo(begun, 0o600) == 0)
    Thread.detachNewThread {
      // Blocks until the script opens it.
      _ = FileHandle(forReadingAtPath: begun)
      call.cancel()
    }
    let died = #expect(throws: ReaderFailure.self) {
      try readers.report(of: request, for: Self.client, call)
    }
    #expect(died == .died("it ended without an answer"))
    #expect(readers.counts == (0, 1))
    #expect(throws: ReaderFailure.died("nobody waits for it any more")) {
      try readers.report(of: request, for: Self.client, call)
    }
  }

  @Test("a reader that ended while nobody used it is replaced")
  func ended() throws {
    let (readers, path, window) = (readers(), try sound(), try Self.window())
    for started in [1, 2] {
      try readers.read(path, for: Self.client) { (reader) throws(ReaderFailure) in
        _ = try reader.slice(window)
        reader.end()
      }
      #expect(readers.counts == (1, started))
    }
  }

  @Test("a reader that dies, is slow, or answers nonsense fails its own caller, and the next one gets another reader")
  func faults() throws {
    let (path, window) = (try sound(), try Self.window())
    let died = ReaderFailure.died("it ended without an answer")
    let nonsense = ReaderFailure.died("its answer made no sense")
    let count = WaveformSlice.byteCount(of: window)
    let size = [count & 255, count >> 8].map { "\\" + String($0, radix: 8) }.joined()
    let cases: [(name: String, script: String, failure: ReaderFailure)] = [
      ("dies at once", "exit 0", died), ("is killed", "kill -9 $$", died),
      ("never answers", "exec cat > /dev/null", .slow), ("goes on forever", "while :; do :; done", .slow),
      ("is stopped", "kill -STOP $$", .slow),
      ("answers in part", "printf '\\001\\020\\000'", died),
      ("claims too much", "printf '\\001\\377\\377\\377\\177'", nonsense),
      ("answers too little", "printf '\\001\\002\\000\\000\\000ab'", nonsense),
      (
        "a minimum over its maximum",
        "printf '\\001\(size)\\000\\000'; yes zzaa | tr -d '\\n' | head -c \(count)",
        nonsense
      ),
      (
        "fails", #"printf '{"error":{"code":"seek_failed","detail":"No.","retry":false}}\n'; exec cat > /dev/null"#,
        .refused(WorkerFailure(code: "seek_failed", detail: "No.", retry: false))
      ),
      ("another report", #"printf '{"ffmpeg_works":true}\n'"#, nonsense),
      ("a line without end", "yes | tr -d '\\n' | head -c 100000", nonsense),
      ("can't be run", "", .died("it could not be started (errno 2)")),
    ]
    for (name, text, failure) in cases {
      let program = text.isEmpty ? "/nowhere" : try script(text)
      let readers =
        switch name {
        case "goes on forever": readers(program, processorSeconds: 0.02)
        case "is stopped": readers(program, idleSeconds: -1)
        default: readers(program, clockSeconds: failure == .slow ? -1 : 60)
        }
      for attempt in 1...(name == "fails" ? 1 : 2) {
        #expect(throws: failure, "\(name)") {
          try pixels(window, of: path, readers)
        }
        #expect(readers.counts == (name == "fails" ? 1 : 0, attempt), "\(name)")
      }
    }
  }

  @Test("a crash of a reader is counted, unless the service has ended it or it has said that its memory ran out")
  func crashes() throws {
    let (path, window) = (try sound(), try Self.window())
    let outOfMemory = #"printf '{"error":{"code":"memory_limit","detail":"No.","retry":true}}\n'"#
    for (text, expected) in [("exit 0", []), (outOfMemory, [SIGKILL, SIGSEGV, SIGBUS, SIGABRT])] {
      let readers = readers(try script(text))
      #expect(throws: ReaderFailure.self) {
        try readers.read(path, for: Self.client) { (reader) throws(ReaderFailure) in
          defer { #expect(reader.expectedSignals == Set(expected), "\(text)") }
          _ = try reader.slice(window)
        }
      }
    }
    let silent = readers(try script("exec cat > /dev/null"))
    let ended: Set<Int32> = try silent.read(path, for: Self.client) { (reader) throws(ReaderFailure) in
      reader.end()
      return reader.expectedSignals
    }
    #expect(ended == [SIGKILL])
  }

  @Test("a reader that starts more threads than it may is ended, and its request says why")
  func excess() throws {
    let watch = WorkerWatch(everySeconds: nil)
    let program = try script("for i in $(seq \(WorkerAllowance.threads)); do sleep 1000 & done; wait")
    let readers = readers(program, watch: watch)
    let (path, window) = (try sound(), try Self.window())
    let failure = Mutex<ReaderFailure?>(nil)
    Thread.detachNewThread {
      do throws(ReaderFailure) {
        _ = try readers.read(path, for: Self.client) { (reader) throws(ReaderFailure) in try reader.slice(window) }
      } catch {
        failure.withLock { $0 = error }
      }
    }
    while failure.withLock({ $0 == nil }) { watch.look() }
    guard case .died(let reason) = failure.withLock({ $0 }) else { throw try #require(failure.withLock { $0 }) }
    #expect(reason.contains("threads"))
  }

  @Test("a file that makes its decoder take all memory or stack harms nothing but its reader")
  func bombs() throws {
    let window = try Self.window(WaveformQuery(start: 0, end: 0.1, resolution: .scale(1)), channels: 1, frames: 24_000)
    for (name, program, codes) in [
      ("memory", Self.program, ["memory_limit"]), ("stack", try unlimited(), ["memory_limit", nil]),
    ] {
      let readers = readers(program)
      let outcome = Result { () throws(ReaderFailure) in
        try readers.read(Self.fixture("vorbis-\(name).ogg"), for: Self.client) { (reader) throws(ReaderFailure) in
          try reader.slice(window)
        }
      }
      switch outcome {
      // A decoder may have room for it.
      case .success(let slice): #expect(name == "stack" && slice.length == window.pixelCount)
      case .failure(.refused(let failure)): #expect(codes.contains(failure.code), "\(name): \(failure)")
      case .failure(.died): #expect(codes.contains(nil), "\(name)")
      case .failure(let failure): Issue.record(failure, "\(name)")
      }
      if case .success = outcome { continue }
      #expect(readers.counts == (0, 1), "\(name)")
    }
  }

  @Test("a reader can open nothing but its recording, by no name, and write nothing, and its stack is limited")
  func fenced() throws {
    // As the service does at its start; this process's parent may have left others open.
    OwnProcess.keepDescriptors()
    // What it has open when it answers.
    let (readers, path, window) = (readers(try unlimited()), try sound(), try Self.window())
    try readers.read(path, for: Self.client) { (reader) throws(ReaderFailure) in
      _ = try reader.slice(window)
      let limits = (try? String(contentsOfFile: "/proc/\(reader.identifier)/limits", encoding: .utf8)) ?? ""
      #expect(limits.contains("Max stack size") && !limits.contains(/Max stack size.*unlimited/))
      let open = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(reader.identifier)/fd")) ?? []
      let places = open.compactMap {
        try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(reader.identifier)/fd/\($0)")
      }
      let others = places.filter { $0 != path && $0 != "/dev/null" && !$0.hasPrefix("socket:") }
      #expect(others.isEmpty)
      let status = (try? String(contentsOfFile: "/proc/\(reader.identifier)/status", encoding: .utf8)) ?? ""
      #expect(status.contains("Seccomp:\t2") && status.contains("NoNewPrivs:\t1"))
    }
  }
}
