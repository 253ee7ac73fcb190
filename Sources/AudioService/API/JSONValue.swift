// JSON exactly as in RFC 8259, because text that one parser accepts and another rejects doesn't help a client:
//
//   text    = [ BOM ] ws value ws                          in UTF-8; the mark is skipped, as §8.1 permits
//   value   = ( "null" / "true" / "false" / number / string / array / object )
//   array   = "[" ws [ value ws *( "," ws value ws ) ] "]"
//   object  = "{" ws [ member ws *( "," ws member ws ) ] "}"         member = string ws ":" ws value
//   number  = [ "-" ] ( "0" / %x31-39 *DIGIT ) [ "." 1*DIGIT ] [ ( "e" / "E" ) [ "+" / "-" ] 1*DIGIT ]
//   string  = DQUOTE *( byte from 0x20 but DQUOTE and "\" / "\" one of "\/bfnrt / "\u" 4HEXDIG ) DQUOTE
//   ws      = *( space / tab / CR / LF )
//
// Escaped surrogates must come in pairs. §4 leaves the meaning of repeated names open; here they are an error.

import HTTP

/// Any JSON value that a client may send.
enum JSONValue: Sendable, Equatable {
  case null
  case bool(Bool)
  /// Infinite if it is too large for a `Double`; never −0.
  case number(Double)
  case string(String)
  case array([JSONValue])
  case object([String: JSONValue])

  /// Parses a complete text.
  init(parsing bytes: [UInt8]) throws(JSONFault) {
    guard String(validating: bytes, as: UTF8.self) != nil else { throw .notUTF8 }
    var reader = JSONReader(bytes)
    self = try reader.text()
  }
}

/// Why a text isn't valid JSON.
enum JSONFault: Error, Equatable {
  case notUTF8
  /// The byte at this offset, or the end of the text, isn't allowed there.
  case malformed(offset: Int)
  /// Arrays and objects are nested more than `limit` deep.
  case tooDeep(limit: Int)
  case repeatedMember(JSONPath)
  /// A member's name has more bytes than this.
  case nameTooLong(limit: Int)
  /// A text has too many combining marks in a row; see `hasLongMarkRun`.
  case longMarkRun
}

/// Where a value is within another: the members and elements that lead to it.
struct JSONPath: Equatable, CustomStringConvertible {
  enum Step: Equatable {
    case member(String)
    case element(Int)
  }

  var steps: [Step] = []

  /// Such as “gates[2].name”.
  var description: String {
    steps.reduce(into: "") { text, step in
      switch step {
      case .member(let name): text += text.isEmpty ? name : ".\(name)"
      case .element(let index): text += "[\(index)]"
      }
    }
  }
}

/// Parses validated UTF-8 from start to end.
///
/// The path of a value is written out only for an error: for each element, it would take a time that grows with the
/// lengths of all names around it.
private struct JSONReader {
  private let bytes: [UInt8]
  private var position: Int
  /// Leads to the current value. Has a step for each array and object that is open.
  private var path = JSONPath()

  /// Each level needs a stack frame or two. The API uses at most two levels.
  private static let depthLimit = 32
  /// No member has a longer name. Hashing one takes time that grows with the square of its combining marks.
  private static let nameLimit = 255

  init(_ bytes: [UInt8]) {
    self.bytes = bytes
    position = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? 3 : 0
  }

  mutating func text() throws(JSONFault) -> JSONValue {
    skipBlanks()
    let value = try value()
    skipBlanks()
    guard next == nil else { throw fault }
    return value
  }

  private var next: UInt8? { position < bytes.count ? bytes[position] : nil }
  private var fault: JSONFault { .malformed(offset: position) }

  private mutating func value() throws(JSONFault) -> JSONValue {
    switch next {
    case UInt8(ascii: "{"): return try object()
    case UInt8(ascii: "["): return try array()
    case UInt8(ascii: "\""): return .string(try string())
    case UInt8(ascii: "n"): return try word("null", .null)
    case UInt8(ascii: "t"): return try word("true", .bool(true))
    case UInt8(ascii: "f"): return try word("false", .bool(false))
    default: return .number(try number())
    }
  }

