// The media are plain files under one data directory:
//
//   DATA/lock                       held (flock) by the process that claimed the directory
//   DATA/incoming/<uuid>.part       an upload on its way in
//   DATA/uploads/<upload id>.part   what has come of an upload that may be resumed
//   DATA/recordings/<id>/<name>     a recording's files: its audio, its waveform; names are the service's own
//   DATA/jobs/<job id>/             a job's work folder
//   DATA/removed/<uuid>/            a recording's folder on its way out
//   DATA/orphaned/<id>              what nothing explains: kept until a person has looked at it
//
// No path ever holds a word from outside. What a crash can leave is one of two harmless things. A folder without a row:
// bytes are made durable before their row is inserted, so the crash came between. Such a folder bears the mark of the
// unfinished (MediaStore+Descriptions), and only for that mark does the next start remove it. A folder half removed:
// the row goes first, and in the same transaction the id is noted as removed; the folder is then renamed away before
// anything in it is removed, so nobody finds it by its id, and the next start removes the rest. A row without its file
// can't be left. Whatever else is found without a row has lost it, and is never removed: see Reconciliation.

import Glibc
import Synchronization

/// A file that was adopted: durable, under its final name.
package struct StoredFile: Sendable, Equatable {
  /// Where it is.
  package let path: String
  /// Its name inside the recording's folder.
  package let name: String
  /// Its length.
  package let bytes: Int64
  /// 64 lower-case hexadecimal digits.
  package let sha256: String
}

