import Glibc
import Terms
import Testing

@testable import Denoise

extension NoiseRegion {
  fileprivate var start: Double { timed.start }
  fileprivate var end: Double { timed.end }
}

@Suite struct NoiseRegionFinderTests {
  private func find(
    _ samples: [Float], sampleRate: Int = 16_000, channels: Int = 1, pieces: [Int] = [65_536]
  ) -> [NoiseRegion] {
    let shorts = samples.map { Int16(max(-32768, min(32767, ($0 * 32768).rounded()))) }
    var finder = NoiseRegionFinder(sampleRate: sampleRate, channels: channels)
    var (position, turn) = (0, 0)
    while position < shorts.count {
      let end = min(shorts.count, position + pieces[turn % pieces.count] * channels)
      finder.append(shorts.span.extracting(position..<end))
      (position, turn) = (end, turn + 1)
    }
    return finder.finish()
  }

  /// Returns syllables: a buzz that comes and goes four times a second, never twice in a row at the same pitch.
  private func speech(seconds: Double, sampleRate: Int = 16_000, rate: Double = 4) -> [Float] {
    (0..<Int(seconds * Double(sampleRate))).map { index in
      let time = Double(index) / Double(sampleRate)
      let syllable = (time * rate).rounded(.down)
      let place = time * rate - syllable
      guard place < 0.75 else { return 0 }
      let turn = time * (110 + 17 * syllable.truncatingRemainder(dividingBy: 5))
      return Float(0.4 * sin(.pi * place / 0.75) * (turn - turn.rounded(.down) - 0.5))
    }
  }

  private func mixed(_ speech: [Float], from start: Double, noise: [Float], sampleRate: Int = 16_000) -> [Float] {
    var samples = noise
    let first = Int(start * Double(sampleRate))
    for index in speech.indices where first + index < samples.count { samples[first + index] += speech[index] }
    return samples
  }

  @Test("the best region is where there is only noise", arguments: [8000, 16_000, 44_100, 96_000])
  func bestRegion(sampleRate: Int) throws {
    let noise = TestSignals.noise(7 * sampleRate, level: 0.01)
    for (start, quiet) in [(0.0, 5.43...7.0), (1.5, 0...1.5)] {
      let samples = mixed(
        speech(seconds: 5.5, sampleRate: sampleRate), from: start, noise: noise, sampleRate: sampleRate)
      let best = try #require(find(samples, sampleRate: sampleRate).first)
      #expect(quiet.contains(best.start) && quiet.contains(best.end), "\(best)")
      #expect(abs(best.level + 40) < 0.5 && best.score > 0.6, "\(best)")
    }
  }

  /// Noise of −40 dBFS whose level sways by 8 dB.
  private func swayingNoise(seconds: Int) -> [Float] {
    let noise = TestSignals.noise(seconds * 16_000, level: 0.01)
    return noise.indices.map { noise[$0] * Float(pow(10, 0.2 * sin(2 * .pi * 1.3 * Double($0) / 16_000))) }
  }

  @Test("a steady gap in louder noise isn't the noise of the rest")
  func gaps() throws {
    var samples = TestSignals.noise(30 * 16_000, level: 0.01)
    for index in samples.indices where index % 25_600 >= 16_000 { samples[index] *= 0.45 }
    let best = try #require(find(samples).first)
    #expect(abs(best.level + 40) < 1, "\(best)")
  }

  @Test("three steady gaps aren't the noise of the rest either")
  func severalGaps() throws {
    var samples = swayingNoise(seconds: 9)
    let steady = TestSignals.noise(9 * 16_000, level: 0.01)
    for (start, level) in zip([1.0, 3, 5, 7], [0.45, 0.45, 0.45, 1] as [Float]) {
      for index in Int(start * 16_000)..<Int((start + 1.2) * 16_000) { samples[index] = level * steady[index] }
    }
    let best = try #require(find(samples).first)
    #expect(best.start >= 6.9 && best.end <= 8.3, "\(best)")
  }

  @Test("the hiss before a microphone is switched on isn't the noise of the rest, although it is quieter")
  func hiss() throws {
    var samples = swayingNoise(seconds: 30)
    for index in 0..<(3 * 16_000) { samples[index] *= 0.01 }
    let best = try #require(find(samples).first)
    #expect(best.start > 2.9, "\(best)")
  }

