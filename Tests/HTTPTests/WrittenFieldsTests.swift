import Terms
import Testing

@testable import HTTP

struct WrittenFieldsTests {
  @Test func fieldsWrittenAsBytesEqualThoseOfAList() {
    let written = HTTPFields { fields in
      fields.add("Vary", "Accept")
      fields.add("Length", room: 4) { $0.append(decimal: 1234) }
      fields.add("Empty", room: 0) { _ in }
      fields.add("Text", String(repeating: "x", count: 1000))
    }
    #expect(written == ["Vary": "Accept", "Length": "1234", "Empty": "", "Text": String(repeating: "x", count: 1000)])
    #expect(written["length"] == "1234")
    #expect(written.count == 4)
  }

  @Test func aWrittenValueCannotEndItsLine() {
    let written = HTTPFields { fields in
      fields.add("Name", "a\r\nSet-Cookie: b\u{0}\t\u{7f}" as String)
    }
    #expect(written == ["Name": "a  Set-Cookie: b \t "])
  }

  @Test func aRepresentationWithAllFieldsIsSentUnlessTheClientHasIt() throws {
    let fields: HTTPFields = ["Cache-Control": "no-cache", "Content-Type": "text/plain", "ETag": "\"v1\""]
    let representation = Representation(body: .bytes([1, 2]), allFields: fields)
    let whole = HTTPResponse(
      representation, for: try HTTPRequest(method: .get, target: "/", fields: ["Range": "bytes=0-0"]))
    #expect(whole.status == .ok && whole.fields == fields)
    let spared = HTTPResponse(
      representation, for: try HTTPRequest(method: .get, target: "/", fields: ["If-None-Match": "\"v1\""]))
    #expect(spared.status == .notModified && spared.fields["ETag"] == "\"v1\"")
  }

  @Test(arguments: [0, 1, 9, 10, 99, 100, 12_345, -1, -10, Int64.max, Int64.min])
  func aNumberIsAppendedInDecimalDigits(_ number: Int64) {
    var text = Array("n=".utf8)
    text.append(decimal: number)
    #expect(String(decoding: text, as: UTF8.self) == "n=\(number)")
  }
}
