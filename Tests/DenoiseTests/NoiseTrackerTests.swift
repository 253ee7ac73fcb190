import Glibc
import Testing

@testable import Denoise

@Suite struct NoiseTrackerTests {
  private let rate = 8000

  private func cleaning(_ adaptation: NoiseAdaptation?, channels: Int = 1, second: Bool = false) -> Cleaning {
    Cleaning(
      sampleRate: rate, channels: channels, settings: DenoiseSettings(reductionDB: 25, adaptation: adaptation),
      usesSecondThread: second)
  }

  /// Noise whose level changes to the given numbers of dB, each for `seconds`.
  private func noise(_ levels: [Double], seconds: Int = 6, seed: UInt64 = 1) -> [Float] {
    let noise = TestSignals.noise(levels.count * seconds * rate, seed: seed)
    return noise.indices.map { noise[$0] * Float(pow(10, levels[$0 / (seconds * rate)] / 20)) }
  }

  /// The level that is left of the sound in some of its seconds, in dB relative to the sound.
  private func left(_ output: [Float], of input: [Float], _ seconds: Range<Int>) -> Double {
    let part = (seconds.lowerBound * rate)..<(seconds.upperBound * rate)
    return TestSignals.levelDB(output[part]) - TestSignals.levelDB(input[part])
  }

  /// Speech-like: harmonics of 130 Hz in syllables of 0.2 s, with pauses.
  private func voice(_ count: Int) -> [Float] {
    (0..<count).map { index in
      let time = Double(index) / Double(rate), syllable = time.truncatingRemainder(dividingBy: 0.3)
      guard syllable < 0.2 else { return 0 }
      let tone = (1...12).reduce(0.0) { $0 + sin(2 * .pi * 130 * Double($1) * time) / Double($1) }
      return Float(0.05 * tone * sin(.pi * syllable / 0.2))
    }
  }

  @Test("steady noise keeps every bit, with speech or without", arguments: NoiseAdaptation.allCases, [false, true])
  func steady(adaptation: NoiseAdaptation, hasVoice: Bool) throws {
    var samples = noise([0, 0, 0])
    let profile = try cleaning(nil).profile(of: Array(samples[..<(2 * rate)]))
    if hasVoice { samples = TestSignals.sum(samples, voice(samples.count)) }
    let isSame = cleaning(adaptation).clean(samples, profile) == cleaning(nil).clean(samples, profile)
    #expect(isSame)
  }

