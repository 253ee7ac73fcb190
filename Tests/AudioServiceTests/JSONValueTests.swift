import Foundation
import Testing

@testable import AudioService

@Suite struct JSONValueTests {
  private func parse(_ text: String) throws(JSONFault) -> JSONValue { try JSONValue(parsing: Array(text.utf8)) }

  @Test(
    "valid JSON is parsed",
    arguments: [
      ("null", .null), (" true\r\n", .bool(true)), ("\tfalse ", .bool(false)), ("0", .number(0)),
      ("-0.5e-1", .number(-0.05)),
      ("1E+2", .number(100)), ("1e999", .number(.infinity)), ("\"\"", .string("")), ("[]", .array([])),
      ("[ ]", .array([])), ("{ }", .object([:])), ("[1 , [2]]", .array([.number(1), .array([.number(2)])])),
      ("{\"a\" : {\"a\":null}, \"b\":[]}", .object(["a": .object(["a": .null]), "b": .array([])])),
      (#""\"\\\/\b\f\n\r\t\u00e9\uD83D\ude00é""#, .string("\"\\/\u{8}\u{C}\n\r\té😀é")),
      ("\u{FEFF}{}", .object([:])), ("\"\u{7F}\u{2028}\"", .string("\u{7F}\u{2028}")),
    ] as [(String, JSONValue)])
  func good(text: String, value: JSONValue) throws { #expect(try parse(text) == value) }

  @Test(
    "zero has one sign and one spelling, whatever its form",
    arguments: ["0", "-0", "-0.0", "-0e5", "-0.000E-7", "1e-400", "-1e-400", "-0.0000000e99999"])
  func zero(text: String) throws {
    guard case .number(let number) = try parse(text) else { return #expect(Bool(false), "\(text) is no number") }
    #expect("\(number)" == "0.0")
    #expect(Double(decimal: text).map { "\($0)" } == "0.0")
  }

  @Test(
    "invalid JSON is rejected with the position of the error",
    arguments: [
      ("", 0), (" ", 1), ("nul", 3), ("True", 0), ("+1", 0), ("01", 1), (".5", 0), ("1.", 2), ("1.e1", 2), ("1e", 2),
      ("-", 1), ("0x1", 1), ("NaN", 0), ("Infinity", 0), ("[1,]", 3), ("[,1]", 1), ("[1 2]", 3), ("[1", 2),
      ("{\"a\":1,}", 7), ("{,}", 1), ("{a:1}", 1), ("{\"a\"}", 4), ("{\"a\":}", 5), ("{\"a\" 1}", 5), ("{1:2}", 1),
      ("'a'", 0), ("\"a", 2), ("\"a\nb\"", 2), (#""\x""#, 2), (#""\u12g4""#, 5), (#""\ud83d""#, 7),
      (#""\ud83dx""#, 7), (#""\ude00""#, 7), (#""\ud83d\ud83d""#, 13), ("{} {}", 3), ("1//", 1), ("/**/1", 0),
      ("\u{FEFF}\u{FEFF}1", 3), ("{\0", 1),
    ])
  func bad(text: String, offset: Int) { #expect(throws: JSONFault.malformed(offset: offset)) { try parse(text) } }

  @Test func bytesThatAreNotUTF8AreRefused() {
    for bytes: [UInt8] in [[0xFF, 0xFE, 0x31, 0], [0x22, 0xC0, 0xAF, 0x22], [0x22, 0xED, 0xA0, 0x80, 0x22]] {
      #expect(throws: JSONFault.notUTF8) { try JSONValue(parsing: bytes) }
    }
  }

  @Test(
    "a duplicate member is rejected with its path, which isn't written out before",
    arguments: [
      (#"{"a":1,"a":1}"#, [.member("a")], "a"), (#"{"a":null,"\u0061":null}"#, [.member("a")], "a"),
      (#"{"n":{"a":1,"b":2,"a":3}}"#, [.member("n"), .member("a")], "n.a"),
      (#"{"n":[0,{"a":1,"a":3}]}"#, [.member("n"), .element(1), .member("a")], "n[1].a"),
      (
        #"[{"n":[{},[[],{"a":{"[":0},"b":{"[":{},"[":0}}]]}]"#,
        [.element(0), .member("n"), .element(1), .element(1), .member("b"), .member("[")], "[0].n[1][1].b.["
      ),
    ] as [(String, [JSONPath.Step], String)])
  func repeated(text: String, steps: [JSONPath.Step], path: String) {
    #expect(throws: JSONFault.repeatedMember(JSONPath(steps: steps))) { try parse(text) }
    #expect("\(JSONPath(steps: steps))" == path)
  }

  @Test func nestingHasALimit() throws {
    func nested(_ depth: Int) -> String { String(repeating: "[", count: depth) + String(repeating: "]", count: depth) }
    _ = try parse(nested(32))
    #expect(throws: JSONFault.tooDeep(limit: 32)) { try parse(nested(33)) }
    #expect(throws: JSONFault.tooDeep(limit: 32)) { try parse(String(repeating: "{\"a\":[", count: 9000)) }
  }

  @Test("a member's name is as long as a name may be, so that hashing it takes no time")
  func longNames() throws {
    let name = String(repeating: "\u{316}\u{301}", count: 63)
    #expect(try parse("{\"abc\(name)\":1}") == .object(["abc\(name)": .number(1)]))
    let marks = String(repeating: "\u{316}\u{301}", count: 128)
    #expect(throws: JSONFault.longMarkRun) { try parse("[\"a\(marks)\u{301}\"]") }
    #expect(throws: JSONFault.longMarkRun) { try parse("[\"" + String(repeating: "\u{F73}", count: 257) + "\"]") }
    for text in ["a\(marks)b\(marks)", String(repeating: "日本語", count: 5000)] {
      #expect(try parse("\"\(text)\"") == .string(text))
    }
    #expect(throws: JSONFault.nameTooLong(limit: 255)) { try parse("{\"x\":{\"abcd\(name)\":1}}") }
  }

  /// Removes or changes each byte of a text in turn: any result that is still accepted must also be JSON to another
  /// parser.
  @Test func nothingIsAcceptedThatAnotherParserRejects() throws {
    let text = Array(#"{"a":[1.5e-2,null],"b\u00e9":"é","c":{"d":true}}"#.utf8)
    for index in text.indices {
      for replacement in [[]] + (UInt8.min...UInt8.max).map({ [$0] }) {
        var changed = text
        changed.replaceSubrange(index...index, with: replacement)
        guard (try? JSONValue(parsing: changed)) != nil else { continue }
        #expect(throws: Never.self, "\(changed)") {
          try JSONSerialization.jsonObject(with: Data(changed), options: .fragmentsAllowed)
        }
      }
    }
  }
}
