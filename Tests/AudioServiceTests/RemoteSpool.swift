import Dispatch
import Synchronization

@testable import Storage

/// A folder for uploads that behaves like a store on another machine: its calls may hang or fail, as tests say.
final class RemoteSpool: UploadSpool {
  /// What waits for the store.
  enum Call { case checkpoint, join, adoption }

  private struct State {
    var held: Call?
    var hanging = 0
    var heldCount = 0
  }

  /// More calls don't hang, so that a test that lets them begin fails and doesn't hang either.
  static let limit = 2

  private let store: MediaStore
  private let state = Mutex(State())
  private let gate = DispatchSemaphore(value: 0)
  /// What happens before the bytes are joined.
  let joining = Mutex<(@Sendable () throws(StorageError) -> Void)?>(nil)

  init(_ store: MediaStore) { self.store = store }

  /// Lets all calls of one kind hang from now on.
  func hold(_ call: Call) { state.withLock { $0.held = call } }

  /// Lets the calls that hang go on, and those to come.
  func release() {
    let hanging = state.withLock { state in
      defer { (state.held, state.hanging) = (nil, 0) }
      return state.hanging
    }
    for _ in 0..<hanging { gate.signal() }
  }

  /// Number of calls that hang.
  var hanging: Int { state.withLock { $0.hanging } }
  /// Number of calls that came while their kind was held.
  var heldCount: Int { state.withLock { $0.heldCount } }

  /// Hangs if such calls are held.
  func pass(_ call: Call) {
    let hangs = state.withLock { state in
      guard state.held == call else { return false }
      state.heldCount += 1
      guard state.hanging < Self.limit else { return false }
      state.hanging += 1
      return true
    }
    if hangs { gate.wait() }
  }

  func prepare(_ id: UploadID) throws(StorageError) { try store.prepare(id) }
  func openPart(of id: UploadID) -> UploadPart? { nil }
  func begin(_ segments: [UploadSegment], at offset: Int64) throws(StorageError) -> (any UploadBytes)? {
    try store.begin(segments, at: offset).map { RemoteBytes($0, in: self) }
  }
  func removePart(of id: UploadID) { store.removePart(of: id) }
  func removeParts(of id: UploadID) { store.removeParts(of: id) }
}

private final class RemoteBytes: UploadBytes {
  private let bytes: any UploadBytes
  private let spool: RemoteSpool

  init(_ bytes: any UploadBytes, in spool: RemoteSpool) { (self.bytes, self.spool) = (bytes, spool) }

  var byteCount: Int64 { bytes.byteCount }
  var isBroken: Bool { bytes.isBroken }
  func append(_ piece: Span<UInt8>) throws(StorageError) { try bytes.append(piece) }
  func truncate(to count: Int64) throws(StorageError) { try bytes.truncate(to: count) }

  func sync(to count: Int64) throws(StorageError) -> [UploadObject] {
    spool.pass(.checkpoint)
    return try bytes.sync(to: count)
  }

  func join() throws(StorageError) -> UploadPart {
    spool.pass(.join)
    if let action = spool.joining.withLock({ $0 }) { try action() }
    return try bytes.join()
  }
}
