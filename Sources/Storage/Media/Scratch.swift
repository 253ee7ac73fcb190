/// The disk for files in progress: work folders, uploads being received. Thread-safe.
///
/// `MediaStore` has it in the same folder as the recordings, so that finished files are renamed and not copied. If
/// those are in a bucket, this is a local disk that may be lost: an attempt then begins again, and an upload continues
/// after its last acknowledged bytes, which are in the bucket.
///
/// Every throwing member blocks on the disk, so call it on a worker queue, never on an event loop.
package protocol Scratch: Sendable {
  /// The folders.
  var disk: MediaStore { get }

  /// Creates a job's work folder unless it exists. Returns its path.
  @discardableResult func makeWorkFolder(of id: JobID) throws(StorageError) -> String
  /// Creates and removes a file to verify that uploads and jobs can write. Throws the error if they can't.
  func checkReceiving() throws(StorageError)
  /// Returns the number of bytes that can still be written.
  func freeBytes() throws(StorageError) -> Int64
}

extension MediaStore: Scratch {
  /// The store itself.
  package var disk: MediaStore { self }
}
