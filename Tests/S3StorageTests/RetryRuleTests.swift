import Randomness
import Testing

@testable import S3Storage

@Suite struct RetryRuleTests {
  private static let transient: [S3Error] = [
    .unreachable(reason: ""), .timedOut, .unavailable(status: 500, code: nil), .unavailable(status: 503, code: nil),
    .damaged,
  ]
  private static let final: [S3Error] = [
    .accessDenied, .badCredentials(code: ""), .wrongRegion(expected: nil), .clockSkew(serverTime: nil), .noSuchBucket,
    .noSuchKey, .noSuchUpload, .changed, .quotaExceeded, .refused(status: 400, code: nil, message: nil),
    .malformedAnswer(what: ""), .file(operation: "", path: "", errno: 1), .libraryMissing, .noCredentials(file: nil),
  ]

  @Test("only errors that may pass are worth another attempt")
  func transience() {
    for error in Self.transient { #expect(RetryRule.always.permits(error, wasSent: true), "\(error)") }
    for error in Self.final { #expect(!RetryRule.always.permits(error, wasSent: false), "\(error)") }
  }

  @Test("what mustn't be done twice is sent again only if it certainly wasn't done")
  func certainty() {
    let sent = Self.transient.filter { RetryRule.ifNothingHappened.permits($0, wasSent: true) }
    #expect(sent == [.unavailable(status: 503, code: nil)])
    #expect(RetryRule.ifNothingHappened.permits(.unreachable(reason: ""), wasSent: false))
  }

  @Test("pauses double up to five seconds, less a random part of up to a half")
  func pauses() {
    var generator = TestRandom(for: 0)
    var settings = S3Settings()
    settings.pauseSeconds = 0.5
    for (failures, full) in [(1, 0.5), (2, 1), (3, 2), (4, 4), (5, 5), (100, 5)] {
      let pauses = (0..<50).map { _ in settings.pause(after: failures, using: &generator) }
      #expect(pauses.allSatisfy { (full / 2...full).contains($0) })
      #expect(Set(pauses).count > 1)
    }
  }

  @Test("a deadline grows with the bytes")
  func deadlines() {
    let settings = S3Settings()
    #expect(settings.deadlineSeconds(bytes: 0) == 20)
    #expect(settings.deadlineSeconds(bytes: 16 << 20) == 84)
  }

  @Test("attempts have what is left of a call's time, and the time that their content takes")
  func totalTime() {
    let settings = S3Settings()
    let seconds = [0.0, 15, 25, 31].map { settings.deadlineSeconds(bytes: 0, after: $0) }
    #expect(seconds == [20, 15, 5, 0])
    #expect(settings.deadlineSeconds(bytes: 1 << 20, after: 25) == 9)
    #expect(settings.hasTime(after: 29.9) && !settings.hasTime(after: 30))
  }

  @Test("what a store copies or joins gives it some time more, but never so much that a silent one is waited for")
  func timeInStore() {
    #expect(S3Settings.secondsInStore(bytes: 0) == 0)
    #expect(S3Settings.secondsInStore(bytes: 64 << 20) > 2)
    #expect(S3Settings.secondsInStore(bytes: 1 << 40) == 120)
  }
}
