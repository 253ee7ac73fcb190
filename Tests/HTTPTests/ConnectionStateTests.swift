import Testing

@testable import HTTP

/// A state with its own clock.
private struct Clocked {
  var state: ConnectionState
  var now = Instant(nanoseconds: 1_000_000_000)

  init(_ limits: HTTPLimits = HTTPLimits()) {
    state = ConnectionState(limits: limits, at: now)
  }

  @discardableResult
  mutating func on(_ event: ConnectionState.Event) -> ConnectionState.Actions { state.on(event, at: now) }

  mutating func wait(_ seconds: Double) { now = now.adding(seconds: seconds) }

  /// Waits, and then reports the deadline.
  mutating func expire(after seconds: Double) -> ConnectionState.Actions {
    wait(seconds)
    return on(.deadline)
  }

  mutating func begin(_ body: BodyLength = .none, persistent: Bool = true, expects: Bool = false) {
    on(.headBegan)
    on(.head(body: body, isPersistent: persistent, expectsContinue: expects))
  }

  @discardableResult
  mutating func answer(unread: Int64? = 0, persistent: Bool = true) -> ConnectionState.Actions {
    on(.answerBegan(unread: unread, isPersistent: persistent))
    return on(.answerWritten)
  }
}

@Suite("Lines 8 to 10 and the limits, by the clock") struct ConnectionStateTests {
  @Test func aKeptConnectionGoesBackToIdleAfterEachAnswer() {
    var connection = Clocked()
    for _ in 0..<3 {
      #expect(connection.on(.headBegan) == [])
      #expect(connection.on(.head(body: .none, isPersistent: true, expectsContinue: false)) == .startHandler)
      #expect(!connection.state.wantsInput)
      #expect(connection.answer() == [])
      #expect(connection.state.phase == .idle)
      #expect(connection.state.wantsInput)
    }
  }

  @Test func anIdleConnectionClosesAfterSixtySeconds() {
    var connection = Clocked()
    #expect(connection.expire(after: 59.9) == [])
    #expect(connection.expire(after: 0.2) == .close)
  }

  @Test func aSlowHeadIsAnswered408AfterTenSecondsFromItsFirstByte() {
    var connection = Clocked()
    connection.wait(50)
    connection.on(.headBegan)
    connection.wait(9)
    connection.on(.headBegan)
    #expect(connection.expire(after: 0.9) == [])
    #expect(connection.expire(after: 0.2) == .rejectSlowHead)
    #expect(connection.answer() == [.shutdownOutput, .failBodyTruncated])
    #expect(connection.state.phase == .lingering)
  }

  @Test func aRefusedRequestIsAnsweredAndTheConnectionLingersAndCloses() {
    var connection = Clocked()
    connection.on(.headBegan)
    connection.on(.rejected)
    #expect(!connection.state.wantsInput)
    connection.answer()
    #expect(!connection.state.isPersistent)
    #expect(connection.state.phase == .lingering)
    #expect(connection.on(.inputEnded) == .close)
  }

  @Test func lingeringEndsAfterFiveSecondsWithoutInput() {
    var connection = Clocked()
    connection.begin(persistent: false)
    connection.answer()
    #expect(connection.expire(after: 4.9) == [])
    #expect(connection.on(.dropped(1)) == [])
    #expect(connection.expire(after: 4.9) == [])
    #expect(connection.expire(after: 0.2) == .close)
  }

  @Test func lingeringEndsAfterThirtySecondsOfInput() {
    var connection = Clocked()
    connection.begin(persistent: false)
    connection.answer()
    for _ in 0..<29 {
      #expect(connection.expire(after: 1) == [])
      #expect(connection.on(.dropped(1)) == [])
    }
    #expect(connection.expire(after: 0.9) == [])
    #expect(connection.expire(after: 0.2) == .close)
  }

  @Test func lingeringEndsAfter512MiB() {
    var connection = Clocked()
    connection.begin(persistent: false)
    connection.answer()
    #expect(connection.on(.dropped(512 * 1024 * 1024)) == [])
    #expect(connection.on(.dropped(1)) == .close)
  }

