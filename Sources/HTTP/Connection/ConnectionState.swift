// The life of a connection (RFC 9112 §9) as a pure state machine, without a socket or a clock:
//
//               first byte          complete head             answer sent
//     idle ───────────────► head ───────────────► exchange ──────────────────► idle      persistent, body read
//      │                     │                       │  └───────────────────► draining ─► idle  short rest unread
//      │ idle too long       │ bad, too slow         │
//      ▼                     ▼                       ▼ not persistent
//    closed                exchange without       lingering ──► closed
//                          a handler (rejected)
//
// During an exchange the request body and the answer progress independently: a handler may answer before it has read
// the body, and may keep reading while it answers. To linger is to shut down our half and discard input: closing a
// socket that has unread input sends a reset, which destroys an answer that the client has not read yet.

/// What a connection does next, given what happened to it.
struct ConnectionState: Sendable {
  /// What happened.
  enum Event {
    /// The first bytes of a request arrived.
    case headBegan
    /// A head is complete.
    case head(body: BodyLength, isPersistent: Bool, expectsContinue: Bool)
    /// The head is invalid, or the server has no room: send an answer, then close.
    case rejected
    /// The handler waits for content. `hasCome`: some arrived together with the head.
    case bodyWanted(hasCome: Bool)
    /// Bytes of the body's content arrived.
    case bodyArrived(Int)
    /// The end of the body was reached.
    case bodyCompleted
    /// The body is malformed.
    case bodyFaulted
    /// The answer's head is about to be written. `unread`: bytes of the body still unread, nil if unknown.
    case answerBegan(unread: Int64?, isPersistent: Bool)
    /// Output is blocked until the client reads.
    case outputBlocked
    /// The client took this many bytes.
    case outputAdvanced(Int)
    /// The output queue is empty.
    case outputDrained
    /// The kernel has accepted the whole answer.
    case answerWritten
    /// Bytes were discarded while lingering.
    case dropped(Int)
    /// The client will send no more.
    case inputEnded
    /// The connection broke.
    case reset
    /// `deadline` has passed.
    case deadline
    /// The server is stopping.
    case stopping
    /// The time allowed for stopping is up.
    case lastCall
  }

  /// What to do in response.
  struct Actions: OptionSet, Sendable {
    let rawValue: UInt16
    /// Pass the request to the handler.
    static let startHandler = Actions(rawValue: 1)
    /// Send "100 Continue".
    static let sendContinue = Actions(rawValue: 2)
    /// Send a 408 answer, without a handler.
    static let rejectSlowHead = Actions(rawValue: 4)
    /// Fail the pending body read: the body ended early.
    static let failBodyTruncated = Actions(rawValue: 8)
    /// Fail the pending body read: the body came too slowly.
    static let failBodyTimedOut = Actions(rawValue: 16)
    /// Cancel the handler's Task.
    static let cancelHandler = Actions(rawValue: 32)
    /// Shut down our half of the connection.
    static let shutdownOutput = Actions(rawValue: 64)
    /// Close.
    static let close = Actions(rawValue: 128)
    /// Close with a reset instead of an orderly end.
    static let abort = Actions(rawValue: 256)
  }

  enum Phase: Sendable { case idle, head, exchange, draining, lingering, closed }
  private enum Body: Sendable { case unread, wanted, complete, failed }

  private(set) var phase = Phase.idle
  /// Whether the connection may serve another request.
  private(set) var isPersistent = true
  private let limits: HTTPLimits
  private var body = Body.complete
  private var owesContinue = false
  private var inputHasEnded = false
  private var isStopping = false
  /// How long an idle connection stays open while the server is stopping, in seconds. Its client may be sending a
  /// request, which is answered; many proxies can't send it again.
  private static let stoppingIdleSeconds = 0.5
  /// When the phase, or the wait for the body, began.
  private var since: Instant
  private var bodyBytes: Int64 = 0
  private var bodyWaitSeconds = 0.0
  private var blockedSince: Instant?
  private var blockedSeconds = 0.0
  private var writtenBytes: Int64 = 0
  private var droppedBytes: Int64 = 0
  private var lastDrop: Instant

