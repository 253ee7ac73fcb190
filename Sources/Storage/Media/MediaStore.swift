// The media are plain files in one data directory:
//
//   DATA/lock                       held (flock) by the process that claimed the directory
//   DATA/incoming/<uuid>.part       an upload being received
//   DATA/incoming/<uuid>.work/      the work folder of a worker that takes in a short upload
//   DATA/uploads/<upload id>.part   the bytes received so far of a resumable upload
//   DATA/recordings/<id>/<name>     a recording's files: its audio, its waveform; named by the service
//   DATA/jobs/<job id>/             a job's work folder
//   DATA/removed/<uuid>/            a recording's folder being removed
//   DATA/orphaned/<id>              unexplained files, kept until someone has inspected them
//   DATA/reserve                    room for deletions on a full disk (MediaStore+Reserve)
//   DATA/unfinished-move            says that a move is filling the folder (MoveTarget)
//
// A folder that several machines share has all of these but the lock and the reserve, and besides:
//
//   MEDIA/shared-media              says that it is no data folder: its catalog is in PostgreSQL
//   MEDIA/nodes/<node>.lock         held by the process with this name
//   MEDIA/incoming/<node>/          its uploads being received
//
// A node whose media are in a bucket has a disk of its own, with the lock, incoming/, uploads/ and jobs/ only
// (MediaStore+Scratch).
//
// No path contains text from outside. A crash can leave one of two harmless things. First, a folder without a row, if
// the crash occurs between making the bytes durable and inserting the row. Such a folder carries the mark of the
// unfinished (Descriptions), and only because of that mark does the next start remove it. Second, a partially removed
// folder: the row is deleted first, and its ID recorded as removed in the same transaction; the folder is then renamed
// before its contents are removed, so it can no longer be found by its ID, and the next start removes the rest. A row
// without its file can't occur. Anything else found without a row has lost it, and is never removed: see
// Reconciliation.

import Glibc
import Synchronization
import Terms

