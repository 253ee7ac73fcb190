import Glibc
import Testing

@testable import Denoise

/// Music and other sound that isn't speech must be preserved.
@Suite struct MusicTests {
  private static let rates = [8000, 48_000, 192_000]

  private func cleaned(_ music: [Float], sampleRate: Int, level: Float = 0.003, _ reductionDB: Double = 18) throws
    -> [Float]
  {
    let cleaning = Cleaning(sampleRate: sampleRate, settings: DenoiseSettings(reductionDB: reductionDB))
    let noise = TestSignals.noise(music.count, level: level)
    let profile = try cleaning.profile(of: TestSignals.noise(2 * sampleRate, level: level, seed: 77))
    return cleaning.clean(TestSignals.sum(music, noise), profile)
  }

  @Test("each tone of a chord keeps its level", arguments: rates, [12.0, 25])
  func chord(sampleRate: Int, reductionDB: Double) throws {
    let hertz = [220.0, 277.2, 329.6, 440, 1318.5, 2637]
    let tones = hertz.map { TestSignals.tone(3 * sampleRate, hertz: $0, sampleRate: sampleRate, amplitude: 0.05) }
    let chord = tones.dropFirst().reduce(tones[0], TestSignals.sum)
    let after = try cleaned(chord, sampleRate: sampleRate, reductionDB)
    for tone in hertz {
      // From its onset, and in the middle.
      for part in [0..<(sampleRate / 2), sampleRate..<(2 * sampleRate)] {
        let kept = TestSignals.toneLevelDB(after[part], hertz: tone, sampleRate: sampleRate)
        let given = TestSignals.toneLevelDB(chord[part], hertz: tone, sampleRate: sampleRate)
        #expect(abs(kept - given) < 0.5, "\(tone) Hz, \(kept - given) dB")
      }
    }
  }

  @Test("a plucked string keeps its level until it is lost in the noise", arguments: rates)
  func pluck(sampleRate: Int) throws {
    let pluck = (0..<(3 * sampleRate)).map { index -> Float in
      let time = Double(index) / Double(sampleRate)
      let partials = (1...6).reduce(0.0) { sum, partial in
        sum + sin(2 * .pi * 196 * Double(partial) * time) * exp(-time * Double(partial)) / Double(partial)
      }
      return Float(0.2 * partials)
    }
    let after = try cleaned(pluck, sampleRate: sampleRate)
    for (partial, end) in [(1, 2.5), (2, 1.2), (4, 0.5)] {
      for start in stride(from: 0.0, to: end, by: 0.25) {
        let part = Int(start * Double(sampleRate))..<Int((start + 0.25) * Double(sampleRate))
        let kept = TestSignals.toneLevelDB(after[part], hertz: 196 * Double(partial), sampleRate: sampleRate)
        let given = TestSignals.toneLevelDB(pluck[part], hertz: 196 * Double(partial), sampleRate: sampleRate)
        #expect(abs(kept - given) < 0.5, "partial \(partial) at \(start) s: \(kept - given) dB")
      }
    }
  }

  /// Returns bursts of noise that decay within 20 ms, twice a second.
  private func drums(seconds: Int, sampleRate: Int) -> [Float] {
    let hits = TestSignals.noise(seconds * sampleRate, level: 0.3, seed: 9)
    return hits.indices.map { index in
      let since = Double(index % (sampleRate / 2) - sampleRate / 4) / Double(sampleRate)
      return since < 0 ? 0 : hits[index] * Float(exp(-since / 0.02))
    }
  }

  @Test("a drum's onset stays within 5 ms and keeps its power", arguments: rates, [12.0, 25])
  func onsets(sampleRate: Int, reductionDB: Double) throws {
    let drums = drums(seconds: 4, sampleRate: sampleRate)
    let after = try cleaned(drums, sampleRate: sampleRate, reductionDB)
    let step = sampleRate / 200
    for hit in 1..<7 {
      let onset = hit * (sampleRate / 2) + sampleRate / 4
      let (kept, given) = (after[onset..<(onset + 4 * step)], drums[onset..<(onset + 4 * step)])
      #expect(abs(TestSignals.levelDB(kept) - TestSignals.levelDB(given)) < 0.5)
      let first = after[onset..<(onset + step)], firstGiven = drums[onset..<(onset + step)]
      #expect(abs(TestSignals.levelDB(first) - TestSignals.levelDB(firstGiven)) < 0.5)
      // The sound just before the onset stays far below it: nothing is smeared ahead of the hit.
      let before = TestSignals.levelDB(after[(onset - 2 * step)..<(onset - step)])
      #expect(before < TestSignals.levelDB(first) - 30, "\(before)")
    }
  }

  @Test("silence within music stays silent", arguments: rates)
  func silence(sampleRate: Int) throws {
    let cleaning = Cleaning(sampleRate: sampleRate)
    var music = drums(seconds: 3, sampleRate: sampleRate)
    for index in sampleRate..<(2 * sampleRate) { music[index] = 0 }
    let after = cleaning.clean(music, cleaning.flatProfile(meanSquare: 1e-5))
    let frame = AnalysisFrame(sampleRate: sampleRate).length
    #expect(after[(sampleRate + frame)..<(2 * sampleRate - frame)].allSatisfy { abs($0) < 1e-9 })
  }

  @Test("music on many channels keeps each channel's level", arguments: [2, 5, 8])
  func ensemble(channels: Int) throws {
    let sampleRate = 8000
    let cleaning = Cleaning(sampleRate: sampleRate, channels: channels, settings: DenoiseSettings(reductionDB: 25))
    let noise = (0..<channels).map { TestSignals.noise(3 * sampleRate, level: 0.003, seed: UInt64($0 + 1)) }
    // A note on each channel, and drums on the last one.
    var parts = (0..<channels).map { channel in
      TestSignals.tone(3 * sampleRate, hertz: 220 * pow(2, Double(channel) / 4), sampleRate: sampleRate)
    }
    parts[channels - 1] = drums(seconds: 3, sampleRate: sampleRate)
    let lanes = zip(parts, noise).map(TestSignals.sum)
    let profile = try cleaning.profile(of: TestSignals.interleaved(noise))
    let after = cleaning.clean(TestSignals.interleaved(lanes), profile)
    for channel in 0..<channels {
      let kept = TestSignals.channel(channel, of: channels, in: after)
      #expect(abs(TestSignals.levelDB(kept) - TestSignals.levelDB(parts[channel])) < 0.5, "channel \(channel)")
    }
  }

  @Test(
    "many channels, high rates, and short recordings work",
    arguments: [
      (192_000, 8, 0.5), (48_000, 8, 1), (8000, 3, 1), (44_100, 1, 0.02), (96_000, 6, 0.4),
    ])
  func shapes(sampleRate: Int, channels: Int, seconds: Double) {
    let frames = Int(seconds * Double(sampleRate))
    let lanes = (0..<channels).map { channel in
      TestSignals.tone(frames, hertz: 300 * Double(channel + 1), sampleRate: sampleRate)
    }
    let cleaning = Cleaning(sampleRate: sampleRate, channels: channels, usesSecondThread: channels % 2 == 0)
    let after = cleaning.clean(TestSignals.interleaved(lanes), cleaning.flatProfile(meanSquare: 1e-7))
    for channel in 0..<channels {
      let kept = TestSignals.channel(channel, of: channels, in: after)
      #expect(abs(TestSignals.levelDB(kept) - TestSignals.levelDB(lanes[channel])) < 0.5)
    }
  }
}
