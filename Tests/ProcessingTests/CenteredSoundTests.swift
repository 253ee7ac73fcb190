import AudioIO
import Denoise
import Foundation
import SoundFiles
import Terms
import Testing
import Workers

@testable import Processing

struct CenteredSoundTests {
  private let folder: TemporaryFolder
  private let rate = 8000

  init() throws { folder = try TemporaryFolder() }

  /// Noise with bursts of a tone, in whole cycles.
  private func sound(seconds: Double, seed: UInt64 = 4) -> [Float] {
    var generator = SeededGenerator(state: seed)
    return (0..<Int(seconds * Double(rate))).map { frame in
      let isSounding = frame / 6000 % 2 == 1
      let tone = isSounding ? 0.2 * sin(2 * Float.pi * 200 * Float(frame) / Float(rate)) : 0
      return Float.random(in: -0.02...0.02, using: &generator) + tone
    }
  }

  private func write(_ channels: [[Float]], to name: String = "in") throws {
    let samples = channels[0].indices.flatMap { frame in channels.map { $0[frame] } }
    _ = try folder.file(name, floatWave(samples, channels: channels.count))
  }

  /// Returns the centered samples of some frames.
  private func centered(
    _ name: String = "in", _ frames: Range<Int64>? = nil, within range: Range<Int64> = 0..<(.max), piece: Int64 = .max
  ) throws -> (samples: [Float], warning: Warning?) {
    var sound = CenteredSound(try AudioReader(path: folder(name)))
    if let frames { try sound.seek(to: frames.lowerBound, within: range) }
    var samples: [Float] = []
    let end = frames?.upperBound ?? .max
    while sound.position < end {
      let got = sound.read(upTo: min(piece, end - sound.position)) { _, centered in
        for index in centered.indices { samples.append(centered[index]) }
      }
      if got == 0 { break }
    }
    return (samples, sound.warning)
  }

  private func mean(_ samples: some Collection<Float>) -> Double {
    samples.reduce(0.0) { $0 + Double($1) } / Double(samples.count)
  }

  @Test("sound without an offset is unchanged", arguments: [0.4, 3, 12])
  func unchanged(seconds: Double) throws {
    let samples = sound(seconds: seconds)
    try write([samples, samples.reversed()])
    let (all, warning) = try centered()
    #expect(all == samples.indices.flatMap { [samples[$0], samples[samples.count - 1 - $0]] })
    #expect(warning == nil)
  }

  @Test("an offset is removed from the channel that has one", arguments: [0.005, 0.05, -0.2] as [Float])
  func removed(offset: Float) throws {
    let samples = sound(seconds: 9)
    try write([samples, samples.map { $0 + offset }])
    let (all, warning) = try centered()
    let (left, right) = (Channel(0, of: 2, in: all).samples, Channel(1, of: 2, in: all).samples)
    #expect(left == samples)
    #expect(abs(mean(right)) < 1e-4)
    #expect(zip(right, samples).allSatisfy { abs($0 - $1) < 2e-3 })
    #expect(warning?.code == "dc_offset")
    let detail = try #require(warning?.detail)
    #expect(detail.contains(" % of full scale in channel 1.") && !detail.contains("channel 0"))
    let percent = try #require(detail.split(separator: " ").compactMap { Float($0) }.first)
    #expect(abs(percent / 100 - offset) < 3e-4)
  }

  @Test func anOffsetThatDriftsIsFollowed() throws {
    let samples = sound(seconds: 20)
    try write([samples.indices.map { samples[$0] + 0.1 + 0.05 * Float($0) / Float(samples.count) }])
    let all = try centered().samples
    let errors = (20_000..<140_000).map { all[$0] - samples[$0] }
    #expect(errors.allSatisfy { abs($0) < 0.01 })
    #expect(zip(errors, errors.dropFirst()).allSatisfy { abs($0 - $1) < 1e-5 }, "no jumps between blocks")
  }

  @Test func aStepSpoilsOnlyItsSurroundings() throws {
    let samples = sound(seconds: 16)
    try write([samples.indices.map { samples[$0] + ($0 < 64_000 ? 0.1 : -0.05) }])
    let all = try centered().samples
    for part in [0..<60_000, 68_000..<128_000] {
      #expect(part.allSatisfy { abs(all[$0] - samples[$0]) < 0.01 })
    }
  }

