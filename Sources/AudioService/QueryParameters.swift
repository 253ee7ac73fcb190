import HTTP

/// Takes the query's parameters one by one; what is left over at the end is an error.
struct QueryParameters {
  private let items: [QueryItem]
  /// A bit for each item that was taken: the request's own array is left as it is, and not copied.
  private var taken: UInt64 = 0

  /// Throws where a parameter is given twice: it would not be clear which one counts.
  init(_ request: HTTPRequest) throws {
    items = request.target.query
    guard items.count > 1 else { return }
    guard items.count <= UInt64.bitWidth else {
      throw Problem(
        .badRequest, code: "unknown_parameter",
        detail: "There are \(items.count) query parameters; nothing has so many.")
    }
    var seen: Set<String> = []
    for item in items where !seen.insert(item.name).inserted {
      throw Problem(
        .badRequest, code: "duplicate_parameter", detail: "“\(item.name)” is given more than once.",
        parameter: item.name)
    }
  }

  mutating func string(_ name: String) -> String? {
    guard let index = items.firstIndex(where: { $0.name == name }) else { return nil }
    taken |= 1 << UInt64(index)
    return items[index].value
  }

  mutating func number(_ name: String) throws -> Double? {
    guard let text = string(name) else { return nil }
    guard let number = Double(decimal: text) else { throw invalid(name, text, "a decimal number of seconds") }
    return number
  }

  mutating func integer(_ name: String, in range: ClosedRange<Int>) throws -> Int? {
    guard let text = string(name) else { return nil }
    guard let number = Int(text), range.contains(number) else {
      throw invalid(name, text, "a whole number from \(range.lowerBound) to \(range.upperBound)")
    }
    return number
  }

  mutating func flag(_ name: String) throws -> Bool {
    guard let text = string(name) else { return false }
    guard text == "1" || text == "0" else { throw invalid(name, text, "0 or 1") }
    return text == "1"
  }

  mutating func choice<Choice: RawRepresentable & CaseIterable>(_ name: String) throws -> Choice?
  where Choice.RawValue == String {
    guard let text = string(name) else { return nil }
    guard let choice = Choice(rawValue: text) else {
      throw invalid(name, text, "one of \(Choice.allCases.map(\.rawValue).joined(separator: ", "))")
    }
    return choice
  }

  /// Throws where a parameter was not taken.
  func end() throws {
    guard let index = items.indices.first(where: { taken >> UInt64($0) & 1 == 0 }) else { return }
    let unknown = items[index]
    throw Problem(
      .badRequest, code: "unknown_parameter", detail: "There is no query parameter “\(unknown.name)” here.",
      parameter: unknown.name)
  }

  func invalid(_ name: String, _ value: String, _ expected: String) -> Problem {
    Problem(
      .badRequest, code: "invalid_parameter", detail: "“\(name)” is “\(value)”; it must be \(expected).",
      parameter: name)
  }
}

extension Double {
  /// A finite number in digits: `Double` alone would take hexadecimal, "nan" and "infinity" as well.
  init?(decimal text: String) {
    let isDecimal = text.utf8.allSatisfy { (0x30...0x39).contains($0) || "+-.eE".utf8.contains($0) }
    guard isDecimal, let number = Double(text), number.isFinite else { return nil }
    self = number
  }
}
