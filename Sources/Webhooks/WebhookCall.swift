// Makes one POST with libcurl. The URL comes from a stranger, so the address of every connection is checked when its
// socket is created, after all name lookups: the address that is checked is the address that is called, even if a name
// server answers differently the second time. Redirects aren't followed, no proxy and no other protocol is used, and
// only the status of the response counts. Over https, the receiver must have a certificate for the host in the URL,
// signed by a trusted authority: libcurl checks both by default. Unlike the curl command, the library reads no
// environment variables for that.

import CCurl
import Glibc
import Synchronization

/// The outcome of a call.
enum WebhookOutcome: Sendable, Equatable {
  /// The receiver answered with this status.
  case answered(Int)
  /// Every address of the host is in a network that must not be called.
  case refused
  /// There was no response; the value is libcurl's description of the cause.
  case failed(String)

  /// Whether the receiver has acknowledged the webhook.
  var isDelivered: Bool {
    if case .answered(let status) = self { return (200..<300).contains(status) }
    return false
  }

  /// Whether another attempt would end the same way. Only a change of the settings can permit a refused address.
  var isFinal: Bool { self == .refused }
}

/// One POST of a few KB.
@safe final class WebhookCall: Sendable {
  private let networks: WebhookNetworks
  /// Called by libcurl at least once a second.
  private let isCancelled: @Sendable () -> Bool
  private let wasRefused = Atomic(false)
  private let wasPermitted = Atomic(false)
  private let received = Atomic(0)

  /// Maximum number of response bytes read; the call ends if there are more.
  private static let answerLimit = 16 * 1024

  /// Whether libcurl could be loaded. Must be evaluated before any call, because initializing libcurl during one isn't
  /// safe.
  static let isReady = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

  private init(_ networks: WebhookNetworks, _ isCancelled: @escaping @Sendable () -> Bool) {
    self.networks = networks
    self.isCancelled = isCancelled
  }

  /// Sends `body` and blocks until the response, for at most `seconds`, including name lookups and connecting.
  /// `authorities` is a PEM file with the authorities that may sign certificates; by default the system's.
  static func post(
    _ body: [UInt8], to url: String, fields: [String], seconds: Double, networks: WebhookNetworks,
    authorities: String? = nil, isCancelled: @escaping @Sendable () -> Bool = { false }
  ) -> WebhookOutcome {
    guard isReady, let handle = unsafe curl_easy_init() else { return .failed("libcurl can't be used") }
    defer { unsafe curl_easy_cleanup(handle) }
    var list: UnsafeMutablePointer<curl_slist>?
    defer { unsafe curl_slist_free_all(list) }
    for field in fields { unsafe list = curl_slist_append(list, field) }
    let call = WebhookCall(networks, isCancelled)
    return withExtendedLifetime(call) {
      unsafe body.withUnsafeBytes { body in
        let context = unsafe UnsafeRawPointer(Unmanaged.passUnretained(call).toOpaque())
        unsafe set(handle, url: url, milliseconds: Int(min(max(seconds, 0.001), 3600) * 1000))
        if let authorities { unsafe setText(handle, CURLOPT_CAINFO, authorities) }
        unsafe _ = stillwave_curl_set_pointer(handle, CURLOPT_HTTPHEADER, list)
        unsafe _ = stillwave_curl_set_long(handle, CURLOPT_POSTFIELDSIZE, body.count)
        unsafe _ = stillwave_curl_set_pointer(handle, CURLOPT_POSTFIELDS, body.baseAddress)
        unsafe setCallbacks(handle, context)
        return unsafe call.outcome(of: curl_easy_perform(handle), handle)
      }
    }
  }

  @unsafe
  private static func set(_ handle: UnsafeMutableRawPointer, url: String, milliseconds: Int) {
    unsafe setText(handle, CURLOPT_URL, url)
    unsafe setText(handle, CURLOPT_PROTOCOLS_STR, "http,https")
    unsafe setText(handle, CURLOPT_PROXY, "")
    unsafe setText(handle, CURLOPT_USERAGENT, "stillwave")
    unsafe _ = stillwave_curl_set_long(handle, CURLOPT_POST, 1)
    unsafe _ = stillwave_curl_set_long(handle, CURLOPT_FOLLOWLOCATION, 0)
    unsafe _ = stillwave_curl_set_long(handle, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1)
    // Otherwise, name lookups may time out by SIGALRM, which any thread could receive.
    unsafe _ = stillwave_curl_set_long(handle, CURLOPT_NOSIGNAL, 1)
    unsafe _ = stillwave_curl_set_long(handle, CURLOPT_TIMEOUT_MS, milliseconds)
    unsafe _ = stillwave_curl_set_long(handle, CURLOPT_CONNECTTIMEOUT_MS, milliseconds)
    unsafe _ = stillwave_curl_set_long(handle, CURLOPT_FORBID_REUSE, 1)
  }

