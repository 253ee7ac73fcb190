import Foundation
import Processing
import Testing
import Workers

/// A program that fences itself in like a worker tries what a hijacked decoder would.
struct WorkerFenceTests {
  private struct Outcome: Equatable {
    var output: String
    var signal: Int32?
  }

  /// A sanitizer's shadow memory counts as the program's own, so no memory limit can be used with it.
  private static let isSanitized = ProcessInfo.processInfo.environment["SANITIZER"] != nil
  private static let memoryBytes = isSanitized ? UInt64.max : 64 << 20

  /// The outcome of an action in a process that may use 64 MiB of memory, a second, a file of 1 MiB, a source, and a
  /// folder.
  private func outcome(of deed: String) throws -> Outcome {
    let place = NSTemporaryDirectory() + "stillwave-fenced-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: place + "/folder", withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(atPath: place) }
    try Data("sound".utf8).write(to: URL(fileURLWithPath: place + "/source"))
    let process = Process()
    process.executableURL = try Self.program()
    process.arguments = ["\(Self.memoryBytes)", "1", "\(1 << 20)", place + "/source", place + "/folder", deed]
    if Self.isSanitized {
      // At its end it looks for leaks, which requires starting and tracing a process.
      process.environment = ProcessInfo.processInfo.environment.merging(["ASAN_OPTIONS": "detect_leaks=0"]) { $1 }
    }
    let pipe = Pipe()
    process.standardOutput = pipe
    process.standardError = FileHandle.nullDevice
    try process.run()
    let output = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
    process.waitUntilExit()
    return Outcome(
      output: output.trimmingCharacters(in: .newlines),
      signal: process.terminationReason == .uncaughtSignal ? process.terminationStatus : nil)
  }

  private static func program() throws -> URL {
    let bundle = Bundle.allBundles.first { $0.bundlePath.hasSuffix(".xctest") }?.bundlePath ?? CommandLine.arguments[0]
    let url = URL(fileURLWithPath: bundle).deletingLastPathComponent().appendingPathComponent("Fenced")
    try #require(FileManager.default.isExecutableFile(atPath: url.path), "\(url.path) is not built")
    return url
  }

  /// How the worker is started: by itself, or as a copy of a process that has made the filter of system calls.
  private static let ways = ["", "copied-"]

  @Test(
    "a worker may do what it needs to",
    arguments: [
      "nothing", "read-limit", "signal-self", "read-source", "work-on-files", "allocate-some", "dump",
      "rights", "capabilities", "reading-read-source", "wait-for-child", "making-full-files",
    ], ways)
  func allowed(_ deed: String, _ way: String) throws {
    #expect(try outcome(of: way + deed) == Outcome(output: "0"))
  }

  @Test(
    "a worker reaches neither the network, nor other processes, nor more rights",
    arguments: [
      "early-thread", "socket", "socket6", "local-socket", "socket-pair", "connect", "send", "exec", "spawn", "fork",
      "old-fork", "trace", "signal-parent", "signal-all", "signal-parents-thread", "mount", "namespace", "root", "bpf",
      "io-uring", "shared-memory", "device", "become-root", "raise-memory", "raise-seconds", "lower-parents-limit",
      "signal-by-descriptor", "priority-of-parent", "namespace-thread", "outlive-parent", "type", "be-dumpable",
      "thread", "many-threads", "reading-thread", "own-priority", "rename", "open-to-others", "old-table", "cut-source",
      "map-shared", "map-shared-validated", "map-stack", "memory-file",
    ], ways)
  func refused(_ deed: String, _ way: String) throws {
    #expect(try outcome(of: way + deed) == Outcome(output: "\(EPERM)"))
  }

  @Test("every call that isn't listed is refused", arguments: ways)
  func calls(_ way: String) throws {
    #expect(try outcome(of: way + "calls") == Outcome(output: "0"))
    #expect(try outcome(of: way + "reading-calls") == Outcome(output: "0"))
  }

  @Test("a worker without a folder opens nothing for writing, with or without Landlock")
  func readsOnly() throws {
    #expect(try outcome(of: "reading-work-on-files") == Outcome(output: "\(EPERM)"))
    #expect(try outcome(of: "reading-core-pattern") == Outcome(output: "\(EPERM)"))
  }

  @Test(
    "a worker opens only its source and its folder's files, if the kernel supports that",
    arguments: [
      "write-source", "remove-source", "read-outside", "list-outside", "make-outside",
      "many-files", "full-files", "read-secrets", "parents-memory", "parents-environment", "parents-input", "passwords",
      "core-pattern",
    ])
  func otherFiles(_ deed: String) throws {
    guard FenceSupport.current.landlockVersion > 0 else { return print("Not tried: no Landlock here") }
    #expect(try outcome(of: deed) == Outcome(output: "\(EACCES)"))
  }

  @Test("a call whose flags no filter can see appears not to exist")
  func unseenFlags() throws {
    #expect(try outcome(of: "new-clone") == Outcome(output: "\(ENOSYS)"))
  }

  @Test(
    "memory beyond the limit is refused",
    .disabled(if: isSanitized, "no memory limit works with a sanitizer's shadow memory"))
  func refusedMemory() throws {
    #expect(try outcome(of: "allocate-much") == Outcome(output: "\(ENOMEM)"))
    #expect(try outcome(of: "map-private") == Outcome(output: "\(ENOMEM)"))
  }

  @Test("descriptors beyond the limit are refused")
  func refusedDescriptors() throws {
    #expect(try outcome(of: "open-many") == Outcome(output: "\(EMFILE)"))
  }

  @Test(
    "a process that runs out of memory reports it before it dies",
    .disabled(if: isSanitized, "no memory limit works with a sanitizer's shadow memory"))
  func lastWords() throws {
    let outcome = try outcome(of: "die-for-want-of-memory")
    #expect(outcome.output == #"{"told":"memory"}"#)
    #expect(outcome.signal == SIGABRT)
  }

  @Test(
    "a broken precondition isn't reported as a lack of memory, even if memory was refused before",
    .disabled(if: isSanitized, "no memory limit works with a sanitizer's shadow memory"))
  func trap() throws {
    let outcome = try outcome(of: "trap")
    #expect(outcome.output.isEmpty)
    #expect(outcome.signal == SIGILL || outcome.signal == SIGTRAP)
  }

  @Test("exceeding the limit of a file or of time ends the process by its signal")
  func signals() throws {
    #expect(try outcome(of: "write-much") == Outcome(output: "", signal: SIGXFSZ))
    #expect(try outcome(of: "spin") == Outcome(output: "", signal: SIGXCPU))
  }

  @Test("a fence is parsed from its own text", arguments: ["0,0,0", "1073741824,60,4096"])
  func word(_ text: String) {
    #expect(WorkerFence(text: text)?.text == text)
  }

  @Test("invalid fences are rejected", arguments: ["", "1,2", "1,2,3,4", "1,2,x", "-1,2,3", "1,,3"])
  func noWord(_ text: String) {
    #expect(WorkerFence(text: text) == nil)
  }
}
