import Randomness
import Testing

@testable import Waveform

/// Compares random recordings, windows, scales, channels, measures, and bits with a literal implementation of the
/// rules.
struct SlicePropertyTests {
  private static let lengths = [1, 255, 256, 257, 511, 1000, 65_536, 65_537, 131_500]

  private func randomQuery(_ recording: Recording, using generator: inout SeededGenerator) -> WaveformQuery {
    let seconds = Double(recording.frames) / Double(recording.sampleRate)
    var query = WaveformQuery()
    if Bool.random(using: &generator) { query.start = .random(in: 0...seconds * 1.1, using: &generator) }
    if Bool.random(using: &generator) {
      query.end = (query.start ?? 0) + .random(in: 1e-6...seconds, using: &generator)
    }
    switch Int.random(in: 0..<5, using: &generator) {
    case 0: query.resolution = .width(.random(in: 1...20, using: &generator))
    case 1: query.resolution = .width(.random(in: 1...3000, using: &generator))
    case 2: query.resolution = .scale(256 << Int.random(in: 0...16, using: &generator))
    case 3: query.resolution = .scale(.random(in: 7...255, using: &generator))
    default: query.resolution = .scale(.random(in: 256...9000, using: &generator))
    }
    query.channels = [.mix, .split, .channel(recording.channels - 1)].randomElement(using: &generator) ?? .mix
    query.measures = Measures(rawValue: .random(in: 1...7, using: &generator))
    query.bits = Bool.random(using: &generator) ? .eight : .sixteen
    return query
  }

  @Test(arguments: [1, 2, 3, 5, 6])
  func everySliceFollowsTheRules(channels: Int) throws {
    var generator = SeededGenerator(state: TestSeed.of(channels))
    for frames in Self.lengths {
      let recording = Recording.random(frames: frames, channels: channels, seed: UInt64(frames))
      try recording.withPyramid { pyramid in
        // Long recordings test the upper levels, and are slow to check.
        for _ in 0..<(frames > 60_000 ? 4 : 20) {
          let query = randomQuery(recording, using: &generator)
          let slice = try recording.slice(query, of: pyramid)
          if let difference = difference(slice, from: recording) {
            Issue.record("\(frames) frames, \(query): \(difference)")
          }
          guard !slice.window.needsSamples else { continue }
          let pixels = Int.random(in: 1...400, using: &generator)
          #expect(try WaveformSlice(slice.window, inPartsOf: pixels) { try pyramid.slice($0) } == slice, "\(query)")
        }
      }
    }
  }

  @Test func aSliceIsAPartOfTheWholeAtItsScale() throws {
    var generator = SeededGenerator(state: TestSeed.of(3))
    let recording = Recording.random(frames: 30_003, channels: 2, seed: 5)
    try recording.withPyramid { pyramid in
      for _ in 0..<30 {
        var query = randomQuery(recording, using: &generator)
        let part = try recording.slice(query, of: pyramid)
        // The whole would have more pixels than permitted.
        if part.window.scale == 1 { continue }
        (query.start, query.end, query.resolution) = (nil, nil, .scale(part.window.scale))
        let whole = try recording.slice(query, of: pyramid)
        let first = Int(part.window.firstPixel) * part.lanes
        let count = part.length * part.lanes
        guard count > 0 else { continue }
        if !part.data.isEmpty { #expect(part.data == Array(whole.data[2 * first..<2 * (first + count)])) }
        if !part.rms.isEmpty { #expect(part.rms == Array(whole.rms[first..<first + count])) }
        if !part.average.isEmpty { #expect(part.average == Array(whole.average[first..<first + count])) }
      }
    }
  }

  @Test(arguments: [100, 256, 300, 441, 1024, 5000])
  func adjacentSlicesJoinWithoutASeam(scale: Int) throws {
    let recording = Recording.random(frames: 90_001, channels: 2, seed: 11)
    try recording.withPyramid { pyramid in
      var query = WaveformQuery(resolution: .scale(scale), channels: .split)
      let whole = try recording.slice(query, of: pyramid)
      var joined: [Int16] = []
      var next: Int64 = 0
      while next < Int64(whole.length) {
        query.start = Double(next * Int64(scale)) / Double(recording.sampleRate)
        query.end = Double((next + 7) * Int64(scale)) / Double(recording.sampleRate)
        let part = try recording.slice(query, of: pyramid)
        #expect(part.window.firstPixel == next)
        guard part.length > 0 else { break }
        joined += part.data
        next += Int64(part.length)
      }
      #expect(joined == whole.data)
    }
  }

  @Test func aPowerOfTwoIsALevelRoundedOnce() throws {
    let recording = Recording.random(frames: 70_001, channels: 2, seed: 2)
    let lane = referenceLane(recording, mix: true, channel: 0)
    try recording.withPyramid { pyramid in
      for scale in [256, 1024, 65_536, 1 << 20] {
        let slice = try recording.slice(WaveformQuery(resolution: .scale(scale), measures: .rms), of: pyramid)
        for pixel in 0..<slice.length {
          let exact = ReferencePixel(lane[referenceFrames(pixel: pixel, scale: scale, frames: lane.count)])
          #expect(Int(slice.rms[pixel]) == Int(exact.rms.rounded()))
        }
      }
    }
  }

  @Test(arguments: [1, 255, 256, 257])
  func fullScaleAndSilenceKeepTheirValues(frames: Int) throws {
    for value in [Int16.min, .max, 0, -1] {
      let samples = [Int16](repeating: value, count: 2 * frames)
      let recording = Recording(sampleRate: 44_100, channels: 2, samples: samples)
      try recording.withPyramid { pyramid in
        var query = WaveformQuery(resolution: .scale(256), channels: .split, measures: [.peak, .rms, .average])
        let slice = try recording.slice(query, of: pyramid)
        #expect(slice.data.allSatisfy { $0 == value })
        #expect(slice.rms.allSatisfy { $0 == value.magnitude })
        #expect(slice.average.allSatisfy { $0 == value.magnitude })
        query.bits = .eight
        let eight = try recording.slice(query, of: pyramid)
        #expect(eight.data.allSatisfy { $0 == value / 256 })
        #expect(eight.rms.allSatisfy { $0 <= 127 })
        #expect(eight.length == (frames + 255) / 256)
      }
    }
  }
}
