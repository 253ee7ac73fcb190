extension Span<UInt8> {
  /// Whether more than 256 combining marks follow each other in UTF-8.
  ///
  /// No real text has such a run. Comparing, hashing and searching a String with one takes time that grows with the
  /// square of its length: 1 s for 64 KiB.
  package var hasLongMarkRun: Bool {
    // Each takes at least two bytes.
    guard hasForeignRun(longerThan: 512) else { return false }
    let text = unsafe withUnsafeBufferPointer { unsafe String(decoding: $0, as: UTF8.self) }
    var run = 0
    for scalar in text.unicodeScalars {
      // Three Tibetan vowels have class 0, but decompose into two marks, so the category counts as well.
      let properties = scalar.properties
      let isMark = properties.canonicalCombiningClass != .notReordered || properties.generalCategory == .nonspacingMark
      run = isMark ? run + 1 : 0
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
