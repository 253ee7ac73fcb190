import Dispatch
import Foundation
import SoundFiles
import Terms
import Testing

@testable import AudioIO

struct SegmentedReaderTests {
  private let folder: TemporaryFolder

  init() throws { folder = try TemporaryFolder() }

  static let kinds: [AudioFormat] =
    [
      (.flac, .flacS16, 44_100, 2), (.flac, .flacS24, 96_000, 1), (.ogg, .vorbis, 44_100, 2), (.ogg, .vorbis, 8000, 1),
      (.ogg, .opus, 48_000, 2), (.ogg, .opus, 24_000, 1), (.mp3, .mp3, 44_100, 2), (.mp3, .mp3, 48_000, 1),
      (.mp3, .mp3, 22_050, 2), (.mp3, .mp3, 8000, 1),
    ].map { AudioFormat(container: $0, codec: $1, sampleRate: $2, channels: $3) }

  private func make(_ format: AudioFormat, frames: Int = 130_001) throws -> String {
    let path = folder("sound.\(format.fileExtension)")
    try encode(
      swell(frames: frames, channels: format.channels, sampleRate: format.sampleRate, peak: 0.9), to: path, format)
    return path
  }

  /// Returns all samples, and whether the workers were used to the end. `other`: what they open instead.
  private func segmented(
    _ path: String, workers: Int, segmentFrames: Int, opening other: String? = nil
  ) throws -> (samples: [Int16], isParallel: Bool) {
    var reader = SegmentedReader(
      try AudioReader(path: path), path: other ?? path, workers: workers, segmentFrames: segmentFrames, tailFrames: 2000
    ) { CollectedSegment() }
    var samples: [Int16] = []
    var position: Int64 = 0
    while true {
      let got = reader.read(
        { span in unsafe span.withUnsafeBufferPointer { unsafe samples.append(contentsOf: $0) } },
        result: { segment in
          samples += segment.samples
        })
      position += Int64(got)
      let told = reader.position
      #expect(told == position)
      if got == 0 { break }
    }
    let past = reader.read({ _ in }, result: { _ in })
    #expect(past == 0)
    return (samples, reader.isParallel)
  }

  @Test(arguments: kinds)
  func segmentsMatchOneReaderToTheLastBit(format: AudioFormat) throws {
    let path = try make(format)
    let whole = try decode(path)
    for (workers, frames) in [(2, 30_000), (2, 12_345), (3, 20_000), (4, 16_000)] {
      let (samples, isParallel) = try segmented(path, workers: workers, segmentFrames: frames)
      let equal = samples == whole
      #expect(equal && isParallel, "\(workers) workers, \(frames) frames")
    }
  }

  @Test("workers that can't open the file leave all of it to the reader that has opened it")
  func missingFile() throws {
    let path = try make(Self.kinds[0])
    let (samples, isParallel) = try segmented(
      path, workers: 2, segmentFrames: 30_000, opening: folder("missing.flac"))
    let equal = try samples == decode(path)
    #expect(equal && !isParallel)
  }

  /// The end is in a segment, in a tail, just after a segment, or exactly at its end.
  @Test(arguments: [25_000, 24_900, 24_796, 24_700, 25_001])
  func theFileMayEndAnywhereInASegment(segmentFrames: Int) throws {
    for format in [Self.kinds[0], Self.kinds[6]] {
      let path = try make(format, frames: 100_000)
      let whole = try decode(path)
      let (samples, isParallel) = try segmented(path, workers: 2, segmentFrames: min(segmentFrames, 25_000))
      let equal = samples == whole
      #expect(equal && isParallel)
    }
  }

  @Test(arguments: [AudioCodec.vorbis, .opus, .mp3])
  func chainedStreamsAreSegmentedToo(codec: AudioCodec) throws {
    let format = AudioFormat(
      container: codec == .mp3 ? .mp3 : .ogg, codec: codec, sampleRate: 48_000, channels: 2)
    let bytes = try contents(try make(format, frames: 60_000))
    let path = try folder.file("joined", bytes + bytes + bytes)
    let (samples, isParallel) = try segmented(path, workers: 2, segmentFrames: 27_000)
    let equal = try samples == decode(path)
    #expect(equal && isParallel && samples.count == 360_000)
  }

  /// If the decoder drops something, a seek lands in a different place.
  @Test(arguments: kinds)
  func aDamagedFileMatchesOneReader(format: AudioFormat) throws {
    var bytes = try contents(try make(format))
    var generator = SeededGenerator(state: 3)
    for _ in 0..<4 {
      let place = Int.random(in: bytes.count / 4..<bytes.count * 3 / 4, using: &generator)
      for index in place..<min(place + 700, bytes.count) { bytes[index] = UInt8.random(in: 0...255, using: &generator) }
    }
    let path = try folder.file("damaged", bytes)
    let whole = try decode(path)
    for frames in [11_000, 23_333] {
      let equal = try segmented(path, workers: 2, segmentFrames: frames).samples == whole
      #expect(equal, "segments of \(frames)")
    }
  }

  @Test func aTruncatedFileMatchesOneReader() throws {
    for format in Self.kinds {
      let bytes = try contents(try make(format))
      let path = try folder.file("cut", Array(bytes.prefix(bytes.count * 2 / 3)))
      let equal = try segmented(path, workers: 2, segmentFrames: 17_000).samples == decode(path)
      #expect(equal, "\(format)")
    }
  }