  @unsafe
  private static func setText(_ handle: UnsafeMutableRawPointer, _ option: CURLoption, _ text: String) {
    unsafe text.withCString { unsafe _ = stillwave_curl_set_pointer(handle, option, $0) }
  }

  @unsafe
  private static func setCallbacks(_ handle: UnsafeMutableRawPointer, _ context: UnsafeRawPointer) {
    unsafe _ = stillwave_curl_set_pointer(handle, CURLOPT_WRITEDATA, context)
    unsafe _ = stillwave_curl_set_write(handle) { _, size, count, context in
      unsafe WebhookCall.of(context).takes(size * count) ? size * count : 0
    }
    unsafe _ = stillwave_curl_set_pointer(handle, CURLOPT_OPENSOCKETDATA, context)
    unsafe _ = stillwave_curl_set_open_socket(handle) { context, _, address in
      guard let address = unsafe address, unsafe WebhookCall.of(context).permits(address) else {
        return CURL_SOCKET_BAD
      }
      return unsafe socket(
        address.pointee.family, address.pointee.socktype | Int32(SOCK_CLOEXEC.rawValue), address.pointee.protocol)
    }
    unsafe _ = stillwave_curl_set_long(handle, CURLOPT_NOPROGRESS, 0)
    unsafe _ = stillwave_curl_set_pointer(handle, CURLOPT_XFERINFODATA, context)
    unsafe _ = stillwave_curl_set_progress(handle) { context, _, _, _, _ in
      unsafe WebhookCall.of(context).isCancelled() ? 1 : 0
    }
  }

  @unsafe
  private static func of(_ context: UnsafeMutableRawPointer?) -> WebhookCall {
    guard let context = unsafe context else { preconditionFailure("libcurl hands back what it was given") }
    return unsafe Unmanaged<WebhookCall>.fromOpaque(context).takeUnretainedValue()
  }

  private func takes(_ count: Int) -> Bool {
    received.wrappingAdd(count, ordering: .relaxed).newValue <= Self.answerLimit
  }

  @unsafe
  private func permits(_ address: UnsafeMutablePointer<curl_sockaddr>) -> Bool {
    guard let called = unsafe Self.address(address), networks.permits(called) else {
      wasRefused.store(true, ordering: .relaxed)
      return false
    }
    wasPermitted.store(true, ordering: .relaxed)
    return true
  }

  /// Returns the address: the bytes after the port and, in IPv6, the flow label (RFC 3493 §3.3). libcurl's `addr` is
  /// only the start of a longer structure.
  @unsafe
  private static func address(_ socket: UnsafeMutablePointer<curl_sockaddr>) -> NetworkAddress? {
    guard let offset = MemoryLayout<curl_sockaddr>.offset(of: \.addr) else { return nil }
    let length = unsafe Int(socket.pointee.addrlen)
    let bytes = unsafe UnsafeRawBufferPointer(start: UnsafeRawPointer(socket) + offset, count: length)
    switch unsafe socket.pointee.family {
    case AF_INET where length >= 8: return unsafe NetworkAddress(bytes: Array(bytes[4..<8]))
    case AF_INET6 where length >= 24: return unsafe NetworkAddress(bytes: Array(bytes[8..<24]))
    default: return nil
    }
  }

  @unsafe
  private func outcome(of result: CURLcode, _ handle: UnsafeMutableRawPointer) -> WebhookOutcome {
    var status = 0
    unsafe _ = stillwave_curl_get_long(handle, CURLINFO_RESPONSE_CODE, &status)
    // The status was received, although the content after it was too long.
    let wasCutShort = result == CURLE_WRITE_ERROR && received.load(ordering: .relaxed) > Self.answerLimit
    if result == CURLE_OK || wasCutShort { return .answered(status) }
    // If the host has several addresses, a permitted one that failed may respond next time.
    if wasRefused.load(ordering: .relaxed), !wasPermitted.load(ordering: .relaxed) { return .refused }
    return .failed(unsafe String(cString: curl_easy_strerror(result)))
  }
}
