/// Names one file of one recording in a store of media: `recordings/<recording>/<name>`.
///
/// The row that names a file has the whole key, which is chosen when the file is written and only read from the row
/// afterward. A key is never used for two contents: each recording has a new ID, and the files that jobs add are named
/// by attempt. In a folder of media, the key is the file's path, so existing files are where their keys say.
package struct ObjectKey: Sendable, Hashable {
  /// The recording that the file belongs to.
  package let recording: RecordingID
  /// The file's name among those of the recording.
  package let name: String

  /// Creates the key of a file that is about to be written.
  package init(_ recording: RecordingID, _ name: String) { (self.recording, self.name) = (recording, name) }

  /// The key of the map of this object's sound, a file that can be made again. No row names it.
  package var map: ObjectKey { ObjectKey(recording, name + ".map") }

  /// Whether this may be a recording's own audio, which is never removed as something that was derived from it.
  package var mayBeAudio: Bool { name.hasPrefix("audio") && !name.hasSuffix(".map") }

  /// What the keys of a recording's descriptions begin with.
  package static func descriptions(of id: RecordingID) -> String { "\(ObjectKey(id, descriptionPrefix))" }

  private static let descriptionPrefix = "recording-"
  private static let descriptionSuffix = ".json"

  /// The key of a version of a recording's description.
  package static func description(of id: RecordingID, version: Int64) -> ObjectKey {
    ObjectKey(id, "\(descriptionPrefix)\(version)\(descriptionSuffix)")
  }

  /// The version of a recording's description; nil if the object is something else.
  package var descriptionVersion: Int64? {
    guard name.hasPrefix(Self.descriptionPrefix), name.hasSuffix(Self.descriptionSuffix) else { return nil }
    let version = Int64(name.dropFirst(Self.descriptionPrefix.count).dropLast(Self.descriptionSuffix.count))
    return version.flatMap {
      Timestamp(milliseconds: $0).isPlausible && self == .description(of: recording, version: $0) ? $0 : nil
    }
  }

  /// Reads a key from a row, which may be damaged. Fails if it could lead outside a recording's folder.
  package init?(_ text: String) {
    // By bytes, which takes a tenth of the time that finding Characters takes.
    let parts = text.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    guard parts.count == 3, parts[0].elementsEqual("recordings".utf8),
      let recording = RecordingID(String(Substring(parts[1])))
    else { return nil }
    let name = String(Substring(parts[2]))
    guard MediaStore.isFileName(name) else { return nil }
    self.init(recording, name)
  }
}

extension ObjectKey: CustomStringConvertible {
  /// The key as one string: the path in a folder of media, and the key in a bucket.
  package var description: String { "recordings/\(recording.text)/\(name)" }
}
