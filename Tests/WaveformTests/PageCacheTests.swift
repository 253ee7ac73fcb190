import Foundation
import Testing

@testable import Waveform

struct PageCacheTests {
  private static let recording = Recording.random(frames: 20 * 65_536, channels: 1, seed: 3)

  /// Returns the window of block `index` at the finest level.
  private func window(_ index: Int) throws -> WaveformWindow {
    let seconds = 65_536 / 8000.0
    let query = WaveformQuery(
      start: Double(index) * seconds, end: Double(index + 1) * seconds, resolution: .scale(256))
    return try WaveformWindow(query, of: Self.recording.extent)
  }

  private func withPyramid(pages: Int, _ body: (PyramidFile, PageCache, String) throws -> Void) throws {
    try withTemporaryPath { path in
      var writer = try PyramidWriter(creating: path, sampleRate: 8000, channels: 1)
      let samples = Self.recording.samples
      try writer.append(samples.span)
      try writer.finish()
      let cache = PageCache(limit: pages * PyramidPage.cost)
      try body(PyramidFile(path: path, cache: cache), cache, path)
    }
  }

  @Test(arguments: [0, 1, 7, 100])
  func itNeverExceedsItsLimitAndSlicesStayTheSame(pages: Int) throws {
    try withPyramid(pages: pages) { pyramid, cache, path in
      for scale in [256, 300, 65_536, 100_000] {
        let window = try WaveformWindow(
          WaveformQuery(resolution: .scale(scale), measures: [.peak, .rms]), of: Self.recording.extent)
        for _ in 0..<2 {
          #expect(difference(try pyramid.slice(window), from: Self.recording) == nil)
          #expect(cache.byteCount <= pages * PyramidPage.cost)
        }
      }
      // All pages were requested: the 20 lower ones and the upper one.
      if pages == 100 { #expect(cache.byteCount == 21 * PyramidPage.cost) }
      if pages < 21 { #expect(cache.byteCount == pages * PyramidPage.cost) }
    }
  }

  /// With the file truncated, only pages in memory can be served.
  @Test func recentlyUsedPagesStayCached() throws {
    try withPyramid(pages: 4) { pyramid, _, path in
      for block in 0..<4 { _ = try pyramid.slice(window(block)) }
      for _ in 0..<2 { _ = try pyramid.slice(window(1)) }
      for block in 4..<7 { _ = try pyramid.slice(window(block)) }
      try cut(path, to: 0)
      for block in [1, 4, 5, 6] {
        let window = try window(block)
        #expect(try pyramid.slice(window).length == 256)
      }
      for block in [0, 2, 3] {
        let window = try window(block)
        #expect(throws: WaveformError.self) { try pyramid.slice(window) }
      }
    }
  }

  @Test func severalFilesShareOneLimit() throws {
    try withPyramid(pages: 10) { first, cache, path in
      let second = try PyramidFile(path: path, cache: cache)
      for block in 0..<20 {
        let window = try window(block)
        let slice = try second.slice(window)
        #expect(try first.slice(window) == slice)
        #expect(cache.byteCount <= 10 * PyramidPage.cost)
      }
    }
  }

  @Test func thePagesOfAClosedFileAreReleasedAndThoseOfOthersStay() throws {
    try withPyramid(pages: 30) { first, cache, path in
      var second: PyramidFile? = try PyramidFile(path: path, cache: cache)
      for block in 0..<15 { _ = try first.slice(window(block)) }
      for block in 0..<20 { _ = try second?.slice(window(block)) }
      #expect(cache.byteCount == 30 * PyramidPage.cost)
      let before = PageMemory.shared.byteCount
      second = nil
      let kept = cache.byteCount / PyramidPage.cost
      #expect((1...15).contains(kept) && PageMemory.shared.byteCount <= before)
      // The cache fills up again, and evicts as before.
      let third = try PyramidFile(path: path, cache: cache)
      for block in 0..<20 {
        let window = try window(block)
        #expect(try third.slice(window) == first.slice(window))
        #expect(cache.byteCount <= 30 * PyramidPage.cost)
      }
      #expect(cache.byteCount == 30 * PyramidPage.cost)
    }
  }

  @Test func manyThreadsMayFillIt() async throws {
    let path = FileManager.default.temporaryDirectory.appending(path: "cache-\(UUID().uuidString)").path
    defer { try? FileManager.default.removeItem(atPath: path) }
    var writer = try PyramidWriter(creating: path, sampleRate: 8000, channels: 1)
    let samples = Self.recording.samples
    try writer.append(samples.span)
    try writer.finish()
    let cache = PageCache(limit: 5 * PyramidPage.cost)
    let pyramid = try PyramidFile(path: path, cache: cache)
    let whole = try pyramid.slice(WaveformWindow(WaveformQuery(resolution: .scale(256)), of: Self.recording.extent))
    try await withThrowingTaskGroup(of: Void.self) { group in
      for worker in 0..<8 {
        let windows = try (0..<20).map { try window(($0 * 7 + worker * 3) % 20) }
        group.addTask {
          for window in windows {
            let first = Int(window.firstPixel)
            let part = Array(whole.data[2 * first..<2 * (first + 256)])
            let slice = try pyramid.slice(window)
            #expect(slice.data == part)
          }
        }
      }
      try await group.waitForAll()
    }
    #expect(cache.byteCount == 5 * PyramidPage.cost)
  }
}
