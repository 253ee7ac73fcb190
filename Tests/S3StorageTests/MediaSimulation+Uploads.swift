import ObjectStore
import PresentRows

@testable import S3Storage
@testable import Storage

// Resumable uploads, which nodes take over from each other.

extension MediaSimulation {
  /// Begins an upload, or takes one over.
  func receive(_ node: SimulatedNode) throws {
    var id = chance(60) ? uploads.keys.sorted { $0.text < $1.text }.randomElement(using: &random) : nil
    if id == nil {
      let content = bytes() + [0]
      let upload = Upload(length: Int64(content.count), expiresAt: Timestamp(milliseconds: 4_000_000_000_000))
      try node.catalog.insert(upload, limits: UploadLimits(total: 99, perClient: 99))
      uploads[upload.id] = (content, 0, 0)
      id = upload.id
    } else if let old = id, chance(10) {
      uploads[old] = nil
      if try node.catalog.deleteUpload(old) { node.spool.removeParts(of: old) }
      return node.spool.settle()
    }
    guard let id, let row = try node.catalog.upload(id), row.recording == nil else { return }
    let taken = try node.catalog.takeOver(id, at: row.offset)
    guard let bytes = try node.spool.begin(try node.catalog.segments(of: id), at: row.offset) else {
      // Unless another node has deleted, finished or taken it over meanwhile.
      if let row = try node.catalog.upload(id), row.recording == nil, row.writer == taken.writer {
        violations.append("bytes of an upload are missing")
      }
      return
    }
    uploads[id]?.writer = taken.writer
    count("taken over")
    try receiveMore(bytes, taken, node)
  }

  func receiveMore(_ bytes: any UploadBytes, _ upload: Upload, _ node: SimulatedNode) throws {
    guard let (content, _, writer) = uploads[upload.id] else { return }
    let start = Int(bytes.byteCount)
    let limit = content.count > 1000 ? 6 << 20 : Int.random(in: 1...40, using: &random)
    let end = min(start + limit, content.count)
    // An earlier writer doesn't know that it was replaced, and may have other bytes.
    let isFormer = upload.writer != writer
    let more = isFormer ? content[start..<end].map { ~$0 } : Array(content[start..<end])
    if !more.isEmpty { try bytes.append(more.span) }
    let objects = try bytes.sync(to: bytes.byteCount)
    try node.catalog.advance(
      upload.id, to: bytes.byteCount, expiresAt: upload.expiresAt, by: upload.writer, adding: objects)
    if let reported = uploads[upload.id]?.reported { uploads[upload.id]?.reported = max(reported, bytes.byteCount) }
    count("offsets")
    guard end == content.count else { return node.work.append(.upload(bytes, upload)) }
    var recording = newRecording()
    contents["\(ObjectKey(recording.id, "audio.mp3"))"] = content
    let stored = try node.blobs.adopt(try bytes.join(), as: recording.id, name: "audio.mp3")
    describe(stored, as: &recording)
    if chance(70) {
      try insert(recording, finishing: upload, world.now, node)
    } else {
      node.work.append(.joined(upload, recording, since: world.now))
    }
  }

  func insert(
    _ recording: Recording, finishing upload: Upload, _ since: Timestamp, _ node: SimulatedNode
  ) throws {
    let known = uploads.removeValue(forKey: upload.id)
    do {
      try naming(since: since) {
        try node.catalog.insert(recording, jobs: [], finishing: upload.id, expiresAt: upload.expiresAt)
      }
    } catch {
      // Otherwise it may have become one.
      if case StorageError.objectMayBeGone = error { uploads[upload.id] = known }
      throw error
    }
    acknowledge(recording)
    count("joined")
    node.spool.removeParts(of: upload.id)
    node.spool.settle()
  }
}
