import Storage

/// A store around another one, which gets every call that this one doesn't implement itself.
package protocol PassingStore: ObjectStore {
  /// The other one.
  var store: any ObjectStore { get }
}

extension PassingStore {
  package var name: String { store.name }
  package func path(of key: String) -> String? { store.path(of: key) }
  package func put(_ objects: [NewObject], begins: Bool) throws(StorageError) -> [FoundObject?] {
    try store.put(objects, begins: begins)
  }
  package func take(
    _ pieces: [ObjectPiece], of other: any ObjectStore, as key: String, if isExpected: (FoundObject) -> Bool
  ) throws(StorageError) -> FoundObject? { try store.take(pieces, of: other, as: key, if: isExpected) }
  package func sync() throws(StorageError) { try store.sync() }
  package func look(_ key: String) throws(StorageError) -> FoundObject? { try store.look(key) }
  package func read(_ key: ObjectKey, _ ranges: [Range<Int64>]) throws(StorageError) -> [[UInt8]]? {
    try store.read(key, ranges)
  }
  package func isAtHand(_ key: ObjectKey, _ ranges: [Range<Int64>]) -> Bool { store.isAtHand(key, ranges) }
  package func localFile(_ key: ObjectKey) throws(StorageError) -> LocalFile { try store.localFile(key) }
  package func fileAtHand(_ key: ObjectKey) -> LocalFile? { store.fileAtHand(key) }
  package func discardCopy(of key: ObjectKey) -> Bool { store.discardCopy(of: key) }
  package func contents(of key: String, limit: Int) throws(StorageError) -> [UInt8]? {
    try store.contents(of: key, limit: limit)
  }
  package func sha256(
    of key: String, inPieces: Bool, _ goesOn: (Int) throws(StorageError) -> Bool
  ) throws(StorageError) -> String? { try store.sha256(of: key, inPieces: inPieces, goesOn) }
  package func copy(_ key: String, to path: String) throws(StorageError) -> FoundObject? {
    try store.copy(key, to: path)
  }
  package func keys(_ prefix: String, limit: Int) throws(StorageError) -> [String] {
    try store.keys(prefix, limit: limit)
  }
  package func delete(_ key: String) throws(StorageError) { try store.delete(key) }
  package func discardUnfinished() throws(StorageError) { try store.discardUnfinished() }
  package var isFailing: Bool { store.isFailing }
  package func checkReachable() throws(StorageError) { try store.checkReachable() }
  package func mediaID() throws(StorageError) -> String? { try store.mediaID() }
  package func makeMediaID(_ id: String?) throws(StorageError) -> String { try store.makeMediaID(id) }
}
