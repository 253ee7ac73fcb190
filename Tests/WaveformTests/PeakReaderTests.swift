import Foundation
import Randomness
import Terms
import Testing

@testable import Waveform

/// Peaks alone are read in another way than peaks with other measures, from the pyramid and from samples. Both must
/// agree.
struct PeakReaderTests {
  /// Writes a finished mono pyramid with random peaks, without the samples: several upper blocks of these would take
  /// minutes to make.
  private func withPyramid(points: Int, _ body: (PyramidFile) throws -> Void) throws {
    var random = TestRandom(for: points)
    let layout = try PyramidLayout(sampleRate: 44_100, channels: 1)
    let frames = Int64(points) * 256 - 100
    var pages = [UInt64](repeating: 0, count: Int(layout.pages(frames: frames) - 1) * PyramidLayout.pageWords)
    var level = (0..<points).map { _ in
      let (one, other) = (Int16.random(in: .min ... .max, using: &random), Int16.random(in: -300...300, using: &random))
      return WaveformPoint(
        minimum: min(one, other), maximum: max(one, other), rms: .random(in: 0...9000, using: &random),
        average: .random(in: 0...9000, using: &random))
    }
    for number in 0..<PyramidLayout.levels {
      for (index, point) in level.enumerated() {
        let block = PyramidLayout.block(level: number, point: Int64(index))
        let page = layout.page(upper: number >= PyramidLayout.levelsPerBlock, block: block)
        let word = PyramidLayout.word(level: number, point: Int64(index))
        pages[Int(page - 1) * PyramidLayout.pageWords + word] = point.word.littleEndian
      }
      level = stride(from: 0, to: level.count, by: 2).map { first in
        let pair = level[first..<min(first + 2, level.count)]
        return WaveformPoint(
          minimum: pair.map(\.minimum).min() ?? 0, maximum: pair.map(\.maximum).max() ?? 0,
          rms: .random(in: 0...9000, using: &random), average: .random(in: 0...9000, using: &random))
      }
    }
    PyramidLayout.seal(&pages, from: 1)
    let bytes = (layout.header(totalFrames: frames) + pages).flatMap { Int64(bitPattern: $0).littleEndianBytes }
    try withTemporaryPath { path in
      try Data(bytes).write(to: URL(filePath: path))
      try body(try PyramidFile(path: path))
    }
  }

  /// Scales of all sizes, a third of them with whole levels.
  private func randomQuery(_ extent: WaveformExtent, using random: inout TestRandom) -> WaveformQuery {
    let seconds = Double(extent.availableFrames) / Double(extent.sampleRate)
    var query = WaveformQuery(start: .random(in: 0...seconds, using: &random), measures: .peak)
    if Bool.random(using: &random) {
      query.end = (query.start ?? 0) + .random(in: 0.001...max(seconds, 0.001), using: &random)
    }
    query.resolution =
      switch Int.random(in: 0..<3, using: &random) {
      case 0: .scale(256 << Int.random(in: 0...16, using: &random))
      case 1: .scale(Int(exp2(Double.random(in: 8...24, using: &random))))
      default: .width(.random(in: 1...2000, using: &random))
      }
    query.bits = Bool.random(using: &random) ? .eight : .sixteen
    return query
  }

  @Test(
    "peaks alone equal those with other measures, at every scale and with every instruction set",
    arguments: [1, 255, 256, 65_536, 140_001])
  func pyramid(points: Int) throws {
    var random = TestRandom(for: points)
    try withPyramid(points: points) { file in
      for number in 0..<200 {
        var extent = WaveformExtent(finished: file)
        if number % 4 == 0 {
          extent.isComplete = false
          extent.availableFrames = .random(in: 0...extent.availableFrames, using: &random)
        }
        var query = randomQuery(extent, using: &random)
        let window = try WaveformWindow(query, of: extent)
        // A plain slice of very many pixels takes long.
        guard !window.needsSamples, window.pixelCount < 20_000 else { continue }
        query.measures = [.peak, .rms]
        let plain = try file.slice(try WaveformWindow(query, of: extent))
        for loops in PeakLoops.all {
          #expect(try file.slice(window, by: loops).data == plain.data, "\(query), \(extent)")
        }
      }
    }
  }

  @Test("the loudness of whole levels equals the plain one", arguments: [1, 2])
  func loudness(channels: Int) throws {
    var random = TestRandom(for: channels)
    let recording = Recording.random(frames: 200_000, channels: channels, seed: TestSeed.of(channels))
    try recording.withPyramid { file in
      for _ in 0..<100 {
        var query = randomQuery(recording.extent, using: &random)
        query.resolution = .scale(256 << Int.random(in: 0...9, using: &random))
        query.channels = [.mix, .split, .channel(channels - 1)].randomElement(using: &random) ?? .mix
        query.measures =
          [[.rms], [.average], [.peak, .rms], [.peak, .rms, .average]].randomElement(using: &random) ?? .rms
        let window = try WaveformWindow(query, of: recording.extent)
        var plain = WaveformSlice(empty: window)
        try file.read(window, into: &plain)
        #expect(try file.slice(window) == plain, "\(query)")
      }
    }
  }

  @Test("the same for each lane", arguments: [2, 3])
  func lanes(channels: Int) throws {
    var random = TestRandom(for: channels)
    let recording = Recording.random(frames: 200_000, channels: channels, seed: TestSeed.of(channels))
    try recording.withPyramid { file in
      for channelSelection in [ChannelSelection.mix, .split, .channel(channels - 1)] {
        for _ in 0..<20 {
          var query = randomQuery(recording.extent, using: &random)
          query.channels = channelSelection
          let peaks = try recording.slice(query, of: file)
          query.measures = [.peak, .average]
          #expect(try recording.slice(query, of: file).data == peaks.data, "\(query)")
        }
      }
    }
  }

  @Test("the same from samples in pieces, also if the last pixel is cut short or missing", arguments: [1, 2, 3])
  func samples(channels: Int) throws {
    var random = TestRandom(for: channels)
    let recording = Recording.random(frames: 5001, channels: channels, seed: TestSeed.of(channels))
    for _ in 0..<200 {
      var query = WaveformQuery(
        start: .random(in: 0...0.6, using: &random), resolution: .scale(.random(in: 1...255, using: &random)))
      query.channels = [.mix, .split, .channel(channels - 1)].randomElement(using: &random) ?? .mix
      query.bits = Bool.random(using: &random) ? .eight : .sixteen
      let window = try WaveformWindow(query, of: recording.extent)
      var samples = recording.samples(window.frameRange)
      if Bool.random(using: &random) {
        samples.removeLast(.random(in: 0...samples.count / channels, using: &random) * channels)
      }
      query.measures = [.peak, .rms]
      let plain = WaveformSlice(try WaveformWindow(query, of: recording.extent), samples: samples.span)
      for loops in PeakLoops.all {
        var pieces = SlicedSamples(window, by: loops)
        var start = 0
        while start < samples.count {
          let end = min(start + .random(in: 1...2000, using: &random) * channels, samples.count)
          pieces.append(samples.span.extracting(start..<end))
          start = end
        }
        let peaks = pieces.finish()
        #expect(peaks.data == plain.data && peaks.length == plain.length, "\(query)")
      }
    }
  }
}
