import ObjectStore

@testable import Storage

// What must hold after each step of a history.

extension MediaSimulation {
  /// What the catalog says about objects.
  private struct Rows {
    /// The objects that must exist, with their length if a row has it.
    var needed: [String: Int64?] = [:]
    /// Those that may exist: what is made beside them.
    var allowed: Set<String> = []
    /// What rows of `garbage` name.
    var intents: Set<String> = []
    var recordings: [String: Recording] = [:]
    var uploads: [String: (offset: Int64, isFinished: Bool, keys: [String])] = [:]

    init(_ db: any SQLSession) throws {
      for row in try db.rows("SELECT * FROM recordings") {
        let id: String = try value(row, "id")
        let length: Int64? = try nullable(row, "bytes")
        for column in ["audio_key", "working_key", "waveform_key"] {
          guard let key: String = try nullable(row, column) else { continue }
          needed[key] = .some(column == "audio_key" ? length : nil)
          allowed.insert(key + ".map")
        }
        let recording = try RecordingRow(row: row).recording
        recordings[id] = recording
        allowed.insert("\(recording.descriptionKey)")
      }
      for row in try db.rows("SELECT * FROM conversions") {
        let length: Int64 = try value(row, "bytes")
        needed[try value(row, "key")] = .some(length)
      }
      for row in try db.rows("SELECT * FROM uploads") {
        let recording: String? = try nullable(row, "recording")
        uploads[try value(row, "id")] = (try value(row, "offset"), recording != nil, [])
      }
      for row in try db.rows("SELECT * FROM upload_objects ORDER BY upload, start") {
        let (upload, name): (String, String) = (try value(row, "upload"), try value(row, "name"))
        let length: Int64 = try value(row, "bytes")
        needed["uploads/\(upload)/\(name)"] = .some(length)
        uploads[upload]?.keys.append("uploads/\(upload)/\(name)")
      }
      for row in try db.rows("SELECT object FROM garbage") { intents.insert(try value(row, "object")) }
    }

    func explains(_ key: String) -> Bool { needed[key] != nil || allowed.contains(key) || intents.contains(key) }
  }

  /// Compares long contents by samples: tests aren't optimized.
  func isSame(_ one: [UInt8], _ other: [UInt8]) -> Bool {
    guard one.count == other.count else { return false }
    guard one.count > 1000 else { return one == other }
    return stride(from: 0, to: one.count, by: 60_013).allSatisfy { one[$0] == other[$0] }
  }

  private func rows() -> Rows? {
    do { return try world.database.read(Rows.init) } catch {
      violations.append("the catalog can't be read: \(error)")
      return nil
    }
  }

  /// Checks that each object is named by a row or an intent, that each row's object exists, and that nothing is gone
  /// that was acknowledged.
  func check(_ moment: String) {
    guard violations.isEmpty, let rows = rows() else { return }
    let objects = world.store.objects(in: "sounds")
    for (key, bytes) in objects {
      expect(rows.explains(key), "no row and no intent names \(key)")
      if let content = contents[key] { expect(isSame(bytes, content), "\(key) has other bytes") }
    }
    for (key, count) in rows.needed {
      guard let bytes = objects[key] else {
        expect(false, "\(key) is gone")
        continue
      }
      expect(count.map { $0 == Int64(bytes.count) } ?? true, "\(key) has another length")
    }
    let multiparts = world.store.uploads(in: "sounds").filter { upload in
      !rows.intents.contains("multipart/\(upload.key)?\(upload.id)")
    }
    for upload in multiparts { expect(upload.partCount == 0, "no row names the parts of \(upload.key)") }
    expectAcknowledged(rows, objects)
    if !violations.isEmpty { violations.append("this was \(moment)") }
  }

  private func expect(_ condition: Bool, _ message: @autoclosure () -> String) {
    if !condition { violations.append(message()) }
  }

  private func expectAcknowledged(_ rows: Rows, _ objects: [String: [UInt8]]) {
    for (id, content) in audio {
      guard let row = rows.recordings[id.text] else {
        expect(false, "recording \(id) is gone")
        continue
      }
      expect(isSame(objects["recordings/\(id)/audio.mp3"] ?? [], content), "the audio of \(id) isn't what it was")
      expect(names[id].map { $0 == row.name } ?? true, "\(id) isn't named \(names[id] ?? "")")
      expect(waveforms[id].map { $0 == row.waveformKey } ?? true, "\(id) has another waveform")
    }
    for (id, (content, reported, _)) in uploads {
      guard let row = rows.uploads[id.text] else {
        expect(false, "upload \(id) is gone")
        continue
      }
      expect(row.offset >= reported, "upload \(id) has gone back")
      guard !row.isFinished else { continue }
      let bytes = row.keys.flatMap { objects[$0] ?? [] }
      expect(isSame(bytes, Array(content.prefix(Int(row.offset)))), "the bytes of upload \(id) aren't what they were")
    }
  }

  /// Checks that nothing is left that rows don't name.
  func checkQuiet(_ moment: String) {
    guard violations.isEmpty, let rows = rows() else { return }
    let objects = world.store.objects(in: "sounds")
    for key in objects.keys where rows.needed[key] == nil && !rows.allowed.contains(key) {
      violations.append("\(key) is left, \(moment)")
    }
    for intent in rows.intents { violations.append("a row of garbage is left for \(intent), \(moment)") }
    let multiparts = world.store.uploads(in: "sounds")
    if multiparts.contains(where: { $0.partCount > 0 }) {
      violations.append("parts of a multipart upload are left, \(moment)")
    }
    for (id, recording) in rows.recordings {
      let description = objects["\(recording.descriptionKey)"]
      if description.map(recording.isDescribed) != true { violations.append("\(id) isn't described, \(moment)") }
    }
  }

  /// Checks that nothing at all is left.
  func checkEmpty() {
    guard violations.isEmpty else { return }
    checkQuiet("when all was deleted")
    let left = world.store.objects(in: "sounds").keys
    if !left.isEmpty { violations.append("\(left.sorted()) are left of what was deleted") }
    let removals = try? world.database.read { try $0.rows("SELECT id FROM removals").count }
    if removals != 0 { violations.append("deletions aren't settled") }
  }
}
