import Glibc

// Two small files identify a recording's folder, so that startup never has to guess:
//
//   unfinished       created with the folder, before any other file; removed once the recording's row is durable.
//                    A folder with it but without a row was never acknowledged: the next start removes it. The first
//                    description is written into it, and a rename makes it the description (FolderStore).
//   recording-<version>.json   the row's content (RecordingDescription), written once, after the commit that gives the
//                    row this version. Earlier ones are removed then. A folder with one but without a row has lost its
//                    row: the next start inserts the row again.
//
// A folder with neither may contain anything. It is kept, in `orphaned/`. A bucket has descriptions only, and earlier
// ones are removed by their rows of `garbage`.

/// The descriptions of recordings, beside their audio. Thread-safe; every call blocks.
package struct Descriptions: Sendable {
  private let store: any ObjectStore
  /// The folder that they are in; nil if they are in a bucket.
  private let folder: MediaStore?

  /// Describes the descriptions in a store: in a folder, or in a bucket.
  package init(_ store: any ObjectStore, in folder: MediaStore?) { (self.store, self.folder) = (store, folder) }

  /// Writes the description of a recording with audio beside it. In a folder, removes earlier ones once it survives a
  /// power failure, and removes the mark of the unfinished.
  ///
  /// A recording without a folder isn't described, nor is one there that was changed and described again meanwhile. If
  /// the description can't be written, the mark is removed nevertheless, because the row is durable.
  package func describe(_ recording: Recording) throws(StorageError) {
    guard recording.audioKey != nil else { return }
    guard let folder else { return try store.put(recording.describedJSON, as: "\(recording.descriptionKey)") }
    var failure: StorageError?
    do { try replace(with: recording) } catch .io(_, _, ENOENT) {
      // The recording was deleted meanwhile.
      return
    } catch {
      failure = error
    }
    try folder.removeMark(of: recording.id)
    if let failure { throw failure }
  }

  private func replace(with recording: Recording) throws(StorageError) {
    let (key, json) = ("\(recording.descriptionKey)", recording.describedJSON)
    let others = try keys(of: recording.id).filter { $0 != recording.descriptionKey }
    if let newest = others.first?.descriptionVersion, newest > recording.version { return }
    if (try? store.contents(of: key, limit: json.count + 1)) != json { try store.put(json, as: key) }
    for other in others { try store.delete("\(other)") }
  }

  /// Returns the version of a recording's latest description: 0 if it has none, or if finding out takes a request.
  func newest(of id: RecordingID) throws(StorageError) -> Int64 {
    try folder == nil ? 0 : keys(of: id).first?.descriptionVersion ?? 0
  }

  /// Removes the mark of the unfinished from a recording whose row is durable but that couldn't be described. Does
  /// nothing in a bucket.
  func removeMark(of id: RecordingID) throws(StorageError) { try folder?.removeMark(of: id) }

  /// Throws if another process could write to the catalog in the same folder. Does nothing in a bucket.
  func checkClaim() throws(StorageError) { try folder?.checkClaim() }

  /// Whether other processes write descriptions, too.
  var hasOtherWriters: Bool { folder.map { $0.node != nil } ?? true }

  // MARK: Reading

  /// Returns the keys of a recording's descriptions, the latest first. Costs a request in a bucket.
  package func keys(of id: RecordingID) throws(StorageError) -> [ObjectKey] {
    let keys = try store.keys(ObjectKey.descriptions(of: id), limit: .max).compactMap { key in
      ObjectKey(key).flatMap { key in key.descriptionVersion.map { (key: key, version: $0) } }
    }
    return keys.sorted { $0.version > $1.version }.map(\.key)
  }

  /// Whether a recording has a description, even one that can't be read.
  func hasAny(of id: RecordingID) throws(StorageError) -> Bool { try !keys(of: id).isEmpty }

  /// Returns a recording as its latest readable description has it (nil without one), and whether that is the latest
  /// of all. A later one that can't be read may name any file.
  package func find(_ id: RecordingID) throws(StorageError) -> (recording: Recording?, isLatest: Bool) {
    let keys = try keys(of: id)
    for key in keys {
      // If it is gone, a newer one has just taken its place.
      let bytes = try store.contents(of: "\(key)", limit: Int(Recording.descriptionLimit)) ?? []
      if let recording = Recording(describedBy: bytes), recording.descriptionKey == key {
        return (recording, key == keys[0])
      }
    }
    return (nil, keys.isEmpty)
  }
}

extension MediaStore {
  /// The name of the file that marks a folder whose recording has not been acknowledged yet.
  static let marker = "unfinished"

  /// The descriptions in the folder.
  package var descriptions: Descriptions { Descriptions(objects, in: self) }

  /// Returns a recording as its folder describes it, or nil.
  func described(_ id: RecordingID) -> Recording? { (try? descriptions.find(id))?.recording }

  /// Looks for an object. Costs one system call.
  package func look(at key: ObjectKey) -> FileLook { objects.look(at: key) }

  /// Whether a recording has a file with that name. True if the disk doesn't respond.
  package func hasFile(_ name: String, of id: RecordingID) -> Bool { look(at: ObjectKey(id, name)) != .absent }

  /// Whether a recording's audio exists with the length in `recording`.
  func hasAudio(of recording: Recording) -> Bool {
    guard let key = recording.audioKey else { return false }
    return recording.bytes.map { look(at: key) == .present(bytes: $0) } ?? false
  }

  /// Whether a recording's audio exists with the length and SHA-256 in `recording`. Reads all of it.
  func hasIntactAudio(of recording: Recording) -> Bool {
    guard hasAudio(of: recording), let key = recording.audioKey, let sha256 = recording.sha256 else { return false }
    return (try? objects.sha256(of: "\(key)", inPieces: false) { _ in true }) == sha256
  }

  /// Whether the folder is marked as that of an unacknowledged recording. Throws `.io` if the disk doesn't respond,
  /// because only a mark that was actually found permits removing anything.
  func isUnfinished(_ id: RecordingID) throws(StorageError) -> Bool {
    switch look(at: ObjectKey(id, Self.marker)) {
    case .present: true
    case .absent: false
    case .unknown: throw .io(operation: "stat", path: folder(of: id) + "/" + Self.marker, errno: EIO)
    }
  }

  /// Durably removes the mark `unfinished` from a recording's folder. Costs one system call in a folder without it.
  package func removeMark(of id: RecordingID) throws(StorageError) {
    let folder = folder(of: id)
    if try FileSystem.removeFile(folder + "/" + Self.marker) { try FileSystem.syncFolder(folder) }
  }

  /// Removes a recording's folder if it is empty or contains only the mark.
  func removeFolderIfUnused(of id: RecordingID) {
    let folder = folder(of: id)
    if let names = try? FileSystem.names(in: folder), names == [Self.marker] {
      try? FileSystem.remove(folder + "/" + Self.marker)
    }
    FileSystem.removeIfEmpty(folder)
  }

  /// Whether `name` is allowed for a file in a recording's folder: not hidden, and not a path.
  package static func isFileName(_ name: String) -> Bool {
    !name.isEmpty && !name.hasPrefix(".") && !name.utf8.contains { $0 == UInt8(ascii: "/") || $0 == 0 }
  }
}
