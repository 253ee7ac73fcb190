import Synchronization

@testable import S3Storage

/// What a catalog knows about its media. One in SQLite doesn't know any bucket.
final class TestBinding: MediaBinding, Sendable {
  private let id = Mutex<String?>(nil)
  private let hasContent: Bool

  init(hasContent: Bool = false) { self.hasContent = hasContent }

  func boundMedia() -> (id: String?, hasContent: Bool) { (id.withLock { $0 }, hasContent) }

  func bind(toMedia new: String) -> String {
    id.withLock { id in
      if id == nil { id = new }
      return id ?? new
    }
  }
}
