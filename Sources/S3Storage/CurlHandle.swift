import CCurl
import Synchronization

/// A handle of libcurl, which keeps its connection to the store open. Used by one call at a time.
///
/// `@unchecked Sendable`: `S3Connections` hands each handle to one caller at a time, under its lock.
@safe final class CurlHandle: @unchecked Sendable {
  /// The handle.
  let pointer: UnsafeMutableRawPointer

  /// Whether libcurl could be loaded and initialized.
  static let isReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

  /// Returns nil if libcurl can't be loaded or has no memory.
  init?() {
    guard Self.isReady, let pointer = unsafe curl_easy_init() else { return nil }
    unsafe self.pointer = unsafe pointer
  }

  deinit { unsafe curl_easy_cleanup(pointer) }
}

/// The connections that no call uses at the moment.
final class S3Connections: Sendable {
  private let idle = Mutex<[CurlHandle]>([])
  private let areEnding = Atomic<Bool>(false)
  private static let idleLimit = 16

  /// Whether no more calls are wanted, and those under way break off.
  var isEnding: Bool { areEnding.load(ordering: .relaxed) }

  /// From now on, no calls are wanted.
  func end() { areEnding.store(true, ordering: .relaxed) }

  /// Returns a handle for one call, if possible one with an open connection.
  func take() throws(S3Error) -> CurlHandle {
    guard !isEnding else { throw .unreachable(reason: "this node is stopping") }
    if let handle = idle.withLock({ $0.popLast() }) { return handle }
    guard let handle = CurlHandle() else { throw .libraryMissing }
    return handle
  }

  /// Takes a handle back.
  func give(_ handle: CurlHandle) {
    idle.withLock { if $0.count < Self.idleLimit { $0.append(handle) } }
  }
}
