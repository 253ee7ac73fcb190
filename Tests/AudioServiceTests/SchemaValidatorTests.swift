import Contract
import Foundation
import Testing

/// Checks that the validator used by the contract's tests finds what it should.
@Suite struct SchemaValidatorTests {
  private func violations(_ json: String, _ schema: String) throws -> [String] {
    let document = try OpenAPIDocument(
      yaml: """
        paths:
          /a/{id}:
            get:
              responses:
                '200': { content: { application/json: { schema: \(schema) } } }
        components:
          schemas: { Tree: { type: object, properties: { down: { $ref: '#/components/schemas/Tree' } },
            additionalProperties: false } }
        """)
    return try document.validate(
      method: "GET", path: "/a/1", status: 200, contentType: "application/json; charset=utf-8", headers: [:],
      body: Data(json.utf8))
  }

  @Test(
    "valid values pass and invalid ones are reported with their place",
    arguments: [
      ("{ type: integer }", "1.0", "1.5", "$"), ("{ type: [string, 'null'] }", "null", "1", "$"),
      ("{ type: object, required: [a] }", "{\"a\":1}", "{}", "$.a"),
      ("{ type: object, properties: { a: { type: string } } }", "{\"b\":1}", "{\"a\":1}", "$.a"),
      ("{ type: object, properties: { a: {} }, additionalProperties: false }", "{\"a\":1}", "{\"b\":1}", "$.b"),
      ("{ type: object, additionalProperties: { type: string } }", "{\"b\":\"\"}", "{\"b\":1}", "$.b"),
      ("{ items: { items: { maximum: 3 } } }", "[[1],[2,3]]", "[[1],[2,4]]", "$[1][1]"),
      ("{ enum: [1, a, null] }", "\"a\"", "\"b\"", "$"), ("{ const: { a: [1] } }", "{\"a\":[1]}", "{\"a\":[2]}", "$"),
      ("{ pattern: '^a+$' }", "\"aa\"", "\"ab\"", "$"), ("{ minimum: 0 }", "0", "-0.1", "$"),
      ("{ exclusiveMinimum: 0 }", "0.1", "0", "$"), ("{ maxLength: 2 }", "\"öö\"", "\"ööö\"", "$"),
      ("{ minItems: 1 }", "[1]", "[]", "$"),
      ("{ format: date-time }", "\"2026-11-21T04:05:06.789Z\"", "\"2026-11-21 04:05\"", "$"),
      ("{ oneOf: [{ type: string }, { type: 'null' }] }", "null", "1", "$"),
      ("{ oneOf: [{ minimum: 1 }, { minimum: 2 }] }", "1", "2", "$"),
      ("{ anyOf: [{ minimum: 1 }, { minimum: 2 }] }", "2", "0", "$"),
      ("{ allOf: [{ minimum: 1 }, { maximum: 2 }] }", "2", "3", "$"), ("{ not: { const: 1 } }", "2", "1", "$"),
      ("{ $ref: '#/components/schemas/Tree' }", "{\"down\":{\"down\":{}}}", "{\"down\":{\"up\":{}}}", "$.down.up"),
    ])
  func judged(schema: String, good: String, bad: String, place: String) throws {
    #expect(try violations(good, schema) == [])
    let found = try violations(bad, schema)
    #expect(found.contains { $0.contains(": \(place): ") }, "\(found)")
  }

  @Test func anUnknownKeywordIsNotIgnored() throws {
    #expect(try violations("1", "{ multipleOf: 2 }").first?.contains("multipleOf") == true)
  }

  @Test func undescribedResponsesAreViolations() throws {
    let document = try OpenAPIDocument(
      yaml: """
        paths:
          /a:
            get:
              responses:
                '200':
                  headers: { ETag: { required: true, schema: { type: integer } } }
                  content: { text/plain: {} }
                '204': {}
        """)
    func found(
      _ method: String = "GET", _ path: String = "/a", _ status: Int = 200, type: String? = "text/plain",
      headers: [String: String] = ["etag": "7"], body: String = "x"
    ) throws -> Bool {
      try document.validate(
        method: method, path: path, status: status, contentType: type, headers: headers, body: Data(body.utf8)
      ).isEmpty
    }
    #expect(try found())
    #expect(try found("HEAD", body: ""))
    #expect(try self.found(status204: document))
    for isFine in [
      try found("POST"), try found("GET", "/b"), try found("GET", "/a", 201), try found("GET", "/a", 500),
      try found(type: "text/html"), try found(type: nil), try found(headers: [:]), try found(headers: ["ETag": "x"]),
      try found("HEAD"), try found("GET", "/a", 204),
    ] { #expect(!isFine) }
  }

  private func found(status204 document: OpenAPIDocument) throws -> Bool {
    try document.validate(method: "GET", path: "/a", status: 204, contentType: nil, headers: [:], body: Data()).isEmpty
  }
}
