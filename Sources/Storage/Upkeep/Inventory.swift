// The one walk over what is kept: page by page, the recordings, the objects that their rows name, and what is wrong
// with those that are there. A check reports it, a repair acts on it, a backup and a move copy it.

/// An object that a recording should have.
struct InventoryItem: Sendable {
  enum Kind: Sendable, Equatable {
    case audio, workingCopy, waveform
    case conversion(format: String)
  }

  let kind: Kind
  let object: ExpectedObject

  var key: ObjectKey { object.key }
}

/// A recording, with what its rows name.
struct InventoryEntry: Sendable, Equatable {
  let recording: Recording
  let conversions: [Conversion]

  /// The objects, the audio first; none until the job that produces the recording has finished.
  var items: [InventoryItem] {
    guard let audio = recording.audioKey else { return [] }
    func item(_ kind: InventoryItem.Kind, _ key: ObjectKey?, _ bytes: Int64?, _ sha256: String?) -> InventoryItem? {
      key.map { InventoryItem(kind: kind, object: ExpectedObject(key: $0, bytes: bytes, sha256: sha256)) }
    }
    let waveform = recording.waveformState == .ready ? recording.waveformKey : nil
    return [
      item(.audio, audio, recording.bytes, recording.sha256),
      item(.workingCopy, recording.workingKey, recording.workingBytes, recording.workingSHA256),
      // No row has its SHA-256; it has checksums of its own.
      item(.waveform, waveform, nil, nil),
    ].compactMap { $0 }
      + conversions.compactMap { item(.conversion(format: $0.format), $0.key, $0.bytes, $0.sha256) }
  }

  /// The maps that may be beside its sounds. No row says anything about them.
  var maps: [ObjectKey] { [recording.audioKey, recording.workingKey].compactMap { $0?.map } }
}

/// What a catalog says should be in a store.
struct Inventory: Sendable {
  let catalog: Catalog
  /// How many recordings are in memory at once.
  let batch: Int

  init(of catalog: Catalog, batch: Int = 500) { (self.catalog, self.batch) = (catalog, batch) }

  /// Calls `body` with the readable recordings, some at a time, newest first.
  func eachPage(_ body: ([InventoryEntry]) throws(StorageError) -> Void) throws(StorageError) {
    var place: String?
    repeat {
      let (recordings, next) = try catalog.recordings(limit: batch, after: place)
      if let newest = recordings.first?.id, let oldest = recordings.last?.id {
        let conversions = try catalog.conversions(from: oldest, through: newest)
        try body(recordings.map { InventoryEntry(recording: $0, conversions: conversions[$0.id] ?? []) })
      }
      place = next
    } while place != nil
  }

  /// Calls `body` with each readable recording, newest first, then `progress` with the fraction done; that returns
  /// whether to continue. Throws `.cancelled` otherwise.
  func each(
    progress: (Double) -> Bool = { _ in true }, _ body: (InventoryEntry) throws(StorageError) -> Void
  ) throws(StorageError) {
    let total = Double(try catalog.recordingCount())
    var done = 0.0
    try eachPage { (page) throws(StorageError) in
      for entry in page {
        try body(entry)
        done += 1
        guard progress(min(1, done / total)) else { throw .cancelled }
      }
    }
  }

  /// Returns a recording as it is now; nil if it was deleted. Throws `.corrupt` if its row can't be read.
  func entry(_ id: RecordingID) throws(StorageError) -> InventoryEntry? {
    guard let recording = try catalog.recording(id) else { return nil }
    return InventoryEntry(recording: recording, conversions: try catalog.conversions(of: id))
  }
}

/// What is wrong with an object.
package enum ObjectFault: Sendable, Equatable {
  /// There is no object.
  case missing
  /// It can't be read now.
  case unreadable(reason: String)
  /// The length isn't what the row says, nil if that says none.
  case length(found: Int64, expected: Int64?)
  /// The SHA-256 isn't what the row says, or what the store was given.
  case content
  /// What its own checksums or its form say.
  case damaged(reason: String)
}

extension ExpectedObject {
  /// Returns what is wrong with an object of which a store says this. What no row or no store says is as expected.
  package func fault(of found: FoundObject) -> ObjectFault? {
    if let bytes, bytes != found.bytes { return .length(found: found.bytes, expected: bytes) }
    guard let sha256, let other = found.sha256 else { return nil }
    return sha256 == other ? nil : .content
  }
}

extension DataCheck.Finding {
  /// Says what is wrong with an object.
  init(_ fault: ObjectFault, of item: InventoryItem) {
    let (code, name) =
      switch item.kind {
      case .audio: ("audio", "The audio")
      case .workingCopy: ("working_copy", "The working copy of the audio")
      case .waveform: ("waveform", "The waveform's file")
      case .conversion(let format): ("conversion", "The recording's sound as \(format)")
      }
    let detail =
      switch fault {
      case .missing: item.isMadeAgain ? " is missing; it is made again on request." : " is missing."
      case .unreadable(let reason): " can't be read: \(reason)."
      case .length(let found, let expected):
        " has \(found) bytes; the catalog says \(expected.map { "\($0)" } ?? "an unknown number of")."
      case .content: "'s SHA-256 is not what the catalog says."
      case .damaged(let reason): " is damaged: \(reason)."
      }
    let path = item.key.description
    self.init(code: code + (fault == .missing ? "_missing" : "_damaged"), path: path, detail: name + detail)
  }
}

extension InventoryItem {
  /// Whether the service makes the object again when it is asked for it and finds that it is missing.
  var isMadeAgain: Bool { if case .conversion = kind { true } else { false } }
}
