import Glibc

// How a resumable upload becomes part of a recording. Its bytes were acknowledged piece by piece, so a crash must not
// lose any, nor leave two recordings:
//
//   1. fsync the part; make the recording's folder, marked as unfinished, and fsync its parent
//   2. link the part into the recording's folder under its final name, and fsync that folder
//   3. in one transaction, write the rows of the recording and its jobs, and the recording into the upload's row
//   4. describe the recording in its folder, which removes the mark; unlink the part
//
// If several processes share the catalog, each that takes an upload over begins a file of its own, named by its number
// as a writer, so that a late write of an earlier one changes nothing that counts. At the end, the files are copied
// into one.
//
// Before step 3 the part still exists under its own name, and the next start removes the marked folder, so the upload
// can be completed again. After step 3, the next start removes the part, which is only a second name for the
// recording's file.

extension MediaStore: UploadSpool {
  /// Creates the part file of an upload that is about to get its row: a row without one would look as if its bytes were
  /// lost.
  package func prepare(_ id: UploadID) throws(StorageError) { _ = try makePart(of: id) }

  /// Creates the part file of an upload, which must not exist, and makes its name durable.
  package func makePart(of id: UploadID) throws(StorageError) -> UploadPart {
    try checkClaim()
    let part = try UploadPart(path: path(ofPart: id), flags: O_CREAT | O_EXCL)
    do {
      try FileSystem.syncFolder(uploads)
    } catch {
      removePart(of: id)
      throw error
    }
    return part
  }

  /// Opens the part file of an upload; returns nil if it doesn't exist.
  package func openPart(of id: UploadID) throws(StorageError) -> UploadPart? {
    do {
      return try UploadPart(path: path(ofPart: id), flags: 0)
    } catch .io(_, _, ENOENT) {
      return nil
    }
  }

  /// Opens what earlier writers have received, up to `offset`, and begins the file of the last of `segments`.
  ///
  /// Returns nil if bytes are missing.
  package func begin(_ segments: [UploadSegment], at offset: Int64) throws(StorageError) -> (any UploadBytes)? {
    guard let own = segments.last, own.start == offset, try hasBytes(of: segments, upTo: offset) else { return nil }
    let earlier = segments.counting(to: offset).dropLast().map { (path: path(of: $0.segment), count: $0.count) }
    try checkClaim()
    let part = try UploadPart(path: path(of: own), flags: O_CREAT | O_EXCL)
    try FileSystem.syncFolder(uploads)
    return UploadFiles(part, after: earlier, wholePath: "\(uploads)/\(own.upload)-\(own.writer).whole")
  }

  /// Whether the files of an upload's segments have all bytes before `offset`.
  func hasBytes(of segments: [UploadSegment], upTo offset: Int64) throws(StorageError) -> Bool {
    for (segment, count) in segments.counting(to: offset) where count > 0 {
      do { guard try FileSystem.length(of: path(of: segment)) >= count else { return false } } catch .io(_, _, ENOENT) {
        return false
      }
    }
    return true
  }

  private func path(of segment: UploadSegment) -> String { "\(uploads)/\(Self.fileName(of: segment))" }

  /// The name of the file with a writer's bytes of an upload.
  static func fileName(of segment: UploadSegment) -> String {
    segment.writer == 0 ? "\(segment.upload).part" : "\(segment.upload)-\(segment.writer).part"
  }

  /// Returns the length of the part file of an upload, or nil if it doesn't exist.
  package func lengthOfPart(of id: UploadID) throws(StorageError) -> Int64? {
    do { return try FileSystem.length(of: path(ofPart: id)) } catch .io(_, _, ENOENT) { return nil }
  }

  /// Removes the part file of an upload. If this fails, the next start's sweep removes it.
  package func removePart(of id: UploadID) {
    try? FileSystem.remove(path(ofPart: id))
    keepReserve()
  }

  /// Removes the part file of an upload if it is empty. Returns whether it was.
  func removeEmptyPart(of id: UploadID) throws(StorageError) -> Bool {
    guard try lengthOfPart(of: id) == 0 else { return false }
    return try FileSystem.removeFile(path(ofPart: id))
  }

  /// Removes all files of an upload that had several writers.
  package func removeParts(of id: UploadID) {
    removePart(of: id)
    for name in (try? FileSystem.names(in: uploads)) ?? [] where name.hasPrefix("\(id)-") {
      try? FileSystem.remove(uploads + "/" + name)
    }
  }

  func path(ofPart id: UploadID) -> String { uploads + "/" + id.text + ".part" }
}
