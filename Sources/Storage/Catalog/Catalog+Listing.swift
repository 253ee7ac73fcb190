// What a listing of a bucket shows is compared with the rows. Each object was announced in `garbage` before it was put,
// and descriptions belong to a row. So an object that was there before the rows are read in one transaction is named by
// one of them, or is a stray, or has been removed since.
//
// `attempts` isn't asked: what a job puts is announced, too.

/// An object of a bucket that no row of the catalog names, neither as part of something nor as unneeded.
package struct UnnamedObject: Sendable, Equatable {
  /// The key.
  package let key: String
  /// The recording that it belongs to by its key, if the catalog has neither a row for that nor a record of its
  /// deletion.
  package let lostRecording: RecordingID?
}

extension Catalog {
  /// Returns those of some keys that no row names, in the same order. Costs a few queries for each recording and upload
  /// among them.
  package func unnamed(among keys: [String]) throws(StorageError) -> [UnnamedObject] {
    let folders = Dictionary(grouping: keys) { key in
      key.split(separator: "/", omittingEmptySubsequences: false).prefix(2).joined(separator: "/")
    }
    return try read { db in
      var (named, lost): (Set<String>, [String: RecordingID]) = ([], [:])
      // Our own keys consist of visible ASCII characters; a database may not take others.
      for (folder, keys) in folders where folder.utf8.allSatisfy({ (0x21...0x7E).contains($0) }) {
        let known = try Self.named(in: folder, db)
        named.formUnion(known)
        guard let id = Self.recording(of: folder), keys.contains(where: { !known.contains($0) }) else { continue }
        if try !Self.hasTrace(of: id, db) { for key in keys { lost[key] = id } }
      }
      return keys.filter { !named.contains($0) }.map { UnnamedObject(key: $0, lostRecording: lost[$0]) }
    }
  }

  private static func recording(of folder: String) -> RecordingID? {
    folder.hasPrefix("recordings/") ? RecordingID(String(folder.dropFirst("recordings/".count))) : nil
  }

  /// Returns the keys below `folder/` that rows name.
  private static func named(in folder: String, _ db: CatalogTransaction) throws -> Set<String> {
    // "0" follows "/", and text is sorted by its bytes.
    let unneeded = try db.rows(
      "SELECT object FROM garbage WHERE object > ? AND object < ?", [folder + "/", folder + "0"]
    ).map { try value($0, "object") as String }
    if let id = recording(of: folder) { return try Set(unneeded + namedObjects(of: id, db).map(\.description)) }
    guard folder.hasPrefix("uploads/"), let id = UploadID(String(folder.dropFirst("uploads/".count))) else {
      return Set(unneeded)
    }
    return try Set(unneeded + objects(of: id, db).map(\.key))
  }

  private static func hasTrace(of id: RecordingID, _ db: CatalogTransaction) throws -> Bool {
    try db.first(
      """
      SELECT EXISTS (SELECT 1 FROM recordings WHERE id = ?) OR EXISTS (SELECT 1 FROM removals WHERE id = ?)
      """, [id.text, id.text], as: Bool.self) ?? false
  }
}
