import Storage

/// How a file becomes one object of those that already have its bytes: most parts of the multipart upload are copied
/// within the store.
///
/// All parts but the last have a least size. What is shorter, or left between two long objects, is sent from the file.
struct JoinPlan: Equatable {
  /// A part of the new object.
  enum Part: Equatable {
    /// The bytes `range` of an object; nil for all.
    case copy(UploadObject, Range<Int64>?)
    /// The bytes `range` of the file.
    case send(Range<Int64>)
  }

  private(set) var parts: [Part] = []
  private let leastBytes: Int64

  /// Plans a file of `bytes` bytes. Returns nil if nothing can be copied, or if `objects` don't have all of its bytes,
  /// in order. The parts have at least `leastBytes` bytes, or more if there would be more than 10,000.
  init?(_ objects: [UploadObject], bytes: Int64, leastBytes: Int64) {
    self.leastBytes = max(leastBytes, bytes / 9_999 + 1)
    var (place, sentFrom) = (Int64(0), Int64(0))
    for object in objects {
      guard object.start == place, object.bytes > 0 else { return nil }
      place = object.end
      // What waits to be sent has to become long enough first.
      let waiting = object.start - sentFrom
      let lent = waiting == 0 ? 0 : max(0, self.leastBytes - waiting)
      guard object.bytes - lent >= self.leastBytes else {
        sentFrom = send(sentFrom..<place, isLast: place == bytes)
        continue
      }
      if waiting > 0 { parts.append(.send(sentFrom..<object.start + lent)) }
      parts.append(.copy(object, lent == 0 ? nil : lent..<object.bytes))
      sentFrom = place
    }
    guard place == bytes, parts.contains(where: { if case .copy = $0 { true } else { false } }) else { return nil }
  }

  /// Sends a range if it is long enough. Returns the start of what still waits.
  private mutating func send(_ range: Range<Int64>, isLast: Bool) -> Int64 {
    guard isLast || Int64(range.count) >= leastBytes else { return range.lowerBound }
    parts.append(.send(range))
    return range.upperBound
  }
}
