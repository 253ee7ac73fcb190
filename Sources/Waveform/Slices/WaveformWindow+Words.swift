// A window and its pixels as they travel between the service and the process that reads the samples. Little-endian, as
// are all processors that this program runs on.
//
//   window   nine 64-bit words: frames per pixel, first pixel, number of pixels, lanes (−2 mix, −1 split, or a
//            channel), measures, bits, sample rate, channels, frames of the recording
//            A window of a file that has only a part of its recording may have any number of frames per pixel
//   pixels   16-bit numbers: all of `data`, then all of `rms`, then all of `average`

import Terms

extension WaveformWindow {
  /// Number of words.
  package static let wordCount = 9

  /// The window as words. Only for a window of a finished recording.
  package var words: [Int64] {
    [
      Int64(scale), firstPixel, Int64(pixelCount), query.channels.word, Int64(query.measures.rawValue),
      Int64(query.bits.rawValue),
      Int64(extent.sampleRate), Int64(extent.channels), extent.availableFrames,
    ]
  }

  /// Creates a window from its words; nil unless it is one that needs samples, or may have any scale.
  package init?(words: [Int64], ofAnyScale: Bool = false) {
    let limit = ofAnyScale ? 1 << 50 : Int64(PeakKernel.pointFrames)
    guard words.count == Self.wordCount, (1..<limit).contains(words[0]),
      (1...PyramidLayout.frameLimit).contains(words[8]), (0...words[8] / words[0]).contains(words[1]),
      (1...Int64(Self.pixelLimit)).contains(words[2]), (1...7).contains(words[4]),
      let bits = SampleBits(rawValue: Int(words[5])),
      (try? PyramidLayout(sampleRate: Int(words[6]), channels: Int(words[7]))) != nil,
      let channels = ChannelSelection(word: words[3], channels: words[7])
    else { return nil }
    let query = WaveformQuery(
      resolution: .scale(Int(words[0])), channels: channels, measures: Measures(rawValue: Int(words[4])), bits: bits)
    self.init(
      scale: Int(words[0]), firstPixel: words[1], pixelCount: Int(words[2]), query: query,
      extent: WaveformExtent(
        sampleRate: Int(words[6]), channels: Int(words[7]), availableFrames: words[8], totalFrames: words[8],
        isComplete: true))
    guard startFrame < words[8] else { return nil }
  }
}

extension WaveformSlice {
  /// Number of bytes of a window's pixels.
  package static func byteCount(of window: WaveformWindow) -> Int { Int(window.numberCount) * 2 }

  /// The pixels as bytes. The slice must be complete.
  package var bytes: [UInt8] {
    precondition(length == window.pixelCount, "all pixels of the window")
    return unsafe data.withUnsafeBytes { data in
      unsafe rms.withUnsafeBytes { rms in
        unsafe average.withUnsafeBytes { average in unsafe Array(data) + Array(rms) + Array(average) }
      }
    }
  }

  /// Creates the slice of a window from its pixels; nil if there are more or fewer bytes, or if no samples have these
  /// pixels: a process that was taken over may send anything, and pictures count on a minimum that isn't over its
  /// maximum.
  package init?(_ window: WaveformWindow, bytes: [UInt8]) {
    guard bytes.count == Self.byteCount(of: window) else { return nil }
    self.init(empty: window)
    let (count, isEight) = (length * lanes, window.query.bits == .eight)
    var place = 0
    if window.query.measures.contains(.peak) {
      let peaks = Self.numbers(bytes, from: place, count: 2 * count, as: Int16.self)
      let range: ClosedRange<Int16> = isEight ? -128...127 : Int16.min...Int16.max
      for index in stride(from: 0, to: peaks.count, by: 2) {
        guard peaks[index] <= peaks[index + 1], peaks[index] >= range.lowerBound, peaks[index + 1] <= range.upperBound
        else { return nil }
      }
      setPeaks(peaks)
      place += 4 * count
    }
    for measure in [Measures.rms, .average] where window.query.measures.contains(measure) {
      let values = Self.numbers(bytes, from: place, count: count, as: UInt16.self)
      guard values.allSatisfy({ $0 <= (isEight ? 128 : 32768) }) else { return nil }
      setValues(values, of: measure)
      place += 2 * count
    }
  }

  private static func numbers<Number: FixedWidthInteger & BitwiseCopyable>(
    _ bytes: [UInt8], from place: Int, count: Int, as type: Number.Type
  ) -> [Number] {
    unsafe [Number](unsafeUninitializedCapacity: count) { numbers, initializedCount in
      unsafe bytes[place..<place + count * MemoryLayout<Number>.size].withUnsafeBytes { bytes in
        unsafe UnsafeMutableRawBufferPointer(numbers).copyMemory(from: bytes)
      }
      initializedCount = count
    }
  }
}
