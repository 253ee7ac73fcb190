import S3Storage
import Storage

/// Where the recordings' files and the files in progress are: in a folder, or in a bucket and on this node's own disk.
struct MediaPlaces: Sendable {
  let blobs: Blobs
  let scratch: Scratch
  let spool: any UploadSpool
  /// The folder with everything; nil with a bucket.
  let folder: MediaStore?
  /// The media in a bucket; nil without.
  let bucket: S3Media?
  /// The disk for files in progress.
  private let disk: MediaStore

  /// Everything in one folder. `objects` and `scratch` replace what jobs and handlers see of it, for tests.
  init(_ store: MediaStore, _ catalog: Catalog, objects: (any ObjectStore)? = nil, scratch: Scratch? = nil) {
    blobs = Blobs(objects ?? store.objects, in: store, of: catalog)
    self.scratch = scratch ?? Scratch(store)
    (spool, folder, bucket, disk) = (store, store, nil, store)
  }

  /// A bucket and a disk.
  init(_ media: S3Media) {
    (blobs, scratch, spool) = (media.blobs, media.scratch, media.spool)
    (folder, bucket, disk) = (nil, media, media.disk)
  }

  /// Whether reading a file may wait for another machine.
  var isRemote: Bool { folder.map { $0.node != nil } ?? true }

  /// Number of folders and uploads that were set aside because nothing explains them.
  var orphanCount: Int { folder?.orphanCount() ?? 0 }

  /// Takes in that recordings were deleted. Doesn't block.
  func forget(_ deleted: [RecordingID]) {
    guard let bucket, !deleted.isEmpty else { return }
    bucket.forget(deleted)
  }

  /// Makes what waits for a store fail soon, because the process is about to end. Doesn't block.
  func endCalls() { bucket?.endCalls() }

  /// Throws if uploads and jobs can't write files. Blocks.
  func checkDisk() throws(StorageError) {
    try disk.checkClaim()
    if let folder { try folder.check() } else { try scratch.checkReceiving() }
  }
}
