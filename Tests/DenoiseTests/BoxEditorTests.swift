import Foundation
import Testing

@testable import Denoise

@Suite struct BoxEditorTests {
  private static let rate = 16_000
  private let hop = AnalysisFrame(sampleRate: rate).hop

  /// Edits a whole sound, in pieces of at most `piece` frames.
  private func edited(
    _ sound: [Float], _ boxes: [EditBox], channels: Int = 1, piece: Int = 1 << 20, from start: Int = 0,
    wanted: Range<Int64> = 0..<(.max)
  ) -> [Float] {
    var editor = BoxEditor(
      SoundEdit(boxes), sampleRate: Self.rate, channels: channels, startFrame: Int64(start), wanted: wanted)
    var output: [Float] = []
    func add(_ samples: Span<Float>) { for index in samples.indices { output.append(samples[index]) } }
    for first in stride(from: 0, to: sound.count, by: piece * channels) {
      editor.process(sound.span.extracting(first..<min(first + piece * channels, sound.count)), add)
    }
    editor.finish(add)
    return output
  }

  private func tones(_ count: Int) -> [Float] {
    TestSignals.sum(
      TestSignals.tone(count, hertz: 1000, sampleRate: Self.rate),
      TestSignals.tone(count, hertz: 3000, sampleRate: Self.rate))
  }

  @Test("what is in a box is turned down, and nothing else changes", arguments: [-6.0, -30, -60])
  func levels(gain: Double) {
    let sound = tones(64_000)
    let output = edited(sound, [EditBox(start: 1, end: 2.5, minHz: 800, maxHz: 1200, gainDB: gain)])
    #expect(output.count == sound.count)
    #expect(output[..<(16_000 - hop)] == sound[..<(16_000 - hop)])
    #expect(output[(40_000 + hop)...] == sound[(40_000 + hop)...])
    let inside = output[16_000..<40_000]
    // A tone reaches a little beyond the box, by the windows' side lobes: 0.3 dB of what is left at −60 dB.
    #expect(abs(TestSignals.toneLevelDB(inside, hertz: 1000, sampleRate: Self.rate) + 20 - gain) < 0.5)
    #expect(abs(TestSignals.toneLevelDB(inside, hertz: 3000, sampleRate: Self.rate) + 20) < 0.01)
    // From the first frame of the box to the last.
    for part in [output[16_000..<16_160], output[39_840..<40_000]] {
      #expect(TestSignals.toneLevelDB(part, hertz: 1000, sampleRate: Self.rate) + 20 < gain + 1)
    }
  }

  @Test func boundsThatAreLeftOutMeanAllAndOverlappingBoxesAddUpTo60DB() {
    let sound = tones(32_000)
    for (boxes, low, high) in [
      ([EditBox(gainDB: -20)], -20.0, -20.0), ([EditBox(maxHz: 2000, gainDB: -20)], -20, 0),
      ([EditBox(minHz: 2000, gainDB: -20)], 0, -20),
      ([EditBox(gainDB: -20), EditBox(start: 0, maxHz: 2000, gainDB: -15)], -35, -20),
      ([EditBox(gainDB: -50), EditBox(minHz: 2000, gainDB: -50)], -50, -60), ([EditBox(gainDB: 0)], 0, 0),
      ([EditBox(start: 1.9999, gainDB: -60)], 0, 0),
    ] {
      let output = edited(sound, boxes)[8000..<24_000]
      #expect(abs(TestSignals.toneLevelDB(output, hertz: 1000, sampleRate: Self.rate) + 20 - low) < 0.05)
      #expect(abs(TestSignals.toneLevelDB(output, hertz: 3000, sampleRate: Self.rate) + 20 - high) < 0.05)
    }
    #expect(edited(sound, [EditBox(gainDB: 0)]) == sound)
    #expect(edited(sound, [EditBox(start: 5, end: 6, gainDB: -60)]) == sound)
  }

  @Test func pausesBetweenBoxesThatFadeIntoEachOtherAreNoLouderThanTheSound() {
    let sound = tones(32_000)
    let boxes = (0..<40).map { EditBox(start: 0.5 + 0.02 * Double($0), end: 0.505 + 0.02 * Double($0), gainDB: -60) }
    let output = edited(sound, boxes)
    #expect(zip(output, sound).allSatisfy { abs($0) <= abs($1) + 0.03 })
    #expect(output[..<(8000 - hop)] == sound[..<(8000 - hop)])
  }

  @Test("the bits depend neither on the pieces nor on where the sound begins", arguments: [1, 2, 3])
  func windows(channels: Int) {
    let sound = TestSignals.noise(48_000 * channels, level: 0.2)
    let boxes = (0..<200).map { index in
      let start = Double(index * 7919 % 2900) / 1000
      return EditBox(
        start: start, end: start + Double(index % 9 + 1) / 50, minHz: Double(index * 31 % 7000),
        maxHz: Double(index * 31 % 7000 + 500), gainDB: -Double(index % 60))
    }
    let whole = edited(sound, boxes, channels: channels)
    #expect(edited(sound, boxes, channels: channels, piece: 77) == whole)
    for wanted in [0..<1, 16_001..<20_000, 47_000..<48_000] as [Range<Int64>] {
      let needed = BoxEditor.sound(for: wanted, sampleRate: Self.rate).clamped(to: 0..<48_000)
      let part = Array(sound[Int(needed.lowerBound) * channels..<Int(needed.upperBound) * channels])
      let output = edited(part, boxes, channels: channels, from: Int(needed.lowerBound), wanted: wanted)
      #expect(output[...] == whole[Int(wanted.lowerBound) * channels..<Int(wanted.upperBound) * channels])
    }
  }

  @Test func aThousandBoxesOnTheSameMomentAreOne() {
    let sound = tones(32_000)
    let boxes = (0..<1000).map { EditBox(start: 0.5 + Double($0) * 1e-5, end: 1.5 - Double($0) * 1e-5, gainDB: -0.05) }
    let inside = edited(sound, boxes)[12_000..<20_000]
    #expect(abs(TestSignals.toneLevelDB(inside, hertz: 1000, sampleRate: Self.rate) + 20 + 50) < 0.1)
  }

  @Test func boxesFitIntoAWorkersRequest() throws {
    let boxes = (0..<1000).map { index in
      EditBox(
        start: 99_999.123_456_7 + Double(index), end: 199_999.123_456_7, minHz: 123_456.789, maxHz: 345_678.912,
        gainDB: -12.345_6)
    }
    let data = try JSONEncoder().encode(SoundEdit(boxes))
    #expect(data.count < 56_000)
    #expect(try JSONDecoder().decode(SoundEdit.self, from: data) == SoundEdit(boxes))
    let open = SoundEdit([EditBox(gainDB: -3)])
    #expect(try JSONDecoder().decode(SoundEdit.self, from: JSONEncoder().encode(open)) == open)
  }
}
