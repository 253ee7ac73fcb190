import Testing

@testable import HTTP

@Suite struct MediaPreferenceTests {
  /// Values of Accept and the resulting type; the default type is a/json.
  private static let cases: [(String?, String?)] = [
    (nil, "a/json"), ("", "a/json"), ("*/*", "a/json"), ("a/*", "a/json"), ("text/html", "a/json"),
    // Listed, and not outweighed.
    ("a/dat", "a/dat"), ("A/DAT", "a/dat"), ("a/dat, */*", "a/dat"), ("a/dat, a/json", "a/dat"),
    ("a/json, a/dat", "a/json"), ("a/dat;q=0.001", "a/dat"), ("x/a/dat", "a/json"),
    // Weights.
    ("a/dat;q=0.5, */*", "a/json"), ("a/dat;q=0.5, a/*", "a/json"), ("a/dat;q=0.5, */*;q=0.1", "a/dat"),
    ("a/json, a/dat;q=0.1", "a/json"), ("a/json;q=0.5, a/dat", "a/dat"), ("a/json;q=0.5, */*", "a/dat"),
    ("a/dat;version=2;q=0.9, a/json;q=0.8", "a/dat"), ("a/dat ; q=0.2 , a/json ; q=0.3", "a/json"),
    ("a/dat;Q=0.2, a/json;q=0.1", "a/dat"),
    // The most specific range counts, regardless of its position.
    ("*/*;q=0.9, a/*;q=0.1, a/dat;q=0.2", "a/dat"), ("*/*, a/json;q=0.1", "a/dat"), ("a/*;q=0, a/dat", "a/dat"),
    // A weight of 0 excludes.
    ("a/dat;q=0", "a/json"), ("a/dat;q=0, */*", "a/json"), ("a/json;q=0, */*", "a/dat"),
    ("a/json;q=0.000, a/dat;q=0.1", "a/dat"), ("a/json;q=0", nil), ("*/*;q=0", nil), ("a/*;q=0, x/y", nil),
    ("a/json;q=0, a/dat;q=0, */*", nil), ("text/html, a/json;q=0", nil),
    // Invalid weights.
    ("a/dat;q=x", "a/json"), ("a/dat;q=", "a/json"), ("a/dat;q=1.001", "a/json"), ("a/dat;q=0.0001", "a/json"),
    ("a/dat;q=+1", "a/json"), ("a/dat;q=1e0", "a/json"), ("a/dat;q=-0", "a/json"), ("a/dat;q=1.000", "a/dat"),
    ("a/dat;q=1.", "a/dat"),
  ]

  @Test(arguments: cases)
  func theTypeWithTheHighestQualityWins(_ accept: String?, _ expected: String?) throws {
    let request = try HTTPRequest(method: .get, target: "/", fields: accept.map { ["Accept": $0] } ?? [:])
    #expect(request.preferredType(["a/json", "a/dat"]) == expected, "\(accept ?? "none")")
  }

  @Test func severalFieldsAreOneList() throws {
    let fields: HTTPFields = ["Accept": "a/json;q=0.5", "Accept": "a/dat"]
    #expect(try HTTPRequest(method: .get, target: "/", fields: fields).preferredType(["a/json", "a/dat"]) == "a/dat")
  }
}
