import Glibc

/// A store that a check compares with its catalog. Nothing in it is changed.
///
/// What is wrong with one object is part of a result; an error means that the check can't go on, because the store
/// doesn't answer, say.
package struct CheckedStore: Sendable {
  /// Reports what is in the store and no row names; the last argument returns whether to continue.
  package typealias Audit =
    @Sendable (Catalog, inout DataCheck.Report, () -> Bool) throws(StorageError) -> Void

  let store: any ObjectStore
  /// Whether services may change rows and files meanwhile.
  let isLive: Bool
  /// What findings call the catalog.
  let catalogName: String
  /// Throws if this isn't the store that the catalog describes any more: then nothing is missing.
  let confirm: @Sendable () throws(StorageError) -> Void
  /// See `Audit`.
  package let audit: Audit
  /// Where an object is fetched to if it isn't a file.
  private let temporary: String

  /// Describes a store. Objects that aren't files are fetched to the path `temporary`, one after the other.
  package init(
    _ store: any ObjectStore, isLive: Bool, catalogName: String = "catalog", temporary: String = "",
    confirm: @escaping @Sendable () throws(StorageError) -> Void, audit: @escaping Audit
  ) {
    (self.store, self.isLive, self.catalogName) = (store, isLive, catalogName)
    (self.temporary, self.confirm, self.audit) = (temporary, confirm, audit)
  }

  /// What is found under a key: nil if there is no object.
  enum Found<Content> {
    case content(Content?)
    case unreadable(reason: String)
  }

  /// Returns what `body` finds under a key.
  func find<Content>(_ key: String, _ body: () throws(StorageError) -> Content?) throws(StorageError) -> Found<Content>
  {
    let path = store.path(of: key) ?? key
    var reason: String?
    do throws(StorageError) {
      if let content = try body() { return .content(content) }
    } catch {
      switch error {
      case .io(_, path, let number) where number == ENOENT || number == ENOTDIR: break
      case .io(let operation, path, let number): reason = "\(operation) failed (errno \(number))"
      case .objectStore(let detail): reason = detail
      case .damagedObject: reason = "it isn't what the store was given"
      default: throw error
      }
    }
    try confirm()
    return reason.map { .unreadable(reason: $0) } ?? .content(nil)
  }

  /// Returns the length of an object, 0 if that isn't known, and what is wrong with it. `readsAll` is whether to
  /// compare its SHA-256, too; a waveform is always read.
  func look(
    at item: InventoryItem, readsAll: Bool, pyramidFault: (String) -> String?
  ) throws(StorageError) -> (bytes: Int64, fault: ObjectFault?) {
    let key = item.key.description
    if item.kind == .waveform {
      return switch try waveformFault(in: key, pyramidFault) {
      case .content(nil): (0, .missing)
      case .unreadable(let reason), .content(.some(.some(let reason))): (0, .damaged(reason: reason))
      case .content(.some(nil)): (0, nil)
      }
    }
    let bytes: Int64
    switch try find(key, { () throws(StorageError) in try store.look(key)?.bytes }) {
    case .content(nil): return (0, .missing)
    case .unreadable(let reason): return (0, .unreadable(reason: reason))
    case .content(let found?): bytes = found
    }
    guard bytes == item.object.bytes else { return (bytes, .length(found: bytes, expected: item.object.bytes)) }
    guard readsAll, let expected = item.object.sha256 else { return (bytes, nil) }
    return
      switch try find(key, { () throws(StorageError) in try store.sha256(of: key, inPieces: false) { _ in true } })
    {
    case .content(nil): (bytes, .missing)
    case .unreadable(let reason): (bytes, .unreadable(reason: reason))
    case .content(let found?): (bytes, found == expected ? nil : .content)
    }
  }

  private func waveformFault(
    in key: String, _ pyramidFault: (String) -> String?
  ) throws(StorageError) -> Found<String?> {
    defer { if store.isBucket { try? FileSystem.remove(temporary) } }
    return try find(key) { () throws(StorageError) -> String?? in
      if let path = store.path(of: key) {
        if try store.look(key) == nil { return nil }
        return .some(pyramidFault(path))
      }
      if try store.copy(key, to: temporary) == nil { return nil }
      return .some(pyramidFault(temporary))
    }
  }

  /// Whether a recording's description is there and says the same as its row, or the recording needs none.
  func isDescribed(_ recording: Recording) throws(StorageError) -> Bool {
    guard recording.audioKey != nil else { return true }
    let key = recording.descriptionKey.description
    if let path = store.path(of: key) {
      // Missing files are reported.
      guard FileSystem.isFolder(FileSystem.parent(of: path)) else { return true }
      // A start believes the latest one. In a bucket, a listing would cost a request.
      let keys = try? store.keys(ObjectKey.descriptions(of: recording.id), limit: .max)
      guard keys?.compactMap({ ObjectKey($0)?.descriptionVersion }).max() == recording.version else { return false }
    }
    let found = try find(key) { () throws(StorageError) in
      try store.contents(of: key, limit: Int(Recording.descriptionLimit))
    }
    guard case .content(let bytes?) = found else { return false }
    return recording.isDescribed(by: bytes)
  }

  /// Whether the bytes that were acknowledged of an unfinished upload are there.
  func hasBytes(of upload: Upload, _ catalog: Catalog) throws(StorageError) -> Bool {
    guard let pieces = try catalog.pieces(of: upload, in: store) else { return false }
    for piece in pieces {
      guard case .content(let there?) = try find(piece.key, { () throws(StorageError) in try store.look(piece.key) })
      else { return false }
      // A file may grow.
      let bytes = piece.range?.upperBound ?? 0
      guard store.isBucket ? there.bytes == bytes : there.bytes >= bytes else { return false }
    }
    return true
  }
}

extension ObjectStore {
  /// What findings call the bytes of an upload: the file of the first writer, or what the keys of its objects begin
  /// with.
  func path(of upload: UploadID) -> String { "uploads/\(upload)" + (isBucket ? "" : ".part") }
}

extension Catalog {
  /// Returns where the acknowledged bytes of an unfinished upload are in a store, in order; nil if rows don't name all.
  func pieces(of upload: Upload, in store: any ObjectStore) throws(StorageError) -> [ObjectPiece]? {
    guard store.isBucket else {
      // The first writer's file is made before the row, and is there even if it is empty.
      return try segments(of: upload.id).counting(to: upload.offset).filter { $0.segment.writer == 0 || $0.count > 0 }
        .map {
          ObjectPiece("uploads/" + MediaStore.fileName(of: $0.segment), 0..<$0.count)
        }
    }
    return try objects(of: upload.id, upTo: upload.offset)?.map { ObjectPiece($0.key, 0..<$0.bytes) }
  }
}
