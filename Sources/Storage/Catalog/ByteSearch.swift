// Knuth, Morris, Pratt: "Fast Pattern Matching in Strings" (1977). After a mismatch, the search goes on with the
// longest beginning of the pattern that ends where the text is, so it reads each byte of the text once, whatever both
// contain.

/// Looks for one text in many, by bytes. O(text), whatever a client searches for.
struct ByteSearch {
  private let pattern: [UInt8]
  /// For each byte of the pattern: the length of the longest proper beginning of the pattern that ends with it.
  private let borders: [Int]

  /// Prepares the search for a text that is not empty.
  init(_ pattern: [UInt8]) {
    var (borders, length) = ([Int](repeating: 0, count: pattern.count), 0)
    for index in pattern.indices.dropFirst() {
      while length > 0, pattern[index] != pattern[length] { length = borders[length - 1] }
      if pattern[index] == pattern[length] { length += 1 }
      borders[index] = length
    }
    (self.pattern, self.borders) = (pattern, borders)
  }

  /// Returns for each line of a text whether it contains the pattern, which has no line break.
  func lines(of text: String) -> [Bool] {
    var (found, length, isFound) = ([Bool](), 0, false)
    for byte in text.utf8 {
      guard byte != UInt8(ascii: "\n") else {
        found.append(isFound)
        (length, isFound) = (0, false)
        continue
      }
      guard !isFound else { continue }
      while length > 0, byte != pattern[length] { length = borders[length - 1] }
      if byte == pattern[length] { length += 1 }
      isFound = length == pattern.count
    }
    return found + [isFound]
  }
}
