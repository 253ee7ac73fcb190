import Dispatch

// Output is queued and written as fast as the client takes it. Head and content leave in one call. A stream is asked
// for its next piece only while little is queued.

extension HTTPConnection {
  /// The content of a stream whose head has been queued.
  struct Stream: Sendable {
    let exchange: UInt64
    let framing: ResponseFraming
    let length: Int64?
    let next: @Sendable () async throws -> [UInt8]?
  }

  /// Answers without a handler.
  func answer(_ problem: Problem) {
    if exchange == nil { beginRefusal(fields: parser.refusedFields()) }
    guard let exchange else { return }
    _ = begin(core.configuration.refusal(problem, exchange.fields), exchange: exchange.id)
  }

  /// Queues the head and the content. If the content is a stream, returns it for the caller to send.
  func begin(_ response: HTTPResponse, exchange id: UInt64) -> Stream? {
    dispatchPrecondition(condition: .onQueue(loop.queue))
    guard isCurrent(id) else { return nil }
    let request = exchange?.request
    let method = request?.method ?? (parser.isHead ? .head : .get)
    let version = request?.version ?? .http11
    let framing = ResponseWriter.framing(of: response, version: version)
    let closes = framing == .untilClose || response.asksToClose
    _ = state.on(.answerBegan(unread: self.framing.remaining, isPersistent: !closes), at: loop.now)
    exchange?.status = response.status
    output.append(
      core.writer.head(
        of: response, framing: framing,
        .init(
          method: method, version: version, isPersistent: state.isPersistent,
          requestID: exchange?.requestID ?? "", dateLine: loop.dateLine)))
    var rest: Stream?
    if ResponseWriter.sendsContent(response, method: method) {
      if case .stream(let length, let next) = response.body {
        rest = Stream(exchange: id, framing: framing, length: length, next: next)
      } else {
        output.append(response.body)
      }
    }
    answerIsQueued = rest == nil
    if rest != nil || response.body.bytesAtHand == nil || !loop.sendsLater(self) { flush() }
    schedule()
    return rest
  }

  /// Sends a stream, which answers `request`, to its end.
  func send(_ stream: Stream, for request: HTTPRequest) async {
    let id = stream.exchange
    var sent: Int64 = 0
    var pieces = 0
    do {
      while let piece = try await stream.next() {
        guard isCurrent(id) else { return }
        sent += Int64(piece.count)
        if let length = stream.length, sent > length { break }
        output.append(stream.framing == .chunked ? ResponseWriter.chunk(piece) : piece)
        flush()
        schedule()
        while isCurrent(id), output.byteCount >= core.limits.queuedBytes { await roomForOutput() }
        pieces += 1
        // A producer that never suspends and a client that takes everything would monopolize the loop.
        if pieces % 4 == 0 { await loop.yield() }
      }
    } catch {
      if isCurrent(id) { core.configuration.onBrokenOff?(request, error) }
      return breakOffAnswer(id)
    }
    guard isCurrent(id) else { return }
    if let length = stream.length, sent != length { return breakOffAnswer(id) }
    if stream.framing == .chunked { output.append(ResponseWriter.lastChunk) }
    answerIsQueued = true
    flush()
    advance()
  }

  private func roomForOutput() async {
    await withCheckedContinuation { continuation in
      precondition(roomWaiter == nil, "an answer has one producer")
      roomWaiter = continuation
    }
  }

  /// The head promised more than was sent: the client must see a broken connection, not the end of the content.
  private func breakOffAnswer(_ id: UInt64) {
    guard isCurrent(id) else { return }
    socket.abort()
    perform(state.on(.reset, at: loop.now))
  }

  /// Writes until the queue is empty or the client's window is full.
  func flush() {
    if write() { settle() }
  }

  /// Writes queued output. Returns whether `settle` is to be called.
  private func write() -> Bool {
    dispatchPrecondition(condition: .onQueue(loop.queue))
    var rounds = 0
    while isWritable, !output.isEmpty {
      rounds += 1
      // Eight calls send up to 4 MB of a file; then it's another connection's turn.
      if rounds > 8 {
        loop.async { [self] in sendQueued() }
        return false
      }
      switch output.write(to: socket) {
      case .moved(let count):
        exchange?.bytesSent += Int64(count)
        _ = state.on(.outputAdvanced(count), at: loop.now)
      case .wouldBlock:
        isWritable = false
        _ = state.on(.outputBlocked, at: loop.now)
      case .ended, .failed:
        socket.abort()
        perform(state.on(.reset, at: loop.now))
        return false
      }
    }
    if output.isEmpty, answerIsQueued { exchange?.ended = loop.currentTime() }
    return true
  }

  /// Lets everything go on that has waited for the client to take output.
  private func settle() {
    if output.byteCount < core.limits.queuedBytes, let waiter = roomWaiter {
      roomWaiter = nil
      waiter.resume()
    }
    if output.isEmpty { outputEmptied() }
  }

  func writeQueued() { isUnsettled = write() }

  func finishSending() {
    if isUnsettled {
      isUnsettled = false
      settle()
    }
    advance()
  }

  private func sendQueued() {
    writeQueued()
    finishSending()
  }

  private func outputEmptied() {
    _ = state.on(.outputDrained, at: loop.now)
    guard answerIsQueued else { return }
    answerIsQueued = false
    endExchange()
    perform(state.on(.answerWritten, at: loop.now))
    advance()
  }
}
