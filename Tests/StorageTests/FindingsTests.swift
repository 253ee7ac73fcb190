import Testing

@testable import Storage

@Suite struct FindingsTests {
  private func findings(_ code: String, _ count: Int) -> DataCheck.Findings {
    var findings = DataCheck.Findings()
    for number in 0..<count { findings.add(DataCheck.Finding(code: code, path: "\(number)", detail: "")) }
    return findings
  }

  @Test("the first thousand findings of each kind are listed, and all are counted")
  func limit() {
    var found = findings("row_missing", 2500)
    found.add(DataCheck.Finding(code: "audio_missing", path: "last", detail: ""))
    #expect(found.count == 2501 && found.counts == ["row_missing": 2500, "audio_missing": 1])
    #expect(found.listed.map(\.path) == (0..<1000).map(String.init) + ["last"])
    #expect(found.unlisted.map(\.code) == ["row_missing"] && found.unlisted.map(\.count) == [1500])
  }

  @Test(
    "findings that are added to others are counted whether or not they are listed", arguments: [0, 400, 1000, 1001])
  func sum(earlier: Int) {
    var found = findings("row_missing", earlier)
    found.add(findings("row_missing", 1700))
    found.add(findings("row_missing", 3))
    #expect(found.count == earlier + 1703 && found.listed.count == 1000)
  }
}
