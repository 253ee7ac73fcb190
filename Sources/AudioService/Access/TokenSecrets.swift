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
  /// How long to wait for a process that has locked an empty file.
  private let patience: Duration
  /// Why the service's own secret couldn't be read when it was last looked for.
  private let fault = Mutex<String?>(nil)
  /// Only one caller at a time makes the service's own secret.
  private let queue = DispatchQueue(label: "token secret")

  /// Reads the secrets from `path`; without one, the service's own is in `directory`, if it has been made. Throws
  /// `KeyFileError`, also if the service's own can't be read: another one would end all links that it has signed.
  init(path: String?, directory: String, patience: Duration = .seconds(2)) throws {
    (self.directory, self.patience) = (directory, patience)
    file = Mutex(try path.map { try WatchedFile(path: $0, Self.read) } ?? Self.own(in: directory))
  }

  /// The file of the service's own secret in a folder.
  static func ownPath(in directory: String) -> String { directory + "/" + MediaStore.tokenSecret }

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

  /// Makes the service's own secret, unless there is one meanwhile. Of nodes that make one at the same moment, one
  /// does.
  private func make() throws {
    let path = Self.ownPath(in: directory)
    do throws(StorageError) {
      try FileSystem.createOnce(path, with: Array((RandomText.secret() + "\n").utf8), patience: patience)
    } catch .inUse(_) {
      throw ServiceError.workerUnavailable(
        reason: "another process has locked the empty file “\(path)”, to write the secret for tokens, and doesn't")
    }
    try FileSystem.syncFolder(directory)
  }

  /// Reads the file again if it has changed; see `WatchedFile.reload`. Finds the secret that another node has made;
  /// throws, once for each reason, if that can't be used.
  func reload() throws -> Bool {
    if let file = file.withLock({ $0 }) { return try file.reload() }
    let own = Result { try Self.own(in: directory) }
    let reason: String? = if case .failure(let error) = own { "\(error)" } else { nil }
    let isKnown = fault.withLock { fault in
      defer { fault = reason }
      return reason != nil && fault == reason
    }
    guard !isKnown, let found = try own.get() else { return false }
    file.withLock { $0 = found }
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