  @Test func aPauseOfSevenTenthsIsFoundIfThereIsNothingLonger() throws {
    let noise = TestSignals.noise(7 * 16_000, level: 0.01)
    let before = mixed(speech(seconds: 3), from: 0, noise: noise)
    let samples = mixed(speech(seconds: 3.3), from: 3.7, noise: before)
    let best = try #require(find(samples).first)
    #expect(best.start >= 2.9 && best.end <= 3.75 && best.end - best.start < 0.6, "\(best)")
  }

  @Test func withoutSteadyNoiseThereIsNoRegion() {
    let samples = mixed(speech(seconds: 6, rate: 7), from: 0, noise: TestSignals.noise(6 * 16_000, level: 0.0002))
    #expect(find(samples) == [])
  }

  @Test func regionsAreInsideTheRecordingDisjointAndBestFirst() {
    var samples = TestSignals.noise(60 * 16_000, level: 0.01)
    for second in stride(from: 2, to: 60, by: 4) {
      samples = mixed(speech(seconds: 2), from: Double(second), noise: samples)
    }
    let regions = find(samples)
    #expect((10...20).contains(regions.count))
    #expect(zip(regions, regions.dropFirst()).allSatisfy { $0.score >= $1.score })
    let inOrder = regions.sorted { $0.start < $1.start }
    #expect(zip(inOrder, inOrder.dropFirst()).allSatisfy { $0.end <= $1.start })
    #expect(regions.allSatisfy { $0.start >= 0 && $0.end <= 60 && $0.start < $0.end })
    #expect(regions.prefix(5).allSatisfy { abs($0.level + 40) < 1 })
  }

  @Test func steadyNoiseMakesARegionLonger() throws {
    let best = try #require(find(TestSignals.noise(20 * 16_000, level: 0.01)).first)
    #expect((2...5).contains(best.end - best.start), "\(best)")
  }

  @Test func theQuieterOfTwoSteadyStretchesIsBetter() throws {
    let hum = (0..<(3 * 16_000)).map { 0.3 * Float(sin(2 * .pi * 440 * Double($0) / 16_000)) }
    let samples = mixed(hum, from: 3, noise: TestSignals.noise(6 * 16_000, level: 0.003))
    let best = try #require(find(samples).first)
    #expect(best.end <= 3.05, "\(best)")
  }

  @Test func digitalSilenceIsNoRegion() throws {
    #expect(find([Float](repeating: 0, count: 5 * 16_000)) == [])
    let samples = [Float](repeating: 0, count: 32_000) + TestSignals.noise(32_000, level: 0.01)
    let regions = find(samples)
    #expect(!regions.isEmpty && regions.allSatisfy { $0.start >= 1.97 && $0.level > -41 })
    #expect(find(samples.map { $0 == 0 ? 1 / 32768 : $0 }).allSatisfy { $0.start >= 1.97 })
    // Noise that stops before it is long enough.
    #expect(find((0..<10).flatMap { _ in samples[32_000..<36_800] + samples[..<1600] }) == [])
  }

  @Test("digital silence with an offset is no region, whatever the other channel has")
  func offset() {
    let noise = TestSignals.noise(3 * 16_000, level: 0.01)
    let (left, right) = ([Float](repeating: 0.25, count: 3 * 16_000), [Float](repeating: -0.5, count: 3 * 16_000))
    #expect(find(left) == [])
    #expect(find(TestSignals.interleaved([left, right]), channels: 2) == [])
    #expect(find(TestSignals.interleaved([left, noise]), channels: 2) != [])
    #expect(find(left + noise).allSatisfy { $0.start >= 2.97 })
  }

  @Test(
    "at every length, the regions end within the recording and are long enough to learn from",
    arguments: [8000, 44_100, 48_000])
  func everyLength(sampleRate: Int) {
    let samples = TestSignals.noise(12 * sampleRate, level: 0.01).map { Int16($0 * 32768) }
    let least = NoiseProfile.minimumFrames(sampleRate: sampleRate)
    var finder = NoiseRegionFinder(sampleRate: sampleRate, channels: 1)
    var (total, ends) = (0, 0)
    for hundredths in 30...1200 {
      let end = hundredths * sampleRate / 100
      finder.append(samples.span.extracting(total..<end))
      total = end
      for region in finder.regions {
        // As it comes back from a client, in seconds.
        let asked = NoiseSource.Region(region).frames(sampleRate: sampleRate, total: Int64(total))
        guard asked == region.frames, region.frames.upperBound <= total, region.frames.count >= least else {
          Issue.record("\(region) of \(total) frames")
          return
        }
        if region.frames.upperBound == total { ends += 1 }
      }
    }
    #expect(ends > 100, "a third of the recordings end before their last hop does")
  }

