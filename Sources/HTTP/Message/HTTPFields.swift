import Terms

// A field section is stored as the bytes on the wire, `name ": " value CRLF` for each field, with a table of the
// fields' positions. A request's section thus needs three allocations no matter how many fields it has, a response's is
// copied to the socket as is, and a String is created only for a value that is read.

/// Header fields (RFC 9110 §5), in order. Names compare without case, and repeated fields are kept.
package struct HTTPFields: Sendable, Equatable, ExpressibleByDictionaryLiteral {
  /// Shared by copies, because fields are passed on far more often than they are built. Nil if no field was ever added.
  private var shared: Shared?

  private final class Shared: Sendable {
    let section: FieldSection

    init(_ section: FieldSection) { self.section = section }
  }

  /// Creates an empty section.
  package init() {}

  /// Wraps a section that a parser has validated.
  init(_ section: FieldSection) { shared = Shared(section) }

  /// Creates fields in the order given; a name may appear more than once.
  package init(dictionaryLiteral elements: (String, String)...) { append(elements) }

  /// Creates fields that `write` adds in order. Cheaper than a list: names are literals, and values are written where
  /// they stay.
  package init(_ write: (inout Writer) -> Void) {
    var writer = Writer()
    write(&writer)
    shared = Shared(writer.section)
  }

  /// Adds fields to a section.
  package struct Writer {
    fileprivate var section = FieldSection()

    /// Adds a field whose value is what `write` appends: at most `room` bytes. Control bytes in the value become
    /// spaces.
    package mutating func add(_ name: StaticString, room: Int, _ write: (inout OutputSpan<UInt8>) -> Void) {
      section.append(name, room: room, write)
    }

    /// Adds a field. Control bytes in the value become spaces.
    package mutating func add(_ name: StaticString, _ value: String) {
      let value = value.utf8.span
      section.append(name, room: value.count) { $0.append(copying: value) }
    }
  }

  /// The whole section as on the wire, without the empty line.
  var lines: [UInt8] { shared?.section.lines ?? [] }

  /// Number of fields, including repeats.
  package var count: Int { shared?.section.count ?? 0 }

  /// Whether there are no fields.
  package var isEmpty: Bool { count == 0 }

  /// The value of a field; several fields of one name are joined by `", "` (RFC 9110 §5.3). Setting it replaces all
  /// fields of that name; nil removes them.
  package subscript(_ name: String) -> String? {
    get {
      guard contains(name) else { return nil }
      return values(of: name).joined(separator: ", ")
    }
    set {
      remove(name)
      if let newValue { append(name, newValue) }
    }
  }

  /// Returns every value of a name, in order, not split at commas.
  package func values(of name: String) -> [String] {
    guard let section = shared?.section else { return [] }
    return section.entries.filter { section.matches($0, name.utf8.span) }.map { section.string($0.value) }
  }

  /// Whether there is a field of that name.
  package func contains(_ name: String) -> Bool { shared?.section.first(name) != nil }

  /// Returns the bytes of the first value of a name.
  package func bytes(of name: String) -> ArraySlice<UInt8>? {
    guard let section = shared?.section, let first = section.first(name) else { return nil }
    return section.lines[section.entries[first].value]
  }

  /// Returns the number of fields with that name.
  package func count(of name: String) -> Int { shared?.section.count(of: name) ?? 0 }

  /// How often a name occurs, with the bytes of a single value.
  package enum Occurrence {
    case never
    case once(ArraySlice<UInt8>)
    case repeatedly
  }

  /// Returns how often a name occurs, for a field that must not be repeated.
  package func occurrence(of name: String) -> Occurrence {
    guard let section = shared?.section, let first = section.first(name) else { return .never }
    guard section.first(name.utf8.span, from: first + 1) == nil else { return .repeatedly }
    return .once(section.lines[section.entries[first].value])
  }

  /// Adds a field after the others. The name must be a token. Control bytes in the value become spaces, so that no
  /// value from any source can end its line and start another field.
  package mutating func append(_ name: String, _ value: String) { append([(name, value)]) }

  /// Adds several fields at the cost of one.
  package mutating func append(_ elements: [(name: String, value: String)]) {
    guard !elements.isEmpty else { return }
    change { section in
      for (name, value) in elements { section.append(name, value) }
    }
  }

  /// Removes every field of that name.
  package mutating func remove(_ name: String) {
    guard contains(name) else { return }
    change { $0.remove(name) }
  }

  /// Appends, in wire format, the fields whose names are not in `others`.
  func appendLines(missingIn others: HTTPFields, to bytes: inout OutputSpan<UInt8>) {
    guard let section = shared?.section else { return }
    for entry in section.entries
    where others.shared?.section.first(section.lines.span.extracting(entry.name)) == nil {
      bytes.append(copying: section.lines.span.extracting(entry.line))
    }
  }

  /// Returns the values of one name, split at commas and trimmed, without empty elements (RFC 9110 §5.6.1).
  package func list(_ name: String) -> [String] {
    values(of: name).flatMap { $0.utf8.split(separator: UInt8(ascii: ",")) }
      .map { String(decoding: Array($0)[...].trimmingBlanks(), as: UTF8.self) }
      .filter { !$0.isEmpty }
  }

  /// Whether such a list contains this word, ignoring case. Creates no Strings.
  func list(_ name: String, contains word: String) -> Bool {
    guard let section = shared?.section else { return false }
    return section.entries.contains {
      section.matches($0, name.utf8.span) && section.list(at: $0.value, contains: word.utf8.span)
    }
  }

  func name(at index: Int) -> String {
    guard let section = shared?.section else { preconditionFailure("there are no fields") }
    return section.string(section.entries[index].name)
  }

  private mutating func change(_ work: (inout FieldSection) -> Void) {
    var section = shared?.section ?? FieldSection()
    // Releases this reference first, so that the section is modified in place unless it is shared.
    shared = nil
    work(&section)
    shared = Shared(section)
  }

  /// Whether names and values are equal, byte for byte and in the same order.
  package static func == (left: HTTPFields, right: HTTPFields) -> Bool { left.lines == right.lines }
}

