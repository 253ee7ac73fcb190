import HTTP

/// The query's parameters, of which a handler says beforehand which there are: a typo is told before anything else that
/// may be wrong, and never passes silently.
struct QueryParameters {
  private let items: [QueryItem]
  private let known: [String]

  /// Throws where a parameter is not among the known ones, or is given twice: it would not be clear which one counts.
  init(_ request: HTTPRequest, known: [String]) throws {
    (items, self.known) = (request.target.query, known)
    for (index, item) in items.enumerated() {
      // An unknown one ends the loop, which is therefore no longer than the list of known ones.
      guard !items[..<index].contains(where: { $0.name == item.name }) else {
        throw RequestError.repeatedParameter(item.name)
      }
      guard known.contains(item.name) else { throw RequestError.unknownParameter(item.name, known: known) }
    }
  }

  /// Throws where a request to something without parameters has any.
  static func checkNone(_ request: HTTPRequest) throws { _ = try QueryParameters(request, known: []) }

  func string(_ name: String) -> String? {
    assert(known.contains(name), "\(name) is read, but not among the known parameters")
    return items.first { $0.name == name }?.value
  }

  func number(_ name: String) throws -> Double? {
    guard let text = string(name) else { return nil }
    guard let number = Double(decimal: text) else { throw invalid(name, text, .seconds) }
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
  /// A whole number as JSON writes one: `Int` alone would take a plus sign as well.
  init?(digits text: String) {
    guard !text.hasPrefix("+"), let number = Int(text) else { return nil }
    self = number
  }
}

extension Double {
  /// A finite number in digits: `Double` alone would take hexadecimal, "nan" and "infinity" as well.
  init?(decimal text: String) {
    let isDecimal = text.utf8.allSatisfy { (0x30...0x39).contains($0) || "+-.eE".utf8.contains($0) }
    guard isDecimal, let number = Double(text), number.isFinite else { return nil }
    self = number.withoutNegativeZero
  }

  /// The number with 0 in place of −0. The two are equal, so every check of a range lets −0 pass, but it is written
  /// "-0.0", which is another name in an entity tag. Every number from a client passes here on its way in.
  var withoutNegativeZero: Double { self + 0 }
}