  private mutating func object() throws(JSONFault) -> JSONValue {
    var members: [String: JSONValue] = [:]
    try list(until: "}") { (reader) throws(JSONFault) in
      let name = try reader.string()
      guard name.utf8.count <= Self.nameLimit else { throw .nameTooLong(limit: Self.nameLimit) }
      reader.path.steps[reader.path.steps.count - 1] = .member(name)
      guard members[name] == nil else { throw .repeatedMember(reader.path) }
      reader.skipBlanks()
      try reader.take(":")
      reader.skipBlanks()
      members[name] = try reader.value()
    }
    return .object(members)
  }

  private mutating func array() throws(JSONFault) -> JSONValue {
    var elements: [JSONValue] = []
    try list(until: "]") { (reader) throws(JSONFault) in
      reader.path.steps[reader.path.steps.count - 1] = .element(elements.count)
      elements.append(try reader.value())
    }
    return .array(elements)
  }

  /// Parses a comma-separated list up to the closing bracket.
  private mutating func list(
    until end: Unicode.Scalar, _ item: (inout JSONReader) throws(JSONFault) -> Void
  ) throws(JSONFault) {
    guard path.steps.count < Self.depthLimit else { throw .tooDeep(limit: Self.depthLimit) }
    path.steps.append(.element(0))
    defer { path.steps.removeLast() }
    position += 1
    skipBlanks()
    if next == UInt8(ascii: end) {
      position += 1
      return
    }
    while true {
      try item(&self)
      skipBlanks()
      guard next == UInt8(ascii: ",") else { return try take(end) }
      position += 1
      skipBlanks()
    }
  }

  private mutating func number() throws(JSONFault) -> Double {
    let start = position
    if next == UInt8(ascii: "-") { position += 1 }
    if next == UInt8(ascii: "0") { position += 1 } else { try digits() }
    if next == UInt8(ascii: ".") {
      position += 1
      try digits()
    }
    if next == UInt8(ascii: "e") || next == UInt8(ascii: "E") {
      position += 1
      if next == UInt8(ascii: "+") || next == UInt8(ascii: "-") { position += 1 }
      try digits()
    }
    guard let number = Double(String(decoding: bytes[start..<position], as: UTF8.self)) else { throw fault }
    return number.withoutNegativeZero
  }

  private mutating func digits() throws(JSONFault) {
    let start = position
    while let byte = next, (0x30...0x39).contains(byte) { position += 1 }
    guard position > start else { throw fault }
  }

  private mutating func string() throws(JSONFault) -> String {
    try take("\"")
    var text: [UInt8] = []
    while let byte = next, byte >= 0x20 {
      position += 1
      switch byte {
      case UInt8(ascii: "\""):
        guard !text.span.hasLongMarkRun else { throw .longMarkRun }
        return String(decoding: text, as: UTF8.self)
      case UInt8(ascii: "\\"): text.append(contentsOf: try escaped())
      default: text.append(byte)
      }
    }
    throw fault
  }

  /// Parses the rest of an escape sequence.
  private mutating func escaped() throws(JSONFault) -> [UInt8] {
    guard let byte = next else { throw fault }
    position += 1
    switch byte {
    case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): return [byte]
    case UInt8(ascii: "b"): return [0x08]
    case UInt8(ascii: "f"): return [0x0C]
    case UInt8(ascii: "n"): return [0x0A]
    case UInt8(ascii: "r"): return [0x0D]
    case UInt8(ascii: "t"): return [0x09]
    case UInt8(ascii: "u"):
      var units = [try codeUnit()]
      if UTF16.isLeadSurrogate(units[0]) {
        try take("\\")
        try take("u")
        units.append(try codeUnit())
      }
      guard let text = String(validating: units, as: UTF16.self) else { throw fault }
      return Array(text.utf8)
    default:
      position -= 1
      throw fault
    }
  }

  private mutating func codeUnit() throws(JSONFault) -> UInt16 {
    var unit: UInt16 = 0
    for _ in 0..<4 {
      guard let byte = next, let digit = Character(Unicode.Scalar(byte)).hexDigitValue else { throw fault }
      unit = unit << 4 | UInt16(digit)
      position += 1
    }
    return unit
  }

  private mutating func word(_ word: String, _ value: JSONValue) throws(JSONFault) -> JSONValue {
    for scalar in word.unicodeScalars { try take(scalar) }
    return value
  }

  private mutating func take(_ scalar: Unicode.Scalar) throws(JSONFault) {
    guard next == UInt8(ascii: scalar) else { throw fault }
    position += 1
  }

  private mutating func skipBlanks() {
    while let byte = next, [0x20, 0x09, 0x0A, 0x0D].contains(byte) { position += 1 }
  }
}