  @Test(
    "a part has the same samples as in the whole, in pieces of any size",
    arguments: [(0, 100), (30_001, 50_000), (90_000, 99_999)])
  func part(start: Int64, end: Int64) throws {
    try write([sound(seconds: 12).map { $0 + 0.03 }, sound(seconds: 12, seed: 8)])
    let whole = try centered().samples
    for piece in [Int64.max, 777] {
      let part = try centered("in", start..<end, piece: piece).samples
      #expect(part == Array(whole[Int(2 * start)..<Int(2 * min(end, 96_000))]))
    }
  }

  @Test func nothingOutsideTheRangeIsNeeded() throws {
    let samples = sound(seconds: 12)
    try write([samples.indices.map { samples[$0] + (24_000..<36_000 ~= $0 ? 0.1 : -0.3) }])
    let part = try centered("in", 25_000..<36_000, within: 24_500..<36_000).samples
    #expect(part.count == 11_000 && zip(part, samples[25_000...]).allSatisfy { abs($0 - $1) < 0.01 })
  }

  @Test("behind the end, which is within a block, sound can be read again")
  func again() throws {
    let samples = sound(seconds: 9.1)
    try write([samples])
    var centered = CenteredSound(try AudioReader(path: folder("in")))
    for _ in 0..<2 {
      var found: [Float] = []
      while centered.read({ _, part in for index in part.indices { found.append(part[index]) } }) > 0 {}
      #expect(found == samples)
      try centered.seek(to: 0)
    }
  }

  @Test("an offset needs four blocks, and only what is certain of it is removed")
  func certainty() {
    #expect(SlowMean.offset([0.1, 0.1, 0.1]) == 0 && abs(SlowMean.offset([0.1, 0.1, 0.1, 0.1]) - 0.1) < 1e-6)
    for (spread, share) in [(0.0003, 1), (0.007_27, 0.5), (0.02, 0)] as [(Float, Float)] {
      let means = (0..<16).map { 0.05 + ($0.isMultiple(of: 2) ? spread : -spread) }
      #expect(abs(SlowMean.offset(means) - share * 0.05) < 0.001, "\(spread)")
    }
  }

  @Test("numbers that no mean can be taken of do no harm")
  func huge() throws {
    var samples = sound(seconds: 6)
    for index in 8000..<40_000 { samples[index] = 3e38 }
    try write([samples])
    #expect(try centered().samples.allSatisfy { $0.isFinite })
  }

  @Test("an offset is no longer in the cleaned sound, which is otherwise the same", arguments: [0.05, 0.2] as [Float])
  func cleaned(offset: Float) throws {
    let samples = sound(seconds: 9)
    try write([samples])
    try write([samples.map { $0 + offset }], to: "moved")
    var results: [[Float]] = []
    for name in ["in", "moved"] {
      let outcome = try DenoiseRecording(
        source: folder(name), output: folder(name + ".out"), pyramid: nil,
        parameters: DenoiseParameters(noise: .region(start: 0, end: 0.7))
      ).run { _ in }
      #expect(outcome.warnings.map(\.code) == (name == "in" ? [] : ["dc_offset"]))
      results.append(try decodeFloat(folder(name + ".out")))
    }
    let error = zip(results[0], results[1]).reduce(0.0) { $0 + pow(Double($1.0 - $1.1), 2) }
    let power = results[0].reduce(0.0) { $0 + Double($1 * $1) }
    #expect(10 * log10(error / power) < -50)
    #expect(abs(mean(results[1])) < 3e-5)
  }

  @Test func withoutReductionAnOffsetStays() throws {
    let samples = sound(seconds: 9).map { $0 + 0.1 }
    try write([samples])
    let outcome = try DenoiseRecording(
      source: folder("in"), output: folder("out"), pyramid: nil,
      parameters: DenoiseParameters(
        noise: .region(start: 0, end: 0.7), settings: DenoiseSettings(reductionDB: 0))
    ).run { _ in }
    #expect(outcome.warnings.isEmpty)
    #expect(zip(try decodeFloat(folder("out")), samples).allSatisfy { abs($0 - $1) < 1e-6 })
  }
}

private struct Channel {
  let samples: [Float]

  init(_ channel: Int, of count: Int, in all: [Float]) {
    samples = stride(from: channel, to: all.count, by: count).map { all[$0] }
  }
}