/// The recordings' files under one directory. Safe from any thread.
///
/// Every call that throws blocks on the disk: worker queues only, never an event loop.
package final class MediaStore: Sendable {
  /// The data directory.
  package let directory: String

  let incoming: String
  let uploads: String
  let recordings: String
  let jobs: String
  let removed: String
  let orphaned: String
  private let claimed = Mutex<Claim?>(nil)

  /// The open lock file: closing it, which the system does for a process that dies, gives the claim up.
  private final class Claim: Sendable {
    let file: FileDescriptor
    let identity: FileIdentity

    init(_ file: consuming FileDescriptor) throws(StorageError) {
      identity = try file.identity()
      self.file = file
    }
  }

  /// The store under `directory`, which is made, with its folders, where it is missing.
  package convenience init(directory: String) throws(StorageError) {
    self.init(lookingAt: directory)
    try makeFolders()
  }

  /// The store under `directory` as it is. Nothing is made or changed: folders may be missing.
  package init(lookingAt directory: String) {
    self.directory = directory
    incoming = directory + "/incoming"
    uploads = directory + "/uploads"
    recordings = directory + "/recordings"
    jobs = directory + "/jobs"
    removed = directory + "/removed"
    orphaned = directory + "/orphaned"
  }

  private func makeFolders() throws(StorageError) {
    try FileSystem.makeFolders(directory)
    FileSystem.makePrivate(directory)
    for folder in [incoming, uploads, recordings, jobs, removed, orphaned] {
      try FileSystem.makeFolder(folder)
      FileSystem.makePrivate(folder)
    }
    try FileSystem.syncFolder(directory)
  }

  /// Where the catalog is.
  package var catalogPath: String { directory + "/catalog.sqlite" }

  /// Whether any recording has a folder here. Throws where that can't be told.
  package func hasRecordings() throws(StorageError) -> Bool {
    try FileSystem.names(in: recordings).contains { RecordingID($0) != nil }
  }

  /// Keeps other processes from claiming the directory until this store goes; throws `.inUse` where one has it.
  ///
  /// A service claims before it sweeps: two on one directory would take each other's uploads for leftovers.
  /// - Parameter patience: how long to wait for another to let go. A service that is killed while it starts a child
  ///   leaves its claim with the child, until that has become another program.
  package func claim(patience: Duration = .seconds(2)) throws(StorageError) {
    let path = lockPath
    let file = try FileDescriptor(path: path, flags: O_RDWR | O_CREAT)
    let deadline = ContinuousClock.now + patience
    while try !file.lock() {
      guard ContinuousClock.now < deadline else { throw .inUse(path: directory) }
      usleep(10_000)
    }
    let claim = try Claim(file)
    claimed.withLock { $0 = claim }
    FileSystem.makePrivate(path)
  }

  private var lockPath: String { directory + "/lock" }

  /// Throws `.claimLost` where the lock file that this store has claimed is no longer the one in the directory: another
  /// service may then claim the same directory. Costs one system call; a store that has claimed nothing has lost
  /// nothing.
  package func checkClaim() throws(StorageError) {
    let claim = claimed.withLock { $0?.identity }
    guard claim == nil || claim == FileSystem.identity(of: lockPath) else { throw .claimLost(path: directory) }
  }

  /// A new file to receive an upload into.
  package func receive() throws(StorageError) -> IncomingFile {
    try checkClaim()
    return try IncomingFile(path: incoming + "/" + UUIDv7().text + ".part")
  }

  /// Where the files of a recording are, whether or not the folder exists.
  package func folder(of id: RecordingID) -> String { recordings + "/" + id.text }

  /// Where a job works, whether or not the folder exists.
  package func workFolder(of id: JobID) -> String { jobs + "/" + id.text }

  /// Makes a recording's folder, if it is not there, with the mark of the unfinished in it, and its name durable.
  /// Returns its path.
  @discardableResult
  package func makeFolder(of id: RecordingID) throws(StorageError) -> String {
    try checkClaim()
    if try FileSystem.makeFolder(folder(of: id)) {
      _ = try FileDescriptor(path: folder(of: id) + "/" + Self.marker, flags: O_WRONLY | O_CREAT)
    }
    // Even where it was there: whoever made it may not have come to this line.
    try FileSystem.syncFolder(recordings)
    return folder(of: id)
  }

  /// Makes a job's work folder, if it is not there. Returns its path.
  @discardableResult
  package func makeWorkFolder(of id: JobID) throws(StorageError) -> String {
    try FileSystem.makeFolder(workFolder(of: id))
    return workFolder(of: id)
  }

  /// Removes a job's work folder with all that is in it. What can't be removed now, the next start's sweep removes.
  package func removeWorkFolder(of id: JobID) {
    try? FileSystem.remove(workFolder(of: id))
  }

  /// Whether a recording has a file of that name. A disk that fails to answer has it.
  package func hasFile(_ name: String, of id: RecordingID) -> Bool {
    do { return try FileSystem.length(of: folder(of: id) + "/" + name) >= 0 } catch .io(_, _, let code) {
      return code != ENOENT && code != ENOTDIR
    } catch {
      return true
    }
  }

  /// Removes one file that was made of a recording, which no row names any more; what can't be removed goes with the
  /// recording. Never the recording's own file, whatever a damaged row names.
  package func remove(_ name: String, of id: RecordingID) {
    guard !name.hasPrefix("audio."), Self.isFileName(name) else { return }
    try? FileSystem.remove(finalPath(of: id, name: name))
  }

  /// Removes a recording's files. Its row must be gone already. What is not there is no error.
  ///
  /// The folder is renamed away first, so that after a crash halfway no one takes the rest for a whole recording.
  package func remove(_ id: RecordingID) throws(StorageError) {
    let away = removed + "/" + UUIDv7().text
    do {
      try FileSystem.rename(folder(of: id), to: away)
    } catch .io(_, _, ENOENT) {
      return
    }
    try FileSystem.remove(away)
  }

  /// Removes the folder of a recording that a job was to make and did not. One that describes a finished recording is
  /// kept aside instead: its row may be from an older catalog.
  package func discard(_ id: RecordingID) throws(StorageError) {
    if description(of: id) != nil { try setAside(id) } else { try remove(id) }
  }

  /// Throws where recordings' files can't be removed, which costs two calls and writes nothing.
  package func checkRemoving() throws(StorageError) {
    for folder in [recordings, removed] { try FileSystem.checkWritable(folder) }
  }

  /// Makes a file and removes it, to see that files can be made: throws what stands in the way.
  package func check() throws(StorageError) {
    try checkRemoving()
    try FileSystem.checkWritable(jobs)
    let file = try receive()
    defer { file.discard() }
    try file.append([UInt8](repeating: 0, count: 4096).span)
  }

  /// What can still be written to the disk the store is on.
  package func freeBytes() throws(StorageError) -> Int64 {
    try FileSystem.freeBytes(at: directory)
  }
}
