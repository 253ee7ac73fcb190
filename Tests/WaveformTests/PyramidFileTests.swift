import Foundation
import Testing

@testable import Waveform

struct PyramidFileTests {
  /// Returns the bytes of a finished stereo pyramid, for corrupting.
  private func bytes(frames: Int = 1000) throws -> Data {
    try withTemporaryPath { path in
      var writer = try PyramidWriter(creating: path, sampleRate: 8000, channels: 2)
      try writer.append(Recording.random(frames: frames, channels: 2, seed: 1).samples.span)
      try writer.finish()
      return try Data(contentsOf: URL(filePath: path))
    }
  }

  private func open<Result>(_ data: Data, _ body: (PyramidFile) throws -> Result) throws -> Result {
    try withTemporaryPath { path in
      try data.write(to: URL(filePath: path))
      return try body(try PyramidFile(path: path))
    }
  }

  @Test(
    "a header with an impossible value is refused, even if its checksums are right",
    arguments: [
      (0, [0x00], "magic"), (8, [3], "version"), (12, [0, 0, 0, 0], "sample rate"),
      (12, [0xff, 0xff, 0xff, 0xff], "sample rate"), (16, [0, 0, 0, 0], "channels"),
      (16, [0xff, 0xff, 0xff, 0xff], "channels"), (20, [2], "lanes"),
      (4095, [1], "zeros"),
    ] as [(Int, [UInt8], String)])
  func impossibleHeader(offset: Int, spoiled: [UInt8], field: String) throws {
    var data = try bytes()
    data.replaceSubrange(offset..<offset + spoiled.count, with: spoiled)
    resealHeader(&data)
    #expect(throws: WaveformError.malformedPyramid(field: field)) { try open(data) { _ in } }
  }

  @Test(arguments: [-2, (1 << 48) + 1, .max])
  func aFileOfAnImpossibleLengthIsNotCompleted(frames: Int64) throws {
    var data = try bytes()
    data.replaceSubrange(32..<40, with: frames.littleEndianBytes)
    resealHeader(&data)
    try open(data) { #expect($0.totalFrames == nil) }
  }

  @Test func aMissingFileIsRefused() {
    #expect(throws: WaveformError.io(operation: "open", path: "/nowhere", errno: ENOENT)) {
      _ = try PyramidFile(path: "/nowhere")
    }
  }

