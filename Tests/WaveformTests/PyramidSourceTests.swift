import Foundation
import Synchronization
import Testing

@testable import Waveform

/// A pyramid in memory, as one in a store on another machine.
private final class DistantPyramid: PyramidSource {
  enum Fault: Error { case away }

  private let bytes: Mutex<Data>
  private let asked = Mutex((fetched: Set<Int64>(), read: Set<Int64>()))
  let isAway = Mutex(false)
  /// The pages that can be read without waiting.
  let near = Mutex<Set<Int64>>([])

  init(_ recording: Recording) throws {
    bytes = Mutex(
      try withTemporaryPath { path in
        var writer = try PyramidWriter(creating: path, sampleRate: recording.sampleRate, channels: recording.channels)
        try writer.append(recording.samples.span)
        try writer.finish()
        return try Data(contentsOf: URL(filePath: path))
      })
  }

  /// The pages that were fetched and read since the last call.
  func takeAsked() -> (fetched: Set<Int64>, read: Set<Int64>) {
    asked.withLock { asked in
      defer { asked = ([], []) }
      return asked
    }
  }

  func change(_ body: (inout Data) -> Void) { bytes.withLock { body(&$0) } }

  var isApart: Bool { true }

  func check(pages count: Int64) {}

  func isAtHand(_ runs: [Range<Int64>]) -> Bool { near.withLock { $0.isSuperset(of: runs.joined()) } }

  func fetch(_ runs: [Range<Int64>]) throws(WaveformError) {
    if isAway.withLock({ $0 }) { throw .unavailable(PagesUnavailable(Fault.away)) }
    asked.withLock { $0.fetched.formUnion(runs.joined()) }
  }

  func read(_ runs: [Range<Int64>], waiting: Bool) throws(WaveformError) -> [[UInt64]] {
    guard waiting else { throw .io(operation: "read", path: "memory", errno: EAGAIN) }
    if isAway.withLock({ $0 }) { throw .unavailable(PagesUnavailable(Fault.away)) }
    asked.withLock { $0.read.formUnion(runs.joined()) }
    return try runs.map { (run) throws(WaveformError) in
      let bytes = bytes.withLock { $0.dropFirst(Int(run.lowerBound) * 4096).prefix(run.count * 4096) }
      guard bytes.count == run.count * 4096 else {
        throw .truncatedPyramid(size: run.lowerBound * 4096 + Int64(bytes.count), needed: run.upperBound * 4096)
      }
      return unsafe bytes.withUnsafeBytes { bytes in
        (0..<bytes.count / 8).map { unsafe bytes.loadUnaligned(fromByteOffset: 8 * $0, as: UInt64.self) }
      }
    }
  }
}

struct PyramidSourceTests {
  private static let recording = Recording.random(frames: 40 * 65_536 + 999, channels: 2, seed: 7)

  private func window(_ query: WaveformQuery) throws -> WaveformWindow {
    try WaveformWindow(query, of: Self.recording.extent)
  }

  @Test("what a window shows is fetched, all of it and nothing else, and then not again")
  func fetching() throws {
    let source = try DistantPyramid(Self.recording)
    for query in [
      WaveformQuery(start: 20, end: 40, resolution: .width(300)), WaveformQuery(resolution: .width(17)),
      WaveformQuery(resolution: .scale(70_000), channels: .split),
      WaveformQuery(start: 100, end: 130, resolution: .scale(256), measures: [.peak, .rms]),
      WaveformQuery(resolution: .scale(1 << 20)),
    ] {
      let window = try window(query)
      let pyramid = try PyramidFile(source, cache: PageCache(limit: 1 << 30))
      #expect(source.takeAsked() == ([], [0]))
      try pyramid.fetch(window)
      let fetched = source.takeAsked()
      #expect(fetched.read == [] && fetched.fetched.count > 0)
      #expect(difference(try pyramid.slice(window), from: Self.recording) == nil)
      #expect(source.takeAsked() == ([], fetched.fetched), "\(query)")
      try pyramid.fetch(window)
      #expect(try pyramid.slice(window, waiting: false) == pyramid.slice(window))
      #expect(source.takeAsked() == ([], []))
    }
  }

  @Test("a window is at hand if each of its pages is near or in memory")
  func atHand() throws {
    let source = try DistantPyramid(Self.recording)
    let pyramid = try PyramidFile(source, cache: PageCache(limit: 1 << 30))
    let window = try window(WaveformQuery(start: 20, end: 40, resolution: .width(300)))
    #expect(try !pyramid.isAtHand(window))
    _ = source.takeAsked()
    try pyramid.fetch(window)
    let pages = source.takeAsked().fetched
    source.near.withLock { $0 = Set(pages.dropFirst()) }
    #expect(try !pyramid.isAtHand(window))
    source.near.withLock { $0 = pages }
    #expect(try pyramid.isAtHand(window))
    #expect(source.takeAsked() == ([], []), "nothing was fetched for that")
    _ = try pyramid.slice(window)
    source.near.withLock { $0 = [] }
    #expect(try pyramid.isAtHand(window), "its pages are in memory")
  }

  @Test("a short window of a long recording needs few pages")
  func shortWindow() throws {
    let source = try DistantPyramid(Self.recording)
    let pyramid = try PyramidFile(source, cache: PageCache(limit: 1 << 30))
    _ = source.takeAsked()
    // 16 seconds are two blocks, so they are in at most three.
    try pyramid.fetch(window(WaveformQuery(start: 100, end: 116, resolution: .width(400))))
    #expect(source.takeAsked().fetched.count <= 3)
  }

  @Test("a source that is away says so, and what it has isn't taken for damaged")
  func unavailable() throws {
    let source = try DistantPyramid(Self.recording)
    let away = WaveformError.unavailable(PagesUnavailable(DistantPyramid.Fault.away))
    let cache = PageCache(limit: 1 << 30)
    source.isAway.withLock { $0 = true }
    #expect(throws: away) { try PyramidFile(source, cache: cache) }
    source.isAway.withLock { $0 = false }
    let pyramid = try PyramidFile(source, cache: cache)
    let window = try window(WaveformQuery(resolution: .width(100)))
    source.isAway.withLock { $0 = true }
    #expect(!away.isDamage)
    #expect(throws: away) { try pyramid.fetch(window) }
    #expect(throws: away) { _ = try pyramid.slice(window) }
    source.isAway.withLock { $0 = false }
    #expect(difference(try pyramid.slice(window), from: Self.recording) == nil)
  }

  @Test("bytes that were damaged on the way or are missing aren't shown")
  func damage() throws {
    let source = try DistantPyramid(Self.recording)
    let pyramid = try PyramidFile(source, cache: PageCache(limit: 1 << 30))
    let window = try window(WaveformQuery(resolution: .scale(256)))
    source.change { $0[10 * 4096 + 77] ^= 4 }
    #expect(throws: WaveformError.damagedPyramid(page: 10)) { _ = try pyramid.slice(window) }
    source.change { $0[10 * 4096 + 77] ^= 4 }
    source.change { $0.removeLast(3 * 4096) }
    let error = #expect(throws: WaveformError.self) { _ = try pyramid.slice(window) }
    #expect(error?.isDamage == true)
  }
}