/// The storage of `HTTPFields`; parsers build one of these.
struct FieldSection: Sendable {
  fileprivate struct Entry: Sendable {
    let start: Int
    let nameLength: Int
    let valueLength: Int

    var name: Range<Int> { start..<start + nameLength }
    var value: Range<Int> { start + nameLength + 2..<start + nameLength + 2 + valueLength }
    /// Including its CRLF.
    var line: Range<Int> { start..<value.upperBound + 2 }
  }

  fileprivate var lines: [UInt8] = []
  fileprivate var entries: [Entry] = []
  /// Bit n is set if a name has n bytes, or n + 64 and so on: most names that are looked for aren't there.
  private var nameLengths: UInt64 = 0

  var count: Int { entries.count }

  /// Adds a field whose bytes have been validated.
  mutating func append(_ name: some Sequence<UInt8>, _ value: some Sequence<UInt8>) {
    if entries.isEmpty {
      lines.reserveCapacity(240)
      entries.reserveCapacity(8)
    }
    let start = lines.count
    lines.append(contentsOf: name)
    let nameLength = lines.count - start
    nameLengths |= Self.bit(nameLength)
    lines.append(ASCII.colon)
    lines.append(ASCII.space)
    lines.append(contentsOf: value)
    entries.append(Entry(start: start, nameLength: nameLength, valueLength: lines.count - start - nameLength - 2))
    lines.append(ASCII.carriageReturn)
    lines.append(ASCII.lineFeed)
  }

