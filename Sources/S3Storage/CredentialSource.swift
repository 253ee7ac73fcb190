// Credentials come from the environment or from a file in the format of AWS's tools:
//
//   [default]
//   aws_access_key_id = AKIAIOSFODNN7EXAMPLE
//   aws_secret_access_key = …
//   aws_session_token = …            optional
//
// The file is read again whenever it has changed, so that keys can be replaced while the service runs. Replace it by
// renaming: while a new version can't be read or is incomplete, the last good one remains in use.

import Glibc
import Synchronization

/// Where the credentials come from.
package final class CredentialSource: Sendable {
  private enum Origin: Sendable {
    case fixed(S3Credentials)
    case file(path: String, profile: String)
  }

  /// The version of a file that was read.
  private struct Version: Equatable {
    var device, inode: UInt64
    var size, seconds, nanoseconds: Int64
  }

  private struct State {
    var version: Version?
    var credentials: S3Credentials?
  }

  private let origin: Origin
  private let state = Mutex(State())

  /// Maximum size of a file, in bytes.
  private static let fileLimit = 1 << 20

  /// Uses these credentials.
  package init(_ credentials: S3Credentials) { origin = .fixed(credentials) }

  /// Uses a section of a file. Doesn't read it yet.
  package init(file path: String, profile: String = "default") { origin = .file(path: path, profile: profile) }

  /// Uses `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and `AWS_SESSION_TOKEN` of an environment; if they aren't set,
  /// the file `AWS_SHARED_CREDENTIALS_FILE` or `~/.aws/credentials`, in which `AWS_PROFILE` names the section.
  ///
  /// Throws `.noCredentials` if the variables are set but can't be used, or if there is neither.
  package convenience init(environment: [String: String]) throws(S3Error) {
    if let accessKey = environment["AWS_ACCESS_KEY_ID"], let secretKey = environment["AWS_SECRET_ACCESS_KEY"] {
      let token = environment["AWS_SESSION_TOKEN"].flatMap { $0.isEmpty ? nil : $0 }
      guard let credentials = S3Credentials(accessKey: accessKey, secretKey: secretKey, sessionToken: token) else {
        throw .noCredentials(file: nil)
      }
      self.init(credentials)
      return
    }
    let path = environment["AWS_SHARED_CREDENTIALS_FILE"] ?? environment["HOME"].map { $0 + "/.aws/credentials" }
    guard let path else { throw .noCredentials(file: nil) }
    self.init(file: path, profile: environment["AWS_PROFILE"] ?? "default")
  }

  /// Whether others may take their place while the process runs.
  var canChange: Bool { if case .file = origin { true } else { false } }

  /// Returns the credentials to sign the next request with. Costs a stat(2) if they come from a file; reads it if it
  /// has changed.
  ///
  /// Throws `.noCredentials` if the file has never had any.
  package func current() throws(S3Error) -> S3Credentials {
    guard case .file(let path, let profile) = origin else {
      guard case .fixed(let credentials) = origin else { preconditionFailure("there are two origins") }
      return credentials
    }
    let version = Self.version(of: path)
    let known = state.withLock { $0 }
    if let credentials = known.credentials, version == nil || version == known.version { return credentials }
    let read = (try? TransferFile(reading: path)).flatMap { try? $0.contents(limit: Self.fileLimit) }
    let found = read.flatMap { Self.parse(String(decoding: $0, as: UTF8.self), profile: profile) }
    if let found {
      state.withLock { $0 = State(version: version, credentials: found) }
      return found
    }
    guard let credentials = known.credentials else { throw .noCredentials(file: path) }
    return credentials
  }

  /// Returns the credentials in a section. Ignores other lines.
  static func parse(_ text: String, profile: String) -> S3Credentials? {
    var section = ""
    var values: [String: String] = [:]
    for line in text.split(whereSeparator: \.isNewline) {
      let line = trimmed(line)
      if line.hasPrefix("["), line.hasSuffix("]") {
        section = trimmed(line.dropFirst().dropLast())
      } else if section == profile, !line.hasPrefix("#"), !line.hasPrefix(";"), let equals = line.firstIndex(of: "=") {
        values[trimmed(line[..<equals])] = trimmed(line[line.index(after: equals)...])
      }
    }
    guard let accessKey = values["aws_access_key_id"], let secretKey = values["aws_secret_access_key"] else {
      return nil
    }
    return S3Credentials(accessKey: accessKey, secretKey: secretKey, sessionToken: values["aws_session_token"])
  }

  private static func trimmed(_ text: some StringProtocol) -> String {
    var rest = Substring(text)
    while rest.first?.isWhitespace == true { rest.removeFirst() }
    while rest.last?.isWhitespace == true { rest.removeLast() }
    return String(rest)
  }

  private static func version(of path: String) -> Version? {
    var info = stat()
    guard unsafe stat(path, &info) == 0 else { return nil }
    return Version(
      device: UInt64(info.st_dev), inode: UInt64(info.st_ino), size: Int64(info.st_size),
      seconds: Int64(info.st_mtim.tv_sec), nanoseconds: Int64(info.st_mtim.tv_nsec))
  }
}
