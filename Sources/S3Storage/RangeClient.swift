import Storage

/// Fetches ranges of files from servers that aren't the store, with libcurl. Each call has deadlines, and isn't
/// repeated. Redirects aren't followed. Thread-safe.
package final class RangeClient: Sendable {
  private let connections = S3Connections()
  private let settings: S3Settings
  private let seconds: Double

  /// Creates a client whose calls have `connectSeconds` to connect and `seconds` until the last byte.
  package init(connectSeconds: Double, seconds: Double) {
    var settings = S3Settings()
    (settings.connectSeconds, settings.requestSeconds) = (connectSeconds, seconds)
    (self.settings, self.seconds) = (settings, seconds)
  }

  /// Whether libcurl could be loaded.
  package static var canBeUsed: Bool { CurlHandle.isReady }

  /// Returns the value of `Range` for a range of bytes.
  package static func field(_ range: Range<Int64>) -> String { "bytes=\(range.lowerBound)-\(range.upperBound - 1)" }

  /// Returns the bytes of a range, which isn't empty; nil if the server answers 404. `fields` are further fields of the
  /// request. `isProven` gets the fields of the answer, with names in lower case, and the bytes.
  ///
  /// Throws `.refused` if it answers with another status than 206, `.malformedAnswer` if it sends another range or more
  /// bytes or isn't proven, `.unreachable`, `.timedOut`, or `.libraryMissing`. Blocks.
  package func bytes(
    _ range: Range<Int64>, of url: String, fields: [(name: String, value: String)] = [],
    isProven: ([String: String], [UInt8]) -> Bool = { _, _ in true }
  ) throws(S3Error) -> [UInt8]? {
    let request = S3Request(method: .get, answerLimit: range.count)
    let handle = try connections.take()
    defer { connections.give(handle) }
    let (outcome, _) = S3Call.send(
      request, to: url, fields: fields + [(name: "Range", value: Self.field(range))], .memory, over: handle,
      of: connections,
      seconds: seconds, settings: settings)
    switch outcome {
    case .failed(let error, _): throw error
    case .answered(let answer) where answer.status == 404: return nil
    case .answered(let answer):
      guard answer.status == 206 else { throw .refused(status: answer.status, code: nil, message: nil) }
      let start = "bytes \(range.lowerBound)-\(range.upperBound - 1)/"
      guard answer.fields["content-range"]?.hasPrefix(start) == true else {
        throw .malformedAnswer(what: "Content-Range")
      }
      guard answer.body.count == range.count else { throw .malformedAnswer(what: "length") }
      guard isProven(answer.fields, answer.body) else { throw .malformedAnswer(what: "proof") }
      return answer.body
    }
  }
}
