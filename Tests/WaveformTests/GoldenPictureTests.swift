import Foundation
import Terms
import Testing

@testable import Waveform

/// Pictures as they were when someone last inspected them.
///
/// After an intended change, run this in the repository's root:
///
///     STILLWAVE_PICTURES=$PWD/Tests/WaveformTests/Pictures deploy/test --filter GoldenPictureTests
///
/// to redraw them; then inspect them, and what `git` says has changed.
struct GoldenPictureTests {
  private static let folder = Bundle.module.resourceURL?.appending(path: "Pictures") ?? URL(filePath: "Pictures")

  static let names = [
    "default", "axis", "retina", "lanes", "overlay", "samples", "few-frames", "bars", "growing", "dark",
  ]

  private func drawing(_ name: String) throws -> Drawing {
    let words = try PictureSource(.words())
    func query(_ start: Double? = nil, _ end: Double? = nil, _ channels: ChannelSelection = .mix) -> WaveformQuery {
      WaveformQuery(start: start, end: end, resolution: .width(240), channels: channels)
    }
    let white = PictureColor.rgb(0xffffff)
    switch name {
    case "axis": return try Drawing(words, query()) { ($0.height, $0.axis, $0.background) = (80, true, white) }
    case "retina":
      return try Drawing(words, query()) {
        ($0.height, $0.axis, $0.background, $0.pixelRatio) = (80, true, white, 2)
      }
    case "lanes": return try Drawing(words, query(nil, nil, .split)) { $0.height = 90 }
    case "overlay":
      let clean = try PictureSource(.words(seconds: 4.5, sampleRate: 11_025, channels: 1, noise: 0))
      let noisy = try PictureSource(.words(noise: 0.25))
      return try Drawing(noisy, query(), over: clean) { ($0.height, $0.background) = (80, white) }
    case "samples":
      return try Drawing(words, query(0.3, 0.305)) { ($0.height, $0.axis, $0.background) = (80, true, white) }
    case "few-frames": return try Drawing(words, query(0.3, 0.5)) { ($0.height, $0.background) = (60, white) }
    case "bars": return try Drawing(words, query()) { ($0.height, $0.look, $0.background) = (60, .bars, white) }
    case "growing":
      let growing = try PictureSource(.words(), available: 25_000)
      return try Drawing(growing, query()) { ($0.height, $0.axis, $0.background) = (80, true, white) }
    case "dark":
      return try Drawing(words, query()) {
        ($0.height, $0.axis, $0.background) = (80, true, .rgb(0x15171a))
        ($0.color, $0.amplitude) = (.rgb(0xffa500), .auto)
      }
    default: return try Drawing(words, query()) { $0.height = 60 }
    }
  }

  @Test(arguments: names)
  func aPictureLooksAsItDid(_ name: String) throws {
    let (png, svg) = (try drawing(name).png(), try drawing(name).svg())
    if let target = ProcessInfo.processInfo.environment["STILLWAVE_PICTURES"] {
      try Data(png).write(to: URL(filePath: target).appending(path: "\(name).png"))
      try Data(svg.utf8).write(to: URL(filePath: target).appending(path: "\(name).svg"))
      return
    }
    let golden = try #require(PNGImage([UInt8](try Data(contentsOf: Self.folder.appending(path: "\(name).png")))))
    let drawn = try #require(PNGImage(png))
    // Rounding may differ between machines by a step of an edge's coverage in some places.
    #expect(drawn.difference(from: golden, tolerance: 40) == 0)
    #expect(drawn.difference(from: golden, tolerance: 2) < 0.01)

    let goldenText = try String(contentsOf: Self.folder.appending(path: "\(name).svg"), encoding: .utf8)
    let number = /-?[0-9]*\.?[0-9]+/
    func numbers(_ text: String) -> [Double] {
      text.matches(of: number).compactMap { Double(String($0.output).replacing(/^(-?)\./) { "\($0.output.1)0." }) }
    }
    let (seen, known) = (numbers(svg), numbers(goldenText))
    #expect(seen.count == known.count && svg.count > 200)
    #expect(zip(seen, known).allSatisfy { abs($0 - $1) < 0.21 })
  }
}