  @Test func theSocketIsReadOnlyWhileTheBodyIsRead() {
    var connection = Clocked()
    connection.begin(.length(100))
    #expect(!connection.state.wantsInput)
    #expect(connection.on(.bodyWanted(hasCome: false)) == [])
    #expect(connection.state.wantsInput)
    connection.on(.bodyArrived(50))
    #expect(!connection.state.wantsInput)
  }

  @Test func oneHundredContinueIsSentWithTheFirstRead() {
    var connection = Clocked()
    connection.begin(.length(100), expects: true)
    #expect(connection.on(.bodyWanted(hasCome: false)) == .sendContinue)
    connection.on(.bodyArrived(50))
    #expect(connection.on(.bodyWanted(hasCome: false)) == [])
  }

  @Test func withoutContinueTheConnectionClosesAfterTheAnswer() {
    var connection = Clocked()
    connection.begin(.length(10), expects: true)
    connection.answer(unread: 10)
    #expect(!connection.state.isPersistent)
    #expect(connection.state.phase == .lingering)
  }

  @Test func aSmallUnreadBodyIsDiscardedAndTheConnectionKept() {
    var connection = Clocked()
    connection.begin(.length(1000))
    connection.answer(unread: 1000)
    #expect(connection.state.phase == .draining)
    #expect(connection.state.wantsInput)
    connection.on(.bodyCompleted)
    #expect(connection.state.phase == .idle)
  }

  @Test(arguments: [Int64(65 * 1024), nil]) func aLargeOrUnboundedUnreadBodyEndsTheConnection(
    _ unread: Int64?
  ) {
    var connection = Clocked()
    connection.begin(.chunked)
    connection.answer(unread: unread)
    #expect(connection.state.phase == .lingering)
  }

  @Test func aStalledBodyTimesOutAfterThirtySeconds() {
    var connection = Clocked()
    connection.begin(.length(100_000_000))
    connection.on(.bodyWanted(hasCome: false))
    connection.wait(29)
    connection.on(.bodyArrived(1_000_000))
    connection.on(.bodyWanted(hasCome: false))
    #expect(connection.expire(after: 29.9) == [])
    #expect(connection.expire(after: 0.2) == .failBodyTimedOut)
    #expect(connection.state.bodyFault == .timedOut)
  }

  @Test func aTricklingBodyTimesOutWhenItsGraceIsUsedUp() {
    var connection = Clocked()
    connection.begin(.length(1_000_000))
    for _ in 0..<6 {
      connection.on(.bodyWanted(hasCome: false))
      #expect(connection.expire(after: 4.9) == [])
      connection.on(.bodyArrived(1))
    }
    connection.on(.bodyWanted(hasCome: false))
    #expect(connection.expire(after: 0.7) == .failBodyTimedOut)
  }

  @Test func theHandlersTimeIsNotCountedAgainstTheClient() {
    var connection = Clocked()
    connection.begin(.length(1_000_000))
    for _ in 0..<10 {
      connection.on(.bodyWanted(hasCome: false))
      connection.on(.bodyArrived(1))
      connection.wait(100)
      #expect(connection.state.deadline == nil)
    }
    connection.on(.bodyWanted(hasCome: false))
    #expect(connection.expire(after: 29) == [])
    #expect(connection.state.bodyFault == nil)
  }

  @Test func aHandlerMayTakeAsLongAsItLikes() {
    var connection = Clocked()
    connection.begin()
    #expect(connection.state.deadline == nil)
  }

  @Test(arguments: [(1_000_000, 29.9), (1, 0.9)])
  func aClientThatStopsReadingOrReadsInATrickleIsResetAfterThirtySeconds(_ read: Int, _ left: Double) {
    var connection = Clocked()
    connection.begin()
    connection.on(.answerBegan(unread: 0, isPersistent: true))
    connection.on(.outputBlocked)
    connection.wait(29)
    connection.on(.outputAdvanced(read))
    #expect(connection.expire(after: left) == [])
    #expect(connection.expire(after: 0.2) == [.cancelHandler, .failBodyTruncated, .abort])
  }

