import Synchronization

/// A copy of a pyramid that another machine is still writing, which can be read like the original. MirrorPlan.swift
/// says which bytes it fetches.
///
/// The copy never shows a point before everything that belongs to it has been fetched and verified: `readyFrames` grows
/// last. The file has no name, so its disk space is free soon after the last reference is gone, also after a crash. It
/// can be read and released on any thread; `update` is called by one thread at a time.
package final class PyramidMirror: Sendable {
  /// The file. Of its points, those of `readyFrames` are valid.
  package let file: PyramidFile
  private let layout: PyramidLayout
  private let pages: PageFile
  private let output: WrittenFile
  private let ready = Atomic<Int64>(0)
  private let hasEnded = Atomic<Bool>(false)

  /// The bytes of the original that `header` consists of.
  package static let headerBytes = MirrorPlan.headerBytes

  /// Until the original is finished, copies grow by this many frames or a multiple.
  package static let blockFrames = PyramidLayout.blockFrames

  /// Creates an empty copy. `path` is the name of a new file, which is gone when this returns.
  ///
  /// Throws `.io`, and, if `header` isn't a pyramid's, `.malformedPyramid` or `.outdatedPyramid`. Blocks.
  package init(creating path: String, header: [UInt8]) throws(WaveformError) {
    layout = try Self.parse(header).layout
    let output = try WrittenFile(creating: path, closingLater: true)
    do throws(WaveformError) {
      try output.write(layout.header(totalFrames: nil).span, at: 0)
      let pages = try PageFile(path: path)
      (self.pages, file) = (pages, try PyramidFile(pages))
    } catch {
      output.removeName()
      throw error
    }
    output.removeName()
    self.output = output
  }

  /// The number of frames that can be read: a multiple of a block's until the copy is finished. Never decreases.
  package var readyFrames: Int64 { ready.load(ordering: .acquiring) }

  /// Whether the copy has everything.
  package var isFinished: Bool { hasEnded.load(ordering: .acquiring) }

  /// Copies what the original has more than this copy.
  ///
  /// `header`: the original's, fetched now. `ready`: the number of frames that its writer has reported as ready.
  /// `fetch` returns bytes of the original. After each step of a few megabytes, goes on only if `goesOn` returns true.
  ///
  /// Throws what `fetch` throws; `.changedPyramid` if something that never changes has changed, after which this copy
  /// can't be trusted; `.malformedPyramid`, `.damagedPyramid` or `.truncatedPyramid` if what was fetched isn't part of
  /// a pyramid; `.io`. What was copied before can still be read. Blocks.
  package func update(
    header: [UInt8], ready: Int64, fetch: (Range<Int64>) throws -> [UInt8], goesOn: () -> Bool = { true }
  ) throws {
    let (shape, total) = try Self.parse(header)
    guard shape == layout, total.map({ $0 >= readyFrames }) ?? true else { throw WaveformError.changedPyramid(page: 0) }
    repeat {
      guard !isFinished else { return }
      let plan = MirrorPlan(layout, mirrored: readyFrames, ready: ready, total: total)
      guard !plan.isEmpty else { return }
      for range in plan.ranges { try store(try fetch(range), at: range, of: plan) }
      try publish(plan)
    } while goesOn()
  }

  /// Writes what was fetched, if it is what it should be.
  private func store(_ bytes: [UInt8], at range: Range<Int64>, of plan: MirrorPlan) throws(WaveformError) {
    guard bytes.count == range.count else {
      throw .truncatedPyramid(size: range.lowerBound + Int64(bytes.count), needed: range.upperBound)
    }
    let words = Self.words(bytes)
    let first = range.lowerBound / PyramidLayout.pageBytes
    for index in 0..<words.count / PyramidLayout.pageWords {
      let start = index * PyramidLayout.pageWords
      let page = words.span.extracting(start..<start + PyramidLayout.pageWords)
      let number = first + Int64(index)
      if layout.isFinal(page: number, points: plan.points), !PyramidLayout.isSound(page, number: number) {
        throw .damagedPyramid(page: number)
      }
      if layout.isUpper(page: number) { try compare(page, number, mirrored: plan.mirrored) }
    }
    try output.write(words.span, at: range.lowerBound / 8)
  }

  /// Throws if an upper block's page has other points than it had when they were fetched before.
  private func compare(_ page: Span<UInt64>, _ number: Int64, mirrored: Int64) throws(WaveformError) {
    let valid = layout.validWords(upperPage: number, frames: mirrored)
    guard !valid.isEmpty else { return }
    let known = try pages.read(number..<number + 1)
    for words in valid {
      for word in words where known[word] != page[word] { throw .changedPyramid(page: number) }
    }
  }

  private func publish(_ plan: MirrorPlan) throws(WaveformError) {
    if plan.isLast { try output.write(layout.header(totalFrames: plan.frames).span, at: 0) }
    ready.store(plan.frames, ordering: .releasing)
    if plan.isLast { hasEnded.store(true, ordering: .releasing) }
  }

  private static func parse(_ header: [UInt8]) throws(WaveformError) -> (layout: PyramidLayout, total: Int64?) {
    guard header.count == headerBytes.count else { throw .malformedPyramid(field: "length") }
    var page = words(header)
    page += [UInt64](repeating: 0, count: PyramidLayout.pageWords - page.count)
    return (try PyramidLayout(header: page.span), PyramidLayout.totalFrames(header: page.span))
  }

  /// Returns the words of a file as they are in memory.
  private static func words(_ bytes: [UInt8]) -> [UInt64] {
    (0..<bytes.count / 8).map { index in
      var word: UInt64 = 0
      for place in 0..<8 { word |= UInt64(bytes[index * 8 + place]) << UInt64(place * 8) }
      return word.littleEndian
    }
  }
}
