import Glibc

// Two small files identify a recording's folder, so that startup never has to guess:
//
//   unfinished       created with the folder, before any other file; removed once the recording's row is durable.
//                    A folder with it but without a row was never acknowledged: the next start removes it. The first
//                    description is written into it, and a rename makes it the description: if a file is created and
//                    removed for each recording, ext4 searches longer and longer for a free inode.
//   recording-<version>.json   the row's content (RecordingDescription), written once, after the commit that gives the
//                    row this version. Earlier ones are removed then. A folder with one but without a row has lost its
//                    row: the next start inserts the row again.
//
// A folder with neither may contain anything. It is kept, in `orphaned/`.

extension MediaStore {
  /// The name of the file that marks a folder whose recording has not been acknowledged yet.
  static let marker = "unfinished"

  /// Writes the description of `recording` next to its audio, removes earlier ones once it survives a power failure,
  /// and removes the mark of the unfinished from the folder.
  ///
  /// A recording without audio or without a folder isn't described, nor is one that was changed and described again
  /// meanwhile. If the description can't be written, the mark is removed nevertheless, because the row is durable.
  package func describe(_ recording: Recording) throws(StorageError) {
    guard recording.audioFile != nil else { return }
    var failure: StorageError?
    do { try write(descriptionOf: recording) } catch .io(_, _, ENOENT) {
      // The recording was deleted meanwhile.
      return
    } catch {
      failure = error
    }
    try removeMark(of: recording.id)
    if let failure { throw failure }
  }

  private func write(descriptionOf recording: Recording) throws(StorageError) {
    let (key, json) = (recording.descriptionKey, recording.describedJSON)
    let others = try descriptions(of: recording.id).filter { $0 != key }
    if let newest = others.first?.descriptionVersion, newest > recording.version { return }
    if (try? FileSystem.contents(of: path(of: key), limit: RecordingDescription.byteLimit)) != json,
      try !turnMark(of: recording.id, into: path(of: key), json)
    {
      try FileSystem.replace(path(of: key), with: json, through: temporary(for: key))
      try FileSystem.syncFolder(folder(of: recording.id))
    }
    for other in others { try removeFile(other.name, of: recording.id) }
  }

  /// Returns the keys of the descriptions in a recording's folder, the latest first; none if there is no folder.
  private func descriptions(of id: RecordingID) throws(StorageError) -> [ObjectKey] {
    let keys = try fileNames(of: id).compactMap { name in
      let key = ObjectKey(id, name)
      return key.descriptionVersion.map { (key: key, version: $0) }
    }
    return keys.sorted { $0.version > $1.version }.map(\.key)
  }

  /// Returns the version of the latest description in a recording's folder; 0 if there is none.
  package func newestDescription(of id: RecordingID) throws(StorageError) -> Int64 {
    try descriptions(of: id).first?.descriptionVersion ?? 0
  }

  /// Returns the path of the file that becomes a description. It is this process's own if other processes use the
  /// store: each of them may be writing the same description.
  private func temporary(for key: ObjectKey) -> String {
    node != nil ? incoming + "/" + UUIDv7().text + ".json" : path(of: key) + ".new"
  }

  /// Turns the mark of the unfinished durably into the file `path`. Returns false if there is no mark.
  private func turnMark(of id: RecordingID, into path: String, _ json: [UInt8]) throws(StorageError) -> Bool {
    let mark = folder(of: id) + "/" + Self.marker
    guard node == nil, case .present = look(at: ObjectKey(id, Self.marker)),
      let file = try? FileDescriptor(path: mark, flags: O_WRONLY | O_TRUNC | O_NOFOLLOW)
    else { return false }
    try file.write(json.span)
    try file.sync()
    try FileSystem.rename(mark, to: path)
    try FileSystem.syncFolder(folder(of: id))
    return true
  }

  /// Returns the latest description in a recording's folder that can be read and is of this recording, or nil.
  func description(of id: RecordingID) -> RecordingDescription? { try? readDescription(of: id) }

  /// Returns the latest description, like `description`, but throws if one can't be read, because then it may name any
  /// file.
  func readDescription(of id: RecordingID) throws(StorageError) -> RecordingDescription? {
    for key in try descriptions(of: id) {
      let bytes: [UInt8]
      do { bytes = try FileSystem.contents(of: path(of: key), limit: RecordingDescription.byteLimit) } catch {
        guard case .io(_, _, let number) = error, [ENOENT, ENOTDIR, EFBIG, EISDIR, ELOOP].contains(number) else {
          throw error
        }
        continue
      }
      if let description = RecordingDescription(json: bytes), description.recording.id == id,
        description.recording.version == key.descriptionVersion
      {
        return description
      }
    }
    return nil
  }

  /// Whether a recording's audio exists with the length in `recording`.
  func hasAudio(of recording: Recording) -> Bool {
    guard let name = recording.audioFile else { return false }
    let length = try? FileSystem.length(of: folder(of: recording.id) + "/" + name)
    return length != nil && length == recording.bytes
  }

  /// Whether a recording's audio exists with the length and SHA-256 in `recording`. Reads all of it.
  func hasIntactAudio(of recording: Recording) -> Bool {
    guard hasAudio(of: recording), let name = recording.audioFile,
      let file = try? FileDescriptor(path: folder(of: recording.id) + "/" + name, flags: O_RDONLY)
    else { return false }
    return (try? file.digest().sha256) == recording.sha256
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

  /// Durably removes the mark of the unfinished from a recording's folder. Costs one system call if there is none.
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
