import HTTP
import Jobs
import Storage
import Synchronization

/// A long object that this node doesn't have, as the content of a response: fetched in pieces, as fast as the client
/// reads them, so that the first ones don't wait for the rest.
///
/// If all of it is sent, its SHA-256 is compared before the last piece, and with another one the connection breaks. Of
/// a range, only the whole object's length and version are known to be right.
struct FetchedObject: Sendable {
  let key: ObjectKey
  /// In bytes.
  let length: Int64
  let sha256: String
  let objects: any ObjectStore
  let work: StoreQueue
  let client: Client

  /// The length of a piece: long enough that the requests take little of the time.
  private static let pieceBytes: Int64 = 1 << 20

  private struct Progress: ~Copyable {
    var place: Int64
    var digest = SHA256()
  }

  /// Returns the bytes in `range`. Throws while they are sent if the object is gone or damaged.
  func body(_ range: Range<Int64>) -> ResponseBody {
    let progress = Mutex(Progress(place: range.lowerBound))
    let isWhole = range == 0..<length
    return .stream(length: Int64(range.count)) {
      let from = progress.withLock { $0.place }
      guard from < range.upperBound else { return nil }
      let wanted = from..<min(from + Self.pieceBytes, range.upperBound)
      let piece = try await work.run(as: .transfer(client)) { try objects.read(key, wanted) }
      guard let piece, piece.count == wanted.count else { throw ServiceError.audioMissing(key.recording) }
      let isRight = progress.withLock { progress in
        progress.place = wanted.upperBound
        guard isWhole else { return true }
        progress.digest.update(piece.span)
        return wanted.upperBound < length || progress.digest.hexDigest() == sha256
      }
      guard isRight else {
        _ = try await work.run { objects.discardCopy(of: key) }
        throw ServiceError.audioDamaged(key.recording)
      }
      return piece
    }
  }
}
