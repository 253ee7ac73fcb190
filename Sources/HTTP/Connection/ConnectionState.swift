// The life of a connection (RFC 9112 §9), decided without a socket and without a clock:
//
//               first byte            whole head              answer written
//     idle ───────────────► head ───────────────► exchange ──────────────────► idle      persistent, body read
//      │                     │                       │  └───────────────────► draining ─► idle  a small rest unread
//      │ idle too long       │ bad, too slow         │
//      ▼                     ▼                       ▼ not persistent
//    closed                exchange without       lingering ──► closed
//                          a handler (rejected)
//
// In an exchange the body and the answer move independently: a handler may answer before it has read the body, and may
// go on reading while it answers. Lingering means that our half is shut and input is read and dropped: a socket
// closed with unread input sends a reset, which destroys an answer that the client has not read yet.

/// What a connection does next, given what happened to it.
struct ConnectionState: Sendable {
  /// What happened.
  enum Event {
    /// The first bytes of a request came in.
    case headBegan
    /// A head is whole.
    case head(body: BodyLength, isPersistent: Bool, expectsContinue: Bool)
    /// The head breaks a rule, or the server has no room: an answer follows, and nothing else is served.
    case rejected
    /// The handler waits for content; some may have come with the head.
    case bodyWanted(hasCome: Bool)
    /// Bytes of the body's content came in.
    case bodyArrived(Int)
    /// The last byte of the body has been seen.
    case bodyCompleted
    /// The body breaks a rule.
    case bodyFaulted
    /// The answer's head is about to be written; `unread` is what is left of the body, nil where that is not known.
    case answerBegan(unread: Int64?, isPersistent: Bool)
    /// Output waits for the client.
    case outputBlocked
    /// The client took so many bytes.
    case outputAdvanced(Int)
    /// The client has taken everything there was for it.
    case outputDrained
    /// The answer is with the kernel, whole.
    case answerWritten
    /// Bytes were dropped while lingering.
    case dropped(Int)
    /// The client will send no more.
    case inputEnded
    /// The connection is gone.
    case reset
    /// `deadline` has passed.
    case deadline
    /// The server is stopping.
    case stopping
    /// The server has waited long enough with stopping.
    case lastCall
  }

  /// What to do about it.
  struct Actions: OptionSet, Sendable {
    let rawValue: UInt16
    /// Give the request to the handler.
    static let startHandler = Actions(rawValue: 1)
    /// Send "100 Continue".
    static let sendContinue = Actions(rawValue: 2)
    /// Answer 408 without a handler.
    static let rejectSlowHead = Actions(rawValue: 4)
    /// Tell the waiting reader that the body ended early.
    static let failBodyTruncated = Actions(rawValue: 8)
    /// Tell the waiting reader that the body came too slowly.
    static let failBodyTimedOut = Actions(rawValue: 16)
    /// Cancel the handler's Task.
    static let cancelHandler = Actions(rawValue: 32)
    /// Shut our half down.
    static let shutdownOutput = Actions(rawValue: 64)
    /// Close.
    static let close = Actions(rawValue: 128)
    /// Close so that the client sees a reset and not an orderly end.
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

  /// Whether input has a use now. While it has none the socket is not read.
  var wantsInput: Bool {
    switch phase {
    case .idle, .head, .draining, .lingering: true
    case .exchange: body == .wanted
    case .closed: false
    }
  }

  /// Whether the body can still be read.
  var bodyFault: RequestBodyError? { body == .failed ? bodyError : nil }
  private var bodyError = RequestBodyError.truncated

  /// When to come back with `.deadline`, nil where nothing is waited for. A server that is stopping lingers for half a
  /// second at most: no client that reads needs longer.
  var deadline: Instant? {
    switch phase {
    case .idle: return since.adding(seconds: limits.idleSeconds)
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

  /// How long the bytes received so far may have been waited for.
  private var allowedWait: Double {
    max(limits.bodyRateGraceSeconds, Double(bodyBytes) / limits.bodyBytesPerSecond)
  }

  /// When a client that should read has stalled for too long, or been too slow on the whole: one that takes a byte
  /// every half minute would else hold its connection for ever.
  private var writeDeadline: Instant? {
    let allowed = max(limits.writeRateGraceSeconds, Double(writtenBytes) / limits.writeBytesPerSecond)
    return blockedSince?.adding(seconds: min(limits.writeStallSeconds, max(0, allowed - blockedSeconds)))
  }

  /// Takes an event and says what to do.
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
      // Not closed at once: what the client is just sending would be answered by a reset.
      return phase == .idle ? linger(now) : []
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

  /// A client that has not waited for the 100 it asked for is not owed one (RFC 9110 §10.1.1).
  private mutating func wantBody(_ hasCome: Bool, _ now: Instant) -> Actions {
    guard phase == .exchange, body == .unread else { return [] }
    (body, since) = (.wanted, now)
    defer { owesContinue = false }
    return owesContinue && !hasCome ? .sendContinue : []
  }

  /// Only time spent waiting counts towards the slowest rate: a handler that is slow to read is not the client's fault.
  private mutating func arrive(_ count: Int, _ now: Instant) -> Actions {
    bodyBytes += Int64(count)
    owesContinue = false
    guard body == .wanted else { return [] }
    bodyWaitSeconds += now.seconds(since: since)
    (body, since) = (.unread, now)
    return []
  }

  /// The connection is kept only if what is left of the body is known to be little and on its way. A client that still
  /// waits for a 100 may or may not send the body: where its next request begins cannot be known.
  private mutating func beginAnswer(_ unread: Int64?, _ persistent: Bool) {
    (writtenBytes, blockedSeconds) = (0, 0)
    let canDrain = body == .complete || !owesContinue && (unread.map { $0 <= limits.unreadBodyBytes } ?? false)
    isPersistent = isPersistent && persistent && canDrain && body != .failed && !inputHasEnded && !isStopping
  }

  private mutating func endBlock(_ now: Instant) {
    if let blockedSince { blockedSeconds += now.seconds(since: blockedSince) }
  }

  /// A handler that waits for the rest of a body is told that it did not come, so that it can clean up and answer; what
  /// waits for anything else is broken off.
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

  /// The end of input ends an idle connection; an answer that is due is still given (RFC 9112 §9.5: half-closed).
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
