import Processing
import Testing

struct FenceSupportTests {
  @Test("a whole fence needs no warning")
  func whole() {
    #expect(FenceSupport(landlockVersion: 1, hasFilter: true, dropsRoot: true).warning == nil)
  }

  @Test(
    "the warning names everything that is missing",
    arguments: [
      (FenceSupport(landlockVersion: 0, hasFilter: true, dropsRoot: true), ["Landlock"]),
      (FenceSupport(landlockVersion: 1, hasFilter: false, dropsRoot: true), ["system calls"]),
      (FenceSupport(landlockVersion: 1, hasFilter: true, dropsRoot: false), ["as root"]),
      (FenceSupport(landlockVersion: 0, hasFilter: false, dropsRoot: false), ["Landlock", "system calls", "as root"]),
    ])
  func incomplete(support: FenceSupport, words: [String]) throws {
    let warning = try #require(support.warning)
    #expect(warning.code == "fence_incomplete")
    for word in ["Landlock", "system calls", "as root"] {
      #expect(warning.detail.contains(word) == words.contains(word), "\(warning.detail)")
    }
  }
}