  @Test func outOfPhaseAndSingleChannelNoiseCounts() throws {
    let noise = TestSignals.noise(6 * 16_000, level: 0.01)
    let other = TestSignals.noise(6 * 16_000, level: 0.01, seed: 8)
    let talk = mixed(speech(seconds: 4), from: 0, noise: [Float](repeating: 0, count: noise.count))
    for factor in [Float(-1), 0, 1] {
      let left = zip(noise, talk).map { $0 + $1 }
      let right = zip(other, talk).map { $0 + factor * $1 }
      for pair in [[left, right], [right, left]] {
        let best = try #require(find(TestSignals.interleaved(pair), channels: 2).first)
        #expect(best.start >= 3.9 && abs(best.level + 40) < 0.5, "\(factor) \(best)")
      }
    }
  }

  @Test func pieceSizesDoNotMatter() {
    let noise = TestSignals.noise(2 * 8 * 16_000, level: 0.01)
    let samples = zip(noise, TestSignals.interleaved([speech(seconds: 8), speech(seconds: 8, rate: 3)])).map { $0 + $1 }
    let whole = find(samples, channels: 2)
    #expect(find(samples, channels: 2, pieces: [1, 319, 320, 321, 480, 7, 10_000]) == whole)
  }

  @Test("parts measured apart give the same regions", arguments: [100, 1000, 16_000, 23_456])
  func parts(length: Int) {
    let noise = TestSignals.noise(2 * 8 * 16_000, level: 0.01)
    let sound = zip(noise, TestSignals.interleaved([speech(seconds: 8), speech(seconds: 8, rate: 3)])).map { $0 + $1 }
    let samples = sound.map { Int16(max(-32768, min(32767, ($0 * 32768).rounded()))) }
    var finder = NoiseRegionFinder(sampleRate: 16_000, channels: 2)
    var meter = NoiseMeter(sampleRate: 16_000, channels: 2)
    // The end isn't measured apart.
    for start in stride(from: 0, to: 220_000, by: 2 * length) {
      let end = min(start + 2 * length, 220_000)
      var frames = NoiseFrames()
      meter.begin(at: Int64(start / 2))
      meter.append(samples.span.extracting(start..<end), to: &frames)
      meter.finish(&frames, tail: samples.span.extracting(end..<min(end + 900, samples.count)))
      finder.append(frames)
    }
    finder.append(samples.span.extracting(220_000..<samples.count))
    #expect(finder.finish() == find(sound, channels: 2))
  }

  @Test(
    "sound too short or of too low a rate has none", arguments: [(16_000, 0), (16_000, 6000), (1000, 20_000), (1, 9)])
  func none(sampleRate: Int, count: Int) {
    #expect(find(TestSignals.noise(count, level: 0.1), sampleRate: sampleRate) == [])
  }

  /// Sounds that are held for a second or more, by name: their partials in Hz, vibrato, and decay per second.
  private static let notes: [(name: String, hertz: [Double], vibrato: Double, decay: Double)] = [
    ("a flute", [880, 1760, 2640], 0.004, 0), ("an organ", [130.8, 196, 261.6, 392, 523.3, 784, 1568, 3136], 0, 0),
    ("a low string", (1...60).map { 55 * Double($0) }, 0.003, 0),
    ("a singer", (1...20).map { 330 * Double($0) }, 0.012, 0),
    ("a violin", (1...12).map { 587.3 * Double($0) }, 0.006, 0), ("a piano", (1...8).map { 220 * Double($0) }, 0, 1.5),
    (
      "a choir", [196, 197.1, 246.9, 247.8, 293.7, 295].flatMap { tone in (1...9).map { tone * Double($0) } }, 0.004, 0
    ),
  ]

