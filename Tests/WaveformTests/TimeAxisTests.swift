import Testing

@testable import Waveform

struct TimeAxisTests {
  private func labels(_ start: Double, _ end: Double, _ width: Double = 1000) -> [String] {
    TimeAxis(start: start, end: end, width: width).ticks.compactMap(\.label)
  }

  @Test(arguments: [
    (0.0, 6.5, "00:00 00:01 00:02 00:03 00:04 00:05 00:06"),
    (0, 100, "00:00 00:10 00:20 00:30 00:40 00:50 01:00 01:10 01:20 01:30 01:40"),
    (0, 170, "00:00 00:15 00:30 00:45 01:00 01:15 01:30 01:45 02:00 02:15 02:30 02:45"),
    (0, 350, "00:00 00:30 01:00 01:30 02:00 02:30 03:00 03:30 04:00 04:30 05:00 05:30"),
    (
      3540, 3600,
      "0:59:00 0:59:05 0:59:10 0:59:15 0:59:20 0:59:25 0:59:30 0:59:35 0:59:40 0:59:45 0:59:50 0:59:55"
        + " 1:00:00"
    ),
    (3000, 3610, "0:50:00 0:51:00 0:52:00 0:53:00 0:54:00 0:55:00 0:56:00 0:57:00 0:58:00 0:59:00 1:00:00"),
    (
      0, 7200,
      "0:00:00 0:10:00 0:20:00 0:30:00 0:40:00 0:50:00 1:00:00 1:10:00 1:20:00 1:30:00 1:40:00 1:50:00"
        + " 2:00:00"
    ),
    (1.25, 1.256, "1.2500 1.2505 1.2510 1.2515 1.2520 1.2525 1.2530 1.2535 1.2540 1.2545 1.2550 1.2555 1.2560"),
    (2.5, 3.1, "2.50 2.55 2.60 2.65 2.70 2.75 2.80 2.85 2.90 2.95 3.00 3.05 3.10"),
    (65, 65.1, "01:05.00 01:05.01 01:05.02 01:05.03 01:05.04 01:05.05 01:05.06 01:05.07 01:05.08 01:05.09 01:05.10"),
  ])
  func labelsStandAtRoundTimesAndSayThemAsTheZoomNeeds(start: Double, end: Double, expected: String) {
    #expect(labels(start, end).joined(separator: " ") == expected)
  }

  @Test func labelsLeaveRoomForEachOtherAtEveryZoomAndWidth() {
    var length = 3e-6
    while length < 1e7 {
      for width in [60.0, 300, 1000, 20_000] {
        let ticks = TimeAxis(start: 0.3 * length, end: 1.3 * length, width: width).ticks
        let places = ticks.filter { $0.label != nil }.map { ($0.time - 0.3 * length) / length * width }
        #expect(zip(places, places.dropFirst()).allSatisfy { $1 - $0 > 79.9 }, "\(length) s over \(width)")
        #expect(places.allSatisfy { -0.001...width + 0.001 ~= $0 })
        // Neither crowded nor, if there is room, sparse; a microsecond is the finest step.
        #expect(Double(ticks.count) <= width / 6 + 1)
        if width >= 1000, length >= 1e-4 { #expect(Double(places.count) >= width / 250) }
      }
      length *= 1.7
    }
  }

  @Test func ticksDivideTheLabelsIntoEqualSteps() {
    let ticks = TimeAxis(start: 0, end: 10, width: 1000).ticks
    #expect(ticks.filter { $0.label == nil }.count == 40)
    #expect(zip(ticks, ticks.dropFirst()).allSatisfy { abs($1.time - $0.time - 0.2) < 1e-9 })
  }

  @Test func aWindowWithoutLengthHasNoTicks() {
    #expect(TimeAxis(start: 1, end: 1, width: 100).ticks.isEmpty)
    #expect(TimeAxis(start: 0, end: 0.0000001, width: 100).ticks.map(\.label) == ["0.000000"])
    #expect(TimeAxis(start: 0.1000001, end: 0.1000002, width: 100).ticks.isEmpty)
  }

  @Test func everyCharacterOfALabelHasStrokesWithinItsBox() {
    for character in "0123456789:." {
      let strokes = StrokeFont.strokes(of: String(character), size: 10, at: PicturePoint(x: 0, y: 10))
      #expect(!strokes.isEmpty)
      let points = strokes.joined()
      #expect(points.allSatisfy { -0.5...6.5 ~= $0.x && -0.1...10.1 ~= $0.y }, "\(character)")
    }
    #expect(StrokeFont.width(of: "00:00") > 4 * StrokeFont.width(of: "0"))
  }
}
