import Dispatch

// Input is read only when it can be used: a head once the last answer is written, content when the handler reads it,
// anything while lingering. Otherwise the socket's buffer fills up and the client waits.

extension HTTPConnection {
  /// Reads input while there is some and it is wanted. A handler that is started here and answers immediately calls
  /// this again and finds the loop running, so pipelined requests are served in a loop, not by recursion.
  func advance() {
    dispatchPrecondition(condition: .onQueue(loop.queue))
    guard !isAdvancing else { return }
    isAdvancing = true
    var rounds = 0
    while state.wantsInput, canTakeInput {
      rounds += 1
      // A client that never stops sending, whether requests or bytes to discard, must let the others have their turn.
      if rounds > Self.roundsInARow {
        loop.async { [self] in advance() }
        break
      }
      if pendingStart < pending.count {
        takePending()
      } else if isReadable {
        receive()
      } else {
        break
      }
    }
    isAdvancing = false
    schedule()
  }

  private static var roundsInARow: Int { 64 }

  /// A new request waits until the last answer is out: one request at a time per connection.
  private var canTakeInput: Bool {
    switch state.phase {
    case .idle, .head: output.isEmpty
    default: true
    }
  }

  private func receive() {
    if lastReadWasFull, state.phase == .exchange, receivePiece() { return }
    let transfer = socket.receive(into: &loop.readBuffer)
    note(transfer, outOf: loop.readBuffer.count)
    if case .moved(let count) = transfer { take(loop.readBuffer, from: 0, to: count, isPending: false) }
  }

  /// Receives nothing but content, into the buffer that the handler gets. Returns false if the rest is short or has to
  /// be scanned, or if no buffer is free.
  ///
  /// Passing pieces of 64 KiB between the loop and the handler's thread took 40 % of an upload's processor time, so a
  /// client that sends faster than its handler reads gets larger pieces. All others share the loop's read buffer and
  /// need no memory while they wait.
  private func receivePiece() -> Bool {
    guard framing.contentAhead > Int64(loop.readBuffer.count), var buffer = loop.pieceBuffers.take() else {
      return false
    }
    // While the handler works, more keeps arriving, and each time the loop would be woken for nothing.
    watchInput(false)
    let limit = Int(min(framing.contentAhead, Int64(loop.pieceBuffers.byteCount)))
    let transfer = socket.receive(atMost: limit, appendingTo: &buffer)
    guard case .moved(let count) = transfer else {
      loop.pieceBuffers.giveBack(buffer)
      note(transfer, outOf: limit)
      return true
    }
    note(transfer, outOf: limit)
    lastReadWasFull = count >= loop.readBuffer.count
    framing.take(content: count)
    lentPiece = buffer
    deliver(buffer, contentBytes: count, isWanted: true)
    return true
  }

  private func note(_ transfer: Socket.Transfer, outOf limit: Int) {
    lastReadWasFull = transfer == .moved(limit)
    switch transfer {
    case .moved(let count):
      // Fewer bytes than asked for: the socket is empty and epoll will report the next bytes, but not the end
      // (epoll(7)).
      if count < limit, !inputMayHaveEnded, watchesInput { isReadable = false }
    case .wouldBlock:
      isReadable = false
      watchInput(true)
    case .ended:
      isReadable = false
      perform(state.on(.inputEnded, at: loop.now))
    case .failed:
      isReadable = false
      perform(state.on(.reset, at: loop.now))
    }
  }

  /// Returns the last piece's buffer to the loop: its handler asked for the next piece, or the exchange has ended.
  func returnPiece() {
    guard let piece = lentPiece else { return }
    lentPiece = nil
    loop.pieceBuffers.giveBack(piece)
  }

  private func takePending() {
    // This request's turn comes after the previous answer, later than the events that the loop's time is from.
    loop.refreshNow()
    let bytes = pending
    take(bytes, from: pendingStart, to: bytes.count, isPending: true)
  }

  private func take(_ bytes: [UInt8], from start: Int, to end: Int, isPending: Bool) {
    switch state.phase {
    case .idle, .head: takeHead(bytes, start, end, isPending)
    case .exchange, .draining: takeBody(bytes, start, end, isPending)
    case .lingering:
      keep(bytes, from: end, to: end, isPending)
      perform(state.on(.dropped(end - start), at: loop.now))
    case .closed: break
    }
  }

