import CLinux
import Dispatch
import Glibc
import Synchronization
import Terms

// One loop per core: a serial queue with one dispatch source that watches one epoll descriptor, which in turn holds all
// of the loop's connections and a wake-up. With a source per connection, a request costs 22–25 µs of CPU;
// here it costs 10–17.
//
// Connections are registered once, edge-triggered, for input and output, so a request needs no system calls besides its
// own `recv` and `sendmsg`.
//
// After work, the loop lingers in epoll_wait for up to a millisecond before it returns to Dispatch: a round trip there
// costs two more system calls and often a thread switch. Blocks sent to the queue meanwhile would wait just as long, so
// `async` writes to the wake-up descriptor if the loop is lingering.

/// What epoll reports about a descriptor.
struct Readiness: OptionSet, Sendable {
  let rawValue: UInt32
  static let input = Readiness(rawValue: EPOLLIN.rawValue)
  static let output = Readiness(rawValue: EPOLLOUT.rawValue)
  static let inputEnded = Readiness(rawValue: EPOLLRDHUP.rawValue)
  /// Both halves are shut. Data sent earlier by the client may still be unread.
  static let hungUp = Readiness(rawValue: EPOLLHUP.rawValue)
  static let broken = Readiness(rawValue: EPOLLERR.rawValue)
}

/// Handles the events of a descriptor, or of a deadline. Called on the loop's queue.
protocol EventHandler: AnyObject {
  func handle(_ readiness: Readiness)
  /// Called once for each scheduled deadline, even for one that has since become pointless.
  func deadlineReached(_ deadline: Instant)
}

/// Sends answers together with others. Called on the loop's queue.
protocol AnswerSender: AnyObject {
  /// Writes what is queued and leaves the rest to `finishSending`. Called once each time `sendsLater` returns true.
  func writeQueued()
  /// Called after `writeQueued`, once all answers that are sent together have been written.
  func finishSending()
}

/// A serial queue with descriptors and deadlines, which also runs async code. Private state is confined to `queue`;
/// what other threads touch is atomic.
@safe
final class EventLoop: TaskExecutor, @unchecked Sendable {
  /// Identifies a registration; never reused after `remove`.
  typealias Token = UInt64

  let queue: DispatchQueue
  /// The buffer into which all of the loop's sockets are read, one at a time.
  var readBuffer: [UInt8] = []
  /// The buffers for the content of fast clients.
  var pieceBuffers = PieceBuffers(byteCount: 0)
  /// The time at which the current batch of events began.
  private(set) var now = Instant(.system)

  private let poll: Int32
  private let wakeUp: Int32
  /// That of the server which uses the loop.
  private var clock = Clock.system
  /// Nil before `start`: a source that was never activated must not be released.
  private var source: (any DispatchSourceRead)?
  private let events: UnsafeMutableBufferPointer<epoll_event>
  private var slots: [(handler: (any EventHandler)?, generation: UInt32)] = []
  private var freeSlots: [Int] = []
  private var deadlines = DeadlineHeap()
  private var timer: Clock.Alarm?
  private var timerSetTo: Instant?
  /// Those whose answers are sent together.
  private var senders: [any AnswerSender] = []
  /// Empty, except while `sendAnswers` calls them.
  private var sending: [any AnswerSender] = []
  private var isDelivering = false
  private var dateSecond: Int64 = 0
  private var dateText: [UInt8] = []
  private var random: UInt64 = .random(in: .min ... .max)
  private let queuedBlocks = Atomic<Int>(0)
  private let isLingering = Atomic<Bool>(false)

  private static let key = DispatchSpecificKey<ObjectIdentifier>()
  private static let wakeUpToken: Token = .max
  private static let lingerMilliseconds: Int32 = 1
  /// Few, so that the first answer doesn't wait for long.
  private static let answersSentTogether = 8
  private static let roundsInARow = 8

  /// Loops that no server uses now. A loop is never torn down: libdispatch on Linux touches a source's memory after the
  /// source was canceled with an event on its way, and then loses other sources and whole queues of work.
  private static let idle = Mutex<[EventLoop]>([])

  /// Returns a loop that no server uses: an idle one or a new one. Nothing runs on it until `start`.
  static func take(index: Int, readBytes: Int, clock: Clock) throws(HTTPServerError) -> EventLoop {
    let known = idle.withLock { $0.popLast() }
    let loop = if let known { known } else { try EventLoop(index: index) }
    // Nothing runs on the loop now, so nothing else touches these.
    loop.clock = clock
    loop.refreshNow()
    loop.readBuffer = [UInt8](repeating: 0, count: readBytes)
    loop.pieceBuffers = PieceBuffers(byteCount: PieceBuffers.readsPerPiece * readBytes)
    return loop
  }