  private func note(_ index: Int, seconds: Int, level: Float) -> [Float] {
    let (_, hertz, vibrato, decay) = Self.notes[index]
    let sound = (0..<(seconds * 16_000)).map { sample -> Float in
      let time = Double(sample) / 16_000, since = time.truncatingRemainder(dividingBy: 1.5)
      let bend = vibrato * sin(2 * .pi * 5.5 * time) / (2 * .pi * 5.5)
      let sum = hertz.enumerated().reduce(0.0) { $0 + sin(2 * .pi * $1.1 * (time + bend)) / Double($1.0 + 1) }
      return Float(sum * exp(-decay * since))
    }
    let scale = level / Float(pow(10, TestSignals.levelDB(sound) / 20))
    return sound.map { $0 * scale }
  }

  @Test("a held note isn't noise, however steady and loud it is", arguments: notes.indices, [0.02, 0.1])
  func heldNote(index: Int, level: Double) throws {
    let noise = TestSignals.noise(8 * 16_000, level: 0.01)
    let samples = mixed(note(index, seconds: 7, level: Float(level)), from: 1, noise: noise)
    let best = try #require(find(samples).first)
    #expect(best.end <= 1.05 && best.span == nil, "\(Self.notes[index].name): \(best)")
  }

  @Test("music without a moment of noise has no region")
  func musicAlone() {
    let samples = TestSignals.sum(note(1, seconds: 6, level: 0.1), TestSignals.noise(6 * 16_000, level: 0.001))
    #expect(find(samples) == [])
  }

  @Test("what swells unsteadily is noise if it's quieter than the rest and nothing else is")
  func unsteadyNoise() throws {
    let hits = TestSignals.noise(8 * 16_000, level: 0.03)
    let keys = hits.indices.map { hits[$0] * Float(exp(-Double($0 % 2400) / 1200)) }
    let best = try #require(find(mixed(speech(seconds: 7, rate: 7), from: 1, noise: keys)).first)
    #expect(best.end <= 1.1 && best.score < 0.4, "\(best)")
  }

  @Test("hum that is switched on or off is noise, although it's louder in few bands", arguments: [5..<10, 0..<5])
  func switchedHum(seconds: Range<Int>) throws {
    let noise = TestSignals.noise(10 * 16_000, level: 0.01)
    let humming = noise.indices.map { index -> Float in
      guard seconds.contains(index / 16_000) else { return noise[index] }
      let turn = 2 * .pi * 50 * Double(index) / 16_000
      return noise[index]
        + Float((1...15).reduce(0.0) { $0 + 0.03 * pow(0.7, Double($1)) * sin(Double($1) * (turn + Double($1))) })
    }
    let samples = mixed(speech(seconds: 2), from: 6.5, noise: mixed(speech(seconds: 2), from: 1.5, noise: humming))
    let best = try #require(find(samples).first)
    #expect(seconds.contains(Int(best.start)) && best.level > -35, "\(best)")
  }

  /// Noise of −50 dBFS that is 26 dB louder between two seconds, under speech.
  private func changingNoise(louder: Range<Int>) -> [Float] {
    let noise = TestSignals.noise(12 * 16_000, level: 0.003)
    let changing = noise.indices.map { noise[$0] * (louder.contains($0 / 16_000) ? 20 : 1) }
    return mixed(speech(seconds: 4), from: 7, noise: mixed(speech(seconds: 4), from: 1.5, noise: changing))
  }

  @Test("noise that becomes much louder or quieter for good has a region before and after", arguments: [6..<12, 0..<6])
  func lastingChange(louder: Range<Int>) throws {
    let regions = find(changingNoise(louder: louder)).filter { $0.span != nil }.sorted { $0.start < $1.start }
    #expect(regions.count == 2)
    let (before, after) = (try #require(regions.first), try #require(regions.last))
    #expect(before.end <= 6.1 && after.start >= 5.9)
    #expect(abs(abs(before.level - after.level) - 26) < 2, "\(before) \(after)")
    // The change is found where the speech pauses, and nothing lies between the two.
    let change = try #require(before.span?.upperBound)
    #expect(before.span?.lowerBound == 0 && after.span == change..<(12 * 16_000))
    #expect(abs(Double(change) / 16_000 - 6) < 0.5, "\(change)")
  }

  @Test("noise that is louder for a while has one region", arguments: [4..<5, 6..<9])
  func passingChange(louder: Range<Int>) {
    #expect(find(changingNoise(louder: louder)).allSatisfy { $0.span == nil })
  }
}
