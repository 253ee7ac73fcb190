import Testing

@testable import S3Storage

@Suite struct XMLReaderTests {
  private func parse(_ text: String) -> XMLElement? { XMLElement(parsing: Array(text.utf8)) }

  @Test("elements, text and entities are read; prefixes, attributes and comments are left out")
  func reading() throws {
    let root = try #require(
      parse(
        """
        \u{FEFF}<?xml version="1.0"?> <!-- <x> --><s:List xmlns:s='a>b' ok="/">
        <Key>a &lt;&amp;&quot;&apos;&gt; &#228;&#x97F3;</Key><Empty/><Key>b<i>no</i>c</Key></s:List>
        """))
    #expect(root.name == "List")
    #expect(root.all("Key").map(\.text) == ["a <&\"'> ä音", "bc"])
    #expect(root["Empty"]?.text == "")
    #expect(root["None"] == nil)
  }

  @Test(
    "what isn't well-formed is refused",
    arguments: [
      "", "text", "<a>", "<a></b>", "</a>", "<a", "<a><b></a></b>", "<a>&bad;</a>", "<a>&lt</a>", "<a>&#xD800;</a>",
      "<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>", "x<a/>", "<a b='></a>", "<>x</>", "<a><![CDATA[x]]></a>",
    ])
  func malformed(text: String) { #expect(parse(text) == nil) }

  @Test("depth and number of elements are limited")
  func limits() {
    #expect(parse(String(repeating: "<a>", count: 8) + String(repeating: "</a>", count: 8)) != nil)
    #expect(parse(String(repeating: "<a>", count: 9) + String(repeating: "</a>", count: 9)) == nil)
    #expect(parse("<a>" + String(repeating: "<b/>", count: 19_999) + "</a>") != nil)
    #expect(parse("<a>" + String(repeating: "<b/>", count: 20_000) + "</a>") == nil)
  }

  @Test("bytes that aren't UTF-8 are refused")
  func encoding() { #expect(XMLElement(parsing: Array("<a>".utf8) + [0xFF] + Array("</a>".utf8)) == nil) }
}
