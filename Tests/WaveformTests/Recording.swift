import Foundation
import Randomness

@testable import Waveform

/// Numbers that are the same in every run.
typealias SeededGenerator = TestRandom

/// Interleaved 16-bit samples in memory.
struct Recording {
  var sampleRate: Int
  var channels: Int
  var samples: [Int16]
  var frames: Int64 { Int64(samples.count / channels) }

  var extent: WaveformExtent {
    WaveformExtent(
      sampleRate: sampleRate, channels: channels, availableFrames: frames, totalFrames: frames, isComplete: true)
  }

  /// Returns noise of varying loudness, with some extreme samples.
  static func random(frames: Int, channels: Int, sampleRate: Int = 8000, seed: UInt64) -> Recording {
    var generator = SeededGenerator(state: seed)
    var samples: [Int16] = []
    samples.reserveCapacity(frames * channels)
    var shift = 0
    for index in 0..<frames * channels {
      if index % 997 == 0 { shift = Int.random(in: 0..<14, using: &generator) }
      samples.append(index % 4099 == 17 ? .min : Int16(truncatingIfNeeded: generator.next()) >> Int16(shift))
    }
    return Recording(sampleRate: sampleRate, channels: channels, samples: samples)
  }

  /// Returns the samples of a range of frames.
  func samples(_ range: Range<Int64>) -> [Int16] {
    Array(samples[Int(range.lowerBound) * channels..<Int(range.upperBound) * channels])
  }

  /// Calls `body` with the recording's finished pyramid, in a temporary file.
  func withPyramid<Result>(_ body: (PyramidFile) throws -> Result) throws -> Result {
    try withTemporaryPath { path in
      var writer = try PyramidWriter(creating: path, sampleRate: sampleRate, channels: channels)
      try writer.append(samples.span)
      try writer.finish()
      return try body(try PyramidFile(path: path))
    }
  }

  /// Makes a slice like the service: from the pyramid, or from samples if it is finer.
  func slice(_ query: WaveformQuery, of file: PyramidFile) throws -> WaveformSlice {
    let window = try WaveformWindow(query, of: extent)
    guard window.needsSamples else { return try file.slice(window) }
    return WaveformSlice(window, samples: samples(window.frameRange).span)
  }
}

extension Recording {
  /// Reads a golden WAV file with 16 bits, or with 24 bits by arithmetic shift.
  init(golden name: String) throws {
    let bytes = [UInt8](try goldenData(name + ".wav"))
    func number(_ offset: Int, _ size: Int) -> Int {
      (0..<size).reduce(0) { $0 | Int(bytes[offset + $1]) << (8 * $1) }
    }
    var (offset, format, data) = (12, 0, 0..<0)
    while offset + 8 <= bytes.count {
      let size = number(offset + 4, 4)
      let tag = String(decoding: bytes[offset..<offset + 4], as: UTF8.self)
      if tag == "fmt " { format = offset + 8 }
      if tag == "data" { data = offset + 8..<min(bytes.count, offset + 8 + size) }
      offset += 8 + size + size % 2
    }
    let width = number(format + 14, 2) / 8
    let samples = stride(from: data.lowerBound, to: data.upperBound, by: width).map {
      Int16(truncatingIfNeeded: number($0 + width - 2, 2))
    }
    self.init(sampleRate: number(format + 4, 4), channels: number(format + 2, 2), samples: samples)
  }
}

/// Returns the contents of a file in `Golden`.
func goldenData(_ name: String) throws -> Data { try Data(contentsOf: goldenFolder.appending(path: name)) }

/// Returns the names of all files in `Golden`, sorted.
func goldenNames() throws -> [String] {
  try FileManager.default.contentsOfDirectory(atPath: goldenFolder.path).sorted()
}

private var goldenFolder: URL {
  Bundle.module.resourceURL?.appending(path: "Golden") ?? URL(filePath: "Golden")
}

/// Calls `body` with a path where no file exists yet, and removes the file afterwards.
func withTemporaryPath<Result>(_ body: (String) throws -> Result) throws -> Result {
  let path = FileManager.default.temporaryDirectory.appending(path: "waveform-\(UUID().uuidString)").path
  defer { try? FileManager.default.removeItem(atPath: path) }
  return try body(path)
}
