import Contract
import Foundation
import Testing

private let contract = Result { try OpenAPIDocument() }

/// Checks an answer against openapi.yaml. All answers in these tests go through here.
func expectContract(_ method: String, _ target: String, _ answer: Answer) {
  let path = String(target.prefix { $0 != "?" })
  do {
    let document = try contract.get()
    let violations = try document.validate(
      method: method, path: path, status: answer.status, contentType: answer["content-type"],
      headers: Dictionary(answer.fields) { "\($0), \($1)" }, body: Data(answer.body))
    #expect(violations == [], "\(method) \(target)")
  } catch {
    Issue.record(error, "openapi.yaml could not be used")
  }
}
