// A field section is kept as the bytes that go over the wire, `name ": " value CRLF` for each field, with a table of
// where each one lies. A request's section thus costs two allocations however many fields it has, a response's is
// copied to the socket as it stands, and a String is made only of what somebody asks for.

/// Header fields (RFC 9110 §5): in order, names compared without case, repeats kept.
public struct HTTPFields: Sendable, Equatable, ExpressibleByDictionaryLiteral {
  private struct Entry: Sendable, Equatable {
    var start: Int
    var nameLength: Int
    var valueLength: Int
    var valueStart: Int { start + nameLength + 2 }
    var end: Int { valueStart + valueLength + 2 }
  }

  /// The whole section as it goes over the wire, without the empty line.
  private(set) var lines: [UInt8] = []
  private var entries: [Entry] = []

  /// No fields.
  public init() {}

  /// Fields in the order written; a name may stand more than once.
  public init(dictionaryLiteral elements: (String, String)...) {
    for (name, value) in elements { append(name, value) }
  }

  /// How many fields there are, repeats counted.
  public var count: Int { entries.count }

  /// Whether there is no field.
  public var isEmpty: Bool { entries.isEmpty }

  /// The value of a field; several of one name are joined by `", "` (RFC 9110 §5.3). Setting replaces all of that
  /// name, nil removes them.
  public subscript(_ name: String) -> String? {
    get {
      var joined: String?
      for entry in entries where matches(entry, name) {
        let value = string(entry.valueStart, entry.valueLength)
        joined = joined.map { $0 + ", " + value } ?? value
      }
      return joined
    }
    set {
      remove(name)
      if let newValue { append(name, newValue) }
    }
  }

  /// Every value of a name, in order, not split at commas.
  public func values(of name: String) -> [String] {
    entries.filter { matches($0, name) }.map { string($0.valueStart, $0.valueLength) }
  }

  /// Whether a field of that name is there.
  public func contains(_ name: String) -> Bool {
    entries.contains { matches($0, name) }
  }

  /// The bytes of the first value of a name.
  func bytes(of name: String) -> ArraySlice<UInt8>? {
    entries.first { matches($0, name) }.map { lines[$0.valueStart..<$0.valueStart + $0.valueLength] }
  }

  /// How many fields have that name.
  func count(of name: String) -> Int {
    entries.count { matches($0, name) }
  }

  /// Adds a field behind the others. The name must be a token. Control bytes in the value become blanks, so that no
  /// value, wherever it came from, can end its line and start a field of its own.
  public mutating func append(_ name: String, _ value: String) {
    precondition(!name.isEmpty && name.utf8.allSatisfy(ASCII.isTokenByte), "a field name is a token")
    let start = lines.count
    lines.append(contentsOf: name.utf8)
    lines.append(ASCII.colon)
    lines.append(ASCII.space)
    for byte in value.utf8 { lines.append(ASCII.isFieldValueByte(byte) ? byte : ASCII.space) }
    endLine(start: start, nameLength: name.utf8.count)
  }

  /// Adds a field whose bytes the parser has checked.
  mutating func append(parsedName name: ArraySlice<UInt8>, value: ArraySlice<UInt8>) {
    let start = lines.count
    if start == 0 {
      lines.reserveCapacity(240)
      entries.reserveCapacity(8)
    }
    lines.append(contentsOf: name)
    lines.append(ASCII.colon)
    lines.append(ASCII.space)
    lines.append(contentsOf: value)
    endLine(start: start, nameLength: name.count)
  }

  /// Removes every field of that name.
  public mutating func remove(_ name: String) {
    guard contains(name) else { return }
    var kept = HTTPFields()
    for entry in entries where !matches(entry, name) { kept.copy(entry, from: self) }
    self = kept
  }

  /// Appends, as they go over the wire, those fields whose names are not in `others`.
  func appendLines(missingIn others: HTTPFields, to bytes: inout [UInt8]) {
    for entry in entries {
      let name = lines.span.extracting(entry.start..<entry.start + entry.nameLength)
      if !others.entries.contains(where: { others.matches($0, name) }) {
        bytes.append(contentsOf: lines[entry.start..<entry.end])
      }
    }
  }

  /// The values of one name split at commas and trimmed, empty elements dropped (RFC 9110 §5.6.1).
  public func list(_ name: String) -> [String] {
    values(of: name).flatMap { $0.utf8.split(separator: UInt8(ascii: ",")) }
      .map { String(decoding: Array($0)[...].trimmingBlanks(), as: UTF8.self) }
      .filter { !$0.isEmpty }
  }

  /// Whether an element of such a list is that word, in any case. Makes no Strings.
  func list(_ name: String, contains word: String) -> Bool {
    for entry in entries where matches(entry, name) {
      var start = entry.valueStart
      let end = start + entry.valueLength
      while start < end {
        let comma = lines[start..<end].firstIndex(of: ASCII.comma) ?? end
        if lines[start..<comma].trimmingBlanks().equalsIgnoringCase(word) { return true }
        start = comma + 1
      }
    }
    return false
  }

  func name(at index: Int) -> String { string(entries[index].start, entries[index].nameLength) }

  private mutating func endLine(start: Int, nameLength: Int) {
    let valueLength = lines.count - start - nameLength - 2
    lines.append(ASCII.carriageReturn)
    lines.append(ASCII.lineFeed)
    entries.append(Entry(start: start, nameLength: nameLength, valueLength: valueLength))
  }

  private mutating func copy(_ entry: Entry, from other: HTTPFields) {
    entries.append(Entry(start: lines.count, nameLength: entry.nameLength, valueLength: entry.valueLength))
    lines.append(contentsOf: other.lines[entry.start..<entry.end])
  }

  private func matches(_ entry: Entry, _ name: String) -> Bool { matches(entry, name.utf8.span) }

  private func matches(_ entry: Entry, _ name: borrowing Span<UInt8>) -> Bool {
    guard entry.nameLength == name.count else { return false }
    let bytes = lines.span
    for index in 0..<name.count
    where ASCII.lowercased(bytes[entry.start + index]) != ASCII.lowercased(name[index]) {
      return false
    }
    return true
  }

  private func string(_ start: Int, _ length: Int) -> String {
    String(decoding: lines[start..<start + length], as: UTF8.self)
  }
}

extension HTTPFields: Sequence {
  /// Name and value of each field, in order.
  public func makeIterator() -> IndexingIterator<[(name: String, value: String)]> {
    entries.map { (string($0.start, $0.nameLength), string($0.valueStart, $0.valueLength)) }.makeIterator()
  }
}
