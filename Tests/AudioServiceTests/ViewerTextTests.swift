import Foundation
import Testing

@testable import AudioService

@Suite struct ViewerTextTests {
  @Test(
    "comments and indentation are removed, all else stays",
    arguments: [
      ("a line's own comment", "// @ts-check\nlet a;\n", "let a;\n"),
      ("a comment over lines", "/**\n * What.\n */\nlet a;\n", "let a;\n"),
      ("a comment within a line", "f(/** @type {any} */ (a), b);\n", "f((a), b);\n"),
      ("two in a line", "f(/** @type {X} */ a, /** @type {Y} */ b) { }\n", "f(a, b) { }\n"),
      ("text before and after", "let a; /* one\n two */ let b;\n", "let a; \nlet b;\n"),
      ("a division", "let a = b / c / d;\n", "let a = b / c / d;\n"),
      ("an address in a string", "  go(\"http://localhost\");\n", "go(\"http://localhost\");\n"),
      ("empty lines", "\n\n  a\n\n    b\n", "a\nb\n"),
      ("no line feed at the end", "a", "a\n"), ("nothing", "", ""), ("a comment that never ends", "a /* b\nc", "a \n"),
    ] as [(String, String, String)])
  func commentsGo(name: String, text: String, expected: String) {
    #expect(ViewerText.compact(Array(text.utf8), hasComments: true) == Array(expected.utf8), "\(name)")
  }

  @Test("text in a page that looks like a comment stays")
  func pagesKeepAll() {
    let page = "<input\n  accept=\"audio/*,video/*\">\n"
    #expect(
      ViewerText.compact(Array(page.utf8), hasComments: false) == Array("<input\naccept=\"audio/*,video/*\">\n".utf8))
  }

  @Test("no string in the page's sources is changed")
  func noStringIsCut() throws {
    let folder = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Sources/CViewer/viewer")
    let names = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    let modules = names.filter { $0.hasSuffix(".js") }
    #expect(modules.count > 20)
    for name in modules {
      let text = try String(contentsOf: folder.appending(path: name), encoding: .utf8)
      for line in text.split(separator: "\n") where !line.drop(while: { $0 == " " }).starts(with: "//") {
        // Every quote in a line is closed before a comment begins, and at the end of the line.
        for quote: Character in ["\"", "`"] {
          let before = line.components(separatedBy: "/*")[0]
          #expect(before.count { $0 == quote } % 2 == 0, "\(name): \(line)")
        }
      }
    }
  }
}
