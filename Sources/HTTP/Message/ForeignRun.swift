extension Span<UInt8> {
  /// Whether more than 1,024 bytes in a row aren't ASCII.
  ///
  /// No name is that long, and Strings of many combining marks take time to compare, to hash and to search that grows
  /// with the square of their number: 1 s for 64 KiB.
  package var hasLongForeignRun: Bool {
    var run = 0
    for index in indices {
      run = self[index] < 0x80 ? 0 : run + 1
      if run > 1024 { return true }
    }
    return false
  }
}
