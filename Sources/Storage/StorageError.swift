import GRDB
import Glibc

/// What can go wrong in keeping recordings, as facts; words for people are made elsewhere.
package enum StorageError: Error, Equatable, Sendable {
  /// The disk, or the quota on it, has no room left. The same call may succeed later.
  case diskFull

  /// A call on a file failed: `operation` is the call ("rename"), `errno` its code.
  case io(operation: String, path: String, errno: Int32)

  /// SQLite refused: its extended result code and its own words.
  case database(code: Int32, message: String)

  /// The catalogue was written by a newer version of the program than this one.
  case newerSchema(path: String)

  /// The catalog can't be read: it is damaged, cut short or no catalog. `detail` is SQLite's own finding.
  case damagedCatalog(path: String, detail: String)

  /// The catalog is missing or empty, yet there are recordings beside it.
  case lostCatalog(path: String)

  /// The catalog's file was removed or replaced while it was open.
  case catalogReplaced(path: String)

  /// Another process has claimed the data directory.
  case inUse(path: String)

  /// The lock file of the data directory was removed or replaced, so that another process may claim it.
  case claimLost(path: String)

  /// A job was to be inserted whose source is not (or no longer) in the catalogue.
  case noSuchRecording(RecordingID)

  /// An upload that was to go on or to end is not in the catalogue, or has become a recording already.
  case noSuchUpload(UploadID)

  /// As many uploads are unfinished as may be.
  case tooManyUploads(limit: Int)
  /// As many uploads of the same client are unfinished as may be.
  case tooManyUploadsOfClient(limit: Int)

  /// A change that was meant for another version of a row than the one that is there.
  case changedMeanwhile

  /// The caller canceled the work.
  case cancelled

  /// A stored value that no version of this program writes.
  case corrupt(column: String, value: String)

  /// The error of a failed system call, with "no room" told apart.
  ///
  /// A write that runs into a quota says EDQUOT, one that makes a file longer than the file system or RLIMIT_FSIZE
  /// allows EFBIG; to the client it is the same disk that has no room.
  init(errno code: Int32, _ operation: String, _ path: String) {
    self = [ENOSPC, EDQUOT, EFBIG].contains(code) ? .diskFull : .io(operation: operation, path: path, errno: code)
  }

  /// What GRDB threw, as one of ours.
  init(_ error: any Error) {
    switch error {
    case let error as StorageError:
      self = error
    case let error as DatabaseError where error.resultCode == .SQLITE_FULL:
      self = .diskFull
    case let error as DatabaseError where [.SQLITE_CORRUPT, .SQLITE_NOTADB].contains(error.resultCode):
      self = .damagedCatalog(path: "", detail: error.message ?? "")
    case let error as DatabaseError:
      self = .database(code: error.extendedResultCode.rawValue, message: error.message ?? "")
    default:
      self = .database(code: ResultCode.SQLITE_ERROR.rawValue, message: String(describing: error))
    }
  }
}