  @Test func aFileShorterThanItsHeaderSaysIsRefused() throws {
    var data = try bytes()
    data.replaceSubrange(32..<40, with: (Int64(1) << 48).littleEndianBytes)
    resealHeader(&data)
    #expect {
      try open(data) { _ in }
    } throws: {
      guard case .truncatedPyramid(let size, _) = $0 as? WaveformError else { return false }
      return size == Int64(data.count)
    }
  }

  @Test func aWindowOfAnotherRecordingIsRefused() throws {
    let right = WaveformExtent(
      sampleRate: 8000, channels: 2, availableFrames: 1000, totalFrames: 1000, isComplete: true)
    try open(try bytes()) { pyramid in
      for change in [\WaveformExtent.sampleRate, \.channels] {
        var wrong = right
        wrong[keyPath: change] += 1
        let window = try WaveformWindow(WaveformQuery(resolution: .scale(256)), of: wrong)
        #expect(throws: WaveformError.extentMismatch) { try pyramid.slice(window) }
      }
      var wrong = right
      wrong.availableFrames = 999
      let window = try WaveformWindow(WaveformQuery(resolution: .scale(256)), of: wrong)
      #expect(throws: WaveformError.extentMismatch) { try pyramid.slice(window) }
    }
  }

  @Test func anUnfinishedFileDoesNotCountAsComplete() throws {
    try withTemporaryPath { path in
      let recording = Recording.random(frames: 2048, channels: 2, seed: 1)
      var writer = try PyramidWriter(creating: path, sampleRate: 8000, channels: 2)
      try writer.append(recording.samples.span)
      let window = try WaveformWindow(WaveformQuery(resolution: .scale(256)), of: recording.extent)
      let growing = try PyramidFile(path: path)
      #expect(throws: WaveformError.extentMismatch) { try growing.slice(window) }
    }
  }

  @Test func impossiblePointsAreServedWithoutACrash() throws {
    var data = try bytes(frames: 70_000)
    data.replaceSubrange(4096..., with: Data(repeating: 0xff, count: data.count - 4096))
    resealPages(&data)
    try open(data) { pyramid in
      let extent = WaveformExtent(
        sampleRate: 8000, channels: 2, availableFrames: 70_000, totalFrames: 70_000, isComplete: true)
      for scale in [256, 777, 65_536] {
        for bits in [SampleBits.eight, .sixteen] {
          let query = WaveformQuery(
            resolution: .scale(scale), channels: .split, measures: [.peak, .rms, .average], bits: bits)
          let slice = try pyramid.slice(WaveformWindow(query, of: extent))
          #expect(slice.rms.allSatisfy { $0 == (bits == .eight ? 127 : 65_535) })
          #expect(!slice.json().isEmpty && !slice.dat().isEmpty && !slice.peaksJSON().isEmpty)
        }
      }
    }
  }

  @Test func manyThreadsMayReadWhileItGrows() async throws {
    let recording = Recording.random(frames: 65_536, channels: 1, seed: 8)
    let path = FileManager.default.temporaryDirectory.appending(path: "waveform-\(UUID().uuidString)").path
    defer { try? FileManager.default.removeItem(atPath: path) }
    var writer = try PyramidWriter(creating: path, sampleRate: 8000, channels: 1)
    let growing = try PyramidFile(path: path)
    let query = WaveformQuery(resolution: .scale(300), measures: [.peak, .rms])
    try await withThrowingTaskGroup(of: (Int64, [Int16]).self) { group in
      for _ in 0..<12 {
        try writer.append(recording.samples.span)
        try writer.publish()
        let extent = WaveformExtent(
          sampleRate: 8000, channels: 1, availableFrames: writer.readyFrames, totalFrames: nil, isComplete: false)
        for _ in 0..<3 {
          group.addTask {
            let slice = try growing.slice(WaveformWindow(query, of: extent))
            return (extent.availableFrames, slice.data)
          }
        }
      }
      try writer.finish()
      let extent = WaveformExtent(
        sampleRate: 8000, channels: 1, availableFrames: writer.framesAppended, totalFrames: writer.framesAppended,
        isComplete: true)
      let whole = try growing.slice(WaveformWindow(query, of: extent))
      for try await (available, data) in group {
        #expect(data.count == 2 * Int(available / 300))
        #expect(whole.data.starts(with: data))
      }
    }
  }

  @Test func aSliceFinerThanThePyramidNeedsSamples() throws {
    let extent = WaveformExtent(
      sampleRate: 8000, channels: 2, availableFrames: 1000, totalFrames: 1000, isComplete: true)
    try open(try bytes()) { pyramid in
      let window = try WaveformWindow(WaveformQuery(resolution: .scale(255)), of: extent)
      #expect(window.needsSamples)
      #expect(throws: WaveformError.needsSamples(scale: 255)) { try pyramid.slice(window) }
    }
  }

  /// Writes a finished file that is sparse except for the pages that the windows need, with points of given level,
  /// index, and loudness.
  private func writeSparse(
    _ path: String, _ layout: PyramidLayout, frames: Int64, for windows: [WaveformWindow],
    points: [(level: Int, index: Int64, value: Int16)]
  ) throws {
    let file = try WrittenFile(creating: path)
    try file.write(layout.header(totalFrames: frames).span, at: 0)
    var pages: [Int64: [UInt64]] = [:]
    for window in windows {
      try PointReader(layout: layout, window: window).forEachBatch { batch in
        for page in batch.pages { pages[page] = Array(repeating: 0, count: PyramidLayout.pageWords) }
      }
    }
    for (level, index, value) in points {
      let point = WaveformPoint(minimum: -value, maximum: value, rms: UInt16(value), average: UInt16(value))
      let page = layout.page(upper: level > 7, block: PyramidLayout.block(level: level, point: index))
      pages[page, default: Array(repeating: 0, count: PyramidLayout.pageWords)][
        PyramidLayout.word(level: level, point: index)] = point.word.littleEndian
    }
    for (number, page) in pages {
      var page = page
      PyramidLayout.seal(&page, from: number)
      try file.write(page.span, at: number * Int64(PyramidLayout.pageWords))
    }
  }

  /// 30 hours at 768 kHz are 8.3e10 frames and a pyramid of 5 GB: a sparse file with only the points that are read.
  @Test func positionsBeyond32BitsAreFound() throws {
    let frames: Int64 = 30 * 3600 * 768_000 + 100
    let layout = try PyramidLayout(sampleRate: 768_000, channels: 1)
    try withTemporaryPath { path in
      let last = (frames - 1) / 256
      let extent = WaveformExtent(
        sampleRate: 768_000, channels: 1, availableFrames: frames, totalFrames: frames, isComplete: true)
      let windows = try [
        WaveformQuery(start: 30 * 3600 - 256 / 768_000.0, resolution: .scale(256), measures: [.peak, .rms]),
        WaveformQuery(start: 29.99 * 3600, resolution: .width(1), measures: [.peak, .rms]),
        WaveformQuery(start: 29.99 * 3600, resolution: .scale(1 << 24)),
      ].map { try WaveformWindow($0, of: extent) }
      try writeSparse(
        path, layout, frames: frames, for: windows,
        points: [(0, last - 1, 100), (0, last, 200), (15, last >> 15, 300)])
      let pyramid = try PyramidFile(path: path)
      let fine = try pyramid.slice(windows[0])
      #expect(fine.window.startFrame == (last - 1) * 256)
      #expect(fine.data == [-100, 100, -200, 200])
      let tail = try pyramid.slice(windows[1])
      #expect(tail.data == [-300, 300])
      #expect(tail.window.frameRange.upperBound == frames)
      let coarse = try pyramid.slice(windows[2])
      #expect(coarse.window.firstPixel + Int64(coarse.length) == (frames + (1 << 24) - 1) >> 24)
      #expect(coarse.data.last == 300)
    }
  }
}
