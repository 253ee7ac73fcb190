import Foundation
import Randomness
import Testing

@testable import Waveform

struct PyramidWriterTests {
  private static let recording = Recording.random(frames: 140_123, channels: 2, seed: 21)

  /// Requests everything that a slice of the ready frames can contain.
  private func query(_ scale: Int) -> WaveformQuery {
    WaveformQuery(resolution: .scale(scale), channels: .split, measures: [.peak, .rms, .average])
  }

  @Test func splittingTheRecordingChangesNothing() throws {
    let recording = Self.recording
    let whole = try withTemporaryPath { path in
      var writer = try PyramidWriter(creating: path, sampleRate: 8000, channels: 2)
      try writer.append(recording.samples.span)
      try writer.finish()
      return try Data(contentsOf: URL(filePath: path))
    }
    for largest in [3, 255, 256, 257, 1000, 70_000] {
      try withTemporaryPath { path in
        var generator = SeededGenerator(state: UInt64(largest))
        var writer = try PyramidWriter(creating: path, sampleRate: 8000, channels: 2)
        var frame: Int64 = 0
        while frame < recording.frames {
          let end = min(frame + .random(in: 0...Int64(largest), using: &generator), recording.frames)
          try writer.append(recording.samples(frame..<end).span)
          frame = end
        }
        try writer.finish()
        #expect(try Data(contentsOf: URL(filePath: path)) == whole)
      }
    }
  }

  @Test func pointsServedWhileGrowingNeverChange() throws {
    let recording = Self.recording
    try withTemporaryPath { path in
      var writer = try PyramidWriter(creating: path, sampleRate: 8000, channels: 2)
      let growing = try PyramidFile(path: path)
      var served: [WaveformSlice] = []
      var frame: Int64 = 0
      var ready: Int64 = 0
      while frame < recording.frames {
        let end = min(frame + 9_001, recording.frames)
        try writer.append(recording.samples(frame..<end).span)
        frame = end
        #expect(writer.readyFrames == ready)
        try writer.publish()
        #expect(writer.readyFrames == end / 256 * 256)
        ready = writer.readyFrames
        let extent = WaveformExtent(
          sampleRate: 8000, channels: 2, availableFrames: ready, totalFrames: nil, estimatedFrames: 100_000,
          isComplete: false)
        for scale in [256, 300, 2048, 65_536] {
          let slice = try growing.slice(WaveformWindow(query(scale), of: extent))
          #expect(slice.length == Int(ready) / scale)
          served.append(slice)
        }
      }
      #expect(growing.totalFrames == nil)
      try writer.finish()
      #expect(growing.totalFrames == recording.frames)
      #expect(writer.readyFrames == recording.frames)
      for slice in served {
        let final = try growing.slice(WaveformWindow(query(slice.window.scale), of: recording.extent))
        #expect(final.data.starts(with: slice.data))
        #expect(final.rms.starts(with: slice.rms))
        #expect(final.average.starts(with: slice.average))
      }
    }
  }

  @Test func aLongRecordingIsReadWhileItGrows() throws {
    try withTemporaryPath { path in
      var writer = try PyramidWriter(creating: path, sampleRate: 8000, channels: 1)
      let growing = try PyramidFile(path: path)
      let block = (0..<65_536).map { Int16(truncatingIfNeeded: $0) }
      for count in 1...20 {
        try writer.append(block.span)
        try writer.publish()
        let extent = WaveformExtent(
          sampleRate: 8000, channels: 1, availableFrames: writer.readyFrames, totalFrames: nil, isComplete: false)
        let slice = try growing.slice(WaveformWindow(query(65_536), of: extent))
        #expect(slice.data == (0..<count).flatMap { _ in [Int16.min, .max] })
      }
    }
  }

  @Test func pointsBecomeReadableInRunsOfBlocksWithoutPublishing() throws {
    try withTemporaryPath { path in
      let block = [Int16](repeating: 3, count: 2 << 16)
      var writer = try PyramidWriter(creating: path, sampleRate: 8000, channels: 2)
      for count in 1...40 as ClosedRange<Int64> {
        try writer.append(block.span)
        #expect(writer.readyFrames == (count - 1) / 16 * 16 << 16)
      }
    }
  }

