import Testing

@testable import HTTP

@Suite struct PieceBuffersTests {
  private func take(from buffers: inout PieceBuffers) throws -> [UInt8] {
    let buffer = buffers.take()
    return try #require(buffer)
  }

  private func take(_ count: Int, from buffers: inout PieceBuffers) throws -> [[UInt8]] {
    var taken: [[UInt8]] = []
    for _ in 0..<count { taken.append(try take(from: &buffers)) }
    return taken
  }

  @Test func aBufferIsEmptyAndHasRoom() throws {
    var buffers = PieceBuffers(byteCount: 1000)
    for _ in 0..<5 {
      var buffer = try take(from: &buffers)
      #expect(buffer.isEmpty && buffer.capacity >= 1000)
      buffer.append(contentsOf: [1, 2, 3])
      buffers.giveBack(buffer)
    }
  }

  @Test func noMoreThanTheLimitAreLent() throws {
    var buffers = PieceBuffers(byteCount: 10)
    let taken = try take(PieceBuffers.lentLimit, from: &buffers)
    let another = buffers.take()
    #expect(another == nil)
    buffers.giveBack(taken[0])
    _ = try take(from: &buffers)
    #expect(buffers.lentCount == PieceBuffers.lentLimit)
  }

  @Test func oneReaderNeedsTwoBuffers() throws {
    var buffers = PieceBuffers(byteCount: 10)
    for _ in 0..<10 {
      let buffer = try take(from: &buffers)
      buffers.giveBack(buffer)
      #expect(buffers.unusedCount <= 2)
    }
  }

  @Test func aPieceThatIsKeptStaysAsItIs() throws {
    var buffers = PieceBuffers(byteCount: 10)
    var kept: [[UInt8]] = []
    for number in 0..<UInt8(6) {
      var buffer = try take(from: &buffers)
      buffer.append(number)
      kept.append(buffer)
      buffers.giveBack(buffer)
    }
    #expect(kept == (0..<6).map { [$0] })
  }

  @Test func unusedBuffersAreFreedOnceNoneIsLent() throws {
    var buffers = PieceBuffers(byteCount: 10)
    let taken = try take(2, from: &buffers)
    buffers.giveBack(taken[0])
    buffers.freeUnused()
    #expect(buffers.unusedCount == 1 && buffers.lentCount == 1)
    buffers.giveBack(taken[1])
    buffers.freeUnused()
    #expect(buffers.unusedCount == 0 && buffers.lentCount == 0)
  }
}
