import HTTP

/// The parameters of a query. A handler declares the known parameters in advance, so that a typo is reported before any
/// other error and never ignored.
struct QueryParameters {
  private let items: [QueryItem]
  private let known: [String]
  /// Every route of the API knows `token`; the gate has read it.
  private let knowsToken: Bool

  /// Throws if a parameter is unknown, or is repeated, since it wouldn't be clear which value counts.
  init(_ request: HTTPRequest, known: [String]) throws {
    (items, self.known) = (request.target.query, known)
    knowsToken = request.target.segments.first == "v1"
    for (index, item) in items.enumerated() {
      // An unknown name ends the loop, which is therefore no longer than the list of known names.
      guard !items[..<index].contains(where: { $0.name == item.name }) else {
        throw RequestError.repeatedParameter(item.name)
      }
      guard known.contains(item.name) || knowsToken && item.name == "token" else {
        throw RequestError.unknownParameter(item.name, known: known)
      }
    }
  }

  /// Throws if the request has any parameters.
  static func checkNone(_ request: HTTPRequest) throws { _ = try QueryParameters(request, known: []) }

  func string(_ name: String) -> String? {
    assert(known.contains(name) || knowsToken && name == "token", "\(name) is read, but not among the known parameters")
    return items.first { $0.name == name }?.value
  }

  /// A number of seconds.
  func number(_ name: String) throws -> Double? { try decimal(name, .seconds) }

  func decimal(_ name: String, _ expected: Expectation = .decimal) throws -> Double? {
    guard let text = string(name) else { return nil }
    guard let number = Double(decimal: text) else { throw invalid(name, text, expected) }
    return number
  }

  func integer(_ name: String, in range: ClosedRange<Int>) throws -> Int? {
    guard let text = string(name) else { return nil }
    guard let number = Int(digits: text), range.contains(number) else {
      throw invalid(name, text, .wholeNumber(range))
    }
    return number
  }

  func flag(_ name: String) throws -> Bool {
    guard let text = string(name) else { return false }
    guard text == "1" || text == "0" else { throw invalid(name, text, .oneOf(["0", "1"])) }
    return text == "1"
  }

  func choice<Choice: RawRepresentable & CaseIterable>(_ name: String) throws -> Choice?
  where Choice.RawValue == String {
    guard let text = string(name) else { return nil }
    guard let choice = Choice(rawValue: text) else {
      throw invalid(name, text, .oneOf(Choice.allCases.map(\.rawValue)))
    }
    return choice
  }

  func invalid(_ name: String, _ value: String, _ expected: Expectation) -> RequestError {
    .invalidParameter(name, value: value, expected)
  }
}

extension Int {
  /// Parses an integer as written in JSON. Unlike `Int`, rejects a plus sign.
  init?(digits text: String) {
    guard text.utf8.first != UInt8(ascii: "+"), let number = Int(text) else { return nil }
    self = number
  }
}

extension Double {
  /// Parses a finite decimal number. Unlike `Double`, rejects hexadecimal, "nan", and "infinity".
  init?(decimal text: String) {
    if let number = Self.short(text) {
      self = number
      return
    }
    let isDecimal = text.utf8.allSatisfy { (0x30...0x39).contains($0) || "+-.eE".utf8.contains($0) }
    guard isDecimal, let number = Double(text), number.isFinite else { return nil }
    self = number.withoutNegativeZero
  }

  /// Parses a number of at most 15 digits, some of which may follow a point, and nothing else. Returns nil for any
  /// other text.
  ///
  /// The digits and the power of ten are exact, so dividing them rounds only once, like `Double` of the text.
  private static func short(_ text: String) -> Double? {
    var (digits, count, decimals) = (0, 0, Int?.none)
    for byte in text.utf8 {
      switch byte {
      case 0x30...0x39:
        guard count < 15 else { return nil }
        digits = digits * 10 + Int(byte - 0x30)
        count += 1
        if let known = decimals { decimals = known + 1 }
      case UInt8(ascii: ".") where decimals == nil && count > 0: decimals = 0
      default: return nil
      }
    }
    guard count > 0, decimals != 0 else { return nil }
    return Double(digits) / powersOfTen[decimals ?? 0]
  }

  private static let powersOfTen: [Double] = [
    1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14,
  ]

  /// The number with −0 replaced by 0. The two are equal, so −0 passes every range check, but it is written "-0.0",
  /// which is a different name in an entity tag. Every number from a client is converted here.
  var withoutNegativeZero: Double { self + 0 }
}
