import Dispatch
import Glibc
import Storage
import Synchronization

/// The secrets that sign tokens: the first signs, all verify.
///
/// They are the lines of a file, or one that the service makes on first use and keeps in the data folder.
final class TokenSecrets: Sendable {
  /// Minimum length of a secret in bytes, so that it can't be guessed.
  static let leastBytes = 16

  private let file: Mutex<WatchedFile<[[UInt8]]>?>
  private let directory: String
  /// Only one caller at a time makes the service's own secret.
  private let queue = DispatchQueue(label: "token secret")

  /// Reads the secrets from `path`; without one, the service's own is in `directory`, if it has been made. Throws
  /// `KeyFileError`, also if the service's own can't be read: another one would end all links that it has signed.
  init(path: String?, directory: String) throws {
    self.directory = directory
    file = Mutex(try path.map { try WatchedFile(path: $0, Self.read) } ?? Self.own(in: directory))
  }

  /// The file of the service's own secret in a folder.
  static func ownPath(in directory: String) -> String { directory + "/token-secret" }

  /// Reads the service's own secret. Returns nil if it has not been made: there is no file, or an empty one. Throws
  /// `KeyFileError` if there is something else that can't be used.
  private static func own(in directory: String) throws -> WatchedFile<[[UInt8]]>? {
    let path = ownPath(in: directory)
    var info = stat()
    // Not what a link leads to: a link to a disk that isn't there is no reason to make another secret.
    guard unsafe lstat(path, &info) == 0 else {
      guard errno == ENOENT else { throw KeyFileError.unreadable(errno: errno) }
      return nil
    }
    guard info.st_mode & S_IFMT != S_IFREG || info.st_size > 0 else { return nil }
    return try WatchedFile(path: path, read)
  }

  /// The secrets. Empty until the service makes its own.
  var all: [[UInt8]] { file.withLock { $0 }?.content ?? [] }

  /// The secret that signs. Blocks for the first one, which it makes unless another node of the same folder has. Throws
  /// `UnusableFile` if there is one that can't be used.
  func signing() throws -> [UInt8] {
    if let secret = all.first { return secret }
    return try queue.sync {
      if let secret = all.first { return secret }
      if try namedOwn() == nil { try make() }
      let own = try namedOwn()
      file.withLock { $0 = own }
      guard let secret = own?.content.first else {
        throw ServiceError.workerUnavailable(reason: "the secret for tokens can't be read")
      }
      return secret
    }
  }

  /// Reads the service's own secret. Throws errors that name the file.
  private func namedOwn() throws(UnusableFile) -> WatchedFile<[[UInt8]]>? {
    try UnusableFile.naming(Self.ownPath(in: directory), "token secrets") { try Self.own(in: directory) }
  }

  /// Makes the service's own secret, unless there is one meanwhile.
  private func make() throws {
    let path = Self.ownPath(in: directory)
    let new = path + "." + RandomText.text(bytes: 9)
    try FileSystem.replace(new, with: Array((RandomText.secret() + "\n").utf8))
    defer { try? FileSystem.remove(new) }
    // Unlike renaming, linking replaces nothing. It fails if there is a file, or on a disk that has no hard links.
    if unsafe link(new, path) != 0 {
      guard try Self.own(in: directory) == nil else { return }
      try FileSystem.rename(new, to: path)
    }
    try FileSystem.syncFolder(directory)
  }

  /// Reads the file again if it has changed; see `WatchedFile.reload`. Finds the secret that another node has made;
  /// while that can't be used, `signing` throws.
  func reload() throws -> Bool {
    if let file = file.withLock({ $0 }) { return try file.reload() }
    guard let own = try? Self.own(in: directory) else { return false }
    file.withLock { $0 = own }
    return true
  }

  /// Each line is a secret. Throws `KeyFileError` for one that is too short, or if there is none.
  @Sendable private static func read(_ path: String) throws -> [[UInt8]] {
    var secrets: [[UInt8]] = []
    let lines = try KeyFile.contents(of: path).split(separator: 0x0A, omittingEmptySubsequences: false)
    for (index, line) in lines.enumerated() {
      let secret = Array(line.last == 0x0D ? line.dropLast() : line)
      guard !secret.isEmpty else { continue }
      guard secret.count >= leastBytes else {
        throw KeyFileError.invalidLine(index + 1, reason: "is shorter than \(leastBytes) bytes")
      }
      secrets.append(secret)
    }
    guard !secrets.isEmpty else { throw KeyFileError.invalidLine(1, reason: "has no secret") }
    return secrets
  }
}

/// Random text that can't be guessed.
package enum RandomText {
  /// Returns 43 characters from 256 random bits.
  package static func secret() -> String { text(bytes: 32) }

  /// Returns the text of random bytes in base64url.
  static func text(bytes count: Int) -> String {
    // SystemRandomNumberGenerator is getrandom(2) on Linux, which is fit for secrets.
    var random = SystemRandomNumberGenerator()
    return Base64URL.text((0..<count).map { _ in UInt8.random(in: .min ... .max, using: &random) })
  }
}
