import Dispatch
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
  /// `KeyFileError`.
  init(path: String?, directory: String) throws {
    self.directory = directory
    file = Mutex(try path.map { try WatchedFile(path: $0, Self.read) } ?? Self.own(in: directory))
  }

  /// Reads the service's own secret. Returns nil if it has not been made, or its file was not written completely.
  private static func own(in directory: String) -> WatchedFile<[[UInt8]]>? {
    try? WatchedFile(path: directory + "/token-secret", read)
  }

  /// The secrets. Empty until the service makes its own.
  var all: [[UInt8]] { file.withLock { $0 }?.content ?? [] }

  /// The secret that signs. Blocks for the first one, which it makes.
  func signing() throws -> [UInt8] {
    if let secret = all.first { return secret }
    return try queue.sync {
      if let secret = all.first { return secret }
      try FileSystem.replace(directory + "/token-secret", with: Array((RandomText.secret() + "\n").utf8))
      try FileSystem.syncFolder(directory)
      let made = Self.own(in: directory)
      file.withLock { $0 = made }
      guard let secret = made?.content.first else {
        throw ServiceError.workerUnavailable(reason: "the secret for tokens can't be read")
      }
      return secret
    }
  }

  /// Reads the file again if it has changed; see `WatchedFile.reload`.
  func reload() throws -> Bool { try file.withLock { $0 }?.reload() ?? false }

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
