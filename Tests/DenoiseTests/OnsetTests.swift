import Glibc
import Testing

@testable import Denoise

@Suite struct OnsetTests {
  private let rate = 16_000
  private var frame: AnalysisFrame { AnalysisFrame(sampleRate: rate) }
  private var noise: [Float] { TestSignals.noise(8 * rate, level: 0.005) }

  /// Adds clicks of 4 ms.
  private func clicks(at places: [Int], to samples: [Float]) -> [Float] {
    var samples = samples
    for place in places {
      for index in 0..<(rate / 250) { samples[place + index] += 0.5 * exp(-Float(index) / Float(rate) / 0.0007) }
    }
    return samples
  }

  private func clean(_ samples: [Float], _ settings: DenoiseSettings = DenoiseSettings()) throws -> [Float] {
    let cleaning = Cleaning(sampleRate: rate, settings: settings)
    return cleaning.clean(samples, try cleaning.profile(of: Array(noise[..<rate])))
  }

  /// The level of the stretches from some milliseconds before each place.
  private func level(_ samples: [Float], _ milliseconds: Range<Int>, before places: [Int]) -> Double {
    TestSignals.levelDB(
      places.flatMap {
        samples[($0 - milliseconds.upperBound * rate / 1000)..<($0 - milliseconds.lowerBound * rate / 1000)]
      })
  }

  @Test("noise stays removed up to a millisecond before a click", arguments: DenoiseMethod.allCases)
  func before(method: DenoiseMethod) throws {
    let places = (0..<8).map { 2 * rate + $0 * 7919 }
    let output = try clean(clicks(at: places, to: noise), DenoiseSettings(method: method))
    let usual = level(output, 100..<200, before: places)
    #expect(level(output, 1..<10, before: places) < usual + 4)
    #expect(level(output, 10..<50, before: places) < usual + 3)
  }

  @Test func aClickKeepsItsLevel() throws {
    let places = (0..<8).map { 2 * rate + $0 * 7919 }
    let samples = clicks(at: places, to: noise), output = try clean(samples)
    let (before, after) = (level(samples, -3..<0, before: places), level(output, -3..<0, before: places))
    #expect(abs(after - before) < 0.2, "\(after - before) dB")
  }

  @Test("clicks around the boundary of a segment are like others", arguments: Array(-5...2))
  func boundary(hops: Int) throws {
    let segment = SegmentGrid(frame: frame, channels: 1).segmentHops
    let places = [0, 17, frame.hop - 1].map { (segment + hops) * frame.hop + $0 }
    for place in places {
      let output = try clean(clicks(at: [place], to: noise))
      #expect(level(output, 1..<20, before: [place]) < level(output, 100..<300, before: [place]) + 5)
    }
  }

  @Test func piecesThreadsAndStartsDoNotMatter() throws {
    let samples = clicks(at: (0..<90).map { 3000 + $0 * 1300 }, to: noise)
    var cleaning = Cleaning(sampleRate: rate)
    let profile = try cleaning.profile(of: Array(noise[..<3000]))
    let whole = cleaning.clean(samples, profile)
    cleaning.usesSecondThread = true
    #expect(cleaning.clean(samples, profile, pieces: [1, 999, 40_000]) == whole)
    let part = cleaning.clean(70_001..<samples.count, of: samples, NoiseCourse(profile))
    #expect(part == Array(whole[70_001...]))
  }

  @Test("the denoised sound and the residue add up to the original", arguments: DenoiseMethod.allCases)
  func residue(method: DenoiseMethod) throws {
    let samples = clicks(at: [20_000, 30_000, 49_152, 49_160], to: noise)
    let denoised = try clean(samples, DenoiseSettings(method: method))
    let residue = try clean(samples, DenoiseSettings(method: method, output: .residue))
    #expect(TestSignals.largestDifference(TestSignals.sum(denoised, residue), samples) < 2e-6)
  }

  // MARK: Where onsets are

  private func onsets(_ lanes: [[Float]]) -> [Onset] {
    let count = lanes[0].count / frame.hop
    var block = FrameBlock(frame: frame, channels: lanes.count, count: count)
    var position = 0
    #expect(block.fill(from: TestSignals.interleaved(lanes).span, &position))
    let rows = RowRing(width: 1, count: count), finder = OnsetFinder(frame: frame, channels: lanes.count)
    finder.find(in: block, rows)
    return finder.onsets(in: 0..<Int64(count), rows)
  }

  @Test("an onset is found at its first sample", arguments: [4000, 4032, 4223, 4224, 5001])
  func found(place: Int) {
    let onset = Onset(frame: Int64(place / frame.hop), offset: place % frame.hop)
    #expect(onsets([clicks(at: [place], to: Array(noise[..<19_200]))]) == [onset])
    let other = Array(noise[19_200..<38_400])
    #expect(onsets([other, clicks(at: [place], to: Array(noise[..<19_200]))]) == [onset])
  }

  @Test func ofTwoThatShareFramesTheLouderCounts() {
    let quiet = Array(noise[..<19_200]).map { $0 / 20 }
    var samples = quiet
    samples[9000] += 0.01
    samples[9300] += 0.5
    #expect(onsets([samples]) == [Onset(frame: 48, offset: 84)])
  }

  @Test("nothing else is an onset")
  func others() {
    let noise = Array(self.noise[..<19_200]), silence = [Float](repeating: 0, count: 19_200)
    #expect(onsets([noise]).isEmpty)
    #expect(onsets([silence]).isEmpty)
    // There is no noise before it.
    #expect(onsets([clicks(at: [5000], to: silence)]).isEmpty)
    let swelling = (0..<19_200).map { index in
      0.3 * sin(2 * Float.pi * 440 * Float(index) / 16_000) * min(1, max(0, Float(index - 4000) / 400))
    }
    #expect(onsets([TestSignals.sum(noise, swelling)]).isEmpty)
    // A click that is lower than the rumble.
    let rumble = TestSignals.tone(19_200, hertz: 20, sampleRate: 16_000, amplitude: 0.3)
    #expect(onsets([clicks(at: [5000], to: rumble)]).isEmpty)
  }
}
