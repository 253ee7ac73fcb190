import Glibc

/// Errors in storing recordings. The cases carry facts; the text is added elsewhere.
package enum StorageError: Error, Equatable, Sendable {
  /// The disk or its quota is full. The same call may succeed later.
  case diskFull

  /// The store of objects is full, or its quota. The same call may succeed later.
  case storeFull

  /// A file operation failed: `operation` is the system call ("rename") and `errno` its error.
  case io(operation: String, path: String, errno: Int32)

  /// SQLite failed with this extended result code and message.
  case database(code: Int32, message: String)

  /// A database server refused a statement, with this SQLSTATE and message.
  case server(state: String, message: String)

  /// Other writers were in the way for too long: locks weren't released, or each try of a transaction failed because of
  /// them. Nothing was changed, and the same call may succeed later.
  case busy

  /// The database server can't be reached or ended the connection, and nothing was changed. `detail` has no secrets.
  case unreachable(detail: String)

  /// A store of objects can't be reached or doesn't answer. It may carry out what it was asked later. `detail` has no
  /// secrets.
  case storeUnreachable(detail: String)

  /// The connection was lost while a transaction was being committed, and the server couldn't be asked afterward
  /// whether it was.
  case outcomeUnknown

  /// A store of objects refused a request, and will refuse it again, or its answer breaks the protocol. `detail` has no
  /// secrets.
  case objectStore(detail: String)

  /// An object in a store isn't the one that was put there, each time it is fetched.
  case damagedObject(key: String)

  /// A row was to name an object more than a day after it was announced, so it may have been removed. The same work may
  /// succeed again.
  case objectMayBeGone(key: String)

  /// The catalog was written by a newer version of the program than this one.
  case newerSchema(path: String)

  /// The catalog was written by a version of the program from before its first release.
  case unreleasedSchema(path: String)

  /// The catalog can't be read: it is damaged, truncated, or not a catalog. `detail` is SQLite's finding.
  case damagedCatalog(path: String, detail: String)

  /// The catalog is missing or empty although there are recordings.
  case lostCatalog(path: String)

  /// The catalog's file was removed or replaced while it was open.
  case catalogReplaced(path: String)

  /// Another process has claimed the data directory.
  case inUse(path: String)

  /// The folder has the media of several machines whose catalog is in PostgreSQL, so it isn't a data folder.
  case sharedMedia(path: String)

  /// The folder isn't the one whose media the catalog describes. Its own disk may not be mounted there.
  case otherMedia(path: String)

  /// A move from another place hasn't ended, so no service can use the folder `path`, or the catalog if it is nil.
  /// `from` is the source, if it is known.
  case unfinishedMove(path: String?, from: String?)

  /// Something was to be moved to a place that has something already.
  case notEmpty(path: String)

  /// Another move into the same place has begun meanwhile.
  case otherMove

  /// What was moved isn't what its old place has now: somebody has changed that meanwhile.
  case sourceChanged

  /// Another process on this or another machine has the name of this node. `path` is its lock.
  case nodeInUse(path: String)

  /// The lock file of the data directory was removed or replaced, so that another process could claim the directory.
  case claimLost(path: String)

  /// A job was to be inserted whose source is not (or no longer) in the catalog.
  case noSuchRecording(RecordingID)

  /// An upload that was to go on or to end is not in the catalog, or has become a recording already.
  case noSuchUpload(UploadID)

  /// Another process receives the upload now.
  case uploadTakenOver(UploadID)

  /// The limit on unfinished uploads is reached.
  case tooManyUploads(limit: Int)
  /// The client's limit on unfinished uploads is reached.
  case tooManyUploadsOfClient(limit: Int)

  /// A tenant would have more than it may; `name` names the limit.
  case limitReached(_ name: String, limit: Int64)

  /// The nodes together would have more queued and running jobs, of all clients, than they may.
  case queueFull(limit: Int)

  /// The token was for one upload, which has been made.
  case tokenIsSpent

  /// The answer to a request couldn't be stored, because another process carries it out under the same key by now.
  case keyIsLost

  /// A recording has as many tracks of labels as it may have.
  case tooManyLabelTracks(limit: Int)
  /// There are as many noise profiles as there may be.
  case tooManyNoiseProfiles(limit: Int)

  /// The row to be changed has changed in the meantime.
  case changedMeanwhile

  /// The caller canceled the work.
  case cancelled

  /// The stored value is one that no version of this program writes.
  case corrupt(column: String, value: String)

  /// Whether an error leaves open if a transaction was committed, or still will be: its commit may be waiting for a
  /// standby. What it names must be kept.
  package static func isUncertain(_ error: any Error) -> Bool {
    if case .outcomeUnknown? = error as? StorageError { return true }
    return false
  }

  /// Whether a store of objects can't do now what it may do later.
  package var isAboutStore: Bool {
    switch self {
    case .storeUnreachable, .storeFull: true
    default: false
    }
  }

  /// Converts the error of a failed system call, separating the lack of room.
  ///
  /// A write that exceeds a quota reports EDQUOT, and one that exceeds the file size limit of the file system or
  /// RLIMIT_FSIZE reports EFBIG; to a client, all of these mean that the disk is full.
  package init(errno code: Int32, _ operation: String, _ path: String) {
    self = [ENOSPC, EDQUOT, EFBIG].contains(code) ? .diskFull : .io(operation: operation, path: path, errno: code)
  }
}