  @Test func theWorkGetsTheSamplesThatFollowItsSegment() throws {
    let path = try make(Self.kinds[0], frames: 50_000)
    let whole = try decode(path)
    var reader = SegmentedReader(
      try AudioReader(path: path), path: path, workers: 2, segmentFrames: 12_000, tailFrames: 3000
    ) { CollectedSegment() }
    var ends: [Int] = []
    while reader.read(
      { _ in },
      result: { segment in
        let end = (segment.start * 2 + segment.samples.count)
        #expect(segment.tail == Array(whole[end..<min(end + 6000, whole.count)]))
        ends.append(end / 2)
      }) > 0
    {}
    #expect(ends == [12_000, 24_000, 36_000, 48_000, 50_000])
  }

  @Test func wavesAreSegmentedToo() throws {
    for bits in [8, 16] {
      let samples = (0..<100_001).map { Int16(truncatingIfNeeded: $0 &* 77) }
      let path = try folder.file("a.wav", wave(samples))
      let (found, isParallel) = try segmented(path, workers: 2, segmentFrames: 10_000 * bits / 8)
      let equal = try found == decode(path)
      #expect(equal && isParallel)
    }
    // Half as long as the header says.
    let path = try folder.file("cut.wav", Array(wave([Int16](repeating: 1, count: 100_000)).prefix(100_000)))
    let equal = try segmented(path, workers: 2, segmentFrames: 10_000).samples == decode(path)
    #expect(equal)
  }

  @Test func samplesThatAreNotFiniteAreCountedOnce() throws {
    var samples = [Float](repeating: 0.5, count: 100_000)
    // At the start of a segment, where the one before has its tail, and elsewhere.
    for place in [10, 10_000, 10_001, 20_000, 55_555, 99_999] { samples[place] = .nan }
    let path = try folder.file("f.wav", floatWave(samples))
    var reader = SegmentedReader(
      try AudioReader(path: path), path: path, workers: 2, segmentFrames: 10_000, tailFrames: 2000
    ) { CollectedSegment() }
    while reader.read({ _ in }, result: { _ in }) > 0 {}
    let (count, isParallel) = (reader.nonFiniteSamples, reader.isParallel)
    #expect(count == 6 && isParallel)
  }

  @Test func aSegmentThatDoesNotContinueTheLastIsDiscarded() throws {
    let path = try folder.file("a.wav", wave([Int16](repeating: 1, count: 100_000)))
    let changes = FileChanges(path: path)
    var reader = SegmentedReader(
      try AudioReader(path: path), path: path, workers: 2, segmentFrames: 10_000
    ) { ChangingSegment(changes) }
    var results = 0
    while reader.read({ _ in }, result: { _ in results += 1 }) > 0 {}
    let (position, isParallel) = (reader.position, reader.isParallel)
    #expect(results == 1 && position == 100_000 && !isParallel)
  }

  @Test func shortFilesAreReadByOneReader() throws {
    func isParallel(_ path: String, workers: Int = 2) throws -> Bool {
      SegmentedReader(
        try AudioReader(path: path), path: path, workers: workers, segmentFrames: 10_000
      ) { CollectedSegment() }.isParallel
    }
    let short = try make(Self.kinds[0], frames: 39_999)
    #expect(try !isParallel(short))
    let long = try make(Self.kinds[0], frames: 40_000)
    #expect(try isParallel(long) && !isParallel(long, workers: 1) && !isParallel(long, workers: 3))
  }

  @Test func stoppingHalfwayLeavesNothingBehind() throws {
    struct Enough: Error {}
    let path = try make(Self.kinds[0])
    for _ in 0..<20 {
      var reader = SegmentedReader(
        try AudioReader(path: path), path: path, workers: 4, segmentFrames: 15_000
      ) { CollectedSegment() }
      #expect(throws: Enough.self) { _ = try reader.read({ _ in }, result: { _ in throw Enough() }) }
    }
  }
}

/// Collects the samples of segments.
final class CollectedSegment: SegmentWork {
  struct Segment: Sendable {
    var start = 0
    var samples: [Int16] = []
    var tail: [Int16] = []
  }

  private var segment = Segment()

  func begin(at frame: Int64) { segment = Segment(start: Int(frame)) }

  func append(_ samples: Span<Int16>) { for index in samples.indices { segment.samples.append(samples[index]) } }

  func finish(tail: Span<Int16>) -> Segment {
    for index in tail.indices { segment.tail.append(tail[index]) }
    return segment
  }
}

/// A file that changes when its first segment has its tail, before the second one is decoded by another worker.
private final class FileChanges: Sendable {
  private let path: String
  private let (hasSecond, hasTail) = (DispatchSemaphore(value: 0), DispatchSemaphore(value: 0))

  init(path: String) { self.path = path }

  func begin(at frame: Int64) {
    guard frame > 0 else { return hasSecond.wait() }
    hasSecond.signal()
    hasTail.wait()
    guard let file = FileHandle(forWritingAtPath: path) else { return }
    file.seek(toFileOffset: 44 + 2 * 10_000)
    file.write(Data(repeating: 2, count: 2 * 90_000))
  }

  func finish() { hasTail.signal() }
}

private final class ChangingSegment: SegmentWork {
  private let changes: FileChanges

  init(_ changes: FileChanges) { self.changes = changes }

  func begin(at frame: Int64) { changes.begin(at: frame) }
  func append(_ samples: Span<Int16>) {}
  func finish(tail: Span<Int16>) { changes.finish() }
}
