import Foundation
import Testing

@testable import Waveform

struct PyramidFileTests {
  /// A finished stereo pyramid's bytes, for spoiling.
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
    "a header with an impossible fact is refused",
    arguments: [
      (0, [0x00], "magic"), (8, [2], "version"), (12, [0, 0, 0, 0], "sample rate"),
      (12, [0xff, 0xff, 0xff, 0xff], "sample rate"), (16, [0, 0, 0, 0], "channels"),
      (16, [0xff, 0xff, 0xff, 0xff], "channels"), (20, [2], "lanes"),
      (24, [0xfe] + .init(repeating: 0xff, count: 7), "total frames"),
      (24, [0, 0, 0, 0, 0, 0, 0, 0x7f], "total frames"),
    ] as [(Int, [UInt8], String)])
  func impossibleHeader(offset: Int, spoiled: [UInt8], field: String) throws {
    var data = try bytes()
    data.replaceSubrange(offset..<offset + spoiled.count, with: spoiled)
    #expect(throws: WaveformError.malformedPyramid(field: field)) { try open(data) { _ in } }
  }

  @Test func aFileShorterThanItsHeaderIsRefused() throws {
    for size in [0, 1, 31, 4095] {
      let data = try bytes().prefix(size)
      #expect(throws: WaveformError.truncatedPyramid(size: Int64(size), needed: 4096)) { try open(data) { _ in } }
    }
  }

  @Test func aMissingFileIsRefused() {
    #expect(throws: WaveformError.io(operation: "open", path: "/nowhere", errno: ENOENT)) {
      _ = try PyramidFile(path: "/nowhere")
    }
  }

  @Test func aHeaderThatClaimsMoreThanTheFileHoldsIsFoundOutBeforeItsBytesAreTouched() throws {
    var data = try bytes()
    let claimed: Int64 = 1 << 48
    data.replaceSubrange(24..<32, with: (0..<8).map { UInt8(truncatingIfNeeded: claimed >> ($0 * 8)) })
    try open(data) { pyramid in
      let extent = WaveformExtent(
        sampleRate: 8000, channels: 2, availableFrames: claimed, totalFrames: claimed, isComplete: true)
      let window = try WaveformWindow(WaveformQuery(start: 1e9, resolution: .scale(1 << 24)), of: extent)
      #expect(throws: WaveformError.self) { try pyramid.slice(window) }
    }
    try open(try bytes(frames: 70_000).prefix(40_000)) { pyramid in
      let extent = WaveformExtent(
        sampleRate: 8000, channels: 2, availableFrames: 70_000, totalFrames: 70_000, isComplete: true)
      let window = try WaveformWindow(WaveformQuery(), of: extent)
      #expect(throws: WaveformError.self) { try pyramid.slice(window) }
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

  @Test func anUnfinishedFileIsNotTakenForComplete() throws {
    try withTemporaryPath { path in
      let recording = Recording.random(frames: 2048, channels: 2, seed: 1)
      var writer = try PyramidWriter(creating: path, sampleRate: 8000, channels: 2)
      try writer.append(recording.samples.span)
      let window = try WaveformWindow(WaveformQuery(resolution: .scale(256)), of: recording.extent)
      let growing = try PyramidFile(path: path)
      #expect(throws: WaveformError.extentMismatch) { try growing.slice(window) }
    }
  }

  @Test func spoiledPointsAreServedAsTheyAreWithoutACrash() throws {
    var data = try bytes(frames: 70_000)
    data.replaceSubrange(4096..., with: Data(repeating: 0xff, count: data.count - 4096))
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

  /// A finished file of holes but for a few points of level, index and loudness.
  private func writeSparse(
    _ path: String, _ layout: PyramidLayout, frames: Int64, points: [(level: Int, index: Int64, value: Int16)]
  ) throws {
    let file = try WrittenFile(creating: path)
    let header = layout.header(totalFrames: frames).map(\.littleEndian)
    try file.write(header.span, at: 0)
    let end: [UInt64] = [0]
    try file.write(end.span, at: layout.words(frames: frames) - 1)
    for (level, index, value) in points {
      let point = WaveformPoint(minimum: -value, maximum: value, rms: UInt16(value), average: UInt16(value))
      let words = [point.word.littleEndian]
      try file.write(words.span, at: layout.word(level: level, point: index))
    }
  }

  /// 30 hours at 768 kHz are 8.3e10 frames and 5 GB of pyramid: a sparse file with the points that are looked at.
  @Test func positionsBeyondThirtyTwoBitsAreFound() throws {
    let frames: Int64 = 30 * 3600 * 768_000 + 100
    let layout = try PyramidLayout(sampleRate: 768_000, channels: 1)
    try withTemporaryPath { path in
      let last = (frames - 1) / 256
      try writeSparse(
        path, layout, frames: frames, points: [(0, last - 1, 100), (0, last, 200), (15, last >> 15, 300)])
      let pyramid = try PyramidFile(path: path)
      let extent = WaveformExtent(
        sampleRate: 768_000, channels: 1, availableFrames: frames, totalFrames: frames, isComplete: true)
      var query = WaveformQuery(start: 30 * 3600 - 256 / 768_000.0, resolution: .scale(256), measures: [.peak, .rms])
      let fine = try pyramid.slice(WaveformWindow(query, of: extent))
      #expect(fine.window.startFrame == (last - 1) * 256)
      #expect(fine.data == [-100, 100, -200, 200])
      query = WaveformQuery(start: 29.99 * 3600, resolution: .width(1), measures: [.peak, .rms])
      let tail = try pyramid.slice(WaveformWindow(query, of: extent))
      #expect(tail.data == [-300, 300])
      #expect(tail.window.frameRange.upperBound == frames)
      query = WaveformQuery(start: 29.99 * 3600, resolution: .scale(1 << 24))
      let coarse = try pyramid.slice(WaveformWindow(query, of: extent))
      #expect(coarse.window.firstPixel + Int64(coarse.length) == (frames + (1 << 24) - 1) >> 24)
      #expect(coarse.data.last == 300)
    }
  }
}
