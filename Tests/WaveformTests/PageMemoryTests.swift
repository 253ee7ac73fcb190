import Testing

@testable import Waveform

@Suite struct PageMemoryTests {
  private let memory = PageMemory()

  /// Takes pages and returns their addresses.
  private func take(_ count: Int) -> [UInt] { (0..<count).map { _ in UInt(bitPattern: unsafe memory.take()) } }

  private func giveBack(_ address: UInt) {
    if let page = unsafe UnsafeMutableRawPointer(bitPattern: address) { unsafe memory.giveBack(page) }
  }

  @Test func pagesAreDistinctAlignedAndWritableToTheirEnds() {
    let pages = take(2000)
    #expect(Set(pages).count == 2000 && pages.allSatisfy { $0 % UInt(PyramidLayout.pageBytes) == 0 })
    #expect(memory.byteCount == 8 << 20)
    let last = Int(PyramidLayout.pageBytes) - 8
    for page in pages {
      unsafe UnsafeMutableRawPointer(bitPattern: page)?.storeBytes(of: page, toByteOffset: last, as: UInt.self)
    }
    let kept = pages.allSatisfy {
      unsafe UnsafeMutableRawPointer(bitPattern: $0)?.load(fromByteOffset: last, as: UInt.self) == $0
    }
    #expect(kept)
    pages.forEach(giveBack)
  }

  @Test func eachPageHasALineOfItsOwn() {
    let pages = take(2000)
    let lines = pages.compactMap { page in
      unsafe UnsafeMutableRawPointer(bitPattern: page).map { UInt(bitPattern: unsafe PageMemory.line(of: $0)) }
    }
    #expect(Set(lines).count == 2000 && lines.allSatisfy { $0 % UInt(PageMemory.lineBytes) == 0 })
    // No line lies in a page.
    let size = UInt(PyramidLayout.pageBytes)
    #expect(Set(lines.map { $0 / size }).isDisjoint(with: pages.map { $0 / size }))
    pages.forEach(giveBack)
  }

  @Test func whatIsNoLongerUsedIsUnmapped() {
    let perPiece = PageMemory.pagesPerPiece
    let pages = take(5 * perPiece)
    #expect(memory.byteCount == 10 << 20)
    // In an order in which all pieces are used until the end.
    for first in 0..<perPiece {
      for page in stride(from: first, to: pages.count, by: perPiece) { giveBack(pages[page]) }
    }
    #expect(memory.byteCount <= 4 << 20)
    // What was given back is used first.
    let again = take(1)
    #expect(memory.byteCount <= 4 << 20)
    memory.unmapUnused()
    #expect(memory.byteCount == 2 << 20)
    again.forEach(giveBack)
    memory.unmapUnused()
    #expect(memory.byteCount == 0)
    take(1).forEach(giveBack)
    #expect(memory.byteCount == 2 << 20)
  }
}