  private init(index: Int) throws(HTTPServerError) {
    queue = DispatchQueue(label: "http.loop.\(index)", qos: .userInitiated)
    poll = epoll_create1(Int32(EPOLL_CLOEXEC))
    wakeUp = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
    unsafe events = .allocate(capacity: 256)
    unsafe events.initialize(repeating: epoll_event())
    guard poll >= 0, wakeUp >= 0 else { throw .outOfDescriptors(errno: errno) }
    control(EPOLL_CTL_ADD, wakeUp, EPOLLIN.rawValue, Self.wakeUpToken)
  }

  deinit {
    unsafe events.deallocate()
    for descriptor in [poll, wakeUp] where descriptor >= 0 { close(descriptor) }
  }

  /// Starts watching; does nothing if already started.
  func start() {
    guard source == nil else { return }
    queue.setSpecific(key: Self.key, value: ObjectIdentifier(self))
    let source = DispatchSource.makeReadSource(fileDescriptor: poll, queue: queue)
    source.setEventHandler { [self] in run() }
    self.source = source
    source.activate()
  }

  /// Makes the loop available to other servers. Nothing may be registered on it any longer.
  func end() { Self.idle.withLock { $0.append(self) } }

  // MARK: Running code

  /// Whether the caller is on this loop's queue.
  var isCurrent: Bool { DispatchQueue.getSpecific(key: Self.key) == ObjectIdentifier(self) }

  /// Runs a block on the loop, soon.
  func async(_ block: @escaping @Sendable () -> Void) {
    queuedBlocks.wrappingAdd(1, ordering: .sequentiallyConsistent)
    queue.async { [self] in
      queuedBlocks.wrappingSubtract(1, ordering: .sequentiallyConsistent)
      block()
    }
    if isLingering.load(ordering: .sequentiallyConsistent) { _ = eventfd_write(wakeUp, 1) }
  }

  /// Runs a block on the loop: immediately if the caller is already there.
  func execute(_ block: @escaping @Sendable () -> Void) {
    if isCurrent { block() } else { async(block) }
  }

  func enqueue(_ job: consuming ExecutorJob) {
    let job = UnownedJob(job)
    async { [self] in unsafe job.runSynchronously(on: asUnownedTaskExecutor()) }
  }

  /// Lets everything else that is queued on the loop run first.
  func yield() async {
    await withCheckedContinuation { continuation in async { continuation.resume() } }
  }

  // MARK: Descriptors

  /// Watches a connection's socket for all events, edge-triggered.
  func add(_ descriptor: Int32, _ handler: any EventHandler) -> Token? {
    add(descriptor, handler, Self.allEvents)
  }

  private static let allEvents = EPOLLIN.rawValue | EPOLLOUT.rawValue | EPOLLRDHUP.rawValue | EPOLLET.rawValue

  /// Starts or stops reporting input on a connection's socket. If there is some at the start, it's reported.
  func watchInput(_ isWatched: Bool, of token: Token, _ descriptor: Int32) {
    control(EPOLL_CTL_MOD, descriptor, isWatched ? Self.allEvents : Self.allEvents & ~EPOLLIN.rawValue, token)
  }

  /// Watches a socket that other loops watch too; as few loops as possible are woken for each event.
  func addShared(_ descriptor: Int32, _ handler: any EventHandler) -> Token? {
    add(descriptor, handler, EPOLLIN.rawValue | EPOLLEXCLUSIVE.rawValue)
  }

  private func add(_ descriptor: Int32, _ handler: any EventHandler, _ mask: UInt32) -> Token? {
    dispatchPrecondition(condition: .onQueue(queue))
    let token = claim(handler)
    guard control(EPOLL_CTL_ADD, descriptor, mask, token) else {
      release(token)
      return nil
    }
    return token
  }

  private func claim(_ handler: any EventHandler) -> Token {
    let slot = freeSlots.popLast() ?? slots.count
    if slot == slots.count { slots.append((nil, 0)) }
    slots[slot].handler = handler
    return Token(slots[slot].generation) << 32 | Token(slot)
  }

  /// Stops watching a descriptor that is still open.
  func remove(_ token: Token, _ descriptor: Int32) {
    dispatchPrecondition(condition: .onQueue(queue))
    control(EPOLL_CTL_DEL, descriptor, 0, 0)
    release(token)
  }

  /// Stops watching a descriptor that is already closed, or a deadline without a descriptor.
  func forget(_ token: Token) {
    dispatchPrecondition(condition: .onQueue(queue))
    if handler(token) != nil { release(token) }
  }

