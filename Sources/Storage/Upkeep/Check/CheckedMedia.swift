/// The media that a check compares with their catalog: in a folder or in a bucket.
///
/// Every member blocks and changes nothing. What is wrong with one file is part of a result; an error means that the
/// check can't go on, such as a store that doesn't answer.
package protocol CheckedMedia {
  /// What findings call the catalog.
  var catalogName: String { get }

  /// Whether services may change rows and files meanwhile.
  var isLive: Bool { get }

  /// Returns what findings call the bytes of an upload.
  func path(of upload: UploadID) -> String

  /// Returns the length of a file, in bytes.
  func length(of key: ObjectKey) throws(StorageError) -> FoundFile<Int64>

  /// Returns the SHA-256 of a file of `bytes` bytes, as 64 lower-case hexadecimal digits. Reads all of it.
  func sha256(of key: ObjectKey, bytes: Int64) throws(StorageError) -> FoundFile<String>

  /// Returns what `fault` says about a local file with the content of a file.
  func fault(in key: ObjectKey, _ fault: (String) -> String?) throws(StorageError) -> FoundFile<String?>

  /// Whether a recording's description is there and says the same as its row, or the recording needs none.
  func isDescribed(_ recording: Recording) throws(StorageError) -> Bool

  /// Whether the bytes that were acknowledged of an unfinished upload are there.
  func hasBytes(of upload: Upload, _ catalog: Catalog) throws(StorageError) -> Bool

  /// Looks at everything that is there and reports what no row names. `isWanted` is whether to continue.
  func audit(
    _ catalog: Catalog, _ report: inout DataCheck.Report, while isWanted: () -> Bool
  ) throws(StorageError)
}

/// What a check finds under a key.
package enum FoundFile<Content: Sendable>: Sendable {
  /// There is no file.
  case absent
  /// This one can't be read.
  case unreadable(reason: String)
  case present(Content)
}

extension FoundFile: Equatable where Content: Equatable {}
