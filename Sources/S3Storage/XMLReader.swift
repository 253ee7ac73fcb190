// The XML of S3's answers: elements and text. Comments, processing instructions and attributes are skipped, prefixes of
// names are dropped. A DOCTYPE is refused, so there are no entities but the five of XML 1.0 §4.6 and numbers. The store
// isn't trusted: depth and number of elements are limited, and the caller limits the bytes.

/// An element.
struct XMLElement: Sendable {
  let name: String
  /// The text directly in it, without that of its children.
  var text = ""
  var children: [XMLElement] = []

  /// The first child of this name.
  subscript(_ name: String) -> XMLElement? { children.first { $0.name == name } }

  /// All children of this name.
  func all(_ name: String) -> [XMLElement] { children.filter { $0.name == name } }

  /// Parses a document. Returns nil if it isn't well-formed, in so far as that is checked, or exceeds a limit.
  init?(parsing bytes: [UInt8]) {
    var reader = XMLReader(bytes)
    guard let root = reader.document() else { return nil }
    self = root
  }

  fileprivate init(name: String) { self.name = name }
}

private struct XMLReader {
  private var rest: ArraySlice<UInt8>
  private var elementCount = 0
  private static let depthLimit = 8
  /// A page of a listing has up to 1,000 objects with some ten elements each.
  private static let elementLimit = 20_000

  init(_ bytes: [UInt8]) { rest = bytes[...] }

  mutating func document() -> XMLElement? {
    if starts(with: "\u{FEFF}") { rest.removeFirst(3) }
    var open: [XMLElement] = []
    while true {
      guard let text = text() else { return nil }
      if open.isEmpty {
        guard text.allSatisfy(\.isWhitespace) else { return nil }
      } else {
        open[open.count - 1].text += text
      }
      if starts(with: "<?") {
        guard skip(to: "?>") else { return nil }
      } else if starts(with: "<!--") {
        guard skip(to: "-->") else { return nil }
      } else if starts(with: "</") {
        guard let closed = closeTag(), let element = open.popLast(), element.name == closed else { return nil }
        guard let parent = open.popLast() else { return element }
        open.append(parent)
        open[open.count - 1].children.append(element)
      } else {
        guard let (name, isEmpty) = openTag(), open.count < Self.depthLimit else { return nil }
        elementCount += 1
        guard elementCount <= Self.elementLimit else { return nil }
        let element = XMLElement(name: name)
        guard isEmpty else {
          open.append(element)
          continue
        }
        if open.isEmpty { return element }
        open[open.count - 1].children.append(element)
      }
    }
  }

  /// The text up to the next tag; nil at the end of the document.
  private mutating func text() -> String? {
    guard let end = rest.firstIndex(of: UInt8(ascii: "<")) else { return nil }
    defer { rest = rest[end...] }
    return Self.unescaped(rest[..<end])
  }

  private mutating func closeTag() -> String? {
    guard let end = rest.firstIndex(of: UInt8(ascii: ">")) else { return nil }
    defer { rest = rest[(end + 1)...] }
    return Self.name(rest[(rest.startIndex + 2)..<end])
  }

  private mutating func openTag() -> (name: String, isEmpty: Bool)? {
    var quote: UInt8?
    var end = rest.startIndex + 1
    while end < rest.endIndex {
      let byte = rest[end]
      if let open = quote {
        if byte == open { quote = nil }
      } else if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "'") {
        quote = byte
      } else if byte == UInt8(ascii: ">") {
        break
      }
      end += 1
    }
    guard end < rest.endIndex else { return nil }
    var tag = rest[(rest.startIndex + 1)..<end]
    rest = rest[(end + 1)...]
    let isEmpty = tag.last == UInt8(ascii: "/")
    if isEmpty { tag = tag.dropLast() }
    return Self.name(tag).map { ($0, isEmpty) }
  }

  /// The name at the start of a tag, without its prefix.
  private static func name(_ tag: ArraySlice<UInt8>) -> String? {
    let full = tag.prefix { ![0x20, 0x09, 0x0A, 0x0D].contains($0) }
    let isName = full.allSatisfy {
      switch $0 {
      case 0x30...0x3A, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x2E, 0x5F: true
      default: false
      }
    }
    let local = full.split(separator: UInt8(ascii: ":"), omittingEmptySubsequences: false).last ?? []
    guard isName, !local.isEmpty else { return nil }
    return String(decoding: local, as: UTF8.self)
  }

  private func starts(with text: String) -> Bool { rest.starts(with: text.utf8) }

  private mutating func skip(to end: String) -> Bool {
    while !rest.isEmpty {
      if starts(with: end) {
        rest = rest.dropFirst(end.utf8.count)
        return true
      }
      rest = rest.dropFirst()
    }
    return false
  }

  private static func unescaped(_ bytes: ArraySlice<UInt8>) -> String? {
    guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
    guard text.contains("&") else { return text }
    var result = ""
    var rest = text[...]
    while let mark = rest.firstIndex(of: "&") {
      result += rest[..<mark]
      guard let end = rest[mark...].firstIndex(of: ";") else { return nil }
      guard let scalar = entity(rest[rest.index(after: mark)..<end]) else { return nil }
      result.unicodeScalars.append(scalar)
      rest = rest[rest.index(after: end)...]
    }
    return result + rest
  }

  private static func entity(_ name: Substring) -> Unicode.Scalar? {
    switch name {
    case "lt": return "<"
    case "gt": return ">"
    case "amp": return "&"
    case "quot": return "\""
    case "apos": return "'"
    default:
      if name.hasPrefix("#x") { return UInt32(name.dropFirst(2), radix: 16).flatMap(Unicode.Scalar.init) }
      if name.hasPrefix("#") { return UInt32(name.dropFirst()).flatMap(Unicode.Scalar.init) }
      return nil
    }
  }
}