/// The recordings' files in one directory. Thread-safe.
///
/// Every throwing call blocks on the disk, so make it on a worker queue, never on an event loop.
package final class MediaStore: Sendable {
  /// The data directory.
  package let directory: String
  /// The name of this process among those that share the directory, which may be on another machine's disk; nil if this
  /// process has it for itself.
  package let node: String?
  /// Whether recordings are in the directory, too, and not only files in progress.
  let hasMedia: Bool

  let incoming: String
  let uploads: String
  let recordings: String
  let jobs: String
  let removed: String
  let orphaned: String
  private let lockPath: String
  private let claimed = Mutex<Claim?>(nil)
  let spareFolders = Mutex<[String]>([])
  private let recordingsSync: GroupedSync
  /// Deletions that need the reserve's room now.
  let reserveUsers = Atomic(0)

  /// The open lock file. Closing it, which the system does when the process dies, releases the claim.
  private final class Claim: Sendable {
    let file: FileDescriptor
    let identity: FileIdentity

    init(_ file: consuming FileDescriptor) throws(StorageError) {
      identity = try file.identity()
      self.file = file
    }
  }

  /// Opens the store in `directory`, creating it and its folders if they are missing.
  package convenience init(directory: String) throws(StorageError) {
    self.init(lookingAt: directory)
    try makeFolders()
  }

  /// Opens the store in `directory` without creating or changing anything; folders may be missing.
  package convenience init(lookingAt directory: String) {
    self.init(in: directory, node: nil)
  }

  init(in directory: String, node: String?, hasMedia: Bool = true) {
    (self.directory, self.node, self.hasMedia) = (directory, node, hasMedia)
    incoming = directory + "/incoming" + (node.map { "/" + $0 } ?? "")
    lockPath = node.map { "\(directory)/nodes/\($0).lock" } ?? directory + "/lock"
    uploads = directory + "/uploads"
    recordings = directory + "/recordings"
    jobs = directory + "/jobs"
    removed = directory + "/removed"
    orphaned = directory + "/orphaned"
    recordingsSync = GroupedSync(path: recordings)
  }

  /// Opens the store in a folder that several machines share, as one of them, and claims the name of this node. Creates
  /// missing folders, and removes the unfinished uploads of an earlier process with this name.
  ///
  /// Throws `.nodeInUse` if another process has the name, and `.inUse` if the folder is a data folder.
  package convenience init(shared directory: String, node: String) throws(StorageError) {
    self.init(in: directory, node: node)
    // What makes a data folder one.
    if FileSystem.identity(of: catalogPath) != nil { throw .inUse(path: directory) }
    try FileSystem.makeFolders(directory)
    for folder in [directory + "/nodes", directory + "/incoming"] { try FileSystem.makeFolder(folder) }
    try makeFolders()
    if !isShared { try FileSystem.replace(directory + "/" + Self.sharedMarker, with: Array(Self.sharedText.utf8)) }
    do throws(StorageError) { try claim() } catch {
      if case .inUse = error { throw .nodeInUse(path: lockPath) }
      throw error
    }
    var report = SweepReport()
    removeIncoming(&report)
  }

  private static let sharedMarker = "shared-media"
  private static let sharedText = """
    This folder has the media of several machines. Its catalog is in PostgreSQL, and the services that use both are
    started with --catalog and --media. It isn't a data folder: see docs/cluster.md for backups.

    """

  /// Returns the ID of a folder that machines share, which its first user has made, and whether that was just now.
  ///
  /// The catalog has it too, so that the folder isn't mistaken for another one, such as the one under a mount point.
  package func sharedID() throws(StorageError) -> (id: String, isNew: Bool) {
    let path = directory + "/media-id"
    var isNew = false
    if FileSystem.identity(of: path) == nil {
      let own = "\(incoming)/\(UUIDv7().text).id"
      try FileSystem.replace(own, with: MediaID().content)
      // Of several first users, one gives the file its name.
      do throws(StorageError) {
        try FileSystem.link(own, to: path)
        isNew = true
      } catch .io(_, _, EEXIST) {}
      try FileSystem.remove(own)
      try FileSystem.syncFolder(directory)
    }
    guard let id = try knownID() else { throw .otherMedia(path: directory) }
    return (id, isNew)
  }

  /// Returns the same ID without making one; nil if there is none. Throws `.otherMedia` if it can't be one.
  func knownID() throws(StorageError) -> String? {
    let content: [UInt8]
    do { content = try FileSystem.contents(of: directory + "/media-id", limit: 100) } catch {
      guard case .io(_, _, let number) = error, [ENOENT, ENOTDIR].contains(number) else { throw error }
      return nil
    }
    guard let id = MediaID(content) else { throw .otherMedia(path: directory) }
    return id.text
  }

  /// Whether several machines share the folder, so that it isn't a data folder.
  package var isShared: Bool { FileSystem.identity(of: directory + "/" + Self.sharedMarker) != nil }

  /// Throws `.sharedMedia` if the folder isn't a data folder, and `.unfinishedMove` if it isn't complete yet.
  package func checkIsDataFolder() throws(StorageError) {
    guard !isShared else { throw .sharedMedia(path: directory) }
    if let move = try unfinishedMove() { throw .unfinishedMove(path: directory, from: move.source) }
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

  /// The name of the file with the secret that signs tokens, if the service has made one.
  package static let tokenSecret = "token-secret"

  /// The path of the catalog.
  package var catalogPath: String { directory + "/catalog.sqlite" }

  /// Whether any recording has a folder here. Throws if that can't be determined.
  package func hasRecordings() throws(StorageError) -> Bool {
    try FileSystem.names(in: recordings).contains { RecordingID($0) != nil }
  }

  /// Prevents other processes from claiming the directory until this store is destroyed. Throws `.inUse` if another has
  /// it.
  ///
  /// A service claims the directory before it sweeps, because two services on one directory would remove each other's
  /// uploads as leftovers.
  /// - Parameter patience: how long to wait for another process to release it, in seconds. If a service is killed while
  ///   starting a child, the child has the claim until it has executed the other program.
  package func claim(patience: Double = 2, clock: Clock = .system) throws(StorageError) {
    let path = lockPath
    let file = try FileDescriptor(path: path, flags: O_RDWR | O_CREAT)
    let start = clock.now
    while try !file.lock() {
      // Another process is about to end.
      guard clock.seconds(since: start) < patience else { throw .inUse(path: directory) }
      clock.pause(0.01)
    }
    let claim = try Claim(file)
    claimed.withLock { $0 = claim }
    FileSystem.makePrivate(path)
  }

  /// Throws `.claimLost` if the lock file in the directory is no longer the one that this store claimed, so that
  /// another service could claim the directory too. Costs one system call. Does nothing if this store has claimed
  /// nothing.
  package func checkClaim() throws(StorageError) {
    let claim = claimed.withLock { $0?.identity }
    guard claim == nil || claim == FileSystem.identity(of: lockPath) else { throw .claimLost(path: directory) }
  }

  /// Creates a file for receiving an upload.
  package func receive() throws(StorageError) -> IncomingFile {
    try checkClaim()
    return try IncomingFile(path: incoming + "/" + UUIDv7().text + ".part")
  }

  /// Returns the folder of a recording's files, whether or not it exists.
  func folder(of id: RecordingID) -> String { recordings + "/" + id.text }

  /// Returns the work folder of a job, whether or not it exists.
  package func workFolder(of id: JobID) -> String { jobs + "/" + id.text }

  /// Creates a recording's folder, with the mark of the unfinished, unless it exists. Makes its name durable and
  /// returns its path.
  @discardableResult
  func makeFolder(of id: RecordingID) throws(StorageError) -> String {
    try checkClaim()
    if try FileSystem.makeFolder(folder(of: id)) {
      _ = try FileDescriptor(path: folder(of: id) + "/" + Self.marker, flags: O_WRONLY | O_CREAT)
    }
    // Even if it existed: its creator may not have reached this line.
    try recordingsSync.run()
    return folder(of: id)
  }

  /// Creates a job's work folder unless it exists. Returns its path.
  @discardableResult
  package func makeWorkFolder(of id: JobID) throws(StorageError) -> String {
    try FileSystem.makeFolder(workFolder(of: id))
    return workFolder(of: id)
  }

  /// Writes a file into a job's work folder, in place of one with the same name.
  package func write(_ bytes: [UInt8], toWorkFile path: String) throws(StorageError) {
    try FileSystem.replace(path, with: bytes)
  }

  /// Returns the file that an attempt writes its waveform to; nil if each node has its own disk and the job isn't on
  /// this one: then only its progress is known here, and the node that writes it answers for this one. The file may not
  /// exist yet, or may have become an object meanwhile.
  ///
  /// Costs the making of a string in a folder of recordings.
  package func growingWaveform(of token: AttemptToken) -> LocalFile? {
    let folder = workFolder(of: token.job)
    guard hasMedia || FileSystem.isFolder(folder) else { return nil }
    return LocalFile(path: "\(folder)/\(token.workName("pyramid"))")
  }

  func path(of key: ObjectKey) -> String { "\(recordings)/\(key.recording.text)/\(key.name)" }

  /// Returns the content of a file that a job may have written; nil for a missing file, or one of more than `limit`
  /// bytes.
  package func contents(ofWorkFile path: String, limit: Int64) throws(StorageError) -> [UInt8]? {
    do {
      // A decoder that was taken over may have made something else than a file.
      return try FileSystem.contents(of: path, limit: limit, flags: O_NOFOLLOW | O_NONBLOCK)
    } catch .io(_, _, let number) where [ENOENT, ELOOP, EFBIG].contains(number) {
      return nil
    }
  }

  /// Removes an attempt's files in its job's work folder, but not those of other attempts, which may be working, and
  /// with `removesFolder` the folder, too, if it's empty then. If this fails, the end of the job or the next start's
  /// sweep removes them.
  package func removeWork(of token: AttemptToken, removesFolder: Bool = false) {
    let folder = workFolder(of: token.job)
    for name in (try? FileSystem.names(in: folder)) ?? [] where name.hasPrefix(token.shortName + ".") {
      try? FileSystem.remove(folder + "/" + name)
    }
    if removesFolder { FileSystem.removeIfEmpty(folder) }
  }

  /// Returns the names of the files in a recording's folder; none if there is no folder.
  func fileNames(of id: RecordingID) throws(StorageError) -> [String] {
    do { return try FileSystem.names(in: folder(of: id)) } catch .io(_, _, let number)
      where [ENOENT, ENOTDIR].contains(number)
    { return [] }
  }

  /// Removes a job's work folder with its contents, when no attempt at the job can follow. If this fails, the next
  /// start's sweep removes it.
  package func removeWorkFolder(of id: JobID) {
    try? FileSystem.remove(workFolder(of: id))
  }

  /// Removes a recording's files, after its row was deleted. Missing files aren't an error.
  ///
  /// The folder is renamed first, so that after a crash its remainder can't be taken for a complete recording.
  package func remove(_ id: RecordingID) throws(StorageError) {
    let away = removed + "/" + UUIDv7().text
    do {
      try FileSystem.rename(folder(of: id), to: away)
    } catch .io(_, _, ENOENT) {
      return
    }
    try FileSystem.remove(away)
    keepReserve()
  }

  /// Creates and removes a file to verify that the disk is writable. Throws the error if it isn't.
  package func check() throws(StorageError) {
    try checkRemoving()
    try checkReceiving()
  }

  /// Creates and removes a file to verify that uploads and jobs can write. Throws the error if they can't.
  package func checkReceiving() throws(StorageError) {
    try FileSystem.checkWritable(jobs)
    let file = try receive()
    defer { file.discard() }
    try file.append([UInt8](repeating: 0, count: 4096).span)
  }

  /// Returns the number of bytes that can still be written to the store's disk.
  package func freeBytes() throws(StorageError) -> Int64 {
    try FileSystem.freeBytes(at: directory)
  }
}
