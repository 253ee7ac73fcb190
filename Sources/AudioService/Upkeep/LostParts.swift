import Storage

/// Compares unfinished uploads with their files at the start. A crash never loses a byte that a row counts; this is for
/// disks that were repaired, restored from a backup, or cleaned up by hand.
///
/// A row whose file is gone is deleted: its client gets 404 and starts over, and the row no longer counts toward the
/// limit of unfinished uploads. If the file is shorter than its row says, the row is corrected before the first
/// request. Otherwise, the row would count bytes that arrive later as durable before they are.
struct LostParts {
  /// The number of uploads that lost all their bytes, and of those that lost some.
  struct Report: Equatable {
    var gone = 0
    var short = 0
  }

  let catalog: Catalog
  let store: MediaStore

  /// Corrects the rows of unfinished uploads. Rows whose files can't be checked stay as they are. Blocks.
  func settle() throws(StorageError) -> Report {
    var report = Report()
    for upload in try catalog.unfinishedUploads() {
      guard let length = try store.lengthOfPart(of: upload.id) else {
        try catalog.deleteUpload(upload.id)
        report.gone += 1
        continue
      }
      guard length < upload.offset else { continue }
      try catalog.advance(upload.id, to: length, expiresAt: upload.expiresAt)
      report.short += 1
    }
    return report
  }
}
