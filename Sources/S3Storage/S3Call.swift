// Sends one signed request with libcurl and receives the answer. Redirects aren't followed, because a signature is only
// valid for its host; no proxy and no other protocol is used. Everything has a deadline: with two of three disks of a
// Ceph store dead, requests were accepted and never answered.

import CCurl
import Glibc
import Storage

/// Where the content of a successful answer goes.
enum S3Destination {
  /// Into memory, up to the request's limit.
  case memory
  /// Into a file, or only into a digest.
  case download(S3Download)

  /// Number of bytes that were received into it.
  var downloadedBytes: Int64 { if case .download(let download) = self { download.count } else { 0 } }
}

/// An object that is received, maybe with several requests: its digest and, if it goes into a file, its bytes.
final class S3Download {
  private let file: TransferFile?
  private let limit: Int64
  private let hasRoom: (Int64) -> Bool
  /// The object's length according to the store, once an answer has begun.
  private var length: Int64?
  /// Number of bytes received.
  private(set) var count: Int64 = 0
  /// The version of the object.
  var entityTag: String?
  private var digest = SHA256()

  /// Receives an object of at most `limit` bytes into a new file. `hasRoom` says if there is room for so much.
  init(creating path: String, limit: Int64, hasRoom: @escaping (Int64) -> Bool) throws(S3Error) {
    file = try TransferFile(creating: path)
    (self.limit, self.hasRoom) = (limit, hasRoom)
  }

  /// Receives an object of at most `limit` bytes only for its digest.
  init(limit: Int64) { (file, self.limit, hasRoom) = (nil, limit, { _ in true }) }

  /// Whether all bytes have arrived that the store has announced.
  var isWhole: Bool { count == length }

  /// Takes in how long the object is according to the store. Throws if that is too long.
  fileprivate func expect(_ length: Int64) throws(S3Error) {
    guard length <= limit else { throw .tooLong(bytes: length, limit: limit) }
    if let file, length > self.length ?? -1, !hasRoom(length) { throw file.lacksRoom }
    self.length = length
  }

  /// Forgets what has been received.
  func startOver() throws(S3Error) {
    try file?.clear()
    (count, entityTag) = (0, nil)
    digest = SHA256()
  }

  var sha256: String { digest.hexDigest() }

  @unsafe
  fileprivate func append(_ bytes: UnsafeRawBufferPointer) throws(S3Error) {
    guard Int64(bytes.count) <= (length ?? 0) - count else { throw .malformedAnswer(what: "length") }
    try unsafe file?.write(bytes, at: count)
    unsafe digest.update(bytes.bindMemory(to: UInt8.self).span)
    count += Int64(bytes.count)
  }
}

/// How a call ended.
enum S3Outcome {
  case answered(S3Response)
  /// `wasSent` is false if the store can't have received the request.
  case failed(S3Error, wasSent: Bool)
}

/// One request in progress. Confined to the thread that performs it, on which libcurl calls back.
@safe final class S3Call {
  private let content: S3Content?
  private let answerLimit: Int
  private let destination: S3Destination
  private let connections: S3Connections
  private let hasRange: Bool
  private var sentBytes: Int64 = 0
  private var receivedBytes: Int64 = 0
  private var status = 0
  private var fields: [String: String] = [:]
  private var headBytes = 0
  private var body: [UInt8] = []
  private var failure: S3Error?

  private static let headLimit = 64 << 10

  private init(_ request: S3Request, _ destination: S3Destination, _ connections: S3Connections) {
    (content, answerLimit) = (request.content, request.answerLimit)
    (self.destination, self.connections) = (destination, connections)
    hasRange = request.fields.contains { $0.name == "range" }
  }