  @Test func aStreamThatHasNothingToSendDoesNotTimeOut() {
    var connection = Clocked()
    connection.begin()
    connection.on(.answerBegan(unread: 0, isPersistent: true))
    connection.on(.outputBlocked)
    connection.on(.outputDrained)
    #expect(connection.state.deadline == nil)
  }

  @Test func aHalfClosedClientIsAnsweredThenDisconnected() {
    var connection = Clocked()
    connection.begin(.length(3))
    connection.on(.bodyWanted(hasCome: false))
    connection.on(.bodyArrived(3))
    connection.on(.bodyCompleted)
    #expect(connection.on(.inputEnded) == [])
    #expect(connection.answer().contains(.close))
  }

  @Test func aBodyCutShortByTheClientFailsItsReader() {
    var connection = Clocked()
    connection.begin(.length(3))
    connection.on(.bodyWanted(hasCome: false))
    #expect(connection.on(.inputEnded) == .failBodyTruncated)
    #expect(connection.state.bodyFault == .truncated)
    #expect(connection.answer().contains(.close))
  }

  @Test func aResetCancelsTheHandler() {
    var connection = Clocked()
    connection.begin()
    #expect(connection.on(.reset) == [.close, .cancelHandler, .failBodyTruncated])
    #expect(connection.on(.reset) == [])
    #expect(connection.state.deadline == nil)
  }

  @Test func theEndOfInputClosesAnIdleConnection() {
    var connection = Clocked()
    #expect(connection.on(.inputEnded) == .close)
  }

  @Test func aStoppingServerClosesIdleConnectionsAndLetsOthersFinish() {
    var idle = Clocked()
    // Not closed right away, because a request in transit would be answered with a reset.
    #expect(idle.on(.stopping) == [])
    #expect(idle.expire(after: 0.4) == [])
    #expect(idle.expire(after: 0.2).contains(.shutdownOutput))
    #expect(idle.on(.inputEnded) == .close)
    var late = Clocked()
    late.on(.stopping)
    late.begin()
    late.answer()
    #expect(!late.state.isPersistent && late.state.phase == .lingering)
    var busy = Clocked()
    busy.begin()
    #expect(busy.on(.stopping) == [])
    busy.answer()
    #expect(!busy.state.isPersistent)
    #expect(busy.state.phase == .lingering)
  }

  @Test func aMalformedBodyEndsTheConnectionAfterTheAnswer() {
    var connection = Clocked()
    connection.begin(.chunked)
    connection.on(.bodyWanted(hasCome: false))
    connection.on(.bodyFaulted)
    connection.answer(unread: nil)
    #expect(connection.state.phase == .lingering)
  }

  @Test func aSlowClientMayTakeAnHourForALargeAnswer() {
    var connection = Clocked()
    connection.begin()
    connection.on(.answerBegan(unread: 0, isPersistent: true))
    for _ in 0..<360 {
      connection.on(.outputBlocked)
      #expect(connection.expire(after: 10) == [])
      connection.on(.outputAdvanced(20_600))
    }
  }

  @Test func aClientThatSendsItsBodyAtOnceGetsNoContinue() {
    var connection = Clocked()
    connection.begin(.length(10), expects: true)
    #expect(connection.on(.bodyWanted(hasCome: true)) == [])
  }

  @Test func theLastCallFailsWaitingReadersAndEndsEverythingElse() {
    var reading = Clocked()
    reading.begin(.length(10))
    reading.on(.bodyWanted(hasCome: false))
    reading.on(.stopping)
    #expect(reading.on(.lastCall) == .failBodyTimedOut)
    #expect(reading.answer(unread: 10) == [.shutdownOutput, .failBodyTruncated])
    var waiting = Clocked()
    waiting.begin()
    waiting.on(.stopping)
    #expect(waiting.on(.lastCall) == [.close, .cancelHandler, .failBodyTruncated])
  }
}
