import AudioIO
import Foundation
import Terms
import Testing
import Waveform

@testable import Jobs

/// Samples that the service reads itself.
extension SampleReadersTests {
  @Test("plain samples have the pixels that a reader returns, until their file changes or goes away")
  func plain() throws {
    let (readers, path) = (readers(), try sound())
    let plain = try #require(try plainSamples(path, readers))
    for scale in [1, 3, 16, 100, 255] {
      for channels in [ChannelSelection.mix, .split, .channel(1)] {
        for measures in [Measures.peak, [.peak, .rms, .average]] {
          for (start, end) in [(0, 1.25), (0.1, 0.7), (1.2, 1.25)] {
            let window = try Self.window(
              WaveformQuery(
                start: start, end: end, resolution: .scale(scale), channels: channels, measures: measures))
            #expect(try plain.sliceInMemory(window) == pixels(window, of: path, readers), "\(scale) \(start)")
          }
        }
      }
    }
    let long = try Self.window(WaveformQuery(resolution: .scale(200)), frames: 1 << 20)
    #expect(plain.sliceInMemory(long) == nil, "more than is read at once")
    let past = try Self.window(WaveformQuery(start: 1.2, resolution: .scale(1)), frames: 10_001)
    #expect(plain.sliceInMemory(past) == nil, "more frames than the file has")
    // A chunk of odd length before the samples, and nothing but silence at both ends, as in much music.
    let other = try sound("other.wav")
    var bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: other)))
    for place in [44..<4044, bytes.count - 4000..<bytes.count] {
      bytes.replaceSubrange(place, with: repeatElement(0, count: place.count))
    }
    bytes.insert(contentsOf: Array("junk".utf8) + [3, 0, 0, 0, 1, 2, 3, 0], at: 36)
    try Data(bytes).write(to: URL(fileURLWithPath: other))
    let moved = try #require(try plainSamples(other, readers))
    let middle = try Self.window()
    #expect(try moved.sliceInMemory(middle) == pixels(middle, of: other, readers))

    try FileManager.default.removeItem(atPath: path)
    #expect(try plain.sliceInMemory(Self.window()) == nil && !plain.isUnchanged)
  }

  @Test(
    "plain samples of any width and order have the pixels that a reader returns",
    arguments: [
      (AudioContainer.wav, AudioCodec.pcmS24), (.wav, .pcmS32), (.rf64, .pcmS24), (.aiff, .pcmS16), (.aiff, .pcmS24),
      (.au, .pcmS32),
    ])
  func layouts(container: AudioContainer, codec: AudioCodec) throws {
    let (readers, path) = (readers(), try sound("sound", container, codec))
    let plain = try #require(try plainSamples(path, readers))
    for scale in [1, 7, 255] {
      let window = try Self.window(WaveformQuery(start: 0.1, end: 0.7, resolution: .scale(scale), channels: .split))
      #expect(try plain.sliceInMemory(window) == pixels(window, of: path, readers), "\(scale)")
    }
  }

  @Test("samples that aren't stored as integers of 16 bits or more aren't plain")
  func encoded() throws {
    let kinds: [(AudioContainer, AudioCodec)] = [(.wav, .pcmF32), (.flac, .flacS16), (.wav, .pcmU8)]
    for (container, codec) in kinds {
      #expect(try plainSamples(sound("sound", container, codec), readers()) == nil, "\(container) \(codec)")
    }
  }

  @Test("a place behind the end of a file, and a length that no part has, make no sense")
  func lies() throws {
    let (nonsense, path) = (ReaderFailure.died("its answer made no sense"), try sound())
    let (huge, zero) = ("\\360\\377\\377\\377\\377\\377\\377\\177", "\\000\\000\\000\\000\\000\\000\\000\\000")
    for layout in [huge + "\\002\\000", zero + "\\005\\000", zero + "\\000\\000"] {
      let liar = readers(try script("printf '\\001\\012\\000\\000\\000\(layout)'"))
      #expect(throws: nonsense, "\(layout)") {
        try liar.read(path, for: Self.client) { (reader) throws(ReaderFailure) in _ = try reader.plainSamples() }
      }
    }
    let liar = readers(try script("printf '\\001\\010\\000\\000\\000\(huge)'"))
    #expect(throws: nonsense) {
      try liar.read(path, for: Self.client) { (reader) throws(ReaderFailure) in _ = try reader.partLength(0..<9) }
    }
  }

  private func plainSamples(_ path: String, _ readers: SampleReaders) throws -> PlainSamples? {
    try readers.read(path, for: Self.client) { (reader) throws(ReaderFailure) in try reader.plainSamples() }
  }
}
