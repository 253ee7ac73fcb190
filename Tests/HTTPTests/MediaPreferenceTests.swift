import Testing

@testable import HTTP

@Suite struct MediaPreferenceTests {
  @Test(arguments: [
    (nil, false), ("*/*", false), ("application/*", false), ("a/dat", true), ("A/DAT", true), ("a/dat, */*", true),
    ("a/dat;q=0", false), ("a/dat;q=0, a/json", false), ("a/json, a/dat;q=0.1", false), ("a/json;q=0.5, a/dat", true),
    ("a/dat, a/json", true), ("a/json, a/dat", false), ("a/dat;q=x", false), ("a/dat;q=0.001", true),
    ("x/a/dat", false),
    ("a/dat;version=2;q=0.9, a/json;q=0.8", true),
  ])
  func aTypeIsGivenToWhoNamesItAndDoesNotRatherHaveTheOther(_ accept: String?, _ prefers: Bool) throws {
    let request = try HTTPRequest(method: .get, target: "/", fields: accept.map { ["Accept": $0] } ?? [:])
    #expect(request.prefers("a/dat", to: "a/json") == prefers, "\(accept ?? "none")")
  }
}
