import Randomness
import Testing

@testable import Waveform

struct PageTableTests {
  /// Returns a page whose first point says which one it is.
  private func page(_ number: Int64) -> PyramidPage {
    var words = [UInt64](repeating: 0, count: PyramidLayout.pageWords)
    words[0] = UInt64(number)
    return PyramidPage(words, at: 0)
  }

  /// Returns the number of each page of a set; nil for a missing one.
  private func numbers(_ set: PageSet, _ count: Int) -> [Int64?] {
    var filled = set
    let isMissing = (0..<count).map(set.isMissing)
    #expect(set.missingCount == isMissing.count { $0 })
    for index in 0..<count where isMissing[index] { filled.fill(index, with: page(0)) }
    return filled.read { pages in
      (0..<count).map { isMissing[$0] ? nil : pages[$0].map { page in Int64(page[0].minimum) } }
    }
  }

  private func randomNumbers(_ layout: PyramidLayout, _ random: inout TestRandom) -> PageNumbers {
    let frames = Int64(5) << 24
    let first = Int.random(in: 0..<layout.lanes, using: &random)
    let lanes = first..<Int.random(in: first + 1...layout.lanes, using: &random)
    let frame = Int64.random(in: 0..<frames, using: &random)
    let step = Bool.random(using: &random) ? 65_536 : Int64.random(in: 65_536...1 << 24, using: &random)
    let count = Int.random(in: 0...Int((frames - frame + step - 1) / step), using: &random)
    let group = Int64.random(in: 0..<5, using: &random)
    return PageNumbers(
      layout: layout, lanes: lanes, firstFrame: frame, step: step, lowerCount: count,
      upper: Bool.random(using: &random) ? group..<group : group..<Int64.random(in: group + 1...5, using: &random))
  }

  @Test("pages are the same whether they're found by their blocks or by their numbers", arguments: [1, 2, 3])
  func lookups(channels: Int) throws {
    var random = TestRandom(for: channels)
    let layout = try PyramidLayout(sampleRate: 44_100, channels: channels)
    let table = PageTable(layout)
    let end = layout.page(upper: true, block: 5)
    _ = table.insert((1..<end).filter { _ in Int.random(in: 0..<10, using: &random) > 0 }.map { ($0, page($0)) })
    for _ in 0..<100 {
      let asked = randomNumbers(layout, &random)
      let list = Array(asked)
      #expect(list.count == asked.underestimatedCount)
      #expect(numbers(table.current.pages(asked), list.count) == numbers(table.current.pages(list), list.count))
    }
  }

  @Test("exactly the pages that were looked up are marked, and a mark is taken once", arguments: [1, 2, 3])
  func marks(channels: Int) throws {
    var random = TestRandom(for: channels)
    let layout = try PyramidLayout(sampleRate: 44_100, channels: channels)
    for isList in [false, true] {
      let table = PageTable(layout)
      let end = layout.page(upper: true, block: 5)
      let present = (1..<end).filter { _ in Int.random(in: 0..<10, using: &random) > 0 }
      let cached = table.insert(present.map { ($0, page($0)) })
      let asked = randomNumbers(layout, &random)
      _ = isList ? table.current.pages(Array(asked)) : table.current.pages(asked)
      let used = Set(asked)
      #expect(zip(present, cached).allSatisfy { $1.takeMark() == used.contains($0) })
      #expect(cached.allSatisfy { !$0.takeMark() })
    }
  }

  @Test func aSetKeepsItsPagesWhenTheyAreRemoved() throws {
    let layout = try PyramidLayout(sampleRate: 44_100, channels: 1)
    let table = PageTable(layout)
    let cached = table.insert((1..<259).map { ($0, page($0)) })
    let asked = PageNumbers(layout: layout, lanes: 0..<1, firstFrame: 0, step: 65_536, lowerCount: 256, upper: 0..<1)
    let set = table.current.pages(asked)
    for page in cached { table.remove(page) }
    #expect(numbers(set, 257) == Array(2..<258) + [1])
    #expect(table.current.pages(asked).missingCount == 257)
  }
}
