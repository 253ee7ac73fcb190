/// One client's connection: performs what `ConnectionState` decides. All state is confined to the loop's queue.
///
/// This file covers the connection's life; `HTTPConnection+Input` reads and `HTTPConnection+Output` writes.
final class HTTPConnection: EventHandler, AnswerSender, @unchecked Sendable {
  let core: ServerCore
  private let tally: AnswerTally
  let loop: EventLoop
  let socket: Socket
  let peer: String
  /// The client that the connection counts toward, or nil for none.
  let client: String?
  var state: ConnectionState

  // Input.
  var parser: RequestParser
  var framing: BodyFraming
  /// Bytes received but not consumed yet: at most one read.
  var pending: [UInt8] = []
  var pendingStart = 0
  /// Whether the socket may have input. It is edge-triggered: epoll reports each arrival once.
  var isReadable = true
  /// If not, `isReadable` is true until a read finds nothing.
  var watchesInput = true
  var inputMayHaveEnded = false
  var isAdvancing = false
  var bodyWaiter: CheckedContinuation<Result<[UInt8]?, RequestBodyError>, Never>?
  var readsInARow = 0
  /// Whether the last read from the socket could have returned more: the client sends faster than its bytes are used.
  var lastReadWasFull = false
  /// The last piece, if it's in one of the loop's buffers.
  var lentPiece: [UInt8]?

  // Output.
  var output = OutputQueue()
  var isWritable = true
  var answerIsQueued = false
  /// Whether output was written but `settle` hasn't run.
  var isUnsettled = false
  var roomWaiter: CheckedContinuation<Void, Never>?

  // The current exchange.
  var exchange: Exchange?
  private var handlerTask: Task<Void, Never>?
  private var exchangeCount: UInt64 = 0

  weak var worker: LoopWorker?
  private var token: EventLoop.Token?
  private var reminder = Reminder()

  init(_ socket: Socket, peer: String, client: String?, loop: EventLoop, core: ServerCore, tally: AnswerTally) {
    (self.socket, self.peer, self.client) = (socket, peer, client)
    (self.loop, self.core, self.tally) = (loop, core, tally)
    state = ConnectionState(limits: core.limits, at: loop.now)
    parser = RequestParser(limits: core.limits)
    framing = BodyFraming(.none, limits: core.limits)
  }

  /// Starts serving.
  func open() {
    guard watch() else { return }
    advance()
  }

  /// Returns false, with the connection closed, if the kernel has no room to watch the socket.
  private func watch() -> Bool {
    token = loop.add(socket.descriptor, self)
    guard token != nil else {
      socket.close()
      _ = state.on(.reset, at: loop.now)
      core.closed(self)
      return false
    }
    return true
  }

  /// Opens the connection only to answer that there is no room.
  func open(refusing refusal: ConnectionTally.Refusal) {
    guard watch() else { return }
    perform(state.on(.rejected, at: loop.now))
    answer(refusal.problem)
    advance()
  }

  // MARK: Events

  func handle(_ readiness: Readiness) {
    if !readiness.isDisjoint(with: [.inputEnded, .hungUp]) { inputMayHaveEnded = true }
    if !readiness.isDisjoint(with: .broken) {
      perform(state.on(.reset, at: loop.now))
      return
    }
    // If our half is shut too, a hang-up is the only event for the client's half. Even then input is read to its end:
    // closing a socket that has unread input sends a reset, which destroys the part of the answer that the client
    // hasn't read.
    if !readiness.isDisjoint(with: [.input, .inputEnded, .hungUp]) { isReadable = true }
    if readiness.contains(.output) {
      isWritable = true
      flush()
    }
    advance()
  }

  func deadlineReached(_ deadline: Instant) {
    guard reminder.hasCome(deadline) else { return }
    perform(state.on(.deadline, at: loop.now))
    advance()
  }

  /// Closes an idle connection; others close after their current exchange. Called when the server stops.
  func stop() {
    perform(state.on(.stopping, at: loop.now))
    schedule()
  }

  /// Fails a handler's pending body read and breaks off everything else. Called when the time for stopping is up.
  func giveUp() {
    perform(state.on(.lastCall, at: loop.now))
  }

  /// Closes without waiting for anything.
  func breakOff() {
    perform(state.on(.reset, at: loop.now))
  }

  /// Starts or stops being called for each arrival of input.
  func watchInput(_ isWatched: Bool) {
    guard let token, watchesInput != isWatched else { return }
    watchesInput = isWatched
    loop.watchInput(isWatched, of: token, socket.descriptor)
  }

  // MARK: Exchanges

  /// One request and its answer.
  struct Exchange {
    let id: UInt64
    /// Nil if the head was refused.
    let request: HTTPRequest?
    /// The request's fields, or as many as were received of a refused head.
    let fields: HTTPFields
    let requestID: String
    let began: Instant
    /// When its last byte was written; nil before that.
    var ended: Instant?
    var status: HTTPStatus?
    var bytesReceived: Int64 = 0
    var bytesSent: Int64 = 0
  }

  /// Starts answering a request that is refused although its head is complete.
  func beginRefusal(_ head: RequestHead) {
    exchangeCount += 1
    let id = requestID(RequestIdentifier.callers(head.fields))
    begin(HTTPRequest(head: head, body: .none, peer: peer, id: id), head.fields, id: id)
  }

