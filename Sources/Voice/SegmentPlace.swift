// A recording is divided into segments of 6 s, counted from its start. Each is computed on its own, so a part of a
// recording has the same samples as in the whole:
//
//        3 s                1 s                 6 s              1 s
//   ├──────────────────┼───────────┤── wanted ───────────────┼──────┤
//   only for the       the networks run                      for the resampler
//   running means
//
// The networks need less than a second until what was before doesn't matter. Segments are cross-faded in the last
// 100 ms before each, for which the next one has been computed, too.

/// Where a segment is in a recording, in frames of its rate or in spectral frames (10 ms) since the segment's reading
/// began.
struct SegmentPlace: Sendable, Equatable {
  /// The length of a segment, and what is read before and after it, in seconds.
  static let seconds: Int64 = 6, lead: Int64 = 3, tail: Int64 = 1
  /// The networks' part of what is before the segment.
  private static let warmUp: Int64 = 1

  let number: Int64
  let sampleRate: Int

  private var start: Int64 { number * Self.seconds }
  private var readStart: Int64 { max(0, start - Self.lead) }
  private var rate: Int64 { Int64(sampleRate) }
  private func spectral(_ second: Int64) -> Int { Int(second - readStart) * FrameTransform.framesPerSecond }

  /// The frames of the recording to read.
  var read: Range<Int64> { readStart * rate..<(start + Self.seconds + Self.tail) * rate }
  /// The frames of the recording that come out, including those that are faded in.
  var output: Range<Int64> { max(0, start * rate - fade)..<(start + Self.seconds) * rate }
  /// The number of frames in which a segment is faded into the one before.
  var fade: Int64 { rate / 10 }
  /// The first spectral frame that the networks see.
  var firstNetwork: Int { spectral(max(0, start - Self.warmUp)) }
  /// The first spectral frame that comes out, and the first after a fade.
  var firstOutput: Int { number == 0 ? 0 : spectral(start) - 10 }
  var firstOwn: Int { spectral(start) }
  /// The end of the spectral frames, if the sound that is wanted ends at a frame of the recording: the end of a second,
  /// because the guard decides for each, and a little more for the resampler.
  func end(forSoundUpTo end: Int64) -> Int {
    // A recording whose end isn't known has none that an addition could pass.
    let end = min(end, 1 << 60)
    let second = min(start + Self.seconds, max(start + 1, (end + rate / 5 + rate - 1) / rate))
    return spectral(second) + 5
  }

  /// Returns the segments that make up `frames` of a recording.
  static func segments(for frames: Range<Int64>, sampleRate: Int) -> Range<Int64> {
    let length = seconds * Int64(sampleRate), fade = Int64(sampleRate) / 10
    return frames.lowerBound / length..<(frames.upperBound - 1 + fade) / length + 1
  }

  /// Returns the frames to read so that `frames` come out.
  static func sound(for frames: Range<Int64>, sampleRate: Int) -> Range<Int64> {
    // Beyond the end of any recording.
    guard frames.upperBound < 1 << 60 else {
      let first = SegmentPlace(number: frames.lowerBound / (seconds * Int64(sampleRate)), sampleRate: sampleRate)
      return first.read.lowerBound..<(.max)
    }
    let segments = segments(for: frames, sampleRate: sampleRate)
    let first = SegmentPlace(number: segments.lowerBound, sampleRate: sampleRate)
    let last = SegmentPlace(number: segments.upperBound - 1, sampleRate: sampleRate)
    return first.read.lowerBound..<last.read.upperBound
  }
}