  /// Sends a request and blocks until the answer, for at most `seconds`, or until `connections` end. `fields` are
  /// the signed ones. Returns also the number of bytes that were sent and received as content.
  static func send(
    _ request: S3Request, to url: String, fields: [(name: String, value: String)], _ destination: S3Destination,
    over handle: CurlHandle, of connections: S3Connections, seconds: Double, settings: S3Settings
  ) -> (S3Outcome, movedBytes: Int64) {
    let call = S3Call(request, destination, connections)
    let handle = unsafe handle.pointer
    unsafe curl_easy_reset(handle)
    var list: UnsafeMutablePointer<curl_slist>?
    defer { unsafe curl_slist_free_all(list) }
    // libcurl writes `Host` itself.
    for field in fields where field.name != "host" {
      unsafe list = curl_slist_append(list, "\(field.name): \(field.value)")
    }
    return withExtendedLifetime(call) {
      unsafe set(handle, url: url, seconds: seconds, settings)
      if request.transfersMuch {
        // A long transfer may take minutes, but not stand still.
        unsafe _ = stillwave_curl_set_long(handle, CURLOPT_LOW_SPEED_LIMIT, 1024)
        unsafe _ = stillwave_curl_set_long(handle, CURLOPT_LOW_SPEED_TIME, Int(max(settings.requestSeconds, 1)))
      }
      if request.needsNewConnection { unsafe _ = stillwave_curl_set_long(handle, CURLOPT_FRESH_CONNECT, 1) }
      unsafe _ = stillwave_curl_set_pointer(handle, CURLOPT_HTTPHEADER, list)
      unsafe set(handle, request)
      unsafe call.setCallbacks(handle)
      let outcome = unsafe call.outcome(of: curl_easy_perform(handle), handle)
      return (outcome, call.sentBytes + call.receivedBytes)
    }
  }

  @unsafe
  private static func set(
    _ handle: UnsafeMutableRawPointer, url: String, seconds: Double, _ settings: S3Settings
  ) {
    unsafe setText(handle, CURLOPT_URL, url)
    unsafe setText(handle, CURLOPT_PROTOCOLS_STR, "http,https")
    unsafe setText(handle, CURLOPT_PROXY, "")
    unsafe setText(handle, CURLOPT_USERAGENT, "stillwave")
    if let authorities = settings.authorities { unsafe setText(handle, CURLOPT_CAINFO, authorities) }
    unsafe _ = stillwave_curl_set_long(handle, CURLOPT_FOLLOWLOCATION, 0)
    unsafe _ = stillwave_curl_set_long(handle, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1)
    // What is signed is what is sent: libcurl would remove "." and "..".
    unsafe _ = stillwave_curl_set_long(handle, CURLOPT_PATH_AS_IS, 1)
    // libcurl's own are 16 and 64 KiB.
    unsafe _ = stillwave_curl_set_long(handle, CURLOPT_BUFFERSIZE, 256 << 10)
    unsafe _ = stillwave_curl_set_long(handle, CURLOPT_UPLOAD_BUFFERSIZE, 256 << 10)
    unsafe _ = stillwave_curl_set_long(handle, CURLOPT_MAXAGE_CONN, settings.idleSeconds)
    // Otherwise, name lookups may time out by SIGALRM, which any thread could receive.
    unsafe _ = stillwave_curl_set_long(handle, CURLOPT_NOSIGNAL, 1)
    unsafe _ = stillwave_curl_set_long(handle, CURLOPT_TIMEOUT_MS, milliseconds(seconds))
    unsafe _ = stillwave_curl_set_long(
      handle, CURLOPT_CONNECTTIMEOUT_MS, milliseconds(min(seconds, settings.connectSeconds)))
  }

  private static func milliseconds(_ seconds: Double) -> Int { Int(min(max(seconds, 0.001), 86_400) * 1000) }

  @unsafe
  private static func set(_ handle: UnsafeMutableRawPointer, _ request: S3Request) {
    if let content = request.content {
      unsafe _ = stillwave_curl_set_long(handle, CURLOPT_UPLOAD, 1)
      unsafe _ = stillwave_curl_set_long(handle, CURLOPT_INFILESIZE_LARGE, Int(content.length))
    } else if request.method == .head {
      unsafe _ = stillwave_curl_set_long(handle, CURLOPT_NOBODY, 1)
    }
    unsafe setText(handle, CURLOPT_CUSTOMREQUEST, request.method.rawValue)
  }

