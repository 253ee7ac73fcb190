import Foundation
import Testing

@testable import Waveform

/// Compares with audiowaveform 1.10's output for the recordings in `Golden`; `make.py` wrote both.
struct GoldenTests {
  /// NAME.zSCALE.bBITS[.split].EXTENSION
  private struct Golden {
    let file, source: String
    let query: WaveformQuery
    let binary: Bool

    init?(_ file: String) {
      let parts = file.split(separator: ".").map(String.init)
      guard parts.count >= 4, let scale = Int(parts[1].dropFirst()), let bits = Int(parts[2].dropFirst()) else {
        return nil
      }
      self.file = file
      source = parts[0]
      binary = file.hasSuffix(".dat")
      query = WaveformQuery(
        resolution: .scale(scale), channels: parts[3] == "split" ? .split : .mix, bits: bits == 8 ? .eight : .sixteen)
    }
  }

  @Test func everyGoldenFileMatchesByteForByte() throws {
    let goldens = try goldenNames().compactMap(Golden.init)
    #expect(goldens.count > 130)
    for (source, files) in Dictionary(grouping: goldens, by: \.source) {
      let recording = try Recording(golden: source)
      try recording.withPyramid { pyramid in
        for golden in files {
          let slice = try recording.slice(golden.query, of: pyramid)
          // audiowaveform writes version 1 if there is one channel.
          let written = golden.binary ? slice.dat(version: slice.lanes == 1 ? 1 : 2) : slice.strictJSON()
          #expect(Data(written) == (try goldenData(golden.file)), "\(golden.file)")
        }
      }
    }
  }

  @Test func versionTwoAddsAChannelCountToTheSameData() throws {
    let recording = try Recording(golden: "mono-8k-10007f")
    let golden = [UInt8](try goldenData("mono-8k-10007f.z512.b8.dat"))
    try recording.withPyramid { pyramid in
      let slice = try recording.slice(WaveformQuery(resolution: .scale(512), bits: .eight), of: pyramid)
      var expected: [UInt8] = [2, 0, 0, 0]
      expected += golden[4..<20]
      expected += [1, 0, 0, 0]
      expected += golden[20...]
      #expect(slice.dat() == expected)
    }
  }
}
