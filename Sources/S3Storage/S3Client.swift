import Glibc
import Storage
import Synchronization
import Terms

/// A bucket in an S3-compatible store.
///
/// Needs only what Ceph, OpenStack Swift and Amazon share: PUT, GET with Range, HEAD, DELETE, ListObjectsV2, and
/// multipart uploads with UploadPartCopy. All calls block, each with a deadline, and may come from several threads at
/// once. Keys are never written twice with different content, so a repeated PUT is harmless.
///
/// Every failure is retried where that is safe (see `RetryRule`), with random waits; then the last error is thrown. For
/// a second after that, further calls throw it at once, unless others have succeeded meanwhile: then it was about one
/// object.
package final class S3Client: Sendable {
  /// The bucket.
  package let bucket: S3Bucket
  private let credentials: CredentialSource
  private let settings: S3Settings
  let figures: S3Figures
  private let connections = S3Connections()
  let storeClock: StoreClock
  /// See `S3Settings.clock`.
  var clock: Clock { settings.clock }
  private let hasFailed = Atomic<Bool>(false)
  private let lacksRoom = Atomic<Bool>(false)
  private let breaker: Mutex<Breaker>
  private let binding = Mutex(Binding())

  /// The bucket that every key must reach, and the key that was last seen to reach it.
  private struct Binding {
    var identity: String?
    var confirmed: S3Credentials?
  }

  /// While the store fails, most calls fail at once instead of waiting for it, and thereby keeping a thread each.
  private struct Breaker {
    var failure: S3Error?
    let clock: Clock
    var nextTry: Clock.Instant
    var lastSuccess: Clock.Instant?

    init(_ clock: Clock) { (self.clock, nextTry) = (clock, clock.now) }

    /// Returns why a call must not be made; nil for all of a store that works, and for one whenever it is due.
    mutating func refusal(pause seconds: Double) -> S3Error? {
      guard let failure else { return nil }
      guard nextTry <= clock.now else { return failure }
      nextTry = clock.instant(after: seconds)
      return nil
    }

    func hasSucceeded(since start: Clock.Instant) -> Bool { lastSuccess.map { $0 > start } ?? false }
  }

  /// Creates a client. Loads libcurl, but makes no connection.
  package convenience init(
    _ bucket: S3Bucket, credentials: CredentialSource, settings: S3Settings = S3Settings()
  ) {
    self.init(
      bucket, credentials: credentials, settings: settings, figures: S3Figures(), clock: StoreClock(settings.clock))
  }

  /// Creates a client whose figures and clock may be shared with other clients of the store.
  init(
    _ bucket: S3Bucket, credentials: CredentialSource, settings: S3Settings, figures: S3Figures, clock: StoreClock
  ) {
    (self.bucket, self.credentials, self.settings) = (bucket, credentials, settings)
    (self.figures, storeClock) = (figures, clock)
    breaker = Mutex(Breaker(settings.clock))
    // Not during another call: initializing isn't safe then in libcurl before 7.84.
    _ = CurlHandle.isReady
  }

  /// From now on, no key is used before it was seen to reach the bucket with this identity: elsewhere, the
  /// same name may be another bucket, where everything is missing.
  func expect(_ identity: String) { binding.withLock { $0 = Binding(identity: identity) } }

  /// Throws if the bucket can't be listed, with the clearest error that the store has: unlike HEAD, a listing says what
  /// is wrong.
  package func check() throws(S3Error) {
    let request = S3Request(
      method: .get,
      query: [
        (name: "list-type", value: "2"), (name: "max-keys", value: "1"), (name: "prefix", value: bucket.prefix),
      ])
    _ = try send(request)
  }

  /// Whether the last request that ended did so because of an error that others may meet, too.
  package var isFailing: Bool { hasFailed.load(ordering: .relaxed) }

  /// Takes in that another client of the bucket has succeeded.
  func noteRecovery() {
    hasFailed.store(false, ordering: .relaxed)
    breaker.withLock { ($0.failure, $0.lastSuccess) = (nil, $0.clock.now) }
  }

  /// Whether the bucket was full when something was put last.
  package var isFull: Bool { lacksRoom.load(ordering: .relaxed) }

  /// Takes in that another client of the bucket has put something.
  func noteRoom() { lacksRoom.store(false, ordering: .relaxed) }

  /// Returns a URL by which anyone can GET an object for `seconds`, at most a week, from `time` on. `bucket` is this
  /// one by the address that clients reach it at. `fields` replace those of the store's answer, such as `content-type`.
  func presignedURL(
    _ key: String, in bucket: S3Bucket, from time: Timestamp, seconds: Int,
    answering fields: [(name: String, value: String)] = []
  ) throws(S3Error) -> String {
    let target = SigV4.Target(
      method: "GET", path: bucket.path(of: key), query: fields.map { (name: "response-\($0.name)", value: $0.value) },
      fields: [(name: "host", value: bucket.host)])
    let query = SigV4(region: bucket.region).presignedQuery(
      target, by: try confirmedKey(), at: time, seconds: seconds)
    return "\(bucket.scheme)://\(bucket.host)\(URIEncoding.path(target.path))?\(query)"
  }

  /// Returns the present key, once it was seen to reach the bucket: what it signs may go to others. Throws
  /// `.otherBucket` if it doesn't. Sends a request if the key is new.
  private func confirmedKey() throws(S3Error) -> S3Credentials {
    let key = try credentials.current()
    guard isConfirmed(key) else {
      _ = try send(Self.identityRequest)
      guard isConfirmed(key) else { throw .otherBucket(name: bucket.address) }
      return key
    }
    return key
  }

  private func isConfirmed(_ key: S3Credentials) -> Bool {
    binding.withLock { $0.identity == nil || $0.confirmed == key }
  }

  /// From now on, every call fails, and those under way do so within about a second, whatever the store does: the
  /// process is about to end.
  package func endCalls() { connections.end() }

  // MARK: Sending

  /// Sends a request and returns the answer if it is a success; throws its error otherwise. `bytes` is the length of
  /// the answer's content as far as it is known, for the deadline.
  func send(
    _ request: S3Request, bytes: Int64 = 0, retry rule: RetryRule = .always
  ) throws(S3Error) -> S3Response {
    try send(to: .memory, bytes: bytes, retry: rule) { request }
  }

  /// Sends a request that is made again for each attempt.
  func send(
    to destination: S3Destination, bytes: Int64, retry rule: RetryRule = .always,
    _ request: () -> S3Request
  ) throws(S3Error) -> S3Response {
    let (pause, start) = (settings.breakSeconds, clock.now)
    let (refusal, isOpen) = breaker.withLock { ($0.refusal(pause: pause), $0.failure != nil) }
    if let refusal {
      figures.addSpared()
      throw refusal
    }
    do throws(S3Error) {
      let response = try repeated(to: destination, bytes: bytes, retry: rule, isTrial: isOpen, request)
      noteRecovery()
      return response
    } catch {
      // A fault of this machine's disk says nothing about the store.
      if case .file = error { throw error }
      if error == .quotaExceeded { lacksRoom.store(true, ordering: .relaxed) }
      let isGeneral = breaker.withLock { breaker in
        // A key that may not do this may do something else, but one that has expired can do nothing.
        guard error.isTransient && error != .damaged || error.isAboutExpiry else { return error.isGeneral }
        guard !breaker.hasSucceeded(since: start) else { return false }
        if pause > 0 { (breaker.failure, breaker.nextTry) = (error, breaker.clock.instant(after: pause)) }
        return true
      }
      if isGeneral != isFailing { hasFailed.store(isGeneral, ordering: .relaxed) }
      throw error
    }
  }

  private func repeated(
    to destination: S3Destination, bytes: Int64, retry rule: RetryRule, isTrial: Bool,
    _ request: () -> S3Request
  ) throws(S3Error) -> S3Response {
    // How long the call has taken beside the transfer of content, in seconds.
    var elapsed = 0.0
    var generator = SystemRandomNumberGenerator()
    var refused: S3Credentials?
    var hasSetClock = false
    var failures = 0
    while true {
      let key = try credentials.current()
      let isConfirmed = isConfirmed(key)
      let request = isConfirmed ? request() : Self.identityRequest
      let start = clock.now
      let (outcome, moved) = try attempt(request, isConfirmed ? destination : .memory, bytes, key, after: elapsed)
      elapsed += settings.secondsBesideTransfer(of: moved, in: clock.seconds(since: start))
      let (error, wasSent): (S3Error, Bool)
      switch outcome {
      case .answered(let response):
        if !isConfirmed, try confirm(key, request.error(in: response), response.body) { continue }
        guard let reported = request.error(in: response) else { return response }
        (error, wasSent) = (reported, true)
      case .failed(let failure, let sent): (error, wasSent) = (failure, sent)
      }
      failures += 1
      // The file with the credentials may have been replaced since they were read.
      if error.isAboutCredentials, refused == nil, try credentials.current() != key {
        refused = key
        continue
      }
      if case .clockSkew(let time?) = error, !hasSetClock {
        hasSetClock = true
        storeClock.set(to: time)
        continue
      }
      let isLast = isTrial || failures >= settings.attempts || connections.isEnding
      if !isLast, error.isAboutExpiry, try hasReplacement(of: key, after: &elapsed) { continue }
      guard !isLast, rule.permits(error, wasSent: wasSent) else { throw error }
      let pause = settings.pause(after: failures, using: &generator)
      guard settings.hasTime(after: elapsed + pause) else { throw error }
      clock.pause(min(pause, 10))
      elapsed += pause
    }
  }

  /// Waits until the file with the credentials has others than `key`, which have expired: what renews them may be late.
  /// Returns false if the time of the call, which has taken `elapsed` seconds, ends before, or if there is no file.
  private func hasReplacement(of key: S3Credentials, after elapsed: inout Double) throws(S3Error) -> Bool {
    while try credentials.current() == key {
      let pause = settings.pauseSeconds
      guard credentials.canChange, settings.hasTime(after: elapsed + pause), !connections.isEnding else { return false }
      clock.pause(min(pause, 10))
      elapsed += pause
    }
    return true
  }

  private static let identityRequest = S3Request(method: .get, key: BucketIdentity.key)

  /// Takes in what the bucket that a key reaches has as its identity, and returns whether the key can be used. Throws
  /// `.otherBucket` if it isn't the right one.
  private func confirm(_ key: S3Credentials, _ error: S3Error?, _ found: [UInt8]) throws(S3Error) -> Bool {
    guard error == nil || error == .noSuchKey else { return false }
    return try binding.withLock { binding throws(S3Error) in
      guard error == nil, MediaID(found)?.text == binding.identity else { throw .otherBucket(name: bucket.address) }
      binding.confirmed = key
      return true
    }
  }

  /// Sends a request once. Returns how that ended and the number of bytes that were sent and received as content.
  private func attempt(
    _ request: S3Request, _ destination: S3Destination, _ bytes: Int64, _ key: S3Credentials, after elapsed: Double
  ) throws(S3Error) -> (S3Outcome, movedBytes: Int64) {
    let target = SigV4.Target(
      method: request.method.rawValue, path: bucket.path(of: request.key), query: request.query,
      fields: request.fields + [(name: "host", value: bucket.host)])
    let fields = SigV4(region: bucket.region).signed(
      target, payloadSHA256: request.content?.sha256 ?? SigV4.emptyPayload, by: key, at: storeClock.now)
    let query = SigV4.canonicalQuery(request.query)
    let url = "\(bucket.scheme)://\(bucket.host)\(URIEncoding.path(target.path))" + (query.isEmpty ? "" : "?" + query)
    let handle = try connections.take()
    let (start, before) = (clock.now, destination.downloadedBytes)
    let (outcome, moved) = S3Call.send(
      request, to: url, fields: fields, destination, over: handle, of: connections,
      seconds: settings.deadlineSeconds(bytes: bytes + (request.content?.length ?? 0), after: elapsed)
        + S3Settings.secondsInStore(bytes: request.bytesInStore),
      settings: settings)
    let (received, taken) = (max(0, destination.downloadedBytes - before), clock.seconds(since: start))
    switch outcome {
    case .answered(let response):
      // One that has failed has no connection, and might keep what it was about to do.
      connections.give(handle)
      figures.add(
        request, S3Figures.Outcome(request.error(in: response)), seconds: taken, sent: request.content?.length ?? 0,
        received: received + Int64(response.body.count))
    case .failed(let error, _):
      figures.add(request, S3Figures.Outcome(error), seconds: taken, sent: 0, received: received)
    }
    return (outcome, moved)
  }
}
