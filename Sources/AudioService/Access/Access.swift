import Jobs
import Storage
import Synchronization
import Terms

/// The keys, the secrets of tokens, and what is remembered about wrong ones.
final class Access: Sendable {
  /// nil if the service has no keys, so that everything is open.
  let ring: KeyRing?
  let secrets: TokenSecrets
  /// nil if there is none.
  let audit: AuditLog?
  let clock: AccessClock
  let admissions = Admissions()
  private let generations = Atomic<UInt64>(0)
  private let failures = Mutex(FailedAttempts())
  /// What waits are measured by.
  let waitClock: Clock
  private let start: Clock.Instant

  /// Reads the files that the configuration names. `time` is the catalog's. Throws `UnusableFile`.
  init(_ configuration: Configuration, time: @escaping @Sendable () -> Timestamp) throws {
    let clock = AccessClock(following: time)
    self.clock = clock
    (waitClock, start) = (configuration.clock, configuration.clock.now)
    ring = try configuration.keysPath.map { path in
      try UnusableFile.naming(path, "keys") { try KeyRing(path: path, clock: clock) }
    }
    let directory = configuration.cluster.mediaDirectory ?? configuration.dataDirectory
    let secretPath = configuration.tokenSecretPath ?? TokenSecrets.ownPath(in: directory)
    secrets = try UnusableFile.naming(secretPath, "token secrets") {
      try TokenSecrets(path: configuration.tokenSecretPath, directory: directory)
    }
    audit = try configuration.auditLogPath.map { path in
      try UnusableFile.naming(path, "the audit log") { try AuditLog(path: path, configuration.clock) }
    }
  }

  /// Opens the audit log again under its name. Returns what the log says. Blocks.
  func reopenAudit() -> (message: String, isFailure: Bool)? {
    guard let audit else { return nil }
    return audit.reopen()
      ? ("the audit log was opened again", false) : ("the audit log can't be opened, so the earlier file stays", true)
  }

  var hasKeys: Bool { ring != nil }

  /// Increases when keys or token secrets change. Repeat any lookup made at an earlier generation.
  var generation: UInt64 { generations.load(ordering: .acquiring) }

  /// Counts a wrong key or token of a client. Returns the seconds that the refusal must wait.
  func wait(afterFailureOf client: Client) -> Double {
    let now = waitClock.seconds(since: start)
    return failures.withLock { $0.wait(for: client, at: now) }
  }

  /// Reads the files again that have changed. A file that isn't valid any more changes nothing. Returns what the log
  /// says. Blocks.
  func reload() -> [(message: String, isFailure: Bool)] {
    var lines: [(String, Bool)] = []
    var hasChanged = false
    if let ring {
      do {
        if try ring.reload() {
          hasChanged = true
          lines.append(("the keys were read again: \(ring.count)", false))
        }
      } catch {
        lines.append(("the file of keys can't be used, so the earlier keys stay: \(error)", true))
      }
    }
    do { if try secrets.reload() { hasChanged = true } } catch {
      lines.append(("the file of token secrets can't be used, so the earlier secrets stay: \(error)", true))
    }
    if hasChanged { generations.wrappingAdd(1, ordering: .releasing) }
    return lines
  }
}

/// A file named in the settings that can't be used.
package struct UnusableFile: Error, CustomStringConvertible {
  /// A sentence for operators.
  package let description: String

  /// Calls `body`; `kind` says what the file at `path` contains.
  static func naming<Value>(_ path: String, _ kind: String, _ body: () throws -> Value) throws(UnusableFile) -> Value {
    do { return try body() } catch {
      throw UnusableFile(description: "The file of \(kind) “\(path)” can't be used: \(error).")
    }
  }
}
