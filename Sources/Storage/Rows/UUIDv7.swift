// UUID version 7, RFC 9562 §5.7, with the counter of §6.2 method 1.
//
//   bits  0 …  47  unix_ts_ms  milliseconds since 1970, big-endian
//   bits 48 …  51  version     0111
//   bits 52 …  63  rand_a      a counter: random below 2048 in a new millisecond, + 1 within the same one
//   bits 64 …  65  variant     10
//   bits 66 … 127  rand_b      62 random bits
//
// As text: 8-4-4-4-12 lower-case hexadecimal digits. The counter makes the IDs of one process's rows sort in the order
// of their creation; 62 fresh bits from getrandom(2) make them hard to guess.

import Synchronization

/// A UUID of version 7: sixteen bytes that sort by creation time.
struct UUIDv7: Hashable, Comparable, Sendable {
  let high: UInt64
  let low: UInt64

  /// Creates a name for a file, which is unique but has no place in the order of the IDs.
  init() {
    var clock = UUIDClock()
    self.init(at: .now, by: &clock)
  }

  /// Creates the next ID of this process at the present `time`, which is that of the catalog's clock.
  init(at time: Timestamp) { self = Self.latest.withLock { Self(at: time, by: &$0) } }

  private init(at time: Timestamp, by clock: inout UUIDClock) {
    var random = SystemRandomNumberGenerator()
    let stamp = clock.advance(
      to: UInt64(max(0, time.milliseconds)), fresh: UInt64.random(in: 0..<(1 << 11), using: &random))
    high = (stamp >> 12) << 16 | 0x7000 | stamp & 0xFFF
    low = 1 << 63 | UInt64.random(in: 0..<(1 << 62), using: &random)
  }

  /// Parses an ID. Fails unless the text is exactly in the form of `text`: lower case, version 7.
  init?(_ text: String) {
    let digits = text.utf8.span
    guard digits.count == 36 else { return nil }
    var words: (high: UInt64, low: UInt64) = (0, 0)
    for position in 0..<36 {
      let digit = digits[position]
      if Self.isDash(position) {
        guard digit == UInt8(ascii: "-") else { return nil }
        continue
      }
      guard let value = Self.value(ofDigit: digit) else { return nil }
      words.high = words.high << 4 | words.low >> 60
      words.low = words.low << 4 | value
    }
    guard words.high >> 12 & 0xF == 7, words.low >> 62 == 0b10 else { return nil }
    (high, low) = words
  }

  /// When it was created, to the millisecond.
  var created: Timestamp { Timestamp(milliseconds: Int64(high >> 16)) }

  /// The time and counter, as in `UUIDClock`.
  var stamp: UInt64 { (high >> 16) << 12 | high & 0xFFF }

  var text: String {
    var digits: [UInt8] = []
    digits.append(addingCapacity: 36) { appendText(to: &$0) }
    return String(decoding: digits, as: UTF8.self)
  }

  /// Appends the 36 bytes of `text`.
  func appendText(to output: inout OutputSpan<UInt8>) {
    var (word, rest) = (high, low)
    for position in 0..<36 {
      if Self.isDash(position) {
        output.append(UInt8(ascii: "-"))
        continue
      }
      let digit = UInt8(truncatingIfNeeded: word >> 60)
      output.append(digit < 10 ? 0x30 + digit : 0x57 + digit)
      (word, rest) = (word << 4 | rest >> 60, rest << 4)
    }
  }

  static func < (a: UUIDv7, b: UUIDv7) -> Bool {
    (a.high, a.low) < (b.high, b.low)
  }

  private static func isDash(_ position: Int) -> Bool {
    position == 8 || position == 13 || position == 18 || position == 23
  }

  private static let latest = Mutex(UUIDClock())

  private static func value(ofDigit digit: UInt8) -> UInt64? {
    switch digit {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt64(digit - UInt8(ascii: "0"))
    case UInt8(ascii: "a")...UInt8(ascii: "f"): UInt64(digit - UInt8(ascii: "a") + 10)
    default: nil
    }
  }
}

/// The time and counter of the latest ID as one number: milliseconds · 4096 + counter.
struct UUIDClock {
  private var stamp: UInt64 = 0

  /// Returns the stamp of the next ID, greater than every earlier one even if the clock was set back or the counter
  /// overflowed within a millisecond (the carry then borrows from the next millisecond, as §6.2 permits).
  mutating func advance(to milliseconds: UInt64, fresh counter: UInt64) -> UInt64 {
    stamp = milliseconds > stamp >> 12 ? milliseconds << 12 | counter : stamp + 1
    return stamp
  }
}
