import HTTP
import Jobs
import Storage
import Synchronization

/// A long object that this node doesn't have, as the content of a response: fetched in pieces, as fast as the client
/// reads them, so that the first ones don't wait for the rest.
struct FetchedObject: Sendable {
  let key: ObjectKey
  /// In bytes.
  let length: Int64
  let blobs: any Blobs
  let work: WorkQueue

  /// The length of a piece: long enough that the requests take little of the time.
  private static let pieceBytes: Int64 = 1 << 20

  /// Returns the bytes in `range`. Throws while they are sent if the object is gone.
  func body(_ range: Range<Int64>) -> ResponseBody {
    let place = Mutex(range.lowerBound)
    return .stream(length: Int64(range.count)) {
      let from = place.withLock { $0 }
      guard from < range.upperBound else { return nil }
      let wanted = from..<min(from + Self.pieceBytes, range.upperBound)
      let piece = try await work.run { () throws(StorageError) in try blobs.read(key, wanted) }
      guard let piece, piece.count == wanted.count else { throw ServiceError.audioMissing(key.recording) }
      place.withLock { $0 = wanted.upperBound }
      return piece
    }
  }
}