  private func release(_ token: Token) {
    let slot = Int(token & 0xFFFF_FFFF)
    slots[slot].handler = nil
    slots[slot].generation = slots[slot].generation &+ 1 & 0x7FFF_FFFF
    freeSlots.append(slot)
  }

  private func handler(_ token: Token) -> (any EventHandler)? {
    let slot = Int(token & 0xFFFF_FFFF)
    guard slot < slots.count, slots[slot].generation == UInt32(token >> 32) else { return nil }
    return slots[slot].handler
  }

  @discardableResult
  private func control(_ operation: Int32, _ descriptor: Int32, _ mask: UInt32, _ token: Token) -> Bool {
    var event = unsafe epoll_event()
    unsafe event.events = mask
    unsafe event.data.u64 = token
    return unsafe epoll_ctl(poll, operation, descriptor, &event) == 0
  }

  // MARK: Time

  /// Reads the clock, for work outside a batch of events.
  func refreshNow() { now = Instant(clock) }

  /// Reads the clock and returns the time.
  func currentTime() -> Instant {
    refreshNow()
    return now
  }

  /// Calls the handler's `deadlineReached` at that time or slightly later.
  func schedule(_ deadline: Instant, for token: Token) {
    deadlines.insert(.init(deadline: deadline, owner: token))
    setTimer()
  }

  /// Calls the handler's `deadlineReached` once; the handler watches no descriptor.
  func schedule(after seconds: Double, _ handler: any EventHandler) -> Token {
    let token = claim(handler)
    schedule(now.adding(seconds: seconds), for: token)
    return token
  }

  private func setTimer() {
    guard let first = deadlines.first, timerSetTo.map({ first < $0 }) ?? true else { return }
    timerSetTo = first
    timer?.cancel()
    timer = clock.after(first.seconds(since: currentTime()), on: queue) { [self] in fireTimer() }
  }

  private func fireTimer() {
    refreshNow()
    timerSetTo = nil
    while let due = deadlines.popDue(at: now) { handler(due.owner)?.deadlineReached(due.deadline) }
    setTimer()
  }

  /// The `Date` field for the current second, with its CRLF; formatted once a second.
  var dateLine: [UInt8] {
    let second = clock.wallMilliseconds / 1000
    if second != dateSecond {
      dateSecond = second
      dateText = Array("Date: ".utf8) + HTTPDate(seconds: second).bytes + Array("\r\n".utf8)
    }
    return dateText
  }

  /// Returns a number for a request identifier (SplitMix64: distinct, not secret).
  func nextRandom() -> UInt64 {
    random &+= 0x9E37_79B9_7F4A_7C15
    var mixed = random
    mixed = (mixed ^ mixed >> 30) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
    return mixed ^ mixed >> 31
  }

  // MARK: The loop

  private func run() {
    var timeout: Int32 = 0
    while true {
      let count = unsafe epoll_wait(poll, events.baseAddress, Int32(events.count), timeout)
      isLingering.store(false, ordering: .sequentiallyConsistent)
      guard count > 0 else { return }
      now = Instant(clock)
      isDelivering = true
      for index in 0..<Int(count) {
        unsafe deliver(events[index])
        if senders.count >= Self.answersSentTogether { sendAnswers() }
      }
      sendAnswers()
      isDelivering = false
      isLingering.store(true, ordering: .sequentiallyConsistent)
      timeout = Self.lingerMilliseconds
      if queuedBlocks.load(ordering: .sequentiallyConsistent) > 0 {
        isLingering.store(false, ordering: .sequentiallyConsistent)
        return
      }
    }
  }

  /// Whether an answer is sent later, together with those to other events that were reported at once. If not, the
  /// sender sends it itself.
  ///
  /// Answers that are sent one after the other wake their clients up less often, and the system's code and the
  /// service's own take turns in the processor's caches less often. So all of them are written before anything else
  /// happens to their connections.
  func sendsLater(_ sender: any AnswerSender) -> Bool {
    guard isDelivering else { return false }
    senders.append(sender)
    return true
  }

  private func sendAnswers() {
    var rounds = 0
    while !senders.isEmpty {
      rounds += 1
      // A client that sends requests without waiting for answers has the next one ready as soon as one is sent. The
      // others must have their turn.
      if rounds > Self.roundsInARow { return async { [self] in sendAnswers() } }
      swap(&senders, &sending)
      for sender in sending { sender.writeQueued() }
      for sender in sending { sender.finishSending() }
      sending.removeAll(keepingCapacity: true)
    }
  }

  private func deliver(_ event: epoll_event) {
    switch unsafe event.data.u64 {
    case Self.wakeUpToken:
      var count: eventfd_t = 0
      _ = unsafe eventfd_read(wakeUp, &count)
    case let token: handler(token)?.handle(Readiness(rawValue: unsafe event.events))
    }
  }
}
