/// Removes the work folders of jobs that have ended without removing them: their node was killed, or another node has
/// taken the job over.
package struct AbandonedWork: Sendable {
  let catalog: Catalog
  let store: MediaStore
  let now: Timestamp

  /// How old work must be to count as abandoned.
  private static let abandonedSeconds = 86_400.0

  /// Looks at the work folders in `store`, at the present time by default.
  package init(catalog: Catalog, store: MediaStore, now: Timestamp? = nil) {
    (self.catalog, self.store, self.now) = (catalog, store, now ?? catalog.time)
  }

  /// Removes old folders without an unfinished job, and returns how many. Nothing in them is anyone's recording.
  /// Blocks.
  package func remove() throws(StorageError) -> Int {
    let old = try store.workFolders().filter { Self.isOld($0, now) }
    guard !old.isEmpty else { return 0 }
    // A job that was queued for days has an old ID, too.
    let unfinished = Set(try catalog.unfinishedJobs().map(\.id))
    let abandoned = old.filter { !unfinished.contains($0) }
    for id in abandoned { store.removeWorkFolder(of: id) }
    return abandoned.count
  }

  /// Whether the timestamp in an ID is a day old.
  static func isOld<Entity>(_ id: Identifier<Entity>, _ now: Timestamp) -> Bool {
    id.created + abandonedSeconds < now
  }
}