  @unsafe
  private static func setText(_ handle: UnsafeMutableRawPointer, _ option: CURLoption, _ text: String) {
    unsafe text.withCString { unsafe _ = stillwave_curl_set_pointer(handle, option, $0) }
  }

  @unsafe
  private func setCallbacks(_ handle: UnsafeMutableRawPointer) {
    let context = unsafe UnsafeRawPointer(Unmanaged.passUnretained(self).toOpaque())
    unsafe _ = stillwave_curl_set_pointer(handle, CURLOPT_WRITEDATA, context)
    unsafe _ = stillwave_curl_set_write(handle) { bytes, size, count, context in
      unsafe S3Call.of(context).receive(UnsafeRawBufferPointer(start: bytes, count: size * count))
    }
    unsafe _ = stillwave_curl_set_pointer(handle, CURLOPT_HEADERDATA, context)
    unsafe _ = stillwave_curl_set_header(handle) { bytes, size, count, context in
      unsafe S3Call.of(context).receive(line: UnsafeRawBufferPointer(start: bytes, count: size * count))
    }
    // libcurl asks about once a second while nothing happens.
    unsafe _ = stillwave_curl_set_long(handle, CURLOPT_NOPROGRESS, 0)
    unsafe _ = stillwave_curl_set_pointer(handle, CURLOPT_XFERINFODATA, context)
    unsafe _ = stillwave_curl_set_progress(handle) { context, _, _, _, _ in
      unsafe S3Call.of(context).connections.isEnding ? 1 : 0
    }
    unsafe _ = stillwave_curl_set_pointer(handle, CURLOPT_READDATA, context)
    unsafe _ = stillwave_curl_set_read(handle) { buffer, size, count, context in
      unsafe S3Call.of(context).send(into: UnsafeMutableRawBufferPointer(start: buffer, count: size * count))
    }
    // If the store closes a reused connection without answering, libcurl rewinds the content and sends it again. The
    // store may still carry out the first request, so the caller decides.
    unsafe _ = stillwave_curl_set_seek(handle) { _, _, _ in Int32(CURL_SEEKFUNC_FAIL) }
  }

  @unsafe
  private static func of(_ context: UnsafeMutableRawPointer?) -> S3Call {
    guard let context = unsafe context else { preconditionFailure("libcurl hands back what it was given") }
    return unsafe Unmanaged<S3Call>.fromOpaque(context).takeUnretainedValue()
  }

  // MARK: libcurl's callbacks

  @unsafe
  private func send(into buffer: UnsafeMutableRawBufferPointer) -> Int {
    guard let content else { return 0 }
    let wanted = Int(min(Int64(buffer.count), content.length - sentBytes))
    guard wanted > 0 else { return 0 }
    switch content {
    case .bytes(let bytes, _):
      unsafe buffer.copyBytes(from: bytes[Int(sentBytes)..<Int(sentBytes) + wanted])
      sentBytes += Int64(wanted)
      return wanted
    case .file(let file, let range, _):
      do throws(S3Error) {
        let part = unsafe UnsafeMutableRawBufferPointer(rebasing: buffer[..<wanted])
        let count = try unsafe file.read(into: part, at: range.lowerBound + sentBytes)
        // libcurl would wait for an answer that the store gives only after all bytes.
        guard count > 0 else { throw file.endsEarly }
        sentBytes += Int64(count)
        return count
      } catch {
        failure = error
        return Int(CURL_READFUNC_ABORT)
      }
    }
  }