  @Test(
    "noise that rises or falls is removed like the noise that was learned, and well before that nothing differs",
    arguments: [8.0, 20, 40, -15])
  func steps(change: Double) throws {
    let samples = noise([0, change, 0])
    let profile = try cleaning(nil).profile(of: Array(samples[..<(2 * rate)]))
    let fixed = cleaning(nil).clean(samples, profile), followed = cleaning(.always).clean(samples, profile)
    // The first segment of 3 s and its context.
    let isSame = fixed[..<(3 * rate)] == followed[..<(3 * rate)]
    #expect(isSame)
    #expect(left(followed, of: samples, 8..<10) < -18)
    #expect(left(followed, of: samples, 7..<8) < -12)
    #expect(left(followed, of: samples, 10..<11) < -12)
    #expect(left(followed, of: samples, 15..<17) < -18)
    if change > 0 { #expect(left(fixed, of: samples, 8..<11) > -10) }
  }

  @Test("a hum that switches on in the middle is removed")
  func hum() throws {
    var samples = noise([0, 0, 0])
    let profile = try cleaning(nil).profile(of: Array(samples[..<(2 * rate)]))
    for harmonic in 1...8 {
      let tone = TestSignals.tone(samples.count, hertz: 50 * Double(harmonic), sampleRate: rate, amplitude: 0.01)
      for index in (6 * rate)..<samples.count { samples[index] += tone[index] }
    }
    let fixed = cleaning(nil).clean(samples, profile), followed = cleaning(.always).clean(samples, profile)
    #expect(left(fixed, of: samples, 9..<16) > -8)
    #expect(left(followed, of: samples, 9..<16) < -18)
  }

  @Test("speech over noise that has risen stays")
  func speech() throws {
    let noise = noise([0, 8]), voice = voice(noise.count), samples = TestSignals.sum(noise, voice)
    let profile = try cleaning(nil).profile(of: Array(noise[..<(2 * rate)]))
    let followed = cleaning(.always).clean(samples, profile)
    let part = (8 * rate)..<(11 * rate)
    let error = zip(followed[part], voice[part]).map { $0 - $1 }
    #expect(TestSignals.levelDB(error) < TestSignals.levelDB(voice[part]) - 9)
    #expect(TestSignals.levelDB(error) < TestSignals.levelDB(noise[part]) - 5)
  }

  @Test("a change of 3.5 dB is followed if wanted, but isn't certain")
  func certainty() throws {
    let samples = noise([0, 3.5])
    let profile = try cleaning(nil).profile(of: Array(samples[..<(2 * rate)]))
    let fixed = cleaning(nil).clean(samples, profile)
    let isCertain = cleaning(.ifCertain).clean(samples, profile) != fixed
    let isFollowed = cleaning(.always).clean(samples, profile) != fixed
    #expect(!isCertain && isFollowed)
  }

  @Test("a step of noise is certain, up or down", arguments: [8.0, 12, -15])
  func certainSteps(change: Double) throws {
    let samples = noise([0, change, 0])
    let profile = try cleaning(nil).profile(of: Array(samples[..<(2 * rate)]))
    let followed = cleaning(.ifCertain).clean(samples, profile)
    #expect(left(followed, of: samples, 8..<10) < -18)
    #expect(left(followed, of: samples, 15..<17) < -18)
  }

  @Test("a step of noise under speech is certain")
  func certainUnderSpeech() throws {
    let noise = noise([0, 9]), voice = voice(noise.count), samples = TestSignals.sum(noise, voice)
    let profile = try cleaning(nil).profile(of: Array(noise[..<(2 * rate)]))
    let fixed = cleaning(nil).clean(samples, profile), followed = cleaning(.ifCertain).clean(samples, profile)
    let part = (8 * rate)..<(11 * rate)
    func error(_ output: [Float]) -> Double { TestSignals.levelDB(zip(output[part], voice[part]).map { $0 - $1 }) }
    #expect(error(followed) < error(fixed) - 1)
  }

  /// Sounds of 4 s that begin in the middle, by name.
  private static let tones: [(name: String, hertz: [Double], vibrato: Double)] = [
    ("a tone", [440], 0), ("a high tone", [3000], 0), ("a chord", [220, 277.2, 329.6, 440, 1318.5], 0),
    ("a low string", (1...20).map { 55 * Double($0) }, 0), ("a hum", (1...15).map { 50 * Double($0) }, 0),
    ("an organ", [65.4, 130.8, 196, 261.6, 392, 523.3, 784, 1046.5, 1568, 2093, 3136], 0),
    ("a singer", (1...10).map { 330 * Double($0) }, 0.01),
    ("a choir", [196, 197.1, 246.9, 247.8, 293.7, 295].flatMap { tone in (1...6).map { tone * Double($0) } }, 0.003),
  ]

  @Test("music that begins in the middle isn't noise", arguments: tones.indices, [0.005, 0.05])
  func music(index: Int, amplitude: Double) throws {
    let (name, hertz, vibrato) = Self.tones[index]
    var samples = noise([0, 0, 0])
    let profile = try cleaning(nil).profile(of: Array(samples[..<(2 * rate)]))
    var music = [Float](repeating: 0, count: samples.count)
    for sample in (7 * rate)..<(11 * rate) {
      let time = Double(sample) / Double(rate)
      let bend = vibrato * sin(2 * .pi * 5.5 * time) / (2 * .pi * 5.5)
      music[sample] = Float(hertz.reduce(0) { $0 + amplitude * sin(2 * .pi * $1 * (time + bend)) })
      samples[sample] += music[sample]
    }
    let certain = cleaning(.ifCertain).clean(samples, profile), fixed = cleaning(nil).clean(samples, profile)
    let change = zip(certain, fixed).map { $0 - $1 }, part = (7 * rate)..<(11 * rate)
    #expect(TestSignals.levelDB(change[part]) < TestSignals.levelDB(music[part]) - 40, "\(name)")
    // Only a hum may be followed, if it's asked for.
    guard name != "a hum" else { return }
    let followed = cleaning(.always).clean(samples, profile)
    #expect(TestSignals.levelDB(followed[part]) > TestSignals.levelDB(fixed[part]) - 1, "\(name)")
  }

  @Test("drums and struck strings 50 dB over the noise keep their level", arguments: [false, true])
  func decays(isDrum: Bool) throws {
    var samples = TestSignals.noise(12 * rate, level: 0.001)
    let hits = TestSignals.noise(samples.count, level: 0.5, seed: 9)
    let profile = try cleaning(nil).profile(of: Array(samples[..<(2 * rate)]))
    for index in (3 * rate)..<samples.count {
      let time = Double(index % (rate / 4)) / Double(rate)
      let string = (1...8).reduce(0.0) { $0 + sin(2 * .pi * 196 * Double($1) * time) / Double($1) }
      samples[index] += isDrum ? hits[index] * Float(exp(-time / 0.05)) : Float(0.3 * string * exp(-time / 0.2))
    }
    let followed = cleaning(.always).clean(samples, profile)
    #expect(abs(left(followed, of: samples, 4..<11)) < 0.1)
  }

  @Test("after digital silence, the noise counts as unchanged")
  func silence() throws {
    var samples = noise([0, 0, 0])
    let profile = try cleaning(nil).profile(of: Array(samples[..<(2 * rate)]))
    for index in (6 * rate)..<(9 * rate) { samples[index] = 0 }
    let followed = cleaning(.always).clean(samples, profile)
    #expect(left(followed, of: samples, 10..<17) < -18)
  }

  @Test("neither the sizes of the pieces nor a second thread change a single bit")
  func piecesAndThreads() {
    let samples = TestSignals.interleaved([noise([0, 9, -12]), noise([0, 9, 3], seed: 2)])
    let profile = cleaning(nil, channels: 2).flatProfile(meanSquare: 1e-4)
    let whole = cleaning(.always, channels: 2).clean(samples, profile, pieces: [samples.count])
    for pieces in [[96], [97, 1, 5000], [24_576, 3]] {
      let pieced = cleaning(.always, channels: 2).clean(samples, profile, pieces: pieces)
      let threaded = cleaning(.always, channels: 2, second: true).clean(samples, profile, pieces: pieces)
      let isSame = pieced == whole && threaded == whole
      #expect(isSame)
    }
  }

  @Test(
    "a window with its context has the same bits as in the whole",
    arguments: [(100_000, 104_000), (0, 1), (149_999, 150_000), (259_999, 260_000), (131_001, 190_123)])
  func window(start: Int, end: Int) {
    let samples = Array(noise([0, 12, -14, 6, 20, 0])[..<260_000])
    let profile = cleaning(nil).flatProfile(meanSquare: 1e-4)
    for adaptation in NoiseAdaptation.allCases {
      let whole = cleaning(adaptation).clean(samples, profile)
      let part = cleaning(adaptation).clean(start..<end, of: samples, NoiseCourse(profile))
      let isSame = part == Array(whole[start..<end])
      #expect(isSame)
    }
  }

  /// As short as six channels at 48 kHz have them: S − 2 C is 2 frames, and stretches begin up to 3 frames later than
  /// at r S + C, so that a segment's context may begin in the last but one stretch before its own.
  @Test("so has a window in short segments", arguments: 0..<4)
  func shortSegments(segment: Int) {
    let grid = SegmentGrid(frame: AnalysisFrame(sampleRate: rate), channels: 36, isTracked: true)
    #expect(grid.segmentHops - 2 * grid.contextHops == 2)
    let samples = Array(noise([0, 12, -14, 6], seconds: 4)[..<120_000])
    let start = (5 + segment) * grid.segmentHops * grid.hop
    for adaptation in NoiseAdaptation.allCases {
      var cleaning = cleaning(adaptation)
      cleaning.budgetedChannels = 36
      let profile = cleaning.flatProfile(meanSquare: 1e-4)
      let whole = cleaning.clean(samples, profile)
      for usesSecondThread in [false, true] {
        cleaning.usesSecondThread = usesSecondThread
        let part = cleaning.clean(start..<(start + 1000), of: samples, NoiseCourse(profile))
        let isSame = part == Array(whole[start..<(start + 1000)])
        #expect(isSame)
      }
    }
  }

  @Test("a profile without noise in some bins leaves them alone", arguments: [0, 1, 97, 5000, 30_000])
  func emptyBins(count: Int) {
    var power = cleaning(nil).flatProfile(meanSquare: 1e-4).power
    for bin in 40..<80 { power[0][bin] = 0 }
    let profile = NoiseProfile(power: power, sampleRate: rate)
    let samples = Array(noise([15])[..<count])
    let output = cleaning(.always).clean(samples, profile)
    #expect(output.count == count && output.allSatisfy(\.isFinite))
  }

  @Test("the median passes over what is short, and keeps a step", arguments: [0, 1, 3])
  func medians(reach: Int) {
    var changes = NoiseChanges(bandCount: 2, tickCount: 40)
    for tick in 0..<40 { changes[1, tick] = (tick < 20 ? 1 : 5) + 0.01 * Float(tick % 3) }
    let steps = changes
    changes[0, 7] = 0.5
    if reach > 0 { changes[1, 10] = 9 }
    changes.takeMedians(reach: reach, ignoring: -1...1)
    for tick in 0..<40 {
      #expect(changes[0, tick] == 0)
      #expect(abs(changes[1, tick] - steps[1, tick]) < 0.03)
    }
  }

  @Test("bands cover every bin but the first", arguments: [1, 500, 8000, 44_100, 768_000])
  func bands(sampleRate: Int) {
    let frame = AnalysisFrame(sampleRate: sampleRate)
    let bands = NoiseBands(frame: frame, sampleRate: sampleRate)
    #expect(bands.edges.first == 1 && bands.edges.last == frame.binCount - 1)
    #expect(zip(bands.edges, bands.edges.dropFirst()).allSatisfy { $0 < $1 })
    var row = [Float](repeating: 0, count: frame.binCount)
    var span = row.mutableSpan
    bands.spread([Float](repeating: 3, count: bands.count), into: &span)
    #expect(row.allSatisfy { $0 == 3 })
    for band in 0..<bands.count { #expect(bands.mean(band, of: row.span) == 3) }
    // From the middle of one band to that of the next, a straight line; before the first and after the last, level.
    let values = (0..<bands.count).map { Float($0 * $0 % 7) }
    let middles = (0..<bands.count).map { Float(bands.edges[$0] + bands.edges[$0 + 1] - 1) / 2 }
    var line = row.mutableSpan
    bands.spread(values, into: &line)
    for bin in row.indices {
      let above = middles.firstIndex { $0 > Float(bin) } ?? bands.count
      let low = max(0, above - 1), high = min(above, bands.count - 1)
      let share = low == high ? 0 : (Float(bin) - middles[low]) / (middles[high] - middles[low])
      #expect(abs(row[bin] - (values[low] + share * (values[high] - values[low]))) < 1e-5)
    }
  }
}
