import HTTP
import Testing

@testable import AudioService

@Suite struct PageSourceTests {
  private func sent(_ source: String) -> String {
    String(decoding: PageSource(bytes: Array(source.utf8)).withoutComments, as: UTF8.self)
  }

  @Test(
    "comments at the beginning of a line are left out, and lines keep their numbers",
    arguments: [
      ("// @ts-check\nlet a;\n", "\nlet a;\n"), ("  // one\n  go();", "\n  go();"), ("/** one */\nlet a;", "\nlet a;"),
      ("  /**\n   * A // comment.\n   */\n  go();", "\n\n\n  go();"), ("/* a */ /* b */ (x).y();", " (x).y();"),
      ("/*\n*/ go();", "\n go();"), ("/*/ still one */go();", "go();"), ("", ""), ("\n\n", "\n\n"), ("/* open\n", "\n"),
    ])
  func comments(_ source: String, _ expected: String) { #expect(sent(source) == expected) }

  @Test(
    "comments elsewhere stay, because telling them from text takes a parser",
    arguments: [
      "go(); // now", "const a = \"// b\";", "const a = /** @type {any} */ (b);", "a /* b\nc */ d", "* { color: red }",
    ])
  func others(_ source: String) { #expect(sent(source) == source) }

  @Test("the page's modules are sent without their comments")
  func page() async throws {
    let bench = try TestBench()
    for (name, type) in [("main.js", "text/javascript; charset=utf-8"), ("viewer.css", "text/css; charset=utf-8")] {
      let response = try await bench.respond(.get, "/viewer/\(name)")
      let text = String(decoding: try await response.body.collect(), as: UTF8.self)
      #expect(response.status == .ok && response.fields["Content-Type"] == type)
      #expect(!text.isEmpty && !text.contains("@ts-check") && !text.contains("\n/*"))
    }
  }
}