  /// Starts answering a request that is refused before its head is complete.
  func beginRefusal(fields: HTTPFields) {
    exchangeCount += 1
    begin(nil, fields, id: requestID(RequestIdentifier.callers(fields)))
  }

  private func requestID(_ callers: String?) -> String { callers ?? RequestIdentifier.make(loop.nextRandom()) }

  private func begin(_ request: HTTPRequest?, _ fields: HTTPFields, id: String) {
    exchange = Exchange(id: exchangeCount, request: request, fields: fields, requestID: id, began: loop.now)
    tally.countRequest()
  }

  func startHandler(_ head: RequestHead) {
    exchangeCount += 1
    let id = exchangeCount
    var body = RequestBody.none
    if head.body != .none {
      var length: Int64?
      if case .length(let declared) = head.body { length = declared }
      body = RequestBody(declaredLength: length, source: ConnectionBody(connection: self, exchange: id))
    }
    let identifier = requestID(RequestIdentifier.callers(head.fields))
    let request = HTTPRequest(head: head, body: body, peer: peer, id: identifier)
    begin(request, head.fields, id: identifier)
    switch core.responder.respond(to: request) {
    case .now(let response):
      guard let rest = begin(response, exchange: id) else { return }
      run(id) { await $0.send(rest, for: request) }
    case .later(let work):
      run(id) { connection in
        let response = await connection.response(of: work, to: request)
        if let rest = connection.begin(response, exchange: id) { await connection.send(rest, for: request) }
      }
    }
  }

  private func response(
    of work: @Sendable () async throws -> HTTPResponse, to request: HTTPRequest
  ) async -> HTTPResponse {
    do {
      return try await work()
    } catch {
      return core.configuration.refusal(.noResponse, request.fields)
    }
  }

  /// Runs work that suspends on the loop; it is canceled when the client disconnects.
  private func run(_ id: UInt64, _ work: @escaping @Sendable (HTTPConnection) async -> Void) {
    worker?.handlerBegan()
    let task = Task.immediate(executorPreference: loop) { [self, worker] in
      await work(self)
      worker?.handlerEnded()
    }
    // Work that never suspended is done by now, and so may be its connection.
    if exchange?.id == id { handlerTask = task }
  }

  /// Whether this exchange is still the current one.
  func isCurrent(_ id: UInt64) -> Bool { exchange?.id == id && state.phase != .closed }

  /// Counts and logs the exchange, and forgets it.
  func endExchange() {
    handlerTask = nil
    returnPiece()
    loop.pieceBuffers.freeUnused()
    guard let exchange else { return }
    self.exchange = nil
    let ended = exchange.ended ?? loop.currentTime()
    tally.count(
      exchange.status, bytesSent: exchange.bytesSent, nanoseconds: ended.nanoseconds &- exchange.began.nanoseconds)
    guard let onCompleted = core.configuration.onCompleted else { return }
    onCompleted(
      RequestRecord(
        request: exchange.request, status: exchange.status, bytesReceived: exchange.bytesReceived,
        bytesSent: exchange.bytesSent, seconds: ended.seconds(since: exchange.began), peer: peer,
        requestID: exchange.requestID))
  }

  // MARK: Actions

  func perform(_ actions: ConnectionState.Actions) {
    if actions.isEmpty { return }
    if actions.contains(.sendContinue) {
      output.append(ResponseWriter.continueLine)
      flush()
    }
    if actions.contains(.cancelHandler) { handlerTask?.cancel() }
    if actions.contains(.failBodyTruncated) { resumeBody(.failure(state.bodyFault ?? .truncated)) }
    if actions.contains(.failBodyTimedOut) { resumeBody(.failure(.timedOut)) }
    if actions.contains(.rejectSlowHead) { answer(HTTPParseError.timedOut.problem) }
    if actions.contains(.shutdownOutput) { socket.shutdownOutput() }
    if actions.contains(.abort) { socket.abort() }
    if !actions.isDisjoint(with: [.close, .abort]) { tearDown() }
  }

  private func tearDown() {
    guard let token else { return }
    self.token = nil
    if socket.descriptor >= 0 {
      loop.remove(token, socket.descriptor)
      socket.close()
    } else {
      loop.forget(token)
    }
    handlerTask?.cancel()
    output.removeAll()
    pending = []
    let room = roomWaiter
    roomWaiter = nil
    room?.resume()
    resumeBody(.failure(.truncated))
    endExchange()
    core.closed(self)
  }

  /// Schedules the next deadline on the loop.
  func schedule() {
    guard let token, let entry = reminder.newEntry(for: state.deadline) else { return }
    loop.schedule(entry, for: token)
  }
}

/// The body of one exchange. Reads fail once the exchange or its connection has ended.
private final class ConnectionBody: BodySource {
  private let connection: HTTPConnection
  private let exchange: UInt64

  init(connection: HTTPConnection, exchange: UInt64) {
    (self.connection, self.exchange) = (connection, exchange)
  }

  func readBody() async throws(RequestBodyError) -> [UInt8]? {
    let result: Result<[UInt8]?, RequestBodyError> = await withCheckedContinuation { continuation in
      connection.loop.execute { [self] in connection.wantBody(exchange, continuation) }
    }
    return try result.get()
  }

  func start(_ reader: @escaping @Sendable () async -> Void) {
    Task(executorPreference: connection.loop, operation: reader)
  }
}