  /// Saves the bytes that were not consumed. This must happen before other code runs, because the read buffer is the
  /// loop's.
  private func keep(_ bytes: [UInt8], from next: Int, to end: Int, _ isPending: Bool) {
    if next == end {
      pending = []
      pendingStart = 0
    } else if isPending {
      pendingStart = next
    } else {
      pending = Array(bytes[next..<end])
      pendingStart = 0
    }
  }

  private func takeHead(_ bytes: [UInt8], _ start: Int, _ end: Int, _ isPending: Bool) {
    do throws(HTTPParseError) {
      let (head, next) = try parser.consume(bytes, from: start, to: end)
      keep(bytes, from: next, to: end, isPending)
      guard let head else {
        // An empty line before a request does not begin it.
        if parser.hasBegun { perform(state.on(.headBegan, at: loop.now)) }
        return
      }
      if head.body != .none || !framing.isComplete { framing = BodyFraming(head.body, limits: core.limits) }
      readsInARow = 0
      if let error = framing.fault(in: pending, from: pendingStart) {
        beginRefusal(head)
        return refuse(error.problem)
      }
      let event = ConnectionState.Event.head(
        body: head.body, isPersistent: head.isPersistent, expectsContinue: head.expectsContinue)
      if state.on(event, at: loop.now).contains(.startHandler) { startHandler(head) }
    } catch {
      beginRefusal(fields: parser.refusedFields(in: bytes[start..<end]))
      keep(bytes, from: end, to: end, isPending)
      refuse(error.problem)
    }
  }

  private func refuse(_ problem: Problem) {
    perform(state.on(.rejected, at: loop.now))
    answer(problem)
  }

  private func takeBody(_ bytes: [UInt8], _ start: Int, _ end: Int, _ isPending: Bool) {
    var piece: [UInt8] = []
    var position = start
    var count = 0
    let isWanted = state.phase == .exchange
    do throws(RequestBodyError) {
      stepping: while true {
        switch try framing.step(bytes, from: position, to: end) {
        case .content(let range):
          if isWanted { piece.append(contentsOf: bytes[range]) }
          count += range.count
          position = range.upperBound
        case .needsInput:
          position = end
          break stepping
        case .complete(let next):
          position = next
          break stepping
        }
      }
    } catch {
      keep(bytes, from: end, to: end, isPending)
      perform(state.on(.bodyFaulted, at: loop.now))
      resumeBody(.failure(error))
      return
    }
    keep(bytes, from: position, to: end, isPending)
    deliver(piece, contentBytes: count, isWanted: isWanted)
  }

  /// Passes a piece to the handler, if it's wanted and not discarded. `contentBytes`: how many have arrived.
  private func deliver(_ piece: [UInt8], contentBytes: Int, isWanted: Bool) {
    exchange?.bytesReceived += Int64(piece.count)
    if piece.isEmpty, !framing.isComplete { return }
    // The framing bytes don't count: one byte after 256 bytes of chunk extension is as slow as one byte.
    perform(state.on(.bodyArrived(contentBytes), at: loop.now))
    if framing.isComplete { perform(state.on(.bodyCompleted, at: loop.now)) }
    if isWanted { resumeBody(.success(piece.isEmpty ? nil : piece)) }
  }

  /// Handles the handler's request for the next piece.
  func wantBody(_ id: UInt64, _ continuation: CheckedContinuation<Result<[UInt8]?, RequestBodyError>, Never>) {
    dispatchPrecondition(condition: .onQueue(loop.queue))
    guard isCurrent(id) else { return continuation.resume(returning: .failure(.truncated)) }
    returnPiece()
    if let fault = state.bodyFault { return continuation.resume(returning: .failure(fault)) }
    if framing.isComplete { return continuation.resume(returning: .success(nil)) }
    precondition(bodyWaiter == nil, "a body has one reader at a time")
    bodyWaiter = continuation
    perform(state.on(.bodyWanted(hasCome: pendingStart < pending.count), at: loop.currentTime()))
    readsInARow += 1
    // A fast client and a handler that never suspends would monopolize the loop.
    if readsInARow % 8 == 0 { loop.async { [self] in advance() } } else { advance() }
  }

  func resumeBody(_ result: Result<[UInt8]?, RequestBodyError>) {
    guard let waiter = bodyWaiter else { return }
    bodyWaiter = nil
    waiter.resume(returning: result)
  }
}
