/// What identifies an attempt at a job and is its right to write: the number of the attempt and a random nonce.
///
/// Two attempts never have the same token, not even if a catalog from a backup counts attempts a second time. So every
/// file is named by the attempt that writes it, and no attempt can overwrite or remove another's.
package struct AttemptToken: Sendable, Hashable {
  /// The job.
  package let job: JobID
  /// The number of the attempt, from 1.
  package let attempt: Int
  /// 16 lower-case hexadecimal digits.
  package let nonce: String

  /// Creates a token from its parts.
  package init(job: JobID, attempt: Int, nonce: String) { (self.job, self.attempt, self.nonce) = (job, attempt, nonce) }

  /// The name of the attempt in names of files: "<job>-<attempt>-<nonce>".
  package var name: String { "\(job)-\(shortName)" }

  /// The name of the attempt in its job's folder: "<attempt>-<nonce>".
  package var shortName: String { "\(attempt)-\(nonce)" }

  /// Returns the name of one of the attempt's files in its job's folder.
  package func workName(_ fileExtension: String) -> String { "\(shortName).\(fileExtension)" }

  /// Returns a new nonce.
  package static func newNonce() -> String {
    var random = SystemRandomNumberGenerator()
    let digits = String(random.next() as UInt64, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
  }

  /// Whether a text could be a nonce, which is safe in file names.
  static func isNonce(_ text: String) -> Bool {
    text.utf8.count == 16 && text.utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
  }
}

/// How an attempt ended.
package enum AttemptEnding: String, Sendable, Hashable, CaseIterable {
  /// Its result is the job's result.
  case succeeded
  /// It failed, and maybe the job with it.
  case failed
  /// Its node stopped, crashed, or lost the lease.
  case interrupted
  /// The job was canceled meanwhile.
  case cancelled
}
