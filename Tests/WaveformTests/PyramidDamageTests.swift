import Foundation
import Testing

@testable import Waveform

/// Damage that a disk may do to a finished file: no damaged data is served.
struct PyramidDamageTests {
  private static let recording = Recording.random(frames: 1000, channels: 1, seed: 5)
  private static let query = WaveformQuery(resolution: .scale(256), measures: [.peak, .rms, .average])

  private static func finished(_ recording: Recording = recording) throws -> Data {
    try withTemporaryPath { path in
      try write(recording, to: path)
      return try Data(contentsOf: URL(filePath: path))
    }
  }

  private static func write(_ recording: Recording, to path: String) throws {
    var writer = try PyramidWriter(
      creating: path, sampleRate: recording.sampleRate, channels: recording.channels)
    try writer.append(recording.samples.span)
    try writer.finish()
  }

  /// Opens and reads all of a file. Returns the error, or nil if the file is intact.
  private func fault(of path: String) -> WaveformError? {
    do throws(WaveformError) {
      try PyramidFile(path: path, cache: PageCache(limit: 0)).verify()
      return nil
    } catch {
      return error
    }
  }

  @Test func everyByteOfAFileIsCovered() throws {
    let data = try Self.finished()
    try withTemporaryPath { path in
      try data.write(to: URL(filePath: path))
      #expect(fault(of: path) == nil)
      let file = try FileHandle(forUpdating: URL(filePath: path))
      for (offset, byte) in data.enumerated() {
        // One bit, and all of them.
        for change in [UInt8(1) << (offset % 8), 0xff] {
          try file.seek(toOffset: UInt64(offset))
          try file.write(contentsOf: [byte ^ change])
          #expect(fault(of: path)?.isDamage == true, "byte \(offset) ^ \(change)")
        }
        try file.seek(toOffset: UInt64(offset))
        try file.write(contentsOf: [byte])
      }
      #expect(fault(of: path) == nil)
    }
  }

  @Test func aFileCutAtAnyLengthIsRefused() throws {
    let data = try Self.finished()
    try withTemporaryPath { path in
      try data.write(to: URL(filePath: path))
      for length in stride(from: data.count - 1, through: 0, by: -1) {
        try cut(path, to: length)
        guard case .truncatedPyramid(Int64(length), _) = fault(of: path) else {
          Issue.record("\(length) bytes are taken for a pyramid")
          continue
        }
      }
    }
  }

  /// At many seeded positions of a file with several blocks and lanes: no slice that touches the position has a wrong
  /// value.
  @Test func noSliceHasADamagedValue() throws {
    let recording = Recording.random(frames: 200_000, channels: 2, seed: 6)
    let data = try Self.finished(recording)
    let windows = try [256, 1000, 65_536].map { scale in
      try WaveformWindow(
        WaveformQuery(resolution: .scale(scale), channels: .split, measures: [.peak, .rms, .average]),
        of: recording.extent)
    }
    let right = try recording.withPyramid { pyramid in try windows.map { try pyramid.slice($0) } }
    var generator = SeededGenerator(state: 14)
    var refused = 0
    for _ in 0..<100 {
      var spoiled = data
      let offset = Int.random(in: 0..<data.count, using: &generator)
      spoiled[offset] ^= 1 << UInt8.random(in: 0..<8, using: &generator)
      try withTemporaryPath { path in
        try spoiled.write(to: URL(filePath: path))
        for (window, right) in zip(windows, right) {
          do {
            let slice = try PyramidFile(path: path).slice(window)
            #expect(slice == right, "byte \(offset), scale \(window.scale)")
          } catch let error as WaveformError {
            #expect(error.isDamage, "\(error)")
            refused += 1
          }
        }
      }
    }
    #expect(refused > 60)
  }

  @Test func swappedPagesAreDetected() throws {
    let recording = Recording.random(frames: 1000, channels: 2, seed: 7)
    var data = try Self.finished(recording)
    let (first, second) = (data[4096 * 4..<4096 * 5], data[4096 * 5..<4096 * 6])
    data.replaceSubrange(4096 * 4..<4096 * 5, with: second)
    data.replaceSubrange(4096 * 5..<4096 * 6, with: first)
    try withTemporaryPath { path in
      try data.write(to: URL(filePath: path))
      #expect(fault(of: path) == .damagedPyramid(page: 4))
    }
  }

  @Test func unwrittenPagesAreDetected() throws {
    let data = try Self.finished()
    try withTemporaryPath { path in
      try (data.prefix(4096) + Data(count: data.count - 4096)).write(to: URL(filePath: path))
      #expect(fault(of: path) == .damagedPyramid(page: 1))
    }
  }

