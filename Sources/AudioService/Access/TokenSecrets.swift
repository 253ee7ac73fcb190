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
  private let ownPath: String

  /// Reads the secrets from `path`; without one, the service's own are in `directory`. Throws `KeyFileError`.
  init(path: String?, directory: String) throws {
    ownPath = directory + "/token-secret"
    file = Mutex(try path.map { try WatchedFile(path: $0, Self.read) })
  }

  /// The secrets, none if the service's own has not been made yet. Blocks if it has been made but not read yet.
  var all: [[UInt8]] { own(making: false)?.content ?? [] }

  /// The secret that signs. Blocks for the first one.
  func signing() throws -> [UInt8] {
    guard let secret = own(making: true)?.content.first else {
      throw ServiceError.workerUnavailable(reason: "the secret for tokens could not be made or read")
    }
    return secret
  }

  /// Reads the file again if it has changed; see `WatchedFile.reload`.
  func reload() throws { try file.withLock { $0 }?.reload() }

  private func own(making: Bool) -> WatchedFile<[[UInt8]]>? {
    file.withLock { file in
      if let file { return file }
      if making { Self.make(ownPath) }
      file = try? WatchedFile(path: ownPath, Self.read)
      return file
    }
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

  /// Creates the service's own secret unless it exists. Only the owner can read it.
  private static func make(_ path: String) {
    let file = unsafe open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard file >= 0 else { return }
    defer { close(file) }
    let line = Array((RandomText.secret() + "\n").utf8)
    _ = unsafe line.withUnsafeBytes { unsafe write(file, $0.baseAddress, $0.count) }
    fsync(file)
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