  init(limits: HTTPLimits, at now: Instant) {
    self.limits = limits
    (since, lastDrop) = (now, now)
  }

  /// Whether input can be used now. While it can't, the socket is not read.
  var wantsInput: Bool {
    switch phase {
    case .idle, .head, .draining, .lingering: true
    case .exchange: body == .wanted
    case .closed: false
    }
  }

  /// Why the body can't be read any further, or nil.
  var bodyFault: RequestBodyError? { body == .failed ? bodyError : nil }
  private var bodyError = RequestBodyError.truncated

  /// When to send `.deadline`, or nil if nothing is being waited for. While the server is stopping, a connection
  /// lingers for half a second at most: a client that reads at all needs no longer.
  var deadline: Instant? {
    switch phase {
    case .idle: return since.adding(seconds: isStopping ? Self.stoppingIdleSeconds : limits.idleSeconds)
    case .head: return since.adding(seconds: limits.headSeconds)
    case .draining: return since.adding(seconds: min(limits.lingerGapSeconds, limits.lingerSeconds))
    case .lingering:
      let end = since.adding(seconds: isStopping ? min(0.5, limits.lingerSeconds) : limits.lingerSeconds)
      return min(end, lastDrop.adding(seconds: limits.lingerGapSeconds))
    case .closed: return nil
    case .exchange:
      guard body == .wanted else { return writeDeadline }
      let read = since.adding(seconds: min(limits.bodyGapSeconds, max(0, allowedWait - bodyWaitSeconds)))
      return writeDeadline.map { min($0, read) } ?? read
    }
  }

  /// How much waiting the bytes received so far allow.
  private var allowedWait: Double {
    max(limits.bodyRateGraceSeconds, Double(bodyBytes) / limits.bodyBytesPerSecond)
  }

  /// When a client that should be reading has stalled for too long, or has been too slow on average. Without the
  /// average, a client that takes one byte every half minute would hold its connection forever.
  private var writeDeadline: Instant? {
    let allowed = max(limits.writeRateGraceSeconds, Double(writtenBytes) / limits.writeBytesPerSecond)
    return blockedSince?.adding(seconds: min(limits.writeStallSeconds, max(0, allowed - blockedSeconds)))
  }

  /// Handles an event and returns what to do.
  mutating func on(_ event: Event, at now: Instant) -> Actions {
    if phase == .closed { return [] }
    switch event {
    case .headBegan:
      if phase == .idle { enter(.head, now) }
      return []
    case .head(let length, let persistent, let expects):
      enter(.exchange, now)
      body = length == .none ? .complete : .unread
      (bodyBytes, bodyWaitSeconds) = (0, 0)
      owesContinue = expects && length != .none
      isPersistent = persistent
      return .startHandler
    case .rejected:
      return reject(now)
    case .bodyWanted(let hasCome):
      return wantBody(hasCome, now)
    case .bodyArrived(let count):
      return arrive(count, now)
    case .bodyCompleted:
      if body != .failed { body = .complete }
      return phase == .draining ? nextRequest(now) : []
    case .bodyFaulted:
      body = .failed
      return phase == .draining ? linger(now) : []
    case .answerBegan(let unread, let persistent):
      beginAnswer(unread, persistent)
      return []
    case .outputBlocked:
      if blockedSince == nil { blockedSince = now }
      return []
    case .outputAdvanced(let count):
      writtenBytes += Int64(count)
      endBlock(now)
      if blockedSince != nil { blockedSince = now }
      return []
    case .outputDrained:
      endBlock(now)
      blockedSince = nil
      return []
    case .answerWritten:
      return finishAnswer(now)
    case .dropped(let count):
      droppedBytes += Int64(count)
      lastDrop = now
      return droppedBytes > limits.lingerBytes ? close() : []
    case .inputEnded:
      return endInput(now)
    case .reset:
      return [close(), .cancelHandler, .failBodyTruncated]
    case .deadline:
      return expire(now)
    case .stopping:
      isStopping = true
      if phase == .idle { since = now }
      return []
    case .lastCall:
      return lastCall()
    }
  }

