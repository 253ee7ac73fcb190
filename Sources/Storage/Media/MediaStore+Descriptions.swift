import Glibc

// Two small files say what a recording's folder is, so that no start has to guess:
//
//   unfinished       made with the folder, before anything else is in it; removed once the recording's row is durable.
//                    A folder with it and without a row was never acknowledged to anyone: the next start removes it.
//   recording.json   what the row says (RecordingDescription), written after each commit that changes it. A folder with
//                    it and without a row has lost its row: the next start inserts the row again.
//
// A folder with neither may hold anything. It is kept, in `orphaned/`.

extension MediaStore {
  /// The name of the file that marks a folder whose recording is not acknowledged yet.
  static let marker = "unfinished"

  /// Writes what `recording` says next to its audio, and takes the mark of the unfinished from the folder.
  ///
  /// What is there when it returns for the first time survives a power cut; a later change may be lost with the power,
  /// the description before it then remains. A recording without audio, or without a folder, is not described. Where
  /// the description can't be written, the mark goes all the same: the row is durable.
  func describe(_ recording: Recording) throws(StorageError) {
    guard recording.audioFile != nil else { return }
    let folder = folder(of: recording.id)
    var failure: StorageError?
    let (path, json) = (folder + "/" + RecordingDescription.fileName, RecordingDescription(recording).json())
    do {
      let known = try? FileSystem.contents(of: path, limit: RecordingDescription.byteLimit)
      if known != json { try FileSystem.replace(path, with: json) }
    } catch .io(_, _, ENOENT) {
      // Deleted since.
      return
    } catch {
      failure = error
    }
    try removeMark(of: recording.id)
    if let failure { throw failure }
  }

  /// What the folder of a recording says it is; nil where nothing can be read that describes this recording.
  func description(of id: RecordingID) -> RecordingDescription? {
    let path = folder(of: id) + "/" + RecordingDescription.fileName
    guard let bytes = try? FileSystem.contents(of: path, limit: RecordingDescription.byteLimit),
      let description = RecordingDescription(json: bytes), description.recording.id == id
    else { return nil }
    return description
  }

  /// Whether a recording's audio is there, as long as `recording` says.
  func hasAudio(of recording: Recording) -> Bool {
    guard let name = recording.audioFile else { return false }
    let length = try? FileSystem.length(of: folder(of: recording.id) + "/" + name)
    return length != nil && length == recording.bytes
  }

  /// The same, with the SHA-256 that `recording` says. Reads all of it.
  func hasIntactAudio(of recording: Recording) -> Bool {
    guard hasAudio(of: recording), let name = recording.audioFile,
      let file = try? FileDescriptor(path: folder(of: recording.id) + "/" + name, flags: O_RDONLY)
    else { return false }
    return (try? Self.measure(file).sha256) == recording.sha256
  }

  /// Whether the folder is marked as that of a recording that was never acknowledged. Throws `.io` where the disk
  /// doesn't answer: only a mark that was seen allows anything to be removed.
  func isUnfinished(_ id: RecordingID) throws(StorageError) -> Bool {
    switch look(at: Self.marker, of: id) {
    case .present: true
    case .absent: false
    case .unknown: throw .io(operation: "stat", path: folder(of: id) + "/" + Self.marker, errno: EIO)
    }
  }

  /// Takes the mark of the unfinished from a recording's folder, durably. Costs one system call where there is none.
  func removeMark(of id: RecordingID) throws(StorageError) {
    let folder = folder(of: id)
    if try FileSystem.removeFile(folder + "/" + Self.marker) { try FileSystem.syncFolder(folder) }
  }

  /// Removes a recording's folder if there is nothing in it but, perhaps, the mark.
  func removeFolderIfUnused(of id: RecordingID) {
    let folder = folder(of: id)
    if let names = try? FileSystem.names(in: folder), names == [Self.marker] {
      try? FileSystem.remove(folder + "/" + Self.marker)
    }
    FileSystem.removeIfEmpty(folder)
  }

  /// Whether `name` is one that a file in a recording's folder may have: not hidden, and no path.
  static func isFileName(_ name: String) -> Bool {
    !name.isEmpty && !name.hasPrefix(".") && !name.contains("/") && !name.utf8.contains(0)
  }
}
