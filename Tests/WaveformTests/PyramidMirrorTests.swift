import Foundation
import Randomness
import Terms
import Testing

@testable import Waveform

/// A copy of a growing pyramid on another machine.
struct PyramidMirrorTests {
  private typealias Bytes = [UInt8]

  /// A pyramid being written, and what was fetched of it.
  private final class Source {
    let path: String
    var fetched: Int64 = 0
    var requests = 0
    /// Changes what is fetched.
    var tamper: (Range<Int64>, inout Bytes) -> Void = { _, _ in }

    init(_ path: String) { self.path = path }

    func fetch(_ range: Range<Int64>) throws -> Bytes {
      let file = try FileHandle(forReadingFrom: URL(filePath: path))
      try file.seek(toOffset: UInt64(range.lowerBound))
      var bytes = Bytes(try file.read(upToCount: range.count) ?? Data())
      requests += 1
      fetched += Int64(bytes.count)
      tamper(range, &bytes)
      return bytes
    }

    func header() throws -> Bytes { try fetch(PyramidMirror.headerBytes) }
  }

  /// Calls `body` with the path of a pyramid to write, its source, and the path for a copy.
  private func withSource(_ body: (String, Source, String) throws -> Void) throws {
    try withTemporaryPath { path in
      try withTemporaryPath { copy in try body(path, Source(path), copy) }
    }
  }

  private func update(_ mirror: PyramidMirror, from source: Source, ready: Int64) throws {
    try mirror.update(header: source.header(), ready: ready, fetch: source.fetch)
  }

  /// Every slice of the frames that a copy has is the original's.
  private func expectSameSlices(_ mirror: PyramidMirror, _ original: PyramidFile, total: Int64? = nil) throws {
    let extent = WaveformExtent(
      sampleRate: original.sampleRate, channels: original.channels, availableFrames: mirror.readyFrames,
      totalFrames: total, estimatedFrames: total == nil ? 1 << 28 : nil, isComplete: false)
    for scale in [256, 1000, 32_768, 65_536, 131_072, 1 << 20] {
      let query = WaveformQuery(
        resolution: .scale(scale), channels: .split, measures: [.peak, .rms, .average])
      let window = try WaveformWindow(query, of: extent)
      let (copied, written) = (try mirror.file.slice(window), try original.slice(window))
      #expect(copied.data == written.data && copied.rms == written.rms && copied.average == written.average)
      #expect(copied.length == window.pixelCount)
    }
  }

