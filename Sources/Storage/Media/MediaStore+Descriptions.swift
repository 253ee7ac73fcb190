import Glibc

// Two small files identify a recording's folder, so that startup never has to guess:
//
//   unfinished       created with the folder, before any other file; removed once the recording's row is durable.
//                    A folder with it but without a row was never acknowledged: the next start removes it. The first
//                    description is written into it, and a rename makes it the description: if a file is created and
//                    removed for each recording, ext4 searches longer and longer for a free inode.
//   recording.json   the row's content (RecordingDescription), written after each commit that changes it. A folder with
//                    it but without a row has lost its row: the next start inserts the row again.
//
// A folder with neither may contain anything. It is kept, in `orphaned/`.

extension MediaStore {
  /// The name of the file that marks a folder whose recording has not been acknowledged yet.
  static let marker = "unfinished"

  /// Writes a description of `recording` next to its audio, and removes the mark of the unfinished from its folder.
  ///
  /// The first description survives a power failure once this returns; a later change may be lost, leaving the previous
  /// description. A recording without audio or without a folder isn't described. If the description can't be written,
  /// the mark is removed nevertheless, because the row is durable.
  package func describe(_ recording: Recording) throws(StorageError) {
    guard recording.audioFile != nil else { return }
    let folder = folder(of: recording.id)
    var failure: StorageError?
    let (path, json) = (folder + "/" + RecordingDescription.fileName, recording.describedJSON)
    do {
      let known = try? FileSystem.contents(of: path, limit: RecordingDescription.byteLimit)
      if known != json {
        if let temporary = sharedTemporary() {
          try FileSystem.replace(path, with: json, through: temporary)
          try FileSystem.syncFolder(folder)
        } else if try !turnMark(of: recording.id, into: path, json) {
          try FileSystem.replace(path, with: json)
        }
      }
    } catch .io(_, _, ENOENT) {
      // The recording was deleted meanwhile.
      return
    } catch {
      failure = error
    }
    try removeMark(of: recording.id)
    if let failure { throw failure }
  }

  /// Returns the path of a new file of this process's own, if other processes use the store: each of them may be
  /// writing the same description.
  private func sharedTemporary() -> String? { node != nil ? incoming + "/" + UUIDv7().text + ".json" : nil }

  /// Turns the mark of the unfinished durably into the file `path`. Returns false if there is no mark.
  private func turnMark(of id: RecordingID, into path: String, _ json: [UInt8]) throws(StorageError) -> Bool {
    let mark = folder(of: id) + "/" + Self.marker
    guard case .present = look(at: ObjectKey(id, Self.marker)),
      let file = try? FileDescriptor(path: mark, flags: O_WRONLY | O_TRUNC | O_NOFOLLOW)
    else { return false }
    try file.write(json.span)
    try file.sync()
    try FileSystem.rename(mark, to: path)
    try FileSystem.syncFolder(folder(of: id))
    return true
  }

  /// Whether there is a description in a recording's folder that says the same as its row.
  func isDescribed(_ recording: Recording) -> Bool {
    let path = folder(of: recording.id) + "/" + RecordingDescription.fileName
    return (try? FileSystem.contents(of: path, limit: RecordingDescription.byteLimit)).map(recording.isDescribed)
      ?? false
  }

  /// Returns the description in a recording's folder, or nil if there is none, it can't be read, or it describes
  /// another recording.
  func description(of id: RecordingID) -> RecordingDescription? { try? readDescription(of: id) }

  /// Does the same, but throws if it can't be read, because then it may name any file.
  func readDescription(of id: RecordingID) throws(StorageError) -> RecordingDescription? {
    let path = folder(of: id) + "/" + RecordingDescription.fileName
    let bytes: [UInt8]
    do { bytes = try FileSystem.contents(of: path, limit: RecordingDescription.byteLimit) } catch {
      guard case .io(_, _, let number) = error, [ENOENT, ENOTDIR, EFBIG, EISDIR, ELOOP].contains(number) else {
        throw error
      }
      return nil
    }
    guard let description = RecordingDescription(json: bytes), description.recording.id == id else { return nil }
    return description
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
    return (try? Self.measure(file).sha256) == recording.sha256
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
