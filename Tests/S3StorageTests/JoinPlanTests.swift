import PresentRows
import Randomness
import Storage
import Testing

@testable import S3Storage

@Suite struct JoinPlanTests {
  private static let upload = UploadID()

  private func objects(_ lengths: [Int64]) -> [UploadObject] {
    var start: Int64 = 0
    return lengths.map { length in
      defer { start += length }
      return UploadObject(of: Self.upload, start: start, bytes: length)
    }
  }

  /// Describes a plan for parts of at least 5 bytes: c for what is copied, s for what is sent.
  private func plan(_ lengths: [Int64], bytes: Int64? = nil) -> String? {
    let objects = objects(lengths)
    return JoinPlan(objects, bytes: bytes ?? lengths.reduce(0, +), leastBytes: 5)?.parts.map { part in
      switch part {
      case .copy(let object, let range): "c\(range?.count ?? Int(object.bytes))"
      case .send(let range): "s\(range.count)"
      }
    }.joined(separator: " ")
  }

  @Test(
    "long objects are copied, and short ones sent together",
    arguments: [
      ([7], "c7"), ([7, 9, 5], "c7 c9 c5"), ([7, 9, 2], "c7 c9 s2"), ([7, 2, 9], "c7 s5 c6"),
      ([1, 1, 1, 8, 1, 1], "s5 c6 s2"), ([7, 2, 6, 7], "c7 s8 c7"), ([1, 1, 1, 1, 1, 9], "s5 c9"),
      ([4, 5, 5], "s9 c5"),
    ])
  func plans(lengths: [Int64], expected: String) { #expect(plan(lengths) == expected) }

  @Test("nothing is joined if nothing can be copied or if bytes are missing")
  func none() {
    #expect(plan([]) == nil && plan([4]) == nil && plan([3, 4]) == nil && plan([7], bytes: 8) == nil)
    let apart = [UploadObject(of: Self.upload, start: 1, bytes: 9)]
    #expect(JoinPlan(apart, bytes: 10, leastBytes: 5) == nil)
  }

  @Test("whatever the lengths, the parts are the file, and all but the last are long enough")
  func identity() throws {
    var random = TestRandom(for: 0)
    for _ in 0..<500 {
      let lengths = (0..<Int.random(in: 1...20, using: &random)).map { _ in Int64.random(in: 1...12, using: &random) }
      let objects = objects(lengths)
      guard let plan = JoinPlan(objects, bytes: lengths.reduce(0, +), leastBytes: 5) else {
        #expect(plan(lengths) == nil)
        continue
      }
      var place: Int64 = 0
      for (index, part) in plan.parts.enumerated() {
        let range: Range<Int64> =
          switch part {
          case .copy(let object, let range):
            object.start + (range?.lowerBound ?? 0)..<object.start + (range?.upperBound ?? object.bytes)
          case .send(let range): range
          }
        #expect(range.lowerBound == place && (range.count >= 5 || index == plan.parts.count - 1), "\(lengths)")
        place = range.upperBound
      }
      #expect(place == lengths.reduce(0, +), "\(lengths)")
    }
  }

  @Test("there are at most 10,000 parts")
  func manyParts() throws {
    let lengths = Array(repeating: Int64(5), count: 30_000) + [100]
    let plan = try #require(JoinPlan(objects(lengths), bytes: 150_100, leastBytes: 5))
    #expect(plan.parts.count <= 10_000)
  }
}
