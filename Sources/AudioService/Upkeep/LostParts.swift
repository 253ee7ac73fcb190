import Storage

/// Holds unfinished uploads against their files, at the start. No crash takes a byte that a row counts: this is for
/// disks that were repaired, restored from a backup, or tidied by hand.
///
/// A row whose file is gone goes too: its client is told 404 and begins anew, and it takes no place among those that
/// may be unfinished. Where the file is shorter, the row says so before the first client asks; a row that told more
/// would count bytes that come later as durable before they are.
struct LostParts {
  /// Uploads that have lost all their bytes, and that have lost some.
  struct Report: Equatable {
    var gone = 0
    var short = 0
  }

  let catalog: Catalog
  let store: MediaStore

  /// What can't be looked at stays as it is. Blocks.
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
