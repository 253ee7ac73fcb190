/// The disk for files in progress: work folders, uploads being received. Thread-safe.
///
/// `MediaStore` has it in the same folder as the recordings, so that finished files are renamed and not copied. If
/// those are in a bucket, this is a local disk that may be lost: an attempt then begins again, and an upload continues
/// after its last acknowledged bytes, which are in the bucket.
///
/// Every throwing member blocks on the disk, so call it on a worker queue, never on an event loop.
package protocol Scratch: Sendable {
  /// Creates a file for receiving an upload.
  func receive() throws(StorageError) -> IncomingFile

  /// Returns the path of an empty folder. Return it with `giveBack`.
  func takeIntakeFolder() throws(StorageError) -> String
  /// Empties a folder for the next worker. No process may use it any more.
  func giveBack(intakeFolder path: String)
  /// Removes these folders, when no worker takes in an upload any more.
  func removeIntakeFolders()

  /// Creates a job's work folder unless it exists. Returns its path.
  @discardableResult func makeWorkFolder(of id: JobID) throws(StorageError) -> String
  /// Writes a file into a job's work folder, in place of one with the same name.
  func write(_ bytes: [UInt8], toWorkFile path: String) throws(StorageError)
  /// Returns the content of a file that a job may have written; nil if there is none, or if it is longer than `limit`
  /// bytes.
  func contents(ofWorkFile path: String, limit: Int64) throws(StorageError) -> [UInt8]?
  /// Removes an attempt's files in its job's work folder, but not those of other attempts.
  func removeWork(of token: AttemptToken)
  /// Removes a job's work folder with its contents, when no attempt at the job can follow.
  func removeWorkFolder(of id: JobID)

  /// Creates and removes a file to verify that uploads and jobs can write. Throws the error if they can't.
  func checkReceiving() throws(StorageError)
  /// Returns the number of bytes that can still be written.
  func freeBytes() throws(StorageError) -> Int64
}
