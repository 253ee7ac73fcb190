// A field section is kept as the bytes that go over the wire, `name ": " value CRLF` for each field, with a table of
// where each one lies. A request's section thus costs three allocations however many fields it has, a response's is
// copied to the socket as it stands, and a String is made only of what somebody asks for.

/// Header fields (RFC 9110 §5): in order, names compared without case, repeats kept.
package struct HTTPFields: Sendable, Equatable, ExpressibleByDictionaryLiteral {
  /// Shared by copies: fields are handed on far more often than they are made. Nil where there was never one.
  private var shared: Shared?

  private final class Shared: Sendable {
    let section: FieldSection

    init(_ section: FieldSection) { self.section = section }
  }

  /// No fields.
  package init() {}

  /// The fields of a section that a parser has checked.
  init(_ section: FieldSection) { shared = Shared(section) }

  /// Fields in the order written; a name may stand more than once.
  package init(dictionaryLiteral elements: (String, String)...) {
    for (name, value) in elements { append(name, value) }
  }

  /// The whole section as it goes over the wire, without the empty line.
  var lines: [UInt8] { shared?.section.lines ?? [] }

  /// How many fields there are, repeats counted.
  package var count: Int { shared?.section.count ?? 0 }

  /// Whether there is no field.
  package var isEmpty: Bool { count == 0 }

  /// The value of a field; several of one name are joined by `", "` (RFC 9110 §5.3). Setting replaces all of that
  /// name, nil removes them.
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

  /// Every value of a name, in order, not split at commas.
  package func values(of name: String) -> [String] {
    guard let section = shared?.section else { return [] }
    return section.entries.filter { section.matches($0, name.utf8.span) }.map { section.string($0.value) }
  }

  /// Whether a field of that name is there.
  package func contains(_ name: String) -> Bool { shared?.section.first(name) != nil }

  /// The bytes of the first value of a name.
  func bytes(of name: String) -> ArraySlice<UInt8>? {
    guard let section = shared?.section, let first = section.first(name) else { return nil }
    return section.lines[section.entries[first].value]
  }

  /// How many fields have that name.
  func count(of name: String) -> Int { shared?.section.count(of: name) ?? 0 }

  /// Adds a field behind the others. The name must be a token. Control bytes in the value become blanks, so that no
  /// value, wherever it came from, can end its line and start a field of its own.
  package mutating func append(_ name: String, _ value: String) {
    precondition(!name.isEmpty && name.utf8.allSatisfy(ASCII.isTokenByte), "a field name is a token")
    change { $0.append(name.utf8, value.utf8.lazy.map { ASCII.isFieldValueByte($0) ? $0 : ASCII.space }) }
  }

  /// Removes every field of that name.
  package mutating func remove(_ name: String) {
    guard contains(name) else { return }
    change { $0.remove(name) }
  }

  /// Appends, as they go over the wire, those fields whose names are not in `others`.
  func appendLines(missingIn others: HTTPFields, to bytes: inout [UInt8]) {
    guard let section = shared?.section else { return }
    for entry in section.entries
    where others.shared?.section.first(section.lines.span.extracting(entry.name)) == nil {
      bytes.append(contentsOf: section.lines[entry.line])
    }
  }

  /// The values of one name split at commas and trimmed, empty elements dropped (RFC 9110 §5.6.1).
  package func list(_ name: String) -> [String] {
    values(of: name).flatMap { $0.utf8.split(separator: UInt8(ascii: ",")) }
      .map { String(decoding: Array($0)[...].trimmingBlanks(), as: UTF8.self) }
      .filter { !$0.isEmpty }
  }

  /// Whether an element of such a list is that word, in any case. Makes no Strings.
  func list(_ name: String, contains word: String) -> Bool {
    guard let section = shared?.section else { return false }
    return section.entries.contains { entry in
      guard section.matches(entry, name.utf8.span) else { return false }
      return section.lines[entry.value].split(separator: ASCII.comma).contains {
        $0.trimmingBlanks().equalsIgnoringCase(word)
      }
    }
  }

  func name(at index: Int) -> String {
    guard let section = shared?.section else { preconditionFailure("there are no fields") }
    return section.string(section.entries[index].name)
  }

  private mutating func change(_ work: (inout FieldSection) -> Void) {
    var section = shared?.section ?? FieldSection()
    // The section is changed where it lies, unless somebody else has a part in it.
    shared = nil
    work(&section)
    shared = Shared(section)
  }

  /// Equal names and values in equal order, byte for byte.
  package static func == (left: HTTPFields, right: HTTPFields) -> Bool { left.lines == right.lines }
}

/// What `HTTPFields` holds; parsers build one of these.
struct FieldSection: Sendable {
  fileprivate struct Entry: Sendable {
    let start: Int
    let nameLength: Int
    let valueLength: Int

    var name: Range<Int> { start..<start + nameLength }
    var value: Range<Int> { start + nameLength + 2..<start + nameLength + 2 + valueLength }
    /// With its CRLF.
    var line: Range<Int> { start..<value.upperBound + 2 }
  }

  fileprivate var lines: [UInt8] = []
  fileprivate var entries: [Entry] = []

  var count: Int { entries.count }

  /// Adds a field whose bytes have been checked.
  mutating func append(_ name: some Sequence<UInt8>, _ value: some Sequence<UInt8>) {
    if entries.isEmpty {
      lines.reserveCapacity(240)
      entries.reserveCapacity(8)
    }
    let start = lines.count
    lines.append(contentsOf: name)
    let nameLength = lines.count - start
    lines.append(ASCII.colon)
    lines.append(ASCII.space)
    lines.append(contentsOf: value)
    entries.append(Entry(start: start, nameLength: nameLength, valueLength: lines.count - start - nameLength - 2))
    lines.append(ASCII.carriageReturn)
    lines.append(ASCII.lineFeed)
  }

  fileprivate mutating func remove(_ name: String) {
    var kept = FieldSection()
    for entry in entries where !matches(entry, name.utf8.span) { kept.append(lines[entry.name], lines[entry.value]) }
    self = kept
  }

  fileprivate func first(_ name: String) -> Int? { first(name.utf8.span) }

  fileprivate func first(_ name: borrowing Span<UInt8>) -> Int? {
    let entries = entries.span
    for index in entries.indices where matches(entries[index], name) { return index }
    return nil
  }

  fileprivate func count(of name: String) -> Int { entries.count { matches($0, name.utf8.span) } }

  fileprivate func matches(_ entry: Entry, _ name: borrowing Span<UInt8>) -> Bool {
    guard entry.nameLength == name.count else { return false }
    let bytes = lines.span
    for index in 0..<name.count
    where ASCII.lowercased(bytes[entry.start + index]) != ASCII.lowercased(name[index]) {
      return false
    }
    return true
  }

  fileprivate func string(_ range: Range<Int>) -> String { String(decoding: lines[range], as: UTF8.self) }
}

extension HTTPFields: Sequence {
  /// Name and value of each field, in order.
  package func makeIterator() -> IndexingIterator<[(name: String, value: String)]> {
    guard let section = shared?.section else { return [].makeIterator() }
    return section.entries.map { (section.string($0.name), section.string($0.value)) }.makeIterator()
  }
}