  private mutating func enter(_ next: Phase, _ now: Instant) {
    (phase, since) = (next, now)
  }

  private mutating func close() -> Actions {
    phase = .closed
    return .close
  }

  private mutating func reject(_ now: Instant) -> Actions {
    enter(.exchange, now)
    (body, isPersistent, owesContinue) = (.failed, false, false)
    return []
  }

  /// A client that has already sent content no longer needs the 100 it asked for (RFC 9110 §10.1.1).
  private mutating func wantBody(_ hasCome: Bool, _ now: Instant) -> Actions {
    guard phase == .exchange, body == .unread else { return [] }
    (body, since) = (.wanted, now)
    defer { owesContinue = false }
    return owesContinue && !hasCome ? .sendContinue : []
  }

  /// Only time spent waiting counts toward the minimum rate: a handler that reads slowly is not the client's fault.
  private mutating func arrive(_ count: Int, _ now: Instant) -> Actions {
    bodyBytes += Int64(count)
    owesContinue = false
    guard body == .wanted else { return [] }
    bodyWaitSeconds += now.seconds(since: since)
    (body, since) = (.unread, now)
    return []
  }

  /// The connection is kept only if the unread rest of the body is known to be small and is on its way. A client still
  /// waiting for a 100 may or may not send the body, so there is no telling where its next request begins.
  private mutating func beginAnswer(_ unread: Int64?, _ persistent: Bool) {
    (writtenBytes, blockedSeconds) = (0, 0)
    let canDrain = body == .complete || !owesContinue && (unread.map { $0 <= limits.unreadBodyBytes } ?? false)
    isPersistent = isPersistent && persistent && canDrain && body != .failed && !inputHasEnded && !isStopping
  }

  private mutating func endBlock(_ now: Instant) {
    if let blockedSince { blockedSeconds += now.seconds(since: blockedSince) }
  }

  /// Fails a pending body read, so that the handler can clean up and answer; cancels everything else.
  private mutating func lastCall() -> Actions {
    guard phase == .exchange, body == .wanted else { return [close(), .cancelHandler, .failBodyTruncated] }
    (body, bodyError) = (.failed, .timedOut)
    return .failBodyTimedOut
  }

  private mutating func finishAnswer(_ now: Instant) -> Actions {
    guard phase == .exchange else { return [] }
    guard isPersistent, body != .failed else { return linger(now) }
    if body == .complete { return nextRequest(now) }
    enter(.draining, now)
    return .failBodyTruncated
  }

  private mutating func nextRequest(_ now: Instant) -> Actions {
    if isStopping { return linger(now) }
    enter(.idle, now)
    body = .complete
    return []
  }

  private mutating func linger(_ now: Instant) -> Actions {
    if inputHasEnded { return [close(), .failBodyTruncated] }
    enter(.lingering, now)
    lastDrop = now
    return [.shutdownOutput, .failBodyTruncated]
  }

  /// The end of input ends an idle connection. During an exchange the answer is still sent (RFC 9112 §9.5:
  /// half-closed).
  private mutating func endInput(_ now: Instant) -> Actions {
    inputHasEnded = true
    switch phase {
    case .idle, .head, .draining, .lingering: return close()
    case .closed: return []
    case .exchange:
      guard body == .unread || body == .wanted else { return [] }
      (body, bodyError) = (.failed, .truncated)
      return .failBodyTruncated
    }
  }

  private mutating func expire(_ now: Instant) -> Actions {
    guard let deadline, deadline <= now else { return [] }
    switch phase {
    // Closing would answer a request that is just arriving with a reset.
    case .idle where isStopping: return linger(now)
    case .idle, .draining, .lingering: return close()
    case .closed: return []
    case .head:
      _ = reject(now)
      return .rejectSlowHead
    case .exchange:
      if let writeDeadline, writeDeadline <= now {
        phase = .closed
        return [.cancelHandler, .failBodyTruncated, .abort]
      }
      (body, bodyError) = (.failed, .timedOut)
      return .failBodyTimedOut
    }
  }
}
