// Clients and people give times in seconds; everything inside counts frames. This file turns one into the other, so
// that no time is compared with a recording's length in floating point.

extension Range<Int64> {
  /// More frames than any recording has: 35 years at 1 MHz. Below it, a `Double` of seconds leads to the exact frame.
  private static let limit = 0x1p50

  /// Creates the frames from one time to another: both are rounded to the nearest frame, and at least one frame is in
  /// between.
  /// - Parameters:
  ///   - start: in seconds, 0 or more.
  ///   - end: in seconds, over `start`.
  package init(start: Double, end: Double, sampleRate: Int) {
    func frame(_ seconds: Double) -> Int64 { Int64(Swift.min(seconds * Double(sampleRate), Self.limit).rounded()) }
    let first = frame(start)
    self = first..<Swift.max(frame(end), first + 1)
  }

  /// The start in seconds; see `seconds(_:sampleRate:)`.
  package func startSeconds(sampleRate: Int) -> Double { Self.seconds(lowerBound, sampleRate) }

  /// The end in seconds; see `startSeconds`.
  package func endSeconds(sampleRate: Int) -> Double { Self.seconds(upperBound, sampleRate) }

  /// Returns a time that leads back to the frame and isn't after it, so that no end is past the recording's: a whole
  /// number of microseconds, which is enough up to 500 kHz, or else the exact time.
  private static func seconds(_ frame: Int64, _ sampleRate: Int) -> Double {
    let exact = Double(frame) / Double(sampleRate)
    let nearest = (exact * 1e6).rounded()
    let short = (nearest / 1e6 <= exact ? nearest : nearest - 1) / 1e6
    return (short * Double(sampleRate)).rounded() == Double(frame) ? short : exact
  }
}