  /// After 256 blocks, segments cross the pages of an upper block.
  @Test(arguments: [(1, 258, [40_000]), (2, 18, [0, 1, 255]), (2, 3, [256, 65_535]), (6, 3, [700])])
  func segmentsBuiltApartGiveTheSameFile(channels: Int, blocks: Int, rests: [Int]) throws {
    let noise = Recording.random(frames: 66_000, channels: channels, seed: TestSeed.of(blocks))
    for rest in rests {
      var recording = Recording(sampleRate: 8000, channels: channels, samples: [])
      for block in 0..<Int64(blocks) { recording.samples += noise.samples(block..<block + 65_536) }
      recording.samples += noise.samples(0..<Int64(rest))
      let whole = try file(of: recording) { try $0.append(recording.samples.span) }
      for (alone, length) in [(0, 3), (2, 16)] {
        let parts = try file(of: recording) { writer in
          var frame = Int64(alone) << 16
          try writer.append(recording.samples(0..<frame).span)
          var builder = try PyramidPartBuilder(sampleRate: 8000, channels: channels, frames: length << 16)
          while frame < recording.frames {
            let end = min(frame + Int64(length) << 16, recording.frames)
            builder.begin(at: frame)
            let middle = (frame + end) / 2 + 77
            builder.append(recording.samples(frame..<min(middle, end)).span)
            builder.append(recording.samples(min(middle, end)..<end).span)
            try writer.append(builder.finish())
            #expect(writer.readyFrames == end / 256 * 256)
            frame = end
          }
        }
        #expect(parts == whole, "\(rest), \(alone), \(length)")
      }
    }
  }

  @Test func samplesMayFollowSegmentsBuiltApart() throws {
    let recording = Recording.random(frames: 5 << 16 + 1000, channels: 2, seed: 4)
    let whole = try file(of: recording) { try $0.append(recording.samples.span) }
    let mixed = try file(of: recording) { writer in
      var builder = try PyramidPartBuilder(sampleRate: 8000, channels: 2, frames: 3 << 16)
      builder.begin(at: 0)
      builder.append(recording.samples(0..<3 << 16).span)
      try writer.append(builder.finish())
      try writer.append(recording.samples(3 << 16..<recording.frames).span)
    }
    #expect(mixed == whole)
  }

  private func file(of recording: Recording, _ write: (inout PyramidWriter) throws -> Void) throws -> Data {
    try withTemporaryPath { path in
      var writer = try PyramidWriter(creating: path, sampleRate: 8000, channels: recording.channels)
      try write(&writer)
      try writer.finish()
      return try Data(contentsOf: URL(filePath: path))
    }
  }

  @Test func anEmptyRecordingHasNoPixels() throws {
    try Recording(sampleRate: 8000, channels: 2, samples: []).withPyramid { pyramid in
      #expect(pyramid.totalFrames == 0)
      let extent = WaveformExtent(sampleRate: 8000, channels: 2, availableFrames: 0, totalFrames: 0, isComplete: true)
      let slice = try pyramid.slice(WaveformWindow(WaveformQuery(), of: extent))
      #expect(slice.length == 0)
    }
  }

  @Test func aStereoPyramidTakesAtMostATwentiethOfItsRecording() throws {
    try withTemporaryPath { path in
      let silence = [Int16](repeating: 0, count: 2 << 16)
      var writer = try PyramidWriter(creating: path, sampleRate: 44_100, channels: 2)
      for _ in 0..<64 { try writer.append(silence.span) }
      try writer.finish()
      let size = try #require(try FileManager.default.attributesOfItem(atPath: path)[.size] as? Int)
      #expect(size * 20 <= 64 * silence.count * 2)
    }
  }

  @Test func partialFramesAreRefused() throws {
    try withTemporaryPath { path in
      var writer = try PyramidWriter(creating: path, sampleRate: 8000, channels: 2)
      let uneven: [Int16] = [1, 2, 3]
      do throws(WaveformError) {
        try writer.append(uneven.span)
        Issue.record("took half a frame")
      } catch {
        #expect(error == .unevenSamples(count: 3, channels: 2))
      }
    }
  }

  @Test func impossibleFormatsAndFoldersAreRefused() {
    for (rate, channels) in [(0, 1), (8000, 0), (8000, 1025), (-1, 2)] {
      #expect(throws: WaveformError.unsupportedFormat(sampleRate: rate, channels: channels)) {
        try withTemporaryPath { _ = try PyramidWriter(creating: $0, sampleRate: rate, channels: channels) }
      }
    }
    #expect(throws: WaveformError.io(operation: "create", path: "/nowhere/at/all", errno: ENOENT)) {
      _ = try PyramidWriter(creating: "/nowhere/at/all", sampleRate: 8000, channels: 1)
    }
  }

  @Test func aNewFileDoesNotChangeAnOlderOpenOne() throws {
    let recording = Self.recording
    try withTemporaryPath { path in
      var writer = try PyramidWriter(creating: path, sampleRate: 8000, channels: 2)
      try writer.append(recording.samples.span)
      try writer.finish()
      let old = try PyramidFile(path: path)
      _ = try PyramidWriter(creating: path, sampleRate: 8000, channels: 2)
      let slice = try old.slice(WaveformWindow(query(1024), of: recording.extent))
      #expect(difference(slice, from: recording) == nil)
    }
  }
}