  @Test("a copy's last reference closes nothing itself, because closing a large file takes long")
  func closing() throws {
    try withSource { path, source, copy in
      let writer = try PyramidWriter(creating: path, sampleRate: 8000, channels: 1)
      func openCopies() throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count {
          let target = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/" + $0)
          return target == copy + " (deleted)"
        }
      }
      do {
        FileClosing.queue.suspend()
        defer { FileClosing.queue.resume() }
        do {
          let mirror = try PyramidMirror(creating: copy, header: source.header())
          #expect(try openCopies() == 2 && mirror.readyFrames == 0)
        }
        #expect(try openCopies() == 2)
      }
      FileClosing.queue.sync {}
      #expect(try openCopies() == 0)
      _ = consume writer
    }
  }

  @Test(
    "whatever the steps, a copy equals the original for everything it promises, and fetches each block once",
    arguments: [(1, 300), (2, 40), (5, 20)])
  func equalsItsOriginal(channels: Int, blocks: Int) throws {
    var random = TestRandom(for: channels)
    let frames = blocks * 65_536 + .random(in: 1..<65_536, using: &random)
    let recording = Recording.random(frames: frames, channels: channels, seed: random.next())
    try withSource { path, source, copy in
      var writer = try PyramidWriter(creating: path, sampleRate: 8000, channels: channels)
      let original = try PyramidFile(path: path)
      let mirror = try PyramidMirror(creating: copy, header: source.header())
      #expect(!FileManager.default.fileExists(atPath: copy))
      var frame: Int64 = 0
      while frame < recording.frames {
        let end = min(frame + .random(in: 1...Int64(frames / 5), using: &random), recording.frames)
        try writer.append(recording.samples(frame..<end).span)
        frame = end
        try writer.publish()
        // The writer goes on meanwhile.
        let ready = writer.readyFrames
        let later = min(frame + .random(in: 0...70_000, using: &random), recording.frames)
        try writer.append(recording.samples(frame..<later).span)
        frame = later
        try writer.publish()
        let before = mirror.readyFrames
        try update(mirror, from: source, ready: ready)
        #expect(mirror.readyFrames == max(ready / 65_536 * 65_536, before))
        try expectSameSlices(mirror, original)
      }
      try writer.finish()
      try update(mirror, from: source, ready: recording.frames)
      #expect(mirror.isFinished && mirror.readyFrames == recording.frames)
      #expect(mirror.file.totalFrames == recording.frames)
      try mirror.file.verify()
      try expectSameSlices(mirror, original, total: recording.frames)
      // Each block once, the upper ones and the header's first bytes once more for each look.
      let lanes = Int64(channels == 1 ? 1 : channels + 1)
      let size = Int64(try Data(contentsOf: URL(filePath: path)).count)
      #expect(source.fetched <= size + Int64(source.requests) * lanes * 4096)
      let requests = source.requests
      try update(mirror, from: source, ready: recording.frames)
      #expect(source.requests == requests + 1, "only the header")
    }
  }

  @Test("a step ends where the limit of an answer does, and shows what it has")
  func steps() throws {
    let layout = try PyramidLayout(sampleRate: 8000, channels: 2)
    /// The bytes of pages of three lanes, by the number of blocks before.
    func bytes(_ blocks: Range<Int64>) -> Range<Int64> {
      (1 + 3 * blocks.lowerBound) * 4096..<(1 + 3 * blocks.upperBound) * 4096
    }
    let block: Int64 = 65_536
    let first = MirrorPlan(layout, mirrored: 0, ready: 1 << 40, total: nil)
    #expect(first.frames == 170 * block)
    #expect(first.ranges == [bytes(0..<171)])
    let second = MirrorPlan(layout, mirrored: first.frames, ready: 1 << 40, total: nil)
    #expect(second.frames == 340 * block)
    #expect(second.ranges == [bytes(0..<1), bytes(171..<342)])
    #expect(MirrorPlan(layout, mirrored: block, ready: 2 * block - 1, total: nil).isEmpty)
    #expect(MirrorPlan(layout, mirrored: block, ready: -1, total: nil).isEmpty)
    #expect(MirrorPlan(layout, mirrored: block, ready: .max, total: nil).frames == 171 * block)
    // The last points of the upper levels, although no block follows.
    let last = MirrorPlan(layout, mirrored: block, ready: block, total: block)
    #expect(last.isLast && last.frames == block)
    #expect(last.ranges == [bytes(0..<1)])
    let nothing = MirrorPlan(layout, mirrored: 0, ready: 0, total: 0)
    #expect(nothing.isLast && nothing.ranges.isEmpty && !nothing.isEmpty && nothing.frames == 0)
    let wide = try PyramidLayout(sampleRate: 8000, channels: 1024)
    #expect(MirrorPlan(wide, mirrored: 0, ready: 1 << 40, total: nil).frames == block)
  }

  @Test("an update that isn't to go on ends after a step, and the next one continues")
  func pauses() throws {
    let recording = Recording.random(frames: 200 * 65_536, channels: 2, seed: 3)
    try withSource { path, source, copy in
      var writer = try PyramidWriter(creating: path, sampleRate: 8000, channels: 2)
      try writer.append(recording.samples.span)
      try writer.publish()
      let mirror = try PyramidMirror(creating: copy, header: source.header())
      try mirror.update(
        header: source.header(), ready: writer.readyFrames, fetch: source.fetch, goesOn: { false })
      #expect(mirror.readyFrames == 170 * 65_536)
      try update(mirror, from: source, ready: writer.readyFrames)
      #expect(mirror.readyFrames == recording.frames)
    }
  }

  /// Calls `body` with a copy of the first 20 of 40 blocks.
  private func halfway(_ body: (PyramidMirror, Source, Int64) throws -> Void) throws {
    let recording = Recording.random(frames: 40 * 65_536, channels: 2, seed: 7)
    try withSource { path, source, copy in
      var writer = try PyramidWriter(creating: path, sampleRate: 8000, channels: 2)
      let original = try PyramidFile(path: path)
      try writer.append(recording.samples(0..<20 * 65_536).span)
      try writer.publish()
      let mirror = try PyramidMirror(creating: copy, header: source.header())
      try update(mirror, from: source, ready: writer.readyFrames)
      try writer.append(recording.samples(20 * 65_536..<recording.frames).span)
      try writer.publish()
      try body(mirror, source, writer.readyFrames)
      #expect(mirror.readyFrames == 20 * 65_536)
      try expectSameSlices(mirror, original)
      source.tamper = { _, _ in }
      try update(mirror, from: source, ready: writer.readyFrames)
      #expect(mirror.readyFrames == recording.frames)
      try expectSameSlices(mirror, original)
    }
  }

  /// The byte of the file that is changed, and what follows.
  private static let refused: [(WaveformError, Int64)] = [
    (.damagedPyramid(page: 64), 64 * 4096 + 5), (.damagedPyramid(page: 64), 64 * 4096 + 4081),
    (.damagedPyramid(page: 123), 123 * 4096 + 4095), (.changedPyramid(page: 2), 2 * 4096 + 8),
    (.changedPyramid(page: 3), 3 * 4096 + 8 * 256), (.changedPyramid(page: 0), 16),
    (.malformedPyramid(field: "magic"), 0), (.malformedPyramid(field: "checksum"), 24),
  ]

  @Test(
    "bytes that aren't the original's next ones are refused, and the copy shows what it had",
    arguments: refused)
  func refusals(error: WaveformError, place: Int64) throws {
    try halfway { mirror, source, ready in
      source.tamper = { range, bytes in
        guard range.contains(place) else { return }
        bytes[Int(place - range.lowerBound)] ^= 1
        guard place == 16 else { return }
        // Another number of channels, with the right checksum.
        var header = Data(bytes) + Data(count: 4096 - bytes.count)
        header[20] = 2
        bytes[16] = 1
        header.replaceSubrange(16..<24, with: [1, 0, 0, 0, 1, 0, 0, 0])
        resealHeader(&header)
        bytes.replaceSubrange(0..<32, with: header.prefix(32))
      }
      #expect(throws: error) { try update(mirror, from: source, ready: ready) }
    }
  }

  @Test("answers of another length are refused", arguments: [-4096, -1, 1, 4096])
  func lengths(change: Int) throws {
    try halfway { mirror, source, ready in
      source.tamper = { range, bytes in
        guard range != PyramidMirror.headerBytes else { return }
        if change < 0 { bytes.removeLast(-change) } else { bytes += Bytes(repeating: 0, count: change) }
      }
      #expect(throws: WaveformError.self) { try update(mirror, from: source, ready: ready) }
    }
  }

  @Test("a header that isn't one makes no copy", arguments: [0, 47, 48, 49, 4096])
  func headers(length: Int) throws {
    try withTemporaryPath { copy in
      #expect(throws: WaveformError.self) {
        try PyramidMirror(creating: copy, header: Bytes(repeating: 0x20, count: length))
      }
      #expect(!FileManager.default.fileExists(atPath: copy))
    }
  }

  @Test func aFileThatSaysItIsShorterThanBeforeHasChanged() throws {
    try halfway { mirror, source, ready in
      let header = try PyramidLayout(sampleRate: 8000, channels: 2).header(totalFrames: 65_536)
      let bytes = header.prefix(6).flatMap { Int64(bitPattern: $0).littleEndianBytes }
      #expect(throws: WaveformError.changedPyramid(page: 0)) {
        try mirror.update(header: bytes, ready: ready, fetch: source.fetch)
      }
    }
  }
}
