extension Span<UInt8> {
  /// Whether more than 256 combining marks follow each other in UTF-8.
  ///
  /// No text has so many, and Strings of them take time to compare, to hash and to search that grows with the square of
  /// their number: 1 s for 64 KiB.
  package var hasLongMarkRun: Bool {
    // Each takes at least two bytes.
    guard hasForeignRun(longerThan: 512) else { return false }
    let text = unsafe withUnsafeBufferPointer { unsafe String(decoding: $0, as: UTF8.self) }
    var run = 0
    for scalar in text.unicodeScalars {
      run = scalar.properties.canonicalCombiningClass == .notReordered ? 0 : run + 1
      if run > 256 { return true }
    }
    return false
  }

  /// Whether more than `limit` bytes in a row aren't ASCII.
  private func hasForeignRun(longerThan limit: Int) -> Bool {
    var run = 0
    for index in indices {
      run = self[index] < 0x80 ? 0 : run + 1
      if run > limit { return true }
    }
    return false
  }
}
