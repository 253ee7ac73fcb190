import AudioIO
import Foundation
import Randomness
import Terms

/// A folder for one test, removed with the last reference.
package final class TemporaryFolder: Sendable {
  package let path: String

  package init() throws {
    path = NSTemporaryDirectory() + "stillwave-audio-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  package func callAsFunction(_ name: String) -> String { path + "/" + name }

  /// Writes a file and returns its path.
  package func file(_ name: String, _ bytes: [UInt8]) throws -> String {
    try Data(bytes).write(to: URL(fileURLWithPath: self(name)))
    return self(name)
  }

  package func file(_ bytes: [UInt8]) throws -> String { try file("file", bytes) }
}

package func contents(_ path: String) throws -> [UInt8] { [UInt8](try Data(contentsOf: URL(fileURLWithPath: path))) }

package func little(_ number: UInt64, _ count: Int) -> [UInt8] {
  (0..<count).map { UInt8(truncatingIfNeeded: number >> (8 * $0)) }
}
package func big(_ number: UInt64, _ count: Int) -> [UInt8] { little(number, count).reversed() }

/// Returns a RIFF chunk, optionally `claiming` a wrong size.
package func chunk(_ id: String, _ content: [UInt8], claiming size: UInt64? = nil) -> [UInt8] {
  id.utf8 + little(size ?? UInt64(content.count), 4) + content + (content.count % 2 == 1 ? [0] : [])
}

package func waveFormat(tag: Int = 1, channels: Int = 1, sampleRate: UInt64 = 8000, bits: Int = 16) -> [UInt8] {
  let block = channels * bits / 8
  return chunk(
    "fmt ",
    little(UInt64(tag), 2) + little(UInt64(channels), 2) + little(sampleRate, 4)
      + little(sampleRate &* UInt64(block) & 0xFFFF_FFFF, 4) + little(UInt64(block), 2) + little(UInt64(bits), 2))
}

package func riff(_ chunks: [UInt8], magic: String = "RIFF") -> [UInt8] {
  magic.utf8 + little(magic == "RF64" ? 0xFFFF_FFFF : UInt64(chunks.count + 4), 4) + "WAVE".utf8 + chunks
}

package func bytes(_ samples: [Int16]) -> [UInt8] { samples.flatMap { little(UInt64(UInt16(bitPattern: $0)), 2) } }

/// Returns a plain 16-bit WAV file.
package func wave(_ samples: [Int16], channels: Int = 1, sampleRate: UInt64 = 8000) -> [UInt8] {
  riff(waveFormat(channels: channels, sampleRate: sampleRate) + chunk("data", bytes(samples)))
}

/// Returns a WAV file of 32-bit floats.
package func floatWave(_ samples: [Float], channels: Int = 1, sampleRate: UInt64 = 8000) -> [UInt8] {
  riff(
    waveFormat(tag: 3, channels: channels, sampleRate: sampleRate, bits: 32)
      + chunk("data", samples.flatMap { little(UInt64($0.bitPattern), 4) }))
}

/// Numbers that are the same in every run.
package typealias SeededGenerator = TestRandom

/// Returns interleaved tones that drift around a tenth of the sample rate under a slow swell, different in each
/// channel, with a little noise. Every codec preserves them, no two parts are alike, and a delay of one sample is
/// detectable.
package func swell(frames: Int, channels: Int, sampleRate: Int, peak: Float = 0.5) -> [Float] {
  var generator = SeededGenerator(state: 7)
  var samples: [Float] = []
  samples.reserveCapacity(frames * channels)
  for frame in 0..<frames {
    let time = Double(frame) / Double(sampleRate)
    let loudness = Float(0.6 + 0.4 * sin(2 * .pi * 1.7 * time))
    for channel in 0..<channels {
      let hertz = Double(sampleRate) * (0.1 + 0.01 * Double(channel))
      let phase = 2 * .pi * hertz * time + Double(sampleRate) / 50 * sin(2 * .pi * 0.9 * time)
      let noise = Float.random(in: -0.02...0.02, using: &generator)
      samples.append(peak * (0.95 * loudness * Float(sin(phase)) + noise))
    }
  }
  return samples
}

/// Encodes all of `samples`. Returns the samples that a reader will find according to the writer, and the number
/// clipped.
@discardableResult
package func encode(
  _ samples: [Float], to path: String, _ format: AudioFormat, expectedFrames: Int64? = nil, piece: Int = 10_007
) throws -> (quantised: [Int16], clipped: Int64, format: AudioFormat) {
  let frames = expectedFrames ?? Int64(samples.count / format.channels)
  var writer = try AudioWriter(creating: path, format: format, expectedFrames: frames)
  var (all, quantised): ([Int16], [Int16]) = ([], [])
  var start = 0
  while start < samples.count {
    let end = min(start + piece * format.channels, samples.count)
    try writer.write(samples.span.extracting(start..<end), quantised: &quantised)
    all += quantised
    start = end
  }
  let (clipped, written) = (writer.clippedSamples, writer.format)
  try writer.finish()
  return (all, clipped, written)
}

/// Returns all samples of a file in 16 bits.
package func decode(_ path: String, from frame: Int64 = 0, piece: Int = .max) throws -> [Int16] {
  var reader = try AudioReader(path: path)
  if frame > 0 { try reader.seek(to: frame) }
  var samples: [Int16] = []
  while reader.readInt16(
    upTo: piece, { span in unsafe span.withUnsafeBufferPointer { unsafe samples.append(contentsOf: $0) } }) > 0
  {}
  return samples
}

/// Returns all samples of a file, full scale ±1.
package func decodeFloat(_ path: String, from frame: Int64 = 0, piece: Int = .max) throws -> [Float] {
  var reader = try AudioReader(path: path)
  if frame > 0 { try reader.seek(to: frame) }
  var samples: [Float] = []
  while reader.readFloat(upTo: piece, { span in for index in span.indices { samples.append(span[index]) } }) > 0 {}
  return samples
}

package func format(of path: String) throws -> AudioFormat { try AudioReader(path: path).format }