  /// Receives a line of the head. An answer may follow a 100 Continue.
  @unsafe
  private func receive(line bytes: UnsafeRawBufferPointer) -> Int {
    let line = unsafe String(decoding: bytes, as: UTF8.self)
    headBytes += line.utf8.count
    guard headBytes <= Self.headLimit else { return 0 }
    if line.hasPrefix("HTTP/") {
      status = line.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
      fields = [:]
    } else if let colon = line.firstIndex(of: ":") {
      let value = line[line.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
      fields[line[..<colon].lowercased()] = String(value.prefix { !$0.isNewline })
    }
    return bytes.count
  }

  @unsafe
  private func receive(_ bytes: UnsafeRawBufferPointer) -> Int {
    receivedBytes += Int64(bytes.count)
    if (200..<300).contains(status), case .download(let download) = destination {
      do throws(S3Error) {
        try begin(download)
        try unsafe download.append(bytes)
      } catch {
        failure = error
        return 0
      }
      return bytes.count
    }
    // The status says enough of a failure with a long explanation.
    guard body.count + bytes.count <= max(answerLimit, 64 << 10) || !(200..<300).contains(status) else {
      failure = .malformedAnswer(what: "length")
      return 0
    }
    if body.isEmpty, let length = fields["content-length"].flatMap(Int.init) {
      body.reserveCapacity(max(0, min(length, answerLimit)))
    }
    unsafe body.append(contentsOf: bytes.prefix(max(answerLimit, 64 << 10) - body.count))
    return bytes.count
  }

  /// Checks, before the first byte, that the content continues what is in the file.
  private func begin(_ download: S3Download) throws(S3Error) {
    guard !hasBegun else { return }
    hasBegun = true
    if status == 206 {
      // All that follows, and only if a part was wanted.
      guard hasRange, let range = contentRange, range.first == download.count, range.last == range.length - 1 else {
        throw .malformedAnswer(what: "Content-Range")
      }
      try download.expect(range.length)
    } else {
      // Without it, an answer that breaks off would look like the whole.
      guard status == 200, let length = fields["content-length"].flatMap({ Int64($0) }), length >= 0 else {
        throw .malformedAnswer(what: "Content-Length")
      }
      try download.startOver()
      try download.expect(length)
    }
    download.entityTag = fields["etag"]
  }

  /// What Content-Range says, such as "bytes 0-9/100"; nil if it says something else.
  private var contentRange: (first: Int64, last: Int64, length: Int64)? {
    guard let text = fields["content-range"], text.hasPrefix("bytes ") else { return nil }
    let parts = text.dropFirst(6).split(separator: "/", omittingEmptySubsequences: false)
    let bounds = parts[0].split(separator: "-", omittingEmptySubsequences: false).map { Int64($0) }
    guard parts.count == 2, let length = Int64(parts[1]), bounds.count == 2, let first = bounds[0],
      let last = bounds[1], first >= 0, last >= first, length > last
    else { return nil }
    return (first, last, length)
  }
  private var hasBegun = false

  @unsafe
  private func outcome(of result: CURLcode, _ handle: UnsafeMutableRawPointer) -> S3Outcome {
    if let failure { return .failed(failure, wasSent: true) }
    // The store may answer, for example that it refuses the content, and close the connection while that is being sent.
    let isCutShort = result == CURLE_SEND_ERROR || result == CURLE_SEND_FAIL_REWIND
    if result == CURLE_OK || isCutShort && status >= 300 {
      if (200..<300).contains(status), case .download(let download) = destination {
        do throws(S3Error) { try begin(download) } catch { return .failed(error, wasSent: true) }
        guard download.isWhole else { return .failed(.unreachable(reason: "the answer is incomplete"), wasSent: true) }
      }
      return .answered(S3Response(status: status, fields: fields, body: body))
    }
    var requestBytes = 0
    unsafe _ = stillwave_curl_get_long(handle, CURLINFO_REQUEST_SIZE, &requestBytes)
    let error: S3Error =
      switch result {
      case CURLE_OPERATION_TIMEDOUT: .timedOut
      case CURLE_SEND_FAIL_REWIND: .unreachable(reason: "closed without an answer")
      default: .unreachable(reason: unsafe String(cString: curl_easy_strerror(result)))
      }
    return .failed(error, wasSent: requestBytes > 0)
  }
}