  /// Adds a field whose value is what `write` appends, at most `room` bytes.
  fileprivate mutating func append(_ name: StaticString, room: Int, _ write: (inout OutputSpan<UInt8>) -> Void) {
    assert(name.description.utf8.allSatisfy(ASCII.isTokenByte), "a field name is a token")
    if entries.isEmpty {
      lines.reserveCapacity(400)
      entries.reserveCapacity(8)
    }
    let start = lines.count
    let nameLength = name.utf8CodeUnitCount
    lines.append(addingCapacity: nameLength + room + 4) { line in
      line.append(literal: name)
      line.append(literal: ": ")
      write(&line)
      line.append(literal: "\r\n")
    }
    let entry = Entry(start: start, nameLength: nameLength, valueLength: lines.count - start - nameLength - 4)
    if !Self.isClean(lines.span.extracting(entry.value)) {
      for index in entry.value where !ASCII.isFieldValueByte(lines[index]) { lines[index] = ASCII.space }
    }
    nameLengths |= Self.bit(nameLength)
    entries.append(entry)
  }

  /// Adds a field from any source.
  fileprivate mutating func append(_ name: String, _ value: String) {
    precondition(!name.isEmpty && name.utf8.allSatisfy(ASCII.isTokenByte), "a field name is a token")
    if Self.isClean(value.utf8.span) {
      append(name.utf8, value.utf8)
    } else {
      append(name.utf8, value.utf8.lazy.map { ASCII.isFieldValueByte($0) ? $0 : ASCII.space })
    }
  }

  /// Looks at every byte without stopping, so that the compiler can look at several at once.
  private static func isClean(_ value: borrowing Span<UInt8>) -> Bool {
    var isClean = true
    for index in value.indices { isClean = ASCII.isFieldValueByte(value[index]) && isClean }
    return isClean
  }

  fileprivate mutating func remove(_ name: String) {
    var kept = FieldSection()
    for entry in entries where !matches(entry, name.utf8.span) { kept.append(lines[entry.name], lines[entry.value]) }
    self = kept
  }

  fileprivate func first(_ name: String) -> Int? { first(name.utf8.span) }

  private static func bit(_ nameLength: Int) -> UInt64 { 1 << UInt64(nameLength % 64) }

  fileprivate func first(_ name: borrowing Span<UInt8>, from start: Int = 0) -> Int? {
    guard nameLengths & Self.bit(name.count) != 0 else { return nil }
    let entries = entries.span
    for index in start..<entries.count where matches(entries[index], name) { return index }
    return nil
  }

  fileprivate func count(of name: String) -> Int { entries.count { matches($0, name.utf8.span) } }

  fileprivate func matches(_ entry: Entry, _ name: borrowing Span<UInt8>) -> Bool { matches(entry.name, name) }

  /// Whether these bytes are a word, ignoring case.
  private func matches(_ range: Range<Int>, _ word: borrowing Span<UInt8>) -> Bool {
    guard range.count == word.count else { return false }
    let bytes = lines.span
    for index in 0..<word.count
    where ASCII.lowercased(bytes[range.lowerBound + index]) != ASCII.lowercased(word[index]) {
      return false
    }
    return true
  }

  /// Whether an element of a list between commas is a word, ignoring case and blanks around it.
  fileprivate func list(at value: Range<Int>, contains word: borrowing Span<UInt8>) -> Bool {
    let bytes = lines.span
    var start = value.lowerBound
    while start < value.upperBound {
      var end = start
      while end < value.upperBound, bytes[end] != ASCII.comma { end += 1 }
      var (first, last) = (start, end)
      while first < last, ASCII.isBlank(bytes[first]) { first += 1 }
      while first < last, ASCII.isBlank(bytes[last - 1]) { last -= 1 }
      if matches(first..<last, word) { return true }
      start = end + 1
    }
    return false
  }

  fileprivate func string(_ range: Range<Int>) -> String { String(decoding: lines[range], as: UTF8.self) }
}

extension HTTPFields: Sequence {
  /// Returns an iterator over the name and value of each field, in order.
  package func makeIterator() -> IndexingIterator<[(name: String, value: String)]> {
    guard let section = shared?.section else { return [].makeIterator() }
    return section.entries.map { (section.string($0.name), section.string($0.value)) }.makeIterator()
  }
}