  /// If the file were mapped, the second slice would end the process.
  @Test func truncatingAnOpenFileIsAnErrorButCachedPointsAreServed() throws {
    let recording = Recording.random(frames: 200_000, channels: 1, seed: 8)
    try withTemporaryPath { path in
      try Self.write(recording, to: path)
      let pyramid = try PyramidFile(path: path)
      var query = Self.query
      query.end = 1
      let before = try pyramid.slice(WaveformWindow(query, of: recording.extent))
      try cut(path, to: 5000)
      #expect(try pyramid.slice(WaveformWindow(query, of: recording.extent)) == before)
      query.end = nil
      let whole = try WaveformWindow(query, of: recording.extent)
      #expect {
        try pyramid.slice(whole)
      } throws: {
        guard case .truncatedPyramid = $0 as? WaveformError else { return false }
        return true
      }
      try cut(path, to: 0)
      #expect(throws: WaveformError.self) { try pyramid.slice(whole) }
    }
  }

  @Test func aFileOfTheFirstVersionIsDistinguishedFromADamagedOne() throws {
    try withTemporaryPath { path in
      try Data(firstVersion(frames: 1000)).write(to: URL(filePath: path))
      #expect(fault(of: path) == .outdatedPyramid(version: 1))
      #expect(WaveformError.outdatedPyramid(version: 1).isDamage)
    }
  }

  /// Returns a mono file of version 1: a header of 32 bytes and zeros, then blocks of 510 points.
  private func firstVersion(frames: Int64) -> [UInt8] {
    var bytes = Array("SWPYRAMD".utf8) + [1, 0, 0, 0, 0x40, 0x1f, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0]
    bytes += frames.littleEndianBytes
    return bytes + [UInt8](repeating: 0, count: 4096 - bytes.count + 2 * 510 * 8)
  }

  @Test func foldersPipesAndBrokenLinksAreNotPyramids() throws {
    try withTemporaryPath { path in
      #expect(unsafe mkfifo(path, 0o600) == 0)
      #expect(fault(of: path) == .malformedPyramid(field: "file"))
    }
    #expect(fault(of: "/") == .malformedPyramid(field: "file"))
    #expect(fault(of: "/nowhere")?.isDamage == true)
    #expect(!WaveformError.io(operation: "open", path: "", errno: EMFILE).isDamage)
  }

  // MARK: While it grows

  /// A block has a checksum from the moment when its last point is ready; the last block of a recording, when the
  /// recording is finished.
  @Test func aFullBlockIsVerifiedWhileTheFileGrowsAndTheLastOneWhenItIsFinished() throws {
    let recording = Recording.random(frames: 65_536 + 20_000, channels: 1, seed: 9)
    try withTemporaryPath { path in
      var writer = try PyramidWriter(creating: path, sampleRate: 8000, channels: 1)
      try writer.append(recording.samples.span)
      try writer.publish()
      let extent = WaveformExtent(
        sampleRate: 8000, channels: 1, availableFrames: writer.readyFrames, totalFrames: nil, isComplete: false)
      let full = WaveformQuery(end: 8, resolution: .scale(256))
      let open = WaveformQuery(start: 9, resolution: .scale(256))
      for page in [2, 3] { try flip(path, at: page * 4096 + 8) }
      let growing = try PyramidFile(path: path)
      #expect(throws: WaveformError.damagedPyramid(page: 2)) { try growing.slice(WaveformWindow(full, of: extent)) }
      #expect(try growing.slice(WaveformWindow(open, of: extent)).length > 0)
      // Finishing rewrites the block being filled from memory.
      try writer.finish()
      #expect(throws: WaveformError.damagedPyramid(page: 2)) {
        try growing.slice(WaveformWindow(full, of: recording.extent))
      }
      let tail = try growing.slice(WaveformWindow(open, of: recording.extent))
      #expect(difference(tail, from: recording) == nil)
      try flip(path, at: 3 * 4096 + 8)
      #expect(throws: WaveformError.damagedPyramid(page: 3)) {
        try PyramidFile(path: path).slice(WaveformWindow(open, of: recording.extent))
      }
    }
  }

  private func flip(_ path: String, at offset: Int) throws {
    let file = try FileHandle(forUpdating: URL(filePath: path))
    try file.seek(toOffset: UInt64(offset))
    let byte = try #require(try file.read(upToCount: 1)?.first)
    try file.seek(toOffset: UInt64(offset))
    try file.write(contentsOf: [byte ^ 4])
  }
}
